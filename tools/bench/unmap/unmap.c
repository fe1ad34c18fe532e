// SPDX-License-Identifier: GPL-2.0-only
/*
 * Measure an unmapping by the VMM beside the most blobs that a type of vGPU allows: how
 * long it takes, and how long it holds the lock that engines take for each tile.
 *
 * Blobs have a page each: all of them the same page, or each its own.
 *
 * Runs in the test host, as root, with the modules loaded; tools/bench/unmap/run calls
 * it.
 */
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "../../../tests/kselftest/lib/nl.h"
#include "../../../tests/kselftest/lib/vmm.h"
#include "../common/bench.h"
#include "hold.skel.h"

#define ALIAS		0x100000000ull
#define PAGE		4096u
#define MAX_BLOBS	65536u

struct bench {
	FILE *json;
	struct hold_bpf *hold;
};

struct figures {
	uint32_t blobs;
	uint64_t ns;
	uint64_t longest_ns;
	uint64_t holds;
	uint64_t sum_ns;
	uint64_t p9999_ns;	/* upper bound of 99.99 % of the holds, a power of two */
};

/* Make blobs until the type allows no more. */
static uint32_t make_blobs(struct vm *vm, bool own_pages)
{
	uint32_t n;

	for (n = 0; n < MAX_BLOBS; n++)
		if (gpu_create_blob_at(vm, n + 1, ALIAS + (own_pages ? (uint64_t)n * PAGE : 0),
				       PAGE) != OK)
			break;
	return n;
}

/* Return an upper bound of 99.99 % of the holds. */
static uint64_t p9999(const uint64_t slots[64], uint64_t holds)
{
	uint64_t above = holds / 10000, n = 0;
	unsigned int i;

	for (i = 63; i; i--) {
		n += slots[i];
		if (n > above)
			break;
	}
	return 2ull << i;
}

static int unmap(struct bench *b, struct vm *vm, bool own_pages, struct figures *f)
{
	size_t len = (size_t)MAX_BLOBS * PAGE;
	void *mem = mmap(NULL, len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	uint64_t start;
	int ret;

	if (mem == MAP_FAILED)
		return -errno;
	ret = vm_map(vm, mem, len, ALIAS);
	if (ret)
		goto out;
	f->blobs = make_blobs(vm, own_pages);
	if (b->hold) {
		b->hold->bss->longest_ns = 0;
		b->hold->bss->holds = 0;
		b->hold->bss->sum_ns = 0;
		memset(b->hold->bss->slots, 0, sizeof(b->hold->bss->slots));
	}
	start = now_ns();
	ret = vm_unmap(vm, ALIAS, len);
	f->ns = now_ns() - start;
	if (b->hold) {
		f->longest_ns = b->hold->bss->longest_ns;
		f->holds = b->hold->bss->holds;
		f->sum_ns = b->hold->bss->sum_ns;
		f->p9999_ns = p9999((const uint64_t *)b->hold->bss->slots, f->holds);
	}
out:
	munmap(mem, len);
	return ret;
}

static int probes_on(struct bench *b)
{
	int ret;

	b->hold = hold_bpf__open_and_load();
	if (!b->hold) {
		complain("cannot load the programs that measure: %s", strerror(errno));
		return -errno;
	}
	ret = hold_bpf__attach(b->hold);
	if (ret)
		complain("cannot attach them: %s", strerror(-ret));
	return ret;
}

/* Once without the probes for the time, once with them for the lock. */
static int row(struct bench *b, const char *type, bool own_pages)
{
	struct figures f[2] = { { 0 } };
	struct vm vm;
	int ret = 0;
	unsigned int i;

	for (i = 0; i < 2 && !ret; i++) {
		if (i)
			ret = probes_on(b);
		if (!ret)
			ret = vm_new_started(&vm, type, VMM_RAM);
		if (ret)
			break;
		ret = unmap(b, &vm, own_pages, &f[i]);
		vm_delete(&vm);
	}
	hold_bpf__destroy(b->hold);
	b->hold = NULL;
	if (!ret && !f[1].holds)
		ret = -EIO;
	if (ret) {
		result(b, "rows", "\"type\": \"%s\", \"failed\": \"%s\"", type,
		       strerror(-ret));
		return ret;
	}
	result(b, "rows",
	       "\"type\": \"%s\", \"pages\": \"%s\", \"blobs\": %u, \"ms\": %.2f, \"longest_hold_us\": %.1f, \"hold_us_p9999\": %.1f, \"holds\": %lu, \"mean_hold_us\": %.2f",
	       type, own_pages ? "own" : "one", f[0].blobs, (double)f[0].ns / 1e6,
	       (double)f[1].longest_ns / 1e3, (double)f[1].p9999_ns / 1e3, f[1].holds,
	       (double)f[1].sum_ns / (double)f[1].holds / 1e3);
	return 0;
}

int main(int argc, char **argv)
{
	static const char *const types[] = { "small", "medium", "large" };
	struct bench_part part[ARRAY_LEN(types)] = { { 0 } };
	struct bench_options o = {
		.usage = "usage: bench-unmap [--json FILE] [TYPE]...\n",
		.parts = part,
		.nr_parts = ARRAY_LEN(types),
		.json = stdout,
	};
	struct bench b = { 0 };
	unsigned int i, own;
	int ret, err = 0;

	for (i = 0; i < ARRAY_LEN(types); i++)
		part[i].name = types[i];
	ret = bench_options(&o, argc, argv);
	if (ret >= 0)
		return ret;
	b.json = o.json;
	conditions_to(b.json, o.quick, "\"page\": %u", PAGE);
	for (i = 0; i < ARRAY_LEN(types); i++) {
		for (own = 0; own < 2 && o.wanted & (1u << i); own++)
			if (row(&b, types[i], own))
				err = -EIO;
	}
	ret = results_end(b.json);
	return err || ret ? 1 : 0;
}
