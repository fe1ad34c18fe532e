// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "eval.h"

#define NR(array)	(sizeof(array) / sizeof(*(array)))

/* ---- registers ---- */

/* Kinds of symbols that an instruction makes. */
enum other {
	OTHER_LOST,		/* registers that a call lost */
	OTHER_LOADED,		/* of an array on the stack */
	OTHER_THREAD,		/* in the thread's own memory */
	OTHER_OPERAND,
	OTHER_STORED,		/* by a function or instruction for memory */
	OTHER_AGAIN,		/* differs each time that control comes there */
	OTHER_RETURN,		/* return address */
	OTHER_SCATTERED,	/* which place of the stack has what was stored to one */
	OTHER_ANSWER,		/* of a function that is no call of the GPU */
};

static const struct value *constant(const struct eval *e, int64_t c)
{
	return values_const(&e->shared->values, c);
}

static const struct value *symbol(const struct eval *e, const struct sym *sym)
{
	return values_sym(&e->shared->values, sym_intern(e->syms, sym));
}

static const struct value *add(const struct eval *e, const struct value *a,
			       const struct value *b, int64_t factor, uint64_t id)
{
	return values_add(&e->shared->values, a, b, factor, id);
}

static const struct value *mix(const struct eval *e, const struct value *a,
			       const struct value *b, uint64_t id)
{
	return values_mix(&e->shared->values, a, b, id);
}

/* The value if so many bytes of it are read or written. */
static const struct value *narrow(const struct eval *e, const struct value *v, bool is_cut)
{
	return is_cut ? values_cut(&e->shared->values, v) : v;
}

static const struct value *other(const struct eval *e, const cs_insn *insn, enum other which)
{
	const struct sym sym = { .kind = SYM_OTHER, .a = which, .b = (int64_t)insn->address,
				 .context = e->context };

	return symbol(e, &sym);
}

static void set_reg(struct eval *e, struct state *st, unsigned int reg, unsigned int size,
		    const struct value *v, uint64_t id)
{
	if (reg >= NR_REGS)
		return;
	/* Smaller parts leave the rest of a general register as it is. */
	if (reg == REG_OTHER || (reg < NR_GENERAL && size < 4))
		st->reg[reg] = mix(e, st->reg[reg], v, id);
	else
		st->reg[reg] = v;
	if (reg < NR_GENERAL) {
		st->low_size[reg] = size < 4 ? (uint8_t)size : 0;
		st->low[reg] = v;
	}
	if (reg_is_vector(reg))
		st->reg[reg + 1] = v;
}

/* ---- the stack ---- */

bool eval_is_slot(const struct syms *syms, const struct value *v, uint16_t *frame,
		  int64_t *off)
{
	if (!v->linear || v->nr != 1 || v->terms[0].coef != 1 ||
	    syms->sym[v->terms[0].sym].kind != SYM_FRAME)
		return false;
	*frame = v->terms[0].sym;
	*off = v->c;
	return true;
}

/* Return the frame that an address lies in, at a place that need not be known, or NO_SYM. */
static uint16_t frame_of(const struct syms *syms, const struct value *v)
{
	return symset_meets(v->deps, &syms->frames) ? symset_next(v->deps, &syms->frames, 0) :
						       NO_SYM;
}

/* Whether a call gives it back in memory. */
static bool is_given(const struct syms *syms, const struct value *v)
{
	uint16_t i;

	if (!symset_meets(v->deps, &syms->results))
		return false;
	for (i = symset_next(v->deps, &syms->results, 0); i < MAX_SYMS;
	     i = symset_next(v->deps, &syms->results, i + 1))
		if (syms->sym[i].a != RESULT_RETURNED)
			return true;
	return false;
}

static bool overlaps(const struct slot *s, uint16_t frame, int64_t off, unsigned int size)
{
	return s->frame == frame && off < s->off + (int64_t)s->size &&
	       s->off < off + (int64_t)size;
}

/* Return the slot that begins at an offset and does not reach beyond another one, or NULL. */
static const struct slot *slot_within(const struct state *st, uint16_t frame, int64_t off,
				      int64_t end)
{
	unsigned int i;

	for (i = 0; i < st->nr_slots; i++)
		if (st->slots[i].frame == frame && st->slots[i].off == off &&
		    off + (int64_t)st->slots[i].size <= end)
			return &st->slots[i];
	return NULL;
}

/* Return one value of the slots that all bytes were stored to, or NULL if they were not. */
static const struct value *join_slots(const struct eval *e, const struct state *st,
				      uint16_t frame, int64_t off, int64_t end, uint64_t id)
{
	const struct value *v = constant(e, 0);
	const struct slot *s;
	int64_t at;

	for (at = off; at < end; at += (int64_t)s->size) {
		s = slot_within(st, frame, at, end);
		if (!s)
			return NULL;
		v = mix(e, v, s->v, id);
	}
	return v;
}

const struct value *eval_slot(const struct eval *e, const struct state *st, uint16_t frame,
			      int64_t off, unsigned int size)
{
	const struct sym sym = { .kind = SYM_SLOT, .a = frame, .b = off, .size = size };
	const struct sym any = { .kind = SYM_OTHER, .a = OTHER_SCATTERED };
	uint64_t id = value_hash((uint64_t)off, size);
	const struct slot *s, *end = st->slots + st->nr_slots, *all = NULL;
	const struct value *v;
	int64_t c;

	for (s = st->slots; s < end; s++)
		if (s->frame == frame && s->off <= off &&
		    s->off + (int64_t)s->size >= off + (int64_t)size &&
		    (!all || s->size < all->size))
			all = s;
	if (all && (all->off == off || (value_is_const(all->v, &c) && !c)))
		v = narrow(e, all->v, size < all->size);
	else if (all)
		v = mix(e, all->v, NULL, id);
	else
		v = join_slots(e, st, frame, off, off + (int64_t)size, id);
	if (!v) {
		v = symbol(e, &sym);
		for (s = st->slots; s < end; s++)
			if (overlaps(s, frame, off, size))
				v = mix(e, v, s->v, id);
	}
	if (!st->scattered)
		return v;
	return values_blur(&e->shared->values, v, st->scattered, sym_intern(e->syms, &any), id);
}

static struct note *add_note(struct eval *e, enum note_kind kind, const cs_insn *insn,
			     const struct value *v)
{
	struct note *n;

	if (!e->collect)
		return NULL;
	if (!(e->nr_notes & (e->nr_notes - 1))) {
		n = reallocarray(e->notes, e->nr_notes ? 2 * (size_t)e->nr_notes : 1, sizeof(*n));
		if (!n) {
			e->no_memory = true;
			return NULL;
		}
		e->notes = n;
	}
	n = &e->notes[e->nr_notes++];
	memset(n, 0, sizeof(*n));
	n->kind = kind;
	n->insn = insn;
	n->block = e->block;
	n->no_return = e->no_return;
	n->why = e->why;
	n->v = v;
	return n;
}

static void slot_store(struct eval *e, struct state *st, uint16_t frame, int64_t off,
		       unsigned int size, const struct value *v)
{
	struct slot *s = st->slots, *exact = NULL;
	uint64_t id = value_hash((uint64_t)off, size);

	while (s < st->slots + st->nr_slots) {
		if (!overlaps(s, frame, off, size)) {
			s++;
		} else if (s->off == off && s->size == size) {
			exact = s++;
		} else if (s->off >= off && s->off + (int64_t)s->size <= off + (int64_t)size) {
			*s = st->slots[--st->nr_slots];
			exact = NULL;
			s = st->slots;
		} else {
			s->v = mix(e, s->v, v, id);
			s++;
		}
	}
	if (!exact) {
		if (st->nr_slots == MAX_SLOTS) {
			e->too_much = true;
			return;
		}
		exact = &st->slots[st->nr_slots++];
		exact->frame = frame;
		exact->off = off;
		exact->size = size;
	}
	exact->v = v;
}

/* Any place of the stack may have the value from now on. */
static void scatter(struct eval *e, struct state *st, const struct value *v)
{
	const struct value *all = values_unite(&e->shared->values, v, st->scattered);

	/* Numbers need no place. */
	if (symset_meets(all->deps, all->deps))
		st->scattered = all;
}

/* Something is stored to the frame, at a place that is not known. */
static void mix_into_frame(struct eval *e, struct state *st, uint16_t frame,
			   const struct value *v, uint64_t id)
{
	unsigned int i;

	scatter(e, st, v);
	for (i = 0; i < st->nr_slots; i++)
		if (st->slots[i].frame == frame)
			st->slots[i].v = mix(e, st->slots[i].v, v, id);
}

static void expose_from(struct eval *e, uint16_t frame, int64_t off)
{
	if (off >= e->exposed[frame])
		return;
	e->exposed[frame] = off;
	e->shared->exposures++;
}

/* Other code may know the address from now on. */
static void expose(struct eval *e, const struct value *v)
{
	uint16_t frame, i;
	int64_t off;

	if (eval_is_slot(e->syms, v, &frame, &off)) {
		expose_from(e, frame, off);
		return;
	}
	if (!symset_meets(v->deps, &e->syms->frames))
		return;
	for (i = symset_next(v->deps, &e->syms->frames, 0); i < MAX_SYMS;
	     i = symset_next(v->deps, &e->syms->frames, i + 1))
		expose_from(e, i, INT64_MIN);
}

/* ---- memory ---- */

