// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kinds of frames, each of which is hard for another part of the way to the GPU.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gl.h"

#define TILE		512		/* pixels of a side of an uploaded texture */
#define VERTICES	(64 * 1024 / 16)	/* of an uploaded buffer: 64 KiB */
#define MAX_UPLOADS	64

/**
 * struct load - a kind of frame
 * @usual: work of a frame when none is asked for
 * @open: makes what all frames need
 * @frame: draws one
 */
struct load {
	const char *name;
	uint32_t usual;
	int (*open)(const struct window *w, uint32_t work);
	int (*frame)(const struct window *w, uint64_t frame);
};

/* There is one window, and one load for it. */
static struct {
	GLuint program;
	GLuint vertices;
	GLuint indices;
	GLint where;		/* uniforms */
	GLint color;
	uint32_t work;
	GLuint textures[MAX_UPLOADS];
	GLuint buffers[MAX_UPLOADS];
	uint8_t *data;
} its;

static const char flat_vertex[] =
"attribute vec2 position;\n"
"uniform vec4 where;\n"			/* offset, size */
"void main() { gl_Position = vec4(position * where.zw + where.xy, 0.0, 1.0); }\n";

static const char flat_fragment[] =
"precision mediump float;\n"
"uniform vec4 color;\n"
"void main() { gl_FragColor = color; }\n";

static const float square[] = { -1, -1, 1, -1, -1, 1, 1, 1 };

static int use_program(const char *vertex, const char *fragment)
{
	its.program = window_program(vertex, fragment);
	if (!its.program)
		return -ENODEV;
	glUseProgram(its.program);
	its.where = glGetUniformLocation(its.program, "where");
	its.color = glGetUniformLocation(its.program, "color");
	return 0;
}

static void use_square(void)
{
	glGenBuffers(1, &its.vertices);
	glBindBuffer(GL_ARRAY_BUFFER, its.vertices);
	glBufferData(GL_ARRAY_BUFFER, sizeof(square), square, GL_STATIC_DRAW);
	glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, NULL);
	glEnableVertexAttribArray(0);
}

/* ---- light: some small squares move ---- */

static int flat_open(const struct window *w, uint32_t work)
{
	(void)w;
	its.work = work;
	use_square();
	return use_program(flat_vertex, flat_fragment);
}

static void small_square(uint64_t frame, uint32_t i)
{
	double t = (double)frame * 0.05 + i * 2.4;

	glUniform4f(its.where, (float)(0.8 * sin(t)), (float)(0.8 * cos(t * 0.7)),
		    0.05f, 0.08f);
	glUniform4f(its.color, (float)(i % 3) / 2, (float)(i % 5) / 4, 1, 1);
	glDrawArrays(GL_TRIANGLE_STRIP, 0, 4);
}

static int light_frame(const struct window *w, uint64_t frame)
{
	uint32_t i;

	(void)w;
	glClearColor(0.1f, 0.1f, 0.2f, 1);
	glClear(GL_COLOR_BUFFER_BIT);
	for (i = 0; i < its.work; i++)
		small_square(frame, i);
	return 0;
}

/* ---- finish: as light, and each square is waited for ---- */

static int finish_frame(const struct window *w, uint64_t frame)
{
	uint32_t i;

	(void)w;
	glClearColor(0.2f, 0.1f, 0.1f, 1);
	glClear(GL_COLOR_BUFFER_BIT);
	for (i = 0; i < its.work; i++) {
		small_square(frame, i);
		glFinish();
	}
	return 0;
}

/* ---- flood: layers over the whole screen, each pixel of them dear ---- */

static const char flood_fragment[] =
"#ifdef GL_FRAGMENT_PRECISION_HIGH\n"
"precision highp float;\n"
"#else\n"
"precision mediump float;\n"
"#endif\n"
"uniform vec4 color;\n"
"void main()\n"
"{\n"
"	vec2 z = gl_FragCoord.xy * 0.001, c = color.xy;\n"
"	for (int i = 0; i < 32; i++)\n"
"		z = fract(vec2(z.x * z.x - z.y * z.y, 2.0 * z.x * z.y) + c);\n"
"	gl_FragColor = vec4(z, color.z, 0.25);\n"
"}\n";

static int flood_open(const struct window *w, uint32_t work)
{
	(void)w;
	its.work = work;
	use_square();
	glEnable(GL_BLEND);
	glBlendFunc(GL_SRC_ALPHA, GL_ONE_MINUS_SRC_ALPHA);
	return use_program(flat_vertex, flood_fragment);
}

static int flood_frame(const struct window *w, uint64_t frame)
{
	uint32_t i;

	(void)w;
	glClearColor(0, 0, 0, 1);
	glClear(GL_COLOR_BUFFER_BIT);
	glUniform4f(its.where, 0, 0, 1, 1);
	for (i = 0; i < its.work; i++) {
		glUniform4f(its.color, (float)((frame * 7 + i) % 97) / 97,
			    (float)i / (float)its.work, 0.5f, 1);
		glDrawArrays(GL_TRIANGLE_STRIP, 0, 4);
	}
	return 0;
}

