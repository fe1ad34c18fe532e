// SPDX-License-Identifier: GPL-2.0-only
/* Both control loops in one thread. */
#include <errno.h>
#include <limits.h>
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
#include <json-c/json.h>

#include "daemon.h"
#include "server/notify.h"
#include "config/table.h"

#define PRIORITY	(-15)
#define NSEC		1000000000ULL

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC + (uint64_t)ts.tv_nsec;
}

static const char *status_text(const struct daemon *d)
{
	return d->trouble[0] ? d->trouble : "dividing CPU and GPU time";
}

static void tell_ready(const struct daemon *d)
{
	notify("READY=1\nSTATUS=%s", status_text(d));
}

/* Log a failure once, and its end. */
static void trouble(struct daemon *d, const char *text)
{
	if (!strcmp(d->trouble, text))
		return;
	if (text[0])
		log_text(LEVEL_ERROR, "trouble", "%s", text);
	else
		log_text(LEVEL_WARNING, "trouble-over", "control works again");
	snprintf(d->trouble, sizeof(d->trouble), "%s", text);
	notify("STATUS=%s", status_text(d));
}

/* ---- the kernel's side ---- */

static void disconnect(struct daemon *d)
{
	if (d->preempter)
		d->learned = *preempter_analyse(d->preempter);
	preempter_close(d->preempter);
	d->preempter = NULL;
	observer_close(d->observer);
	d->observer = NULL;
	mgpu_close(d->mgpu);
	d->mgpu = NULL;
}

/* Start the preemption loop; without contexts in the module only the rate loop runs. */
static void watch_contexts(struct daemon *d)
{
	struct mgpu_error err = { .text = "" };
	char why[512];

	if (preempter_open(&d->preempter, &d->config.preempt, !d->opt->dry_run, why,
			   sizeof(why), &err)) {
		log_text(LEVEL_WARNING, "no-preemption", "%s. Continuing without preemption.",
			 err.text);
		return;
	}
	*preempter_analyse(d->preempter) = d->learned;
	if (why[0])
		log_text(LEVEL_WARNING, "no-bpf", "%s Continuing without learning the speed of work.",
			 why);
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
		log_text(LEVEL_WARNING, "no-bpf", "%s Continuing with the kernel module's own accounting.",
			 why);
	watch_contexts(d);
	return 0;
}

/* ---- the state file ---- */

static bool keeps_state(const struct daemon *d)
{
	return d->config.state_file[0] && !d->opt->dry_run;
}

/* Return the figures learned of jobs: the preempter's, or those of the state file. */
static struct analyse *learned(struct daemon *d)
{
	return d->preempter ? preempter_analyse(d->preempter) : &d->learned;
}

static void read_state(struct daemon *d, const char *path)
{
	char why[512];
	int ret;

	ret = statefile_read(path, d->boot, &d->estimate, &d->control, &d->learned, why,
			     sizeof(why));
	d->restored_kinds = d->learned.n;
	d->saved_learned = d->learned.now;
	if (!ret) {
		d->restored = d->estimate.nr_vgpus;
		log_event(LEVEL_INFO, "restored vgpus=%zu kinds=%zu state_file=%s",
			  d->restored, d->restored_kinds, path);
		if (why[0])
			log_text(LEVEL_WARNING, "state-ignored", "state file %s: %s", path,
				 why);
	} else if (ret == -ESTALE && d->restored_kinds) {
		log_text(LEVEL_INFO, "state-ignored",
			 "state file %s: using only what it says of %zu kinds of work, because %s",
			 path, d->restored_kinds, why);
	} else if (ret != -ENOENT) {
		log_text(ret == -ESTALE ? LEVEL_INFO : LEVEL_WARNING, "state-ignored",
			 "state file %s is not used: %s", path, why);
	}
}

static void restore(struct daemon *d)
{
	analyse_init(&d->learned);
	if (d->config.state_file[0])
		read_state(d, d->config.state_file);
	if (d->preempter)
		*preempter_analyse(d->preempter) = d->learned;
}

