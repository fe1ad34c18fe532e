// SPDX-License-Identifier: GPL-2.0-only
/*
 * Scheduling policies in BPF, loaded by mgpu-policy: they come, change and go
 * while machines keep their rings full; one that breaks its contract is evicted;
 * and the examples do what they promise.
 *
 * Where an order is to be seen, an engine is parked first: mgpu_soft's parameter
 * "hang" keeps it busy until the machine that sent the job is gone.  Jobs that wait
 * meanwhile are then served in the policy's order.
 *
 * Its jobs are flushes that the engine copies.
 * soft: scanout=eager
 * needs: quiet
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kselftest_harness.h>

#include "load.h"
#include "nl.h"
#include "vmm.h"

#define TRACING		"/sys/kernel/tracing"
#define JOB_START	TRACING "/events/mgpu/mgpu_job_start/enable"
#define PIN		"/sys/fs/bpf/mgpu-test"

#define MAX_LOADS	3
#define MAX_STARTS	16384
#define ATTEMPTS	5	/* to be in time for an order */
#define OWN_TURN	900	/* ms; a job that waits longer may be next for that reason */

/* ms; mgpu-policy reads all types of the kernel, which takes its time */
#define LOAD_TIMEOUT	(6 * (uint64_t)VMM_TIMEOUT)

/* Behaviours of test_bpf_policy.bpf.c. */
enum {
	GOOD,
	STARVE,
	STALL,
	PICK_NOBODY,
	PICK_IDLE,
	BAD_QUEUE,
	BAD_INSERT,
	REFUSE,
};

/* mgpu-policy, running, and what it has printed. */
struct loader {
	pid_t pid;
	int out;
	char text[4096];
	size_t len;
};

/* A job that an engine took. */
struct start {
	uint64_t at_ns;
	uint32_t vgpu;
	uint64_t queue_ns;
};

static struct start starts[MAX_STARTS];

/* ---- mgpu-policy ---- */

/* "" when it is not built. */
static const char *program(const char *path)
{
	static char name[512];
	const char *build = getenv("BUILD");

	snprintf(name, sizeof(name), "%s/%s", build ? build : "../../build",
		 path);
	return access(name, R_OK) ? "" : name;
}

/* With the arguments of @line, which spaces separate. */
static int loader_start(struct loader *l, const char *line)
{
	char copy[1024], *argv[32] = { (char *)"mgpu-policy" }, *save;
	const char *path = program("ctl/mgpu-policy");
	int fds[2], n = 1;

	memset(l, 0, sizeof(*l));
	snprintf(copy, sizeof(copy), "%s", line);
	for (char *w = strtok_r(copy, " ", &save); w && n < 31;
	     w = strtok_r(NULL, " ", &save))
		argv[n++] = w;
	if (!*path || pipe2(fds, O_CLOEXEC))
		return -ENOENT;
	l->pid = fork();
	if (!l->pid) {
		dup2(fds[1], STDOUT_FILENO);
		dup2(fds[1], STDERR_FILENO);
		execv(path, argv);
		_exit(127);
	}
	close(fds[1]);
	l->out = fds[0];
	return l->pid < 0 ? -errno : 0;
}

/* Takes what it has printed; false when it has closed its end. */
static bool loader_read(struct loader *l, int timeout_ms)
{
	struct pollfd fd = { .fd = l->out, .events = POLLIN };
	ssize_t n;

	if (poll(&fd, 1, timeout_ms) <= 0)
		return true;
	n = read(l->out, l->text + l->len, sizeof(l->text) - 1 - l->len);
	if (n <= 0)
		return false;
	l->len += (size_t)n;
	return true;
}

