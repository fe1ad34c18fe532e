// SPDX-License-Identifier: GPL-2.0-only
#include <stdlib.h>
#include <string.h>

#include "value.h"

uint64_t value_hash(uint64_t a, uint64_t b)
{
	uint64_t h = (a ^ (b << 32 | b >> 32)) * 0x9e3779b97f4a7c15ULL;

	h ^= h >> 29;
	h *= 0xbf58476d1ce4e5b9ULL;
	return h ^ h >> 32;
}

static uint16_t *place_of(struct syms *s, const struct sym *sym)
{
	uint64_t h = value_hash(value_hash(sym->kind, sym->a), (uint64_t)sym->b);

	h = value_hash(value_hash(h, sym->size), sym->context);
	while (true) {
		uint16_t *place = &s->table[h % (2 * MAX_SYMS)];
		const struct sym *other;

		h++;
		if (!*place)
			return place;
		other = &s->sym[*place - 1];
		if (other->kind == sym->kind && other->a == sym->a && other->b == sym->b &&
		    other->size == sym->size && other->context == sym->context)
			return place;
	}
}

uint16_t sym_intern(struct syms *s, const struct sym *sym)
{
	uint16_t *place = place_of(s, sym);

	if (*place)
		return *place - 1;
	if (s->nr == MAX_SYMS) {
		s->full = true;
		return NO_SYM;
	}
	s->sym[s->nr] = *sym;
	if (sym->kind == SYM_FRAME)
		symset_add(&s->frames, (uint16_t)s->nr);
	if (sym->kind == SYM_RESULT)
		symset_add(&s->results, (uint16_t)s->nr);
	s->nr++;
	*place = (uint16_t)s->nr;
	return *place - 1;
}

void syms_cut(struct syms *s, unsigned int nr)
{
	unsigned int i;

	memset(s->table, 0, sizeof(s->table));
	memset(&s->frames, 0, sizeof(s->frames));
	memset(&s->results, 0, sizeof(s->results));
	s->nr = 0;
	s->full = false;
	for (i = 0; i < nr; i++)
		sym_intern(s, &s->sym[i]);
}

uint16_t symset_next(const struct symset *a, const struct symset *b, uint16_t from)
{
	unsigned int w = from / 64;
	uint64_t bits;

	for (; w < MAX_SYMS / 64; w++) {
		bits = a->word[w] & b->word[w];
		if (w == from / 64U)
			bits &= ~0ULL << from % 64;
		if (bits)
			return (uint16_t)(64 * w + (unsigned int)__builtin_ctzll(bits));
	}
	return MAX_SYMS;
}

void symset_add(struct symset *set, uint16_t sym)
{
	if (sym < MAX_SYMS)
		set->word[sym / 64] |= 1ULL << sym % 64;
}

bool symset_has(const struct symset *set, uint16_t sym)
{
	return sym < MAX_SYMS && set->word[sym / 64] >> sym % 64 & 1;
}

bool symset_union(struct symset *set, const struct symset *more)
{
	uint64_t new = 0;
	unsigned int i;

	for (i = 0; i < MAX_SYMS / 64; i++) {
		new |= more->word[i] & ~set->word[i];
		set->word[i] |= more->word[i];
	}
	return new;
}

struct value value_const(int64_t c)
{
	return (struct value){ .linear = true, .c = c };
}

struct value value_sym(uint16_t sym)
{
	struct value v = {
		.linear = sym != NO_SYM, .nr = sym != NO_SYM, .terms = { { sym, 1 } },
	};

	symset_add(&v.deps, sym);
	return v;
}

static uint64_t identity(const struct value *v)
{
	uint64_t h = (uint64_t)v->c;
	unsigned int i;

	if (!v->linear)
		return v->id;
	for (i = 0; i < v->nr; i++)
		h = value_hash(h, value_hash(v->terms[i].sym, (uint64_t)v->terms[i].coef));
	return h;
}

struct value value_mix(const struct value *a, const struct value *b, uint64_t id)
{
	struct value v = { .deps = a->deps };

	v.id = value_hash(id, identity(a));
	if (b) {
		v.id = value_hash(v.id, identity(b));
		symset_union(&v.deps, &b->deps);
	}
	return v;
}

/* The sum with one more term. */
static struct value add_product(const struct value *sum, const struct value *a, unsigned int i,
				const struct value *b, unsigned int k, struct syms *syms,
				uint64_t id)
{
	uint16_t x = a->terms[i].sym, y = b->terms[k].sym;
	const struct sym sym = { .kind = SYM_PRODUCT, .a = x < y ? x : y, .b = x < y ? y : x };
	struct value term = value_sym(sym_intern(syms, &sym)), v;

	v = value_add(sum, &term, (int64_t)((uint64_t)a->terms[i].coef *
					    (uint64_t)b->terms[k].coef), id);
	/* The product depends on its factors. */
	symset_add(&v.deps, x);
	symset_add(&v.deps, y);
	return v;
}

