// SPDX-License-Identifier: GPL-2.0-only
/* Both control loops in one thread. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <json-c/json.h>

#include "clock.h"
#include "daemon.h"
#include "notify.h"
#include "config/table.h"
#include "contexts/pair_speeds.h"

#define PRIORITY	(-15)

/* Log texts for a part that works again. */
static const char *const works[TROUBLES] = {
	[TROUBLE_CONTROL] = "control works again",
	[TROUBLE_CONTEXTS] = "preemption works again",
	[TROUBLE_DEVICES] = "all devices are controlled again",
	[TROUBLE_STATE_FILE] = "the state file is written again",
	[TROUBLE_SOCKET] = "the socket has its group",
	[TROUBLE_JSON_LOG] = "the JSON log is written again",
	[TROUBLE_PAIRS] = "the speeds of pairs are used",
	[TROUBLE_MODEL] = "the model is used as it is set",
};

static const char *status_text(const struct daemon *d)
{
	for (int i = 0; i < TROUBLES; i++)
		if (d->trouble[i][0])
			return d->trouble[i];
	return "dividing CPU and GPU time";
}

static void tell_ready(const struct daemon *d)
{
	notify("READY=1\nSTATUS=%s", status_text(d));
}

void daemon_trouble(struct daemon *d, enum trouble what, const char *text)
{
	uint64_t failures = d->failures[what];

	d->failures[what] = text[0] ? failures + 1 : 0;
	if (!strcmp(d->trouble[what], text))
		return;
	snprintf(d->trouble[what], sizeof(d->trouble[what]), "%s", text);
	if (text[0])
		log_text(what == TROUBLE_CONTROL ? LEVEL_ERROR : LEVEL_WARNING, "trouble",
			 "%s", text);
	else
		log_text(LEVEL_WARNING, "trouble-over", "%s, after %llu failures", works[what],
			 (unsigned long long)failures);
	notify("STATUS=%s", status_text(d));
}

/* ---- what was learned elsewhere ---- */

/* Take what is expected of pairs of jobs from the file that the settings name. */
static void use_pairs(struct daemon *d)
{
	struct analyse *a = d->preempter ? preempter_analyse(d->preempter) : &d->learned;
	char why[512] = "";

	pairs_use(&a->norm, d->config.pairs, why, sizeof(why));
	daemon_trouble(d, TROUBLE_PAIRS, why);
}

static void model_event(struct daemon *d, const char *event)
{
	struct json_object *o = daemon_model_event(d, event);

	if (d->server && o)
		server_event(d->server, o);
	else
		json_object_put(o);
}

/* Use the model that the settings name. @reread: its file, too, may have changed. */
static void use_model(struct daemon *d, bool reread)
{
	const struct model *m = &d->model;
	char why[512];
	enum model_change change;

	change = model_configure(&d->model, &d->config.model, reread, why, sizeof(why));
	if (change == MODEL_SAME)
		return;
	if (change == MODEL_REFUSED) {
		size_t len = strlen(why);

		snprintf(why + len, sizeof(why) - len, "; nothing is expected until this is corrected");
	}
	daemon_trouble(d, TROUBLE_MODEL, why);
	if (!m->ops)
		return;
	log_text(LEVEL_INFO, "model-loaded", "%s is the model, %s%s%s", m->ops->name,
		 config_model_acts(&d->config.model) ? "and acts" : "in shadow",
		 m->evaluation[0] ? "; its evaluation: " : "", m->evaluation);
	model_event(d, "model-loaded");
	if (config_model_acts(&d->config.model))
		model_event(d, "model-acts");
}

/* Log and publish that the model has failed. */
static void watch_model(struct daemon *d)
{
	const char *why = learner_report(d->model.learner)->why;
	char text[256];

	if (!model_failed(&d->model))
		return;
	log_text(LEVEL_WARNING, "model-failed", "%s", why);
	snprintf(text, sizeof(text), "the model has failed, and nothing is expected: %s", why);
	daemon_trouble(d, TROUBLE_MODEL, text);
	model_event(d, "model-failed");
}

/* ---- the kernel's side ---- */

