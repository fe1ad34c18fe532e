/* SPDX-License-Identifier: GPL-2.0-only */
/* Definitions that all BPF programs of mgpu include first. */
#ifndef MGPU_COMMON_BPF_H
#define MGPU_COMMON_BPF_H

#include "kernel.bpf.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define READ_ONCE(x)		(*(const volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, v)	(*(volatile typeof(x) *)&(x) = (v))

/* Add to a counter atomically: several engines and CPUs count for one vGPU at once. */
static __always_inline void add(__u64 *counter, __u64 n)
{
	__sync_fetch_and_add(counter, n);
}

#endif /* MGPU_COMMON_BPF_H */
