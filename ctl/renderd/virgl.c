// SPDX-License-Identifier: GPL-2.0-only
/* Execution of a vGPU's commands by virglrenderer. */
#include <errno.h>
#include <fcntl.h>
#include <linux/virtio_gpu.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <epoxy/gl.h>
/* Fences on rings, capsets of contexts, and the query of dma-bufs. */
#define VIRGL_RENDERER_UNSTABLE_APIS
#include <virglrenderer.h>

#include "clock.h"
#include "complain.h"
#include "fence_clock.h"
#include "virgl.h"

#define PAGE		4096u
#define BUCKETS		4096u
#define FENCES		256u	/* as many as a channel has commands */
/* The capset of a context whose guest names none, as with virgl_renderer_context_create(). */
#define VIRGL2		2u
#define VENUS_CONTEXTS	64u

/**
 * struct resource - a resource
 * @next: of the same bucket
 * @id: its number
 * @map: guest memory, or NULL
 * @host: memory of a blob of the host's, or NULL; it stays mapped as long as the blob exists
 * @len: length of @map or @host, bytes
 * @iov: pieces of it
 * @nr: their number
 * @exported: a VMM shows it
 */
struct resource {
	struct resource *next;
	uint32_t id;
	void *map;
	void *host;
	size_t len;
	struct iovec *iov;
	uint32_t nr;
	bool exported;
};

/**
 * struct virgl - the renderer
 * @ops: what it calls
 * @arg: for @ops
 * @drm: render node, or -1
 * @clock: of work before fences without a ring
 * @res: resources
 * @fence: number of the last fence without a ring; 0 is none
 * @signalled: number of the last of these that is complete
 * @seq: command of each of these
 * @given_ns: since when the GPU has had the work before each of these, CLOCK_MONOTONIC
 * @on_rings: number of fences on rings that are not complete
 * @type: answer of each command that waits for its fence, by its number
 * @venus: numbers of contexts of Venus
 * @nr_venus: length of @venus
 */
struct virgl {
	const struct virgl_ops *ops;
	void *arg;
	int drm;
	struct fence_clock clock;
	struct resource *res[BUCKETS];
	uint32_t fence, signalled;
	uint32_t seq[FENCES];
	uint64_t given_ns[FENCES];
	uint32_t on_rings;
	uint32_t type[FENCES];
	uint32_t venus[VENUS_CONTEXTS];
	uint32_t nr_venus;
};

/* ---- contexts of Venus ---- */

/* Return the entry of a context; NULL if it is not one of Venus. */
static uint32_t *find_venus(struct virgl *v, uint32_t ctx)
{
	for (uint32_t i = 0; i < v->nr_venus; i++)
		if (v->venus[i] == ctx)
			return &v->venus[i];
	return NULL;
}

bool virgl_has_venus(const struct virgl *v)
{
	return v->nr_venus;
}

/* ---- resources ---- */

static struct resource **find(struct virgl *v, uint32_t id)
{
	struct resource **r = &v->res[id % BUCKETS];

	while (*r && (*r)->id != id)
		r = &(*r)->next;
	return r;
}

/* Unmap memory that the renderer does not have. */
static void unmap_memory(struct resource *r)
{
	munmap(r->map, r->len);
	free(r->iov);
	r->map = NULL;
	r->iov = NULL;
}

static void forget_memory(struct resource *r)
{
	struct iovec *iov;
	int nr;

	if (!r->map)
		return;
	virgl_renderer_resource_detach_iov((int)r->id, &iov, &nr);
	unmap_memory(r);
}

/* Make the entry of a resource, with an unused number; @err: VIRTIO_GPU_RESP_ERR_*. */
static struct resource *new_res(struct virgl *v, uint32_t id, uint32_t *err)
{
	struct resource *new;

	*err = VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	if (*find(v, id))
		return NULL;
	*err = VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	new = calloc(1, sizeof(*new));
	if (new)
		new->id = id;
	return new;
}

