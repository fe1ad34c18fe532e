// SPDX-License-Identifier: GPL-2.0-only
/*
 * The choice of a GPU.  Pure.
 *
 * The history keeps the last CHOICE_ROWS runs of each kind of work on each model of GPU, whole and
 * vGPU apart.  All statistics are medians of natural logarithms, so that a single odd run changes
 * little: of the time per MiB of data for a request that says its amount of data, else of the
 * time.  A median of few runs is drawn towards what the other models and kinds suggest (SHRINK
 * runs' worth): the kind's mean over models, and the model's median effect over kinds.
 *
 * Score of a GPU, less is better: expected time to that of the fastest candidate; minus half of
 * what the model gains for the average kind, so that work that gains nothing from a fast GPU
 * leaves it to others; a quarter of the energy to that of the thriftiest; and a penalty for a
 * GPU that is slow at the wanted precision (without runs that show it), has less memory than the
 * kind used before, or failed to attach the last time.  Best fit decides among GPUs within TIE.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "choice.h"
#include "place.h"
#include "table.h"

#define SHRINK		3.0	/* runs */
#define GAIN_OF_OTHERS	0.5
#define ENERGY		0.25
#define SLOW_PRECISION	0.7	/* about twice the time */
#define SMALL_MEMORY	4.0
#define FAILED		8.0
#define TIE		0.05

/* ---- the hard filter ---- */

const char *choice_reason_text(enum choice_reason reason, enum pool_target wanted, unsigned int nr)
{
	static const char *const texts[CHOICE_REASONS][2] = {
		[CHOICE_FITS] = { "is free", "are free" },
		[CHOICE_TARGET] = { "gives no vGPUs", "give no vGPUs" },
		[CHOICE_CAPABILITY] = { "lacks a capability", "lack a capability" },
		[CHOICE_TYPE] = { "lacks the vGPU type", "lack the vGPU type" },
		[CHOICE_MEMORY] = { "has too little memory", "have too little memory" },
		[CHOICE_OFFLINE] = { "is offline", "are offline" },
		[CHOICE_ABSENT] = { "is absent from the host", "are absent from the host" },
		[CHOICE_FOREIGN] = { "is attached outside of the pool",
				     "are attached outside of the pool" },
		[CHOICE_GROUP] = { "shares its IOMMU group with a GPU in use",
				   "share their IOMMU group with a GPU in use" },
		[CHOICE_FULL] = { "is in use", "are in use" },
		[CHOICE_KEPT] = { "is kept for a request that waits longer",
				  "are kept for requests that wait longer" },
	};
	bool many = nr != 1;

	if (reason >= CHOICE_REASONS)
		return "unknown";
	if (reason == CHOICE_TARGET && wanted == POOL_WHOLE)
		return many ? "give vGPUs only" : "gives vGPUs only";
	return texts[reason][many];
}

/* A vGPU type of a list. */
struct type {
	char name[POOL_TYPE_MAX];
	uint32_t slots;
	uint32_t capabilities;
};

/* Take the next type of a list. Return false at the end. */
static bool next_type(const struct pool_gpu *gpu, const char **at, struct type *type)
{
	char word[2 * POOL_TYPE_MAX], *rest = word;
	const char *part;
	size_t len;
	int mask;

	*at += strspn(*at, " ");
	len = strcspn(*at, " ");
	if (!len)
		return false;
	snprintf(word, sizeof(word), "%.*s", (int)len, *at);
	*at += len;
	snprintf(type->name, sizeof(type->name), "%s", strsep(&rest, ":"));
	part = strsep(&rest, ":");
	type->slots = part ? (uint32_t)strtoul(part, NULL, 10) : 1;
	/* "none" is no capability that has a name. */
	mask = rest ? pool_capabilities_of(rest) : (int)gpu->capabilities;
	type->capabilities = mask > 0 ? (uint32_t)mask : 0;
	return true;
}

uint32_t choice_type_slots(const struct pool_gpu *gpu, const char *name)
{
	const char *at = gpu->types;
	struct type type;

	while (next_type(gpu, &at, &type))
		if (!strcmp(type.name, name))
			return type.slots;
	return 0;
}