static const struct value *address_of(const struct eval *e, const struct state *st,
				      const cs_insn *insn, const x86_op_mem *mem)
{
	unsigned int reg = reg_number(mem->base);
	const struct value *v;

	if (mem->base == X86_REG_RIP)
		return constant(e, (int64_t)(insn->address + insn->size + (uint64_t)mem->disp));
	v = constant(e, mem->disp);
	if (reg < NR_REGS)
		v = add(e, v, st->reg[reg], 1, insn->address);
	reg = reg_number(mem->index);
	if (reg < NR_REGS)
		v = add(e, v, st->reg[reg], mem->scale, insn->address + 1);
	return v;
}

/* Return the value of bytes from an address on; a size of 0 is not known. */
static const struct value *load_at(struct eval *e, const struct state *st, const cs_insn *insn,
				   const struct value *address, uint64_t size)
{
	struct sym sym = { .kind = SYM_HEAP };
	const struct value *v[MAX_SLOTS + 3];
	unsigned int i, n = 0;
	struct note *note;
	uint16_t frame;
	int64_t off;

	if (eval_is_slot(e->syms, address, &frame, &off) && size && size <= INT32_MAX) {
		/* It may be a place of an array that a result goes to. */
		if (e->collect && st->scattered && is_given(e->syms, st->scattered))
			add_note(e, NOTE_LOAD, insn, address);
		note = add_note(e, NOTE_SLOT, insn, address);
		if (note)
			note->size = size;
		return eval_slot(e, st, frame, off, (unsigned int)size);
	}
	note = add_note(e, NOTE_LOAD, insn, address);
	if (note)
		note->size = size;
	frame = frame_of(e->syms, address);
	if (frame != NO_SYM) {
		/* Some place of an array: it may be any that was stored to. */
		v[n++] = address;
		for (i = 0; i < st->nr_slots; i++)
			if (st->slots[i].frame == frame)
				v[n++] = st->slots[i].v;
		if (st->scattered)
			v[n++] = st->scattered;
		v[n++] = other(e, insn, OTHER_LOADED);
		return values_mix_all(&e->shared->values, v, n, insn->address);
	}
	if (value_is_const(address, &off) && size <= INT32_MAX) {
		sym = (struct sym){ .kind = SYM_GLOBAL, .b = off, .size = (unsigned int)size };
		return symbol(e, &sym);
	}
	/* A member of something that an address is known of. */
	if (address->linear && address->nr == 1 && address->terms[0].coef == 1 && size &&
	    size <= INT32_MAX) {
		sym = (struct sym){ .kind = SYM_HEAP, .a = address->terms[0].sym,
				    .b = address->c, .size = (unsigned int)size };
		return values_member(&e->shared->values, symbol(e, &sym), address);
	}
	return mix(e, address, symbol(e, &sym), value_hash(insn->address, size));
}

/* Bytes from an address on get a value; a size of 0 is not known. */
static void store_at(struct eval *e, struct state *st, const cs_insn *insn,
		     const struct value *address, uint64_t size, const struct value *v)
{
	struct note *note;
	uint16_t frame;
	unsigned int i;
	int64_t off;

	expose(e, v);
	if (eval_is_slot(e->syms, address, &frame, &off) && size && size <= INT32_MAX) {
		for (i = 0; e->collect && !is_given(e->syms, v) && i < st->nr_slots; i++)
			if (overlaps(&st->slots[i], frame, off, (unsigned int)size) &&
			    is_given(e->syms, st->slots[i].v))
				add_note(e, NOTE_OVERWRITE, insn, st->slots[i].v);
		slot_store(e, st, frame, off, (unsigned int)size, v);
		return;
	}
	note = add_note(e, NOTE_STORED, insn, address);
	if (note)
		note->size = size;
	add_note(e, NOTE_STORE, insn, v);
	frame = frame_of(e->syms, address);
	if (frame != NO_SYM)
		mix_into_frame(e, st, frame, v, insn->address);
}

static bool in_thread_storage(const x86_op_mem *mem)
{
	return mem->segment == X86_REG_FS || mem->segment == X86_REG_GS;
}

static const struct value *read_op(struct eval *e, const struct state *st, const cs_insn *insn,
				   const cs_x86_op *op)
{
	unsigned int reg;

	switch (op->type) {
	case X86_OP_IMM:
		return constant(e, op->imm);
	case X86_OP_REG:
		reg = reg_number(op->reg);
		if (reg >= NR_REGS)
			return constant(e, 0);
		if (reg_is_vector(reg) && op->size > 8)
			return mix(e, st->reg[reg], st->reg[reg + 1], insn->address);
		return narrow(e, reg < NR_GENERAL && op->size <= st->low_size[reg] &&
			      !reg_is_second_byte(op->reg) ? st->low[reg] : st->reg[reg],
			      op->size < 8);
	case X86_OP_MEM:
		if (in_thread_storage(&op->mem))
			return other(e, insn, OTHER_THREAD);
		return load_at(e, st, insn, address_of(e, st, insn, &op->mem), op->size);
	default:
		return other(e, insn, OTHER_OPERAND);
	}
}

static void write_op(struct eval *e, struct state *st, const cs_insn *insn,
		     const cs_x86_op *op, const struct value *v)
{
	if (op->type == X86_OP_REG) {
		set_reg(e, st, reg_number(op->reg), op->size, narrow(e, v, op->size < 8),
			insn->address);
		if (reg_is_second_byte(op->reg))
			st->low_size[reg_number(op->reg)] = 0;
	} else if (op->type == X86_OP_MEM) {
		if (in_thread_storage(&op->mem)) {
			add_note(e, NOTE_STORE, insn, v);
			return;
		}
		store_at(e, st, insn, address_of(e, st, insn, &op->mem), op->size, v);
	}
}

/* ---- calls ---- */

static bool begins(const char *s, const char *with)
{
	return !strncmp(s, with, strlen(with));
}

static void lose_registers(struct eval *e, struct state *st, const cs_insn *insn)
{
	const struct value *v = other(e, insn, OTHER_LOST), *lost;
	unsigned int i;

	for (i = 0; i < NR(lost_regs); i++) {
		st->reg[lost_regs[i]] = mix(e, v, NULL, lost_regs[i]);
		st->low_size[lost_regs[i]] = 0;
	}
	/* Vector registers have the same: a merge of states then has less to do. */
	lost = mix(e, v, NULL, NR_GENERAL);
	for (i = NR_GENERAL; i < NR_REGS; i = eval_next_reg(e->shared, i))
		st->reg[i] = lost;
}

/* Forget what code that is called could have changed. */
static void forget_exposed(struct eval *e, struct state *st)
{
	struct slot *s = st->slots;

	while (s < st->slots + st->nr_slots)
		if (e->forgetful || s->off + (int64_t)s->size > e->exposed[s->frame])
			*s = st->slots[--st->nr_slots];
		else
			s++;
}

static void other_call(struct eval *e, struct state *st, const cs_insn *insn,
		       const char *name, bool computed)
{
	struct note *note;
	unsigned int i;

	for (i = 0; i < NR(argument_regs); i++)
		expose(e, st->reg[argument_regs[i]]);
	note = add_note(e, computed ? NOTE_COMPUTED_CALL : NOTE_OTHER_CALL, insn, NULL);
	if (note)
		note->name = name;
	forget_exposed(e, st);
	lose_registers(e, st, insn);
}

/* Functions of the mathematical library that take and return numbers, and do nothing else. */
static bool is_pure(const char *name)
{
	static const char *const names[] = {
		"acos", "asin", "atan", "atan2", "cbrt", "ceil", "cos", "cosh", "erf", "exp",
		"exp2", "fabs", "floor", "fma", "fmax", "fmin", "fmod", "hypot", "log", "log10",
		"log2", "lrint", "lround", "pow", "rint", "round", "sin", "sinh", "sqrt", "tan",
		"tanh", "trunc",
	};
	size_t len = strlen(name), i;

	for (i = 0; i < NR(names); i++)
		if (!strncmp(name, names[i], strlen(names[i])) &&
		    (len == strlen(names[i]) ||
		     (len == strlen(names[i]) + 1 && name[len - 1] == 'f')))
			return true;
	return false;
}

static void pure_call(struct eval *e, struct state *st, const cs_insn *insn)
{
	const struct value *v = st->reg[REG_VECTOR(0)];
	unsigned int i;

	for (i = 1; i < 3; i++)
		v = mix(e, v, st->reg[REG_VECTOR(i)], i);
	add_note(e, NOTE_COMPUTE, insn, v);
	lose_registers(e, st, insn);
}

/*
 * Functions of the C library whose effect on memory is known.  Return whether it is one; its
 * name may have the suffix of the variant that checks sizes.
 */
static bool memory_call(struct eval *e, struct state *st, const cs_insn *insn, const char *name)
{
	static const char *const names[] = {
		"memset", "memcpy", "memmove", "sincos", "sincosf", "__memset_chk",
		"__memcpy_chk", "__memmove_chk",
	};
	const struct value *to = st->reg[RDI], *from = st->reg[RSI];
	const struct value *v = other(e, insn, OTHER_STORED);
	int64_t size = 0, off;
	size_t i;

	for (i = 0; i < NR(names) && strcmp(name, names[i]); i++)
		;
	if (i == NR(names))
		return false;
	if (!value_is_const(st->reg[RDX], &size) || size < 0 || size > INT32_MAX)
		size = 0;
	if (begins(name, "sincos")) {
		v = mix(e, v, st->reg[REG_VECTOR(0)], insn->address);
		store_at(e, st, insn, to, name[6] ? 4 : 8, v);
		store_at(e, st, insn, from, name[6] ? 4 : 8, v);
	} else if (strstr(name, "set")) {
		v = value_is_const(from, &off) && !off ? from : mix(e, v, from, insn->address);
		store_at(e, st, insn, to, (uint64_t)size, v);
	} else {
		v = mix(e, v, load_at(e, st, insn, from, (uint64_t)size), insn->address);
		store_at(e, st, insn, to, (uint64_t)size, v);
	}
	lose_registers(e, st, insn);
	/* They return the address that they got. */
	if (!begins(name, "sincos"))
		set_reg(e, st, RAX, 8, to, 0);
	return true;
}

