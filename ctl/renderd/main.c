// SPDX-License-Identifier: GPL-2.0-only
/* mgpu-renderd: makes a device of mgpu_user, and a worker for each vGPU of it. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../include/uapi/linux/mgpu_user.h"
#include "../remote/vgpu.h"
#include "backoff.h"
#include "clock.h"
#include "cmdline.h"
#include "complain.h"
#include "node.h"
#include "notify.h"
#include "record.h"
#include "replay.h"
#include "sandbox.h"
#include "spare.h"
#include "venus.h"
#include "virgl.h"
#include "worker.h"

#define CONTROL		"/dev/mgpu-user-control"
#define MAX_VGPUS	64
#define DEPTH		3	/* jobs in flight; a worker that hangs leaves one */
#define END_MS		10000	/* a worker without a device has ended before */

#define STATUS_USAGE	2
#define STATUS_BUSY	3	/* another mgpu-renderd has the GPU, or another worker the vGPU */
#define STATUS_THREADS	4	/* a library that a worker has loaded made a thread */

/* Pause from the end of a spare to the next one: a worker that starts has the processors. */
#define SPARE_MS	2000

/* First argument of a worker; users have no use for it. */
#define WORKER		"worker"

static const char usage_text[] =
	"usage: mgpu-renderd [-g ADDRESS | -n PATH] [-u NAME] [-d] [-r DIR]\n"
	"       mgpu-renderd replay [OPTION]... FILE...\n"
	"       mgpu-renderd help | version\n"
	"\n"
	"Renders for VMs on a GPU of this machine: makes it the parent of vGPUs, or without\n"
	"a GPU a device mgpu_user.N, and serves the vGPUs until SIGTERM or Ctrl-C.\n"
	"\n"
	"  -g, --gpu ADDRESS  render on the GPU at this PCI address, such as 0000:03:00.0,\n"
	"                     or with none, the default, without a GPU\n"
	"  -n, --node PATH    render on the GPU of this render node, such as\n"
	"                     /dev/dri/renderD128\n"
	"  -u, --user NAME    account of the workers (mgpu-renderd, or nobody)\n"
	"      --no-sandbox   have workers keep all rights: a guest that takes one over has\n"
	"                     the host\n"
	"  -d, --dmabuf       have VMMs show screens by dma-buf, without copies to memory: each\n"
	"                     QEMU then needs a display with OpenGL, as -display gtk,gl=on\n"
	"      --venus        have guests use Vulkan, by Venus\n"
	"      --remote       have guests use the host's OpenCL, by libmgpu-opencl.so\n"
	"  -r, --record DIR   record what each worker executes to a file in DIR\n"
	"  -h, --help         print this help\n"
	"  -V, --version      print the version\n"
	"\n"
	"'mgpu-renderd replay --help' explains how to replay such files.\n";

/* Options of the command line; @gpu is a PCI address, "none" or NULL. */
struct options {
	const char *gpu;
	struct worker_options worker;
};

/* ---- the device ---- */

/* Capability sets that guests may get. */
static const uint32_t sets[] = { 1, 2, VIRGL_VENUS };

/*
 * Capability sets of the renderer, whether guests can map its blobs, whether it exports dma-bufs,
 * and the libraries that it has loaded; only a process of its own starts it.
 */
struct probe {
	struct {
		uint32_t id, version, len;
		uint8_t data[MGPU_USER_MAX_CAPSET];
	} set[3];
	uint32_t nr;
	bool blobs;
	bool exports;
	char libraries[SPARE_LIBRARIES];
};

/* The server of the probe, which ends with it. */
static int probe_server(void *arg)
{
	static struct processes venus;

	(void)arg;
	return venus_start(&venus, false, 0);
}

/* Read a capability set; false if the renderer does not have it, or guests cannot use it. */
static bool probe_set(const struct worker_options *o, uint32_t id, struct probe *p)
{
	uint32_t *version = &p->set[p->nr].version, wire_format;
	uint8_t *data = p->set[p->nr].data;

	if (id == VIRGL_VENUS && !o->venus)
		return false;
	p->set[p->nr].id = id;
	p->set[p->nr].len = (uint32_t)virgl_capset(id, version, data,
						   sizeof(p->set[p->nr].data));
	if (id != VIRGL_VENUS || !p->set[p->nr].len)
		return p->set[p->nr].len;
	/* The first word of struct virgl_renderer_capset_venus. */
	memcpy(&wire_format, data, sizeof(wire_format));
	return wire_format;
}

