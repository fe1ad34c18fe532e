// SPDX-License-Identifier: GPL-2.0-only
/*
 * The example policies: bpf/policy_*.bpf.c, whose objects are a part of the
 * program, so that they can be loaded by name from wherever it is.
 */
#include "policy.h"

/* Include the object file in the program; the Makefile passes its folder. */
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
	  "serve the frame that is due first by its vGPU's fps limit; default_fps=MILLIHERTZ (60000) without a limit",
	  object_deadline, object_deadline_end },
	{ "priority",
	  "serve the highest class of weight; a vGPU that has waited for bound_ms=MS (100) goes first",
	  object_priority, object_priority_end },
};

const size_t nr_examples = sizeof(examples) / sizeof(examples[0]);