/* Memory of a vGPU that takes @slots, MiB; 0: unknown. */
static uint64_t memory_of(const struct pool_gpu *gpu, uint32_t slots)
{
	return gpu->slots ? (uint64_t)gpu->memory_mib * slots / gpu->slots : 0;
}

static enum choice_reason fit_type(const struct pool_gpu *gpu, const struct pool_request *r,
				   char name[POOL_TYPE_MAX], uint32_t *slots)
{
	enum choice_reason reason = CHOICE_TYPE;
	const char *at = gpu->types;
	struct type type;

	while (next_type(gpu, &at, &type)) {
		if (r->type[0] && strcmp(r->type, type.name))
			continue;
		if (!type.slots || type.slots > gpu->slots)
			continue;
		if (r->capabilities & ~type.capabilities) {
			reason = CHOICE_CAPABILITY;
		} else if (gpu->memory_mib && memory_of(gpu, type.slots) < r->memory_mib) {
			reason = CHOICE_MEMORY;
		} else {
			strcpy(name, type.name);
			*slots = type.slots;
			return CHOICE_FITS;
		}
	}
	return reason;
}

enum choice_reason choice_fit(const struct pool_gpu *gpu, const struct pool_request *r,
			      char type[POOL_TYPE_MAX], uint32_t *slots)
{
	char name[POOL_TYPE_MAX] = "";
	enum choice_reason reason;

	if ((r->target != POOL_ANY && r->target != gpu->target) ||
	    (r->type[0] && gpu->target == POOL_WHOLE))
		return CHOICE_TARGET;
	if (r->capabilities & ~gpu->capabilities)
		return CHOICE_CAPABILITY;
	*slots = 1;
	if (gpu->target == POOL_VGPU) {
		reason = fit_type(gpu, r, name, slots);
		if (reason != CHOICE_FITS)
			return reason;
	} else if (gpu->memory_mib && gpu->memory_mib < r->memory_mib) {
		return CHOICE_MEMORY;
	}
	if (type)
		memcpy(type, name, POOL_TYPE_MAX);
	return CHOICE_FITS;
}

/* ---- the history ---- */

/* The figures of a run. */
struct row {
	double seconds;
	uint64_t size_mib;
	uint64_t energy_mj;
	uint32_t memory_mib;
	enum pool_precision precision;
};

/**
 * struct cell - runs of a kind on a model
 * @effect: what the model does for all kinds
 * @nr: rows that are there
 * @next: row that the next run replaces
 * @rate: median of ln(seconds per MiB) of rows with a size
 * @nr_rate: how many these are
 * @time: median of ln(seconds) of all rows
 */
struct cell {
	struct effect *effect;
	struct row rows[CHOICE_ROWS];
	unsigned int nr;
	unsigned int next;
	double rate;
	unsigned int nr_rate;
	double time;
};

struct kind {
	char name[POOL_NAME_MAX];
	struct cell *cells;
	size_t nr;
	uint64_t learned;
};

/**
 * struct effect - what a model does for all kinds
 * @value: median over kinds of ln(time) to the kind's mean over models
 */
struct effect {
	char model[POOL_MODEL_MAX];
	enum pool_target target;
	double value;
};

/**
 * struct choice - the history, and room for a decision
 * @kinds: struct kind by name
 * @effects: struct effect by model and target
 * @learned: rows learned, ever
 * @stale: effects are to be computed anew
 * @nodes: room for candidates as nodes of ctl/place
 * @scores: and for their scores
 */
struct choice {
	struct table kinds;
	struct table effects;
	uint64_t learned;
	bool stale;
	struct place_node *nodes;
	struct score *scores;
	size_t *left;
	size_t room;
};

/* A candidate's score, and what is behind it. */
struct score {
	struct choice_estimate e;
	double value;
};

static int compare_kind(const void *key, const void *thing)
{
	return strcmp(key, ((const struct kind *)thing)->name);
}

