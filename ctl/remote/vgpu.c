// SPDX-License-Identifier: GPL-2.0-only
/* A context of a vGPU as the transport, by the ioctls of Linux's virtio_gpu. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "codec.h"
#include "transport.h"
#include "vgpu.h"
#include "virtgpu.h"

#define IN_LEN		(1u << 20)	/* ring of bytes from the server */
#define SLOT_LEN	(256u << 10)	/* bytes for the server in a stream */
#define SLOTS		2u
#define INLINE_MAX	4096u		/* more bytes are not copied through the stream */
#define TOTAL		(REMOTE_VGPU_PAGE + IN_LEN + SLOTS * SLOT_LEN)
#define NODES		64u
#define AHEAD_MS	(REMOTE_VGPU_SLICE_NS / 2000000)	/* when the next stream is sent */
#define PAUSE_MIN_NS	50000
#define PAUSE_MAX_NS	2000000

#define FORMAT_R8	64		/* PIPE_FORMAT_R8_UNORM */
#define BIND_STAGING	(1u << 19)	/* its memory is the guest's alone */

static int call(int fd, unsigned long request, void *arg)
{
	int ret;

	do {
		ret = ioctl(fd, request, arg);
	} while (ret && (errno == EINTR || errno == EAGAIN));
	return ret ? -errno : 0;
}

static uint64_t address(const void *p)
{
	return (uintptr_t)p;
}

/* ---- the connection ---- */

/**
 * struct fence - that of a stream
 * @fd: file that is readable when it is signalled; -1 for none
 * @stream: number of the stream, from 1
 */
struct fence {
	int fd;
	uint64_t stream;
};

#define NO_FENCE	((struct fence){ .fd = -1 })

/**
 * struct vgpu - a context
 * @t: the transport
 * @fd: render node
 * @page: beginning of the resource's memory
 * @taken: bytes that were taken from the ring
 * @sent: bytes for the server that were sent
 * @slot_fence: fence of the stream that used a slot last
 * @slot: the next one
 * @lock: covers @streams and @newest
 * @streams: number of the last stream
 * @newest: fence of a stream for the server that nothing has waited for
 * @shut: the connection is no longer
 */
struct vgpu {
	struct transport t;
	int fd;
	struct remote_vgpu_page *page;
	uint64_t taken;
	uint64_t sent;
	struct fence slot_fence[SLOTS];
	unsigned int slot;
	pthread_mutex_t lock;
	uint64_t streams;
	struct fence newest;
	atomic_bool shut;
};

static struct vgpu *vgpu_of(struct transport *t)
{
	return (struct vgpu *)t;
}

static void close_fence(struct fence f)
{
	if (f.fd >= 0)
		close(f.fd);
}

/* Send a stream. Set its fence, or return false with errno. */
static bool submit(struct vgpu *v, const void *stream, size_t len, struct fence *fence)
{
	struct virtgpu_execbuffer exec = {
		.flags = VIRTGPU_FENCE_OUT | VIRTGPU_RING, .size = (uint32_t)len,
		.command = address(stream), .fence_fd = -1,
	};
	int ret;

	pthread_mutex_lock(&v->lock);
	ret = call(v->fd, VIRTGPU_IOCTL_EXECBUFFER, &exec);
	if (!ret)
		*fence = (struct fence){ .fd = exec.fence_fd, .stream = ++v->streams };
	pthread_mutex_unlock(&v->lock);
	errno = -ret;
	return !ret;
}

static bool submit_wait(struct vgpu *v, struct fence *fence)
{
	const struct remote_vgpu_op op = { .op = REMOTE_VGPU_WAIT };

	return submit(v, &op, sizeof(op), fence);
}

/* Wait for a fence for some time. Return whether it is signalled. */
static bool signalled(struct fence f, int timeout_ms)
{
	struct pollfd fd = { .fd = f.fd, .events = POLLIN };
	int n;

	do {
		n = poll(&fd, 1, timeout_ms);
	} while (n < 0 && errno == EINTR);
	return n;
}

/* Wait for a fence, which goes. Return false with errno if the context is lost. */
static bool finish(const struct vgpu *v, struct fence f)
{
	signalled(f, -1);
	close_fence(f);
	if (__atomic_load_n(&v->page->streams, __ATOMIC_ACQUIRE) >= f.stream)
		return true;
	errno = ECONNRESET;
	return false;
}

/* Have the next thread that waits do so for this stream first. Return what it did so for. */
static struct fence set_newest(struct vgpu *v, struct fence f)
{
	struct fence old;

	pthread_mutex_lock(&v->lock);
	old = v->newest;
	v->newest = f;
	pthread_mutex_unlock(&v->lock);
	return old;
}

/*
 * Let the server work until a stream has ended: one that is there, or one that only waits.  Another
 * one follows before that, so that the vGPU has always a job that the scheduler can choose.
 */
