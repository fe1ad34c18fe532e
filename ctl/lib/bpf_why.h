/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sentences that say why BPF programs do not load, and what to do; and events that programs miss.
 * For programs that link libbpf.
 */
#ifndef LIBMGPU_BPF_WHY_H
#define LIBMGPU_BPF_WHY_H

#include <stddef.h>
#include <stdint.h>

struct bpf_object;

/* Keep messages of libbpf for bpf_why(); must be called before programs are loaded. */
void bpf_why_init(void);

/* Add a sentence to @why. */
void bpf_why_say(char *why, size_t len, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Add a sentence: why the @what programs do not load; @code is a negative errno. */
void bpf_why(char *why, size_t len, const char *what, int code);

/*
 * Return how many events the kernel ran no program of an object for, since one ran on that CPU
 * already.
 */
uint64_t bpf_missed(const struct bpf_object *obj);

#endif /* LIBMGPU_BPF_WHY_H */
