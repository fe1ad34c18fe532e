// SPDX-License-Identifier: GPL-2.0-only
/*
 * CPU time per VM.
 *
 * Counts: on-CPU time of all threads of each VMM that has a vGPU open, and
 *	idle time of all CPUs (cputime.h).
 * Attaches to: sched_switch; mgpu.ko's tracepoints mgpu_vgpu_open and
 *	mgpu_vgpu_close, which name the VMMs. User space runs the program `owner`
 *	for vGPUs that were open before the programs were attached.
 * Costs: per switch one array lookup (inlined) and, where the next thread is a
 *	user thread and a VMM is known, one hash lookup; the clock is read only
 *	when idle or VMM time begins or ends. With no VMM known, only idle is
 *	timed. Documentation/bpf.rst has measurements.
 *
 * A thread that was on its CPU when its VMM became known has caused no sched_switch
 * that the program counted. `generation` changes when a VMM becomes known. If a cell's
 * generation is old at a switch, the program looks up the previous thread too, and
 * counts its time from when its VMM became known.
 */
#include "common.bpf.h"
#include "account.h"
#include "cputime.h"

#define PF_KTHREAD	0x00200000

char LICENSE[] SEC("license") = "GPL";

struct vmm {
	__u64 since;		/* when the VMM became known, CLOCK_MONOTONIC, ns */
	__u32 slot;
	__u32 vgpus;		/* number of its open vGPUs */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MGPU_BPF_IDS);
	__type(key, __u32);	/* thread group id */
	__type(value, struct vmm);
} vmms SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MGPU_CPU_SLOTS);
	__type(key, __u32);
	__type(value, struct mgpu_cpu_slot);
} slots SEC(".maps");

/* Resized by user space to the number of possible CPUs. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct mgpu_cpu_cell);
} cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MGPU_BPF_IDS);
	__type(key, __u32);
	__type(value, struct mgpu_cpu_owner);
} vgpu_owner SEC(".maps");

__u32 generation = 1;
__u32 nr_vmms;
__u32 slots_missing;		/* VMMs without a free slot; read by user space */

/* ---- the VMMs ---- */

static __always_inline __u32 slot_take(__u32 vgpu, __u32 tgid)
{
	struct mgpu_cpu_slot *s;
	__u32 i, key;

#pragma clang loop unroll(disable)
	for (i = 0; i < MGPU_CPU_PROBES; i++) {
		key = vgpu + i;
		key %= MGPU_CPU_SLOTS - MGPU_CPU_SLOT_FIRST;
		key += MGPU_CPU_SLOT_FIRST;
		s = bpf_map_lookup_elem(&slots, &key);
		if (s && !__sync_val_compare_and_swap(&s->tgid, 0, tgid))
			return key;
	}
	return MGPU_CPU_SLOT_NONE;
}

static __always_inline void slot_give(__u32 slot)
{
	struct mgpu_cpu_slot *s = bpf_map_lookup_elem(&slots, &slot);

	if (s && slot >= MGPU_CPU_SLOT_FIRST)
		WRITE_ONCE(s->tgid, 0);
}

static __always_inline void vmm_get(__u32 vgpu, __u32 tgid)
{
	struct vmm *v, new = { .vgpus = 1 };

	v = bpf_map_lookup_elem(&vmms, &tgid);
	if (v) {
		__sync_fetch_and_add(&v->vgpus, 1);
		return;
	}

	new.slot = slot_take(vgpu, tgid);
	if (new.slot == MGPU_CPU_SLOT_NONE) {
		__sync_fetch_and_add(&slots_missing, 1);
		return;
	}
	new.since = bpf_ktime_get_ns();
	if (bpf_map_update_elem(&vmms, &tgid, &new, BPF_NOEXIST)) {
		/* two vGPUs of one VMM at once, or the map is full */
		slot_give(new.slot);
		v = bpf_map_lookup_elem(&vmms, &tgid);
		if (v)
			__sync_fetch_and_add(&v->vgpus, 1);
		return;
	}
	__sync_fetch_and_add(&nr_vmms, 1);
	__sync_fetch_and_add(&generation, 1);
}

static __always_inline void vmm_put(__u32 tgid)
{
	struct vmm *v = bpf_map_lookup_elem(&vmms, &tgid);
	__u32 slot;

	if (!v || __sync_fetch_and_add(&v->vgpus, -1) != 1)
		return;
	slot = v->slot;
	if (bpf_map_delete_elem(&vmms, &tgid))
		return;
	/*
	 * A thread of the VMM that is still running adds its last stretch to
	 * this slot even if the slot has a new owner by then: at most one
	 * stretch, and only where a VMM closes a vGPU and lives on.
	 */
	slot_give(slot);
	__sync_fetch_and_add(&nr_vmms, -1);
}

static __always_inline void set_owner(__u32 vgpu, __u32 tgid)
{
	struct mgpu_cpu_owner *o = bpf_map_lookup_elem(&vgpu_owner, &vgpu);
	__u32 old;

	if (!o)
		return;
	old = __sync_lock_test_and_set(&o->tgid, tgid);
	if (old == tgid)
		return;
	if (tgid)
		vmm_get(vgpu, tgid);
	if (old)
		vmm_put(old);
}

SEC("tp_btf/mgpu_vgpu_open")
int BPF_PROG(vgpu_open, __u32 vgpu, __u32 dev, __u32 tgid)
{
	set_owner(vgpu, tgid);
	return 0;
}

SEC("tp_btf/mgpu_vgpu_close")
int BPF_PROG(vgpu_close, __u32 vgpu)
{
	set_owner(vgpu, 0);
	return 0;
}

/* Run by user space; the same as an open or a close. */
SEC("syscall")
int owner(struct mgpu_owner_args *args)
{
	set_owner(args->vgpu, args->tgid);
	return 0;
}

/* ---- counting CPU time ---- */

static __always_inline void slot_add(__u32 slot, __u64 ns)
{
	struct mgpu_cpu_slot *s = bpf_map_lookup_elem(&slots, &slot);

	if (s)
		add(&s->ns, ns);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempt, struct task_struct *prev,
	     struct task_struct *next)
{
	__u32 cpu = bpf_get_smp_processor_id();
	__u32 from, to = MGPU_CPU_SLOT_NONE, gen, tgid;
	struct mgpu_cpu_cell *cell;
	struct vmm *v;
	__u64 now = 0;

	cell = bpf_map_lookup_elem(&cpus, &cpu);
	if (!cell)
		return 0;

	from = cell->slot;
	gen = READ_ONCE(generation);
	if (from) {
		now = bpf_ktime_get_ns();
		WRITE_ONCE(cell->slot, MGPU_CPU_SLOT_NONE);
		slot_add(from, now - cell->since);
	} else if (cell->generation != gen && prev->pid) {
		tgid = prev->tgid;
		v = bpf_map_lookup_elem(&vmms, &tgid);
		if (v) {
			now = bpf_ktime_get_ns();
			if (now > v->since)
				slot_add(v->slot, now - v->since);
		}
	}
	if (cell->generation != gen)
		cell->generation = gen;

	if (!next->pid) {
		to = MGPU_CPU_SLOT_IDLE;
	} else if (READ_ONCE(nr_vmms) && !(next->flags & PF_KTHREAD)) {
		tgid = next->tgid;
		v = bpf_map_lookup_elem(&vmms, &tgid);
		if (v)
			to = v->slot;
	}
	if (to) {
		WRITE_ONCE(cell->since, now ? now : bpf_ktime_get_ns());
		WRITE_ONCE(cell->slot, to);
	}
	return 0;
}
