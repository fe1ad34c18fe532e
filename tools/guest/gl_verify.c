// SPDX-License-Identifier: GPL-2.0-only
/*
 * Scenes whose every pixel is known.  Each is drawn to a texture, read back and
 * compared; their content comes from a seed, so that guests with different
 * seeds have different pixels and no pixel of one is right in another.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gl.h"

#include <GLES2/gl2ext.h>

#define MAX_SIDE	2048

/**
 * struct target - a texture that is drawn to
 */
struct target {
	GLuint texture;
	GLuint fbo;
	int w, h;
};

/**
 * struct check - a scene that is being looked at
 * @w: window, for its version of GL
 * @state: of the random numbers
 * @want: pixels as they must be, RGBA
 * @got: pixels as they are
 * @data: pixels or vertices to upload
 * @part: of the scene, for messages
 */
struct check {
	const struct window *w;
	const char *scene;
	uint32_t round;
	uint32_t state;
	uint32_t part;
	uint8_t *want;
	uint8_t *got;
	uint8_t *data;
};

enum outcome { RIGHT, WRONG, SKIPPED, BROKEN };

static uint32_t roll(struct check *c)
{
	c->state ^= c->state << 13;
	c->state ^= c->state >> 17;
	c->state ^= c->state << 5;
	return c->state;
}

static int below(struct check *c, int n)
{
	return (int)(roll(c) % (uint32_t)n);
}

static void roll_pixels(struct check *c, uint8_t *px, int n)
{
	uint32_t v;
	int i;

	for (i = 0; i < n; i++) {
		v = roll(c);
		memcpy(px + 4 * i, &v, 4);
	}
}

/* Not all GPUs are asked for all formats: this one they must be able to do. */
static int target_make(struct target *t, int w, int h)
{
	t->w = w;
	t->h = h;
	glGenTextures(1, &t->texture);
	glBindTexture(GL_TEXTURE_2D, t->texture);
	glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA, w, h, 0, GL_RGBA,
		     GL_UNSIGNED_BYTE, NULL);
	glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
	glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
	glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_S, GL_CLAMP_TO_EDGE);
	glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_T, GL_CLAMP_TO_EDGE);
	glGenFramebuffers(1, &t->fbo);
	glBindFramebuffer(GL_FRAMEBUFFER, t->fbo);
	glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0,
			       GL_TEXTURE_2D, t->texture, 0);
	glViewport(0, 0, w, h);
	if (glCheckFramebufferStatus(GL_FRAMEBUFFER) ==
	    GL_FRAMEBUFFER_COMPLETE)
		return 0;
	explain("GL cannot draw to a texture of %dx%d\n", w, h);
	return -EIO;
}

static void target_use(const struct target *t)
{
	glBindFramebuffer(GL_FRAMEBUFFER, t->fbo);
	glViewport(0, 0, t->w, t->h);
}

static void target_free(struct target *t)
{
	glBindFramebuffer(GL_FRAMEBUFFER, 0);
	glDeleteFramebuffers(1, &t->fbo);
	glDeleteTextures(1, &t->texture);
	memset(t, 0, sizeof(*t));
}

static bool pixel_is(const uint8_t *a, const uint8_t *b, int tolerance)
{
	int i;

	for (i = 0; i < 4; i++)
		if (abs(a[i] - b[i]) > tolerance)
			return false;
	return true;
}

/* Is the bound framebuffer what is wanted? */
static enum outcome compare(struct check *c, int w, int h, int tolerance)
{
	int i, first = -1, n = 0;
	const uint8_t *a, *b;

	/* Old content must not make an unwritten pixel look right. */
	for (i = 0; i < 4 * w * h; i++)
		c->got[i] = (uint8_t)~c->want[i];
	glReadPixels(0, 0, w, h, GL_RGBA, GL_UNSIGNED_BYTE, c->got);
	if (window_error(c->scene))
		return BROKEN;
	c->part++;
	for (i = 0; i < w * h; i++) {
		if (pixel_is(c->got + 4 * i, c->want + 4 * i, tolerance))
			continue;
		if (first < 0)
			first = i;
		n++;
	}
	if (first < 0)
		return RIGHT;
	a = c->got + 4 * first;
	b = c->want + 4 * first;
	explain("verify: scene %s, round %u, picture %u of %dx%d: pixel (%d, %d) is %02x%02x%02x%02x and must be %02x%02x%02x%02x; %d of %d differ\n",
		c->scene, c->round, c->part, w, h, first % w, first / w,
		a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3], n, w * h);
	return WRONG;
}

