// SPDX-License-Identifier: GPL-2.0-only
/* Replays of traces, and training on them. */
#include <errno.h>

#include "draw.h"
#include "tap.h"
#include "train.h"

static struct place_node make_node(unsigned int gpus, int cpus, unsigned int model)
{
	struct place_node n = {
		.cpu_milli = cpus * 1000, .cpu_free = cpus * 1000, .memory_mib = 65536,
		.memory_free = 65536, .nr_gpus = (uint8_t)gpus, .model = (uint8_t)model,
	};

	for (unsigned int g = 0; g < gpus; g++)
		n.gpu_free[g] = PLACE_WHOLE;
	place_node_sum(&n);
	return n;
}

static struct place_task make_task(unsigned int gpus, unsigned int milli, int cpus, int64_t from,
				   int64_t to)
{
	return (struct place_task){
		.r = { .nr_gpus = (uint8_t)gpus, .gpu_milli = (uint16_t)milli,
		       .cpu_milli = cpus * 1000, .memory_mib = 1, .models = PLACE_ANY_MODEL },
		.creation_s = from, .deletion_s = to,
	};
}

/* The common part of most replays here; the test frees the classes. */
static struct replay make_replay(const struct place_trace *t, const char *policy)
{
	static const unsigned int points[] = { 50, 100, 150 };
	struct replay rp = {
		.trace = t, .policy = place_policy_find(policy), .seed = 1, .part = 1,
		.points = points, .nr_points = 3,
	};

	rp.classes = trace_classes(t, &rp.nr_classes);
	if (!rp.classes)
		abort();
	return rp;
}

/* Two nodes of two GPUs, tasks of one: half, all, all are placed. */
static void inflation(void)
{
	struct place_node nodes[] = { make_node(2, 64, 0), make_node(2, 64, 0) };
	struct place_task tasks[] = { make_task(1, 1000, 1, 0, 1) };
	struct place_trace t = { .nodes = nodes, .nr_nodes = 2, .tasks = tasks, .nr_tasks = 1 };
	struct replay rp = make_replay(&t, "first-fit");
	struct replay_result r;

	TAP_EQ(replay_inflate(&rp, &r), 0);
	TAP_NEAR(r.gpus, 4, 1e-9);
	TAP_NEAR(r.unallocated_pct[0], 50, 1e-9);
	TAP_NEAR(r.unallocated_pct[1], 0, 1e-9);
	TAP_NEAR(r.unallocated_pct[2], 0, 1e-9);
	TAP_EQ(r.placed, 4);
	TAP_EQ(r.refused, 2);
	TAP_NEAR(r.refused_gpu_pct, 100.0 / 3, 1e-9);
	/* all that is free can be used */
	TAP_NEAR(r.fragmentation_pct[0], 0, 1e-9);
	TAP_NEAR(r.median_ns, 0, 1e-9);
	free((void *)rp.classes);
}

/* Tasks of 0.6: the rest of each GPU is a fragment. */
static void fragments(void)
{
	struct place_node nodes[] = { make_node(2, 64, 0), make_node(2, 1, 0) };
	struct place_task tasks[] = { make_task(1, 600, 1, 0, 1) };
	struct place_trace t = { .nodes = nodes, .nr_nodes = 2, .tasks = tasks, .nr_tasks = 1 };
	struct replay rp = make_replay(&t, "best-fit");
	struct replay_result r;

	TAP_EQ(replay_inflate(&rp, &r), 0);
	/* the second node has CPU for one task */
	TAP_NEAR(r.unallocated_pct[2], 100 * (4 - 1.8) / 4, 1e-9);
	TAP_NEAR(r.fragmentation_pct[2], 100 * (4 - 1.8) / 4, 1e-9);
	free((void *)rp.classes);
}

