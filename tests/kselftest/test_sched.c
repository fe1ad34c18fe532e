// SPDX-License-Identifier: GPL-2.0-only
/*
 * The scheduler: who gets how much of the engine, in which order, and what
 * becomes of jobs that take too long.  Several machines keep their rings full
 * at once.  Shares are bounded generously here, since the machine may be busy;
 * make bench-sched measures them.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kselftest_harness.h>

#include "load.h"
#include "nl.h"
#include "vmm.h"

#define BGRX	VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM

#define MAX_LOADS	4
#define BIG		768	/* side of a job of 2.25 MiB, pixels */
#define MIDDLE		384
#define ATTEMPTS	5	/* where the clock has a say */

FIXTURE(sched)
{
	struct nl nl;
	struct load load[MAX_LOADS];
	unsigned int nr;
};

#define sched_data FIXTURE_DATA(sched)

FIXTURE_SETUP(sched)
{
	memset(self->load, 0, sizeof(self->load));
	self->nr = 0;
	ASSERT_EQ(0, nl_open(&self->nl));
	/* Who is stopped for a while has done nothing wrong. */
	ASSERT_EQ(0, nl_dev_set(&self->nl, VMM_PARENT, "weighted",
				MGPU_JOB_TIMEOUT_MAX));
}

FIXTURE_TEARDOWN(sched)
{
	unsigned int i;

	for (i = 0; i < self->nr; i++)
		vm_delete(&self->load[i].vm);
	hang_next(0);
	nl_dev_set(&self->nl, VMM_PARENT, "weighted",
		   MGPU_JOB_TIMEOUT_DEFAULT);
	nl_close(&self->nl);
}

/* One more machine, whose jobs are squares of @side pixels. */
static int load_add(sched_data *self, uint32_t side)
{
	int ret = load_open(&self->load[self->nr], side);

	self->nr++;
	return ret;
}

/* Runs the first @nr machines for a time. */
static int run_for(sched_data *self, unsigned int nr, unsigned int ms)
{
	return load_run(self->load, nr, ms);
}

/* Lets what is in flight come back; true when all of it did, in order. */
static bool drain(sched_data *self)
{
	return load_drain(self->load, self->nr);
}

static uint64_t engine_ns(sched_data *self, unsigned int i)
{
	return nl_stat(&self->nl, self->load[i].vm.uuid,
		       MGPU_A_STATS_ENGINE_NS);
}

/*
 * Share of machine 0 in what @nr used within a time, per cent.  -EAGAIN when one
 * of them had nothing to do for a moment: this program got no processor, and the
 * share says nothing.
 */
static int share_of_first(sched_data *self, unsigned int nr,
			  unsigned int ms)
{
	uint64_t before[MAX_LOADS], used[MAX_LOADS], sum = 0, dry = 0;
	unsigned int i;
	int ret;

	/* All rings fill first. */
	ret = run_for(self, nr, 100);
	if (ret)
		return ret;
	for (i = 0; i < nr; i++) {
		before[i] = engine_ns(self, i);
		dry += self->load[i].dry;
	}
	ret = run_for(self, nr, ms);
	if (ret)
		return ret;
	for (i = 0; i < nr; i++) {
		used[i] = engine_ns(self, i) - before[i];
		sum += used[i];
		dry -= self->load[i].dry;
	}
	if (dry)
		return -EAGAIN;
	return sum ? (int)(used[0] * 100 / sum) : -ENODATA;
}

/*
 * As share_of_first(), over half a second that says something; again, some times,
 * while it is not near what is wanted: the machine may be busy with other things.
 */
static int share(sched_data *self, unsigned int nr, int want, int tolerance)
{
	uint64_t end = now_ms() + 2 * VMM_TIMEOUT;
	int ret, try = 0;

	do {
		ret = share_of_first(self, nr, 500);
		if (ret >= 0 && (abs(ret - want) <= tolerance ||
				 ++try == ATTEMPTS))
			break;
	} while ((ret >= 0 || ret == -EAGAIN) && now_ms() < end);
	return ret;
}

static int weight(sched_data *self, unsigned int i, uint32_t w)
{
	return nl_vgpu_set(&self->nl, self->load[i].vm.uuid, w, -1);
}

