// SPDX-License-Identifier: GPL-2.0-only
/*
 * The example policies: bpf/policy_*.bpf.c, whose objects are a part of the
 * program, so that they can be loaded by name from wherever it is.
 */
#include "policy.h"

/* The linker's way to put a file into a program; the Makefile says where it is. */
#define OBJECT(name)							\
	__asm__(".section .rodata\n"					\
		".balign 16\n"						\
		"object_" #name ":\n"					\
		".incbin \"policy_" #name ".bpf.o\"\n"			\
		"object_" #name "_end:\n"				\
		".byte 0\n"						\
		".previous\n");						\
	extern const unsigned char object_##name[];			\
	extern const unsigned char object_##name##_end[]

OBJECT(deadline);
OBJECT(priority);

const struct example examples[] = {
	{ "deadline",
	  "whose frame is due first, by its fps limit, goes first; default_fps=MILLIHERTZ (60000) where there is none",
	  object_deadline, object_deadline_end },
	{ "priority",
	  "the higher class of weight goes first, but nobody waits for longer than bound_ms=MS (100)",
	  object_priority, object_priority_end },
};

const size_t nr_examples = sizeof(examples) / sizeof(examples[0]);
