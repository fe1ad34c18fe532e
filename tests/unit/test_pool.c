// SPDX-License-Identifier: GPL-2.0-only
/*
 * The life of requests in the pool: each transition, a failure of each effect, a crash at each
 * effect, and random operations.
 */
#include "tap.h"
#include "inside.h"
#include "pool_world.h"
#include "random.h"

static const struct pool_request *row(uint64_t id)
{
	return &w.rows[id];
}

/* A host with a whole GPU and a parent of 4 vGPUs, VMs of two projects. */
static void small_world(void)
{
	world_new();
	world_project("a", 100, 0);
	world_project("b", 100, 0);
	world_vm("a1", "h1", "a");
	world_vm("a2", "h1", "a");
	world_vm("b1", "h1", "b");
	world_gpu("h1", "whole", "T4", 1, 16384);
	world_gpu("h1", "parent", "soft", 4, 4096);
	world_start();
}

static int ask_whole(const char *key, const char *vm)
{
	return ask_for(key, vm, "training", POOL_WHOLE, "");
}

static uint32_t used(const char *gpu)
{
	return pool_gpu(w.pool, gpu)->used;
}

static void serves_in_order(void)
{
	struct pool_place place;

	small_world();
	TAP_EQ(ask_whole("k1", "a1"), 1);
	TAP_EQ(row(1)->state, POOL_ATTACHING);
	TAP_CHECK(!strcmp(row(1)->gpu, "h1/whole"));
	TAP_EQ(ask_whole("k2", "a2"), 1);
	TAP_EQ(ask_whole("k3", "b1"), 1);
	world_run(10);
	TAP_EQ(row(1)->state, POOL_ACTIVE);
	TAP_EQ(row(2)->state, POOL_QUEUED);
	/* Project b holds nothing. */
	pool_where(w.pool, 3, &place);
	TAP_EQ(place.place, 1);
	TAP_STR(place.reason,
		"no GPU that fits is free: of the 2 GPUs of h1, 1 is in use, 1 gives vGPUs only");
	pool_where(w.pool, 2, &place);
	TAP_EQ(place.place, 2);
	TAP_EQ(give_back(1), 0);
	TAP_EQ(row(1)->state, POOL_RELEASING);
	TAP_EQ(row(3)->state, POOL_QUEUED);
	world_run(10);
	TAP_EQ(row(1)->state, POOL_RELEASED);
	TAP_EQ(row(3)->state, POOL_ACTIVE);
	TAP_CHECK(!pool_request(w.pool, 1));
	TAP_EQ(pool_request_of_vm(w.pool, "a2", NULL)->id, 2);
	TAP_CHECK(!pool_request_of_vm(w.pool, "a1", NULL));
	TAP_CHECK(!pool_request_of_vm(w.pool, "a2", pool_request(w.pool, 2)));
	TAP_EQ(give_back(1), -ENOENT);
	TAP_EQ(give_back(3), 0);
	TAP_EQ(give_back(3), 0);
	world_run(10);
	TAP_EQ(row(2)->state, POOL_ACTIVE);
	TAP_EQ(w.broken, 0);
	TAP_EQ(w.nr_outcomes, 2);
	TAP_CHECK(w.outcomes[0].done && w.outcomes[0].seconds >= 10);
	TAP_CHECK(!strcmp(w.outcomes[0].model, "T4"));
	pool_free(w.pool);
}

static void same_key(void)
{
	struct pool_request r = { .key = "k1", .vm = "a1", .kind = "training" };
	char text[POOL_TEXT_MAX];

	small_world();
	TAP_EQ(ask("k1", "a1"), 1);
	TAP_EQ(ask("k1", "a1"), 0);
	TAP_EQ(ask("k1", "b1"), 1);
	TAP_EQ(w.last, 2);
	r.size_mib = 5;
	TAP_EQ(pool_ask(w.pool, &r, w.now, "x", text), -EEXIST);
	TAP_CHECK(strstr(text, "request 1") != NULL);
	TAP_EQ(pool_extend(w.pool, 1, 700, w.now, "x", text), 0);
	TAP_EQ(ask("k1", "a1"), 0);
	world_run(10);
	give_back(1);
	world_run(10);
	/* The store knows it still. */
	r.size_mib = 0;
	TAP_EQ(pool_ask(w.pool, &r, w.now, "x", text), 0);
	TAP_EQ(r.state, POOL_RELEASED);
	r = (struct pool_request){ .key = "k1", .vm = "a1", .kind = "training", .size_mib = 5 };
	TAP_EQ(pool_ask(w.pool, &r, w.now, "x", text), -EEXIST);
	TAP_EQ(w.last, 2);
	pool_free(w.pool);
}

/* Refused with a text that says what to do. */
static void refused(struct pool_request r, int ret)
{
	char text[POOL_TEXT_MAX];

	if (!TAP_EQ(pool_ask(w.pool, &r, w.now, "x", text), ret))
		tap_diag("key %s: %s", r.key, text);
	TAP_CHECK(text[0]);
	TAP_EQ(w.last, 0);
}

static void bad_requests(void)
{
	const struct pool_request good = { .key = "k", .vm = "a1", .kind = "training" };
	struct pool_request r;

	small_world();
#define WITH(field, ret) do { r = good; field; refused(r, ret); } while (0)
	WITH(r.key[0] = '\0', -EINVAL);
	WITH(strcpy(r.key, "a b"), -EINVAL);
	WITH(strcpy(r.key, "\x80"), -EINVAL);
	WITH(r.kind[0] = '\0', -EINVAL);
	WITH(strcpy(r.kind, "A"), -EINVAL);
	WITH(r.target = POOL_TARGETS, -EINVAL);
	WITH(r.precision = POOL_PRECISIONS, -EINVAL);
	WITH(r.capabilities = 4, -EINVAL);
	WITH(strcpy(r.type, "small:1"), -EINVAL);
	WITH((r.target = POOL_WHOLE, strcpy(r.type, "small")), -EINVAL);
	WITH(r.weight = 10001, -EINVAL);
	WITH(r.floor_mhz = 1000001, -EINVAL);
	WITH(strcpy(r.vm, "a9"), -ENOENT);
	WITH(strcpy(r.project, "c"), -ENOENT);
	WITH(strcpy(r.project, "b"), -EPERM);
	WITH(r.memory_mib = 16385, -ENOSPC);
	WITH(strcpy(r.type, "huge"), -ENOSPC);
	WITH((r.target = POOL_VGPU, r.memory_mib = 4097), -ENOSPC);
	w.settings.max_lease = 100;
	pool_set_settings(w.pool, &w.settings);
	WITH(r.lease = 101, -EINVAL);
#undef WITH
	pool_free(w.pool);
}

