// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "insn.h"
#include "value.h"

/*
 * Size of the details of an instruction: as Capstone allocates them they have room for those of all
 * architectures, and for eight operands.  Two are there without a look at the number.
 */
static size_t detail_size(const cs_insn *insn)
{
	unsigned int n = insn->detail->x86.op_count;

	return offsetof(cs_detail, x86.operands) + (n > 2 ? n : 2) * sizeof(cs_x86_op);
}

/* ---- kinds ---- */

/* Capstone's mnemonics have 32 bytes. */
#define BEGINS(mnemonic, with)	(!memcmp(mnemonic, with, sizeof(with) - 1))

/* X86_INS_INVALID, which is 0, ends a list. */
static bool one_of(unsigned int id, const uint16_t *list)
{
	while (*list && *list != id)
		list++;
	return *list;
}

/* Instructions that copy, whatever they do to the width. */
static const uint16_t copies[] = {
	X86_INS_MOV, X86_INS_MOVABS, X86_INS_MOVZX, X86_INS_MOVSX, X86_INS_MOVSXD,
	X86_INS_MOVD, X86_INS_MOVQ, X86_INS_VMOVD, X86_INS_VMOVQ, X86_INS_VMOVAPS,
	X86_INS_VMOVUPS, X86_INS_VMOVAPD, X86_INS_VMOVUPD, X86_INS_VMOVDQA,
	X86_INS_VMOVDQU, 0,
};

/* Instructions whose result is 0 if both operands are the same register. */
static const uint16_t cancels[] = {
	X86_INS_XOR, X86_INS_SUB, X86_INS_PXOR, X86_INS_XORPS, X86_INS_XORPD,
	X86_INS_VPXOR, X86_INS_VXORPS, X86_INS_VXORPD, 0,
};

/* Instructions that set all flags that are looked at, and nothing else. */
static const uint16_t compares[] = {
	X86_INS_CMP, X86_INS_TEST, X86_INS_COMISS, X86_INS_COMISD, X86_INS_UCOMISS,
	X86_INS_UCOMISD, X86_INS_VCOMISS, X86_INS_VCOMISD, X86_INS_VUCOMISS,
	X86_INS_VUCOMISD, X86_INS_BT, X86_INS_PTEST, X86_INS_VPTEST, 0,
};

/* Instructions that set all flags, beside their result. */
static const uint16_t sets_flags[] = {
	X86_INS_ADD, X86_INS_SUB, X86_INS_AND, X86_INS_OR, X86_INS_XOR, X86_INS_NEG,
	X86_INS_IMUL, X86_INS_SHL, X86_INS_SAL, X86_INS_SHR, X86_INS_SAR, X86_INS_INC,
	X86_INS_DEC, 0,
};

static bool has_no_effect(const cs_insn *insn)
{
	switch (insn->id) {
	case X86_INS_NOP: case X86_INS_ENDBR64: case X86_INS_ENDBR32: case X86_INS_PAUSE:
	case X86_INS_CDQE: case X86_INS_CWDE: case X86_INS_VZEROUPPER: case X86_INS_VZEROALL:
	case X86_INS_EMMS: case X86_INS_LFENCE: case X86_INS_SFENCE: case X86_INS_MFENCE:
		return true;
	default:
		return BEGINS(insn->mnemonic, "prefetch");
	}
}

static const uint16_t enters_kernel[] = {
	X86_INS_SYSCALL, X86_INS_SYSENTER, X86_INS_INT, X86_INS_INT3, X86_INS_XBEGIN, 0,
};

static bool reads_flags(const cs_insn *insn)
{
	return BEGINS(insn->mnemonic, "cmov") || BEGINS(insn->mnemonic, "set") ||
	       BEGINS(insn->mnemonic, "fcmov") || insn->id == X86_INS_ADC ||
	       insn->id == X86_INS_SBB || insn->id == X86_INS_RCL || insn->id == X86_INS_RCR ||
	       insn->id == X86_INS_PUSHFQ || insn->id == X86_INS_LAHF;
}

/* Whether an instruction only stores to memory that is its first operand. */
static bool only_stores(const cs_insn *insn)
{
	return BEGINS(insn->mnemonic, "mov") || BEGINS(insn->mnemonic, "vmov") ||
	       BEGINS(insn->mnemonic, "set") || BEGINS(insn->mnemonic, "fst") ||
	       BEGINS(insn->mnemonic, "fist") || BEGINS(insn->mnemonic, "vextract") ||
	       BEGINS(insn->mnemonic, "pextr") || BEGINS(insn->mnemonic, "stmxcsr");
}

static bool in_group(const cs_insn *insn, uint8_t group)
{
	return memchr(insn->detail->groups, group, insn->detail->groups_count);
}