/* Its exit status, once it has ended; <0: a signal ended it, or it stays. */
static int loader_wait(struct loader *l)
{
	uint64_t end = now_ms() + LOAD_TIMEOUT;
	int status = -1;

	if (l->pid <= 0)
		return -ECHILD;
	while (loader_read(l, 10) && now_ms() < end)
		;
	close(l->out);
	if (now_ms() >= end)
		kill(l->pid, SIGKILL);
	waitpid(l->pid, &status, 0);
	l->pid = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

/* Runs it to its end. */
static int policy(struct loader *l, const char *line)
{
	int ret = loader_start(l, line);

	return ret ? ret : loader_wait(l);
}

/* ---- the machines ---- */

FIXTURE(policy)
{
	struct nl nl;
	struct nl events;
	struct load load[MAX_LOADS];
	unsigned int nr;
	struct load parked;
	bool is_parked;
	struct loader loader;
};

#define policy_data FIXTURE_DATA(policy)

FIXTURE_SETUP(policy)
{
	memset(self->load, 0, sizeof(self->load));
	memset(&self->loader, 0, sizeof(self->loader));
	self->nr = 0;
	self->is_parked = false;
	ASSERT_EQ(0, nl_open(&self->nl));
	ASSERT_EQ(0, nl_open(&self->events));
	ASSERT_EQ(0, nl_subscribe(&self->events));
	/* No job takes too long: not a parked engine's, not a stalled machine's. */
	ASSERT_EQ(0, nl_dev_set(&self->nl, VMM_PARENT, "weighted",
				MGPU_JOB_TIMEOUT_MAX));
}

FIXTURE_TEARDOWN(policy)
{
	unsigned int i;

	if (self->loader.pid > 0) {
		kill(self->loader.pid, SIGKILL);
		loader_wait(&self->loader);
	}
	unlink(PIN);
	hang_next(0);
	if (self->is_parked)
		vm_delete(&self->parked.vm);
	for (i = 0; i < self->nr; i++)
		vm_delete(&self->load[i].vm);
	sysfs_write(JOB_START, "0");
	nl_dev_set(&self->nl, VMM_PARENT, "weighted",
		   MGPU_JOB_TIMEOUT_DEFAULT);
	nl_close(&self->events);
	nl_close(&self->nl);
}

static int add(policy_data *self, uint32_t side)
{
	int ret = load_open(&self->load[self->nr], side);

	self->nr++;
	return ret;
}

static uint32_t id_of(policy_data *self, struct load *l)
{
	struct nl_vgpu v = { 0 };

	nl_vgpu_get(&self->nl, l->vm.uuid, &v);
	return v.id;
}

static int run(policy_data *self, unsigned int ms)
{
	return load_run(self->load, self->nr, ms);
}

static bool drain(policy_data *self)
{
	return load_drain(self->load, self->nr);
}

static bool in_force(policy_data *self, const char *name)
{
	struct nl_dev d = { 0 };

	return !nl_dev_get(&self->nl, VMM_PARENT, &d) &&
	       !strcmp(d.policy, name);
}

/* Loads a policy; true when it came into force. */
static bool load(policy_data *self, const char *line)
{
	uint64_t end = now_ms() + LOAD_TIMEOUT;
	int ret = loader_start(&self->loader, line);
	bool lives = true;

	while (!ret && lives && now_ms() < end) {
		lives = loader_read(&self->loader, 100);
		if (strstr(self->loader.text, "loaded on " VMM_PARENT))
			return true;
	}
	printf("# '%s' %s, error %d: %s\n", line,
	       lives ? "takes too long" : "ended", ret, self->loader.text);
	return false;
}

static bool load_bad(policy_data *self, int mode, uint32_t victim,
		     unsigned int timeout)
{
	char line[1024];

	snprintf(line, sizeof(line),
		 "load %s dev " VMM_PARENT " timeout %u set mode=%d set victim=%u",
		 program("kselftest/test_bpf_policy.bpf.o"), timeout, mode,
		 victim);
	return load(self, line);
}

/* Runs mgpu-policy to its end while the machines run. */
static int policy_under_load(policy_data *self, struct loader *l,
			     const char *line)
{
	uint64_t end = now_ms() + LOAD_TIMEOUT;
	int ret = loader_start(l, line);

	while (!ret && loader_read(l, 0) && now_ms() < end)
		ret = run(self, 20);
	return ret ? ret : loader_wait(l);
}

/*
 * The next report of a policy that ended, while the machines run; its kind, NONE
 * when none comes.
 */
static uint32_t next_exit(policy_data *self, struct nl_dev *d)
{
	uint64_t end = now_ms() + (uint64_t)VMM_TIMEOUT;
	struct nl_event e;

	memset(d, 0, sizeof(*d));
	while (now_ms() < end) {
		if (nl_event_wait(&self->events, MGPU_CMD_DEV_POLICY_EXIT_NTF,
				  NULL, &e, 10)) {
			*d = e.dev;
			return d->has_exit ? d->exit_kind : ~0u;
		}
		if (self->nr && run(self, 20))
			break;
	}
	return MGPU_POLICY_EXIT_KIND_NONE;
}

/* ---- order ---- */

/* Keeps the engine busy until release(). */
static int park(policy_data *self)
{
	int ret = load_open(&self->parked, 32);

	self->is_parked = true;
	return ret ? ret : load_hang(&self->parked, id_of(self, &self->parked));
}

static void release(policy_data *self)
{
	vm_delete(&self->parked.vm);
	self->is_parked = false;
}

static int trace_begin(void)
{
	int fd = open(TRACING "/trace", O_WRONLY | O_TRUNC | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	close(fd);
	return sysfs_write(JOB_START, "1");
}

/* Read the jobs that engines took since, into starts. Return their number. */
static unsigned int trace_end(void)
{
	FILE *f = fopen(TRACING "/trace", "re");
	unsigned long long queue_ns, seconds, us;
	unsigned int n = 0;
	char line[256], *at, *time;

	sysfs_write(JOB_START, "0");
	while (f && n < MAX_STARTS && fgets(line, sizeof(line), f)) {
		at = strstr(line, "mgpu_job_start: vgpu=");
		if (!at || sscanf(at, "mgpu_job_start: vgpu=%u job=%*u kind=%*u queue_ns=%llu",
				  &starts[n].vgpu, &queue_ns) != 2)
			continue;
		/* TASK-PID [CPU] FLAGS SECONDS.MICROSECONDS: */
		*at = 0;
		time = strrchr(line, '.');
		while (time && time > line && time[-1] != ' ')
			time--;
		if (!time || sscanf(time, "%llu.%llu:", &seconds, &us) != 2)
			continue;
		starts[n].at_ns = seconds * 1000000000 + us * 1000;
		starts[n++].queue_ns = queue_ns;
	}
	if (f)
		fclose(f);
	return n;
}

/* Try who_is_first() once; starts[0] belongs to the machine that was first. */
static int try_order(policy_data *self, unsigned int first, unsigned int ms)
{
	int ret = park(self);

	if (!ret)
		ret = trace_begin();
	if (!ret)
		ret = load_send(&self->load[first]);
	if (!ret) {
		sleep_ms(ms);
		ret = load_send(&self->load[1 - first]);
	}
	if (ret)
		return ret;
	release(self);
	if (!drain(self))
		return -EPROTO;
	if (trace_end() != 2)
		return -ENODATA;
	return starts[0].vgpu != id_of(self, &self->load[0]);
}

/*
 * Return which of the first two machines is served first, 0 or 1, when machine @first
 * sends a job, and @ms later the other one does, while the engine is busy.  Again,
 * some times, when the machine that is served has waited longer than OWN_TURN.
 */
static int who_is_first(policy_data *self, unsigned int first,
			unsigned int ms)
{
	int ret, try = 0;

	for (;;) {
		ret = try_order(self, first, ms);
		if (ret < 0 || ms >= OWN_TURN ||
		    starts[0].queue_ns / 1000000 < OWN_TURN)
			return ret;
		if (++try == ATTEMPTS)
			return -EAGAIN;
		/* So that a limit of 1 frame/s holds back nothing. */
		sleep_ms(1100);
	}
}

/* ---- tests ---- */

static bool is_supported(void)
{
	unsigned int major = 0, minor = 0;
	struct utsname uts;

	if (uname(&uts) ||
	    sscanf(uts.release, "%u.%u", &major, &minor) != 2)
		return false;
	return major > 6 || (major == 6 && minor >= 9);
}

/* In the tests: the harness of older kernels runs them after a skip in setup. */
#define NEEDS_POLICIES() do {						\
	if (!*program("ctl/mgpu-policy"))				\
		SKIP(return, "mgpu-policy is not built");		\
	if (!is_supported())						\
		SKIP(return, "policies in BPF need Linux 6.9");		\
} while (0)

TEST_F(policy, an_older_kernel_names_the_missing_feature)
{
	struct loader l;

	if (!*program("ctl/mgpu-policy"))
		SKIP(return, "mgpu-policy is not built");
	if (is_supported())
		SKIP(return, "this kernel has policies in BPF");
	EXPECT_EQ(1, policy(&l, "load deadline"));
	EXPECT_NE(NULL, strstr(l.text, "need Linux 6.9"));
	EXPECT_TRUE(in_force(self, "weighted"));
}

TEST_F(policy, wrong_calls_are_explained)
{
	static const struct {
		const char *line;
		int status;
		const char *text;
	} calls[] = {
		{ "list now", 2, "unexpected word 'now'" },
		{ "load", 2, "no policy is given" },
		{ "load deadline timeout 99", 2, "100 to 30000" },
		{ "load deadline dev", 2, "no value follows 'dev'" },
		{ "load deadline dev none.7", 1, "none.7" },
		{ "frobnicate", 2, "unknown command 'frobnicate'" },
		{ "unload " PIN, 1, "no link " PIN },
	};
	static const struct {
		const char *line;
		const char *text;
	} loads[] = {
		{ "load fastest", "see mgpu-policy list" },
		{ "load /none/policy.bpf.o", "cannot read" },
		{ "load deadline set default_fps", "is not VAR=VALUE" },
		{ "load deadline set nothing=1", "it has: default_fps" },
		{ "load deadline set default_fps=-1", "is not a value for default_fps" },
		{ "load deadline --pin /tmp/mgpu-test", "/sys/fs/bpf" },
	};
	struct loader l;
	unsigned int i;

	if (!*program("ctl/mgpu-policy"))
		SKIP(return, "mgpu-policy is not built");
	EXPECT_EQ(0, policy(&l, "list"));
	EXPECT_NE(NULL, strstr(l.text, "deadline"));
	EXPECT_NE(NULL, strstr(l.text, "priority"));
	for (i = 0; i < ARRAY_LEN(calls); i++) {
		EXPECT_EQ(calls[i].status, policy(&l, calls[i].line));
		EXPECT_NE(NULL, strstr(l.text, calls[i].text)) {
			TH_LOG("'%s': %s", calls[i].line, l.text);
		}
	}
	for (i = 0; is_supported() && i < ARRAY_LEN(loads); i++) {
		EXPECT_EQ(1, policy(&l, loads[i].line));
		EXPECT_NE(NULL, strstr(l.text, loads[i].text)) {
			TH_LOG("'%s': %s", loads[i].line, l.text);
		}
	}
	EXPECT_TRUE(in_force(self, "weighted"));
}

/* Nothing is lost, done twice or answered out of order meanwhile. */
TEST_F_TIMEOUT(policy, policies_change_under_load, 240)
{
	static const char *const names[] = { "priority", "deadline" };
	uint64_t jobs[MAX_LOADS];
	struct loader l;
	struct nl_dev d;
	unsigned int i;
	char line[128];

	NEEDS_POLICIES();
	ASSERT_EQ(0, add(self, 128));
	ASSERT_EQ(0, add(self, 64));
	for (i = 0; i < 2; i++)
		jobs[i] = nl_stat(&self->nl, self->load[i].vm.uuid,
				  MGPU_A_STATS_JOBS);

	ASSERT_EQ(0, policy_under_load(self, &l, "load deadline --pin " PIN)) {
		TH_LOG("%s", l.text);
	}
	EXPECT_TRUE(in_force(self, "deadline"));
	/* A machine comes while it is in force. */
	ASSERT_EQ(0, add(self, 32));
	jobs[2] = nl_stat(&self->nl, self->load[2].vm.uuid, MGPU_A_STATS_JOBS);
	ASSERT_EQ(0, run(self, 300));

	EXPECT_EQ(1, policy_under_load(self, &l, "load priority"));
	EXPECT_NE(NULL, strstr(l.text, "another BPF policy is in force"));

	for (i = 0; i < 2; i++) {
		snprintf(line, sizeof(line), "replace " PIN " %s", names[i]);
		ASSERT_EQ(0, policy_under_load(self, &l, line)) {
			TH_LOG("%s", l.text);
		}
		EXPECT_EQ(MGPU_POLICY_EXIT_KIND_REPLACED, next_exit(self, &d));
		EXPECT_STREQ(names[1 - i], d.exit_policy);
		EXPECT_STREQ(names[i], d.policy);
		EXPECT_TRUE(in_force(self, names[i]));
		ASSERT_EQ(0, run(self, 300));
	}

	ASSERT_EQ(0, policy_under_load(self, &l, "unload " PIN));
	EXPECT_EQ(MGPU_POLICY_EXIT_KIND_UNLOADED, next_exit(self, &d));
	EXPECT_STREQ("deadline", d.exit_policy);
	EXPECT_STREQ("weighted", d.policy);
	EXPECT_EQ(0, d.exit_code);
	EXPECT_NE(0, access(PIN, F_OK));
	ASSERT_EQ(0, run(self, 300));

	EXPECT_TRUE(drain(self));
	for (i = 0; i < self->nr; i++) {
		EXPECT_EQ(self->load[i].done,
			  nl_stat(&self->nl, self->load[i].vm.uuid,
				  MGPU_A_STATS_JOBS) - jobs[i]);
		EXPECT_EQ(0, nl_stat(&self->nl, self->load[i].vm.uuid,
				     MGPU_A_STATS_JOB_ERRORS));
		EXPECT_LT(0, self->load[i].done);
	}
}

TEST_F_TIMEOUT(policy, a_killed_loader_takes_its_policy_along, 240)
{
	struct nl_dev d;

	NEEDS_POLICIES();
	ASSERT_EQ(0, add(self, 128));
	ASSERT_EQ(0, add(self, 128));
	ASSERT_TRUE(load(self, "load deadline"));
	ASSERT_EQ(0, run(self, 200));
	ASSERT_EQ(0, kill(self->loader.pid, SIGKILL));
	EXPECT_EQ(MGPU_POLICY_EXIT_KIND_UNLOADED, next_exit(self, &d));
	EXPECT_TRUE(in_force(self, "weighted"));
	EXPECT_EQ(-EINTR, loader_wait(&self->loader));

	/* A loader that SIGINT ends takes its policy along, too, and ends with status 0. */
	ASSERT_TRUE(load(self, "load deadline dev " VMM_PARENT));
	ASSERT_EQ(0, kill(self->loader.pid, SIGINT));
	EXPECT_EQ(MGPU_POLICY_EXIT_KIND_UNLOADED, next_exit(self, &d));
	EXPECT_EQ(0, loader_wait(&self->loader));
	ASSERT_EQ(0, run(self, 200));
	EXPECT_TRUE(drain(self));
}

TEST_F_TIMEOUT(policy, a_built_in_policy_that_is_chosen_takes_over, 240)
{
	struct nl_dev d;
	struct loader l;

	NEEDS_POLICIES();
	ASSERT_EQ(0, add(self, 128));
	ASSERT_EQ(0, add(self, 128));
	ASSERT_TRUE(load(self, "load priority"));
	ASSERT_EQ(0, nl_dev_set_policy(&self->nl, VMM_PARENT, "equal"));
	EXPECT_EQ(MGPU_POLICY_EXIT_KIND_SWITCHED, next_exit(self, &d));
	EXPECT_STREQ("priority", d.exit_policy);
	EXPECT_TRUE(in_force(self, "equal"));
	EXPECT_EQ(4, loader_wait(&self->loader));
	EXPECT_NE(NULL, strstr(self->loader.text, "ended: switched"));

	/* The link that is left of a pinned one does no harm, and is no use. */
	ASSERT_EQ(0, policy_under_load(self, &l, "load priority --pin " PIN));
	ASSERT_EQ(0, nl_dev_set_policy(&self->nl, VMM_PARENT, "equal"));
	EXPECT_EQ(MGPU_POLICY_EXIT_KIND_SWITCHED, next_exit(self, &d));
	EXPECT_EQ(1, policy_under_load(self, &l, "replace " PIN " deadline"));
	EXPECT_NE(NULL, strstr(l.text, "has ended"));
	EXPECT_TRUE(in_force(self, "equal"));
	EXPECT_EQ(0, policy(&l, "unload " PIN));
	EXPECT_TRUE(in_force(self, "equal"));
	EXPECT_TRUE(drain(self));
}

/* Loads a policy that fails in a way, and sees that it is evicted for it. */
#define EXPECT_EVICTED(mode, victim, timeout, kind, code, vgpu) do {	\
	struct nl_dev d_;						\
									\
	ASSERT_TRUE(load_bad(self, mode, victim, timeout));		\
	EXPECT_EQ(kind, next_exit(self, &d_));				\
	TH_LOG("%s", d_.exit_message);					\
	EXPECT_STREQ("bad", d_.exit_policy);				\
	EXPECT_EQ(code, d_.exit_code);					\
	if (vgpu)							\
		EXPECT_EQ(vgpu, d_.exit_vgpu);				\
	EXPECT_TRUE(in_force(self, "weighted"));			\
	EXPECT_EQ(3, loader_wait(&self->loader));			\
	EXPECT_NE(NULL, strstr(self->loader.text, d_.exit_message));	\
	/* The machines go on. */					\
	ASSERT_EQ(0, run(self, 100));					\
	EXPECT_TRUE(drain(self));					\
} while (0)

