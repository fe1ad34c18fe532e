// SPDX-License-Identifier: GPL-2.0-only
/* The table of allocators. */
#include <string.h>

#include "alloc.h"

const struct alloc_ops *const alloc_all[] = {
	&alloc_none,
	&alloc_vgasa,
	&alloc_fea,
	NULL,
};

const struct alloc_ops *alloc_find(const char *name)
{
	for (const struct alloc_ops *const *ops = alloc_all; *ops; ops++)
		if (!strcmp((*ops)->name, name))
			return *ops;
	return NULL;
}
