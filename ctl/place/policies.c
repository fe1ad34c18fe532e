// SPDX-License-Identifier: GPL-2.0-only
/*
 * The policies. Weng et al. compare fragmentation-gradient descent with the same ones;
 * Documentation/placement.rst says how each is meant there. Pure.
 */
#include <string.h>

#include "draw.h"
#include "place.h"
#include "potential.h"

#define PARTS	1000000		/* of an amount that is divided by the largest node's */
#define STEP	((int64_t)POTENTIAL_ONE * PLACE_WHOLE / 100)	/* of a potential */

static int64_t part(int64_t amount, int64_t most)
{
	return amount * PARTS / most;
}

static int64_t first_fit(struct place_cluster *c, size_t node, const struct place_request *r,
			 struct place_choice *choice)
{
	place_best_gpus(&c->nodes[node], r, choice);
	return 0;
}

static int64_t random_fit(struct place_cluster *c, size_t node, const struct place_request *r,
			  struct place_choice *choice)
{
	place_best_gpus(&c->nodes[node], r, choice);
	return (int64_t)(random_next(&c->random) >> 1);
}

/* Return the rest of CPU and of GPU, each as a part of the largest node's. */
static int64_t rest_of(const struct place_cluster *c, const struct place_node *n,
		       const struct place_request *r)
{
	return part(n->cpu_free - r->cpu_milli, c->max_cpu) +
		part(n->gpu_total - r->nr_gpus * r->gpu_milli, (int64_t)c->max_gpus * PLACE_WHOLE);
}

static int64_t best_fit(struct place_cluster *c, size_t node, const struct place_request *r,
			struct place_choice *choice)
{
	place_best_gpus(&c->nodes[node], r, choice);
	return rest_of(c, &c->nodes[node], r);
}

/*
 * The product of what is free and what is wanted, CPU and GPU: a node that is filled as the
 * request wants it has the least.
 */
static int64_t dot_product(struct place_cluster *c, size_t node, const struct place_request *r,
			   struct place_choice *choice)
{
	const struct place_node *n = &c->nodes[node];
	int64_t gpus = (int64_t)c->max_gpus * PLACE_WHOLE;

	place_best_gpus(n, r, choice);
	return part(n->cpu_free, c->max_cpu) * part(r->cpu_milli, c->max_cpu) +
		part(n->gpu_total, gpus) * part(r->nr_gpus * r->gpu_milli, gpus);
}

/* GPUs in use come first, then free GPUs of nodes in use, then those of free nodes. */
static int64_t gpu_packing(struct place_cluster *c, size_t node, const struct place_request *r,
			   struct place_choice *choice)
{
	const struct place_node *n = &c->nodes[node];
	int64_t rest = 0, whole = 0;

	place_best_gpus(n, r, choice);
	if (!r->nr_gpus)
		return 0;
	if (n->nr_full == n->nr_gpus)
		return 3 * PARTS + n->nr_gpus;
	for (unsigned int g = 0; g < n->nr_gpus; g++) {
		if (!(choice->gpus >> g & 1))
			continue;
		whole += n->gpu_free[g] == PLACE_WHOLE;
		rest += n->gpu_free[g];
	}
	return whole ? 2 * PARTS + whole : rest;
}

/* Nodes with tasks of the same size only come first, then mixed ones, free ones, others. */
static int64_t gpu_clustering(struct place_cluster *c, size_t node, const struct place_request *r,
			      struct place_choice *choice)
{
	const struct place_node *n = &c->nodes[node];
	unsigned int own = r->gpu_milli == PLACE_WHOLE ? r->nr_gpus : 0;
	unsigned int sizes = 0;
	int64_t group;

	place_best_gpus(n, r, choice);
	if (!r->nr_gpus)
		return 0;
	for (unsigned int k = 0; k <= PLACE_MAX_GPUS; k++)
		sizes += n->tasks[k] > 0;
	if (n->tasks[own])
		group = sizes == 1 ? 0 : 1;
	else
		group = sizes ? 3 : 2;
	return group * PARTS + n->gpu_total;
}

/*
 * The loss of potential, in hundredths of a GPU: smaller differences are those of the sample
 * that the workload is. The best fit decides among nodes with the same loss.
 */
static int64_t descent(struct place_cluster *c, size_t node, const struct place_request *r,
		       struct place_choice *choice)
{
	const struct place_node *n = &c->nodes[node];
	int64_t loss = potential_score(c->potential, node, n, r, choice);

	choice->tie = rest_of(c, n, r);
	return (loss - (loss < 0 ? STEP - 1 : 0)) / STEP;
}

static const struct place_policy policy_first_fit = {
	.name = "first-fit",
	.summary = "the first node that fits",
	.score = first_fit,
};

static const struct place_policy policy_best_fit = {
	.name = "best-fit",
	.summary = "the node with the least CPU and GPU left",
	.neighbours = true,
	.score = best_fit,
};

static const struct place_policy policy_random = {
	.name = "random",
	.summary = "any node that fits, from a seed",
	.score = random_fit,
};

static const struct place_policy policy_dot_product = {
	.name = "dot-product",
	.summary = "the node whose free CPU and GPU have the least product with the request",
	.neighbours = true,
	.score = dot_product,
};

static const struct place_policy policy_gpu_packing = {
	.name = "gpu-packing",
	.summary = "GPUs in use first, then free GPUs of nodes in use, then free nodes",
	.neighbours = true,
	.score = gpu_packing,
};

static const struct place_policy policy_gpu_clustering = {
	.name = "gpu-clustering",
	.summary = "beside tasks of the same number of GPUs",
	.neighbours = true,
	.score = gpu_clustering,
};

static const struct place_policy policy_fgd = {
	.name = "fgd",
	.summary = "where the fragmentation for the target workload grows least",
	.potential = true,
	.neighbours = true,
	.score = descent,
};

static const struct place_policy policy_learned = {
	.name = "learned",
	.summary = "where a learned potential of the node falls least",
	.potential = true,
	.learned = true,
	.neighbours = true,
	.score = descent,
};

const struct place_policy *const place_policies[] = {
	&policy_first_fit, &policy_best_fit, &policy_random, &policy_dot_product,
	&policy_gpu_packing, &policy_gpu_clustering, &policy_fgd, &policy_learned, NULL,
};

const struct place_policy *place_policy_find(const char *name)
{
	for (size_t i = 0; place_policies[i]; i++)
		if (!strcmp(place_policies[i]->name, name))
			return place_policies[i];
	return NULL;
}
