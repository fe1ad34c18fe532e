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

/* ---- sets and values that are kept ---- */

#define CHUNK_SIZE	16384U

struct value_chunk {
	struct value_chunk *next;
	unsigned int used;
	uint64_t memory[CHUNK_SIZE / sizeof(uint64_t)];
};

static const struct symset no_symbols;

/* Return memory that lasts until all values are forgotten, or NULL. */
static void *get_memory(struct values *values, unsigned int size)
{
	struct value_chunk *chunk = values->chunks;

	if (!chunk || chunk->used + size > CHUNK_SIZE) {
		chunk = malloc(sizeof(*chunk));
		if (!chunk)
			return NULL;
		chunk->next = values->chunks;
		chunk->used = 0;
		values->chunks = chunk;
	}
	chunk->used += size;
	return (uint8_t *)chunk->memory + chunk->used - size;
}

/*
 * Return the place of what is the same, or one where it can be put; NULL: out of memory.
 */
static struct kept_place *find_kept(struct kept *kept, const void *it, uint64_t hash,
				    bool (*is_same)(const void *a, const void *b))
{
	unsigned int size = 2 * kept->nr < kept->size ? kept->size : 2 * kept->size, i;
	struct kept_place *table = kept->table;
	uint64_t h;

	if (2 * kept->nr >= kept->size) {
		size = size ? size : 1024;
		table = calloc(size, sizeof(*table));
		if (!table)
			return NULL;
		for (i = 0; i < kept->size; i++) {
			if (!kept->table[i].it)
				continue;
			for (h = kept->table[i].hash; table[h & (size - 1)].it; h++)
				;
			table[h & (size - 1)] = kept->table[i];
		}
		free(kept->table);
		kept->table = table;
		kept->size = size;
	}
	for (h = hash; table[h & (size - 1)].it; h++)
		if (table[h & (size - 1)].hash == hash &&
		    is_same(table[h & (size - 1)].it, it))
			break;
	return &table[h & (size - 1)];
}

/* Return a copy that is kept, and is found at a place from now on. */
static const void *keep_at(struct values *values, struct kept *kept, struct kept_place *place,
			   uint64_t hash, const void *it, unsigned int size)
{
	void *copy = get_memory(values, size);

	if (!copy) {
		values->no_memory = true;
		return NULL;
	}
	memcpy(copy, it, size);
	*place = (struct kept_place){ copy, hash };
	kept->nr++;
	return copy;
}

static bool is_same_set(const void *a, const void *b)
{
	return !memcmp(a, b, sizeof(struct symset));
}

/* Return the kept set that is the same. */
static const struct symset *keep_set(struct values *values, const struct symset *set)
{
	struct kept_place *place;
	const struct symset *kept;
	uint64_t h = 0;
	unsigned int i;

	if (!symset_meets(set, set))
		return &no_symbols;
	for (i = 0; i < MAX_SYMS / 64; i++)
		if (set->word[i])
			h = value_hash(h + i, set->word[i]);
	place = find_kept(&values->sets, set, h, is_same_set);
	if (!place) {
		values->no_memory = true;
		return &no_symbols;
	}
	if (place->it)
		return place->it;
	kept = keep_at(values, &values->sets, place, h, set, sizeof(*set));
	return kept ? kept : &no_symbols;
}

static const struct symset *unite(struct values *values, const struct symset *a,
				  const struct symset *b)
{
	struct symset both;

	if (a == b || b == &no_symbols)
		return a;
	if (a == &no_symbols)
		return b;
	both = *a;
	return symset_union(&both, b) ? keep_set(values, &both) : a;
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

/* Return the value that is the same, dependences included. */
static const struct value *keep(struct values *values, const struct value *v);

static struct value mix(struct values *values, const struct value *a, const struct value *b,
			uint64_t id)
{
	struct value v = { .deps = a->deps, .choices = &no_symbols };

	v.id = value_hash(id, identity(a));
	if (b) {
		v.id = value_hash(v.id, identity(b));
		v.deps = unite(values, a->deps, b->deps);
	}
	return v;
}

static struct value add(struct values *values, const struct value *a, const struct value *b,
			int64_t factor, uint64_t id)
{
	struct value v = { .linear = true, .deps = &no_symbols };
	unsigned int i = 0, k = 0;

	if (!a->linear || !b->linear)
		return mix(values, a, b, id);
	v.cut = a->cut || b->cut;
	v.rounded = a->rounded || b->rounded;
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
			return mix(values, a, b, id);
		v.terms[v.nr++] = t;
	}
	/* Their terms are in there, and the factors of products, which are no terms. */
	if (v.nr)
		v.deps = unite(values, a->deps, b->deps);
	return v;
}

