/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Functions of CUDA's runtime API in the program, as "mgpu-defer runtime" prints them, and jumps
 * that are written over their beginnings.
 */
#ifndef REMOTE_CUDA_FUNCTIONS_H
#define REMOTE_CUDA_FUNCTIONS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define FUNCTION_CODE	16u	/* bytes of a function that the tool prints */
#define FUNCTION_JUMP	14u	/* bytes of a jump to anywhere */

/**
 * struct function - a function
 * @at: where it is
 * @room: bytes from there that may be overwritten
 * @code: its first bytes in the program's file
 * @name: its name
 * @said: a call of it has been named, if it is not supported
 * @to: the function that is to be called instead; NULL: it stays
 */
struct function {
	uint8_t *at;
	unsigned int room;
	uint8_t code[FUNCTION_CODE];
	char *name;
	atomic_bool said;
	const void *to;
};

/**
 * struct functions - all of them
 * @version: of the runtime library, 13000 for 13.0; 0: the program has none
 * @list: sorted by address
 * @nr: their number
 */
struct functions {
	unsigned int version;
	struct function *list;
	unsigned int nr;
};

/* A part of the program with code, and its rights for mprotect(). */
struct code {
	uint8_t *start, *end;
	int rights;
};

/**
 * functions_read() - read what the tool prints
 * @f: result; functions_free() frees it in all cases
 * @in: the tool's output
 * @base: what addresses in it are relative to
 *
 * Return: 0, or -1 if it is not whole.
 */
int functions_read(struct functions *f, FILE *in, uintptr_t base);

/* Free the list. */
void functions_free(struct functions *f);

/**
 * functions_check() - find a reason not to redirect the functions
 * @f: the functions; those without @to stay
 * @code: parts of the program
 * @nr: their number
 * @why: the reason
 * @size: bytes of @why
 *
 * Return: whether there is none.
 */
bool functions_check(const struct functions *f, const struct code *code, unsigned int nr,
		     char *why, size_t size);

/**
 * functions_redirect() - write the jumps
 * @f: the functions, which functions_check() has checked
 * @code: parts of the program; no other thread may execute anything in them
 * @nr: their number
 *
 * Return: 0; or -1 with errno, and nothing is changed.
 */
int functions_redirect(const struct functions *f, const struct code *code, unsigned int nr);

#endif /* REMOTE_CUDA_FUNCTIONS_H */
