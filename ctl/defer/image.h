/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A program's file: its code, its functions, and the symbols that its calls go to.
 */
#ifndef MGPU_DEFER_IMAGE_H
#define MGPU_DEFER_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Addresses are those of the file; a PIE is loaded elsewhere. */

/* A loaded part of the file. */
struct image_segment {
	uint64_t start, end;		/* of what the file has of it */
	const uint8_t *bytes;
	bool executable;
};

struct image_function {
	uint64_t start, end;
	const char *name;		/* NULL in a stripped program */
};

/*
 * A slot that the dynamic linker fills with the address of a symbol; a stub of the procedure
 * linkage table, which jumps through one; or a symbol's own address.
 */
struct image_name {
	uint64_t address;
	const char *name;
};

struct image {
	void *map;
	size_t size;
	void *elf;			/* Elf *: names belong to it */
	char build_id[65];		/* hexadecimal; empty if it has none */
	bool pie;
	struct image_segment *segments;
	unsigned int nr_segments;
	struct image_function *functions;	/* sorted, not overlapping */
	unsigned int nr_functions;
	struct image_name *slots, *symbols, *stubs;	/* sorted */
	unsigned int nr_slots, nr_symbols, nr_stubs;
	uint64_t code_bytes;		/* of the functions */
	char error[256];
};

/**
 * image_open() - read a program
 * @img: result; zeroed first
 * @path: ELF file for x86-64, a program or a shared library
 *
 * Functions are those of .eh_frame, which stripped programs have, too.  Code without unwind
 * information, as of hand-written assembly, is not looked at.
 *
 * Return: 0, or -1 with the reason in @img->error; image_close() frees in both cases
 */
int image_open(struct image *img, const char *path);
void image_close(struct image *img);

/**
 * image_file() - open a file that is not too large to be read whole
 * @path: the file
 * @size: its bytes
 * @error: why it cannot be read
 * @error_size: bytes of @error
 *
 * Return: its descriptor, or -1.
 */
int image_file(const char *path, size_t *size, char *error, size_t error_size);

/* Write a sentence on an error; return -1. */
int image_fail(char *error, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/**
 * image_grow() - make room for one more element in an array
 * @array: address of the pointer to it
 * @nr: its elements
 * @size: bytes of one
 *
 * Return: the new element, zeroed; NULL without memory, and the array is as before.
 */
void *image_grow(void *array, unsigned int *nr, size_t size);

/* Name a function of a stripped program; the name must stay.  Return 0, or -1 without memory. */
int image_name(struct image *img, uint64_t address, const char *name);

/* Return the bytes at an address and how many follow in this segment, or NULL. */
const uint8_t *image_bytes(const struct image *img, uint64_t address, size_t *len);

/* Return the function that the address lies in, or NULL. */
const struct image_function *image_function(const struct image *img, uint64_t address);

/* Return the symbol that the slot gets the address of, or NULL. */
const char *image_slot(const struct image *img, uint64_t slot);

/* Return the symbol at that address, or NULL. */
const char *image_symbol(const struct image *img, uint64_t address);

/* Return the symbol that a stub at that address jumps to, or NULL. */
const char *image_stub(const struct image *img, uint64_t address);

#endif /* MGPU_DEFER_IMAGE_H */
