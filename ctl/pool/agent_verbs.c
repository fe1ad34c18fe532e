// SPDX-License-Identifier: GPL-2.0-only
/* The verbs of VMs' agents. A VM reaches its own requests only. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent_verbs.h"
#include "checksum.h"
#include "vm_name.h"

#define WATTS_MAX	10000	/* of a GPU: the history must not learn more */
#define SLACK_S		60	/* that a guest's clock may run ahead of the host's between looks */

/**
 * struct ask - a message that is answered
 * @setup: pool and store
 * @vm: name of the VM
 * @actor: the same for the log
 * @m: the message
 * @now: time, seconds
 * @answer: the answer
 * @wait: filled in if the answer is due later
 */
struct ask {
	const struct agent_setup *setup;
	const char *vm;
	char actor[2 * POOL_NAME_MAX];
	const struct wire_message *m;
	int64_t now;
	struct wire_text *answer;
	struct agent_wait *wait;
};

void agent_limits_default(struct agent_limits *limits)
{
	*limits = (struct agent_limits){
		.connections = 4096,
		.handshakes = 64,
		.connections_vm = 8,
		.opens = 16,
		.opens_s = 4,
		.messages = 40,
		.messages_s = 10,
		.changes = 120,
		.changes_min = 30,
		.handshake_ms = 10000,
		.message_ms = 10000,
		.idle_ms = 300000,
		.wait_max = 300,
		.requests_vm = 16,
	};
}

void agent_error(struct wire_text *answer, const char *code, const char *text)
{
	wire_begin(answer, "error");
	wire_add(answer, "code", code);
	wire_add(answer, "text", text);
}

static const char *code_of(int error)
{
	switch (error) {
	case -EINVAL:
		return "invalid";
	case -ENOENT:
		return "unknown";
	case -EEXIST:
		return "exists";
	case -EPERM:
		return "forbidden";
	case -ENOSPC:
		return "never";
	case -EDQUOT:
		return "quota";
	case -EBUSY:
		return "busy";
	default:
		return "failed";
	}
}

static void refuse(const struct ask *a, int error, const char *text)
{
	char clean[POOL_TEXT_MAX];

	text_clean(text, strlen(text), clean, sizeof(clean));
	agent_error(a->answer, code_of(error), clean);
}

void agent_event(const struct agent_setup *setup, const char *vm, const char *what,
		 uint64_t request, const char *text, int64_t now)
{
	struct pool_event event = { .time = now, .request = request };

	if (!setup->event)
		return;
	snprintf(event.actor, sizeof(event.actor), "vm:%s", vm);
	snprintf(event.what, sizeof(event.what), "%s", what);
	snprintf(event.object, sizeof(event.object), "%s", vm);
	snprintf(event.text, sizeof(event.text), "%s", text);
	setup->event(setup->arg, &event);
}

/* ---- states ---- */

static uint64_t mix_number(uint64_t hash, uint64_t n)
{
	return checksum_add(hash, &n, sizeof(n));
}

/* A hash of what an agent is told of a request, but for its place. */
static uint64_t quick_hash(const struct pool_request *r)
{
	uint64_t hash = CHECKSUM_START;

	hash = mix_number(hash, r->state);
	hash = mix_number(hash, (uint64_t)r->attached);
	hash = mix_number(hash, (uint64_t)r->until);
	hash = mix_number(hash, (uint64_t)r->warned);
	hash = checksum_add(hash, r->gpu, strlen(r->gpu));
	return checksum_add(hash, r->why, strlen(r->why));
}

static uint64_t full_hash(const struct pool_request *r, const struct pool_place *place)
{
	uint64_t hash = mix_number(quick_hash(r), place->place);

	hash = checksum_add(hash, place->reason, strlen(place->reason));
	/* A number that is neither 0 nor above what a frame's field takes. */
	return (hash >> 1) | 1;
}

/* Find a request, over or not, of any VM. */
static int find_any(const struct agent_setup *setup, uint64_t id, struct pool_request *r)
{
	const struct pool_request *open = pool_request(setup->pool, id);

	if (open) {
		*r = *open;
		return 0;
	}
	return store_get_request(setup->store, id, r);
}