/* Stop the preemption loop; the rate loop goes on. */
static void leave_contexts(struct daemon *d)
{
	if (d->preempter)
		d->learned = *preempter_analyse(d->preempter);
	preempter_close(d->preempter);
	d->preempter = NULL;
}

static void disconnect(struct daemon *d)
{
	leave_contexts(d);
	d->no_contexts = false;
	observer_close(d->observer);
	d->observer = NULL;
	mgpu_close(d->mgpu);
	d->mgpu = NULL;
}

/*
 * The preemption loop failed: begin it anew after a while, which grows with each failure.
 * It has connections and BPF programs of its own, so that the rate loop goes on.
 */
static void contexts_failed(struct daemon *d, const char *text)
{
	unsigned int shift = d->contexts_failures < 6 ? d->contexts_failures : 6;

	daemon_trouble(d, TROUBLE_CONTEXTS, text);
	leave_contexts(d);
	d->contexts_failures++;
	d->contexts_ns = now_ns() + (NSEC << shift);
}

/* Start the preemption loop; without contexts in the module only the rate loop runs. */
static void watch_contexts(struct daemon *d)
{
	struct mgpu_error err = { .text = "" };
	char why[512];
	int ret;

	ret = preempter_open(&d->preempter, &d->config.preempt, !d->opt->dry_run, why,
			     sizeof(why), &err);
	if (ret == -ENOENT || ret == -EOPNOTSUPP) {
		d->no_contexts = true;
		log_text(LEVEL_WARNING, "no-preemption", "%s. Continuing without preemption.",
			 err.text);
		return;
	}
	if (ret) {
		contexts_failed(d, err.text);
		return;
	}
	*preempter_analyse(d->preempter) = d->learned;
	if (why[0])
		log_text(LEVEL_WARNING, "no-bpf", "%s Continuing without learning the speed of work.",
			 why);
}

/* Once a period: let the preemption loop learn, or begin it. */
static void period_of_contexts(struct daemon *d)
{
	struct mgpu_error err = { .text = "" };

	if (!d->preempter && !d->no_contexts && now_ns() >= d->contexts_ns)
		watch_contexts(d);
	if (!d->preempter)
		return;
	if (preempter_learn(d->preempter, &err)) {
		contexts_failed(d, err.text);
		return;
	}
	d->contexts_failures = 0;
	daemon_trouble(d, TROUBLE_CONTEXTS, "");
}

/* Control is in force for the first time. */
static void log_ready(struct daemon *d)
{
	char more[3 * CONFIG_PATH];

	snprintf(more, sizeof(more), " bpf=%s charge=%s socket=%s config=%s",
		 observer_bpf(d->observer) ? "yes" : "no",
		 observer_charge(d->observer) ? "bpf" : "module", d->config.socket,
		 d->config.found ? d->opt->source.path : "none");
	daemon_log_settings(d, "ready", more);
	d->began = true;
}

static int connect_kernel(struct daemon *d, struct mgpu_error *err)
{
	char why[1024];
	int ret;

	ret = mgpu_open(&d->mgpu, err);
	if (!ret)
		ret = observer_open(&d->observer, d->mgpu, why, sizeof(why), err);
	if (ret) {
		disconnect(d);
		return ret;
	}
	if (why[0])
		log_text(LEVEL_WARNING, "no-bpf", "%s Continuing with the kernel module's own accounting.",
			 why);
	d->contexts_ns = 0;
	watch_contexts(d);
	if (!d->began)
		log_ready(d);
	return 0;
}

/* ---- a period ---- */

/* @value: in units of 1 / @factor; 0 for none */
static void print_would(uint32_t vgpu, const char *name, uint32_t value, double factor)
{
	if (value)
		log_event(LEVEL_INFO, "would set vgpu=%u %s=%.3f", vgpu, name, value / factor);
	else
		log_event(LEVEL_INFO, "would set vgpu=%u %s=none", vgpu, name);
}

