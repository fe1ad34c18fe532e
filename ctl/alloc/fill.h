/* SPDX-License-Identifier: GPL-2.0-only */
/* Progressive filling: the max-min fair allocation, in a unit per task. Pure. */
#ifndef MGPU_FILL_H
#define MGPU_FILL_H

#include "fds.h"

/*
 * Raise all tasks together, each by its own @unit of rate (n values >= 0) per
 * step, between @low and @high. A task that reaches @high stays there; when a
 * capacity is used up, all tasks that need it stay at their rates. It ends when no
 * task can be raised. The result is the lexicographic maximum of x_j / unit_j
 * (Bertsekas and Gallager, "Data Networks", section 6.5.2).
 *
 * @low: n values >= 0, together feasible; or NULL for 0
 * @high: n values, at least @low; INFINITY for none
 * @x: the result, n values; may be @high's memory, or @low's
 *
 * Returns 0 or -ENOMEM.
 */
int fill(const struct fds_problem *p, const double *unit, const double *low,
	 const double *high, double *x);

#endif /* MGPU_FILL_H */
