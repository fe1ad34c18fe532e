// SPDX-License-Identifier: GPL-2.0-only
/*
 * A vGPU for programs outside of a VM: with this library in LD_PRELOAD, NODE is one whose driver
 * and whose worker are threads of the program.  The worker's part is that of mgpu-renderd.  With
 * MGPU_VGPU_LOSES=N it does not know the context any more from the Nth stream on.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "remote.h"
#include "virtgpu.h"
#include "../../ctl/remote/vgpu.h"

#define NODE		"/dev/dri/renderD191"
#define STREAMS		64u
#define RESOURCE	7u
#define CONTEXT		3u
#define MAP_OFFSET	0x100000000ull

struct stream {
	struct virtio_gpu_cmd_submit *cmd;
	int fence;
};

static struct {
	pthread_mutex_t lock;
	int node, wake, memory;
	size_t len;
	void *map;
	struct stream stream[STREAMS];
	unsigned int put, taken;
	int fence[STREAMS];
	unsigned int loses;
	struct processes processes;
	struct remote *remote;
} vgpu = { .lock = PTHREAD_MUTEX_INITIALIZER, .node = -1 };

/* ---- the worker ---- */

static void *memory(void *arg, uint32_t resource, size_t *len)
{
	(void)arg;
	*len = vgpu.len;
	return resource == RESOURCE ? vgpu.map : NULL;
}

static void signal_fence(int fence)
{
	const uint64_t one = 1;

	if (write(fence, &one, sizeof(one)) != sizeof(one))
		abort();
	close(fence);
}

static void done(void *arg, uint32_t seq, uint32_t type)
{
	(void)arg;
	if (type != VIRTIO_GPU_RESP_OK_NODATA)
		abort();
	signal_fence(vgpu.fence[seq % STREAMS]);
}

static const struct remote_ops ops = { .memory = memory, .done = done };

static void execute_all(void)
{
	struct stream s;
	uint32_t type;

	for (;;) {
		pthread_mutex_lock(&vgpu.lock);
		if (vgpu.taken == vgpu.put) {
			pthread_mutex_unlock(&vgpu.lock);
			return;
		}
		s = vgpu.stream[vgpu.taken % STREAMS];
		vgpu.fence[vgpu.taken % STREAMS] = s.fence;
		type = VIRTIO_GPU_RESP_ERR_UNSPEC;
		if (vgpu.taken < vgpu.loses &&
		    !remote_execute(vgpu.remote, vgpu.taken, &s.cmd->hdr, &type))
			abort();
		if (type)
			signal_fence(s.fence);
		vgpu.taken++;
		pthread_mutex_unlock(&vgpu.lock);
		free(s.cmd);
	}
}

static void *work(void *arg)
{
	(void)arg;
	for (;;) {
		struct pollfd fds[1 + REMOTE_FDS] = { { .fd = vgpu.wake, .events = POLLIN } };
		uint64_t left, n;

		execute_all();
		left = remote_poll(vgpu.remote, now_ns());
		poll(fds, 1 + remote_fds(vgpu.remote, fds + 1),
		     left == UINT64_MAX ? -1 : (int)(left / 1000000 + 1));
		if (fds[0].revents && read(vgpu.wake, &n, sizeof(n)) != sizeof(n))
			abort();
	}
	return NULL;
}

static void start(void)
{
	const struct virtio_gpu_ctx_create make = {
		.hdr = { .type = VIRTIO_GPU_CMD_CTX_CREATE, .ctx_id = CONTEXT },
		.context_init = REMOTE_VGPU_CAPSET,
	};
	int program = open(getenv("MGPU_REMOTED"), O_RDONLY | O_CLOEXEC);
	const char *loses = getenv("MGPU_VGPU_LOSES");
	pthread_t thread;
	uint32_t type;

	signal(SIGPIPE, SIG_IGN);
	vgpu.loses = loses ? (unsigned int)atoi(loses) : -1u;
	vgpu.wake = eventfd(0, EFD_CLOEXEC);
	/* The server has the environment of a worker. */
	unsetenv("LD_PRELOAD");
	unsetenv("OCL_ICD_VENDORS");
	vgpu.remote = remote_new(remote_start(&vgpu.processes, program, false, 1ull << 30), &ops,
				 NULL);
	if (!vgpu.remote || !remote_execute(vgpu.remote, 0, &make.hdr, &type) ||
	    type != VIRTIO_GPU_RESP_OK_NODATA || pthread_create(&thread, NULL, work, NULL))
		abort();
}

