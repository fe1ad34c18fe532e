// SPDX-License-Identifier: GPL-2.0-only
/*
 * Accounting per vGPU.
 *
 * Counts: frames, jobs, job errors, bytes, engine time and cycles, time in the
 *	scheduler's queue, time that frames were held back, and a histogram of
 *	frame intervals (account.h); and charges engine time to the vGPU.
 * Attaches to: mgpu.ko's tracepoints mgpu_frame, mgpu_job_start,
 *	mgpu_job_preempt, mgpu_job_done and mgpu_throttle. The order of their
 *	arguments is the interface.
 * Costs: one array lookup, which the verifier inlines, and one to six atomic
 *	adds per event; events come once per frame and twice per job.
 *
 * The charge: when a job completes or is preempted, the program calls the module's
 * mgpu_charge() with the engine time that the job used. Without this program, or if a
 * call of it was dropped, the module detects that the job is not charged and charges
 * it; a second charge of a job is refused. So loading, killing and replacing the
 * program at any time leaves neither a gap nor a double charge.
 *
 * mgpu_job_done and mgpu_job_preempt have two programs each: *_charge for a kernel
 * module that has mgpu_charge(), *_count for a module that does not. The loader loads
 * exactly one of each.
 */
#include "common.bpf.h"
#include "account.h"

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MGPU_BPF_IDS);
	__type(key, __u32);
	__type(value, struct mgpu_account);
} accounts SEC(".maps");

/*
 * Charge a job's engine time of @ns nanoseconds to its vGPU. Return 0, -ENOENT if there
 * is no such vGPU, or -EALREADY if the job was charged or is not leaving its engine.
 */
extern int mgpu_charge(__u32 vgpu, __u64 job, __u64 ns) __ksym __weak;

static __always_inline struct mgpu_account *account(__u32 vgpu)
{
	return bpf_map_lookup_elem(&accounts, &vgpu);
}

static __always_inline __u32 bucket(__u64 ns)
{
	__u64 us = ns / 1000;
	__u32 b = 0;

	/* log2 by halving: constant time, nothing for the verifier to unroll */
	if (us >> MGPU_BPF_BUCKETS)
		return MGPU_BPF_BUCKETS - 1;
	if (us >> 16) {
		us >>= 16;
		b += 16;
	}
	if (us >> 8) {
		us >>= 8;
		b += 8;
	}
	if (us >> 4) {
		us >>= 4;
		b += 4;
	}
	if (us >> 2) {
		us >>= 2;
		b += 2;
	}
	if (us >> 1)
		b += 1;
	return b;
}

SEC("tp_btf/mgpu_frame")
int BPF_PROG(frame, __u32 vgpu, __u64 nr, __u64 interval_ns)
{
	struct mgpu_account *a = account(vgpu);
	__u32 b;

	if (!a)
		return 0;
	add(&a->frames, 1);
	/* the first frame after a reset has no interval */
	if (interval_ns) {
		b = bucket(interval_ns);
		if (b < MGPU_BPF_BUCKETS)
			add(&a->interval[b], 1);
	}
	return 0;
}

SEC("tp_btf/mgpu_job_start")
int BPF_PROG(job_start, __u32 vgpu, __u64 job, __u32 kind, __u64 queue_ns)
{
	struct mgpu_account *a = account(vgpu);

	if (a)
		add(&a->queue_ns, queue_ns);
	return 0;
}

static __always_inline void used(struct mgpu_account *a, __u64 engine_ns,
				 __u64 engine_cycles)
{
	add(&a->engine_ns, engine_ns);
	add(&a->engine_cycles, engine_cycles);
}

static __always_inline void done(struct mgpu_account *a, __s32 error,
				 __u64 bytes)
{
	add(&a->jobs, 1);
	if (error)
		add(&a->job_errors, 1);
	add(&a->bytes, bytes);
}

static __always_inline void charge(struct mgpu_account *a, __u32 vgpu,
				   __u64 job, __u64 engine_ns)
{
	if (mgpu_charge(vgpu, job, engine_ns))
		add(&a->charge_refused, 1);
	else
		add(&a->charged_ns, engine_ns);
}

SEC("tp_btf/mgpu_job_done")
int BPF_PROG(job_done_charge, __u32 vgpu, __u64 job, __u32 kind, __s32 error,
	     __u64 engine_ns, __u64 engine_cycles, __u64 bytes)
{
	struct mgpu_account *a = account(vgpu);

	if (!a)
		return 0;
	done(a, error, bytes);
	used(a, engine_ns, engine_cycles);
	charge(a, vgpu, job, engine_ns);
	return 0;
}

SEC("tp_btf/mgpu_job_done")
int BPF_PROG(job_done_count, __u32 vgpu, __u64 job, __u32 kind, __s32 error,
	     __u64 engine_ns, __u64 engine_cycles, __u64 bytes)
{
	struct mgpu_account *a = account(vgpu);

	if (!a)
		return 0;
	done(a, error, bytes);
	used(a, engine_ns, engine_cycles);
	return 0;
}

SEC("tp_btf/mgpu_job_preempt")
int BPF_PROG(job_preempt_charge, __u32 vgpu, __u64 job, __u32 kind,
	     __u64 engine_ns, __u64 engine_cycles)
{
	struct mgpu_account *a = account(vgpu);

	if (!a)
		return 0;
	used(a, engine_ns, engine_cycles);
	charge(a, vgpu, job, engine_ns);
	return 0;
}

SEC("tp_btf/mgpu_job_preempt")
int BPF_PROG(job_preempt_count, __u32 vgpu, __u64 job, __u32 kind,
	     __u64 engine_ns, __u64 engine_cycles)
{
	struct mgpu_account *a = account(vgpu);

	if (a)
		used(a, engine_ns, engine_cycles);
	return 0;
}

SEC("tp_btf/mgpu_throttle")
int BPF_PROG(throttle, __u32 vgpu, __u64 nr, __u64 hold_ns)
{
	struct mgpu_account *a = account(vgpu);

	if (!a)
		return 0;
	add(&a->throttled, 1);
	add(&a->throttled_ns, hold_ns);
	return 0;
}
