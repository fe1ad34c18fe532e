// SPDX-License-Identifier: GPL-2.0-only
/* Sums of regression trees. */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "forest.h"

float forest_value(const struct forest *f, const float *x)
{
	float sum = f->base;

	for (size_t i = 0; i < f->trees; i++) {
		const struct forest_node *n = &f->node[f->root[i]];

		while (n->feature != FOREST_LEAF) {
			float value = x[n->feature];

			n = &f->node[isnan(value) ? n->missing : value < n->value ? n->yes : n->no];
		}
		sum += n->value;
	}
	return sum;
}

/* Return an array with room for one more than @nr, NULL and the old one kept on failure. */
static void *grown(void *array, size_t nr, size_t size)
{
	/* at 0, 64, 128, 256, ... */
	if (nr && (nr < 64 || nr & (nr - 1)))
		return array;
	return realloc(array, (nr ? nr * 2 : 64) * size);
}

struct forest_node *forest_add_node(struct forest *f)
{
	struct forest_node *node = grown(f->node, f->nodes, sizeof(*node));

	if (!node)
		return NULL;
	f->node = node;
	node += f->nodes++;
	memset(node, 0, sizeof(*node));
	return node;
}

int forest_add_tree(struct forest *f)
{
	uint32_t *root = grown(f->root, f->trees, sizeof(*root));

	if (!root)
		return -ENOMEM;
	f->root = root;
	root[f->trees++] = (uint32_t)f->nodes;
	return 0;
}

static int read_float(struct lines *l, const char *what, float *value)
{
	double number = 0;
	int ret = lines_number(l, what, -FLT_MAX, FLT_MAX, &number);

	*value = (float)number;
	return ret;
}

/* Read node @i of a tree of @n nodes that begins at @root. */
static int read_split(struct forest *f, struct lines *l, struct forest_node *node, size_t i,
		      size_t n, size_t root)
{
	size_t feature, yes, no, missing;
	int ret;

	/* a split needs two nodes behind it */
	if (i + 2 >= n)
		return lines_refuse(l, "a split without nodes behind it; train again");
	ret = lines_whole(l, "feature", 0, f->features - 1, &feature);
	if (!ret)
		ret = read_float(l, "threshold", &node->value);
	if (!ret)
		ret = lines_whole(l, "node", i + 1, n - 1, &yes);
	if (!ret)
		ret = lines_whole(l, "node", i + 1, n - 1, &no);
	if (!ret)
		ret = lines_whole(l, "node", i + 1, n - 1, &missing);
	if (ret)
		return ret;
	if (missing != yes && missing != no)
		return lines_refuse(l, "a missing value must go to one of both nodes; train again");
	node->feature = (int32_t)feature;
	node->yes = (uint32_t)(root + yes);
	node->no = (uint32_t)(root + no);
	node->missing = (uint32_t)(root + missing);
	return lines_done(l);
}

static int read_node(struct forest *f, struct lines *l, size_t i, size_t n, size_t root)
{
	struct forest_node *node = forest_add_node(f);
	int ret;

	if (!node) {
		lines_refuse(l, "out of memory");
		return -ENOMEM;
	}
	if (l->at < l->end && *l->at == 's') {
		ret = lines_next(l, "split");
		return ret ? ret : read_split(f, l, node, i, n, root);
	}
	ret = lines_next(l, "leaf");
	node->feature = FOREST_LEAF;
	if (!ret)
		ret = read_float(l, "value", &node->value);
	return ret ? ret : lines_done(l);
}

static int read_tree(struct forest *f, struct lines *l)
{
	size_t n, root = f->nodes;
	int ret = lines_next(l, "tree");

	if (!ret)
		ret = lines_whole(l, "number of nodes", 1, FOREST_NODES_MAX, &n);
	if (!ret)
		ret = lines_done(l);
	if (ret)
		return ret;
	if (n > FOREST_NODES_MAX - root)
		return lines_refuse(l, "more than %u nodes; train with fewer rounds",
				    FOREST_NODES_MAX);
	if (forest_add_tree(f)) {
		lines_refuse(l, "out of memory");
		return -ENOMEM;
	}
	for (size_t i = 0; !ret && i < n; i++)
		ret = read_node(f, l, i, n, root);
	return ret;
}

int forest_read(struct forest *f, struct lines *l, unsigned int features)
{
	size_t trees;
	int ret;

	*f = (struct forest){ .features = features };
	ret = lines_next(l, "forest");
	if (!ret)
		ret = lines_whole(l, "number of features", features, features, &(size_t){ 0 });
	if (!ret)
		ret = read_float(l, "base", &f->base);
	if (!ret)
		ret = lines_whole(l, "number of trees", 0, FOREST_TREES_MAX, &trees);
	if (!ret)
		ret = lines_done(l);
	for (size_t i = 0; !ret && i < trees; i++)
		ret = read_tree(f, l);
	return ret;
}

void forest_write(const struct forest *f, FILE *out)
{
	/* nine digits tell all floats apart */
	fprintf(out, "forest %u %.9g %zu\n", f->features, (double)f->base, f->trees);
	for (size_t i = 0; i < f->trees; i++) {
		uint32_t root = f->root[i];
		size_t end = i + 1 < f->trees ? f->root[i + 1] : f->nodes;

		fprintf(out, "tree %zu\n", end - root);
		for (size_t k = root; k < end; k++) {
			const struct forest_node *n = &f->node[k];

			if (n->feature == FOREST_LEAF)
				fprintf(out, "leaf %.9g\n", (double)n->value);
			else
				fprintf(out, "split %d %.9g %u %u %u\n", n->feature,
					(double)n->value, n->yes - root, n->no - root,
					n->missing - root);
		}
	}
}

void forest_free(struct forest *f)
{
	free(f->root);
	free(f->node);
	*f = (struct forest){ 0 };
}
