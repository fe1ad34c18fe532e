// SPDX-License-Identifier: GPL-2.0-only
/* Trees as a model of shares. */
#include <errno.h>
#include <stdlib.h>

#include "feature.h"
#include "forest.h"
#include "trees.h"

const char *const trees_resource[LEARN_RESOURCES] = {
	[LEARN_CPU] = "cpu",
	[LEARN_ENGINE] = "engine",
};

/* A forest for each resource. */
struct trees {
	struct forest forest[LEARN_RESOURCES];
};

static void trees_free(void *data)
{
	struct trees *t = data;

	if (!t)
		return;
	for (int g = 0; g < LEARN_RESOURCES; g++)
		forest_free(&t->forest[g]);
	free(t);
}

static int trees_load(void **data, const char *payload, size_t size, char *why, size_t len)
{
	struct trees *t = calloc(1, sizeof(*t));
	struct lines l;
	size_t version;
	int ret;

	*data = NULL;
	lines_init(&l, payload, size, why, len);
	if (!t) {
		lines_refuse(&l, "out of memory");
		return -ENOMEM;
	}
	ret = lines_next(&l, "trees");
	if (!ret)
		ret = lines_whole(&l, "version", TREES_VERSION, TREES_VERSION, &version);
	if (!ret)
		ret = lines_done(&l);
	for (int g = 0; !ret && g < LEARN_RESOURCES; g++) {
		ret = lines_next(&l, trees_resource[g]);
		if (!ret)
			ret = lines_done(&l);
		if (!ret)
			ret = forest_read(&t->forest[g], &l, LEARN_FEATURES);
	}
	if (!ret)
		ret = lines_end(&l);
	if (ret) {
		trees_free(t);
		return ret;
	}
	*data = t;
	return 0;
}

static void trees_share(void *data, const struct learn_input *in, double share[LEARN_RESOURCES])
{
	const struct trees *t = data;
	float x[LEARN_FEATURES];

	learn_static.share(NULL, in, share);
	learn_features(in, x);
	for (int g = 0; g < LEARN_RESOURCES; g++)
		share[g] = fmin(share[g] * exp((double)forest_value(&t->forest[g], x)),
				in->now[g]);
}

const struct learn_model_ops learn_trees = {
	.name = "trees",
	.summary = "gradient-boosted trees on figures of the VMs",
	.learned = true,
	.load = trees_load,
	.free = trees_free,
	.share = trees_share,
};
