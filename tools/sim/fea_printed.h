/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fea-printed: the iteration of FEA as its source prints it, for comparison. Not an
 * allocator of mgpud.
 */
#ifndef MGPU_FEA_PRINTED_H
#define MGPU_FEA_PRINTED_H

#include "fea.h"

extern const struct alloc_ops alloc_fea_printed;

/* Do an iteration, in place of fea_iterate(). */
void fea_printed_iterate(struct fea_problem *fp, struct alloc_state *state);

#endif /* MGPU_FEA_PRINTED_H */