TEST_F_TIMEOUT(policy, a_policy_that_starves_a_vgpu_is_evicted, 240)
{
	uint32_t victim;

	NEEDS_POLICIES();
	ASSERT_EQ(0, add(self, 128));
	ASSERT_EQ(0, add(self, 128));
	victim = id_of(self, &self->load[1]);
	/* If the other one's ring is empty for as long, the engine counts as idle. */
	EXPECT_EVICTED(STARVE, victim, 3000, MGPU_POLICY_EXIT_KIND_STARVED,
		       -ETIMEDOUT, victim);
}

TEST_F_TIMEOUT(policy, a_policy_that_leaves_the_engine_idle_is_evicted, 240)
{
	NEEDS_POLICIES();
	ASSERT_EQ(0, add(self, 128));
	ASSERT_EQ(0, add(self, 128));
	EXPECT_EVICTED(STALL, 0, 300, MGPU_POLICY_EXIT_KIND_STALLED,
		       -ETIMEDOUT, 0);
}

/* The watchdog's longest timeout does not matter for these. */
TEST_F_TIMEOUT(policy, a_policy_that_answers_nonsense_is_evicted_at_once, 240)
{
	uint32_t idle;

	NEEDS_POLICIES();
	ASSERT_EQ(0, add(self, 400));
	ASSERT_EQ(0, add(self, 400));
	ASSERT_EQ(0, add(self, 32));
	self->load[2].depth = 0;
	idle = id_of(self, &self->load[2]);
	EXPECT_EVICTED(PICK_NOBODY, 0, 30000, MGPU_POLICY_EXIT_KIND_ERROR,
		       -ENOENT, 0);
	EXPECT_EVICTED(PICK_IDLE, idle, 30000, MGPU_POLICY_EXIT_KIND_ERROR,
		       -ENOENT, 0);
	EXPECT_EVICTED(BAD_QUEUE, 0, 30000, MGPU_POLICY_EXIT_KIND_ERROR,
		       -EINVAL, 0);
	EXPECT_EVICTED(BAD_INSERT, 0, 30000, MGPU_POLICY_EXIT_KIND_ERROR,
		       -EINVAL, 0);
}

