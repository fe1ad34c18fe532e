// SPDX-License-Identifier: GPL-2.0-only
/*
 * The database of mgpu-poold: all cases on SQLite, and on the PostgreSQL server that
 * test_pool_store.py starts and names in POOL_STORE_SERVER.
 */
#include <fcntl.h>
#include <limits.h>
#include <libpq-fe.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "rows.h"
#include "schema.h"
#include "store.h"
#include "tap.h"
#include "test_pool_store.h"

/* ---- objects ---- */

static struct pool_request request(const char *project, const char *key)
{
	struct pool_request r = {
		.vm = "vm1", .kind = "training", .target = POOL_VGPU, .precision = POOL_FP16,
		.size_mib = 4096, .memory_mib = 2048, .capabilities = POOL_COMPUTE,
		.type = "mgpu_virtio-1", .weight = 100, .floor_mhz = 30000, .lease = 3600,
		.asked = 1000,
	};

	snprintf(r.project, sizeof(r.project), "%s", project);
	snprintf(r.key, sizeof(r.key), "%s", key);
	return r;
}

/* Store a request; return its number, 0 if it failed. */
static uint64_t add(struct store *store, const char *project, const char *key)
{
	struct pool_request r = request(project, key);

	return TAP_EQ(store_add_request(store, &r), 0) ? r.id : 0;
}

static void end_request(struct store *store, uint64_t id, int64_t ended)
{
	struct pool_request r;

	if (!TAP_EQ(store_get_request(store, id, &r), 0))
		return;
	r.state = POOL_RELEASED;
	r.ended = ended;
	TAP_EQ(store_put_request(store, &r), 0);
}

/* Set each text of an object to its longest, and each number to its largest. */
static void fill(const struct row_table *table, void *object)
{
	for (size_t i = 0; i < table->nr; i++) {
		const struct row_field *f = &table->fields[i];
		void *at = (char *)object + f->offset;

		switch (f->kind) {
		case ROW_TEXT:
			memset(at, 'a' + (int)(i % 26), f->size - 1);
			break;
		case ROW_U32:
			*(uint32_t *)at = UINT32_MAX - (uint32_t)i;
			break;
		case ROW_U64:
			*(uint64_t *)at = INT64_MAX - i;
			break;
		case ROW_TIME:
			*(int64_t *)at = INT64_MAX - (int64_t)i;
			break;
		case ROW_INT:
			*(int *)at = INT32_MIN;
			break;
		case ROW_BOOL:
			*(bool *)at = true;
			break;
		case ROW_SECONDS:
			*(double *)at = 123456.789012;
			break;
		case ROW_LETTER:
			*(char *)at = 'p';
			break;
		case ROW_TARGET:
			*(enum pool_target *)at = POOL_VGPU;
			break;
		case ROW_PRECISION:
			*(enum pool_precision *)at = POOL_FP8;
			break;
		case ROW_STATE:
			*(enum pool_state *)at = POOL_RELEASING;
			break;
		case ROW_ROLE:
			*(enum store_role *)at = STORE_ADMIN;
			break;
		case ROW_CAPABILITIES:
			*(uint32_t *)at = POOL_3D | POOL_COMPUTE;
			break;
		case ROW_FUNCTIONS:
			break;
		}
	}
}

static bool same(const struct row_table *table, const void *a, const void *b)
{
	for (size_t i = 0; i < table->nr; i++) {
		const struct row_field *f = &table->fields[i];
		const char *x = (const char *)a + f->offset, *y = (const char *)b + f->offset;

		if (f->kind == ROW_TEXT ? strcmp(x, y) : memcmp(x, y, f->size)) {
			tap_diag("%s differs", f->name);
			return false;
		}
	}
	return true;
}

/* ---- callbacks ---- */

/**
 * struct seen - what a callback got
 * @stop: number of the row that the callback refuses
 */
struct seen {
	unsigned int nr, stop;
	uint64_t ids[20];
	union {
		struct pool_project project;
		struct pool_vm vm;
		struct pool_gpu gpu;
		struct pool_request request;
		struct pool_use use;
		struct pool_outcome outcome;
		struct pool_event event;
		struct store_token token;
	} last;
	struct store *store;
};

static int see(struct seen *seen, uint64_t id)
{
	if (seen->nr < 20)
		seen->ids[seen->nr] = id;
	seen->nr++;
	return seen->stop && seen->nr == seen->stop ? 77 : 0;
}

#define SEE(type, name, number)						\
static int see_##name(const struct type *(name), void *arg)		\
{									\
	((struct seen *)arg)->last.name = *(name);			\
	return see(arg, number);					\
}

SEE(pool_project, project, project->weight)
SEE(pool_vm, vm, vm->seq)
SEE(pool_gpu, gpu, gpu->slots)
SEE(pool_request, request, request->id)
SEE(pool_use, use, use->busy_ns)
SEE(pool_outcome, outcome, outcome->request)
SEE(pool_event, event, event->id)
SEE(store_token, token, (uint64_t)token->expires)

static unsigned int count_requests(struct store *store)
{
	struct seen seen = { 0 };

	TAP_EQ(store_requests(store, NULL, 0, 100000, see_request, &seen), 0);
	return seen.nr;
}

/* ---- cases of both ---- */

