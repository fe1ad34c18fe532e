// SPDX-License-Identifier: GPL-2.0-only
/*
 * How long the lock mem.lock of vGPUs is held.  A hold is counted from the call of
 * _raw_spin_lock() to that of _raw_spin_unlock() on the same processor: time spent
 * waiting for the lock, and the time of the probes, are a part of it.
 */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

struct mgpu_guest_mem {
	spinlock_t lock;	/* the lock in question */
} __attribute__((preserve_access_index));

struct mgpu_vgpu {
	struct mgpu_guest_mem mem;
} __attribute__((preserve_access_index));

/* Set by user space, and read: a vGPU is the one that unmaps last. */
__u64 lock;
__u64 longest_ns;
__u64 holds;
__u64 sum_ns;
__u64 slots[64];		/* holds by the logarithm of their nanoseconds, base 2 */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} since SEC(".maps");

SEC("kprobe/mgpu_mem_unmap")
int BPF_KPROBE(unmap, struct mgpu_vgpu *vgpu)
{
	lock = (__u64)__builtin_preserve_access_index(&vgpu->mem.lock);
	return 0;
}

SEC("kprobe/_raw_spin_lock")
int BPF_KPROBE(locked, __u64 which)
{
	__u32 key = 0;
	__u64 *at;

	if (!which || which != lock)
		return 0;
	at = bpf_map_lookup_elem(&since, &key);
	if (at)
		*at = bpf_ktime_get_ns();
	return 0;
}

SEC("kprobe/_raw_spin_unlock")
int BPF_KPROBE(unlocked, __u64 which)
{
	__u64 *at, ns, left;
	__u32 key = 0, slot = 0;

	if (!which || which != lock)
		return 0;
	at = bpf_map_lookup_elem(&since, &key);
	if (!at || !*at)
		return 0;
	ns = bpf_ktime_get_ns() - *at;
	*at = 0;
	holds++;
	sum_ns += ns;
	if (ns > longest_ns)
		longest_ns = ns;
	for (left = ns; left > 1 && slot < 63; left >>= 1)
		slot++;
	slots[slot & 63]++;
	return 0;
}

char _license[] SEC("license") = "GPL";
