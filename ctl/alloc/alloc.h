/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The contract between a controller (mgpud, the simulator) and an allocator:
 * rates measured go in, target rates come out. Allocators are pure: no input or
 * output, no clock, no state but struct alloc_state.
 */
#ifndef MGPU_ALLOC_H
#define MGPU_ALLOC_H

#include "fds.h"

/**
 * struct alloc_state - what an allocator keeps from one period to the next
 * @step: FEA: step length, in dominant share; 0 before the first period
 * @streak: FEA: full steps in a row that were the best of three
 * @price: exact: the dual price of each resource, where the next solve starts;
 *	0 for unknown
 * @gap: exact: log |f| of the last result is at most so far from the optimum
 *
 * All of it only helps: zeroes, or what belonged to another problem, are fine.
 */
struct alloc_state {
	double step;
	unsigned int streak;
	double price[MGPU_MAX_RES];
	double gap;
};

/**
 * struct alloc_ops - an allocator
 *
 * @name: its name in mgpud's settings and on the socket.
 * @summary: one line of help.
 * @reach: targets are rates to be reached, and limits may be higher where that
 *	keeps the machine busy; else a target must never be exceeded.
 * @fds: it maximises f, so that f tells what limits are worth.
 * @floors: gives each task at least its floor.
 * @weights: divides by weight; else weights do not count.
 * @allocate: optional; without it no targets are set. Given the problem and,
 *	in @x, the rates just measured (n values > 0, which need not be feasible),
 *	writes target rates into @x: n values > 0, INFINITY for a task that is not
 *	to be limited. Called once per period with n >= 1, with an @iterations that
 *	bounds the work of those that iterate. Returns 0 or -errno; @x is then
 *	undefined, and targets stay as they were.
 */
struct alloc_ops {
	const char *name;
	const char *summary;
	bool reach;
	bool fds;
	bool floors;
	bool weights;
	int (*allocate)(struct alloc_state *state, const struct fds_problem *p,
			unsigned int iterations, double *x);
};

extern const struct alloc_ops alloc_none;
extern const struct alloc_ops alloc_vgasa;
extern const struct alloc_ops alloc_static;
extern const struct alloc_ops alloc_maxmin;
extern const struct alloc_ops alloc_drf;
extern const struct alloc_ops alloc_fea;
extern const struct alloc_ops alloc_exact;

/* All allocators, NULL at the end. */
extern const struct alloc_ops *const alloc_all[];

/* Return the allocator of this name, NULL if there is none. */
const struct alloc_ops *alloc_find(const char *name);

/* alloc_vgasa: the limit of every task, frames per second. */
#define ALLOC_VGASA_FPS		30.0

#endif /* MGPU_ALLOC_H */
