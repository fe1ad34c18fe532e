// SPDX-License-Identifier: GPL-2.0-only
/*
 * The scheduler: shares of the engine, the order of jobs, and what
 * becomes of jobs that take too long.  Several machines keep their rings full
 * at once.  Shares and limits are measured in the module's own accounting, where a
 * processor that stands still for a while moves little: they are bounded closely, and
 * the first measurement counts.
 *
 * Its jobs are flushes that the engine copies.
 * soft: scanout=eager
 * needs: quiet
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <kselftest_harness.h>

#include "load.h"
#include "mgpud.h"
#include "nl.h"
#include "vmm.h"

#define BGRX	VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM

#define MAX_LOADS	4
#define BIG		768	/* side of a job of 2.25 MiB, pixels */
#define MIDDLE		384
#define FEW		4	/* jobs in flight of one that has a limit */
#define STEP_MS		20
#define WINDOW_NS	2000000000ull	/* engine time that shares are measured over */
/*
 * Of that a machine has no job while what takes commands from its ring stands still,
 * and the others get it.
 */
#define STILL_NS	100000000ull
#define STILL		((int)(STILL_NS * 1000 / WINDOW_NS))	/* per mille */

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
	/* A job must not time out because the machine stood still for a while. */
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
	nl_dev_set_hang_limit(&self->nl, VMM_PARENT, MGPU_HANG_LIMIT_DEFAULT);
	nl_close(&self->nl);
}

/* Add a machine whose jobs are squares of @side pixels. */
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

/* Engine time that machines have used. */
struct sample {
	uint64_t ns[MAX_LOADS];
	uint64_t sum;
	uint64_t dry;	/* times that one of them was found with nothing to do */
};

/* Of the first @nr machines, all at about the same time. */
static int sample(sched_data *self, unsigned int nr, struct sample *s)
{
	unsigned int i, try;
	uint64_t start;

	for (try = 0; try < 100; try++) {
		memset(s, 0, sizeof(*s));
		start = now_ms();
		for (i = 0; i < nr; i++) {
			s->ns[i] = engine_ns(self, i);
			s->sum += s->ns[i];
			s->dry += self->load[i].dry;
		}
		if (now_ms() - start < STEP_MS)
			return 0;
	}
	return -ETIMEDOUT;
}

/*
 * Runs the first @nr machines until all of them are served by turns: not while one
 * makes up for a job of another that took long because the machine stood still.
 */
static int run_to_balance(sched_data *self, unsigned int nr)
{
	uint64_t end = now_ms() + VMM_TIMEOUT, done[MAX_LOADS];
	unsigned int i, served;
	int ret;

	do {
		for (i = 0; i < nr; i++)
			done[i] = self->load[i].done;
		ret = run_for(self, nr, 2 * STEP_MS);
		if (ret)
			return ret;
		for (i = 0, served = 0; i < nr; i++)
			served += self->load[i].done > done[i];
		if (served == nr)
			return 0;
	} while (now_ms() < end);
	return -ETIMEDOUT;
}

/*
 * Share of machine 0 in two seconds of engine time that the first @nr machines use,
 * per mille.  -EAGAIN when one of them had nothing to do for a moment: this program
 * got no processor, and there is no measurement.
 */
static int share_of_first(sched_data *self, unsigned int nr)
{
	struct sample a, b;
	int ret;

	/* All rings fill first. */
	ret = run_for(self, nr, 100);
	if (!ret)
		ret = run_to_balance(self, nr);
	if (!ret)
		ret = sample(self, nr, &a);
	b = a;
	while (!ret && b.sum - a.sum < WINDOW_NS && b.dry == a.dry) {
		ret = run_for(self, nr, 5 * STEP_MS);
		if (!ret)
			ret = sample(self, nr, &b);
	}
	if (!ret)
		ret = run_to_balance(self, nr);
	if (!ret)
		ret = sample(self, nr, &b);
	if (ret)
		return ret;
	if (b.dry != a.dry)
		return -EAGAIN;
	return (int)((b.ns[0] - a.ns[0]) * 1000 / (b.sum - a.sum));
}

/* The first measurement that there is. */
static int share(sched_data *self, unsigned int nr)
{
	uint64_t end = now_ms() + 3 * VMM_TIMEOUT;
	unsigned int again = 0;
	int ret;

	while ((ret = share_of_first(self, nr)) == -EAGAIN && now_ms() < end)
		again++;
	remark("share of the first of %u: %d.%d %% (%u times a ring ran dry)",
	       nr, ret / 10, ret % 10, again);
	return ret;
}

