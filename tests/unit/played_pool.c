// SPDX-License-Identifier: GPL-2.0-only
/*
 * mgpu-poold without libvirt, for test_agent.py: the real pool, database and channel of agents.
 * Attaching makes the files of a PCI device in the guest's played /sys, and detaching removes
 * them.
 *
 *   played_pool DATABASE ROOT NAME:KEY...
 *
 * prints "port PORT", then a line for each event and report of use.  Commands on standard input:
 *
 *   attach yes|no		whether devices are attached (yes)
 *   driver NAME|-		driver that binds a device, - for none (nvidia)
 *   card yes|no		a device that is bound has a DRM card (yes)
 *   device yes|no		whether the guest sees a device that is attached (yes)
 *   later SECONDS		move the clock
 *   release ID			as an administrator does
 *   end			close all connections and the port, and open it again
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent.h"
#include "wire.h"

#define JOBS	64

static struct played {
	struct store *store;
	struct pool *pool;
	struct agent *agent;
	struct agent_setup setup;
	const char *root;
	int64_t shift;
	bool attach;
	bool device;
	bool card;
	char driver[32];
	unsigned int port;
	struct pool_job jobs[JOBS];
	size_t nr_jobs;
} p = { .attach = true, .device = true, .card = true, .driver = "nvidia" };

static int64_t now(void)
{
	return time(NULL) + p.shift;
}

static void must(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "played_pool: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- hooks ---- */

static int on_store(void *arg, const struct pool_request *r)
{
	(void)arg;
	return store_put_request(p.store, r);
}

static int on_add(void *arg, struct pool_request *r)
{
	(void)arg;
	return store_add_request(p.store, r);
}

static int on_outcome(void *arg, const struct pool_outcome *o)
{
	(void)arg;
	printf("outcome %" PRIu64 " done=%d busy_ns=%" PRIu64 " memory_mib=%" PRIu32 "\n",
	       o->request, o->done, o->busy_ns, o->memory_mib);
	return store_add_outcome(p.store, o);
}

static void on_event(void *arg, const struct pool_event *event)
{
	(void)arg;
	printf("event %s %s %" PRIu64 " %s\n", event->actor, event->what, event->request,
	       event->text);
}

static int on_begin(void *arg)
{
	(void)arg;
	return store_begin(p.store);
}

static int on_commit(void *arg)
{
	(void)arg;
	return store_commit(p.store);
}

static void on_job(void *arg, const struct pool_job *job)
{
	(void)arg;
	must(p.nr_jobs < JOBS, "too many jobs");
	p.jobs[p.nr_jobs++] = *job;
}

/* ---- the guest's devices ---- */

/* The device of request N is at slot 0x10 + N. */
static void device_path(uint64_t id, const char *name, char path[512])
{
	snprintf(path, 512, "%s/sys/bus/pci/devices/0000:00:%02x.0%s", p.root,
		 0x10 + (unsigned int)id, name);
}

static const char *const cards[] = { "/drm", "/drm/card1" };

static void plug(uint64_t id)
{
	char path[512], to[64];
	FILE *f;

	device_path(id, "", path);
	if (mkdir(path, 0755))
		must(errno == EEXIST, path);
	if (strcmp(p.driver, "-")) {
		device_path(id, "/driver", path);
		snprintf(to, sizeof(to), "../../../../bus/pci/drivers/%s", p.driver);
		if (symlink(to, path))
			must(errno == EEXIST, path);
	}
	for (size_t i = 0; p.card && strcmp(p.driver, "-") && i < 2; i++) {
		device_path(id, cards[i], path);
		if (mkdir(path, 0755))
			must(errno == EEXIST, path);
	}
	device_path(id, "/class", path);
	f = fopen(path, "w");
	must(f && fputs("0x030200\n", f) >= 0 && !fclose(f), path);
}

static void unplug(uint64_t id)
{
	char path[512];

	device_path(id, "/driver", path);
	unlink(path);
	device_path(id, "/class", path);
	unlink(path);
	for (size_t i = 2; i-- > 0;) {
		device_path(id, cards[i], path);
		rmdir(path);
	}
	device_path(id, "", path);
	rmdir(path);
}

static void do_job(const struct pool_job *job)
{
	uint64_t id = job->request.id;

	if (job->kind == POOL_JOB_ATTACH) {
		if (p.device)
			plug(id);
		pool_attached(p.pool, id, "", now());
	} else {
		unplug(id);
		pool_detached(p.pool, id, now());
	}
}

static void do_jobs(void)
{
	size_t kept = 0;

	for (size_t i = 0; i < p.nr_jobs; i++) {
		struct pool_job job = p.jobs[i];

		if (job.kind == POOL_JOB_ATTACH && !p.attach)
			p.jobs[kept++] = job;
		else
			do_job(&job);
	}
	p.nr_jobs = kept;
}

/* ---- the service ---- */

