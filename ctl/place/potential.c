// SPDX-License-Identifier: GPL-2.0-only
/*
 * The potential of nodes, in integers.
 *
 * A task can use what is free of a GPU if the node has CPU, memory and GPUs for it. So the
 * usable GPU of a node, expected over the workload, is
 *
 *	sum over GPUs of free * (weight of the tasks of up to one GPU that want at most free)
 *	+ free GPUs that are whole * (weight of the tasks of several GPUs that want at most so many)
 *
 * where tasks count that the node has CPU and memory for, and the right model. These weights
 * are in a table with a row for each model, and each step of CPU and of memory at which a
 * further class fits.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "potential.h"

#define RATIO_STEPS	64

/**
 * struct place_potential - a compiled workload
 * @cpu: steps of CPU, ascending
 * @memory: steps of memory, ascending
 * @nr_cpu: number of steps of CPU
 * @nr_memory: number of steps of memory
 * @level: number of distinct parts of a GPU that fit, by free thousandths
 * @nr_levels: distinct parts of a GPU
 * @row: cells of a row of @table: a sum by level, then one by whole GPUs
 * @table: sums of weights
 * @value: potential of each node
 * @learned: there are weights, and the rest counts
 * @residual: value of one GPU by free thousandths
 * @full: value of whole free GPUs by their number
 * @balance: value per thousandth of a free GPU, by CPU and by memory beside it
 * @size: value per thousandth of a free GPU, by the node's GPUs
 * @model: value per thousandth of a free GPU, by the node's model
 * @cpu_per_gpu: CPU of a task per whole GPU in the workload, at least 1
 * @memory_per_gpu: memory likewise
 */
struct place_potential {
	int32_t cpu[POTENTIAL_MAX_STEPS];
	int32_t memory[POTENTIAL_MAX_STEPS];
	unsigned int nr_cpu;
	unsigned int nr_memory;
	uint16_t level[PLACE_WHOLE + 1];
	unsigned int nr_levels;
	size_t row;
	uint32_t *table;
	int64_t *value;
	bool learned;
	int64_t residual[PLACE_WHOLE + 1];
	int64_t full[PLACE_MAX_GPUS + 1];
	int64_t balance[2][RATIO_STEPS + 1];
	int64_t size[PLACE_MAX_GPUS + 1];
	int64_t model[PLACE_MAX_MODELS];
	int64_t cpu_per_gpu;
	int64_t memory_per_gpu;
};

static const char *const size_names[FEATURE_SIZES] = {
	"to-250", "to-500", "below-1000", "1", "2", "4", "8",
};

void place_feature_name(unsigned int feature, char *name, size_t size)
{
	static const unsigned int nodes[FEATURE_NODES] = { 1, 2, 4, 8 };

	if (feature < FEATURE_EXPONENT)
		snprintf(name, size, "size-%s", size_names[feature - FEATURE_SIZE]);
	else if (feature < FEATURE_RESIDUAL)
		snprintf(name, size, "demand-exponent");
	else if (feature < FEATURE_FULL)
		snprintf(name, size, "residual-%u",
			 (feature - FEATURE_RESIDUAL + 1) * PLACE_WHOLE / FEATURE_RESIDUALS);
	else if (feature < FEATURE_CPU)
		snprintf(name, size, "whole-%u", feature - FEATURE_FULL + 1);
	else if (feature < FEATURE_MEMORY)
		snprintf(name, size, "cpu-%u", feature - FEATURE_CPU);
	else if (feature < FEATURE_NODE)
		snprintf(name, size, "memory-%u", feature - FEATURE_MEMORY);
	else if (feature < FEATURE_SCARCITY)
		snprintf(name, size, "node-%u", nodes[feature - FEATURE_NODE]);
	else
		snprintf(name, size, "scarcity");
}

/* Return the number of steps up to @amount. */
static unsigned int steps_to(const int32_t *steps, unsigned int nr, int32_t amount)
{
	unsigned int from = 0;

	while (nr) {
		unsigned int half = nr / 2;

		if (steps[from + half] <= amount) {
			from += half + 1;
			nr -= half + 1;
		} else {
			nr = half;
		}
	}
	return from;
}

static int compare(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

	return (x > y) - (x < y);
}

