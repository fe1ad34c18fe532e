// SPDX-License-Identifier: GPL-2.0-only
/* Trains and evaluates predictors of pairs. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "pairs_fit.h"

/* Ridges and reaches from which cross-validation chooses. */
static const double ridges[] = { 0.1, 0.3, 1, 3, 10, 30, 100 };
static const double reaches[] = { 0.1, 0.2, 0.4, 0.8, 1.6 };

#define NR_RIDGES	(sizeof(ridges) / sizeof(ridges[0]))
#define NR_REACHES	(sizeof(reaches) / sizeof(reaches[0]))

/**
 * struct part - pairs of a table
 * @t: the table
 * @row: places of the pairs
 * @n: number of pairs
 */
struct part {
	const struct pairs_table *t;
	size_t *row;
	size_t n;
};

/* Both directions of a pair: the job whose speed it is, and the one beside it. */
static void sides(const struct part *part, size_t i, int side, const struct pairs_job **job,
		  const struct pairs_job **other, double *log_speed)
{
	const struct pairs_row *r = &part->t->row[part->row[i]];

	*job = &part->t->job[r->job[side]];
	*other = &part->t->job[r->job[!side]];
	*log_speed = log(r->speed[side]);
}

/* ---- linear predictors ---- */

/**
 * struct normal - sums for least squares
 * @n: number of features
 * @xx: @n rows of @n sums of products, the lower triangle
 * @xy: sums of products with what is to be predicted
 * @l: room for the triangle of a solution
 */
struct normal {
	size_t n;
	double *xx;
	double *xy;
	double *l;
};

static int normal_init(struct normal *s, size_t n)
{
	*s = (struct normal){ .n = n };
	s->xx = calloc(n * n, sizeof(*s->xx));
	s->xy = calloc(n, sizeof(*s->xy));
	s->l = calloc(n * n, sizeof(*s->l));
	return s->xx && s->xy && s->l ? 0 : -ENOMEM;
}

static void normal_free(struct normal *s)
{
	free(s->xx);
	free(s->xy);
	free(s->l);
}

static void normal_add(struct normal *s, const double *x, double y)
{
	for (size_t i = 0; i < s->n; i++) {
		if (x[i] == 0)
			continue;
		s->xy[i] += x[i] * y;
		for (size_t k = 0; k <= i; k++)
			s->xx[i * s->n + k] += x[i] * x[k];
	}
}

/* Solve with a ridge on all features but the first, by Cholesky. */
static void normal_solve(const struct normal *s, double ridge, double *w)
{
	size_t n = s->n;
	double *l = s->l;

	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k <= i; k++) {
			double sum = s->xx[i * n + k];

			if (i == k)
				sum += i ? ridge : 1e-9;
			for (size_t j = 0; j < k; j++)
				sum -= l[i * n + j] * l[k * n + j];
			l[i * n + k] = i == k ? sqrt(fmax(sum, 1e-12)) : sum / l[k * n + k];
		}
	}
	for (size_t i = 0; i < n; i++) {
		w[i] = s->xy[i];
		for (size_t j = 0; j < i; j++)
			w[i] -= l[i * n + j] * w[j];
		w[i] /= l[i * n + i];
	}
	for (size_t i = n; i-- > 0;) {
		for (size_t j = i + 1; j < n; j++)
			w[i] -= l[j * n + i] * w[j];
		w[i] /= l[i * n + i];
	}
}

