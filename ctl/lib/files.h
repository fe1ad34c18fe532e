/* SPDX-License-Identifier: GPL-2.0-only */
/* Files that programs read and write whole. */
#ifndef LIBMGPU_FILES_H
#define LIBMGPU_FILES_H

#include <stddef.h>
#include <stdio.h>

/**
 * read_file() - open a file and have it read; complains
 * @path: the file
 * @data: for @read
 * @read: reads it; on an error it returns other than 0, with a sentence in @why, which has
 *	@size bytes
 *
 * Return: 0 or -1.
 */
int read_file(const char *path, void *data,
	      int (*read)(void *data, FILE *f, const char *file, char *why, size_t size));

/**
 * check_replaceable() - see that replace_file() can write a file; complains
 * @path: the file
 *
 * A device or a folder is refused.
 *
 * Return: 0 or -1.
 */
int check_replaceable(const char *path);

/**
 * replace_file() - write a file beside another one, and put it in its place; complains
 * @path: the file, which may not be there yet; on an error it stays as it was, and the other
 *	one goes
 * @data: for @write
 * @write: writes it; other than 0 is an error, with errno
 *
 * Return: 0 or -1.
 */
int replace_file(const char *path, const void *data, int (*write)(const void *data, FILE *f));

#endif /* LIBMGPU_FILES_H */
