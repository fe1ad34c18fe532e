// SPDX-License-Identifier: GPL-2.0-only
/*
 * The parts of mgpu-defer's analysis: values, and graphs of code that is written as bytes.
 */
#include "api.h"
#include "cfg.h"
#include "tap.h"
#include "value.h"

static struct syms syms;
static struct values values;

static uint16_t reg(unsigned int n)
{
	return sym_intern(&syms, &(struct sym){ .kind = SYM_REG, .a = n });
}

static const struct value *sym(unsigned int n)
{
	return values_sym(&values, reg(n));
}

static const struct value *number(int64_t c)
{
	return values_const(&values, c);
}

static void sums(void)
{
	const struct value *x = sym(0), *y = sym(1), *v, *w;
	int64_t c;

	v = values_add(&values, x, number(4), 1, 1);
	v = values_add(&values, v, y, 3, 2);
	TAP_CHECK(v->linear && v->nr == 2 && v->c == 4);
	/* (x + 3y + 4) - x - 3y is a number again */
	w = values_add(&values, v, x, -1, 3);
	w = values_add(&values, w, y, -3, 4);
	TAP_CHECK(value_is_const(w, &c) && c == 4);
	TAP_CHECK(!symset_has(w->deps, reg(0)));
	/* In whichever order it is summed up. */
	w = values_add(&values, y, y, 2, 5);
	w = values_add(&values, w, x, 1, 6);
	w = values_add(&values, w, number(4), 1, 7);
	TAP_CHECK(v == w);
	TAP_CHECK(symset_has(v->deps, reg(0)) && symset_has(v->deps, reg(1)));
}

static void long_sums(void)
{
	const struct value *v = number(0);
	unsigned int i;

	for (i = 0; i < MAX_TERMS + 2; i++) {
		v = values_add(&values, v, sym(i), 1, i);
		TAP_EQ(v->linear, i < MAX_TERMS);
	}
	/* A value that is not known as a sum still depends on all of it. */
	for (i = 0; i < MAX_TERMS + 2; i++)
		TAP_CHECK(symset_has(v->deps, reg(i)));
}

static void products(void)
{
	const struct value *x = sym(0), *y = sym(1), *two = number(2), *v, *w;
	int64_t c;

	v = values_add(&values, x, two, 1, 1);
	v = values_multiply(&values, v, y, &syms, 2);
	/* (x + 2) * y = xy + 2y */
	TAP_CHECK(v->linear && v->nr == 2);
	TAP_CHECK(symset_has(v->deps, reg(0)) && symset_has(v->deps, reg(1)));
	w = values_multiply(&values, y, x, &syms, 3);
	w = values_add(&values, w, y, 2, 4);
	TAP_CHECK(value_equal(v, w));
	w = values_multiply(&values, number(3), two, &syms, 5);
	TAP_CHECK(value_is_const(w, &c) && c == 6);
}

static void merges(void)
{
	const struct value *x = sym(0), *y = sym(1), *v;
	struct symset why = { 0 }, choices = { 0 };

	symset_add(&why, reg(7));
	TAP_CHECK(values_merge(&values, x, x, 9, &why) == x);
	v = values_merge(&values, x, y, 9, &why);
	TAP_CHECK(!v->linear);
	TAP_CHECK(symset_has(v->deps, reg(0)) && symset_has(v->deps, reg(1)));
	TAP_CHECK(symset_has(v->deps, reg(7)));
	TAP_CHECK(value_is_plain(v, &choices));
	TAP_CHECK(symset_has(&choices, reg(0)) && !symset_has(&choices, reg(7)));
	/* It comes to an end. */
	TAP_CHECK(values_merge(&values, v, y, 9, &why) == v);
	TAP_CHECK(values_merge(&values, v, x, 9, &why) == v);
	y = values_add(&values, y, y, 1, 1);
	x = values_merge(&values, v, y, 9, &why);
	TAP_CHECK(x != v);
	TAP_CHECK(!value_is_plain(x, &choices));
	TAP_CHECK(values_merge(&values, x, y, 9, &why) == x);
}