static void objects_return(void)
{
	struct store *store = open_new();
	struct pool_project project = { 0 };
	struct pool_outcome outcome = { 0 };
	struct pool_use use = { 0 };
	struct pool_vm vm = { 0 };
	struct seen s = { 0 };

	TAP_NEED(store);
	fill(&row_project, &project);
	TAP_EQ(store_put_project(store, &project), 0);
	TAP_EQ(store_projects(store, see_project, &s), 0);
	TAP_MEM(&s.last.project, &project, sizeof(project));
	fill(&row_vm, &vm);
	TAP_EQ(store_put_vm(store, &vm), 0);
	TAP_EQ(store_vms(store, see_vm, &s), 0);
	TAP_MEM(&s.last.vm, &vm, sizeof(vm));
	fill(&row_use, &use);
	TAP_EQ(store_add_use(store, &use), 0);
	TAP_EQ(store_uses(store, use.request, 0, 10, see_use, &s), 0);
	TAP_MEM(&s.last.use, &use, sizeof(use));
	fill(&row_outcome, &outcome);
	TAP_EQ(store_add_outcome(store, &outcome), 0);
	TAP_EQ(store_outcomes(store, 0, 10, see_outcome, &s), 0);
	TAP_MEM(&s.last.outcome, &outcome, sizeof(outcome));
	TAP_EQ(s.nr, 4);
	store_close(store);
}

static void gpus_return(void)
{
	struct pool_gpu gpu = { .nr_functions = POOL_FUNCTIONS_MAX };
	struct store *store = open_new();
	struct seen s = { 0 };

	TAP_NEED(store);
	fill(&row_gpu, &gpu);
	gpu.target = POOL_WHOLE;
	for (int i = 0; i < POOL_FUNCTIONS_MAX; i++)
		snprintf(gpu.functions[i], POOL_ADDR_MAX, "0000:41:00.%d", i & 7);
	TAP_EQ(store_put_gpu(store, &gpu), 0);
	TAP_EQ(store_gpus(store, see_gpu, &s), 0);
	TAP_MEM(&s.last.gpu, &gpu, sizeof(gpu));
	gpu = (struct pool_gpu){ .name = "a", .group = -1 };
	TAP_EQ(store_put_gpu(store, &gpu), 0);
	memset(&s, 0, sizeof(s));
	s.stop = 1;
	TAP_EQ(store_gpus(store, see_gpu, &s), 77);
	TAP_EQ(s.nr, 1);
	TAP_MEM(&s.last.gpu, &gpu, sizeof(gpu));
	gpu.nr_functions = POOL_FUNCTIONS_MAX + 1;
	TAP_EQ(store_put_gpu(store, &gpu), -ERANGE);
	gpu.nr_functions = 0;
	gpu.capabilities = 4;
	TAP_EQ(store_put_gpu(store, &gpu), -EINVAL);
	store_close(store);
}

static void requests_return(void)
{
	struct store *store = open_new();
	struct pool_request r = { 0 }, got;

	TAP_NEED(store);
	fill(&row_request, &r);
	TAP_EQ(store_add_request(store, &r), 0);
	TAP_EQ(r.id, 1);
	TAP_EQ(store_get_request(store, 1, &got), 0);
	TAP_CHECK(same(&row_request, &got, &r));
	for (int state = 0; state < POOL_STATES; state++) {
		r.state = (enum pool_state)state;
		r.tries++;
		snprintf(r.why, sizeof(r.why), "because of %d", state);
		TAP_EQ(store_put_request(store, &r), 0);
		TAP_EQ(store_get_request(store, 1, &got), 0);
		TAP_CHECK(same(&row_request, &got, &r));
	}
	strcpy(r.key, "other");
	strcpy(r.project, "other");
	strcpy(r.vm, "other");
	TAP_EQ(store_put_request(store, &r), 0);
	TAP_EQ(store_get_request(store, 1, &got), 0);
	TAP_CHECK(strcmp(got.key, "other") && strcmp(got.project, "other"));
	TAP_CHECK(strcmp(got.vm, "other"));
	r.id = 2;
	TAP_EQ(store_put_request(store, &r), -ENOENT);
	TAP_EQ(store_get_request(store, UINT64_MAX, &got), -ENOENT);
	r.id = 1;
	r.state = POOL_STATES;
	TAP_EQ(store_put_request(store, &r), -EINVAL);
	TAP_CHECK(strstr(store_error(store), "\"state\""));
	store_close(store);
}

static void keys_are_unique(void)
{
	struct store *store = open_new();
	struct pool_request r = request("p", "key"), again = request("p", "key");

	TAP_NEED(store);
	TAP_EQ(store_add_request(store, &r), 0);
	again.size_mib = 9;
	strcpy(again.kind, "rendering");
	TAP_EQ(store_add_request(store, &again), -EEXIST);
	TAP_CHECK(same(&row_request, &again, &r));
	again = request("q", "key");
	TAP_EQ(store_add_request(store, &again), 0);
	TAP_CHECK(again.id > r.id);
	again = request("p", "KEY");
	TAP_EQ(store_add_request(store, &again), 0);
	TAP_EQ(count_requests(store), 3);
	/* in a transaction, which goes on */
	TAP_EQ(store_begin(store), 0);
	again = request("p", "key");
	TAP_EQ(store_add_request(store, &again), -EEXIST);
	TAP_EQ(again.id, r.id);
	TAP_CHECK(add(store, "p", "key2"));
	TAP_EQ(store_commit(store), 0);
	TAP_EQ(count_requests(store), 4);
	again = request("p", "key");
	TAP_EQ(store_find_request(store, &again), 0);
	TAP_CHECK(same(&row_request, &again, &r));
	again = request("q", "key2");
	TAP_EQ(store_find_request(store, &again), -ENOENT);
	TAP_CHECK(!strcmp(again.project, "q"));
	store_close(store);
}