static int weight(sched_data *self, unsigned int i, uint32_t w)
{
	return nl_vgpu_set(&self->nl, self->load[i].vm.uuid, w, -1);
}

/*
 * Check that a share, per mille, is within @tolerance of the promised one.  A share that
 * is too low makes another too high, so there is one measurement.
 */
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
	EXPECT_NEAR(300, share(self, 2), STILL);
	/* They are changed while the machines run. */
	ASSERT_EQ(0, weight(self, 0, 900));
	ASSERT_EQ(0, weight(self, 1, 100));
	EXPECT_NEAR(900, share(self, 2), STILL);
	EXPECT_TRUE(drain(self));
}

TEST_F_TIMEOUT(sched, shares_do_not_depend_on_the_size_of_jobs, 90)
{
	ASSERT_EQ(0, load_add(self, BIG));
	ASSERT_EQ(0, load_add(self, MIDDLE));
	EXPECT_NEAR(500, share(self, 2), STILL);
	EXPECT_TRUE(drain(self));
}

TEST_F_TIMEOUT(sched, equal_shares_ignore_weights, 90)
{
	ASSERT_EQ(0, load_add(self, BIG));
	ASSERT_EQ(0, load_add(self, BIG));
	ASSERT_EQ(0, weight(self, 0, 1000));
	ASSERT_EQ(0, weight(self, 1, 100));
	ASSERT_EQ(0, nl_dev_set_policy(&self->nl, VMM_PARENT, "equal"));
	EXPECT_NEAR(500, share(self, 2), STILL);
	EXPECT_TRUE(drain(self));
}

TEST_F_TIMEOUT(sched, best_effort_serves_in_turn, 90)
{
	struct load *l = self->load;
	struct trials t = { 0 };
	uint64_t end = now_ms() + 3 * VMM_TIMEOUT;
	uint64_t a, b, dry;

	/* Each machine has one waiting job at a time: jobs are equal in number. */
	ASSERT_EQ(0, load_add(self, BIG));
	ASSERT_EQ(0, load_add(self, MIDDLE));
	ASSERT_EQ(0, nl_dev_set_policy(&self->nl, VMM_PARENT, "best-effort"));
	ASSERT_EQ(0, run_for(self, 2, 100));
	while (trials_go_on(&t)) {
		a = l[0].done;
		b = l[1].done;
		dry = l[0].dry + l[1].dry;
		/* So many that a ring's worth that is counted later is few. */
		do {
			ASSERT_EQ(0, run_for(self, 2, 100));
			ASSERT_GT(end, now_ms());
		} while (l[0].done - a + l[1].done - b < 12 * LOAD_DEPTH &&
			 l[0].dry + l[1].dry == dry);
		a = l[0].done - a;
		b = l[1].done - b;
		/* A machine that had nothing to do missed a turn. */
		if (l[0].dry + l[1].dry != dry)
			continue;
		TH_LOG("%lu large jobs and %lu small ones", a, b);
		trial(&t, a * 8 <= b * 10 && b * 8 <= a * 10);
	}
	EXPECT_TRUE(mostly_right(&t));
	ASSERT_TRUE(drain(self));
}

/* Engine time of machine 0 alone, in a time. */
struct use {
	uint64_t ns;
	uint64_t time_ns;
	uint64_t longest_ns;	/* the longest job's, or more */
};

static int percent(const struct use *u)
{
	return (int)(u->ns * 100 / u->time_ns);
}

/*
 * Measures it from a moment at which the machine has no job to one that is not before
 * the start of its next job.  When a job starts, what is charged is paid for: in a
 * time T a limit allows for exactly rate * T and what it holds in reserve, however
 * long the processor stood still in a job.
 */
static int use_alone(sched_data *self, unsigned int ms, struct use *u)
{
	uint64_t start, first, last, now, end;
	int ret;

	if (!drain(self))
		return -ETIMEDOUT;
	start = now_ns();
	first = engine_ns(self, 0);
	last = first;
	end = now_ms() + ms;
	u->longest_ns = 0;
	for (;;) {
		ret = run_for(self, 1, 2);
		if (ret)
			return ret;
		now = engine_ns(self, 0);
		if (now - last > u->longest_ns)
			u->longest_ns = now - last;
		if (now_ms() >= end && now != last)
			break;
		if (now_ms() >= end + VMM_TIMEOUT)
			return -ETIMEDOUT;
		last = now;
	}
	u->ns = last - first;
	u->time_ns = now_ns() - start;
	return 0;
}

