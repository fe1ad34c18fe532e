// SPDX-License-Identifier: GPL-2.0-only
/*
 * mgpud is killed and started again, and its BPF programs come and go, while VMs play
 * and compute: VMs go on, limits stay, the state file stays good, each job is charged
 * once, and nothing accumulates, which is what footprint.h counts.
 *
 * MGPU_ROUNDS is the number of rounds (tests/long/kills.sh: 1,000).  The seed is printed;
 * MGPU_SEED=N sets it.
 *
 * Its jobs are flushes that the engine copies.
 * soft: scanout=eager
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kselftest_harness.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Woverlength-strings"
#include "account.skel.h"
#pragma GCC diagnostic pop

#include "footprint.h"
#include "load.h"
#include "mgpud.h"
#include "neighbour.h"
#include "nl.h"
#include "rounds.h"

#define FOLDER		"/tmp/mgpud-kills"
#define CONFIG		FOLDER "/conf"
#define SOCKET		FOLDER "/socket"
#define STATES	FOLDER "/state"
#define STATE		STATES "/mgpud.state"
#define NR_LOADS	2
#define LOAD_SIDE	"512"
#define CEILING		40	/* frames/s that the first load is promised at most */
/* ms; mgpud reads all types of the kernel, which takes its time */
#define READY_TIMEOUT	(6 * (uint64_t)VMM_TIMEOUT)

static const char *program(const char *path)
{
	static char name[512];
	const char *build = getenv("BUILD");

	snprintf(name, sizeof(name), "%s/%s", build ? build : "../../build", path);
	return name;
}

/* ---- loads: vgpu-load, which is another VMM ---- */

struct player {
	pid_t pid;
	char uuid[VMM_UUID_LEN + 1];
	uint64_t frames;	/* at the last look */
};

static int player_begin(struct player *p)
{
	int fds[2];
	ssize_t n;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	p->pid = fork();
	if (!p->pid) {
		dup2(fds[1], STDOUT_FILENO);
		/* The loads leave little of two processors to the others. */
		setpriority(PRIO_PROCESS, 0, 15);
		execl(program("kselftest/vgpu-load"), "vgpu-load", LOAD_SIDE, NULL);
		_exit(127);
	}
	close(fds[1]);
	n = read(fds[0], p->uuid, VMM_UUID_LEN);
	close(fds[0]);
	return p->pid < 0 || n != VMM_UUID_LEN ? -EIO : 0;
}

static int player_end(struct player *p)
{
	int status = -1;

	if (p->pid > 0) {
		kill(p->pid, SIGTERM);
		waitpid(p->pid, &status, 0);
	}
	p->pid = 0;
	return status;
}

/* ---- mgpud ---- */

static int write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");
	int ret;

	if (!f)
		return -errno;
	ret = fputs(text, f) < 0 ? -EIO : 0;
	return fclose(f) ? -EIO : ret;
}

static int configure(const char *allocator, const char *uuid)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "[mgpud]\nallocator = %s\nperiod_ms = 200\nlog = changes\nsocket = %s\n"
		 "state_file = %s\nstate_period_s = 1\n[vgpu %s]\nceiling = %u\n",
		 allocator, SOCKET, STATE, uuid, CEILING);
	return write_file(CONFIG, text);
}

static pid_t mgpud_begin(void)
{
	char *const argv[] = { "mgpud", "--config", CONFIG, NULL };
	pid_t pid = mgpud_spawn(argv);

	if (pid > 0)
		setpriority(PRIO_PROCESS, (id_t)pid, -15);
	return pid;
}

/* Files of the state's folder but the state itself. */
static unsigned int nr_others(void)
{
	unsigned int n = 0;
	struct dirent *e;
	DIR *d = opendir(STATES);

	while (d && (e = readdir(d)))
		n += e->d_name[0] != '.' && strcmp(e->d_name, "mgpud.state");
	if (d)
		closedir(d);
	return n;
}

FIXTURE(mgpud)
{
	struct nl nl;
	struct player player[NR_LOADS];
	struct neighbour neighbour;
	pid_t mgpud;
	unsigned int seed;
	long long programs, maps;
	unsigned int ready, restored, killed, asked, in_force;
	bool saved;	/* an mgpud has ended in order, with its state kept */
};