/* ---- upload: all that is drawn comes anew from memory ---- */

static const char upload_vertex[] =
"attribute vec4 position;\n"		/* place, place in the texture */
"varying vec2 at;\n"
"void main() { at = position.zw; gl_Position = vec4(position.xy, 0.0, 1.0); }\n";

static const char upload_fragment[] =
"precision mediump float;\n"
"uniform sampler2D texture;\n"
"varying vec2 at;\n"
"void main() { gl_FragColor = texture2D(texture, at); }\n";

static int upload_open(const struct window *w, uint32_t work)
{
	uint32_t i;

	(void)w;
	if (work > MAX_UPLOADS) {
		explain("--work %u: upload takes at most %d\n", work, MAX_UPLOADS);
		return -EINVAL;
	}
	its.work = work;
	its.data = malloc(TILE * TILE * 4);
	if (!its.data) {
		explain("no memory for a texture\n");
		return -ENOMEM;
	}
	glGenTextures((GLsizei)work, its.textures);
	glGenBuffers((GLsizei)work, its.buffers);
	for (i = 0; i < work; i++) {
		glBindTexture(GL_TEXTURE_2D, its.textures[i]);
		glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA, TILE, TILE, 0, GL_RGBA,
			     GL_UNSIGNED_BYTE, NULL);
		glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
		glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
		glBindBuffer(GL_ARRAY_BUFFER, its.buffers[i]);
		glBufferData(GL_ARRAY_BUFFER, VERTICES * 16, NULL,
			     GL_STREAM_DRAW);
	}
	glEnableVertexAttribArray(0);
	return use_program(upload_vertex, upload_fragment);
}

/* A grid of squares on one part of the screen. */
static void fill_vertices(float *v, uint64_t frame, uint32_t part)
{
	const uint32_t side = 26;		/* 26 * 26 * 6 vertices at most */
	float x0 = -1 + 2 * (float)part / (float)its.work;
	float step = 2 / (float)(its.work * side), top = 2 / (float)side;
	float shake = (float)(frame % 16) / 400;
	uint32_t i, k, n = 0;

	for (i = 0; i < side * side && n + 6 <= VERTICES; i++) {
		float x = x0 + step * (float)(i % side);
		float y = -1 + top * (float)(i / side) + shake;

		for (k = 0; k < 6; k++, n++) {
			bool right = k == 1 || k == 3 || k == 4;
			bool up = k == 2 || k == 4 || k == 5;

			v[4 * n] = x + (right ? step : 0);
			v[4 * n + 1] = y + (up ? top : 0);
			v[4 * n + 2] = (float)(i % side + right) / side;
			v[4 * n + 3] = (float)(i / side + up) / side;
		}
	}
	memset(v + 4 * n, 0, (VERTICES - n) * 16);
}

static int upload_frame(const struct window *w, uint64_t frame)
{
	uint32_t i;

	(void)w;
	glClearColor(0, 0, 0, 1);
	glClear(GL_COLOR_BUFFER_BIT);
	for (i = 0; i < its.work; i++) {
		memset(its.data, (int)((frame * 3 + i * 40) & 0xff),
		       TILE * TILE * 4);
		glBindTexture(GL_TEXTURE_2D, its.textures[i]);
		glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, TILE, TILE, GL_RGBA,
				GL_UNSIGNED_BYTE, its.data);
		fill_vertices((float *)(void *)its.data, frame, i);
		glBindBuffer(GL_ARRAY_BUFFER, its.buffers[i]);
		glBufferSubData(GL_ARRAY_BUFFER, 0, VERTICES * 16, its.data);
		glVertexAttribPointer(0, 4, GL_FLOAT, GL_FALSE, 0, NULL);
		glDrawArrays(GL_TRIANGLES, 0, VERTICES);
	}
	return 0;
}

/* ---- cube: a usual scene, with depth and light ---- */

static const char cube_vertex[] =
"attribute vec3 position;\n"
"attribute vec3 value;\n"		/* normal */
"uniform mat4 turn;\n"
"uniform vec4 where;\n"
"varying vec3 shade;\n"
"void main()\n"
"{\n"
"	vec4 p = turn * vec4(position * where.w, 1.0);\n"
"	vec3 n = (turn * vec4(value, 0.0)).xyz;\n"
"	float bright = 0.25 + 0.75 * max(dot(n, normalize(vec3(1.0, 2.0, -3.0))), 0.0);\n"
"	shade = (value * 0.4 + 0.6) * bright;\n"
"	float depth = p.z + 4.0;\n"
"	gl_Position = vec4(p.x * where.z * 2.0 + where.x * depth,\n"
"			   p.y * 2.0 + where.y * depth, depth * 1.2 - 2.4, depth);\n"
"}\n";

