// SPDX-License-Identifier: GPL-2.0-only
/* Threads of hosts: order, answers, lost and hanging hosts, the end. */
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <libvirt/libvirt.h>

#include "clock.h"
#include "jobs.h"
#include "tap.h"

#include "pool_libvirt.h"

static struct pool_gpu gpus[64];
static struct pool_vm vms[64];
static size_t nr_gpus, nr_vms, ups, downs;
static struct jobs_answer answer;

/* The connection of the last host, and lists of VMs that it does not give. */
static virConnectPtr connection;
static atomic_int lists_refused;

virConnectPtr __real_virConnectOpenAuth(const char *name, virConnectAuthPtr auth,
					unsigned int flags);
virConnectPtr __wrap_virConnectOpenAuth(const char *name, virConnectAuthPtr auth,
					unsigned int flags);
int __real_virConnectListAllDomains(virConnectPtr conn, virDomainPtr **list, unsigned int flags);
int __wrap_virConnectListAllDomains(virConnectPtr conn, virDomainPtr **list, unsigned int flags);

virConnectPtr __wrap_virConnectOpenAuth(const char *name, virConnectAuthPtr auth,
					unsigned int flags)
{
	connection = __real_virConnectOpenAuth(name, auth, flags);
	return connection;
}

int __wrap_virConnectListAllDomains(virConnectPtr conn, virDomainPtr **list, unsigned int flags)
{
	if (atomic_load(&lists_refused) > 0) {
		atomic_fetch_sub(&lists_refused, 1);
		return -1;
	}
	return __real_virConnectListAllDomains(conn, list, flags);
}

/* Lists of node devices, changes of definitions that take a while, and libvirt's callback. */
static atomic_int node_lists;
static atomic_bool slow, held;

/* When looks_later() told of node devices, changes since, and whether a list came before most. */
static _Atomic uint64_t told_ns;
static atomic_int changes;
static atomic_bool early;

static virConnectNodeDeviceEventLifecycleCallback on_node;
static void *on_node_arg;

int __real_virConnectListAllNodeDevices(virConnectPtr conn, virNodeDevicePtr **list,
					unsigned int flags);
int __wrap_virConnectListAllNodeDevices(virConnectPtr conn, virNodeDevicePtr **list,
					unsigned int flags);
virDomainPtr __real_virDomainDefineXML(virConnectPtr conn, const char *xml);
virDomainPtr __wrap_virDomainDefineXML(virConnectPtr conn, const char *xml);
int __real_virConnectNodeDeviceEventRegisterAny(virConnectPtr conn, virNodeDevicePtr device, int id,
						virConnectNodeDeviceEventGenericCallback fn,
						void *arg, virFreeCallback freed);
int __wrap_virConnectNodeDeviceEventRegisterAny(virConnectPtr conn, virNodeDevicePtr device, int id,
						virConnectNodeDeviceEventGenericCallback fn,
						void *arg, virFreeCallback freed);

int __wrap_virConnectListAllNodeDevices(virConnectPtr conn, virNodeDevicePtr **list,
					unsigned int flags)
{
	/* after BUSY_MS a look waits no longer */
	if (atomic_load(&slow) && atomic_load(&changes) < 15 &&
	    now_ns() - atomic_load(&told_ns) < 4 * NSEC)
		atomic_store(&early, true);
	atomic_fetch_add(&node_lists, 1);
	return __real_virConnectListAllNodeDevices(conn, list, flags);
}

virDomainPtr __wrap_virDomainDefineXML(virConnectPtr conn, const char *xml)
{
	virDomainPtr vm;

	if (atomic_load(&slow))
		usleep(100000);
	while (atomic_load(&held))
		usleep(1000);
	vm = __real_virDomainDefineXML(conn, xml);
	atomic_fetch_add(&changes, 1);
	return vm;
}

int __wrap_virConnectNodeDeviceEventRegisterAny(virConnectPtr conn, virNodeDevicePtr device, int id,
						virConnectNodeDeviceEventGenericCallback fn,
						void *arg, virFreeCallback freed)
{
	if (id == VIR_NODE_DEVICE_EVENT_ID_LIFECYCLE) {
		memcpy(&on_node, &fn, sizeof(fn));
		on_node_arg = arg;
	}
	return __real_virConnectNodeDeviceEventRegisterAny(conn, device, id, fn, arg, freed);
}

