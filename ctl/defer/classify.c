// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "callers.h"
#include "classify.h"
#include "eval.h"
#include "live.h"

#define MAX_REASONS	64

/* A loop while it is looked at. */
struct look {
	const struct classify_options *o;
	const struct cfg *g;
	const struct cfg_loop *loop;
	struct eval e;
	enum arg_class sym[MAX_SYMS];
	struct symset of_class[ARG_UNKNOWN + 1];	/* the symbols of each */
	unsigned int nr_classes;	/* symbols from here on have no class, and may be results */
	enum { NOT_LOOKED_AT, NO, YES } exposes_results;
	struct loop_report *r;
	const uint16_t *live;		/* registers that are read behind the start of a block */
	const struct eval *whole;	/* the function */
	bool no_memory;
};

/* ---- what is said of a loop ---- */

static void add_reason(struct look *l, struct loop_reason **list, unsigned int *nr,
		       uint64_t address, const char *fmt, va_list ap)
{
	struct loop_reason reason = { .address = address }, *more;
	unsigned int i;

	vsnprintf(reason.text, sizeof(reason.text), fmt, ap);
	for (i = 0; i < *nr; i++)
		if ((*list)[i].address == address && !strcmp((*list)[i].text, reason.text))
			return;
	if (*nr == MAX_REASONS)
		return;
	more = reallocarray(*list, *nr + 1, sizeof(*more));
	if (!more) {
		l->no_memory = true;
		return;
	}
	*list = more;
	more[(*nr)++] = reason;
}

static void __attribute__((format(printf, 3, 4)))
because(struct look *l, const cs_insn *insn, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add_reason(l, &l->r->reasons, &l->r->nr_reasons, insn ? insn->address : 0, fmt, ap);
	va_end(ap);
}

static void __attribute__((format(printf, 3, 4)))
guard(struct look *l, const cs_insn *insn, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add_reason(l, &l->r->guards, &l->r->nr_guards, insn->address, fmt, ap);
	va_end(ap);
}

/* ---- classes of symbols and values ---- */

static void set_class(struct look *l, uint16_t sym, enum arg_class class)
{
	l->of_class[l->sym[sym]].word[sym / 64] &= ~(1ULL << sym % 64);
	l->sym[sym] = class;
	symset_add(&l->of_class[class], sym);
}

/* Class of a value that depends on symbols, and is a sum or not. */
static enum arg_class class_of(const struct look *l, const struct symset *deps, bool linear)
{
	bool iv;

	if (symset_meets(deps, &l->of_class[ARG_RESULT]))
		return ARG_RESULT;
	iv = symset_meets(deps, &l->of_class[ARG_IV]);
	if (symset_meets(deps, &l->of_class[ARG_UNKNOWN]) || (iv && !linear))
		return ARG_UNKNOWN;
	return iv ? ARG_IV : ARG_CONST;
}

static enum arg_class value_class(const struct look *l, const struct value *v)
{
	return class_of(l, v->deps, v->linear);
}

/* Return what a symbol's place has when an iteration ends, NULL if it has none. */
static const struct value *end_of(const struct look *l, const struct sym *place)
{
	if (!l->e.end)
		return NULL;
	if (place->kind == SYM_REG)
		return l->e.end->reg[place->a];
	return eval_slot(&l->e, l->e.end, (uint16_t)place->a, place->b, place->size);
}

/* Whether a register or slot ends an iteration as it began it; other symbols do not change. */
static bool stays_itself(const struct look *l, uint16_t i)
{
	const struct sym *sym = &l->e.syms->sym[i];

	/* Symbols that one is made of have lower numbers. */
	if (sym->kind == SYM_HEAP && sym->size)
		return stays_itself(l, (uint16_t)sym->a);
	if (sym->kind == SYM_PRODUCT)
		return stays_itself(l, (uint16_t)sym->a) && stays_itself(l, (uint16_t)sym->b);
	if (!l->e.end || (sym->kind != SYM_REG && sym->kind != SYM_SLOT))
		return true;
	return value_equal(end_of(l, sym), values_sym(&l->e.shared->values, i));
}

/* Class of a register's or slot's value at the iteration's start, from its value at the end. */
static enum arg_class carried_class(const struct look *l, uint16_t self, const struct value *end)
{
	enum arg_class class = ARG_CONST;
	bool stays = false, iv = false;
	unsigned int i;

	if (!end->linear || value_class(l, end) == ARG_RESULT) {
		class = value_class(l, end);
		/* A function of itself is no sum, even of something that stays. */
		return class != ARG_RESULT && symset_has(end->deps, self) ? ARG_UNKNOWN : class;
	}
	for (i = 0; i < end->nr; i++) {
		if (end->terms[i].sym == self) {
			if (end->terms[i].coef != 1)
				return ARG_UNKNOWN;
			stays = true;
		} else {
			class = l->sym[end->terms[i].sym];
			/* The first iteration may begin with another value than that place has. */
			if (class == ARG_UNKNOWN || (class == ARG_CONST &&
						     !stays_itself(l, end->terms[i].sym)))
				return ARG_UNKNOWN;
			iv |= class == ARG_IV;
		}
	}
	class = iv ? ARG_IV : ARG_CONST;
	if (!stays)
		return class;
	/* It grows by a constant, or by something that itself grows. */
	if (class != ARG_CONST)
		return ARG_UNKNOWN;
	return end->nr == 1 && !end->c ? ARG_CONST : ARG_IV;
}

