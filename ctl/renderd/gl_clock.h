/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How long a GPU worked, by timer queries of OpenGL (ARB_timer_query): for drivers that tell
 * no engine time in fdinfo.
 */
#ifndef RENDERD_GL_CLOCK_H
#define RENDERD_GL_CLOCK_H

#include <stdint.h>

struct gl_clock;

/**
 * gl_clock_new() - make a clock
 *
 * Context: the renderer's context 0 is current, as for gl_clock_free() and gl_clock_begin().
 *
 * Return: a clock; NULL if the driver has no timer queries, or without memory.
 */
struct gl_clock *gl_clock_new(void);
void gl_clock_free(struct gl_clock *c);

/* Take the time before work for the GPU is submitted. */
void gl_clock_begin(struct gl_clock *c);

/**
 * gl_clock_finish() - take the time behind work
 * @c: clock; gl_clock_begin() was called before that work
 *
 * Whatever is submitted in context 0 afterwards, as a fence, is behind that work, too.
 *
 * Context: the context of the work is current, and context 0 afterwards.
 */
void gl_clock_finish(struct gl_clock *c);

/**
 * gl_clock_ns() - read the clock
 * @c: clock
 *
 * The time at which the GPU works for several commands counts once. That at which it works
 * for another process, between the begin and the end of a command, counts.
 *
 * Context: any is current, and context 0 may be afterwards.
 *
 * Return: time of the work that is known to be complete, nanoseconds.
 */
uint64_t gl_clock_ns(struct gl_clock *c);

#endif /* RENDERD_GL_CLOCK_H */
