// SPDX-License-Identifier: GPL-2.0-only
/* The table of allocators. */
#include <string.h>

#include "alloc.h"

const struct alloc_ops *const alloc_all[] = {
	&alloc_exact,
	&alloc_fea,
	&alloc_drf,
	&alloc_maxmin,
	&alloc_static,
	&alloc_vgasa,
	&alloc_none,
	NULL,
};

static const struct alloc_ops *const bench_only[] = {
	&alloc_fea_printed,
	NULL,
};

static const struct alloc_ops *find(const struct alloc_ops *const *ops, const char *name)
{
	for (; *ops; ops++)
		if (!strcmp((*ops)->name, name))
			return *ops;
	return NULL;
}

const struct alloc_ops *alloc_find(const char *name)
{
	return find(alloc_all, name);
}

const struct alloc_ops *alloc_find_any(const char *name)
{
	const struct alloc_ops *ops = alloc_find(name);

	return ops ? ops : find(bench_only, name);
}
