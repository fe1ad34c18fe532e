// SPDX-License-Identifier: GPL-2.0-only
/*
 * Evolution strategy with a covariance matrix that is diagonal (Ros and Hansen, "A Simple
 * Modification in CMA-ES Achieving Linear Time and Space Complexity", PPSN 2008), on replays.
 * A generation's candidates and the zero weights are judged on the same replays; each
 * generation has new ones, on workloads that differ from the trace's at random.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "train.h"

#define N		PLACE_FEATURES
#define MAX		TRAIN_MAX_POPULATION
#define SNAPSHOTS	5	/* means that are compared at the end */
#define CHECKS		4	/* replays of the whole cluster for each */

/* Demand at which candidates are judged, per cent of capacity. */
static const unsigned int points[] = { 90, 95, 100, 105, 115 };

#define POINTS		(sizeof(points) / sizeof(*points))

/**
 * struct scenario - a replay that candidates are judged on
 * @trace: its tasks; the nodes are the trace's
 * @classes: its workload
 * @nr_classes: number of classes
 * @seed: its order of arrival
 * @load: demand of the tasks that come and go, per cent of capacity
 */
struct scenario {
	struct place_trace trace;
	struct place_class *classes;
	size_t nr_classes;
	uint64_t seed;
	unsigned int load;
};

/**
 * struct loss - a candidate's result on a scenario
 * @inflation: GPU that is not allocated although tasks want it, the mean over the points, per
 *	cent of capacity
 * @churn: demand that is refused while tasks come and go, per cent
 */
struct loss {
	double inflation;
	double churn;
};

/**
 * struct job - candidates that are judged on scenarios, by threads
 * @part: of the cluster
 * @churn: weight of the loss with churn, beside 1 for inflation
 * @scenarios: the scenarios
 * @nr_scenarios: how many
 * @weights: the candidates
 * @nr: how many
 * @zero: the candidate whose weights are all 0
 * @loss: of each candidate on each scenario
 * @next: next replay that no thread has begun
 * @error: -errno of a replay, or 0
 * @lock: for @next and @error
 */
struct job {
	unsigned int part;
	double churn;
	const struct scenario *scenarios;
	size_t nr_scenarios;
	const struct place_weights *weights;
	size_t nr;
	size_t zero;
	struct loss *loss;
	size_t next;
	int error;
	pthread_mutex_t lock;
};

static void scenario_free(struct scenario *s)
{
	free(s->trace.tasks);
	free(s->classes);
	*s = (struct scenario){ 0 };
}

static double normal(uint64_t *random)
{
	double u = 1 - random_part(random);

	return sqrt(-2 * log(u)) * cos(2 * M_PI * random_part(random));
}

/* Draw a model by the number of its nodes. */
static uint32_t draw_model(const struct place_trace *t, uint64_t *random)
{
	return UINT32_C(1) << t->nodes[random_below(random, t->nr_nodes)].model;
}

/*
 * Draw the tasks of a scenario from the trace: how often tasks of a size come differs by a
 * factor, and tasks may be bound to models.
 */
static int scenario_draw(struct scenario *s, const struct place_trace *t, uint64_t *random,
			 bool as_it_is)
{
	double factor[4], most = 0, bound;

	*s = (struct scenario){ .trace = *t, .seed = random_next(random) };
	s->trace.tasks = calloc(t->nr_tasks, sizeof(*s->trace.tasks));
	if (!s->trace.tasks)
		return -ENOMEM;
	for (size_t k = 0; k < 4; k++) {
		factor[k] = exp(0.5 * normal(random));
		most = fmax(most, factor[k]);
	}
	s->load = 80 + (unsigned int)random_below(random, 21);
	bound = random_part(random) < 0.5 ? 0.25 * random_part(random) : 0;
	for (size_t i = 0; i < t->nr_tasks;) {
		struct place_task *task = &s->trace.tasks[i];
		const struct place_request *r = &task->r;
		size_t size;

		*task = t->tasks[as_it_is ? i : random_below(random, t->nr_tasks)];
		size = !r->nr_gpus ? 0 : r->nr_gpus > 1 ? 3 : r->gpu_milli < PLACE_WHOLE ? 1 : 2;
		if (!as_it_is && random_part(random) * most > factor[size])
			continue;
		if (!as_it_is && r->nr_gpus && random_part(random) < bound) {
			task->r.models = draw_model(t, random);
			if (random_below(random, 2))
				task->r.models |= draw_model(t, random);
		}
		i++;
	}
	s->classes = trace_classes(&s->trace, &s->nr_classes);
	return s->classes ? 0 : -ENOMEM;
}