#define mgpud_data FIXTURE_DATA(mgpud)

FIXTURE_SETUP(mgpud)
{
	memset(self, 0, sizeof(*self));
	self->seed = seed_of_run();
	TH_LOG("seed %u", self->seed);
	ASSERT_EQ(0, nl_open(&self->nl));
	mkdir(FOLDER, 0700);
	unlink(STATE);
}

FIXTURE_TEARDOWN(mgpud)
{
	unsigned int i;

	if (self->mgpud > 0) {
		kill(self->mgpud, SIGKILL);
		waitpid(self->mgpud, NULL, 0);
	}
	for (i = 0; i < NR_LOADS; i++) {
		if (self->player[i].pid)
			EXPECT_EQ(0, player_end(&self->player[i]));
	}
	EXPECT_TRUE(neighbour_end(&self->neighbour));
	nl_close(&self->nl);
}

/* The limits of frame rates that are in force, millihertz. */
static void limits(struct __test_metadata *_metadata, mgpud_data *self,
		   uint32_t limit[NR_LOADS])
{
	struct nl_vgpu v;
	unsigned int i;

	for (i = 0; i < NR_LOADS; i++) {
		ASSERT_EQ(0, nl_vgpu_get(&self->nl, self->player[i].uuid, &v));
		limit[i] = v.fps_target;
	}
}

/* Wait until all loads have a limit, the first one no more than it is promised; or none. */
static bool await_limits(struct __test_metadata *_metadata, mgpud_data *self, bool some)
{
	uint64_t end = now_ms() + (uint64_t)VMM_TIMEOUT;
	uint32_t limit[NR_LOADS];

	do {
		limits(_metadata, self, limit);
		if (some ? limit[0] && limit[1] && limit[0] <= CEILING * 1000 :
			   !limit[0] && !limit[1])
			return true;
		sleep_ms(10);
	} while (now_ms() < end);
	TH_LOG("limits %u and %u", limit[0], limit[1]);
	return false;
}

/* All VMs have shown a frame since the last look. */
static bool all_play(mgpud_data *self)
{
	uint64_t end = now_ms() + (uint64_t)VMM_TIMEOUT, frames;
	unsigned int i;

	for (i = 0; i < NR_LOADS; i++) {
		struct player *p = &self->player[i];

		do {
			frames = nl_stat(&self->nl, p->uuid, MGPU_A_STATS_FRAMES);
		} while (frames == p->frames && now_ms() < end && !usleep(1000));
		if (frames == p->frames || frames == UINT64_MAX)
			return false;
		p->frames = frames;
	}
	return neighbour_goes_on(&self->neighbour);
}

/* Programs go some time after their process. */
static bool programs_are_gone(mgpud_data *self)
{
	uint64_t end = now_ms() + (uint64_t)VMM_TIMEOUT;

	while (bpf_programs() != self->programs || bpf_maps() != self->maps) {
		if (now_ms() >= end) {
			remark("%lld programs and %lld maps, before: %lld and %lld",
			       bpf_programs(), bpf_maps(), self->programs, self->maps);
			return false;
		}
		sleep_ms(5);
	}
	return true;
}

/* End mgpud; when it is killed, the limits stay as they are from that moment on. */
static void end_mgpud(struct __test_metadata *_metadata, mgpud_data *self, int signal)
{
	uint32_t before[NR_LOADS], after[NR_LOADS];
	bool ready;
	int status;

	if (signal == SIGKILL) {
		/* Standing still it changes none. */
		ASSERT_EQ(0, kill(self->mgpud, SIGSTOP));
		ASSERT_EQ(self->mgpud, waitpid(self->mgpud, &status, WUNTRACED));
		ASSERT_TRUE(WIFSTOPPED(status)) {
			TH_LOG("mgpud ended by itself with status %#x", status);
		}
		limits(_metadata, self, before);
	}
	ready = mgpud_says("ready ");
	ASSERT_EQ(0, kill(self->mgpud, signal));
	ASSERT_EQ(self->mgpud, waitpid(self->mgpud, &status, 0));
	self->mgpud = 0;
	limits(_metadata, self, after);
	if (signal == SIGKILL) {
		EXPECT_EQ(0, memcmp(before, after, sizeof(after)));
	} else {
		/* Only before it is ready, the signal itself may end it. */
		EXPECT_TRUE(status == 0 || (!ready && WIFSIGNALED(status))) {
			TH_LOG("mgpud, %s, ended with status %#x", ready ? "ready" : "not ready",
			       status);
		}
	}
	EXPECT_FALSE(mgpud_says("is not used"));
	if (signal == SIGTERM && ready) {
		EXPECT_NE(0, access(SOCKET, F_OK));
		EXPECT_EQ(0, access(STATE, R_OK));
		EXPECT_EQ(0, nr_others());
	}
	/* mgpud takes over the vGPUs' settings of a good state file. */
	if (ready && self->saved)
		EXPECT_TRUE(mgpud_says("restored vgpus="));
	self->saved |= ready && signal == SIGTERM;
	self->ready += ready;
	self->restored += mgpud_says("restored vgpus=");
	self->killed += signal == SIGKILL;
	self->asked += signal == SIGTERM;
	EXPECT_TRUE(programs_are_gone(self));
}

