// SPDX-License-Identifier: GPL-2.0-only
/* Replays traces. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "replay.h"

/**
 * struct run - a replay that runs
 * @rp: what is replayed
 * @result: where results go
 * @c: the cluster
 * @measure: potential without weights, for the fragmentation
 * @capacity: GPU of the cluster, thousandths
 * @allocated: allocated GPU, thousandths
 * @fragmentation: fragmentation of all nodes
 * @ns: time of each decision
 * @nr: decisions
 * @room: size of @ns
 */
struct run {
	const struct replay *rp;
	struct replay_result *result;
	struct place_cluster c;
	struct place_potential *measure;
	int64_t capacity;
	int64_t allocated;
	int64_t fragmentation;
	uint32_t *ns;
	size_t nr;
	size_t room;
};

static void run_end(struct run *run)
{
	potential_free(run->c.potential);
	potential_free(run->measure);
	free(run->c.nodes);
	free(run->ns);
}

static int run_begin(struct run *run, const struct replay *rp, struct replay_result *result)
{
	const struct place_trace *t = rp->trace;

	*result = (struct replay_result){ 0 };
	*run = (struct run){ .rp = rp, .result = result };
	run->c.policy = rp->policy;
	run->c.random = rp->seed;
	run->c.nodes = calloc(t->nr_nodes, sizeof(*run->c.nodes));
	if (!run->c.nodes)
		return -ENOMEM;
	for (size_t i = 0; i < t->nr_nodes; i += rp->part)
		run->c.nodes[run->c.nr++] = t->nodes[i];
	run->measure = potential_new(&run->c, rp->classes, rp->nr_classes, NULL);
	if (rp->policy->potential)
		run->c.potential = potential_new(&run->c, rp->classes, rp->nr_classes,
						 rp->policy->learned ? rp->weights : NULL);
	if (!run->measure || (rp->policy->potential && !run->c.potential))
		return -ENOMEM;
	place_cluster_init(&run->c);
	for (size_t i = 0; i < run->c.nr; i++) {
		run->capacity += run->c.nodes[i].gpu_total;
		run->fragmentation += potential_fragmentation(run->measure, &run->c.nodes[i]);
	}
	result->gpus = (double)run->capacity / PLACE_WHOLE;
	return run->capacity ? 0 : -EINVAL;
}

static int64_t demand(const struct place_request *r)
{
	return (int64_t)r->nr_gpus * r->gpu_milli;
}

/* Keep a time. A time that finds no room is not kept. */
static void keep_time(struct run *run, uint64_t ns)
{
	if (run->nr == run->room) {
		size_t room = run->room ? 2 * run->room : 4096;
		uint32_t *more = realloc(run->ns, room * sizeof(*more));

		if (!more)
			return;
		run->ns = more;
		run->room = room;
	}
	run->ns[run->nr++] = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}

/* Place or drop a task. Return place_decide()'s result. */
static int arrive(struct run *run, const struct place_request *r, struct place_choice *choice)
{
	uint64_t from = run->rp->clock ? run->rp->clock() : 0;
	struct place_node before;
	int ret = place_decide(&run->c, r, choice);

	if (ret) {
		if (run->rp->clock)
			keep_time(run, run->rp->clock() - from);
		run->result->refused++;
		return ret;
	}
	before = run->c.nodes[choice->node];
	place_commit(&run->c, r, choice);
	if (run->rp->clock)
		keep_time(run, run->rp->clock() - from);
	run->fragmentation += potential_fragmentation(run->measure, &run->c.nodes[choice->node]) -
		potential_fragmentation(run->measure, &before);
	run->allocated += demand(r);
	run->result->placed++;
	return 0;
}

static void leave(struct run *run, const struct place_request *r,
		  const struct place_choice *choice)
{
	struct place_node *n = &run->c.nodes[choice->node];

	run->fragmentation -= potential_fragmentation(run->measure, n);
	place_release(&run->c, r, choice);
	run->fragmentation += potential_fragmentation(run->measure, n);
	run->allocated -= demand(r);
}