static int judge(const struct job *job, size_t replay, struct loss *loss)
{
	const struct scenario *s = &job->scenarios[replay % job->nr_scenarios];
	struct replay rp = {
		.trace = &s->trace, .classes = s->classes, .nr_classes = s->nr_classes,
		.policy = place_policy_find("learned"),
		.weights = &job->weights[replay / job->nr_scenarios], .seed = s->seed,
		.part = job->part, .points = points, .nr_points = POINTS,
	};
	struct replay_result result;
	int ret = replay_inflate(&rp, &result);

	loss->inflation = 0;
	for (size_t k = 0; k < POINTS; k++)
		loss->inflation += (result.unallocated_pct[k] - fmax(0, 100.0 - points[k])) /
			POINTS;
	loss->churn = 0;
	if (ret || job->churn <= 0)
		return ret;
	rp.points = &s->load;
	ret = replay_churn(&rp, &result);
	loss->churn = result.refused_gpu_pct;
	return ret;
}

static void *work(void *data)
{
	struct job *job = data;

	pthread_mutex_lock(&job->lock);
	while (!job->error && job->next < job->nr * job->nr_scenarios) {
		size_t replay = job->next++;
		int ret;

		pthread_mutex_unlock(&job->lock);
		ret = judge(job, replay, &job->loss[replay]);
		pthread_mutex_lock(&job->lock);
		if (ret)
			job->error = ret;
	}
	pthread_mutex_unlock(&job->lock);
	return NULL;
}

/* The loss over that of weights of 0, a per cent added to each: that of some is near 0. */
static double relative(const struct loss *loss, const struct loss *zero, double churn)
{
	return ((loss->inflation + 1) / (zero->inflation + 1) +
		churn * (loss->churn + 1) / (zero->churn + 1)) / (1 + churn);
}

/* Set the cost of each candidate, the mean of its relative losses. */
static int judge_all(struct job *job, unsigned int threads, double *mean)
{
	pthread_t others[64];
	unsigned int started = 0;

	job->next = 0;
	job->error = 0;
	job->loss = calloc(job->nr * job->nr_scenarios, sizeof(*job->loss));
	if (!job->loss)
		return -ENOMEM;
	pthread_mutex_init(&job->lock, NULL);
	while (started + 1 < threads && started < 64 &&
	       !pthread_create(&others[started], NULL, work, job))
		started++;
	work(job);
	while (started)
		pthread_join(others[--started], NULL);
	pthread_mutex_destroy(&job->lock);
	for (size_t i = 0; i < job->nr; i++) {
		mean[i] = 0;
		for (size_t k = 0; k < job->nr_scenarios; k++)
			mean[i] += relative(&job->loss[i * job->nr_scenarios + k],
					    &job->loss[job->zero * job->nr_scenarios + k],
					    job->churn) /
				(double)job->nr_scenarios;
	}
	free(job->loss);
	return job->error;
}

/* The first step of each feature, thousandths. */
static double first_step(unsigned int feature)
{
	if (feature < FEATURE_EXPONENT)
		return 500;
	if (feature < FEATURE_RESIDUAL)
		return 300;
	if (feature < FEATURE_FULL)
		return 50;
	if (feature < FEATURE_CPU)
		return 100;
	if (feature < FEATURE_NODE)
		return 100;
	return feature < FEATURE_SCARCITY ? 50 : 100;
}