/* Whether @val is within @tolerance of @want. */
#define EXPECT_NEAR(want, val, tolerance) do {				\
	int v_ = (val);							\
	EXPECT_LE((want) - (tolerance), v_);				\
	EXPECT_GE((want) + (tolerance), v_);				\
} while (0)

TEST_F_TIMEOUT(sched, weights_are_the_shares, 90)
{
	ASSERT_EQ(0, load_add(self, BIG));
	ASSERT_EQ(0, load_add(self, BIG));
	ASSERT_EQ(0, weight(self, 0, 300));
	ASSERT_EQ(0, weight(self, 1, 700));
	EXPECT_NEAR(30, share(self, 2, 30, 4), 4);
	/* They are changed while the machines run. */
	ASSERT_EQ(0, weight(self, 0, 900));
	ASSERT_EQ(0, weight(self, 1, 100));
	EXPECT_NEAR(90, share(self, 2, 90, 4), 4);
	EXPECT_TRUE(drain(self));
}

TEST_F_TIMEOUT(sched, shares_do_not_depend_on_the_size_of_jobs, 90)
{
	ASSERT_EQ(0, load_add(self, BIG));
	ASSERT_EQ(0, load_add(self, MIDDLE));
	EXPECT_NEAR(50, share(self, 2, 50, 4), 4);
	EXPECT_TRUE(drain(self));
}

TEST_F_TIMEOUT(sched, equal_shares_ignore_weights, 90)
{
	ASSERT_EQ(0, load_add(self, BIG));
	ASSERT_EQ(0, load_add(self, BIG));
	ASSERT_EQ(0, weight(self, 0, 1000));
	ASSERT_EQ(0, weight(self, 1, 100));
	ASSERT_EQ(0, nl_dev_set_policy(&self->nl, VMM_PARENT, "equal"));
	EXPECT_NEAR(50, share(self, 2, 50, 4), 4);
	EXPECT_TRUE(drain(self));
}

TEST_F_TIMEOUT(sched, best_effort_serves_in_turn, 90)
{
	struct load *l = self->load;
	uint64_t a, b, dry;
	int try;

	/* One job of each machine waits at a time: jobs are alike in number. */
	ASSERT_EQ(0, load_add(self, BIG));
	ASSERT_EQ(0, load_add(self, MIDDLE));
	ASSERT_EQ(0, nl_dev_set_policy(&self->nl, VMM_PARENT, "best-effort"));
	for (try = 0; try < ATTEMPTS; try++) {
		ASSERT_EQ(0, run_for(self, 2, 100));
		a = l[0].done;
		b = l[1].done;
		dry = l[0].dry + l[1].dry;
		ASSERT_EQ(0, run_for(self, 2, 1500));
		dry = l[0].dry + l[1].dry - dry;
		ASSERT_TRUE(drain(self));
		a = l[0].done - a;
		b = l[1].done - b;
		TH_LOG("%lu large jobs and %lu small ones%s", a, b,
		       dry ? ", with nothing to do at times" : "");
		if (!dry && a * 8 <= b * 10 && b * 8 <= a * 10)
			break;
	}
	EXPECT_GT(ATTEMPTS, try);
}

/* What machine 0 alone gets of the wall time, per cent of one engine. */
static int use_alone(sched_data *self, unsigned int ms)
{
	uint64_t used, start;
	int ret;

	ret = run_for(self, 1, 200);
	if (ret)
		return ret;
	used = engine_ns(self, 0);
	start = now_ms();
	ret = run_for(self, 1, ms);
	if (ret)
		return ret;
	used = engine_ns(self, 0) - used;
	return (int)(used / 10000 / (now_ms() - start));
}

/* As use_alone(); again, some times, while it is not from @low to @high. */
static int use_within(sched_data *self, unsigned int ms, int low, int high)
{
	int use, try = 0;

	do {
		use = use_alone(self, ms);
	} while (use >= 0 && (use < low || use > high) && ++try < ATTEMPTS);
	return use;
}