static bool let_work(struct vgpu *v, struct fence *ahead)
{
	struct fence f = ahead->fd >= 0 ? *ahead : set_newest(v, NO_FENCE);

	*ahead = NO_FENCE;
	if (f.fd < 0 && !submit_wait(v, &f))
		return false;
	if (!signalled(f, AHEAD_MS) && !submit_wait(v, ahead)) {
		close_fence(f);
		return false;
	}
	return finish(v, f);
}

static uint64_t put_of(const struct vgpu *v)
{
	return __atomic_load_n(&v->page->put, __ATOMIC_ACQUIRE);
}

static bool has_ended(struct vgpu *v)
{
	return atomic_load(&v->shut) || __atomic_load_n(&v->page->ended, __ATOMIC_ACQUIRE);
}

/*
 * Wait until the ring has bytes, or @until have been received by the server if that is not 0, or
 * the server has ended.  Return false on an error.
 */
static bool wait_for(struct vgpu *v, uint64_t until)
{
	struct timespec pause = { .tv_nsec = PAUSE_MIN_NS };
	struct fence ahead = NO_FENCE;
	bool good = true;

	for (;;) {
		uint64_t put = put_of(v), sent = __atomic_load_n(&v->page->sent, __ATOMIC_ACQUIRE);

		if (until ? sent >= until : put != v->taken)
			break;
		if (has_ended(v))
			break;
		good = let_work(v, &ahead);
		if (!good)
			break;
		/* Without a job ahead the stream had nothing to wait for: the server rests. */
		if (ahead.fd < 0 && put_of(v) == put) {
			nanosleep(&pause, NULL);
			if (pause.tv_nsec < PAUSE_MAX_NS)
				pause.tv_nsec *= 2;
		}
	}
	close_fence(ahead);
	return good;
}

static ssize_t vgpu_receive(struct transport *t, void *p, size_t len)
{
	struct vgpu *v = vgpu_of(t);
	const uint8_t *ring = (const uint8_t *)v->page + REMOTE_VGPU_PAGE;
	uint64_t there, at = v->taken % IN_LEN;

	if (!wait_for(v, 0))
		return -1;
	there = put_of(v) - v->taken;
	if (!there)
		return 0;
	if (there > IN_LEN) {
		errno = EPROTO;
		return -1;
	}
	if (len > there)
		len = there;
	if (len > IN_LEN - at)
		len = IN_LEN - at;
	memcpy(p, ring + at, len);
	v->taken += len;
	__atomic_store_n(&v->page->taken, v->taken, __ATOMIC_RELEASE);
	return (ssize_t)len;
}

/* Have bytes in a slot sent; its memory is used again when the fence is signalled. */
static bool send_slot(struct vgpu *v, const void *p, size_t len)
{
	unsigned int slot = v->slot++ % SLOTS;
	uint32_t offset = REMOTE_VGPU_PAGE + IN_LEN + slot * SLOT_LEN;
	struct {
		struct remote_vgpu_op op;
		struct remote_vgpu_data data;
	} stream = {
		.op = { .op = REMOTE_VGPU_DATA, .len = sizeof(stream.data) },
		.data = { .offset = offset, .len = (uint32_t)len },
	};
	struct fence f;

	f = v->slot_fence[slot];
	v->slot_fence[slot] = NO_FENCE;
	if (f.fd >= 0 && !finish(v, f))
		return false;
	memcpy((uint8_t *)v->page + offset, p, len);
	if (!submit(v, &stream, sizeof(stream), &f))
		return false;
	v->slot_fence[slot] = f;
	f.fd = fcntl(f.fd, F_DUPFD_CLOEXEC, 0);
	close_fence(set_newest(v, f));
	return true;
}

static bool send_inline(struct vgpu *v, const void *p, size_t len)
{
	struct {
		struct remote_vgpu_op op;
		uint8_t bytes[INLINE_MAX];
	} stream = { .op = { .op = REMOTE_VGPU_SEND, .len = (uint32_t)len } };
	struct fence f;

	memcpy(stream.bytes, p, len);
	memset(stream.bytes + len, 0, padded(len) - len);
	if (!submit(v, &stream, sizeof(stream.op) + padded(len), &f))
		return false;
	close_fence(set_newest(v, f));
	return true;
}

static ssize_t vgpu_send(struct transport *t, const void *p, size_t len)
{
	struct vgpu *v = vgpu_of(t);

	if (len > SLOT_LEN)
		len = SLOT_LEN;
	/* Not more is under way than the worker keeps for a server that does not read. */
	if (v->sent + len > REMOTE_VGPU_WINDOW &&
	    !wait_for(v, v->sent + len - REMOTE_VGPU_WINDOW))
		return -1;
	if (has_ended(v)) {
		errno = EPIPE;
		return -1;
	}
	if (!(len > INLINE_MAX ? send_slot(v, p, len) : send_inline(v, p, len)))
		return -1;
	v->sent += len;
	return (ssize_t)len;
}

