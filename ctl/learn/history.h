/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Histories: mgpud's JSON log, or that of mgpu-sim, a line per period. Each line becomes the
 * estimate that was made of the period, as far as questions and plans need it.
 */
#ifndef MGPU_LEARN_HISTORY_H
#define MGPU_LEARN_HISTORY_H

#include <stdio.h>

#include "estimate.h"
#include "learn.h"

#define HISTORY_VGPUS_MAX	1024
#define HISTORY_LINE_MAX	(4u << 20)	/* bytes */

/**
 * struct history - a history that is being read; all zero but @f and @name at first
 * @f: where to read
 * @name: its name, for errors
 * @line: number of the last line
 * @text: the line
 * @size: bytes of memory of @text
 * @time_s: end of the last period
 */
struct history {
	FILE *f;
	const char *name;
	size_t line;
	char *text;
	size_t size;
	double time_s;
};

/**
 * struct history_period - a period; all zero before the first one
 * @e: its estimate. All costs are those of the period, and the demand is what the vGPU could
 *	have reached
 * @text: descriptions, in the order of @e.vgpus
 * @begins: it does not follow the period before: another run, or a break
 */
struct history_period {
	struct estimate e;
	char (*text)[LEARN_TEXT];
	bool begins;
};

/**
 * history_next() - read the next period
 * @h: the history
 * @p: result, to be freed with history_period_free() in any case
 * @why: the error as a sentence
 * @len: size of @why
 *
 * Return: 1; 0 at the end; -EINVAL, -EIO or -ENOMEM.
 */
int history_next(struct history *h, struct history_period *p, char *why, size_t len);

void history_period_free(struct history_period *p);
void history_free(struct history *h);

#endif /* MGPU_LEARN_HISTORY_H */