TEST_F_TIMEOUT(policy, a_policy_that_refuses_is_not_loaded, 240)
{
	char line[512];
	struct loader l;

	NEEDS_POLICIES();
	snprintf(line, sizeof(line), "load %s set mode=%d",
		 program("kselftest/test_bpf_policy.bpf.o"), REFUSE);
	EXPECT_EQ(1, policy(&l, line));
	EXPECT_NE(NULL, strstr(l.text, strerror(ENODATA)));
	EXPECT_TRUE(in_force(self, "weighted"));
}

TEST_F_TIMEOUT(policy, is_not_blamed_for_a_job_that_hangs, 240)
{
	NEEDS_POLICIES();
	ASSERT_EQ(0, add(self, 64));
	ASSERT_TRUE(load_bad(self, GOOD, 0, 100));
	ASSERT_TRUE(drain(self));
	ASSERT_EQ(0, park(self));
	ASSERT_EQ(0, load_send(&self->load[0]));
	sleep_ms(1000);
	EXPECT_EQ(1, self->load[0].in_flight);
	EXPECT_TRUE(in_force(self, "bad"));
	release(self);
	EXPECT_TRUE(drain(self));
	EXPECT_TRUE(in_force(self, "bad"));
}

/* ---- the examples ---- */

TEST_F_TIMEOUT(policy, the_earlier_deadline_goes_first, 240)
{
	NEEDS_POLICIES();
	ASSERT_EQ(0, add(self, 64));
	ASSERT_EQ(0, add(self, 64));
	ASSERT_TRUE(load(self, "load deadline timeout 30000"));
	ASSERT_TRUE(drain(self));

	/* 1 frame/s, due in a second, against one of 60, due in 17 ms. */
	ASSERT_EQ(0, nl_vgpu_set(&self->nl, self->load[0].vm.uuid, -1, 1000));
	EXPECT_EQ(1, who_is_first(self, 0, 1));
	/* So that the limit holds back nothing but by its deadline. */
	sleep_ms(1100);
	EXPECT_EQ(1, who_is_first(self, 1, 1));
	sleep_ms(1100);
	/* A job that has waited for so long is due before it. */
	EXPECT_EQ(0, who_is_first(self, 0, 1200));
	EXPECT_TRUE(in_force(self, "deadline"));
}

