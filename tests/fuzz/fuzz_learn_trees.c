// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz the loader of trees.  The input is a payload.  Trees that load must predict shares
 * from 0 to 1, for VMs that are known and for others.
 */
#include <errno.h>

#include "feature.h"
#include "fuzz.h"
#include "trees.h"

static void ask(void *data, const struct learn_input *in)
{
	double share[LEARN_RESOURCES] = { -1, -1 };

	learn_trees.share(data, in, share);
	for (int g = 0; g < LEARN_RESOURCES; g++)
		FUZZ_ASSERT(share[g] >= 0 && share[g] <= in->now[g]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct learn_input in = { .n = 2, .task = { { .weight = 1 }, { .weight = 3 } },
				  .now = { 1, 0.5 } };
	char why[256] = "", *payload = malloc(size + 1);
	void *trees;
	int ret;

	FUZZ_ASSERT(payload);
	memcpy(payload, data, size);
	payload[size] = '\0';
	ret = learn_trees.load(&trees, payload, size, why, sizeof(why));
	FUZZ_ASSERT(!ret == !why[0] && !ret == !!trees);
	if (ret) {
		FUZZ_ASSERT(ret == -EINVAL);
	} else {
		ask(trees, &in);
		for (size_t j = 0; j < 2; j++)
			in.task[j] = (struct learn_task){
				.text = "render 1920x1080 at 60 fps", .weight = 5, .periods = 9,
				.cost = { 1e-3, 2e-3 }, .fps = 60, .use = { 0.1, 0.7 },
				.smooth = { 0.2, 0.6 },
			};
		ask(trees, &in);
	}
	learn_trees.free(trees);
	free(payload);
	return 0;
}

static void put(const char *dir, const char *name, const char *cpu, const char *engine)
{
	char text[1024];
	int n = snprintf(text, sizeof(text),
			 "trees %d\ncpu\nforest %d %s\nengine\nforest %d %s\n", TREES_VERSION,
			 LEARN_FEATURES, cpu, LEARN_FEATURES, engine);

	fuzz_seed(dir, name, text, (size_t)n);
}

static void seeds(const char *dir)
{
	static const char deep[] = "0.25 2\ntree 5\nsplit 1 2.5 1 2 2\nleaf -1\n"
		"split 76 -6.9077554 3 4 3\nleaf 0.125\nleaf 3e-05\ntree 1\nleaf 7";

	put(dir, "0", "0.5 0", "0.5 0");
	put(dir, "1", "0.5 1\ntree 1\nleaf 0.1", "-1e30 0");
	put(dir, "2", deep, "0.5 1\ntree 3\nsplit 0 1 2 1 1\nleaf 1\nleaf 2");
	put(dir, "3", "0.5 1\ntree 3\nsplit 0 1 0 1 1\nleaf 1\nleaf 2", deep);
	fuzz_seed(dir, "4", "trees 1\ncpu\n", 12);
}

FUZZ_SEEDS(seeds)
