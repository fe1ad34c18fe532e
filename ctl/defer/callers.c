// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "callers.h"

static int by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void add_entry(struct callers *c, uint64_t address)
{
	uint64_t *more;

	if (!(c->nr & (c->nr - 1))) {
		more = reallocarray(c->entry, c->nr ? 2 * (size_t)c->nr : 1, sizeof(*more));
		if (!more) {
			c->no_memory = true;
			return;
		}
		c->entry = more;
	}
	c->entry[c->nr++] = address;
}

bool callers_entry(const struct callers *c, uint64_t address)
{
	return c->nr && bsearch(&address, c->entry, c->nr, sizeof(address), by_number);
}

static uint64_t relative(const uint8_t *at, uint64_t behind)
{
	int32_t off;

	memcpy(&off, at, sizeof(off));
	return behind + (uint64_t)(int64_t)off;
}

/*
 * Whether a function may call the API: a look at its bytes, whether these are
 * instructions or not, takes much less time than to disassemble it.
 */
static bool may_call(const struct image *img, const struct callers *c,
		     const struct image_function *fn)
{
	const uint8_t *code;
	size_t len, k, n = fn->end - fn->start;

	code = image_bytes(img, fn->start, &len);
	if (!code || len < n)
		return false;
	for (k = 0; k + 5 <= n; k++) {
		uint64_t at = fn->start + k;

		/* Calls and, for calls at a function's end, jumps: direct, and through a slot. */
		if ((code[k] == 0xe8 || code[k] == 0xe9) &&
		    callers_entry(c, relative(code + k + 1, at + 5)))
			return true;
		if (code[k] == 0xff && (code[k + 1] == 0x15 || code[k + 1] == 0x25) &&
		    k + 6 <= n && callers_entry(c, relative(code + k + 2, at + 6)))
			return true;
	}
	return false;
}

static void sort_entries(struct callers *c)
{
	if (c->nr)
		qsort(c->entry, c->nr, sizeof(*c->entry), by_number);
}

static void add_names(struct callers *c, const struct image_name *names, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		if (api_find(names[i].name))
			add_entry(c, names[i].address);
}

int callers_find(struct callers *c, const struct image *img, unsigned int depth)
{
	bool more = true;
	unsigned int i, nr;

	memset(c, 0, sizeof(*c));
	c->calls = calloc(img->nr_functions + 1, sizeof(*c->calls));
	if (!c->calls)
		return -ENOMEM;
	add_names(c, img->symbols, img->nr_symbols);
	add_names(c, img->slots, img->nr_slots);
	add_names(c, img->stubs, img->nr_stubs);
	sort_entries(c);
	while (more && depth-- && !c->no_memory) {
		/* Functions that are found on the way count from the next round on. */
		struct callers so_far = { .entry = c->entry, .nr = c->nr };

		more = false;
		nr = c->nr;
		for (i = 0; i < img->nr_functions; i++) {
			so_far.entry = c->entry;
			so_far.nr = nr;
			if (c->calls[i] || !may_call(img, &so_far, &img->functions[i]))
				continue;
			c->calls[i] = more = true;
			add_entry(c, img->functions[i].start);
		}
		sort_entries(c);
	}
	return c->no_memory ? -ENOMEM : 0;
}

void callers_free(struct callers *c)
{
	free(c->calls);
	free(c->entry);
}