/* Return whether addresses may name the same memory; sizes of 0 are not known. */
static bool may_overlap(const struct look *l, const struct value *a, uint64_t a_size,
			const struct value *b, uint64_t b_size)
{
	const struct value *d = values_add(&l->e.shared->values, a, b, -1, 0);
	uint16_t frame, other_frame;
	bool in_frame, other_in_frame;
	int64_t off;

	/* An address that moves with the iteration may come where the other was before. */
	if (a->linear && b->linear && value_is_const(d, &off) && a_size && b_size &&
	    value_class(l, a) == ARG_CONST)
		return off < (int64_t)b_size && -off < (int64_t)a_size;
	in_frame = eval_is_slot(l->e.syms, a, &frame, &off);
	other_in_frame = eval_is_slot(l->e.syms, b, &other_frame, &off);
	/* A fixed address is not on the stack. */
	if ((in_frame && value_is_const(b, &off)) || (other_in_frame && value_is_const(a, &off)))
		return false;
	return true;
}

static bool names_frame(const struct look *l, const struct value *v)
{
	return symset_meets(v->deps, &l->e.syms->frames);
}

/* Memory that has one symbol for all that is not known of it. */
static enum arg_class memory_class(const struct look *l, const struct sym *sym)
{
	struct values *values = &l->e.shared->values;
	const struct value *at = values_const(values, sym->b);
	enum arg_class class = ARG_CONST;
	unsigned int i, k;
	int64_t off;

	if (sym->kind == SYM_HEAP && sym->size) {
		at = values_add(values, values_sym(values, (uint16_t)sym->a), at, 1, 0);
		/* A base that changes with the iteration makes it another member each time. */
		if (l->sym[sym->a] != ARG_CONST)
			class = l->sym[sym->a] == ARG_RESULT ? ARG_RESULT : ARG_UNKNOWN;
	}

	for (i = 0; i < l->e.nr_sites; i++)
		for (k = 0; k < l->e.sites[i].nr_targets; k++) {
			const struct target *t = &l->e.sites[i].targets[k];

			if (sym->kind == SYM_GLOBAL && value_is_const(t->address, &off) &&
			    may_overlap(l, t->address, t->size, at, sym->size))
				return ARG_RESULT;
		}
	for (i = 0; i < l->e.nr_notes; i++) {
		const struct note *n = &l->e.notes[i];

		if (n->kind != NOTE_STORED)
			continue;
		if (!names_frame(l, n->v) && class == ARG_CONST &&
		    (sym->size ? may_overlap(l, n->v, n->size, at, sym->size) :
				 !value_is_const(n->v, &off)))
			class = ARG_UNKNOWN;
	}
	return class;
}

static enum arg_class product_class(enum arg_class a, enum arg_class b)
{
	if (a == ARG_RESULT || b == ARG_RESULT)
		return ARG_RESULT;
	if (a == ARG_CONST)
		return b;
	return b == ARG_CONST ? a : ARG_UNKNOWN;
}

static enum arg_class symbol_class(const struct look *l, uint16_t i)
{
	const struct sym *sym = &l->e.syms->sym[i];
	const struct value *end;

	switch (sym->kind) {
	case SYM_FRAME:
		return ARG_CONST;
	case SYM_RESULT:
		return ARG_RESULT;
	case SYM_GLOBAL:
	case SYM_HEAP:
		return memory_class(l, sym);
	case SYM_PRODUCT:
		return product_class(l->sym[sym->a], l->sym[sym->b]);
	case SYM_REG:
	case SYM_SLOT:
		end = end_of(l, sym);
		/* Nothing depends on a register that does not occur. */
		return end ? carried_class(l, i, end) : ARG_CONST;
	default:
		return ARG_UNKNOWN;
	}
}

/* ARG_RESULT is what must not be missed. */
static unsigned int strength(enum arg_class class)
{
	static const unsigned int order[] = {
		[ARG_CONST] = 0, [ARG_IV] = 1, [ARG_DATA] = 2, [ARG_UNKNOWN] = 2, [ARG_RESULT] = 3,
	};

	return order[class];
}