static void full_queue(void)
{
	small_world();
	w.settings.max_queue = 3;
	w.settings.max_queue_project = 2;
	TAP_EQ(pool_set_settings(w.pool, &w.settings), 0);
	TAP_EQ(ask_whole("1", "a1"), 1);
	TAP_EQ(ask_whole("2", "a1"), 1);
	TAP_EQ(ask_whole("3", "a1"), 1);
	TAP_EQ(ask_whole("4", "a1"), -EBUSY);
	TAP_EQ(ask_whole("3", "a1"), 0);
	TAP_EQ(ask_whole("1", "b1"), 1);
	TAP_EQ(ask_whole("2", "b1"), -EBUSY);
	/* A request that is over is answered, too. */
	give_back(4);
	TAP_EQ(row(4)->state, POOL_CANCELLED);
	TAP_EQ(ask_whole("5", "b1"), 1);
	TAP_EQ(ask_whole("1", "b1"), 0);
	TAP_EQ(ask_for("1", "b1", "other", POOL_WHOLE, ""), -EEXIST);
	pool_free(w.pool);
}

static void limit_of_project(void)
{
	struct pool_project p = { .name = "a", .weight = 100, .max_gpus = 2 };
	struct pool_place place;

	small_world();
	pool_put_project(w.pool, &p);
	ask_for("1", "a1", "x", POOL_VGPU, "small");
	ask_for("2", "a1", "x", POOL_VGPU, "small");
	ask_for("3", "a1", "x", POOL_VGPU, "small");
	ask_for("4", "a1", "x", POOL_VGPU, "small");
	world_run(5);
	TAP_EQ(used("h1/parent"), 2);
	pool_where(w.pool, 3, &place);
	TAP_CHECK(strstr(place.reason, "holds 2 of the 2") != NULL);
	give_back(1);
	TAP_EQ(row(3)->state, POOL_QUEUED);
	world_run(5);
	TAP_EQ(row(3)->state, POOL_ACTIVE);
	TAP_EQ(used("h1/parent"), 2);
	p.max_gpus = 0;
	pool_put_project(w.pool, &p);
	world_run(1);
	TAP_EQ(row(4)->state, POOL_ACTIVE);
	pool_free(w.pool);
}

static void retries(void)
{
	int64_t start;

	small_world();
	start = w.now;
	w.attach_failures = 3;
	ask_whole("1", "a1");
	world_run(1);
	TAP_EQ(row(1)->tries, 1);
	TAP_CHECK(!strcmp(row(1)->why, "the bus is busy"));
	world_run(20);
	TAP_EQ(row(1)->state, POOL_ACTIVE);
	/* 2 + 4 + 8 s */
	TAP_EQ(row(1)->attached - start, 14);
	w.detach_failures = 12;
	give_back(1);
	world_run(100);
	TAP_EQ(row(1)->state, POOL_RELEASING);
	TAP_EQ(used("h1/whole"), 1);
	world_run(3000);
	TAP_EQ(row(1)->state, POOL_RELEASED);
	TAP_EQ(used("h1/whole"), 0);
	w.attach_failures = 5;
	ask_whole("2", "a1");
	world_run(100);
	TAP_EQ(row(2)->state, POOL_FAILED);
	TAP_EQ(used("h1/whole"), 0);
	w.attach_refused = true;
	ask_whole("3", "a1");
	world_run(1);
	TAP_EQ(row(3)->state, POOL_FAILED);
	TAP_CHECK(!strcmp(row(3)->why, "the bus is busy"));
	TAP_EQ(w.nr_devices, 0);
	TAP_EQ(w.broken, 0);
	pool_free(w.pool);
}

static void cancelled(void)
{
	small_world();
	ask_whole("1", "a1");
	ask_whole("2", "a2");
	TAP_EQ(give_back(2), 0);
	TAP_EQ(row(2)->state, POOL_CANCELLED);
	TAP_EQ(give_back(1), 0);
	TAP_EQ(row(1)->state, POOL_ATTACHING);
	world_run(5);
	TAP_EQ(row(1)->state, POOL_RELEASED);
	TAP_EQ(w.nr_devices, 0);
	/* Between two attempts. */
	w.attach_failures = 1;
	ask_whole("3", "a1");
	world_step();
	TAP_EQ(give_back(3), 0);
	TAP_EQ(row(3)->state, POOL_RELEASING);
	world_run(5);
	TAP_EQ(row(3)->state, POOL_RELEASED);
	/* The attempt fails. */
	w.attach_failures = 1;
	ask_whole("4", "a1");
	give_back(4);
	world_run(5);
	TAP_EQ(row(4)->state, POOL_RELEASED);
	TAP_EQ(used("h1/whole"), 0);
	pool_free(w.pool);
}

static void leases(void)
{
	struct pool_request r = { .key = "1", .vm = "a1", .kind = "x", .lease = 1000 };
	char text[POOL_TEXT_MAX];

	small_world();
	pool_ask(w.pool, &r, w.now, "x", text);
	world_run(1);
	TAP_EQ(row(1)->until, row(1)->attached + 1000);
	world_run(750);
	TAP_EQ(w.warnings, 1);
	TAP_EQ(pool_extend(w.pool, 1, 1000, w.now, "x", text), 0);
	world_run(600);
	TAP_EQ(row(1)->state, POOL_ACTIVE);
	world_run(500);
	TAP_EQ(w.warnings, 2);
	TAP_EQ(row(1)->state, POOL_RELEASED);
	TAP_CHECK(!strcmp(row(1)->why, "the lease is over"));
	TAP_EQ(pool_extend(w.pool, 1, 5, w.now, "x", text), -ENOENT);
	w.settings.max_lease = 100;
	pool_set_settings(w.pool, &w.settings);
	ask("2", "a1");
	TAP_EQ(row(2)->lease, 100);
	TAP_EQ(pool_extend(w.pool, 2, 0, w.now, "x", text), -EINVAL);
	TAP_EQ(pool_extend(w.pool, 2, 101, w.now, "x", text), -EINVAL);
	TAP_EQ(pool_extend(w.pool, 2, 50, w.now, "x", text), 0);
	world_step();
	TAP_EQ(row(2)->until, w.now + 50);
	give_back(2);
	TAP_EQ(pool_extend(w.pool, 2, 50, w.now, "x", text), -EBUSY);
	pool_free(w.pool);
}