TEST_F_TIMEOUT(policy, the_higher_class_goes_first, 240)
{
	NEEDS_POLICIES();
	ASSERT_EQ(0, add(self, 64));
	ASSERT_EQ(0, add(self, 64));
	ASSERT_TRUE(load(self, "load priority timeout 30000 set bound_ms=1000"));
	ASSERT_TRUE(drain(self));

	ASSERT_EQ(0, nl_vgpu_set(&self->nl, self->load[1].vm.uuid, 800, -1));
	EXPECT_EQ(1, who_is_first(self, 0, 10));
	EXPECT_EQ(1, who_is_first(self, 1, 10));
	/* Of one class: in turn. */
	ASSERT_EQ(0, nl_vgpu_set(&self->nl, self->load[1].vm.uuid, 199, -1));
	EXPECT_EQ(0, who_is_first(self, 0, 10));
	EXPECT_EQ(1, who_is_first(self, 1, 10));
	/* Over the bound, the lower one. */
	ASSERT_EQ(0, nl_vgpu_set(&self->nl, self->load[1].vm.uuid, 800, -1));
	EXPECT_EQ(0, who_is_first(self, 0, 1200));
	EXPECT_TRUE(in_force(self, "priority"));
}

#define BOUND	200	/* ms */

TEST_F_TIMEOUT(policy, no_vgpu_waits_for_longer_than_the_bound, 240)
{
	uint64_t longest, low_jobs, high_jobs, late, dry;
	uint64_t end = now_ms() + 3 * (uint64_t)VMM_TIMEOUT;
	unsigned int i, n;
	char line[64];
	uint32_t low;

	NEEDS_POLICIES();
	ASSERT_EQ(0, add(self, 512));
	ASSERT_EQ(0, add(self, 64));
	low = id_of(self, &self->load[1]);
	self->load[1].depth = 1;
	ASSERT_EQ(0, nl_vgpu_set(&self->nl, self->load[0].vm.uuid, 1000, -1));
	snprintf(line, sizeof(line), "load priority set bound_ms=%d", BOUND);
	ASSERT_TRUE(load(self, line));

	do {
		longest = 0;
		low_jobs = 0;
		high_jobs = 0;
		late = 0;
		ASSERT_EQ(0, run(self, 200));
		dry = self->load[0].dry;
		ASSERT_EQ(0, trace_begin());
		ASSERT_EQ(0, run(self, 3000));
		n = trace_end();
		dry = self->load[0].dry - dry;
		for (i = 0; i < n; i++) {
			if (starts[i].vgpu != low) {
				high_jobs++;
				continue;
			}
			low_jobs++;
			if (starts[i].queue_ns > longest)
				longest = starts[i].queue_ns;
			/*
			 * A vGPU that waits for longer than the bound is next: had
			 * it waited so long when a job before was chosen, it
			 * would not have been that job's turn.
			 */
			if (i > 1 && starts[i].queue_ns > BOUND * 1000000ull +
			    starts[i].at_ns - starts[i - 2].at_ns)
				late++;
		}
		TH_LOG("%lu jobs of the lower class and %lu of the higher, the longest wait was %lu ms of %d, %lu were late",
		       low_jobs, high_jobs, longest / 1000000, BOUND, late);
		EXPECT_EQ(0, late);
		/* While the higher class has nothing to do, it is the lower one's. */
	} while ((dry || !low_jobs) && now_ms() < end);
	EXPECT_LT(0, low_jobs);
	EXPECT_GT(high_jobs, low_jobs * 2);
	EXPECT_TRUE(drain(self));
	EXPECT_TRUE(in_force(self, "priority"));
}

