// SPDX-License-Identifier: GPL-2.0-only
/* The loop. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

#include "daemon.h"
#include "notify.h"

#define PRIORITY	(-15)

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Said once, not every period, and again when it is over. */
static void trouble(struct daemon *d, const char *text)
{
	if (!strcmp(d->trouble, text))
		return;
	if (text[0])
		fprintf(stderr, "mgpud: %s\n", text);
	else
		fprintf(stderr, "mgpud: works again\n");
	snprintf(d->trouble, sizeof(d->trouble), "%s", text);
}

/* ---- the kernel's side ---- */

static void disconnect(struct daemon *d)
{
	observer_close(d->observer);
	d->observer = NULL;
	mgpu_close(d->mgpu);
	d->mgpu = NULL;
}

static int connect_kernel(struct daemon *d, struct mgpu_error *err)
{
	char why[1024];
	int ret;

	ret = mgpu_open(&d->mgpu, err);
	if (!ret)
		ret = observer_open(&d->observer, d->mgpu, why, sizeof(why), err);
	if (ret) {
		disconnect(d);
		return ret;
	}
	if (why[0])
		fprintf(stderr, "mgpud: %s Going on with the kernel module's own accounting.\n",
			why);
	return 0;
}

/* ---- a period ---- */

static void print_would_set(const struct applied *done)
{
	for (size_t j = 0; j < done->changed; j++) {
		if (done->set[j].fps_limit)
			printf("would set vgpu=%u fps_limit=%.3f\n", done->set[j].id,
			       done->set[j].fps_limit / 1000.0);
		else
			printf("would set vgpu=%u fps_limit=none\n", done->set[j].id);
	}
}

static int act(struct daemon *d, struct mgpu_error *err)
{
	struct applied done = { 0 };
	int ret;

	ret = apply(&d->applier, d->opt->dry_run ? NULL : d->mgpu, &d->set,
		    &d->estimate, &d->plan, &done, err);
	d->changed = done.changed;
	if (d->opt->dry_run && !ret)
		print_would_set(&done);
	free(done.set);
	return ret;
}

static int period(struct daemon *d)
{
	struct mgpu_error err = { .text = "" };
	const struct sample *sample;
	uint64_t start = now_ns();
	int ret;

	ret = d->mgpu ? 0 : connect_kernel(d, &err);
	if (!ret)
		ret = observer_sample(d->observer, &sample, &err);
	if (ret) {
		/* the module may have been unloaded, and may come back */
		trouble(d, err.text);
		disconnect(d);
		return ret;
	}
	ret = estimate_update(&d->estimate, sample,
			      d->set.headroom);
	if (!ret) {
		plan_free(&d->plan);
		ret = decide(&d->estimate, &d->set, &d->control, &d->plan);
	}
	if (ret)
		mgpu_fail(&err, ret, "no plan for this period: %s", strerror(-ret));
	else
		ret = act(d, &err);
	trouble(d, ret ? err.text : "");

	d->took_ms = (double)(now_ns() - start) / 1e6;
	if (!(d->estimate.seconds > 0))
		return ret;	/* the first one only has something to compare with */
	d->periods++;
	daemon_log(d, stdout);
	if (d->json_log)
		daemon_log_json(d, d->json_log);
	server_publish(d->server);
	return ret;
}

/* ---- what the socket asks for ---- */

static struct json_object *on_state(void *arg)
{
	return daemon_state(arg);
}

/*
 * A period is measured from the sample before. One that came late is not made
 * up for by a short one, whose rates would be noise.
 */
static int arm(struct daemon *d)
{
	uint64_t length = (uint64_t)d->set.period_ms * 1000000, now = now_ns();
	uint64_t next = d->estimate.now_ns + length;
	struct itimerspec t = { 0 };

	if (next < now + length / 2)
		next = now + length;
	t.it_value.tv_sec = (time_t)(next / 1000000000);
	t.it_value.tv_nsec = (long)(next % 1000000000);
	return timerfd_settime(d->timer, TFD_TIMER_ABSTIME, &t, NULL) ? -errno : 0;
}