/* Report cumulative work of a request. */
static int work(uint64_t id, char source, double seconds)
{
	const struct pool_use use = { .request = id, .time = w.now, .source = source,
				      .busy_ns = (uint64_t)(seconds * 1e9), .memory_mib = 77 };

	return pool_use(w.pool, &use);
}

static void idle_gpus(void)
{
	int64_t start;

	small_world();
	ask_whole("1", "a1");
	world_run(0);
	start = w.now;
	world_run(4000);
	work(1, 'a', 100);
	/* Work after the first look keeps the GPU. */
	world_run(800);
	TAP_EQ(row(1)->state, POOL_ACTIVE);
	TAP_EQ(w.warnings, 0);
	world_run(3700);
	TAP_EQ(w.warnings, 1);
	TAP_CHECK(row(1)->warned);
	world_run(299);
	work(1, 'a', 200);
	world_run(2);
	TAP_EQ(row(1)->state, POOL_ACTIVE);
	TAP_EQ(row(1)->warned, 0);
	world_run(4800);
	TAP_EQ(row(1)->state, POOL_RELEASED);
	TAP_EQ(row(1)->ended - start, 8799 + 4800);
	TAP_CHECK(strstr(row(1)->why, "idle for 4800 s") != NULL);
	TAP_EQ(w.nr_outcomes, 1);
	TAP_CHECK(!w.outcomes[0].done);
	TAP_EQ(w.outcomes[0].busy_ns, 200000000000);
	TAP_EQ(w.outcomes[0].memory_mib, 77);
	TAP_EQ(work(1, 'a', 1), -ENOENT);
	pool_free(w.pool);
}

static void new_settings(void)
{
	small_world();
	ask_whole("1", "a1");
	world_run(1000);
	w.settings.look1 = 1200;
	TAP_EQ(pool_set_settings(w.pool, &w.settings), 0);
	world_run(1399);
	TAP_EQ(row(1)->state, POOL_ACTIVE);
	world_run(2);
	TAP_EQ(row(1)->state, POOL_RELEASED);
	pool_free(w.pool);
}

/* Extend every 1,000 s. Return the time until the GPU is taken back, and count refusals. */
static int64_t extend_on_and_on(unsigned int *refused_ones)
{
	int64_t begin = w.now;
	char text[POOL_TEXT_MAX];

	*refused_ones = 0;
	while (row(1)->state == POOL_ACTIVE && w.now - begin < 40000) {
		int ret = pool_extend(w.pool, 1, 0, w.now, "x", text);

		*refused_ones += ret == -EPERM && strstr(text, "use it, or ask an administrator");
		world_run(1000);
	}
	return w.now - begin;
}

static void extended_on_and_on(void)
{
	unsigned int refused_ones;
	int64_t time;

	small_world();
	ask("1", "a1");
	world_run(10);
	time = extend_on_and_on(&refused_ones);
	TAP_CHECK(time >= 14400 && time <= 14400 + 4800 + 1000);
	TAP_CHECK(refused_ones >= 4);
	TAP_EQ(row(1)->state, POOL_RELEASED);
	pool_free(w.pool);
	small_world();
	w.vms[0].pinned = true;
	pool_put_vm(w.pool, &w.vms[0]);
	ask("1", "a1");
	world_run(10);
	TAP_EQ(extend_on_and_on(&refused_ones), 40000);
	TAP_EQ(refused_ones, 0);
	pool_free(w.pool);
}

static void pinned_vm(void)
{
	small_world();
	w.vms[0].pinned = true;
	pool_put_vm(w.pool, &w.vms[0]);
	ask_whole("1", "a1");
	world_run(100000);
	TAP_EQ(row(1)->state, POOL_ACTIVE);
	TAP_EQ(w.warnings, 0);
	w.vms[0].pinned = false;
	pool_put_vm(w.pool, &w.vms[0]);
	world_run(10000);
	TAP_EQ(row(1)->state, POOL_RELEASED);
	pool_free(w.pool);
}

static void lying_agent(void)
{
	small_world();
	ask_whole("1", "a1");
	world_run(100);
	for (int i = 1; i < 5; i++) {
		w.now += 10;
		work(1, 'a', i * 1000);
	}
	TAP_EQ(w.lies, 1);
	TAP_EQ(work(1, 'a', 4001), -EPERM);
	world_run(4800);
	TAP_EQ(row(1)->state, POOL_RELEASED);
	TAP_CHECK(strstr(row(1)->why, "does not count") != NULL);
	pool_free(w.pool);
}

static void host_counters(void)
{
	small_world();
	ask_for("1", "a1", "x", POOL_VGPU, "");
	TAP_CHECK(!strcmp(row(1)->type, "small"));
	for (int i = 0; i < 47; i++) {
		world_run(100);
		TAP_EQ(work(1, 'a', i * 90), 0);
		TAP_EQ(work(1, 'h', 0), 0);
	}
	world_run(101);
	TAP_EQ(row(1)->state, POOL_RELEASED);
	TAP_CHECK(strstr(row(1)->why, "host's counters") != NULL);
	pool_free(w.pool);
}

static void hosts_down(void)
{
	struct pool_place place;

	small_world();
	w.attach_failures = 1;
	ask_whole("1", "a1");
	world_step();
	pool_host_up(w.pool, "h1", false);
	world_run(1000);
	TAP_EQ(row(1)->state, POOL_ATTACHING);
	TAP_EQ(row(1)->tries, 1);
	TAP_EQ(ask_whole("2", "a2"), 1);
	TAP_EQ(ask("3", "a2"), 1);
	TAP_EQ(row(3)->state, POOL_QUEUED);
	pool_where(w.pool, 3, &place);
	TAP_CHECK(strstr(place.reason, "not connected") != NULL);
	world_reconcile();
	world_run(1);
	TAP_EQ(row(1)->state, POOL_ACTIVE);
	TAP_EQ(row(3)->state, POOL_ACTIVE);
	pool_free(w.pool);
}