static int compare_effect(const void *key, const void *thing)
{
	const struct effect *a = key, *b = thing;
	int order = strcmp(a->model, b->model);

	return order ? order : (int)a->target - (int)b->target;
}

struct choice *choice_new(void)
{
	struct choice *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->kinds.compare = compare_kind;
	c->effects.compare = compare_effect;
	return c;
}

static void kind_free(struct kind *kind)
{
	if (kind)
		free(kind->cells);
	free(kind);
}

void choice_free(struct choice *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->kinds.nr; i++)
		kind_free(c->kinds.at[i]);
	for (size_t i = 0; i < c->effects.nr; i++)
		free(c->effects.at[i]);
	table_free(&c->kinds);
	table_free(&c->effects);
	free(c->nodes);
	free(c->scores);
	free(c->left);
	free(c);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Quantile of values, which are sorted; 0.5 is the median. */
static double quantile(double *values, size_t nr, double q)
{
	double at;
	size_t low;

	if (!nr)
		return 0;
	qsort(values, nr, sizeof(*values), by_value);
	at = q * (double)(nr - 1);
	low = (size_t)at;
	if (low + 1 == nr)
		return values[low];
	return values[low] + (at - (double)low) * (values[low + 1] - values[low]);
}

static double median(double *values, size_t nr)
{
	return quantile(values, nr, 0.5);
}

static void summarise(struct cell *cell)
{
	double rates[CHOICE_ROWS], times[CHOICE_ROWS];

	cell->nr_rate = 0;
	for (unsigned int i = 0; i < cell->nr; i++) {
		const struct row *row = &cell->rows[i];

		times[i] = log(row->seconds);
		if (row->size_mib)
			rates[cell->nr_rate++] = times[i] - log((double)row->size_mib);
	}
	cell->time = median(times, cell->nr);
	cell->rate = median(rates, cell->nr_rate);
}

/* Forget the kind that was not learned for longest. */
static void forget_kind(struct choice *c)
{
	const struct kind *oldest = c->kinds.at[0];

	for (size_t i = 1; i < c->kinds.nr; i++) {
		const struct kind *kind = c->kinds.at[i];

		if (kind->learned < oldest->learned)
			oldest = kind;
	}
	kind_free(table_remove(&c->kinds, oldest->name));
}

static struct kind *kind_of(struct choice *c, const char *name)
{
	struct kind *kind = table_find(&c->kinds, name);

	if (kind)
		return kind;
	if (c->kinds.nr == CHOICE_KINDS)
		forget_kind(c);
	kind = calloc(1, sizeof(*kind));
	if (!kind)
		return NULL;
	snprintf(kind->name, sizeof(kind->name), "%s", name);
	if (table_add(&c->kinds, name, kind)) {
		free(kind);
		return NULL;
	}
	return kind;
}

static struct effect effect_key(const char *model, enum pool_target target)
{
	struct effect key = { .target = target };

	snprintf(key.model, sizeof(key.model), "%s", model);
	return key;
}

static struct effect *effect_of(struct choice *c, const char *model, enum pool_target target)
{
	struct effect key = effect_key(model, target);
	struct effect *effect = table_find(&c->effects, &key);

	if (effect)
		return effect;
	effect = malloc(sizeof(*effect));
	if (!effect)
		return NULL;
	*effect = key;
	if (table_add(&c->effects, &key, effect)) {
		free(effect);
		return NULL;
	}
	return effect;
}

static struct cell *cell_of(struct kind *kind, struct effect *effect)
{
	struct cell *more;

	for (size_t i = 0; i < kind->nr; i++)
		if (kind->cells[i].effect == effect)
			return &kind->cells[i];
	more = realloc(kind->cells, (kind->nr + 1) * sizeof(*more));
	if (!more)
		return NULL;
	kind->cells = more;
	more += kind->nr++;
	*more = (struct cell){ .effect = effect };
	return more;
}

