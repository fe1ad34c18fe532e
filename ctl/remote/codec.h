/* SPDX-License-Identifier: GPL-2.0-only */
/* Lengths, and reading what the other side sent. */
#ifndef REMOTE_CODEC_H
#define REMOTE_CODEC_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "wire.h"

/* Sums and products that are UINT64_MAX if they are too large: more than any limit. */
static inline uint64_t sat_add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static inline uint64_t sat_mul(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* Bytes with their padding. */
static inline uint64_t padded(uint64_t len)
{
	return len > UINT64_MAX - 7 ? UINT64_MAX : (len + 7) & ~7ull;
}

/* Bytes of an "in" or "out" with its length. */
static inline uint64_t in_room(uint64_t len)
{
	return sat_add(8, padded(len));
}

/**
 * struct reader - a message that is being read
 * @at: next byte
 * @end: behind the last one
 * @bad: it is not as agreed; all that is read from now on is 0
 */
struct reader {
	const uint8_t *at;
	const uint8_t *end;
	bool bad;
};

/* Return the next @len bytes, which are padded, or NULL. */
static inline const void *take(struct reader *r, uint64_t len)
{
	const void *p = r->at;

	if (r->bad || padded(len) > (uint64_t)(r->end - r->at)) {
		r->bad = true;
		return NULL;
	}
	r->at += padded(len);
	return p;
}

static inline uint64_t take_u64(struct reader *r)
{
	const void *p = take(r, 8);
	uint64_t v = 0;

	if (p)
		memcpy(&v, p, sizeof(v));
	return v;
}

/* Return the bytes of an "in" and their number; NULL and 0 if it is NULL there or bad. */
static inline const void *take_in(struct reader *r, uint64_t *len)
{
	const void *p;

	*len = take_u64(r);
	if (*len == REMOTE_NULL) {
		*len = 0;
		return NULL;
	}
	p = take(r, *len);
	if (!p)
		*len = 0;
	return p;
}

/* Return a text that ends with a NUL, or NULL; one that does not is bad. */
static inline const char *take_string(struct reader *r)
{
	uint64_t len;
	const char *p = take_in(r, &len);

	if (p && (!len || p[len - 1] || memchr(p, 0, len) != p + len - 1)) {
		r->bad = true;
		return NULL;
	}
	return p;
}

#endif /* REMOTE_CODEC_H */