static void strays(void)
{
	small_world();
	w.devices[w.nr_devices++] = (struct device){ 4000, "a1", "h1/whole", false };
	w.devices[w.nr_devices++] = (struct device){ 0, "a2", "h1/parent", false };
	world_reconcile();
	TAP_EQ(ask_whole("1", "a1"), 1);
	TAP_EQ(row(1)->state, POOL_QUEUED);
	TAP_EQ(used("h1/whole"), 1);
	w.detach_failures = 2;
	world_run(20);
	TAP_EQ(row(1)->state, POOL_ACTIVE);
	TAP_EQ(used("h1/whole"), 1);
	/* That of others stays. */
	TAP_EQ(w.nr_devices, 2);
	TAP_EQ(w.broken, 0);
	pool_free(w.pool);
}

/* The definition of a VM was copied with the device: it goes from the copy after the request. */
static void copied_vm(void)
{
	small_world();
	ask_whole("1", "a1");
	world_run(1);
	w.devices[w.nr_devices++] = (struct device){ 1, "a2", "h1/whole", false };
	world_reconcile();
	TAP_EQ(w.nr_jobs, 0);
	TAP_EQ(used("h1/whole"), 2);
	w.detach_failures = 1;
	give_back(1);
	world_run(10);
	TAP_EQ(row(1)->state, POOL_RELEASED);
	TAP_EQ(used("h1/whole"), 1);
	ask_whole("2", "b1");
	TAP_EQ(row(2)->state, POOL_QUEUED);
	world_reconcile();
	TAP_EQ(w.nr_jobs, 1);
	world_run(1);
	TAP_EQ(row(2)->state, POOL_ACTIVE);
	TAP_EQ(w.nr_devices, 1);
	TAP_EQ(w.broken, 0);
	pool_free(w.pool);
}

/* A whole GPU that a VM has from others is in use; a vGPU of others is none of the slots. */
static void foreign_devices(void)
{
	struct pool_place place;

	small_world();
	w.devices[w.nr_devices++] = (struct device){ 0, "a2", "h1/whole", false };
	w.devices[w.nr_devices++] = (struct device){ 0, "a2", "h1/parent", false };
	w.gpus[1].slots = 3;
	pool_put_gpu(w.pool, &w.gpus[1]);
	world_reconcile();
	ask_whole("1", "a1");
	TAP_EQ(row(1)->state, POOL_QUEUED);
	pool_where(w.pool, 1, &place);
	TAP_CHECK(strstr(place.reason, ", 1 is attached outside of the pool, 1 gives vGPUs only"));
	ask_for("2", "a1", "x", POOL_VGPU, "small");
	ask_for("3", "a1", "x", POOL_VGPU, "medium");
	TAP_EQ(row(2)->state, POOL_ATTACHING);
	TAP_EQ(row(3)->state, POOL_ATTACHING);
	TAP_EQ(used("h1/parent"), 3);
	remove_device(0);
	remove_device(0);
	world_reconcile();
	TAP_EQ(row(1)->state, POOL_ATTACHING);
	pool_free(w.pool);
}

/* VMs of others have all vGPUs of a parent; then the service starts again. */
static void parent_without_slots(void)
{
	const struct pool_gpu *gpu;

	small_world();
	ask_for("1", "a1", "x", POOL_VGPU, "small");
	world_run(10);
	w.gpus[1].slots = 0;
	TAP_EQ(pool_put_gpu(w.pool, &w.gpus[1]), 0);
	world_start();
	gpu = pool_gpu(w.pool, "h1/parent");
	TAP_NEED(gpu);
	TAP_EQ(gpu->used, 1);
	TAP_EQ(row(1)->state, POOL_ACTIVE);
	TAP_EQ(ask_for("2", "a1", "x", POOL_VGPU, "small"), -ENOSPC);
	give_back(1);
	world_run(10);
	TAP_EQ(row(1)->state, POOL_RELEASED);
	w.gpus[0].slots = 0;
	TAP_EQ(pool_put_gpu(w.pool, &w.gpus[0]), -EINVAL);
	pool_free(w.pool);
}

static struct pool_job last_job(void)
{
	return w.jobs[(w.first_job + w.nr_jobs - 1) % WORLD_JOBS];
}

/* Another host's VM of the same name is not the one that has the device. */
static void stray_of_a_namesake(void)
{
	struct pool_found found = { .request = 77, .vm = "a1", .gpu = "h2/x" };

	small_world();
	strcpy(w.vms[0].uuid, "6695eb01-f6a4-8304-79aa-000000000001");
	pool_put_vm(w.pool, &w.vms[0]);
	TAP_EQ(pool_reconcile(w.pool, "h2", &found, 1, w.now), 0);
	TAP_EQ(w.nr_jobs, 1);
	TAP_STR(last_job().vm.host, "h2");
	TAP_STR(last_job().vm.uuid, "");
	strcpy(found.gpu, "h1/x");
	TAP_EQ(pool_reconcile(w.pool, "h1", &found, 1, w.now), 0);
	TAP_STR(last_job().vm.uuid, w.vms[0].uuid);
	pool_free(w.pool);
}

/* A VM with a vGPU works while its host is down: the counters come with the host. */
static void works_while_host_is_down(void)
{
	small_world();
	ask_for("1", "a1", "x", POOL_VGPU, "");
	ask_for("2", "a2", "x", POOL_VGPU, "");
	world_run(10);
	TAP_EQ(work(1, 'h', 1), 0);
	pool_host_up(w.pool, "h1", false);
	world_run(100000);
	TAP_EQ(row(1)->state, POOL_ACTIVE);
	TAP_EQ(w.warnings, 0);
	pool_host_up(w.pool, "h1", true);
	world_reconcile();
	world_run(1);
	TAP_EQ(work(1, 'h', 90000), 0);
	TAP_EQ(work(2, 'h', 0), 0);
	world_run(3000);
	TAP_EQ(row(2)->state, POOL_RELEASED);
	TAP_EQ(w.warnings, 1);
	world_run(1700);
	TAP_EQ(row(1)->state, POOL_ACTIVE);
	world_run(200);
	TAP_EQ(row(1)->state, POOL_RELEASED);
	pool_free(w.pool);
}