/**
 * struct strategy - state of the evolution strategy; coordinates in first steps
 * @mean: mean of the candidates
 * @scale: standard deviation of each coordinate, over @sigma
 * @path: evolution path of the mean
 * @sigma_path: evolution path of the step
 * @sigma: step
 */
struct strategy {
	double mean[N];
	double scale[N];
	double path[N];
	double sigma_path[N];
	double sigma;
};

static struct place_weights as_weights(const double *x)
{
	struct place_weights w;

	for (unsigned int i = 0; i < N; i++)
		w.value[i] = (int32_t)fmax(-PLACE_MAX_WEIGHT, fmin(PLACE_MAX_WEIGHT,
					   round(x[i] * first_step(i))));
	return w;
}

/* Move on. @z: normal numbers of the candidates; @order: candidates from the best on. */
static void strategy_move(struct strategy *s, unsigned int lambda, const double (*z)[N],
			  const unsigned int *order, unsigned int generation)
{
	unsigned int mu = lambda / 2;
	double weight[MAX], sum = 0, squares = 0, eff, cs, cc, c1, cmu, damps, chi, norm = 0;
	double step[N] = { 0 };
	bool slow;

	for (unsigned int k = 0; k < mu; k++)
		sum += weight[k] = log(mu + 0.5) - log(k + 1);
	for (unsigned int k = 0; k < mu; k++) {
		weight[k] /= sum;
		squares += weight[k] * weight[k];
	}
	eff = 1 / squares;
	cs = (eff + 2) / (N + eff + 5);
	cc = (4 + eff / N) / (N + 4 + 2 * eff / N);
	c1 = 2 / (pow(N + 1.3, 2) + eff) * (N + 2) / 3;
	cmu = fmin(1 - c1, 2 * (eff - 2 + 1 / eff) / (pow(N + 2, 2) + eff) * (N + 2) / 3);
	damps = 1 + 2 * fmax(0, sqrt((eff - 1) / (N + 1)) - 1) + cs;
	chi = sqrt(N) * (1 - 1 / (4.0 * N) + 1 / (21.0 * N * N));

	for (unsigned int k = 0; k < mu; k++)
		for (unsigned int i = 0; i < N; i++)
			step[i] += weight[k] * z[order[k]][i];
	for (unsigned int i = 0; i < N; i++) {
		s->sigma_path[i] = (1 - cs) * s->sigma_path[i] +
			sqrt(cs * (2 - cs) * eff) * step[i];
		norm += s->sigma_path[i] * s->sigma_path[i];
	}
	norm = sqrt(norm);
	slow = norm / sqrt(1 - pow(1 - cs, 2.0 * (generation + 1))) < (1.4 + 2.0 / (N + 1)) * chi;
	for (unsigned int i = 0; i < N; i++) {
		double spread = 0, variance = s->scale[i] * s->scale[i];

		for (unsigned int k = 0; k < mu; k++)
			spread += weight[k] * z[order[k]][i] * z[order[k]][i] * variance;
		s->path[i] = (1 - cc) * s->path[i] +
			(slow ? sqrt(cc * (2 - cc) * eff) * step[i] * s->scale[i] : 0);
		s->mean[i] += s->sigma * step[i] * s->scale[i];
		variance = (1 - c1 - cmu) * variance + c1 * s->path[i] * s->path[i] + cmu * spread;
		s->scale[i] = sqrt(fmax(variance, 1e-8));
	}
	s->sigma *= exp(cs / damps * (norm / chi - 1));
}

static void sort_by_cost(unsigned int *order, const double *cost, unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++) {
		unsigned int k = i;

		for (; k && cost[order[k - 1]] > cost[i]; k--)
			order[k] = order[k - 1];
		order[k] = i;
	}
}