/*
 * Functions that C++ code calls before and behind the first execution of a static variable's
 * initialiser. Return whether it is one.
 */
static bool guard_call(struct eval *e, struct state *st, const cs_insn *insn, const char *name)
{
	const struct value *v;

	if (strcmp(name, "__cxa_guard_acquire") && strcmp(name, "__cxa_guard_release"))
		return false;
	v = other(e, insn, OTHER_ANSWER);
	store_at(e, st, insn, st->reg[RDI], 8, v);
	lose_registers(e, st, insn);
	set_reg(e, st, RAX, 8, v, 0);
	return true;
}

static const struct value *result_of(struct eval *e, const cs_insn *insn, unsigned int which,
				     enum api_result holds)
{
	const struct sym sym = { .kind = SYM_RESULT, .a = which, .b = (int64_t)insn->address,
				 .context = e->context, .holds = holds };

	return symbol(e, &sym);
}

/* Return the number of bytes that an argument points to, 0 if it is not known. */
static uint64_t pointee_size(const struct api_arg *arg, const struct value *const *args)
{
	int64_t n = 1;

	if (arg->length_arg != API_NO_ARG &&
	    (!value_is_const(args[arg->length_arg], &n) || n < 0 || n > INT32_MAX))
		return 0;
	return (uint64_t)n * arg->length_unit;
}

/* Return the distance to the next place on the stack that something was stored to, or 0. */
static int64_t next_slot(const struct state *st, uint16_t frame, int64_t behind, int64_t off)
{
	int64_t next = INT64_MAX;
	unsigned int i;

	for (i = 0; i < st->nr_slots; i++)
		if (st->slots[i].frame == frame && st->slots[i].off >= behind &&
		    st->slots[i].off < next)
			next = st->slots[i].off;
	return next == INT64_MAX ? 0 : next - off;
}

static struct pointee *add_pointee(struct site *site, unsigned int arg, int64_t off,
				   unsigned int size, const struct value *v)
{
	struct pointee *p = &site->pointees[arg][site->nr_pointees[arg]++];

	p->off = off;
	p->size = size;
	p->v = v;
	return p;
}

/* Note the pieces of the stack that an argument points to; a size of 0 is not known. */
static void look_at_pointee(struct eval *e, const struct state *st, struct site *site,
			    unsigned int arg, const struct value *address, uint64_t size)
{
	int64_t off, at, end;
	const struct value *v;
	unsigned int i, step;
	uint16_t frame;

	if (!eval_is_slot(e->syms, address, &frame, &off))
		return;
	if (!site->pointees[arg])
		site->pointees[arg] = calloc(MAX_POINTEES, sizeof(struct pointee));
	if (!site->pointees[arg]) {
		e->no_memory = true;
		return;
	}
	if (!size) {
		/* It is what was stored there last, unless it is longer. */
		step = 8;
		for (i = 0; i < st->nr_slots; i++)
			if (st->slots[i].frame == frame && st->slots[i].off == off)
				step = st->slots[i].size;
		v = eval_slot(e, st, frame, off, step);
		add_pointee(site, arg, 0, step, v)->limit =
			next_slot(st, frame, off + (int64_t)step, off);
		return;
	}
	/* No frame is longer. */
	end = off + (int64_t)(size < INT32_MAX ? size : INT32_MAX);
	for (at = off; at < end; at += step) {
		/* The last piece has all the rest. */
		step = (unsigned int)(end - at);
		if (step > 8 && site->nr_pointees[arg] < MAX_POINTEES - 1)
			step = 8;
		for (i = 0; i < st->nr_slots && site->nr_pointees[arg] < MAX_POINTEES - 1; i++)
			if (st->slots[i].frame == frame && st->slots[i].off == at &&
			    st->slots[i].size < step)
				step = st->slots[i].size;
		v = eval_slot(e, st, frame, at, step);
		add_pointee(site, arg, at - off, step, v);
	}
}

/* An array of pointers to values, as long as it holds addresses on the stack. */
static void look_at_params(struct eval *e, const struct state *st, struct site *site,
			   unsigned int arg)
{
	const struct value *address;
	uint16_t frame, inner;
	int64_t off, value;
	unsigned int i;

	if (!eval_is_slot(e->syms, site->args[arg], &frame, &off))
		return;
	for (i = 0; i < MAX_POINTEES; i++, off += 8) {	/* a piece each */
		address = eval_slot(e, st, frame, off, 8);
		if (!eval_is_slot(e->syms, address, &inner, &value))
			return;
		look_at_pointee(e, st, site, arg, address, 0);
	}
}

/* Results go where the argument points. */
static void give_result(struct eval *e, struct state *st, struct site *site,
			unsigned int arg, const cs_insn *insn)
{
	const struct api_arg *a = &site->fn->args[arg];
	const struct value *v = result_of(e, insn, arg, a->holds);
	uint64_t size = pointee_size(a, site->args);
	struct target *t;
	uint16_t frame;
	int64_t off;

	if (value_is_const(site->args[arg], &off) && !off)
		return;
	t = &site->targets[site->nr_targets++];
	t->arg = arg;
	t->address = site->args[arg];
	t->size = size;
	t->slot = eval_is_slot(e->syms, t->address, &frame, &off);
	if (t->slot && size && size <= INT32_MAX) {
		slot_store(e, st, frame, off, (unsigned int)size, v);
		return;
	}
	frame = frame_of(e->syms, t->address);
	if (frame == NO_SYM)
		return;
	mix_into_frame(e, st, frame, v, insn->address);
}

/* Of a narrow number the upper half of its place on the stack need not be set. */
static unsigned int pushed_size(const struct eval *e, const struct state *st,
				const struct value *address)
{
	unsigned int i, size = 8;
	uint16_t frame;
	int64_t off;

	if (!eval_is_slot(e->syms, address, &frame, &off))
		return 8;
	for (i = 0; i < st->nr_slots; i++) {
		const struct slot *s = &st->slots[i];

		if (s->frame != frame || s->off > off || s->off + (int64_t)s->size <= off)
			continue;
		if (s->off + (int64_t)s->size >= off + 8)
			return 8;
		size = (unsigned int)(s->off + (int64_t)s->size - off);
	}
	return size;
}

static void read_args(struct eval *e, const struct state *st, const cs_insn *insn,
		      struct site *site)
{
	const struct value *address;
	unsigned int i;

	for (i = 0; i < site->fn->nr_args; i++) {
		if (i < NR(argument_regs)) {
			site->args[i] = st->reg[argument_regs[i]];
			continue;
		}
		address = constant(e, 8 * (int64_t)(i - NR(argument_regs)));
		address = add(e, st->reg[RSP], address, 1, insn->address);
		site->args[i] = load_at(e, st, insn, address, pushed_size(e, st, address));
	}
}

static void keep_site(struct eval *e, const struct site *site)
{
	struct site *more;
	unsigned int i;

	if (!e->collect)
		return;
	more = reallocarray(e->sites, e->nr_sites + 1, sizeof(*more));
	if (!more) {
		e->no_memory = true;
		for (i = 0; i < API_MAX_ARGS; i++)
			free(site->pointees[i]);
		return;
	}
	e->sites = more;
	e->sites[e->nr_sites++] = *site;
}

/* ---- calls that the program's own library answers ---- */

/* Offset of the slot that has 1 while words are pushed.  The words lie from offset 0 on. */
#define PENDING	(-8)

static uint16_t pushed_frame(struct eval *e)
{
	const struct sym sym = { .kind = SYM_FRAME, .a = FRAME_PUSHED };

	return sym_intern(e->syms, &sym);
}

static bool is_pending(struct eval *e, const struct state *st)
{
	int64_t n;

	return value_is_const(eval_slot(e, st, pushed_frame(e), PENDING, 8), &n) && n == 1;
}

static void set_pending(struct eval *e, struct state *st, int64_t n)
{
	slot_store(e, st, pushed_frame(e), PENDING, 8, constant(e, n));
}

/* Pushes within pushes are not followed: neither pop gives back known words. */
static void push_args(struct eval *e, struct state *st, const struct site *site,
		      const struct value *unknown)
{
	bool nested = is_pending(e, st);
	unsigned int i;

	for (i = 0; i < site->fn->nr_args; i++)
		slot_store(e, st, pushed_frame(e), 8 * (int64_t)i, 8,
			   nested ? unknown : site->args[i]);
	set_pending(e, st, 1);
}

/* Memory that the arguments point to gets, in their order, the words that were pushed. */
static void pop_args(struct eval *e, struct state *st, const struct site *site,
		     const struct value *unknown)
{
	bool known = is_pending(e, st);
	const struct value *address, *v;
	uint64_t size, at;
	int64_t word = 0;
	unsigned int i;

	for (i = 0; i < site->fn->nr_args; i++) {
		size = pointee_size(&site->fn->args[i], site->args);
		for (at = 0; at < size; at += 8, word++) {
			v = known ? eval_slot(e, st, pushed_frame(e), 8 * word, 8) : unknown;
			address = add(e, site->args[i], constant(e, (int64_t)at), 1,
				      site->insn->address);
			store_at(e, st, site->insn, address, size - at < 8 ? size - at : 8, v);
		}
	}
	set_pending(e, st, 0);
}

