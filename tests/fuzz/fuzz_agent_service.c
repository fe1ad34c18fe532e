// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz the service's side of the agents' channel: frames of VM "a", which lies.  The input is
 * frames without signatures: a body's length (two bytes), and a body; they are signed here, so
 * that the fuzzer gets behind the signature.  Whatever they ask, VM "b" and its request stay as
 * they were, answers show nothing of them, and each answer is one that the agent takes.
 */
#include <errno.h>
#include <stdbool.h>

#include "agent_verbs.h"
#include "fuzz.h"

#define T0	1800000000
#define SECRET	"hidden"

static struct pool_request stored[4096];
static uint64_t nr_stored;
static int64_t consent_b;

/* ---- the database ---- */

int store_get_request(struct store *store, uint64_t id, struct pool_request *r)
{
	(void)store;
	if (!id || id > nr_stored)
		return -ENOENT;
	*r = stored[id - 1];
	return 0;
}

int store_add_use(struct store *store, const struct pool_use *use)
{
	(void)store;
	FUZZ_ASSERT(use->request && use->request <= nr_stored && use->source == 'a');
	FUZZ_ASSERT(!strcmp(stored[use->request - 1].vm, "a"));
	return 0;
}

int store_put_vm(struct store *store, const struct pool_vm *vm)
{
	(void)store;
	FUZZ_ASSERT(!strcmp(vm->name, "a") && !vm->pinned && !strcmp(vm->project, "p"));
	return 0;
}

static int on_store(void *arg, const struct pool_request *r)
{
	(void)arg;
	FUZZ_ASSERT(r->id && r->id <= nr_stored);
	stored[r->id - 1] = *r;
	return 0;
}

static int on_add(void *arg, struct pool_request *r)
{
	(void)arg;
	for (uint64_t i = 0; i < nr_stored; i++) {
		if (strcmp(stored[i].key, r->key))
			continue;
		*r = stored[i];
		return -EEXIST;
	}
	if (nr_stored == sizeof(stored) / sizeof(*stored))
		return -EIO;
	r->id = nr_stored + 1;
	stored[nr_stored++] = *r;
	return 0;
}

static int on_outcome(void *arg, const struct pool_outcome *outcome)
{
	(void)arg;
	(void)outcome;
	return 0;
}

static void on_event(void *arg, const struct pool_event *event)
{
	(void)arg;
	FUZZ_ASSERT(strnlen(event->text, sizeof(event->text)) < sizeof(event->text));
}

static void on_job(void *arg, const struct pool_job *job)
{
	(void)arg;
	(void)job;
}

/* ---- the pool ---- */

static struct pool *new_pool(void)
{
	static const struct pool_hooks hooks = {
		.store_request = on_store, .add_request = on_add, .outcome = on_outcome,
		.event = on_event, .job = on_job,
	};
	struct pool_project project = { .name = "p", .weight = 1 };
	struct pool_gpu gpu = {
		.name = "h/0000:41:00.0", .host = "h", .addr = "0000:41:00.0",
		.functions = { "0000:41:00.0" }, .nr_functions = 1, .target = POOL_WHOLE,
		.model = "m", .slots = 1, .memory_mib = 8192, .capabilities = POOL_COMPUTE,
		.present = true,
	};
	struct pool_vm vm = { .host = "h", .uuid = "u", .project = "p" };
	struct pool_settings settings;
	struct pool *pool;

	pool_settings_default(&settings);
	pool = pool_new(&settings, &hooks);
	FUZZ_ASSERT(pool && !pool_put_project(pool, &project));
	pool_host_up(pool, "h", true);
	FUZZ_ASSERT(!pool_put_gpu(pool, &gpu));
	strcpy(vm.name, "a");
	FUZZ_ASSERT(!pool_put_vm(pool, &vm));
	strcpy(vm.name, "b");
	vm.consent = consent_b;
	FUZZ_ASSERT(!pool_put_vm(pool, &vm));
	return pool;
}

static void ask_for_b(struct pool *pool)
{
	struct pool_request r = { .key = SECRET "1", .vm = "b", .project = "p", .kind = SECRET };
	char text[POOL_TEXT_MAX];

	FUZZ_ASSERT(pool_ask(pool, &r, T0, "vm:b", text) == 1 && r.id == 1);
	FUZZ_ASSERT(!pool_attached(pool, 1, "", T0));
}

/* ---- frames ---- */

