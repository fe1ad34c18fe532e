// SPDX-License-Identifier: GPL-2.0-only
/*
 * The state file outlives this mgpud, and has the settings made at run time. A change is in
 * force at once, and its client is answered when the state file has it. A thread writes,
 * so that control goes on meanwhile.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <json-c/json.h>

#include "clock.h"
#include "config/table.h"
#include "daemon.h"

#define PATIENCE_NS	(3 * NSEC)	/* then a client is answered before the write ends */

static bool keeps_state(const struct daemon *d)
{
	return d->config.state_file[0] && !d->opt->dry_run;
}

/* Return the figures learned of jobs: the preempter's, or those of the state file. */
static struct analyse *learned(struct daemon *d)
{
	return d->preempter ? preempter_analyse(d->preempter) : &d->learned;
}

/* ---- reading ---- */

/* Bring what an mgpud before was told into force, as far as it is valid. */
static void take_overlay(struct daemon *d, struct json_object *settings)
{
	struct json_object *overlay = NULL;
	struct settings_error err;
	struct config new = { 0 };
	char why[1024];

	if (!settings)
		return;
	if (overlay_keep_valid(settings, &d->base, &overlay, why, sizeof(why)) ||
	    overlay_apply(&d->base, overlay, &new, &err)) {
		log_text(LEVEL_ERROR, "settings-dropped", "out of memory: what was set at run time is not in force");
		json_object_put(overlay);
		return;
	}
	d->overlay = overlay;
	daemon_use(d, &new, false);
	if (!why[0])
		return;
	log_text(LEVEL_WARNING, "settings-dropped",
		 "of what was set at run time, this mgpud refuses and drops: %s. The rest is in force",
		 why);
	/* said once: the next mgpud does not find it */
	d->changes++;
}

static void read_state(struct daemon *d, const char *path)
{
	struct json_object *settings = NULL;
	char why[512];
	int ret;

	ret = statefile_read(path, d->boot, &d->estimate, &d->control, &d->learned,
			     d->model.learner, &settings, why, sizeof(why));
	take_overlay(d, settings);
	json_object_put(settings);
	d->restored_kinds = d->learned.n;
	d->saved_learned = d->learned.now;
	if (!ret) {
		d->restored = d->estimate.nr_vgpus;
		log_event(LEVEL_INFO, "restored vgpus=%zu kinds=%zu settings=%zu state_file=%s",
			  d->restored, d->restored_kinds, overlay_count(d->overlay), path);
		if (why[0])
			log_text(LEVEL_WARNING, "state-ignored", "state file %s: %s", path,
				 why);
	} else if (ret == -ESTALE && (d->restored_kinds || overlay_count(d->overlay))) {
		log_text(LEVEL_INFO, "state-ignored",
			 "state file %s: using only what it says of %zu kinds of work and %zu settings, because %s",
			 path, d->restored_kinds, overlay_count(d->overlay), why);
	} else if (ret != -ENOENT) {
		log_text(ret == -ESTALE ? LEVEL_INFO : LEVEL_WARNING, "state-ignored",
			 "state file %s is not used%s: %s", path,
			 overlay_count(d->overlay) ? " but for what was set at run time" : "",
			 why);
	}
}

void keep_restore(struct daemon *d)
{
	analyse_init(&d->learned);
	if (d->config.state_file[0])
		read_state(d, d->config.state_file);
	if (d->changes)
		keep_now(d);
}

/* ---- writing ---- */

static char *make_text(struct daemon *d)
{
	struct analyse *work = learned(d);
	char *text = statefile_make(&d->estimate, &d->control, work, d->model.learner,
				    d->overlay, d->boot);

	if (!text)
		return NULL;
	d->saved_ns = now_ns();
	d->saved_learned = work->now;
	d->writing = d->changes;
	return text;
}

/* A write has ended: clients that wait for it can be answered. */
static void written(struct daemon *d, int ret)
{
	char text[512] = "", warning[512] = "";

	if (ret) {
		snprintf(text, sizeof(text),
			 "cannot write state file %s: %s; a restart will lose estimates and what was set at run time. Correct this, or choose another --state-file or none",
			 d->config.state_file, strerror(-ret));
		snprintf(warning, sizeof(warning),
			 "this holds only until mgpud ends, since it cannot write state file %s: %s",
			 d->config.state_file, strerror(-ret));
	}
	daemon_trouble(d, TROUBLE_STATE_FILE, text);
	d->answer_ns = 0;
	server_done(d->server, d->writing, warning);
}

