// SPDX-License-Identifier: GPL-2.0-only
/* Reports of hosts about VMs and GPUs, with a database; the hosts' threads are played. */
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>

#include "config.h"
#include "hosts.h"
#include "jobs.h"
#include "tap.h"

#include "pool_api_world.h"

#define ANSWERS	16

/**
 * struct jobs - a host's thread
 * @left: freed, with the descriptor open, as by a thread that hangs
 * @former: played jobs that end before these begin
 */
struct jobs {
	struct jobs_answer answers[ANSWERS];
	size_t first, nr;
	int fd;
	bool left;
	struct jobs *former;
};

static struct jobs played[4];
static size_t nr_played;
static int begin_fails;
static unsigned int waits;

int host_init(void);
int host_init(void)
{
	return 0;
}

struct jobs *jobs_new(const struct pool_host *hosts, size_t nr)
{
	struct jobs *jobs = &played[nr_played++];

	(void)hosts;
	(void)nr;
	*jobs = (struct jobs){ .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
	return jobs;
}

struct jobs *jobs_new_after(const struct pool_host *host, struct jobs *former)
{
	struct jobs *jobs = jobs_new(host, 1);

	jobs->former = former;
	return jobs;
}

void jobs_stop(struct jobs *jobs)
{
	(void)jobs;
}

void jobs_leave(struct jobs *jobs)
{
	if (jobs)
		jobs->left = true;
}

void jobs_free(struct jobs *jobs)
{
	jobs->left = true;
	waits++;
}

int jobs_fd(const struct jobs *jobs)
{
	return jobs->fd;
}

bool jobs_next(struct jobs *jobs, struct jobs_answer *answer)
{
	eventfd_t count;

	if (jobs->first == jobs->nr) {
		eventfd_read(jobs->fd, &count);
		return false;
	}
	*answer = jobs->answers[jobs->first++];
	return true;
}

void jobs_add(struct jobs *jobs, const struct pool_job *job)
{
	(void)jobs;
	(void)job;
}

int __real_store_begin(struct store *store);
int __wrap_store_begin(struct store *store);
int __wrap_store_begin(struct store *store)
{
	return begin_fails ? begin_fails : __real_store_begin(store);
}

/* ---- what hosts say ---- */

static struct hosts *hosts;

static void say(size_t host, struct jobs_answer answer)
{
	struct jobs *jobs = &played[host];

	if (jobs->nr == ANSWERS)
		abort();
	jobs->answers[jobs->nr++] = answer;
	eventfd_write(jobs->fd, 1);
}

static void run(void)
{
	while (hosts_run(hosts, WORLD_NOW) > 0)
		;
	for (size_t i = 0; i < nr_played; i++)
		played[i].first = played[i].nr = 0;
}

static void say_vm(size_t host, enum jobs_answer_kind kind, const char *name, unsigned int uuid)
{
	struct jobs_answer answer = { .kind = kind };

	snprintf(answer.vm.name, sizeof(answer.vm.name), "%s", name);
	snprintf(answer.vm.host, sizeof(answer.vm.host), "h%zu", host);
	snprintf(answer.vm.uuid, sizeof(answer.vm.uuid), "6695eb01-f6a4-8304-79aa-%012u", uuid);
	say(host, answer);
}

static void say_up(size_t host)
{
	say(host, (struct jobs_answer){ .kind = JOBS_UP });
}

static const char *uri = "qemu:///system";

static void configure(size_t nr)
{
	struct pool_host list[2] = { 0 };
	struct config config = { .hosts = list };

	strcpy(config.default_project, "p");
	config.nr_hosts = nr;
	for (size_t i = 0; i < nr; i++) {
		snprintf(list[i].name, sizeof(list[i].name), "h%zu", i);
		strcpy(list[i].uri, uri);
	}
	if (hosts_set(hosts, &config))
		abort();
}

static void begin(void)
{
	world_begin();
	nr_played = 0;
	begin_fails = 0;
	waits = 0;
	hosts = hosts_new(world.pool, world.store, &world.effects);
	if (!hosts)
		abort();
	configure(2);
}

static void end(void)
{
	hosts_free(hosts);
	for (size_t i = 0; i < nr_played; i++)
		close(played[i].fd);
	world_end();
}

static const char *host_of(const char *vm)
{
	const struct pool_vm *v = pool_vm(world.pool, vm);

	return v ? v->host : "none";
}

/* ---- tests ---- */

/* The other host reports the VM before the one that it was on has lost it. */
static void migrated(void)
{
	begin();
	say_vm(0, JOBS_VM, "v", 1);
	say_up(0);
	say_up(1);
	run();
	TAP_STR(host_of("v"), "h0");
	say_vm(1, JOBS_VM, "v", 1);
	run();
	TAP_STR(host_of("v"), "h1");
	say_vm(0, JOBS_VM_GONE, "v", 1);
	run();
	TAP_STR(host_of("v"), "h1");
	say_up(0);
	say_up(1);
	run();
	TAP_STR(host_of("v"), "h1");
	end();
}

/* Both have its definition: it stays on the one that got it last, also over a start. */
static void on_two_hosts(void)
{
	begin();
	say_vm(0, JOBS_VM, "v", 1);
	say_up(0);
	say_up(1);
	run();
	say_vm(1, JOBS_VM, "v", 1);
	run();
	hosts_free(hosts);
	nr_played = 0;
	hosts = hosts_new(world.pool, world.store, &world.effects);
	configure(2);
	say_vm(0, JOBS_VM, "v", 1);
	say_up(0);
	run();
	TAP_STR(host_of("v"), "h1");
	say_vm(1, JOBS_VM, "v", 1);
	say_up(1);
	run();
	TAP_STR(host_of("v"), "h1");
	say_up(0);
	run();
	TAP_STR(host_of("v"), "h1");
	/* The host that is left has it. */
	say_vm(1, JOBS_VM_GONE, "v", 1);
	run();
	TAP_STR(host_of("v"), "h0");
	end();
}

/* Two VMs of one name: the second comes into the pool when the first is gone. */
static void namesakes(void)
{
	begin();
	say_vm(0, JOBS_VM, "v", 1);
	say_up(0);
	say_vm(1, JOBS_VM, "v", 2);
	say_up(1);
	run();
	TAP_STR(host_of("v"), "h0");
	say_vm(1, JOBS_VM_GONE, "v", 2);
	run();
	TAP_STR(host_of("v"), "h0");
	say_vm(1, JOBS_VM, "v", 2);
	run();
	say_vm(0, JOBS_VM_GONE, "v", 1);
	run();
	TAP_STR(host_of("v"), "h1");
	end();
}

/* The host of a VM is taken out of the configuration; another has a VM of the name. */
static void host_removed(void)
{
	begin();
	say_vm(1, JOBS_VM, "v", 1);
	say_up(1);
	run();
	say_vm(0, JOBS_VM, "v", 2);
	say_up(0);
	run();
	TAP_STR(host_of("v"), "h1");
	configure(1);
	say_up(0);
	run();
	TAP_STR(host_of("v"), "h0");
	/* The answer of a thread that was left behind wakes no loop. */
	say_up(1);
	TAP_EQ(poll(&(struct pollfd){ hosts_fd(hosts), POLLIN, 0 }, 1, 0), 0);
	end();
}

/* A reload does not wait for the threads of hosts; those of a changed host begin after them. */
static void reloaded(void)
{
	begin();
	configure(1);
	TAP_CHECK(played[1].left && !played[0].left);
	uri = "qemu+tls://h0/system";
	configure(1);
	uri = "qemu:///system";
	TAP_EQ(nr_played, 3);
	TAP_CHECK(played[2].former == &played[0]);
	TAP_EQ(waits, 0);
	end();
	TAP_EQ(waits, 1);
}

/* A VM is undefined, and another gets its name: it gets nothing that the former one asked for. */
static void namesake_asks_nothing(void)
{
	struct pool_request r = { .key = "k", .vm = "v", .kind = "work" };
	struct jobs_answer gpu = { .kind = JOBS_GPU };
	char text[POOL_TEXT_MAX];

	begin();
	strcpy(gpu.gpu.host, "h0");
	strcpy(gpu.gpu.addr, "0000:41:00.0");
	strcpy(gpu.gpu.name, "h0/0000:41:00.0");
	gpu.gpu.slots = gpu.gpu.nr_functions = 1;
	gpu.gpu.target = POOL_WHOLE;
	strcpy(gpu.gpu.functions[0], gpu.gpu.addr);
	/* It is offline: the request waits. */
	gpu.gpu.offline = true;
	say(0, gpu);
	say_vm(0, JOBS_VM, "v", 1);
	say_up(0);
	run();
	TAP_EQ(pool_ask(world.pool, &r, WORLD_NOW, "test", text), 1);
	TAP_EQ(r.state, POOL_QUEUED);
	TAP_STR(r.vm_uuid, pool_vm(world.pool, "v")->uuid);
	say_vm(0, JOBS_VM, "v", 2);
	run();
	TAP_CHECK(!pool_request(world.pool, r.id));
	TAP_EQ(store_get_request(world.store, r.id, &r), 0);
	TAP_EQ(r.state, POOL_CANCELLED);
	TAP_CHECK(!pool_is_of(&r, pool_vm(world.pool, "v")));
	end();
}

static int count_gpus(const struct pool_gpu *gpu, void *arg)
{
	*(int *)arg += !strcmp(gpu->host, "h0") && gpu->slots == 0;
	return 0;
}

/* Nothing that a host says is lost while the database takes nothing. */
static void database_away(void)
{
	struct jobs_answer answer = { .kind = JOBS_GPU, .gpu = {
		.name = "h0/soft", .host = "h0", .addr = "soft", .group = -1, .target = POOL_VGPU,
		.nr_functions = 1, .functions = { "soft" },
	} };
	int nr = 0;

	begin();
	begin_fails = -EIO;
	say(0, answer);
	TAP_EQ(hosts_run(hosts, WORLD_NOW), -EIO);
	TAP_CHECK(!effects_failed(&world.effects));
	begin_fails = 0;
	TAP_EQ(hosts_run(hosts, WORLD_NOW), 1);
	TAP_CHECK(pool_gpu(world.pool, "h0/soft"));
	store_gpus(world.store, count_gpus, &nr);
	TAP_EQ(nr, 1);
	/* Memory is not what the database has: only a start helps. */
	begin_fails = -ESTALE;
	say_up(0);
	TAP_EQ(hosts_run(hosts, WORLD_NOW), -EIO);
	TAP_CHECK(effects_failed(&world.effects));
	end();
}

int main(void)
{
	tap_run(migrated, "a VM that is migrated is the new host's");
	tap_run(on_two_hosts, "a VM that two hosts define stays where it came last");
	tap_run(namesakes, "of two VMs of a name the second comes when the first is gone");
	tap_run(host_removed, "a host that is taken out leaves its names to others");
	tap_run(namesake_asks_nothing, "requests of a former VM of the name end");
	tap_run(reloaded, "a reload waits for no host's threads");
	tap_run(database_away, "what hosts say waits for the database");
	return tap_done();
}
