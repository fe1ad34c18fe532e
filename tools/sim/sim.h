/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mgpu-sim: the controller's own estimate and decide, closed over a modelled
 * machine. scenario.c says what runs, loop.c runs it under a policy, report.c
 * tells what came out.
 */
#ifndef MGPU_SIM_H
#define MGPU_SIM_H

#include <stdio.h>

#include "costs.h"
#include "decide.h"
#include "learner.h"
#include "machine.h"
#include "tracefile.h"

#define SIM_WINDOW	30		/* intervals of the moving average */
#define SIM_SETTLE_S	5.0		/* at the beginning; not counted */
#define SIM_FIRST_S	5.0		/* after a VM has come; f of those is told apart */
#define SIM_NAME_LEN	48

/**
 * struct sim_away - when a VM is not there
 * @cycle_s: how often, 0 for never
 * @from_s: in each cycle, from then on
 * @to_s: until then, which may be in the next cycle
 * @closed: it is shut down and later started again; else it makes no frames
 */
struct sim_away {
	double cycle_s, from_s, to_s;
	bool closed;
};

/**
 * struct sim_vm - a VM of a scenario
 * @name: for people
 * @what: what it does, for people
 * @text: how its owner describes it to mgpud, "" if not at all
 * @machine: how it runs
 * @cost: what its frames cost, unless a trace says
 * @sla: its agreement
 * @away: when it is not there
 */
struct sim_vm {
	char name[SIM_NAME_LEN];
	char what[SIM_NAME_LEN];
	char text[LEARN_TEXT];
	struct machine_vm machine;
	struct cost_spec cost;
	struct sla sla;
	struct sim_away away;
};

/**
 * struct sim - what is to be simulated
 * @name: of the scenario, "trace" for a trace
 * @summary: for people
 * @machine: the machine; its VMs are those of @vms
 * @vms: VMs
 * @nr_vms: number of them
 * @costs: what frames cost
 * @seconds: that are counted, after SIM_SETTLE_S
 * @seed: of the costs
 * @period_ms: length of a period of the controller, ms
 * @headroom: demand of a VM that no limit holds back, in measured rates
 * @param: how the controller divides rates; the allocator is that of a run
 * @models: models that an allocator can have expectations from, the caller's
 * @nr_models: number of them
 * @log: gets a line for each period, NULL for none
 */
struct sim {
	char name[SIM_NAME_LEN];
	const char *summary;
	struct machine_config machine;
	struct sim_vm *vms;
	size_t nr_vms;
	struct costs *costs;
	double seconds;
	uint64_t seed;
	unsigned int period_ms;
	double headroom;
	struct decide_param param;
	const struct learner_model *models;
	size_t nr_models;
	FILE *log;
};

/**
 * struct sim_point - a VM in a period
 * @fps: frames per second that it showed
 * @cpu_share: of the CPU time that VMs had or could have had
 * @gpu_share: of the engines' time
 * @limit: that was in force, INFINITY for none
 * @present: it wanted to show frames all the time
 * @active: mgpud took it for active
 * @below: its rate was below its floor by more than a frame
 */
struct sim_point {
	double fps, cpu_share, gpu_share, limit;
	bool present, active, below;
};

/**
 * struct sim_period - a period
 * @end_s: when it ended
 * @fds: f of what was measured; NAN unless who was present was active, and
 *	nobody else
 * @best: mgpud's fds_best: the largest f that the period allowed, from what it measured
 * @bound: f of the best rates for the true costs, if no time were ever lost
 * @since_s: from when a VM came last to its end
 * @nr_short: floors that mgpud could not grant
 */
struct sim_period {
	double end_s, fds, best, bound, since_s;
	size_t nr_short;
};

/**
 * struct sim_run - the result of an allocator
 * @allocator: name of the policy
 * @nr: periods that are counted
 * @periods: those
 * @points: of each, one per VM
 * @cpu_s: CPU time that it took to simulate
 * @simulated_s: simulated time, the settling included
 * @use: of the machine
 */
