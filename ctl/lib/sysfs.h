/* SPDX-License-Identifier: GPL-2.0-only */
/* Attributes of sysfs and procfs, and other files of one line. */
#ifndef LIBMGPU_SYSFS_H
#define LIBMGPU_SYSFS_H

#include <stdbool.h>
#include <stddef.h>

/**
 * read_line() - read the first line of a file
 * @path: path of the file
 * @line: the line without its newline; empty on error
 * @size: size of @line, bytes
 *
 * Return: false when the file cannot be opened or is empty.
 */
bool read_line(const char *path, char *line, size_t size);

#endif /* LIBMGPU_SYSFS_H */