int pairs_estimate_use(struct pairs_table *t)
{
	double *x = calloc(t->jobs + 1, sizeof(*x)), *w = calloc(t->jobs + 1, sizeof(*w));
	struct normal s[2] = { 0 };
	int ret = x && w ? 0 : -ENOMEM;

	for (int m = 0; !ret && m < 2; m++)
		/* the first feature, which has no ridge, is not used */
		ret = normal_init(&s[m], t->jobs + 1);
	for (size_t i = 0; !ret && i < t->rows; i++) {
		const struct pairs_row *r = &t->row[i];

		if (!isfinite(r->gpu_use) || !isfinite(r->memory_use))
			ret = -ENODATA;
		x[1 + r->job[0]]++;
		x[1 + r->job[1]]++;
		normal_add(&s[0], x, r->gpu_use);
		normal_add(&s[1], x, r->memory_use);
		x[1 + r->job[0]] = 0;
		x[1 + r->job[1]] = 0;
	}
	for (int m = 0; !ret && m < 2; m++) {
		normal_solve(&s[m], 1e-3, w);
		for (size_t i = 0; i < t->jobs; i++) {
			double *use = m ? &t->job[i].memory_use : &t->job[i].gpu_use;

			if (!isfinite(*use))
				*use = fmin(fmax(w[1 + i], 0), 1);
		}
	}
	normal_free(&s[0]);
	normal_free(&s[1]);
	free(x);
	free(w);
	return ret;
}

/* ---- fitting ---- */

/**
 * struct fit - a model with what is still to be chosen
 * @p: the model; its weights of linear predictors are one of those below
 * @additive: weights by ridge
 * @ridge: weights by ridge
 */
struct fit {
	struct learn_pairs *p;
	double *additive[NR_RIDGES];
	double *ridge[NR_RIDGES];
};

/* Columns of predictions: each value that can be chosen has its own. */
enum {
	COLUMN_CONSTANT,
	COLUMN_ADDITIVE,
	COLUMN_NEAREST = COLUMN_ADDITIVE + NR_RIDGES,
	COLUMN_RIDGE = COLUMN_NEAREST + NR_REACHES,
	COLUMN_TREES = COLUMN_RIDGE + NR_RIDGES,
	COLUMNS,
};

static void fit_free(struct fit *f)
{
	for (size_t i = 0; i < NR_RIDGES; i++) {
		free(f->additive[i]);
		free(f->ridge[i]);
	}
	if (f->p) {
		f->p->additive = NULL;
		f->p->ridge = NULL;
	}
	learn_pairs_free(f->p);
	*f = (struct fit){ 0 };
}

/* Collect jobs, words and observations. */
static int collect(struct learn_pairs *p, const struct part *part)
{
	p->job = calloc(2 * part->n + 1, sizeof(*p->job));
	p->seen = calloc(2 * part->n + 1, sizeof(*p->seen));
	if (!p->job || !p->seen)
		return -ENOMEM;
	for (size_t i = 0; i < part->n; i++) {
		for (int side = 0; side < 2; side++) {
			const struct pairs_job *job, *other;
			double speed;

			sides(part, i, side, &job, &other, &speed);
			if (pairs_find(p, job) < p->jobs)
				continue;
			p->job[p->jobs++] = *job;
			pairs_learn_words(p, job);
		}
	}
	for (size_t i = 0; i < part->n; i++) {
		for (int side = 0; side < 2; side++) {
			struct pairs_seen *s = &p->seen[p->nr_seen++];
			const struct pairs_job *job, *other;

			sides(part, i, side, &job, &other, &s->speed);
			s->job = pairs_find(p, job);
			s->other = pairs_find(p, other);
			p->constant += s->speed;
		}
	}
	p->constant /= (double)p->nr_seen;
	return 0;
}

static void row_of(const struct learn_pairs *p, bool additive, const struct pairs_seen *s,
		   double *x)
{
	if (additive)
		pairs_additive_row(p, s->job, s->other, x);
	else
		pairs_ridge_row(p, &p->job[s->job], &p->job[s->other], s->job, s->other, x);
}