/* Log each reason once. */
static void not_saved(struct daemon *d, int ret)
{
	const char *why = ret ? strerror(-ret) : "";

	if (!strcmp(d->not_saved, why))
		return;
	snprintf(d->not_saved, sizeof(d->not_saved), "%s", why);
	if (ret)
		log_text(LEVEL_WARNING, "state-not-saved",
			 "cannot write state file %s: %s; a restart will lose the estimates. Correct this, or choose another --state-file or none",
			 d->config.state_file, why);
	else
		log_event(LEVEL_INFO, "state-saved state_file=%s", d->config.state_file);
}

/* Write the state file when it is due and there is state to keep. */
static void save(struct daemon *d, bool last)
{
	const struct analyse *work = learned(d);
	uint64_t now = now_ns();
	char *text;
	int ret;

	if (!keeps_state(d) || (!d->estimate.now_ns && work->now == d->saved_learned))
		return;
	ret = statefile_writer_result(d->writer);
	if (ret)
		not_saved(d, ret);
	if (!last && now - d->saved_ns < d->config.state_period_s * NSEC)
		return;
	text = statefile_make(&d->estimate, &d->control, work, d->boot);
	if (!text)
		return;
	d->saved_ns = now;
	d->saved_learned = work->now;
	if (!last) {
		/* a write that is still under way is recent enough */
		ret = statefile_writer_start(d->writer, d->config.state_file, text);
		if (ret && ret != -EBUSY)
			not_saved(d, ret);
		return;
	}
	statefile_writer_free(d->writer);
	d->writer = NULL;
	not_saved(d, statefile_write(d->config.state_file, text));
	free(text);
}

/* ---- a period ---- */

static void print_would_set(const struct applied *done)
{
	for (size_t j = 0; j < done->changed; j++) {
		if (done->set[j].fps_limit)
			log_event(LEVEL_INFO, "would set vgpu=%u fps_limit=%.3f",
				  done->set[j].id, done->set[j].fps_limit / 1000.0);
		else
			log_event(LEVEL_INFO, "would set vgpu=%u fps_limit=none",
				  done->set[j].id);
	}
}

static int act(struct daemon *d, struct mgpu_error *err)
{
	struct applied done = { 0 };
	int ret;

	ret = apply(&d->applier, d->opt->dry_run ? NULL : d->mgpu, &d->config.set,
		    &d->estimate, &d->plan, &done, err);
	d->changed = done.changed;
	if (d->opt->dry_run && !ret)
		print_would_set(&done);
	free(done.set);
	return ret;
}

/* Log and publish begins and ends of shortfalls. */
static void watch_agreements(struct daemon *d)
{
	struct sla_event *events;
	size_t nr;

	if (sla_watch_update(&d->sla_watch, &d->estimate, &d->plan, &events, &nr))
		return;		/* out of memory: the next period tries again */
	for (size_t i = 0; i < nr; i++) {
		const struct sla_event *e = &events[i];

		log_event(LEVEL_WARNING, "%s vgpu=%u uuid=%s floor=%.2f granted=%.2f%s",
			  e->shortfall ? "sla-shortfall" : "sla-met", e->id, e->uuid,
			  e->floor, e->granted, e->gone ? " gone=yes" : "");
		server_event(d->server, daemon_event(d, e));
	}
	free(events);
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
		/* the module may have been unloaded, and may be loaded again */
		trouble(d, err.text);
		disconnect(d);
		return ret;
	}
	ret = estimate_update(&d->estimate, sample, d->config.set.headroom);
	if (!ret) {
		plan_free(&d->plan);
		ret = settings_decide(&d->config.set, &d->estimate, &d->control,
				      &d->plan);
	}
	if (ret) {
		mgpu_fail(&err, ret, "no plan for this period: %s", strerror(-ret));
	} else {
		watch_agreements(d);
		ret = act(d, &err);
	}
	if (!ret && d->preempter)
		ret = preempter_learn(d->preempter, &err);
	trouble(d, ret ? err.text : "");

	d->took_ms = (double)(now_ns() - start) / 1e6;
	if (!(d->estimate.seconds > 0))
		return ret;	/* the first sample has no sample before it */
	d->periods++;
	if (log_periods())
		daemon_log(d, stdout);
	if (d->json_log)
		daemon_log_json(d, d->json_log);
	server_publish(d->server);
	save(d, false);
	return ret;
}