static void find_classes(struct look *l)
{
	struct sym slot = { .kind = SYM_SLOT };
	bool changed = true;
	enum arg_class class;
	uint16_t i;

	/* The next iteration, or the way out, may be the first to read a place. */
	for (i = 0; l->e.end && i < l->e.end->nr_slots; i++) {
		slot.a = l->e.end->slots[i].frame;
		slot.b = l->e.end->slots[i].off;
		slot.size = l->e.end->slots[i].size;
		sym_intern(l->e.syms, &slot);
	}
	l->nr_classes = MAX_SYMS;
	while (changed) {
		changed = false;
		/* Loading a slot may make symbols. */
		for (i = 0; i < l->e.syms->nr; i++) {
			class = symbol_class(l, i);
			if (strength(class) > strength(l->sym[i])) {
				set_class(l, i, class);
				changed = true;
			}
		}
	}
	l->nr_classes = l->e.syms->nr;
	for (i = (uint16_t)l->nr_classes; i < MAX_SYMS; i++)
		symset_add(&l->of_class[ARG_RESULT], i);
}

/*
 * Collect the symbols with results that symbols go back to, those of earlier iterations, too.
 * Return whether these are all: of memory it is not known which.
 */
static bool find_origins(const struct look *l, const struct symset *deps,
			 struct symset *origins)
{
	const struct symset *results = &l->of_class[ARG_RESULT];
	struct symset seen = *deps;
	bool all = true, again = true;
	uint16_t i;

	while (again) {
		again = false;
		for (i = symset_next(&seen, results, 0); i < l->nr_classes;
		     i = symset_next(&seen, results, i + 1)) {
			const struct sym *sym = &l->e.syms->sym[i];

			if (symset_has(origins, i))
				continue;
			symset_add(origins, i);
			if (sym->kind == SYM_REG || sym->kind == SYM_SLOT)
				again |= symset_union(&seen, end_of(l, sym)->deps);
			else
				all &= sym->kind == SYM_RESULT;
		}
	}
	return all;
}

/* Whether all results that symbols go back to are statuses. */
static bool only_status(const struct look *l, const struct symset *deps)
{
	const struct symset *results = &l->e.syms->results;
	struct symset origins = { 0 };
	uint16_t i;

	if (!find_origins(l, deps, &origins))
		return false;
	for (i = symset_next(&origins, results, 0); i < MAX_SYMS;
	     i = symset_next(&origins, results, i + 1))
		if (l->e.syms->sym[i].holds != API_STATUS)
			return false;
	return true;
}

/* ---- calls ---- */

/* Whether the loop's code may store to memory at or behind an address. */
static bool may_change(const struct look *l, const struct value *address)
{
	unsigned int i;

	for (i = 0; i < l->e.nr_notes; i++)
		if (l->e.notes[i].kind == NOTE_STORED && !names_frame(l, l->e.notes[i].v) &&
		    may_overlap(l, l->e.notes[i].v, l->e.notes[i].size, address, INT32_MAX))
			return true;
	return false;
}

static bool is_sum(const struct value *v)
{
	return v->linear && !v->cut && !v->rounded;
}

/* Whether the back end can compute a value from results: a sum, also of earlier iterations. */
static bool is_expression(const struct look *l, const struct value *v)
{
	struct symset origins = { 0 };
	uint16_t i;

	if (!is_sum(v) || !find_origins(l, v->deps, &origins))
		return false;
	for (i = 0; i < v->nr; i++)
		if (l->sym[v->terms[i].sym] == ARG_RESULT && v->terms[i].coef != 1)
			return false;
	for (i = symset_next(&origins, &origins, 0); i < MAX_SYMS;
	     i = symset_next(&origins, &origins, i + 1))
		if (l->e.syms->sym[i].kind != SYM_RESULT &&
		    !is_sum(end_of(l, &l->e.syms->sym[i])))
			return false;
	return true;
}

/* Class of memory that the call reads. */
static enum arg_class pointee_class(const struct look *l, const struct site *s, unsigned int arg,
				    bool *iv, bool *computed)
{
	enum arg_class class = ARG_CONST, piece;
	unsigned int i;
	int64_t off;

	if (value_is_const(s->args[arg], &off) && !off)
		return ARG_CONST;
	if (!s->pointees[arg] && s->fn->args[arg].type == API_PARAMS &&
	    names_frame(l, s->args[arg]))
		return ARG_DATA;
	if (!s->pointees[arg])
		return value_class(l, s->args[arg]) == ARG_CONST &&
		       !may_change(l, s->args[arg]) ? ARG_CONST : ARG_DATA;
	for (i = 0; i < s->nr_pointees[arg]; i++) {
		piece = value_class(l, s->pointees[arg][i].v);
		*iv |= piece == ARG_IV;
		*computed |= piece == ARG_RESULT && !is_expression(l, s->pointees[arg][i].v);
		if (piece == ARG_UNKNOWN)
			piece = ARG_DATA;
		if (strength(piece) > strength(class))
			class = piece;
	}
	return class;
}

/* Bytes behind a value of unknown length may be a result. */
static void guard_sizes(struct look *l, const struct site *s, unsigned int arg)
{
	unsigned int i;

	for (i = 0; i < s->nr_pointees[arg]; i++)
		if (s->pointees[arg][i].limit)
			guard(l, s->insn, "%s of %s: value %u has at most %" PRId64 " bytes",
			      s->fn->args[arg].name, s->fn->name, i, s->pointees[arg][i].limit);
}

