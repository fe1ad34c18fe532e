/* SPDX-License-Identifier: GPL-2.0-only */
/* Random questions for tests of learned models; header only. */
#ifndef TESTS_UNIT_LEARN_QUESTION_H
#define TESTS_UNIT_LEARN_QUESTION_H

#include <stdio.h>
#include <string.h>

#include "learn.h"
#include "random.h"

static inline double unit(void)
{
	return (double)(rnd() >> 11) / (double)(UINT64_C(1) << 53);
}

/* VMs of a few kinds on two devices; the text and the costs of a VM go with its kind. */
static inline void random_task(struct learn_task *t)
{
	static const char *const kinds[] = {
		"game", "Office desktop", "video player", "render job",
	};
	size_t kind = below(4);

	memset(t, 0, sizeof(*t));
	snprintf(t->text, sizeof(t->text), "%s %ux%u", kinds[kind],
		 640 * (1 + (unsigned int)below(4)), 480 * (1 + (unsigned int)below(3)));
	t->weight = 100 * (1 + (double)below(4));
	t->periods = (double)below(4);
	t->fps = t->periods > 0 && below(2) ? 10 + 50 * unit() : 0;
	for (int r = 0; t->periods > 0 && r < LEARN_RESOURCES; r++) {
		t->cost[r] = 0.001 * (1 + (double)kind) * (1 + unit());
		t->use[r] = fmin(t->cost[r] * t->fps, 1);
		t->smooth[r] = t->use[r];
	}
}

static inline void random_question(struct learn_input *in, size_t n)
{
	uint64_t device[LEARN_CLIENTS];

	memset(in, 0, sizeof(*in));
	in->n = n;
	for (size_t j = 0; j < n; j++) {
		random_task(&in->task[j]);
		device[j] = below(2);
		for (size_t k = 0; k < j; k++) {
			in->distance[j][k] = device[j] == device[k] ? 1 : 2;
			in->distance[k][j] = in->distance[j][k];
		}
	}
	for (int r = 0; r < LEARN_RESOURCES; r++) {
		in->now[r] = 0.5 + unit() / 2;
		for (size_t i = 0; i < LEARN_PAST; i++)
			in->idle[r][i] = unit();
	}
}

/* Exchange two VMs. */
static inline void swap_clients(struct learn_input *in, size_t a, size_t b)
{
	struct learn_task task = in->task[a];

	in->task[a] = in->task[b];
	in->task[b] = task;
	for (size_t k = 0; k < in->n; k++) {
		double distance = in->distance[a][k];

		in->distance[a][k] = in->distance[b][k];
		in->distance[b][k] = distance;
	}
	for (size_t k = 0; k < in->n; k++) {
		double distance = in->distance[k][a];

		in->distance[k][a] = in->distance[k][b];
		in->distance[k][b] = distance;
	}
}

#endif /* TESTS_UNIT_LEARN_QUESTION_H */