/* A GPU that is kept for a VM is free again when the VM is on another host. */
static void moved_while_it_waits(void)
{
	char key[16];

	small_world();
	world_gpu("h2", "parent", "soft", 4, 4096);
	pool_put_gpu(w.pool, &w.gpus[2]);
	world_reconcile();
	for (int i = 0; i < 4; i++) {
		snprintf(key, sizeof(key), "s%d", i);
		ask_for(key, "a2", "x", POOL_VGPU, "small");
	}
	world_run(1);
	ask_for("large", "a1", "x", POOL_VGPU, "large");
	for (int i = 4; i < 4 + QUEUE_OVERTAKES; i++) {
		snprintf(key, sizeof(key), "s%d", i);
		ask_for(key, "a2", "x", POOL_VGPU, "small");
		for (uint64_t id = 1; id <= w.last; id++)
			if (row(id)->state == POOL_ACTIVE) {
				give_back(id);
				break;
			}
		world_run(1);
	}
	TAP_EQ(ask_for("late", "a2", "x", POOL_VGPU, "small"), 1);
	for (uint64_t id = 1; id <= w.last; id++)
		if (row(id)->state == POOL_ACTIVE) {
			give_back(id);
			break;
		}
	world_run(1);
	TAP_EQ(row(w.last)->state, POOL_QUEUED);
	pool_host_up(w.pool, "h2", false);
	strcpy(w.vms[0].host, "h2");
	pool_put_vm(w.pool, &w.vms[0]);
	world_run(1);
	TAP_EQ(row(w.last)->state, POOL_ACTIVE);
	TAP_EQ(row(5)->state, POOL_QUEUED);
	pool_host_up(w.pool, "h2", true);
	world_run(1);
	TAP_EQ(row(5)->state, POOL_ACTIVE);
	TAP_STR(row(5)->gpu, "h2/parent");
	pool_free(w.pool);
}

static void clock_set_back(void)
{
	small_world();
	ask_whole("1", "a1");
	world_run(10);
	w.now -= 5000;
	give_back(1);
	world_run(10);
	TAP_EQ(row(1)->state, POOL_RELEASED);
	TAP_CHECK(w.nr_outcomes == 1 && w.outcomes[0].seconds >= 0);
	pool_free(w.pool);
}

static void lost_device(void)
{
	small_world();
	ask_whole("1", "a1");
	world_run(5);
	find_device(1)->partial = true;
	world_reconcile();
	TAP_EQ(row(1)->state, POOL_RELEASING);
	world_run(1);
	TAP_EQ(row(1)->state, POOL_RELEASED);
	TAP_EQ(w.nr_devices, 0);
	TAP_EQ(used("h1/whole"), 0);
	pool_free(w.pool);
}

static void iommu_groups(void)
{
	struct pool_place place;

	world_new();
	world_project("a", 100, 0);
	world_vm("a1", "h1", "a");
	world_gpu("h1", "0", "T4", 1, 1)->group = 7;
	world_gpu("h1", "1", "T4", 1, 1)->group = 7;
	world_start();
	ask("1", "a1");
	ask("2", "a1");
	world_run(1);
	TAP_EQ(row(1)->state, POOL_ACTIVE);
	TAP_EQ(row(2)->state, POOL_QUEUED);
	pool_where(w.pool, 2, &place);
	TAP_CHECK(strstr(place.reason, "IOMMU group") != NULL);
	give_back(1);
	world_run(1);
	TAP_EQ(row(2)->state, POOL_ACTIVE);
	pool_free(w.pool);
}

static void gpus_come_and_go(void)
{
	small_world();
	w.gpus[0].offline = true;
	pool_put_gpu(w.pool, &w.gpus[0]);
	ask_whole("1", "a1");
	world_run(1);
	TAP_EQ(row(1)->state, POOL_QUEUED);
	world_gpu("h1", "more", "T4", 1, 16384);
	pool_put_gpu(w.pool, &w.gpus[2]);
	world_run(1);
	TAP_EQ(row(1)->state, POOL_ACTIVE);
	ask_whole("2", "a1");
	w.gpus[0].offline = false;
	w.gpus[0].present = false;
	pool_put_gpu(w.pool, &w.gpus[0]);
	world_run(1);
	TAP_EQ(row(2)->state, POOL_QUEUED);
	TAP_EQ(pool_drop_vm(w.pool, "a1"), -EBUSY);
	TAP_EQ(pool_drop_project(w.pool, "a"), -EBUSY);
	give_back(1);
	world_run(1);
	TAP_EQ(row(2)->state, POOL_ACTIVE);
	TAP_CHECK(!strcmp(row(2)->gpu, "h1/more"));
	TAP_EQ(pool_drop_vm(w.pool, "b1"), 0);
	TAP_EQ(pool_drop_project(w.pool, "b"), 0);
	pool_free(w.pool);
}

/* ---- overtaking ---- */

static void overtaking(void)
{
	char key[16];
	unsigned int served = 0;

	small_world();
	for (int i = 0; i < 4; i++) {
		snprintf(key, sizeof(key), "s%d", i);
		ask_for(key, "a1", "x", POOL_VGPU, "small");
	}
	world_run(1);
	TAP_EQ(ask_for("large", "a1", "x", POOL_VGPU, "large"), 1);
	/* Small ones come and go: the parent is never empty by itself. */
	for (int i = 4; i < 60 && row(5)->state == POOL_QUEUED; i++) {
		snprintf(key, sizeof(key), "s%d", i);
		ask_for(key, "a1", "x", POOL_VGPU, "small");
		for (uint64_t id = 1; id <= w.last; id++)
			if (row(id)->state == POOL_ACTIVE) {
				give_back(id);
				break;
			}
		world_run(1);
	}
	for (uint64_t id = 6; id <= w.last; id++)
		served += row(id)->attached && row(id)->attached < row(5)->attached;
	TAP_EQ(row(5)->state, POOL_ACTIVE);
	TAP_EQ(served, QUEUE_OVERTAKES);
	pool_free(w.pool);
}

/* ---- crashes and failures ---- */

static char acknowledged[16][POOL_KEY_MAX];
static size_t nr_acknowledged;

/* Ask, and remember an answer that came before the crash. */
static void client_ask(const char *key, const char *vm, enum pool_target target, const char *type)
{
	int ret = ask_for(key, vm, "training", target, type);

	/* An answer leaves the service before its process ends. */
	if (ret >= 0 && !crashed())
		snprintf(acknowledged[nr_acknowledged++], POOL_KEY_MAX, "%s", key);
}

static void serve(void)
{
	client_ask("1", "a1", POOL_WHOLE, "");
	client_ask("2", "a2", POOL_WHOLE, "");
	world_run(5);
	give_back(1);
	world_run(5);
	give_back(2);
	world_run(5);
}