static void ids_are_new(void)
{
	struct store *store = open_new();
	struct pool_event event = { .time = 5, .what = "ask" };
	uint64_t id, event_id, deleted;

	TAP_NEED(store);
	add(store, "p", "1");
	id = add(store, "p", "2");
	event.request = id;
	TAP_EQ(store_add_event(store, &event), 0);
	event_id = event.id;
	end_request(store, id, 10);
	TAP_EQ(store_retain(store, 100, &deleted), 0);
	TAP_EQ(deleted, 1);
	store_close(store);
	store = open_again();
	TAP_NEED(store);
	/* the key is free, the number is not */
	TAP_CHECK(add(store, "p", "2") > id);
	TAP_EQ(store_add_event(store, &event), 0);
	TAP_CHECK(event.id > event_id);
	store_close(store);
}

static void lists_have_order(void)
{
	struct store *store = open_new();
	struct seen s = { 0 };
	uint64_t id[6];

	TAP_NEED(store);
	for (int i = 0; i < 6; i++) {
		char key[12];

		snprintf(key, sizeof(key), "%d", i);
		id[i] = add(store, i % 2 ? "odd" : "even", key);
	}
	end_request(store, id[2], 10);
	TAP_EQ(store_open_requests(store, see_request, &s), 0);
	TAP_EQ(s.nr, 5);
	TAP_EQ(s.ids[0], id[0]);
	TAP_EQ(s.ids[2], id[3]);
	s.nr = 0;
	TAP_EQ(store_requests(store, NULL, 0, 4, see_request, &s), 0);
	TAP_EQ(s.nr, 4);
	TAP_EQ(s.ids[0], id[5]);
	s.nr = 0;
	TAP_EQ(store_requests(store, NULL, id[2], 4, see_request, &s), 0);
	TAP_EQ(s.nr, 2);
	TAP_EQ(s.ids[0], id[1]);
	s.nr = 0;
	TAP_EQ(store_requests(store, "even", 0, 10, see_request, &s), 0);
	TAP_EQ(s.nr, 3);
	TAP_EQ(s.ids[1], id[2]);
	store_close(store);
}

static void open_means_not_over(void)
{
	struct store *store = open_new();
	struct pool_request r = request("p", "k");
	struct seen s = { 0 };

	TAP_NEED(store);
	for (int state = 0; state < POOL_STATES; state++) {
		snprintf(r.key, sizeof(r.key), "%d", state);
		r.state = (enum pool_state)state;
		TAP_EQ(store_add_request(store, &r), 0);
		s.nr = 0;
		TAP_EQ(store_open_requests(store, see_request, &s), 0);
		TAP_EQ(s.nr, pool_over(r.state) ? POOL_RELEASED : state + 1);
	}
	store_close(store);
}

static void events_return(void)
{
	struct pool_event event = { 0 }, last;
	struct store *store = open_new();
	struct seen s = { 0 };

	TAP_NEED(store);
	fill(&row_event, &event);
	for (int i = 0; i < 5; i++) {
		event.request = (uint64_t)(i % 2 ? 7 : 0);
		TAP_EQ(store_add_event(store, &event), 0);
		TAP_EQ(event.id, i + 1);
	}
	last = event;
	TAP_EQ(store_events(store, 2, 0, 10, see_event, &s), 0);
	TAP_EQ(s.nr, 3);
	TAP_EQ(s.ids[0], 3);
	TAP_MEM(&s.last.event, &last, sizeof(last));
	s.nr = 0;
	TAP_EQ(store_events(store, 0, 7, 10, see_event, &s), 0);
	TAP_EQ(s.nr, 2);
	TAP_EQ(s.ids[1], 4);
	s.nr = 0;
	TAP_EQ(store_events(store, 0, 0, 2, see_event, &s), 0);
	TAP_EQ(s.nr, 2);
	store_close(store);
}

static void uses_return(void)
{
	struct store *store = open_new();
	struct pool_use use = { .request = 1, .source = 'h' };
	struct seen s = { 0 };

	TAP_NEED(store);
	TAP_EQ(store_begin(store), 0);
	for (use.time = 1; use.time <= 100; use.time++) {
		use.busy_ns = (uint64_t)use.time * 10;
		TAP_EQ(store_add_use(store, &use), 0);
	}
	TAP_EQ(store_commit(store), 0);
	use.time = 50;
	use.busy_ns = 7;
	TAP_EQ(store_add_use(store, &use), 0);
	use.source = 'a';
	use.busy_ns = 8;
	TAP_EQ(store_add_use(store, &use), 0);
	TAP_EQ(store_uses(store, 1, 49, 4, see_use, &s), 0);
	TAP_EQ(s.nr, 4);
	TAP_EQ(s.ids[0], 490);
	TAP_EQ(s.ids[1], 8);
	TAP_EQ(s.ids[2], 7);
	TAP_EQ(s.ids[3], 510);
	s.nr = 0;
	TAP_EQ(store_uses(store, 2, 0, 10, see_use, &s), 0);
	TAP_EQ(s.nr, 0);
	TAP_EQ(store_course(store, 1, 95, 4, see_use, &s), 0);
	TAP_EQ(s.nr, 3);
	TAP_EQ(s.ids[0], 950);
	TAP_EQ(s.ids[1], 990);
	TAP_EQ(s.ids[2], 1000);
	s.nr = 0;
	TAP_EQ(store_course(store, 1, 49, 1000, see_use, &s), 0);
	TAP_EQ(s.nr, 2);
	TAP_EQ(s.ids[0], 8);
	TAP_EQ(s.ids[1], 1000);
	use.source = '\xff';
	TAP_EQ(store_add_use(store, &use), -EILSEQ);
	store_close(store);
}

