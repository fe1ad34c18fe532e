/* SPDX-License-Identifier: GPL-2.0-only */
/* The part of store.c that export.c needs. */
#ifndef POOL_EXPORT_H
#define POOL_EXPORT_H

#include "store.h"

/* Outcomes of requests with a number above @request, in their order. */
int store_outcomes_after(struct store *store, uint64_t request, unsigned int limit,
			 int (*fn)(const struct pool_outcome *, void *), void *arg);
/* Set store_error(); return @error. */
int store_set_error(struct store *store, int error, const char *text);

#endif /* POOL_EXPORT_H */