static void look_at_call(struct look *l, const struct site *s, struct loop_call *c, bool *iv)
{
	const struct api_function *fn = s->fn;
	unsigned int i;
	int64_t n;

	c->address = s->insn->address;
	c->fn = fn;
	if (fn->answers)
		because(l, s->insn, "%s has to be answered at once", fn->name);
	c->blocks = fn->blocks || (fn->blocking_arg != API_NO_ARG &&
				   !(value_is_const(s->args[fn->blocking_arg], &n) && !n));
	for (i = 0; i < fn->nr_args; i++) {
		enum arg_class class = value_class(l, s->args[i]);
		bool computed = class == ARG_RESULT && !is_expression(l, s->args[i]);

		c->args[i] = class;
		switch (fn->args[i].type) {
		case API_CALLBACK:
			if (!value_is_const(s->args[i], &n) || n)
				because(l, s->insn, "%s calls a function of the program back",
					fn->name);
			break;
		case API_IN:
		case API_STRING:
		case API_PARAMS:
			c->pointees[i] = pointee_class(l, s, i, iv, &computed);
			guard_sizes(l, s, i);
			/* The memory is copied, and its address does not matter. */
			if (class == ARG_UNKNOWN)
				c->args[i] = ARG_DATA;
			if (class == ARG_RESULT)
				because(l, s->insn, "%s reads memory at an address, %s, that is a result",
					fn->name, fn->args[i].name);
			break;
		case API_OUT:
			if (class == ARG_RESULT)
				because(l, s->insn, "%s writes memory at an address, %s, that is a result",
					fn->name, fn->args[i].name);
			/* fall through */
		default:
			/* Numbers side by side in a register: the front end compares each. */
			if (class == ARG_UNKNOWN && fn->args[i].type == API_BYTES)
				c->args[i] = ARG_DATA;
			else if (class == ARG_UNKNOWN)
				because(l, s->insn, "it is not known how %s of %s changes",
					fn->args[i].name, fn->name);
			break;
		}
		if (computed)
			because(l, s->insn, "%s of %s is computed from a result, and not as a sum",
				fn->args[i].name, fn->name);
		*iv |= c->args[i] == ARG_IV;
	}
}

static void look_at_calls(struct look *l)
{
	struct loop_report *r = l->r;
	unsigned int i, k;
	bool iv = false, result = false, data = false;

	r->calls = calloc(l->e.nr_sites, sizeof(*r->calls));
	if (!r->calls) {
		l->no_memory = true;
		return;
	}
	for (i = 0; i < l->e.nr_sites; i++) {
		struct loop_call *c = &r->calls[r->nr_calls++];

		look_at_call(l, &l->e.sites[i], c, &iv);
		for (k = 0; k < c->fn->nr_args; k++) {
			result |= c->args[k] == ARG_RESULT || c->pointees[k] == ARG_RESULT;
			data |= c->args[k] == ARG_DATA || c->pointees[k] == ARG_DATA;
		}
	}
	r->class = result ? 3 : iv || data ? 2 : 1;
	r->extension = result && (iv || data);
}

/* ---- the code between the calls ---- */

static bool is_fixed(const struct value *v)
{
	int64_t n;

	return value_is_const(v, &n);
}

/* Results that lie on the stack at places whose addresses other code may know. */
static bool find_exposed_results(const struct look *l)
{
	unsigned int i, k;

	for (i = 0; i < l->g->nr_blocks; i++) {
		const struct state *st = l->e.at[i];

		for (k = 0; st && k < st->nr_slots; k++)
			if (st->slots[k].off + (int64_t)st->slots[k].size >
			    l->e.exposed[st->slots[k].frame] &&
			    value_class(l, st->slots[k].v) == ARG_RESULT)
				return true;
	}
	return false;
}

static bool exposes_results(struct look *l)
{
	if (l->exposes_results == NOT_LOOKED_AT)
		l->exposes_results = find_exposed_results(l) ? YES : NO;
	return l->exposes_results == YES;
}

/* The code reads or writes memory: does a call put a result there? */
static void look_at_access(struct look *l, const struct note *n)
{
	const char *what = n->kind == NOTE_LOAD ? "reads" : "writes";
	bool in_frame = names_frame(l, n->v);
	unsigned int i, k;
	uint16_t frame;
	int64_t off;

	if (value_class(l, n->v) == ARG_RESULT) {
		because(l, n->insn, "uses a result as an address");
		return;
	}
	/* A note of a known place of the stack: eval_slot() found a result there. */
	if (n->kind == NOTE_LOAD && eval_is_slot(l->e.syms, n->v, &frame, &off)) {
		because(l, n->insn, "may read a result");
		return;
	}
	if (!in_frame && !is_fixed(n->v) && exposes_results(l))
		because(l, n->insn, "%s memory that may be a result on the stack", what);
	for (i = 0; i < l->e.nr_sites; i++)
		for (k = 0; k < l->e.sites[i].nr_targets; k++) {
			const struct site *s = &l->e.sites[i];
			const struct target *t = &s->targets[k];

			if (t->slot ? !in_frame :
			    !may_overlap(l, t->address, t->size, n->v, n->size))
				continue;
			/* Of its own data the front end knows where it lies. */
			if (is_fixed(n->v) && !is_fixed(t->address) && !t->slot) {
				guard(l, s->insn, "%s of %s lies outside of the program's own data",
				      s->fn->args[t->arg].name, s->fn->name);
				continue;
			}
			because(l, n->insn, "%s memory that may be %s of %s", what,
				s->fn->args[t->arg].name, s->fn->name);
		}
}