static void changes_replace(void)
{
	struct pool_project project = { .name = "p", .weight = 1 };
	struct store *store = open_new();
	struct seen s = { 0 };

	TAP_NEED(store);
	TAP_EQ(store_put_project(store, &project), 0);
	project.weight = 5;
	TAP_EQ(store_put_project(store, &project), 0);
	TAP_EQ(store_projects(store, see_project, &s), 0);
	TAP_EQ(s.nr, 1);
	TAP_EQ(s.last.project.weight, 5);
	TAP_EQ(store_drop_project(store, "p"), 0);
	TAP_EQ(store_drop_project(store, "p"), -ENOENT);
	TAP_EQ(store_drop_token(store, "p"), -ENOENT);
	TAP_STR(store_error(store), "there is no such token");
	store_close(store);
}

static void tokens_return(void)
{
	struct store *store = open_new();
	struct store_token a = { .name = "a", .role = STORE_PROJECT, .project = "p", .expires = 9 };
	struct store_token b = { .name = "b", .role = STORE_ADMIN }, got;
	struct pool_project project = { .name = "p", .weight = 1 };
	struct seen s = { 0 };

	TAP_NEED(store);
	memset(a.hash, '1', 64);
	memset(b.hash, '1', 64);
	TAP_EQ(store_put_token(store, &a), 0);
	TAP_EQ(store_put_token(store, &b), -EEXIST);
	memset(b.hash, '2', 64);
	TAP_EQ(store_put_token(store, &b), 0);
	TAP_EQ(store_find_token(store, a.hash, &got), 0);
	TAP_MEM(&got, &a, sizeof(a));
	memset(a.hash, '3', 64);
	TAP_EQ(store_put_token(store, &a), 0);
	TAP_EQ(store_find_token(store, a.hash, &got), 0);
	TAP_STR(got.name, "a");
	/* A project takes its tokens along, and no others. */
	TAP_EQ(store_drop_project(store, "p"), -ENOENT);
	TAP_EQ(store_find_token(store, a.hash, &got), 0);
	TAP_EQ(store_put_project(store, &project), 0);
	TAP_EQ(store_drop_project(store, "p"), 0);
	TAP_EQ(store_find_token(store, a.hash, &got), -ENOENT);
	TAP_EQ(store_find_token(store, b.hash, &got), 0);
	TAP_EQ(store_put_token(store, &a), 0);
	memset(a.hash, '1', 64);
	TAP_EQ(store_find_token(store, a.hash, &got), -ENOENT);
	TAP_EQ(store_tokens(store, see_token, &s), 0);
	TAP_EQ(s.nr, 2);
	TAP_EQ(store_drop_token(store, "b"), 0);
	TAP_EQ(store_find_token(store, b.hash, &got), -ENOENT);
	a.hash[3] = 'A';
	TAP_EQ(store_put_token(store, &a), -EINVAL);
	TAP_EQ(store_find_token(store, "' OR 1=1 --", &got), -ENOENT);
	store_close(store);
}

static void vm_keys_return(void)
{
	struct store *store = open_new();
	struct pool_vm vm = { .name = "vm1" };
	unsigned char key[32], got[32];

	TAP_NEED(store);
	for (int i = 0; i < 32; i++)
		key[i] = (unsigned char)(i * 8 + 7);
	TAP_EQ(store_put_vm_key(store, "vm1", key), -ENOENT);
	TAP_EQ(store_put_vm(store, &vm), 0);
	TAP_EQ(store_get_vm_key(store, "vm1", got), -ENOENT);
	TAP_EQ(store_put_vm_key(store, "vm1", key), 0);
	TAP_EQ(store_get_vm_key(store, "vm1", got), 0);
	TAP_MEM(got, key, 32);
	key[0] = 0;
	TAP_EQ(store_put_vm_key(store, "vm1", key), 0);
	TAP_EQ(store_get_vm_key(store, "vm1", got), 0);
	TAP_MEM(got, key, 32);
	TAP_EQ(store_drop_vm(store, "vm1"), 0);
	TAP_EQ(store_drop_vm(store, "vm1"), -ENOENT);
	TAP_EQ(store_put_vm(store, &vm), 0);
	TAP_EQ(store_get_vm_key(store, "vm1", got), -ENOENT);
	store_close(store);
}

static void seq_grows(void)
{
	struct store *store = open_new();
	struct pool_vm vm = { .name = "vm1", .seq = 5 };
	struct seen s = { 0 };
	uint64_t last = 0;

	TAP_NEED(store);
	TAP_EQ(store_take_seq(store, "vm1", 6, 6, &last), -ENOENT);
	TAP_EQ(store_put_vm(store, &vm), 0);
	TAP_EQ(store_take_seq(store, "vm1", 5, 5, &last), -EEXIST);
	TAP_EQ(store_take_seq(store, "vm1", 6, 6, &last), 0);
	TAP_EQ(store_take_seq(store, "vm1", 6, 6, &last), -EEXIST);
	TAP_EQ(store_take_seq(store, "vm1", UINT64_MAX, UINT64_MAX, &last), -ERANGE);
	TAP_EQ(store_take_seq(store, "vm1", 7, UINT64_MAX, &last), -ERANGE);
	TAP_EQ(store_take_seq(store, "vm1", 6, 20, &last), -EEXIST);
	TAP_EQ(store_take_seq(store, "vm1", 7, 10, &last), 0);
	TAP_EQ(last, 6);
	TAP_EQ(store_take_seq(store, "vm1", 10, 10, &last), -EEXIST);
	TAP_EQ(last, 10);
	vm.pinned = true;
	TAP_EQ(store_put_vm(store, &vm), 0);
	TAP_EQ(store_vms(store, see_vm, &s), 0);
	TAP_EQ(s.last.vm.seq, 10);
	TAP_CHECK(s.last.vm.pinned);
	TAP_EQ(store_take_seq(store, "vm1", INT64_MAX, INT64_MAX, &last), 0);
	store_close(store);
	store = open_again();
	TAP_NEED(store);
	TAP_EQ(store_take_seq(store, "vm1", INT64_MAX, INT64_MAX, &last), -EEXIST);
	store_close(store);
}