static uint32_t made(struct virgl *v, struct virgl_renderer_resource_create_args *args)
{
	uint32_t err;
	struct resource *new = new_res(v, args->handle, &err);

	if (!new)
		return err;
	if (virgl_renderer_resource_create(args, NULL, 0)) {
		free(new);
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	}
	*find(v, new->id) = new;
	return VIRTIO_GPU_RESP_OK_NODATA;
}

static uint32_t create_2d(struct virgl *v, const struct virtio_gpu_resource_create_2d *c)
{
	struct virgl_renderer_resource_create_args args = {
		.handle = c->resource_id, .target = 2, .format = c->format,
		.bind = VIRGL_RES_BIND_RENDER_TARGET, .width = c->width,
		.height = c->height, .depth = 1, .array_size = 1,
		.flags = VIRTIO_GPU_RESOURCE_FLAG_Y_0_TOP,
	};

	return made(v, &args);
}

static uint32_t create_3d(struct virgl *v, const struct virtio_gpu_resource_create_3d *c)
{
	struct virgl_renderer_resource_create_args args = {
		.handle = c->resource_id, .target = c->target, .format = c->format,
		.bind = c->bind, .width = c->width, .height = c->height,
		.depth = c->depth, .array_size = c->array_size,
		.last_level = c->last_level, .nr_samples = c->nr_samples,
		.flags = c->flags,
	};

	return made(v, &args);
}

static uint32_t unref(struct virgl *v, uint32_t id)
{
	struct resource **at = find(v, id), *r = *at;

	if (!r)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	forget_memory(r);
	if (r->host)
		virgl_renderer_resource_unmap(id);
	virgl_renderer_resource_unref(id);
	*at = r->next;
	free(r);
	return VIRTIO_GPU_RESP_OK_NODATA;
}

/* Map guest memory of which the command has @nr entries; false if out of memory. */
static bool map_memory(struct virgl *v, struct resource *r, const struct mgpu_user_cmd *cmd,
		       const struct virtio_gpu_mem_entry *e, uint32_t nr)
{
	r->iov = calloc(nr ? nr : 1, sizeof(*r->iov));
	r->map = r->iov ? v->ops->map(v->arg, cmd->mem, cmd->mem_len) : NULL;
	if (!r->map) {
		free(r->iov);
		r->iov = NULL;
		return false;
	}
	r->len = cmd->mem_len;
	r->nr = nr;
	for (uint32_t i = 0; i < nr; i++) {
		r->iov[i].iov_base = (char *)r->map + e[i].addr;
		r->iov[i].iov_len = e[i].length;
	}
	return true;
}

static uint32_t attach(struct virgl *v, const struct mgpu_user_cmd *cmd,
		       const struct virtio_gpu_resource_attach_backing *c)
{
	struct resource *r = *find(v, c->resource_id);

	if (!r || r->map)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	if (!map_memory(v, r, cmd, (const void *)(c + 1), c->nr_entries))
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	if (virgl_renderer_resource_attach_iov((int)r->id, r->iov, (int)r->nr)) {
		unmap_memory(r);
		return VIRTIO_GPU_RESP_ERR_UNSPEC;
	}
	return VIRTIO_GPU_RESP_OK_NODATA;
}

static uint32_t detach(struct virgl *v, uint32_t id)
{
	struct resource *r = *find(v, id);

	if (!r)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	forget_memory(r);
	return VIRTIO_GPU_RESP_OK_NODATA;
}

void *virgl_memory(struct virgl *v, uint32_t id, size_t *len)
{
	struct resource *r = *find(v, id);

	if (!r || (!r->map && !r->host))
		return NULL;
	*len = r->len;
	return r->map ? r->map : r->host;
}

void *virgl_one_piece(struct virgl *v, uint32_t id, size_t *len)
{
	struct resource *r = *find(v, id);
	size_t sum = 0;

	if (!r || !r->map)
		return NULL;
	for (uint32_t i = 0; i < r->nr; sum += r->iov[i++].iov_len)
		if (r->iov[i].iov_base != (char *)r->map + sum)
			return NULL;
	*len = sum;
	return r->map;
}

/* ---- blobs ---- */