static struct pool_host host_at(const char *name, const char *path)
{
	struct pool_host host = { 0 };

	snprintf(host.name, sizeof(host.name), "%s", name);
	snprintf(host.uri, sizeof(host.uri), "test://%s", path);
	return host;
}

/* The next answer, whatever it is; false if none comes for as long as a test may take. */
static bool next(struct jobs *jobs)
{
	struct pollfd fd = { .fd = jobs_fd(jobs), .events = POLLIN };

	while (!jobs_next(jobs, &answer))
		if (poll(&fd, 1, 30000) != 1)
			return false;
	switch (answer.kind) {
	case JOBS_GPU:
		gpus[nr_gpus++] = answer.gpu;
		break;
	case JOBS_VM:
		vms[nr_vms++] = answer.vm;
		break;
	case JOBS_UP:
		ups++;
		free(answer.found);
		break;
	case JOBS_DOWN:
		downs++;
		break;
	default:
		break;
	}
	return true;
}

static bool next_of(struct jobs *jobs, enum jobs_answer_kind kind)
{
	while (next(jobs))
		if (answer.kind == kind)
			return true;
	return false;
}

/* A host of libvirt's test driver that is up; NULL: it is not. Its file is @path. */
static struct jobs *begin(char path[64], unsigned int nr_pci, unsigned int nr_domains)
{
	struct pool_host host;
	struct jobs *jobs;

	write_test_host(path, nr_pci, nr_domains);
	host = host_at("h", path);
	jobs = jobs_new(&host, 1);
	return jobs && next_of(jobs, JOBS_UP) ? jobs : NULL;
}

/* A socket at PATH.socket that takes connections and says nothing; -1: there is none. */
static int listen_mute(const char *path, struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(address->sun_path, sizeof(address->sun_path), "%s.socket", path);
	if (bind(fd, (struct sockaddr *)address, sizeof(*address)) || listen(fd, 5))
		return -1;
	return fd;
}

static struct pool_job job_of(enum pool_job_kind kind, uint64_t id, size_t gpu, size_t vm)
{
	struct pool_job job = { .kind = kind, .request.id = id, .gpu = gpus[gpu], .vm = vms[vm] };

	strcpy(job.request.vm, vms[vm].name);
	strcpy(job.request.gpu, gpus[gpu].name);
	return job;
}

static void in_order(void)
{
	struct pool_job on, off;
	struct jobs *jobs;
	char path[64];

	jobs = begin(path, 2, 2);
	TAP_NEED(jobs);
	TAP_STR(answer.host, "h");
	TAP_EQ(answer.nr_found, 0);
	TAP_EQ(nr_gpus, 2);
	TAP_EQ(nr_vms, 2);
	on = job_of(POOL_JOB_ATTACH, 1, 0, 0);
	off = job_of(POOL_JOB_DETACH, 1, 0, 0);
	jobs_add(jobs, &on);
	jobs_add(jobs, &off);
	jobs_add(jobs, &on);
	TAP_NEED(next_of(jobs, JOBS_ATTACHED));
	TAP_EQ(answer.request, 1);
	TAP_STR(answer.host, "h");
	TAP_STR(answer.text, "");
	TAP_NEED(next_of(jobs, JOBS_DETACHED));
	TAP_NEED(next_of(jobs, JOBS_ATTACHED));
	/* the VM has it; the GPU's other function is not another VM's */
	strcpy(on.request.vm, "none");
	*on.vm.uuid = '\0';
	jobs_add(jobs, &on);
	TAP_NEED(next_of(jobs, JOBS_REFUSED));
	TAP_CHECK(strstr(answer.text, "there is no VM none"));
	jobs_free(jobs);
	unlink(path);
}

