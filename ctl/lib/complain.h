/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LIBMGPU_COMPLAIN_H
#define LIBMGPU_COMPLAIN_H

/* Print an error on standard error, as a line that begins with the program's name. */
void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif /* LIBMGPU_COMPLAIN_H */
