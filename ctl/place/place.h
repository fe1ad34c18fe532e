/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The contract between a service and a placement policy: a cluster and a request go in, a
 * node and its GPUs come out. Pure: no input or output, no clock, no memory allocated by a
 * decision. Scores are integers, so that a decision is the same on every machine.
 * Documentation/placement.rst has the method.
 */
#ifndef MGPU_PLACE_H
#define MGPU_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLACE_MAX_GPUS		16	/* of a node */
#define PLACE_MAX_MODELS	32	/* of a cluster: bits of a mask */
#define PLACE_MAX_TYPES		32	/* vGPU types of a cluster: bits of a mask */
#define PLACE_MAX_NODES		65536
#define PLACE_MAX_AMOUNT	1000000000	/* of CPU or memory of a node or a request */
#define PLACE_WHOLE		1000	/* thousandths of a GPU */
#define PLACE_ANY_MODEL		UINT32_MAX

/* The bound of a request's GPU work: neighbours of another kind are better. */
enum place_kind {
	PLACE_KIND_ANY,
	PLACE_KIND_COMPUTE,
	PLACE_KIND_MEMORY,
	PLACE_KINDS,
};

/**
 * struct place_node - a node: what it has, and what of that is free
 * @cpu_free: host CPU, thousandths of a processor, 0 to @cpu_milli
 * @memory_free: host memory, MiB, 0 to @memory_mib
 * @gpu_total: sum of @gpu_free; place_node_sum() sets it
 * @max_free: largest of @gpu_free; place_node_sum() sets it
 * @nr_full: GPUs of which all is free; place_node_sum() sets it
 * @nr_gpus: GPUs, 0 to PLACE_MAX_GPUS
 * @model: model of the GPUs, below PLACE_MAX_MODELS
 * @types: mask of the vGPU types that the node offers
 * @capabilities: mask of what the node can do; the bits are the caller's
 * @gpu_free: free thousandths of each GPU, 0 to PLACE_WHOLE
 * @gpu_memory_free: free memory of each GPU, MiB
 * @gpu_memory_mib: memory of each GPU, MiB; 0: unknown, and not checked
 * @cpu_milli: capacity, thousandths of a processor
 * @memory_mib: capacity, MiB
 * @tasks: tasks by size: [0] parts of GPUs, [n] n whole GPUs
 * @tenants: tasks of each kind on each GPU
 */
struct place_node {
	int32_t cpu_free;
	int32_t memory_free;
	int32_t gpu_total;
	uint16_t max_free;
	uint8_t nr_full;
	uint8_t nr_gpus;
	uint8_t model;
	uint32_t types;
	uint32_t capabilities;
	uint16_t gpu_free[PLACE_MAX_GPUS];
	int32_t gpu_memory_free[PLACE_MAX_GPUS];
	int32_t gpu_memory_mib;
	int32_t cpu_milli;
	int32_t memory_mib;
	uint16_t tasks[PLACE_MAX_GPUS + 1];
	uint16_t tenants[PLACE_MAX_GPUS][PLACE_KINDS];
};

/**
 * struct place_type - a vGPU type
 * @gpu_milli: part of a GPU, thousandths, 1 to PLACE_WHOLE
 * @gpu_memory_mib: memory of the GPU, MiB
 */
struct place_type {
	uint16_t gpu_milli;
	int32_t gpu_memory_mib;
};

/**
 * struct place_request - what is to be placed
 * @cpu_milli: host CPU, thousandths of a processor, 0 to PLACE_MAX_AMOUNT
 * @memory_mib: host memory, MiB, 0 to PLACE_MAX_AMOUNT
 * @gpu_memory_mib: memory of each GPU, MiB, 0 to PLACE_MAX_AMOUNT
 * @gpu_milli: part of each GPU, thousandths; 1 to PLACE_WHOLE, 0 without a GPU
 * @nr_gpus: GPUs, 0 to PLACE_MAX_GPUS; 1 for a vGPU
 * @kind: enum place_kind
 * @vgpu: a vGPU of a type that has at least @gpu_milli and @gpu_memory_mib
 * @models: mask of the models that will do, PLACE_ANY_MODEL for all; counts with GPUs only
 * @capabilities: mask of what the node must be able to do
 */
struct place_request {
	int32_t cpu_milli;
	int32_t memory_mib;
	int32_t gpu_memory_mib;
	uint16_t gpu_milli;
	uint8_t nr_gpus;
	uint8_t kind;
	bool vgpu;
	uint32_t models;
	uint32_t capabilities;
};

/**
 * enum place_reason - the first check of the hard filter that a node fails
 * @PLACE_FITS: none
 * @PLACE_NO_MODEL: its GPUs are of another model
 * @PLACE_NO_CAPABILITY: it lacks a capability
 * @PLACE_NO_TYPE: it offers no vGPU type that is large enough
 * @PLACE_NO_CPU: too little host CPU is free
 * @PLACE_NO_MEMORY: too little host memory is free
 * @PLACE_NO_GPUS: it has too few GPUs, used or not
 * @PLACE_NO_GPU: too little of its GPUs is free
 * @PLACE_NO_GPU_MEMORY: too little memory is free on the GPUs that would do otherwise
 * @PLACE_REASONS: number of reasons, none of them
 */
