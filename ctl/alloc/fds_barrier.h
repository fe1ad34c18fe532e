/* SPDX-License-Identifier: GPL-2.0-only */
/* The maximum of f, slowly and surely: for fds_best() to fall back on. Pure. */
#ifndef MGPU_FDS_BARRIER_H
#define MGPU_FDS_BARRIER_H

#include "fds.h"

/* log |f| is at most so far from its optimum. */
#define FDS_BARRIER_GAP	1e-10

/*
 * The x that maximises f, and in @price (m values) what log |f| would gain by
 * more of each capacity. A task whose bounds are nearly one may leave them by
 * rounding. Returns 0, -EINVAL when the problem is not one,
 * -ERANGE when floors leave no room inside the capacities, -ENOMEM.
 */
int fds_barrier(const struct fds_problem *p, double *x, double *price);

#endif /* MGPU_FDS_BARRIER_H */