static int fit_linear(const struct learn_pairs *p, bool additive, double **weights)
{
	size_t n = additive ? pairs_additive_columns(p) : pairs_ridge_columns(p);
	double *x = calloc(n, sizeof(*x));
	struct normal s;
	int ret = normal_init(&s, n);

	if (!x)
		ret = -ENOMEM;
	for (size_t i = 0; !ret && i < p->nr_seen; i++) {
		row_of(p, additive, &p->seen[i], x);
		normal_add(&s, x, p->seen[i].speed);
	}
	for (size_t i = 0; !ret && i < NR_RIDGES; i++) {
		weights[i] = calloc(n, sizeof(**weights));
		if (weights[i])
			normal_solve(&s, ridges[i], weights[i]);
		else
			ret = -ENOMEM;
	}
	normal_free(&s);
	free(x);
	return ret;
}

static int fit_trees(struct learn_pairs *p, const struct pairs_options *o, char *why, size_t len)
{
	size_t n = pairs_tree_columns(p);
	double *x = calloc(pairs_ridge_columns(p), sizeof(*x)), error;
	float *few = calloc(p->nr_seen * n, sizeof(*few));
	float *y = calloc(p->nr_seen, sizeof(*y));
	const struct boost_rows rows = { p->nr_seen, (unsigned int)n, few, y };
	struct boost_options boost = o->boost;
	int ret = x && few && y ? 0 : -ENOMEM;

	for (size_t i = 0; !ret && i < p->nr_seen; i++) {
		row_of(p, false, &p->seen[i], x);
		for (size_t k = 0; k < n; k++)
			few[i * n + k] = (float)x[k];
		y[i] = (float)p->seen[i].speed;
	}
	boost.seed = o->seed;
	if (!ret)
		ret = boost_train(&p->forest, &rows, NULL, &boost, &error, why, len);
	free(x);
	free(few);
	free(y);
	return ret;
}

static int fit(struct fit *f, const struct part *part, const struct pairs_options *o, char *why,
	       size_t len)
{
	int ret;

	*f = (struct fit){ .p = calloc(1, sizeof(*f->p)) };
	if (!f->p)
		return -ENOMEM;
	f->p->use = o->use;
	f->p->reach = 1;
	ret = collect(f->p, part);
	if (!ret)
		ret = fit_linear(f->p, true, f->additive);
	if (!ret)
		ret = fit_linear(f->p, false, f->ridge);
	if (!ret)
		ret = fit_trees(f->p, o, why, len);
	return ret;
}

static double predicted(const struct fit *f, const struct pairs_job *job,
			const struct pairs_job *other, enum pairs_predictor by)
{
	struct pairs_guess g = { .speed = 1 };

	learn_pairs_predict(f->p, job, other, by, &g);
	return log(g.speed);
}

static void predict_all(struct fit *f, const struct pairs_job *job,
			const struct pairs_job *other, double y[COLUMNS])
{
	y[COLUMN_CONSTANT] = predicted(f, job, other, PAIRS_CONSTANT);
	for (size_t i = 0; i < NR_RIDGES; i++) {
		f->p->additive = f->additive[i];
		f->p->ridge = f->ridge[i];
		y[COLUMN_ADDITIVE + i] = predicted(f, job, other, PAIRS_ADDITIVE);
		y[COLUMN_RIDGE + i] = predicted(f, job, other, PAIRS_RIDGE);
	}
	for (size_t i = 0; i < NR_REACHES; i++) {
		f->p->reach = reaches[i];
		y[COLUMN_NEAREST + i] = predicted(f, job, other, PAIRS_NEAREST);
	}
	y[COLUMN_TREES] = predicted(f, job, other, PAIRS_TREES);
}

/* ---- parts that are held out ---- */

static uint64_t mixed(uint64_t x)
{
	x ^= x >> 33;
	x *= UINT64_C(0xff51afd7ed558ccd);
	x ^= x >> 33;
	x *= UINT64_C(0xc4ceb9fe1a85ec53);
	return x ^ x >> 33;
}

/* The fold of a pair: that of the same jobs, whichever comes first, is the same. */
static unsigned int fold_of(const struct pairs_table *t, size_t row,
			    const struct pairs_options *o)
{
	const struct pairs_row *r = &t->row[row];
	size_t first = r->job[0] < r->job[1] ? r->job[0] : r->job[1];
	size_t second = r->job[0] + r->job[1] - first;

	return (unsigned int)(mixed(o->seed * 1000003 + first * PAIRS_JOBS_MAX + second) %
			      o->folds);
}