/* The cache has to tell all apart that a result depends on. */
static void operations(void)
{
	const struct value *x = sym(0), *y = sym(1), *v = values_mix(&values, x, y, 1), *w;
	const struct value *const all[] = { x, y, v };

	TAP_CHECK(values_mix(&values, x, y, 1) == v);
	TAP_CHECK(values_mix(&values, x, y, 2) != v);
	TAP_CHECK(values_mix(&values, y, x, 1) != v);
	TAP_CHECK(values_mix(&values, x, NULL, 1) != v);
	TAP_CHECK(values_add(&values, x, y, 1, 1) != values_add(&values, x, y, -1, 1));
	TAP_CHECK(values_add(&values, v, y, 1, 1) != values_add(&values, v, y, 1, 2));
	TAP_CHECK(values_cut(&values, x)->cut && !x->cut && values_cut(&values, x) != x);
	TAP_CHECK(values_cut(&values, number(5)) == number(5));
	TAP_CHECK(values_round(&values, x)->rounded && !x->rounded);
	TAP_CHECK(number(5) != number(6));
	w = values_member(&values, x, y);
	TAP_CHECK(w != x && w->linear && symset_has(w->deps, reg(1)));
	w = values_blur(&values, x, y, reg(7), 1);
	TAP_CHECK(!w->linear && symset_has(w->deps, reg(0)) && symset_has(w->deps, reg(1)));
	TAP_CHECK(symset_has(w->deps, reg(7)));
	TAP_CHECK(values_blur(&values, x, y, reg(6), 1) != w);
	TAP_CHECK(values_blur(&values, y, y, reg(7), 1) != w);
	w = values_mix_all(&values, all, 3, 4);
	v = values_mix(&values, x, NULL, 4);
	v = values_mix(&values, v, y, 4);
	TAP_CHECK(values_mix(&values, v, all[2], 4) == w);
	TAP_CHECK(values_unite(&values, x, NULL)->deps == x->deps);
	TAP_CHECK(values_unite(&values, x, y)->deps == all[2]->deps);
}

/* More results than the cache has places for, so that most replace another one. */
static void replaced_results(void)
{
	const struct value *x = sym(0), *v;
	unsigned int i;
	int64_t c;

	for (i = 0; i < 8 * VALUES_CACHED; i++) {
		TAP_CHECK(value_is_const(number(i), &c) && c == i);
		v = values_add(&values, x, number(i), 1, 0);
		TAP_CHECK(v->linear && v->nr == 1 && v->c == i);
		v = values_add(&values, number(1), number(2), i, 0);
		TAP_CHECK(value_is_const(v, &c) && c == 1 + 2 * (int64_t)i);
		v = values_mix_all(&values, &x, 1, i);
		TAP_CHECK(values_mix(&values, x, NULL, i) == v);
		v = values_add(&values, number(i), x, 1, 0);
		TAP_CHECK(v->linear && v->nr == 1 && v->c == i);
	}
}

static void too_many_symbols(void)
{
	unsigned int i;

	for (i = 0; i < MAX_SYMS; i++)
		TAP_EQ(sym_intern(&syms, &(struct sym){ .kind = SYM_OTHER, .b = (int64_t)i }), i);
	TAP_CHECK(!syms.full);
	TAP_EQ(sym_intern(&syms, &(struct sym){ .kind = SYM_HEAP }), NO_SYM);
	TAP_CHECK(syms.full);
	TAP_CHECK(!values_sym(&values, NO_SYM)->linear);
	TAP_EQ(sym_intern(&syms, &(struct sym){ .kind = SYM_OTHER, .b = 5 }), 5);
}

/* ---- graphs ---- */

#define BASE	0x1000

static struct cfg graph;

static void build(const uint8_t *code, size_t len)
{
	struct image_segment segment = { BASE, BASE + len, code, true };
	struct image_function fn = { BASE, BASE + len, NULL };
	struct image img = { .segments = &segment, .nr_segments = 1, .functions = &fn,
			     .nr_functions = 1 };
	csh capstone;

	TAP_NEED(cs_open(CS_ARCH_X86, CS_MODE_64, &capstone) == CS_ERR_OK);
	cs_option(capstone, CS_OPT_DETAIL, CS_OPT_ON);
	TAP_EQ(cfg_build(&graph, &img, &fn, capstone, &(struct insn_cache){ 0 }), 0);
	cs_close(&capstone);
}

static uint64_t at(uint32_t block)
{
	return graph.insns[graph.blocks[block].first]->address - BASE;
}

