/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The analysis' knowledge of a number in a register or in memory.
 *
 * A value is a sum of symbols times constants, or, where it is not known how, a function of
 * symbols.  Symbols are what a value had when an iteration began, results of calls, and what
 * is loaded from memory.  Widths are not kept apart: a sum that overflows, or is cut to 32 bits,
 * is predicted wrongly, and the front end compares every prediction with the argument.
 */
#ifndef MGPU_DEFER_VALUE_H
#define MGPU_DEFER_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "api.h"

#define MAX_SYMS	512
#define MAX_TERMS	4
#define NO_SYM		UINT16_MAX

/**
 * enum sym_kind - what a symbol stands for
 * @SYM_REG: a register when the iteration, or the function, began; @a: its number
 * @SYM_SLOT: bytes of the stack then; @a: base, @b: offset, @size: bytes
 * @SYM_FRAME: base of addresses on the stack: the stack pointer when the function began, or
 *	what it was aligned to by the instruction at @b if @a is 1; or FRAME_PUSHED as @a, where a
 *	call of the API keeps what another one gives back
 * @SYM_GLOBAL: bytes at the fixed address @b
 * @SYM_HEAP: bytes at the address of the symbol @a plus @b; memory at any other addresses if
 *	@size is 0
 * @SYM_RESULT: what the call at @b gives back; @a: number of the argument, or RESULT_RETURNED
 * @SYM_PRODUCT: product of the symbols @a and @b
 * @SYM_OTHER: something that the instruction at @b made, or that differs each time that
 *	control comes there
 *
 * Of SYM_OTHER and SYM_RESULT @context tells calls of a function from different places
 * apart.
 */
enum sym_kind {
	SYM_REG,
	SYM_SLOT,
	SYM_FRAME,
	SYM_GLOBAL,
	SYM_HEAP,
	SYM_RESULT,
	SYM_PRODUCT,
	SYM_OTHER,
};

#define RESULT_RETURNED	API_MAX_ARGS
#define FRAME_PUSHED	2

struct sym {
	enum sym_kind kind;
	unsigned int a;
	int64_t b;
	unsigned int size;
	uint64_t context;
	enum api_result holds;		/* of SYM_RESULT */
};

/* A set of symbols. */
struct symset {
	uint64_t word[MAX_SYMS / 64];
};

/**
 * struct syms - symbols of a function; zeroed it has none
 * @sym: the symbols
 * @nr: number of symbols
 * @full: one more was wanted than there is room for
 * @frames, @results: those of the kinds SYM_FRAME and SYM_RESULT
 * @table: numbers of symbols, plus 1, by the hash of what they stand for
 */
struct syms {
	struct sym sym[MAX_SYMS];
	unsigned int nr;
	bool full;
	struct symset frames, results;
	uint16_t table[2 * MAX_SYMS];
};

struct term {
	uint16_t sym;
	int64_t coef;
};

/**
 * struct value - what is known of a number
 * @linear: it is @c plus the @nr @terms, sorted by symbol, none with the factor 0
 * @cut: it may have been cut to 32 bits or less
 * @rounded: its lowest bits may have been cleared
 * @id: two values of one place that are not linear are the same if this is
 * @choices: if it is not linear: it is one of these as it is, if there are any
 * @deps: the symbols that it depends on, those that decide on the way to it among them
 *
 * Its sets are kept by struct values: two are the same if their addresses are.
 */
struct value {
	bool linear, cut, rounded;
	uint8_t nr;
	const struct symset *deps;
	union {
		struct {
			int64_t c;
			struct term terms[MAX_TERMS];
		};
		struct {
			uint64_t id;
			const struct symset *choices;
		};
	};
};

/* Operations on kept values that struct values caches the results of. */
#define VALUES_CACHED	2048U

enum value_op {
	OP_NONE,
	OP_CONST,
	OP_ADD,
	OP_MIX,
	OP_CUT,
	OP_BLUR,
	OP_ROUND,
	OP_MEMBER,
	OP_UNITE,
};

struct value_result {
	enum value_op op;
	const struct value *a, *b;
	uint64_t n, id;
	const struct value *result;
};