static bool of_model(const struct pairs_table *t, size_t row, const char *model)
{
	return !strcmp(t->job[t->row[row].job[0]].model, model) ||
		!strcmp(t->job[t->row[row].job[1]].model, model);
}

/* Divide pairs in those to train on and those held out. */
static int divide(const struct part *all, struct part *train, struct part *held,
		  const char *model, unsigned int fold, const struct pairs_options *o)
{
	*train = (struct part){ .t = all->t, .row = calloc(all->n + 1, sizeof(size_t)) };
	*held = (struct part){ .t = all->t, .row = calloc(all->n + 1, sizeof(size_t)) };
	if (!train->row || !held->row)
		return -ENOMEM;
	for (size_t i = 0; i < all->n; i++) {
		size_t row = all->row[i];
		bool out = model ? of_model(all->t, row, model) :
			fold_of(all->t, row, o) == fold;
		struct part *to = out ? held : train;

		to->row[to->n++] = row;
	}
	return 0;
}

/* Names of the models of jobs in a part, for free(). */
static const char **models_of(const struct part *part, size_t *n)
{
	const char **name = calloc(2 * part->n + 1, sizeof(*name));

	*n = 0;
	for (size_t i = 0; name && i < 2 * part->n; i++) {
		const struct pairs_row *r = &part->t->row[part->row[i / 2]];
		const char *model = part->t->job[r->job[i % 2]].model;
		size_t k;

		for (k = 0; k < *n && strcmp(name[k], model); k++)
			;
		if (k == *n)
			name[(*n)++] = model;
	}
	return name;
}

/**
 * struct trial - a prediction for a pair that was held out
 * @y: logarithm of the measured speed
 * @at: predictions
 * @models: a whole model of jobs was held out
 * @novelty: which of both jobs was held out
 */
struct trial {
	double y;
	double at[COLUMNS];
	bool models;
	enum pairs_novelty novelty;
};

/* Trials of cross-validation. */
struct trials {
	struct trial *trial;
	size_t n;
};

/* Hold out a part. Both parts must have pairs; if not, nothing is done. */
static int try_part(struct trials *all, const struct part *part, const char *model,
		    unsigned int fold, const struct pairs_options *o, char *why, size_t len)
{
	struct part train = { 0 }, held = { 0 };
	struct fit f = { 0 };
	int ret = divide(part, &train, &held, model, fold, o);

	if (!ret && train.n && held.n) {
		ret = fit(&f, &train, o, why, len);
		for (size_t i = 0; !ret && i < 2 * held.n; i++) {
			struct trial *trial = &all->trial[all->n++];
			const struct pairs_job *job, *other;

			sides(&held, i / 2, i % 2, &job, &other, &trial->y);
			trial->models = model;
			trial->novelty = pairs_novelty(f.p, pairs_find(f.p, job),
						       pairs_find(f.p, other));
			predict_all(&f, job, other, trial->at);
		}
		fit_free(&f);
	}
	free(train.row);
	free(held.row);
	return ret;
}

static int cross(struct trials *all, const struct part *part, const struct pairs_options *o,
		 char *why, size_t len)
{
	size_t models;
	const char **name = models_of(part, &models);
	int ret = 0;

	/* a pair is held out once in a part, and once with each of its models */
	*all = (struct trials){ .trial = calloc(6 * part->n + 1, sizeof(*all->trial)) };
	if (!name || !all->trial)
		ret = -ENOMEM;
	for (unsigned int i = 0; !ret && i < o->folds; i++)
		ret = try_part(all, part, NULL, i, o, why, len);
	for (size_t i = 0; !ret && models > 1 && i < models; i++)
		ret = try_part(all, part, name[i], 0, o, why, len);
	free(name);
	return ret;
}