static void want_rect(struct check *c, int stride, int x, int y, int w, int h,
		      const uint8_t px[4])
{
	int i, j;

	for (j = y; j < y + h; j++)
		for (i = x; i < x + w; i++)
			memcpy(c->want + 4 * (j * stride + i), px, 4);
}

static void clear_to(const uint8_t px[4])
{
	glClearColor(px[0] / 255.0f, px[1] / 255.0f, px[2] / 255.0f,
		     px[3] / 255.0f);
	glClear(GL_COLOR_BUFFER_BIT);
}

/* ---- shaders ---- */

#define HIGH \
"#ifdef GL_FRAGMENT_PRECISION_HIGH\n" \
"precision highp float;\n" \
"#else\n" \
"precision mediump float;\n" \
"#endif\n"

static const char textured_vertex[] =
"attribute vec4 position;\n"		/* place, place in the texture */
"varying vec2 at;\n"
"void main() { at = position.zw; gl_Position = vec4(position.xy, 0.0, 1.0); }\n";

static const char textured_fragment[] =
HIGH
"uniform sampler2D texture;\n"
"varying vec2 at;\n"
"void main() { gl_FragColor = texture2D(texture, at); }\n";

static const char colored_vertex[] =
"attribute vec3 position;\n"
"attribute vec4 value;\n"
"varying vec4 color;\n"
"void main() { color = value; gl_Position = vec4(position, 1.0); }\n";

static const char colored_fragment[] =
HIGH
"varying vec4 color;\n"
"void main() { gl_FragColor = color; }\n";

static const char gradient_fragment[] =
HIGH
"varying vec2 at;\n"
"void main()\n"
"{\n"
"	vec2 p = floor(gl_FragCoord.xy);\n"
"	gl_FragColor = vec4(p, mod(p.x + 3.0 * p.y, 256.0), 255.0) / 255.0;\n"
"}\n";

/* A rectangle from (-1, -1) to (1, 1) with a texture on all of it. */
static const float whole[] = {
	-1, -1, 0, 0,  1, -1, 1, 0,  -1, 1, 0, 1,  1, 1, 1, 1,
};

static enum outcome draw_whole(const char *fragment, GLuint texture)
{
	GLuint program = window_program(textured_vertex, fragment), buffer;

	if (!program)
		return BROKEN;
	glGenBuffers(1, &buffer);
	glBindBuffer(GL_ARRAY_BUFFER, buffer);
	glBufferData(GL_ARRAY_BUFFER, sizeof(whole), whole, GL_STATIC_DRAW);
	glVertexAttribPointer(0, 4, GL_FLOAT, GL_FALSE, 0, NULL);
	glEnableVertexAttribArray(0);
	glUseProgram(program);
	glBindTexture(GL_TEXTURE_2D, texture);
	glDrawArrays(GL_TRIANGLE_STRIP, 0, 4);
	glDisableVertexAttribArray(0);
	glDeleteBuffers(1, &buffer);
	glDeleteProgram(program);
	return window_error("drawing a scene") ? BROKEN : RIGHT;
}

/* ---- scenes ---- */

static enum outcome scene_clear(struct check *c)
{
	struct target t;
	enum outcome r = RIGHT;
	uint8_t px[4], old[4];
	int i;

	if (target_make(&t, 64, 48))
		return BROKEN;
	for (i = 0; i < 8 && r == RIGHT; i++) {
		roll_pixels(c, px, 1);
		clear_to(px);
		want_rect(c, t.w, 0, 0, t.w, t.h, px);
		r = compare(c, t.w, t.h, 0);
	}
	/* with a mask the other channels stay */
	memcpy(old, px, 4);
	roll_pixels(c, px, 1);
	glColorMask(GL_TRUE, GL_FALSE, GL_FALSE, GL_TRUE);
	clear_to(px);
	glColorMask(GL_TRUE, GL_TRUE, GL_TRUE, GL_TRUE);
	px[1] = old[1];
	px[2] = old[2];
	want_rect(c, t.w, 0, 0, t.w, t.h, px);
	if (r == RIGHT)
		r = compare(c, t.w, t.h, 0);
	target_free(&t);
	return r;
}

static enum outcome scene_scissor(struct check *c)
{
	struct target t;
	enum outcome r;
	uint8_t px[4];
	int i;

	if (target_make(&t, 256, 256))
		return BROKEN;
	glEnable(GL_SCISSOR_TEST);
	for (i = 0; i < 256; i++) {
		roll_pixels(c, px, 1);
		glScissor(i % 16 * 16, i / 16 * 16, 16, 16);
		clear_to(px);
		want_rect(c, t.w, i % 16 * 16, i / 16 * 16, 16, 16, px);
	}
	glDisable(GL_SCISSOR_TEST);
	r = compare(c, t.w, t.h, 0);
	target_free(&t);
	return r;
}