static void local_call(struct eval *e, struct state *st, struct site *site)
{
	const struct value *answer = other(e, site->insn, OTHER_ANSWER);
	const struct api_function *fn = site->fn;
	unsigned int i;
	uint16_t frame;
	int64_t off;

	if (fn->place == API_PUSHES) {
		push_args(e, st, site, answer);
		keep_site(e, site);
	} else if (fn->place == API_POPS) {
		pop_args(e, st, site, answer);
	} else {
		/* A number may be a result that is not there yet; a handle is there at once. */
		for (i = 0; i < fn->nr_args; i++)
			if (fn->args[i].type == API_SCALAR)
				answer = mix(e, answer, site->args[i], site->insn->address);
	}
	for (i = 0; i < fn->nr_args && fn->place != API_POPS; i++) {
		if (fn->args[i].type != API_OUT || (value_is_const(site->args[i], &off) && !off))
			continue;
		/* An answer that is the same each time changes no memory that has it. */
		if (fn->place == API_LOCAL || eval_is_slot(e->syms, site->args[i], &frame, &off))
			store_at(e, st, site->insn, site->args[i],
				 pointee_size(&fn->args[i], site->args), answer);
	}
	lose_registers(e, st, site->insn);
	set_reg(e, st, RAX, 8, answer, 0);
}

static void api_call(struct eval *e, struct state *st, const cs_insn *insn,
		     const struct api_function *fn)
{
	struct site site = { .insn = insn, .fn = fn, .block = e->block };
	unsigned int i;
	int64_t n;

	read_args(e, st, insn, &site);
	if (fn->place != API_REMOTE) {
		local_call(e, st, &site);
		return;
	}
	if (fn->case_arg != API_NO_ARG && value_is_const(site.args[fn->case_arg], &n))
		site.fn = fn = api_case(fn, n);
	if (e->collect) {
		for (i = 0; i < fn->nr_args; i++)
			if (fn->args[i].type == API_IN)
				look_at_pointee(e, st, &site, i, site.args[i],
						pointee_size(&fn->args[i], site.args));
			else if (fn->args[i].type == API_PARAMS)
				look_at_params(e, st, &site, i);
	}
	if (e->forgetful)
		forget_exposed(e, st);
	for (i = 0; i < fn->nr_args; i++)
		if (fn->args[i].type == API_OUT)
			give_result(e, st, &site, i, insn);
		else if (fn->args[i].type == API_POINTER)
			expose(e, site.args[i]);
	lose_registers(e, st, insn);
	if (fn->returns != API_NOTHING)
		set_reg(e, st, RAX, 8, result_of(e, insn, RESULT_RETURNED, fn->returns), 0);
	keep_site(e, &site);
}

static bool enter(struct eval *e, struct state *st, const cs_insn *insn,
		  const struct image_function *callee);

static void call(struct eval *e, struct state *st, const cs_insn *insn)
{
	const struct insn_target *target = insn_target(insn);
	const uint64_t address = target->address;
	const char *name = target->name;
	const struct image_function *callee;

	if (target->api) {
		api_call(e, st, insn, target->api);
		return;
	}
	callee = address ? image_function(e->img, address) : NULL;
	/* A function of the program itself can have any name. */
	if (name && !(address && image_symbol(e->img, address))) {
		if (memory_call(e, st, insn, name) || guard_call(e, st, insn, name))
			return;
		if (is_pure(name)) {
			pure_call(e, st, insn);
			return;
		}
	}
	if (callee && callee->start == address && enter(e, st, insn, callee))
		return;
	if (!name && callee)
		name = callee->name;
	other_call(e, st, insn, name, !name && !address);
}

/* ---- instructions ---- */

/* Whether two operands are the same register, so that their difference is 0. */
static bool same_register(const cs_x86 *x)
{
	const cs_x86_op *a = &x->operands[x->op_count - 2], *b = &x->operands[x->op_count - 1];

	return x->op_count >= 2 && a->type == X86_OP_REG && b->type == X86_OP_REG &&
	       a->reg == b->reg;
}

/* Whether an instruction of which no more is known may store to its first operand. */
static bool may_store(const cs_insn *insn)
{
	switch (insn->id) {
	case X86_INS_CMP: case X86_INS_TEST: case X86_INS_BT: case X86_INS_MUL:
	case X86_INS_DIV: case X86_INS_IDIV: case X86_INS_FLD: case X86_INS_FILD:
	case X86_INS_FADD: case X86_INS_FMUL: case X86_INS_FSUB: case X86_INS_FDIV:
	case X86_INS_LDMXCSR: case X86_INS_FLDCW:
		return false;
	case X86_INS_IMUL:
		return insn->detail->x86.op_count > 1;
	default:
		return true;
	}
}

/* Whether an operand of such a copy is what it has to be. */
static bool is_half(const cs_x86_op *op)
{
	return op->type == X86_OP_MEM ||
	       (op->type == X86_OP_REG && (reg_is_vector(reg_number(op->reg)) ||
					   reg_number(op->reg) < NR_GENERAL));
}

/*
 * Copies of vectors keep their halves apart: compilers store two pointers at a time. Return
 * whether it was one.
 */
static bool copy_halves(struct eval *e, struct state *st, const cs_insn *insn)
{
	const cs_x86_op *to = &insn->detail->x86.operands[0];
	const cs_x86_op *from = &insn->detail->x86.operands[1];
	const struct value *low, *high, *address;
	unsigned int reg;

	if (insn->detail->x86.op_count != 2 || !(is_half(to) && is_half(from)))
		return false;
	switch (insn->id) {
	case X86_INS_MOVAPS: case X86_INS_MOVUPS: case X86_INS_MOVAPD: case X86_INS_MOVUPD:
	case X86_INS_MOVDQA: case X86_INS_MOVDQU:
		if (from->type == X86_OP_REG) {
			low = st->reg[reg_number(from->reg)];
			high = st->reg[reg_number(from->reg) + 1];
		} else {
			address = address_of(e, st, insn, &from->mem);
			low = load_at(e, st, insn, address, 8);
			address = add(e, address, constant(e, 8), 1, insn->address);
			high = load_at(e, st, insn, address, 8);
		}
		if (to->type == X86_OP_REG) {
			st->reg[reg_number(to->reg)] = low;
			st->reg[reg_number(to->reg) + 1] = high;
		} else {
			address = address_of(e, st, insn, &to->mem);
			store_at(e, st, insn, address, 8, low);
			address = add(e, address, constant(e, 8), 1, insn->address);
			store_at(e, st, insn, address, 8, high);
		}
		return true;
	case X86_INS_PUNPCKLQDQ:
		if (from->type != X86_OP_REG)
			return false;
		st->reg[reg_number(to->reg) + 1] = st->reg[reg_number(from->reg)];
		return true;
	case X86_INS_MOVHPS: case X86_INS_MOVHPD:
		if (to->type != X86_OP_REG) {
			write_op(e, st, insn, to, st->reg[reg_number(from->reg) + 1]);
			return true;
		}
		st->reg[reg_number(to->reg) + 1] = read_op(e, st, insn, from);
		return true;
	case X86_INS_MOVQ:
		reg = to->type == X86_OP_REG ? reg_number(to->reg) : NR_REGS;
		if (!reg_is_vector(reg))
			return false;
		st->reg[reg] = from->type == X86_OP_REG ? st->reg[reg_number(from->reg)] :
			       read_op(e, st, insn, from);
		st->reg[reg + 1] = constant(e, 0);
		return true;
	default:
		return false;
	}
}

/* Return whether it is STOS or MOVS; a MOVSD of SSE has a register. */
static bool is_string_store(const cs_insn *insn)
{
	const cs_x86 *x = &insn->detail->x86;

	if (x->op_count != 2 || x->operands[0].type != X86_OP_MEM ||
	    x->operands[0].mem.base != X86_REG_RDI)
		return false;
	switch (insn->id) {
	case X86_INS_STOSB: case X86_INS_STOSW: case X86_INS_STOSD: case X86_INS_STOSQ:
		return true;
	case X86_INS_MOVSB: case X86_INS_MOVSW: case X86_INS_MOVSD: case X86_INS_MOVSQ:
		return x->operands[1].type == X86_OP_MEM;
	default:
		return false;
	}
}

/* memset() and memcpy() in one instruction: the whole array may have the value. */
static bool string_store(struct eval *e, struct state *st, const cs_insn *insn)
{
	const cs_x86 *x = &insn->detail->x86;
	const struct value *v, *more = other(e, insn, OTHER_STORED);
	int64_t n;

	if (!is_string_store(insn))
		return false;
	v = read_op(e, st, insn, &x->operands[1]);
	if (!(value_is_const(v, &n) && !n))
		v = mix(e, v, more, insn->address);
	/* How much it stores, a count says or one element does. */
	if (!x->prefix[0])
		n = 1;
	else if (!value_is_const(st->reg[RCX], &n) || n < 0 || n > INT32_MAX)
		n = 0;
	store_at(e, st, insn, st->reg[RDI], (uint64_t)n * x->operands[0].size, v);
	set_reg(e, st, RDI, 8, mix(e, st->reg[RDI], more, insn->address), 0);
	if (x->operands[1].type == X86_OP_MEM)
		set_reg(e, st, RSI, 8, mix(e, st->reg[RSI], more, insn->address), 0);
	if (x->prefix[0])
		set_reg(e, st, RCX, 8, constant(e, 0), 0);
	return true;
}