/* Streams end soon, and threads that wait for one see it then. */
static void vgpu_shut(struct transport *t)
{
	atomic_store(&vgpu_of(t)->shut, true);
}

static void vgpu_close(struct transport *t)
{
	struct vgpu *v = vgpu_of(t);

	for (unsigned int i = 0; i < SLOTS; i++)
		close_fence(v->slot_fence[i]);
	close_fence(v->newest);
	if (v->page)
		munmap(v->page, TOTAL);
	close(v->fd);
	free(v);
}

static const struct transport_ops vgpu_ops = {
	.send = vgpu_send, .receive = vgpu_receive, .shut = vgpu_shut, .close = vgpu_close,
};

/* ---- opening ---- */

/* Find out whether a node is that of a vGPU with remoted OpenCL. */
static int check(int fd)
{
	char name[16] = "";
	struct drm_version version = { .name_len = sizeof(name) - 1, .name = name };
	uint32_t sets = 0;
	struct drm_virtgpu_getparam param = { .param = VIRTGPU_CAPSETS, .value = address(&sets) };
	struct remote_vgpu_caps caps = { 0 };
	struct drm_virtgpu_get_caps get = {
		.cap_set_id = REMOTE_VGPU_CAPSET, .cap_set_ver = REMOTE_VGPU_VERSION,
		.addr = address(&caps), .size = sizeof(caps),
	};
	int ret = call(fd, DRM_IOCTL_VERSION, &version);

	if (ret || strcmp(name, "virtio_gpu") || call(fd, DRM_IOCTL_VIRTGPU_GETPARAM, &param) ||
	    !(sets & 1u << REMOTE_VGPU_CAPSET))
		return -EOPNOTSUPP;
	ret = call(fd, DRM_IOCTL_VIRTGPU_GET_CAPS, &get);
	if (!ret && caps.version != REMOTE_VGPU_VERSION)
		ret = -EPROTO;
	return ret;
}

/* Have a context, and the resource. */
static int make(struct vgpu *v)
{
	struct virtgpu_context_param params[] = {
		{ VIRTGPU_CONTEXT_CAPSET, REMOTE_VGPU_CAPSET }, { VIRTGPU_CONTEXT_RINGS, 1 },
	};
	struct virtgpu_context_init context = { .num_params = 2, .params = address(params) };
	struct drm_virtgpu_resource_create res = {
		.format = FORMAT_R8, .bind = BIND_STAGING, .width = TOTAL, .height = 1, .depth = 1,
		.array_size = 1, .size = TOTAL,
	};
	struct drm_virtgpu_map map = { 0 };
	struct {
		struct remote_vgpu_op op;
		struct remote_vgpu_open open;
	} stream = {
		.op = { .op = REMOTE_VGPU_OPEN, .len = sizeof(stream.open) },
		.open.in_len = IN_LEN,
	};
	struct fence f;
	void *p;
	int ret;

	ret = call(v->fd, VIRTGPU_IOCTL_CONTEXT_INIT, &context);
	if (!ret)
		ret = call(v->fd, DRM_IOCTL_VIRTGPU_RESOURCE_CREATE, &res);
	map.handle = res.bo_handle;
	if (!ret)
		ret = call(v->fd, DRM_IOCTL_VIRTGPU_MAP, &map);
	if (ret)
		return ret;
	p = mmap(NULL, TOTAL, PROT_READ | PROT_WRITE, MAP_SHARED, v->fd, (off_t)map.offset);
	if (p == MAP_FAILED)
		return -errno;
	v->page = p;
	memset(v->page, 0, sizeof(*v->page));
	stream.open.resource = res.res_handle;
	/* Without a process for the program there is no context. */
	return submit(v, &stream, sizeof(stream), &f) && finish(v, f) ? 0 : -errno;
}

static int open_node(struct transport **t, const char *node)
{
	struct vgpu *v = calloc(1, sizeof(*v));
	int ret;

	if (!v)
		return -ENOMEM;
	v->t.ops = &vgpu_ops;
	for (unsigned int i = 0; i < SLOTS; i++)
		v->slot_fence[i] = NO_FENCE;
	v->newest = NO_FENCE;
	pthread_mutex_init(&v->lock, NULL);
	v->fd = open(node, O_RDWR | O_CLOEXEC);
	if (v->fd < 0) {
		ret = -errno;
		free(v);
		return ret;
	}
	ret = check(v->fd);
	if (!ret)
		ret = make(v);
	if (ret)
		vgpu_close(&v->t);
	else
		*t = &v->t;
	return ret;
}

int transport_vgpu(struct transport **t, const char *node)
{
	char path[32];
	int ret = -ENOENT, err;

	if (node)
		return open_node(t, node);
	for (unsigned int i = 0; i < NODES; i++) {
		snprintf(path, sizeof(path), "/dev/dri/renderD%u", 128 + i);
		err = open_node(t, path);
		if (!err)
			return 0;
		if (err != -ENOENT)
			ret = err;
	}
	return ret;
}