/*
 * As use_alone(), of a machine that may use @ppm of the engine.  Time of a job
 * beyond two seconds' allowance is forgiven (kmod/sched/bucket.h); where the machine stood
 * still for so long there is no measurement.
 */
static int use_limited(sched_data *self, unsigned int ms, uint64_t ppm,
		       struct use *u)
{
	uint64_t end = now_ms() + 3 * VMM_TIMEOUT;
	int ret;

	do {
		ret = use_alone(self, ms, u);
	} while (!ret && u->longest_ns >= ppm * 2000 && now_ms() < end);
	return ret;
}

/*
 * Fails when machine 0 uses more than @ppm of the engine and @reserve_ns, or, in two
 * measurements, less than half of what it may, if it could use more.
 */
#define EXPECT_LIMITED(ppm, reserve_ns, free_run) do {			\
	int try_, half_ = (ppm) / 20000;				\
	struct use u_;							\
									\
	for (try_ = 0; try_ < 2; try_++) {				\
		ASSERT_EQ(0, use_limited(self, 2000, ppm, &u_));	\
		TH_LOG("%lu of %lu us of the engine, of %lu us: %d %%, %d %% without a limit", \
		       u_.ns / 1000,					\
		       (u_.time_ns / 1000000 * (ppm) + (reserve_ns)) / 1000, \
		       u_.time_ns / 1000, percent(&u_), free_run);	\
		EXPECT_GE(u_.time_ns / 1000000 * (ppm) + (ppm) + (reserve_ns), u_.ns); \
		if (percent(&u_) >= half_ || (free_run) < 4 * half_)	\
			break;						\
		if (!try_)						\
			measured_again("use (got %d %%, wanted %d %%)", \
				       percent(&u_), half_);		\
	}								\
	EXPECT_GT(2, try_);						\
} while (0)

TEST_F_TIMEOUT(sched, a_fixed_share_is_not_lent_out, 90)
{
	struct use u;

	ASSERT_EQ(0, load_add(self, BIG));
	ASSERT_EQ(0, load_add(self, BIG));
	ASSERT_EQ(0, weight(self, 0, 250));
	ASSERT_EQ(0, weight(self, 1, 750));
	ASSERT_EQ(0, use_alone(self, 500, &u));
	self->load[0].depth = FEW;
	ASSERT_EQ(0, nl_dev_set_policy(&self->nl, VMM_PARENT, "fixed"));
	/* It holds what it gains in 20 ms. */
	EXPECT_LIMITED(250000, 5000000, percent(&u));
	EXPECT_LT(0, nl_stat(&self->nl, self->load[0].vm.uuid,
			     MGPU_A_STATS_LIMITED));
	EXPECT_LT(0, nl_stat(&self->nl, self->load[0].vm.uuid,
			     MGPU_A_STATS_LIMITED_NS));
	EXPECT_TRUE(drain(self));
}

TEST_F_TIMEOUT(sched, a_limit_of_engine_time_holds_and_is_lifted, 90)
{
	struct use u, lifted;
	const char *uuid;
	unsigned int try;

	ASSERT_EQ(0, load_add(self, BIG));
	uuid = self->load[0].vm.uuid;
	ASSERT_EQ(0, use_alone(self, 500, &u));
	self->load[0].depth = FEW;
	ASSERT_EQ(0, nl_vgpu_set_full(&self->nl, uuid, NL_KEEP, NL_KEEP,
				      100000, 20000, 0));
	/* Allow for what it gains in a period. */
	EXPECT_LIMITED(100000, 2000000, percent(&u));
	ASSERT_EQ(0, nl_vgpu_set_full(&self->nl, uuid, NL_KEEP, NL_KEEP, 0,
				      NL_KEEP, NL_KEEP));
	ASSERT_TRUE(drain(self));
	self->load[0].depth = LOAD_DEPTH;
	for (try = 0; try < 2; try++) {
		ASSERT_EQ(0, use_alone(self, 500, &lifted));
		if (percent(&lifted) >= percent(&u) / 2)
			break;
		if (!try)
			measured_again("use without a limit (got %d %%, wanted %d %%)",
				       percent(&lifted), percent(&u) / 2);
	}
	EXPECT_GT(2, try);
	EXPECT_TRUE(drain(self));
}