/* Run the preemption loop. */
static void preempt(struct daemon *d)
{
	struct mgpu_error err = { .text = "" };

	if (!preempter_run(d->preempter, &err))
		return;
	trouble(d, err.text);
	/* connect again in the next period: the module may have been unloaded */
	disconnect(d);
}

/* ---- settings ---- */

static struct json_object *on_state(void *arg)
{
	return daemon_state(arg);
}

/*
 * Set the timer to the end of the period, which begins with the last sample. A late
 * sample does not make the next period short, since rates of a short period are noise.
 */
static int arm(struct daemon *d)
{
	uint64_t length = (uint64_t)d->config.set.period_ms * 1000000, now = now_ns();
	uint64_t next = d->estimate.now_ns + length;
	struct itimerspec t = { 0 };

	if (next < now + length / 2)
		next = now + length;
	t.it_value.tv_sec = (time_t)(next / NSEC);
	t.it_value.tv_nsec = (long)(next % NSEC);
	d->due_ns = next;
	return timerfd_settime(d->timer, TFD_TIMER_ABSTIME, &t, NULL) ? -errno : 0;
}

static bool any_floor(const struct settings *set)
{
	if (set->sla.floor > 0)
		return true;
	for (size_t i = 0; i < set->nr_vgpus; i++)
		if (set->vgpus[i].sla.floor > 0)
			return true;
	return false;
}

static void log_settings(const struct daemon *d, const char *event, const char *more)
{
	const struct settings *set = &d->config.set;
	char text[TABLE_ALL_TEXT];

	table_all(&d->config, text);
	log_event(LEVEL_INFO, "%s %s agreements=%zu%s", event, text, set->nr_vgpus, more);
	if (any_floor(set) && !set->allocator->floors)
		log_text(LEVEL_WARNING, "no-floors",
			 "the allocator %s keeps no floors: choose exact, fea, drf or maxmin, or remove the floors",
			 set->allocator->name);
}

static int on_set(void *arg, struct json_object *settings, struct settings_error *err)
{
	struct daemon *d = arg;
	unsigned int period_ms = d->config.set.period_ms;
	int ret;

	ret = table_json(&d->config, settings, err);
	if (!ret && d->preempter)
		preempter_configure(d->preempter, &d->config.preempt);
	if (!ret && period_ms != d->config.set.period_ms)
		ret = arm(d);
	if (ret)
		return ret;
	log_settings(d, "settings", "");
	return 0;
}

static const struct server_ops server_ops = {
	.state = on_state,
	.set = on_set,
};

static int open_json_log(const struct config *c, FILE **log)
{
	*log = NULL;
	if (!c->json_log[0])
		return 0;
	*log = fopen(c->json_log, "ae");
	if (*log)
		return 0;
	log_text(LEVEL_ERROR, "json-log", "cannot write %s: %s; choose another json_log or none",
		 c->json_log, strerror(errno));
	return -errno;
}

/*
 * Load the configuration again, file and command line, all or none. It replaces settings
 * that came over the socket.
 */
static int take_config(struct daemon *d)
{
	struct config new = { 0 };
	char why[512];
	FILE *log;
	int ret;

	ret = config_load(&new, &d->opt->source, why, sizeof(why));
	if (ret) {
		log_text(LEVEL_ERROR, "reload-refused", "%s; all settings stay as they were",
			 why);
		return ret;
	}
	/* open the log again even under its old name: it may have been rotated */
	ret = open_json_log(&new, &log);
	if (ret) {
		log_text(LEVEL_ERROR, "reload-refused", "all settings stay as they were");
		config_free(&new);
		return ret;
	}
	if (strcmp(new.socket, d->config.socket)) {
		log_text(LEVEL_WARNING, "reload", "socket stays %s until mgpud is restarted; all other settings are in force",
			 d->config.socket);
		strcpy(new.socket, d->config.socket);
	}
	if (d->json_log)
		fclose(d->json_log);
	d->json_log = log;
	config_free(&d->config);
	d->config = new;
	if (d->preempter)
		preempter_configure(d->preempter, &d->config.preempt);
	log_set_mode(new.log);
	return 0;
}

