/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A guest that draws with OpenGL on a vGPU of mgpu_virtio, for machines of vmm.h:
 * contexts, 3D resources, and streams written by hand.  The protocol's numbers are
 * defined here a second time, not taken from the driver.
 *
 * Commands return the answer's type or a negative errno.
 */
#ifndef KSELFTEST_VIRGL_H
#define KSELFTEST_VIRGL_H

#include "nl.h"
#include "stream.h"
#include "vmm.h"

#define GL_FEATURES	(VMM_F(VIRTIO_F_VERSION_1) | \
			 VMM_F(VIRTIO_F_ACCESS_PLATFORM) | \
			 VMM_F(VIRTIO_RING_F_INDIRECT_DESC) | \
			 VMM_F(VIRTIO_GPU_F_VIRGL) | VMM_F(VIRTIO_GPU_F_EDID))

#define GL_STREAM_MAX	(1u << 20)	/* largest stream that the module takes, bytes */

/* A guest on a vGPU, with a netlink socket for queries about it. */
struct gl {
	struct vm vm;
	struct nl nl;
	uint32_t vgpu;
	uint8_t *stream;	/* guest memory of GL_STREAM_MAX and a page */
};

/* Make the GPU the parent of vGPUs; without a GPU, end the program with a skip. */
void gl_need_gpu(void);

/* The name of the GPU on the virtio bus, or "". */
void gl_virtio_name(char *name, size_t len);

int gl_new(struct gl *g, const char *type, size_t ram);
void gl_delete(struct gl *g);
int gl_restart(struct gl *g);	/* reset, negotiate, DRIVER_OK */
/* Return the bytes and pages that remain of a closed or reset vGPU. */
uint64_t gl_left(struct gl *g);

/* Contexts and resources. */
int gl_ctx(struct vm *vm, uint32_t id);
int gl_ctx_of(struct vm *vm, uint32_t id, uint32_t capset);
int gl_ctx_end(struct vm *vm, uint32_t id);
int gl_ctx_attach(struct vm *vm, uint32_t ctx, uint32_t res);
int gl_ctx_detach(struct vm *vm, uint32_t ctx, uint32_t res);
int gl_create(struct vm *vm, const struct virtio_gpu_resource_create_3d *c);
/* Create a blob of the host's memory, and map it in the BAR, or take it from there. */
int gl_blob(struct vm *vm, uint32_t ctx, uint32_t id, size_t size);
/* The same, of storage that a stream has named. */
int gl_blob_of(struct vm *vm, uint32_t ctx, uint32_t id, uint64_t blob_id, size_t size);
int gl_map(struct vm *vm, uint32_t id, uint64_t offset);
/* The same, with the caching that the guest is told, VIRTIO_GPU_MAP_CACHE_*; else CACHED. */
int gl_map_as(struct vm *vm, uint32_t id, uint64_t offset, uint32_t cache);
int gl_unmap(struct vm *vm, uint32_t id);
/* Create a render target in B8G8R8A8, without backing. */
int gl_texture(struct vm *vm, uint32_t id, uint32_t w, uint32_t h,
	       uint32_t flags);
/* Create one with backing, attached to a context. Return its pixels, or NULL. */
uint32_t *gl_picture(struct vm *vm, uint32_t ctx, uint32_t id, uint32_t w,
		     uint32_t h, uint32_t flags);
/* Attach any number of entries, which are in guest memory at @p. */
int gl_attach_entries(struct vm *vm, uint32_t id, void *p, uint32_t n);

struct gl_move {
	uint32_t ctx;
	uint32_t res;
	uint32_t level;
	uint32_t stride;
	uint32_t layer_stride;
	uint64_t offset;
	struct virtio_gpu_box box;
	bool up;		/* to the GPU */
};

int gl_move(struct vm *vm, const struct gl_move *m);
int gl_move_send(struct vm *vm, const struct gl_move *m, uint64_t fence);
/* Transfer the whole first level of a picture into its backing. */
int gl_fetch(struct vm *vm, uint32_t ctx, uint32_t id, uint32_t w, uint32_t h);

/* Streams, which stream.h makes. */
/* Create a buffer for gl_pipeline(), attached to a context. */
int gl_vertices(struct vm *vm, uint32_t ctx, uint32_t id);

/*
 * Submit bytes of guest memory, and return the head at once.  @fence is 0 for none.
 * The command names a size of @told bytes.
 */
int gl_send_bytes(struct vm *vm, uint32_t ctx, uint64_t fence, const void *p,
		  uint32_t len, uint32_t told);
/* Submit a copy of the stream, in guest memory that is not freed. */
int gl_send(struct vm *vm, uint32_t ctx, uint64_t fence,
	    const struct gl_stream *s);
/* The same, fenced on a ring of the context. */
int gl_send_on(struct vm *vm, uint32_t ctx, uint8_t ring, const struct gl_stream *s);
int gl_run(struct vm *vm, uint32_t ctx, const struct gl_stream *s);
/* Wait for a head, which may be an error. Return the answer. */
int gl_result(struct vm *vm, int head, struct virtio_gpu_ctrl_hdr *hdr);

/* Clear a picture that is attached to a context: create, draw to, clear. */
int gl_fill(struct vm *vm, uint32_t ctx, uint32_t res, uint32_t argb);

#endif /* KSELFTEST_VIRGL_H */
