/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sums of regression trees: a text form, and an evaluator. They are trained by boost.h; to
 * evaluate them takes no library. Pure. The text of a forest:
 *
 *	forest FEATURES BASE TREES
 *	tree NODES
 *	split FEATURE THRESHOLD YES NO MISSING
 *	leaf VALUE
 *
 * A node is numbered by its place in its tree, from 0, the root. Values below THRESHOLD go
 * to YES, values that are missing (NAN) to MISSING, others to NO. The children of a node
 * come after it, so that no way down is endless.
 */
#ifndef MGPU_LEARN_FOREST_H
#define MGPU_LEARN_FOREST_H

#include <stdint.h>
#include <stdio.h>

#include "lines.h"

#define FOREST_FEATURES_MAX	4096
#define FOREST_TREES_MAX	4096
#define FOREST_NODES_MAX	(1u << 20)	/* of all trees together */
#define FOREST_LEAF		(-1)

/**
 * struct forest_node - a node
 * @feature: feature that is compared, or FOREST_LEAF
 * @value: threshold, or the leaf's value
 * @yes: node for values below the threshold
 * @no: node for other values
 * @missing: node for a missing value, @yes or @no
 */
struct forest_node {
	int32_t feature;
	float value;
	uint32_t yes;
	uint32_t no;
	uint32_t missing;
};

/**
 * struct forest - a sum of trees
 * @features: features of a row
 * @base: value without any tree
 * @trees: number of trees
 * @root: of each tree, its root's place in @node
 * @nodes: number of nodes
 * @node: nodes of all trees; children are places in this array
 */
struct forest {
	unsigned int features;
	float base;
	size_t trees;
	uint32_t *root;
	size_t nodes;
	struct forest_node *node;
};

/**
 * forest_value() - evaluate a forest
 * @f: the forest
 * @x: features, NAN where missing
 *
 * Return: the base and the sum of the leaves.
 */
float forest_value(const struct forest *f, const float *x);

/**
 * forest_read() - read a forest, which is not trusted
 * @f: result, to be freed with forest_free() in any case
 * @l: lines, the next of which is the forest's first; the forest's last is read on return
 * @features: features that it must have
 *
 * Return: 0, or -EINVAL or -ENOMEM with a sentence in @l->why.
 */
int forest_read(struct forest *f, struct lines *l, unsigned int features);

/* Write the text of a forest. */
void forest_write(const struct forest *f, FILE *out);

/* Make room for a further node. Return the node, zeroed, or NULL. */
struct forest_node *forest_add_node(struct forest *f);
/* Make room for a further tree, whose root is the next node. Return 0 or -ENOMEM. */
int forest_add_tree(struct forest *f);

void forest_free(struct forest *f);

#endif /* MGPU_LEARN_FOREST_H */
