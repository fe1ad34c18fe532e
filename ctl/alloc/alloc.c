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

const struct alloc_ops *alloc_find(const char *name)
{
	for (size_t i = 0; alloc_all[i]; i++)
		if (!strcmp(alloc_all[i]->name, name))
			return alloc_all[i];
	return NULL;
}