struct value value_multiply(const struct value *a, const struct value *b, struct syms *syms,
			    uint64_t id)
{
	const struct value zero = value_const(0);
	struct value v, more;
	unsigned int i, k;

	if (!a->linear || !b->linear)
		return value_mix(a, b, id);
	/* (a + A) * (b + B) with the numbers a and b */
	v = value_add(&zero, a, b->c, id);
	more = *b;
	more.c = 0;
	v = value_add(&v, &more, a->c, id);
	for (i = 0; i < a->nr; i++)
		for (k = 0; k < b->nr; k++)
			v = add_product(&v, a, i, b, k, syms, id);
	return v;
}

struct value value_add(const struct value *a, const struct value *b, int64_t factor,
		       uint64_t id)
{
	struct value v = { .linear = true, .cut = a->cut || b->cut,
			   .rounded = a->rounded || b->rounded };
	unsigned int i = 0, k = 0;

	if (!a->linear || !b->linear)
		return value_mix(a, b, id);
	v.c = (int64_t)((uint64_t)a->c + (uint64_t)b->c * (uint64_t)factor);
	while (i < a->nr || k < b->nr) {
		struct term t;

		if (k == b->nr || (i < a->nr && a->terms[i].sym < b->terms[k].sym)) {
			t = a->terms[i++];
		} else {
			t = b->terms[k++];
			t.coef = (int64_t)((uint64_t)t.coef * (uint64_t)factor);
			if (i < a->nr && a->terms[i].sym == t.sym)
				t.coef = (int64_t)((uint64_t)t.coef +
						   (uint64_t)a->terms[i++].coef);
		}
		if (!t.coef)
			continue;
		if (v.nr == MAX_TERMS)
			return value_mix(a, b, id);
		v.terms[v.nr++] = t;
		symset_add(&v.deps, t.sym);
	}
	/* A product depends on its factors, which are no terms. */
	if (v.nr) {
		symset_union(&v.deps, &a->deps);
		symset_union(&v.deps, &b->deps);
	}
	return v;
}

bool value_equal(const struct value *a, const struct value *b)
{
	unsigned int i;

	if (a->linear != b->linear || a->cut != b->cut || a->rounded != b->rounded)
		return false;
	if (!a->linear)
		return a->id == b->id &&
		       !memcmp(&a->deps, &b->deps, sizeof(a->deps)) &&
		       !memcmp(&a->choices, &b->choices, sizeof(a->choices));
	if (a->c != b->c || a->nr != b->nr)
		return false;
	for (i = 0; i < a->nr; i++)
		if (a->terms[i].sym != b->terms[i].sym || a->terms[i].coef != b->terms[i].coef)
			return false;
	return true;
}

bool value_is_plain(const struct value *v, struct symset *choices)
{
	if (!v->linear) {
		symset_union(choices, &v->choices);
		return symset_meets(&v->choices, &v->choices);
	}
	if (v->rounded || v->nr != 1 || v->terms[0].coef != 1 || v->c)
		return false;
	symset_add(choices, v->terms[0].sym);
	return true;
}

bool value_merge(struct value *a, const struct value *b, uint64_t id, const struct symset *why)
{
	struct value v;

	if (value_equal(a, b))
		return false;
	v = (struct value){ .cut = a->cut || b->cut, .rounded = a->rounded || b->rounded,
			    .id = id, .deps = a->deps };
	if (!value_is_plain(a, &v.choices) || !value_is_plain(b, &v.choices))
		memset(&v.choices, 0, sizeof(v.choices));
	symset_union(&v.deps, &b->deps);
	symset_union(&v.deps, why);
	if (value_equal(a, &v))
		return false;
	*a = v;
	return true;
}

bool value_has(const struct value *a, const struct value *b, uint64_t id,
	       const struct symset *why)
{
	uint64_t missing = 0;
	unsigned int i;

	/* Of choices it can lose some. */
	if (a->linear || a->id != id || (b->cut && !a->cut) || (b->rounded && !a->rounded) ||
	    symset_meets(&a->choices, &a->choices))
		return false;
	for (i = 0; i < MAX_SYMS / 64; i++)
		missing |= (b->deps.word[i] | why->word[i]) & ~a->deps.word[i];
	return !missing;
}

bool value_is_const(const struct value *v, int64_t *c)
{
	*c = v->c;
	return v->linear && !v->nr;
}

/* ---- values that are kept ---- */

#define CHUNK_VALUES	64

struct value_chunk {
	struct value_chunk *next;
	unsigned int nr;
	struct value v[CHUNK_VALUES];
};

static bool symset_equal(const struct symset *a, const struct symset *b)
{
	return !memcmp(a, b, sizeof(*a));
}

static bool is_same(const struct value *a, const struct value *b)
{
	return value_equal(a, b) && symset_equal(&a->deps, &b->deps);
}

static uint64_t hash_of(const struct value *v)
{
	uint64_t deps = 0;
	unsigned int i;

	for (i = 0; i < MAX_SYMS / 64; i++)
		deps = 31 * deps + v->deps.word[i];
	return value_hash(identity(v), deps);
}

