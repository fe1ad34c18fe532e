// SPDX-License-Identifier: GPL-2.0-only
/* The service: all parts in one loop. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "agent.h"
#include "api.h"
#include "clock.h"
#include "complain.h"
#include "config.h"
#include "crash.h"
#include "hosts.h"
#include "http.h"
#include "notify.h"
#include "service.h"
#include "steady.h"

#ifndef MGPU_VERSION
#define MGPU_VERSION "unknown"
#endif

#define DAY		86400
#define LEARN_MAX	20000	/* rows of the history that are learned at a start */
#define NR_FDS		(HTTP_FDS + 3)
#define MS_MAX		60000
#define REST_MS		500
#define CLOCK_TELL	60	/* s that a clock may be off without a line in the log */

/**
 * struct service - the service
 * @config: settings
 * @path: configuration file
 * @must: it must be there
 * @store: the database
 * @pool: the pool
 * @effects: its hooks
 * @hosts: the hosts
 * @api: the API
 * @http: its server
 * @agent: server of agents, NULL for none
 * @signals: descriptor of signals
 * @clock: the time of day
 * @clock_told: the log has a line about a clock that was set
 * @changed: something changed since the last look
 * @due: time of the pool's next work, seconds
 * @retain: time of the next deletion of old rows, seconds
 * @rest: the database took nothing: time of the next attempt, now_ns()
 */
static struct service {
	struct config config;
	const char *path;
	int must;
	struct store *store;
	struct pool *pool;
	struct effects effects;
	struct hosts *hosts;
	struct api api;
	struct http *http;
	struct agent *agent;
	int signals;
	struct steady clock;
	bool clock_told;
	bool changed;
	int64_t due;
	int64_t retain;
	uint64_t rest;
} s;

static int64_t real_ns(void)
{
	return (int64_t)clock_ns(CLOCK_REALTIME);
}

static int64_t now(void)
{
	return steady_read(&s.clock, real_ns(), (int64_t)clock_ns(CLOCK_BOOTTIME));
}

/* ---- callbacks ---- */

static void on_job(void *arg, const struct pool_job *job)
{
	(void)arg;
	hosts_add(s.hosts, job);
}

static void on_event(void *arg, const struct pool_event *event)
{
	(void)arg;
	s.api.last_event = event->id;
	if (s.http)
		http_event(s.http);
}

static void on_request(void *arg, uint64_t request)
{
	(void)arg;
	(void)request;
	s.changed = true;
}

static void on_api(void *arg, enum api_change what, const char *name)
{
	(void)arg;
	if (what == API_TOKEN)
		http_end_streams(s.http);
	else if (s.agent)
		agent_key_changed(s.agent, name);
}

static void on_agent_event(void *arg, const struct pool_event *event)
{
	(void)arg;
	effects_log(&s.effects, event);
}

static int on_agent_begin(void *arg)
{
	(void)arg;
	return effects_begin(&s.effects);
}

static int on_agent_commit(void *arg)
{
	(void)arg;
	return effects_commit(&s.effects);
}

/* ---- loading ---- */

static int load_project(const struct pool_project *project, void *arg)
{
	(void)arg;
	return pool_put_project(s.pool, project);
}

static int load_vm(const struct pool_vm *vm, void *arg)
{
	(void)arg;
	return pool_put_vm(s.pool, vm);
}

static int load_gpu(const struct pool_gpu *gpu, void *arg)
{
	struct pool_gpu copy = *gpu;

	(void)arg;
	copy.present = false;
	return pool_put_gpu(s.pool, &copy);
}

/* The clock may have been set back while the service was off. */
static void go_on_from(const struct pool_request *r)
{
	const int64_t times[] = { r->asked, r->chosen, r->attached, r->warned };

	for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++)
		steady_raise(&s.clock, times[i]);
}

static int load_request(const struct pool_request *r, void *arg)
{
	int ret = pool_load_request(s.pool, r);

	(void)arg;
	go_on_from(r);
	if (ret)
		complain("request %llu does not fit the database: its project, VM or GPU is missing",
			 (unsigned long long)r->id);
	return ret;
}

static int load_outcome(const struct pool_outcome *outcome, void *arg)
{
	(void)arg;
	return pool_learn(s.pool, outcome);
}

/* Projects of the configuration, and the one of VMs that have none. */
static int put_projects(void)
{
	struct pool_project fallback = { .weight = POOL_WEIGHT_DEFAULT };
	int ret = 0;

	for (size_t i = 0; i < s.config.nr_projects && !ret; i++) {
		ret = store_put_project(s.store, &s.config.projects[i]);
		ret = ret ? ret : pool_put_project(s.pool, &s.config.projects[i]);
	}
	strcpy(fallback.name, s.config.default_project);
	if (!ret && *fallback.name && !pool_project(s.pool, fallback.name)) {
		ret = store_put_project(s.store, &fallback);
		ret = ret ? ret : pool_put_project(s.pool, &fallback);
	}
	return ret;
}