/* Find a request of this VM. Another's, and a former one's of the name, is as unknown as none. */
static int find_own(const struct agent_setup *setup, const char *vm, uint64_t id,
		    struct pool_request *r)
{
	const struct pool_vm *own = pool_vm(setup->pool, vm);
	int ret = id && own ? find_any(setup, id, r) : -ENOENT;

	return ret ? ret : pool_is_of(r, own) ? 0 : -ENOENT;
}

static void where(const struct agent_setup *setup, const struct pool_request *r,
		  struct pool_place *place)
{
	memset(place, 0, sizeof(*place));
	if (r->state == POOL_QUEUED)
		pool_where(setup->pool, r->id, place);
}

/* Add a text that may have any bytes, such as one of libvirt's. */
static void add_text(struct wire_text *t, const char *name, const char *value)
{
	char clean[POOL_TEXT_MAX];

	text_clean(value, strlen(value), clean, sizeof(clean));
	wire_add(t, name, clean);
}

static void add_time(struct wire_text *t, const char *name, int64_t time)
{
	wire_add_number(t, name, time > 0 ? (uint64_t)time : 0);
}

static void write_state(const struct agent_setup *setup, const struct pool_request *r,
			const struct pool_place *place, int64_t now, struct wire_text *t)
{
	const struct pool_gpu *gpu = *r->gpu ? pool_gpu(setup->pool, r->gpu) : NULL;

	wire_begin(t, "ok");
	wire_add_number(t, "id", r->id);
	wire_add(t, "key", r->key);
	wire_add(t, "kind", r->kind);
	wire_add(t, "state", pool_state_name(r->state));
	wire_add_number(t, "place", place->place);
	add_text(t, "reason", place->reason);
	add_text(t, "gpu", r->gpu);
	wire_add(t, "target", pool_target_name(gpu ? gpu->target : r->target));
	add_text(t, "model", gpu ? gpu->model : "");
	add_text(t, "why", r->why);
	add_time(t, "asked", r->asked);
	add_time(t, "attached", r->attached);
	add_time(t, "until", r->until);
	add_time(t, "warned", r->warned);
	add_time(t, "now", now);
	wire_add_number(t, "version", full_hash(r, place));
}

void agent_state(const struct agent_setup *setup, const char *vm, uint64_t id, int64_t now,
		 struct wire_text *answer)
{
	struct pool_request r;
	struct pool_place place;

	if (find_own(setup, vm, id, &r)) {
		agent_error(answer, "unknown", "the VM has no such request: see mgpu-agent state");
		return;
	}
	where(setup, &r, &place);
	write_state(setup, &r, &place, now, answer);
}

bool agent_wait_over(const struct agent_setup *setup, const struct agent_wait *wait, bool place)
{
	const struct pool_request *r = pool_request(setup->pool, wait->id);
	struct pool_place p;

	if (!r || quick_hash(r) != wait->quick)
		return true;
	if (!place || r->state != POOL_QUEUED)
		return false;
	where(setup, r, &p);
	return full_hash(r, &p) != wait->version;
}

/* ---- fields ---- */

/* Read a number; refuse it and return -EINVAL if it is none up to @max. */
static int number(const struct ask *a, const char *name, uint64_t max, uint64_t *value)
{
	char text[128];

	if (!wire_number(a->m, name, max, value))
		return 0;
	snprintf(text, sizeof(text), "%s must be a whole number from 0 to %llu", name,
		 (unsigned long long)max);
	refuse(a, -EINVAL, text);
	return -EINVAL;
}

static int number32(const struct ask *a, const char *name, uint32_t *value)
{
	uint64_t n = *value;
	int ret = number(a, name, UINT32_MAX, &n);

	*value = (uint32_t)n;
	return ret;
}

/* Take a text that fits; refuse it and return -EINVAL otherwise. */
static int text(const struct ask *a, const char *name, char *to, size_t size)
{
	const char *value = wire_get(a->m, name);
	char why[96];

	if (!value)
		return 0;
	if (strlen(value) < size) {
		strcpy(to, value);
		return 0;
	}
	snprintf(why, sizeof(why), "%s is longer than %zu bytes: shorten it", name, size - 1);
	refuse(a, -EINVAL, why);
	return -EINVAL;
}