/* A call reads memory that another one writes. */
static void look_at_flow(struct look *l, const struct site *s, unsigned int arg)
{
	const struct value *from = s->args[arg];
	unsigned int i, k;
	const struct value *d;
	int64_t off;

	if ((is_fixed(from) && !from->c) || names_frame(l, from))
		return;
	for (i = 0; i < l->e.nr_sites; i++)
		for (k = 0; k < l->e.sites[i].nr_targets; k++) {
			const struct site *w = &l->e.sites[i];
			const struct target *t = &w->targets[k];

			if (names_frame(l, t->address))
				continue;
			d = values_add(&l->e.shared->values, from, t->address, -1, 0);
			/* Parts of one array, which another iteration may have written. */
			if (from->linear && t->address->linear && value_is_const(d, &off) &&
			    (!off || value_class(l, from) != ARG_CONST))
				because(l, s->insn, "%s of %s may be memory that is %s of %s",
					s->fn->args[arg].name, s->fn->name,
					w->fn->args[t->arg].name, w->fn->name);
			else
				guard(l, s->insn, "%s of %s lies outside of %s of %s",
				      s->fn->args[arg].name, s->fn->name,
				      w->fn->args[t->arg].name, w->fn->name);
		}
}

static void look_at_note(struct look *l, const struct note *n)
{
	/* The way on which a program ends because a call has failed. */
	if (n->no_return && l->o->assume_success && class_of(l, &n->why, false) == ARG_RESULT &&
	    only_status(l, &n->why))
		return;
	switch (n->kind) {
	case NOTE_SLOT:
		return;
	case NOTE_TEST:
		if (value_class(l, n->v) != ARG_RESULT)
			return;
		if (!only_status(l, n->v->deps))
			because(l, n->insn, "tests a result");
		else if (!l->o->assume_success)
			because(l, n->insn, "tests a status; --assume-success lets it wait");
		return;
	case NOTE_STORE:
		if (value_class(l, n->v) == ARG_RESULT)
			because(l, n->insn, "stores a result where other code may read it");
		return;
	case NOTE_LOAD:
	case NOTE_STORED:
		look_at_access(l, n);
		return;
	case NOTE_OVERWRITE:
		if (!l->o->assume_success || !only_status(l, n->v->deps))
			because(l, n->insn, "overwrites a result");
		return;
	case NOTE_OTHER_CALL:
		because(l, n->insn, "calls %s", n->name ? n->name : "another function");
		return;
	case NOTE_COMPUTE:
		if (value_class(l, n->v) == ARG_RESULT)
			because(l, n->insn, "computes with a result");
		return;
	case NOTE_COMPUTED_CALL:
		because(l, n->insn, "calls a computed address");
		return;
	case NOTE_SYSTEM:
		because(l, n->insn, "enters the kernel, or shares memory with other threads");
		return;
	}
}

/* ---- the way out ---- */

static bool is_place(const struct sym *sym, const struct sym *place)
{
	return sym->kind == place->kind && sym->a == place->a && sym->b == place->b &&
	       sym->size == place->size;
}

/* A handle that something was added to is as easy to tell as the handle itself. */
static bool is_plain(const struct look *l, const struct value *v, struct symset *choices)
{
	struct value plain = *v;

	if (v->linear && v->nr == 1 && l->e.syms->sym[v->terms[0].sym].holds == API_OBJECT)
		plain.c = 0;
	return value_is_plain(&plain, choices);
}

/*
 * Whether what a place has when the loop is left can be given back: it is the result of a call
 * as it is, or what the place had before the loop.  For a handle, of any iteration, the place
 * has a number meanwhile that nothing else has.  For the status of the last of several calls
 * that was executed it is enough to know that.  Set @result to one of the results.
 */
