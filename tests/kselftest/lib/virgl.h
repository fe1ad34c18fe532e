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
#include "vmm.h"

#define GL_FEATURES	(VMM_F(VIRTIO_F_VERSION_1) | \
			 VMM_F(VIRTIO_F_ACCESS_PLATFORM) | \
			 VMM_F(VIRTIO_RING_F_INDIRECT_DESC) | \
			 VMM_F(VIRTIO_GPU_F_VIRGL) | VMM_F(VIRTIO_GPU_F_EDID))

#define GL_STREAM_MAX	(1u << 20)	/* largest stream that the module takes, bytes */

/* Formats, targets, uses and flags of resources. */
#define GL_B8G8R8A8	1
#define GL_B8G8R8X8	2
#define GL_Z24S8	20
#define GL_RGBA32F	31
#define GL_R8		64
#define GL_BUFFER	0
#define GL_2D		2
#define GL_3D		3
#define GL_DEPTH_STENCIL (1u << 0)
#define GL_TARGET	(1u << 1)
#define GL_SAMPLED	(1u << 3)
#define GL_VERTICES	(1u << 4)
#define GL_Y_0_TOP	1

/* Stages of a pipeline. */
#define GL_VERTEX	0
#define GL_FRAGMENT	1

/* A guest on a vGPU, with a netlink socket for queries about it. */
struct gl {
	struct vm vm;
	struct nl nl;
	uint32_t vgpu;
	uint8_t *stream;	/* guest memory of GL_STREAM_MAX and a page */
};

/* A stream under construction; exceeding its size is a bug of the test. */
struct gl_stream {
	unsigned int n;
	uint32_t w[1024];
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
int gl_ctx_end(struct vm *vm, uint32_t id);
int gl_ctx_attach(struct vm *vm, uint32_t ctx, uint32_t res);
int gl_ctx_detach(struct vm *vm, uint32_t ctx, uint32_t res);
int gl_create(struct vm *vm, const struct virtio_gpu_resource_create_3d *c);
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

/* Streams. */
void gl_begin(struct gl_stream *s);
void gl_word(struct gl_stream *s, uint32_t w);
void gl_head(struct gl_stream *s, uint32_t cmd, uint32_t object, uint32_t len);
void gl_surface(struct gl_stream *s, uint32_t handle, uint32_t res);
void gl_draw_to(struct gl_stream *s, uint32_t surface);
void gl_clear(struct gl_stream *s, float r, float g, float b, float a);
void gl_blit(struct gl_stream *s, uint32_t dst, uint32_t dw, uint32_t dh,
	     uint32_t src, uint32_t sw, uint32_t sh);
void gl_copy(struct gl_stream *s, uint32_t dst, uint32_t src, uint32_t w,
	     uint32_t h);
/* Create a shader from TGSI text and bind it to its stage. */
void gl_shader(struct gl_stream *s, uint32_t handle, uint32_t stage,
	       const char *tgsi);
/* Set CONST[0] of the fragment shader. */
void gl_constant(struct gl_stream *s, const uint32_t value[4]);
/*
 * Set up all but the fragment shader for gl_triangle(): a vertex shader and states with
 * handles from 1 to 5, and vertices in a buffer of gl_vertices().  The picture of the
 * context is @w x @h.
 */
void gl_pipeline(struct gl_stream *s, uint32_t vertices, uint32_t w, uint32_t h);
/* Draw a triangle that covers the picture.  Its colours are added to those there. */
void gl_triangle(struct gl_stream *s);
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
int gl_run(struct vm *vm, uint32_t ctx, const struct gl_stream *s);
/* Wait for a head, which may be an error. Return the answer. */
int gl_result(struct vm *vm, int head, struct virtio_gpu_ctrl_hdr *hdr);

/* Clear a picture that is attached to a context: create, draw to, clear. */
int gl_fill(struct vm *vm, uint32_t ctx, uint32_t res, uint32_t argb);

#endif /* KSELFTEST_VIRGL_H */
