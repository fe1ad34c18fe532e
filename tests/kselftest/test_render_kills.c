// SPDX-License-Identifier: GPL-2.0-only
/*
 * mgpu-renderd, its workers, spares and VMMs that draw are killed (SIGKILL) at random moments,
 * in any order, and hostile guests attack: neighbours go on, and nothing is left.
 *
 * A VMM is a process with a guest that fills a picture and looks at each pixel of it. A
 * guest whose worker was lost resets its device and begins anew. A neighbour is the same
 * with a worker that nothing is done to: it never sees an error.
 *
 * MGPU_ROUNDS is the number of kills (tests/long/kills.sh: 1,000). The seed is printed;
 * MGPU_SEED=N sets it: the same processes are chosen, though not at the same moments.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kselftest_harness.h>

#include "footprint.h"
#include "hostile.h"
#include "rounds.h"

#define TYPE		"small-render"
#define RAM		(16u << 20)
#define SIDE		64u
#define PICTURE		1u
#define CTX		1u
#define NR_VICTIMS	2
#define NR_VMMS		(NR_VICTIMS + 1)
#define NEIGHBOUR	NR_VICTIMS
#define KINDS		4u	/* of processes that are killed */
#define SHORT_MS	300u	/* a kill comes this long after the one before at most */
#define START_MS	(30000 * vmm_slow())
#define BACKOFF_MS	60000	/* the longest pause between two workers */
#define ATTACK_MS	4000	/* length of an attack */
#define JOB_MS		5000	/* job-timeout beside an attack */

/* Memory that a VMM's process shares with the test. */
struct shared {
	atomic_ulong pictures;	/* that were right */
	atomic_ulong wrong;
	atomic_ulong lost;	/* times that the device had to be reset */
	atomic_ulong did;	/* hostile: commands that were answered */
	atomic_int error;	/* that ended it */
};

struct vmm {
	pid_t pid;
	char uuid[VMM_UUID_LEN + 1];
	uint32_t vgpu;
	struct shared *shared;
};

/* ---- in a VMM's process ---- */

static const uint32_t colour[2] = { 0xffff0000, 0xff00ff00 };

/* Fill a picture with one colour after the other; return the error that ended it. */
static int draw(struct vm *vm, struct shared *of)
{
	struct gl_stream s;
	uint32_t *pixels;
	void *stream[2];
	unsigned int n;
	size_t i;
	int ret;

	if (gl_ctx(vm, CTX) != OK)
		return -EIO;
	pixels = gl_picture(vm, CTX, PICTURE, SIDE, SIDE, 0);
	if (!pixels)
		return -EIO;
	for (n = 0; n < 2; n++) {
		gl_begin(&s);
		gl_put_fill(&s, PICTURE, colour[n]);
		stream[n] = vm_alloc(vm, s.n * 4, 4);
		if (!stream[n])
			return -ENOMEM;
		memcpy(stream[n], s.w, s.n * 4);
	}
	for (n = 0;; n ^= 1) {
		ret = gl_result(vm, gl_send_bytes(vm, CTX, ++vm->next_fence, stream[n],
						  s.n * 4, s.n * 4), NULL);
		if (ret == OK)
			ret = gl_fetch(vm, CTX, PICTURE, SIDE, SIDE);
		if (ret != OK)
			return -EIO;
		for (i = 0; i < SIDE * SIDE && pixels[i] == colour[n]; i++)
			;
		if (i == SIDE * SIDE)
			of->pictures++;
		else
			of->wrong++;
	}
}

/* Open a vGPU as soon as there is an mgpu-renderd, and its last VMM has let go. */
static int open_vgpu(struct vm *vm, const char *uuid)
{
	uint64_t end = now_ms() + 2 * (uint64_t)START_MS;
	int ret;

	do
		ret = vm_open(vm, uuid, RAM);
	while ((ret == -EBUSY || ret == -ENODEV || ret == -ETIMEDOUT) && now_ms() < end &&
	       !usleep(20000));
	return ret ? ret : vm_start_with(vm, GL_FEATURES);
}