static void check_answer(struct wire_text *t)
{
	static const unsigned char sign[WIRE_KEY], request[WIRE_KEY];
	static struct wire_message m;
	struct wire_header h;
	size_t size = wire_end(t, sign, 1, request);

	FUZZ_ASSERT(size && !wire_header(t->frame, &h) && wire_signed(t->frame, sign, request));
	FUZZ_ASSERT(!wire_parse(t->frame + WIRE_HEADER, h.length, &m));
	FUZZ_ASSERT(!strcmp(m.verb, "ok") || !strcmp(m.verb, "error"));
	for (unsigned int i = 0; i < m.nr; i++)
		FUZZ_ASSERT(!strstr(m.fields[i].value, SECRET) ||
			    /* the VM's own words */
			    !strcmp(m.fields[i].name, "key") || !strcmp(m.fields[i].name, "kind") ||
			    *m.fields[i].name == 'r' || !strcmp(m.fields[i].name, "text"));
	if (!strcmp(m.verb, "ok") && wire_get(&m, "id"))
		FUZZ_ASSERT(strcmp(wire_get(&m, "id"), "1"));
}

static void play(const struct agent_setup *setup, const uint8_t *body, size_t size, uint64_t seq)
{
	static struct wire_message m;
	static struct wire_text answer;
	struct agent_wait wait = { 0 };

	if (wire_parse(body, size, &m))
		return;
	agent_verb(setup, "a", &m, T0 + (int64_t)seq, &answer, &wait);
	if (wait.id) {
		FUZZ_ASSERT(wait.id != 1 && wait.seconds <= setup->limits.wait_max);
		agent_wait_over(setup, &wait, seq & 1);
		agent_state(setup, "a", wait.id, T0, &answer);
	}
	check_answer(&answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct agent_setup setup = { .event = on_event };
	const struct pool_request *b;
	uint64_t seq = 1;

	nr_stored = 0;
	setup.pool = new_pool();
	agent_limits_default(&setup.limits);
	ask_for_b(setup.pool);
	while (size > 2) {
		size_t length = data[0] | (size_t)data[1] << 8;

		data += 2;
		size -= 2;
		if (length > size)
			length = size;
		play(&setup, data, length, seq++);
		data += length;
		size -= length;
		/* Half of what the VM asks for is attached. */
		if (seq % 4 == 0)
			pool_attached(setup.pool, nr_stored, "", T0 + (int64_t)seq);
	}
	b = pool_request(setup.pool, 1);
	FUZZ_ASSERT(b && b->state == POOL_ACTIVE && !b->until && !strcmp(b->vm, "b"));
	FUZZ_ASSERT(pool_vm(setup.pool, "b")->consent == consent_b);
	pool_free(setup.pool);
	return 0;
}

static size_t add(uint8_t *to, const char *body)
{
	size_t n = strlen(body);

	to[0] = (uint8_t)n;
	to[1] = (uint8_t)(n >> 8);
	memcpy(to + 2, body, n);
	return n + 2;
}

static void seeds(const char *dir)
{
	static const char *const bodies[] = {
		("request\nkey=k1\nkind=training\ntarget=whole\nprecision=fp16\nsize_mib=4096\n"
		 "memory_mib=8192\ncapabilities=compute\nlease=3600\n"),
		"request\nkey=k2\nkind=game\ntarget=vgpu\nweight=7\nfloor_mhz=30000\ntype=t\n",
		"request\nkey=hidden1\nkind=hidden\n", "consent\nvalue=yes\n", "list\n",
		"state\nid=2\nwait=30\nseen=1\n", "state\nid=1\n", "extend\nid=1\nseconds=7\n",
		"extend\nid=2\nseconds=7\n", "use\nid=1\nbusy_ns=1\n",
		"use\nid=2\nbusy_ns=1\nenergy_mj=2\nmemory_mib=3\n", "release\nid=1\ndone=1\n",
		"release\nkey=k1\ndone=0\n", "consent\nvalue=no\n",
	};
	uint8_t all[4096];
	size_t at = 0;

	for (size_t i = 0; i < sizeof(bodies) / sizeof(*bodies); i++) {
		char name[16];
		uint8_t one[1024];

		snprintf(name, sizeof(name), "verb-%zu", i);
		fuzz_seed(dir, name, one, add(one, bodies[i]));
		at += add(all + at, bodies[i]);
	}
	fuzz_seed(dir, "all", all, at);
}

FUZZ_SEEDS(seeds)