/* ---- choosing ---- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Return the smallest of the values that a part of them does not exceed; sorts them. */
static double percentile(double *v, size_t n, double part)
{
	size_t at = (size_t)ceil(part * (double)n);

	if (!n)
		return NAN;
	qsort(v, n, sizeof(*v), compare);
	return v[at ? (at > n ? n : at) - 1 : 0];
}

static double mean_error(const struct trials *all, size_t column, bool models)
{
	double sum = 0, n = 0;

	for (size_t i = 0; i < all->n; i++) {
		if (all->trial[i].models != models)
			continue;
		sum += fabs(all->trial[i].at[column] - all->trial[i].y);
		n++;
	}
	return n > 0 ? sum / n : 0;
}

static size_t best_column(const struct trials *all, size_t first, size_t n, bool models)
{
	size_t best = first;

	for (size_t i = first; i < first + n; i++)
		if (mean_error(all, i, models) < mean_error(all, best, models))
			best = i;
	return best;
}

/* Column of each predictor. Jobs alone say nothing of new models. */
static void choose_columns(const struct trials *all, size_t column[PAIRS_BLEND])
{
	bool models = false;

	for (size_t i = 0; i < all->n; i++)
		models |= all->trial[i].models;
	column[PAIRS_CONSTANT] = COLUMN_CONSTANT;
	column[PAIRS_ADDITIVE] = best_column(all, COLUMN_ADDITIVE, NR_RIDGES, false);
	column[PAIRS_NEAREST] = best_column(all, COLUMN_NEAREST, NR_REACHES, models);
	column[PAIRS_RIDGE] = best_column(all, COLUMN_RIDGE, NR_RIDGES, models);
	column[PAIRS_TREES] = COLUMN_TREES;
}

/* Return a novelty of which there are trials: that one, or the most similar one. */
static enum pairs_novelty stand_in(const struct trials *all, enum pairs_novelty novelty)
{
	size_t n[PAIRS_NOVELTIES] = { 0 };

	for (size_t i = 0; i < all->n; i++)
		n[all->trial[i].novelty]++;
	while (novelty > PAIRS_SEEN && !n[novelty])
		novelty--;
	return novelty;
}

#define BLEND_STEPS	400
#define BLEND_RATE	2.0

/* Weights that sum to 1, by exponentiated gradient on the mean absolute error. */
static void choose_blend(const struct trials *all, const size_t column[PAIRS_BLEND],
			 enum pairs_novelty novelty, double w[PAIRS_BLEND])
{
	novelty = stand_in(all, novelty);
	for (int k = 0; k < PAIRS_BLEND; k++)
		w[k] = 1.0 / PAIRS_BLEND;
	for (int step = 0; step < BLEND_STEPS; step++) {
		double slope[PAIRS_BLEND] = { 0 }, sum = 0, n = 0;

		for (size_t i = 0; i < all->n; i++) {
			const struct trial *t = &all->trial[i];
			double off = -t->y;

			if (t->novelty != novelty)
				continue;
			n++;
			for (int k = 0; k < PAIRS_BLEND; k++)
				off += w[k] * t->at[column[k]];
			for (int k = 0; k < PAIRS_BLEND; k++)
				slope[k] += (off > 0 ? 1 : -1) * t->at[column[k]];
		}
		for (int k = 0; k < PAIRS_BLEND; k++) {
			w[k] *= exp(-BLEND_RATE * slope[k] / fmax(n, 1));
			sum += w[k];
		}
		for (int k = 0; k < PAIRS_BLEND; k++)
			w[k] /= sum;
	}
}

/* The error that a tenth of the trials exceeds, with one more for few trials. */
static double choose_off(const struct trials *all, const size_t column[PAIRS_BLEND],
			 const double w[PAIRS_BLEND], enum pairs_predictor by,
			 enum pairs_novelty novelty, double *room)
{
	size_t n = 0;

