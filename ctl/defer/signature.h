/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Signatures: the code of an archive as a linker may put it into a program.  Bytes that the linker
 * decides are masked.  A section is one signature, since linkers neither cut sections nor sort what
 * is in them.
 */
#ifndef MGPU_DEFER_SIGNATURE_H
#define MGPU_DEFER_SIGNATURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image.h"

#define SIGNATURE_STRONG	32u	/* compared bytes that do not occur by chance */
#define SIGNATURE_PLACES	64u	/* of one section; with more it is not looked for */

/* A function in a section. */
struct signature_name {
	uint64_t offset;
	const char *name;
};

/**
 * struct signature_ref - four bytes that are the distance to another section
 * @offset: where they are
 * @target: number of the other section
 * @value: distance that is added to that of the two sections, modulo 2^32
 */
struct signature_ref {
	uint64_t offset;
	unsigned int target;
	uint32_t value;
};

/**
 * struct signature - a section of code
 * @bytes: its content
 * @mask: 0xff for a byte that the linker does not change
 * @len: bytes of both
 * @names: functions
 * @nr_names: their number
 * @refs: what must fit other sections
 * @nr_refs: their number
 * @places: addresses in the program that have its bytes; signatures_find() sets them
 * @nr_seen: their number; more than SIGNATURE_PLACES: they are not known
 * @nr_places: number of those, the first ones, where it may be
 * @confirmed: a section that is surely there refers to its only place
 */
struct signature {
	uint8_t *bytes, *mask;
	size_t len;
	struct signature_name *names;
	unsigned int nr_names;
	struct signature_ref *refs;
	unsigned int nr_refs;
	uint64_t places[SIGNATURE_PLACES];
	unsigned int nr_seen, nr_places;
	bool confirmed;
};

/**
 * signatures_find() - find sections in a program
 * @sigs: sections; their places are set
 * @nr: their number
 * @img: the program
 *
 * A place counts only if what it refers to can be where it refers to: so sections with the same
 * bytes are told apart.
 */
void signatures_find(struct signature *sigs, unsigned int nr, const struct image *img);

/* Return whether a section is in the program, at its only place. */
bool signature_sure(const struct signature *sig);

/* Return a section with functions whose bytes are where no section surely is, or NULL. */
const struct signature *signatures_doubtful(const struct signature *sigs, unsigned int nr);

#endif /* MGPU_DEFER_SIGNATURE_H */