static int reload(struct daemon *d)
{
	unsigned int period_ms = d->config.set.period_ms;
	int ret;

	/* CLOCK_MONOTONIC: newer service managers identify the reload by it */
	notify("RELOADING=1\nMONOTONIC_USEC=%llu\nSTATUS=reading the configuration",
	       (unsigned long long)(now_ns() / 1000));
	ret = take_config(d);
	if (!ret) {
		d->reloads++;
		log_settings(d, "reloaded", d->config.found ? "" : " config=none");
		if (period_ms != d->config.set.period_ms && arm(d))
			return -errno;
	}
	if (ret)
		notify("READY=1\nSTATUS=%s",
		       "the configuration file has a mistake; the settings before it are in force");
	else
		tell_ready(d);
	return 0;
}

/* ---- running ---- */

static int open_events(struct daemon *d)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -errno;
	signal(SIGPIPE, SIG_IGN);
	d->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (d->signals < 0)
		return -errno;
	d->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return d->timer < 0 ? -errno : 0;
}

/* Returns 1 to end, 0 to continue, or -errno. */
static int on_signal(struct daemon *d)
{
	struct signalfd_siginfo info;
	int ret = 0;

	while (!ret && read(d->signals, &info, sizeof(info)) == sizeof(info))
		ret = info.ssi_signo == SIGHUP ? reload(d) : 1;
	return ret;
}

/* Timeout for poll(): the next time of the watchdog or the preempter, -1 for none. */
static int wait_ms(const struct daemon *d)
{
	uint64_t now = now_ns(), wake;
	int ms = watchdog_wait_ms(&d->watchdog, now);

	wake = d->preempter ? preempter_wake_ns(d->preempter) : UINT64_MAX;
	if (wake == UINT64_MAX)
		return ms;
	/* round up, so as not to be early */
	wake = wake > now ? (wake - now + 999999) / 1000000 : 0;
	return ms < 0 || wake < (uint64_t)ms ? (int)(wake < INT_MAX ? wake : INT_MAX) : ms;
}

static int loop(struct daemon *d)
{
	struct pollfd fds[] = {
		{ .fd = d->signals, .events = POLLIN },
		{ .fd = d->timer, .events = POLLIN },
		{ .fd = server_fd(d->server), .events = POLLIN },
		{ .events = POLLIN },
	};

	for (;;) {
		uint64_t ticks;
		int ret;

		/* its descriptor comes and goes with the kernel module */
		fds[3].fd = d->preempter ? preempter_fd(d->preempter) : -1;
		fds[3].revents = 0;
		if (poll(fds, 4, wait_ms(d)) < 0) {
			if (errno != EINTR)
				return -errno;
			continue;
		}
		if (fds[0].revents) {
			ret = on_signal(d);
			if (ret)
				return ret < 0 ? ret : 0;
		}
		if (fds[1].revents && read(d->timer, &ticks, sizeof(ticks)) > 0) {
			ret = period(d);
			if (arm(d))
				return -errno;
			if (d->opt->once && (ret || d->periods))
				return ret;
		}
		if (d->preempter && (fds[3].revents ||
				     now_ns() >= preempter_wake_ns(d->preempter)))
			preempt(d);
		if (fds[2].revents)
			server_run(d->server);
		if (watchdog_due(&d->watchdog, now_ns(), d->due_ns))
			notify("WATCHDOG=1");
	}
}