/* Take a word of a list. */
static int word(const struct ask *a, const char *name, int (*of)(const char *), int *value)
{
	const char *given = wire_get(a->m, name);
	char why[96];
	int n;

	if (!given)
		return 0;
	n = of(given);
	if (n >= 0) {
		*value = n;
		return 0;
	}
	snprintf(why, sizeof(why), "%s has an unknown word: see mgpu-agent(1)", name);
	refuse(a, -EINVAL, why);
	return -EINVAL;
}

/* The VM's open request after @r. */
static const struct pool_request *next_own(const struct ask *a, const struct pool_request *r)
{
	const struct pool_vm *own = pool_vm(a->setup->pool, a->vm);

	do
		r = pool_request_of_vm(a->setup->pool, a->vm, r);
	while (r && !pool_is_of(r, own));
	return r;
}

/* The number of the VM's open request with a key; 0: none. */
static uint64_t id_of_key(const struct ask *a, const char *key)
{
	const struct pool_request *r = NULL;

	while ((r = next_own(a, r)))
		if (!strcmp(r->key, key))
			return r->id;
	return 0;
}

/* Read the field "id", or "key"; answers if there is no such request of the VM. */
static int own_request(const struct ask *a, struct pool_request *r)
{
	const char *key = wire_get(a->m, "key");
	uint64_t id = 0;
	int ret = number(a, "id", INT64_MAX, &id);

	if (ret)
		return ret;
	if (!id && key)
		id = id_of_key(a, key);
	ret = find_own(a->setup, a->vm, id, r);
	if (ret == -ENOENT)
		refuse(a, ret, "the VM has no such request: see mgpu-agent state");
	else if (ret)
		refuse(a, ret, "the service cannot read its database: ask again later");
	return ret;
}

/* ---- verbs ---- */

static int read_request(const struct ask *a, struct pool_request *r)
{
	int target = POOL_ANY, precision = POOL_PRECISION_ANY, capabilities = 0;

	if (text(a, "key", r->key, sizeof(r->key)) || text(a, "kind", r->kind, sizeof(r->kind)) ||
	    text(a, "type", r->type, sizeof(r->type)) ||
	    word(a, "target", pool_target_of, &target) ||
	    word(a, "precision", pool_precision_of, &precision) ||
	    word(a, "capabilities", pool_capabilities_of, &capabilities) ||
	    number(a, "size_mib", INT64_MAX, &r->size_mib) ||
	    number32(a, "memory_mib", &r->memory_mib) || number32(a, "weight", &r->weight) ||
	    number32(a, "floor_mhz", &r->floor_mhz) || number32(a, "lease", &r->lease))
		return -EINVAL;
	r->target = (enum pool_target)target;
	r->precision = (enum pool_precision)precision;
	r->capabilities = (uint32_t)capabilities;
	return 0;
}

/* Whether another request of this key is one more than a VM may have open. */
static bool too_many(const struct ask *a, const char *key)
{
	const struct pool_request *r = NULL;
	unsigned int open = 0;

	while ((r = next_own(a, r))) {
		if (!strcmp(r->key, key))
			return false;
		open++;
	}
	return open >= a->setup->limits.requests_vm;
}

static void do_request(const struct ask *a)
{
	const struct pool_vm *vm = pool_vm(a->setup->pool, a->vm);
	struct pool_request r = { 0 };
	char why[POOL_TEXT_MAX] = "";
	int ret;

	if (read_request(a, &r))
		return;
	if (!*r.key || !*r.kind) {
		refuse(a, -EINVAL, "a request needs key and kind");
		return;
	}
	if (too_many(a, r.key)) {
		refuse(a, -EDQUOT, "the VM has too many open requests: release one");
		return;
	}
	memcpy(r.vm, vm->name, sizeof(r.vm));
	memcpy(r.project, vm->project, sizeof(r.project));
	ret = pool_ask(a->setup->pool, &r, a->now, a->actor, why);
	if (ret < 0) {
		refuse(a, ret, why);
		return;
	}
	/* A key may be that of another VM of the project. */
	if (strcmp(r.vm, a->vm)) {
		refuse(a, -EEXIST, "another VM of the project has used this key: choose another");
		return;
	}
	agent_state(a->setup, a->vm, r.id, a->now, a->answer);
}

