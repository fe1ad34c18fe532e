// SPDX-License-Identifier: GPL-2.0-only
/* A worker: executes the commands of one vGPU. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <linux/virtio_gpu.h>

#include "channel.h"
#include "clock.h"
#include "complain.h"
#include "engine_clock.h"
#include "record.h"
#include "remote.h"
#include "sandbox.h"
#include "spare.h"
#include "turns.h"
#include "venus.h"
#include "virgl.h"
#include "worker.h"

/* Period of looks at fences where the renderer has no file descriptor for them. */
#define LOOK_MS		1

/* Wait for commands while no fence is pending; a vGPU that is closed ends it at once. */
#define WAIT_MS		10000

/* Period of looks at the channel by the thread that ends a worker that hangs. */
#define HANG_S		2

/**
 * struct worker - a worker
 * @ch: its channel
 * @v: the renderer
 * @rec: records what it executes; NULL for no recording
 * @clock: of the GPU's driver
 * @by_fences: the driver has none, and the times between fences count
 * @told_ns: its time that the module was told of
 * @o: options
 * @venus: the server of Venus, if there is one
 * @program: mgpu-remoted, open; -1 for none
 * @programs: the server of programs that use remoted OpenCL, if there is one
 * @remote: their contexts; NULL for none
 * @turns: when it may work
 * @turn: command of its turn
 */
struct worker {
	struct channel ch;
	struct virgl *v;
	struct recorder *rec;
	struct engine_clock clock;
	bool by_fences;
	uint64_t told_ns;
	const struct worker_options *o;
	struct processes venus;
	int program;
	struct processes programs;
	struct remote *remote;
	struct turns turns;
	uint32_t turn;
};

static void *map(void *arg, uint64_t offset, uint64_t len)
{
	const struct worker *w = arg;
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, w->ch.fd,
		       (off_t)offset);

	return p == MAP_FAILED ? NULL : p;
}

/* Return the time of the servers. */
static uint64_t servers_ns(struct worker *w)
{
	return processes_ns(&w->venus) + processes_ns(&w->programs);
}

static bool servers_are_ready(const struct worker *w)
{
	return processes_are_ready(&w->venus) || processes_are_ready(&w->programs);
}

/* Return engine time so far. */
static uint64_t worked_ns(struct worker *w)
{
	return (w->by_fences ? virgl_worked_ns(w->v) : engine_clock_ns(&w->clock)) +
	       servers_ns(w);
}

static int show(void *arg, uint32_t seq, void *p, size_t len, uint32_t cache)
{
	struct worker *w = arg;

	return channel_map(&w->ch, seq, p, len, cache);
}

/* Commands are complete in their order, so that a command has the time since the last one. */
static void done(void *arg, uint32_t seq, uint32_t type)
{
	struct worker *w = arg;
	uint64_t ns = worked_ns(w);

	/* A driver's clock may be estimated, and go back. */
	if (ns < w->told_ns)
		ns = w->told_ns;
	channel_answer(&w->ch, seq, type, ns - w->told_ns);
	w->told_ns = ns;
}

static int server(void *arg)
{
	struct worker *w = arg;

	return venus_start(&w->venus, w->o->sandbox, w->ch.a.mem_limit);
}

static const struct virgl_ops ops = { .map = map, .show = show, .done = done };
static const struct virgl_ops venus_ops = {
	.map = map, .show = show, .done = done, .server = server,
};

/* Export the resource that a command has made; without a dma-buf the VMM shows no picture. */
static void export(struct worker *w, uint32_t id)
{
	struct mgpu_user_export e;
	int ret = virgl_export(w->v, id, &e);

	if (!ret) {
		ret = channel_export(&w->ch, &e);
		close(e.fd);
	}
	if (ret)
		complain("the VMM gets no dma-buf of its screen: %s", strerror(-ret));
}

/* ---- turns of servers ---- */

static void stop_or_run(struct worker *w, unsigned int what)
{
	if (what & TURNS_STOP) {
		processes_stop(&w->venus);
		processes_stop(&w->programs);
	}
	if (what & TURNS_RUN) {
		processes_continue(&w->venus);
		processes_continue(&w->programs);
	}
}

/* Return whether commands of the guest are not complete. */
static bool is_busy(const struct worker *w)
{
	return virgl_busy(w->v) || remote_busy(w->remote);
}