static void print_would_set(const struct applied *done)
{
	for (size_t j = 0; j < done->changed; j++) {
		const struct mgpu_vgpu_setting *set = &done->set[j];

		if (set->mask & MGPU_SETTING_FPS_TARGET)
			print_would(set->id, "target_fps", set->fps_target, 1e3);
		if (set->mask & MGPU_SETTING_GPU_TARGET)
			print_would(set->id, "gpu_target_share", set->gpu_target, 1e6);
	}
}

static int act(struct daemon *d, struct mgpu_error *err)
{
	struct applied done = { 0 };
	int ret;

	ret = apply(d->opt->dry_run ? NULL : d->mgpu,
		    &d->estimate, &d->plan, &done, err);
	d->changed = done.changed;
	if (d->opt->dry_run && !ret)
		print_would_set(&done);
	free(done.set);
	return ret;
}

/* Log and publish begins and ends of shortfalls. */
static void watch_agreements(struct daemon *d)
{
	struct sla_event *events;
	size_t nr;

	if (sla_watch_update(&d->sla_watch, &d->estimate, &d->plan, &events, &nr))
		return;		/* out of memory: the next period tries again */
	for (size_t i = 0; i < nr; i++) {
		const struct sla_event *e = &events[i];

		log_event(LEVEL_WARNING, "%s vgpu=%u uuid=%s floor_fps=%.2f granted_fps=%.2f%s",
			  e->shortfall ? "sla-shortfall" : "sla-met", e->id, e->uuid,
			  e->floor, e->granted, e->gone ? " gone=yes" : "");
		server_event(d->server, daemon_event(d, e));
	}
	free(events);
}

/* Log once that weights differ and do not count. */
static void watch_weights(struct daemon *d)
{
	const struct estimate *e = &d->estimate;
	const struct estimate_vgpu *first = NULL;
	bool differ = false;

	for (size_t j = 0; j < e->nr_vgpus; j++) {
		if (e->vgpus[j].state == VGPU_CLOSED)
			continue;
		differ |= first && first->last.weight != e->vgpus[j].last.weight;
		first = first ? first : &e->vgpus[j];
	}
	differ &= !d->config.set.allocator->weights;
	if (differ && !d->ignores_weights)
		log_text(LEVEL_INFO, "no-weights",
			 "vGPUs have different weights, which do not count for targets under the allocator %s: choose exact, fea, drf, maxmin or static to divide by weight",
			 d->config.set.allocator->name);
	d->ignores_weights = differ;
}

/* The allocators divide so many devices' engines at most, besides the CPUs. */
static void watch_devices(struct daemon *d)
{
	size_t max = MGPU_MAX_RES - 1;
	char text[256] = "";

	if (d->estimate.nr_devs > max)
		snprintf(text, sizeof(text),
			 "there are %zu devices, of which mgpud controls at most %zu with active vGPUs: those on further devices keep the targets that they have. Set their limits with \"gpuctl vgpu set\"",
			 d->estimate.nr_devs, max);
	daemon_trouble(d, TROUBLE_DEVICES, text);
}

static int period(struct daemon *d)
{
	struct mgpu_error err = { .text = "" };
	const struct sample *sample;
	uint64_t start = now_ns();
	int ret;

	ret = d->mgpu ? 0 : connect_kernel(d, &err);
	if (!ret)
		ret = observer_sample(d->observer, &sample, &err);
	if (ret) {
		/* the module may have been unloaded, and may be loaded again */
		daemon_trouble(d, TROUBLE_CONTROL, err.text);
		disconnect(d);
		server_publish(d->server, true);
		return ret;
	}
	ret = estimate_update(&d->estimate, sample, d->config.set.headroom);
	if (!ret) {
		plan_free(&d->plan);
		ret = settings_decide(&d->config.set, &d->estimate,
				      model_expect(&d->model, &d->config.set, &d->estimate,
						   (uint64_t)time(NULL)),
				      &d->control, &d->plan);
	}
	if (ret) {
		mgpu_fail(&err, ret, "no plan for this period: %s", strerror(-ret));
	} else {
		watch_agreements(d);
		watch_weights(d);
		watch_devices(d);
		watch_model(d);
		ret = act(d, &err);
	}
	daemon_trouble(d, TROUBLE_CONTROL, ret ? err.text : "");
	period_of_contexts(d);

	d->took_ms = (double)(now_ns() - start) / 1e6;
	server_publish(d->server, true);
	if (!(d->estimate.seconds > 0))
		return ret;	/* the first sample has no sample before it */
	d->periods++;
	if (log_periods())
		daemon_log(d, stdout);
	if (d->json_log)
		daemon_log_json(d, d->json_log);
	keep_save(d);
	return ret;
}