static uint64_t pages(uint64_t bytes)
{
	return (bytes + PAGE - 1) / PAGE;
}

/*
 * Map the storage of a blob, of @size bytes, for the CPU. A guest that maps it gets whole pages,
 * with which it must not get anything else: memory of Vulkan has pages of its own, whatever its
 * size.
 */
static void *map_host(uint32_t id, uint64_t size, bool venus)
{
	uint64_t len = 0;
	void *p = NULL;

	if (virgl_renderer_resource_map(id, &p, &len))
		return NULL;
	if ((uintptr_t)p % PAGE == 0 &&
	    (venus ? pages(len) == pages(size) : len == size && size % PAGE == 0))
		return p;
	virgl_renderer_resource_unmap(id);
	return NULL;
}

/* Have a blob of the host's memory mapped, if the guest can map it: false if that fails. */
static bool map_made(struct virgl *v, struct resource *r,
		     const struct virtio_gpu_resource_create_blob *c)
{
	bool venus = find_venus(v, c->hdr.ctx_id);

	if (venus && !(c->blob_flags & VIRTIO_GPU_BLOB_FLAG_USE_MAPPABLE))
		return true;
	r->host = map_host(r->id, c->size, venus);
	r->len = c->size;
	/*
	 * OpenGL leaves the content of new storage undefined.  A blob of Vulkan is memory that
	 * exists, and that its driver has cleared.
	 */
	if (r->host && !venus)
		memset(r->host, 0, r->len);
	return r->host;
}

static uint32_t create_blob(struct virgl *v, const struct mgpu_user_cmd *cmd,
			    const struct virtio_gpu_resource_create_blob *c)
{
	struct virgl_renderer_resource_create_blob_args args = {
		.res_handle = c->resource_id, .ctx_id = c->hdr.ctx_id, .blob_mem = c->blob_mem,
		.blob_flags = c->blob_flags, .blob_id = c->blob_id, .size = c->size,
	};
	uint32_t err;
	struct resource *r = new_res(v, c->resource_id, &err);

	if (!r)
		return err;
	if (c->nr_entries && !map_memory(v, r, cmd, (const void *)(c + 1), c->nr_entries))
		goto no_memory;
	args.iovecs = r->iov;
	args.num_iovs = r->nr;
	if (virgl_renderer_resource_create_blob(&args)) {
		if (r->map)
			unmap_memory(r);
		goto no_memory;
	}
	*find(v, r->id) = r;
	if (c->blob_mem == VIRTIO_GPU_BLOB_MEM_GUEST)
		return VIRTIO_GPU_RESP_OK_NODATA;
	if (map_made(v, r, c))
		return VIRTIO_GPU_RESP_OK_NODATA;
	unref(v, r->id);
	return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;

no_memory:
	free(r);
	return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
}

static uint32_t map_blob(struct virgl *v, uint32_t seq, uint32_t id)
{
	struct resource *r = *find(v, id);
	uint32_t cache;

	if (!r || !r->host)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	if (virgl_renderer_resource_get_map_info(id, &cache))
		cache = 0;
	return v->ops->show(v->arg, seq, r->host, pages(r->len) * PAGE,
			    cache & VIRGL_RENDERER_MAP_CACHE_MASK) ?
		VIRTIO_GPU_RESP_ERR_UNSPEC : VIRTIO_GPU_RESP_OK_NODATA;
}

/* The module has taken the pages from the guest already. */
static uint32_t unmap_blob(struct virgl *v, uint32_t id)
{
	struct resource *r = *find(v, id);

	return r && r->host ? VIRTIO_GPU_RESP_OK_NODATA :
			      VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
}

