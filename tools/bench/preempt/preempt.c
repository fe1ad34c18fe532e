// SPDX-License-Identifier: GPL-2.0-only
/*
 * The preemption bench. Runs in the test host, as root, with the modules loaded;
 * tools/bench/preempt/run calls it. The part "decide" needs neither.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "preempt.h"

/* ---- chance ---- */

double uniform(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(*seed >> 11) / (double)(1ULL << 53);
}

/* ---- the module ---- */

int bench_ctx(struct bench *b, const struct guest *g, uint32_t ctx, struct mgpu_ctx *c)
{
	struct mgpu_error err = { 0 };
	int ret = mgpu_ctx_get(b->mgpu, g->id, ctx, c, &err);

	if (ret)
		complain("context %u of vGPU %u: %s", ctx, g->id, err.text);
	return ret;
}

int bench_wait_running(struct bench *b, struct guest *g, uint32_t ctx, int head)
{
	uint64_t end = now_ns() + BENCH_TIMEOUT_MS * MS;
	struct mgpu_ctx c;
	int ret;

	do {
		ret = bench_ctx(b, g, ctx, &c);
		if (ret)
			return ret;
		if (c.slots)
			return 0;
		vq_collect(&g->vm, VMM_CONTROL);
		if (g->vm.vq[VMM_CONTROL].done[head])
			return -ENODATA;
		sleep_until(now_ns() + MS / 2);
	} while (now_ns() < end);
	complain("context %u of vGPU %u got no slot for %u s", ctx, g->id,
		 BENCH_TIMEOUT_MS / 1000);
	return -ETIMEDOUT;
}

int bench_preempt(struct bench *b, const struct guest *g, uint32_t ctx, uint32_t keep,
		  enum mgpu_preempt_method method, bool hold)
{
	return mgpu_ctx_preempt(b->mgpu, g->id, ctx, keep, method, hold, NULL);
}

int bench_resume(struct bench *b, const struct guest *g, uint32_t ctx)
{
	return mgpu_ctx_resume(b->mgpu, g->id, ctx, false, NULL);
}

int bench_policy(struct bench *b, const char *policy)
{
	struct mgpu_dev_setting set = {
		.id = b->dev.id, .mask = MGPU_DEV_SETTING_POLICY,
	};
	struct mgpu_error err = { 0 };
	int ret;

	snprintf(set.policy, sizeof(set.policy), "%s", policy);
	ret = mgpu_dev_set(b->mgpu, &set, &err);
	if (ret)
		complain("policy %s: %s", policy, err.text);
	return ret;
}

static int job_timeout(struct bench *b, uint32_t ms)
{
	struct mgpu_dev_setting set = {
		.id = b->dev.id, .mask = MGPU_DEV_SETTING_JOB_TIMEOUT, .job_timeout = ms,
	};
	struct mgpu_error err = { 0 };
	int ret = mgpu_dev_set(b->mgpu, &set, &err);

	if (ret)
		complain("job timeout: %s", err.text);
	return ret;
}

/* ---- the whole ---- */

static const struct bench_part parts[] = {
	{ .name = "switch", .run = part_switch },
	{ .name = "equal_bytes", .run = part_equal_bytes },
	{ .name = "model", .run = part_model },
	{ .name = "streams", .run = part_streams },
	{ .name = "decide", .run = part_decide, .no_device = true },
};

static const char usage[] =
	"usage: bench-preempt [--quick] [--json FILE] [--streams DIR] [PART]...\n"
	"\n"
	"Measures preemption on the loaded mgpu module, with two slots.\n"
	"PART is switch, equal_bytes, model, streams or decide; all of them by\n"
	"default. decide needs no module. mgpu_soft may have engine=cpu or modelled.\n"
	"\n"
	"  --quick        short runs, to check that everything works; discard the figures\n"
	"  --json FILE    results, one JSON object a line\n"
	"  --streams DIR  folder of tuned.csv and untuned.csv\n";

/* Return processor @nr, modulo their number, of those that this program may run on. */
static int our_cpu(const cpu_set_t *ours, unsigned int nr)
{
	int cpu = -1;

	nr %= (unsigned int)CPU_COUNT(ours);
	do {
		while (!CPU_ISSET(++cpu, ours))
			;
	} while (nr--);
	return cpu;
}

/* Pin each slot to a processor of its own, as far as there are enough. */
static void spread_engines(const struct bench *b)
{
	struct engine_thread thread[64];
	cpu_set_t ours, set;
	unsigned int i, n;

	if (sched_getaffinity(0, sizeof(ours), &ours)) {
		complain("cannot pin the engines: %s", strerror(errno));
		return;
	}
	n = engine_threads(thread, ARRAY_LEN(thread));
	for (i = 0; i < n; i++) {
		if (thread[i].engine >= b->dev.engines)
			continue;
		CPU_ZERO(&set);
		CPU_SET(our_cpu(&ours, thread[i].engine), &set);
		if (sched_setaffinity(thread[i].pid, sizeof(set), &set))
			complain("cannot pin engine %u: %s", thread[i].engine,
				 strerror(errno));
	}
}

static int open_device(struct bench *b)
{
	struct mgpu_error err = { 0 };
	int ret;

	/* Nothing else here may keep guests and decisions waiting. */
	prctl(PR_SET_TIMERSLACK, 1);
	setpriority(PRIO_PROCESS, 0, -15);
	ret = mgpu_open(&b->mgpu, &err);
	if (!ret)
		ret = mgpu_dev_find(b->mgpu, VMM_PARENT, &b->dev, &err);
	if (ret) {
		complain("%s", err.text);
		return ret;
	}
	if (b->dev.engines != 2) {
		complain("%s has %u slots, not 2: load mgpu_soft with engines=2",
			 VMM_PARENT, b->dev.engines);
		return -EINVAL;
	}
	spread_engines(b);
	ret = job_timeout(b, BENCH_TIMEOUT_MS);
	/* First come, first served: nothing but preemption moves a context. */
	return ret ? ret : bench_policy(b, "best-effort");
}

static int run(struct bench *b, const struct bench_part *p)
{
	uint64_t start = now_ns();
	int ret = p->run(b);

	result(b, "took", "\"what\": \"%s%s\", \"seconds\": %.1f, \"status\": %d", p->name,
	       p->no_device || b->dev.engine_on_cpu ? "" : "_modelled",
	       (double)(now_ns() - start) / 1e9, ret);
	return ret;
}

int main(int argc, char **argv)
{
	struct bench_options o = {
		.usage = usage, .parts = parts, .nr_parts = ARRAY_LEN(parts),
		.option = "streams", .value = "tools/bench/preempt/streams",
		.json = stdout,
	};
	bool device = false;
	int ret, failed = 0;
	struct bench b;
	size_t p;

	ret = bench_options(&o, argc, argv);
	if (ret >= 0)
		return ret;
	b = (struct bench){ .json = o.json, .quick = o.quick, .streams = o.value };
	for (p = 0; p < ARRAY_LEN(parts); p++)
		device |= o.wanted & 1u << p && !parts[p].no_device;
	if (device) {
		if (open_device(&b))
			return 1;
		conditions_to(b.json, b.quick,
			      "\"slots\": %u, \"policy\": \"best-effort\"",
			      b.dev.engines);
	}
	for (p = 0; p < ARRAY_LEN(parts); p++)
		if (o.wanted & 1u << p && run(&b, &parts[p]))
			failed = 1;
	if (device) {
		job_timeout(&b, b.dev.job_timeout);
		bench_policy(&b, b.dev.builtin_policy);
		mgpu_close(b.mgpu);
	}
	return failed || results_end(b.json);
}
