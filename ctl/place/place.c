// SPDX-License-Identifier: GPL-2.0-only
/* The hard filter, the choice among nodes, and the account of what is taken. Pure. */
#include <errno.h>
#include <string.h>

#include "place.h"
#include "potential.h"

void place_node_sum(struct place_node *n)
{
	n->gpu_total = 0;
	n->max_free = 0;
	n->nr_full = 0;
	for (unsigned int g = 0; g < n->nr_gpus; g++) {
		n->gpu_total += n->gpu_free[g];
		n->nr_full += n->gpu_free[g] == PLACE_WHOLE;
		if (n->gpu_free[g] > n->max_free)
			n->max_free = n->gpu_free[g];
	}
}

void place_cluster_init(struct place_cluster *c)
{
	c->max_cpu = 1;
	c->max_gpus = 1;
	for (size_t i = 0; i < c->nr; i++) {
		struct place_node *n = &c->nodes[i];

		if (n->cpu_milli > c->max_cpu)
			c->max_cpu = n->cpu_milli;
		if (n->nr_gpus > c->max_gpus)
			c->max_gpus = n->nr_gpus;
		place_node_changed(c, i);
	}
}

void place_node_changed(struct place_cluster *c, size_t node)
{
	place_node_sum(&c->nodes[node]);
	if (c->potential)
		potential_update(c->potential, node, &c->nodes[node]);
}

bool place_gpu_fits(const struct place_node *n, unsigned int g, const struct place_request *r)
{
	return n->gpu_free[g] >= r->gpu_milli &&
		(!n->gpu_memory_mib || n->gpu_memory_free[g] >= r->gpu_memory_mib);
}

/* The vGPU types that are large enough for the request; 0 for a request without one. */
static uint32_t fitting_types(const struct place_cluster *c, const struct place_request *r)
{
	uint32_t mask = 0;

	for (size_t i = 0; r->vgpu && i < c->nr_types; i++)
		if (c->types[i].gpu_milli >= r->gpu_milli &&
		    c->types[i].gpu_memory_mib >= r->gpu_memory_mib)
			mask |= UINT32_C(1) << i;
	return mask;
}

static enum place_reason gpus_fit(const struct place_node *n, const struct place_request *r)
{
	unsigned int share = 0, both = 0;

	if (n->nr_gpus < r->nr_gpus)
		return PLACE_NO_GPUS;
	if (n->max_free < r->gpu_milli)
		return PLACE_NO_GPU;
	/* the usual cases need no loop */
	if (!n->gpu_memory_mib || !r->gpu_memory_mib) {
		if (r->nr_gpus == 1)
			return PLACE_FITS;
		if (r->gpu_milli == PLACE_WHOLE)
			return n->nr_full >= r->nr_gpus ? PLACE_FITS : PLACE_NO_GPU;
	}
	for (unsigned int g = 0; g < n->nr_gpus; g++) {
		share += n->gpu_free[g] >= r->gpu_milli;
		both += place_gpu_fits(n, g, r);
	}
	if (both >= r->nr_gpus)
		return PLACE_FITS;
	return share >= r->nr_gpus ? PLACE_NO_GPU_MEMORY : PLACE_NO_GPU;
}

/* @r: with the amounts of the vGPU type, if any */
static enum place_reason filter(const struct place_node *n, const struct place_request *r)
{
	if (r->nr_gpus && !(r->models >> n->model & 1))
		return PLACE_NO_MODEL;
	if (r->capabilities & ~n->capabilities)
		return PLACE_NO_CAPABILITY;
	if (n->cpu_free < r->cpu_milli)
		return PLACE_NO_CPU;
	if (n->memory_free < r->memory_mib)
		return PLACE_NO_MEMORY;
	return r->nr_gpus ? gpus_fit(n, r) : PLACE_FITS;
}

/* Put the amounts of the smallest vGPU type that the node offers into the request. */
static int adopt_type(const struct place_cluster *c, const struct place_node *n, uint32_t types,
		      struct place_request *r)
{
	uint32_t offered = types & n->types;
	int type;

	if (!offered)
		return -1;
	type = __builtin_ctz(offered);
	r->gpu_milli = c->types[type].gpu_milli;
	r->gpu_memory_mib = c->types[type].gpu_memory_mib;
	return type;
}

enum place_reason place_filter(const struct place_cluster *c, size_t node,
			       const struct place_request *r)
{
	const struct place_node *n = &c->nodes[node];
	struct place_request typed = *r;
	enum place_reason reason;

	if (!r->vgpu)
		return filter(n, r);
	if (adopt_type(c, n, fitting_types(c, r), &typed) >= 0)
		return filter(n, &typed);
	/* model and capabilities come first */
	reason = filter(n, r);
	return reason == PLACE_NO_MODEL || reason == PLACE_NO_CAPABILITY ? reason : PLACE_NO_TYPE;
}