/* Have a context with a buffer of a page that stays mapped, as blob 1 and resource 1. */
static bool make_shared(uint32_t ctx)
{
	const struct virgl_renderer_resource_create_blob_args args = {
		.res_handle = 1, .ctx_id = ctx, .blob_mem = VIRGL_RENDERER_BLOB_MEM_HOST3D,
		.blob_flags = VIRGL_RENDERER_BLOB_FLAG_USE_MAPPABLE, .blob_id = 1, .size = PAGE,
	};
	/* PIPE_RESOURCE_CREATE: format R8, for vertices, persistent and coherent. */
	uint32_t stream[] = { 48 | 11 << 16, 0, 64, 1 << 4, PAGE, 1, 1, 1, 0, 0, 2 | 4, 1 };

	return !virgl_renderer_submit_cmd(stream, (int)ctx, 12) &&
	       !virgl_renderer_resource_create_blob(&args);
}

bool virgl_can_share(void)
{
	const uint32_t ctx = 1;
	bool can = false;

	if (virgl_renderer_context_create_with_flags(ctx, VIRGL2, 5, "probe"))
		return false;
	if (make_shared(ctx)) {
		can = map_host(1, PAGE, false);
		if (can)
			virgl_renderer_resource_unmap(1);
		virgl_renderer_resource_unref(1);
	}
	virgl_renderer_context_destroy(ctx);
	return can;
}

/* ---- dma-bufs ---- */

#define FOURCC(a, b, c, d)	((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | \
				 (uint32_t)(d) << 24)
/* DRM_FORMAT_MOD_INVALID: the driver knows the layout. */
#define MOD_INVALID	0x00ffffffffffffffULL

/* Return whether VMMs show a format. */
static bool shown(uint32_t fourcc)
{
	return fourcc == FOURCC('X', 'R', '2', '4') || fourcc == FOURCC('A', 'R', '2', '4') ||
	       fourcc == FOURCC('X', 'B', '2', '4') || fourcc == FOURCC('A', 'B', '2', '4');
}

/*
 * Export a texture by EGL.  virglrenderer's own query of exports (VIRGL_RENDERER_EXPORT_QUERY) is
 * for resources that it has from minigbm only.  EGL's modifier does not get here.
 */
static int export(uint32_t id, struct mgpu_user_export *e)
{
	struct virgl_renderer_resource_info info = { 0 };
	int fd = -1, stride = 0, offset = 0;

	if (virgl_renderer_resource_get_info((int)id, &info) ||
	    virgl_renderer_get_fd_for_texture2(info.tex_id, &fd, &stride, &offset) || fd < 0) {
		complain("the GPU's driver exports no dma-buf");
		return -EOPNOTSUPP;
	}
	*e = (struct mgpu_user_export){
		.size = sizeof(*e), .resource = id, .fd = fd,
		.fourcc = (uint32_t)info.drm_fourcc, .stride = (uint32_t)stride,
		.modifier = MOD_INVALID,
	};
	if (!offset && stride > 0 && shown(e->fourcc))
		return 0;
	complain("the GPU's driver exports format %.4s with rows of %d bytes from byte %d: VMMs show XR24, AR24, XB24 and AB24, from byte 0",
		 (const char *)&e->fourcc, stride, offset);
	close(fd);
	return -EOPNOTSUPP;
}

int virgl_export(struct virgl *v, uint32_t id, struct mgpu_user_export *e)
{
	struct resource *r = *find(v, id);
	int ret = export(id, e);

	if (r && !ret)
		r->exported = true;
	return ret;
}

bool virgl_can_export(void)
{
	struct virgl_renderer_resource_create_args args = {
		.handle = 1, .target = 2, .format = 2,	/* B8G8R8X8 */
		.bind = VIRGL_RES_BIND_RENDER_TARGET | VIRGL_RES_BIND_SAMPLER_VIEW,
		.width = 64, .height = 64, .depth = 1, .array_size = 1,
	};
	struct mgpu_user_export e;
	int ret;

	if (virgl_renderer_resource_create(&args, NULL, 0))
		return false;
	ret = export(args.handle, &e);
	if (!ret)
		close(e.fd);
	virgl_renderer_resource_unref(args.handle);
	return !ret;
}

/* ---- commands ---- */