static enum outcome scene_gradient(struct check *c)
{
	struct target t;
	enum outcome r;
	int x, y;

	if (target_make(&t, 256, 256))
		return BROKEN;
	r = draw_whole(gradient_fragment, 0);
	for (y = 0; y < 256; y++) {
		for (x = 0; x < 256; x++) {
			const uint8_t px[4] = { (uint8_t)x, (uint8_t)y,
						(uint8_t)(x + 3 * y), 255 };

			memcpy(c->want + 4 * (y * 256 + x), px, 4);
		}
	}
	if (r == RIGHT)
		r = compare(c, t.w, t.h, 1);
	target_free(&t);
	return r;
}

static enum outcome scene_texture(struct check *c)
{
	struct target t, from;
	enum outcome r;

	if (target_make(&from, 200, 150) || target_make(&t, 200, 150))
		return BROKEN;
	roll_pixels(c, c->want, 200 * 150);
	glBindTexture(GL_TEXTURE_2D, from.texture);
	glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA, 200, 150, 0, GL_RGBA,
		     GL_UNSIGNED_BYTE, c->want);
	target_use(&t);
	r = draw_whole(textured_fragment, from.texture);
	if (r == RIGHT)
		r = compare(c, t.w, t.h, 0);
	target_free(&t);
	target_free(&from);
	return r;
}

/* Parts of a texture change; some of the time it is in use meanwhile. */
static enum outcome scene_update(struct check *c)
{
	struct target t, from;
	enum outcome r = RIGHT;
	int i, k, x, y, w, h;

	if (target_make(&from, 256, 128) || target_make(&t, 256, 128))
		return BROKEN;
	roll_pixels(c, c->want, 256 * 128);
	glBindTexture(GL_TEXTURE_2D, from.texture);
	glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, 256, 128, GL_RGBA,
			GL_UNSIGNED_BYTE, c->want);
	for (i = 0; i < 6 && r == RIGHT; i++) {
		for (k = 0; k < 5; k++) {
			w = 1 + below(c, 100);
			h = 1 + below(c, 60);
			x = below(c, 256 - w + 1);
			y = below(c, 128 - h + 1);
			roll_pixels(c, c->data, w * h);
			glBindTexture(GL_TEXTURE_2D, from.texture);
			glTexSubImage2D(GL_TEXTURE_2D, 0, x, y, w, h, GL_RGBA,
					GL_UNSIGNED_BYTE, c->data);
			while (h--)
				memcpy(c->want + 4 * ((y + h) * 256 + x),
				       c->data + 4 * h * w, 4 * (size_t)w);
		}
		target_use(&t);
		r = draw_whole(textured_fragment, from.texture);
		if (r == RIGHT)
			r = compare(c, 256, 128, 0);
	}
	target_free(&t);
	target_free(&from);
	return r;
}

/* Up and down, nothing drawn. */
static enum outcome scene_transfer(struct check *c)
{
	static const int sizes[][2] = {
		{ 1, 1 }, { 3, 5 }, { 17, 1 }, { 1, 33 }, { 127, 63 },
		{ 256, 256 }, { 1000, 7 }, { 640, 480 }, { 2048, 512 },
	};
	enum outcome r = RIGHT;
	struct target t;
	size_t i;
	int n;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && r == RIGHT; i++) {
		if (target_make(&t, sizes[i][0], sizes[i][1]))
			return BROKEN;
		for (n = 0; n < 2 && r == RIGHT; n++) {
			roll_pixels(c, c->want, t.w * t.h);
			glBindTexture(GL_TEXTURE_2D, t.texture);
			glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, t.w, t.h,
					GL_RGBA, GL_UNSIGNED_BYTE, c->want);
			r = compare(c, t.w, t.h, 0);
		}
		target_free(&t);
	}
	return r;
}

#define CELLS	16		/* in a row */
#define SIDE	8		/* pixels of a cell's */

/**
 * struct corner - a vertex
 */
struct corner {
	float x, y, z;
	uint8_t px[4];
};

static void cell(struct corner *v, int x, int y, int w, int h, float z,
		 const uint8_t px[4])
{
	const float full = CELLS * SIDE / 2;
	int i;

	for (i = 0; i < 6; i++) {
		bool right = i == 1 || i == 3 || i == 4;
		bool up = i == 2 || i == 4 || i == 5;

		v[i].x = (float)(x + (right ? w : 0)) / full - 1;
		v[i].y = (float)(y + (up ? h : 0)) / full - 1;
		v[i].z = z;
		memcpy(v[i].px, px, 4);
	}
}