static void retention_deletes(void)
{
	struct store *store = open_new();
	struct pool_event event = { .time = 50, .what = "x" };
	struct pool_use use = { .source = 'h' };
	uint64_t id, deleted = 0;
	struct seen s = { 0 };
	char key[16];

	TAP_NEED(store);
	TAP_EQ(store_begin(store), 0);
	for (int i = 0; i < 1203; i++) {
		snprintf(key, sizeof(key), "%d", i);
		id = add(store, "p", key);
		event.request = use.request = id;
		event.time = use.time = i < 1201 ? 200 : 50;
		TAP_EQ(store_add_event(store, &event), 0);
		TAP_EQ(store_add_use(store, &use), 0);
		if (i < 1202)
			end_request(store, id, i < 1201 ? 99 : 100);
	}
	event.request = 0;
	TAP_EQ(store_add_event(store, &event), 0);
	event.time = 100;
	TAP_EQ(store_add_event(store, &event), 0);
	TAP_EQ(store_commit(store), 0);
	TAP_EQ(store_retain(store, 100, &deleted), 0);
	TAP_EQ(deleted, 1201);
	TAP_EQ(count_requests(store), 2);
	/* events of requests that stay, and young ones */
	TAP_EQ(store_events(store, 0, 0, 9999, see_event, &s), 0);
	TAP_EQ(s.nr, 3);
	s.nr = 0;
	for (id = 1; id <= 1203; id++)
		TAP_EQ(store_uses(store, id, 0, 10, see_use, &s), 0);
	TAP_EQ(s.nr, 0);
	store_close(store);
}

static void transactions_are_whole(void)
{
	struct store *store = open_new();
	struct pool_request r = request("p", "k");

	TAP_NEED(store);
	TAP_EQ(store_commit(store), -EINVAL);
	TAP_EQ(store_begin(store), 0);
	TAP_EQ(store_begin(store), -EINVAL);
	add(store, "p", "1");
	TAP_EQ(count_requests(store), 1);
	store_rollback(store);
	store_rollback(store);
	TAP_EQ(count_requests(store), 0);
	TAP_EQ(store_begin(store), 0);
	add(store, "p", "1");
	/* a refused argument is no fault of the transaction */
	r.kind[0] = '\xff';
	TAP_EQ(store_add_request(store, &r), -EILSEQ);
	TAP_EQ(store_drop_vm(store, "none"), -ENOENT);
	TAP_EQ(store_commit(store), 0);
	TAP_EQ(store_begin(store), 0);
	add(store, "p", "2");
	store_close(store);
	store = open_again();
	TAP_NEED(store);
	TAP_EQ(count_requests(store), 1);
	store_close(store);
}

#define REFUSE_BAD								\
	"CREATE TRIGGER t BEFORE INSERT ON pool_request WHEN NEW.kind = 'bad' "	\
	"BEGIN SELECT RAISE(ABORT, 'bad'); END"
#define CHECK_BAD	"ALTER TABLE pool_request ADD CHECK (kind <> 'bad')"

/* A statement that the database refuses, which no argument can bring about by itself. */
static void failed_statement_fails_all(void)
{
	bool lite = !strcmp(backend_name(), "sqlite");
	struct store *store = open_new();
	struct pool_request r = request("p", "2");

	TAP_NEED(store);
	TAP_EQ(sql_by_hand(lite ? REFUSE_BAD : CHECK_BAD), 0);
	TAP_EQ(store_begin(store), 0);
	add(store, "p", "1");
	strcpy(r.kind, "bad");
	TAP_EQ(store_add_request(store, &r), -EIO);
	strcpy(r.kind, "good");
	TAP_EQ(store_add_request(store, &r), -EIO);
	TAP_EQ(store_get_request(store, 1, &r), -EIO);
	TAP_EQ(store_commit(store), -EIO);
	TAP_EQ(count_requests(store), 0);
	strcpy(r.kind, "bad");
	TAP_EQ(store_add_request(store, &r), -EIO);
	TAP_CHECK(add(store, "p", "1"));
	TAP_EQ(count_requests(store), 1);
	store_close(store);
}

static int write_inside(const struct pool_request *r, void *arg)
{
	struct seen *s = arg;
	struct seen none = { 0 };

	TAP_EQ(store_put_request(s->store, r), -EDEADLK);
	TAP_EQ(store_requests(s->store, NULL, 0, 1, see_request, &none), -EDEADLK);
	TAP_EQ(none.nr, 0);
	s->nr++;
	return -ENOTTY;
}

static void callbacks_only_read(void)
{
	struct store *store = open_new();
	struct seen s = { .store = store };

	TAP_NEED(store);
	add(store, "p", "1");
	add(store, "p", "2");
	TAP_EQ(store_requests(store, NULL, 0, 10, write_inside, &s), -ENOTTY);
	TAP_EQ(s.nr, 1);
	TAP_CHECK(add(store, "p", "3"));
	TAP_EQ(store_begin(store), 0);
	TAP_EQ(store_requests(store, NULL, 0, 10, write_inside, &s), -ENOTTY);
	TAP_CHECK(add(store, "p", "4"));
	TAP_EQ(store_commit(store), 0);
	TAP_EQ(count_requests(store), 4);
	store_close(store);
}

static const char *const hostile[] = {
	"'", "''; DROP TABLE pool_request; --", "\"", "\\", "\\'", "$1", "?1", ":a", "%s%n", "\n\r\t",
	"\x01\x7f", "ÄÖ€𝄞", "NULL", "{\"a\": 1}", "=cmd|' /C calc'!A0", "",
};

