// SPDX-License-Identifier: GPL-2.0-only
/*
 * VMMs under full load that are killed at random moments, and a back end that is taken
 * from VMMs under load, again and again: neighbours go on, and nothing is left, which is
 * what footprint.h counts.
 *
 * A VMM has three threads: a guest that draws, computes, resets and begins anew, one that
 * maps and unmaps memory that the guest uses, and one that looks at the screen.  A kill
 * comes after a random time, or when one of the threads is at a chosen step.
 *
 * MGPU_ROUNDS is the number of rounds (tests/long/kills.sh: 1,000).  The seed is printed;
 * MGPU_SEED=N sets it: the same steps are chosen, and the threads do the same in the same
 * order, but not at the same moments.
 *
 * Its jobs are flushes that the engine copies.
 * soft: scanout=eager
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kselftest_harness.h>

#include "../../kmod/vfio/device.h"
#include "compute.h"
#include "footprint.h"
#include "neighbour.h"
#include "nl.h"
#include "rounds.h"
#include "vmm.h"

#define DRIVER		"/sys/bus/platform/drivers/mgpu_soft"
#define NR_VICTIMS	2
#define NR_THREADS	3
#define ALIAS		0x100000000ull	/* memory that comes and goes */
#define ALIAS_LEN	(1u << 20)
#define SIDE		256u
#define BURST		8u	/* commands that are under way together */
#define SHORT_MS	60u	/* a kill comes this long after the begin at most */

enum step {
	NO_STEP, OPEN, START, PICTURE, BLOB, CURSOR, COMPUTE, ANSWERS, RESET, CLOSE,
	MAP, UNMAP, LOOK, NR_STEPS,
};

static const char *const step_name[NR_STEPS] = {
	"none", "open", "start", "picture", "blob", "cursor", "compute", "answers",
	"reset", "close", "map", "unmap", "look",
};

/* Memory that the process of a victim shares with the test. */
struct shared {
	atomic_int step[NR_THREADS];
	atomic_int error;
	atomic_bool enough;	/* end in order */
	atomic_ulong commands;
	atomic_ulong broken;	/* waits in vain for a device that needs a reset */
	atomic_ulong lost;	/* the same of one that does not */
};

struct victim {
	pid_t pid;
	char uuid[VMM_UUID_LEN + 1];
	struct shared *shared;
};

/* ---- in a victim's process ---- */

static struct {
	struct vm vm;
	struct shared *shared;
	uint8_t *alias;
	unsigned int seed;
	bool polite;		/* closes the vGPU when it is asked to */
	atomic_bool stop;	/* the two other threads are to end */
	atomic_bool asked;
	pthread_t thread[NR_THREADS];
} me;

static void at(unsigned int thread, enum step step)
{
	me.shared->step[thread] = step;
}

static void *map_and_unmap(void *arg)
{
	unsigned int seed = me.seed + 1;

	(void)arg;
	while (!me.stop) {
		at(1, MAP);
		vm_map(&me.vm, me.alias, ALIAS_LEN, ALIAS);
		if (rand_r(&seed) % 4 == 0)
			usleep((unsigned int)rand_r(&seed) % 3000);
		at(1, UNMAP);
		vm_unmap(&me.vm, ALIAS, ALIAS_LEN);
	}
	at(1, NO_STEP);
	return NULL;
}

static void *look(void *arg)
{
	size_t size = me.vm.region[MGPU_REGION_DISPLAY].size, i;
	unsigned int seed = me.seed + 2;
	static uint8_t copy[1 << 18];
	volatile uint32_t seen = 0;
	uint32_t *p;

	(void)arg;
	while (!me.stop) {
		at(2, LOOK);
		p = mmap(NULL, size, PROT_READ, MAP_SHARED, me.vm.device,
			 (off_t)me.vm.region[MGPU_REGION_DISPLAY].offset);
		for (i = 0; p != MAP_FAILED && i < 16; i++)
			seen += p[(unsigned int)rand_r(&seed) % (size / 4)];
		vm_read(&me.vm, MGPU_REGION_DISPLAY, 0, copy, sizeof(copy));
		if (p != MAP_FAILED)
			munmap(p, size);
		usleep(1000);
	}
	at(2, NO_STEP);
	return NULL;
}

