/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What frames cost, over time: made by a seeded random process, or read from a
 * trace. Costs belong to a moment and not to a policy, so that all policies see
 * the same ones in the same second; and what the coming period costs can be
 * known ahead.
 */
#ifndef MGPU_SIM_COSTS_H
#define MGPU_SIM_COSTS_H

#include "machine.h"

/**
 * struct cost_spec - a process
 * @cpu_ms: mean CPU time of a frame
 * @engine_ms: mean engine time of a frame
 * @drift: standard deviation of the logarithm of a slow drift, an AR(1) process;
 *	one for the CPU and one for the engine
 * @drift_s: after this time a drift has lost all but 1/e
 * @scene: standard deviation of the logarithm of a scene's costs, which stay as
 *	they are until the next scene
 * @scene_s: mean time between two scenes, which come at random
 * @noise: standard deviation of the logarithm of one frame's costs
 *
 * The factors have mean 1 and are multiplied.
 */
struct cost_spec {
	double cpu_ms;
	double engine_ms;
	double drift;
	double drift_s;
	double scene;
	double scene_s;
	double noise;
};

struct costs;
struct trace;

/* NULL when out of memory. */
struct costs *costs_generate(const struct cost_spec *spec, size_t nr_vms,
			     double seconds, uint64_t seed);

/*
 * The k-th frame that a VM begins in a second of the trace costs what the k-th
 * frame recorded in that second did, and after the last one the first. When the
 * trace is over it begins anew. NULL when out of memory.
 */
struct costs *costs_replay(const struct trace *trace);
void costs_free(struct costs *c);

/* Nothing was begun so far: to be called before each run. */
void costs_rewind(struct costs *c);

/* For struct machine_config; @data is struct costs. */
void costs_frame(void *data, size_t vm, uint64_t now_ns, struct machine_frame *f);

/*
 * The mean cost of a frame from @from_ns on until @to_ns; false when the trace has
 * none of the VM then.
 */
bool costs_mean(const struct costs *c, size_t vm, uint64_t from_ns, uint64_t to_ns,
		struct machine_frame *f);

/* Mean and standard deviation over all steps, of what costs_mean() says of each. */
void costs_describe(const struct costs *c, size_t vm, struct machine_frame *mean,
		    struct machine_frame *std);

/* A trace's VM shows frames at @now_ns, or will within 3 s; else it is idle. */
bool costs_wants(const struct costs *c, size_t vm, uint64_t now_ns);

#endif /* MGPU_SIM_COSTS_H */
