// SPDX-License-Identifier: GPL-2.0-only
/* A GPU from the request to the release. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "complain.h"
#include "hold.h"
#include "lines.h"
#include "notice.h"
#include "vm_name.h"

#define ANSWER_S	10
#define POLL_S		60	/* a wait of the service */
#define LOOK_S		10	/* between two looks at use */
#define LEASE_S		300	/* before the end of a lease: a notice */
#define SCAN_MS		1000	/* between two looks at sysfs, should the kernel tell nothing */
#define FINISH_S	5
#define PROBE_NS	(10 * NSEC)	/* for the probe of a driver whose end nothing shows */

/* ---- wishes ---- */

static int copy(char *to, size_t size, const char *value)
{
	if (!*value || strlen(value) >= size)
		return -EINVAL;
	strcpy(to, value);
	return 0;
}

static int number32(const char *value, uint32_t max, uint32_t *n)
{
	uint64_t wide;

	if (wire_decimal(value, max, &wide))
		return -EINVAL;
	*n = (uint32_t)wide;
	return 0;
}

/* "60" or "59.94" frames per second, in thousandths. */
static int read_floor(const char *value, uint32_t *mhz)
{
	char *end;
	double fps = strtod(value, &end);

	if (*end || end == value || !(fps >= 0 && fps <= 10000))
		return -EINVAL;
	*mhz = (uint32_t)(fps * 1000 + 0.5);
	return 0;
}

int wish_set(struct wish *wish, const char *name, const char *value)
{
	if (!strcmp(name, "kind"))
		return copy(wish->kind, sizeof(wish->kind), value);
	if (!strcmp(name, "target"))
		return copy(wish->target, sizeof(wish->target), value);
	if (!strcmp(name, "precision"))
		return copy(wish->precision, sizeof(wish->precision), value);
	if (!strcmp(name, "capabilities"))
		return copy(wish->capabilities, sizeof(wish->capabilities), value);
	if (!strcmp(name, "type"))
		return copy(wish->type, sizeof(wish->type), value);
	if (!strcmp(name, "size"))
		return lines_size(value, &wish->size_mib);
	if (!strcmp(name, "memory"))
		return lines_size(value, &wish->memory_mib);
	if (!strcmp(name, "weight"))
		return number32(value, 10000, &wish->weight);
	if (!strcmp(name, "floor"))
		return read_floor(value, &wish->floor_mhz);
	if (!strcmp(name, "lease"))
		return lines_duration(value, &wish->lease);
	return -ENOENT;
}

bool wish_alike(const struct wish *a, const struct wish *b)
{
	return !strcmp(a->kind, b->kind) && !strcmp(a->target, b->target) &&
	       !strcmp(a->precision, b->precision) && !strcmp(a->type, b->type) &&
	       !strcmp(a->capabilities, b->capabilities) && a->weight == b->weight &&
	       a->floor_mhz == b->floor_mhz && b->memory_mib <= a->memory_mib &&
	       b->size_mib <= a->size_mib;
}

static void add_word(struct wire_text *t, const char *name, const char *value)
{
	if (*value)
		wire_add(t, name, value);
}

static void add_number(struct wire_text *t, const char *name, uint64_t value)
{
	if (value)
		wire_add_number(t, name, value);
}

void wish_write(const struct wish *wish, struct wire_text *t)
{
	add_word(t, "kind", wish->kind);
	add_word(t, "target", wish->target);
	add_word(t, "precision", wish->precision);
	add_word(t, "capabilities", wish->capabilities);
	add_word(t, "type", wish->type);
	add_number(t, "size_mib", wish->size_mib);
	add_number(t, "memory_mib", wish->memory_mib);
	add_number(t, "weight", wish->weight);
	add_number(t, "floor_mhz", wish->floor_mhz);
	add_number(t, "lease", wish->lease);
}

/* ---- states ---- */