/**
 * struct generation - the candidates of a generation; the last is the zero weights
 * @z: normal numbers
 * @weights: weights
 * @cost: what each cost
 */
struct generation {
	double z[MAX][N];
	struct place_weights weights[MAX + 1];
	double cost[MAX + 1];
};

static int one_generation(const struct train *t, struct strategy *s, struct generation *g,
			  uint64_t *random, unsigned int nr)
{
	struct scenario *scenarios = calloc(t->replays, sizeof(*scenarios));
	struct job job = {
		.part = t->part, .churn = t->churn_pct / 100.0,
		.scenarios = scenarios, .nr_scenarios = t->replays,
		.weights = g->weights, .nr = t->population + 1, .zero = t->population,
	};
	unsigned int order[MAX];
	double mean = 0;
	int ret = scenarios ? 0 : -ENOMEM;

	for (unsigned int i = 0; !ret && i < t->replays; i++)
		ret = scenario_draw(&scenarios[i], t->trace, random, i == 0);
	for (unsigned int k = 0; k < t->population; k++) {
		double x[N];

		for (unsigned int i = 0; i < N; i++) {
			g->z[k][i] = normal(random);
			x[i] = s->mean[i] + s->sigma * s->scale[i] * g->z[k][i];
		}
		g->weights[k] = as_weights(x);
	}
	g->weights[t->population] = (struct place_weights){ 0 };
	if (!ret)
		ret = judge_all(&job, t->threads, g->cost);
	for (unsigned int i = 0; scenarios && i < t->replays; i++)
		scenario_free(&scenarios[i]);
	free(scenarios);
	if (ret)
		return ret;
	sort_by_cost(order, g->cost, t->population);
	strategy_move(s, t->population, (const double (*)[N])g->z, order, nr);
	for (unsigned int k = 0; k < t->population; k++)
		mean += g->cost[k] / t->population;
	if (t->progress)
		t->progress(nr + 1, mean);
	return 0;
}

/* Choose among the zero weights, which come first, and the others, on the whole cluster. */
static int choose(const struct train *t, const struct place_weights *weights, size_t nr,
		  uint64_t *random, struct train_result *result)
{
	struct scenario scenarios[CHECKS] = { 0 };
	struct job job = {
		.part = 1, .churn = t->churn_pct / 100.0,
		.scenarios = scenarios, .nr_scenarios = CHECKS,
		.weights = weights, .nr = nr,
	};
	double cost[SNAPSHOTS + 1];
	size_t best = 0;
	int ret = 0;

	/* half of them as the trace is; job.zero is 0 */
	for (unsigned int i = 0; !ret && i < CHECKS; i++)
		ret = scenario_draw(&scenarios[i], t->trace, random, i % 2);
	if (!ret)
		ret = judge_all(&job, t->threads, cost);
	for (unsigned int i = 0; i < CHECKS; i++)
		scenario_free(&scenarios[i]);
	if (ret)
		return ret;
	for (size_t k = 1; k < nr; k++)
		if (cost[k] < cost[best])
			best = k;
	result->weights = weights[best];
	result->cost = cost[best];
	return 0;
}

int train(const struct train *t, struct train_result *result)
{
	struct generation *g = calloc(1, sizeof(*g));
	struct strategy s = { .sigma = 0.5 };
	struct place_weights snapshots[SNAPSHOTS + 1] = { 0 };
	uint64_t random = t->seed;
	size_t nr = 1;
	int ret = 0;

	if (!g)
		return -ENOMEM;
	for (unsigned int i = 0; i < N; i++)
		s.scale[i] = 1;
	for (unsigned int k = 0; !ret && k < t->generations; k++) {
		ret = one_generation(t, &s, g, &random, k);
		/* at equal distances, the last at the end */
		if ((k + 1) * SNAPSHOTS / t->generations >= nr)
			snapshots[nr++] = as_weights(s.mean);
	}
	free(g);
	return ret ? ret : choose(t, snapshots, nr, &random, result);
}