static void rounds_of(struct __test_metadata *_metadata, mgpud_data *self,
		      unsigned int rounds, unsigned int *seed)
{
	uint32_t before[NR_LOADS], after[NR_LOADS];
	unsigned int i, us, n;

	for (n = 0; n < rounds; n++) {
		limits(_metadata, self, before);
		self->mgpud = mgpud_begin();
		ASSERT_LT(0, self->mgpud);
		us = (unsigned int)rand_r(seed);
		if (rand_r(seed) % 2) {
			/* In the middle of its start. */
			usleep(us % (1000000 * (unsigned int)vmm_slow()));
		} else {
			ASSERT_TRUE(mgpud_await_ready(self->mgpud, READY_TIMEOUT));
			usleep(us % (500000 * (unsigned int)vmm_slow()));
			if (rand_r(seed) % 4 == 0) {
				EXPECT_TRUE(await_limits(_metadata, self, true));
				self->in_force++;
			}
		}
		if (!mgpud_says("ready ")) {
			limits(_metadata, self, after);
			EXPECT_EQ(0, memcmp(before, after, sizeof(after)));
		}
		end_mgpud(_metadata, self, rand_r(seed) % 3 ? SIGKILL : SIGTERM);
		if (n % 4 == 0)
			ASSERT_TRUE(all_play(self));
	}
	for (i = 0; i < NR_LOADS; i++)
		ASSERT_EQ(0, kill(self->player[i].pid, 0));
}

TEST_F_TIMEOUT(mgpud, killed_and_started_again_under_load, 14400)
{
	unsigned int i, rounds = rounds_of_run(4), seed = self->seed;
	struct footprint before;
	char uuid[VMM_UUID_LEN + 1];
	struct nl_vgpu v;

	if (access(program("ctl/mgpud"), X_OK))
		SKIP(return, "mgpud is not built");
	self->programs = bpf_programs();
	self->maps = bpf_maps();
	for (i = 0; i < NR_LOADS; i++)
		ASSERT_EQ(0, player_begin(&self->player[i]));
	ASSERT_EQ(0, neighbour_begin(&self->neighbour, "small-render"));
	ASSERT_EQ(0, configure("exact", self->player[0].uuid));
	/* The first one brings limits into force, and its state into a file. */
	self->mgpud = mgpud_begin();
	ASSERT_TRUE(mgpud_await_ready(self->mgpud, READY_TIMEOUT));
	ASSERT_TRUE(await_limits(_metadata, self, true));
	end_mgpud(_metadata, self, SIGTERM);
	rounds_of(_metadata, self, 2, &seed);
	footprint_take(&before);
	rounds_of(_metadata, self, rounds, &seed);
	EXPECT_TRUE(footprint_kept(&before, rounds));
	TH_LOG("%u rounds: %u ready, %u restored; %u killed, %u asked; %u times limits in force again",
	       rounds, self->ready, self->restored, self->killed, self->asked,
	       self->in_force);
	EXPECT_LT(0, self->ready);
	EXPECT_LT(0, self->restored);

	/* Of a vGPU that has a limit nothing stays when it goes; a new one has none. */
	self->mgpud = mgpud_begin();
	ASSERT_TRUE(mgpud_await_ready(self->mgpud, READY_TIMEOUT));
	ASSERT_TRUE(await_limits(_metadata, self, true));
	end_mgpud(_metadata, self, SIGKILL);
	mdev_uuid_new(uuid);
	ASSERT_EQ(0, mdev_create("small", uuid));
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, uuid, &v));
	EXPECT_EQ(0, v.fps_target);
	EXPECT_EQ(0, v.gpu_limit);
	EXPECT_EQ(0, v.gpu_target);
	EXPECT_EQ(0, mdev_remove(uuid));
	/* And an allocator that sets none takes all away. */
	ASSERT_EQ(0, configure("none", self->player[1].uuid));
	self->mgpud = mgpud_begin();
	ASSERT_TRUE(mgpud_await_ready(self->mgpud, READY_TIMEOUT));
	EXPECT_TRUE(await_limits(_metadata, self, false));
	end_mgpud(_metadata, self, SIGTERM);
}