static bool aligns_stack(const cs_insn *insn)
{
	const cs_x86_op *op = &insn->detail->x86.operands[0];

	return insn->id == X86_INS_AND && op->type == X86_OP_REG && reg_number(op->reg) == RSP;
}

/* Arithmetic that keeps a sum a sum. Return NULL if it is none of it. */
static const struct value *arithmetic(struct eval *e, struct state *st, const cs_insn *insn)
{
	const cs_x86 *x = &insn->detail->x86;
	const cs_x86_op *ops = x->operands;
	const struct value *a, *b;
	int64_t n;

	switch (insn->id) {
	case X86_INS_ADD:
	case X86_INS_SUB:
		a = read_op(e, st, insn, &ops[0]);
		b = read_op(e, st, insn, &ops[1]);
		return add(e, a, b, insn->id == X86_INS_ADD ? 1 : -1, insn->address);
	case X86_INS_INC:
	case X86_INS_DEC:
		a = read_op(e, st, insn, &ops[0]);
		return add(e, a, constant(e, 1), insn->id == X86_INS_INC ? 1 : -1, insn->address);
	case X86_INS_NEG:
		a = read_op(e, st, insn, &ops[0]);
		return add(e, constant(e, 0), a, -1, insn->address);
	case X86_INS_NOT:
		/* ~n = -1 - n */
		a = read_op(e, st, insn, &ops[0]);
		return add(e, constant(e, -1), a, -1, insn->address);
	case X86_INS_SHL:
	case X86_INS_SAL:
		if (x->op_count != 2 || ops[1].type != X86_OP_IMM)
			return NULL;
		a = read_op(e, st, insn, &ops[0]);
		return add(e, constant(e, 0), a, 1LL << (ops[1].imm & 63), insn->address);
	case X86_INS_IMUL:
		if (x->op_count < 2)
			return NULL;
		a = read_op(e, st, insn, &ops[x->op_count - 2]);
		b = read_op(e, st, insn, &ops[x->op_count - 1]);
		return values_multiply(&e->shared->values, a, b, e->syms, insn->address);
	case X86_INS_OR:
		if (ops[1].type != X86_OP_IMM || ops[1].imm != -1)
			return NULL;
		return constant(e, -1);
	case X86_INS_AND:
		if (ops[1].type != X86_OP_IMM)
			return NULL;
		n = ops[0].size == 4 ? (int32_t)ops[1].imm : ops[1].imm;
		if (n && (n > 0 || -n & (-n - 1)))
			return NULL;
		if (!n)
			return constant(e, 0);
		/* Compilers round down what is a multiple: more would be predicted wrongly. */
		return values_round(&e->shared->values, read_op(e, st, insn, &ops[0]));
	default:
		return NULL;
	}
}

static bool writes_op(const cs_insn *insn, unsigned int i)
{
	const cs_x86_op *op = &insn->detail->x86.operands[i];

	/* Capstone does not know of all instructions what they do to their operands. */
	if (op->access & CS_AC_WRITE)
		return true;
	return !i && (op->type == X86_OP_MEM ? may_store(insn) : !op->access);
}

/* Whatever an instruction writes is some function of all that it reads. */
static void generic(struct eval *e, struct state *st, const cs_insn *insn)
{
	const cs_detail *d = insn->detail;
	const cs_x86 *x = &d->x86;
	const struct value *v = mix(e, constant(e, 0), NULL, insn->address), *more;
	unsigned int i, reg;

	for (i = 0; i < d->regs_read_count; i++) {
		reg = reg_number(d->regs_read[i]);
		if (reg < NR_REGS && reg != RSP)
			v = mix(e, v, st->reg[reg], i);
	}
	if (insn_is(insn, INSN_READS_FLAGS))
		v = mix(e, v, st->reg[REG_FLAGS], 0);
	for (i = 0; i < x->op_count; i++) {
		if (x->operands[i].type == X86_OP_IMM ||
		    (!i && x->operands[i].type == X86_OP_MEM && insn_is(insn, INSN_ONLY_STORES)) ||
		    (!i && insn_is(insn, INSN_SETS_BYTE)))
			continue;
		more = read_op(e, st, insn, &x->operands[i]);
		v = mix(e, v, more, i);
	}
	/* A division by 0 is an exception. */
	if (insn->id == X86_INS_DIV || insn->id == X86_INS_IDIV)
		add_note(e, NOTE_COMPUTE, insn, v);
	for (i = 0; i < d->regs_write_count; i++)
		if (reg_number(d->regs_write[i]) != REG_FLAGS)
			set_reg(e, st, reg_number(d->regs_write[i]), 8, v, insn->address);
	for (i = 0; i < x->op_count; i++)
		if (writes_op(insn, i))
			write_op(e, st, insn, &x->operands[i], v);
	st->reg[REG_FLAGS] = insn_is(insn, INSN_SETS_FLAGS | INSN_COMPARES) ?
			     v : mix(e, st->reg[REG_FLAGS], v, insn->address);
}

static void move_stack(struct eval *e, struct state *st, const cs_insn *insn, int64_t by)
{
	st->reg[RSP] = add(e, st->reg[RSP], constant(e, by), 1, insn->address);
}

static void push(struct eval *e, struct state *st, const cs_insn *insn, const struct value *v)
{
	move_stack(e, st, insn, -8);
	store_at(e, st, insn, st->reg[RSP], 8, v);
}

static const struct value *pop(struct eval *e, struct state *st, const cs_insn *insn)
{
	const struct value *v = load_at(e, st, insn, st->reg[RSP], 8);

	move_stack(e, st, insn, 8);
	return v;
}

/* Whether the code goes on in another function, which returns in place of this one. */
static bool is_tail_call(const struct cfg *g, const cs_insn *insn)
{
	const cs_x86_op *op = &insn->detail->x86.operands[0];
	const struct image_function *fn = g->fn;
	uint64_t target = (uint64_t)op->imm;

	if (insn->id != X86_INS_JMP)
		return false;
	return op->type != X86_OP_IMM || target < fn->start || target >= fn->end;
}

static void execute(struct eval *e, struct state *st, const cs_insn *insn)
{
	const cs_x86 *x = &insn->detail->x86;
	const cs_x86_op *ops = x->operands;
	const struct value *v, *more;
	struct sym sym;

	/* The calling code accounts for a return's effect on the stack. */
	if (insn_is(insn, INSN_NO_EFFECT | INSN_RETURN))
		return;
	if (insn_is(insn, INSN_SYSTEM) || x->prefix[0] == X86_PREFIX_LOCK ||
	    (insn->id == X86_INS_XCHG && (ops[0].type == X86_OP_MEM || ops[1].type == X86_OP_MEM)))
		add_note(e, NOTE_SYSTEM, insn, NULL);
	if (insn_is(insn, INSN_CALL)) {
		call(e, st, insn);
	} else if (is_tail_call(e->cfg, insn)) {
		/* The function's own return address is that of the callee. */
		move_stack(e, st, insn, 8);
		call(e, st, insn);
		move_stack(e, st, insn, -8);
	} else if (insn_is(insn, INSN_JUMP)) {
		if (insn->id == X86_INS_JRCXZ || insn->id == X86_INS_JECXZ)
			add_note(e, NOTE_TEST, insn, st->reg[RCX]);
		else if (insn->id != X86_INS_JMP)
			add_note(e, NOTE_TEST, insn, st->reg[REG_FLAGS]);
	} else if (insn->id == X86_INS_LOOP || insn->id == X86_INS_LOOPE ||
		   insn->id == X86_INS_LOOPNE) {
		v = add(e, st->reg[RCX], constant(e, 1), -1, insn->address);
		set_reg(e, st, RCX, 8, v, 0);
		add_note(e, NOTE_TEST, insn, mix(e, v, st->reg[REG_FLAGS], insn->address));
	} else if (insn->id == X86_INS_PUSH) {
		push(e, st, insn, read_op(e, st, insn, &ops[0]));
	} else if (insn->id == X86_INS_POP) {
		v = pop(e, st, insn);
		write_op(e, st, insn, &ops[0], v);
	} else if (insn->id == X86_INS_LEAVE) {
		st->reg[RSP] = st->reg[RBP];
		v = pop(e, st, insn);
		set_reg(e, st, RBP, 8, v, 0);
	} else if (insn->id == X86_INS_LEA) {
		write_op(e, st, insn, &ops[0], address_of(e, st, insn, &ops[1].mem));
	} else if (copy_halves(e, st, insn) || string_store(e, st, insn)) {
		return;
	} else if (insn_is(insn, INSN_COPIES) && x->op_count == 2) {
		if ((insn->id == X86_INS_MOVQ || insn->id == X86_INS_MOVD) &&
		    ops[1].type == X86_OP_REG)
			v = st->reg[reg_number(ops[1].reg)];
		else
			v = read_op(e, st, insn, &ops[1]);
		write_op(e, st, insn, &ops[0], v);
	} else if (insn_is(insn, INSN_CANCELS) && same_register(x)) {
		v = constant(e, 0);
		write_op(e, st, insn, &ops[0], v);
		if (insn_is(insn, INSN_SETS_FLAGS))
			st->reg[REG_FLAGS] = v;
	} else if (aligns_stack(insn)) {
		sym = (struct sym){ .kind = SYM_FRAME, .a = 1, .b = (int64_t)insn->address };
		st->reg[RSP] = symbol(e, &sym);
	} else if (insn_is(insn, INSN_COMPARES) && x->op_count >= 2) {
		v = read_op(e, st, insn, &ops[0]);
		more = read_op(e, st, insn, &ops[1]);
		st->reg[REG_FLAGS] = mix(e, v, more, insn->address);
	} else {
		v = arithmetic(e, st, insn);
		if (!v) {
			generic(e, st, insn);
			return;
		}
		write_op(e, st, insn, &ops[0], v);
		if (insn->id != X86_INS_NOT)
			st->reg[REG_FLAGS] = mix(e, v, NULL, insn->address);
	}
}

