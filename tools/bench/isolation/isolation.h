/* SPDX-License-Identifier: GPL-2.0-only */
/* Hostile guests, for the bench of isolation. */
#ifndef BENCH_ISOLATION_H
#define BENCH_ISOLATION_H

#include "../../../tests/kselftest/lib/hostile.h"
#include "../sched/sched.h"

/* Size of the attacker's picture, resource 1, pixels: the largest of its type. */
#define ATTACK_W	1024
#define ATTACK_H	768

#define TIMEOUT_MS	1000	/* job-timeout: a job that hangs ends after it */
#define LOOP_MS		500	/* job of gl-loop */
#define HANG_MS		2000	/* job of gl-hang, beyond its job-timeout */

/**
 * struct attack - a guest that means to hurt its neighbours
 * @name: name in the results; that of an attack on a physical GPU begins with "gl-"
 * @prepare: optional; called before the neighbours have work; returns 0 or -errno
 * @run: attacks until it is killed; returns 0 or -errno when it cannot
 * @seconds: length of a run, for an attack that is slow; 0 for that of the others
 * @pairs: number of pairs of runs; 0 for that of others of its length
 * @timeout_ms: the device's job-timeout; 0 for TIMEOUT_MS
 * @whole: measure from the end of a job of the attacker's to the end of another, for
 *	jobs that are long beside a run; the attack calls attack_did()
 */
struct attack {
	const char *name;
	int (*prepare)(struct vm *vm);
	int (*run)(struct vm *vm, uint32_t id);
	unsigned int seconds;
	unsigned int pairs;
	unsigned int timeout_ms;
	bool whole;
};

/* Count a job of the attacker's that is answered; in the attacker's process. */
void attack_did(void);

/* ---- on a physical GPU ---- */

/* For machine_open_with(): a context with a picture and what a frame needs. */
int gl_furnish(struct machine *m, uint32_t w, uint32_t h);
/* Start a load of light frames, of a stream each. */
int gl_load(struct machine *m, unsigned int depth);

int gl_loop_prepare(struct vm *vm);
int gl_loop(struct vm *vm, uint32_t id);
int gl_hang_prepare(struct vm *vm);
int gl_hang(struct vm *vm, uint32_t id);
int gl_contexts(struct vm *vm, uint32_t id);
int gl_textures(struct vm *vm, uint32_t id);
int gl_malformed(struct vm *vm, uint32_t id);

extern const struct attack attacks[];
extern const unsigned int nr_attacks;

#endif /* BENCH_ISOLATION_H */