void keep_now(struct daemon *d)
{
	char *text;
	int ret;

	/* a write that is in flight comes here when it ends */
	if (d->in_flight || !keeps_state(d))
		return;
	text = make_text(d);
	if (!text) {
		d->writing = d->changes;
		written(d, -ENOMEM);
		return;
	}
	ret = statefile_writer_start(d->writer, d->config.state_file, text);
	d->in_flight = !ret;
	if (ret)
		written(d, ret);
}

void keep_ended(struct daemon *d)
{
	int ret;

	if (!statefile_writer_ended(d->writer, &ret))
		return;
	d->in_flight = false;
	written(d, ret);
	if (d->changes == d->writing)
		return;
	d->answer_ns = now_ns() + PATIENCE_NS;
	keep_now(d);
}

void keep_late(struct daemon *d, uint64_t now)
{
	char warning[512];

	if (!d->answer_ns || now < d->answer_ns)
		return;
	d->answer_ns = 0;
	snprintf(warning, sizeof(warning),
		 "this is in force, but the disk is slow: until state file %s is written, a restart loses it",
		 d->config.state_file);
	server_done(d->server, d->changes, warning);
}

void keep_save(struct daemon *d)
{
	if (!d->estimate.now_ns && learned(d)->now == d->saved_learned)
		return;
	if (now_ns() - d->saved_ns >= d->config.state_period_s * NSEC)
		keep_now(d);
}

void keep_last(struct daemon *d)
{
	char *text;

	statefile_writer_free(d->writer);	/* waits for the write */
	d->writer = NULL;
	if (!keeps_state(d) ||
	    (!d->estimate.now_ns && learned(d)->now == d->saved_learned &&
	     d->writing == d->changes && !d->in_flight))
		return;
	text = make_text(d);
	written(d, text ? statefile_write(d->config.state_file, text) : -ENOMEM);
	free(text);
	server_run(d->server);
}

/* ---- changes ---- */

static int make_overlay(struct daemon *d, enum server_change what, struct json_object *value,
			struct json_object **overlay, struct settings_error *err)
{
	struct config new;
	int ret;

	if (what == SERVER_RESET)
		return overlay_reset(d->overlay, value, overlay, err);
	if (config_copy(&new, &d->config)) {
		settings_wrong(err, "settings", "out of memory");
		return -ENOMEM;
	}
	ret = table_json(&new, &d->estimate, value, err);
	if (!ret) {
		*overlay = overlay_set(d->overlay, &d->base, &new, value);
		if (!*overlay) {
			settings_wrong(err, "settings", "out of memory");
			ret = -ENOMEM;
		}
	}
	config_free(&new);
	return ret;
}

int keep_change(void *arg, const struct peer *peer, enum server_change what,
		struct json_object *value, uint64_t *ticket, struct settings_error *err)
{
	struct daemon *d = arg;
	struct json_object *overlay;
	struct config new = { 0 };
	char more[64];
	int ret;

	ret = make_overlay(d, what, value, &overlay, err);
	if (ret)
		return ret;
	ret = overlay_apply(&d->base, overlay, &new, err);
	if (ret) {
		size_t len = strlen(err->text);

		json_object_put(overlay);
		snprintf(err->text + len, sizeof(err->text) - len,
			 "; what belongs together must be reset together");
		return ret;
	}
	json_object_put(d->overlay);
	d->overlay = overlay;
	daemon_use(d, &new, false);
	snprintf(more, sizeof(more), " set=%zu uid=%u pid=%d", overlay_count(overlay),
		 peer->uid, (int)peer->pid);
	daemon_log_settings(d, what == SERVER_SET ? "settings" : "reset", more);

	d->changes++;
	err->text[0] = '\0';
	if (keeps_state(d)) {
		*ticket = d->changes;
		if (!d->answer_ns)
			d->answer_ns = now_ns() + PATIENCE_NS;
		keep_now(d);
	} else {
		snprintf(err->text, sizeof(err->text), "this holds only until mgpud ends: %s",
			 d->opt->dry_run ? "with --dry-run it writes no state file" :
			 "it has no state file (state_file = none)");
	}
	return 0;
}
