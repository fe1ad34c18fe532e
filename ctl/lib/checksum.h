/* SPDX-License-Identifier: GPL-2.0-only */
/* FNV-1a, 64 bits: a checksum that is to notice accidents, and a hash of words. */
#ifndef LIBMGPU_CHECKSUM_H
#define LIBMGPU_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

#define CHECKSUM_START	UINT64_C(0xcbf29ce484222325)

/* Return the checksum over further bytes; @sum begins as CHECKSUM_START. */
static inline uint64_t checksum_add(uint64_t sum, const void *data, size_t size)
{
	const unsigned char *byte = data;

	while (size--)
		sum = (sum ^ *byte++) * UINT64_C(0x100000001b3);
	return sum;
}

#endif /* LIBMGPU_CHECKSUM_H */