static struct value_place *place_in(struct value_place *table, unsigned int size,
				    const struct value *v, uint64_t hash)
{
	uint64_t h = hash;

	while (table[h & (size - 1)].v &&
	       (table[h & (size - 1)].hash != hash || !is_same(table[h & (size - 1)].v, v)))
		h++;
	return &table[h & (size - 1)];
}

static bool grow_table(struct values *values)
{
	unsigned int size = values->size ? 2 * values->size : 1024, i;
	struct value_place *table = calloc(size, sizeof(*table));
	uint64_t h;

	if (!table)
		return false;
	for (i = 0; i < values->size; i++) {
		if (!values->table[i].v)
			continue;
		for (h = values->table[i].hash; table[h & (size - 1)].v; h++)
			;
		table[h & (size - 1)] = values->table[i];
	}
	free(values->table);
	values->table = table;
	values->size = size;
	return true;
}

const struct value *values_keep(struct values *values, const struct value *v)
{
	static const struct value none;
	struct value_chunk *chunk = values->chunks;
	const uint64_t hash = hash_of(v);
	struct value_place *place;

	if (2 * values->nr >= values->size && !grow_table(values)) {
		values->no_memory = true;
		return &none;
	}
	place = place_in(values->table, values->size, v, hash);
	if (place->v)
		return place->v;
	if (!chunk || chunk->nr == CHUNK_VALUES) {
		chunk = malloc(sizeof(*chunk));
		if (!chunk) {
			values->no_memory = true;
			return &none;
		}
		chunk->next = values->chunks;
		chunk->nr = 0;
		values->chunks = chunk;
	}
	chunk->v[chunk->nr] = *v;
	*place = (struct value_place){ &chunk->v[chunk->nr++], hash };
	values->nr++;
	return place->v;
}

/*
 * Return the place in the cache of an operation's result, with the operation and operands in it;
 * the result is NULL if it is to be computed.
 */
static struct value_result *find_result(struct values *values, const struct value_result *key)
{
	uint64_t h = (uintptr_t)key->a * 0x9e3779b97f4a7c15ULL ^
		     (uintptr_t)key->b * 0xbf58476d1ce4e5b9ULL ^
		     (key->n + key->op) * 0x94d049bb133111ebULL ^ key->id * 0xd6e8feb86659fd93ULL;
	struct value_result *r;

	if (!values->cache)
		values->cache = calloc(VALUES_CACHED, sizeof(*values->cache));
	if (!values->cache)
		return NULL;
	r = &values->cache[(h ^ h >> 32) >> 7 & (VALUES_CACHED - 1)];
	if (r->op != key->op || r->a != key->a || r->b != key->b || r->n != key->n ||
	    r->id != key->id)
		*r = *key;
	return r;
}

/* Compute what is not in the cache. */
static const struct value *compute(struct values *values, const struct value_result *key)
{
	struct value v;

	switch (key->op) {
	case OP_CONST:
		v = value_const((int64_t)key->n);
		break;
	case OP_ADD:
		v = value_add(key->a, key->b, (int64_t)key->n, key->id);
		break;
	case OP_MIX:
		v = value_mix(key->a, key->b, key->id);
		break;
	case OP_BLUR:
		v = *key->a;
		if (v.linear)
			v = (struct value){ .deps = v.deps };
		symset_union(&v.deps, &key->b->deps);
		break;
	default:
		v = *key->a;
		v.cut = true;
		break;
	}
	return values_keep(values, &v);
}

static const struct value *operate(struct values *values, const struct value_result *key)
{
	struct value_result *r = find_result(values, key);

	if (!r)
		return compute(values, key);
	if (!r->result)
		r->result = compute(values, key);
	return r->result;
}

const struct value *values_const(struct values *values, int64_t c)
{
	const struct value_result key = { .op = OP_CONST, .n = (uint64_t)c };

	return operate(values, &key);
}

const struct value *values_sym(struct values *values, uint16_t sym)
{
	const struct value **place = &values->sym[sym < MAX_SYMS ? sym : MAX_SYMS];
	struct value v;

	if (!*place) {
		v = value_sym(sym);
		*place = values_keep(values, &v);
	}
	return *place;
}

const struct value *values_add(struct values *values, const struct value *a,
			       const struct value *b, int64_t factor, uint64_t id)
{
	const struct value_result key = { .op = OP_ADD, .a = a, .b = b, .n = (uint64_t)factor,
					  .id = id };

	return operate(values, &key);
}

const struct value *values_mix(struct values *values, const struct value *a,
			       const struct value *b, uint64_t id)
{
	const struct value_result key = { .op = OP_MIX, .a = a, .b = b, .id = id };

	return operate(values, &key);
}

const struct value *values_cut(struct values *values, const struct value *v)
{
	const struct value_result key = { .op = OP_CUT, .a = v };

	return v->cut || !v->nr ? v : operate(values, &key);
}

const struct value *values_blur(struct values *values, const struct value *v,
				const struct value *by)
{
	const struct value_result key = { .op = OP_BLUR, .a = v, .b = by };

	return operate(values, &key);
}

void values_free(struct values *values)
{
	struct value_chunk *chunk = values->chunks, *next;

	for (; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	free(values->table);
	free(values->cache);
	memset(values, 0, sizeof(*values));
}
