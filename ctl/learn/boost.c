// SPDX-License-Identifier: GPL-2.0-only
/*
 * Gradient boosting by XGBoost. The trees leave it as the text of XGBoosterDumpModelEx(): its
 * own files are not read anywhere.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <xgboost/c_api.h>

#include "boost.h"

#define NODES_MAX	(1 << 14)	/* of a tree: numbers, with those that were pruned */

/**
 * struct trainer - a forest that is being trained
 * @booster: of XGBoost
 * @rows: the rows to train on, of XGBoost
 * @check: the rows for validation, NULL: none
 * @why: for an error
 * @len: size of @why
 */
struct trainer {
	BoosterHandle booster;
	DMatrixHandle rows;
	DMatrixHandle check;
	char *why;
	size_t len;
};

static int failed(const struct trainer *t)
{
	snprintf(t->why, t->len, "XGBoost: %s", XGBGetLastError());
	return -EINVAL;
}

static int refuse(char *why, size_t len, const char *text)
{
	snprintf(why, len, "%s", text);
	return -EINVAL;
}

static int check_options(const struct boost_options *o, char *why, size_t len)
{
	if (o->rounds < 1 || o->rounds > FOREST_TREES_MAX)
		return refuse(why, len, "rounds must be from 1 to 4096");
	if (o->depth < 1 || o->depth > 12)
		return refuse(why, len, "depth must be from 1 to 12");
	if (!(o->rate > 0 && o->rate <= 1))
		return refuse(why, len, "the learning rate must be above 0, and at most 1");
	if (!(o->rows_part > 0 && o->rows_part <= 1 && o->columns_part > 0 &&
	      o->columns_part <= 1))
		return refuse(why, len, "parts of rows and columns must be above 0, and at most 1");
	if (!(o->least_weight >= 0))
		return refuse(why, len, "rows of a leaf must be at least 0");
	return 0;
}

static int check_rows(const struct boost_rows *rows, char *why, size_t len)
{
	for (size_t i = 0; i < rows->n; i++)
		if (!isfinite(rows->y[i]))
			return refuse(why, len, "a value to be learned is not finite");
	for (size_t i = 0; i < rows->n * rows->features; i++)
		if (isinf(rows->x[i]))
			return refuse(why, len, "a feature is not finite");
	return 0;
}

static int make_matrix(const struct trainer *t, const struct boost_rows *rows, DMatrixHandle *m)
{
	if (XGDMatrixCreateFromMat(rows->x, rows->n, rows->features, NAN, m) ||
	    XGDMatrixSetFloatInfo(*m, "label", rows->y, rows->n))
		return failed(t);
	return 0;
}

static int set(const struct trainer *t, const char *name, double value)
{
	char text[32];

	snprintf(text, sizeof(text), "%.9g", value);
	return XGBoosterSetParam(t->booster, name, text) ? failed(t) : 0;
}

static int set_all(const struct trainer *t, const struct boost_options *o, float base)
{
	const struct {
		const char *name;
		double value;
	} numbers[] = {
		{ "nthread", 1 }, { "verbosity", 0 }, { "seed", (double)(o->seed % INT32_MAX) },
		{ "max_depth", o->depth }, { "eta", o->rate }, { "base_score", (double)base },
		{ "subsample", o->rows_part }, { "colsample_bytree", o->columns_part },
		{ "min_child_weight", o->least_weight },
	};

	if (XGBoosterSetParam(t->booster, "objective", "reg:squarederror") ||
	    XGBoosterSetParam(t->booster, "tree_method", "hist"))
		return failed(t);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (set(t, numbers[i].name, numbers[i].value))
			return -EINVAL;
	return 0;
}

/* Error on the rows for validation, or else on those that are trained on. */
static int evaluate(const struct trainer *t, int round, double *error)
{
	DMatrixHandle m = t->check ? t->check : t->rows;
	const char *name = "rows", *text, *colon;

	if (XGBoosterEvalOneIter(t->booster, round, &m, &name, 1, &text))
		return failed(t);
	colon = strrchr(text, ':');
	*error = colon ? strtod(colon + 1, NULL) : NAN;
	return 0;
}

/* Return 0 with the number of trees of the best round in @best, or -EINVAL. */
static int rounds(const struct trainer *t, const struct boost_options *o, size_t *best,
		  double *error)
{
	*best = 0;
	for (unsigned int i = 0; i < o->rounds; i++) {
		double now;

		if (XGBoosterUpdateOneIter(t->booster, (int)i, t->rows))
			return failed(t);
		/* without rows for validation, the last round is the best one */
		if (!t->check && i + 1 < o->rounds)
			continue;
		if (evaluate(t, (int)i, &now))
			return -EINVAL;
		if (!t->check || !*best || now < *error) {
			*best = i + 1;
			*error = now;
		} else if (o->patience && i + 1 - *best >= o->patience) {
			break;
		}
	}
	return 0;
}

