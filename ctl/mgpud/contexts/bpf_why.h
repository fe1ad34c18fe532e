/* SPDX-License-Identifier: GPL-2.0-only */
/* Sentences that say why BPF programs do not load, and what to do. */
#ifndef MGPUD_BPF_WHY_H
#define MGPUD_BPF_WHY_H

#include <stddef.h>

/* Keep messages of libbpf for bpf_why(); must be called before programs are loaded. */
void bpf_why_init(void);

/* Add a sentence to @why. */
void bpf_why_say(char *why, size_t len, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Add a sentence: why the @what programs do not load; @code is a negative errno. */
void bpf_why(char *why, size_t len, const char *what, int code);

#endif /* MGPUD_BPF_WHY_H */