/* Keep the distinct values, at most POTENTIAL_MAX_STEPS of them, the largest among them. */
static unsigned int make_steps(int32_t *steps, int32_t *values, size_t nr)
{
	size_t distinct = 0;
	unsigned int kept;

	qsort(values, nr, sizeof(*values), compare);
	for (size_t i = 0; i < nr; i++)
		if (!i || values[i] != values[distinct - 1])
			values[distinct++] = values[i];
	kept = distinct < POTENTIAL_MAX_STEPS ? distinct : POTENTIAL_MAX_STEPS;
	for (unsigned int k = 0; k < kept; k++)
		steps[k] = values[(k + 1) * distinct / kept - 1];
	return kept;
}

/* Return the index of the first step that is at least @amount. */
static unsigned int step_of(const int32_t *steps, unsigned int nr, int32_t amount)
{
	return amount ? steps_to(steps, nr, amount - 1) : 0;
}

static bool is_several(const struct place_request *r)
{
	return r->nr_gpus > 1;
}

static unsigned int size_class(const struct place_request *r)
{
	if (r->nr_gpus > 1)
		return r->nr_gpus < 4 ? 4 : r->nr_gpus < 8 ? 5 : 6;
	if (r->gpu_milli == PLACE_WHOLE)
		return 3;
	return r->gpu_milli <= 250 ? 0 : r->gpu_milli <= 500 ? 1 : 2;
}

static double learned_factor(const struct place_request *r, const struct place_weights *w)
{
	double gpus = is_several(r) ? r->nr_gpus : (double)r->gpu_milli / PLACE_WHOLE;

	return exp2(w->value[FEATURE_SIZE + size_class(r)] / 1e3) *
		pow(gpus, w->value[FEATURE_EXPONENT] / 1e3);
}

/*
 * Set the weights of the classes: shares of POTENTIAL_ONE by count. Learned factors move weight
 * between the classes with GPUs. Return the sum that classes without GPUs do not have.
 */
static void weigh(uint32_t *weight, const struct place_class *classes, size_t nr,
		  const struct place_weights *w)
{
	double all = 0, plain = 0, factored = 0;

	for (size_t i = 0; i < nr; i++) {
		all += classes[i].count;
		if (!classes[i].r.nr_gpus)
			continue;
		plain += classes[i].count;
		factored += classes[i].count * (w ? learned_factor(&classes[i].r, w) : 1);
	}
	for (size_t i = 0; i < nr; i++) {
		double part = classes[i].count / all;

		if (w && classes[i].r.nr_gpus)
			part *= learned_factor(&classes[i].r, w) * plain / factored;
		weight[i] = classes[i].r.nr_gpus ? (uint32_t)(part * POTENTIAL_ONE) : 0;
	}
}

static uint32_t *table_row(const struct place_potential *p, unsigned int model, unsigned int cpu,
			   unsigned int memory)
{
	return p->table + ((model * (p->nr_cpu + 1) + cpu) * (p->nr_memory + 1) + memory) * p->row;
}

static void add_row(uint32_t *to, const uint32_t *from, size_t cells)
{
	for (size_t k = 0; k < cells; k++)
		to[k] += from[k];
}

/* Make sums of what the cells of a model have. */
static void accumulate(struct place_potential *p, unsigned int model)
{
	for (unsigned int i = 0; i <= p->nr_cpu; i++) {
		for (unsigned int j = 0; j <= p->nr_memory; j++) {
			uint32_t *row = table_row(p, model, i, j);

			for (unsigned int k = 1; k <= p->nr_levels; k++)
				row[k] += row[k - 1];
			for (unsigned int k = 1; k <= PLACE_MAX_GPUS; k++)
				row[p->nr_levels + 1 + k] += row[p->nr_levels + k];
		}
	}
	for (unsigned int i = 0; i <= p->nr_cpu; i++)
		for (unsigned int j = 1; j <= p->nr_memory; j++)
			add_row(table_row(p, model, i, j), table_row(p, model, i, j - 1), p->row);
	for (unsigned int i = 1; i <= p->nr_cpu; i++)
		for (unsigned int j = 0; j <= p->nr_memory; j++)
			add_row(table_row(p, model, i, j), table_row(p, model, i - 1, j), p->row);
}