/* ---- blocks ---- */

static bool returns(const struct cfg *g, uint32_t block)
{
	const struct cfg_block *b = &g->blocks[block];
	const cs_insn *last = g->insns[b->first + b->nr - 1];

	return insn_is(last, INSN_RETURN) || is_tail_call(g, last);
}

/* Mark the blocks from which control comes to @from, not by way of @to or from above @above. */
static void mark_way(const struct eval *e, uint32_t from, uint32_t to, uint32_t above,
		     bool *way, uint32_t *work)
{
	const struct cfg *g = e->cfg;
	unsigned int n = 0, i;

	memset(way, 0, g->nr_blocks * sizeof(*way));
	way[from] = true;
	work[n++] = from;
	while (n) {
		const struct cfg_block *b = &g->blocks[work[--n]];

		if (b == &g->blocks[above])
			continue;
		for (i = 0; i < b->nr_pred; i++) {
			uint32_t p = b->pred[i];

			if (way[p] || p == to || g->blocks[p].order == CFG_NONE ||
			    (e->member && !e->member[p]))
				continue;
			way[p] = true;
			work[n++] = p;
		}
	}
}

/* Whether control comes from a block to another one, or to the end if that is nr_blocks. */
static bool leads_to(const struct eval *e, uint32_t from, uint32_t to)
{
	const struct cfg_block *b = &e->cfg->blocks[from];

	if (b->order == CFG_NONE || (e->member && !e->member[from]))
		return false;
	if (to == e->cfg->nr_blocks) {
		if (!e->member)
			return returns(e->cfg, from);
		to = e->entry;
	}
	return b->succ[0] == to || b->succ[1] == to;
}

/*
 * Find the blocks from which there are ways to a block by several of those before it.  Return
 * their numbers, with CFG_NONE behind them.
 */
static uint32_t *find_deciding(const struct eval *e, uint32_t block)
{
	const struct cfg *g = e->cfg;
	bool end = block == g->nr_blocks;
	uint32_t above = end ? e->entry : g->blocks[block].dominator;
	uint32_t *deciding = NULL, *work = calloc(g->nr_blocks + 1, sizeof(*work));
	uint8_t *ways = calloc(g->nr_blocks + 1, 1);
	bool *way = calloc(g->nr_blocks + 1, sizeof(*way));
	unsigned int i, k, nr = 0;

	for (i = 0; ways && work && way && i < g->nr_blocks; i++) {
		if (!leads_to(e, i, block))
			continue;
		mark_way(e, i, end ? CFG_NONE : block, above, way, work);
		for (k = 0; k < g->nr_blocks; k++)
			if (way[k] && ways[k] < 2 && ++ways[k] == 2)
				nr++;
	}
	if (ways && work && way)
		deciding = calloc(nr + 1, sizeof(*deciding));
	for (i = 0, k = 0; deciding && i < g->nr_blocks; i++)
		if (ways[i] == 2)
			deciding[k++] = i;
	if (deciding)
		deciding[nr] = CFG_NONE;
	free(ways);
	free(work);
	free(way);
	return deciding;
}

/* Collect the symbols that decide on the way to a block; nr_blocks is the end of it all. */
static void find_reasons(struct eval *e, uint32_t block, struct symset *why)
{
	const struct cfg *g = e->cfg;
	struct sym again = { .kind = SYM_OTHER, .a = OTHER_AGAIN, .context = e->context };
	const uint32_t *d;
	unsigned int i;

	memset(why, 0, sizeof(*why));
	if (!e->deciding[block])
		e->deciding[block] = find_deciding(e, block);
	if (!e->deciding[block]) {
		e->no_memory = true;
		return;
	}
	for (d = e->deciding[block]; *d != CFG_NONE; d++)
		symset_union(why, &e->tests[*d]);
	/* That a branch depends on a result has a note of its own. */
	for (i = 0; i < MAX_SYMS / 64; i++)
		why->word[i] &= ~e->syms->results.word[i];
	if (block == g->nr_blocks)
		return;
	/* To the header of an inner loop control comes several times. */
	for (i = 0; i < g->blocks[block].nr_pred; i++)
		if (g->blocks[g->blocks[block].pred[i]].order >= g->blocks[block].order &&
		    g->blocks[g->blocks[block].pred[i]].order != CFG_NONE) {
			again.b = (int64_t)g->insns[g->blocks[block].first]->address;
			symset_add(why, sym_intern(e->syms, &again));
		}
}

/* A merge of two values. Places that have the same two have the same afterwards. */
struct merge {
	const struct value *a, *b, *both;
};

/* values_merge(), unless it is the same as the last one. */
static bool merge(struct eval *e, struct merge *last, const struct value **a,
		  const struct value *b, uint64_t id, const struct symset *why)
{
	if (*a == b)
		return false;
	if (*a != last->a || b != last->b)
		*last = (struct merge){ *a, b, values_merge(&e->shared->values, *a, b, id, why) };
	*a = last->both;
	return last->both != last->a;
}

/* Return the state's slot of the same bytes, or NULL; in most states it has the same number. */
static const struct slot *same_slot(const struct state *st, const struct slot *s, unsigned int nr,
				    unsigned int guess)
{
	unsigned int i;

	if (guess < nr && st->slots[guess].frame == s->frame && st->slots[guess].off == s->off &&
	    st->slots[guess].size == s->size)
		return &st->slots[guess];
	for (i = 0; i < nr; i++)
		if (st->slots[i].frame == s->frame && st->slots[i].off == s->off &&
		    st->slots[i].size == s->size)
			return &st->slots[i];
	return NULL;
}

static bool merge_slots(struct eval *e, struct state *to, const struct state *from, uint64_t place,
			const struct symset *why)
{
	const unsigned int n = to->nr_slots;
	struct merge last = { 0 };
	bool changed = false;
	const struct value *v, *both;
	unsigned int i;
	uint64_t id;

	/* Scattered stores that precede the store to a slot do not change the slot. */
	for (i = 0; i < n; i++) {
		struct slot *s = &to->slots[i];
		const struct slot *same = same_slot(from, s, from->nr_slots, i);

		id = value_hash(value_hash(place, s->size), (uint64_t)s->off);
		if (same) {
			changed |= merge(e, &last, &s->v, same->v, id, why);
		} else {
			changed |= merge(e, &last, &s->v,
					 eval_slot(e, from, s->frame, s->off, s->size), id, why);
		}
	}
	for (i = 0; i < from->nr_slots; i++) {
		const struct slot *s = &from->slots[i];

		if (same_slot(to, s, n, i))
			continue;
		v = eval_slot(e, to, s->frame, s->off, s->size);
		id = value_hash(value_hash(place, s->size), (uint64_t)s->off);
		both = values_merge(&e->shared->values, v, s->v, id, why);
		if (both == v)
			continue;
		if (to->nr_slots == MAX_SLOTS) {
			e->too_much = true;
			return changed;
		}
		to->slots[to->nr_slots++] = (struct slot){ s->frame, s->size, s->off, both };
		changed = true;
	}
	return changed;
}

static bool merge_states(struct eval *e, struct state *to, const struct state *from,
			 uint32_t block)
{
	bool changed = false;
	const uint64_t place = value_hash(value_hash(e->cfg->fn->start, e->context), block);
	struct merge last = { 0 };
	struct symset why;
	unsigned int i;

	find_reasons(e, block, &why);
	e->merged[block] = e->deciding[block];
	for (i = 0; i < NR_REGS; i = eval_next_reg(e->shared, i))
		changed |= merge(e, &last, &to->reg[i], from->reg[i], value_hash(place, i), &why);
	for (i = 0; i < NR_GENERAL; i++) {
		if (to->low_size[i] && to->low_size[i] != from->low_size[i]) {
			to->low_size[i] = 0;
			changed = true;
		}
		if (to->low_size[i])
			changed |= merge(e, &last, &to->low[i], from->low[i],
					 value_hash(place, NR_REGS + i), &why);
	}
	if (from->scattered && from->scattered != to->scattered) {
		const struct value *before = to->scattered;

		scatter(e, to, from->scattered);
		changed |= to->scattered != before;
	}
	return merge_slots(e, to, from, place, &why) || changed;
}

static bool same_state(const struct state *a, const struct state *b)
{
	unsigned int i;

	if (memcmp(a->reg, b->reg, sizeof(a->reg)) ||
	    memcmp(a->low_size, b->low_size, sizeof(a->low_size)) ||
	    a->scattered != b->scattered ||
	    a->nr_slots != b->nr_slots)
		return false;
	for (i = 0; i < NR_GENERAL; i++)
		if (a->low_size[i] && a->low[i] != b->low[i])
			return false;
	for (i = 0; i < a->nr_slots; i++)
		if (a->slots[i].frame != b->slots[i].frame || a->slots[i].off != b->slots[i].off ||
		    a->slots[i].size != b->slots[i].size || a->slots[i].v != b->slots[i].v)
			return false;
	return true;
}

/* Most states have a few slots, and some no room for more. */
static void copy_state(struct state *to, const struct state *from)
{
	const unsigned int room = to->room;

	memcpy(to, from, offsetof(struct state, slots) + from->nr_slots * sizeof(*from->slots));
	to->room = room;
}

