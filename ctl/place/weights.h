/* SPDX-License-Identifier: GPL-2.0-only */
/* Files of learned weights. */
#ifndef MGPU_PLACE_WEIGHTS_H
#define MGPU_PLACE_WEIGHTS_H

#include <stdio.h>

#include "potential.h"

#define WEIGHTS_VERSION		1

/**
 * weights_read() - read a file of weights
 * @w: result
 * @f: where to read
 * @file: its name, for errors
 * @why: the error as a sentence, empty on success
 * @size: size of @why
 *
 * A file of another version, with other features, or with a wrong checksum is refused.
 *
 * Return: 0 or -EINVAL.
 */
int weights_read(struct place_weights *w, FILE *f, const char *file, char *why, size_t size);

/* Write a file of weights. Return 0 or -EIO. */
int weights_write(const struct place_weights *w, FILE *f);

#endif /* MGPU_PLACE_WEIGHTS_H */
