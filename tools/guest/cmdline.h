/* SPDX-License-Identifier: GPL-2.0-only */
/* What the guest programs share of their command lines and messages. */
#ifndef MGPU_GUEST_CMDLINE_H
#define MGPU_GUEST_CMDLINE_H

#include <stdint.h>

/* What messages begin with; each program has its own. */
extern const char *const program_name;

/* Say on standard error what went wrong, with the program's name in front. */
void explain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * Say what is wrong with the value of an option, and return -EINVAL. The numbers
 * return 0 when there is nothing wrong, and are in v. What want says it should
 * have been is by default a number from min to max.
 */
int option_bad(const char *option, const char *value, const char *want);
int option_number(const char *option, const char *value, double min, double max,
		  const char *want, double *v);
int option_u32(const char *option, const char *value, uint32_t min, uint32_t max,
	       uint32_t *v);

#endif