/* Carry bytes of programs. Return the time until the next look, milliseconds; -1 for none. */
static int carry(struct worker *w)
{
	uint64_t left = remote_poll(w->remote, now_ns());
	unsigned int what;

	/* Jobs have a bounded length; what goes on behind them is another's time. */
	if (!is_busy(w) && remote_works(w->remote)) {
		what = turns_hold(&w->turns, servers_ns(w));
		if (what & TURNS_ASK)
			channel_turn(&w->ch);
		stop_or_run(w, what);
	}
	return left == UINT64_MAX ? -1 : (int)(left / 1000000 + 1);
}

/* Look at what servers do. Return the time until the next look, milliseconds, or an errno. */
static int look_at_servers(struct worker *w)
{
	uint64_t now, used;
	unsigned int what;
	int ret = 0;

	if (!virgl_has_venus(w->v) && !remote_used(w->remote) && w->turns.state != TURNS_HAS) {
		/* Of contexts that have ended; the module may still give the turn. */
		w->turns.state = TURNS_IDLE;
		stop_or_run(w, turns_run(&w->turns));
		return WAIT_MS;
	}
	now = now_ns();
	used = servers_ns(w);
	what = turns_look(&w->turns, now, used, is_busy(w),
			  turns_seems_to_rest(&w->turns, now, used) && servers_are_ready(w));
	/*
	 * Before the end of a turn, so that the vGPU has a job when the scheduler chooses the next
	 * one.  The module refuses a second request, and any while the guest has no driver.
	 */
	if (what & TURNS_ASK)
		channel_turn(&w->ch);
	if (what & TURNS_END) {
		done(w, w->turn, VIRTIO_GPU_RESP_OK_NODATA);
		ret = channel_enter(&w->ch, 0);
	}
	stop_or_run(w, what);
	return ret ? ret : (int)(turns_next(&w->turns) / 1000000);
}

/* ---- commands ---- */

static void execute(struct worker *w)
{
	struct mgpu_user_cmd cmd;
	const void *buf;
	uint32_t type;

	while (channel_take(&w->ch, &cmd)) {
		if (cmd.flags & MGPU_USER_CMD_TURN) {
			/* It was asked for once more when the last one was on its way. */
			if (w->turns.state == TURNS_HAS)
				done(w, w->turn, VIRTIO_GPU_RESP_OK_NODATA);
			w->turn = cmd.seq;
			stop_or_run(w, turns_given(&w->turns, now_ns(), servers_ns(w)));
			continue;
		}
		/* A server answers some commands: it must not be stopped meanwhile. */
		stop_or_run(w, turns_run(&w->turns));
		buf = w->ch.arena + cmd.offset;
		recorder_before(w->rec, &cmd, buf);
		if (remote_execute(w->remote, cmd.seq, buf, &type))
			type = type ? virgl_answer(w->v, &cmd, buf, type) : 0;
		else
			type = virgl_execute(w->v, &cmd, buf);
		recorder_after(w->rec, buf);
		if (cmd.flags & MGPU_USER_CMD_EXPORT && type == VIRTIO_GPU_RESP_OK_NODATA)
			export(w, ((const struct virtio_gpu_resource_create_3d *)buf)->resource_id);
		if (type && !(cmd.flags & MGPU_USER_CMD_NOTICE))
			channel_answer(&w->ch, cmd.seq, type, 0);
	}
}

/* Wait for a command, a fence, or bytes of programs. */
static int wait_for_all(struct worker *w, int timeout_ms)
{
	struct pollfd fds[2 + REMOTE_FDS] = {
		{ .fd = w->ch.fd, .events = POLLIN },
		{ .fd = virgl_fd(w->v), .events = POLLIN },
	};
	unsigned int nr = 2 + remote_fds(w->remote, fds + 2);

	/* Fences of Venus have files of their own. */
	if ((fds[1].fd < 0 && virgl_busy(w->v)) || virgl_has_venus(w->v))
		timeout_ms = LOOK_MS;
	if (poll(fds, nr, timeout_ms) < 0 && errno != EINTR)
		return -errno;
	virgl_poll(w->v);
	return 0;
}

/* Serve until an error: a negative errno. */
static int serve(struct worker *w)
{
	int ret = 0, wait_ms, carry_ms;

	while (!ret) {
		execute(w);
		carry_ms = carry(w);
		wait_ms = look_at_servers(w);
		if (wait_ms < 0) {
			ret = wait_ms;
		} else if (is_busy(w)) {
			if (carry_ms >= 0 && carry_ms < wait_ms)
				wait_ms = carry_ms;
			ret = channel_enter(&w->ch, 0);
			if (!ret && is_busy(w))
				ret = wait_for_all(w, wait_ms);
		} else {
			ret = channel_enter(&w->ch, (uint32_t)wait_ms);
		}
		if (ret == -EINTR)
			ret = 0;
	}
	return ret;
}

