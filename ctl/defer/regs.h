/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The registers of x86-64 by numbers: one for each that has content of its own, whatever part
 * of it an instruction names.
 */
#ifndef MGPU_DEFER_REGS_H
#define MGPU_DEFER_REGS_H

#include <capstone/capstone.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	RAX, RBX, RCX, RDX, RSI, RDI, RBP, RSP, R8, R9, R10, R11, R12, R13, R14, R15, NR_GENERAL,
};

#define NR_VECTOR	32
#define REG_VECTOR(n)	(NR_GENERAL + 2 * (n))	/* lower 8 bytes; the rest is one more */
#define REG_FLAGS	REG_VECTOR(NR_VECTOR)
#define REG_OTHER	(REG_FLAGS + 1)		/* x87, mask and segment registers */
#define NR_REGS		(REG_OTHER + 1)

#define NR_ARGUMENT_REGS	6
#define NR_LOST_REGS		9
#define NR_KEPT_REGS		7

/* General registers for arguments in their order, and those that a call loses and keeps. */
extern const uint8_t argument_regs[NR_ARGUMENT_REGS];
extern const uint8_t lost_regs[NR_LOST_REGS];
extern const uint8_t kept_regs[NR_KEPT_REGS];

extern const char *const reg_names[NR_GENERAL];

/* Return the number of a register, NR_REGS for those without content. */
unsigned int reg_number(x86_reg reg);
bool reg_is_vector(unsigned int reg);
/* Return whether it is the second byte of a general register. */
bool reg_is_second_byte(x86_reg reg);

#endif /* MGPU_DEFER_REGS_H */