enum place_reason {
	PLACE_FITS,
	PLACE_NO_MODEL,
	PLACE_NO_CAPABILITY,
	PLACE_NO_TYPE,
	PLACE_NO_CPU,
	PLACE_NO_MEMORY,
	PLACE_NO_GPUS,
	PLACE_NO_GPU,
	PLACE_NO_GPU_MEMORY,
	PLACE_REASONS,
};

/**
 * struct place_choice - a decision
 * @node: index of the node
 * @gpus: mask of the node's GPUs
 * @type: vGPU type, -1 for none
 * @gpu_milli: thousandths taken of each GPU; a vGPU takes its type's
 * @gpu_memory_mib: memory taken of each GPU, MiB
 * @same: tasks of the request's kind that are on the GPUs already
 * @score: the policy's score, less is better
 * @tie: the policy's second score, for nodes with the same @score, less is better
 */
struct place_choice {
	size_t node;
	uint32_t gpus;
	int type;
	uint16_t gpu_milli;
	int32_t gpu_memory_mib;
	unsigned int same;
	int64_t score;
	int64_t tie;
};

struct place_potential;
struct place_policy;

/**
 * struct place_cluster - nodes, and what a policy keeps
 * @nodes: the nodes; whoever changes one calls place_node_changed()
 * @nr: nodes, 1 to PLACE_MAX_NODES
 * @types: vGPU types in ascending order of gpu_milli
 * @nr_types: vGPU types, up to PLACE_MAX_TYPES
 * @max_cpu: largest cpu_milli of a node; place_cluster_init() sets it
 * @max_gpus: largest number of GPUs of a node; place_cluster_init() sets it
 * @policy: the policy
 * @potential: for policies with @potential: the target workload, and learned weights
 * @random: state of the policy random: the seed
 */
struct place_cluster {
	struct place_node *nodes;
	size_t nr;
	const struct place_type *types;
	size_t nr_types;
	int32_t max_cpu;
	int32_t max_gpus;
	const struct place_policy *policy;
	struct place_potential *potential;
	uint64_t random;
};

/**
 * struct place_policy - a placement policy
 * @name: its name
 * @summary: one line of help
 * @potential: the cluster needs a potential
 * @learned: the potential needs learned weights
 * @neighbours: of nodes with equal scores that with fewer neighbours of the same kind is
 *	chosen; else the first of them
 * @score: rate a node that passes the filter. Gets the request with the amounts of the
 *	vGPU type, if any, and sets @choice->gpus and @choice->same, and @choice->tie if it
 *	has a second score. Less is better.
 */
struct place_policy {
	const char *name;
	const char *summary;
	bool potential;
	bool learned;
	bool neighbours;
	int64_t (*score)(struct place_cluster *c, size_t node, const struct place_request *r,
			 struct place_choice *choice);
};

/* All policies, NULL at the end. */
extern const struct place_policy *const place_policies[];

/* Return the policy of this name, NULL if there is none. */
const struct place_policy *place_policy_find(const char *name);

/* Set the sums of a node from its GPUs. */
void place_node_sum(struct place_node *n);

/* Set the sums of all nodes, and of the cluster. */
void place_cluster_init(struct place_cluster *c);

/* Follow a change of a node's free amounts: its sums, and its value in the potential. */
void place_node_changed(struct place_cluster *c, size_t node);

/* Return why the node cannot take the request, PLACE_FITS if it can. */
enum place_reason place_filter(const struct place_cluster *c, size_t node,
			       const struct place_request *r);

/* Return the sentence for a reason. */
const char *place_reason_text(enum place_reason reason);

/**
 * place_decide() - choose a node and its GPUs
 * @c: the cluster, with a policy; only the state of random is changed
 * @r: the request
 * @choice: result
 *
 * Return: 0, or -ENOSPC if no node fits.
 */
int place_decide(struct place_cluster *c, const struct place_request *r,
		 struct place_choice *choice);

/* Take what was decided from the node. The state of the node must be that of the decision. */
void place_commit(struct place_cluster *c, const struct place_request *r,
		  const struct place_choice *choice);

/* Give back what was taken. */
void place_release(struct place_cluster *c, const struct place_request *r,
		   const struct place_choice *choice);

/* ---- for policies ---- */

/* Return whether GPU @g of the node can take the request. */
bool place_gpu_fits(const struct place_node *n, unsigned int g, const struct place_request *r);

/* Set @choice->gpus and @choice->same: the fitting GPUs with the least free. */
void place_best_gpus(const struct place_node *n, const struct place_request *r,
		     struct place_choice *choice);

#endif /* MGPU_PLACE_H */