static void fail_once(void)
{
	w.attach_failures = 2;
	client_ask("1", "a1", POOL_WHOLE, "");
	client_ask("2", "b1", POOL_WHOLE, "");
	world_run(30);
	w.detach_failures = 2;
	give_back(1);
	world_run(30);
	give_back(2);
	world_run(30);
}

static void fail_for_good(void)
{
	w.attach_refused = true;
	client_ask("1", "a1", POOL_WHOLE, "");
	client_ask("2", "b1", POOL_WHOLE, "");
	world_run(5);
	w.attach_refused = false;
}

static void cancel_all(void)
{
	client_ask("1", "a1", POOL_WHOLE, "");
	client_ask("2", "a1", POOL_WHOLE, "");
	client_ask("3", "b1", POOL_WHOLE, "");
	give_back(2);
	give_back(1);
	world_run(5);
	give_back(3);
	world_run(5);
}

static void idle_and_lease(void)
{
	char text[POOL_TEXT_MAX];

	client_ask("1", "a1", POOL_WHOLE, "");
	client_ask("2", "a2", POOL_VGPU, "medium");
	world_run(5);
	pool_extend(w.pool, 2, 400, w.now, "x", text);
	work(1, 'a', 1);
	world_run(6000);
}

static void vgpus(void)
{
	client_ask("1", "a1", POOL_VGPU, "medium");
	client_ask("2", "a2", POOL_VGPU, "medium");
	client_ask("3", "b1", POOL_VGPU, "large");
	world_run(5);
	give_back(2);
	give_back(1);
	world_run(5);
	give_back(3);
	world_run(5);
}

static void taken_by_the_guest(void)
{
	client_ask("1", "a1", POOL_WHOLE, "");
	client_ask("2", "b1", POOL_WHOLE, "");
	world_run(5);
	if (!crashed())
		remove_device(1);
	world_reconcile();
	world_run(5);
}

static void lost_connection(void)
{
	client_ask("1", "a1", POOL_WHOLE, "");
	pool_host_up(w.pool, "h1", false);
	if (!crashed())
		w.nr_jobs = 0;
	world_run(5);
	world_reconcile();
	world_run(5);
	give_back(1);
	pool_host_up(w.pool, "h1", false);
	if (!crashed())
		w.nr_jobs = 0;
	world_run(5);
	world_reconcile();
	world_run(5);
}

static const struct {
	const char *name;
	void (*run)(void);
} scenarios[] = {
	{ "serve", serve }, { "fail once", fail_once }, { "fail for good", fail_for_good },
	{ "cancel", cancel_all }, { "idle and lease", idle_and_lease }, { "vgpus", vgpus },
	{ "taken by the guest", taken_by_the_guest }, { "lost connection", lost_connection },
};

#define NR_SCENARIOS	(sizeof(scenarios) / sizeof(*scenarios))

/* Use and release what is open until nothing is. */
static void finish_all(void)
{
	for (int round = 0; round < 8; round++) {
		world_run(400);
		for (uint64_t id = 1; id <= w.last; id++)
			if (!pool_over(row(id)->state) && row(id)->state == POOL_ACTIVE)
				give_back(id);
	}
}

/* Nothing is lost, nothing is served twice, no device and no slot leaks. */
static bool all_is_well(void)
{
	unsigned int bad = w.broken + (w.nr_devices > 0) + (pool_request_at(w.pool, 0) != NULL);

	for (size_t i = 0; i < nr_acknowledged; i++) {
		bool found = false;

		for (uint64_t id = 1; id <= w.last; id++)
			found |= !strcmp(row(id)->key, acknowledged[i]);
		bad += !found;
	}
	for (uint64_t id = 1; id <= w.last; id++) {
		for (uint64_t other = 1; other < id; other++)
			bad += !strcmp(row(id)->key, row(other)->key);
		bad += !pool_over(row(id)->state) || w.attached[id] > 1;
		bad += row(id)->state == POOL_RELEASED && row(id)->attached && !w.attached[id];
	}
	for (size_t i = 0; i < w.nr_gpus; i++)
		bad += pool_gpu_at(w.pool, i)->used;
	return !bad;
}

/* Run a scenario with a crash before effect @at. Return false if it was over before. */
static bool crash_in(size_t scenario, uint64_t at)
{
	bool was_crashed;

	small_world();
	nr_acknowledged = 0;
	w.effects = 0;
	w.crash_at = at;
	scenarios[scenario].run();
	was_crashed = crashed();
	w.attach_failures = w.detach_failures = 0;
	w.attach_refused = false;
	world_start();
	/* A client without an answer asks again. */
	if (w.last || nr_acknowledged)
		ask_for("1", "a1", "training", scenarios[scenario].run == vgpus ? POOL_VGPU :
			POOL_WHOLE, scenarios[scenario].run == vgpus ? "medium" : "");
	finish_all();
	if (!TAP_CHECK(all_is_well()))
		tap_diag("%s: crash before effect %" PRIu64, scenarios[scenario].name, at);
	pool_free(w.pool);
	w.pool = NULL;
	return was_crashed;
}

static void crashes(void)
{
	uint64_t points = 0;

	for (size_t i = 0; i < NR_SCENARIOS; i++) {
		uint64_t at = 0;

		while (crash_in(i, at))
			at++;
		TAP_CHECK(at > 10);
		points += at;
	}
	tap_diag("%" PRIu64 " crash points", points);
}

/* The same with one store that fails. */
static bool fail_in(size_t scenario, uint64_t at)
{
	bool was_reached;

	small_world();
	nr_acknowledged = 0;
	w.effects = 0;
	w.store_fails_at = at;
	scenarios[scenario].run();
	was_reached = w.effects > at;
	w.attach_failures = w.detach_failures = 0;
	w.attach_refused = false;
	finish_all();
	if (!TAP_CHECK(all_is_well()))
		tap_diag("%s: effect %" PRIu64 " fails", scenarios[scenario].name, at);
	pool_free(w.pool);
	w.pool = NULL;
	return was_reached;
}

static void failures(void)
{
	for (size_t i = 0; i < NR_SCENARIOS; i++) {
		uint64_t at = 0;

		while (fail_in(i, at))
			at++;
		TAP_CHECK(at > 10);
	}
}