static uint32_t create_ctx(struct virgl *v, const struct virtio_gpu_ctx_create *c)
{
	uint32_t capset = c->context_init ? c->context_init : VIRGL2;
	char name[sizeof(c->debug_name) + 1] = "";

	memcpy(name, c->debug_name, c->nlen < sizeof(c->debug_name) ? c->nlen :
	       sizeof(c->debug_name));
	if ((capset == VIRGL_VENUS && v->nr_venus == VENUS_CONTEXTS) ||
	    virgl_renderer_context_create_with_flags(c->hdr.ctx_id, capset,
						     (uint32_t)strlen(name), name))
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	if (capset == VIRGL_VENUS)
		v->venus[v->nr_venus++] = c->hdr.ctx_id;
	return VIRTIO_GPU_RESP_OK_NODATA;
}

static uint32_t destroy_ctx(struct virgl *v, uint32_t id)
{
	uint32_t *venus = find_venus(v, id);

	virgl_renderer_context_destroy(id);
	if (venus)
		*venus = v->venus[--v->nr_venus];
	return VIRTIO_GPU_RESP_OK_NODATA;
}

static uint32_t transfer(struct virgl *v, const struct virtio_gpu_transfer_host_3d *c,
			 bool to_guest)
{
	/* The same words as struct virgl_box, whose definition is private. */
	struct virtio_gpu_box box = c->box;
	struct resource *r = *find(v, c->resource_id);
	int ret;

	if (!r || !r->map)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	if (to_guest)
		ret = virgl_renderer_transfer_read_iov(c->resource_id, c->hdr.ctx_id, c->level,
						       c->stride, c->layer_stride,
						       (struct virgl_box *)&box, c->offset,
						       NULL, 0);
	else
		ret = virgl_renderer_transfer_write_iov(c->resource_id, c->hdr.ctx_id,
							(int)c->level, c->stride,
							c->layer_stride,
							(struct virgl_box *)&box, c->offset,
							NULL, 0);
	/* A VMM's reads wait for what the driver has given to the GPU, not for what it keeps. */
	if (!to_guest && r->exported)
		glFlush();
	return ret ? VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER : VIRTIO_GPU_RESP_OK_NODATA;
}

static uint32_t transfer_2d(struct virgl *v, const struct virtio_gpu_transfer_to_host_2d *c)
{
	struct virtio_gpu_box box = {
		.x = c->r.x, .y = c->r.y, .w = c->r.width, .h = c->r.height, .d = 1,
	};
	struct resource *r = *find(v, c->resource_id);

	if (!r || !r->map)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	return virgl_renderer_transfer_write_iov(c->resource_id, 0, 0, 0, 0,
						 (struct virgl_box *)&box, c->offset, NULL, 0) ?
		VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER : VIRTIO_GPU_RESP_OK_NODATA;
}

static uint32_t submit(const struct virtio_gpu_cmd_submit *c)
{
	/* The renderer only reads the stream, whatever its prototype says. */
	return virgl_renderer_submit_cmd((void *)(c + 1), (int)c->hdr.ctx_id,
					 (int)(c->size / 4)) ?
		VIRTIO_GPU_RESP_ERR_UNSPEC : VIRTIO_GPU_RESP_OK_NODATA;
}