/* ---- the driver ---- */

static int submit(struct virtgpu_execbuffer *e)
{
	struct virtio_gpu_cmd_submit *cmd = calloc(1, sizeof(*cmd) + e->size);
	const uint64_t one = 1;
	int fence = eventfd(0, EFD_CLOEXEC);

	cmd->hdr = (struct virtio_gpu_ctrl_hdr){
		.type = VIRTIO_GPU_CMD_SUBMIT_3D, .ctx_id = CONTEXT,
		.flags = VIRTIO_GPU_FLAG_FENCE | VIRTIO_GPU_FLAG_INFO_RING_IDX,
		.ring_idx = (uint8_t)e->ring_idx,
	};
	cmd->size = e->size;
	memcpy(cmd + 1, (void *)(uintptr_t)e->command, e->size);
	e->fence_fd = fcntl(fence, F_DUPFD_CLOEXEC, 0);
	pthread_mutex_lock(&vgpu.lock);
	if (vgpu.put - vgpu.taken == STREAMS)
		abort();
	vgpu.stream[vgpu.put++ % STREAMS] = (struct stream){ cmd, fence };
	pthread_mutex_unlock(&vgpu.lock);
	return write(vgpu.wake, &one, sizeof(one)) == sizeof(one) ? 0 : -1;
}

static int make_resource(struct drm_virtgpu_resource_create *res)
{
	vgpu.len = res->width;
	vgpu.memory = memfd_create("resource", MFD_CLOEXEC);
	if (ftruncate(vgpu.memory, (off_t)vgpu.len))
		return -1;
	vgpu.map = mmap(NULL, vgpu.len, PROT_READ | PROT_WRITE, MAP_SHARED, vgpu.memory, 0);
	res->bo_handle = 1;
	res->res_handle = RESOURCE;
	return 0;
}

static int driver(unsigned long request, void *arg)
{
	switch (request) {
	case DRM_IOCTL_VERSION:
		memcpy(((struct drm_version *)arg)->name, "virtio_gpu", 11);
		return 0;
	case DRM_IOCTL_VIRTGPU_MAP:
		((struct drm_virtgpu_map *)arg)->offset = MAP_OFFSET;
		return 0;
	case VIRTGPU_IOCTL_EXECBUFFER:
		return submit(arg);
	case DRM_IOCTL_VIRTGPU_GETPARAM:
		*(int *)(uintptr_t)((struct drm_virtgpu_getparam *)arg)->value =
			1 << REMOTE_VGPU_CAPSET;
		return 0;
	case DRM_IOCTL_VIRTGPU_RESOURCE_CREATE:
		return make_resource(arg);
	case DRM_IOCTL_VIRTGPU_GET_CAPS:
		*(struct remote_vgpu_caps *)(uintptr_t)((struct drm_virtgpu_get_caps *)arg)->addr =
			(struct remote_vgpu_caps){ .version = REMOTE_VGPU_VERSION, .api = 1 };
		return 0;
	case VIRTGPU_IOCTL_CONTEXT_INIT:
		start();
		return 0;
	}
	errno = EINVAL;
	return -1;
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (fd >= 0 && fd == vgpu.node)
		return driver(request, arg);
	return (int)syscall(SYS_ioctl, fd, request, arg);
}

int open(const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = va_arg(ap, mode_t);
	va_end(ap);
	if (!strcmp(path, NODE)) {
		vgpu.node = (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC);
		return vgpu.node;
	}
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

void *mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
	if (fd >= 0 && fd == vgpu.node && (uint64_t)offset == MAP_OFFSET) {
		fd = vgpu.memory;
		offset = 0;
	}
	return (void *)syscall(SYS_mmap, at, len, prot, flags, fd, offset);
}
