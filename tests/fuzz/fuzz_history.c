// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz the reader of histories, and what makes samples of them. A sample is a question within its
 * ranges, and its label is a distribution.
 */
#include <math.h>

#include "examples.h"
#include "fuzz.h"

static void check(const struct learn_sample *s)
{
	FUZZ_ASSERT(s->in.n >= 1 && s->in.n <= LEARN_CLIENTS);
	for (int g = 0; g < LEARN_RESOURCES; g++) {
		float sum = 0;

		for (size_t i = 0; i < LEARN_CLIENTS; i++) {
			FUZZ_ASSERT(s->label[g][i] >= 0 && s->label[g][i] <= 1);
			FUZZ_ASSERT(i < s->in.n || !(s->label[g][i] > 0));
			sum += s->label[g][i];
		}
		FUZZ_ASSERT(fabsf(sum - 1) < 1e-3f);
		for (size_t t = 0; t < LEARN_PAST; t++)
			FUZZ_ASSERT(s->in.idle[g][t] >= 0 && s->in.idle[g][t] <= 1);
	}
	for (size_t i = 0; i < s->in.n; i++) {
		const struct learn_task *t = &s->in.task[i];

		FUZZ_ASSERT(memchr(t->text, 0, sizeof(t->text)));
		FUZZ_ASSERT(t->weight >= 1 && t->weight <= 10000);
		for (int g = 0; g < LEARN_RESOURCES; g++)
			FUZZ_ASSERT(isfinite(t->cost[g]) && isfinite(t->use[g]) &&
				    isfinite(t->smooth[g]));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct example_options o = {
		.horizon = 1, .kinds = (1u << EXAMPLE_KINDS) - 1, .part = 1,
		.fds = { FDS_BETA_DEFAULT, FDS_LAMBDA_DEFAULT },
	};
	struct examples x = { 0 };
	char why[256] = "";
	FILE *f;
	int ret;

	if (!size)
		return 0;
	f = fmemopen((void *)(uintptr_t)data, size, "r");
	FUZZ_ASSERT(f);
	ret = examples_add(&x, f, "history", &o, why, sizeof(why));
	fclose(f);
	FUZZ_ASSERT(!ret == !why[0]);
	for (size_t i = 0; i < x.nr; i++)
		check(&x.sample[i]);
	examples_free(&x);
	return 0;
}

#define HEAD	"{\"time_s\":%d,\"capacity\":{\"cpu_cores\":4,\"gpu_engines\":1},\"vgpus\":["
#define A	"{\"uuid\":\"a\",\"description\":\"game 640x480\",\"device\":1,\"weight\":100,\"fps\":20,"	\
		"\"reach_fps\":null,\"cpu_share\":0.1,\"gpu_share\":0.5,\"cpu_s_per_frame\":0.02,"		\
		"\"gpu_s_per_frame\":0.025,\"state\":\"active\"}"
#define B	"{\"uuid\":\"b\",\"description\":\"\",\"device\":2,\"weight\":200,\"fps\":30,"		\
		"\"reach_fps\":60,\"cpu_share\":0.2,\"gpu_share\":0.3,\"cpu_s_per_frame\":0.01,"		\
		"\"gpu_s_per_frame\":0.01,\"state\":\"active\"}"
#define IDLE	"{\"uuid\":\"b\",\"weight\":200,\"state\":\"idle\"}"

static void seeds(const char *dir)
{
	static const char *const lines[] = {
		HEAD A "," IDLE "]}\n" HEAD A "," B "]}\n" HEAD B "]}\n",
		HEAD "]}\n" HEAD A "," B "]}\n" HEAD A "," IDLE "]}\n" HEAD A "," B "]}\n",
	};
	char name[16], text[4096];

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		snprintf(name, sizeof(name), "%zu", i);
		snprintf(text, sizeof(text), lines[i], 1, 2, 3, 4);
		fuzz_seed(dir, name, text, strlen(text));
	}
}

FUZZ_SEEDS(seeds)
