/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The loops of a program whose GPU calls can wait, by class.
 */
#ifndef MGPU_DEFER_CLASSIFY_H
#define MGPU_DEFER_CLASSIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api.h"
#include "cfg.h"
#include "image.h"

/**
 * enum arg_class - what an argument, or what it points to, is from iteration to iteration
 * @ARG_CONST: the same
 * @ARG_IV: a sum of a constant and a multiple of the iteration's number
 * @ARG_RESULT: computed from results of this or an earlier iteration's calls
 * @ARG_DATA: memory that is copied when the call is recorded
 * @ARG_UNKNOWN: anything else
 */
enum arg_class {
	ARG_CONST,
	ARG_IV,
	ARG_RESULT,
	ARG_DATA,
	ARG_UNKNOWN,
};

struct loop_call {
	uint64_t address;
	const struct api_function *fn;
	enum arg_class args[API_MAX_ARGS];
	enum arg_class pointees[API_MAX_ARGS];	/* of what lies on the stack */
	bool blocks;				/* it waits for its data */
};

/* Why the calls of a loop cannot wait, or what to see to when they do. */
struct loop_reason {
	uint64_t address;	/* of the instruction, 0 for the loop as a whole */
	char text[160];
};

/* Where a result has to go when the loop ends. */
struct write_back {
	uint64_t exit;		/* last instruction of the block that leaves the loop */
	char where[32];		/* register, or place on the stack */
	uint64_t call;		/* address of the call */
	unsigned int arg;	/* RESULT_RETURNED or the number of the argument */
};

/**
 * struct loop_report - loop with calls of the API
 * @fn: function
 * @header: address at which an iteration begins
 * @end: address behind its last instruction
 * @depth: 1 for an outermost loop
 * @class: 1: all arguments are constant; 2: some change with the iteration's number; 3: some
 *	are results; 0: its calls cannot wait
 * @extension: class 3 with arguments that change with the iteration's number, too
 * @calls: its calls of the API
 * @reasons: why its class is 0; the first of each instruction
 * @guards: conditions that only the running program can check
 * @results: where results go when it ends
 */
struct loop_report {
	const struct image_function *fn;
	uint64_t header, end;
	unsigned int depth, class;
	bool extension;
	struct loop_call *calls;
	struct loop_reason *reasons, *guards;
	struct write_back *results;
	unsigned int nr_calls, nr_reasons, nr_guards, nr_results;
};

/**
 * struct work_done - what an analysis did, for tests
 * @blocks: struct eval_shared's, as @executed
 * @operations: struct values', as @computed and @merged
 * @insns: number of instructions; of these Capstone decoded @decoded
 */
struct work_done {
	uint64_t blocks, executed, operations, computed, merged, insns, decoded;
};

struct report {
	struct loop_report *loops;
	unsigned int nr_loops;
	unsigned int nr_looked_at;	/* functions with calls of the API */
	struct work_done work;
};

/**
 * struct classify_options - what counts
 * @assume_success: a test of a call's status does not, since calls succeed
 * @picture: if set, called with the graph of each function that has such loops
 * @data: for @picture
 */
struct classify_options {
	bool assume_success;
	void (*picture)(const struct cfg *g, const struct loop_report *loops,
			unsigned int nr_loops, void *data);
	void *data;
};

/**
 * classify() - look at all loops of a program that call the API
 * @r: result; report_free() frees it
 * @img: program
 * @o: options
 *
 * Return: 0 or a negative errno
 */
int classify(struct report *r, const struct image *img, const struct classify_options *o);
void report_free(struct report *r);

#endif /* MGPU_DEFER_CLASSIFY_H */