static int begin_threads(void)
{
	me.stop = false;
	return pthread_create(&me.thread[1], NULL, map_and_unmap, NULL) ||
	       pthread_create(&me.thread[2], NULL, look, NULL) ? -EAGAIN : 0;
}

static void end_threads(void)
{
	me.stop = true;
	pthread_join(me.thread[1], NULL);
	pthread_join(me.thread[2], NULL);
}

static int begin_guest(void)
{
	int ret;

	at(0, START);
	vm_forget(&me.vm);
	/* A reset of the device has turned bus mastering off. */
	ret = vm_discover(&me.vm);
	return ret ? ret : vm_start_with(&me.vm, RENDER_FEATURES);
}

static int begin_vmm(const char *uuid)
{
	uint64_t end = now_ms() + (uint64_t)VMM_TIMEOUT;
	int ret;

	at(0, OPEN);
	/* The group of a killed VMM's vGPU is closed a moment after the vGPU. */
	do
		ret = vm_open(&me.vm, uuid, VMM_RAM);
	while (ret == -EBUSY && now_ms() < end && !usleep(1000));
	if (!ret && me.polite)
		ret = irq_request(&me.vm);
	if (!ret)
		ret = begin_threads();
	return ret ? ret : begin_guest();
}

/* Whether a command got no answer, for which there must be a reason. */
static bool failed(int ret)
{
	if (ret == -ETIMEDOUT && vio_status(&me.vm) & VIRTIO_CONFIG_S_NEEDS_RESET)
		me.shared->broken++;
	else if (ret == -ETIMEDOUT)
		me.shared->lost++;
	return ret < 0;
}

/* Wait for the answers to a burst, whatever they are. */
static int answers(const int *head, unsigned int n)
{
	unsigned int i;
	int ret;

	at(0, ANSWERS);
	for (i = 0; i < n; i++) {
		ret = head[i] < 0 ? head[i] :
			gpu_result(&me.vm, VMM_CONTROL, (uint16_t)head[i], NULL, 0,
				   VMM_TIMEOUT);
		if (failed(ret))
			return ret;
		me.shared->commands++;
	}
	return 0;
}

/* Flushes of a resource: frames. */
static int flushes(uint32_t id)
{
	int head[BURST];
	unsigned int i;

	for (i = 0; i < BURST; i++)
		head[i] = gpu_flush_send(&me.vm, id, gpu_rect(0, 0, SIDE, SIDE));
	return answers(head, BURST);
}

/* The address of memory that stays, or of memory that comes and goes. */
static uint64_t address(void *p)
{
	return rand_r(&me.seed) % 2 ? vm_addr(&me.vm, p) : ALIAS;
}

static int picture(void *p)
{
	struct virtio_gpu_mem_entry e = { .length = SIDE * SIDE * 4 };
	struct virtio_gpu_rect r = gpu_rect(0, 0, SIDE, SIDE);

	at(0, PICTURE);
	e.addr = address(p);
	if (failed(gpu_create_2d(&me.vm, 1, VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM, SIDE, SIDE)) ||
	    failed(gpu_attach_entries(&me.vm, 1, &e, 1)) ||
	    failed(gpu_set_scanout(&me.vm, 1, r)) ||
	    failed(gpu_transfer(&me.vm, 1, r, 0)))
		return -EIO;
	return flushes(1) || failed(gpu_unref(&me.vm, 1)) ? -EIO : 0;
}

static int blob(void *p)
{
	at(0, BLOB);
	if (failed(gpu_create_blob_at(&me.vm, 2, address(p), SIDE * SIDE * 4)) ||
	    failed(gpu_set_scanout_blob(&me.vm, 2, VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM,
					SIDE, SIDE, SIDE * 4, 0)))
		return -EIO;
	return flushes(2) || failed(gpu_unref(&me.vm, 2)) ? -EIO : 0;
}

static int cursor(void *p)
{
	unsigned int i;

	at(0, CURSOR);
	if (failed(gpu_create_2d(&me.vm, 3, VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM, 64, 64)) ||
	    failed(gpu_attach(&me.vm, 3, p, 64 * 64 * 4)) ||
	    failed(gpu_transfer(&me.vm, 3, gpu_rect(0, 0, 64, 64), 0)) ||
	    failed(gpu_cursor(&me.vm, 3, 1, 1, 0, 0)))
		return -EIO;
	for (i = 0; i < BURST; i++)
		if (failed(gpu_cursor_move(&me.vm, (int)i * 7, (int)i * 5)))
			return -EIO;
	return failed(gpu_unref(&me.vm, 3)) ? -EIO : 0;
}