static void fill_table(struct place_potential *p, unsigned int models,
		       const struct place_class *classes, size_t nr, const uint32_t *weight)
{
	for (size_t i = 0; i < nr; i++) {
		const struct place_request *r = &classes[i].r;
		unsigned int cpu = step_of(p->cpu, p->nr_cpu, r->cpu_milli) + 1;
		unsigned int memory = step_of(p->memory, p->nr_memory, r->memory_mib) + 1;
		unsigned int cell = is_several(r) ? p->nr_levels + 1 + r->nr_gpus :
			p->level[r->gpu_milli];

		for (unsigned int m = 0; r->nr_gpus && m < models; m++)
			if (r->models >> m & 1)
				table_row(p, m, cpu, memory)[cell] += weight[i];
	}
	for (unsigned int m = 0; m < models; m++)
		accumulate(p, m);
}

static void make_levels(struct place_potential *p, const struct place_class *classes, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (classes[i].r.nr_gpus == 1)
			p->level[classes[i].r.gpu_milli] = 1;
	for (unsigned int f = 1; f <= PLACE_WHOLE; f++)
		p->level[f] += p->level[f - 1];
	p->nr_levels = p->level[PLACE_WHOLE];
}

/* Return the value at @x of the line through @knots at 0, 1, ... @last. */
static double line(const int32_t *knots, unsigned int last, double x)
{
	unsigned int k = (unsigned int)x;

	if (k >= last)
		return knots[last];
	return knots[k] + (knots[k + 1] - knots[k]) * (x - k);
}

/* Weights are thousandths of a GPU, of which a thousandth that all tasks can use is ONE. */
static void learn(struct place_potential *p, const struct place_weights *w)
{
	int32_t residual[FEATURE_RESIDUALS + 1] = { 0 };
	const int32_t *full = w->value + FEATURE_FULL;

	memcpy(residual + 1, w->value + FEATURE_RESIDUAL, sizeof(residual) - sizeof(*residual));
	for (unsigned int f = 0; f <= PLACE_WHOLE; f++)
		p->residual[f] = llround(POTENTIAL_ONE *
					 line(residual, FEATURE_RESIDUALS,
					      (double)f * FEATURE_RESIDUALS / PLACE_WHOLE));
	for (unsigned int k = 1; k <= PLACE_MAX_GPUS; k++)
		p->full[k] = (int64_t)POTENTIAL_ONE *
			full[k < FEATURE_FULLS ? k - 1 : FEATURE_FULLS - 1];
	for (unsigned int k = 0; k <= RATIO_STEPS; k++) {
		double x = (double)k * (FEATURE_KNOTS - 1) / RATIO_STEPS;

		for (unsigned int i = 0; i < 2; i++)
			p->balance[i][k] = llround(POTENTIAL_ONE / 1e3 *
				line(w->value + (i ? FEATURE_MEMORY : FEATURE_CPU),
				     FEATURE_KNOTS - 1, x));
	}
	for (unsigned int k = 1; k <= PLACE_MAX_GPUS; k++)
		p->size[k] = llround(POTENTIAL_ONE / 1e3 * w->value[FEATURE_NODE +
			(k < 2 ? 0 : k < 4 ? 1 : k < 8 ? 2 : 3)]);
	p->learned = true;
}

static void measure_means(struct place_potential *p, const struct place_class *classes, size_t nr)
{
	double cpu = 0, memory = 0, gpus = 0;

	for (size_t i = 0; i < nr; i++) {
		const struct place_request *r = &classes[i].r;

		if (!r->nr_gpus)
			continue;
		cpu += (double)classes[i].count * r->cpu_milli;
		memory += (double)classes[i].count * r->memory_mib;
		gpus += (double)classes[i].count * r->nr_gpus * r->gpu_milli / PLACE_WHOLE;
	}
	p->cpu_per_gpu = gpus > 0 && cpu > gpus ? (int64_t)(cpu / gpus) : 1;
	p->memory_per_gpu = gpus > 0 && memory > gpus ? (int64_t)(memory / gpus) : 1;
}

/*
 * Value models by their scarcity: the demand of tasks that name models, spread over these,
 * divided by what the model has, if the whole workload wants as much as the cluster has.
 */