/* ---- the text of a tree ---- */

/*
 * Read a node: a line with its number. Its children are numbers, too, until link_tree().
 * @number: result. Return whether it is a node.
 */
static bool read_node(const char *line, struct forest_node *n, int *number)
{
	int feature, yes, no, missing;
	float value;

	if (sscanf(line, " %d:leaf=%f", number, &value) == 2) {
		*n = (struct forest_node){ .feature = FOREST_LEAF, .value = value };
	} else if (sscanf(line, " %d:[f%d<%f] yes=%d,no=%d,missing=%d", number, &feature, &value,
			  &yes, &no, &missing) == 6) {
		if (feature < 0 || yes < 0 || no < 0 || missing < 0)
			return false;
		*n = (struct forest_node){
			.feature = feature, .value = value, .yes = (uint32_t)yes,
			.no = (uint32_t)no, .missing = (uint32_t)missing,
		};
	} else {
		return false;
	}
	return *number >= 0 && *number < NODES_MAX;
}

/* Replace numbers by places. Return false for a number that has none behind the node. */
static bool link_tree(struct forest *f, size_t root, const uint32_t *place)
{
	for (size_t i = root; i < f->nodes; i++) {
		struct forest_node *n = &f->node[i];

		if (n->feature == FOREST_LEAF)
			continue;
		if (n->feature >= (int32_t)f->features || n->yes >= NODES_MAX ||
		    n->no >= NODES_MAX || n->missing >= NODES_MAX)
			return false;
		n->yes = place[n->yes];
		n->no = place[n->no];
		n->missing = place[n->missing];
		if (n->yes <= i || n->no <= i || n->missing <= i)
			return false;
	}
	return true;
}

static int add_tree(struct forest *f, const char *text, uint32_t *place)
{
	size_t root = f->nodes;

	if (forest_add_tree(f))
		return -ENOMEM;
	memset(place, 0, NODES_MAX * sizeof(*place));
	for (const char *line = text; *line; line = strchrnul(line, '\n'), line += *line == '\n') {
		struct forest_node *n = forest_add_node(f);
		int number;

		if (!n)
			return -ENOMEM;
		if (f->nodes > FOREST_NODES_MAX || !read_node(line, n, &number))
			return -EINVAL;
		place[number] = (uint32_t)(f->nodes - 1);
	}
	return f->nodes > root && link_tree(f, root, place) ? 0 : -EINVAL;
}

static int take_trees(const struct trainer *t, struct forest *f, size_t trees)
{
	uint32_t *place = malloc(NODES_MAX * sizeof(*place));
	const char **text;
	bst_ulong n;
	int ret = 0;

	if (!place) {
		ret = -ENOMEM;
	} else if (XGBoosterDumpModelEx(t->booster, "", 0, "text", &n, &text)) {
		free(place);
		return failed(t);
	}
	for (size_t i = 0; !ret && i < trees && i < n; i++)
		ret = add_tree(f, text[i], place);
	free(place);
	if (ret)
		snprintf(t->why, t->len, "%s", ret == -ENOMEM ? strerror(ENOMEM) :
			 "the text of a tree is not as expected; train with fewer rounds or less depth");
	return ret;
}

static float mean_of(const struct boost_rows *rows)
{
	double sum = 0;

	for (size_t i = 0; i < rows->n; i++)
		sum += (double)rows->y[i];
	return (float)(sum / (double)rows->n);
}

static int train(struct trainer *t, struct forest *f, const struct boost_rows *rows,
		 const struct boost_rows *check, const struct boost_options *o, double *error)
{
	size_t best;
	int ret = make_matrix(t, rows, &t->rows);

	if (!ret && check && check->n)
		ret = make_matrix(t, check, &t->check);
	if (!ret && XGBoosterCreate(&t->rows, 1, &t->booster))
		ret = failed(t);
	if (!ret)
		ret = set_all(t, o, f->base);
	if (!ret)
		ret = rounds(t, o, &best, error);
	return ret ? ret : take_trees(t, f, best);
}

int boost_train(struct forest *f, const struct boost_rows *rows, const struct boost_rows *check,
		const struct boost_options *o, double *error, char *why, size_t len)
{
	struct trainer t = { .why = why, .len = len };
	int ret;

	*f = (struct forest){ 0 };
	if (!rows->n || !rows->features || rows->features > FOREST_FEATURES_MAX)
		return refuse(why, len, "no rows to train on");
	if (check_options(o, why, len) || check_rows(rows, why, len) ||
	    (check && check_rows(check, why, len)))
		return -EINVAL;
	f->features = rows->features;
	f->base = mean_of(rows);
	ret = train(&t, f, rows, check, o, error);
	if (t.booster)
		XGBoosterFree(t.booster);
	if (t.check)
		XGDMatrixFree(t.check);
	if (t.rows)
		XGDMatrixFree(t.rows);
	if (ret)
		forest_free(f);
	return ret;
}