TEST_F_TIMEOUT(sched, a_fixed_share_is_not_lent_out, 90)
{
	int use, free_run, low;

	ASSERT_EQ(0, load_add(self, BIG));
	ASSERT_EQ(0, load_add(self, BIG));
	ASSERT_EQ(0, weight(self, 0, 250));
	ASSERT_EQ(0, weight(self, 1, 750));
	free_run = use_alone(self, 1000);
	ASSERT_LE(0, free_run);
	ASSERT_EQ(0, nl_dev_set_policy(&self->nl, VMM_PARENT, "fixed"));
	low = free_run > 60 ? 15 : 0;
	use = use_within(self, 2000, low, 26);
	TH_LOG("%d %% of the engine alone, %d %% without the policy", use,
	       free_run);
	EXPECT_GE(26, use);
	EXPECT_LE(low, use);
	EXPECT_LT(0, nl_stat(&self->nl, self->load[0].vm.uuid,
			     MGPU_A_STATS_LIMITED));
	EXPECT_LT(0, nl_stat(&self->nl, self->load[0].vm.uuid,
			     MGPU_A_STATS_LIMITED_NS));
	EXPECT_TRUE(drain(self));
}

TEST_F_TIMEOUT(sched, a_limit_of_engine_time_holds_and_is_lifted, 90)
{
	const char *uuid;
	int use, free_run, low;

	ASSERT_EQ(0, load_add(self, BIG));
	uuid = self->load[0].vm.uuid;
	free_run = use_alone(self, 1000);
	ASSERT_LE(0, free_run);
	ASSERT_EQ(0, nl_vgpu_set_full(&self->nl, uuid, NL_KEEP, NL_KEEP,
				      100000, 20000, 0));
	low = free_run > 60 ? 5 : 0;
	use = use_within(self, 2000, low, 11);
	TH_LOG("%d %% of the engine, %d %% without the limit", use, free_run);
	EXPECT_GE(11, use);
	EXPECT_LE(low, use);
	ASSERT_EQ(0, nl_vgpu_set_full(&self->nl, uuid, NL_KEEP, NL_KEEP, 0,
				      NL_KEEP, NL_KEEP));
	use = use_within(self, 1000, free_run / 2, INT_MAX);
	EXPECT_LE(free_run / 2, use);
	EXPECT_TRUE(drain(self));
}

TEST_F_TIMEOUT(sched, what_one_does_not_use_the_other_gets, 180)
{
	int alone, both, try;
	uint64_t n, end;

	ASSERT_EQ(0, load_add(self, BIG));
	ASSERT_EQ(0, load_add(self, BIG));
	ASSERT_EQ(0, weight(self, 0, 100));
	ASSERT_EQ(0, weight(self, 1, 10000));
	for (try = 0; try < ATTEMPTS; try++) {
		alone = use_alone(self, 1000);
		ASSERT_LE(0, alone);
		/* The owner comes back. */
		both = share(self, 2, 1, 4);
		ASSERT_LE(0, both);
		TH_LOG("%d %% of the engine alone, %d %% beside weight 100:1",
		       alone, both);
		ASSERT_TRUE(drain(self));
		if (alone >= 60 && both <= 5)
			break;
	}
	EXPECT_GT(ATTEMPTS, try);
	/* Nobody starves. */
	n = self->load[0].done;
	end = now_ms() + VMM_TIMEOUT;
	do {
		ASSERT_EQ(0, run_for(self, 2, 100));
	} while (self->load[0].done == n && now_ms() < end);
	EXPECT_LT(n, self->load[0].done);
	EXPECT_TRUE(drain(self));
}

TEST_F_TIMEOUT(sched, policies_change_under_load_and_no_job_is_lost, 90)
{
	static const char * const policy[] = {
		"equal", "best-effort", "fixed", "weighted",
	};
	uint64_t jobs[MAX_LOADS];
	unsigned int i, round;
	struct nl_dev dev;

	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, load_add(self, 32u << i));
		jobs[i] = nl_stat(&self->nl, self->load[i].vm.uuid,
				  MGPU_A_STATS_JOBS);
	}
	for (round = 0; round < 80; round++) {
		ASSERT_EQ(0, nl_dev_set_policy(&self->nl, VMM_PARENT,
					       policy[round % 4]));
		ASSERT_EQ(0, nl_dev_get(&self->nl, VMM_PARENT, &dev));
		EXPECT_STREQ(policy[round % 4], dev.policy);
		/* Other settings change as well. */
		ASSERT_EQ(0, nl_vgpu_set_full(&self->nl, self->load[0].vm.uuid,
					      50 + round, NL_KEEP,
					      round % 3 ? 0 : 100000, 1000,
					      round));
		ASSERT_EQ(0, run_for(self, 3, 25));
	}
	ASSERT_EQ(0, nl_vgpu_set_full(&self->nl, self->load[0].vm.uuid,
				      NL_KEEP, NL_KEEP, 0, NL_KEEP, NL_KEEP));
	EXPECT_TRUE(drain(self));
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(0, self->load[i].wrong);
		EXPECT_LT(0, self->load[i].done);
		EXPECT_EQ(self->load[i].sent,
			  nl_stat(&self->nl, self->load[i].vm.uuid,
				  MGPU_A_STATS_JOBS) - jobs[i]);
	}
}