/* The sum with one more term. */
static const struct value *add_product(struct values *values, const struct value *sum,
				       const struct value *a, unsigned int i,
				       const struct value *b, unsigned int k, struct syms *syms,
				       uint64_t id)
{
	uint16_t x = a->terms[i].sym, y = b->terms[k].sym;
	const struct sym sym = { .kind = SYM_PRODUCT, .a = x < y ? x : y, .b = x < y ? y : x };
	const struct value *term = values_sym(values, sym_intern(syms, &sym));
	struct symset deps;
	struct value v;

	v = add(values, sum, term, (int64_t)((uint64_t)a->terms[i].coef *
					     (uint64_t)b->terms[k].coef), id);
	/* The product depends on its factors. */
	deps = *v.deps;
	symset_add(&deps, x);
	symset_add(&deps, y);
	v.deps = keep_set(values, &deps);
	return keep(values, &v);
}

const struct value *values_multiply(struct values *values, const struct value *a,
				    const struct value *b, struct syms *syms, uint64_t id)
{
	const struct value *v;
	struct value more;
	unsigned int i, k;

	if (!a->linear || !b->linear)
		return values_mix(values, a, b, id);
	/* (a + A) * (b + B) with the numbers a and b */
	v = values_add(values, values_const(values, 0), a, b->c, id);
	more = *b;
	more.c = 0;
	v = values_add(values, v, keep(values, &more), a->c, id);
	for (i = 0; i < a->nr; i++)
		for (k = 0; k < b->nr; k++)
			v = add_product(values, v, a, i, b, k, syms, id);
	return v;
}

bool value_equal(const struct value *a, const struct value *b)
{
	unsigned int i;

	if (a->linear != b->linear || a->cut != b->cut || a->rounded != b->rounded)
		return false;
	if (!a->linear)
		return a->id == b->id && a->deps == b->deps && a->choices == b->choices;
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
		symset_union(choices, v->choices);
		return v->choices != &no_symbols;
	}
	if (v->rounded || v->nr != 1 || v->terms[0].coef != 1 || v->c)
		return false;
	symset_add(choices, v->terms[0].sym);
	return true;
}

/* Return whether @a is a merge, and @b changes nothing any more. */
static bool has(const struct value *a, const struct value *b, uint64_t id,
		const struct symset *why)
{
	uint64_t missing = 0;
	unsigned int i;

	/* Of choices it can lose some. */
	if (a->linear || a->id != id || (b->cut && !a->cut) || (b->rounded && !a->rounded) ||
	    a->choices != &no_symbols)
		return false;
	for (i = 0; i < MAX_SYMS / 64; i++)
		missing |= (b->deps->word[i] | why->word[i]) & ~a->deps->word[i];
	return !missing;
}

const struct value *values_merge(struct values *values, const struct value *a,
				 const struct value *b, uint64_t id, const struct symset *why)
{
	struct symset set = { 0 };
	struct value v;
	bool grown;

	values->merged++;
	if (has(a, b, id, why) || value_equal(a, b))
		return a;
	v = (struct value){ .cut = a->cut || b->cut, .rounded = a->rounded || b->rounded,
			    .id = id, .choices = &no_symbols };
	if (value_is_plain(a, &set) && value_is_plain(b, &set))
		v.choices = keep_set(values, &set);
	set = *a->deps;
	grown = symset_union(&set, b->deps);
	grown |= symset_union(&set, why);
	v.deps = grown ? keep_set(values, &set) : a->deps;
	return value_equal(a, &v) ? a : keep(values, &v);
}

bool value_is_const(const struct value *v, int64_t *c)
{
	*c = v->c;
	return v->linear && !v->nr;
}

static bool is_same(const void *a, const void *b)
{
	const struct value *x = a, *y = b;

	return value_equal(x, y) && x->deps == y->deps;
}