static bool can_be_given_back(const struct look *l, const struct value *v,
			      const struct sym *place, uint16_t *result)
{
	struct symset choices = { 0 }, more;
	bool again = true, handles = true, elsewhere = false, cut = v->cut;
	const struct value *end;
	uint16_t i;

	if (!is_plain(l, v, &choices))
		return false;
	*result = NO_SYM;
	while (again) {
		again = false;
		for (i = 0; i < l->e.syms->nr; i++) {
			const struct sym *sym = &l->e.syms->sym[i];

			if (!symset_has(&choices, i))
				continue;
			if (sym->kind == SYM_RESULT) {
				*result = i;
				handles &= sym->holds == API_OBJECT;
			} else if (l->sym[i] == ARG_RESULT) {
				if (sym->kind != SYM_REG && sym->kind != SYM_SLOT)
					return false;
				elsewhere |= !is_place(sym, place);
				memset(&more, 0, sizeof(more));
				end = end_of(l, sym);
				if (!is_plain(l, end, &more))
					return false;
				cut |= end->cut;
				again |= symset_union(&choices, &more);
			}
		}
	}
	return *result != NO_SYM && (handles ? !cut : !elsewhere);
}

static void leave_with(struct look *l, const cs_insn *exit, const struct value *v,
		       const struct sym *place, const char *where)
{
	struct write_back w = { .exit = exit->address }, *more;
	uint16_t result;
	unsigned int i;

	if (value_class(l, v) != ARG_RESULT)
		return;
	if (!can_be_given_back(l, v, place, &result)) {
		because(l, exit, "leaves the loop with something that is computed from a result, in %s",
			where);
		return;
	}
	snprintf(w.where, sizeof(w.where), "%s", where);
	w.call = (uint64_t)l->e.syms->sym[result].b;
	w.arg = l->e.syms->sym[result].a;
	for (i = 0; i < l->r->nr_results; i++)
		if (l->r->results[i].exit == w.exit && !strcmp(l->r->results[i].where, where))
			return;
	more = reallocarray(l->r->results, l->r->nr_results + 1, sizeof(*more));
	if (!more) {
		l->no_memory = true;
		return;
	}
	l->r->results = more;
	more[l->r->nr_results++] = w;
}

/* Whether the slot is where the call itself puts the result. */
static bool is_target(const struct look *l, const struct slot *s)
{
	unsigned int i, k;
	uint16_t frame;
	int64_t off;

	for (i = 0; i < l->e.nr_sites; i++)
		for (k = 0; k < l->e.sites[i].nr_targets; k++)
			if (eval_is_slot(l->e.syms, l->e.sites[i].targets[k].address, &frame,
					 &off) &&
			    frame == s->frame && s->off >= off &&
			    (uint64_t)(s->off - off) + s->size <= l->e.sites[i].targets[k].size)
				return true;
	return false;
}

/* Whether code outside of the loop may read a place on the stack. */
static bool is_read_later(const struct look *l, const struct slot *s)
{
	unsigned int i, k;
	uint16_t frame;
	int64_t off;

	if (s->off + (int64_t)s->size > l->e.exposed[s->frame])
		return true;
	for (i = 0; i < l->whole->nr_notes; i++) {
		const struct note *n = &l->whole->notes[i];

		if ((n->kind != NOTE_SLOT && n->kind != NOTE_LOAD) || l->loop->member[n->block])
			continue;
		if (!eval_is_slot(l->e.syms, n->v, &frame, &off)) {
			if (names_frame(l, n->v))
				return true;
			continue;
		}
		if (frame == s->frame && off < s->off + (int64_t)s->size &&
		    s->off < off + (int64_t)n->size)
			return true;
	}
	/* Memory that a call reads, from an address below on. */
	for (i = 0; i < l->whole->nr_sites; i++)
		for (k = 0; k < l->whole->sites[i].fn->nr_args; k++)
			if (!l->loop->member[l->whole->sites[i].block] &&
			    names_frame(l, l->whole->sites[i].args[k]) &&
			    (!eval_is_slot(l->e.syms, l->whole->sites[i].args[k], &frame, &off) ||
			     (frame == s->frame && off < s->off + (int64_t)s->size)))
				return true;
	return false;
}

static void leave_with_slots(struct look *l, const cs_insn *exit, const struct state *st,
			     const struct state *slots)
{
	const struct value *v;
	char where[32];
	unsigned int i;
	uint16_t frame;
	int64_t off;

	for (i = 0; i < slots->nr_slots; i++) {
		const struct slot *s = &slots->slots[i];
		const struct sym place = { .kind = SYM_SLOT, .a = s->frame, .b = s->off,
					   .size = s->size };

		if (l->e.syms->sym[s->frame].a == FRAME_PUSHED || is_target(l, s) ||
		    !is_read_later(l, s))
			continue;
		/* Below the stack pointer there is nothing that is still needed. */
		if (eval_is_slot(l->e.syms, st->reg[RSP], &frame, &off) &&
		    frame == s->frame && s->off < off)
			continue;
		v = eval_slot(&l->e, st, s->frame, s->off, s->size);
		snprintf(where, sizeof(where), "stack%+" PRId64, s->off);
		leave_with(l, exit, v, &place, where);
	}
}