TEST_F_TIMEOUT(sched, a_long_job_lets_others_in_between, 90)
{
	struct load *big, *little;
	const uint32_t side = 1024;
	uint64_t preempted = 0;
	uint32_t *screen;
	size_t len;
	int try;
	uint32_t i;

	/* A job of 3 MiB, of many tiles. */
	ASSERT_EQ(0, load_add(self, 64));
	little = &self->load[0];
	big = &self->load[1];
	self->nr = 2;
	big->depth = LOAD_DEPTH;
	ASSERT_EQ(0, vm_new_started(&big->vm, "small", VMM_RAM));
	big->job = gpu_rect(0, 0, side, 768);
	ASSERT_EQ(0, gpu_screen_blob(&big->vm, &big->screen, 1, side, 768));
	screen = display_map(&big->vm, &len);
	ASSERT_NE(NULL, screen);

	for (i = 0; i < side * 768; i++)
		big->screen.pixels[i] = i * 2654435761u;
	for (try = 0; try < ATTEMPTS && !preempted; try++) {
		ASSERT_EQ(0, run_for(self, 2, 1000));
		preempted = nl_stat(&self->nl, big->vm.uuid,
				    MGPU_A_STATS_PREEMPTED);
	}
	EXPECT_TRUE(drain(self));
	TH_LOG("%lu of %lu jobs were preempted, beside %lu small ones",
	       preempted, big->done, little->done);
	EXPECT_LT(0, preempted);
	/* What it does is the same. */
	EXPECT_EQ(0, memcmp(big->screen.pixels, screen, side * 768 * 4));
	EXPECT_EQ(big->sent, nl_stat(&self->nl, big->vm.uuid,
				     MGPU_A_STATS_JOBS));
}

/* ---- jobs that hang ---- */

static uint32_t id_of(sched_data *self, unsigned int i)
{
	struct nl_vgpu v;

	return nl_vgpu_get(&self->nl, self->load[i].vm.uuid, &v) ? 0 : v.id;
}

/* A flush in the name of a context: the answer's type. */
static int flush_as(struct vm *vm, uint32_t ctx, struct virtio_gpu_rect r)
{
	struct virtio_gpu_resource_flush c = { .resource_id = 1, .r = r };

	gpu_hdr(&c.hdr, VIRTIO_GPU_CMD_RESOURCE_FLUSH);
	c.hdr.ctx_id = ctx;
	return gpu_call(vm, &c, sizeof(c), NULL, 0);
}

/*
 * The same of a machine whose job hangs.  Only meanwhile is there a timeout that one
 * of a busy machine may exceed, too.
 */
static int flush_hanging(sched_data *self, unsigned int i, uint32_t ctx,
			 uint32_t timeout_ms)
{
	struct load *l = &self->load[i];
	int type, ret;

	ret = nl_dev_set(&self->nl, VMM_PARENT, NULL, timeout_ms);
	if (!ret)
		ret = hang_next(id_of(self, i));
	type = ret ? ret : flush_as(&l->vm, ctx, l->job);
	ret = nl_dev_set(&self->nl, VMM_PARENT, NULL, MGPU_JOB_TIMEOUT_MAX);
	return ret ? ret : type;
}