static void take_text(const struct wire_message *m, const char *name, char *to, size_t size)
{
	const char *value = wire_get(m, name);

	text_clean(value ? value : "", value ? strlen(value) : 0, to, size);
}

int hold_take(struct hold *h)
{
	const struct wire_message *m = &h->link->answer;
	uint64_t id = 0, now = clock_ns(CLOCK_REALTIME) / NSEC;

	if (wire_number(m, "id", INT64_MAX, &id) || !id ||
	    wire_number(m, "place", UINT32_MAX, &h->place) ||
	    wire_number(m, "version", INT64_MAX, &h->version) ||
	    wire_number(m, "until", INT64_MAX, &h->until) ||
	    wire_number(m, "now", INT64_MAX, &now) ||
	    wire_number(m, "warned", INT64_MAX, &h->warned))
		return -EBADMSG;
	h->kept.id = id;
	h->lease = h->until > now ? h->until - now : 0;
	take_text(m, "state", h->state, sizeof(h->state));
	take_text(m, "reason", h->reason, sizeof(h->reason));
	take_text(m, "why", h->why, sizeof(h->why));
	take_text(m, "target", h->target, sizeof(h->target));
	take_text(m, "gpu", h->gpu, sizeof(h->gpu));
	return 0;
}

static bool is_over(const char *state)
{
	return !strcmp(state, "released") || !strcmp(state, "failed") ||
	       !strcmp(state, "cancelled");
}

bool hold_lost(const struct hold *h)
{
	return is_over(h->state) || !strcmp(h->state, "releasing");
}

/* Take an answer: a state, or an error that is complained. */
static int taken(struct hold *h, int ret)
{
	if (ret == -EINTR)
		return ret;
	if (ret || !link_ok(h->link)) {
		complain("%s", h->link->why);
		return -EACCES;
	}
	if (hold_take(h)) {
		complain("the service's answer is no state of a request");
		return -EACCES;
	}
	return 0;
}

static int ask_once(struct hold *h, const struct wish *wish)
{
	int ret;

	wire_begin(&h->link->out, "request");
	wire_add(&h->link->out, "key", h->kept.key);
	wish_write(wish, &h->link->out);
	ret = taken(h, link_ask_long(h->link, ANSWER_S, 0, true));
	return ret ? ret : kept_write(&h->kept) ? -EACCES : 0;
}

int hold_ask(struct hold *h, const struct wish *wish)
{
	bool former = *h->kept.key;
	int ret;

	if (!former && kept_renew(&h->kept))
		return -EACCES;
	ret = ask_once(h, wish);
	/* The former run's request ended without it: this is a new one. */
	if (!ret && former && hold_lost(h))
		ret = kept_renew(&h->kept) ? -EACCES : ask_once(h, wish);
	return ret;
}

static void say_where(const struct hold *h, char *said, size_t size)
{
	char text[640];

	if (!strcmp(h->state, "queued"))
		snprintf(text, sizeof(text), "request %" PRIu64 " waits at place %" PRIu64 "%s%s",
			 h->kept.id, h->place, *h->reason ? ": " : "", h->reason);
	else
		snprintf(text, sizeof(text), "request %" PRIu64 " is %s%s%s", h->kept.id, h->state,
			 *h->gpu ? ": " : "", h->gpu);
	if (h->say && strcmp(text, said))
		complain("%s", text);
	snprintf(said, size, "%s", text);
}

int hold_wait(struct hold *h, bool wait)
{
	char said[640] = "";

	for (;;) {
		int ret;

		say_where(h, said, sizeof(said));
		if (!strcmp(h->state, "active"))
			return 0;
		if (hold_lost(h)) {
			complain("there is no GPU: request %" PRIu64 " is %s: %s", h->kept.id,
				 h->state, *h->why ? h->why : "no reason is known");
			return -EACCES;
		}
		if (!wait && !strcmp(h->state, "queued"))
			return -EAGAIN;
		wire_begin(&h->link->out, "state");
		wire_add_number(&h->link->out, "id", h->kept.id);
		wire_add_number(&h->link->out, "wait", POLL_S);
		wire_add_number(&h->link->out, "seen", h->version);
		ret = taken(h, link_ask_long(h->link, POLL_S + ANSWER_S, 0, h->say));
		if (ret)
			return ret;
	}
}

