/* SPDX-License-Identifier: GPL-2.0-only */
/* Numbers of kinds of work for the analyser: hashes of the operations' names. */
#ifndef MGPUD_KIND_H
#define MGPUD_KIND_H

#include <stdint.h>

/* FNV-1a. The state file has these numbers, so the hash must not change. */
static inline uint32_t kind_of(const char *op)
{
	uint32_t h = 2166136261u;

	while (*op)
		h = (h ^ (unsigned char)*op++) * 16777619u;
	return h;
}

#endif /* MGPUD_KIND_H */