static uint32_t run(struct virgl *v, const struct mgpu_user_cmd *cmd, const void *c)
{
	const struct virtio_gpu_ctrl_hdr *hdr = c;
	const struct virtio_gpu_ctx_resource *res = c;

	switch (hdr->type) {
	case VIRTIO_GPU_CMD_CTX_CREATE:
		return create_ctx(v, c);
	case VIRTIO_GPU_CMD_CTX_DESTROY:
		return destroy_ctx(v, hdr->ctx_id);
	case VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE:
		virgl_renderer_ctx_attach_resource((int)hdr->ctx_id, (int)res->resource_id);
		return VIRTIO_GPU_RESP_OK_NODATA;
	case VIRTIO_GPU_CMD_CTX_DETACH_RESOURCE:
		virgl_renderer_ctx_detach_resource((int)hdr->ctx_id, (int)res->resource_id);
		return VIRTIO_GPU_RESP_OK_NODATA;
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_2D:
		return create_2d(v, c);
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_3D:
		return create_3d(v, c);
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB:
		return create_blob(v, cmd, c);
	case VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB:
		return map_blob(v, cmd->seq, ((const struct virtio_gpu_resource_map_blob *)
					      c)->resource_id);
	case VIRTIO_GPU_CMD_RESOURCE_UNMAP_BLOB:
		return unmap_blob(v, ((const struct virtio_gpu_resource_unmap_blob *)
				      c)->resource_id);
	case VIRTIO_GPU_CMD_RESOURCE_UNREF:
		return unref(v, ((const struct virtio_gpu_resource_unref *)c)->resource_id);
	case VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING:
		return attach(v, cmd, c);
	case VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING:
		return detach(v, ((const struct virtio_gpu_resource_detach_backing *)
				  c)->resource_id);
	case VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D:
		return transfer_2d(v, c);
	case VIRTIO_GPU_CMD_TRANSFER_TO_HOST_3D:
		return transfer(v, c, false);
	case VIRTIO_GPU_CMD_TRANSFER_FROM_HOST_3D:
		return transfer(v, c, true);
	case VIRTIO_GPU_CMD_SUBMIT_3D:
		return submit(c);
	default:
		return VIRTIO_GPU_RESP_ERR_UNSPEC;
	}
}

/* Have done() called when the work up to here is finished. */
static int make_fence(struct virgl *v, const struct virtio_gpu_ctrl_hdr *hdr, uint32_t seq,
		      uint64_t given_ns)
{
	int ret;

	if (hdr->flags & VIRTIO_GPU_FLAG_INFO_RING_IDX) {
		v->on_rings++;
		ret = virgl_renderer_context_create_fence(hdr->ctx_id, 0, hdr->ring_idx, seq);
		if (ret)
			v->on_rings--;
		return ret;
	}
	v->seq[++v->fence % FENCES] = seq;
	v->given_ns[v->fence % FENCES] = given_ns;
	ret = virgl_renderer_create_fence((int)v->fence, hdr->ctx_id);
	if (ret)
		v->fence--;
	return ret;
}

static uint32_t answer(struct virgl *v, const struct mgpu_user_cmd *cmd, const void *buf,
		       uint32_t type, uint64_t given_ns)
{
	const struct virtio_gpu_ctrl_hdr *hdr = buf;

	if (!(cmd->flags & MGPU_USER_CMD_FENCED))
		return type;
	v->type[cmd->seq % FENCES] = type;
	return make_fence(v, hdr, cmd->seq, given_ns) ? type : 0;
}

uint32_t virgl_execute(struct virgl *v, const struct mgpu_user_cmd *cmd, const void *buf)
{
	uint64_t begun = now_ns(), ran = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	uint32_t type;

	/* QEMU and crosvm do so before each command, too. */
	virgl_renderer_force_ctx_0();
	type = run(v, cmd, buf);
	ran = clock_ns(CLOCK_THREAD_CPUTIME_ID) - ran;
	return answer(v, cmd, buf, type, fence_clock_given(begun, ran, now_ns()));
}

uint32_t virgl_answer(struct virgl *v, const struct mgpu_user_cmd *cmd, const void *buf,
		      uint32_t type)
{
	return answer(v, cmd, buf, type, now_ns());
}

/* ---- fences ---- */

static void signalled(void *cookie, uint32_t fence)
{
	struct virgl *v = cookie;
	uint64_t now = now_ns();

	/* A fence is complete when a later one is. */
	while ((int32_t)(fence - v->signalled) > 0) {
		uint32_t seq = v->seq[++v->signalled % FENCES];

		fence_clock_end(&v->clock, v->given_ns[v->signalled % FENCES], now);
		v->ops->done(v->arg, seq, v->type[seq % FENCES]);
	}
}

/* Without MERGEABLE, each fence on a ring is reported. */
static void ring_signalled(void *cookie, uint32_t ctx, uint32_t ring, uint64_t fence)
{
	struct virgl *v = cookie;

	(void)ctx;
	(void)ring;
	v->on_rings--;
	v->ops->done(v->arg, (uint32_t)fence, v->type[fence % FENCES]);
}