static void do_state(const struct ask *a)
{
	uint64_t wait = 0, seen = 0;
	struct pool_request r;
	struct pool_place place;

	if (own_request(a, &r) || number(a, "wait", UINT32_MAX, &wait) ||
	    number(a, "seen", INT64_MAX, &seen))
		return;
	where(a->setup, &r, &place);
	if (!wait || pool_over(r.state) || full_hash(&r, &place) != seen) {
		write_state(a->setup, &r, &place, a->now, a->answer);
		return;
	}
	*a->wait = (struct agent_wait){
		.id = r.id,
		.seconds = wait < a->setup->limits.wait_max ? (uint32_t)wait :
							      a->setup->limits.wait_max,
		.version = seen,
		.quick = quick_hash(&r),
	};
}

/* The VM's open requests, and what the service knows of the VM. */
static void do_list(const struct ask *a)
{
	const struct pool_vm *vm = pool_vm(a->setup->pool, a->vm);
	const struct pool_request *r = NULL;
	unsigned int nr = 0;

	wire_begin(a->answer, "ok");
	wire_add(a->answer, "vm", vm->name);
	wire_add(a->answer, "project", vm->project);
	wire_add(a->answer, "consent", vm->consent ? "yes" : "no");
	wire_add(a->answer, "pinned", vm->pinned ? "yes" : "no");
	while (nr < 24 && (r = next_own(a, r))) {
		char name[WIRE_NAME_MAX], line[256];

		snprintf(name, sizeof(name), "r%u", nr++);
		snprintf(line, sizeof(line), "%llu %s %s %s", (unsigned long long)r->id,
			 pool_state_name(r->state), r->kind, r->key);
		wire_add(a->answer, name, line);
	}
}

static void do_release(const struct ask *a)
{
	char why[POOL_TEXT_MAX] = "";
	struct pool_request r;
	uint64_t done = 0;
	int ret;

	if (own_request(a, &r) || number(a, "done", 1, &done))
		return;
	/* Over already: the release that an agent repeats after a lost answer. */
	if (!pool_over(r.state)) {
		ret = pool_release(a->setup->pool, r.id, done, a->now, a->actor, why);
		if (ret) {
			refuse(a, ret, why);
			return;
		}
	}
	agent_state(a->setup, a->vm, r.id, a->now, a->answer);
}

static void do_extend(const struct ask *a)
{
	char why[POOL_TEXT_MAX] = "";
	struct pool_request r;
	uint32_t seconds = 0;
	int ret;

	if (own_request(a, &r) || number32(a, "seconds", &seconds))
		return;
	if (pool_over(r.state)) {
		refuse(a, -ENOENT, "the request is over: ask for a GPU again");
		return;
	}
	ret = pool_extend(a->setup->pool, r.id, seconds, a->now, a->actor, why);
	if (ret)
		refuse(a, ret, why);
	else
		agent_state(a->setup, a->vm, r.id, a->now, a->answer);
}

/*
 * Whether a VM may report this use: with consent, of a whole GPU that it has, and of no more time
 * than has passed since then, and energy that fits in it.
 */
static bool plausible(const struct ask *a, const struct pool_request *r, const struct pool_use *use)
{
	const struct pool_gpu *gpu = pool_gpu(a->setup->pool, r->gpu);
	int64_t seconds = a->now - r->attached + SLACK_S;

	if (!pool_vm(a->setup->pool, a->vm)->consent) {
		agent_error(a->answer, "consent", "the VM has not agreed that its use is read: see mgpu-agent consent");
		return false;
	}
	if (r->state != POOL_ACTIVE || !gpu || gpu->target != POOL_WHOLE) {
		refuse(a, -EPERM, "use is reported of a whole GPU that the VM has now");
		return false;
	}
	if (seconds < 0 || use->busy_ns / 1000000000 > (uint64_t)seconds ||
	    use->energy_mj / 1000 / WATTS_MAX > (uint64_t)seconds ||
	    (gpu->memory_mib && use->memory_mib > gpu->memory_mib)) {
		refuse(a, -EINVAL, "the GPU cannot have been used that much: see the guest's clock");
		return false;
	}
	return true;
}