static void use_corners(void)
{
	glVertexAttribPointer(0, 3, GL_FLOAT, GL_FALSE, sizeof(struct corner),
			      NULL);
	glVertexAttribPointer(1, 4, GL_UNSIGNED_BYTE, GL_TRUE,
			      sizeof(struct corner), (const void *)12);
	glEnableVertexAttribArray(0);
	glEnableVertexAttribArray(1);
}

static void leave_corners(void)
{
	glDisableVertexAttribArray(0);
	glDisableVertexAttribArray(1);
}

static void new_cells(struct check *c, struct corner *v, uint8_t *want,
		      int from, int to)
{
	uint8_t px[4], *all = c->want;
	int i;

	c->want = want;
	for (i = from; i < to; i++) {
		int x = i % CELLS * SIDE, y = i / CELLS * SIDE;

		roll_pixels(c, px, 1);
		cell(v + 6 * i, x, y, SIDE, SIDE, 0, px);
		want_rect(c, CELLS * SIDE, x, y, SIDE, SIDE, px);
	}
	c->want = all;
}

/*
 * Parts of a vertex buffer change while what was drawn with the old ones is
 * still on its way: the first picture must have the old ones all the same.
 */
static enum outcome scene_buffer(struct check *c)
{
	const int n = CELLS * CELLS, full = CELLS * SIDE;
	struct corner *v = (struct corner *)(void *)c->data;
	size_t cell_bytes = 6 * sizeof(*v), bytes = (size_t)full * (size_t)full * 4;
	GLuint program = window_program(colored_vertex, colored_fragment);
	uint8_t *before = c->data + (size_t)n * cell_bytes;
	uint8_t *all = c->want;
	enum outcome r = RIGHT;
	struct target t[2];
	GLuint buffer;
	int i, from, to;

	if (!program || target_make(&t[0], full, full) ||
	    target_make(&t[1], full, full))
		return BROKEN;
	new_cells(c, v, c->want, 0, n);
	glGenBuffers(1, &buffer);
	glBindBuffer(GL_ARRAY_BUFFER, buffer);
	glBufferData(GL_ARRAY_BUFFER, n * (GLsizeiptr)cell_bytes, v,
		     GL_DYNAMIC_DRAW);
	use_corners();
	glUseProgram(program);
	for (i = 0; i < 6 && r == RIGHT; i++) {
		target_use(&t[0]);
		glDrawArrays(GL_TRIANGLES, 0, 6 * n);
		memcpy(before, c->want, bytes);

		from = below(c, n);
		to = from + 1 + below(c, n - from);
		new_cells(c, v, c->want, from, to);
		glBufferSubData(GL_ARRAY_BUFFER, from * (GLintptr)cell_bytes,
				(to - from) * (GLsizeiptr)cell_bytes,
				v + 6 * from);
		target_use(&t[1]);
		glDrawArrays(GL_TRIANGLES, 0, 6 * n);
		r = compare(c, full, full, 0);
		if (r != RIGHT)
			break;
		target_use(&t[0]);
		c->want = before;
		r = compare(c, full, full, 0);
		c->want = all;
	}
	leave_corners();
	glDeleteBuffers(1, &buffer);
	glDeleteProgram(program);
	target_free(&t[0]);
	target_free(&t[1]);
	return r;
}

/* Copy random bytes into a buffer that is mapped, and look whether they are there. */
static enum outcome copied_into(struct check *c, const void *mapped, int len)
{
	GLuint from;

	roll_pixels(c, c->got, len / 4);
	glGenBuffers(1, &from);
	glBindBuffer(GL_COPY_READ_BUFFER, from);
	glBufferData(GL_COPY_READ_BUFFER, len, c->got, GL_STREAM_COPY);
	glCopyBufferSubData(GL_COPY_READ_BUFFER, GL_ARRAY_BUFFER, 0, 0, len);
	glFinish();
	glDeleteBuffers(1, &from);
	if (window_error(c->scene))
		return BROKEN;
	c->part++;
	if (!memcmp(mapped, c->got, (size_t)len))
		return RIGHT;
	explain("verify: scene %s, round %u, part %u: the buffer has other bytes than were copied into it\n",
		c->scene, c->round, c->part);
	return WRONG;
}

/*
 * A vertex buffer that stays mapped while it is drawn from: what is written there is drawn, and
 * what OpenGL writes can be read, without a call for either.
 */
static enum outcome scene_mapped(struct check *c)
{
	const GLbitfield bits = GL_MAP_READ_BIT | GL_MAP_WRITE_BIT |
				GL_MAP_PERSISTENT_BIT_EXT | GL_MAP_COHERENT_BIT_EXT;
	const int n = CELLS * CELLS, full = CELLS * SIDE;
	const GLsizeiptr len = 6 * n * (GLsizeiptr)sizeof(struct corner);
	const char *has = (const char *)glGetString(GL_EXTENSIONS);
	PFNGLBUFFERSTORAGEEXTPROC storage;
	enum outcome r = RIGHT;
	GLuint program, buffer;
	struct corner *v;
	struct target t;
	int i, from, to;