static void value_models(struct place_potential *p, const struct place_cluster *c,
			 const struct place_class *classes, size_t nr,
			 const struct place_weights *w)
{
	double capacity[PLACE_MAX_MODELS] = { 0 }, bound[PLACE_MAX_MODELS] = { 0 };
	double cluster = 0, all = 0;

	for (size_t i = 0; i < c->nr; i++) {
		capacity[c->nodes[i].model] += c->nodes[i].nr_gpus;
		cluster += c->nodes[i].nr_gpus;
	}
	for (size_t i = 0; i < nr; i++) {
		const struct place_request *r = &classes[i].r;
		double gpus = (double)classes[i].count * r->nr_gpus * r->gpu_milli / PLACE_WHOLE;
		double named = 0;

		all += gpus;
		for (unsigned int m = 0; m < PLACE_MAX_MODELS; m++)
			named += r->models >> m & 1 ? capacity[m] : 0;
		if (named <= 0 || named >= cluster)
			continue;
		for (unsigned int m = 0; m < PLACE_MAX_MODELS; m++)
			bound[m] += r->models >> m & 1 ? gpus * capacity[m] / named : 0;
	}
	for (unsigned int m = 0; m < PLACE_MAX_MODELS; m++)
		if (capacity[m] > 0 && all > 0)
			p->model[m] = llround(POTENTIAL_ONE / 1e3 * w->value[FEATURE_SCARCITY] *
				fmin(bound[m] / all * cluster / capacity[m], 2));
}

struct place_potential *potential_new(const struct place_cluster *c,
				      const struct place_class *classes, size_t nr,
				      const struct place_weights *weights)
{
	struct place_potential *p = calloc(1, sizeof(*p));
	uint32_t *weight = calloc(nr + 1, sizeof(*weight));
	int32_t *values = calloc(nr + 1, sizeof(*values));
	unsigned int models = 0;

	if (!p || !weight || !values)
		goto fail;
	for (size_t i = 0; i < c->nr; i++)
		if (c->nodes[i].model >= models)
			models = c->nodes[i].model + 1U;
	for (size_t i = 0; i < nr; i++)
		values[i] = classes[i].r.cpu_milli;
	p->nr_cpu = make_steps(p->cpu, values, nr);
	for (size_t i = 0; i < nr; i++)
		values[i] = classes[i].r.memory_mib;
	p->nr_memory = make_steps(p->memory, values, nr);
	make_levels(p, classes, nr);
	p->row = p->nr_levels + 1 + PLACE_MAX_GPUS + 1;
	p->table = calloc((size_t)models * (p->nr_cpu + 1) * (p->nr_memory + 1) * p->row,
			  sizeof(*p->table));
	p->value = calloc(c->nr, sizeof(*p->value));
	if (!p->table || !p->value)
		goto fail;
	weigh(weight, classes, nr, weights);
	fill_table(p, models, classes, nr, weight);
	if (weights) {
		measure_means(p, classes, nr);
		learn(p, weights);
		value_models(p, c, classes, nr, weights);
	}
	free(weight);
	free(values);
	return p;

fail:
	free(weight);
	free(values);
	potential_free(p);
	return NULL;
}

void potential_free(struct place_potential *p)
{
	if (!p)
		return;
	free(p->table);
	free(p->value);
	free(p);
}

bool potential_learned(const struct place_potential *p)
{
	return p->learned;
}

static const uint32_t *find_row(const struct place_potential *p, const struct place_node *n,
				int32_t cpu, int32_t memory)
{
	return table_row(p, n->model, steps_to(p->cpu, p->nr_cpu, cpu),
			 steps_to(p->memory, p->nr_memory, memory));
}

/* The potential of what is free of one GPU. */
static int64_t one_gpu(const struct place_potential *p, const uint32_t *row, unsigned int milli)
{
	return (int64_t)milli * row[p->level[milli]] + p->residual[milli];
}

/* The further potential of free GPUs that are whole. */
static int64_t whole_gpus(const struct place_potential *p, const uint32_t *row, unsigned int nr)
{
	return (int64_t)nr * PLACE_WHOLE * row[p->nr_levels + 1 + nr] + p->full[nr];
}

