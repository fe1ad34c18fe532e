/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An instruction with what the analysis asks of it each time that it executes it, looked up once.
 */
#ifndef MGPU_DEFER_INSN_H
#define MGPU_DEFER_INSN_H

#include <capstone/capstone.h>
#include <stdbool.h>
#include <stdint.h>

#include "api.h"
#include "image.h"

/**
 * enum insn_kind - kinds of instructions, as bits
 * @INSN_CALL: Capstone's group
 * @INSN_RETURN: likewise
 * @INSN_INTERRUPT_RETURN: likewise
 * @INSN_JUMP: likewise, which the LOOP instructions are not in
 * @INSN_NO_EFFECT: it changes no register that is looked at, and no memory
 * @INSN_SYSTEM: it enters the kernel
 * @INSN_COPIES: it copies, whatever it does to the width
 * @INSN_CANCELS: its result is 0 if both operands are the same register
 * @INSN_COMPARES: it sets all flags that are looked at, and nothing else
 * @INSN_SETS_FLAGS: it sets all flags, beside its result
 * @INSN_READS_FLAGS: its result depends on flags
 * @INSN_SETS_BYTE: it sets a byte by the flags, whatever was there
 * @INSN_ONLY_STORES: if its first operand is memory, it stores there and does not read it
 */
enum insn_kind {
	INSN_CALL = 1 << 0,
	INSN_RETURN = 1 << 1,
	INSN_JUMP = 1 << 2,
	INSN_NO_EFFECT = 1 << 3,
	INSN_SYSTEM = 1 << 4,
	INSN_COPIES = 1 << 5,
	INSN_CANCELS = 1 << 6,
	INSN_COMPARES = 1 << 7,
	INSN_SETS_FLAGS = 1 << 8,
	INSN_READS_FLAGS = 1 << 9,
	INSN_ONLY_STORES = 1 << 10,
	INSN_INTERRUPT_RETURN = 1 << 11,
	INSN_SETS_BYTE = 1 << 12,
};

/**
 * struct insn_target - where a jump or call goes
 * @name: symbol, or NULL
 * @address: address, if it is one of this program, else 0
 * @api: call of the API, or NULL
 */
struct insn_target {
	const char *name;
	uint64_t address;
	const struct api_function *api;
};

/**
 * struct insn - instruction
 * @cs: Capstone's, which comes first so that its address is that of all
 * @kinds: the kinds that it is of
 * @target: of a jump or call
 * @detail: Capstone's details, up to the last operand, of which there are two at least
 */
struct insn {
	cs_insn cs;
	unsigned int kinds;
	struct insn_target target;
	uint64_t detail[];
};

#define INSN_CACHED	2048U

/**
 * struct insn_cache - instructions that were decoded, by their bytes
 * @at: the instructions by a hash of their bytes; a later one replaces an earlier one
 * @lengths: by their first byte a bit for each number of bytes that one of them has
 * @nr: number of instructions that insn_decode() returned
 * @decoded: number of those that Capstone decoded
 *
 * Of the bytes of an instruction no other one begins with all.  Jumps and calls are not in there:
 * their operands depend on the address.  The owner of the instructions frees them after the last
 * use of the cache.  Zeroed it has none.
 */
struct insn_cache {
	const struct insn *at[INSN_CACHED];
	uint16_t lengths[256];
	uint64_t nr, decoded;
};

/**
 * insn_decode() - decode an instruction
 * @cache: instructions of the same capstone handle
 * @capstone: handle for x86-64 with CS_OPT_DETAIL
 * @room: Capstone's room for an instruction
 * @img: program
 * @code: its bytes
 * @left: number of bytes
 * @address: address
 * @insn: result: the first member of a struct insn, which free() frees; NULL if the bytes are no
 *	instruction
 *
 * Return: 0, or -ENOMEM
 */
int insn_decode(struct insn_cache *cache, csh capstone, cs_insn *room, const struct image *img,
		const uint8_t *code, size_t left, uint64_t address, cs_insn **insn);

/* Return whether an instruction that insn_decode() returned is of one of some kinds. */
static inline bool insn_is(const cs_insn *insn, unsigned int kinds)
{
	return ((const struct insn *)insn)->kinds & kinds;
}

/*
 * Return the target of such a jump or call.  Of a stub of the procedure linkage table it is the
 * symbol that the dynamic linker puts there.
 */
static inline const struct insn_target *insn_target(const cs_insn *insn)
{
	return &((const struct insn *)insn)->target;
}

#endif /* MGPU_DEFER_INSN_H */