static int compute(void *p)
{
	struct mgpu_compute_cmd c = job_mandelbrot(4, SIDE, SIDE, 400);
	int head[4];
	unsigned int i;

	at(0, COMPUTE);
	if (failed(gpu_create_blob_at(&me.vm, 4, address(p), 1 << 19)) ||
	    failed(ctx_create(&me.vm, 1, MGPU_CAPSET_COMPUTE)) ||
	    failed(ctx_attach(&me.vm, 1, 4)))
		return -EIO;
	for (i = 0; i < ARRAY_LEN(head); i++)
		head[i] = ctx_submit(&me.vm, 1, &c);
	return answers(head, ARRAY_LEN(head)) ||
	       failed(ctx_destroy(&me.vm, 1)) || failed(gpu_unref(&me.vm, 4)) ? -EIO : 0;
}

static int (*const acts[])(void *p) = { picture, blob, cursor, compute };

/* A reset by the VMM or the guest; answers that were owed never come. */
static int reset(void)
{
	/* Now and then all of the guest's memory goes before, its rings with it. */
	if (rand_r(&me.seed) % 4 == 0) {
		at(0, UNMAP);
		if (vm_unmap(&me.vm, VMM_RAM_BASE, me.vm.ram_size))
			return -EIO;
		at(0, MAP);
		if (vm_map(&me.vm, me.vm.ram, me.vm.ram_size, VMM_RAM_BASE))
			return -EIO;
	}
	at(0, RESET);
	if (rand_r(&me.seed) % 2) {
		if (ioctl(me.vm.device, VFIO_DEVICE_RESET))
			return -errno;
	} else if (cc_write(&me.vm, device_status, 0)) {
		return -EIO;
	}
	return begin_guest();
}

static bool asked(void)
{
	struct pollfd fd = { .fd = me.vm.req_irq, .events = POLLIN };

	return me.shared->enough ||
	       (me.polite && me.vm.req_irq >= 0 && poll(&fd, 1, 0) == 1);
}

static int live(const char *uuid)
{
	int ret = begin_vmm(uuid);
	void *p;

	while (!ret) {
		p = vm_alloc(&me.vm, 1 << 20, 4096);
		/* An act may fail, since memory goes under it: the guest begins anew. */
		if (!p || acts[(unsigned int)rand_r(&me.seed) % ARRAY_LEN(acts)](p) ||
		    rand_r(&me.seed) % 3 == 0)
			ret = reset();
		if (asked())
			break;
		if (!ret && rand_r(&me.seed) % 32 == 0) {
			end_threads();
			at(0, CLOSE);
			vm_close(&me.vm);
			ret = begin_vmm(uuid);
		}
	}
	if (!asked())
		return ret;
	end_threads();
	at(0, CLOSE);
	vm_close(&me.vm);
	return 0;
}

/* ---- the test's part ---- */