/* Addresses by hash, NULL where there is none; the size is a power of 2. */
struct kept {
	struct kept_place {
		const void *it;
		uint64_t hash;
	} *table;
	unsigned int size, nr;
};

/**
 * struct values - values that are kept, each once: two are the same if their addresses are
 * @values: the values
 * @sets: their sets of symbols
 * @chunks: memory of both
 * @sym: values that are one symbol, by its number, and that of NO_SYM
 * @cache: results of operations by a hash of the operation and its operands, VALUES_CACHED of
 *	them; a later result replaces an earlier one
 * @operations: number of operations, but for merges
 * @computed: number of those whose results were not in the cache
 * @merged: number of merges of two values
 * @no_memory: some value is not what it should be, since there was no memory for it
 *
 * Zeroed it has none.  A value depends on numbers of symbols only, not on what these stand for, so
 * that it stays as it is when the symbols change.
 */
struct values {
	struct kept values, sets;
	struct value_chunk *chunks;
	const struct value *sym[MAX_SYMS + 1];
	struct value_result *cache;
	uint64_t operations, computed, merged;
	bool no_memory;
};

/* Free all values; the counts stay as they are. */
void values_free(struct values *values);

const struct value *values_const(struct values *values, int64_t c);
const struct value *values_sym(struct values *values, uint16_t sym);
/* a + b * factor */
const struct value *values_add(struct values *values, const struct value *a,
			       const struct value *b, int64_t factor, uint64_t id);
/* a * b: a sum again if one of them is a number, or one that is made of products. */
const struct value *values_multiply(struct values *values, const struct value *a,
				    const struct value *b, struct syms *syms, uint64_t id);
/* A function of both, of which no more is known; @b may be NULL. */
const struct value *values_mix(struct values *values, const struct value *a,
			       const struct value *b, uint64_t id);
/*
 * A function of all @nr values: of the first, then of that and the next, and so on, each a
 * values_mix() with @id.
 */
const struct value *values_mix_all(struct values *values, const struct value *const *v,
				   unsigned int nr, uint64_t id);
/* The value where it may have been cut; a number stays as it is. */
const struct value *values_cut(struct values *values, const struct value *v);
/* The value where its lowest bits may have been cleared. */
const struct value *values_round(struct values *values, const struct value *v);
/* A function of the value, which depends on all that @by does and on a symbol, too. */
const struct value *values_blur(struct values *values, const struct value *v,
				const struct value *by, uint16_t sym, uint64_t id);
/* A value that depends on all that two do, of which the second may be NULL, and says no more. */
const struct value *values_unite(struct values *values, const struct value *a,
				 const struct value *b);
/* The first value, a symbol, which depends on all that the second does, too. */
const struct value *values_member(struct values *values, const struct value *v,
				  const struct value *of);
/* Return a value that is @a or @b, as @why decides; @a itself if @b changes nothing. */
const struct value *values_merge(struct values *values, const struct value *a,
				 const struct value *b, uint64_t id, const struct symset *why);

/* Return the symbol's number; the same symbol has one number. NO_SYM: there are too many. */
uint16_t sym_intern(struct syms *s, const struct sym *sym);

/* Forget all symbols but the first @nr. */
void syms_cut(struct syms *s, unsigned int nr);

/* Return whether two sets have a symbol in common. */
static inline bool symset_meets(const struct symset *a, const struct symset *b)
{
	uint64_t both = 0;
	unsigned int i;

	for (i = 0; i < MAX_SYMS / 64; i++)
		both |= a->word[i] & b->word[i];
	return both;
}

void symset_add(struct symset *set, uint16_t sym);
/* Return the first symbol of both sets from @from on, or MAX_SYMS. */
uint16_t symset_next(const struct symset *a, const struct symset *b, uint16_t from);
bool symset_has(const struct symset *set, uint16_t sym);
/* Return whether @set grew. */
bool symset_union(struct symset *set, const struct symset *more);

bool value_equal(const struct value *a, const struct value *b);
/* Return whether it is a symbol as it is, or one of several: those are @choices. */
bool value_is_plain(const struct value *v, struct symset *choices);
bool value_is_const(const struct value *v, int64_t *c);

/* Return an identity for something made of two. */
uint64_t value_hash(uint64_t a, uint64_t b);

#endif /* MGPU_DEFER_VALUE_H */