/*
 * End the process when its channel has been lost for a period, and the renderer has not
 * returned since: the GPU, or the processors in its place, may work for ever.
 */
static void *watch(void *arg)
{
	const struct worker *w = arg;
	struct pollfd fd = { .fd = w->ch.fd };
	bool lost = false;

	for (;;) {
		sleep(HANG_S);
		/* Waiting in poll() would wake this thread at each command. */
		if (poll(&fd, 1, 0) != 1)
			continue;
		if (lost)
			_exit(1);
		lost = true;
	}
}

/* The worker may make no thread later, and joins its VMM's cgroups with none. */
static int start_watch(struct worker *w)
{
	pthread_attr_t attr;
	pthread_t thread;
	int ret = pthread_attr_init(&attr);

	if (ret)
		return -ret;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, 2 * PTHREAD_STACK_MIN);
	ret = -pthread_create(&thread, &attr, watch, w);
	pthread_attr_destroy(&attr);
	return ret;
}

static void *memory(void *arg, uint32_t resource, size_t *len)
{
	const struct worker *w = arg;

	return virgl_one_piece(w->v, resource, len);
}

static int start_programs(struct worker *w)
{
	static const struct remote_ops remote_ops = { .memory = memory, .done = done };
	int fd = remote_start(&w->programs, w->program, w->o->sandbox, w->ch.a.mem_limit);

	close(w->program);
	if (fd < 0)
		return fd;
	w->remote = remote_new(fd, &remote_ops, w);
	/* A process that has ended is a write's error. */
	signal(SIGPIPE, SIG_IGN);
	return w->remote ? 0 : -ENOMEM;
}

/* Start the renderer, with no more rights than it needs. */
static int start(struct worker *w, const struct spare_order *order, int drm,
		 const struct worker_options *o, const struct sandbox *s)
{
	uint64_t memory = w->ch.a.mem_limit;
	int ret = 0;

	w->o = o;
	if (o->sandbox)
		ret = sandbox_enter(s);
	if (!ret && o->remote)
		ret = start_programs(w);
	if (!ret)
		ret = start_watch(w);
	if (!ret)
		ret = virgl_new(&w->v, drm, o->venus ? &venus_ops : &ops, w);
	if (ret)
		return ret;
	if (!o->node)
		engine_clock_start_cpu(&w->clock);
	else if (engine_clock_start(&w->clock, "/proc/self/fdinfo"))
		w->venus.engines = w->programs.engines = true;
	else
		w->by_fences = true;
	w->told_ns = worked_ns(w);
	w->rec = recorder_new(order->record, order->vgpu, w->v);
	/* A recorder has a copy of the guest's memory. */
	if (o->sandbox)
		ret = sandbox_seal(w->rec ? 2 * memory : memory, o->venus || o->remote);
	return ret;
}

/* Wait for a vGPU, with all done that can be done without one. */
static int get_order(int orders, const struct worker_options *o, struct worker *w,
		     struct sandbox *s, struct spare_order *order)
{
	int ret = 0;

	/* The sandbox does not show it. */
	w->program = o->remote ? remote_open_program() : -1;
	if (o->remote && w->program < 0)
		ret = w->program;
	if (!ret && o->sandbox)
		ret = sandbox_prepare(s, o->node, o->user, o->remote);
	if (!ret)
		ret = spare_prepare(orders);
	prctl(PR_SET_NAME, "mgpu-spare");
	if (!ret)
		ret = spare_wait(orders, order);
	close(orders);
	prctl(PR_SET_NAME, "mgpu-worker");
	return ret;
}

int worker_main(int orders, const struct worker_options *o)
{
	struct spare_order order;
	static struct worker w;
	struct sandbox s;
	int drm, ret;

	ret = get_order(orders, o, &w, &s, &order);
	/* Without an order, the supervisor has no use for this worker, or has died. */
	if (ret)
		return ret == -ENODEV ? 0 : ret;
	/* The node may be root's alone, and not allowed in the VMM's cgroup. */
	ret = virgl_open_node(o->node, &drm);
	if (ret)
		return ret;
	ret = channel_open(&w.ch, order.fd, order.vgpu);
	if (ret) {
		complain("cannot serve vGPU %u: %s", order.vgpu, strerror(-ret));
		return ret;
	}
	ret = start(&w, &order, drm, o, &s);
	if (!ret) {
		ret = serve(&w);
		if (ret != -ENODEV)
			complain("vGPU %u: %s", order.vgpu, strerror(-ret));
	}
	recorder_free(w.rec);
	remote_free(w.remote);
	virgl_free(w.v);
	channel_close(&w.ch);
	return ret == -ENODEV ? 0 : ret;
}