int choice_learn(struct choice *c, const struct pool_outcome *outcome)
{
	struct effect *effect;
	struct kind *kind;
	struct cell *cell;

	if (!outcome->done || !(outcome->seconds > 0) || !isfinite(outcome->seconds))
		return 0;
	effect = effect_of(c, outcome->model, outcome->target);
	kind = effect ? kind_of(c, outcome->kind) : NULL;
	cell = kind ? cell_of(kind, effect) : NULL;
	if (!cell)
		return -ENOMEM;
	cell->rows[cell->next] = (struct row){
		.seconds = outcome->seconds,
		.size_mib = outcome->size_mib,
		.energy_mj = outcome->energy_mj,
		.memory_mib = outcome->memory_mib,
		.precision = outcome->precision,
	};
	cell->next = (cell->next + 1) % CHOICE_ROWS;
	if (cell->nr < CHOICE_ROWS)
		cell->nr++;
	summarise(cell);
	kind->learned = ++c->learned;
	c->stale = true;
	return 0;
}

/* ---- estimates ---- */

/* Runs and median of a cell, per MiB or not. */
static unsigned int runs_of(const struct cell *cell, bool sized, double *value)
{
	*value = sized ? cell->rate : cell->time;
	return sized ? cell->nr_rate : cell->nr;
}

/* The kind's mean over models of what is not the models' effect. Return its runs. */
static unsigned int centre(const struct kind *kind, bool sized, bool with_effects, double *value)
{
	unsigned int runs = 0;
	double sum = 0, one;

	for (size_t i = 0; i < kind->nr; i++) {
		unsigned int nr = runs_of(&kind->cells[i], sized, &one);

		if (!nr)
			continue;
		sum += (one - (with_effects ? kind->cells[i].effect->value : 0)) *
			(with_effects ? nr : 1);
		runs += with_effects ? nr : 1;
	}
	*value = runs ? sum / runs : 0;
	return runs;
}

/* Deviation of a model from the kind's mean, for kinds that ran on several models. */
static bool deviation(const struct kind *kind, const struct effect *effect, double *value)
{
	for (size_t i = 0; i < kind->nr; i++) {
		bool sized = kind->cells[i].nr_rate == kind->cells[i].nr;
		double one, mean;

		if (kind->cells[i].effect != effect || !runs_of(&kind->cells[i], sized, &one))
			continue;
		if (centre(kind, sized, false, &mean) < 2)
			return false;
		*value = one - mean;
		return true;
	}
	return false;
}

static void update_effects(struct choice *c)
{
	double values[CHOICE_KINDS];

	if (!c->stale)
		return;
	for (size_t e = 0; e < c->effects.nr; e++) {
		struct effect *effect = c->effects.at[e];
		size_t nr = 0;

		for (size_t k = 0; k < c->kinds.nr; k++)
			nr += deviation(c->kinds.at[k], effect, &values[nr]);
		effect->value = median(values, nr);
	}
	c->stale = false;
}

static const struct cell *find_cell(const struct kind *kind, const struct pool_gpu *gpu)
{
	for (size_t i = 0; i < kind->nr; i++)
		if (kind->cells[i].effect->target == gpu->target &&
		    !strcmp(kind->cells[i].effect->model, gpu->model))
			return &kind->cells[i];
	return NULL;
}

/* Median energy of runs, scaled to the size; 0: unknown. */
static double energy_of(const struct cell *cell, uint64_t size_mib)
{
	double values[CHOICE_ROWS];
	size_t nr = 0;

	for (unsigned int i = 0; i < cell->nr; i++) {
		const struct row *row = &cell->rows[i];

		if (row->energy_mj && (!size_mib || row->size_mib))
			values[nr++] = (double)row->energy_mj /
				(size_mib ? (double)row->size_mib : 1);
	}
	return median(values, nr) * (size_mib ? (double)size_mib : 1);
}

/* Memory that 9 of 10 runs of the kind kept within, on any model; 0: unknown. */
static uint32_t memory_used(const struct kind *kind)
{
	double most = 0;

	for (size_t i = 0; i < kind->nr; i++) {
		double values[CHOICE_ROWS], used;
		size_t nr = 0;

		for (unsigned int k = 0; k < kind->cells[i].nr; k++)
			if (kind->cells[i].rows[k].memory_mib)
				values[nr++] = kind->cells[i].rows[k].memory_mib;
		used = quantile(values, nr, 0.9);
		if (used > most)
			most = used;
	}
	return (uint32_t)most;
}