static void nested_loops(void)
{
	static const uint8_t code[] = {
		0x31, 0xc0,		/*  0	xor %eax,%eax */
		0x31, 0xc9,		/*  2	xor %ecx,%ecx	outer */
		0xff, 0xc1,		/*  4	inc %ecx	inner */
		0x39, 0xd1,		/*  6	cmp %edx,%ecx */
		0x75, 0xfa,		/*  8	jne 4 */
		0xff, 0xc0,		/* 10	inc %eax */
		0x39, 0xf0,		/* 12	cmp %esi,%eax */
		0x75, 0xf2,		/* 14	jne 2 */
		0xc3,			/* 16	ret */
	};

	build(code, sizeof(code));
	TAP_EQ(graph.nr_blocks, 5);
	TAP_EQ(graph.nr_loops, 2);
	TAP_EQ(at(graph.loops[0].header), 2);
	TAP_EQ(at(graph.loops[1].header), 4);
	TAP_EQ(graph.loops[0].nr_blocks, 3);
	TAP_EQ(graph.loops[1].nr_blocks, 1);
	TAP_EQ(graph.loops[1].parent, 0);
	TAP_EQ(graph.loops[1].depth, 2);
	TAP_CHECK(cfg_dominates(&graph, graph.loops[0].header, graph.loops[1].header));
	TAP_CHECK(!cfg_dominates(&graph, graph.loops[1].header, graph.loops[0].header));
	cfg_free(&graph);
}

static void cycle_of_two_entries(void)
{
	static const uint8_t code[] = {
		0x85, 0xff,		/*  0	test %edi,%edi */
		0x74, 0x02,		/*  2	je 6 */
		0xff, 0xc0,		/*  4	inc %eax */
		0xff, 0xc8,		/*  6	dec %eax */
		0x75, 0xfa,		/*  8	jne 4 */
		0xc3,			/* 10	ret */
	};

	build(code, sizeof(code));
	TAP_EQ(graph.nr_loops, 0);
	TAP_CHECK(!graph.table_jumps);
	cfg_free(&graph);
}

static void one_header_is_one_loop(void)
{
	static const uint8_t code[] = {
		0xff, 0xc0,		/*  0	inc %eax */
		0x85, 0xc0,		/*  2	test %eax,%eax	header */
		0x74, 0xfc,		/*  4	je 2 */
		0xff, 0xc8,		/*  6	dec %eax */
		0x78, 0xf8,		/*  8	js 2 */
		0xc3,			/* 10	ret */
	};

	build(code, sizeof(code));
	TAP_EQ(graph.nr_loops, 1);
	TAP_EQ(at(graph.loops[0].header), 2);
	TAP_EQ(graph.loops[0].nr_blocks, 2);
	cfg_free(&graph);
}

static void tables_are_noticed(void)
{
	static const uint8_t code[] = {
		0xff, 0xe0,		/*  0	jmp *%rax */
		0xc3,
	};

	build(code, sizeof(code));
	TAP_CHECK(graph.table_jumps);
	cfg_free(&graph);
}

/* Code that ends within an instruction, and jumps out of it. */
static void damaged_code(void)
{
	static const uint8_t code[] = {
		0x74, 0x7f,		/*  0	je beyond the end */
		0xeb, 0xfb,		/*  2	jmp before the start */
		0x48, 0xb8, 0x00,	/*  4	a part of movabs */
	};
	size_t len;

	for (len = 1; len <= sizeof(code); len++) {
		build(code, len);
		TAP_EQ(graph.nr_loops, 0);
		cfg_free(&graph);
	}
}

static void calls_are_found_by_name(void)
{
	const struct api_function *fn;
	unsigned int i;

	for (i = 0; i < api_nr_functions; i++)
		TAP_CHECK(api_find(api_functions[i].name) == &api_functions[i]);
	TAP_CHECK(!api_find("printf") && !api_find("") && !api_find("clFinis"));
	fn = api_find("clEnqueueReadBuffer");
	TAP_NEED(fn);
	TAP_EQ(fn->nr_args, 9);
	TAP_EQ(fn->args[5].type, API_OUT);
	TAP_EQ(fn->args[5].length_arg, 4);
	TAP_EQ(fn->args[7].length_unit, 8);
	TAP_EQ(fn->blocking_arg, 2);
	TAP_EQ(fn->args[8].holds, API_OBJECT);
}

int main(void)
{
	tap_run(sums, "sums have one form");
	tap_run(long_sums, "a sum of too many symbols depends on all of them");
	tap_run(products, "products are expanded");
	tap_run(merges, "a merge keeps what it is made of, and ends");
	tap_run(operations, "the cache of results tells operations and operands apart");
	tap_run(replaced_results, "a result that replaces another one in the cache is its own");
	tap_run(too_many_symbols, "too many symbols are noticed");
	tap_run(nested_loops, "nested loops are found");
	tap_run(cycle_of_two_entries, "a cycle with two entries is no loop");
	tap_run(one_header_is_one_loop, "two ways back to one header are one loop");
	tap_run(tables_are_noticed, "a computed jump is noticed");
	tap_run(damaged_code, "code that ends anywhere is read up to there");
	tap_run(calls_are_found_by_name, "calls of the API are found by their names");
	values_free(&values);
	return tap_done();
}