static void look_at_exit(struct look *l, uint32_t block, uint16_t live, struct state *st)
{
	const struct cfg_block *b = &l->g->blocks[block];
	const cs_insn *last = l->g->insns[b->first + b->nr - 1];
	struct sym place = { .kind = SYM_REG };
	unsigned int i;

	for (i = 0; i < NR_GENERAL; i++) {
		place.a = i;
		if (live >> i & 1)
			leave_with(l, last, st->reg[i], &place, reg_names[i]);
	}
	for (i = NR_GENERAL; i < REG_FLAGS; i = eval_next_reg(l->e.shared, i))
		if (value_class(l, st->reg[i]) == ARG_RESULT)
			because(l, last, "leaves the loop with a result in a vector register");
	leave_with_slots(l, last, st, st);
	/* Slots that only an earlier iteration stored to. */
	if (l->e.end)
		leave_with_slots(l, last, st, l->e.end);
}

static void look_at_exits(struct look *l)
{
	struct state *st = malloc(sizeof(*st));
	unsigned int i, k;

	if (!st) {
		l->no_memory = true;
		return;
	}
	for (i = 0; i < l->g->nr_blocks; i++) {
		const struct cfg_block *b = &l->g->blocks[i];
		uint16_t live = b->leaves ? LIVE_ALL : 0;
		bool exits = b->leaves;

		if (!l->loop->member[i] || !l->e.at[i])
			continue;
		for (k = 0; k < 2; k++)
			if (b->succ[k] != CFG_NONE && !l->loop->member[b->succ[k]]) {
				live |= l->live[b->succ[k]];
				exits = true;
			}
		if (!exits)
			continue;
		eval_block(&l->e, i, st);
		look_at_exit(l, i, live, st);
	}
	free(st);
}

/* ---- functions ---- */

static void look_at_loop(struct look *l, const struct state *start)
{
	unsigned int i, k;

	if (eval_run(&l->e, start)) {
		l->no_memory = true;
		return;
	}
	eval_collect(&l->e);
	if (l->e.no_memory) {
		l->no_memory = true;
		return;
	}
	if (!l->e.nr_sites)
		return;
	find_classes(l);
	look_at_calls(l);
	for (i = 0; i < l->e.nr_notes; i++)
		look_at_note(l, &l->e.notes[i]);
	for (i = 0; i < l->e.nr_sites; i++)
		for (k = 0; k < l->e.sites[i].fn->nr_args; k++)
			if (l->e.sites[i].fn->args[k].type == API_IN)
				look_at_flow(l, &l->e.sites[i], k);
	look_at_exits(l);
	if (l->g->table_jumps)
		because(l, NULL, "the function jumps through a table: its loops are not known");
	if (l->e.too_much || l->whole->too_much || l->e.syms->full)
		because(l, NULL, "it has more values than the analysis keeps apart");
	if (l->r->nr_reasons)
		l->r->class = 0;
}

static struct loop_report *new_loop(struct report *r, const struct cfg *g,
				    const struct cfg_loop *loop)
{
	struct loop_report *more = reallocarray(r->loops, r->nr_loops + 1, sizeof(*more)), *l;
	unsigned int i;

	if (!more)
		return NULL;
	r->loops = more;
	l = &more[r->nr_loops];
	memset(l, 0, sizeof(*l));
	l->fn = g->fn;
	l->depth = loop->depth;
	l->header = g->insns[g->blocks[loop->header].first]->address;
	for (i = 0; i < g->nr_blocks; i++) {
		const struct cfg_block *b = &g->blocks[i];
		const cs_insn *last = g->insns[b->first + b->nr - 1];

		if (loop->member[i] && last->address + last->size > l->end)
			l->end = last->address + last->size;
	}
	return l;
}

static void free_loop(struct loop_report *l)
{
	free(l->calls);
	free(l->reasons);
	free(l->guards);
	free(l->results);
}

/* Find out what the function's code has on the stack. */
static int look_at_stack(struct eval *whole, struct syms *syms, struct state *start)
{
	int ret;

	/* First without any knowledge of it, for the addresses that leave the function. */
	eval_function_start(whole->shared, syms, start);
	whole->forgetful = true;
	ret = eval_run(whole, start);
	if (ret)
		return ret;
	eval_free(whole);
	whole->forgetful = false;
	ret = eval_run(whole, start);
	if (!ret)
		eval_collect(whole);
	return ret || whole->no_memory || whole->shared->values.no_memory ? -ENOMEM : 0;
}

/* Whether a loop has a call of the API, or of a function that may call it. */
static bool may_be_of_interest(const struct cfg *g, const struct cfg_loop *loop,
			       const struct callers *callers)
{
	const struct insn_target *target;
	unsigned int i, k;

	for (i = 0; i < g->nr_blocks; i++)
		for (k = 0; loop->member[i] && k < g->blocks[i].nr; k++) {
			const cs_insn *insn = g->insns[g->blocks[i].first + k];

			if (!insn_is(insn, INSN_CALL))
				continue;
			target = insn_target(insn);
			if (target->address ? callers_entry(callers, target->address) :
					      !!target->api)
				return true;
		}
	return false;
}