/* Whether control comes to a block from one place only, so that its state is the last one. */
static bool has_one_way(const struct eval *e, uint32_t block)
{
	return block != e->cfg->nr_blocks && block != e->entry &&
	       e->cfg->blocks[block].nr_pred == 1;
}

static size_t state_size(unsigned int room)
{
	return offsetof(struct state, slots) + room * sizeof(struct slot);
}

/* Have room for a number of slots in a state, which may be NULL; return it, or NULL. */
static struct state *make_room(struct state *st, unsigned int slots)
{
	struct state *more;

	if (st && slots <= st->room)
		return st;
	slots = slots + 8 < MAX_SLOTS ? slots + 8 : MAX_SLOTS;
	more = realloc(st, state_size(slots));
	if (more)
		more->room = slots;
	return more;
}

/* Merge a state into a block's; return whether that changed, or -ENOMEM. */
static int reach(struct eval *e, struct state **at, const struct state *from, uint32_t block)
{
	const bool new = !*at;
	struct state *to;

	if (!new && has_one_way(e, block) && same_state(*at, from))
		return 0;
	to = make_room(*at, from->nr_slots + (new ? 0 : (*at)->nr_slots));
	if (!to)
		return -ENOMEM;
	*at = to;
	if (!new && !has_one_way(e, block))
		return merge_states(e, to, from, block);
	copy_state(to, from);
	return 1;
}

void eval_block(struct eval *e, uint32_t block, struct state *st)
{
	const struct cfg_block *b = &e->cfg->blocks[block];
	unsigned int i;

	copy_state(st, e->at[block]);
	for (i = 0; i < b->nr; i++)
		execute(e, st, e->cfg->insns[b->first + i]);
	if (b->succ[0] != CFG_NONE && b->succ[1] != CFG_NONE)
		e->grown |= symset_union(&e->tests[block], st->reg[REG_FLAGS]->deps);
	e->shared->executed++;
}

/*
 * Have those merges done again that what a block's branch depends on decides on.  Control comes
 * to most of them behind that block, and there was no merge yet.
 */
static bool redo_merges(const struct eval *e, uint32_t block, bool *dirty)
{
	const struct cfg *g = e->cfg;
	const uint32_t *d;
	bool again = false;
	unsigned int i, k;

	for (i = 0; i <= g->nr_blocks; i++) {
		if (!e->merged[i])
			continue;
		for (d = e->deciding[i]; *d < block; d++)
			;
		if (*d != block)
			continue;
		for (k = 0; k < g->nr_blocks; k++)
			if (k != block && e->at[k] && leads_to(e, k, i))
				dirty[k] = again = true;
	}
	return again;
}

/* Execute a block, and merge what holds at its end into those behind it. */
static int step(struct eval *e, uint32_t block, bool *dirty, bool *again, struct state *st)
{
	const struct cfg *g = e->cfg;
	struct state *out;
	unsigned int k;

	e->grown = false;
	eval_block(e, block, st);
	if (e->out && returns(g, block)) {
		out = make_room(e->out[block], st->nr_slots);
		if (!out)
			return -ENOMEM;
		e->out[block] = out;
		copy_state(out, st);
	}
	if (e->grown && !e->too_much)
		*again |= redo_merges(e, block, dirty);
	for (k = 0; k < 2; k++) {
		uint32_t next = g->blocks[block].succ[k];
		int changed;
		bool new;

		if (next == CFG_NONE || (e->member && !e->member[next]))
			continue;
		/* The entry of a loop is not merged with what comes back to it: that is @end. */
		if (e->member && next == e->entry) {
			if (reach(e, &e->end, st, g->nr_blocks) < 0)
				return -ENOMEM;
			continue;
		}
		new = !e->at[next];
		changed = reach(e, &e->at[next], st, next);
		if (changed < 0)
			return changed;
		/* Of code that is given up each block is executed once. */
		if (changed > 0 && (new || !e->too_much))
			dirty[next] = *again = true;
	}
	return 0;
}

#define MAX_ROUNDS	64

int eval_run(struct eval *e, const struct state *start)
{
	const struct cfg *g = e->cfg;
	struct state *st = malloc(sizeof(*st));
	bool *dirty = calloc(g->nr_blocks + 1, sizeof(*dirty)), again = true;
	unsigned int i, rounds = 0;
	int ret = 0;

	e->at = calloc(g->nr_blocks + 1, sizeof(*e->at));
	e->tests = calloc(g->nr_blocks + 1, sizeof(*e->tests));
	e->merged = calloc(g->nr_blocks + 1, sizeof(*e->merged));
	if (!e->deciding) {
		e->deciding = calloc(g->nr_blocks + 1, sizeof(*e->deciding));
		for (i = 0; i < g->nr_rpo; i++)
			e->shared->blocks += !e->member || e->member[g->rpo[i]];
	}
	if (e->caller)
		e->out = calloc(g->nr_blocks + 1, sizeof(*e->out));
	if (!st || !dirty || !e->at || !e->tests || !e->merged || !e->deciding ||
	    (e->caller && !e->out) ||
	    reach(e, &e->at[e->entry], start, e->entry) < 0)
		ret = -ENOMEM;
	else
		dirty[e->entry] = true;
	while (again && !ret) {
		again = false;
		if (rounds++ == MAX_ROUNDS) {
			e->too_much = true;
			break;
		}
		for (i = 0; i < g->nr_rpo && !ret; i++) {
			if (!dirty[g->rpo[i]])
				continue;
			dirty[g->rpo[i]] = false;
			ret = step(e, g->rpo[i], dirty, &again, st);
		}
		if (e->no_memory || e->shared->values.no_memory)
			ret = -ENOMEM;
	}
	free(st);
	free(dirty);
	return ret;
}

/* Whether control can come from a block to where the function is left. */
static bool *find_returning(const struct eval *e)
{
	const struct cfg *g = e->cfg;
	bool *returning = calloc(g->nr_blocks + 1, sizeof(*returning)), again = returning;
	unsigned int i, k;

	while (again) {
		again = false;
		for (i = g->nr_rpo; i-- > 0;) {
			const struct cfg_block *b = &g->blocks[g->rpo[i]];
			bool now = returns(g, g->rpo[i]);

			for (k = 0; k < 2; k++)
				now |= b->succ[k] != CFG_NONE && returning[b->succ[k]];
			if (now && !returning[g->rpo[i]])
				returning[g->rpo[i]] = again = true;
		}
	}
	return returning;
}

void eval_collect(struct eval *e)
{
	const struct cfg *g = e->cfg;
	const bool no_return = e->no_return;
	struct state *st = malloc(sizeof(*st));
	bool *returning = e->caller ? find_returning(e) : NULL;
	unsigned int i;

	if (!st || (e->caller && !returning)) {
		e->no_memory = true;
		free(st);
		free(returning);
		return;
	}
	e->collect = true;
	for (i = 0; i < g->nr_rpo; i++) {
		uint32_t b = g->rpo[i];

		if (!e->at[b])
			continue;
		if (!e->caller)
			e->block = b;
		/* The first block from which there is no way back has the reason. */
		if (e->caller && !no_return) {
			e->no_return = !returning[b];
			while (!returning[b] && b != g->blocks[b].dominator)
				b = g->blocks[b].dominator;
			memset(&e->why, 0, sizeof(e->why));
			if (e->no_return && returning[b])
				e->why = e->tests[b];
			b = g->rpo[i];
		}
		eval_block(e, b, st);
	}
	e->collect = false;
	e->no_return = no_return;
	free(st);
	free(returning);
}

/* Forget what holds where, but not what depends on the graph alone. */
static void forget_states(struct eval *e)
{
	unsigned int i;

	for (i = 0; e->at && i < e->cfg->nr_blocks; i++)
		free(e->at[i]);
	for (i = 0; e->out && i < e->cfg->nr_blocks; i++)
		free(e->out[i]);
	free(e->at);
	free(e->out);
	free(e->end);
	free(e->tests);
	free(e->merged);
	e->at = NULL;
	e->out = NULL;
	e->end = NULL;
	e->tests = NULL;
	e->merged = NULL;
}

static void forget_callees(struct eval *e);

/* Forget all but @notes and @sites, which the outermost function has. */
static void forget_execution(struct eval *e)
{
	unsigned int i;

	forget_states(e);
	forget_callees(e);
	for (i = 0; e->deciding && i <= e->cfg->nr_blocks; i++)
		free(e->deciding[i]);
	free(e->deciding);
	e->deciding = NULL;
}

void eval_free(struct eval *e)
{
	unsigned int i, k;

	forget_execution(e);
	for (i = 0; i < e->nr_sites; i++)
		for (k = 0; k < API_MAX_ARGS; k++)
			free(e->sites[i].pointees[k]);
	free(e->notes);
	free(e->sites);
	e->notes = NULL;
	e->sites = NULL;
	e->nr_notes = e->nr_sites = 0;
}

/* ---- functions of the program ---- */

#define MAX_CALLEE	400	/* instructions */

/* Forget what lies below the stack pointer. */
static void drop_frame(struct eval *e, struct state *st)
{
	struct slot *s = st->slots;
	uint16_t frame;
	int64_t off;

	if (!eval_is_slot(e->syms, st->reg[RSP], &frame, &off))
		return;
	while (s < st->slots + st->nr_slots)
		if (s->frame == frame && s->off < off)
			*s = st->slots[--st->nr_slots];
		else
			s++;
}