const char *place_reason_text(enum place_reason reason)
{
	static const char *const texts[PLACE_REASONS] = {
		[PLACE_FITS] = "fits",
		[PLACE_NO_MODEL] = "GPUs of another model",
		[PLACE_NO_CAPABILITY] = "lacks a capability",
		[PLACE_NO_TYPE] = "offers no vGPU type that is large enough",
		[PLACE_NO_CPU] = "too little host CPU is free",
		[PLACE_NO_MEMORY] = "too little host memory is free",
		[PLACE_NO_GPUS] = "has too few GPUs",
		[PLACE_NO_GPU] = "too little of its GPUs is free",
		[PLACE_NO_GPU_MEMORY] = "too little GPU memory is free",
	};

	return reason < PLACE_REASONS ? texts[reason] : "unknown";
}

static unsigned int same_kind(const struct place_node *n, unsigned int g,
			      const struct place_request *r)
{
	return r->kind == PLACE_KIND_ANY ? 0 : n->tenants[g][r->kind];
}

void place_best_gpus(const struct place_node *n, const struct place_request *r,
		     struct place_choice *choice)
{
	choice->gpus = 0;
	choice->same = 0;
	for (unsigned int k = 0; k < r->nr_gpus; k++) {
		unsigned int best = PLACE_MAX_GPUS;

		for (unsigned int g = 0; g < n->nr_gpus; g++) {
			if (choice->gpus >> g & 1 || !place_gpu_fits(n, g, r))
				continue;
			if (best == PLACE_MAX_GPUS || n->gpu_free[g] < n->gpu_free[best] ||
			    (n->gpu_free[g] == n->gpu_free[best] &&
			     same_kind(n, g, r) < same_kind(n, best, r)))
				best = g;
		}
		/* the filter has counted the GPUs */
		if (best == PLACE_MAX_GPUS)
			return;
		choice->gpus |= UINT32_C(1) << best;
		choice->same += same_kind(n, best, r);
	}
}

static bool is_better(const struct place_policy *policy, const struct place_choice *a,
		      const struct place_choice *b)
{
	if (a->score != b->score)
		return a->score < b->score;
	if (a->tie != b->tie)
		return a->tie < b->tie;
	return policy->neighbours && a->same < b->same;
}

int place_decide(struct place_cluster *c, const struct place_request *r,
		 struct place_choice *choice)
{
	const struct place_policy *policy = c->policy;
	uint32_t types = fitting_types(c, r);
	struct place_request typed = *r;
	bool found = false;

	for (size_t i = 0; i < c->nr; i++) {
		const struct place_node *n = &c->nodes[i];
		struct place_choice next = { .node = i, .type = -1 };

		if (r->vgpu) {
			next.type = adopt_type(c, n, types, &typed);
			if (next.type < 0)
				continue;
		}
		if (filter(n, &typed) != PLACE_FITS)
			continue;
		next.score = policy->score(c, i, &typed, &next);
		if (found && !is_better(policy, &next, choice))
			continue;
		next.gpu_milli = typed.gpu_milli;
		next.gpu_memory_mib = typed.gpu_memory_mib;
		*choice = next;
		found = true;
	}
	return found ? 0 : -ENOSPC;
}

/* @sign: -1 takes, 1 gives back */
static void account(struct place_cluster *c, const struct place_request *r,
		    const struct place_choice *choice, int sign)
{
	struct place_node *n = &c->nodes[choice->node];
	bool whole = choice->gpu_milli == PLACE_WHOLE;

	n->cpu_free += sign * r->cpu_milli;
	n->memory_free += sign * r->memory_mib;
	for (unsigned int g = 0; g < n->nr_gpus; g++) {
		if (!(choice->gpus >> g & 1))
			continue;
		n->gpu_free[g] += sign * choice->gpu_milli;
		n->gpu_memory_free[g] += n->gpu_memory_mib ? sign * choice->gpu_memory_mib : 0;
		n->tenants[g][r->kind] -= sign;
	}
	if (r->nr_gpus)
		n->tasks[whole ? r->nr_gpus : 0] -= sign;
	place_node_changed(c, choice->node);
}

void place_commit(struct place_cluster *c, const struct place_request *r,
		  const struct place_choice *choice)
{
	account(c, r, choice, -1);
}

void place_release(struct place_cluster *c, const struct place_request *r,
		   const struct place_choice *choice)
{
	account(c, r, choice, 1);
}