static int load(void)
{
	struct pool_hooks hooks;
	int ret;

	s.effects = (struct effects){
		.store = s.store, .job = on_job, .event = on_event, .changed = on_request,
	};
	effects_hooks(&s.effects, &hooks);
	s.pool = pool_new(&s.config.pool, &hooks);
	if (!s.pool)
		return -ENOMEM;
	ret = store_projects(s.store, load_project, NULL);
	ret = ret ? ret : put_projects();
	ret = ret ? ret : store_vms(s.store, load_vm, NULL);
	ret = ret ? ret : store_gpus(s.store, load_gpu, NULL);
	ret = ret ? ret : store_open_requests(s.store, load_request, NULL);
	ret = ret ? ret : store_outcomes(s.store, 0, LEARN_MAX, load_outcome, NULL);
	if (ret)
		complain("the database cannot be loaded: %s", ret == -EIO ? store_error(s.store) :
			 strerror(-ret));
	crash_point("load");
	return ret;
}

static bool open_store(void)
{
	char why[POOL_TEXT_MAX];

	if (!store_open(s.config.database, &s.store, why))
		return true;
	complain("%s", why);
	return false;
}

/* ---- starting ---- */

static void warn_exposed(void)
{
	if (s.config.exposed)
		complain("%s: every user can read the password of the database: chmod o-r %s, or name a passfile in the url",
			 s.path, s.path);
}

static bool start_agents(void)
{
	struct agent_setup setup = {
		.pool = s.pool, .store = s.store, .event = on_agent_event,
		.begin = on_agent_begin, .commit = on_agent_commit,
	};
	char why[POOL_TEXT_MAX];

	agent_limits_default(&setup.limits);
	for (size_t i = 0; i < s.config.nr_agents; i++) {
		int fd = agent_listen(s.config.agents[i], why);

		if (fd < 0) {
			complain("listen in [agents]: %s", why);
			return false;
		}
		setup.listeners[setup.nr_listeners++] = fd;
	}
	if (!setup.nr_listeners)
		return true;
	s.agent = agent_new(&setup, why);
	if (!s.agent)
		complain("%s", why);
	return s.agent;
}

static bool start_http(void)
{
	char why[POOL_TEXT_MAX];

	s.api.pool = s.pool;
	s.api.store = s.store;
	s.api.effects = &s.effects;
	s.api.started = now();
	s.api.hosts = hosts_list(s.hosts, &s.api.nr_hosts);
	s.api.changed = on_api;
	s.http = http_new(&s.config, &s.api, why);
	if (!s.http) {
		complain("%s", why);
		return false;
	}
	/* Port 0 is one that the kernel chooses. */
	if (http_port(s.http)) {
		printf("mgpu-poold: listening at port %u\n", http_port(s.http));
		fflush(stdout);
	}
	return true;
}

/* Threads must not take the signals. */
static bool block_signals(void)
{
	static const int all[] = { SIGTERM, SIGINT, SIGHUP };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		sigaddset(&set, all[i]);
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	s.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return s.signals >= 0;
}

static bool start(void)
{
	if (!block_signals()) {
		complain("no signals: %s", strerror(errno));
		return false;
	}
	if (!open_store() || load())
		return false;
	s.hosts = hosts_new(s.pool, s.store, &s.effects);
	if (!s.hosts) {
		complain("libvirt does not start; see the lines before");
		return false;
	}
	/* The socket's lock keeps a second service away from the VMs. */
	if (!start_http() || hosts_set(s.hosts, &s.config))
		return false;
	s.api.hosts = hosts_list(s.hosts, &s.api.nr_hosts);
	return start_agents();
}

static void stop(void)
{
	notify("STOPPING=1");
	agent_free(s.agent);
	http_free(s.http);
	hosts_free(s.hosts);
	pool_free(s.pool);
	effects_free(&s.effects);
	store_close(s.store);
	config_free(&s.config);
}

/* ---- the loop ---- */

/* The id of this event is where streams begin. */
static void tell(const char *what, const char *text)
{
	struct pool_event event = { .time = now(), .actor = "service" };

	snprintf(event.what, sizeof(event.what), "%s", what);
	snprintf(event.text, sizeof(event.text), "%s", text);
	effects_log(&s.effects, &event);
}

static void reload(void)
{
	struct config config;
	char why[POOL_TEXT_MAX];

	notify("RELOADING=1\nMONOTONIC_USEC=%llu", (unsigned long long)(now_ns() / 1000));
	if (config_load(&config, s.path, s.must, why, sizeof(why))) {
		complain("%s; the settings stay as they were", why);
	} else if (strcmp(config.database, s.config.database) ||
		   memcmp(config.agents, s.config.agents, sizeof(config.agents))) {
		complain("%s: url in [database] and listen in [agents] change at a restart only; the settings stay as they were",
			 s.path);
		config_free(&config);
	} else if (http_reload(s.http, &config, why)) {
		complain("%s; the settings stay as they were", why);
		config_free(&config);
	} else {
		config_free(&s.config);
		s.config = config;
		warn_exposed();
		pool_set_settings(s.pool, &config.pool);
		if (put_projects() || hosts_set(s.hosts, &s.config))
			complain("not all projects and hosts are set: %s", store_error(s.store));
		s.api.hosts = hosts_list(s.hosts, &s.api.nr_hosts);
		tell("reload", "new settings");
		s.changed = true;
	}
	notify("READY=1");
}

