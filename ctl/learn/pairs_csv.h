/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads measured pairs: CSV with a line of names of columns. Fields may be in double quotes.
 * Columns in any order, others are ignored: model1, dataset1, batchsize1, speed1 and the same
 * with 2; optional are gpu_num1 (1), amp1 (0), gpu_alone1 and gmem_alone1 (utilisation alone,
 * per cent) and the same with 2; gpu_util and gmem_util (of the GPU with both, per cent).
 */
#ifndef MGPU_LEARN_PAIRS_CSV_H
#define MGPU_LEARN_PAIRS_CSV_H

#include <stdio.h>

#include "pairs.h"

/**
 * pairs_read() - read a table of pairs
 * @t: result, to be freed with pairs_table_free() in any case
 * @f: where to read
 * @file: its name, for errors
 * @why: the error as a sentence with file and line; empty on success
 * @len: size of @why, bytes
 *
 * Return: 0, -EINVAL, -EIO or -ENOMEM.
 */
int pairs_read(struct pairs_table *t, FILE *f, const char *file, char *why, size_t len);

#endif /* MGPU_LEARN_PAIRS_CSV_H */