static void failed_outcome(void)
{
	small_world();
	w.outcomes_fail = 1;
	ask_whole("1", "a1");
	world_run(1);
	give_back(1);
	world_run(1);
	TAP_EQ(row(1)->state, POOL_RELEASED);
	TAP_EQ(w.nr_outcomes, 0);
	pool_free(w.pool);
}

static void restarted(void)
{
	small_world();
	ask_whole("1", "a1");
	ask_whole("2", "a2");
	ask_for("3", "a2", "x", POOL_VGPU, "medium");
	world_run(3000);
	world_start();
	TAP_EQ(used("h1/parent"), 2);
	/* The service was away: that is not idle time. */
	world_run(4700);
	TAP_EQ(row(1)->state, POOL_ACTIVE);
	TAP_EQ(work(1, 'a', 5000), 0);
	TAP_EQ(row(2)->state, POOL_QUEUED);
	TAP_EQ(used("h1/whole"), 1);
	world_run(200);
	TAP_EQ(row(1)->state, POOL_ACTIVE);
	pool_free(w.pool);
}

/* ---- random operations ---- */

static void random_world(void)
{
	world_new();
	world_project("a", 100, 3);
	world_project("b", 300, 0);
	world_project("c", 50, 6);
	for (unsigned int i = 0; i < 9; i++) {
		char name[8];

		snprintf(name, sizeof(name), "v%u", i);
		world_vm(name, i % 2 ? "h1" : "h2", w.projects[i % 3].name);
	}
	for (unsigned int i = 0; i < 8; i++) {
		char name[8];

		snprintf(name, sizeof(name), "%u", i);
		world_gpu(i % 2 ? "h1" : "h2", name, i % 3 ? "T4" : "A10", i < 4 ? 1 : 6,
			  8192 * (1 + i % 3))->group = i < 2 ? 5 : -1;
	}
	world_start();
}

static void random_ask(void)
{
	static const char *const types[] = { "", "", "small", "medium", "large" };
	static unsigned int nr;
	struct pool_request r = { .size_mib = below(100), .memory_mib = (uint32_t)below(9000),
				  .target = (enum pool_target)below(3), .precision = below(5) };
	char text[POOL_TEXT_MAX];

	snprintf(r.key, sizeof(r.key), "k%u", nr++);
	snprintf(r.vm, sizeof(r.vm), "v%u", (unsigned int)below(9));
	snprintf(r.kind, sizeof(r.kind), "kind%u", (unsigned int)below(4));
	if (r.target == POOL_VGPU)
		snprintf(r.type, sizeof(r.type), "%s", types[below(5)]);
	pool_ask(w.pool, &r, w.now, "x", text);
}

static const struct pool_request *random_request(void)
{
	size_t nr = 0;

	while (pool_request_at(w.pool, nr))
		nr++;
	return nr ? pool_request_at(w.pool, below(nr)) : NULL;
}

static void random_gpu(void)
{
	struct pool_gpu *g = &w.gpus[below(w.nr_gpus)];

	if (below(2))
		g->offline = !g->offline;
	else
		g->present = !g->present || below(2);
	pool_put_gpu(w.pool, g);
}

static void random_step(void)
{
	const struct pool_request *r = random_request();
	char text[POOL_TEXT_MAX];

	switch (below(16)) {
	case 0: case 1: case 2: case 3:
		random_ask();
		break;
	case 4: case 5: case 6:
		if (r)
			pool_release(w.pool, r->id, below(2), w.now, "x", text);
		break;
	case 7:
		w.attach_failures = below(4) ? 0 : (unsigned int)below(8);
		w.detach_failures = below(4) ? 0 : (unsigned int)below(3);
		break;
	case 8:
		random_gpu();
		break;
	case 9:
		if (r)
			pool_extend(w.pool, r->id, (uint32_t)below(500), w.now, "x", text);
		break;
	case 10:
		w.store_fails_at = below(4) ? NEVER : w.effects + below(10);
		break;
	case 11:
		if (below(10))
			break;
		pool_host_up(w.pool, below(2) ? "h1" : "h2", false);
		w.nr_jobs = 0;
		world_reconcile();
		break;
	case 12:
		if (r && r->state == POOL_ACTIVE)
			work(r->id, "hap"[below(3)], (double)below(5000));
		break;
	case 13:
		if (!below(20))
			world_start();
		break;
	default:
		for (uint64_t n = below(6); n; n--)
			world_step();
		w.now += (int64_t)below(below(50) ? 20 : 3000);
		pool_run(w.pool, w.now);
	}
}

static void check_gpus(void)
{
	for (size_t i = 0; i < w.nr_gpus; i++) {
		const struct gpu *g = core_find_gpu(w.pool, w.gpus[i].name);
		uint32_t slots = 0;
		unsigned int holders = 0;
		struct request *q;

		TAILQ_FOREACH(q, &w.pool->held, in_held)
			if (q->gpu == g) {
				slots += q->slots;
				holders++;
			}
		for (const struct pool_request *r = NULL;
		     (r = pool_request_of_gpu(w.pool, g->g.name, r));)
			holders -= !strcmp(r->gpu, g->g.name);
		TAP_EQ(holders, 0);
		for (const struct pool_request *r = NULL;
		     (r = pool_request_of_gpu(w.pool, g->g.name, r));)
			holders++;
		TAP_EQ(g->g.used, slots);
		TAP_CHECK(slots <= g->g.slots);
		if (g->g.target == POOL_WHOLE)
			TAP_CHECK(holders <= 1);
		if (g->kept)
			TAP_CHECK(g->kept->kept == g && g->kept->r.state == POOL_QUEUED);
	}
}

static void check_projects(void)
{
	for (size_t i = 0; i < w.nr_projects; i++) {
		const struct project *p = core_find_project(w.pool, w.projects[i].name);
		const struct pool_request *r;
		unsigned int held = 0;

		for (size_t k = 0; (r = pool_request_at(w.pool, k)); k++)
			held += r->state != POOL_QUEUED && !strcmp(r->project, p->p.name);
		TAP_EQ(p->flow.held, held);
		if (p->p.max_gpus)
			TAP_CHECK(held <= p->p.max_gpus);
	}
}

/* Whether a GPU has room for a request, kept ones and groups aside. */
static bool has_room(const struct gpu *g, const struct pool_request *r)
{
	uint32_t slots;

	return choice_fit(&g->g, r, NULL, &slots) == CHOICE_FITS && !g->g.offline &&
		g->g.present && !g->kept && g->g.group < 0 && g->g.used + slots <= g->g.slots;
}

