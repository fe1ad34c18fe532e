// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cfg.h"
#include "regs.h"

/* Instructions and leaders while the function is disassembled, by offset in it. */
struct sweep {
	csh capstone;
	const struct image *img;
	struct insn_cache *cache;
	struct cfg *g;
	struct cs_insn **at;
	bool *leader;
	uint32_t *work;
	size_t nr_work, len;
};

/* Capstone has the LOOP instructions in no group. */
static bool is_jump(const cs_insn *insn)
{
	return insn_is(insn, INSN_JUMP) || insn->id == X86_INS_LOOP ||
	       insn->id == X86_INS_LOOPE || insn->id == X86_INS_LOOPNE;
}

/* Whether control does not go on behind it, but for calls. */
static bool is_end(const cs_insn *insn)
{
	return insn_is(insn, INSN_RETURN | INSN_INTERRUPT_RETURN) || insn->id == X86_INS_UD2 ||
	       insn->id == X86_INS_HLT;
}

static bool is_unconditional(const cs_insn *insn)
{
	return insn->id == X86_INS_JMP || insn->id == X86_INS_LJMP;
}

/* Functions of libraries that do not return. */
static bool never_returns(const char *name)
{
	static const char *const names[] = {
		"abort", "exit", "_exit", "_Exit", "quick_exit", "__stack_chk_fail",
		"__assert_fail", "__chk_fail", "__fortify_fail", "longjmp", "siglongjmp",
		"__longjmp_chk", "err", "errx", "verr", "verrx", "_Unwind_Resume",
		"__cxa_throw", "__cxa_rethrow", "pthread_exit",
	};
	size_t i;

	for (i = 0; name && i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static void lead(struct sweep *s, uint64_t address)
{
	uint64_t off = address - s->g->fn->start;

	if (off >= s->len)
		return;
	if (!s->at[off] && !s->leader[off])
		s->work[s->nr_work++] = (uint32_t)off;
	s->leader[off] = true;
}

/* Note where control goes behind an instruction; return whether it goes on behind it. */
static bool follow(struct sweep *s, const cs_insn *insn)
{
	const cs_x86_op *op = &insn->detail->x86.operands[0];

	if (is_end(insn))
		return false;
	if (insn_is(insn, INSN_CALL))
		return !never_returns(insn_target(insn)->name);
	if (!is_jump(insn))
		return true;
	if (op->type == X86_OP_IMM)
		lead(s, (uint64_t)op->imm);
	else if (!insn_target(insn)->name)
		s->g->table_jumps = true;
	if (is_unconditional(insn))
		return false;
	lead(s, insn->address + insn->size);
	return true;
}

static bool ends_block(const cs_insn *insn)
{
	return is_jump(insn) || is_end(insn);
}

static void note_register(struct cfg *g, unsigned int reg)
{
	if (reg_is_vector(reg) && reg + 2 > g->vectors_end)
		g->vectors_end = reg + 2;
}

/* Note the vector registers that an instruction names. */
static void note_vectors(struct cfg *g, const cs_insn *insn)
{
	const cs_detail *d = insn->detail;
	const cs_x86_op *op;
	unsigned int i;

	for (i = 0; i < d->regs_read_count; i++)
		note_register(g, reg_number(d->regs_read[i]));
	for (i = 0; i < d->regs_write_count; i++)
		note_register(g, reg_number(d->regs_write[i]));
	for (i = 0; i < d->x86.op_count; i++) {
		op = &d->x86.operands[i];
		if (op->type == X86_OP_REG)
			note_register(g, reg_number(op->reg));
		else if (op->type == X86_OP_MEM)
			note_register(g, reg_number(op->mem.index));
	}
}

/* Note the function that an instruction calls, by a jump too. */
static int note_callee(const struct sweep *s, const cs_insn *insn)
{
	const struct image_function *fn, **more;
	struct cfg *g = s->g;
	uint64_t address = insn_target(insn)->address;
	unsigned int i;

	if (!insn_is(insn, INSN_CALL) && insn->id != X86_INS_JMP)
		return 0;
	fn = address ? image_function(s->img, address) : NULL;
	if (!fn || fn->start != address || fn == g->fn)
		return 0;
	for (i = 0; i < g->nr_callees; i++)
		if (g->callees[i] == fn)
			return 0;
	more = reallocarray(g->callees, g->nr_callees + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	g->callees = more;
	g->callees[g->nr_callees++] = fn;
	return 0;
}

/* Disassemble what control can reach from the function's start. */
static int disassemble(struct sweep *s)
{
	const struct image_function *fn = s->g->fn;
	const uint8_t *code;
	cs_insn *insn, *one;
	size_t avail;
	int ret = 0;

	code = image_bytes(s->img, fn->start, &avail);
	if (!code || avail < s->len)
		return 0;
	one = cs_malloc(s->capstone);
	if (!one)
		return -ENOMEM;
	lead(s, fn->start);
	while (s->nr_work && !ret) {
		uint32_t off = s->work[--s->nr_work];

		while (off < s->len && !s->at[off]) {
			ret = insn_decode(s->cache, s->capstone, one, s->img, code + off,
					  s->len - off, fn->start + off, &insn);
			if (ret || !insn)
				break;
			s->at[off] = insn;
			s->g->nr_insns++;
			note_vectors(s->g, insn);
			ret = note_callee(s, insn);
			off += insn->size;
			if (ret || !follow(s, insn))
				break;
		}
	}
	cs_free(one, 1);
	return ret;
}

/* Return the block that begins at an address, or CFG_NONE. */
static uint32_t block_at(const struct cfg *g, const uint32_t *block_of, uint64_t address)
{
	uint64_t off = address - g->fn->start;

	return off < g->fn->end - g->fn->start ? block_of[off] : CFG_NONE;
}

static int make_blocks(struct sweep *s)
{
	struct cfg *g = s->g;
	uint32_t *block_of = malloc((s->len + 1) * sizeof(*block_of));
	struct cfg_block *b = NULL;
	unsigned int i, k;
	size_t off;

	g->insns = calloc(g->nr_insns + 1, sizeof(*g->insns));
	g->blocks = calloc(g->nr_insns + 1, sizeof(*g->blocks));
	if (!g->insns || !g->blocks || !block_of) {
		free(block_of);
		return -ENOMEM;
	}
	for (i = 0, off = 0; off < s->len; off++) {
		block_of[off] = CFG_NONE;
		if (!s->at[off])
			continue;
		/* Code between two instructions that nothing leads to parts blocks, too. */
		if (!b || s->leader[off] || ends_block(g->insns[i - 1]) ||
		    g->insns[i - 1]->address + g->insns[i - 1]->size != s->at[off]->address) {
			block_of[off] = g->nr_blocks;
			b = &g->blocks[g->nr_blocks++];
			b->first = i;
		}
		b->nr++;
		g->insns[i++] = s->at[off];
		s->at[off] = NULL;
	}
	for (i = 0; i < g->nr_blocks; i++) {
		const cs_insn *last;
		uint64_t target;

		b = &g->blocks[i];
		last = g->insns[b->first + b->nr - 1];
		b->succ[0] = b->succ[1] = CFG_NONE;
		b->order = b->dominator = b->loop = CFG_NONE;
		if (is_jump(last)) {
			if (!is_unconditional(last))
				b->succ[0] = block_at(g, block_of, last->address + last->size);
			if (last->detail->x86.operands[0].type == X86_OP_IMM) {
				target = (uint64_t)last->detail->x86.operands[0].imm;
				b->succ[1] = block_at(g, block_of, target);
				b->leaves |= b->succ[1] == CFG_NONE;
			} else {
				b->leaves = true;
			}
		} else if (!ends_block(last) &&
			   !(insn_is(last, INSN_CALL) &&
			     never_returns(insn_target(last)->name))) {
			b->succ[0] = block_at(g, block_of, last->address + last->size);
			b->leaves |= b->succ[0] == CFG_NONE;
		} else {
			b->leaves = true;
		}
	}
	free(block_of);
	for (i = 0; i < g->nr_blocks; i++)
		for (k = 0; k < 2; k++)
			if (g->blocks[i].succ[k] != CFG_NONE)
				g->blocks[g->blocks[i].succ[k]].nr_pred++;
	for (i = 0; i < g->nr_blocks; i++) {
		g->blocks[i].pred = calloc(g->blocks[i].nr_pred + 1, sizeof(uint32_t));
		if (!g->blocks[i].pred)
			return -ENOMEM;
		g->blocks[i].nr_pred = 0;
	}
	for (i = 0; i < g->nr_blocks; i++)
		for (k = 0; k < 2; k++)
			if (g->blocks[i].succ[k] != CFG_NONE) {
				b = &g->blocks[g->blocks[i].succ[k]];
				b->pred[b->nr_pred++] = i;
			}
	return 0;
}

/* Number the blocks in reverse postorder, without recursion: functions can be long. */
static int number_blocks(struct cfg *g)
{
	struct { uint32_t block; unsigned int next; } *stack;
	unsigned int depth = 0, n = g->nr_blocks, i, done = 0;
	bool *seen = calloc(n + 1, sizeof(*seen));

	stack = calloc(n + 1, sizeof(*stack));
	g->rpo = calloc(n + 1, sizeof(*g->rpo));
	if (!stack || !seen || !g->rpo) {
		free(stack);
		free(seen);
		return -ENOMEM;
	}
	if (n) {
		stack[depth++].block = 0;
		seen[0] = true;
	}
	while (depth) {
		const struct cfg_block *b = &g->blocks[stack[depth - 1].block];
		uint32_t next;

		if (stack[depth - 1].next == 2) {
			g->rpo[n - ++done] = stack[--depth].block;
			continue;
		}
		next = b->succ[stack[depth - 1].next++];
		if (next == CFG_NONE || seen[next])
			continue;
		seen[next] = true;
		stack[depth].next = 0;
		stack[depth++].block = next;
	}
	g->nr_rpo = done;
	memmove(g->rpo, g->rpo + (n - done), done * sizeof(*g->rpo));
	for (i = 0; i < done; i++)
		g->blocks[g->rpo[i]].order = i;
	free(stack);
	free(seen);
	return 0;
}

/*
 * Immediate dominators, by the algorithm of Cooper, Harvey and Kennedy, "A Simple, Fast
 * Dominance Algorithm" (2001).
 */
static void find_dominators(struct cfg *g)
{
	bool changed = g->nr_rpo > 0;
	unsigned int i, k;

	if (changed)
		g->blocks[0].dominator = 0;
	while (changed) {
		changed = false;
		for (i = 1; i < g->nr_rpo; i++) {
			struct cfg_block *b = &g->blocks[g->rpo[i]];
			uint32_t dom = CFG_NONE;

			for (k = 0; k < b->nr_pred; k++) {
				uint32_t p = b->pred[k];

				if (g->blocks[p].dominator == CFG_NONE)
					continue;
				if (dom == CFG_NONE) {
					dom = p;
					continue;
				}
				while (p != dom) {
					if (g->blocks[p].order > g->blocks[dom].order)
						p = g->blocks[p].dominator;
					else
						dom = g->blocks[dom].dominator;
				}
			}
			if (b->dominator != dom) {
				b->dominator = dom;
				changed = true;
			}
		}
	}
}

bool cfg_dominates(const struct cfg *g, uint32_t above, uint32_t below)
{
	while (g->blocks[below].order > g->blocks[above].order)
		below = g->blocks[below].dominator;
	return below == above;
}

static struct cfg_loop *loop_of_header(struct cfg *g, uint32_t header)
{
	struct cfg_loop *l, *more;
	unsigned int i;

	for (i = 0; i < g->nr_loops; i++)
		if (g->loops[i].header == header)
			return &g->loops[i];
	more = reallocarray(g->loops, g->nr_loops + 1, sizeof(*more));
	if (!more)
		return NULL;
	g->loops = more;
	l = &g->loops[g->nr_loops];
	memset(l, 0, sizeof(*l));
	l->header = header;
	l->parent = CFG_NONE;
	l->member = calloc(g->nr_blocks, sizeof(*l->member));
	if (!l->member)
		return NULL;
	g->nr_loops++;
	l->member[header] = true;
	l->nr_blocks = 1;
	return l;
}

/* Add the blocks that lead to a back edge without passing the header. */
static int add_members(struct cfg *g, struct cfg_loop *l, uint32_t from)
{
	uint32_t *work = calloc(g->nr_blocks + 1, sizeof(*work));
	unsigned int n = 0, k;

	if (!work)
		return -ENOMEM;
	if (!l->member[from]) {
		l->member[from] = true;
		l->nr_blocks++;
		work[n++] = from;
	}
	while (n) {
		const struct cfg_block *b = &g->blocks[work[--n]];

		for (k = 0; k < b->nr_pred; k++) {
			uint32_t p = b->pred[k];

			if (l->member[p] || g->blocks[p].order == CFG_NONE)
				continue;
			l->member[p] = true;
			l->nr_blocks++;
			work[n++] = p;
		}
	}
	free(work);
	return 0;
}

static int bigger_first(const void *a, const void *b)
{
	const struct cfg_loop *x = a, *y = b;

	if (x->nr_blocks != y->nr_blocks)
		return x->nr_blocks > y->nr_blocks ? -1 : 1;
	return x->header < y->header ? -1 : x->header > y->header;
}

static int find_loops(struct cfg *g)
{
	unsigned int i, k, b;

	for (i = 0; i < g->nr_rpo; i++)
		for (k = 0; k < 2; k++) {
			uint32_t from = g->rpo[i], to = g->blocks[from].succ[k];
			struct cfg_loop *l;

			if (to == CFG_NONE || g->blocks[to].order > g->blocks[from].order)
				continue;
			/* A cycle with several entries is no natural loop. */
			if (!cfg_dominates(g, to, from))
				continue;
			l = loop_of_header(g, to);
			if (!l || add_members(g, l, from))
				return -ENOMEM;
		}
	if (g->nr_loops)
		qsort(g->loops, g->nr_loops, sizeof(*g->loops), bigger_first);
	/* A loop within another is smaller, so that the last to claim a block is innermost. */
	for (i = 0; i < g->nr_loops; i++) {
		struct cfg_loop *l = &g->loops[i];

		l->parent = g->blocks[l->header].loop;
		l->depth = l->parent == CFG_NONE ? 1 : g->loops[l->parent].depth + 1;
		for (b = 0; b < g->nr_blocks; b++)
			if (l->member[b])
				g->blocks[b].loop = i;
	}
	return 0;
}

int cfg_build(struct cfg *g, const struct image *img, const struct image_function *fn,
	      csh capstone, struct insn_cache *cache)
{
	struct sweep s = { .img = img, .capstone = capstone, .cache = cache, .g = g,
			   .len = fn->end - fn->start };
	size_t i;
	int ret;

	memset(g, 0, sizeof(*g));
	g->fn = fn;
	g->vectors_end = NR_GENERAL;
	s.at = calloc(s.len + 1, sizeof(*s.at));
	s.leader = calloc(s.len + 1, sizeof(*s.leader));
	s.work = calloc(s.len + 1, sizeof(*s.work));
	ret = s.at && s.leader && s.work ? disassemble(&s) : -ENOMEM;
	if (!ret)
		ret = make_blocks(&s);
	for (i = 0; s.at && i < s.len; i++)
		free(s.at[i]);
	free(s.at);
	free(s.leader);
	free(s.work);
	if (!ret)
		ret = number_blocks(g);
	if (ret)
		return ret;
	find_dominators(g);
	return find_loops(g);
}

void cfg_free(struct cfg *g)
{
	unsigned int i;

	for (i = 0; g->insns && i < g->nr_insns; i++)
		free(g->insns[i]);
	for (i = 0; g->blocks && i < g->nr_blocks; i++)
		free(g->blocks[i].pred);
	for (i = 0; i < g->nr_loops; i++)
		free(g->loops[i].member);
	free(g->insns);
	free(g->blocks);
	free(g->rpo);
	free(g->loops);
	free(g->callees);
	memset(g, 0, sizeof(*g));
}

int cfgs_init(struct cfgs *c, const struct image *img, csh capstone)
{
	c->img = img;
	c->capstone = capstone;
	c->graph = calloc(img->nr_functions + 1, sizeof(*c->graph));
	return c->graph ? 0 : -ENOMEM;
}

struct cfg *cfgs_get(struct cfgs *c, const struct image_function *fn)
{
	struct cfg **g = &c->graph[fn - c->img->functions];

	if (*g)
		return *g;
	*g = calloc(1, sizeof(**g));
	if (*g && cfg_build(*g, c->img, fn, c->capstone, &c->cache)) {
		/* The cache may have instructions of the graph. */
		memset(&c->cache, 0, sizeof(c->cache));
		cfg_free(*g);
		free(*g);
		*g = NULL;
	}
	return *g;
}

void cfgs_free(struct cfgs *c)
{
	unsigned int i;

	for (i = 0; c->graph && i < c->img->nr_functions; i++)
		if (c->graph[i]) {
			cfg_free(c->graph[i]);
			free(c->graph[i]);
		}
	free(c->graph);
	c->graph = NULL;
}
