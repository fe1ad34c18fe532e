// SPDX-License-Identifier: GPL-2.0-only
/* Pointers to things in the order of their keys. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"

/* Return the place of the first thing that is not before @key. */
static size_t place_of(const struct table *t, const void *key)
{
	size_t low = 0, high = t->nr;

	/* Numbers grow: the usual place is behind the last. */
	if (high && t->compare(key, t->at[high - 1]) > 0)
		return high;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->compare(key, t->at[middle]) > 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int is_at(const struct table *t, size_t i, const void *key)
{
	return i < t->nr && !t->compare(key, t->at[i]);
}

void *table_find(const struct table *t, const void *key)
{
	size_t i = place_of(t, key);

	return is_at(t, i, key) ? t->at[i] : NULL;
}

int table_add(struct table *t, const void *key, void *thing)
{
	size_t i = place_of(t, key), room = t->room ? t->room * 2 : 16;
	void **more;

	if (is_at(t, i, key))
		return -EEXIST;
	if (t->nr == t->room) {
		more = realloc(t->at, room * sizeof(*more));
		if (!more)
			return -ENOMEM;
		t->at = more;
		t->room = room;
	}
	memmove(&t->at[i + 1], &t->at[i], (t->nr - i) * sizeof(*t->at));
	t->at[i] = thing;
	t->nr++;
	return 0;
}

void *table_remove(struct table *t, const void *key)
{
	size_t i = place_of(t, key);
	void *thing;

	if (!is_at(t, i, key))
		return NULL;
	thing = t->at[i];
	t->nr--;
	memmove(&t->at[i], &t->at[i + 1], (t->nr - i) * sizeof(*t->at));
	return thing;
}

void table_free(struct table *t)
{
	free(t->at);
	t->at = NULL;
	t->nr = t->room = 0;
}
