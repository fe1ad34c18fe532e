// SPDX-License-Identifier: GPL-2.0-only
/*
 * Measure how fast this machine copies a 1080p frame, in the ways in which the
 * compared devices copy it.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/bench.h"
#include "../common/stats.h"

#define FRAME	(1920 * 1080 * 4)
#define PAGE	4096
#define TIMES	21

typedef void (*copy_fn)(unsigned char *to, const unsigned char *from, size_t n);

/* A single memcpy(): usually the fastest copy that a program has. */
static void at_once(unsigned char *to, const unsigned char *from, size_t n)
{
	memcpy(to, from, n);
}

/* memcpy() page by page, as QEMU's virtio-gpu copies a guest's pages. */
static void by_page(unsigned char *to, const unsigned char *from, size_t n)
{
	size_t at;

	for (at = 0; at < n; at += PAGE)
		memcpy(to + at, from + at, PAGE);
}

/* 32 bytes a turn through general registers, as the kernel copies without rep movs. */
static void by_word(unsigned char *to, const unsigned char *from, size_t n)
{
	size_t turns = n / 32;

	while (turns--) {
		__asm__ volatile("movq 0(%1), %%r8\n\t"
				 "movq 8(%1), %%r9\n\t"
				 "movq 16(%1), %%r10\n\t"
				 "movq 24(%1), %%r11\n\t"
				 "movq %%r8, 0(%0)\n\t"
				 "movq %%r9, 8(%0)\n\t"
				 "movq %%r10, 16(%0)\n\t"
				 "movq %%r11, 24(%0)"
				 : : "r"(to), "r"(from)
				 : "r8", "r9", "r10", "r11", "memory");
		to += 32;
		from += 32;
	}
}

static double median_ms(copy_fn copy, unsigned char *to,
			const unsigned char *from)
{
	double ms[TIMES];
	uint64_t start;
	int i;

	copy(to, from, FRAME);
	for (i = 0; i < TIMES; i++) {
		start = now_ns();
		copy(to, from, FRAME);
		ms[i] = (double)(now_ns() - start) / MS;
	}
	return stats_median(ms, TIMES);
}

int main(void)
{
	static const struct {
		const char *name;
		copy_fn copy;
	} ways[] = {
		{ "libc_at_once", at_once },
		{ "libc_by_page", by_page },
		{ "words_like_kernel", by_word },
	};
	unsigned char *from = malloc(FRAME), *to = malloc(FRAME);
	double ms;
	size_t i;

	if (!from || !to) {
		complain("no memory for two frames");
		return 1;
	}
	memset(from, 1, FRAME);
	memset(to, 2, FRAME);
	printf("{");
	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		ms = median_ms(ways[i].copy, to, from);
		printf("%s\"%s\": {\"ms_per_frame\": %.3f, \"gb_per_s\": %.3f}",
		       i ? ", " : "", ways[i].name, ms, FRAME / ms / 1e6);
	}
	printf("}\n");
	free(from);
	free(to);
	return 0;
}
