/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The same problem given to Ipopt, a general solver for nonlinear programs: an
 * answer that shares nothing with ours but the problem.
 */
#ifndef TESTS_UNIT_IPOPT_FDS_H
#define TESTS_UNIT_IPOPT_FDS_H

#include "fds.h"

/*
 * Rates that maximise f, made feasible. Returns Ipopt's status, 0 for solved
 * and 1 for solved to its acceptable level, or -ENOMEM.
 */
int ipopt_fds(const struct fds_problem *p, double *x);

#endif /* TESTS_UNIT_IPOPT_FDS_H */
