// SPDX-License-Identifier: GPL-2.0-only
/* How long a GPU worked, by timer queries of OpenGL. */
#include <stdbool.h>
#include <stdlib.h>

#include <epoxy/gl.h>
#define VIRGL_RENDERER_UNSTABLE_APIS
#include <virglrenderer.h>

#include "gl_clock.h"

#define PAIRS		64u

/**
 * struct gl_clock - a clock
 * @pair: queries of the begin and the end of commands
 * @begun: number of pairs with a begin so far
 * @known: number of pairs whose times were read
 * @sum: time that the GPU worked, nanoseconds
 */
struct gl_clock {
	GLuint pair[PAIRS][2];
	uint32_t begun, known;
	uint64_t sum;
};

struct gl_clock *gl_clock_new(void)
{
	struct gl_clock *c;
	GLint bits = 0;

	if (!epoxy_is_desktop_gl() ||
	    (epoxy_gl_version() < 33 && !epoxy_has_gl_extension("GL_ARB_timer_query")))
		return NULL;
	glGetQueryiv(GL_TIMESTAMP, GL_QUERY_COUNTER_BITS, &bits);
	if (!bits)
		return NULL;
	c = calloc(1, sizeof(*c));
	if (c)
		glGenQueries(2 * PAIRS, &c->pair[0][0]);
	return c;
}

void gl_clock_free(struct gl_clock *c)
{
	glDeleteQueries(2 * PAIRS, &c->pair[0][0]);
	free(c);
}

/*
 * Read the oldest pair; it has an end. Waits for the GPU. Pairs do not overlap: a begin is
 * behind the end before it in the same context.
 */
static void read_pair(struct gl_clock *c)
{
	const GLuint *pair = c->pair[c->known++ % PAIRS];
	GLuint64 begin, end;

	glGetQueryObjectui64v(pair[0], GL_QUERY_RESULT, &begin);
	glGetQueryObjectui64v(pair[1], GL_QUERY_RESULT, &end);
	/* A driver's clock may go back. */
	if (end > begin)
		c->sum += end - begin;
}

void gl_clock_begin(struct gl_clock *c)
{
	if (c->begun - c->known == PAIRS)
		read_pair(c);
	glQueryCounter(c->pair[c->begun++ % PAIRS][0], GL_TIMESTAMP);
	/* Else the driver would submit it with the end, behind the work. */
	glFlush();
}

void gl_clock_finish(struct gl_clock *c)
{
	GLsync work = glFenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);

	/* Another context can wait only for what was submitted. */
	glFlush();
	virgl_renderer_force_ctx_0();
	glWaitSync(work, 0, GL_TIMEOUT_IGNORED);
	glDeleteSync(work);
	glQueryCounter(c->pair[(c->begun - 1) % PAIRS][1], GL_TIMESTAMP);
}

uint64_t gl_clock_ns(struct gl_clock *c)
{
	/* Most answers are to commands without work. */
	if (c->known == c->begun)
		return c->sum;
	virgl_renderer_force_ctx_0();
	while (c->known != c->begun) {
		GLint there = 0;

		glGetQueryObjectiv(c->pair[c->known % PAIRS][1], GL_QUERY_RESULT_AVAILABLE,
				   &there);
		if (!there)
			break;
		read_pair(c);
	}
	return c->sum;
}