struct sim_run {
	const char *allocator;
	size_t nr;
	struct sim_period *periods;
	struct sim_point *points;
	double cpu_s, simulated_s;
	struct machine_use use;
};

/* The allocator that is told the costs of the coming period. */
#define SIM_CLAIRVOYANT "clairvoyant"

/* Between the name of an allocator and that of the model that it has expectations from. */
#define SIM_WITH	'+'

/* ---- scenario.c ---- */

/* Names and summaries, NULL at the end. */
const char *sim_scenario(size_t i, const char **summary);

/*
 * Both return 0, or -errno with a sentence in @why; @s is to be freed. @seed: of scenarios that
 * are drawn, and of costs.
 */
int sim_from_scenario(struct sim *s, const char *name, uint64_t seed, char *why, size_t len);
int sim_from_trace(struct sim *s, const struct trace *t, char *why, size_t len);

/* Begin a scenario with so many VMs, zeroed. Returns 0 or -ENOMEM. */
int sim_begin(struct sim *s, const char *name, size_t nr_vms);

/* When all is set: makes the costs, of @t or of the scenario. */
int sim_prepare(struct sim *s, const struct trace *t, char *why, size_t len);
void sim_free(struct sim *s);

/* ---- drawn.c ---- */

/* Names and summaries of scenarios that are drawn from a seed, NULL at the end. */
const char *drawn_scenario(size_t i, const char **summary);

/* Return how many VMs the seed has. */
size_t drawn_vms(uint64_t seed);

/* Fill in a scenario that has room for its VMs; false if no drawn one has this name. */
bool drawn_fill(struct sim *s, const char *name, uint64_t seed);

/* ---- tasks.c ---- */

struct place_trace;

/* As sim_from_scenario(), of tasks of a cluster that are drawn from a trace. */
int sim_from_tasks(struct sim *s, const struct place_trace *t, uint64_t seed, char *why,
		   size_t len);

/* ---- loop.c ---- */

/*
 * Find what a policy consists of: an allocator of mgpud or fea-printed, which may be followed by
 * a model, as in exact+static; or SIM_CLAIRVOYANT, which is neither. False if it is unknown.
 */
bool sim_policy(const char *policy, const struct alloc_ops **allocator,
		const struct learn_model_ops **model);

/*
 * Run a policy, whose name must stay. Returns 0; -ENOENT if @s does not have its model; or
 * another -errno. @run is to be freed in any case.
 */
int sim_run(const struct sim *s, const char *policy, struct sim_run *run);
void sim_run_free(struct sim_run *run);

/* ---- log.c ---- */

/* Write a line about the period to the log, as mgpud's JSON log has it. 0 or -errno. */
int sim_log_period(const struct sim *s, const struct estimate *e);

/* ---- report.c ---- */

struct sim_stat {
	double mean, std;
	size_t n;
};

/* Mean and standard deviation (n - 1) of what is not NAN. */
struct sim_stat sim_stat(const double *first, size_t stride, size_t n);
struct sim_stat sim_stat_fds(const struct sim_run *run);

/* The same of the periods that end within SIM_FIRST_S of when a VM came. */
struct sim_stat sim_stat_first(const struct sim_run *run);

/* Mean of the last SIM_WINDOW known values up to @at, NAN before there are so many. */
double sim_average(const struct sim_run *run, size_t at);

void sim_print(const struct sim *s, const struct sim_run *runs, size_t nr);
int sim_write_json(const struct sim *s, const struct sim_run *runs, size_t nr,
		   const char *path);
int sim_write_csv(const struct sim *s, const struct sim_run *runs, size_t nr,
		  const char *path);

/* @why gets what gnuplot said. */
int sim_plot(const struct sim *s, const struct sim_run *runs, size_t nr,
	     const char *path, char *why, size_t len);

#endif /* MGPU_SIM_H */