	if (c->w->es < 3 || !has || !strstr(has, "GL_EXT_buffer_storage"))
		return SKIPPED;
	storage = (PFNGLBUFFERSTORAGEEXTPROC)eglGetProcAddress("glBufferStorageEXT");
	program = window_program(colored_vertex, colored_fragment);
	if (!storage || !program || target_make(&t, full, full))
		return BROKEN;
	glGenBuffers(1, &buffer);
	glBindBuffer(GL_ARRAY_BUFFER, buffer);
	storage(GL_ARRAY_BUFFER, len, NULL, bits);
	v = glMapBufferRange(GL_ARRAY_BUFFER, 0, len, bits);
	if (!v) {
		window_error(c->scene);
		explain("verify: scene %s: the buffer cannot be mapped\n", c->scene);
		return BROKEN;
	}
	glUseProgram(program);
	for (i = 0; i < 6 && r == RIGHT; i++) {
		from = i ? below(c, n) : 0;
		to = i ? from + 1 + below(c, n - from) : n;
		new_cells(c, v, c->want, from, to);
		use_corners();
		glDrawArrays(GL_TRIANGLES, 0, 6 * n);
		leave_corners();
		/* Reading pixels waits for the draw. */
		r = compare(c, full, full, 0);
	}
	if (r == RIGHT)
		r = copied_into(c, v, (int)len);
	glUnmapBuffer(GL_ARRAY_BUFFER);
	glDeleteBuffers(1, &buffer);
	glDeleteProgram(program);
	target_free(&t);
	return r;
}

/* Some cells, in any order, by their numbers; the numbers change, too. */
static enum outcome scene_index(struct check *c)
{
	const int n = CELLS * CELLS, full = CELLS * SIDE;
	struct corner *v = (struct corner *)(void *)c->data;
	uint16_t *index = (uint16_t *)(void *)(c->data + 6 * n * sizeof(*v));
	GLuint program = window_program(colored_vertex, colored_fragment);
	static const uint8_t black[4];
	enum outcome r = RIGHT;
	struct target t;
	GLuint buffer[2];
	int i, k, m;

	if (!program || target_make(&t, full, full))
		return BROKEN;
	new_cells(c, v, c->want, 0, n);
	glGenBuffers(2, buffer);
	glBindBuffer(GL_ARRAY_BUFFER, buffer[0]);
	glBufferData(GL_ARRAY_BUFFER, 6 * n * (GLsizeiptr)sizeof(*v), v,
		     GL_STATIC_DRAW);
	glBindBuffer(GL_ELEMENT_ARRAY_BUFFER, buffer[1]);
	glBufferData(GL_ELEMENT_ARRAY_BUFFER, 6 * n * 2, NULL, GL_DYNAMIC_DRAW);
	use_corners();
	glUseProgram(program);
	for (i = 0; i < 4 && r == RIGHT; i++) {
		want_rect(c, full, 0, 0, full, full, black);
		for (m = 0; m < n / 2; m++) {
			int which = below(c, n);

			for (k = 0; k < 6; k++)
				index[6 * m + k] = (uint16_t)(6 * which + k);
			want_rect(c, full, which % CELLS * SIDE,
				  which / CELLS * SIDE, SIDE, SIDE,
				  v[6 * which].px);
		}
		glBufferSubData(GL_ELEMENT_ARRAY_BUFFER, 0, 6 * m * 2, index);
		clear_to(black);
		glDrawElements(GL_TRIANGLES, 6 * m, GL_UNSIGNED_SHORT, NULL);
		r = compare(c, full, full, 0);
	}
	leave_corners();
	glBindBuffer(GL_ELEMENT_ARRAY_BUFFER, 0);
	glDeleteBuffers(2, buffer);
	glDeleteProgram(program);
	target_free(&t);
	return r;
}

/* Rectangles over each other, each at a depth of its own. */
static enum outcome scene_depth(struct check *c)
{
	const int n = 40, full = CELLS * SIDE;
	struct corner *v = (struct corner *)(void *)c->data;
	GLuint program = window_program(colored_vertex, colored_fragment);
	static const uint8_t grey[4] = { 90, 90, 90, 255 };
	float nearest[CELLS * SIDE * CELLS * SIDE];
	enum outcome r;
	struct target t;
	GLuint buffer, depth;
	int i, x, y;