/* Limits that come and go: none lets more through than the last one. */
TEST_F_TIMEOUT(sched, each_limit_that_is_set_holds, 90)
{
	static const uint32_t ppm[] = { 50000, 200000, 20000, 100000 };
	const char *uuid;
	unsigned int i;
	struct use u;

	ASSERT_EQ(0, load_add(self, BIG));
	uuid = self->load[0].vm.uuid;
	self->load[0].depth = FEW;
	for (i = 0; i < ARRAY_LEN(ppm); i++) {
		ASSERT_TRUE(drain(self));
		ASSERT_EQ(0, nl_vgpu_set_full(&self->nl, uuid, NL_KEEP, NL_KEEP,
					      ppm[i], 10000, 0));
		ASSERT_EQ(0, use_limited(self, 500, ppm[i], &u));
		TH_LOG("%lu us of the engine in %lu us at %u ppm", u.ns / 1000,
		       u.time_ns / 1000, ppm[i]);
		EXPECT_GE(u.time_ns / 1000000 * ppm[i] + ppm[i] +
			  ppm[i] * 10ull, u.ns);
	}
	EXPECT_TRUE(drain(self));
}

/* Of an operator's limit and a controller's target of engine time the stricter one holds. */
TEST_F_TIMEOUT(sched, the_stricter_of_limit_and_target_holds, 90)
{
	static const uint32_t set[][2] = {
		{ 0, 100000 }, { 400000, 100000 }, { 100000, 400000 }, { 100000, 0 },
	};
	const char *uuid;
	struct use u;
	unsigned int i;

	ASSERT_EQ(0, load_add(self, BIG));
	uuid = self->load[0].vm.uuid;
	ASSERT_EQ(0, use_alone(self, 500, &u));
	self->load[0].depth = FEW;
	for (i = 0; i < ARRAY_LEN(set); i++) {
		ASSERT_EQ(0, nl_vgpu_set_full(&self->nl, uuid, NL_KEEP, NL_KEEP,
					      set[i][0], 20000, 0));
		ASSERT_EQ(0, nl_vgpu_set_gpu_target(&self->nl, uuid, set[i][1]));
		EXPECT_LIMITED(100000, 2000000, percent(&u));
	}
	EXPECT_TRUE(drain(self));
}

TEST_F_TIMEOUT(sched, unused_time_goes_to_the_other_vgpu, 180)
{
	struct use u, free_run;
	unsigned int try;
	uint64_t n, end;
	int both;

	ASSERT_EQ(0, load_add(self, BIG));
	ASSERT_EQ(0, use_alone(self, 500, &free_run));
	ASSERT_EQ(0, load_add(self, BIG));
	ASSERT_EQ(0, weight(self, 0, 100));
	ASSERT_EQ(0, weight(self, 1, 10000));
	for (try = 0; try < 2; try++) {
		ASSERT_EQ(0, use_alone(self, 1000, &u));
		TH_LOG("%d %% of the engine, %d %% without another machine",
		       percent(&u), percent(&free_run));
		if (percent(&u) >= percent(&free_run) * 3 / 4)
			break;
		if (!try)
			measured_again("use (got %d %%, wanted %d %%)",
				       percent(&u), percent(&free_run) * 3 / 4);
	}
	EXPECT_GT(2, try);
	/*
	 * The owner comes back.  Whenever its ring is not served at once the other
	 * one gets a slice.
	 */
	both = share(self, 2);
	EXPECT_LE(0, both);
	EXPECT_GE(200, both);
	/* No machine starves. */
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
	uint64_t end = now_ms() + 3 * VMM_TIMEOUT;
	struct trials t = { 0 };
	uint64_t preempted = 0, before, jobs[2];
	uint32_t *screen;
	size_t len;
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
	while (trials_go_on(&t)) {
		ASSERT_GT(end, now_ms());
		before = preempted;
		jobs[0] = little->done;
		jobs[1] = big->done;
		ASSERT_EQ(0, run_for(self, 2, 200));
		preempted = nl_stat(&self->nl, big->vm.uuid,
				    MGPU_A_STATS_PREEMPTED);
		/* There were long jobs, and others that waited. */
		if (little->done - jobs[0] >= 20 && big->done - jobs[1] >= 5)
			trial(&t, preempted > before);
	}
	EXPECT_TRUE(mostly_right(&t));
	EXPECT_TRUE(drain(self));
	TH_LOG("%lu of %lu jobs were preempted, beside %lu small ones",
	       preempted, big->done, little->done);
	EXPECT_LT(0, preempted);
	/* The result is the same. */
	EXPECT_EQ(0, memcmp(big->screen.pixels, screen, side * 768 * 4));
	EXPECT_EQ(big->sent, nl_stat(&self->nl, big->vm.uuid,
				     MGPU_A_STATS_JOBS));
}

