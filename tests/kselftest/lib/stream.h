/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Streams of OpenGL, by the protocol of virgl: pure code. The protocol's numbers are
 * defined here a second time, not taken from the driver.
 */
#ifndef KSELFTEST_STREAM_H
#define KSELFTEST_STREAM_H

#include <stdint.h>

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
#define GL_MAP_PERSISTENT 2
#define GL_MAP_COHERENT	4

/* Stages of a pipeline. */
#define GL_VERTEX	0
#define GL_FRAGMENT	1

/* A stream under construction; exceeding its size is a bug of the test. */
struct gl_stream {
	unsigned int n;
	uint32_t w[1024];
};

void gl_begin(struct gl_stream *s);
void gl_word(struct gl_stream *s, uint32_t w);
void gl_head(struct gl_stream *s, uint32_t cmd, uint32_t object, uint32_t len);
void gl_surface(struct gl_stream *s, uint32_t handle, uint32_t res);
void gl_draw_to(struct gl_stream *s, uint32_t surface);
void gl_clear(struct gl_stream *s, float r, float g, float b, float a);
/* Clear a picture: create a surface, draw to it, clear, destroy it. */
void gl_put_fill(struct gl_stream *s, uint32_t res, uint32_t argb);
void gl_blit(struct gl_stream *s, uint32_t dst, uint32_t dw, uint32_t dh,
	     uint32_t src, uint32_t sw, uint32_t sh);
void gl_copy(struct gl_stream *s, uint32_t dst, uint32_t src, uint32_t w,
	     uint32_t h);
/* Create a shader from TGSI text and bind it to its stage. */
void gl_shader(struct gl_stream *s, uint32_t handle, uint32_t stage,
	       const char *tgsi);
/* Name the storage of a blob: a buffer for vertices that stays mapped. */
void gl_storage(struct gl_stream *s, uint32_t blob_id, uint32_t size);
/* Take vertices for gl_triangle() from the beginning of a buffer. */
void gl_vertices_from(struct gl_stream *s, uint32_t buffer);
/* Set CONST[0] of the fragment shader. */
void gl_constant(struct gl_stream *s, const uint32_t value[4]);
/*
 * Set up all but the fragment shader for gl_triangle(): a vertex shader and states with
 * handles from 1 to 5, and vertices in a buffer of gl_vertices().  The picture of the
 * context is @w x @h.
 */
void gl_pipeline(struct gl_stream *s, uint32_t vertices, uint32_t w, uint32_t h);
/* Flags of a rasterizer: centres of pixels are at halves; draws are cut to the scissor. */
#define GL_HALF_CENTER	(1u << 29)
#define GL_SCISSOR	(1u << 14)
/* Create a rasterizer and bind it, or bind one again; gl_pipeline() has bound 2. */
void gl_rasterizer(struct gl_stream *s, uint32_t handle, uint32_t flags);
void gl_bind_rasterizer(struct gl_stream *s, uint32_t handle);
/* Set the scissor rectangle, whose right and lower edge do not belong to it. */
void gl_scissor(struct gl_stream *s, uint32_t left, uint32_t top, uint32_t right,
		uint32_t bottom);
/* Draw a triangle that covers the picture.  Its colours are added to those there. */
void gl_triangle(struct gl_stream *s);

/* A triangle that reaches beyond the picture's right and upper edge. */
extern const float gl_corners[3][4];

#endif /* KSELFTEST_STREAM_H */