static void hostile_text_stays(void)
{
	struct store *store = open_new();
	struct pool_request r, got;

	TAP_NEED(store);
	for (size_t i = 0; i < sizeof(hostile) / sizeof(*hostile); i++) {
		r = request(hostile[i], "k");
		strcpy(r.vm, hostile[i]);
		strcpy(r.why, hostile[i]);
		TAP_EQ(store_add_request(store, &r), 0);
		TAP_EQ(store_get_request(store, r.id, &got), 0);
		TAP_CHECK(same(&row_request, &got, &r));
		TAP_EQ(store_add_request(store, &got), -EEXIST);
	}
	TAP_EQ(count_requests(store), sizeof(hostile) / sizeof(*hostile));
	store_close(store);
}

static void bad_text_is_refused(void)
{
	static const char *const bad[] = {
		"\xff", "a\x80", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\xc3(",
	};
	struct store *store = open_new();
	struct pool_request r;
	uint64_t last;

	TAP_NEED(store);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		r = request("p", bad[i]);
		TAP_EQ(store_add_request(store, &r), -EILSEQ);
		TAP_CHECK(strstr(store_error(store), "\"key\""));
		TAP_CHECK(strstr(store_error(store), "UTF-8"));
		TAP_EQ(store_drop_project(store, bad[i]), -EILSEQ);
		TAP_EQ(store_take_seq(store, bad[i], 1, 1, &last), -EILSEQ);
	}
	r = request("p", "k");
	memset(r.kind, 'x', sizeof(r.kind));
	TAP_EQ(store_add_request(store, &r), -EILSEQ);
	TAP_STR(store_error(store), "the text of \"kind\" is longer than 63 bytes: shorten it");
	r = request("p", "k");
	r.size_mib = (uint64_t)INT64_MAX + 1;
	TAP_EQ(store_add_request(store, &r), -ERANGE);
	TAP_EQ(count_requests(store), 0);
	store_close(store);
}

static void times_are_checked(void)
{
	struct store *store = open_new();
	struct pool_outcome o = { .request = 1 };
	const double bad[] = { NAN, INFINITY, -1, 1e300 };

	TAP_NEED(store);
	for (size_t i = 0; i < 4; i++) {
		o.seconds = bad[i];
		TAP_EQ(store_add_outcome(store, &o), -ERANGE);
	}
	o.seconds = 0.0000015;
	TAP_EQ(store_add_outcome(store, &o), 0);
	store_close(store);
}

static void outcome_once(void)
{
	struct store *store = open_new();
	struct pool_outcome o = { .request = 1, .seconds = 1, .ended = 5 };
	struct seen s = { 0 };

	TAP_NEED(store);
	TAP_EQ(store_add_outcome(store, &o), 0);
	o.seconds = 2;
	TAP_EQ(store_add_outcome(store, &o), 0);
	o.request = 2;
	o.ended = 4;
	TAP_EQ(store_add_outcome(store, &o), 0);
	TAP_EQ(store_outcomes(store, 0, 10, see_outcome, &s), 0);
	TAP_EQ(s.nr, 2);
	TAP_EQ(s.ids[0], 1);
	s.nr = 0;
	TAP_EQ(store_outcomes(store, 0, 1, see_outcome, &s), 0);
	TAP_EQ(s.nr, 1);
	TAP_NEAR(s.last.outcome.seconds, 2, 0);
	/* Behind the newest; of two that ended at once the one with the lower number. */
	o.request = 3;
	TAP_EQ(store_add_outcome(store, &o), 0);
	s.nr = 0;
	TAP_EQ(store_outcomes(store, 1, 10, see_outcome, &s), 0);
	TAP_EQ(s.nr, 2);
	TAP_EQ(s.ids[0], 3);
	s.nr = 0;
	TAP_EQ(store_outcomes(store, 3, 10, see_outcome, &s), 0);
	TAP_EQ(s.nr, 1);
	TAP_EQ(s.ids[0], 2);
	s.nr = 0;
	TAP_EQ(store_outcomes(store, 2, 10, see_outcome, &s), 0);
	TAP_EQ(store_outcomes(store, 99, 10, see_outcome, &s), 0);
	TAP_EQ(s.nr, 0);
	store_close(store);
}

/* ---- CSV ---- */

static char *export_text(struct store *store)
{
	int fd = memfd_create("csv", 0);
	off_t size;
	char *text;

	TAP_EQ(store_export(store, fd), 0);
	size = lseek(fd, 0, SEEK_END);
	text = calloc(1, (size_t)size + 1);
	TAP_EQ(pread(fd, text, (size_t)size, 0), size);
	close(fd);
	return text;
}

static void export_is_csv(void)
{
	struct pool_outcome o = {
		.request = 7, .project = "p", .kind = "training", .model = "A, \"B\"\r\nC",
		.target = POOL_WHOLE, .precision = POOL_FP32, .size_mib = 4, .seconds = 61.5,
		.busy_ns = 60000000000, .energy_mj = 5, .ended = 1700000000, .done = true,
	};
	struct store *store = open_new();
	char want[600];
	char *text;

	TAP_NEED(store);
	TAP_EQ(store_add_outcome(store, &o), 0);
	o = (struct pool_outcome){ .request = 8, .project = "=1+1", .kind = "@x", .model = "-2,+" };
	TAP_EQ(store_add_outcome(store, &o), 0);
	text = export_text(store);
	snprintf(want, sizeof(want),
		 "request,project,kind,model,target,precision,size_mib,seconds,busy_ns,energy_mj,memory_mib,ended,done\r\n"
		 "7,p,training,\"A, \"\"B\"\"\r\nC\",%s,%s,4,61.500000,60000000000,5,,2023-11-14T22:13:20Z,1\r\n"
		 "8,'=1+1,'@x,\"'-2,+\",%s,%s,0,0.000000,0,,,,0\r\n",
		 pool_target_name(POOL_WHOLE), pool_precision_name(POOL_FP32),
		 pool_target_name(POOL_ANY), pool_precision_name(POOL_PRECISION_ANY));
	TAP_STR(text, want);
	free(text);
	TAP_EQ(store_export(store, -1), -EIO);
	store_close(store);
}

