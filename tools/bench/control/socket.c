// SPDX-License-Identifier: GPL-2.0-only
/*
 * Measure the cost of hostile clients of mgpud's socket for the rate loop.
 *
 * The server, the state and the allocator are mgpud's own; the bench plays the loop. The
 * counters of 1,000 vGPUs are made up, so that no module is needed. 64 clients of four
 * users, none of them root, do their worst: a quarter asks as fast as it can and reads, a
 * quarter asks and never reads, a quarter sends lines without end, and a quarter connects
 * again and again. Windows with and without these clients alternate.
 */
#include <errno.h>
#include <grp.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <json-c/json.h>

#include "../common/bench.h"
#include "daemon.h"
#include "../common/stats.h"

#define VGPUS		1000
#define USERS		4
#define USER_CLIENTS	16
#define FIRST_UID	65530
#define PAIRS_MAX	64
#define PATH		"/tmp/bench-socket"

/* Thread CPU time and instructions. */
struct cost {
	double cpu_ns;
	double instructions;
};

/**
 * struct window - measurements of some periods
 * @work: of the periods' own work
 * @server: of the work for clients
 * @ns: length of the window
 * @late_ns: mean delay of a period's begin
 * @answers: states that the clients read
 */
struct window {
	struct cost work, server;
	double ns;
	double late_ns;
	double answers;
};

/**
 * struct bench - the bench
 * @json: results
 * @periods: periods of a window
 * @pairs: number of windows without and with clients
 * @d: mgpud, without a module
 * @vgpus: the made-up sample
 * @vmms: the made-up sample
 * @perf: counter of instructions, -1 if there is none
 */
struct bench {
	FILE *json;
	unsigned int periods, pairs;
	struct daemon d;
	struct sample_vgpu vgpus[VGPUS];
	struct sample_vmm vmms[VGPUS];
	int perf;
};

static struct options options;

/* ---- the clients ---- */

static int dial(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX, .sun_path = PATH };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		close(fd);
		return -1;
	}
	return fd;
}