/* Memory of the analysis of a function, which all functions use in turn. */
struct work {
	struct eval_shared shared;
	struct syms syms;
	struct state start;
	struct look look;
	int64_t exposed[MAX_SYMS];
};

static bool has_loops_of_interest(const struct cfg *g, const struct callers *callers)
{
	unsigned int i;

	/* A loop has at least what the loops in it have. */
	for (i = 0; i < g->nr_loops; i++)
		if (may_be_of_interest(g, &g->loops[i], callers))
			return true;
	return false;
}

static int look_at_function(struct report *report, struct cfgs *cfgs,
			    const struct image_function *fn, const struct callers *callers,
			    struct work *work, const struct classify_options *o)
{
	const struct image *img = cfgs->img;
	const struct cfg *g = cfgs_get(cfgs, fn);
	unsigned int first = report->nr_loops, i;
	struct eval whole = { .img = img, .cfgs = cfgs, .cfg = g, .syms = &work->syms,
			      .shared = &work->shared, .exposed = work->exposed };
	struct look *l = &work->look;
	unsigned int nr_frames;
	uint16_t *live;
	int ret;

	if (!g)
		return -ENOMEM;
	if (!has_loops_of_interest(g, callers))
		return 0;
	live = calloc(g->nr_blocks + 1, sizeof(*live));
	if (!live)
		return -ENOMEM;
	for (i = 0; i < MAX_SYMS; i++)
		work->exposed[i] = INT64_MAX;
	eval_frames(&work->syms, g);
	nr_frames = work->syms.nr;
	ret = eval_find_vectors(&work->shared, cfgs, fn);
	if (!ret)
		ret = look_at_stack(&whole, &work->syms, &work->start);
	if (!ret)
		ret = find_live(cfgs->capstone, g, live);
	for (i = 0; i < g->nr_loops && !ret; i++) {
		if (!whole.at[g->loops[i].header] ||
		    !may_be_of_interest(g, &g->loops[i], callers))
			continue;
		memset(l, 0, sizeof(*l));
		l->o = o;
		l->g = g;
		l->loop = &g->loops[i];
		l->live = live;
		l->whole = &whole;
		l->e = (struct eval){ .img = img, .cfgs = cfgs, .cfg = g, .syms = &work->syms,
				      .shared = &work->shared, .member = g->loops[i].member,
				      .entry = g->loops[i].header, .exposed = work->exposed };
		/* The symbols of the function, but for the stack's bases, are no more needed. */
		eval_loop_start(&work->shared, &work->syms, nr_frames,
				whole.at[g->loops[i].header], &work->start);
		l->r = new_loop(report, g, &g->loops[i]);
		if (!l->r) {
			ret = -ENOMEM;
			break;
		}
		look_at_loop(l, &work->start);
		if (l->e.nr_sites)
			report->nr_loops++;
		else
			free_loop(l->r);
		eval_free(&l->e);
		if (l->no_memory || work->shared.values.no_memory)
			ret = -ENOMEM;
	}
	if (!ret && o->picture && report->nr_loops > first)
		o->picture(g, report->loops + first, report->nr_loops - first, o->data);
	eval_free(&whole);
	free(live);
	return ret;
}

/* Values that are kept for the next function, of some 100 bytes each. */
#define MAX_VALUES	2048U

int classify(struct report *r, const struct image *img, const struct classify_options *o)
{
	struct work *work = calloc(1, sizeof(*work));
	struct callers callers = { 0 };
	struct cfgs cfgs = { 0 };
	unsigned int i;
	csh capstone;
	int ret;

	memset(r, 0, sizeof(*r));
	if (!work || cs_open(CS_ARCH_X86, CS_MODE_64, &capstone) != CS_ERR_OK) {
		free(work);
		return -ENOMEM;
	}
	cs_option(capstone, CS_OPT_DETAIL, CS_OPT_ON);
	ret = callers_find(&callers, img, EVAL_MAX_CALLERS + 1);
	if (!ret)
		ret = cfgs_init(&cfgs, img, capstone);
	for (i = 0; i < img->nr_functions && !ret; i++) {
		if (!callers.calls[i])
			continue;
		r->nr_looked_at++;
		ret = look_at_function(r, &cfgs, &img->functions[i], &callers, work, o);
		if (work->shared.values.values.nr > MAX_VALUES)
			values_free(&work->shared.values);
	}
	r->work = (struct work_done){
		.blocks = work->shared.blocks, .executed = work->shared.executed,
		.operations = work->shared.values.operations,
		.computed = work->shared.values.computed, .merged = work->shared.values.merged,
		.insns = cfgs.cache.nr, .decoded = cfgs.cache.decoded,
	};
	values_free(&work->shared.values);
	free(work);
	callers_free(&callers);
	cfgs_free(&cfgs);
	cs_close(&capstone);
	return ret;
}

void report_free(struct report *r)
{
	unsigned int i;

	for (i = 0; i < r->nr_loops; i++)
		free_loop(&r->loops[i]);
	free(r->loops);
	memset(r, 0, sizeof(*r));
}