	novelty = stand_in(all, novelty);
	for (size_t i = 0; i < all->n; i++) {
		const struct trial *t = &all->trial[i];
		double off = -t->y;

		if (t->novelty != novelty)
			continue;
		if (by < PAIRS_BLEND)
			off += t->at[column[by]];
		else
			for (int k = 0; k < PAIRS_BLEND; k++)
				off += w[k] * t->at[column[k]];
		room[n++] = fabs(off);
	}
	return n ? fmin(percentile(room, n, 0.9 * (double)(n + 1) / (double)n), 10) : 10;
}

static int choose(struct learn_pairs *p, struct fit *f, const struct trials *all)
{
	double *room = calloc(all->n + 1, sizeof(*room));
	size_t column[PAIRS_BLEND], a, r;

	if (!room)
		return -ENOMEM;
	choose_columns(all, column);
	for (enum pairs_novelty i = 0; i < PAIRS_NOVELTIES; i++) {
		choose_blend(all, column, i, p->blend[i]);
		for (enum pairs_predictor k = 0; k < PAIRS_PREDICTORS; k++)
			p->off[i][k] = choose_off(all, column, p->blend[i], k, i, room);
	}
	free(room);
	p->reach = reaches[column[PAIRS_NEAREST] - COLUMN_NEAREST];
	a = column[PAIRS_ADDITIVE] - COLUMN_ADDITIVE;
	r = column[PAIRS_RIDGE] - COLUMN_RIDGE;
	p->additive = f->additive[a];
	p->ridge = f->ridge[r];
	f->additive[a] = NULL;
	f->ridge[r] = NULL;
	return 0;
}

/* ---- the table of classes ---- */

#define WEIGHT_LEAST	1.0
#define WEIGHT_MOST	64.0

/* Mean and sum of squares that are updated by each value. */
struct mean {
	double n, mean, square;
};

static void mean_add(struct mean *m, double value)
{
	double d = value - m->mean;

	m->n++;
	m->mean += d / m->n;
	m->square += d * (value - m->mean);
}

static int class_of(const struct learn_pairs *p, size_t job)
{
	double bound = learn_pairs_bound(p, &p->job[job]);

	return isnan(bound) ? -1 : bound >= PAIRS_BOUND;
}

/*
 * Slowdowns of a pair of classes: their mean, and the observations that it counts as. A host
 * runs few models of jobs, and its own mean is as far from this one as means of models are;
 * its observations scatter as those of a model do. The weight is the ratio of both variances.
 */
static void fit_class(struct learn_pairs *p, const int class[PAIRS_JOBS_MAX], int a, int b)
{
	struct mean all = { 0 }, of_models = { 0 };
	double within = 0, groups = 0, error = 0;

	for (size_t first = 0; first < p->jobs; first++) {
		struct mean m = { 0 };
		size_t k;

		/* the first job of each model stands for it */
		for (k = 0; strcmp(p->job[k].model, p->job[first].model); k++)
			;
		if (k < first)
			continue;
		for (size_t i = 0; i < p->nr_seen; i++) {
			const struct pairs_seen *s = &p->seen[i];
			double slow = exp(-s->speed) - 1;

			if (strcmp(p->job[s->job].model, p->job[first].model) ||
			    class[s->job] != a || class[s->other] != b)
				continue;
			mean_add(&m, slow);
			mean_add(&all, slow);
		}
		if (m.n < 2)
			continue;
		mean_add(&of_models, m.mean);
		within += m.square / (m.n - 1);
		error += m.square / (m.n - 1) / m.n;
		groups++;
	}
	if (of_models.n < 2)
		return;
	within /= groups;
	/* the variance of models, less what the scatter of their own means explains */
	error = fmax(of_models.square / (of_models.n - 1) - error / groups,
		     within / WEIGHT_MOST);
	p->slow[a][b] = fmin(fmax(all.mean, -0.2), 100);
	p->weight[a][b] = error > 0 ? fmin(fmax(within / error, WEIGHT_LEAST), WEIGHT_MOST) :
		WEIGHT_MOST;
}