	if (!program || target_make(&t, full, full))
		return BROKEN;
	glGenRenderbuffers(1, &depth);
	glBindRenderbuffer(GL_RENDERBUFFER, depth);
	glRenderbufferStorage(GL_RENDERBUFFER, GL_DEPTH_COMPONENT16, full, full);
	glFramebufferRenderbuffer(GL_FRAMEBUFFER, GL_DEPTH_ATTACHMENT,
				  GL_RENDERBUFFER, depth);
	want_rect(c, full, 0, 0, full, full, grey);
	for (i = 0; i < full * full; i++)
		nearest[i] = 1;
	for (i = 0; i < n; i++) {
		int w = 8 + below(c, full - 8), h = 8 + below(c, full - 8);
		int x0 = below(c, full - w + 1), y0 = below(c, full - h + 1);
		/* 17 and 40 have no common divisor: no depth comes twice */
		float z = (float)(i * 17 % n) / (float)n - 0.5f;
		uint8_t px[4];

		roll_pixels(c, px, 1);
		cell(v + 6 * i, x0, y0, w, h, z, px);
		for (y = y0; y < y0 + h; y++) {
			for (x = x0; x < x0 + w; x++) {
				if (z >= nearest[y * full + x])
					continue;
				nearest[y * full + x] = z;
				memcpy(c->want + 4 * (y * full + x), px, 4);
			}
		}
	}
	glGenBuffers(1, &buffer);
	glBindBuffer(GL_ARRAY_BUFFER, buffer);
	glBufferData(GL_ARRAY_BUFFER, 6 * n * (GLsizeiptr)sizeof(*v), v,
		     GL_STATIC_DRAW);
	use_corners();
	glUseProgram(program);
	glEnable(GL_DEPTH_TEST);
	glClear(GL_DEPTH_BUFFER_BIT);
	clear_to(grey);
	glDrawArrays(GL_TRIANGLES, 0, 6 * n);
	glDisable(GL_DEPTH_TEST);
	r = compare(c, full, full, 0);
	leave_corners();
	glDeleteBuffers(1, &buffer);
	glDeleteProgram(program);
	glDeleteRenderbuffers(1, &depth);
	target_free(&t);
	return r;
}

static enum outcome scene_blend(struct check *c)
{
	const int full = CELLS * SIDE;
	struct corner *v = (struct corner *)(void *)c->data;
	GLuint program = window_program(colored_vertex, colored_fragment);
	struct target t;
	enum outcome r;
	uint8_t px[4];
	GLuint buffer;
	int i, k;

	if (!program || target_make(&t, full, full))
		return BROKEN;
	new_cells(c, v, c->want, 0, CELLS * CELLS);
	glGenBuffers(1, &buffer);
	glBindBuffer(GL_ARRAY_BUFFER, buffer);
	glBufferData(GL_ARRAY_BUFFER,
		     6 * CELLS * CELLS * (GLsizeiptr)sizeof(*v), v,
		     GL_STATIC_DRAW);
	use_corners();
	glUseProgram(program);
	roll_pixels(c, px, 1);
	clear_to(px);
	glEnable(GL_BLEND);
	glBlendFunc(GL_ONE, GL_ONE);
	glDrawArrays(GL_TRIANGLES, 0, 6 * CELLS * CELLS);
	glDisable(GL_BLEND);
	for (i = 0; i < full * full; i++) {
		for (k = 0; k < 4; k++) {
			int sum = c->want[4 * i + k] + px[k];

			c->want[4 * i + k] = (uint8_t)(sum > 255 ? 255 : sum);
		}
	}
	r = compare(c, full, full, 1);
	leave_corners();
	glDeleteBuffers(1, &buffer);
	glDeleteProgram(program);
	target_free(&t);
	return r;
}

#define LEVELS	7		/* 64x64 down to 1x1 */

/* Each level has its own pixels; then those that GL makes of the first. */
static enum outcome scene_mipmap(struct check *c)
{
	struct target t[LEVELS];
	enum outcome r = RIGHT;
	uint8_t px[LEVELS][4];
	GLuint texture;
	int i, k, x, y, side;

