/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KSELFTEST_MGPUD_H
#define KSELFTEST_MGPUD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "nl.h"

/*
 * Start mgpud without an allocator: its eBPF programs count and charge, and no vGPU gets
 * a limit.  Return its process, 0 if it is not built, or -1.
 */
pid_t mgpud_start(void);

/*
 * Compare the counters of a vGPU at two moments.  Return whether eBPF charged all engine
 * time between them, and there was some; print them if not.
 */
bool charged_by_ebpf(const struct nl_vgpu *before, const struct nl_vgpu *after);

#endif /* KSELFTEST_MGPUD_H */