TEST_F_TIMEOUT(sched, a_job_that_hangs_ends_with_an_error_and_an_event, 90)
{
	struct load *l = self->load;
	struct nl_event e;
	uint32_t id, *screen;
	size_t len;
	struct nl events;

	ASSERT_EQ(0, nl_open(&events));
	ASSERT_EQ(0, nl_subscribe(&events));
	ASSERT_EQ(0, load_add(self, 64));
	ASSERT_EQ(0, load_add(self, 64));
	id = id_of(self, 0);
	ASSERT_NE(0, id);

	l[0].screen.pixels[0] = 0x123456;
	ASSERT_EQ(OK, flush_as(&l[0].vm, 7, l[0].job));
	EXPECT_EQ(VIRTIO_GPU_RESP_ERR_UNSPEC, flush_hanging(self, 0, 7, 200));
	ASSERT_TRUE(nl_event_wait(&events, MGPU_CMD_VGPU_HUNG_NTF,
				  l[0].vm.uuid, &e, VMM_TIMEOUT));
	EXPECT_EQ(id, e.vgpu.id);
	EXPECT_EQ(1, e.vgpu.stats[MGPU_A_STATS_TIMEOUTS]);
	EXPECT_EQ(1, e.vgpu.stats[MGPU_A_STATS_JOB_ERRORS]);

	/* The context is refused, others and the screen are not. */
	EXPECT_EQ(VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID,
		  flush_as(&l[0].vm, 7, l[0].job));
	EXPECT_EQ(OK, flush_as(&l[0].vm, 8, l[0].job));
	EXPECT_EQ(OK, flush_as(&l[0].vm, 0, l[0].job));
	screen = display_map(&l[0].vm, &len);
	ASSERT_NE(NULL, screen);
	EXPECT_EQ(0x123456, screen[0]);

	/* Its neighbour did not notice. */
	EXPECT_EQ(0, run_for(self, 2, 100));
	EXPECT_TRUE(drain(self));
	EXPECT_EQ(0, nl_stat(&self->nl, l[1].vm.uuid, MGPU_A_STATS_TIMEOUTS));

	/* A reset makes everything new. */
	ASSERT_EQ(0, vio_reset(&l[0].vm));
	ASSERT_EQ(0, vm_start(&l[0].vm));
	l[0].vm.ram_used = 2 << 20;
	ASSERT_EQ(0, gpu_screen_blob(&l[0].vm, &l[0].screen, 1, 64, 64));
	EXPECT_EQ(OK, flush_as(&l[0].vm, 7, l[0].job));
	nl_close(&events);
}

TEST_F_TIMEOUT(sched, what_hangs_without_a_context_keeps_its_screen, 60)
{
	struct load *l = self->load;

	ASSERT_EQ(0, load_add(self, 64));
	EXPECT_EQ(VIRTIO_GPU_RESP_ERR_UNSPEC, flush_hanging(self, 0, 0, 200));
	EXPECT_EQ(OK, flush_as(&l->vm, 0, l->job));
}

TEST_F_TIMEOUT(sched, a_reset_ends_a_job_that_hangs, 60)
{
	struct load *l = self->load;

	ASSERT_EQ(0, load_add(self, 64));
	ASSERT_EQ(0, load_hang(l, id_of(self, 0)));
	ASSERT_EQ(0, vio_reset(&l->vm));
	ASSERT_EQ(0, vm_start(&l->vm));
	EXPECT_EQ(0, nl_stat(&self->nl, l->vm.uuid, MGPU_A_STATS_TIMEOUTS));
	EXPECT_EQ(1, nl_stat(&self->nl, l->vm.uuid, MGPU_A_STATS_JOB_ERRORS));
}

TEST_F_TIMEOUT(sched, a_machine_whose_contexts_all_hung_is_bounded, 120)
{
	struct load *l = self->load;
	uint32_t i;

	ASSERT_EQ(0, load_add(self, 64));
	for (i = 1; i <= 70; i++)
		if (flush_hanging(self, 0, i, 100) ==
		    VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID)
			break;
	/* None is remembered any more, so none is accepted. */
	EXPECT_EQ(65, i);
	EXPECT_EQ(VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID,
		  flush_as(&l->vm, 1000, l->job));
	ASSERT_EQ(0, hang_next(0));
	EXPECT_EQ(OK, flush_as(&l->vm, 0, l->job));
}

/* ---- charging ---- */