static void nothing_to_measure(void)
{
	struct place_node nodes[] = { make_node(0, 64, 0), make_node(1, 64, 0) };
	struct place_task tasks[] = { make_task(0, 0, 1, 0, 1) };
	struct place_trace t = { .nodes = nodes, .nr_nodes = 1, .tasks = tasks, .nr_tasks = 1 };
	struct replay rp = make_replay(&t, "best-fit");
	struct replay_result r;

	TAP_EQ(replay_inflate(&rp, &r), -EINVAL);
	t.nr_nodes = 2;
	TAP_EQ(replay_inflate(&rp, &r), -EINVAL);
	free((void *)rp.classes);
}

/*
 * One GPU: a task from 0 to 10, one that finds no room from 5 to 15, one from 10 to 20 in the
 * place of the first. 20 seconds, all allocated; a third of the demand is refused.
 */
static void times(void)
{
	struct place_node nodes[] = { make_node(1, 64, 0) };
	struct place_task tasks[] = { make_task(1, 1000, 1, 10, 20), make_task(1, 1000, 1, 0, 10),
				      make_task(1, 1000, 1, 5, 15), make_task(1, 500, 1, 7, 7),
				      make_task(1, 500, 1, 20, 40) };
	struct place_trace t = { .nodes = nodes, .nr_nodes = 1, .tasks = tasks, .nr_tasks = 4 };
	struct replay rp = make_replay(&t, "fgd");
	struct replay_result r;

	TAP_EQ(replay_times(&rp, &r), 0);
	TAP_EQ(r.placed, 2);
	TAP_EQ(r.refused, 1);
	TAP_NEAR(r.unallocated_pct[0], 0, 1e-9);
	TAP_NEAR(r.peak_pct, 100, 1e-9);
	TAP_NEAR(r.refused_gpu_pct, 100.0 / 3, 1e-9);
	/* 20 more seconds at half */
	t.nr_tasks = 5;
	TAP_EQ(replay_times(&rp, &r), 0);
	TAP_NEAR(r.unallocated_pct[0], 25, 1e-9);
	TAP_NEAR(r.refused_gpu_pct, 100 * 10.0 / 40, 1e-9);
	free((void *)rp.classes);
}

/* One node of two GPUs, tasks of one: at 100 % all find room, at 150 % a third does not. */
static void churn(void)
{
	struct place_node nodes[] = { make_node(2, 64, 0) };
	struct place_task tasks[] = { make_task(1, 1000, 1, 0, 1) };
	struct place_trace t = { .nodes = nodes, .nr_nodes = 1, .tasks = tasks, .nr_tasks = 1 };
	struct replay rp = make_replay(&t, "fgd");
	struct replay_result r;
	unsigned int load = 100;

	rp.points = &load;
	TAP_EQ(replay_churn(&rp, &r), 0);
	TAP_EQ(r.placed, 2 * REPLAY_TURNOVERS);
	TAP_EQ(r.refused, 0);
	TAP_NEAR(r.unallocated_pct[0], 0, 1e-9);
	TAP_NEAR(r.refused_gpu_pct, 0, 1e-9);
	load = 50;
	TAP_EQ(replay_churn(&rp, &r), 0);
	TAP_NEAR(r.unallocated_pct[0], 50, 1e-9);
	TAP_NEAR(r.peak_pct, 50, 1e-9);
	load = 150;
	TAP_EQ(replay_churn(&rp, &r), 0);
	TAP_CHECK(r.refused > 0);
	TAP_EQ(r.placed + r.refused, 2 * REPLAY_TURNOVERS);
	tasks[0] = make_task(0, 0, 1, 0, 1);
	TAP_EQ(replay_churn(&rp, &r), -EINVAL);
	free((void *)rp.classes);
}

/* ---- a cluster that has something to learn ---- */

#define NODES	48
#define TASKS	400

/*
 * Half of the nodes have little CPU beside their GPUs, half have plenty; half of the tasks want
 * much of it.
 */
static void make_trace(struct place_trace *t)
{
	static struct place_node nodes[NODES];
	static struct place_task tasks[TASKS];
	uint64_t random = 5;

	for (size_t i = 0; i < NODES; i++)
		nodes[i] = make_node(4, i % 2 ? 24 : 80, i % 2);
	for (size_t i = 0; i < TASKS; i++) {
		unsigned int milli = random_below(&random, 2) ? 1000 :
			200 + 100 * (unsigned int)random_below(&random, 6);

		tasks[i] = make_task(1, milli, random_below(&random, 2) ? 16 : 2, 0, 1);
	}
	*t = (struct place_trace){ .nodes = nodes, .nr_nodes = NODES, .nr_models = 2,
				   .tasks = tasks, .nr_tasks = TASKS };
}

