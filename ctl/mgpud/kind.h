/* SPDX-License-Identifier: GPL-2.0-only */
/* What the analyser calls a kind of work: a hash of its operation's name. */
#ifndef MGPUD_KIND_H
#define MGPUD_KIND_H

#include <stdint.h>

/* FNV-1a: it is in the state file, so that it must stay the same. */
static inline uint32_t kind_of(const char *op)
{
	uint32_t h = 2166136261u;

	while (*op)
		h = (h ^ (unsigned char)*op++) * 16777619u;
	return h;
}

#endif /* MGPUD_KIND_H */
