// SPDX-License-Identifier: GPL-2.0-only
#include <search.h>
#include <stdlib.h>

#include "codec.h"
#include "cuda_api.h"

uint64_t cuda_plane(uint64_t pitch, uint64_t width, uint64_t height)
{
	if (!width || !height)
		return 0;
	/* Rows that overlap are no rectangle. */
	if (pitch < width && height > 1)
		return UINT64_MAX;
	return sat_add(sat_mul(pitch, height - 1), width);
}

/* Ranges that overlap are equal. */
static int compare(const void *a, const void *b)
{
	const struct cuda_range *x = a, *y = b;

	if (x->start + x->len <= y->start)
		return -1;
	return y->start + y->len <= x->start;
}

bool cuda_ranges_add(struct cuda_ranges *r, const struct cuda_range *range)
{
	struct cuda_range *own, **there;

	if (!range->len || range->len > UINT64_MAX - range->start)
		return false;
	own = malloc(sizeof(*own));
	if (!own)
		return false;
	*own = *range;
	there = tsearch(own, &r->root, compare);
	if (!there || *there != own)
		free(own);
	else if (!own->fixed)
		r->bytes += own->len;
	return there;
}

const struct cuda_range *cuda_ranges_find(const struct cuda_ranges *r, uint64_t start, uint64_t len)
{
	const struct cuda_range key = { .start = start, .len = 1 };
	struct cuda_range *const *found;

	if (start == UINT64_MAX)
		return NULL;
	found = tfind(&key, &r->root, compare);
	if (!found || len > (*found)->start + (*found)->len - start)
		return NULL;
	return *found;
}

static void delete(struct cuda_ranges *r, struct cuda_range *range)
{
	if (!range->fixed)
		r->bytes -= range->len;
	tdelete(range, &r->root, compare);
	free(range);
}

bool cuda_ranges_remove(struct cuda_ranges *r, uint64_t start)
{
	const struct cuda_range *found = cuda_ranges_find(r, start, 1);

	if (!found || found->start != start || found->fixed)
		return false;
	delete(r, (struct cuda_range *)(uintptr_t)found);
	return true;
}

struct search {
	const void *owner;
	struct cuda_range *found;
};

static void look(const void *node, VISIT visit, void *arg)
{
	struct cuda_range *range = *(struct cuda_range *const *)node;
	struct search *s = arg;

	if (visit != preorder && visit != leaf)
		return;
	if (!s->owner || range->owner == s->owner || range->context == s->owner)
		s->found = range;
}

void cuda_ranges_drop(struct cuda_ranges *r, const void *owner)
{
	struct search s = { .owner = owner };

	for (;;) {
		s.found = NULL;
		twalk_r(r->root, look, &s);
		if (!s.found)
			return;
		delete(r, s.found);
	}
}