static void export_is_whole(void)
{
	struct store *store = open_new();
	struct pool_outcome o = { .project = "p" };
	int lines = 0, fd = open("/dev/full", O_WRONLY);
	char *text;

	TAP_NEED(store);
	TAP_EQ(store_begin(store), 0);
	for (o.request = 1; o.request <= 2500; o.request++)
		TAP_EQ(store_add_outcome(store, &o), 0);
	TAP_EQ(store_commit(store), 0);
	text = export_text(store);
	for (const char *c = text; *c; c++)
		lines += *c == '\n';
	TAP_EQ(lines, 2501);
	free(text);
	TAP_EQ(store_export(store, fd), -EIO);
	TAP_CHECK(strstr(store_error(store), "No space"));
	close(fd);
	store_close(store);
}

/* ---- versions ---- */

static void newer_is_refused(void)
{
	struct store *store = open_new();
	char text[POOL_TEXT_MAX];

	TAP_NEED(store);
	TAP_EQ(store_version(store), schema_version());
	store_close(store);
	TAP_EQ(sql_by_hand("UPDATE pool_service SET version = 99"), 0);
	TAP_EQ(store_open(database_url(), &store, text), -EPROTO);
	TAP_CHECK(strstr(text, "version 99"));
	TAP_CHECK(strstr(text, "install"));
	TAP_EQ(sql_by_hand("UPDATE pool_service SET version = -1"), 0);
	TAP_EQ(store_open(database_url(), &store, text), -EPROTO);
}

static void damaged_rows_are_refused(void)
{
	static const char *const damage[] = {
		"state = 'lost'", "target = ''", "weight = -1", "cancel = 2", "capabilities = '4d'",
		"weight = 4294967296",
		"kind = 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'",
	};
	struct store *store;
	struct pool_request r;
	char text[200];

	for (size_t i = 0; i < sizeof(damage) / sizeof(*damage); i++) {
		store = open_new();
		TAP_NEED(store);
		add(store, "p", "k");
		store_close(store);
		snprintf(text, sizeof(text), "UPDATE pool_request SET %s", damage[i]);
		TAP_EQ(sql_by_hand(text), 0);
		store = open_again();
		TAP_NEED(store);
		TAP_EQ(store_get_request(store, 1, &r), -EIO);
		TAP_CHECK(strstr(store_error(store), "pool_request"));
		TAP_CHECK(add(store, "p", "k2") > 1);
		store_close(store);
	}
}

/* Dumps of each version, as an older program left them. */
static void older_are_migrated(void)
{
	char path[PATH_MAX], text[POOL_TEXT_MAX];
	struct pool_request r;
	struct store *store;
	struct store_token token;
	struct seen s = { 0 };
	unsigned char key[32];
	uint64_t last;

	for (unsigned int version = 1; version < schema_version(); version++) {
		snprintf(path, sizeof(path), "%s/%s-%u.sql", DATA, backend_name(), version);
		TAP_NEED(load_dump(path));
		if (!TAP_EQ(store_open(database_url(), &store, text), 0)) {
			tap_diag("%s", text);
			return;
		}
		TAP_EQ(store_version(store), schema_version());
		TAP_EQ(store_get_request(store, 3, &r), 0);
		TAP_STR(r.why, "it's the best fit");
		TAP_EQ(r.state, POOL_ACTIVE);
		memset(token.hash, '1', 64);
		token.hash[64] = '\0';
		TAP_EQ(store_find_token(store, token.hash, &token), 0);
		TAP_EQ(store_get_vm_key(store, "vm1", key), 0);
		TAP_EQ(store_take_seq(store, "vm1", 41, 41, &last), -EEXIST);
		s.nr = 0;
		TAP_EQ(store_events(store, 0, 0, 10, see_event, &s), 0);
		TAP_EQ(s.nr, 2);
		s.nr = 0;
		TAP_EQ(store_uses(store, 3, 0, 10, see_use, &s), 0);
		TAP_EQ(s.nr, 4);
		/* the dump had a request 4, which retention deleted */
		TAP_EQ(add(store, "p", "new"), 5);
		store_close(store);
	}
}

/* A step that fails, the second one here, leaves the version before it. */
static void failed_step_changes_nothing(void)
{
	char path[PATH_MAX], text[POOL_TEXT_MAX];
	struct store *store;

	snprintf(path, sizeof(path), "%s/%s-1.sql", DATA, backend_name());
	TAP_NEED(load_dump(path));
	TAP_EQ(sql_by_hand("CREATE TABLE other (a INT); "
			   "CREATE INDEX pool_event_time ON other (a)"), 0);
	TAP_EQ(store_open(database_url(), &store, text), -EIO);
	TAP_CHECK(strstr(text, "already exists"));
	TAP_CHECK(sql_by_hand("SELECT count(*) FROM pool_outcome"));
	TAP_EQ(sql_by_hand("DROP INDEX pool_event_time"), 0);
	TAP_EQ(store_open(database_url(), &store, text), 0);
	TAP_EQ(sql_by_hand("SELECT count(*) FROM pool_outcome"), 0);
	store_close(store);
}

/* ---- two services ---- */

