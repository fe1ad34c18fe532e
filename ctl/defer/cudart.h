/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CUDA's runtime library in a program that was linked with it statically, as nvcc links: where its
 * functions are, by the program's symbols, or if it is stripped by those of libcudart_static.a.
 */
#ifndef MGPU_DEFER_CUDART_H
#define MGPU_DEFER_CUDART_H

#include "archive.h"

#define CUDART_ROOM	16u	/* bytes of a function's beginning that are looked at */
#define CUDART_ARCHIVE	"MGPU_CUDART_STATIC"	/* variable that names the archive */

/**
 * struct cudart_function - a function of the runtime API
 * @address: in the program's file
 * @name: its name
 * @room: bytes, CUDART_ROOM at most, that are the function's or padding behind it, and that no
 *	other code jumps into; cudart_measure() sets it
 */
struct cudart_function {
	uint64_t address;
	const char *name;
	unsigned int room;
};

/**
 * struct cudart - the library in a program
 * @functions: sorted by address; names belong to the image and to @archive
 * @nr: their number; 0: the program does not have the library
 * @version: as cudaRuntimeGetVersion() returns it, 13000 for 13.0; cudart_measure() sets it
 * @archive: what it was found by; empty if it was by symbols
 * @error: why it was not found
 */
struct cudart {
	struct cudart_function *functions;
	unsigned int nr;
	unsigned int version;
	struct archive archive;
	char error[768];
};

/**
 * cudart_find() - find CUDA's runtime library in a program
 * @rt: result; zeroed first
 * @img: the program
 * @path: libcudart_static.a; NULL: it is looked for where toolkits are installed
 *
 * Return: 0, or -1 with the reason in @rt->error; cudart_free() frees in both cases
 */
int cudart_find(struct cudart *rt, const struct image *img, const char *path);

/* Return the path of the archive that the environment names, or NULL. */
const char *cudart_archive(void);

/**
 * cudart_measure() - find the version, and the room of each function
 * @rt: the library, as cudart_find() has found it
 * @img: the program
 *
 * Return: 0, or -1 with the reason in @rt->error.
 */
int cudart_measure(struct cudart *rt, const struct image *img);

void cudart_free(struct cudart *rt);

#endif /* MGPU_DEFER_CUDART_H */
