/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KSELFTEST_MGPUD_H
#define KSELFTEST_MGPUD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "nl.h"

/*
 * Start mgpud without an allocator, and wait until it is ready: its eBPF programs count and
 * charge, and no vGPU gets a limit.  Return its process, 0 if it is not built, or -1.
 */
pid_t mgpud_start(void);

/* Start mgpud with these words; its output goes to a file, which mgpud_says() reads. */
pid_t mgpud_spawn(char *const argv[]);
/* Return whether mgpud has said a text since it was started. */
bool mgpud_says(const char *text);
/* Wait until mgpud is ready, for @ms at most; return false, and print its output, if not. */
bool mgpud_await_ready(pid_t pid, uint64_t ms);

/*
 * Compare the counters of a vGPU at two moments.  Return whether eBPF charged all engine
 * time between them, and there was some; print them if not.
 */
bool charged_by_ebpf(const struct nl_vgpu *before, const struct nl_vgpu *after);

#endif /* KSELFTEST_MGPUD_H */