/* Run the preemption loop. */
static void preempt(struct daemon *d)
{
	struct mgpu_error err = { .text = "" };

	if (preempter_run(d->preempter, &err))
		contexts_failed(d, err.text);
}

/* ---- settings ---- */

static struct json_object *on_state(void *arg)
{
	return daemon_state(arg);
}

static void on_fresh(void *arg, char *text, size_t size)
{
	daemon_fresh(arg, text, size);
}

/*
 * Set the timer to the end of the period, which begins with the last sample. A late
 * sample does not make the next period short, since rates of a short period are noise.
 */
static int arm(struct daemon *d)
{
	uint64_t length = (uint64_t)d->config.set.period_ms * 1000000, now = now_ns();
	uint64_t next = d->estimate.now_ns + length;
	struct itimerspec t = { 0 };

	/* look for the module more often than that */
	if (!d->mgpu && length > NSEC)
		length = NSEC;
	if (!d->mgpu)
		next = now + length;

	if (next < now + length / 2)
		next = now + length;
	t.it_value.tv_sec = (time_t)(next / NSEC);
	t.it_value.tv_nsec = (long)(next % NSEC);
	d->due_ns = next;
	return timerfd_settime(d->timer, TFD_TIMER_ABSTIME, &t, NULL) ? -errno : 0;
}

static bool any_floor(const struct settings *set)
{
	if (set->sla.floor > 0)
		return true;
	for (size_t i = 0; i < set->nr_vgpus; i++)
		if (set->vgpus[i].sla.floor > 0)
			return true;
	return false;
}

void daemon_log_settings(const struct daemon *d, const char *event, const char *more)
{
	const struct settings *set = &d->config.set;
	char text[TABLE_ALL_TEXT];

	table_all(&d->config, text);
	log_event(LEVEL_INFO, "%s %s agreements=%zu%s", event, text, set->nr_vgpus, more);
	if (any_floor(set) && !set->allocator->floors)
		log_text(LEVEL_WARNING, "no-floors",
			 "the allocator %s keeps no floors: choose exact, fea, drf or maxmin, or remove the floors",
			 set->allocator->name);
}

void daemon_use(struct daemon *d, struct config *config, bool reread)
{
	unsigned int period_ms = d->config.set.period_ms;

	config_free(&d->config);
	d->config = *config;
	if (d->preempter)
		preempter_configure(d->preempter, &d->config.preempt);
	if (d->due_ns && period_ms != d->config.set.period_ms)
		arm(d);
	use_model(d, reread);
}

static const struct server_ops server_ops = {
	.name = "mgpud",
	.state = on_state,
	.fresh = on_fresh,
	.change = keep_change,
};

/* Let those in that may use the socket. */
static void set_access(struct daemon *d)
{
	struct access access = { .everyone = d->config.socket_read == CONFIG_READ_EVERYONE };
	char why[512] = "", more[512] = "";

	access_group(d->config.socket_group, &access.gid, why, sizeof(why));
	if (server_access(d->server, &access, more, sizeof(more)) && !why[0])
		strcpy(why, more);
	daemon_trouble(d, TROUBLE_SOCKET, why);
}

static int open_json_log(const struct config *c, FILE **log)
{
	*log = NULL;
	if (!c->json_log[0])
		return 0;
	*log = fopen(c->json_log, "ae");
	if (*log)
		return 0;
	log_text(LEVEL_ERROR, "json-log", "cannot write %s: %s; choose another json_log or none",
		 c->json_log, strerror(errno));
	return -errno;
}