static int victim_begin(struct victim *v, unsigned int seed, bool polite)
{
	unsigned int i;

	for (i = 0; i < NR_THREADS; i++)
		v->shared->step[i] = NO_STEP;
	v->shared->error = 0;
	v->shared->enough = false;
	v->pid = fork();
	if (v->pid)
		return v->pid < 0 ? -errno : 0;
	me.shared = v->shared;
	me.seed = seed;
	me.polite = polite;
	me.alias = mmap(NULL, ALIAS_LEN, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	v->shared->error = me.alias == MAP_FAILED ? -ENOMEM : live(v->uuid);
	_exit(v->shared->error ? 1 : 0);
}

static bool is_at(const struct victim *v, enum step step)
{
	unsigned int i;

	for (i = 0; i < NR_THREADS; i++)
		if (v->shared->step[i] == (int)step)
			return true;
	return false;
}

/* Wait for a moment at random: some time, or a step, and some time in it. */
static void a_moment(const struct victim *v, unsigned int *seed)
{
	enum step step = 1 + (unsigned int)rand_r(seed) % (NR_STEPS - 1);
	uint64_t end = now_ms() + 1000 * (uint64_t)vmm_slow();
	bool any = rand_r(seed) % 2;
	unsigned int us = (unsigned int)rand_r(seed);

	if (any) {
		usleep(us % (SHORT_MS * 1000 * (unsigned int)vmm_slow()));
		return;
	}
	while (!is_at(v, step) && now_ms() < end)
		usleep(20);
	/* At once, or when it may have got further. */
	if (us & 1)
		usleep(us % 2000);
}

FIXTURE(kills)
{
	struct nl nl;
	struct victim victim[NR_VICTIMS];
	struct neighbour neighbour[2];
	unsigned long at[NR_STEPS];	/* kills while a thread was at the step */
	unsigned int seed;
};

FIXTURE_SETUP(kills)
{
	unsigned int i;

	memset(self->victim, 0, sizeof(self->victim));
	memset(self->neighbour, 0, sizeof(self->neighbour));
	memset(self->at, 0, sizeof(self->at));
	self->seed = seed_of_run();
	TH_LOG("seed %u", self->seed);
	ASSERT_EQ(0, nl_open(&self->nl));
	for (i = 0; i < NR_VICTIMS; i++) {
		self->victim[i].shared = mmap(NULL, sizeof(struct shared),
					      PROT_READ | PROT_WRITE,
					      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		ASSERT_NE(MAP_FAILED, self->victim[i].shared);
	}
}

FIXTURE_TEARDOWN(kills)
{
	unsigned int i;

	for (i = 0; i < NR_VICTIMS; i++) {
		if (self->victim[i].pid > 0) {
			kill(self->victim[i].pid, SIGKILL);
			waitpid(self->victim[i].pid, NULL, 0);
		}
		if (*self->victim[i].uuid && mdev_exists(self->victim[i].uuid))
			EXPECT_EQ(0, mdev_remove(self->victim[i].uuid));
	}
	for (i = 0; i < ARRAY_LEN(self->neighbour); i++)
		EXPECT_TRUE(neighbour_end(&self->neighbour[i]));
	nl_close(&self->nl);
}

#define kills_data FIXTURE_DATA(kills)

/* Kill a victim, and look at what it leaves. */
static void kill_one(struct __test_metadata *_metadata, kills_data *self,
		     struct victim *v)
{
	bool was[NR_STEPS] = { false };
	struct nl_vgpu vgpu;
	unsigned int i;
	int status;

	ASSERT_EQ(0, kill(v->pid, SIGKILL));
	ASSERT_EQ(v->pid, waitpid(v->pid, &status, 0));
	v->pid = 0;
	EXPECT_TRUE(WIFSIGNALED(status)) {
		TH_LOG("a victim ended by itself: %d", v->shared->error);
	}
	for (i = 0; i < NR_THREADS; i++)
		was[v->shared->step[i]] = true;
	for (i = 0; i < NR_STEPS; i++)
		self->at[i] += was[i];
	ASSERT_EQ(0, nl_vgpu_get_closed(&self->nl, v->uuid, &vgpu));
	EXPECT_EQ(0, vgpu.pinned);
	EXPECT_EQ(0, vgpu.mem_used);
	EXPECT_EQ(vgpu.stats[MGPU_A_STATS_ENGINE_NS],
		  vgpu.stats[MGPU_A_STATS_CHARGED_BPF_NS] +
			  vgpu.stats[MGPU_A_STATS_CHARGED_SELF_NS]);
}

/* Kills, of one victim after the other, each of which is begun anew at once. */
static void kills_of(struct __test_metadata *_metadata, kills_data *self,
		     unsigned int rounds, unsigned int *seed)
{
	unsigned int i, n;
	struct victim *v;

	for (n = 0; n < rounds + NR_VICTIMS; n++) {
		v = &self->victim[n % NR_VICTIMS];
		if (v->pid) {
			a_moment(v, seed);
			kill_one(_metadata, self, v);
			/* Now and then the vGPU goes, too. */
			if (rand_r(seed) % 16 == 0) {
				ASSERT_EQ(0, mdev_remove(v->uuid));
				ASSERT_EQ(0, mdev_create("small-render", v->uuid));
			}
		}
		/* The last ones are not replaced. */
		if (n < rounds)
			ASSERT_EQ(0, victim_begin(v, (unsigned int)rand_r(seed), false));
		if (n % 8 == 0) {
			for (i = 0; i < ARRAY_LEN(self->neighbour); i++)
				ASSERT_TRUE(neighbour_goes_on(&self->neighbour[i]));
		}
	}
}

static void report(struct __test_metadata *_metadata, kills_data *self)
{
	unsigned int i;

	for (i = 0; i < NR_STEPS; i++)
		TH_LOG("%lu kills while a thread was at: %s", self->at[i], step_name[i]);
	for (i = 0; i < NR_VICTIMS; i++) {
		TH_LOG("victim: %lu commands of bursts answered, %lu not since the ring was broken",
		       self->victim[i].shared->commands, self->victim[i].shared->broken);
		EXPECT_EQ(0, self->victim[i].shared->lost);
	}
}

/*
 * Wait for a victim that is to end: until it closes the vGPU, or finds that it is gone.
 * Return whether it closed it.
 */
static bool leaves(struct __test_metadata *_metadata, struct victim *v)
{
	/* It may be waiting for an answer, for as long as it waits at most. */
	uint64_t end = now_ms() + 3 * (uint64_t)VMM_TIMEOUT;
	int status = -1;
	pid_t got;

	do {
		got = waitpid(v->pid, &status, WNOHANG);
	} while (!got && now_ms() < end && !usleep(1000));
	EXPECT_EQ(v->pid, got) {
		TH_LOG("a VMM that was asked for its vGPU stays at %s",
		       step_name[v->shared->step[0]]);
	}
	if (!got)
		return false;
	v->pid = 0;
	EXPECT_TRUE(WIFEXITED(status));
	return WEXITSTATUS(status) == 0;
}

/* The load by itself: memory goes under commands, and each of them is answered. */
TEST_F_TIMEOUT(kills, without_them_all_commands_are_answered, 120)
{
	uint64_t end = now_ms() + 5000;
	unsigned int i, n;

	for (i = 0; i < NR_VICTIMS; i++) {
		mdev_uuid_new(self->victim[i].uuid);
		ASSERT_EQ(0, mdev_create("small-render", self->victim[i].uuid));
		ASSERT_EQ(0, victim_begin(&self->victim[i], self->seed + i, false));
	}
	do {
		sleep_ms(100);
		for (i = 0, n = 0; i < NR_VICTIMS; i++)
			n += self->victim[i].shared->commands > 10;
	} while (goes_on(end, n == NR_VICTIMS));
	for (i = 0; i < NR_VICTIMS; i++)
		self->victim[i].shared->enough = true;
	for (i = 0; i < NR_VICTIMS; i++) {
		struct shared *shared = self->victim[i].shared;

		EXPECT_TRUE(leaves(_metadata, &self->victim[i]));
		TH_LOG("%lu commands of bursts, %lu waits for a broken ring",
		       shared->commands, shared->broken);
		EXPECT_LT(10, shared->commands);
		EXPECT_EQ(0, shared->lost);
		EXPECT_EQ(0, shared->error);
	}
}

TEST_F_TIMEOUT(kills, vmms_at_random_moments, 7200)
{
	unsigned int i, seed = self->seed;
	unsigned int rounds = rounds_of_run(60 / (unsigned int)vmm_slow());
	struct footprint before;

	ASSERT_EQ(0, neighbour_begin(&self->neighbour[0], "small"));
	ASSERT_EQ(0, neighbour_begin(&self->neighbour[1], "small-render"));
	for (i = 0; i < NR_VICTIMS; i++) {
		mdev_uuid_new(self->victim[i].uuid);
		ASSERT_EQ(0, mdev_create("small-render", self->victim[i].uuid));
	}
	/* Objects that are allocated once, and caches of freed objects, exist afterwards. */
	kills_of(_metadata, self, 20, &seed);
	footprint_take(&before);
	kills_of(_metadata, self, rounds, &seed);
	EXPECT_TRUE(footprint_kept(&before, rounds));
	report(_metadata, self);
	TH_LOG("%u kills", rounds);
	/* Of a thousand kills, each step has had some. */
	for (i = OPEN; rounds >= 1000 && i < NR_STEPS; i++)
		EXPECT_LT(0, self->at[i]);
	for (i = 0; i < NR_VICTIMS; i++)
		EXPECT_EQ(0, mdev_remove(self->victim[i].uuid));
}

/* ---- the back end ---- */

static void killed(struct __test_metadata *_metadata, struct victim *v)
{
	ASSERT_EQ(0, kill(v->pid, SIGKILL));
	ASSERT_EQ(v->pid, waitpid(v->pid, NULL, 0));
	v->pid = 0;
}

/* Unload the back end as soon as VMMs, which are being killed, let it go. */
static int unload(struct __test_metadata *_metadata, kills_data *self, unsigned int *seed)
{
	uint64_t end = now_ms() + (uint64_t)VMM_TIMEOUT;
	int ret = -EWOULDBLOCK;
	unsigned int i;

	for (i = 0; i < NR_VICTIMS; i++) {
		a_moment(&self->victim[i], seed);
		/* it succeeds when both have their vGPU closed, between two lives of it */
		if (ret)
			ret = module_remove("mgpu_soft");
		EXPECT_TRUE(ret == -EWOULDBLOCK || ret == 0);
		killed(_metadata, &self->victim[i]);
	}
	while (ret && now_ms() < end)
		ret = module_remove("mgpu_soft");
	return ret;
}

/* Unbind the back end; one VMM closes its vGPU when it is asked, the other is killed. */
static bool unbind(struct __test_metadata *_metadata, kills_data *self, unsigned int *seed,
		   unsigned int *polite)
{
	pid_t pid;

	a_moment(&self->victim[0], seed);
	pid = sysfs_write_aside(DRIVER "/unbind", VMM_PARENT);
	if (pid < 0)
		return false;
	a_moment(&self->victim[1], seed);
	killed(_metadata, &self->victim[1]);
	*polite += leaves(_metadata, &self->victim[0]);
	return ends(pid, VMM_TIMEOUT);
}

static void back_end_rounds(struct __test_metadata *_metadata, kills_data *self,
			    unsigned int rounds, unsigned int *seed, unsigned int *polite,
			    unsigned int *unloads)
{
	struct nl_vgpu v;
	unsigned int i, n;

	for (n = 0; n < rounds; n++) {
		for (i = 0; i < NR_VICTIMS; i++) {
			mdev_uuid_new(self->victim[i].uuid);
			ASSERT_EQ(0, mdev_create("small-render", self->victim[i].uuid));
			ASSERT_EQ(0, victim_begin(&self->victim[i],
						  (unsigned int)rand_r(seed), i == 0));
		}
		if (rand_r(seed) % 3 == 0) {
			ASSERT_EQ(0, unload(_metadata, self, seed));
			ASSERT_EQ(0, mdev_count());
			ASSERT_EQ(0, module_insert("mgpu_soft"));
			++*unloads;
		} else {
			ASSERT_TRUE(unbind(_metadata, self, seed, polite));
			ASSERT_EQ(0, mdev_count());
			ASSERT_EQ(0, nl_vgpu_dump(&self->nl, &v, 1));
			ASSERT_EQ(0, sysfs_write(DRIVER "/bind", VMM_PARENT));
		}
		ASSERT_LT(0, mdev_available("small-render"));
	}
}

TEST_F_TIMEOUT(kills, the_back_end_goes_and_comes_under_load, 7200)
{
	unsigned int rounds = rounds_of_run(12), polite = 0, unloads = 0, seed = self->seed;
	struct footprint before;
	int ret;

	ret = module_remove("mgpu_soft");
	ASSERT_EQ(0, ret);
	ret = module_insert("mgpu_soft");
	if (ret == -ENOENT)
		SKIP(return, "BUILD and KERNEL do not say where mgpu_soft.ko is");
	ASSERT_EQ(0, ret);
	back_end_rounds(_metadata, self, 6, &seed, &polite, &unloads);
	footprint_take(&before);
	back_end_rounds(_metadata, self, rounds, &seed, &polite, &unloads);
	EXPECT_TRUE(footprint_kept(&before, rounds));
	TH_LOG("%u rounds: unloaded %u times; %u VMMs closed their vGPU when asked", rounds,
	       unloads, polite);
	EXPECT_LT(0, polite);
	EXPECT_LT(0, unloads);
}

TEST_HARNESS_MAIN
