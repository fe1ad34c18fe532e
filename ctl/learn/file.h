/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A file of learned weights: a version, what was learned from what and how well, the
 * weights, and a checksum. The header is text:
 *
 *	mgpu-learn 1
 *	model NAME
 *	made SECONDS
 *	data DIGEST
 *	evaluation TEXT
 *	size BYTES
 *	BYTES of payload
 *	checksum DIGITS
 */
#ifndef MGPU_LEARN_FILE_H
#define MGPU_LEARN_FILE_H

#include <stdint.h>
#include <stdio.h>

#define LEARN_FILE_VERSION	1
#define LEARN_FILE_SIZE_MAX	(8u << 20)	/* of the payload; mgpud reads it between periods */
#define LEARN_FILE_LINE		256

/**
 * struct learn_file - a file of learned weights
 * @model: the kind of model, such as "network", "trees" or "pairs"
 * @made_s: when it was trained, seconds since 1970
 * @data: digest of the data that it was trained on
 * @evaluation: its error on data that it was not trained on, for people
 * @payload: what the model's load() takes; a NUL follows it, which @size does not count
 * @size: bytes of @payload
 */
struct learn_file {
	char model[32];
	uint64_t made_s;
	char data[80];
	char evaluation[LEARN_FILE_LINE];
	char *payload;
	size_t size;
};

/**
 * learn_file_read() - read a file of weights, which is not trusted
 * @file: result, to be freed with learn_file_free() on success
 * @f: where to read
 * @name: name of the file, for errors
 * @why: the error as a sentence that says how to mend it
 * @len: size of @why, bytes
 *
 * Return: 0, -EINVAL or -ENOMEM.
 */
int learn_file_read(struct learn_file *file, FILE *f, const char *name, char *why, size_t len);

/* Write a file of weights. Return 0 or -EIO. */
int learn_file_write(const struct learn_file *file, FILE *f);

void learn_file_free(struct learn_file *file);

#endif /* MGPU_LEARN_FILE_H */
