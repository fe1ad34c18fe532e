// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "live.h"
#include "regs.h"

static uint16_t bit(unsigned int reg)
{
	return (uint16_t)(1U << reg);
}

/* Registers that an instruction reads and that it sets. */
static void uses_and_sets(csh capstone, const cs_insn *insn, uint16_t *uses, uint16_t *sets)
{
	const cs_x86 *x = &insn->detail->x86;
	const struct api_function *fn;
	uint8_t nr_read, nr_written;
	cs_regs read, written;
	unsigned int i;

	*uses = *sets = 0;
	if (insn_is(insn, INSN_RETURN)) {
		*uses = bit(RAX) | bit(RDX);
		return;
	}
	if (cs_regs_access(capstone, insn, read, &nr_read, written, &nr_written)) {
		*uses = LIVE_ALL;
		return;
	}
	for (i = 0; i < nr_read; i++)
		if (reg_number(read[i]) < NR_GENERAL)
			*uses |= bit(reg_number(read[i]));
	for (i = 0; i < nr_written; i++)
		if (reg_number(written[i]) < NR_GENERAL)
			*sets |= bit(reg_number(written[i]));
	if (insn_is(insn, INSN_CALL)) {
		fn = insn_target(insn)->api;
		for (i = 0; i < NR_ARGUMENT_REGS; i++)
			if (!fn || i < fn->nr_args)
				*uses |= bit(argument_regs[i]);
		/* The number of vector registers of a variadic function. */
		if (!fn)
			*uses |= bit(RAX);
		for (i = 0; i < NR_LOST_REGS; i++)
			*sets |= bit(lost_regs[i]);
		return;
	}
	/* Of a part that is set the rest stays. */
	if (x->op_count && x->operands[0].type == X86_OP_REG && x->operands[0].size < 4)
		*uses |= *sets;
	if ((insn->id == X86_INS_XOR || insn->id == X86_INS_SUB) && x->op_count == 2 &&
	    x->operands[0].type == X86_OP_REG && x->operands[1].type == X86_OP_REG &&
	    x->operands[0].reg == x->operands[1].reg)
		*uses = 0;
}

/*
 * Which of some registers are read behind the start of each block before they are set.  With
 * @returned, those that return a value are read by the instruction that returns.
 */
static void spread_live(const struct cfg *g, const uint16_t *uses, const uint16_t *sets,
			bool returned, uint16_t *live)
{
	bool changed = true;
	unsigned int i, k;

	memset(live, 0, g->nr_blocks * sizeof(*live));
	while (changed) {
		changed = false;
		for (i = g->nr_rpo; i-- > 0;) {
			const struct cfg_block *b = &g->blocks[g->rpo[i]];
			const cs_insn *last = g->insns[b->first + b->nr - 1];
			uint16_t now = 0;

			/* It goes on elsewhere; behind a call that does not return it ends. */
			if (b->leaves && insn_is(last, INSN_JUMP))
				now = LIVE_ALL;
			for (k = 0; k < 2; k++)
				if (b->succ[k] != CFG_NONE)
					now |= live[b->succ[k]];
			for (k = b->nr; k-- > 0;) {
				const cs_insn *insn = g->insns[b->first + k];

				now &= (uint16_t)~sets[b->first + k];
				if (returned || !insn_is(insn, INSN_RETURN))
					now |= uses[b->first + k];
			}
			changed |= now != live[g->rpo[i]];
			live[g->rpo[i]] = now;
		}
	}
}

/* Whether there is a way through the function on which nothing is put into rax. */
static bool returns_nothing(const struct cfg *g, const uint16_t *sets)
{
	uint32_t *work = calloc(g->nr_blocks + 1, sizeof(*work));
	bool *seen = calloc(g->nr_blocks + 1, sizeof(*seen)), found = false;
	unsigned int n = 0, k;

	if (work && seen && g->nr_blocks) {
		work[n++] = 0;
		seen[0] = true;
	}
	while (n && !found) {
		const struct cfg_block *b = &g->blocks[work[--n]];

		for (k = 0; k < b->nr && !(sets[b->first + k] & bit(RAX)); k++)
			;
		if (k < b->nr)
			continue;
		found = insn_is(g->insns[b->first + b->nr - 1], INSN_RETURN);
		for (k = 0; k < 2; k++)
			if (b->succ[k] != CFG_NONE && !seen[b->succ[k]]) {
				seen[b->succ[k]] = true;
				work[n++] = b->succ[k];
			}
	}
	free(work);
	free(seen);
	return found;
}

int find_live(csh capstone, const struct cfg *g, uint16_t *live)
{
	uint16_t *uses = calloc(g->nr_insns + 1, sizeof(*uses));
	uint16_t *sets = calloc(g->nr_insns + 1, sizeof(*sets));
	unsigned int i;

	if (!uses || !sets) {
		free(uses);
		free(sets);
		return -ENOMEM;
	}
	for (i = 0; i < g->nr_insns; i++)
		uses_and_sets(capstone, g->insns[i], &uses[i], &sets[i]);
	spread_live(g, uses, sets, !returns_nothing(g, sets), live);
	free(uses);
	free(sets);
	return 0;
}
