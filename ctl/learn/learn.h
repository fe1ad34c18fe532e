/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state of VMs that share a host, and the share of each resource that a model predicts
 * for one of them. Pure: plain structs in, plain structs out.
 *
 * A model predicts the share of each resource that a VM has in the plan which the allocator
 * "exact" would make if it were told the costs of the coming period. Controls
 * (controls.c) compute it from counters, the response network (network.h) and trees
 * (trees.h) learned it from periods that have passed. Documentation/learned.rst has more.
 */
#ifndef MGPU_LEARN_H
#define MGPU_LEARN_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LEARN_CLIENTS	16	/* VMs that one prediction looks at */
#define LEARN_PAST	32	/* periods, the last one is the present */
#define LEARN_TEXT	96	/* bytes of a description, with the NUL at its end */

/* Resources of which a VM has a share. */
enum learn_resource {
	LEARN_CPU,		/* the CPUs */
	LEARN_ENGINE,		/* the engines of its device */
	LEARN_RESOURCES,
};

/**
 * struct learn_task - a VM
 * @text: what it is for, in words, as its owner describes it; "" if nobody did
 * @weight: weight of its vGPU, 1 to 10000
 * @periods: periods in which it was active and measured; 0 for a VM that never was
 * @cost: what a frame costs of each resource, seconds; 0 unless @periods
 * @fps: frames per second in the last period, 0 if it was not active
 * @use: part of each resource that it used in the last period, 0 to 1
 * @smooth: the same, averaged over the periods in which it was active; 0 unless @periods
 */
struct learn_task {
	char text[LEARN_TEXT];
	double weight;
	double periods;
	double cost[LEARN_RESOURCES];
	double fps;
	double use[LEARN_RESOURCES];
	double smooth[LEARN_RESOURCES];
};

/**
 * struct learn_input - a question: which share of each resource is due to a VM
 * @n: number of VMs, 1 to LEARN_CLIENTS
 * @task: the VM that is asked for comes first; the order of the others does not matter
 * @distance: between two VMs, at least 0: 0 from a VM to itself, 1 between VMs on the same
 *	device, 2 between VMs of the host on different devices; symmetric
 * @idle: part of each resource that no VM used in each of the last LEARN_PAST periods, 0 to
 *	1; the present is the last, periods before the first one repeat it
 * @now: part of each resource that there is to be divided, 0 to 1
 */
struct learn_input {
	size_t n;
	struct learn_task task[LEARN_CLIENTS];
	double distance[LEARN_CLIENTS][LEARN_CLIENTS];
	double idle[LEARN_RESOURCES][LEARN_PAST];
	double now[LEARN_RESOURCES];
};

/**
 * struct learn_model_ops - a kind of model
 * @name: its name in files, settings and reports
 * @summary: one line of help
 * @learned: it needs a file of weights (file.h); else @data is NULL
 * @load: make it from the payload of a file, which is not trusted. Returns 0, or -EINVAL or
 *	-ENOMEM with a sentence in @why
 * @free: of what @load made
 * @share: write the share of each resource that the first VM of @in is expected to have, 0
 *	to 1. Allocates no memory. The caller checks for values that are not finite
 */
struct learn_model_ops {
	const char *name;
	const char *summary;
	bool learned;
	int (*load)(void **data, const char *payload, size_t size, char *why, size_t len);
	void (*free)(void *data);
	void (*share)(void *data, const struct learn_input *in,
		      double share[LEARN_RESOURCES]);
};

extern const struct learn_model_ops learn_static;
extern const struct learn_model_ops learn_proportional;
extern const struct learn_model_ops learn_persistence;
extern const struct learn_model_ops learn_smoothing;
extern const struct learn_model_ops learn_trees;
extern const struct learn_model_ops learn_network;

/* All kinds, NULL at the end. */
extern const struct learn_model_ops *const learn_models[];

/* Return the kind of this name, NULL if there is none. */
const struct learn_model_ops *learn_model_find(const char *name);

#endif /* MGPU_LEARN_H */
