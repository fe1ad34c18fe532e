/* SPDX-License-Identifier: GPL-2.0-only */
/* Clocks of the kernel self-tests and the benches. */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>

uint64_t now_ns(void);		/* CLOCK_MONOTONIC, as the module's */
uint64_t now_ms(void);
void sleep_ms(unsigned int ms);

#endif /* CLOCK_H */