static unsigned int find_kinds(const cs_insn *insn)
{
	return (in_group(insn, CS_GRP_CALL) ? INSN_CALL : 0) |
	       (in_group(insn, CS_GRP_RET) ? INSN_RETURN : 0) |
	       (in_group(insn, CS_GRP_IRET) ? INSN_INTERRUPT_RETURN : 0) |
	       (in_group(insn, CS_GRP_JUMP) ? INSN_JUMP : 0) |
	       (has_no_effect(insn) ? INSN_NO_EFFECT : 0) |
	       (one_of(insn->id, enters_kernel) ? INSN_SYSTEM : 0) |
	       (one_of(insn->id, copies) ? INSN_COPIES : 0) |
	       (one_of(insn->id, cancels) ? INSN_CANCELS : 0) |
	       (one_of(insn->id, compares) ? INSN_COMPARES : 0) |
	       (one_of(insn->id, sets_flags) ? INSN_SETS_FLAGS : 0) |
	       (reads_flags(insn) ? INSN_READS_FLAGS : 0) |
	       (BEGINS(insn->mnemonic, "set") ? INSN_SETS_BYTE : 0) |
	       (only_stores(insn) ? INSN_ONLY_STORES : 0);
}

/* ---- targets ---- */

/* Return the slot that a jump or call reads its target from, or 0. */
static uint64_t target_slot(const cs_insn *insn)
{
	const cs_x86_op *op = &insn->detail->x86.operands[0];

	if (op->type != X86_OP_MEM || op->mem.base != X86_REG_RIP ||
	    op->mem.index != X86_REG_INVALID)
		return 0;
	return insn->address + insn->size + (uint64_t)op->mem.disp;
}

static const char *find_target(const struct image *img, const cs_insn *insn, uint64_t *address)
{
	const cs_x86 *x = &insn->detail->x86;
	const char *name;

	*address = 0;
	if (!x->op_count)
		return NULL;
	if (x->operands[0].type == X86_OP_MEM)
		return image_slot(img, target_slot(insn));
	if (x->operands[0].type != X86_OP_IMM)
		return NULL;
	*address = (uint64_t)x->operands[0].imm;
	/* A function that only jumps through a slot is as good as a stub. */
	name = image_stub(img, *address);
	return name ? name : image_symbol(img, *address);
}

/* Return a copy of an instruction, for another address; the caller sets what depends on that. */
static struct insn *copy_insn(const cs_insn *insn, uint64_t address)
{
	const size_t details = detail_size(insn);
	struct insn *copy = malloc(sizeof(*copy) + details);

	if (!copy)
		return NULL;
	copy->cs = *insn;
	copy->cs.address = address;
	copy->cs.detail = (cs_detail *)copy->detail;
	memcpy(copy->detail, insn->detail, details);
	copy->target = (struct insn_target){ 0 };
	return copy;
}

/* ---- instructions that were decoded before ---- */

#define MAX_BYTES	15U

static const struct insn **place_of(struct insn_cache *cache, const uint8_t *code, size_t n)
{
	uint64_t words[2] = { 0 };

	memcpy(words, code, n);
	return &cache->at[value_hash(value_hash(n, words[0]), words[1]) % INSN_CACHED];
}

static const struct insn *find_decoded(struct insn_cache *cache, const uint8_t *code, size_t left)
{
	unsigned int lengths = left ? cache->lengths[code[0]] : 0, n;
	const struct insn *insn;

	for (; lengths; lengths &= lengths - 1) {
		n = (unsigned int)__builtin_ctz(lengths);
		if (n > left)
			break;
		insn = *place_of(cache, code, n);
		if (insn && insn->cs.size == n && !memcmp(insn->cs.bytes, code, n))
			return insn;
	}
	return NULL;
}

/* Whether operands of an instruction are addresses that are relative to its own. */
static bool is_relative(const struct insn *insn)
{
	switch (insn->cs.id) {
	case X86_INS_LOOP: case X86_INS_LOOPE: case X86_INS_LOOPNE: case X86_INS_JRCXZ:
	case X86_INS_JECXZ: case X86_INS_JCXZ: case X86_INS_XBEGIN:
		return true;
	default:
		return insn->kinds & (INSN_CALL | INSN_JUMP);
	}
}

int insn_decode(struct insn_cache *cache, csh capstone, cs_insn *room, const struct image *img,
		const uint8_t *code, size_t left, uint64_t address, cs_insn **insn)
{
	const struct insn *same = find_decoded(cache, code, left);
	const uint8_t *p = code;
	uint64_t next = address;
	struct insn *copy;

	*insn = NULL;
	if (!same && !cs_disasm_iter(capstone, &p, &left, &next, room))
		return 0;
	copy = copy_insn(same ? &same->cs : room, address);
	if (!copy)
		return -ENOMEM;
	*insn = &copy->cs;
	cache->nr++;
	cache->decoded += !same;
	if (same) {
		copy->kinds = same->kinds;
		return 0;
	}
	copy->kinds = find_kinds(room);
	if (copy->kinds & (INSN_CALL | INSN_JUMP)) {
		copy->target.name = find_target(img, room, &copy->target.address);
		copy->target.api = copy->target.name ? api_find(copy->target.name) : NULL;
	}
	if (!is_relative(copy) && room->size <= MAX_BYTES) {
		*place_of(cache, code, room->size) = copy;
		cache->lengths[code[0]] |= (uint16_t)(1U << room->size);
	}
	return 0;
}
