// SPDX-License-Identifier: GPL-2.0-only
/*
 * Compute jobs through the virtio_gpu driver's ioctls; see compute.h.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <linux/sync_file.h>
#include <xf86drm.h>

#include "compute.h"
#include "virtgpu.h"

__attribute__((format(printf, 3, 4)))
static int fail(struct compute *c, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(c->message, sizeof(c->message), fmt, ap);
	va_end(ap);
	return err;
}

static uint64_t address(const void *p)
{
	return (uintptr_t)p;
}

const char *compute_message(const struct compute *c)
{
	return c->message;
}

static int get_capset(struct compute *c, const char *device)
{
	struct mgpu_capset_compute cap = { 0 };
	int capsets = 0;
	struct drm_virtgpu_getparam which = {
		.param = VIRTGPU_CAPSETS,
		.value = address(&capsets),
	};
	struct drm_virtgpu_get_caps get = {
		.cap_set_id = MGPU_CAPSET_COMPUTE,
		.cap_set_ver = MGPU_COMPUTE_VERSION,
		.addr = address(&cap),
		.size = sizeof(cap),
	};

	if (drmIoctl(c->fd, DRM_IOCTL_VIRTGPU_GETPARAM, &which))
		return fail(c, errno == EINVAL ? -EOPNOTSUPP : -errno,
			    "%s: cannot ask what it can do: %s; Linux 5.16 or later is needed",
			    device, strerror(errno));
	if (!(capsets & 1 << MGPU_CAPSET_COMPUTE))
		return fail(c, -EOPNOTSUPP,
			    "%s: the vGPU's type has no compute; create one of type ...-render",
			    device);
	if (drmIoctl(c->fd, DRM_IOCTL_VIRTGPU_GET_CAPS, &get))
		return fail(c, -errno, "%s: cannot ask what it can compute: %s",
			    device, strerror(errno));
	if (le32toh(cap.version) != MGPU_COMPUTE_VERSION)
		return fail(c, -EOPNOTSUPP,
			    "%s: its compute jobs have version %u, this program knows %u; take programs and module from the same release",
			    device, le32toh(cap.version), MGPU_COMPUTE_VERSION);
	c->slots = le32toh(cap.slots);
	c->ops = le64toh(cap.ops);
	return 0;
}

static int init_context(struct compute *c, const char *device)
{
	struct virtgpu_context_param params[] = {
		{ VIRTGPU_CONTEXT_CAPSET, MGPU_CAPSET_COMPUTE },
		{ VIRTGPU_CONTEXT_RINGS, 1 },
	};
	struct virtgpu_context_init init = {
		.num_params = 2,
		.params = address(params),
	};

	if (!drmIoctl(c->fd, VIRTGPU_IOCTL_CONTEXT_INIT, &init))
		return 0;
	if (errno == EINVAL)
		return fail(c, -EOPNOTSUPP,
			    "%s: the device does not offer CONTEXT_INIT; create a vGPU of type ...-render",
			    device);
	return fail(c, -errno, "%s: cannot make a context: %s", device,
		    strerror(errno));
}

int compute_open(struct compute *c, const char *device)
{
	drmVersionPtr version;
	bool ours;
	int ret;

	memset(c, 0, sizeof(*c));
	c->fd = open(device, O_RDWR | O_CLOEXEC);
	if (c->fd < 0)
		return fail(c, -errno, "cannot open %s: %s%s", device,
			    strerror(errno), errno == EACCES ?
			    "; run as root or in group video or render" : "");

	version = drmGetVersion(c->fd);
	ours = version && !strcmp(version->name, "virtio_gpu");
	drmFreeVersion(version);
	if (!ours) {
		ret = fail(c, -ENODEV, "%s is no device of virtio_gpu's", device);
		goto close;
	}
	ret = get_capset(c, device);
	if (ret)
		goto close;
	ret = init_context(c, device);
	if (ret)
		goto close;
	return 0;

close:
	compute_close(c);
	return ret;
}

void compute_close(struct compute *c)
{
	if (!c || c->fd < 0)
		return;
	close(c->fd);
	c->fd = -1;
}

int compute_alloc(struct compute *c, uint64_t size, struct compute_buffer *b)
{
	struct virtgpu_create_blob blob = {
		.blob_mem = VIRTGPU_BLOB_GUEST,
		.blob_flags = VIRTGPU_BLOB_MAPPABLE,
		.size = size,
	};
	struct drm_virtgpu_map map = { 0 };
	int ret;

	memset(b, 0, sizeof(*b));
	if (!size)
		return fail(c, -EINVAL, "a buffer of 0 bytes is none");
	if (drmIoctl(c->fd, VIRTGPU_IOCTL_CREATE_BLOB, &blob))
		return fail(c, -errno, "cannot create a buffer of %llu bytes: %s",
			    (unsigned long long)size, strerror(errno));
	b->handle = blob.bo_handle;
	b->resource = blob.res_handle;
	b->size = size;

	map.handle = b->handle;
	if (!drmIoctl(c->fd, DRM_IOCTL_VIRTGPU_MAP, &map)) {
		b->map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED,
			      c->fd, (off_t)map.offset);
		if (b->map != MAP_FAILED)
			return 0;
		b->map = NULL;
	}
	ret = fail(c, -errno, "cannot map a buffer of %llu bytes: %s",
		   (unsigned long long)size, strerror(errno));
	compute_free(c, b);
	return ret;
}

void compute_free(struct compute *c, struct compute_buffer *b)
{
	struct drm_gem_close gem = { .handle = b->handle };

	if (b->map)
		munmap(b->map, b->size);
	if (b->handle)
		drmIoctl(c->fd, DRM_IOCTL_GEM_CLOSE, &gem);
	memset(b, 0, sizeof(*b));
}

int compute_settle(struct compute *c, const struct compute_buffer *b)
{
	struct drm_virtgpu_3d_wait wait = { .handle = b->handle };

	if (!drmIoctl(c->fd, DRM_IOCTL_VIRTGPU_WAIT, &wait))
		return 0;
	return fail(c, -errno, "a job still uses the buffer: %s",
		    strerror(errno));
}

static void job_begin(struct compute_job *job, uint32_t op, uint32_t nr,
		      const struct compute_buffer *r0,
		      const struct compute_buffer *r1,
		      const struct compute_buffer *r2)
{
	uint32_t i;

	memset(job, 0, sizeof(*job));
	job->cmd.magic = htole32(MGPU_COMPUTE_MAGIC);
	job->cmd.version = htole32(MGPU_COMPUTE_VERSION);
	job->cmd.op = htole32(op);
	job->cmd.nr_res = htole32(nr);
	job->buffers[0] = r0;
	job->buffers[1] = r1;
	job->buffers[2] = r2;
	for (i = 0; i < nr; i++)
		job->cmd.res[i] = htole32(job->buffers[i]->resource);
}

void compute_job_fill(struct compute_job *job, const struct compute_buffer *dst,
		      uint64_t offset, uint64_t length, uint64_t pattern)
{
	job_begin(job, MGPU_COMPUTE_FILL, 1, dst, NULL, NULL);
	job->cmd.fill.offset = htole64(offset);
	job->cmd.fill.length = htole64(length);
	job->cmd.fill.pattern = htole64(pattern);
}

static void job_move(struct compute_job *job, uint32_t op,
		     const struct compute_buffer *dst, uint64_t dst_offset,
		     const struct compute_buffer *src, uint64_t src_offset,
		     uint64_t length)
{
	job_begin(job, op, 2, dst, src, NULL);
	job->cmd.move.dst_offset = htole64(dst_offset);
	job->cmd.move.src_offset = htole64(src_offset);
	job->cmd.move.length = htole64(length);
}

void compute_job_copy(struct compute_job *job, const struct compute_buffer *dst,
		      uint64_t dst_offset, const struct compute_buffer *src,
		      uint64_t src_offset, uint64_t length)
{
	job_move(job, MGPU_COMPUTE_COPY, dst, dst_offset, src, src_offset,
		 length);
}

void compute_job_accumulate(struct compute_job *job,
			    const struct compute_buffer *dst,
			    uint64_t dst_offset,
			    const struct compute_buffer *src,
			    uint64_t src_offset, uint64_t length)
{
	job_move(job, MGPU_COMPUTE_ACCUMULATE, dst, dst_offset, src, src_offset,
		 length);
}

static void put_picture(struct mgpu_compute_picture *to,
			const struct compute_picture *p)
{
	to->offset = htole64(p->offset);
	to->width = htole32(p->width);
	to->height = htole32(p->height);
	to->stride = htole32(p->stride);
}

void compute_job_scale(struct compute_job *job,
		       const struct compute_buffer *dst,
		       const struct compute_picture *to,
		       const struct compute_buffer *src,
		       const struct compute_picture *from)
{
	job_begin(job, MGPU_COMPUTE_SCALE, 2, dst, src, NULL);
	put_picture(&job->cmd.scale.dst, to);
	put_picture(&job->cmd.scale.src, from);
}

void compute_job_matmul(struct compute_job *job, const struct compute_buffer *c,
			uint64_t c_offset, const struct compute_buffer *a,
			uint64_t a_offset, const struct compute_buffer *b,
			uint64_t b_offset, uint32_t n)
{
	job_begin(job, MGPU_COMPUTE_MATMUL, 3, c, a, b);
	job->cmd.matmul.c_offset = htole64(c_offset);
	job->cmd.matmul.a_offset = htole64(a_offset);
	job->cmd.matmul.b_offset = htole64(b_offset);
	job->cmd.matmul.n = htole32(n);
}

void compute_job_mandelbrot(struct compute_job *job,
			    const struct compute_buffer *dst, uint64_t offset,
			    uint64_t hist_offset,
			    const struct compute_view *view)
{
	struct mgpu_compute_mandelbrot *m = &job->cmd.mandelbrot;

	job_begin(job, MGPU_COMPUTE_MANDELBROT, 1, dst, NULL, NULL);
	m->offset = htole64(offset);
	m->hist_offset = htole64(hist_offset);
	m->width = htole32(view->width);
	m->height = htole32(view->height);
	m->iterations = htole32(view->iterations);
	m->left = htole64((uint64_t)view->left);
	m->top = htole64((uint64_t)view->top);
	m->dx = htole64((uint64_t)view->dx);
	m->dy = htole64((uint64_t)view->dy);
}

void compute_job_hash(struct compute_job *job, const struct compute_buffer *dst,
		      uint64_t offset, uint64_t sum_offset,
		      const struct compute_buffer *src, uint64_t src_offset,
		      uint64_t length, uint64_t chunk)
{
	job_begin(job, MGPU_COMPUTE_HASH, 2, dst, src, NULL);
	job->cmd.hash.offset = htole64(offset);
	job->cmd.hash.sum_offset = htole64(sum_offset);
	job->cmd.hash.src_offset = htole64(src_offset);
	job->cmd.hash.length = htole64(length);
	job->cmd.hash.chunk = htole64(chunk);
}

void compute_job_gather(struct compute_job *job,
			const struct compute_buffer *dst, uint64_t offset,
			uint64_t sum_offset,
			const struct compute_buffer *table,
			uint64_t table_offset,
			const struct compute_walks *walks)
{
	job_begin(job, MGPU_COMPUTE_GATHER, 2, dst, table, NULL);
	job->cmd.gather.offset = htole64(offset);
	job->cmd.gather.sum_offset = htole64(sum_offset);
	job->cmd.gather.table_offset = htole64(table_offset);
	job->cmd.gather.seed = htole64(walks->seed);
	job->cmd.gather.table_log2 = htole32(walks->table_log2);
	job->cmd.gather.walks = htole32(walks->walks);
	job->cmd.gather.steps = htole32(walks->steps);
}

void compute_job_slots(struct compute_job *job, uint32_t slots)
{
	job->cmd.slots = htole32(slots);
}

int compute_submit(struct compute *c, const struct compute_job *job, int *fence)
{
	uint32_t op = le32toh(job->cmd.op), nr = le32toh(job->cmd.nr_res), i;
	uint32_t handles[MGPU_COMPUTE_MAX_BUFS], used = 0, j;
	struct virtgpu_execbuffer exec = {
		.flags = VIRTGPU_FENCE_OUT | VIRTGPU_RING,
		.size = sizeof(job->cmd),
		.command = address(&job->cmd),
		.bo_handles = address(handles),
	};

	if (op >= 64 || !(c->ops & 1ULL << op))
		return fail(c, -EOPNOTSUPP,
			    "the device has no operation %u; take programs and module from the same release",
			    op);
	/* The driver locks each, and refuses one that is there twice. */
	for (i = 0; i < nr && i < MGPU_COMPUTE_MAX_BUFS; i++) {
		for (j = 0; j < used; j++)
			if (handles[j] == job->buffers[i]->handle)
				break;
		if (j == used)
			handles[used++] = job->buffers[i]->handle;
	}
	exec.num_bo_handles = used;
	if (drmIoctl(c->fd, VIRTGPU_IOCTL_EXECBUFFER, &exec))
		return fail(c, -errno, "cannot submit a job: %s",
			    strerror(errno));
	*fence = exec.fence_fd;
	return 0;
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int compute_wait(struct compute *c, int fence, int timeout_ms)
{
	struct pollfd p = { .fd = fence, .events = POLLIN };
	int64_t until = now_ms() + timeout_ms, left = timeout_ms;
	struct sync_file_info info = { 0 };
	int ret;

	while ((ret = poll(&p, 1, timeout_ms < 0 ? -1 : (int)left)) < 0) {
		if (errno != EINTR && errno != EAGAIN)
			return fail(c, -errno, "cannot wait for a job: %s",
				    strerror(errno));
		left = until - now_ms();
		if (left < 0)
			left = 0;
	}
	if (!ret)
		return fail(c, -ETIME, "the job is not done after %d ms",
			    timeout_ms);
	if (ioctl(fence, SYNC_IOC_FILE_INFO, &info))
		return fail(c, -errno, "cannot ask how a job ended: %s",
			    strerror(errno));
	if (info.status < 0)
		return fail(c, info.status, "the job failed: %s",
			    strerror(-info.status));
	return 0;
}

int compute_run(struct compute *c, const struct compute_job *job,
		int timeout_ms)
{
	int fence, ret;

	ret = compute_submit(c, job, &fence);
	if (ret)
		return ret;
	ret = compute_wait(c, fence, timeout_ms);
	close(fence);
	return ret;
}
