/* SPDX-License-Identifier: GPL-2.0-only */
/* Hostile guests, for the bench of isolation. */
#ifndef BENCH_ISOLATION_H
#define BENCH_ISOLATION_H

#include "../../../tests/kselftest/lib/vmm.h"

/**
 * struct attack - a guest that means to hurt its neighbours
 * @name: name in the results
 * @run: attacks until it is killed; returns 0 or -errno when it cannot
 */
struct attack {
	const char *name;
	int (*run)(struct vm *vm, uint32_t id);
};

extern const struct attack attacks[];
extern const unsigned int nr_attacks;

#endif /* BENCH_ISOLATION_H */
