/* SPDX-License-Identifier: GPL-2.0-only */
/* Pointers to things in the order of their keys, found by bisection. */
#ifndef POOL_TABLE_H
#define POOL_TABLE_H

#include <stddef.h>

/**
 * struct table - things in order
 * @compare: order of a key and a thing, as strcmp() has it
 * @at: the things
 * @nr: how many
 * @room: how many fit
 */
struct table {
	int (*compare)(const void *key, const void *thing);
	void **at;
	size_t nr;
	size_t room;
};

/* Return the thing with this key, NULL if there is none. */
void *table_find(const struct table *t, const void *key);
/* Return 0, -EEXIST or -ENOMEM. */
int table_add(struct table *t, const void *key, void *thing);
/* Take the thing with this key out and return it; NULL if there is none. */
void *table_remove(struct table *t, const void *key);
/* Return the thing at place @i, NULL behind the last. */
static inline void *table_at(const struct table *t, size_t i)
{
	return i < t->nr ? t->at[i] : NULL;
}

/* Free the table, not the things. */
void table_free(struct table *t);

#endif /* POOL_TABLE_H */