/* ---- the host's processors ---- */

/* A thread that keeps a processor busy, and its CPU time. */
struct spinner {
	pthread_t thread;
	int cpu;
	atomic_bool *stop;
	uint64_t ran_ns;
};

static void *spin(void *arg)
{
	struct spinner *s = arg;
	const struct sched_param other = { 0 };
	struct timespec t = { 0 };

	sched_setscheduler(0, SCHED_OTHER, &other);
	while (!atomic_load(s->stop))
		;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	s->ran_ns = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
	return NULL;
}

#define SPINNERS	16
#define PREEMPT		"/sys/kernel/debug/sched/preempt"

/*
 * An engine that always has a next job, of one tile each, leaves its processor to other
 * tasks, also on a kernel that is not preempted.
 */
TEST_F_TIMEOUT(sched, a_busy_engine_holds_no_processor, 90)
{
	struct spinner spinner[SPINNERS] = { 0 };
	const struct sched_param first = { .sched_priority = 1 };
	uint64_t start, ns, least = UINT64_MAX;
	atomic_bool stop = false;
	unsigned int i, n = 0;
	cpu_set_t one;
	int cpu;

	for (i = 0; i < MAX_LOADS; i++)
		ASSERT_EQ(0, load_add(self, 250));
	sysfs_write(PREEMPT, "none");
	/* The rings stay full: the spinners do not delay this thread. */
	ASSERT_EQ(0, sched_setscheduler(0, SCHED_FIFO, &first));
	/* The engine's processor, too, which the tests do not run on. */
	for (cpu = 0; cpu < sysconf(_SC_NPROCESSORS_ONLN) && n < SPINNERS; cpu++) {
		spinner[n].cpu = cpu;
		spinner[n].stop = &stop;
		ASSERT_EQ(0, pthread_create(&spinner[n].thread, NULL, spin,
					    &spinner[n]));
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		ASSERT_EQ(0, pthread_setaffinity_np(spinner[n].thread,
						    sizeof(one), &one));
		n++;
	}
	start = now_ns();
	ASSERT_EQ(0, run_for(self, MAX_LOADS, 3000));
	ns = now_ns() - start;
	atomic_store(&stop, true);
	sysfs_write(PREEMPT, "voluntary");
	for (i = 0; i < n; i++) {
		ASSERT_EQ(0, pthread_join(spinner[i].thread, NULL));
		TH_LOG("CPU %d: %lu of %lu us", spinner[i].cpu,
		       spinner[i].ran_ns / 1000, ns / 1000);
		if (spinner[i].ran_ns < least)
			least = spinner[i].ran_ns;
	}
	/* The engine's nice value leaves it 90 % of a processor. */
	EXPECT_LT(ns / 50, least);
	EXPECT_TRUE(drain(self));
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
 * The same with a job that hangs.  The timeout is short only meanwhile: a job of a busy
 * machine might exceed it, too.
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

/* Reset a machine and start it again, with the picture that it had. */
static int load_restart(struct load *l)
{
	int ret = vio_reset(&l->vm);

	if (!ret)
		ret = vm_start(&l->vm);
	l->vm.ram_used = 2 << 20;
	return ret ? ret : gpu_screen_blob(&l->vm, &l->screen, 1, 64, 64);
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
	/* It is charged the time for which it had the engine. */
	EXPECT_LE(200 * 1000000ull, e.vgpu.stats[MGPU_A_STATS_ENGINE_NS]);

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
	ASSERT_EQ(0, load_restart(l));
	EXPECT_EQ(OK, flush_as(&l[0].vm, 7, l[0].job));
	nl_close(&events);
}

TEST_F_TIMEOUT(sched, a_vgpu_that_hangs_without_a_context_keeps_its_screen, 60)
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

/* Wait until a machine is under quarantine, or is not. */
static bool quarantine_begins(struct nl *events, const char *uuid, bool on)
{
	struct nl_event e;

	return nl_event_wait(events, MGPU_CMD_VGPU_QUARANTINE_NTF, uuid, &e,
			     VMM_TIMEOUT) && e.vgpu.quarantine == on;
}

TEST_F_TIMEOUT(sched, a_vgpu_that_hangs_again_and_again_is_under_quarantine, 90)
{
	struct load *l = self->load;
	struct nl events;
	struct nl_vgpu v;
	unsigned int i;

	ASSERT_EQ(0, nl_open(&events));
	ASSERT_EQ(0, nl_subscribe(&events));
	ASSERT_EQ(0, load_add(self, 64));
	ASSERT_EQ(0, load_add(self, 64));
	for (i = 1; i <= MGPU_HANG_LIMIT_DEFAULT; i++) {
		EXPECT_EQ(OK, flush_as(&l->vm, 0, l->job));
		EXPECT_EQ(VIRTIO_GPU_RESP_ERR_UNSPEC,
			  flush_hanging(self, 0, 0, 200));
		/* The guest starts anew; its record does not. */
		ASSERT_EQ(0, load_restart(l));
		EXPECT_EQ(i, nl_stat(&self->nl, l->vm.uuid, MGPU_A_STATS_HANGS));
	}
	ASSERT_TRUE(quarantine_begins(&events, l->vm.uuid, true));

	EXPECT_EQ(VIRTIO_GPU_RESP_ERR_UNSPEC, flush_as(&l->vm, 0, l->job));
	vm_close(&l->vm);
	ASSERT_EQ(0, vm_open(&l->vm, l->vm.uuid, VMM_RAM));
	l->vm.made = true;
	ASSERT_EQ(0, load_restart(l));
	EXPECT_EQ(VIRTIO_GPU_RESP_ERR_UNSPEC, flush_as(&l->vm, 0, l->job));
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, l->vm.uuid, &v));
	EXPECT_EQ(1, v.quarantine);
	/* Refused is not hung. */
	EXPECT_EQ(MGPU_HANG_LIMIT_DEFAULT, v.stats[MGPU_A_STATS_HANGS]);
	EXPECT_EQ(OK, flush_as(&l[1].vm, 0, l[1].job));

	ASSERT_EQ(0, nl_vgpu_set_quarantine(&self->nl, l->vm.uuid, 0));
	EXPECT_TRUE(quarantine_begins(&events, l->vm.uuid, false));
	EXPECT_EQ(OK, flush_as(&l->vm, 0, l->job));
	/* The hangs of before are forgiven. */
	EXPECT_EQ(VIRTIO_GPU_RESP_ERR_UNSPEC, flush_hanging(self, 0, 0, 200));
	EXPECT_EQ(OK, flush_as(&l->vm, 0, l->job));

	ASSERT_EQ(0, nl_vgpu_set_quarantine(&self->nl, l->vm.uuid, 1));
	EXPECT_TRUE(quarantine_begins(&events, l->vm.uuid, true));
	EXPECT_EQ(VIRTIO_GPU_RESP_ERR_UNSPEC, flush_as(&l->vm, 0, l->job));
	nl_close(&events);
}