/* Open the JSON log again, under its name: it was rotated. */
static void rotate(struct daemon *d)
{
	char text[CONFIG_PATH + 128] = "";
	FILE *log;

	if (!d->config.json_log[0])
		return;
	log = fopen(d->config.json_log, "ae");
	if (log) {
		if (d->json_log)
			fclose(d->json_log);
		d->json_log = log;
		log_event(LEVEL_INFO, "rotated json_log=%s", d->config.json_log);
	} else {
		snprintf(text, sizeof(text),
			 "cannot open %s again: %s; the file that was open is written further. Correct this, and send SIGUSR1 again",
			 d->config.json_log, strerror(errno));
	}
	daemon_trouble(d, TROUBLE_JSON_LOG, text);
}

/* Name the values of the file and the command line that are not in force. */
static void log_overridden(const struct daemon *d)
{
	static const char *const origin[] = {
		[ORIGIN_FILE] = "file", [ORIGIN_ENVIRONMENT] = "environment",
		[ORIGIN_OPTION] = "command line",
	};
	char text[512] = "";

	for (const struct mgpud_setting *s = mgpud_settings; s->key; s++) {
		unsigned char from = d->base.origin[s - mgpud_settings];
		size_t len = strlen(text);

		if (from && d->config.origin[s - mgpud_settings] == ORIGIN_RUN_TIME)
			snprintf(text + len, sizeof(text) - len, "%s%s (%s)", len ? ", " : "",
				 s->name, origin[from]);
	}
	if (text[0])
		log_text(LEVEL_INFO, "overridden", "set at run time, which counts more: %s. \"gpuctl ctl reset\" brings these into force",
			 text);
}

/*
 * Load the configuration again, file and command line, all or none. Settings made at run
 * time count more.
 */
static int take_config(struct daemon *d)
{
	struct config base = { 0 }, new = { 0 };
	FILE *log = d->json_log;
	struct settings_error err;
	char why[512];
	bool moved, stays;
	int ret;

	ret = config_load(&base, &d->opt->source, why, sizeof(why));
	if (ret) {
		log_text(LEVEL_ERROR, "reload-refused", "%s; all settings stay as they were",
			 why);
		return ret;
	}
	stays = strcmp(base.socket, d->config.socket);
	strcpy(base.socket, d->config.socket);
	ret = overlay_apply(&base, d->overlay, &new, &err);
	if (ret) {
		log_text(LEVEL_ERROR, "reload-refused", "%s, with what was set at run time: remove that with \"gpuctl ctl reset\", or change %s; all settings stay as they were",
			 err.text, d->opt->source.path);
		goto out;
	}
	if (strcmp(new.json_log, d->config.json_log))
		ret = open_json_log(&new, &log);
	if (ret) {
		log_text(LEVEL_ERROR, "reload-refused", "all settings stay as they were");
		config_free(&new);
		goto out;
	}
	if (d->json_log && d->json_log != log)
		fclose(d->json_log);
	d->json_log = log;
	moved = strcmp(new.state_file, d->config.state_file);
	config_free(&d->base);
	d->base = base;
	daemon_use(d, &new, true);
	use_pairs(d);
	log_set_mode(d->config.log);
	set_access(d);
	/* the file at another place lacks what was set at run time */
	if (moved) {
		d->changes++;
		keep_now(d);
	}
	server_publish(d->server, false);
	if (stays)
		log_text(LEVEL_WARNING, "reload", "socket stays %s until mgpud is restarted; all other settings are in force",
			 d->config.socket);
	return 0;
out:
	config_free(&base);
	return ret;
}

static void reload(struct daemon *d)
{
	int ret;

	/* CLOCK_MONOTONIC: newer service managers identify the reload by it */
	notify("RELOADING=1\nMONOTONIC_USEC=%llu\nSTATUS=reading the configuration",
	       (unsigned long long)(now_ns() / 1000));
	ret = take_config(d);
	if (ret) {
		notify("READY=1\nSTATUS=%s",
		       "a reload was refused; the settings before it are in force");
		return;
	}
	d->reloads++;
	daemon_log_settings(d, "reloaded", d->config.found ? "" : " config=none");
	log_overridden(d);
	tell_ready(d);
}

