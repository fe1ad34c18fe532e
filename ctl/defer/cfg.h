/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The control-flow graph of a function: basic blocks, dominators, natural loops.
 */
#ifndef MGPU_DEFER_CFG_H
#define MGPU_DEFER_CFG_H

#include <capstone/capstone.h>
#include <stdbool.h>
#include <stdint.h>

#include "image.h"
#include "insn.h"

#define CFG_NONE	UINT32_MAX

/**
 * struct cfg_block - instructions of which all or none are executed
 * @first: index of the first instruction
 * @nr: number of instructions
 * @succ: blocks that can follow in this function: not taken, then taken; or CFG_NONE
 * @pred: blocks that it can follow
 * @nr_pred: number of @pred
 * @leaves: control can leave the function at its end
 * @order: place in reverse postorder, or CFG_NONE if nothing leads here
 * @dominator: immediate dominator, itself for the entry
 * @loop: innermost loop that it is in, or CFG_NONE
 */
struct cfg_block {
	unsigned int first, nr;
	uint32_t succ[2];
	uint32_t *pred;
	unsigned int nr_pred;
	bool leaves;
	uint32_t order, dominator, loop;
};

/**
 * struct cfg_loop - natural loop; those of one header are one loop
 * @header: the block at which each iteration begins
 * @parent: next loop around it, or CFG_NONE
 * @depth: 1 for an outermost one
 * @member: for each block whether the loop has it
 * @nr_blocks: number of its blocks
 */
struct cfg_loop {
	uint32_t header, parent;
	unsigned int depth;
	bool *member;
	unsigned int nr_blocks;
};

/**
 * struct cfg - graph of a function
 * @fn: the function
 * @insns: its instructions, sorted by address
 * @blocks: block 0 is the entry
 * @rpo: the blocks that can be reached, in reverse postorder
 * @loops: each behind those around it
 * @table_jumps: it jumps to addresses that are computed, so that edges are missing
 * @vectors_end: register (regs.h) from which on its instructions name no vector registers
 * @callees: functions of the program that it calls by their addresses, @nr_callees of them
 * @visit, @visit_depth: for a walk through the callees: its number, and how far it still went
 */
struct cfg {
	const struct image_function *fn;
	struct cs_insn **insns;
	unsigned int nr_insns;
	struct cfg_block *blocks;
	unsigned int nr_blocks;
	uint32_t *rpo;
	unsigned int nr_rpo;
	struct cfg_loop *loops;
	unsigned int nr_loops;
	bool table_jumps;
	unsigned int vectors_end;
	const struct image_function **callees;
	unsigned int nr_callees;
	unsigned int visit, visit_depth;
};

/**
 * cfg_build() - disassemble a function and find its loops
 * @g: result; cfg_free() frees it
 * @img: program
 * @fn: function
 * @capstone: handle for x86-64 with CS_OPT_DETAIL
 * @cache: instructions that were decoded, which are those of graphs that are freed after the last
 *	use of the cache
 *
 * Return: 0, or -ENOMEM
 */
int cfg_build(struct cfg *g, const struct image *img, const struct image_function *fn,
	      csh capstone, struct insn_cache *cache);
void cfg_free(struct cfg *g);

/* Graphs of a program's functions by their numbers, made when they are needed. */
struct cfgs {
	struct cfg **graph;		/* @img->nr_functions of them */
	const struct image *img;
	csh capstone;
	struct insn_cache cache;
	unsigned int visit;		/* number of the last walk through callees */
};

int cfgs_init(struct cfgs *c, const struct image *img, csh capstone);
/* Return the function's graph, or NULL: out of memory. */
struct cfg *cfgs_get(struct cfgs *c, const struct image_function *fn);
void cfgs_free(struct cfgs *c);

bool cfg_dominates(const struct cfg *g, uint32_t above, uint32_t below);

#endif /* MGPU_DEFER_CFG_H */