static int exit_status(int ret)
{
	switch (ret) {
	case 0:
		return END_OK;
	case -EPERM:
	case -EACCES:
		return END_PERMISSION;
	default:
		return END_FAILED;
	}
}

/* Open the socket, the log and the kernel module. Returns an exit status. */
static int set_up(struct daemon *d)
{
	struct mgpu_error err = { .text = "" };
	char why[256];
	int ret;

	/* from now on the loop reads signals */
	ret = open_events(d);
	if (ret) {
		log_text(LEVEL_ERROR, "failed", "cannot wait for events: %s", strerror(-ret));
		return END_FAILED;
	}
	ret = mgpu_open(&d->mgpu, &err);
	if (ret) {
		log_text(LEVEL_ERROR, "failed", "%s", err.text);
		return ret == -ENOENT ? END_MODULE : exit_status(ret);
	}
	mgpu_close(d->mgpu);
	d->mgpu = NULL;
	ret = server_open(&d->server, d->config.socket, &server_ops, d, why, sizeof(why));
	if (ret) {
		log_text(LEVEL_ERROR, "failed", "%s", why);
		return ret == -EBUSY ? END_RUNNING : exit_status(ret);
	}
	ret = open_json_log(&d->config, &d->json_log);
	if (ret)
		return exit_status(ret);
	d->writer = statefile_writer_new();
	if (!d->writer) {
		log_text(LEVEL_ERROR, "failed", "out of memory");
		return END_FAILED;
	}
	ret = connect_kernel(d, &err);
	if (ret) {
		log_text(LEVEL_ERROR, "failed", "%s", err.text);
		return ret == -ENOENT ? END_MODULE : exit_status(ret);
	}
	return END_OK;
}

int daemon_run(struct options *opt)
{
	struct daemon d = {
		.opt = opt,
		.config = opt->config,
		.plan = { .fds = NAN, .fds_best = NAN },
		.timer = -1,
		.signals = -1,
		.start_ns = now_ns(),
	};
	char more[3 * CONFIG_PATH];
	int status, ret;

	memset(&opt->config, 0, sizeof(opt->config));
	log_set_mode(d.config.log);
	statefile_boot(d.boot);
	status = set_up(&d);
	if (status)
		goto out;
	/* run before the VMs that mgpud divides the CPUs among */
	setpriority(PRIO_PROCESS, 0, PRIORITY);
	restore(&d);
	d.saved_ns = d.start_ns;
	snprintf(more, sizeof(more), " bpf=%s charge=%s socket=%s config=%s",
		 observer_bpf(d.observer) ? "yes" : "no",
		 observer_charge(d.observer) ? "bpf" : "module", d.config.socket,
		 d.config.found ? opt->source.path : "none");
	log_settings(&d, "ready", more);
	period(&d);
	watchdog_init(&d.watchdog, getenv("WATCHDOG_USEC"), getenv("WATCHDOG_PID"),
		      getpid(), now_ns());
	ret = arm(&d);
	tell_ready(&d);
	if (!ret)
		ret = loop(&d);
	notify("STOPPING=1");
	save(&d, true);
	if (d.observer && observer_missed(d.observer))
		log_event(LEVEL_WARNING, "bpf-missed events=%llu",
			  (unsigned long long)observer_missed(d.observer));
	if (ret)
		log_text(LEVEL_ERROR, "failed", "%s", d.trouble[0] ? d.trouble : strerror(-ret));
	else
		log_event(LEVEL_INFO, "stopped periods=%llu", (unsigned long long)d.periods);
	status = ret ? exit_status(ret) : END_OK;
out:
	/* limits stay as they are */
	server_close(d.server);
	if (d.timer >= 0)
		close(d.timer);
	if (d.signals >= 0)
		close(d.signals);
	if (d.json_log)
		fclose(d.json_log);
	statefile_writer_free(d.writer);
	disconnect(&d);
	estimate_free(&d.estimate);
	plan_free(&d.plan);
	applier_free(&d.applier);
	sla_watch_free(&d.sla_watch);
	config_free(&d.config);
	return status;
}