static double unallocated_pct(const struct run *run)
{
	return 100.0 * (double)(run->capacity - run->allocated) / (double)run->capacity;
}

static double fragmentation_pct(const struct run *run)
{
	return 100.0 * (double)run->fragmentation / POTENTIAL_ONE / (double)run->capacity;
}

static void note_peak(struct run *run)
{
	double pct = 100 - unallocated_pct(run);

	if (pct > run->result->peak_pct)
		run->result->peak_pct = pct;
}

static int compare_ns(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void sum_up(struct run *run)
{
	if (!run->nr)
		return;
	qsort(run->ns, run->nr, sizeof(*run->ns), compare_ns);
	run->result->median_ns = run->ns[run->nr / 2];
	run->result->p99_ns = run->ns[run->nr * 99 / 100];
}

static bool any_gpu(const struct place_trace *t)
{
	for (size_t i = 0; i < t->nr_tasks; i++)
		if (demand(&t->tasks[i].r))
			return true;
	return false;
}

int replay_inflate(const struct replay *rp, struct replay_result *result)
{
	const struct place_trace *t = rp->trace;
	int64_t arrived = 0, refused = 0;
	uint64_t random = rp->seed;
	struct place_choice choice;
	size_t point = 0;
	struct run run;
	int ret = run_begin(&run, rp, result);

	if (!ret && !any_gpu(t))
		ret = -EINVAL;
	while (!ret && point < rp->nr_points) {
		const struct place_request *r = &t->tasks[random_below(&random, t->nr_tasks)].r;

		arrived += demand(r);
		if (arrive(&run, r, &choice))
			refused += demand(r);
		while (point < rp->nr_points && arrived * 100 >= run.capacity * rp->points[point]) {
			result->unallocated_pct[point] = unallocated_pct(&run);
			result->fragmentation_pct[point++] = fragmentation_pct(&run);
		}
	}
	if (!ret) {
		note_peak(&run);
		result->refused_gpu_pct = 100.0 * (double)refused / (double)arrived;
		sum_up(&run);
	}
	run_end(&run);
	return ret;
}

/**
 * struct tenant - a task of a replay with churn
 * @task: its index
 * @placed: it was placed
 * @choice: where
 */
struct tenant {
	size_t task;
	bool placed;
	struct place_choice choice;
};

static int churn(struct run *run, struct tenant *tenants, size_t room)
{
	const struct place_trace *t = run->rp->trace;
	int64_t arrived = 0, measured = 0, refused = 0, alive = 0;
	double unallocated = 0, fragmentation = 0;
	uint64_t random = run->rp->seed;
	size_t nr = 0, samples = 0;

	while (arrived < REPLAY_TURNOVERS * run->capacity) {
		size_t task = random_below(&random, t->nr_tasks);
		const struct place_request *r = &t->tasks[task].r;

		alive += demand(r);
		while (nr && (nr == room || alive * 100 > run->capacity * run->rp->points[0])) {
			size_t gone = random_below(&random, nr--);
			const struct place_request *old = &t->tasks[tenants[gone].task].r;

			if (tenants[gone].placed)
				leave(run, old, &tenants[gone].choice);
			alive -= demand(old);
			tenants[gone] = tenants[nr];
		}
		tenants[nr].task = task;
		tenants[nr].placed = !arrive(run, r, &tenants[nr].choice);
		arrived += demand(r);
		note_peak(run);
		if (arrived > run->capacity) {
			measured += demand(r);
			refused += tenants[nr].placed ? 0 : demand(r);
			unallocated += unallocated_pct(run);
			fragmentation += fragmentation_pct(run);
			samples++;
		}
		nr++;
	}
	run->result->unallocated_pct[0] = samples ? unallocated / (double)samples : 0;
	run->result->fragmentation_pct[0] = samples ? fragmentation / (double)samples : 0;
	run->result->refused_gpu_pct = measured ? 100.0 * (double)refused / (double)measured : 0;
	return 0;
}

int replay_churn(const struct replay *rp, struct replay_result *result)
{
	struct tenant *tenants;
	struct run run;
	size_t room;
	int ret = run_begin(&run, rp, result);

	/* enough for the smallest parts that are usual */
	room = (size_t)(run.capacity / 50) + 1024;
	tenants = calloc(room, sizeof(*tenants));
	if (!ret && !tenants)
		ret = -ENOMEM;
	if (!ret && !any_gpu(rp->trace))
		ret = -EINVAL;
	if (!ret)
		ret = churn(&run, tenants, room);
	if (!ret)
		sum_up(&run);
	free(tenants);
	run_end(&run);
	return ret;
}

/**
 * struct event - a task comes or goes
 * @at_s: when
 * @task: its index
 * @comes: it comes
 */
struct event {
	int64_t at_s;
	size_t task;
	bool comes;
};

/* In the order of time; what goes makes room for what comes. */
static int compare_events(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->at_s != y->at_s)
		return x->at_s < y->at_s ? -1 : 1;
	if (x->comes != y->comes)
		return x->comes ? 1 : -1;
	return (x->task > y->task) - (x->task < y->task);
}

