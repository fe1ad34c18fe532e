/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KSELFTEST_FUZZ_FUZZ_H
#define KSELFTEST_FUZZ_FUZZ_H

#include <stdbool.h>

/* Fuzz vGPUs of @type; see fuzz.c.  Return the program's exit status. */
int fuzz_main(const char *type, bool gpu);

#endif /* KSELFTEST_FUZZ_FUZZ_H */