/* 50 VMs and GPUs at once: each gets its own. */
static void many(void)
{
	bool seen[51] = { false };
	struct pool_job job;
	struct jobs *jobs;
	char path[64];
	size_t i;

	jobs = begin(path, 50, 50);
	TAP_NEED(jobs);
	TAP_EQ(nr_gpus, 50);
	for (i = 0; i < 50; i++) {
		job = job_of(POOL_JOB_ATTACH, i + 1, i, i);
		jobs_add(jobs, &job);
	}
	for (i = 0; i < 50; i++) {
		TAP_NEED(next_of(jobs, JOBS_ATTACHED));
		TAP_CHECK(answer.request >= 1 && answer.request <= 50 && !seen[answer.request]);
		seen[answer.request] = true;
	}
	jobs_free(jobs);
	unlink(path);
}

/* A host that is not there, until it is. */
static void down(void)
{
	char path[64], other[80];
	struct pool_host host;
	struct pool_job job;
	struct jobs *jobs;

	write_test_host(path, 1, 1);
	snprintf(other, sizeof(other), "%s.away", path);
	rename(path, other);
	host = host_at("h", path);
	jobs = jobs_new(&host, 1);
	TAP_NEED(jobs && next(jobs));
	TAP_EQ(answer.kind, JOBS_DOWN);
	TAP_CHECK(strstr(answer.text, "h: no connection to libvirt"));
	/* dropped */
	job = (struct pool_job){ .request = { .id = 5, .gpu = "h/0000:01:00.0" } };
	jobs_add(jobs, &job);
	rename(other, path);
	TAP_NEED(next_of(jobs, JOBS_UP));
	TAP_EQ(nr_gpus, 1);
	strcpy(job.request.gpu, "elsewhere/0000:01:00.0");
	job.request.id = 6;
	jobs_add(jobs, &job);
	TAP_NEED(next(jobs));
	TAP_EQ(answer.kind, JOBS_REFUSED);
	TAP_EQ(answer.request, 6);
	strcpy(job.request.gpu, "h/0000:01:00.0");
	job.request.id = 7;
	jobs_add(jobs, &job);
	TAP_NEED(next(jobs));
	TAP_EQ(answer.request, 7);
	TAP_EQ(downs, 1);
	jobs_free(jobs);
	unlink(path);
}

/* Libvirt of one host takes the connection and never answers. */
static void hangs(void)
{
	struct sockaddr_un address;
	struct pool_host hosts[2];
	struct pool_job job;
	struct jobs *jobs;
	char path[64];
	int fd;

	write_test_host(path, 1, 1);
	fd = listen_mute(path, &address);
	TAP_NEED(fd >= 0);
	hosts[0] = host_at("stuck", path);
	snprintf(hosts[0].uri, sizeof(hosts[0].uri), "qemu+unix:///system?socket=%s.socket", path);
	hosts[1] = host_at("h", path);
	jobs = jobs_new(hosts, 2);
	TAP_NEED(jobs && next_of(jobs, JOBS_UP));
	TAP_STR(answer.host, "h");
	job = job_of(POOL_JOB_ATTACH, 1, 0, 0);
	jobs_add(jobs, &job);
	TAP_NEED(next_of(jobs, JOBS_ATTACHED));
	jobs_free(jobs);
	TAP_CHECK(true);
	close(fd);
	unlink(address.sun_path);
	unlink(path);
}

static void ends(void)
{
	struct pool_job job;
	struct jobs *jobs;
	char path[64];
	size_t i;

	jobs = begin(path, 20, 20);
	TAP_NEED(jobs);
	for (i = 0; i < 20; i++) {
		job = job_of(POOL_JOB_ATTACH, i + 1, i, i);
		jobs_add(jobs, &job);
	}
	jobs_free(jobs);
	jobs = jobs_new(NULL, 0);
	TAP_NEED(jobs);
	TAP_CHECK(!jobs_next(jobs, &answer));
	jobs_free(jobs);
	jobs_free(NULL);
	unlink(path);
}