static pid_t start_mgpud(void)
{
	const char *build = getenv("BUILD");
	char path[256];
	pid_t pid;

	snprintf(path, sizeof(path), "%s/ctl/mgpud", build ? build : "build");
	if (access(path, X_OK))
		return 0;
	pid = fork();
	if (pid)
		return pid;
	execl(path, path, "--policy", "none", "--socket",
	      "/tmp/test_sched.mgpud", NULL);
	_exit(127);
}

/* Whether the last job was charged by @source, within a time, under load. */
static bool charged_by(sched_data *self, uint32_t source)
{
	uint64_t end = now_ms() + 3 * VMM_TIMEOUT;
	struct nl_vgpu v;

	do {
		if (run_for(self, 2, 50) ||
		    nl_vgpu_get(&self->nl, self->load[0].vm.uuid, &v))
			return false;
	} while (v.charge_source != source && now_ms() < end);
	return v.charge_source == source;
}

TEST_F_TIMEOUT(sched, a_killed_program_leaves_no_gap_and_no_double_charge, 240)
{
	unsigned int i, round;
	struct nl_vgpu v;
	pid_t pid;

	ASSERT_EQ(0, load_add(self, 64));
	ASSERT_EQ(0, load_add(self, 256));
	EXPECT_TRUE(charged_by(self, MGPU_CHARGE_SOURCE_MODULE));
	for (round = 0; round < 3; round++) {
		pid = start_mgpud();
		if (!pid)
			SKIP(break, "mgpud is not built");
		ASSERT_LT(0, pid);
		EXPECT_TRUE(charged_by(self, MGPU_CHARGE_SOURCE_BPF));
		/* In the middle of everything. */
		ASSERT_EQ(0, run_for(self, 2, 300));
		ASSERT_EQ(0, kill(pid, SIGKILL));
		ASSERT_EQ(0, run_for(self, 2, 100));
		ASSERT_EQ(pid, waitpid(pid, NULL, 0));
		EXPECT_TRUE(charged_by(self, MGPU_CHARGE_SOURCE_MODULE));
	}
	EXPECT_TRUE(drain(self));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, nl_vgpu_get(&self->nl, self->load[i].vm.uuid, &v));
		TH_LOG("engine %lu ns, charged %lu by eBPF and %lu by the module",
		       v.stats[MGPU_A_STATS_ENGINE_NS],
		       v.stats[MGPU_A_STATS_CHARGED_BPF_NS],
		       v.stats[MGPU_A_STATS_CHARGED_SELF_NS]);
		EXPECT_LT(0, v.stats[MGPU_A_STATS_CHARGED_BPF_NS]);
		EXPECT_EQ(v.stats[MGPU_A_STATS_ENGINE_NS],
			  v.stats[MGPU_A_STATS_CHARGED_BPF_NS] +
			  v.stats[MGPU_A_STATS_CHARGED_SELF_NS]);
	}
}

/* ---- statistics ---- */

TEST_F(sched, histograms_count_every_job_and_frame)
{
	struct load *l = self->load;
	struct nl_vgpu v;
	int64_t n;

	ASSERT_EQ(0, load_add(self, 64));
	ASSERT_EQ(0, run_for(self, 1, 300));
	ASSERT_TRUE(drain(self));
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, l->vm.uuid, &v));
	n = nl_vgpu_hist(&self->nl, l->vm.uuid, MGPU_A_VGPU_LATENCY_HIST, NULL);
	EXPECT_EQ((int64_t)v.stats[MGPU_A_STATS_JOBS], n);
	n = nl_vgpu_hist(&self->nl, l->vm.uuid,
			 MGPU_A_VGPU_FRAME_INTERVAL_HIST, NULL);
	EXPECT_EQ((int64_t)v.stats[MGPU_A_STATS_FRAMES] - 1, n);
	EXPECT_LT(0, v.stats[MGPU_A_STATS_QUEUE_NS]);
}

TEST_F(sched, a_full_ring_is_answered_with_few_interrupts)
{
	struct load *l = self->load;
	struct nl_vgpu v;

	ASSERT_EQ(0, load_add(self, 64));
	ASSERT_EQ(0, run_for(self, 1, 300));
	ASSERT_TRUE(drain(self));
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, l->vm.uuid, &v));
	EXPECT_GE(v.stats[MGPU_A_STATS_COMMANDS],
		  v.stats[MGPU_A_STATS_INTERRUPTS]);
}

TEST_HARNESS_MAIN
