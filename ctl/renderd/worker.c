// SPDX-License-Identifier: GPL-2.0-only
/* A worker: executes the commands of one vGPU. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
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
 * @timed: the driver has none, and OpenGL's is read
 * @told_ns: its time that the module was told of
 * @o: options
 * @venus: the server of Venus, if there is one
 * @turns: when it may work
 * @turn: command of its turn
 */
struct worker {
	struct channel ch;
	struct virgl *v;
	struct recorder *rec;
	struct engine_clock clock;
	bool timed;
	uint64_t told_ns;
	const struct worker_options *o;
	struct processes venus;
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

/* Return engine time so far; 0 if nothing tells it, and the module's clock counts. */
static uint64_t worked_ns(struct worker *w)
{
	return (w->timed ? virgl_time_ns(w->v) : engine_clock_ns(&w->clock)) +
	       processes_ns(&w->venus);
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

/* ---- turns of Venus ---- */

static void stop_or_run(struct worker *w, unsigned int what)
{
	if (what & TURNS_STOP)
		processes_stop(&w->venus);
	if (what & TURNS_RUN)
		processes_continue(&w->venus);
}

/* Look at what Venus does. Return the time until the next look, milliseconds, or an errno. */
static int look_at_venus(struct worker *w)
{
	unsigned int what;
	int ret = 0;

	if (!virgl_has_venus(w->v) && w->turns.state != TURNS_HAS) {
		/* Of contexts that have ended; the module may still give the turn. */
		w->turns.state = TURNS_IDLE;
		stop_or_run(w, turns_run(&w->turns));
		return WAIT_MS;
	}
	what = turns_look(&w->turns, now_ns(), processes_ns(&w->venus), virgl_busy(w->v));
	if (what & TURNS_END) {
		done(w, w->turn, VIRTIO_GPU_RESP_OK_NODATA);
		/* The module gives the next turn when it knows that this one is over. */
		ret = channel_enter(&w->ch, 0);
	}
	/* It refuses a second request, and any while the guest has no driver. */
	if (what & TURNS_ASK)
		channel_turn(&w->ch);
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
			w->turn = cmd.seq;
			stop_or_run(w, turns_given(&w->turns, now_ns(), processes_ns(&w->venus)));
			continue;
		}
		/* The server answers some commands of Venus: it must not be stopped meanwhile. */
		stop_or_run(w, turns_run(&w->turns));
		buf = w->ch.arena + cmd.offset;
		recorder_before(w->rec, &cmd, buf);
		type = virgl_execute(w->v, &cmd, buf);
		recorder_after(w->rec, buf);
		if (cmd.flags & MGPU_USER_CMD_EXPORT && type == VIRTIO_GPU_RESP_OK_NODATA)
			export(w, ((const struct virtio_gpu_resource_create_3d *)buf)->resource_id);
		if (type && !(cmd.flags & MGPU_USER_CMD_NOTICE))
			channel_answer(&w->ch, cmd.seq, type, 0);
	}
}

/* Wait for a command or a fence. */
static int wait_for_both(struct worker *w, int timeout_ms)
{
	struct pollfd fds[] = {
		{ .fd = w->ch.fd, .events = POLLIN },
		{ .fd = virgl_fd(w->v), .events = POLLIN },
	};

	/* Fences of Venus have files of their own. */
	if (fds[1].fd < 0 || virgl_has_venus(w->v))
		timeout_ms = LOOK_MS;
	if (poll(fds, 2, timeout_ms) < 0 && errno != EINTR)
		return -errno;
	virgl_poll(w->v);
	return 0;
}

/* Serve until an error: a negative errno. */
static int serve(struct worker *w)
{
	int ret = 0, wait_ms;

	while (!ret) {
		execute(w);
		wait_ms = look_at_venus(w);
		if (wait_ms < 0) {
			ret = wait_ms;
		} else if (virgl_busy(w->v)) {
			ret = channel_enter(&w->ch, 0);
			if (!ret && virgl_busy(w->v))
				ret = wait_for_both(w, wait_ms);
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

/* Start the renderer, with no more rights than it needs. */
static int start(struct worker *w, const struct spare_order *order, int drm,
		 const struct worker_options *o, const struct sandbox *s)
{
	uint64_t memory = w->ch.a.mem_limit;
	int ret = 0;

	w->o = o;
	if (o->sandbox)
		ret = sandbox_enter(s);
	if (!ret)
		ret = start_watch(w);
	if (!ret)
		ret = virgl_new(&w->v, drm, o->venus ? &venus_ops : &ops, w);
	if (ret)
		return ret;
	if (!o->node)
		engine_clock_start_cpu(&w->clock);
	else if (engine_clock_start(&w->clock, "/proc/self/fdinfo"))
		w->venus.engines = true;
	else
		w->timed = virgl_time(w->v);
	w->told_ns = worked_ns(w);
	w->rec = recorder_new(order->record, order->vgpu, w->v);
	/* A recorder has a copy of the guest's memory. */
	if (o->sandbox)
		ret = sandbox_seal(w->rec ? 2 * memory : memory, o->venus);
	return ret;
}

/* Wait for a vGPU, with all done that can be done without one. */
static int get_order(int orders, const struct worker_options *o, struct sandbox *s,
		     struct spare_order *order)
{
	int ret = 0;

	if (o->sandbox)
		ret = sandbox_prepare(s, o->node, o->user);
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

	ret = get_order(orders, o, &s, &order);
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
	virgl_free(w.v);
	channel_close(&w.ch);
	return ret == -ENODEV ? 0 : ret;
}