bool choice_expect(struct choice *c, const struct pool_request *r, const struct pool_gpu *gpu,
		   struct choice_estimate *estimate)
{
	const struct kind *kind = table_find(&c->kinds, r->kind);
	struct effect key = effect_key(gpu->model, gpu->target);
	const struct effect *effect = table_find(&c->effects, &key);
	const struct cell *cell;
	double own = 0, other;
	bool sized = r->size_mib;

	*estimate = (struct choice_estimate){ 0 };
	if (!kind)
		return false;
	update_effects(c);
	/* Runs without a size say nothing of one. */
	if (sized && !centre(kind, true, true, &other))
		sized = false;
	centre(kind, sized, true, &other);
	if (effect)
		estimate->model_effect = effect->value;
	other += estimate->model_effect;
	cell = find_cell(kind, gpu);
	if (cell) {
		estimate->runs = runs_of(cell, sized, &own);
		estimate->energy_mj = energy_of(cell, sized ? r->size_mib : 0);
	}
	estimate->memory_mib = memory_used(kind);
	estimate->seconds = exp((estimate->runs * own + SHRINK * other) /
				(estimate->runs + SHRINK)) * (sized ? (double)r->size_mib : 1);
	return true;
}

/* ---- the choice ---- */

static bool make_room(struct choice *c, size_t nr)
{
	struct place_node *nodes;
	struct score *scores;
	size_t *left;

	if (nr <= c->room)
		return true;
	nodes = realloc(c->nodes, nr * sizeof(*nodes));
	if (nodes)
		c->nodes = nodes;
	scores = realloc(c->scores, nr * sizeof(*scores));
	if (scores)
		c->scores = scores;
	left = realloc(c->left, nr * sizeof(*left));
	if (left)
		c->left = left;
	if (!nodes || !scores || !left)
		return false;
	c->room = nr;
	return true;
}

/* Thousandths of a GPU. */
static uint32_t thousandths(const struct pool_gpu *gpu, uint32_t slots)
{
	return gpu->slots ? (uint32_t)((uint64_t)slots * PLACE_WHOLE / gpu->slots) : 0;
}

/*
 * A candidate as a node of ctl/place with one GPU: what is left of it with the request on it.  The
 * node's CPU stands for memory, of which a whole GPU leaves what the request does not need.
 */
static struct place_node node_of(const struct choice_candidate *c, const struct pool_request *r)
{
	const struct pool_gpu *gpu = c->gpu;
	uint64_t left = memory_of(gpu, c->free - c->need), memory = gpu->memory_mib;
	struct place_node node = {
		.nr_gpus = 1,
		.gpu_free = { (uint16_t)(1 + thousandths(gpu, c->free - c->need)) },
	};

	if (gpu->target == POOL_WHOLE)
		left = memory > r->memory_mib ? memory - r->memory_mib : 0;
	if (memory > PLACE_MAX_AMOUNT)
		memory = PLACE_MAX_AMOUNT;
	node.cpu_milli = (int32_t)memory;
	node.cpu_free = (int32_t)(left < memory ? left : memory);
	return node;
}

/* Return the best of c->left by a policy of ctl/place. */
static size_t fit(struct choice *c, const char *policy, const struct pool_request *r,
		  const struct choice_candidate *candidates, size_t nr)
{
	const struct place_request wish = { .nr_gpus = 1, .gpu_milli = 1,
					    .models = PLACE_ANY_MODEL };
	struct place_cluster cluster = {
		.nodes = c->nodes,
		.nr = nr < PLACE_MAX_NODES ? nr : PLACE_MAX_NODES,
		.policy = place_policy_find(policy),
	};
	struct place_choice choice;

	for (size_t i = 0; i < cluster.nr; i++)
		c->nodes[i] = node_of(&candidates[c->left[i]], r);
	place_cluster_init(&cluster);
	return c->left[place_decide(&cluster, &wish, &choice) ? 0 : choice.node];
}