/* ---- the device ---- */

static const struct device *find_device(const struct hold *h, struct devices *now)
{
	const struct device *d;
	char *others;

	if (devices_scan(h->conf->root, now))
		return NULL;
	/* A device known from before a restart keeps its address, unless a boot changed it. */
	d = *h->kept.device ? devices_find(now, h->kept.device) : NULL;
	if (d)
		return d;
	others = malloc(KEPT_LIST);
	if (!others)
		return NULL;
	kept_others(&h->kept, others);
	d = devices_new_gpu(now, h->kept.before, others);
	free(others);
	return d;
}

int hold_begin(struct hold *h, const struct device *d)
{
	snprintf(h->kept.device, sizeof(h->kept.device), "%s", d->addr);
	snprintf(h->driver, sizeof(h->driver), "%s", d->driver);
	device_node(h->conf->root, d->addr, h->node, sizeof(h->node));
	meter_open(&h->meter, h->conf->root, d->addr, h->conf->nvml, h->kept.busy_ns);
	h->look_ns = now_ns();
	h->report_ns = h->look_ns + h->conf->report * NSEC;
	return kept_write(&h->kept) ? -ENODEV : 0;
}

static void say_no_device(const struct hold *h, const struct device *d)
{
	if (d)
		complain("the GPU at %s has no driver after %" PRIu32 " s: install its driver in the guest, or set bind= higher",
			 d->addr, h->conf->bind);
	else
		complain("no new GPU is in the guest after %" PRIu32 " s: see that the guest has PCI hot-plug (acpiphp or pciehp), or set bind= higher",
			 h->conf->bind);
}

/**
 * struct search - the search for the device of a request
 * @events: socket of devices_watch()
 * @bound: of devices_drain()
 * @driven: device that has a driver
 * @driven_ns: time since which it has one, CLOCK_MONOTONIC
 * @end: time of the end of the search
 * @now: devices of the last look
 */
struct search {
	int events;
	char bound[512];
	char driven[DEVICE_WORD];
	uint64_t driven_ns;
	uint64_t end;
	struct devices now;
};

/* Wait for the kernel to tell of a device, or a while. */
static int wait_for_kernel(const struct hold *h, struct search *s)
{
	struct pollfd p[] = { { .fd = s->events, .events = POLLIN },
			      { .fd = h->link->wake, .events = POLLIN } };

	if (poll(p, 2, SCAN_MS) < 0 && errno != EINTR)
		return -errno;
	if (p[1].revents)
		return -EINTR;
	if (p[0].revents)
		devices_drain(s->events, s->bound, sizeof(s->bound));
	return 0;
}

/* Whether the guest's driver has it. One without a DRM device may have bound it unseen. */
static bool is_usable(const struct hold *h, const struct device *d, struct search *s)
{
	char word[DEVICE_WORD];
	uint64_t now = now_ns();

	if (!*d->driver)
		return false;
	snprintf(word, sizeof(word), "%s/%" PRIu64, d->addr, d->number);
	if (strcmp(s->driven, word)) {
		strcpy(s->driven, word);
		s->driven_ns = now;
	}
	return device_is_ready(h->conf->root, d, s->bound) || now >= s->driven_ns + PROBE_NS ||
	       now >= s->end;
}

/*
 * Find the device and take it. Another request of the guest may look for its own meanwhile.
 * Return 1: taken, 0: not yet, or an error; @d: the device, NULL: none is there.
 */
