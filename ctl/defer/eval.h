/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Symbolic execution of the code of a function, or of one loop of it: what registers and the
 * stack have at each block, which arguments calls get, and where results go.
 */
#ifndef MGPU_DEFER_EVAL_H
#define MGPU_DEFER_EVAL_H

#include "api.h"
#include "cfg.h"
#include "regs.h"
#include "value.h"

#define MAX_SLOTS	160
#define EVAL_MAX_CALLERS 4	/* functions within functions */

/* Bytes on the stack with a value of their own. */
struct slot {
	uint16_t frame;			/* symbol of kind SYM_FRAME */
	unsigned int size;
	int64_t off;			/* from the frame's base */
	const struct value *v;
};

/**
 * struct state - what holds at one place of the code
 * @reg: registers
 * @low: what was put into the lowest bytes of a general register last, without the rest
 * @low_size: number of these bytes, 0 if the whole register was written last
 * @scattered: depends on all that was stored to the stack at places that are not known, or NULL
 * @room: number of slots that there is memory for, where that can be less than MAX_SLOTS
 * @nr_slots: number of slots
 * @slots: what was stored to the stack since the start; what is missing is as it was then
 *
 * Its values are those of struct values: two are the same if their addresses are.
 */
struct state {
	const struct value *reg[NR_REGS];
	const struct value *low[NR_GENERAL];
	uint8_t low_size[NR_GENERAL];
	const struct value *scattered;
	unsigned int room, nr_slots;
	struct slot slots[MAX_SLOTS];
};

/**
 * enum note_kind - something that code does which matters to whether calls can wait
 * @NOTE_TEST: it branches on a value
 * @NOTE_STORE: it stores a value where others may read it
 * @NOTE_SLOT: it loads from a known place on the stack; the value is the address
 * @NOTE_LOAD: it loads from other memory; the value is the address
 * @NOTE_STORED: it stores to such memory; likewise
 * @NOTE_OVERWRITE: it stores to a slot that has a result
 * @NOTE_OTHER_CALL: it calls what is not the API
 * @NOTE_COMPUTE: it gives the value to a function of numbers, or divides by it
 * @NOTE_COMPUTED_CALL: it calls an address that is computed
 * @NOTE_SYSTEM: it enters the kernel, or does what is not understood
 */
enum note_kind {
	NOTE_TEST,
	NOTE_STORE,
	NOTE_SLOT,
	NOTE_LOAD,
	NOTE_STORED,
	NOTE_OVERWRITE,
	NOTE_OTHER_CALL,
	NOTE_COMPUTE,
	NOTE_COMPUTED_CALL,
	NOTE_SYSTEM,
};

struct note {
	enum note_kind kind;
	const cs_insn *insn;
	const struct value *v;		/* the value, or the address, or NULL */
	uint64_t size;			/* bytes at the address; 0: not known */
	const char *name;		/* of what is called, or NULL */
	uint32_t block;			/* of the outermost function */
	bool no_return;			/* it stands in a function, on a way that does not return */
	struct symset why;		/* what then decides on that way */
};

/* Memory that a call gives a result in. */
struct target {
	unsigned int arg;
	const struct value *address;
	uint64_t size;			/* bytes; 0: not known */
	bool slot;			/* on the stack, at a place that is known */
};

/* Pieces of the stack that an argument points to. */
struct pointee {
	int64_t off;			/* from the start of what is pointed to */
	unsigned int size;
	int64_t limit;			/* bytes that it may have, if the API does not say; or 0 */
	const struct value *v;
};

#define MAX_POINTEES	16

/* A call of the API. */
struct site {
	const cs_insn *insn;
	const struct api_function *fn;
	uint32_t block;			/* of the outermost function */
	const struct value *args[API_MAX_ARGS];
	struct pointee *pointees[API_MAX_ARGS];	/* MAX_POINTEES of them, or NULL */
	unsigned int nr_pointees[API_MAX_ARGS];
	struct target targets[API_MAX_ARGS];
	unsigned int nr_targets;
};

/**
 * struct eval_shared - what all executions of a program's functions and loops have in common
 * @values: what states have
 * @vectors_end: vector registers from here on do not occur in the function, nor in those that are
 *	executed as a part of it; states have the one before only, which stands for them
 * @exposures: how many times addresses became known to other code
 * @callees: number of calls of which it is kept what they came to
 * @blocks: number of blocks, once for each execution of code that has them from its start on
 * @executed: number of times that a block was executed
 *
 * Zeroed it has nothing; values_free() frees @values.
 */