/* Whether the GPU is known, and not for the wanted precision. */
static bool is_slow(const struct pool_gpu *gpu, const struct pool_request *r)
{
	return r->precision != POOL_PRECISION_ANY && gpu->precisions &&
		!(gpu->precisions >> r->precision & 1);
}

/* Penalties that need no history. */
static double penalty(const struct choice_candidate *c, const struct pool_request *r)
{
	return (c->failed ? FAILED : 0) + (is_slow(c->gpu, r) ? SLOW_PRECISION : 0);
}

/* Keep in c->left the candidates within TIE of the best. Return how many. */
static size_t keep_best(struct choice *c, size_t nr)
{
	double best = INFINITY;
	size_t left = 0;

	for (size_t i = 0; i < nr; i++)
		best = fmin(best, c->scores[i].value);
	for (size_t i = 0; i < nr; i++)
		if (c->scores[i].value <= best + TIE)
			c->left[left++] = i;
	return left;
}

static size_t pick_fit(struct choice *c, const char *policy, const struct pool_request *r,
		       const struct choice_candidate *candidates, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		c->scores[i].value = penalty(&candidates[i], r);
	return fit(c, policy, r, candidates, keep_best(c, nr));
}

/* Has the kind run with the precision on this model? Then its times have it in them. */
static bool has_precision(const struct kind *kind, const struct pool_gpu *gpu,
			  enum pool_precision precision)
{
	const struct cell *cell = find_cell(kind, gpu);

	for (unsigned int i = 0; cell && i < cell->nr; i++)
		if (cell->rows[i].precision == precision)
			return true;
	return false;
}

/* Estimate all candidates. Return the most runs of the kind on a model of one. */
static unsigned int estimate_all(struct choice *c, const struct pool_request *r,
				 const struct choice_candidate *candidates, size_t nr)
{
	unsigned int most = 0;

	for (size_t i = 0; i < nr; i++) {
		struct choice_estimate *e = &c->scores[i].e;
		size_t k = 0;

		/* GPUs of a host are of few models. */
		while (k < i && (candidates[k].gpu->target != candidates[i].gpu->target ||
				 strcmp(candidates[k].gpu->model, candidates[i].gpu->model)))
			k++;
		if (k < i)
			*e = c->scores[k].e;
		else
			choice_expect(c, r, candidates[i].gpu, e);
		if (e->runs > most)
			most = e->runs;
	}
	return most;
}

static double score(const struct kind *kind, const struct pool_request *r,
		    const struct choice_candidate *candidate, const struct choice_estimate *e,
		    double fastest, double thriftiest, double best_effect)
{
	const struct pool_gpu *gpu = candidate->gpu;
	uint64_t memory = memory_of(gpu, candidate->need);
	double value = log(e->seconds / fastest) - GAIN_OF_OTHERS * (e->model_effect - best_effect);

	if (thriftiest > 0)
		value += ENERGY * log(e->energy_mj / thriftiest);
	if (candidate->failed)
		value += FAILED;
	if (is_slow(gpu, r) && !has_precision(kind, gpu, r->precision))
		value += SLOW_PRECISION;
	if (memory && !r->memory_mib && memory < e->memory_mib)
		value += SMALL_MEMORY;
	return value;
}

static size_t pick_history(struct choice *c, const struct pool_request *r,
			   const struct choice_candidate *candidates, size_t nr, size_t *left)
{
	const struct kind *kind = table_find(&c->kinds, r->kind);
	double fastest = INFINITY, thriftiest = INFINITY, best_effect = INFINITY;

	for (size_t i = 0; i < nr; i++) {
		fastest = fmin(fastest, c->scores[i].e.seconds);
		thriftiest = fmin(thriftiest, c->scores[i].e.energy_mj);
		best_effect = fmin(best_effect, c->scores[i].e.model_effect);
	}
	for (size_t i = 0; i < nr; i++)
		c->scores[i].value = score(kind, r, &candidates[i], &c->scores[i].e, fastest,
					   thriftiest, best_effect);
	*left = keep_best(c, nr);
	return fit(c, "best-fit", r, candidates, *left);
}