static int take_device(struct hold *h, struct search *s, const struct device **d)
{
	int lock = kept_lock_devices(h->conf), ret = 0;

	*d = find_device(h, &s->now);
	if (*d && is_usable(h, *d, s)) {
		ret = hold_begin(h, *d);
		if (!ret)
			ret = 1;
	}
	kept_unlock(lock);
	return ret;
}

int hold_device(struct hold *h)
{
	struct search *s = calloc(1, sizeof(*s));
	int ret = 0;

	if (!s)
		return -ENODEV;
	s->end = now_ns() + h->conf->bind * NSEC;
	s->events = devices_watch();
	while (!ret) {
		const struct device *d;

		ret = take_device(h, s, &d);
		if (ret)
			break;
		if (now_ns() >= s->end) {
			say_no_device(h, d);
			ret = -ENODEV;
			break;
		}
		ret = wait_for_kernel(h, s);
	}
	if (s->events >= 0)
		close(s->events);
	free(s);
	return ret > 0 ? 0 : ret;
}

/* ---- while it is held ---- */

uint64_t hold_due(const struct hold *h)
{
	return h->look_ns < h->report_ns ? h->look_ns : h->report_ns;
}

static int ask_state(struct hold *h)
{
	wire_begin(&h->link->out, "state");
	wire_add_number(&h->link->out, "id", h->kept.id);
	return link_ask(h->link, ANSWER_S);
}

static int report_use(struct hold *h)
{
	wire_begin(&h->link->out, "use");
	wire_add_number(&h->link->out, "id", h->kept.id);
	wire_add_number(&h->link->out, "busy_ns", h->meter.busy_ns);
	wire_add_number(&h->link->out, "energy_mj", h->meter.energy_mj);
	wire_add_number(&h->link->out, "memory_mib", h->meter.memory_mib);
	h->kept.busy_ns = h->meter.busy_ns;
	kept_write(&h->kept);
	return link_ask(h->link, ANSWER_S);
}

/*
 * Ask for the state, with a report of use if the VM agreed and the host cannot see it. A report
 * is refused when the GPU is not the VM's any more: the state then says so.
 */
static int report(struct hold *h)
{
	int ret;

	if (!kept_consent(h->conf) || strcmp(h->target, "whole") || h->meter.source == USE_NONE)
		return ask_state(h);
	ret = report_use(h);
	return ret || !strcmp(h->link->answer.verb, "ok") ? ret : ask_state(h);
}

static void warn_idle(const struct hold *h, uint64_t before)
{
	char text[640];

	if (!h->warned || h->warned == before)
		return;
	snprintf(text, sizeof(text),
		 "the GPU of request %" PRIu64 " is idle, and the service will take it back; "
		 "to keep it: mgpu-agent extend %" PRIu64 " TIME", h->kept.id, h->kept.id);
	notice(h->conf, "idle", h->kept.id, h->kept.device, text);
}

static void warn_lease(struct hold *h)
{
	char text[640];

	if (!h->until || h->until == h->until_said || h->lease > LEASE_S)
		return;
	h->until_said = h->until;
	snprintf(text, sizeof(text),
		 "the lease of request %" PRIu64 " is over in %" PRIu64 " s; "
		 "to keep the GPU: mgpu-agent extend %" PRIu64 " TIME", h->kept.id, h->lease,
		 h->kept.id);
	notice(h->conf, "lease", h->kept.id, h->kept.device, text);
}

