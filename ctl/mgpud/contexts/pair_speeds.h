/* SPDX-License-Identifier: GPL-2.0-only */
/* Measured speeds of pairs of jobs, of which a file of weights has a model. */
#ifndef MGPUD_PAIR_SPEEDS_H
#define MGPUD_PAIR_SPEEDS_H

#include <stddef.h>

struct preempt_norm;

/**
 * pairs_use() - take what is expected of pairs of classes from a file
 * @norm: what is known of pairs; what was observed stays
 * @path: the file; "" for the values that mgpud has
 * @why: the error, a sentence; @norm then has the values of mgpud
 * @size: size of @why, bytes
 *
 * Return: 0 or -EINVAL.
 */
int pairs_use(struct preempt_norm *norm, const char *path, char *why, size_t size);

#endif /* MGPUD_PAIR_SPEEDS_H */