static void second_is_refused(void)
{
	struct store *store = open_new(), *second = NULL;
	char text[POOL_TEXT_MAX], holder[64];

	TAP_NEED(store);
	TAP_EQ(store_open(database_url(), &second, text), -EBUSY);
	snprintf(holder, sizeof(holder), "process %d on ", (int)getpid());
	if (!TAP_CHECK(strstr(text, holder)))
		tap_diag("%s", text);
	TAP_CHECK(add(store, "p", "1"));
	store_close(store);
	TAP_EQ(store_open(database_url(), &second, text), 0);
	store_close(second);
}

/* A lock can get lost; then the generation decides. */
static void former_service_is_fenced(void)
{
	struct store *first = open_new(), *second;
	struct pool_request r = request("p", "2");

	TAP_NEED(first);
	add(first, "p", "1");
	TAP_NEED(take_lock_away());
	second = open_again();
	TAP_NEED(second);
	TAP_CHECK(add(second, "p", "second"));
	TAP_EQ(store_add_request(first, &r), -ESTALE);
	TAP_CHECK(strstr(store_error(first), "another service"));
	TAP_EQ(store_begin(first), -ESTALE);
	TAP_EQ(store_get_request(first, 1, &r), -ESTALE);
	TAP_CHECK(add(second, "p", "third"));
	TAP_EQ(count_requests(second), 3);
	store_close(first);
	store_close(second);
}

/* ---- URLs ---- */

static void unknown_kinds(void)
{
	char text[POOL_TEXT_MAX];
	struct store *store;

	TAP_EQ(store_open("mysql://u:secret@h/d", &store, text), -EINVAL);
	TAP_CHECK(strstr(text, "sqlite:PATH") && !strstr(text, "secret"));
}

static void run_all(const char *name)
{
	char behaviour[200];
	static const struct {
		void (*test)(void);
		const char *behaviour;
	} cases[] = {
		{ objects_return, "objects return as they were stored" },
		{ gpus_return, "GPUs return with all functions; a callback stops" },
		{ requests_return, "requests return and change" },
		{ keys_are_unique, "a key of a project gives the former request" },
		{ ids_are_new, "no number is given twice, after retention neither" },
		{ lists_have_order, "lists of requests have their order and limits" },
		{ open_means_not_over, "open requests are those that are not over" },
		{ events_return, "events return in their order" },
		{ uses_return, "uses are written in one transaction, and replaced" },
		{ changes_replace, "a second write replaces; a missing row is -ENOENT" },
		{ tokens_return, "a token is found by its hash, which one name has" },
		{ vm_keys_return, "a VM's key returns whole, and goes with the VM" },
		{ seq_grows, "a sequence number is taken once, and stays taken" },
		{ retention_deletes, "retention deletes what is over, and all of it" },
		{ transactions_are_whole, "a transaction is done whole or not at all" },
		{ failed_statement_fails_all, "a statement that fails, fails its transaction" },
		{ callbacks_only_read, "a callback cannot use the database" },
		{ hostile_text_stays, "hostile text is text" },
		{ bad_text_is_refused, "text that is not UTF-8 or too long is refused" },
		{ times_are_checked, "a time that is no number is refused" },
		{ outcome_once, "a request has one outcome" },
		{ export_is_csv, "the export is CSV, without formulas" },
		{ export_is_whole, "the export has all rows, or fails" },
		{ newer_is_refused, "a later version is refused" },
		{ damaged_rows_are_refused, "a damaged row is refused" },
		{ older_are_migrated, "a database of each older version is migrated" },
		{ failed_step_changes_nothing, "a step that fails changes nothing" },
		{ second_is_refused, "a second service is refused, and told of the first" },
		{ former_service_is_fenced, "a service that lost its lock cannot write" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		snprintf(behaviour, sizeof(behaviour), "%s: %s", name, cases[i].behaviour);
		tap_run(cases[i].test, behaviour);
	}
}

#include "test_pool_postgres.h"

/* ---- a service for test_pool_store.py, which kills it or its server ---- */

/* Open a database; a service that was killed has just left it. */
static struct store *open_url(const char *url)
{
	char text[POOL_TEXT_MAX];
	struct store *store;

	while (store_open(url, &store, text)) {
		printf("closed %s\n", text);
		usleep(100000);
	}
	return store;
}

/* Store groups from @group on, and tell of each how it ended, until the process is killed. */
__attribute__((noreturn))
static void keep_writing(const char *url, unsigned int group)
{
	struct store *store = open_url(url);
	int rc;

	puts("open");
	for (;; group++) {
		rc = store_group(store, group);
		printf("%s %u\n", rc == 0 ? "done" : rc == -ESTALE ? "stale" : "failed", group);
		if (rc == -ESTALE) {
			store_close(store);
			store = open_url(url);
		}
		if (rc)
			usleep(20000);
	}
}

/* Print the groups that are there; status 1: one is in parts. */
static int print_groups(const char *url)
{
	static unsigned int counts[1000000];
	struct store *store = open_url(url);
	bool whole = count_groups(store, counts, 1000000);

	for (unsigned int i = 0; i < 1000000; i++)
		if (counts[i])
			printf("there %u\n", i);
	store_close(store);
	return !whole;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
	if (argc == 4 && !strcmp(argv[1], "write"))
		keep_writing(argv[2], (unsigned int)atoi(argv[3]));
	if (argc == 3 && !strcmp(argv[1], "check"))
		return print_groups(argv[2]);
	if (database_init())
		return 1;
	tap_run(unknown_kinds, "an unknown kind of database is refused");
	run_all(backend_name());
	if (!strcmp(backend_name(), "postgresql"))
		run_postgres();
	database_exit();
	return tap_done();
}
