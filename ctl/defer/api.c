// SPDX-License-Identifier: GPL-2.0-only
#include <stdlib.h>
#include <string.h>

#include "api.h"

static int by_name(const void *name, const void *function)
{
	return strcmp(name, ((const struct api_function *)function)->name);
}

const struct api_function *api_find(const char *symbol)
{
	return bsearch(symbol, api_functions, api_nr_functions, sizeof(*api_functions),
		       by_name);
}

const struct api_function *api_case(const struct api_function *fn, int64_t value)
{
	unsigned int i;

	for (i = 0; i < fn->nr_cases; i++)
		if (fn->cases[i].value == value)
			return &fn->cases[i].fn;
	return fn;
}