TEST_F_TIMEOUT(sched, without_a_limit_hangs_bring_no_quarantine, 60)
{
	struct load *l = self->load;
	unsigned int i;

	ASSERT_EQ(0, nl_dev_set_hang_limit(&self->nl, VMM_PARENT, 0));
	ASSERT_EQ(0, load_add(self, 64));
	for (i = 0; i < MGPU_HANG_LIMIT_DEFAULT + 1; i++)
		EXPECT_EQ(VIRTIO_GPU_RESP_ERR_UNSPEC,
			  flush_hanging(self, 0, 0, 200));
	EXPECT_EQ(OK, flush_as(&l->vm, 0, l->job));
}

TEST_F_TIMEOUT(sched, a_machine_whose_contexts_all_hung_is_bounded, 120)
{
	struct load *l = self->load;
	uint32_t i;

	ASSERT_EQ(0, nl_dev_set_hang_limit(&self->nl, VMM_PARENT, 0));
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

/* Return whether @source charges a job in time, under load. */
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
		pid = mgpud_start();
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

/* CPU time of mgpu_soft's first engine thread, nanoseconds; 0 if it is not found. */
static uint64_t engine_thread_ns(void)
{
	uint64_t ns = 0;
	char line[64];
	FILE *f;

	f = popen("cat /proc/$(pgrep -x mgpu_soft/0)/schedstat", "r");
	if (!f)
		return 0;
	if (fgets(line, sizeof(line), f))
		ns = strtoull(line, NULL, 10);
	pclose(f);
	return ns;
}

#define JUNK_SEGS	1023	/* of an invalid command; its answer is one more */
#define JUNK_LEN	15	/* bytes of each: less than an engine thread reads */
#define JUNK_RUN	8	/* commands, of which the first is a flush */

/*
 * Fill the ring with small flushes that have invalid commands behind them, of as many
 * segments as a command may have.  Each entry of the ring is a chain of its own, which
 * stays; junk_send() makes all entries available that were used.
 */
static void junk_start(struct __test_metadata *_metadata, struct load *l)
{
	struct virtio_gpu_resource_flush *flush = vm_alloc(&l->vm, 4096, 4096);
	struct virtio_gpu_ctrl_hdr *junk = vm_alloc(&l->vm, 4096, 4096);
	struct vring_desc *good = vm_alloc(&l->vm, 4096, 4096);
	struct vring_desc *bad = vm_alloc(&l->vm, 16384, 4096);
	struct vmm_vq *vq = &l->vm.vq[VMM_CONTROL];
	uint16_t i;

	ASSERT_TRUE(flush && junk && good && bad);
	gpu_hdr(&flush->hdr, VIRTIO_GPU_CMD_RESOURCE_FLUSH);
	flush->resource_id = 1;
	flush->r = l->job;
	good[0] = (struct vring_desc){ vm_addr(&l->vm, flush), sizeof(*flush),
				       VRING_DESC_F_NEXT, 1 };
	good[1] = (struct vring_desc){ vm_addr(&l->vm, flush) + 2048, 24,
				       VRING_DESC_F_WRITE, 0 };
	gpu_hdr(junk, 0x0fff);
	for (i = 0; i < JUNK_SEGS; i++)
		bad[i] = (struct vring_desc){ vm_addr(&l->vm, junk), JUNK_LEN,
					      VRING_DESC_F_NEXT, i + 1 };
	bad[i] = (struct vring_desc){ vm_addr(&l->vm, junk) + 2048, 24,
				      VRING_DESC_F_WRITE, 0 };
	for (i = 0; i < vq->size; i++) {
		bool first = i % JUNK_RUN == 0;

		vq->desc[i] = (struct vring_desc){
			vm_addr(&l->vm, first ? good : bad),
			16 * (first ? 2 : JUNK_SEGS + 1),
			VRING_DESC_F_INDIRECT, 0
		};
		vq->avail->ring[i] = i;
	}
}

static int junk_send(struct load *l)
{
	struct vmm_vq *vq = &l->vm.vq[VMM_CONTROL];
	uint16_t idx = __atomic_load_n(&vq->used->idx, __ATOMIC_ACQUIRE) +
		       vq->size;

	if (vq->avail->idx == idx)
		return 0;
	__atomic_store_n(&vq->avail->idx, idx, __ATOMIC_RELEASE);
	return vq_kick(&l->vm, VMM_CONTROL);
}

/*
 * An engine thread that answers a vGPU and takes its next commands does so in the vGPU's
 * time: all that the thread does but choosing jobs is charged.
 */
TEST_F_TIMEOUT(sched, engine_time_on_the_ring_is_charged, 120)
{
	uint64_t charged, ran, end;
	struct load *l = self->load;

	ASSERT_EQ(0, load_add(self, 16));
	junk_start(_metadata, l);
	ASSERT_LT(0, engine_thread_ns());
	charged = engine_ns(self, 0);
	ran = engine_thread_ns();
	end = now_ms() + 2000;
	while (now_ms() < end) {
		ASSERT_EQ(0, junk_send(l));
		usleep(200);
	}
	charged = engine_ns(self, 0) - charged;
	ran = engine_thread_ns() - ran;
	TH_LOG("charged %lu us of %lu us of the engine's thread",
	       charged / 1000, ran / 1000);
	EXPECT_LT(0, nl_stat(&self->nl, l->vm.uuid,
			     MGPU_A_STATS_COMMAND_ERRORS));
	EXPECT_LT(ran, charged * 4);
	EXPECT_EQ(0, ioctl(l->vm.device, VFIO_DEVICE_RESET));
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