static void do_use(const struct ask *a)
{
	struct pool_use use = { .time = a->now, .source = 'a' };
	struct pool_request r;
	int ret;

	if (own_request(a, &r) || number(a, "busy_ns", INT64_MAX, &use.busy_ns) ||
	    number(a, "energy_mj", INT64_MAX, &use.energy_mj) ||
	    number32(a, "memory_mib", &use.memory_mib))
		return;
	use.request = r.id;
	if (!wire_get(a->m, "busy_ns")) {
		refuse(a, -EINVAL, "use needs busy_ns");
		return;
	}
	if (!plausible(a, &r, &use))
		return;
	ret = store_add_use(a->setup->store, &use);
	if (!ret)
		ret = pool_use(a->setup->pool, &use);
	if (ret)
		refuse(a, ret, "the service cannot take the report: send it again later");
	else
		agent_state(a->setup, a->vm, r.id, a->now, a->answer);
}

static void do_consent(const struct ask *a)
{
	const char *value = wire_get(a->m, "value");
	struct pool_vm vm = *pool_vm(a->setup->pool, a->vm);
	bool yes = value && !strcmp(value, "yes");
	int ret;

	if (!value || (!yes && strcmp(value, "no"))) {
		refuse(a, -EINVAL, "consent is yes or no");
		return;
	}
	if (yes != !!vm.consent) {
		vm.consent = yes ? a->now : 0;
		vm.seen = a->now;
		ret = store_put_vm(a->setup->store, &vm);
		if (!ret)
			ret = pool_put_vm(a->setup->pool, &vm);
		if (ret) {
			refuse(a, ret, "the service cannot store the consent: ask again later");
			return;
		}
		agent_event(a->setup, a->vm, "consent", 0,
			    yes ? "the VM agrees that its use of a GPU is read" :
				  "the VM no longer agrees that its use of a GPU is read", a->now);
	}
	wire_begin(a->answer, "ok");
	wire_add(a->answer, "consent", value);
}

/**
 * struct verb - a verb
 * @name: its name
 * @takes: names of its fields
 * @run: answers
 */
static const struct verb {
	const char *name;
	const char *takes[12];
	void (*run)(const struct ask *a);
} verbs[] = {
	{ "request", { "key", "kind", "target", "precision", "size_mib", "memory_mib",
		       "capabilities", "type", "weight", "floor_mhz", "lease" }, do_request },
	{ "state", { "id", "wait", "seen" }, do_state },
	{ "list", { NULL }, do_list },
	{ "release", { "id", "key", "done" }, do_release },
	{ "extend", { "id", "seconds" }, do_extend },
	{ "use", { "id", "busy_ns", "energy_mj", "memory_mib" }, do_use },
	{ "consent", { "value" }, do_consent },
};

static bool takes(const struct verb *v, const char *name)
{
	for (size_t i = 0; i < 12 && v->takes[i]; i++)
		if (!strcmp(v->takes[i], name))
			return true;
	return false;
}

static void run_verb(const struct ask *a, const struct verb *v)
{
	char why[96];

	for (unsigned int i = 0; i < a->m->nr; i++) {
		if (takes(v, a->m->fields[i].name))
			continue;
		snprintf(why, sizeof(why), "%s does not take %s: the agent is newer than the service",
			 v->name, a->m->fields[i].name);
		refuse(a, -EINVAL, why);
		return;
	}
	v->run(a);
}

void agent_verb(const struct agent_setup *setup, const char *vm, const struct wire_message *m,
		int64_t now, struct wire_text *answer, struct agent_wait *wait)
{
	struct ask a = { .setup = setup, .vm = vm, .m = m, .now = now, .answer = answer,
			 .wait = wait };

	memset(wait, 0, sizeof(*wait));
	snprintf(a.actor, sizeof(a.actor), "vm:%s", vm);
	if (!pool_vm(setup->pool, vm)) {
		refuse(&a, -ENOENT, "the service does not know the VM: an administrator adds it");
		return;
	}
	pool_agent_seen(setup->pool, vm, now);
	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++) {
		if (!strcmp(verbs[i].name, m->verb)) {
			run_verb(&a, &verbs[i]);
			return;
		}
	}
	refuse(&a, -EINVAL, "unknown verb: the agent is newer than the service");
}