/* ---- running ---- */

static int open_events(struct daemon *d)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -errno;
	signal(SIGPIPE, SIG_IGN);
	d->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (d->signals < 0)
		return -errno;
	d->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return d->timer < 0 ? -errno : 0;
}

static void on_signal(struct daemon *d)
{
	struct signalfd_siginfo info;

	while (!d->stopped && read(d->signals, &info, sizeof(info)) == sizeof(info)) {
		switch (info.ssi_signo) {
		case SIGHUP:
			reload(d);
			break;
		case SIGUSR1:
			rotate(d);
			break;
		default:
			d->stopped = true;
		}
	}
}

/*
 * Timeout for poll(): the next time of the watchdog, the preempter or a client that waits
 * for a slow write; -1 for none.
 */
static int wait_ms(const struct daemon *d)
{
	uint64_t now = now_ns(), wake;
	int ms = watchdog_wait_ms(&d->watchdog, now);

	wake = d->preempter ? preempter_wake_ns(d->preempter) : UINT64_MAX;
	if (d->answer_ns && d->answer_ns < wake)
		wake = d->answer_ns;
	if (wake == UINT64_MAX)
		return ms;
	/* round up, so as not to be early */
	wake = wake > now ? (wake - now + 999999) / 1000000 : 0;
	return ms < 0 || wake < (uint64_t)ms ? (int)(wake < INT_MAX ? wake : INT_MAX) : ms;
}

static int loop(struct daemon *d)
{
	struct pollfd fds[] = {
		{ .fd = d->signals, .events = POLLIN },
		{ .fd = d->timer, .events = POLLIN },
		{ .fd = server_fd(d->server), .events = POLLIN },
		{ .events = POLLIN },
		{ .fd = statefile_writer_fd(d->writer), .events = POLLIN },
	};
	const nfds_t nr = sizeof(fds) / sizeof(fds[0]);

	for (;;) {
		uint64_t ticks;
		int ret;

		/* its descriptor comes and goes with the kernel module */
		fds[3].fd = d->preempter ? preempter_fd(d->preempter) : -1;
		fds[3].revents = 0;
		if (poll(fds, nr, wait_ms(d)) < 0) {
			if (errno != EINTR)
				return -errno;
			continue;
		}
		if (fds[0].revents)
			on_signal(d);
		if (d->stopped)
			return 0;
		if (fds[1].revents && read(d->timer, &ticks, sizeof(ticks)) > 0) {
			ret = period(d);
			if (arm(d))
				return -errno;
			if (d->opt->once && (ret || d->periods))
				return ret;
		}
		if (d->preempter && (fds[3].revents ||
				     now_ns() >= preempter_wake_ns(d->preempter)))
			preempt(d);
		/* it may have ended since poll() */
		keep_ended(d);
		keep_late(d, now_ns());
		if (fds[2].revents)
			server_run(d->server);
		if (watchdog_due(&d->watchdog, now_ns(), d->due_ns))
			notify("WATCHDOG=1");
	}
}

static int exit_status(int ret)
{
	switch (ret) {
	case 0:
		return END_OK;
	case -EPERM:
	case -EACCES:
		return END_PERMISSION;
	default:
		return END_FAILED;
	}
}

/*
 * Open the socket, the log and the kernel module, for which mgpud waits if it is not
 * loaded. Returns an exit status.
 */
