/* SPDX-License-Identifier: GPL-2.0-only */
/* Why a BPF program does not load, and how to mend it. */
#ifndef MGPUD_BPF_WHY_H
#define MGPUD_BPF_WHY_H

#include <stddef.h>

/* Before anything is loaded: libbpf's complaints are kept, for bpf_why(). */
void bpf_why_init(void);

/* Add a sentence to @why. */
void bpf_why_say(char *why, size_t len, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Add one that says why programs do not load: @what they are, @code a negative errno. */
void bpf_why(char *why, size_t len, const char *what, int code);

#endif /* MGPUD_BPF_WHY_H */
