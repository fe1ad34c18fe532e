// SPDX-License-Identifier: GPL-2.0-only
#include "regs.h"

/* The System V ABI for x86-64, section 3.2.3. */
const uint8_t argument_regs[] = { RDI, RSI, RDX, RCX, R8, R9 };
const uint8_t lost_regs[] = { RAX, RCX, RDX, RSI, RDI, R8, R9, R10, R11 };
const uint8_t kept_regs[] = { RBX, RBP, RSP, R12, R13, R14, R15 };

const char *const reg_names[NR_GENERAL] = {
	"rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp",
	"r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
};

unsigned int reg_number(x86_reg reg)
{
	switch (reg) {
	case X86_REG_RAX: case X86_REG_EAX: case X86_REG_AX: case X86_REG_AL: case X86_REG_AH:
		return RAX;
	case X86_REG_RBX: case X86_REG_EBX: case X86_REG_BX: case X86_REG_BL: case X86_REG_BH:
		return RBX;
	case X86_REG_RCX: case X86_REG_ECX: case X86_REG_CX: case X86_REG_CL: case X86_REG_CH:
		return RCX;
	case X86_REG_RDX: case X86_REG_EDX: case X86_REG_DX: case X86_REG_DL: case X86_REG_DH:
		return RDX;
	case X86_REG_RSI: case X86_REG_ESI: case X86_REG_SI: case X86_REG_SIL:
		return RSI;
	case X86_REG_RDI: case X86_REG_EDI: case X86_REG_DI: case X86_REG_DIL:
		return RDI;
	case X86_REG_RBP: case X86_REG_EBP: case X86_REG_BP: case X86_REG_BPL:
		return RBP;
	case X86_REG_RSP: case X86_REG_ESP: case X86_REG_SP: case X86_REG_SPL:
		return RSP;
	case X86_REG_EFLAGS:
		return REG_FLAGS;
	case X86_REG_INVALID: case X86_REG_RIP: case X86_REG_EIP: case X86_REG_RIZ:
	case X86_REG_EIZ:
		return NR_REGS;
	default:
		break;
	}
	if (reg >= X86_REG_R8 && reg <= X86_REG_R15)
		return R8 + (reg - X86_REG_R8);
	if (reg >= X86_REG_R8B && reg <= X86_REG_R15B)
		return R8 + (reg - X86_REG_R8B);
	if (reg >= X86_REG_R8D && reg <= X86_REG_R15D)
		return R8 + (reg - X86_REG_R8D);
	if (reg >= X86_REG_R8W && reg <= X86_REG_R15W)
		return R8 + (reg - X86_REG_R8W);
	if (reg >= X86_REG_XMM0 && reg <= X86_REG_XMM31)
		return REG_VECTOR(reg - X86_REG_XMM0);
	if (reg >= X86_REG_YMM0 && reg <= X86_REG_YMM31)
		return REG_VECTOR(reg - X86_REG_YMM0);
	if (reg >= X86_REG_ZMM0 && reg <= X86_REG_ZMM31)
		return REG_VECTOR(reg - X86_REG_ZMM0);
	return REG_OTHER;
}

bool reg_is_vector(unsigned int reg)
{
	return reg >= REG_VECTOR(0) && reg < REG_VECTOR(NR_VECTOR);
}

bool reg_is_second_byte(x86_reg reg)
{
	return reg == X86_REG_AH || reg == X86_REG_BH || reg == X86_REG_CH || reg == X86_REG_DH;
}