static int probe(const struct worker_options *o, struct probe *p)
{
	static const struct virgl_ops none, with_venus = { .server = probe_server };
	size_t got = 0;
	ssize_t n = 1;
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid) {
		struct virgl *v;
		int drm;

		memset(p, 0, sizeof(*p));
		if (virgl_open_node(o->node, &drm) ||
		    virgl_new(&v, drm, o->venus ? &with_venus : &none, NULL))
			_exit(1);
		for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
			p->nr += probe_set(o, sets[i], p);
		p->blobs = virgl_can_share();
		p->exports = o->dmabuf && virgl_can_export();
		spare_list_libraries(p->libraries, sizeof(p->libraries));
		for (; got < sizeof(*p) && n > 0; got += n > 0 ? (size_t)n : 0)
			n = write(fds[1], (char *)p + got, sizeof(*p) - got);
		_exit(got != sizeof(*p));
	}
	close(fds[1]);
	for (; got < sizeof(*p) && n > 0; got += n > 0 ? (size_t)n : 0)
		n = read(fds[0], (char *)p + got, sizeof(*p) - got);
	close(fds[0]);
	waitpid(pid, NULL, 0);
	return got == sizeof(*p) && p->nr ? 0 : -ENODEV;
}

/* Name the GPU in a request; false where the record's GPU has no PCI address. */
static bool name_gpu(struct mgpu_user_create *c, const char *gpu)
{
	unsigned int domain, bus, slot, function;

	if (sscanf(gpu, "%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4)
		return false;
	c->flags |= MGPU_USER_CREATE_PCI;
	c->pci_domain = domain;
	c->pci_bus = (uint8_t)bus;
	c->pci_devfn = (uint8_t)(slot << 3 | function);
	return true;
}

/* Explain why the module does not have vGPUs below a GPU. */
static const char *no_parent(int err)
{
	switch (err) {
	case E2BIG:
	case EINVAL:
		return "mgpu_user is of an older version; load the one of this mgpu-renderd";
	case EEXIST:
		return "it has mediated devices of another module already, such as i915's GVT-g";
	case EBUSY:
		return "its driver hands it to VMs as a whole";
	default:
		return strerror(err);
	}
}

/* Make a device below the GPU of the record, or else one of its own. */
static int make_device(int control, const struct probe *p, const struct worker_options *o,
		       struct renderd *record)
{
	const struct remote_vgpu_caps remote = { .version = REMOTE_VGPU_VERSION, .api = 1 };
	struct mgpu_user_capset capsets[4] = { 0 };
	struct mgpu_user_create c = {
		.size = sizeof(c), .flags = MGPU_USER_CREATE_CONTEXT_INIT |
			(p->blobs ? MGPU_USER_CREATE_BLOB : 0) |
			(o->dmabuf ? MGPU_USER_CREATE_EXPORT : 0),
		.engines = 1, .depth = DEPTH, .vgpu_depth = DEPTH - 1,
		.max_vgpus = MAX_VGPUS,
		.nr_capsets = p->nr, .capsets = (uintptr_t)capsets,
	};
	struct mgpu_user_create own;

	for (uint32_t i = 0; i < p->nr; i++)
		capsets[i] = (struct mgpu_user_capset){
			.id = p->set[i].id, .version = p->set[i].version,
			.len = p->set[i].len, .data = (uintptr_t)p->set[i].data,
		};
	if (o->remote)
		capsets[c.nr_capsets++] = (struct mgpu_user_capset){
			.id = REMOTE_VGPU_CAPSET, .version = REMOTE_VGPU_VERSION,
			.len = sizeof(remote), .data = (uintptr_t)&remote,
		};
	own = c;
	if (name_gpu(&c, record->gpu)) {
		if (!ioctl(control, MGPU_USER_CREATE, &c)) {
			strcpy(record->device, record->gpu);
			record->id = c.id;
			return 0;
		}
		complain("%s cannot be the parent of vGPUs, a device mgpu_user.N is: %s",
			 record->gpu, no_parent(errno));
	}
	if (ioctl(control, MGPU_USER_CREATE, &own))
		return -errno;
	snprintf(record->device, sizeof(record->device), "mgpu_user.%u", own.id);
	record->id = own.id;
	return 0;
}

/* ---- workers ---- */

/**
 * struct served - a vGPU that needs, or has, a worker
 * @vgpu: its ID; 0 for none
 * @worker: process of its worker; 0 for none, or for one of an earlier supervisor
 * @backoff: when another worker may start
 * @due: it needs one then
 */
static struct served {
	uint32_t vgpu;
	pid_t worker;
	struct backoff backoff;
	bool due;
} served[MAX_VGPUS];

/**
 * struct spare - the process of the next worker
 * @pid: 0 for none
 * @fd: socket to it
 * @backoff: when another one may start
 * @libraries: what it loads
 */
static struct {
	pid_t pid;
	int fd;
	struct backoff backoff;
	char *libraries;
} spare;

static uint64_t now_ms(void)
{
	return now_ns() / 1000000;
}

/* Find a vGPU, or an unused place with @vgpu 0. */
static struct served *find(uint32_t vgpu)
{
	for (size_t i = 0; i < MAX_VGPUS; i++)
		if (served[i].vgpu == vgpu)
			return &served[i];
	return NULL;
}

/* Create a worker's recording; without one the worker serves all the same. */
static int start_recording(const struct worker_options *o, uint32_t vgpu)
{
	int fd;

	if (!o->record)
		return -1;
	fd = recorder_create(o->record, vgpu);
	if (fd < 0)
		complain("cannot record vGPU %u in %s: %s", vgpu, o->record, strerror(-fd));
	return fd;
}

/*
 * Become a spare. A new program has none of the supervisor's files and memory, and other
 * addresses.
 */
static void exec_worker(const struct worker_options *o, int fd)
{
	char fd_text[16];
	const char *argv[] = {
		"mgpu-renderd", WORKER, "-f", fd_text, o->sandbox ? "-s" : "-S",
		o->venus ? "-v" : "-V", o->remote ? "-o" : "-O",
		"-n", o->node ? o->node : "", "-u", o->user ? o->user : "", NULL,
	};
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	snprintf(fd_text, sizeof(fd_text), "%d", fd);
	fcntl(fd, F_SETFD, 0);
	execv("/proc/self/exe", (char **)argv);
	complain("cannot start a worker: %s", strerror(errno));
}

static int start_spare(const struct worker_options *o)
{
	int fds[2], ret = 0;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return -errno;
	if (o->sandbox)
		ret = sandbox_pids();
	if (!ret)
		ret = spare_load(fds[0], spare.libraries);
	pid = ret ? -1 : fork();
	if (pid < 0 && !ret)
		ret = -errno;
	if (!pid) {
		exec_worker(o, fds[1]);
		_exit(1);
	}
	close(fds[1]);
	if (ret) {
		close(fds[0]);
		return ret;
	}
	spare.pid = pid;
	spare.fd = fds[0];
	return 0;
}

/* The process is no spare any more. It ends, unless it has an order. */
static void let_spare_go(void)
{
	if (spare.pid)
		close(spare.fd);
	spare.pid = 0;
	spare.backoff = (struct backoff){ .again_ms = now_ms() + SPARE_MS };
}

/* Have a spare, when it is due. Return the time until then, milliseconds; -1 for none. */
static int keep_spare(const struct worker_options *o)
{
	uint64_t now = now_ms();
	int ret;

	if (spare.pid)
		return -1;
	if (now >= spare.backoff.again_ms) {
		backoff_started(&spare.backoff, now);
		ret = start_spare(o);
		if (!ret)
			return -1;
		backoff_ended(&spare.backoff, now);
		complain("there is no spare worker now: %s", strerror(-ret));
	}
	return spare.backoff.again_ms > now ? (int)(spare.backoff.again_ms - now) : 0;
}

/* A spare has ended without an order. */
static void spare_ended(void)
{
	uint64_t left;

	close(spare.fd);
	spare.pid = 0;
	left = backoff_ended(&spare.backoff, now_ms());
	complain("a spare worker has ended; the next one starts in %llu s",
		 (unsigned long long)(left + 999) / 1000);
}

/* The last worker has ended, or could not start: have the user know about a pause. */
static void worker_ended(struct served *s)
{
	uint64_t left = backoff_ended(&s->backoff, now_ms());

	s->worker = 0;
	s->due = true;
	if (s->backoff.short_lives > 1 && left)
		complain("vGPU %u lost %u workers in a row, each within %d s of its start; the next one starts in %llu s",
			 s->vgpu, s->backoff.short_lives, BACKOFF_LIVED_MS / 1000,
			 (unsigned long long)(left + 999) / 1000);
}

static int start_worker(const struct worker_options *o, const char *path, struct served *s)
{
	struct spare_order order = {
		.vgpu = s->vgpu, .fd = open(path, O_RDWR | O_CLOEXEC), .record = -1,
	};
	int ret = order.fd < 0 ? -errno : 0;

	if (!ret && !spare.pid)
		ret = start_spare(o);
	if (!ret) {
		order.record = start_recording(o, s->vgpu);
		ret = spare_give(spare.fd, &order);
	}
	if (ret) {
		complain("vGPU %u has no worker now: %s", s->vgpu, strerror(-ret));
	} else {
		s->worker = spare.pid;
		printf("mgpu-renderd: vGPU %u has worker %d\n", s->vgpu, s->worker);
		let_spare_go();
	}
	if (order.record >= 0)
		close(order.record);
	if (order.fd >= 0)
		close(order.fd);
	return ret;
}

/* The program as exec_worker() starts it. */
static int worker(int argc, char **argv)
{
	struct worker_options o = { .sandbox = true };
	int fd = -1, c, ret;

	while ((c = getopt(argc, argv, "f:sSvVoOn:u:")) != -1) {
		switch (c) {
		case 'f':
			fd = atoi(optarg);
			break;
		case 's':
			o.sandbox = true;
			break;
		case 'S':
			o.sandbox = false;
			break;
		case 'v':
			o.venus = true;
			break;
		case 'V':
			o.venus = false;
			break;
		case 'o':
			o.remote = true;
			break;
		case 'O':
			o.remote = false;
			break;
		case 'n':
			o.node = *optarg ? optarg : NULL;
			break;
		case 'u':
			o.user = *optarg ? optarg : NULL;
			break;
		default:
			return STATUS_USAGE;
		}
	}
	if (fd < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC)) {
		complain("the word " WORKER " is for mgpu-renderd itself");
		return STATUS_USAGE;
	}
	ret = worker_main(fd, &o);
	if (ret == -EOPNOTSUPP)
		return STATUS_THREADS;
	return ret == -EBUSY ? STATUS_BUSY : ret ? 1 : 0;
}

static void serve_event(const struct mgpu_user_event *e)
{
	struct served *s = find(e->vgpu);

	if (e->type == MGPU_USER_EVENT_CLOSED) {
		if (s)
			*s = (struct served){ 0 };
		return;
	}
	if (s && e->type == MGPU_USER_EVENT_LOST) {
		worker_ended(s);
		return;
	}
	if (!s)
		s = find(0);
	if (!s)
		return;		/* the device has no more vGPUs */
	s->vgpu = e->vgpu;
	s->due = true;
}

/* Serve all events that there are: 0 or a negative errno. */
static int serve_events(int fd)
{
	struct mgpu_user_event e;
	ssize_t n;

	while ((n = read(fd, &e, sizeof(e))) == sizeof(e))
		serve_event(&e);
	if (n >= 0) {
		complain("the device has ended: the GPU's driver was unbound, or another process removed the device");
		return -ENODEV;
	}
	return errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

/*
 * Reap workers, and serve events. The module tells of a worker that it knew before that
 * worker can be reaped. It does not know one that ended before it got its channel.
 */
static int reap(int fd)
{
	struct {
		pid_t pid;
		int status;
	} ended[MAX_VGPUS];
	size_t nr, i, k;
	int ret;

	do {
		for (nr = 0; nr < MAX_VGPUS; nr++) {
			ended[nr].pid = waitpid(-1, &ended[nr].status, WNOHANG);
			if (ended[nr].pid <= 0)
				break;
		}
		ret = serve_events(fd);
		for (i = 0; i < nr; i++) {
			/* Without them, it has one thread when it joins its VMM's cgroups. */
			if (WIFEXITED(ended[i].status) &&
			    WEXITSTATUS(ended[i].status) == STATUS_THREADS)
				*spare.libraries = '\0';
			if (ended[i].pid == spare.pid) {
				spare_ended();
				continue;
			}
			for (k = 0; k < MAX_VGPUS && served[k].worker != ended[i].pid; k++)
				;
			if (k == MAX_VGPUS)
				continue;
			/* A worker of an earlier supervisor may have the vGPU. */
			if (WIFEXITED(ended[i].status) &&
			    WEXITSTATUS(ended[i].status) == STATUS_BUSY)
				served[k].worker = 0;
			else
				worker_ended(&served[k]);
		}
	} while (!ret && nr == MAX_VGPUS);
	return ret;
}

/*
 * Start the workers that are due: one that dies at once, or cannot be started now, must not
 * make the caller's loop busy. Return the time until the next one, milliseconds; -1 for none.
 */
static int start_workers(const struct worker_options *o, const char *path)
{
	uint64_t now = now_ms();
	int wait_ms = -1, left;

	for (size_t i = 0; i < MAX_VGPUS; i++) {
		struct served *s = &served[i];

		if (!s->vgpu || !s->due)
			continue;
		if (now >= s->backoff.again_ms) {
			backoff_started(&s->backoff, now);
			s->due = false;
			if (!start_worker(o, path, s))
				continue;
			worker_ended(s);
		}
		left = s->backoff.again_ms > now ? (int)(s->backoff.again_ms - now) : 0;
		wait_ms = wait_ms < 0 || left < wait_ms ? left : wait_ms;
	}
	return wait_ms;
}

/* Tell the user, gpuctl and systemd that the device is served. */
static int say_ready(const struct renderd *record)
{
	struct mgpu_error err;

	if (renderd_publish("", record, &err)) {
		complain("%s", err.text);
		return err.code;
	}
	printf("mgpu-renderd: serves %s\n", record->device);
	fflush(stdout);
	notify("READY=1\nSTATUS=serves %s, renders %s%s", record->device,
	       *record->node ? "on " : "without a GPU", record->node);
	return 0;
}

/* Serve until a signal: 0 or a negative errno. */
static int serve(const struct worker_options *o, const char *path, int fd, int signals,
		 const struct renderd *record)
{
	struct pollfd fds[] = {
		{ .fd = fd, .events = POLLIN },
		{ .fd = signals, .events = POLLIN },
	};
	struct signalfd_siginfo info;
	int ret, wait_ms, spare_ms;

	/* The first read says that this file reads events. */
	ret = serve_events(fd);
	if (!ret)
		ret = say_ready(record);
	while (!ret) {
		wait_ms = start_workers(o, path);
		spare_ms = keep_spare(o);
		if (wait_ms < 0 || (spare_ms >= 0 && spare_ms < wait_ms))
			wait_ms = spare_ms;
		if (poll(fds, 2, wait_ms) < 0) {
			if (errno != EINTR)
				return -errno;
			continue;
		}
		if (fds[1].revents & POLLIN &&
		    read(signals, &info, sizeof(info)) == sizeof(info) &&
		    info.ssi_signo != SIGCHLD)
			return 0;
		ret = reap(fd);
	}
	return ret;
}

/*
 * Wait until the workers have ended, as they do when the device has: with their files they
 * keep the module from being unloaded. No one can end a worker that waits within a driver.
 */
static void wait_for_workers(int signals)
{
	struct pollfd fd = { .fd = signals, .events = POLLIN };
	uint64_t now = now_ms(), end = now + END_MS;
	struct signalfd_siginfo info;
	pid_t pid;

	for (; now < end; now = now_ms()) {
		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			;
		if (pid < 0)
			return;
		if (poll(&fd, 1, (int)(end - now)) == 1 &&
		    read(signals, &info, sizeof(info)) != sizeof(info))
			return;
	}
	complain("a worker has not ended; mgpu_user cannot be unloaded before it does");
}

static int serve_device(const struct worker_options *o, struct renderd *record)
{
	struct mgpu_user_destroy destroy = { .size = sizeof(destroy) };
	static struct probe p;
	int control, fd, signals, ret;
	char path[64];
	sigset_t set;

	ret = probe(o, &p);
	spare.libraries = p.libraries;
	if (ret) {
		complain("virglrenderer does not start %s%s: check the GPU's driver with 'eglinfo'",
			 o->node ? "on " : "without a GPU", o->node ? o->node : "");
		return ret;
	}
	if (o->dmabuf && !p.exports) {
		complain("--dmabuf: %s exports no dma-bufs that VMMs can show; leave the option away",
			 o->node ? o->node : "Mesa without a GPU");
		return -EOPNOTSUPP;
	}
	if (o->venus && p.set[p.nr - 1].id != VIRGL_VENUS) {
		complain("--venus: virglrenderer has no Venus, or an older one than guests use: install virglrenderer 1.0 or newer");
		return -EOPNOTSUPP;
	}
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signals = signalfd(-1, &set, SFD_CLOEXEC);
	control = open(CONTROL, O_RDWR | O_CLOEXEC);
	if (control < 0) {
		ret = -errno;
		complain("cannot open %s: %s; load mgpu_user", CONTROL, strerror(errno));
		return ret;
	}
	/* A device that an mgpu-renderd left when it died has the vGPUs of its VMs. */
	if (!*record->device)
		ret = make_device(control, &p, o, record);
	if (ret) {
		complain("cannot make a device: %s", strerror(-ret));
		return ret;
	}
	destroy.id = record->id;
	snprintf(path, sizeof(path), "/dev/mgpu-user%u", record->id);
	fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) {
		ret = -errno;
		complain("cannot open %s: %s", path, strerror(errno));
	} else {
		ret = serve(o, path, fd, signals, record);
		if (ret)
			complain("%s: %s", path, strerror(-ret));
	}
	let_spare_go();
	notify("STOPPING=1\nSTATUS=waits until the VMMs have closed their vGPUs");
	renderd_stopping(record);
	if (!ioctl(control, MGPU_USER_DESTROY, &destroy)) {
		*record->device = '\0';
		wait_for_workers(signals);
	} else if (!ret) {
		ret = -errno;
	}
	/* While it was open, no other device could have its number. */
	if (fd >= 0)
		close(fd);
	return ret;
}

/* Return the exit status. */
static int run(struct options *o)
{
	static struct renderd record;
	struct mgpu_error err;
	int ret;

	ret = node_claim(o->gpu, &o->worker.node, &record, &err);
	if (ret) {
		complain("%s", err.text);
		return ret == -EBUSY ? STATUS_BUSY : ret == -EINVAL ? STATUS_USAGE : 1;
	}
	ret = serve_device(&o->worker, &record);
	/* With the record the next mgpu-renderd finds a device that is left. */
	if (!*record.device)
		renderd_remove(&record);
	return ret ? 1 : 0;
}

/* The words help and version are options, too. */
static int word(const char *w)
{
	static const char *const words[] = { "replay", "help", "version", NULL };
	char text[256];

	if (!strcmp(w, "help")) {
		fputs(usage_text, stdout);
		return 0;
	}
	if (!strcmp(w, "version")) {
		puts("mgpu-renderd " MGPU_VERSION);
		return 0;
	}
	unknown_command(text, sizeof(text), "mgpu-renderd", w, words);
	complain("%s", text);
	return STATUS_USAGE;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "gpu", required_argument, NULL, 'g' },
		{ "node", required_argument, NULL, 'n' },
		{ "user", required_argument, NULL, 'u' },
		{ "no-sandbox", no_argument, NULL, 'S' },
		{ "dmabuf", no_argument, NULL, 'd' },
		{ "venus", no_argument, NULL, 'v' },
		{ "remote", no_argument, NULL, 'o' },
		{ "record", required_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ 0 },
	};
	struct options o = { .worker.sandbox = true };
	char text[256];
	struct stat st;
	int c;

	opterr = 0;
	if (argc > 1 && !strcmp(argv[1], WORKER))
		return worker(argc - 1, argv + 1);
	if (argc > 1 && !strcmp(argv[1], "replay"))
		return replay_main(argc - 1, argv + 1);
	while ((c = getopt_long(argc, argv, ":g:n:u:dr:hV", options, NULL)) != -1) {
		switch (c) {
		case 'g':
			o.gpu = optarg;
			break;
		case 'n':
			o.worker.node = optarg;
			break;
		case 'u':
			o.worker.user = optarg;
			break;
		case 'S':
			o.worker.sandbox = false;
			break;
		case 'd':
			o.worker.dmabuf = true;
			break;
		case 'v':
			o.worker.venus = true;
			break;
		case 'o':
			o.worker.remote = true;
			break;
		case 'r':
			o.worker.record = optarg;
			break;
		case 'h':
			fputs(usage_text, stdout);
			return 0;
		case 'V':
			puts("mgpu-renderd " MGPU_VERSION);
			return 0;
		default:
			getopt_problem(text, sizeof(text), "mgpu-renderd", c, argv, options, NULL);
			complain("%s", text);
			return STATUS_USAGE;
		}
	}
	if (optind < argc)
		return word(argv[optind]);
	if (o.gpu && o.worker.node) {
		complain("give --gpu or --node, not both");
		return STATUS_USAGE;
	}
	if (o.worker.record && o.worker.venus) {
		complain("give --record or --venus, not both: commands of Venus cannot be recorded");
		return STATUS_USAGE;
	}
	if (o.worker.record && o.worker.remote) {
		complain("give --record or --remote, not both: OpenCL cannot be recorded");
		return STATUS_USAGE;
	}
	if (o.worker.record && (stat(o.worker.record, &st) || !S_ISDIR(st.st_mode))) {
		complain("--record %s: there is no such folder; make it first",
			 o.worker.record);
		return STATUS_USAGE;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	return run(&o);
}