/* No request waits for what is there. */
static void check_work(void)
{
	const struct request *q;

	if (w.pool->dirty)
		return;
	for (size_t i = 0; (q = table_at(&w.pool->requests, i)); i++) {
		if (q->r.state != POOL_QUEUED || queue_at_limit(&q->project->flow))
			continue;
		for (size_t k = 0; k < q->vm->host->nr; k++)
			if (has_room(q->vm->host->gpus[k], &q->r) &&
			    !TAP_CHECK(q->r.state != POOL_QUEUED))
				tap_diag("request %" PRIu64 " waits, %s has room", q->r.id,
					 q->vm->host->gpus[k]->g.name);
	}
}

/* Memory and database agree. */
static void check_store(void)
{
	const struct request *q;
	size_t open = 0;

	for (size_t i = 0; (q = table_at(&w.pool->requests, i)); i++)
		TAP_EQ(memcmp(&q->r, &w.rows[q->r.id], sizeof(q->r)), 0);
	for (uint64_t id = 1; id <= w.last; id++)
		open += !pool_over(w.rows[id].state);
	TAP_EQ(w.pool->requests.nr, open);
}

static void random_operations(void)
{
	for (unsigned int round = 0; round < tap_some(20, 400); round++) {
		rng = 1000 + round;
		random_world();
		for (int i = 0; i < 1500 && !tap.bad; i++) {
			random_step();
			check_gpus();
			check_projects();
			check_work();
			if (i % 50 == 0)
				check_store();
		}
		w.store_fails_at = NEVER;
		w.attach_failures = w.detach_failures = 0;
		TAP_EQ(w.broken, 0);
		pool_free(w.pool);
		w.pool = NULL;
		if (tap.bad) {
			tap_diag("seed %u", 1000 + round);
			break;
		}
	}
}

static void bad_settings(void)
{
	struct pool_settings s;
	const struct pool_hooks hooks = { 0 };

	pool_settings_default(&s);
	strcpy(s.policy, "random");
	TAP_CHECK(!pool_new(&s, &hooks));
	small_world();
	TAP_EQ(pool_set_settings(w.pool, &s), -EINVAL);
	TAP_CHECK(!strcmp(w.pool->settings.policy, "history"));
	pool_free(w.pool);
}

static void names(void)
{
	char text[16], name[POOL_NAME_MAX + 1];

	for (int i = 0; i < POOL_STATES; i++)
		TAP_EQ(pool_state_of(pool_state_name((enum pool_state)i)), i);
	for (int i = 0; i < POOL_TARGETS; i++)
		TAP_EQ(pool_target_of(pool_target_name((enum pool_target)i)), i);
	for (int i = 0; i < POOL_PRECISIONS; i++)
		TAP_EQ(pool_precision_of(pool_precision_name((enum pool_precision)i)), i);
	TAP_CHECK(!pool_state_name(POOL_STATES));
	TAP_EQ(pool_target_of("no"), -1);
	TAP_EQ(pool_capabilities_of(""), 0);
	TAP_EQ(pool_capabilities_of("compute,3d"), 3);
	TAP_EQ(pool_capabilities_of("3d,"), -1);
	TAP_EQ(pool_capabilities_of(",3d"), -1);
	TAP_EQ(pool_capabilities_of("4d"), -1);
	pool_capabilities_text(3, text);
	TAP_CHECK(!strcmp(text, "3d,compute"));
	TAP_CHECK(pool_name_ok("a.B-1_"));
	TAP_CHECK(!pool_name_ok("") && !pool_name_ok("-a") && !pool_name_ok(".a"));
	TAP_CHECK(!pool_name_ok("a/b"));
	memset(name, 'a', sizeof(name));
	name[POOL_NAME_MAX] = '\0';
	TAP_CHECK(!pool_name_ok(name));
	TAP_CHECK(pool_name_ok(name + 1));
}

int main(void)
{
	tap_run(names, "names and values go both ways");
	tap_run(bad_settings, "settings that cannot be are refused");
	tap_run(serves_in_order, "a released GPU goes to the next request");
	tap_run(same_key, "a key that was used gives the former request");
	tap_run(bad_requests, "bad wishes are refused with a reason");
	tap_run(full_queue, "a full queue refuses new requests and answers former ones");
	tap_run(limit_of_project, "a project holds no more GPUs than it may");
	tap_run(retries, "attachments and detachments are tried again, later each time");
	tap_run(cancelled, "a request is taken back in each state");
	tap_run(leases, "a lease ends, after a warning");
	tap_run(idle_gpus, "an idle GPU goes back after two looks and a warning");
	tap_run(new_settings, "new settings are in force at once");
	tap_run(extended_on_and_on, "extensions do not keep an idle GPU for ever, a pin does");
	tap_run(pinned_vm, "a pinned VM keeps its idle GPU");
	tap_run(lying_agent, "an agent that reports the impossible does not count");
	tap_run(host_counters, "the host's counters beat the agent");
	tap_run(hosts_down, "a request waits for its host to come back");
	tap_run(strays, "a device without a request is detached, that of others stays");
	tap_run(copied_vm, "the device of a copied VM is detached after the request");
	tap_run(foreign_devices, "a GPU that others gave to a VM is in use, their vGPUs are no slots");
	tap_run(parent_without_slots, "a parent without a slot is loaded, and its vGPUs go back");
	tap_run(stray_of_a_namesake, "a device is detached from the VM of its own host");
	tap_run(works_while_host_is_down, "a vGPU that works while its host is down is kept");
	tap_run(moved_while_it_waits, "no GPU is kept for a VM that another host has now");
	tap_run(clock_set_back, "a clock that is set back makes no negative time");
	tap_run(lost_device, "a GPU that its VM lost in part is released");
	tap_run(iommu_groups, "GPUs of an IOMMU group go to one VM at a time");
	tap_run(gpus_come_and_go, "requests follow GPUs that come and go");
	tap_run(overtaking, "a large request is overtaken so often, and no more");
	tap_run(restarted, "a start of the service is no idle time");
	tap_run(failed_outcome, "a lost row of the history holds nothing up");
	tap_run_within(crashes, "a crash at any effect loses nothing and serves nothing twice",
		       300);
	tap_run_within(failures, "a failure of any store loses nothing and serves nothing twice",
		       300);
	tap_run_within(random_operations, "random operations break no promise", 300);
	return tap_done();
}