int hold_tick(struct hold *h, uint64_t now)
{
	uint64_t before = h->warned;
	int ret;

	/* A report is of now: the service compares it with the time since the last one. */
	if (*h->meter.addr && (now >= h->look_ns || now >= h->report_ns)) {
		/* Without consent nothing is measured, and NVIDIA's library stays closed. */
		if (kept_consent(h->conf))
			meter_look(&h->meter, now);
		h->look_ns = now + LOOK_S * NSEC;
	}
	if (now < h->report_ns)
		return 0;
	h->report_ns = now + h->conf->report * NSEC;
	ret = report(h);
	if (ret == -EINTR)
		return ret;
	if (ret)
		return 0;
	/* The service has forgotten the request, after a long time without a connection. */
	if (!strcmp(link_code(h->link), "unknown"))
		strcpy(h->state, "released");
	else if (!link_ok(h->link) || hold_take(h))
		return 0;
	warn_idle(h, before);
	warn_lease(h);
	if (!hold_lost(h))
		return 0;
	complain("the service takes the GPU of request %" PRIu64 " back: %s", h->kept.id,
		 *h->why ? h->why : "no reason is known");
	return -ENODEV;
}

/* ---- the end ---- */

/* Whether the service could not do it now, but can later. */
static bool is_later(const struct link *link)
{
	const char *code = link_code(link);

	return !strcmp(code, "failed") || !strcmp(code, "slower") || !strcmp(code, "replayed");
}

/* By its key, if the agent ended before the answer with the number came. */
static int release_once(struct link *link, const struct kept *kept, unsigned int patience)
{
	int ret;

	wire_begin(&link->out, "release");
	if (kept->id)
		wire_add_number(&link->out, "id", kept->id);
	else
		wire_add(&link->out, "key", kept->key);
	wire_add_number(&link->out, "done", kept->done);
	ret = link_ask_long(link, ANSWER_S, patience, true);
	return ret ? ret : !link_ok(link) && is_later(link) ? -EAGAIN : 0;
}

int hold_release(struct hold *h, bool done, unsigned int patience)
{
	int ret;

	h->kept.over = true;
	h->kept.done = done;
	kept_write(&h->kept);
	ret = release_once(h->link, &h->kept, patience);
	if (ret)
		complain("request %" PRIu64 " is not released yet: %s; the next start of mgpu-agent does it",
			 h->kept.id, h->link->why);
	else if (h->kept.id && !link_ok(h->link))
		complain("request %" PRIu64 ": %s", h->kept.id, h->link->why);
	kept_close(&h->kept, !ret);
	return ret;
}

/**
 * struct finish - for hold_finish_all()
 * @conf: settings
 * @link: connection
 * @failed: the service does not answer
 */
struct finish {
	const struct conf *conf;
	struct link *link;
	bool failed;
};

/*
 * Whether a request ended after a crash of its process; its device may be another's by now. The
 * service does not know one that its retention deleted.
 */
static bool has_ended(struct finish *f, const struct kept *k)
{
	const char *state;

	if (!k->id || !strncmp(k->name, KEPT_REPORTED, strlen(KEPT_REPORTED)))
		return false;
	wire_begin(&f->link->out, "state");
	wire_add_number(&f->link->out, "id", k->id);
	f->failed = link_ask(f->link, ANSWER_S);
	if (f->failed)
		return false;
	state = wire_get(&f->link->answer, "state");
	return state ? is_over(state) : !strcmp(link_code(f->link), "unknown");
}

/* Drop a request that has ended. While the service is asked, a process may take it. */
static void drop_ended(struct finish *f, struct kept *k, const char *name)
{
	uint64_t id = k->id;

	kept_close(k, false);
	if (has_ended(f, k) && !kept_take(k, f->conf, name))
		kept_close(k, k->id == id);
}

static void finish(const char *name, void *arg)
{
	struct finish *f = arg;
	struct kept *k = f->failed ? NULL : malloc(sizeof(*k));

	if (!k)
		return;
	if (!kept_take(k, f->conf, name)) {
		if (k->over) {
			f->failed = release_once(f->link, k, FINISH_S);
			kept_close(k, !f->failed);
		} else {
			drop_ended(f, k, name);
		}
	}
	free(k);
}

void hold_finish_all(const struct conf *conf, struct link *link)
{
	struct finish f = { .conf = conf, .link = link };

	kept_each(conf, finish, &f);
}
