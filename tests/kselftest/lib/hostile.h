/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Guests with OpenGL that mean to hurt their neighbours. Each attacks until its process is
 * killed, and begins anew whenever the device has lost what it had.
 */
#ifndef KSELFTEST_HOSTILE_H
#define KSELFTEST_HOSTILE_H

#include <stdatomic.h>

#include "virgl.h"

#define HOSTILE_LOOP_MAX	50000u	/* drivers may end a loop after 65,536 iterations */
#define HOSTILE_TRIANGLES	64u

/* Numbers of what hostile_furnish() makes. */
#define HOSTILE_CTX		1u
#define HOSTILE_PICTURE		1u

/**
 * struct hostile - a way to attack
 * @name: name
 * @run: attacks a vGPU; returns -errno when it cannot go on. @seed is of its choices; @did
 *	counts what the device has answered, whatever the answer.
 */
struct hostile {
	const char *name;
	int (*run)(struct vm *vm, unsigned int seed, atomic_ulong *did);
};

extern const struct hostile hostiles[];
extern const unsigned int nr_hostiles;

/*
 * Make a context with a picture of @w x @h and a pipeline for gl_triangle(); @shader is a
 * fragment shader.  0 or -errno.
 */
int hostile_furnish(struct vm *vm, uint32_t w, uint32_t h, const char *shader);

/* Fragment shaders: of one colour, and one that loops CONST[0] times. */
extern const char *const hostile_colour;
extern const char *const hostile_loop;
/* A stream that loops @n times for each pixel, in as many triangles as that takes. */
void hostile_loop_job(struct gl_stream *s, uint32_t n);

#endif /* KSELFTEST_HOSTILE_H */
