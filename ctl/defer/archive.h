/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Signatures of an archive of object files, as linkers take them: libcudart_static.a.
 */
#ifndef MGPU_DEFER_ARCHIVE_H
#define MGPU_DEFER_ARCHIVE_H

#include "signature.h"

struct archive_symbol;

/**
 * struct archive - what an archive has of code
 * @members: object files: Elf * each
 * @nr_members: their number
 * @sigs: sections of code
 * @nr: their number
 * @symbols: global symbols in these sections, while the file is read
 * @nr_symbols: their number
 * @error: why it cannot be read
 */
struct archive {
	void **members;
	unsigned int nr_members;
	struct signature *sigs;
	unsigned int nr;
	struct archive_symbol *symbols;
	unsigned int nr_symbols;
	char error[256];
};

/**
 * archive_open() - read an archive, or one object file
 * @a: result; zeroed first
 * @path: of the file
 * @wanted: whether a function is one to be found
 *
 * Sections that linkers may take from another file instead, of COMDAT groups, are not read.
 *
 * Return: 0, or -1 with the reason in @a->error; archive_close() frees in both cases
 */
int archive_open(struct archive *a, const char *path, bool (*wanted)(const char *name));
void archive_close(struct archive *a);

#endif /* MGPU_DEFER_ARCHIVE_H */