static int live(const char *uuid, const struct hostile *hostile, unsigned int seed,
		struct shared *of)
{
	struct vm vm;
	int ret = open_vgpu(&vm, uuid);
	size_t used = vm.ram_used;

	if (!ret && hostile)
		return hostile->run(&vm, seed, &of->did);
	while (!ret) {
		draw(&vm, of);
		of->lost++;
		/* Without a worker, all commands fail at once. */
		usleep(20000);
		vm.ram_used = used;
		ret = vm_start_with(&vm, GL_FEATURES);
	}
	return ret;
}

/* ---- the test's part ---- */

static int vmm_begin(struct vmm *v, const struct hostile *hostile, unsigned int seed)
{
	v->shared->error = 0;
	v->pid = fork();
	if (v->pid)
		return v->pid < 0 ? -errno : 0;
	/* It keeps nothing of the test's open. */
	close_range(3, ~0u, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	v->shared->error = live(v->uuid, hostile, seed, v->shared);
	_exit(1);
}

/* Wait until it has shown @n more pictures; none may be wrong. */
static bool goes_on_by(struct vmm *v, unsigned long n, uint64_t ms)
{
	unsigned long want = v->shared->pictures + n;
	uint64_t end = now_ms() + ms;

	while (v->shared->pictures < want && !v->shared->error && now_ms() < end)
		sleep_ms(5);
	if (v->shared->pictures >= want && !v->shared->wrong && !v->shared->error)
		return true;
	remark("VMM of vGPU %u: %lu pictures, %lu wrong, %lu resets, error %d", v->vgpu,
	       v->shared->pictures, v->shared->wrong, v->shared->lost, v->shared->error);
	return false;
}

/* Return whether the process @pid has the channel of a vGPU. */
static bool has_channel(const char *pid, uint32_t vgpu)
{
	char path[64], text[512], *client;
	bool found = false;
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%.16s/fdinfo", pid);
	d = opendir(path);
	while (d && !found && (e = readdir(d))) {
		snprintf(path, sizeof(path), "/proc/%.16s/fdinfo/%.16s", pid, e->d_name);
		if (!isdigit((unsigned char)e->d_name[0]) ||
		    sysfs_read(path, text, sizeof(text)) < 0 ||
		    !strstr(text, "drm-driver:\tmgpu\n"))
			continue;
		client = strstr(text, "drm-client-id:");
		found = client && strtoul(client + strlen("drm-client-id:"), NULL, 10) == vgpu;
	}
	if (d)
		closedir(d);
	return found;
}

/*
 * Find a process whose name begins with @name, or its worker with a vGPU: its process, or 0. One
 * that is ending has its name still.
 */
static pid_t find_process(const char *name, uint32_t vgpu)
{
	DIR *d = opendir("/proc");
	char path[64], comm[32];
	struct dirent *e;
	pid_t found = 0;

	while (d && !found && (e = readdir(d))) {
		snprintf(path, sizeof(path), "/proc/%.16s/comm", e->d_name);
		if (isdigit((unsigned char)e->d_name[0]) &&
		    sysfs_read(path, comm, sizeof(comm)) >= 0 &&
		    !strncmp(comm, name, strlen(name)) &&
		    (!vgpu || has_channel(e->d_name, vgpu)))
			found = (pid_t)atoi(e->d_name);
	}
	if (d)
		closedir(d);
	return found;
}

static pid_t find_worker(uint32_t vgpu)
{
	return find_process("mgpu-worker", vgpu);
}

/*
 * Find a process as find_process() does. It may take the time of a start, or longer after a
 * pause: 0 then.
 */
static pid_t wait_for_process(const char *name, uint32_t vgpu)
{
	uint64_t end = now_ms() + 5000 * (uint64_t)vmm_slow();
	pid_t found;

	while (!(found = find_process(name, vgpu)) && now_ms() < end)
		usleep(1000);
	return found;
}

static bool any_worker(void)
{
	return find_process("mgpu-worker", 0) || find_process("mgpu-spare", 0);
}

static bool workers_left(uint32_t vgpu)
{
	return vgpu ? find_worker(vgpu) : any_worker();
}

/* Wait for the end of the workers of a vGPU, or of all with 0. */
static bool no_worker(uint32_t vgpu)
{
	uint64_t end = now_ms() + (uint64_t)VMM_TIMEOUT;

	while (workers_left(vgpu) && now_ms() < end)
		sleep_ms(20);
	return !workers_left(vgpu);
}

/* Wait until mgpu-renderd has a worker for the next vGPU, which may come after a pause. */
static bool spare_comes(void)
{
	uint64_t end = now_ms() + BACKOFF_MS + (uint64_t)START_MS;

	while (!find_process("mgpu-spare", 0) && now_ms() < end)
		sleep_ms(20);
	return find_process("mgpu-spare", 0);
}

FIXTURE(render_kills)
{
	struct nl nl;
	struct vmm vmm[NR_VMMS];
	pid_t renderd;
	bool killed;		/* an mgpu-renderd, which may have left workers */
	unsigned int seed;
	char log[256];
};

#define kills_data FIXTURE_DATA(render_kills)

/* Start mgpu-renderd, and wait until it serves: 0 or a negative errno. */
static int renderd_begin(kills_data *self)
{
	uint64_t end = now_ms() + (uint64_t)START_MS;
	char program[256], text[4096], device[32], *line;
	int fd;

	snprintf(program, sizeof(program), "%s/ctl/mgpu-renderd", getenv("BUILD"));
	fd = open(self->log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	self->renderd = fork();
	if (!self->renderd) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(fd, 1);
		dup2(fd, 2);
		close_range(3, ~0u, 0);
		execl(program, program, NULL);
		_exit(127);
	}
	close(fd);
	do {
		sleep_ms(20);
		if (sysfs_read(self->log, text, sizeof(text)) < 0)
			continue;
		/* mgpu-renderd writes whole lines. */
		line = strstr(text, "serves mgpu_user.");
		if (line && sscanf(line, "serves %31s", device) == 1)
			return setenv("MGPU_PARENT", device, 1) ? -errno : 0;
		if (waitpid(self->renderd, NULL, WNOHANG)) {
			self->renderd = 0;
			return -ECHILD;
		}
	} while (now_ms() < end);
	return -ETIMEDOUT;
}

static void renderd_kill(kills_data *self)
{
	kill(self->renderd, SIGKILL);
	waitpid(self->renderd, NULL, 0);
	self->renderd = 0;
	self->killed = true;
}

/* Have it end; it removes its device. Return whether it does. */
static bool renderd_end(kills_data *self)
{
	pid_t pid = self->renderd;

	self->renderd = 0;
	kill(pid, SIGTERM);
	return ends(pid, 3 * VMM_TIMEOUT);
}

static int vgpu_new(kills_data *self, struct vmm *v)
{
	struct nl_vgpu info;
	int ret;

	mdev_uuid_new(v->uuid);
	ret = mdev_create(TYPE, v->uuid);
	if (!ret)
		ret = nl_vgpu_get(&self->nl, v->uuid, &info);
	if (!ret)
		v->vgpu = info.id;
	return ret;
}

FIXTURE_SETUP(render_kills)
{
	const char *build = getenv("BUILD"), *out = getenv("OUT");
	unsigned int i;
	int ret;

	memset(self->vmm, 0, sizeof(self->vmm));
	self->renderd = 0;
	self->killed = false;
	self->seed = seed_of_run();
	TH_LOG("seed %u", self->seed);
	snprintf(self->log, sizeof(self->log), "%s/test_render_kills-renderd.log",
		 out ? out : "/tmp");
	ret = module_insert("mgpu_user");
	ASSERT_TRUE(build && (!ret || ret == -EEXIST)) {
		TH_LOG("mgpu_user.ko does not load (%d); BUILD and KERNEL say where it is", ret);
	}
	ASSERT_EQ(0, nl_open(&self->nl));
	ASSERT_EQ(0, renderd_begin(self)) {
		TH_LOG("mgpu-renderd does not serve: see %s", self->log);
	}
	for (i = 0; i < NR_VMMS; i++) {
		self->vmm[i].shared = mmap(NULL, sizeof(struct shared),
					   PROT_READ | PROT_WRITE,
					   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		ASSERT_NE(MAP_FAILED, self->vmm[i].shared);
		ASSERT_EQ(0, vgpu_new(self, &self->vmm[i]));
	}
	ASSERT_EQ(0, vmm_begin(&self->vmm[NEIGHBOUR], NULL, 0));
	ASSERT_TRUE(goes_on_by(&self->vmm[NEIGHBOUR], 1, (uint64_t)START_MS));
	/* A search that finds nothing proves something only if it finds this one. */
	ASSERT_NE(0, find_worker(self->vmm[NEIGHBOUR].vgpu));
	ASSERT_TRUE(any_worker());
}

static void vmm_kill(struct vmm *v)
{
	if (v->pid > 0) {
		kill(v->pid, SIGKILL);
		waitpid(v->pid, NULL, 0);
	}
	v->pid = 0;
}

FIXTURE_TEARDOWN(render_kills)
{
	struct shared *neighbour = self->vmm[NEIGHBOUR].shared;
	unsigned int i;

	if (neighbour) {
		/* It was never without its worker. */
		EXPECT_EQ(0, neighbour->wrong);
		EXPECT_EQ(0, neighbour->lost);
		EXPECT_EQ(0, neighbour->error);
		TH_LOG("neighbour: %lu pictures", neighbour->pictures);
	}
	for (i = 0; i < NR_VMMS; i++) {
		vmm_kill(&self->vmm[i]);
		if (*self->vmm[i].uuid && mdev_exists(self->vmm[i].uuid))
			EXPECT_EQ(0, mdev_remove(self->vmm[i].uuid));
	}
	if (self->renderd)
		EXPECT_TRUE(renderd_end(self));
	/* It has waited for its own. */
	EXPECT_TRUE(self->killed ? no_worker(0) : !any_worker());
	EXPECT_EQ(0, mdev_count());
	EXPECT_EQ(0, module_remove("mgpu_user"));
	nl_close(&self->nl);
}

/* A VMM has ended: its vGPU has nothing any more. */
static void left_nothing(struct __test_metadata *_metadata, kills_data *self, struct vmm *v)
{
	struct nl_vgpu vgpu;

	ASSERT_EQ(0, nl_vgpu_get_closed(&self->nl, v->uuid, &vgpu));
	EXPECT_EQ(0, vgpu.pinned);
	EXPECT_EQ(0, vgpu.mem_used);
}

/* Kills of what there is, at random. Counts those of each kind. */
static void kills_of(struct __test_metadata *_metadata, kills_data *self, unsigned int rounds,
		     unsigned int *seed, unsigned int kills[KINDS])
{
	unsigned int n, kind;
	struct vmm *v;
	pid_t pid;

	for (n = 0; n < rounds; n++) {
		v = &self->vmm[(unsigned int)rand_r(seed) % NR_VICTIMS];
		kind = (unsigned int)rand_r(seed) % KINDS;
		if (rand_r(seed) % 2)
			usleep((unsigned int)rand_r(seed) % (SHORT_MS * 1000));
		/* A spare comes a while after the last one has become a worker. */
		pid = kind == 0 ? wait_for_process("mgpu-worker", v->vgpu) :
			kind == 3 ? wait_for_process("mgpu-spare", 0) : 0;
		if (pid) {
			kill(pid, SIGKILL);
			kills[kind]++;
		} else if (kind == 1) {
			renderd_kill(self);
			kills[1]++;
			usleep((unsigned int)rand_r(seed) % (SHORT_MS * 1000));
			ASSERT_EQ(0, renderd_begin(self));
		} else {
			vmm_kill(v);
			kills[2]++;
			left_nothing(_metadata, self, v);
			if (rand_r(seed) % 4 == 0) {
				ASSERT_EQ(0, mdev_remove(v->uuid));
				ASSERT_EQ(0, vgpu_new(self, v));
			}
			ASSERT_EQ(0, vmm_begin(v, NULL, 0));
		}
		if (n % 8 == 0)
			ASSERT_TRUE(goes_on_by(&self->vmm[NEIGHBOUR], 2,
					       (uint64_t)VMM_TIMEOUT));
		/* A victim ends when it cannot go on, which it must be able to. */
		ASSERT_EQ(0, v->shared->error);
		EXPECT_EQ(0, v->shared->wrong);
	}
}

/* Kills, after which each victim draws; then victims end. */
static void kills_and_draws(struct __test_metadata *_metadata, kills_data *self,
			    unsigned int rounds, unsigned int *seed, unsigned int kills[KINDS])
{
	unsigned int i;

	for (i = 0; i < NR_VICTIMS; i++)
		ASSERT_EQ(0, vmm_begin(&self->vmm[i], NULL, 0));
	kills_of(_metadata, self, rounds, seed, kills);
	for (i = 0; i < NR_VICTIMS; i++)
		ASSERT_TRUE(goes_on_by(&self->vmm[i], 2, BACKOFF_MS + 2 * (uint64_t)START_MS));
	for (i = 0; i < NR_VICTIMS; i++) {
		vmm_kill(&self->vmm[i]);
		left_nothing(_metadata, self, &self->vmm[i]);
	}
	for (i = 0; i < NR_VICTIMS; i++)
		EXPECT_TRUE(no_worker(self->vmm[i].vgpu));
	/* It has memory of the kernel. */
	EXPECT_TRUE(spare_comes());
}

TEST_F_TIMEOUT(render_kills, workers_renderd_and_vmms_at_random, 14400)
{
	unsigned int rounds = rounds_of_run(15), seed = self->seed, kills[KINDS] = { 0 }, i;
	struct footprint before;

	/* Objects that are allocated once, and caches of freed objects, exist afterwards. */
	kills_and_draws(_metadata, self, 12, &seed, kills);
	footprint_take(&before);
	memset(kills, 0, sizeof(kills));
	kills_and_draws(_metadata, self, rounds, &seed, kills);
	EXPECT_TRUE(footprint_kept(&before, rounds));
	TH_LOG("kills: %u of workers, %u of mgpu-renderd, %u of VMMs, %u of spares", kills[0],
	       kills[1], kills[2], kills[3]);
	/* Of a thousand kills, each kind has had some. */
	for (i = 0; rounds >= 1000 && i < ARRAY_LEN(kills); i++)
		EXPECT_LT(100, kills[i]);
}

/* tools/bench/render measures how much the neighbour loses. */
TEST_F_TIMEOUT(render_kills, hostile_guests_leave_neighbours_alone, 900)
{
	struct vmm *v = &self->vmm[0];
	uint64_t end, most;
	unsigned int i;

	/* A worker that hangs is ended soon. */
	ASSERT_EQ(0, nl_dev_set(&self->nl, vmm_parent(), NULL, JOB_MS));
	for (i = 0; i < nr_hostiles; i++) {
		unsigned long pictures = self->vmm[NEIGHBOUR].shared->pictures, did;

		v->shared->did = 0;
		ASSERT_EQ(0, vmm_begin(v, &hostiles[i], self->seed));
		/* From its first answer on. */
		end = now_ms() + 3 * (uint64_t)START_MS;
		while (!v->shared->did && now_ms() < end)
			sleep_ms(20);
		did = v->shared->did;
		end = now_ms() + ATTACK_MS;
		most = end + BACKOFF_MS + (uint64_t)START_MS;
		do {
			ASSERT_TRUE(goes_on_by(&self->vmm[NEIGHBOUR], 1,
					       3 * (uint64_t)VMM_TIMEOUT)) {
				TH_LOG("beside %s", hostiles[i].name);
			}
		} while (now_ms() < end || (v->shared->did == did && now_ms() < most));
		/* It did not end before the attack's length had passed. */
		EXPECT_LT(did, v->shared->did);
		EXPECT_EQ(0, v->shared->error);
		vmm_kill(v);
		left_nothing(_metadata, self, v);
		TH_LOG("%s: %lu commands answered, %lu pictures of the neighbour",
		       hostiles[i].name, v->shared->did,
		       self->vmm[NEIGHBOUR].shared->pictures - pictures);
		/* The next one is another VM. */
		ASSERT_EQ(0, mdev_remove(v->uuid));
		ASSERT_EQ(0, vgpu_new(self, v));
	}
}

TEST_HARNESS_MAIN