static void listen_for_agents(void)
{
	char where[64], text[POOL_TEXT_MAX] = "";
	struct sockaddr_in at;
	socklen_t size = sizeof(at);

	snprintf(where, sizeof(where), "127.0.0.1:%u", p.port);
	p.setup.listeners[0] = agent_listen(where, text);
	p.setup.nr_listeners = 1;
	must(p.setup.listeners[0] >= 0, text);
	getsockname(p.setup.listeners[0], (struct sockaddr *)&at, &size);
	p.port = ntohs(at.sin_port);
	p.agent = agent_new(&p.setup, text);
	must(p.agent, text);
}

static void add_vm(char *word)
{
	struct pool_vm vm = { .host = "h", .uuid = "u", .project = "p" };
	unsigned char key[WIRE_KEY];

	must(!wire_read_key(word, vm.name, key), word);
	must(!store_put_vm(p.store, &vm) && !pool_put_vm(p.pool, &vm) &&
	     !store_put_vm_key(p.store, vm.name, key), vm.name);
}

static void add_gpus(void)
{
	struct pool_project project = { .name = "p", .weight = 1 };

	must(!store_put_project(p.store, &project) && !pool_put_project(p.pool, &project), "project");
	pool_host_up(p.pool, "h", true);
	for (int i = 0; i < 2; i++) {
		struct pool_gpu gpu = {
			.host = "h", .nr_functions = 1, .group = i, .target = POOL_WHOLE,
			.model = "m", .slots = 1, .memory_mib = 8192,
			.capabilities = POOL_3D | POOL_COMPUTE, .present = true,
		};

		snprintf(gpu.addr, sizeof(gpu.addr), "0000:4%d:00.0", i);
		strcpy(gpu.functions[0], gpu.addr);
		snprintf(gpu.name, sizeof(gpu.name), "h/%s", gpu.addr);
		must(!store_put_gpu(p.store, &gpu) && !pool_put_gpu(p.pool, &gpu), gpu.name);
	}
}

static void do_command(char *line)
{
	char *word = strtok(line, "\n "), *value = strtok(NULL, "\n "), why[POOL_TEXT_MAX];

	if (!word)
		return;
	if (!strcmp(word, "attach") && value)
		p.attach = !strcmp(value, "yes");
	else if (!strcmp(word, "device") && value)
		p.device = !strcmp(value, "yes");
	else if (!strcmp(word, "card") && value)
		p.card = !strcmp(value, "yes");
	else if (!strcmp(word, "driver") && value)
		snprintf(p.driver, sizeof(p.driver), "%s", value);
	else if (!strcmp(word, "later") && value)
		p.shift += atoi(value);
	else if (!strcmp(word, "release") && value)
		pool_release(p.pool, strtoull(value, NULL, 10), false, now(), "admin:test", why);
	else if (!strcmp(word, "end")) {
		agent_free(p.agent);
		listen_for_agents();
	}
	printf("did %s\n", word);
}

static void serve(void)
{
	char line[256];

	for (;;) {
		struct pollfd fds[] = { { .fd = agent_fd(p.agent), .events = POLLIN },
					{ .fd = STDIN_FILENO, .events = POLLIN } };

		poll(fds, 2, 200);
		if (fds[1].revents && !fgets(line, sizeof(line), stdin))
			return;
		if (fds[1].revents)
			do_command(line);
		agent_handle(p.agent, now());
		/* Twice: a job's answer may begin another. */
		for (int i = 0; i < 2; i++) {
			do_jobs();
			pool_run(p.pool, now());
		}
		agent_handle(p.agent, now());
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	static const struct pool_hooks hooks = {
		.store_request = on_store, .add_request = on_add, .outcome = on_outcome,
		.event = on_event, .job = on_job,
	};
	struct pool_settings settings;
	char text[POOL_TEXT_MAX];

	must(argc > 3, "usage: played_pool DATABASE ROOT NAME:KEY...");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Lines come one at a time, and poll() sees each. */
	setvbuf(stdin, NULL, _IONBF, 0);
	p.root = argv[2];
	must(!store_open(argv[1], &p.store, text), text);
	pool_settings_default(&settings);
	p.pool = pool_new(&settings, &hooks);
	must(p.pool, "pool");
	add_gpus();
	for (int i = 3; i < argc; i++)
		add_vm(argv[i]);
	p.setup = (struct agent_setup){
		.pool = p.pool, .store = p.store, .event = on_event, .begin = on_begin,
		.commit = on_commit,
	};
	agent_limits_default(&p.setup.limits);
	p.setup.limits.opens = 10000;
	p.setup.limits.messages = p.setup.limits.changes = 10000;
	listen_for_agents();
	printf("port %u\n", p.port);
	fflush(stdout);
	serve();
	agent_free(p.agent);
	pool_free(p.pool);
	store_close(p.store);
	return 0;
}
