/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The functions of a program that may call the API, themselves or by functions that they call.
 */
#ifndef MGPU_DEFER_CALLERS_H
#define MGPU_DEFER_CALLERS_H

#include "image.h"

/**
 * struct callers - functions that may call the API
 * @calls: for each function of the program whether it is one
 * @entry: addresses that such a call may name: slots, stubs, and functions; sorted
 * @nr: number of addresses
 */
struct callers {
	bool *calls;
	uint64_t *entry;
	unsigned int nr;
	bool no_memory;			/* of callers.c */
};

/**
 * callers_find() - find the functions that may call the API
 * @c: result; callers_free() frees it in any case
 * @img: program
 * @depth: number of functions on the longest way to a call
 *
 * Return: 0, or -ENOMEM
 */
int callers_find(struct callers *c, const struct image *img, unsigned int depth);
void callers_free(struct callers *c);

/* Return whether a call of that address may be one of the API. */
bool callers_entry(const struct callers *c, uint64_t address);

#endif /* MGPU_DEFER_CALLERS_H */