static int set_up(struct daemon *d)
{
	struct mgpu_error err = { .text = "" };
	char why[256];
	int ret;

	/* from now on the loop reads signals */
	ret = open_events(d);
	if (ret) {
		log_text(LEVEL_ERROR, "failed", "cannot wait for events: %s", strerror(-ret));
		return END_FAILED;
	}
	ret = mgpu_open(&d->mgpu, &err);
	if (ret && (ret != -ENOENT || d->opt->once)) {
		log_text(LEVEL_ERROR, "failed", "%s", err.text);
		return ret == -ENOENT ? END_MODULE : exit_status(ret);
	}
	mgpu_close(d->mgpu);
	d->mgpu = NULL;
	ret = server_open(&d->server, d->config.socket, &server_ops, d, why, sizeof(why));
	if (ret) {
		log_text(LEVEL_ERROR, "failed", "%s", why);
		return ret == -EBUSY ? END_RUNNING : exit_status(ret);
	}
	set_access(d);
	ret = open_json_log(&d->config, &d->json_log);
	if (ret)
		return exit_status(ret);
	d->writer = statefile_writer_new();
	if (!d->writer) {
		log_text(LEVEL_ERROR, "failed", "out of memory");
		return END_FAILED;
	}
	d->saved_ns = d->start_ns;
	keep_restore(d);
	ret = connect_kernel(d, &err);
	if (ret == -ENOENT && !d->opt->once) {
		daemon_trouble(d, TROUBLE_CONTROL, err.text);
		return END_OK;
	}
	if (ret) {
		log_text(LEVEL_ERROR, "failed", "%s", err.text);
		return ret == -ENOENT ? END_MODULE : exit_status(ret);
	}
	return END_OK;
}

/* A signal ended mgpud: no target of its own stays behind, unless it is to. */
static void release(struct daemon *d)
{
	struct mgpu_error err = { .text = "" };
	size_t nr;

	if (!d->stopped || d->config.on_exit != CONFIG_EXIT_RELEASE || d->opt->dry_run ||
	    !d->mgpu)
		return;
	if (apply_release(d->mgpu, &nr, &err))
		log_text(LEVEL_ERROR, "not-released", "targets stay in force: %s", err.text);
	else
		log_event(LEVEL_INFO, "released vgpus=%zu", nr);
}

int daemon_run(struct options *opt)
{
	struct daemon d = {
		.opt = opt,
		.base = opt->config,
		.plan = { .fds = NAN, .fds_best = NAN },
		.timer = -1,
		.signals = -1,
		.start_ns = now_ns(),
	};
	struct settings_error err;
	int status, ret;

	if (model_init(&d.model)) {
		log_text(LEVEL_ERROR, "failed", "out of memory");
		return END_FAILED;
	}
	memset(&opt->config, 0, sizeof(opt->config));
	if (overlay_apply(&d.base, NULL, &d.config, &err)) {
		log_text(LEVEL_ERROR, "failed", "out of memory");
		config_free(&d.base);
		model_free(&d.model);
		return END_FAILED;
	}
	log_set_mode(d.config.log);
	statefile_boot(d.boot);
	status = set_up(&d);
	if (status)
		goto out;
	/* run before the VMs that mgpud divides the CPUs among */
	setpriority(PRIO_PROCESS, 0, PRIORITY);
	log_overridden(&d);
	use_model(&d, false);
	use_pairs(&d);
	period(&d);
	watchdog_init(&d.watchdog, getenv("WATCHDOG_USEC"), getenv("WATCHDOG_PID"),
		      getpid(), now_ns());
	ret = arm(&d);
	tell_ready(&d);
	if (!ret)
		ret = loop(&d);
	notify("STOPPING=1");
	release(&d);
	keep_last(&d);
	if (d.observer && observer_missed(d.observer))
		log_event(LEVEL_WARNING, "bpf-missed events=%llu",
			  (unsigned long long)observer_missed(d.observer));
	if (ret)
		log_text(LEVEL_ERROR, "failed", "%s", d.trouble[TROUBLE_CONTROL][0] ?
			 d.trouble[TROUBLE_CONTROL] : strerror(-ret));
	else
		log_event(LEVEL_INFO, "stopped periods=%llu", (unsigned long long)d.periods);
	status = ret ? exit_status(ret) : END_OK;
out:
	server_close(d.server);
	if (d.timer >= 0)
		close(d.timer);
	if (d.signals >= 0)
		close(d.signals);
	if (d.json_log)
		fclose(d.json_log);
	statefile_writer_free(d.writer);
	disconnect(&d);
	estimate_free(&d.estimate);
	model_free(&d.model);
	plan_free(&d.plan);
	sla_watch_free(&d.sla_watch);
	json_object_put(d.overlay);
	config_free(&d.base);
	config_free(&d.config);
	return status;
}