static void repeatable(void)
{
	struct place_trace t;
	struct replay_result a, b;
	struct replay rp;

	make_trace(&t);
	for (size_t i = 0; place_policies[i]; i++) {
		static const struct place_weights zero;

		rp = make_replay(&t, place_policies[i]->name);
		rp.weights = &zero;
		TAP_EQ(replay_inflate(&rp, &a), 0);
		TAP_EQ(replay_inflate(&rp, &b), 0);
		TAP_MEM(&a, &b, sizeof(a));
		rp.seed = 2;
		TAP_EQ(replay_inflate(&rp, &b), 0);
		TAP_CHECK(memcmp(&a, &b, sizeof(a)));
		/* a part of the cluster */
		rp.part = 5;
		TAP_EQ(replay_inflate(&rp, &b), 0);
		TAP_NEAR(b.gpus, 40, 1e-9);
		free((void *)rp.classes);
	}
}

static unsigned int generations;

static void progress(unsigned int generation, double cost)
{
	TAP_EQ(generation, ++generations);
	TAP_CHECK(cost > 0);
}

static void learns(void)
{
	struct place_trace t;
	struct train what = { .trace = &t, .seed = 3, .generations = 24, .population = 10,
			      .replays = 2, .part = 1, .churn_pct = 50, .threads = 1,
			      .progress = progress };
	struct train_result one, two;

	make_trace(&t);
	TAP_EQ(train(&what, &one), 0);
	TAP_EQ(generations, 24);
	tap_diag("cost: %.3f of fgd's", one.cost);
	TAP_CHECK(one.cost < 0.9);
	/* the same for any number of threads */
	what.threads = 2;
	what.progress = NULL;
	TAP_EQ(train(&what, &two), 0);
	TAP_MEM(&one.weights, &two.weights, sizeof(one.weights));
	TAP_NEAR(one.cost, two.cost, 0);
	/* churn counts */
	what.churn_pct = 0;
	TAP_EQ(train(&what, &two), 0);
	TAP_CHECK(memcmp(&one.weights, &two.weights, sizeof(one.weights)));
}

/* Without a generation that helps the weights stay 0. */
static void learns_nothing(void)
{
	struct place_node nodes[] = { make_node(1, 64, 0), make_node(1, 64, 0) };
	struct place_task tasks[] = { make_task(1, 1000, 1, 0, 1) };
	struct place_trace t = { .nodes = nodes, .nr_nodes = 2, .nr_models = 1, .tasks = tasks,
				 .nr_tasks = 1 };
	struct train what = { .trace = &t, .seed = 3, .generations = 2, .population = 4,
			      .replays = 1, .part = 1, .churn_pct = 50, .threads = 1 };
	static const struct place_weights zero;
	struct train_result r;

	TAP_EQ(train(&what, &r), 0);
	TAP_MEM(&r.weights, &zero, sizeof(zero));
	TAP_NEAR(r.cost, 1, 1e-9);
	tasks[0] = make_task(0, 0, 1, 0, 1);
	TAP_EQ(train(&what, &r), -EINVAL);
}

int main(void)
{
	tap_run(inflation, "tasks arrive until the demand is passed, and GPU that is left is counted");
	tap_run(fragments, "what tasks cannot use is counted as fragmentation");
	tap_run(nothing_to_measure, "a cluster or a workload without GPUs is refused");
	tap_run(times, "in a replay by time what goes makes room for what comes");
	tap_run(churn, "with churn the demand stays at its load");
	tap_run(repeatable, "a replay is the same for a seed, and another for another");
	tap_run(learns, "training learns, and the same on any number of threads");
	tap_run(learns_nothing, "training keeps weights of 0 where nothing is better");
	return tap_done();
}
