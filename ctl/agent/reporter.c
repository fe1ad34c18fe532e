// SPDX-License-Identifier: GPL-2.0-only
/* GPUs that the VM has, but that no run or job of the agent asked for. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "clock.h"
#include "complain.h"
#include "hold.h"
#include "reporter.h"

#define ANSWER_S	10
#define HOLDS		16
#define LISTS		5	/* pauses between reports that pass between lists without a GPU */

/**
 * struct reporter - the process
 * @conf: settings
 * @link: connection
 * @holds: GPUs, NULL: none
 * @list_ns: when the service is next asked for the VM's requests
 */
struct reporter {
	const struct conf *conf;
	struct link *link;
	struct hold *holds[HOLDS];
	uint64_t list_ns;
};

static bool is_held(const struct reporter *r, uint64_t id)
{
	for (size_t i = 0; i < HOLDS; i++)
		if (r->holds[i] && r->holds[i]->kept.id == id)
			return true;
	return false;
}

/*
 * The only GPU that is no emulated screen and no other request's. If there are several, whose use
 * would be reported is unknown, and none is.
 */
static void find_device(struct hold *h)
{
	struct devices *now = malloc(sizeof(*now));
	char *others = malloc(KEPT_LIST);
	const struct device *only = NULL;
	int lock = kept_lock_devices(h->conf);
	unsigned int nr = 0;

	if (now && others && !devices_scan(h->conf->root, now)) {
		kept_others(&h->kept, others);
		for (size_t i = 0; i < now->nr; i++) {
			const struct device *d = &now->d[i];

			if (!device_is_gpu(d) || device_is_screen(d) || !*d->driver ||
			    devices_listed(others, d->addr))
				continue;
			only = d;
			nr++;
		}
		if (nr == 1)
			hold_begin(h, only);
	}
	kept_unlock(lock);
	free(others);
	free(now);
}

static bool ask_state(struct reporter *r, uint64_t id)
{
	wire_begin(&r->link->out, "state");
	wire_add_number(&r->link->out, "id", id);
	return !link_ask(r->link, ANSWER_S) && link_ok(r->link);
}

/* Begin to look at a request, or go on after a restart. */
static void hold_new(struct reporter *r, struct hold **slot, uint64_t id, const char *name,
		     const char *key)
{
	struct hold *h = calloc(1, sizeof(*h));

	if (!h || kept_take(&h->kept, r->conf, name)) {
		free(h);
		return;
	}
	h->conf = r->conf;
	h->link = r->link;
	snprintf(h->kept.key, sizeof(h->kept.key), "%s", key);
	h->report_ns = now_ns();
	h->look_ns = UINT64_MAX;
	h->meter.source = USE_NONE;
	if (ask_state(r, id) && !hold_take(h)) {
		find_device(h);
		kept_write(&h->kept);
		*slot = h;
		return;
	}
	kept_close(&h->kept, true);
	free(h);
}

/* Take a line "ID STATE KIND KEY" of the list. */
static void take_line(struct reporter *r, const char *line)
{
	char number[24], state[16], kind[64], key[64], name[KEPT_NAME];
	struct hold **slot = r->holds;
	uint64_t id;

	if (sscanf(line, "%23s %15s %63s %63s", number, state, kind, key) != 4 ||
	    strcmp(state, "active") || wire_decimal(number, INT64_MAX, &id) || is_held(r, id))
		return;
	snprintf(name, sizeof(name), KEPT_REPORTED "%" PRIu64, id);
	if (kept_has(r->conf, key, name))
		return;
	while (slot < r->holds + HOLDS && *slot)
		slot++;
	if (slot < r->holds + HOLDS)
		hold_new(r, slot, id, name, key);
}

/* Drop what a former process kept, unless a process has it: its device may be another's by now. */
static void forget(const char *name, void *arg)
{
	const struct reporter *r = arg;
	struct kept *k;

	if (strncmp(name, KEPT_REPORTED, strlen(KEPT_REPORTED)))
		return;
	k = malloc(sizeof(*k));
	if (k && !kept_take(k, r->conf, name))
		kept_close(k, true);
	free(k);
}

static void list(struct reporter *r)
{
	char lines[HOLDS][256], name[8];
	size_t nr = 0;

	wire_begin(&r->link->out, "list");
	if (link_ask(r->link, ANSWER_S) || !link_ok(r->link))
		return;
	/* Copies: the next answer takes the place of this one. */
	for (; nr < HOLDS; nr++) {
		const char *line;

		snprintf(name, sizeof(name), "r%zu", nr);
		line = wire_get(&r->link->answer, name);
		if (!line)
			break;
		snprintf(lines[nr], sizeof(lines[nr]), "%s", line);
	}
	for (size_t i = 0; i < nr; i++)
		take_line(r, lines[i]);
	kept_each(r->conf, forget, r);
}

static void drop(struct hold **slot)
{
	kept_close(&(*slot)->kept, true);
	free(*slot);
	*slot = NULL;
}

/* Do what is due. Return when something is due next. */
static uint64_t look(struct reporter *r)
{
	uint64_t now = now_ns(), next;
	bool any = false;

	for (size_t i = 0; i < HOLDS; i++) {
		if (r->holds[i] && hold_tick(r->holds[i], now) == -ENODEV)
			drop(&r->holds[i]);
		any |= !!r->holds[i];
	}
	if (now >= r->list_ns) {
		list(r);
		r->list_ns = now + r->conf->report * NSEC * (any ? 1 : LISTS);
	}
	next = r->list_ns;
	for (size_t i = 0; i < HOLDS; i++)
		if (r->holds[i] && hold_due(r->holds[i]) < next)
			next = hold_due(r->holds[i]);
	/* No connection stays open for what happens once in a while. */
	if (next > now_ns() + LISTS * NSEC)
		link_close(r->link);
	return next;
}

static void run(const struct conf *conf, int signals)
{
	struct reporter r = { .conf = conf, .link = malloc(sizeof(*r.link)) };

	if (!r.link || link_init(r.link, conf, signals))
		return;
	while (!child_stopped(signals)) {
		uint64_t next = look(&r), now = now_ns();

		link_sleep(r.link, next > now ? (unsigned int)((next - now) / 1000000) + 1 : 1);
	}
	for (size_t i = 0; i < HOLDS; i++)
		if (r.holds[i])
			kept_close(&r.holds[i]->kept, false);
	link_free(r.link);
	free(r.link);
}

pid_t reporter_start(const struct conf *conf)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		complain("the use of GPUs by hand is not reported: %s", strerror(errno));
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	unsetenv("NOTIFY_SOCKET");
	if (getppid() == parent)
		run(conf, child_signals());
	_exit(0);
}

void reporter_stop(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGTERM);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}
