/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The potential of a node: how much of its free GPU a target workload can use. Without
 * weights it is the complement of the fragmentation of Weng et al., "Beware of
 * Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent",
 * USENIX ATC 2023; with weights it is a learned value. Pure but for the memory that
 * potential_new() allocates.
 */
#ifndef MGPU_POTENTIAL_H
#define MGPU_POTENTIAL_H

#include "place.h"

#define POTENTIAL_ONE		(1 << 20)	/* weight of the whole workload */
#define POTENTIAL_MAX_CLASSES	65536
#define POTENTIAL_MAX_STEPS	64		/* of CPU, and of memory */

/**
 * struct place_class - tasks of a workload that want the same
 * @r: what each wants; parts of several GPUs count as whole ones
 * @count: tasks, 1 to 1e9
 */
struct place_class {
	struct place_request r;
	uint32_t count;
};

/* Learned weights: the parts of the potential that training may change. */
enum place_feature {
	FEATURE_SIZE,				/* log2 of a factor of a class's count */
	FEATURE_SIZES = 7,
	FEATURE_EXPONENT = FEATURE_SIZE + FEATURE_SIZES,	/* of a class's GPU demand */
	FEATURE_RESIDUAL,			/* value of what is free of one GPU, GPUs */
	FEATURE_RESIDUALS = 8,
	FEATURE_FULL = FEATURE_RESIDUAL + FEATURE_RESIDUALS,	/* of free GPUs together */
	FEATURE_FULLS = 8,
	FEATURE_CPU = FEATURE_FULL + FEATURE_FULLS,	/* of CPU beside a free GPU */
	FEATURE_KNOTS = 9,
	FEATURE_MEMORY = FEATURE_CPU + FEATURE_KNOTS,	/* of memory beside a free GPU */
	FEATURE_NODE = FEATURE_MEMORY + FEATURE_KNOTS,	/* of a free GPU, by size of node */
	FEATURE_NODES = 4,
	FEATURE_SCARCITY = FEATURE_NODE + FEATURE_NODES,	/* of a free GPU, by model */
	PLACE_FEATURES,
};

#define PLACE_MAX_WEIGHT	20000

/**
 * struct place_weights - what was learned
 * @value: a weight for each feature, thousandths, -PLACE_MAX_WEIGHT to PLACE_MAX_WEIGHT.
 *	All 0: the fragmentation as it is.
 */
struct place_weights {
	int32_t value[PLACE_FEATURES];
};

/* Write the name of a feature, such as residual-125. */
void place_feature_name(unsigned int feature, char *name, size_t size);

/**
 * potential_new() - prepare the potential of a cluster's nodes
 * @c: the cluster: its number of nodes, their models and their GPUs count
 * @classes: the target workload
 * @nr: classes, up to POTENTIAL_MAX_CLASSES; 0 is a workload that uses nothing
 * @weights: what was learned, NULL: nothing
 *
 * Return: the potential, NULL if there is no memory. The caller sets it as the cluster's,
 * and then calls place_cluster_init().
 */
struct place_potential *potential_new(const struct place_cluster *c,
				      const struct place_class *classes, size_t nr,
				      const struct place_weights *weights);
void potential_free(struct place_potential *p);

/* Follow a change of a node. */
void potential_update(struct place_potential *p, size_t node, const struct place_node *n);

/* Return whether the potential has learned weights. */
bool potential_learned(const struct place_potential *p);

/**
 * potential_fragmentation() - measure the fragmentation of a node
 * @p: a potential without weights
 * @n: the node
 *
 * Return: the expected free GPU that a task drawn from the workload cannot use,
 * thousandths of a GPU times POTENTIAL_ONE.
 */
int64_t potential_fragmentation(const struct place_potential *p, const struct place_node *n);

/* Rate a placement: the potential that it costs. Sets @choice->gpus and @choice->same. */
int64_t potential_score(const struct place_potential *p, size_t node,
			const struct place_node *n, const struct place_request *r,
			struct place_choice *choice);

#endif /* MGPU_POTENTIAL_H */