static const struct value *keep(struct values *values, const struct value *v)
{
	static const struct value none = { .deps = &no_symbols, .choices = &no_symbols };
	const uint64_t hash = value_hash(identity(v), (uintptr_t)v->deps);
	struct kept_place *place = find_kept(&values->values, v, hash, is_same);
	const struct value *kept;

	if (!place) {
		values->no_memory = true;
		return &none;
	}
	if (place->it)
		return place->it;
	kept = keep_at(values, &values->values, place, hash, v, sizeof(*v));
	return kept ? kept : &none;
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
	struct symset deps;
	struct value v;

	switch (key->op) {
	case OP_CONST:
		v = (struct value){ .linear = true, .deps = &no_symbols, .c = (int64_t)key->n };
		break;
	case OP_ADD:
		v = add(values, key->a, key->b, (int64_t)key->n, key->id);
		break;
	case OP_MIX:
		v = mix(values, key->a, key->b, key->id);
		break;
	case OP_BLUR:
		v = mix(values, key->a, NULL, key->id);
		deps = *v.deps;
		symset_union(&deps, key->b->deps);
		symset_add(&deps, (uint16_t)key->n);
		v.deps = keep_set(values, &deps);
		break;
	case OP_MEMBER:
		v = *key->a;
		v.deps = unite(values, v.deps, key->b->deps);
		break;
	case OP_UNITE:
		v = (struct value){ .deps = key->a->deps, .choices = &no_symbols };
		if (key->b)
			v.deps = unite(values, v.deps, key->b->deps);
		break;
	case OP_CUT:
		v = *key->a;
		v.cut = true;
		break;
	default:
		v = *key->a;
		v.rounded = true;
		break;
	}
	return keep(values, &v);
}

static const struct value *operate(struct values *values, const struct value_result *key)
{
	struct value_result *r = find_result(values, key);

	values->operations++;
	if (r && r->result)
		return r->result;
	values->computed++;
	if (!r)
		return compute(values, key);
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
	struct value v = { .deps = &no_symbols, .choices = &no_symbols };
	struct symset deps = { 0 };

	if (*place)
		return *place;
	if (sym < MAX_SYMS) {
		symset_add(&deps, sym);
		v = (struct value){ .linear = true, .nr = 1, .deps = keep_set(values, &deps),
				    .terms = { { sym, 1 } } };
	}
	*place = keep(values, &v);
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

const struct value *values_mix_all(struct values *values, const struct value *const *v,
				   unsigned int nr, uint64_t id)
{
	struct value all = mix(values, v[0], NULL, id);
	struct symset deps = *all.deps;
	unsigned int i;

	for (i = 1; i < nr; i++) {
		all.id = value_hash(value_hash(id, all.id), identity(v[i]));
		symset_union(&deps, v[i]->deps);
	}
	all.deps = keep_set(values, &deps);
	return keep(values, &all);
}

const struct value *values_cut(struct values *values, const struct value *v)
{
	const struct value_result key = { .op = OP_CUT, .a = v };

	return v->cut || !v->nr ? v : operate(values, &key);
}

const struct value *values_round(struct values *values, const struct value *v)
{
	const struct value_result key = { .op = OP_ROUND, .a = v };

	return operate(values, &key);
}

const struct value *values_member(struct values *values, const struct value *v,
				  const struct value *of)
{
	const struct value_result key = { .op = OP_MEMBER, .a = v, .b = of };

	return operate(values, &key);
}

const struct value *values_blur(struct values *values, const struct value *v,
				const struct value *by, uint16_t sym, uint64_t id)
{
	const struct value_result key = { .op = OP_BLUR, .a = v, .b = by, .n = sym, .id = id };

	return operate(values, &key);
}

const struct value *values_unite(struct values *values, const struct value *a,
				 const struct value *b)
{
	const struct value_result key = { .op = OP_UNITE, .a = a, .b = b };

	return operate(values, &key);
}

void values_free(struct values *values)
{
	struct value_chunk *chunk;

	while (values->chunks) {
		chunk = values->chunks;
		values->chunks = chunk->next;
		free(chunk);
	}
	free(values->values.table);
	free(values->sets.table);
	free(values->cache);
	*values = (struct values){ .operations = values->operations,
				   .computed = values->computed, .merged = values->merged };
}