static void fit_classes(struct learn_pairs *p)
{
	int class[PAIRS_JOBS_MAX];

	for (size_t i = 0; i < p->jobs; i++)
		class[i] = class_of(p, i);
	for (int i = 0; i < 4; i++)
		fit_class(p, class, i / 2, i % 2);
}

/* ---- all of it ---- */

static int check(const struct part *part, const struct pairs_options *o, char *why, size_t len)
{
	if (o->folds < 2 || o->folds > 20) {
		snprintf(why, len, "folds must be from 2 to 20");
		return -EINVAL;
	}
	if (part->n < 2 * o->folds) {
		snprintf(why, len, "%zu pairs are too few; measure more", part->n);
		return -EINVAL;
	}
	for (size_t i = 0; o->use && i < part->t->jobs; i++) {
		const struct pairs_job *j = &part->t->job[i];

		if (isfinite(j->gpu_use) && isfinite(j->memory_use))
			continue;
		snprintf(why, len, "no utilisation alone of %s on %s; train without it", j->model,
			 j->dataset);
		return -EINVAL;
	}
	return 0;
}

static int train_part(struct learn_pairs **p, const struct part *part,
		      const struct pairs_options *o, char *why, size_t len)
{
	struct trials all = { 0 };
	struct fit f = { 0 };
	int ret = check(part, o, why, len);

	*p = NULL;
	if (!ret)
		ret = cross(&all, part, o, why, len);
	if (!ret)
		ret = fit(&f, part, o, why, len);
	if (!ret)
		ret = choose(f.p, &f, &all);
	if (!ret) {
		fit_classes(f.p);
		*p = f.p;
		f.p = NULL;
	}
	fit_free(&f);
	free(all.trial);
	if (ret == -ENOMEM)
		snprintf(why, len, "%s", strerror(ENOMEM));
	return ret;
}

static int whole(struct part *part, const struct pairs_table *t)
{
	*part = (struct part){ .t = t, .n = t->rows, .row = calloc(t->rows + 1, sizeof(size_t)) };
	for (size_t i = 0; part->row && i < t->rows; i++)
		part->row[i] = i;
	return part->row ? 0 : -ENOMEM;
}

int pairs_train(struct learn_pairs **p, const struct pairs_table *t,
		const struct pairs_options *o, char *why, size_t len)
{
	struct part part;
	int ret = whole(&part, t);

	*p = NULL;
	why[0] = '\0';
	if (!ret)
		ret = train_part(p, &part, o, why, len);
	free(part.row);
	return ret;
}

/* ---- evaluation ---- */

/**
 * struct evaluation - errors of a predictor
 * @error: relative errors of speeds
 * @width: widths of intervals
 * @n: their number
 * @covered: speeds that are in their interval
 * @rank: sum of rank correlations
 * @ranks: their number
 */
struct evaluation {
	double *error;
	double *width;
	size_t n;
	size_t covered;
	double rank;
	double ranks;
};

/* Replace values by their ranks, the mean of the ranks for equal ones; @sorted: room for them. */
static void to_ranks(double *v, double *sorted, size_t n)
{
	memcpy(sorted, v, n * sizeof(*v));
	qsort(sorted, n, sizeof(*v), compare);
	for (size_t i = 0; i < n; i++) {
		size_t low = 0, high;

		while (sorted[low] < v[i])
			low++;
		for (high = low; high < n && sorted[high] <= v[i]; high++)
			;
		v[i] = (double)(low + high - 1) / 2;
	}
}

/* Rank correlation, NAN if one of both is constant; replaces the values; @room: for @n more. */
static double spearman(double *x, double *y, double *room, size_t n)
{
	double xx = 0, xy = 0, yy = 0, middle = ((double)n - 1) / 2;

	to_ranks(x, room, n);
	to_ranks(y, room, n);
	for (size_t i = 0; i < n; i++) {
		xx += (x[i] - middle) * (x[i] - middle);
		xy += (x[i] - middle) * (y[i] - middle);
		yy += (y[i] - middle) * (y[i] - middle);
	}
	return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : NAN;
}