/* The potential of a balance between free GPU and what is beside it. */
static int64_t balance(const struct place_potential *p, const struct place_node *n, int64_t total,
		       int64_t cpu, int64_t memory)
{
	int64_t c, m;

	if (!p->learned || total <= 0)
		return 0;
	/* the part is 1/2 where there is as much as a task of the workload wants */
	c = cpu * RATIO_STEPS / (cpu + p->cpu_per_gpu * total / PLACE_WHOLE + 1);
	m = memory * RATIO_STEPS / (memory + p->memory_per_gpu * total / PLACE_WHOLE + 1);
	return total * (p->balance[0][c] + p->balance[1][m] + p->size[n->nr_gpus] +
			p->model[n->model]);
}

static int64_t value_of(const struct place_potential *p, const struct place_node *n)
{
	const uint32_t *row = find_row(p, n, n->cpu_free, n->memory_free);
	int64_t value = whole_gpus(p, row, n->nr_full) +
		balance(p, n, n->gpu_total, n->cpu_free, n->memory_free);

	for (unsigned int g = 0; g < n->nr_gpus; g++)
		value += one_gpu(p, row, n->gpu_free[g]);
	return value;
}

int64_t potential_fragmentation(const struct place_potential *p, const struct place_node *n)
{
	return (int64_t)n->gpu_total * POTENTIAL_ONE - value_of(p, n);
}

void potential_update(struct place_potential *p, size_t node, const struct place_node *n)
{
	p->value[node] = value_of(p, n);
}

/* Choose the GPU whose change leaves the most. Return that change. */
static int64_t choose_gpu(const struct place_potential *p, const struct place_node *n,
			  const uint32_t *row, const struct place_request *r,
			  struct place_choice *choice)
{
	bool found = false;
	int64_t best = 0;

	for (unsigned int g = 0; g < n->nr_gpus; g++) {
		unsigned int milli = n->gpu_free[g];
		unsigned int same = r->kind ? n->tenants[g][r->kind] : 0;
		int64_t change;

		if (!place_gpu_fits(n, g, r))
			continue;
		change = one_gpu(p, row, milli - r->gpu_milli) - one_gpu(p, row, milli);
		if (milli == PLACE_WHOLE)
			change += whole_gpus(p, row, n->nr_full - 1U) -
				whole_gpus(p, row, n->nr_full);
		if (found && (change < best || (change == best && same >= choice->same)))
			continue;
		found = true;
		best = change;
		choice->same = same;
		choice->gpus = UINT32_C(1) << g;
	}
	return best;
}

/* Take the best-fitting GPUs. Return the change. */
static int64_t choose_several(const struct place_potential *p, const struct place_node *n,
			      const uint32_t *row, const struct place_request *r,
			      struct place_choice *choice)
{
	unsigned int full = n->nr_full;
	int64_t change = 0;

	place_best_gpus(n, r, choice);
	for (unsigned int g = 0; g < n->nr_gpus; g++) {
		if (!(choice->gpus >> g & 1))
			continue;
		change += one_gpu(p, row, n->gpu_free[g] - r->gpu_milli) -
			one_gpu(p, row, n->gpu_free[g]);
		full -= n->gpu_free[g] == PLACE_WHOLE;
	}
	return change + whole_gpus(p, row, full) - whole_gpus(p, row, n->nr_full);
}

int64_t potential_score(const struct place_potential *p, size_t node,
			const struct place_node *n, const struct place_request *r,
			struct place_choice *choice)
{
	int32_t cpu = n->cpu_free - r->cpu_milli;
	int32_t memory = n->memory_free - r->memory_mib;
	const uint32_t *row = find_row(p, n, cpu, memory);
	int64_t value = whole_gpus(p, row, n->nr_full) +
		balance(p, n, n->gpu_total - r->nr_gpus * r->gpu_milli, cpu, memory);

	for (unsigned int g = 0; g < n->nr_gpus; g++)
		value += one_gpu(p, row, n->gpu_free[g]);
	if (r->nr_gpus == 1)
		value += choose_gpu(p, n, row, r, choice);
	else if (r->nr_gpus)
		value += choose_several(p, n, row, r, choice);
	return p->value[node] - value;
}