static void send_text(int fd, const char *text)
{
	send(fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Read what there is; returns the number of lines. */
static uint64_t read_all(int fd)
{
	static char buf[1 << 16];
	uint64_t lines = 0;
	ssize_t n;

	while ((n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
		for (char *c = buf; (c = memchr(c, '\n', (size_t)(buf + n - c))); c++)
			lines++;
	return lines;
}

/* All connections of a user, as fast as it can, until it is killed. */
static void attack(uint64_t *answers)
{
	int fd[USER_CLIENTS];
	char half[1000];

	memset(half, 'x', sizeof(half) - 1);
	half[sizeof(half) - 1] = '\0';
	for (int k = 0; k < USER_CLIENTS; k++)
		fd[k] = -1;
	for (;;) {
		for (int k = 0; k < USER_CLIENTS; k++) {
			if (fd[k] < 0)
				fd[k] = dial();
			if (fd[k] < 0)
				continue;
			switch (k % 4) {
			case 0:
				send_text(fd[k], "{\"request\":\"get\"}\n");
				__atomic_add_fetch(answers, read_all(fd[k]), __ATOMIC_RELAXED);
				break;
			case 1:
				send_text(fd[k], "{\"request\":\"watch\"}\n");
				break;
			case 2:
				send_text(fd[k], half);
				/* it is closed after the error */
				if (!recv(fd[k], half, 1, MSG_DONTWAIT | MSG_PEEK) ||
				    read_all(fd[k])) {
					close(fd[k]);
					fd[k] = -1;
				}
				break;
			default:
				send_text(fd[k], "{\"request\":\"get\"}\n");
				close(fd[k]);
				fd[k] = -1;
			}
		}
	}
}

static int start_clients(pid_t pid[USERS], uint64_t *answers)
{
	for (int k = 0; k < USERS; k++) {
		pid[k] = fork();
		if (pid[k] < 0)
			return -errno;
		if (pid[k])
			continue;
		/* mgpud runs before them, as before VMs */
		setpriority(PRIO_PROCESS, 0, 19);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (setgroups(0, NULL) || setgid(FIRST_UID) || setuid(FIRST_UID + (uid_t)k))
			_exit(1);
		attack(answers);
	}
	return 0;
}

static void stop_clients(const pid_t pid[USERS])
{
	for (int k = 0; k < USERS; k++)
		kill(pid[k], SIGKILL);
	for (int k = 0; k < USERS; k++)
		waitpid(pid[k], NULL, 0);
}

/* ---- mgpud ---- */

static struct json_object *on_state(void *arg)
{
	return daemon_state(arg);
}

static void on_fresh(void *arg, char *text, size_t size)
{
	daemon_fresh(arg, text, size);
}

static int on_change(void *arg, const struct peer *peer, enum server_change what,
		     struct json_object *value, uint64_t *ticket,
		     struct settings_error *err)
{
	(void)arg;
	(void)peer;
	(void)what;
	(void)value;
	(void)ticket;
	return settings_wrong(err, "request", "nothing changes in this bench");
}

static const struct server_ops ops = {
	.name = "mgpud",
	.state = on_state, .fresh = on_fresh, .change = on_change,
};

static int set_up(struct bench *b)
{
	const struct access access = { .gid = 0, .everyone = true };
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE, .size = sizeof(attr),
		.config = PERF_COUNT_HW_INSTRUCTIONS,
	};
	char why[512];

	options.source.path = "none";
	b->d.opt = &options;
	b->d.plan = (struct plan){ .fds = NAN, .fds_best = NAN };
	b->d.start_ns = now_ns();
	config_default(&b->d.config);
	analyse_init(&b->d.learned);
	if (model_init(&b->d.model) ||
	    model_configure(&b->d.model, &b->d.config.model, false, why, sizeof(why)) ==
	    MODEL_REFUSED)
		return -ENOMEM;
	for (uint32_t j = 0; j < VGPUS; j++) {
		b->vgpus[j] = (struct sample_vgpu){
			.id = j, .open = true, .tgid = j + 1, .weight = 100,
		};
		snprintf(b->vgpus[j].uuid, sizeof(b->vgpus[j].uuid),
			 "%08x-89ab-4def-8123-456789abcdef", j);
		b->vmms[j].tgid = j + 1;
	}
	b->perf = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (server_open(&b->d.server, PATH, &ops, &b->d, why, sizeof(why)) ||
	    server_access(b->d.server, &access, why, sizeof(why))) {
		complain("%s", why);
		return -EIO;
	}
	return 0;
}

static struct cost cost_now(const struct bench *b)
{
	struct timespec ts;
	uint64_t count = 0;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	if (b->perf >= 0 && read(b->perf, &count, sizeof(count)) != sizeof(count))
		count = 0;
	return (struct cost){
		.cpu_ns = (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec,
		.instructions = (double)count,
	};
}

static void add_since(const struct bench *b, struct cost *sum, struct cost begun)
{
	struct cost ended = cost_now(b);

	sum->cpu_ns += ended.cpu_ns - begun.cpu_ns;
	sum->instructions += ended.instructions - begun.instructions;
}

/* A period's work, but for the requests to the module. */
static int period(struct bench *b)
{
	struct daemon *d = &b->d;
	struct sample_dev dev = { .id = 0, .engines = 1 };
	struct sample s = {
		.now_ns = now_ns(), .cpus = 64, .vgpus = b->vgpus, .nr_vgpus = VGPUS,
		.vmms = b->vmms, .nr_vmms = VGPUS, .devs = &dev, .nr_devs = 1,
	};
	int ret;

	for (uint32_t j = 0; j < VGPUS; j++) {
		/* no two alike, and none the same in two periods */
		uint64_t frames = 10 + (j * 7919 + d->periods * 104729) % 50;

		b->vgpus[j].frames += frames;
		b->vgpus[j].frames_total += frames;
		b->vgpus[j].engine_ns += frames * (5000 + j * 3);
		b->vmms[j].cpu_ns += frames * (200000 + j * 100);
	}
	ret = estimate_update(&d->estimate, &s, d->config.set.headroom);
	if (!ret) {
		plan_free(&d->plan);
		ret = settings_decide(&d->config.set, &d->estimate,
				      model_expect(&d->model, &d->config.set, &d->estimate,
						   (uint64_t)time(NULL)),
				      &d->control, &d->plan);
	}
	d->periods++;
	server_publish(d->server, true);
	return ret;
}

/* As mgpud's loop: the period when it is due, and in between the clients. */
static int run_window(struct bench *b, uint64_t *answers, struct window *w)
{
	uint64_t length = (uint64_t)b->d.config.set.period_ms * MS;
	uint64_t begun = now_ns(), due = begun + length, before = *answers;
	struct pollfd p = { .fd = server_fd(b->d.server), .events = POLLIN };

	*w = (struct window){ 0 };
	for (unsigned int k = 0; k < b->periods;) {
		uint64_t at = now_ns();
		struct cost c = cost_now(b);

		if (at >= due) {
			w->late_ns += (double)(at - due) / b->periods;
			if (period(b))
				return -EIO;
			add_since(b, &w->work, c);
			due += length;
			k++;
			continue;
		}
		if (poll(&p, 1, (int)((due - at + MS - 1) / MS)) > 0) {
			server_run(b->d.server);
			add_since(b, &w->server, c);
		}
	}
	w->ns = (double)(now_ns() - begun);
	w->answers = (double)(__atomic_load_n(answers, __ATOMIC_RELAXED) - before);
	return 0;
}

/* ---- results ---- */

static double median_of(const struct window *w, unsigned int n,
			double (*value)(const struct window *w))
{
	double v[PAIRS_MAX];

	for (unsigned int i = 0; i < n; i++)
		v[i] = value(&w[i]);
	return stats_median(v, n);
}

/* CPU time of the loop's thread, part of the period. */
static double part(const struct window *w)
{
	return (w->work.cpu_ns + w->server.cpu_ns) / w->ns;
}

static double server_part(const struct window *w)
{
	return w->server.cpu_ns / w->ns;
}

static double work_ns(const struct window *w)
{
	return w->work.cpu_ns;
}

static double work_instructions(const struct window *w)
{
	return w->work.instructions;
}

static double server_instructions(const struct window *w)
{
	return w->server.instructions;
}

static double late(const struct window *w)
{
	return w->late_ns;
}

static double answers_of(const struct window *w)
{
	return w->answers;
}

static void report(struct bench *b, const struct window *without, const struct window *with)
{
	unsigned int n = b->pairs;
	double added[PAIRS_MAX], worst = 0;

	for (unsigned int i = 0; i < n; i++) {
		added[i] = part(&with[i]) - part(&without[i]);
		worst = fmax(worst, added[i]);
	}
	result(b, "socket",
	       "\"vgpus\": %d, \"clients\": %d, \"period_ms\": %u, \"pairs\": %u, \"periods\": %u, \"added_part\": %.5f, \"added_part_max\": %.5f, \"server_part\": %.5f, \"server_part_without\": %.5f, \"work_ms\": %.3f, \"work_ms_without\": %.3f, \"late_ms\": %.3f, \"late_ms_without\": %.3f, \"answers_per_period\": %.1f",
	       VGPUS, USERS * USER_CLIENTS, b->d.config.set.period_ms, n, b->periods,
	       stats_median(added, n), worst, median_of(with, n, server_part),
	       median_of(without, n, server_part),
	       median_of(with, n, work_ns) / b->periods / 1e6,
	       median_of(without, n, work_ns) / b->periods / 1e6,
	       median_of(with, n, late) / 1e6, median_of(without, n, late) / 1e6,
	       median_of(with, n, answers_of) / b->periods);
	if (b->perf >= 0)
		result(b, "instructions",
		       "\"work\": %.0f, \"work_without\": %.0f, \"server\": %.0f, \"server_without\": %.0f",
		       median_of(with, n, work_instructions) / b->periods,
		       median_of(without, n, work_instructions) / b->periods,
		       median_of(with, n, server_instructions) / b->periods,
		       median_of(without, n, server_instructions) / b->periods);
}

static int measure(struct bench *b)
{
	static struct window without[PAIRS_MAX], with[PAIRS_MAX];
	uint64_t *answers = mmap(NULL, sizeof(*answers), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct window settle;
	pid_t pid[USERS];
	int ret;

	if (answers == MAP_FAILED)
		return -errno;
	ret = run_window(b, answers, &settle);
	for (unsigned int i = 0; i < b->pairs && !ret; i++) {
		ret = run_window(b, answers, &without[i]);
		if (!ret)
			ret = start_clients(pid, answers);
		/* the first requests use up what was saved: leave them out */
		if (!ret)
			ret = run_window(b, answers, &settle);
		if (!ret)
			ret = run_window(b, answers, &with[i]);
		if (!ret) {
			stop_clients(pid);
			ret = run_window(b, answers, &settle);
		}
		fprintf(stderr, "pair %u of %u\n", i + 1, b->pairs);
	}
	if (!ret)
		report(b, without, with);
	return ret;
}

int main(int argc, char **argv)
{
	static const struct bench_part parts[] = {
		{ .name = "socket", .no_device = true },
	};
	struct bench_options o = {
		.usage = "usage: bench-control [--quick] [--json FILE] [socket]\n"
			"Measures what 64 hostile clients of mgpud's socket cost; needs root to become other users.\n",
		.parts = parts, .nr_parts = 1, .json = stdout,
	};
	static struct bench b;
	int ret;

	ret = bench_options(&o, argc, argv);
	if (ret >= 0)
		return ret;
	if (geteuid()) {
		complain("needs root, to play clients of other users");
		return 4;
	}
	signal(SIGPIPE, SIG_IGN);
	b.json = o.json;
	b.pairs = o.quick ? 2 : 10;
	b.periods = o.quick ? 2 : 5;
	conditions_to(b.json, o.quick, "\"bench\": \"control\"");
	ret = set_up(&b);
	if (!ret)
		ret = measure(&b);
	server_close(b.d.server);
	estimate_free(&b.d.estimate);
	plan_free(&b.d.plan);
	model_free(&b.d.model);
	config_free(&b.d.config);
	if (!ret)
		ret = results_end(b.json);
	if (b.json != stdout)
		fclose(b.json);
	return ret ? 1 : 0;
}