static int on_set(void *arg, struct json_object *settings, struct settings_error *err)
{
	struct daemon *d = arg;
	struct settings old = d->set;
	int ret;

	ret = settings_json(&d->set, settings, err);
	if (!ret && old.period_ms != d->set.period_ms)
		ret = arm(d);
	if (ret)
		return ret;
	printf("settings policy=%s period_ms=%u iterations=%u beta=%g lambda=%g\n",
	       d->set.policy->name, d->set.period_ms, d->set.iterations,
	       d->set.param.beta, d->set.param.lambda);
	fflush(stdout);
	return 0;
}

static const struct server_ops server_ops = {
	.state = on_state,
	.set = on_set,
};

/* ---- running ---- */

static int open_events(struct daemon *d)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -errno;
	signal(SIGPIPE, SIG_IGN);
	d->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (d->signals < 0)
		return -errno;
	d->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return d->timer < 0 ? -errno : 0;
}

static int loop(struct daemon *d)
{
	struct pollfd fds[] = {
		{ .fd = d->signals, .events = POLLIN },
		{ .fd = d->timer, .events = POLLIN },
		{ .fd = server_fd(d->server), .events = POLLIN },
	};

	for (;;) {
		uint64_t ticks;
		int ret;

		if (poll(fds, 3, -1) < 0 && errno != EINTR)
			return -errno;
		if (fds[0].revents)
			return 0;
		if (fds[1].revents && read(d->timer, &ticks, sizeof(ticks)) > 0) {
			ret = period(d);
			if (arm(d))
				return -errno;
			notify("WATCHDOG=1\nSTATUS=%s", d->trouble[0] ? d->trouble :
			       "dividing CPU and GPU time");
			if (d->opt->once && (ret || d->periods))
				return ret;
		}
		if (fds[2].revents)
			server_run(d->server);
	}
}

int daemon_run(const struct options *opt)
{
	struct daemon d = {
		.opt = opt,
		.set = opt->set,
		.plan = { .fds = NAN, .fds_best = NAN },
		.timer = -1,
		.signals = -1,
		.start_ns = now_ns(),
	};
	struct mgpu_error err = { .text = "" };
	char why[256];
	int ret;

	ret = mgpu_open(&d.mgpu, &err);
	if (ret) {
		fprintf(stderr, "mgpud: %s\n", err.text);
		goto out;
	}
	mgpu_close(d.mgpu);
	d.mgpu = NULL;
	ret = server_open(&d.server, opt->socket, &server_ops, &d, why, sizeof(why));
	if (ret) {
		fprintf(stderr, "mgpud: %s\n", why);
		goto out;
	}
	if (opt->json_log) {
		d.json_log = fopen(opt->json_log, "ae");
		if (!d.json_log) {
			ret = -errno;
			fprintf(stderr, "mgpud: cannot write %s: %s\n", opt->json_log,
				strerror(errno));
			goto out;
		}
	}
	ret = connect_kernel(&d, &err);
	if (ret) {
		fprintf(stderr, "mgpud: %s\n", err.text);
		goto out;
	}
	/* what divides the CPUs must not wait for them behind those it divides */
	setpriority(PRIO_PROCESS, 0, PRIORITY);
	ret = open_events(&d);
	if (ret) {
		fprintf(stderr, "mgpud: cannot wait for events: %s\n", strerror(-ret));
		goto out;
	}
	printf("ready policy=%s period_ms=%u iterations=%u beta=%g lambda=%g bpf=%s charge=%s socket=%s\n",
	       d.set.policy->name, d.set.period_ms, d.set.iterations, d.set.param.beta,
	       d.set.param.lambda, observer_bpf(d.observer) ? "yes" : "no",
	       observer_charge(d.observer) ? "bpf" : "module", opt->socket);
	fflush(stdout);
	period(&d);
	notify("READY=1");
	ret = arm(&d);
	if (!ret)
		ret = loop(&d);
	notify("STOPPING=1");
	if (d.observer && observer_missed(d.observer))
		fprintf(stderr, "mgpud: eBPF missed %llu events\n",
			(unsigned long long)observer_missed(d.observer));
out:
	/* limits stay as they are: VMs go on under their last ones */
	server_close(d.server);
	if (d.timer >= 0)
		close(d.timer);
	if (d.signals >= 0)
		close(d.signals);
	if (d.json_log)
		fclose(d.json_log);
	disconnect(&d);
	estimate_free(&d.estimate);
	plan_free(&d.plan);
	applier_free(&d.applier);
	return ret ? EXIT_FAILURE : EXIT_SUCCESS;
}