/* The fastest candidate of another model, or @nr. */
static size_t rival(const struct choice *c, const struct choice_candidate *candidates, size_t nr,
		    size_t best)
{
	size_t other = nr;

	for (size_t i = 0; i < nr; i++)
		if (strcmp(candidates[i].gpu->model, candidates[best].gpu->model) &&
		    (other == nr || c->scores[i].e.seconds < c->scores[other].e.seconds))
			other = i;
	return other;
}

/* Three digits, as %.3g has them, but without an exponent for large values. */
static const char *three_digits(double value, char text[32])
{
	snprintf(text, 32, value >= 999.5 ? "%.0f" : "%.3g", value);
	return text;
}

static void tell_history(const struct choice *c, const struct pool_request *r,
			 const struct choice_candidate *candidates, size_t nr, size_t best,
			 size_t left, char why[POOL_TEXT_MAX])
{
	const struct choice_estimate *e = &c->scores[best].e;
	size_t other = rival(c, candidates, nr, best);
	char number[32];
	int at;

	at = snprintf(why, POOL_TEXT_MAX, "history: %s takes %s s on %s (%u runs", r->kind,
		      three_digits(e->seconds, number), candidates[best].gpu->model, e->runs);
	if (r->size_mib)
		at += snprintf(why + at, POOL_TEXT_MAX - (size_t)at, ", %s MiB/s",
			       three_digits((double)r->size_mib / e->seconds, number));
	if (e->energy_mj > 0)
		at += snprintf(why + at, POOL_TEXT_MAX - (size_t)at, ", %s J",
			       three_digits(e->energy_mj / 1000, number));
	at += snprintf(why + at, POOL_TEXT_MAX - (size_t)at, ")");
	if (other < nr)
		at += snprintf(why + at, POOL_TEXT_MAX - (size_t)at, ", %s s on %s (%u runs)",
			       three_digits(c->scores[other].e.seconds, number),
			       candidates[other].gpu->model, c->scores[other].e.runs);
	snprintf(why + at, POOL_TEXT_MAX - (size_t)at, "; best fit among %zu of %zu free GPUs",
		 left, nr);
}

static void tell_fit(const char *policy, const struct choice_candidate *best, size_t nr,
		     const char *cause, char why[POOL_TEXT_MAX])
{
	int at = snprintf(why, POOL_TEXT_MAX, "%s%s among %zu free GPU%s", cause, policy, nr,
			  nr == 1 ? "" : "s");

	if (best->gpu->target == POOL_VGPU)
		snprintf(why + at, POOL_TEXT_MAX - (size_t)at,
			 "; takes %u of %u free slots of %s", best->need, best->free,
			 best->gpu->name);
	else
		snprintf(why + at, POOL_TEXT_MAX - (size_t)at, "; %s, %u MiB", best->gpu->name,
			 best->gpu->memory_mib);
}

size_t choice_pick(struct choice *c, const struct pool_settings *settings,
		   const struct pool_request *r, const struct choice_candidate *candidates,
		   size_t nr, char why[POOL_TEXT_MAX])
{
	const char *policy = place_policy_find(settings->policy) ? settings->policy : "best-fit";
	char cause[POOL_NAME_MAX + 100] = "";
	size_t best, left;
	unsigned int runs;

	if (!make_room(c, nr)) {
		snprintf(why, POOL_TEXT_MAX, "the first that is free: out of memory");
		return 0;
	}
	if (!strcmp(settings->policy, "history")) {
		runs = estimate_all(c, r, candidates, nr);
		if (runs && runs >= settings->history_min) {
			best = pick_history(c, r, candidates, nr, &left);
			tell_history(c, r, candidates, nr, best, left, why);
			return best;
		}
		snprintf(cause, sizeof(cause), "history of %s is thin (%u of %u runs): ", r->kind,
			 runs, settings->history_min);
	}
	best = pick_fit(c, policy, r, candidates, nr);
	tell_fit(policy, &candidates[best], nr, cause, why);
	return best;
}
