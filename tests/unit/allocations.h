/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counts the allocations of a test program, to which the linker sends them here:
 * --wrap=malloc,--wrap=calloc,--wrap=realloc. For one file of the program.
 */
#ifndef TESTS_UNIT_ALLOCATIONS_H
#define TESTS_UNIT_ALLOCATIONS_H

#include <stddef.h>

static size_t allocations;

void *__real_malloc(size_t size);
void *__real_calloc(size_t nr, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t nr, size_t size);
void *__wrap_realloc(void *p, size_t size);

void *__wrap_malloc(size_t size)
{
	allocations++;
	return __real_malloc(size);
}

void *__wrap_calloc(size_t nr, size_t size)
{
	allocations++;
	return __real_calloc(nr, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	allocations++;
	return __real_realloc(p, size);
}

#endif /* TESTS_UNIT_ALLOCATIONS_H */