/* ---- devices ---- */

TEST_F_TIMEOUT(policy, devices_that_come_later_are_taken_over_too, 240)
{
	const char *build = getenv("BUILD"), *kernel = getenv("KERNEL");
	uint64_t end;
	char ko[512];
	int status;

	NEEDS_POLICIES();
	if (!build || !kernel)
		SKIP(return, "BUILD and KERNEL do not say where mgpu_soft.ko is");
	ASSERT_TRUE(load(self, "load deadline"));
	ASSERT_EQ(0, system("rmmod mgpu_soft"));
	/* It stays and waits. */
	sleep_ms(200);
	ASSERT_EQ(0, waitpid(self->loader.pid, &status, WNOHANG));
	snprintf(ko, sizeof(ko), "insmod %s/kmod/%s/mgpu_soft.ko scanout=eager", build,
		 kernel);
	ASSERT_EQ(0, system(ko));
	EXPECT_TRUE(in_force(self, "deadline"));
	ASSERT_EQ(0, add(self, 64));
	ASSERT_EQ(0, run(self, 200));
	EXPECT_TRUE(drain(self));
	vm_delete(&self->load[--self->nr].vm);

	ASSERT_EQ(0, kill(self->loader.pid, SIGTERM));
	EXPECT_EQ(0, loader_wait(&self->loader));
	EXPECT_TRUE(in_force(self, "weighted"));

	/* A policy that is for a device ends with it. */
	ASSERT_TRUE(load(self, "load deadline dev " VMM_PARENT));
	ASSERT_EQ(0, system("rmmod mgpu_soft"));
	end = now_ms() + (uint64_t)VMM_TIMEOUT;
	while (loader_read(&self->loader, 10) && now_ms() < end)
		;
	EXPECT_EQ(4, loader_wait(&self->loader));
	ASSERT_EQ(0, system(ko));
	EXPECT_TRUE(in_force(self, "weighted"));
}

TEST_HARNESS_MAIN