	glGenTextures(1, &texture);
	glBindTexture(GL_TEXTURE_2D, texture);
	glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER,
			GL_NEAREST_MIPMAP_NEAREST);
	glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
	for (i = 0; i < LEVELS; i++) {
		side = 64 >> i;
		roll_pixels(c, px[i], 1);
		for (k = 0; k < side * side; k++)
			memcpy(c->data + 4 * k, px[i], 4);
		glTexImage2D(GL_TEXTURE_2D, i, GL_RGBA, side, side, 0, GL_RGBA,
			     GL_UNSIGNED_BYTE, c->data);
	}
	/* A level is what is drawn when the picture has its size. */
	for (i = 0; i < LEVELS && r == RIGHT; i++) {
		side = 64 >> i;
		if (target_make(&t[i], side, side))
			return BROKEN;
		r = draw_whole(textured_fragment, texture);
		want_rect(c, side, 0, 0, side, side, px[i]);
		if (r == RIGHT)
			r = compare(c, side, side, 0);
		if (r != RIGHT)
			target_free(&t[i]);
	}
	if (r != RIGHT) {
		while (--i > 0)
			target_free(&t[i - 1]);
		glDeleteTextures(1, &texture);
		return r;
	}

	/* Blocks of 8x8 are still of one colour three levels up. */
	for (y = 0; y < 8; y++) {
		for (x = 0; x < 8; x++) {
			roll_pixels(c, px[0], 1);
			for (k = 0; k < 64; k++)
				memcpy(c->data + 4 * ((y * 8 + k / 8) * 64 +
						      x * 8 + k % 8), px[0], 4);
		}
	}
	glBindTexture(GL_TEXTURE_2D, texture);
	glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA, 64, 64, 0, GL_RGBA,
		     GL_UNSIGNED_BYTE, c->data);
	glGenerateMipmap(GL_TEXTURE_2D);
	for (i = 0; i <= 3 && r == RIGHT; i++) {
		side = 64 >> i;
		target_use(&t[i]);
		r = draw_whole(textured_fragment, texture);
		for (k = 0; k < side * side; k++)
			memcpy(c->want + 4 * k, c->data + 4 *
			       ((k / side << i) * 64 + (k % side << i)), 4);
		if (r == RIGHT)
			r = compare(c, side, side, 1);
	}
	for (i = 0; i < LEVELS; i++)
		target_free(&t[i]);
	glDeleteTextures(1, &texture);
	return r;
}

/* A part of one picture to a place in another that is clipped. */
static enum outcome scene_blit(struct check *c)
{
	static const uint8_t blue[4] = { 10, 20, 200, 255 };
	struct target from, to;
	enum outcome r = RIGHT;
	int i, x, y;

	if (c->w->es < 3)
		return SKIPPED;
	if (target_make(&from, 128, 128) || target_make(&to, 256, 256))
		return BROKEN;
	roll_pixels(c, c->data, 128 * 128);
	glBindTexture(GL_TEXTURE_2D, from.texture);
	glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, 128, 128, GL_RGBA,
			GL_UNSIGNED_BYTE, c->data);
	/* as large as it is, then twice as large */
	for (i = 1; i <= 2 && r == RIGHT; i++) {
		int sx = below(c, 28), sy = below(c, 28);
		int dx = below(c, 56), dy = below(c, 56);
		int cx = dx + below(c, 50), cy = dy + below(c, 50);
		int cw = 1 + below(c, 100 * i), ch = 1 + below(c, 100 * i);

		target_use(&to);
		clear_to(blue);
		want_rect(c, 256, 0, 0, 256, 256, blue);
		glBindFramebuffer(GL_READ_FRAMEBUFFER, from.fbo);
		glEnable(GL_SCISSOR_TEST);
		glScissor(cx, cy, cw, ch);
		glBlitFramebuffer(sx, sy, sx + 100, sy + 100, dx, dy,
				  dx + 100 * i, dy + 100 * i,
				  GL_COLOR_BUFFER_BIT, GL_NEAREST);
		glDisable(GL_SCISSOR_TEST);
		for (y = cy; y < cy + ch && y < dy + 100 * i; y++)
			for (x = cx; x < cx + cw && x < dx + 100 * i; x++)
				memcpy(c->want + 4 * (y * 256 + x), c->data +
				       4 * ((sy + (y - dy) / i) * 128 + sx +
					    (x - dx) / i), 4);
		target_use(&to);
		r = compare(c, 256, 256, 0);
	}
	target_free(&from);
	target_free(&to);
	return r;
}

/* From what is drawn to a texture. */
static enum outcome scene_copy(struct check *c)
{
	struct target from, to;
	enum outcome r;
	int sx = below(c, 64), sy = below(c, 64);
	int dx = below(c, 64), dy = below(c, 64), y;