static int judge(struct evaluation *e, const struct learn_pairs *p, const struct part *held,
		 enum pairs_predictor by)
{
	double *sum = calloc(3 * held->n + 1, sizeof(*sum)), *real, rank;

	if (!sum)
		return -ENOMEM;
	real = sum + held->n;
	for (size_t i = 0; i < 2 * held->n; i++) {
		const struct pairs_job *job, *other;
		struct pairs_guess g;
		double y;

		sides(held, i / 2, i % 2, &job, &other, &y);
		learn_pairs_predict(p, job, other, by, &g);
		y = exp(y);
		e->error[e->n] = fabs(g.speed - y) / y;
		e->width[e->n++] = g.high - g.low;
		e->covered += y >= g.low && y <= g.high;
		sum[i / 2] += g.speed;
		real[i / 2] += y;
	}
	rank = spearman(sum, real, real + held->n, held->n);
	if (!isnan(rank)) {
		e->rank += rank;
		e->ranks++;
	}
	free(sum);
	return 0;
}

static int evaluate_part(struct evaluation e[PAIRS_PREDICTORS], const struct part *all,
			 const char *model, unsigned int fold, const struct pairs_options *o,
			 char *why, size_t len)
{
	struct part train = { 0 }, held = { 0 };
	struct learn_pairs *p = NULL;
	/* other parts than those that the model is chosen by */
	struct pairs_options outer = *o;
	int ret;

	outer.seed += 7919;
	ret = divide(all, &train, &held, model, fold, &outer);
	if (!ret && held.n)
		ret = train_part(&p, &train, o, why, len);
	for (enum pairs_predictor i = 0; !ret && held.n && i < PAIRS_PREDICTORS; i++)
		ret = judge(&e[i], p, &held, i);
	learn_pairs_free(p);
	free(train.row);
	free(held.row);
	return ret;
}

int pairs_evaluate(struct pairs_score score[PAIRS_PREDICTORS], const struct pairs_table *t,
		   const struct pairs_options *o, bool models, char *why, size_t len)
{
	struct evaluation e[PAIRS_PREDICTORS] = { 0 };
	struct part all;
	int ret = whole(&all, t);
	size_t parts = o->folds;
	const char **name = ret ? NULL : models_of(&all, &parts);

	why[0] = '\0';
	if (!name)
		ret = -ENOMEM;
	if (!models)
		parts = o->folds;
	/* a pair is held out with each of its models */
	for (int i = 0; !ret && i < PAIRS_PREDICTORS; i++) {
		e[i].error = calloc(4 * t->rows + 1, sizeof(double));
		e[i].width = calloc(4 * t->rows + 1, sizeof(double));
		ret = e[i].error && e[i].width ? 0 : -ENOMEM;
	}
	for (size_t i = 0; !ret && i < parts; i++)
		ret = evaluate_part(e, &all, models ? name[i] : NULL, (unsigned int)i, o, why, len);
	for (int i = 0; i < PAIRS_PREDICTORS; i++) {
		if (!ret)
			score[i] = (struct pairs_score){
				.n = e[i].n, .median_err = percentile(e[i].error, e[i].n, 0.5),
				.p90_err = percentile(e[i].error, e[i].n, 0.9),
				.spearman = e[i].ranks > 0 ? e[i].rank / e[i].ranks : NAN,
				.coverage_90 = (double)e[i].covered / fmax((double)e[i].n, 1),
				.width = percentile(e[i].width, e[i].n, 0.5),
			};
		free(e[i].error);
		free(e[i].width);
	}
	free(name);
	free(all.row);
	if (ret == -ENOMEM)
		snprintf(why, len, "%s", strerror(ENOMEM));
	return ret;
}