static const char cube_fragment[] =
"precision mediump float;\n"
"varying vec3 shade;\n"
"void main() { gl_FragColor = vec4(shade, 1.0); }\n";

static int cube_open(const struct window *w, uint32_t work)
{
	float v[6 * 4][6];
	uint16_t index[36];
	int side, i, axis;

	(void)w;
	its.work = work;
	for (side = 0; side < 6; side++) {
		axis = side % 3;
		for (i = 0; i < 4; i++) {
			float *p = v[side * 4 + i], sign = side < 3 ? 1 : -1;

			memset(p, 0, sizeof(v[0]));
			p[axis] = sign;
			p[(axis + 1) % 3] = i & 1 ? 1 : -1;
			p[(axis + 2) % 3] = i & 2 ? 1 : -1;
			p[3 + axis] = sign;
		}
		for (i = 0; i < 6; i++) {
			static const uint16_t two[] = { 0, 1, 2, 2, 1, 3 };

			index[side * 6 + i] = (uint16_t)(side * 4 + two[i]);
		}
	}
	glGenBuffers(1, &its.vertices);
	glBindBuffer(GL_ARRAY_BUFFER, its.vertices);
	glBufferData(GL_ARRAY_BUFFER, sizeof(v), v, GL_STATIC_DRAW);
	glGenBuffers(1, &its.indices);
	glBindBuffer(GL_ELEMENT_ARRAY_BUFFER, its.indices);
	glBufferData(GL_ELEMENT_ARRAY_BUFFER, sizeof(index), index,
		     GL_STATIC_DRAW);
	glVertexAttribPointer(0, 3, GL_FLOAT, GL_FALSE, sizeof(v[0]), NULL);
	glVertexAttribPointer(1, 3, GL_FLOAT, GL_FALSE, sizeof(v[0]),
			      (const void *)(3 * sizeof(float)));
	glEnableVertexAttribArray(0);
	glEnableVertexAttribArray(1);
	glEnable(GL_DEPTH_TEST);
	return use_program(cube_vertex, cube_fragment);
}

static int cube_frame(const struct window *w, uint64_t frame)
{
	GLint turn = glGetUniformLocation(its.program, "turn");
	float narrow = (float)w->height / (float)w->width;
	uint32_t i;

	glClearColor(0.3f, 0.3f, 0.3f, 1);
	glClear(GL_COLOR_BUFFER_BIT | GL_DEPTH_BUFFER_BIT);
	for (i = 0; i < its.work; i++) {
		double a = (double)frame * 0.03 + i, b = a * 0.7;
		float ca = (float)cos(a), sa = (float)sin(a);
		float cb = (float)cos(b), sb = (float)sin(b);
		const float m[16] = {
			ca, sa * sb, sa * cb, 0,
			0, cb, -sb, 0,
			-sa, ca * sb, ca * cb, 0,
			0, 0, 0, 1,
		};
		float spread = its.work > 1 ? 0.6f : 0;

		glUniformMatrix4fv(turn, 1, GL_FALSE, m);
		glUniform4f(its.where, spread * (float)sin(i * 2.4),
			    spread * (float)cos(i * 2.4), narrow,
			    its.work > 1 ? 0.4f : 1);
		glDrawElements(GL_TRIANGLES, 36, GL_UNSIGNED_SHORT, NULL);
	}
	return 0;
}

static const struct load loads[] = {
	{ "cube", 1, cube_open, cube_frame },
	{ "light", 4, flat_open, light_frame },
	{ "flood", 4, flood_open, flood_frame },
	{ "finish", 20, flat_open, finish_frame },
	{ "upload", 4, upload_open, upload_frame },
};

int load_find(const char *name, const struct load **load)
{
	size_t i;

	for (i = 0; i < sizeof(loads) / sizeof(loads[0]); i++) {
		if (!strcmp(loads[i].name, name)) {
			*load = &loads[i];
			return 0;
		}
	}
	return -ENOENT;
}

const char *load_names(void)
{
	return "cube, light, flood, finish or upload";
}

const char *load_name(const struct load *load)
{
	return load->name;
}

uint32_t load_usual_work(const struct load *load)
{
	return load->usual;
}

/**
 * load_open - make what all frames need
 * @load: kind of frames
 * @w: window that they are drawn in
 * @work: amount of work in each, from 1, in units of the load
 *
 * Return: 0, or a negative errno with a message on standard error.
 */
int load_open(const struct load *load, const struct window *w, uint32_t work)
{
	int ret;

	glViewport(0, 0, w->width, w->height);
	ret = load->open(w, work);
	return ret ? ret : window_error("preparing frames");
}

/* Draw a frame; 0, or a negative errno with a message. */
int load_frame(const struct load *load, const struct window *w, uint64_t frame)
{
	int ret = load->frame(w, frame);

	return ret ? ret : window_error("drawing a frame");
}