	if (target_make(&from, 128, 128) || target_make(&to, 128, 128))
		return BROKEN;
	roll_pixels(c, c->data, 128 * 128);
	roll_pixels(c, c->want, 128 * 128);
	glBindTexture(GL_TEXTURE_2D, from.texture);
	glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, 128, 128, GL_RGBA,
			GL_UNSIGNED_BYTE, c->data);
	glBindTexture(GL_TEXTURE_2D, to.texture);
	glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, 128, 128, GL_RGBA,
			GL_UNSIGNED_BYTE, c->want);
	target_use(&from);
	glBindTexture(GL_TEXTURE_2D, to.texture);
	glCopyTexSubImage2D(GL_TEXTURE_2D, 0, dx, dy, sx, sy, 64, 64);
	for (y = 0; y < 64; y++)
		memcpy(c->want + 4 * ((dy + y) * 128 + dx),
		       c->data + 4 * ((sy + y) * 128 + sx), 4 * 64);
	target_use(&to);
	r = compare(c, 128, 128, 0);
	target_free(&from);
	target_free(&to);
	return r;
}

#define MANY	64

/* Many pictures at once, each with its own pixels. */
static enum outcome scene_many(struct check *c)
{
	struct target t[MANY];
	uint8_t px[MANY][4];
	enum outcome r = RIGHT;
	int i;

	for (i = 0; i < MANY; i++)
		if (target_make(&t[i], 16, 16))
			return BROKEN;
	for (i = 0; i < MANY; i++) {
		roll_pixels(c, px[i], 1);
		target_use(&t[i]);
		clear_to(px[i]);
	}
	for (i = 0; i < MANY && r == RIGHT; i++) {
		target_use(&t[i]);
		want_rect(c, 16, 0, 0, 16, 16, px[i]);
		r = compare(c, 16, 16, 0);
	}
	for (i = 0; i < MANY; i++)
		target_free(&t[i]);
	return r;
}

static enum outcome scene_large(struct check *c)
{
	struct target from, to;
	enum outcome r;

	if (target_make(&from, 2048, 1024) || target_make(&to, 2048, 1024))
		return BROKEN;
	roll_pixels(c, c->want, 2048 * 1024);
	glBindTexture(GL_TEXTURE_2D, from.texture);
	glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, 2048, 1024, GL_RGBA,
			GL_UNSIGNED_BYTE, c->want);
	target_use(&to);
	r = draw_whole(textured_fragment, from.texture);
	if (r == RIGHT)
		r = compare(c, 2048, 1024, 0);
	target_free(&from);
	target_free(&to);
	return r;
}

static const struct {
	const char *name;
	enum outcome (*look)(struct check *c);
} scenes[] = {
	{ "clear", scene_clear },
	{ "scissor", scene_scissor },
	{ "gradient", scene_gradient },
	{ "texture", scene_texture },
	{ "update", scene_update },
	{ "transfer", scene_transfer },
	{ "buffer", scene_buffer },
	{ "mapped", scene_mapped },
	{ "index", scene_index },
	{ "depth", scene_depth },
	{ "blend", scene_blend },
	{ "mipmap", scene_mipmap },
	{ "blit", scene_blit },
	{ "copy", scene_copy },
	{ "many", scene_many },
	{ "large", scene_large },
};

/**
 * verify_round - draw all scenes once and compare their pixels
 * @w: window; its picture does not change
 * @seed: seed of the random pixels
 * @round: makes them others
 * @v: is added to
 *
 * Return: 0, also when a pixel was wrong, which is on standard error; -EIO when GL
 * found an error; -ENOMEM.
 */
int verify_round(const struct window *w, uint32_t seed, uint32_t round,
		 struct verdict *v)
{
	const size_t bytes = (size_t)MAX_SIDE * MAX_SIDE / 2 * 4;
	struct check c = { .w = w, .round = round };
	enum outcome r = RIGHT;
	size_t i;

	c.want = malloc(bytes);
	c.got = malloc(bytes);
	c.data = malloc(bytes);
	if (!c.want || !c.got || !c.data) {
		explain("no memory for pictures of %zu bytes\n", bytes);
		r = BROKEN;
	}
	glPixelStorei(GL_PACK_ALIGNMENT, 1);
	glPixelStorei(GL_UNPACK_ALIGNMENT, 1);
	/* dithered pixels are not exact */
	glDisable(GL_DITHER);
	for (i = 0; i < sizeof(scenes) / sizeof(scenes[0]) && r != BROKEN; i++) {
		c.scene = scenes[i].name;
		c.part = 0;
		/* never 0, where the numbers would stay */
		c.state = (seed * 2654435761u + round * 40503u +
			   (uint32_t)i * 97u) | 1u << 31;
		r = scenes[i].look(&c);
		if (r == SKIPPED)
			v->skipped++;
		else
			v->scenes++;
		if (r == WRONG || r == BROKEN)
			v->failed++;
		if (r == BROKEN)
			explain("verify: scene %s, round %u: cannot be drawn\n",
				c.scene, round);
	}
	free(c.want);
	free(c.got);
	free(c.data);
	return r == BROKEN ? -EIO : 0;
}