/* ---- charges ---- */

static uint64_t owed(const struct nl_vgpu *v)
{
	return v->stats[MGPU_A_STATS_ENGINE_NS] - v->stats[MGPU_A_STATS_CHARGED_BPF_NS] -
	       v->stats[MGPU_A_STATS_CHARGED_SELF_NS];
}

TEST_F_TIMEOUT(mgpud, ebpf_comes_and_goes_while_jobs_run, 7200)
{
	unsigned int rounds = rounds_of_run(30), n, seed = self->seed;
	struct footprint none, before;
	struct account_bpf *account;
	struct nl_vgpu v;
	struct load l;
	int ret;

	footprint_take(&none);
	ASSERT_EQ(0, load_open(&l, 256));
	ASSERT_EQ(0, neighbour_begin(&self->neighbour, "small-render"));
	account = account_bpf__open();
	ASSERT_NE(NULL, account);
	bpf_program__set_autoload(account->progs.job_done_count, false);
	bpf_program__set_autoload(account->progs.job_preempt_count, false);
	ret = account_bpf__load(account);
	ASSERT_EQ(0, ret);
	ASSERT_EQ(0, load_run(&l, 1, 20));
	for (n = 0; n < rounds + 10; n++) {
		if (n == 10)
			footprint_take(&before);
		ASSERT_EQ(0, account_bpf__attach(account));
		ASSERT_EQ(0, load_run(&l, 1, (unsigned int)rand_r(&seed) % 20));
		account_bpf__detach(account);
		ASSERT_EQ(0, load_run(&l, 1, (unsigned int)rand_r(&seed) % 20));
		if (n % 10)
			continue;
		ASSERT_TRUE(load_drain(&l, 1));
		ASSERT_EQ(0, nl_vgpu_get(&self->nl, l.vm.uuid, &v));
		EXPECT_EQ(0, owed(&v));
		ASSERT_TRUE(neighbour_goes_on(&self->neighbour));
	}
	EXPECT_TRUE(footprint_kept(&before, rounds));
	account_bpf__destroy(account);
	ASSERT_TRUE(load_drain(&l, 1));
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, l.vm.uuid, &v));
	TH_LOG("%u rounds: engine %llu ns, charged %llu by eBPF and %llu by the module", rounds,
	       (unsigned long long)v.stats[MGPU_A_STATS_ENGINE_NS],
	       (unsigned long long)v.stats[MGPU_A_STATS_CHARGED_BPF_NS],
	       (unsigned long long)v.stats[MGPU_A_STATS_CHARGED_SELF_NS]);
	EXPECT_EQ(0, owed(&v));
	EXPECT_LT(0, v.stats[MGPU_A_STATS_CHARGED_BPF_NS]);
	EXPECT_LT(0, v.stats[MGPU_A_STATS_CHARGED_SELF_NS]);
	/* The same of compute jobs, in the end. */
	neighbour_stop(&self->neighbour);
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, self->neighbour.uuid, &v));
	EXPECT_EQ(0, owed(&v));
	EXPECT_LT(0, v.stats[MGPU_A_STATS_CHARGED_BPF_NS]);
	vm_delete(&l.vm);
	EXPECT_TRUE(neighbour_end(&self->neighbour));
	EXPECT_TRUE(footprint_kept(&none, rounds));
}

TEST_HARNESS_MAIN