/* Whether the function is left by returns, tail calls, and calls that do not return. */
static bool returns_only(const struct cfg *g)
{
	unsigned int i;

	for (i = 0; i < g->nr_blocks; i++) {
		const struct cfg_block *b = &g->blocks[i];
		const cs_insn *last = g->insns[b->first + b->nr - 1];

		if (b->order == CFG_NONE || !b->leaves || returns(g, i))
			continue;
		/* A conditional jump to elsewhere, or code that is not understood. */
		if (!insn_is(last, INSN_CALL) && last->id != X86_INS_UD2 &&
		    last->id != X86_INS_HLT)
			return false;
	}
	return !g->table_jumps;
}

/*
 * Whether a function that is called can be executed as a part of its caller: one that is too long,
 * jumps through a table or begins with bytes that are no instruction is not looked into.
 */
static bool can_be_entered(const struct cfg *g)
{
	return g->nr_insns && g->nr_insns <= MAX_CALLEE && returns_only(g);
}

/* Raise @end to that of a function's callees, and of theirs, to a depth. */
static int visit_callees(struct cfgs *cfgs, struct cfg *g, unsigned int depth, unsigned int *end)
{
	struct cfg *callee;
	unsigned int i;
	int ret = 0;

	g->visit = cfgs->visit;
	g->visit_depth = depth;
	if (g->vectors_end > *end)
		*end = g->vectors_end;
	for (i = 0; depth && i < g->nr_callees && !ret; i++) {
		callee = cfgs_get(cfgs, g->callees[i]);
		if (!callee)
			return -ENOMEM;
		if (callee->visit == cfgs->visit && callee->visit_depth >= depth - 1)
			continue;
		if (can_be_entered(callee))
			ret = visit_callees(cfgs, callee, depth - 1, end);
	}
	return ret;
}

int eval_find_vectors(struct eval_shared *shared, struct cfgs *cfgs,
		      const struct image_function *fn)
{
	/* Functions of numbers get the first three. */
	unsigned int end = REG_VECTOR(3);
	struct cfg *g = cfgs_get(cfgs, fn);
	int ret;

	cfgs->visit++;
	ret = g ? visit_callees(cfgs, g, EVAL_MAX_CALLERS, &end) : -ENOMEM;
	shared->vectors_end = end < REG_FLAGS ? end + 1 : end;
	return ret;
}

/*
 * Cached result of a callee, whose code is executed as a part of its caller.  The caller
 * executes each call several times, mostly with the same state as before.
 */
struct callee {
	struct callee *next;
	const cs_insn *call;
	struct eval e;
	struct state *start, *end;	/* @end is NULL if it does not return */
	uint64_t exposures;		/* when its execution began */
};

#define MAX_CALLEES	2048U		/* that are kept: others are executed each time */

static void free_callee(struct callee *c)
{
	forget_execution(&c->e);
	free(c->start);
	free(c->end);
	free(c);
}

static void forget_callees(struct eval *e)
{
	struct callee *c;

	while (e->callees) {
		c = e->callees;
		e->callees = c->next;
		e->shared->callees--;
		free_callee(c);
	}
}

/* Return what is kept of a call, as the first in the list, or begin it; NULL: out of memory. */
static struct callee *find_callee(struct eval *e, const cs_insn *insn, const struct cfg *g)
{
	struct callee **place, *c;

	for (place = &e->callees; *place; place = &(*place)->next)
		if ((*place)->call == insn)
			break;
	c = *place;
	if (c) {
		*place = c->next;
	} else {
		c = calloc(1, sizeof(*c));
		if (!c)
			return NULL;
		e->shared->callees++;
		c->call = insn;
		c->e = (struct eval){
			.img = e->img, .cfgs = e->cfgs, .cfg = g,
			.syms = e->syms, .shared = e->shared, .exposed = e->exposed, .caller = e,
			.context = value_hash(e->context, insn->address),
			.forgetful = e->forgetful,
		};
	}
	c->next = e->callees;
	e->callees = c;
	return c;
}

/* Execute it from its start on. */
static void run_callee(struct callee *c)
{
	struct eval *e = &c->e;
	unsigned int i;

	forget_states(e);
	free(c->end);
	c->end = NULL;
	c->exposures = e->shared->exposures;
	if (eval_run(e, c->start)) {
		e->no_memory = true;
		return;
	}
	for (i = 0; i < e->cfg->nr_blocks && !e->no_memory; i++) {
		if (e->out[i] && reach(e, &c->end, e->out[i], e->cfg->nr_blocks) < 0)
			e->no_memory = true;
	}
}

/* Execute it, if it begins with another state than the last time. */
static void run_changed(struct callee *c, const struct state *start)
{
	struct state *room;

	if (c->start && c->exposures == c->e.shared->exposures && same_state(c->start, start))
		return;
	room = make_room(c->start, start->nr_slots);
	if (!room) {
		c->e.no_memory = true;
		return;
	}
	c->start = room;
	copy_state(room, start);
	run_callee(c);
}

/* Copy the notes that the analysis collects from one call to the next. */
static void pass_on(struct eval *to, const struct eval *from)
{
	to->notes = from->notes;
	to->nr_notes = from->nr_notes;
	to->sites = from->sites;
	to->nr_sites = from->nr_sites;
	to->too_much |= from->too_much;
	to->no_memory |= from->no_memory;
}

/*
 * Execute a function that is called, as a part of the code that calls it: wrappers of calls are
 * common.  Return whether that was done; a function that calls itself is not looked into.
 */
static bool enter(struct eval *e, struct state *st, const cs_insn *insn,
		  const struct image_function *callee)
{
	const struct value *back = other(e, insn, OTHER_RETURN);
	struct state at, *end;
	const struct eval *up;
	struct callee *c;
	unsigned int depth = 0, i;
	const struct cfg *g;

	for (up = e; up; up = up->caller)
		if (up->cfg->fn == callee || ++depth > EVAL_MAX_CALLERS)
			return false;
	g = cfgs_get(e->cfgs, callee);
	if (!g || !can_be_entered(g))
		return false;
	c = find_callee(e, insn, g);
	if (!c) {
		e->no_memory = true;
		return true;
	}
	at.room = MAX_SLOTS;
	pass_on(&c->e, e);
	c->e.block = e->block;
	c->e.no_return = e->no_return;
	c->e.why = e->why;
	copy_state(&at, st);
	push(&c->e, &at, insn, back);
	run_changed(c, &at);
	if (e->collect && !c->e.no_memory)
		eval_collect(&c->e);
	pass_on(e, &c->e);
	end = c->end;
	if (end) {
		copy_state(&at, end);
		for (i = 0; i < NR(kept_regs); i++) {
			at.reg[kept_regs[i]] = st->reg[kept_regs[i]];
			at.low[kept_regs[i]] = st->low[kept_regs[i]];
			at.low_size[kept_regs[i]] = st->low_size[kept_regs[i]];
		}
		copy_state(st, &at);
		drop_frame(e, st);
	}
	if (e->shared->callees > MAX_CALLEES) {
		e->callees = c->next;
		e->shared->callees--;
		free_callee(c);
	}
	return true;
}

void eval_frames(struct syms *syms, const struct cfg *g)
{
	struct sym sym = { .kind = SYM_FRAME };
	unsigned int i;

	syms_cut(syms, 0);
	sym_intern(syms, &sym);
	/* States have slots in these two, also if there is no room for the others. */
	sym.a = FRAME_PUSHED;
	sym_intern(syms, &sym);
	sym.a = 1;
	for (i = 0; i < g->nr_insns; i++)
		if (aligns_stack(g->insns[i])) {
			sym.b = (int64_t)g->insns[i]->address;
			sym_intern(syms, &sym);
		}
}

unsigned int eval_next_reg(const struct eval_shared *shared, unsigned int reg)
{
	return reg + 1 == shared->vectors_end ? REG_FLAGS : reg + 1;
}

void eval_function_start(struct eval_shared *shared, struct syms *syms, struct state *start)
{
	struct sym sym = { .kind = SYM_REG };
	unsigned int i, next = 0;
	uint16_t n;

	memset(start, 0, sizeof(*start));
	/* All have numbers, as in any other function. */
	for (i = 0; i < NR_REGS; i++) {
		sym.a = i;
		n = sym_intern(syms, &sym);
		if (i != next)
			continue;
		start->reg[i] = values_sym(&shared->values, n);
		next = eval_next_reg(shared, i);
	}
	sym = (struct sym){ .kind = SYM_FRAME };
	start->reg[RSP] = values_sym(&shared->values, sym_intern(syms, &sym));
}

/* Whether every symbol of it is a base of addresses on the stack. */
static bool is_settled(const struct syms *syms, unsigned int nr_frames, const struct value *v)
{
	unsigned int i;

	/* Numbers of other symbols have another meaning now, or none. */
	for (i = 0; i < v->nr; i++)
		if (v->terms[i].sym >= nr_frames || syms->sym[v->terms[i].sym].kind != SYM_FRAME)
			return false;
	return v->linear;
}

void eval_loop_start(struct eval_shared *shared, struct syms *syms, unsigned int nr_frames,
		     const struct state *at, struct state *start)
{
	unsigned int i;

	syms_cut(syms, nr_frames);
	eval_function_start(shared, syms, start);
	for (i = 0; i < NR_REGS; i = eval_next_reg(shared, i))
		if (is_settled(syms, nr_frames, at->reg[i]))
			start->reg[i] = at->reg[i];
	for (i = 0; i < at->nr_slots; i++)
		if (is_settled(syms, nr_frames, at->slots[i].v))
			start->slots[start->nr_slots++] = at->slots[i];
}