bool virgl_busy(const struct virgl *v)
{
	return v->signalled != v->fence || v->on_rings;
}

int virgl_fd(const struct virgl *v)
{
	(void)v;
	return virgl_renderer_get_poll_fd();
}

void virgl_poll(struct virgl *v)
{
	(void)v;
	virgl_renderer_poll();
}

uint64_t virgl_worked_ns(const struct virgl *v)
{
	return v->clock.worked_ns;
}

/* ---- the renderer ---- */

static int drm_fd(void *cookie)
{
	const struct virgl *v = cookie;

	return v->drm < 0 ? -1 : fcntl(v->drm, F_DUPFD_CLOEXEC, 3);
}

static int server_fd(void *cookie, uint32_t version)
{
	const struct virgl *v = cookie;

	(void)version;
	return v->ops->server(v->arg);
}

static struct virgl_renderer_callbacks callbacks = {
	.version = 3,
	.get_server_fd = server_fd,
	.write_fence = signalled,
	.write_context_fence = ring_signalled,
	.get_drm_fd = drm_fd,
};

int virgl_open_node(const char *node, int *fd)
{
	int err;

	*fd = node ? open(node, O_RDWR | O_CLOEXEC) : -1;
	if (!node || *fd >= 0)
		return 0;
	err = errno;
	complain("cannot open the render node %s: %s", node, strerror(err));
	return -err;
}

/*
 * virglrenderer sets GL_TEXTURE_CUBE_MAP_SEAMLESS of each sampler, also where the driver does
 * not have it, as virgl: an error of OpenGL, after which it executes nothing of the context any
 * more.  Mesa takes the value when it is told that the driver has it.
 */
static int take_seamless(void)
{
	const char *name = "MESA_EXTENSION_OVERRIDE", *old = getenv(name);
	char text[1024];

	if (snprintf(text, sizeof(text), "%s +GL_AMD_seamless_cubemap_per_texture",
		     old ? old : "") >= (int)sizeof(text))
		return -E2BIG;
	return setenv(name, text, 1) ? -errno : 0;
}

static int tell_mesa(bool gpu)
{
	int ret = take_seamless();

	/* Else Mesa takes a GPU that it finds, which the sandbox of a worker does not show. */
	if (!ret && !gpu && setenv("LIBGL_ALWAYS_SOFTWARE", "1", 1))
		ret = -errno;
	return ret;
}

int virgl_new(struct virgl **result, int drm, const struct virgl_ops *ops, void *arg)
{
	int flags = VIRGL_RENDERER_USE_EGL | VIRGL_RENDERER_THREAD_SYNC |
		(drm < 0 ? VIRGL_RENDERER_USE_SURFACELESS : 0) |
		(ops->server ? VIRGL_RENDERER_VENUS | VIRGL_RENDERER_RENDER_SERVER : 0);
	struct virgl *v = calloc(1, sizeof(*v));

	*result = NULL;
	if (!v || tell_mesa(drm >= 0)) {
		free(v);
		return -ENOMEM;
	}
	v->ops = ops;
	v->arg = arg;
	v->drm = drm;
	if (virgl_renderer_init(v, flags, &callbacks)) {
		complain("virglrenderer cannot use %s: install Mesa's EGL driver for it",
			 drm < 0 ? "Mesa without a GPU (llvmpipe)" : "the GPU");
		free(v);
		return -ENODEV;
	}
	*result = v;
	return 0;
}

void virgl_free(struct virgl *v)
{
	if (!v)
		return;
	for (uint32_t i = 0; i < BUCKETS; i++)
		while (v->res[i])
			unref(v, v->res[i]->id);
	virgl_renderer_cleanup(v);
	free(v);
}

size_t virgl_capset(uint32_t id, uint32_t *version, void *data, size_t size)
{
	uint32_t len;

	virgl_renderer_get_cap_set(id, version, &len);
	if (!len || len > size)
		return 0;
	memset(data, 0, size);
	virgl_renderer_fill_caps(id, *version, data);
	return len;
}
