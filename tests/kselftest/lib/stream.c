// SPDX-License-Identifier: GPL-2.0-only
/* Streams of OpenGL, by the protocol of virgl. */
#include <stdlib.h>
#include <string.h>

#include "stream.h"

#define ARRAY_LEN(a)	(sizeof(a) / sizeof((a)[0]))

/* Commands of a stream. */
#define CREATE_OBJECT	1
#define BIND_OBJECT	2
#define DESTROY_OBJECT	3
#define SET_VIEWPORT	4
#define SET_FRAMEBUFFER	5
#define SET_VERTEX_BUFFERS 6
#define CLEAR		7
#define DRAW_VBO	8
#define INLINE_WRITE	9
#define SET_CONSTANTS	12
#define SET_SCISSOR	15
#define BLIT		16
#define COPY_REGION	17
#define BIND_SHADER	31
#define PIPE_CREATE	48
#define OBJECT_BLEND	1
#define OBJECT_RASTERIZER 2
#define OBJECT_DEPTH	3
#define OBJECT_SHADER	4
#define OBJECT_VERTICES	5
#define OBJECT_SURFACE	8
#define CLEAR_COLOR0	4

#define MAX_TOKENS	300u	/* of a shader's text, as the host parses it */

void gl_begin(struct gl_stream *s)
{
	s->n = 0;
}

void gl_word(struct gl_stream *s, uint32_t w)
{
	if (s->n == ARRAY_LEN(s->w))
		abort();
	s->w[s->n++] = w;
}

void gl_head(struct gl_stream *s, uint32_t cmd, uint32_t object, uint32_t len)
{
	gl_word(s, len << 16 | object << 8 | cmd);
}

void gl_surface(struct gl_stream *s, uint32_t handle, uint32_t res)
{
	gl_head(s, CREATE_OBJECT, OBJECT_SURFACE, 5);
	gl_word(s, handle);
	gl_word(s, res);
	gl_word(s, GL_B8G8R8A8);
	gl_word(s, 0);		/* level */
	gl_word(s, 0);		/* layers */
}

void gl_draw_to(struct gl_stream *s, uint32_t surface)
{
	gl_head(s, SET_FRAMEBUFFER, 0, 3);
	gl_word(s, 1);		/* colour buffers */
	gl_word(s, 0);		/* no depth */
	gl_word(s, surface);
}

static void gl_float(struct gl_stream *s, float f)
{
	uint32_t w;

	memcpy(&w, &f, sizeof(w));
	gl_word(s, w);
}

void gl_clear(struct gl_stream *s, float r, float g, float b, float a)
{
	gl_head(s, CLEAR, 0, 8);
	gl_word(s, CLEAR_COLOR0);
	gl_float(s, r);
	gl_float(s, g);
	gl_float(s, b);
	gl_float(s, a);
	gl_word(s, 0);		/* depth, a double */
	gl_word(s, 0);
	gl_word(s, 0);		/* stencil */
}

void gl_blit(struct gl_stream *s, uint32_t dst, uint32_t dw, uint32_t dh,
	     uint32_t src, uint32_t sw, uint32_t sh)
{
	const uint32_t words[] = {
		0xf | 1 << 8,	/* RGBA, linear */
		0, 0,
		dst, 0, GL_B8G8R8A8, 0, 0, 0, dw, dh, 1,
		src, 0, GL_B8G8R8A8, 0, 0, 0, sw, sh, 1,
	};
	unsigned int i;

	gl_head(s, BLIT, 0, ARRAY_LEN(words));
	for (i = 0; i < ARRAY_LEN(words); i++)
		gl_word(s, words[i]);
}

void gl_copy(struct gl_stream *s, uint32_t dst, uint32_t src, uint32_t w,
	     uint32_t h)
{
	const uint32_t words[] = {
		dst, 0, 0, 0, 0, src, 0, 0, 0, 0, w, h, 1,
	};
	unsigned int i;

	gl_head(s, COPY_REGION, 0, ARRAY_LEN(words));
	for (i = 0; i < ARRAY_LEN(words); i++)
		gl_word(s, words[i]);
}

/* Put a text and its zero, padded to a word. */
static void gl_text(struct gl_stream *s, const char *text)
{
	size_t len = strlen(text) + 1, n;
	uint32_t w;

	for (; len; text += n, len -= n) {
		n = len < sizeof(w) ? len : sizeof(w);
		w = 0;
		memcpy(&w, text, n);
		gl_word(s, w);
	}
}

void gl_shader(struct gl_stream *s, uint32_t handle, uint32_t stage,
	       const char *tgsi)
{
	uint32_t len = (uint32_t)strlen(tgsi) + 1;

	gl_head(s, CREATE_OBJECT, OBJECT_SHADER, 5 + (len + 3) / 4);
	gl_word(s, handle);
	gl_word(s, stage);
	gl_word(s, len);
	gl_word(s, MAX_TOKENS);
	gl_word(s, 0);		/* stream outputs */
	gl_text(s, tgsi);
	gl_head(s, BIND_SHADER, 0, 2);
	gl_word(s, handle);
	gl_word(s, stage);
}

void gl_constant(struct gl_stream *s, const uint32_t value[4])
{
	unsigned int i;

	gl_head(s, SET_CONSTANTS, 0, 6);
	gl_word(s, GL_FRAGMENT);
	gl_word(s, 0);
	for (i = 0; i < 4; i++)
		gl_word(s, value[i]);
}

static void gl_bind(struct gl_stream *s, uint32_t type, uint32_t handle)
{
	gl_head(s, BIND_OBJECT, type, 1);
	gl_word(s, handle);
}