static void play_events(struct run *run, const struct event *events, size_t nr,
			struct place_choice *choices, bool *placed)
{
	const struct place_trace *t = run->rp->trace;
	double all = 0, refused = 0, unallocated = 0, fragmentation = 0;
	int64_t seconds = 0;

	for (size_t i = 0; i < nr; i++) {
		const struct place_task *task = &t->tasks[events[i].task];
		double life = (double)(task->deletion_s - task->creation_s);
		int64_t passed = i ? events[i].at_s - events[i - 1].at_s : 0;

		unallocated += unallocated_pct(run) * (double)passed;
		fragmentation += fragmentation_pct(run) * (double)passed;
		seconds += passed;
		if (!events[i].comes) {
			if (placed[events[i].task])
				leave(run, &task->r, &choices[events[i].task]);
			continue;
		}
		all += (double)demand(&task->r) * life;
		placed[events[i].task] = !arrive(run, &task->r, &choices[events[i].task]);
		if (!placed[events[i].task])
			refused += (double)demand(&task->r) * life;
		note_peak(run);
	}
	run->result->unallocated_pct[0] = seconds ? unallocated / (double)seconds :
		unallocated_pct(run);
	run->result->fragmentation_pct[0] = seconds ? fragmentation / (double)seconds :
		fragmentation_pct(run);
	run->result->refused_gpu_pct = all > 0 ? 100 * refused / all : 0;
}

int replay_times(const struct replay *rp, struct replay_result *result)
{
	const struct place_trace *t = rp->trace;
	struct event *events = calloc(2 * t->nr_tasks + 1, sizeof(*events));
	struct place_choice *choices = calloc(t->nr_tasks + 1, sizeof(*choices));
	bool *placed = calloc(t->nr_tasks + 1, sizeof(*placed));
	size_t nr = 0;
	struct run run;
	int ret = run_begin(&run, rp, result);

	if (!events || !choices || !placed)
		ret = -ENOMEM;
	for (size_t i = 0; !ret && i < t->nr_tasks; i++) {
		const struct place_task *task = &t->tasks[i];

		/* a task without a life uses nothing */
		if (task->deletion_s == task->creation_s)
			continue;
		events[nr++] = (struct event){ task->creation_s, i, true };
		/* beyond the last time of a trace there is nothing */
		if (task->deletion_s < TRACE_MAX_TIME)
			events[nr++] = (struct event){ task->deletion_s, i, false };
	}
	if (!ret) {
		qsort(events, nr, sizeof(*events), compare_events);
		play_events(&run, events, nr, choices, placed);
		sum_up(&run);
	}
	free(events);
	free(choices);
	free(placed);
	run_end(&run);
	return ret;
}
