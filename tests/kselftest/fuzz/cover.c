// SPDX-License-Identifier: GPL-2.0-only
/* Coverage by KCOV; see Documentation/dev-tools/kcov.rst of the kernel. */
#include <errno.h>
#include <fcntl.h>
#include <linux/kcov.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cover.h"

#define KCOV		"/sys/kernel/debug/kcov"
#define WORDS		(64u << 10)	/* of a buffer, 64 bits each */
#define CMP_WORDS	4		/* of a comparison */

bool cover_available(void)
{
	return !access(KCOV, R_OK | W_OK);
}

static int map(struct cover *c)
{
	c->area = NULL;
	c->fd = open(KCOV, O_RDWR | O_CLOEXEC);
	if (c->fd < 0)
		return -errno;
	if (ioctl(c->fd, KCOV_INIT_TRACE, WORDS))
		return -errno;
	c->area = mmap(NULL, WORDS * sizeof(*c->area), PROT_READ | PROT_WRITE, MAP_SHARED,
		       c->fd, 0);
	if (c->area == MAP_FAILED) {
		c->area = NULL;
		return -errno;
	}
	return 0;
}

int cover_open(struct cover *c)
{
	int ret = map(c);

	if (!ret && ioctl(c->fd, KCOV_ENABLE, KCOV_TRACE_PC))
		ret = -errno;
	return ret;
}

int cover_open_remote(struct cover *c, uint32_t id)
{
	struct kcov_remote_arg arg = {
		.trace_mode = KCOV_TRACE_PC,
		.area_size = WORDS,
		.common_handle = kcov_remote_handle(KCOV_SUBSYSTEM_COMMON, id),
	};
	int ret = map(c);

	c->remote = true;
	if (!ret && ioctl(c->fd, KCOV_REMOTE_ENABLE, &arg))
		ret = -errno;
	return ret;
}

void cover_reset(struct cover *c)
{
	if (c->area)
		__atomic_store_n(&c->area[0], 0, __ATOMIC_RELAXED);
}

static uint32_t hash(uint64_t a, uint64_t b)
{
	uint64_t z = (a ^ b * 0x9e3779b97f4a7c15ull) * 0xbf58476d1ce4e5b9ull;

	return (uint32_t)(z >> 32) | 1;
}

/* Return whether @v is new; open addressing. */
static bool set_add(uint32_t *set, uint32_t size, uint32_t v)
{
	uint32_t at = hash(v, 1) % size, seen, i;

	for (i = 0; i < size; i++, at = (at + 1) % size) {
		seen = __atomic_load_n(&set[at], __ATOMIC_RELAXED);
		if (seen == v)
			return false;
		if (!seen && __atomic_compare_exchange_n(&set[at], &seen, v, false,
							 __ATOMIC_RELAXED,
							 __ATOMIC_RELAXED))
			return true;
		if (seen == v)
			return false;
	}
	return false;
}

unsigned int cover_collect(struct cover *c, struct cover_sets *sets)
{
	uint64_t n, i, before = 0;
	unsigned int new = 0;

	if (!c->area)
		return 0;
	n = __atomic_load_n(&c->area[0], __ATOMIC_RELAXED);
	if (n > WORDS - 1)
		n = WORDS - 1;
	for (i = 1; i <= n; i++) {
		if (set_add(sets->blocks, SET_BLOCKS, (uint32_t)c->area[i]))
			__atomic_add_fetch(&sets->nr_blocks, 1, __ATOMIC_RELAXED);
		if (set_add(sets->edges, SET_EDGES, hash(before, c->area[i]))) {
			__atomic_add_fetch(&sets->nr_edges, 1, __ATOMIC_RELAXED);
			new++;
		}
		before = c->area[i];
	}
	return new;
}

int cover_compare(struct cover *c)
{
	if (!c->area || c->remote)
		return -EOPNOTSUPP;
	if (ioctl(c->fd, KCOV_DISABLE, 0))
		return -errno;
	cover_reset(c);
	if (!ioctl(c->fd, KCOV_ENABLE, KCOV_TRACE_CMP))
		return 0;
	/* A kernel without comparisons. */
	ioctl(c->fd, KCOV_ENABLE, KCOV_TRACE_PC);
	return -EOPNOTSUPP;
}

void cover_constants(struct cover *c, struct dictionary *dict)
{
	uint64_t n, i, v;
	unsigned int j;

	ioctl(c->fd, KCOV_DISABLE, 0);
	n = __atomic_load_n(&c->area[0], __ATOMIC_RELAXED);
	if (n > (WORDS - 1) / CMP_WORDS)
		n = (WORDS - 1) / CMP_WORDS;
	for (i = 0; i < n && dict->nr < sizeof(dict->word) / sizeof(dict->word[0]); i++) {
		/* type, the constant, the other operand, where */
		v = c->area[1 + i * CMP_WORDS + 1];
		if (!(c->area[1 + i * CMP_WORDS] & KCOV_CMP_CONST) || v < 0x100 ||
		    v > UINT32_MAX)
			continue;
		for (j = 0; j < dict->nr && dict->word[j] != v; j++)
			;
		if (j == dict->nr)
			dict->word[dict->nr++] = (uint32_t)v;
	}
	cover_reset(c);
	ioctl(c->fd, KCOV_ENABLE, KCOV_TRACE_PC);
}
