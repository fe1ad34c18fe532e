// SPDX-License-Identifier: GPL-2.0-only
/* All kinds of models. */
#include <string.h>

#include "learn.h"

const struct learn_model_ops *const learn_models[] = {
	&learn_static,
	&learn_proportional,
	&learn_persistence,
	&learn_smoothing,
	&learn_trees,
	&learn_network,
	NULL,
};

const struct learn_model_ops *learn_model_find(const char *name)
{
	for (const struct learn_model_ops *const *m = learn_models; *m; m++)
		if (!strcmp((*m)->name, name))
			return *m;
	return NULL;
}