struct eval_shared {
	struct values values;
	unsigned int vectors_end;
	uint64_t exposures;
	unsigned int callees;
	uint64_t blocks, executed;
};

struct callee;

/**
 * struct eval - execution of a function or loop
 * @img: program
 * @cfgs: graphs of its functions
 * @cfg: the function's graph
 * @syms: its symbols, which the caller keeps
 * @shared: what the caller keeps for all executions
 * @member: the loop's blocks, or NULL for the whole function
 * @entry: block at which it begins
 * @at: for each block the state at its beginning, or NULL if nothing leads there
 * @out: for each block behind which a function that is called returns the state at its end
 * @end: state at the ends of the blocks that lead back to @entry, merged; NULL if none does
 * @tests: for each block what its branch depends on
 * @merged: for each block, and behind them the end of an iteration, whether states were merged
 * @deciding: likewise the numbers of those whose branches decide on which way control comes
 *	there, and CFG_NONE; NULL until it is needed
 * @exposed: for each symbol of kind SYM_FRAME the lowest offset whose address other code may
 *	know, or INT64_MAX; MAX_SYMS of them, which the caller keeps
 * @caller: what called the function, of which this is a part; NULL for the outermost
 * @callees: functions that it called, which were executed as parts of it
 * @context: number of the calls on the way there
 * @forgetful: nothing on the stack is known behind a call, since @exposed is not yet
 * @notes, @sites: filled by eval_collect()
 * @too_much: the code has more slots than are kept apart; @syms says it of symbols, which a
 *	function may have more of than a loop
 */
struct eval {
	const struct image *img;
	struct cfgs *cfgs;
	const struct cfg *cfg;
	struct syms *syms;
	struct eval_shared *shared;
	const bool *member;
	uint32_t entry;
	struct state **at;
	struct state **out;
	struct state *end;
	struct symset *tests;
	bool *merged;
	uint32_t **deciding;
	int64_t *exposed;
	const struct eval *caller;
	struct callee *callees;
	uint64_t context;
	bool forgetful;
	bool collect, grown;		/* of eval.c, as what follows */
	uint32_t block;
	bool no_return;
	struct symset why;
	struct note *notes;
	unsigned int nr_notes;
	struct site *sites;
	unsigned int nr_sites;
	bool too_much;
	bool no_memory;
};

/**
 * eval_run() - execute until nothing changes
 * @e: what to execute; eval_free() frees the results
 * @start: state at its beginning
 *
 * Return: 0, or -ENOMEM
 */
int eval_run(struct eval *e, const struct state *start);
/* Execute each block once more, for @notes and @sites. */
void eval_collect(struct eval *e);
void eval_free(struct eval *e);

/* Execute a block that eval_run() came to: @st is what holds at its end. */
void eval_block(struct eval *e, uint32_t block, struct state *st);

/* Return the value of bytes of the stack in a state. */
const struct value *eval_slot(const struct eval *e, const struct state *st, uint16_t frame,
			      int64_t off, unsigned int size);

/*
 * Find @vectors_end of a function, of which what it calls may be executed as a part. Return 0, or
 * -ENOMEM.
 */
int eval_find_vectors(struct eval_shared *shared, struct cfgs *cfgs,
		      const struct image_function *fn);

/* Return the next register that states have, NR_REGS behind the last. */
unsigned int eval_next_reg(const struct eval_shared *shared, unsigned int reg);

/* Begin a table of symbols with the bases of the stack, which so have the same numbers in all. */
void eval_frames(struct syms *syms, const struct cfg *g);

/* Registers as a function finds them. */
void eval_function_start(struct eval_shared *shared, struct syms *syms, struct state *start);

/*
 * Registers and stack as an iteration finds them: what @at, the function's state at the
 * header, has as an address on the stack or as a constant, and symbols for everything else.
 * Of the symbols the first @nr_frames, of eval_frames(), stay.
 */
void eval_loop_start(struct eval_shared *shared, struct syms *syms, unsigned int nr_frames,
		     const struct state *at, struct state *start);

/* Return whether it is an address on the stack, at a known place: base and offset. */
bool eval_is_slot(const struct syms *syms, const struct value *v, uint16_t *frame,
		  int64_t *off);

#endif /* MGPU_DEFER_EVAL_H */