/* A host gets another URI while its libvirt does not answer: the new one begins after it. */
static void replaced(void)
{
	struct sockaddr_un address;
	struct pool_host stuck, host;
	struct jobs *former, *jobs;
	char path[64];
	int fd;

	write_test_host(path, 1, 1);
	fd = listen_mute(path, &address);
	TAP_NEED(fd >= 0);
	host = host_at("h", path);
	stuck = host;
	snprintf(stuck.uri, sizeof(stuck.uri), "qemu+unix:///system?socket=%s.socket", path);
	former = jobs_new(&stuck, 1);
	TAP_NEED(former);
	jobs_stop(former);
	jobs = jobs_new_after(&host, former);
	TAP_NEED(jobs && next_of(jobs, JOBS_UP));
	TAP_EQ(nr_gpus, 1);
	jobs_leave(jobs);
	jobs_leave(NULL);
	close(fd);
	unlink(address.sun_path);
	unlink(path);
}

/* Node devices that jobs change are looked at when the jobs are done. */
static void looks_later(void)
{
	struct pool_job job;
	struct jobs *jobs;
	char path[64];
	size_t i;

	jobs = begin(path, 20, 20);
	TAP_NEED(jobs);
	atomic_store(&node_lists, 0);
	atomic_store(&changes, 0);
	atomic_store(&told_ns, now_ns());
	atomic_store(&slow, true);
	for (i = 0; i < 20; i++) {
		job = job_of(POOL_JOB_ATTACH, i + 1, i, i);
		jobs_add(jobs, &job);
	}
	on_node(connection, NULL, 0, 0, on_node_arg);
	for (i = 0; i < 20; i++)
		TAP_NEED(next_of(jobs, JOBS_ATTACHED));
	TAP_CHECK(!atomic_load(&early));
	atomic_store(&slow, false);
	for (i = 0; i < 3000 && !atomic_load(&node_lists); i++)
		usleep(10000);
	TAP_CHECK(atomic_load(&node_lists) > 0);
	jobs_free(jobs);
	unlink(path);
}

/* The pool asks again for what is under way: one answer. */
static void asked_again(void)
{
	struct pool_job on, off, last;
	struct jobs *jobs;
	char path[64];
	size_t i;

	jobs = begin(path, 2, 2);
	TAP_NEED(jobs);
	on = job_of(POOL_JOB_ATTACH, 1, 0, 0);
	off = job_of(POOL_JOB_DETACH, 1, 0, 0);
	last = job_of(POOL_JOB_ATTACH, 2, 1, 0);
	/* the first is under way until all are there */
	atomic_store(&held, true);
	for (i = 0; i < 3; i++)
		jobs_add(jobs, &on);
	for (i = 0; i < 3; i++)
		jobs_add(jobs, &off);
	/* of the same VM: after all of them */
	jobs_add(jobs, &last);
	atomic_store(&held, false);
	for (i = 0; next(jobs) && answer.request != 2; )
		i += answer.kind == JOBS_ATTACHED || answer.kind == JOBS_DETACHED;
	TAP_EQ(answer.request, 2);
	TAP_EQ(i, 2);
	jobs_free(jobs);
	unlink(path);
}

#define LATE \
	"<domain type='test'><name>late</name><memory>1</memory><os><type>hvm</type></os></domain>"

/* Libvirt tells of a VM, and once does not list it: another look finds it. */
static void looks_again(void)
{
	struct jobs *jobs;
	char path[64];

	jobs = begin(path, 1, 1);
	TAP_NEED(jobs);
	atomic_store(&lists_refused, 1);
	virDomainFree(virDomainDefineXML(connection, LATE));
	TAP_NEED(next_of(jobs, JOBS_VM));
	TAP_STR(answer.vm.name, "late");
	TAP_EQ(atomic_load(&lists_refused), 0);
	TAP_EQ(downs, 0);
	jobs_free(jobs);
	unlink(path);
}

int main(void)
{
	tap_run(in_order, "jobs of a VM are done in order, and answered");
	tap_run(asked_again, "a job that is under way is not done twice");
	tap_run(many, "jobs of many VMs are done at the same time, each once");
	tap_run(down, "a host that is down comes up, and its jobs are dropped");
	tap_run(looks_again, "a look that failed is done again");
	tap_run(looks_later, "jobs do not wait for a look at the node devices that they change");
	tap_run(hangs, "a host that hangs holds up itself only");
	tap_run(replaced, "a host with another URI begins when the former threads have ended");
	tap_run(ends, "all ends while jobs wait");
	return tap_done();
}
