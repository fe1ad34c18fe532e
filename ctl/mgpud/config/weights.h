/* SPDX-License-Identifier: GPL-2.0-only */
/* Files of learned weights that settings name. */
#ifndef MGPUD_WEIGHTS_H
#define MGPUD_WEIGHTS_H

#include <stdbool.h>
#include <stddef.h>

#include "file.h"

/*
 * Read a regular file of weights, to be freed with learn_file_free(). Returns false with a
 * sentence in @why.
 */
bool weights_read(struct learn_file *file, const char *path, char *why, size_t size);

/*
 * Text of a file, which errors quote, goes to the log and into JSON: replace bytes that are
 * no plain text.
 */
void weights_make_plain(char *text);

#endif /* MGPUD_WEIGHTS_H */