/* Handle signals. Return whether to go on. */
static bool take_signals(void)
{
	struct signalfd_siginfo info;

	while (read(s.signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo != SIGHUP)
			return false;
		reload();
	}
	return true;
}

/* Hosts and what is due wait while the database takes nothing. */
static void rest(void)
{
	s.rest = now_ns() + REST_MS * UINT64_C(1000000);
}

static bool rests(void)
{
	return now_ns() < s.rest;
}

static void run_hosts(void)
{
	int ret = rests() ? 0 : hosts_run(s.hosts, now());

	if (ret < 0)
		rest();
	else if (ret)
		s.changed = true;
}

/* Do what is due. */
static void run_pool(void)
{
	int64_t t = now();

	if ((!s.changed && t < s.due) || rests())
		return;
	if (effects_begin(&s.effects)) {
		rest();
		return;
	}
	s.changed = false;
	s.due = pool_run(s.pool, t);
	effects_commit(&s.effects);
	http_changed(s.http);
	if (s.agent)
		agent_handle(s.agent, t);
}

static void retain(void)
{
	int64_t t = now(), real = real_ns() / (int64_t)NSEC;
	uint64_t deleted = 0;

	if (t < s.retain)
		return;
	s.retain = t + DAY;
	/* A clock that was far ahead at the start, and is right now, deletes nothing young. */
	t = t < real ? t : real;
	if (!s.config.retention_days)
		return;
	if (store_retain(s.store, t - (int64_t)s.config.retention_days * DAY, &deleted))
		complain("old rows stay: %s", store_error(s.store));
}

/* A clock that was set: without a request there is no lease or idle time for it to end. */
static void look_at_clock(void)
{
	int64_t behind = steady_behind(&s.clock, real_ns());
	bool far = behind > CLOCK_TELL || behind < -CLOCK_TELL;

	if (far && behind > 0 && !pool_request_at(s.pool, 0)) {
		steady_raise(&s.clock, real_ns() / (int64_t)NSEC);
		return;
	}
	if (far && !s.clock_told)
		complain("the clock was set %lld s %s: the service's time follows it by a tenth of the time that passes",
			 (long long)(behind < 0 ? -behind : behind),
			 behind < 0 ? "back" : "ahead");
	s.clock_told = far;
}

static int patience(void)
{
	int64_t t = now();
	int ms = http_patience(s.http);
	int64_t due = s.due < t ? 0 : s.due - t < MS_MAX / 1000 ? (s.due - t) * 1000 : MS_MAX;

	if (rests())
		return ms < REST_MS ? ms : REST_MS;
	if (s.changed)
		return 0;
	/* The clock's seconds begin somewhere within a millisecond's wait. */
	return ms < due ? ms : (int)due + (due > 0);
}

static void serve(void)
{
	struct pollfd p[NR_FDS];
	int fds[HTTP_FDS];

	tell("start", "mgpu-poold " MGPU_VERSION);
	notify("READY=1\nSTATUS=%zu hosts, %s", s.config.nr_hosts, store_kind(s.store));
	while (!effects_failed(&s.effects)) {
		size_t n = 0, nr = http_fds(s.http, fds);

		p[n++] = (struct pollfd){ .fd = s.signals, .events = POLLIN };
		p[n++] = (struct pollfd){ .fd = rests() ? -1 : hosts_fd(s.hosts),
					  .events = POLLIN };
		for (size_t i = 0; i < nr; i++)
			p[n++] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
		if (s.agent)
			p[n++] = (struct pollfd){ .fd = agent_fd(s.agent), .events = POLLIN };
		if (poll(p, n, patience()) < 0 && errno != EINTR) {
			complain("poll: %s", strerror(errno));
			return;
		}
		if (!take_signals())
			return;
		run_hosts();
		if (s.agent)
			agent_handle(s.agent, now());
		run_pool();
		http_run(s.http, now());
		run_pool();
		retain();
		look_at_clock();
	}
	/* Clients that wait get an answer before the end. */
	http_run(s.http, now());
}

int service_run(const char *path, int must)
{
	char why[POOL_TEXT_MAX];
	int status = STATUS_FAILED;

	s.path = path;
	s.must = must;
	if (config_load(&s.config, path, must, why, sizeof(why))) {
		complain("%s", why);
		return STATUS_CONFIG;
	}
	warn_exposed();
	steady_start(&s.clock, real_ns(), (int64_t)clock_ns(CLOCK_BOOTTIME));
	s.retain = now() + DAY / 24;
	if (start()) {
		serve();
		status = effects_failed(&s.effects) ? STATUS_FAILED : 0;
	}
	stop();
	return status;
}