/* Create an object of @n words behind the handle, and bind it. */
static void gl_object(struct gl_stream *s, uint32_t type, uint32_t handle,
		      const uint32_t *words, uint32_t n)
{
	uint32_t i;

	gl_head(s, CREATE_OBJECT, type, 1 + n);
	gl_word(s, handle);
	for (i = 0; i < n; i++)
		gl_word(s, words[i]);
	gl_bind(s, type, handle);
}

void gl_rasterizer(struct gl_stream *s, uint32_t handle, uint32_t flags)
{
	const uint32_t rasterizer[8] = { flags };

	gl_object(s, OBJECT_RASTERIZER, handle, rasterizer, ARRAY_LEN(rasterizer));
}

void gl_bind_rasterizer(struct gl_stream *s, uint32_t handle)
{
	gl_bind(s, OBJECT_RASTERIZER, handle);
}

void gl_scissor(struct gl_stream *s, uint32_t left, uint32_t top, uint32_t right,
		uint32_t bottom)
{
	gl_head(s, SET_SCISSOR, 0, 3);
	gl_word(s, 0);
	gl_word(s, left | top << 16);
	gl_word(s, right | bottom << 16);
}

const float gl_corners[3][4] = {
	{ -1, -1, 0, 1 }, { 3, -1, 0, 1 }, { -1, 3, 0, 1 },
};

void gl_storage(struct gl_stream *s, uint32_t blob_id, uint32_t size)
{
	const uint32_t words[11] = {
		GL_BUFFER, GL_R8, GL_VERTICES, size, 1, 1, 1, 0, 0,
		GL_MAP_PERSISTENT | GL_MAP_COHERENT, blob_id,
	};
	unsigned int i;

	gl_head(s, PIPE_CREATE, 0, ARRAY_LEN(words));
	for (i = 0; i < ARRAY_LEN(words); i++)
		gl_word(s, words[i]);
}

void gl_vertices_from(struct gl_stream *s, uint32_t buffer)
{
	gl_head(s, SET_VERTEX_BUFFERS, 0, 3);
	gl_word(s, sizeof(gl_corners[0]));
	gl_word(s, 0);
	gl_word(s, buffer);
}

void gl_pipeline(struct gl_stream *s, uint32_t vertices, uint32_t w, uint32_t h)
{
	/* Source and destination times one, added; all four components. */
	const uint32_t blend[10] = {
		[2] = 1 | 1 << 4 | 1 << 9 | 1 << 17 | 1 << 22 | 0xf << 27,
	};
	const uint32_t depth[4] = { 0 };
	const uint32_t elements[4] = { 0, 0, 0, GL_RGBA32F };
	const float half[2] = { (float)w / 2, (float)h / 2 };
	unsigned int i;

	gl_object(s, OBJECT_BLEND, 1, blend, ARRAY_LEN(blend));
	gl_rasterizer(s, 2, GL_HALF_CENTER);
	gl_object(s, OBJECT_DEPTH, 3, depth, ARRAY_LEN(depth));
	gl_object(s, OBJECT_VERTICES, 4, elements, ARRAY_LEN(elements));
	gl_shader(s, 5, GL_VERTEX,
		  "VERT\n"
		  "DCL IN[0]\n"
		  "DCL OUT[0], POSITION\n"
		  "0: MOV OUT[0], IN[0]\n"
		  "1: END\n");

	gl_head(s, SET_VIEWPORT, 0, 7);
	gl_word(s, 0);
	/* Scale, then translation. */
	for (i = 0; i < 2; i++) {
		gl_float(s, half[0]);
		gl_float(s, half[1]);
		gl_float(s, 0.5f);
	}

	gl_head(s, INLINE_WRITE, 0, 11 + sizeof(gl_corners) / 4);
	gl_word(s, vertices);
	for (i = 0; i < 7; i++)
		gl_word(s, 0);	/* level, usage, strides, x, y, z */
	gl_word(s, sizeof(gl_corners));
	gl_word(s, 1);
	gl_word(s, 1);
	for (i = 0; i < sizeof(gl_corners) / 4; i++)
		gl_float(s, gl_corners[i / 4][i % 4]);
	gl_vertices_from(s, vertices);
}

void gl_triangle(struct gl_stream *s)
{
	const uint32_t words[12] = {
		[1] = ARRAY_LEN(gl_corners),	/* vertices */
		[2] = 4,			/* triangles */
		[4] = 1,			/* instances */
		[10] = ARRAY_LEN(gl_corners) - 1,	/* largest index */
	};
	unsigned int i;

	gl_head(s, DRAW_VBO, 0, ARRAY_LEN(words));
	for (i = 0; i < ARRAY_LEN(words); i++)
		gl_word(s, words[i]);
}

void gl_put_fill(struct gl_stream *s, uint32_t res, uint32_t argb)
{
	/* Handles are the context's own; one for each resource will do. */
	gl_surface(s, 100 + res, res);
	gl_draw_to(s, 100 + res);
	gl_clear(s, (float)(argb >> 16 & 0xff) / 255, (float)(argb >> 8 & 0xff) / 255,
		 (float)(argb & 0xff) / 255, (float)(argb >> 24) / 255);
	/* Gone at once, so that the same can be done again. */
	gl_head(s, SET_FRAMEBUFFER, 0, 2);
	gl_word(s, 0);
	gl_word(s, 0);
	gl_head(s, DESTROY_OBJECT, OBJECT_SURFACE, 1);
	gl_word(s, 100 + res);
}
