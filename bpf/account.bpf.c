// SPDX-License-Identifier: GPL-2.0-only
/*
 * Accounting per vGPU.
 *
 * Counts: frames, jobs, engine time, and time that frames were held back (account.h);
 *	and charges engine time to the vGPU. All else that the module counts is in its
 *	answers over netlink.
 * Attaches to: mgpu.ko's tracepoints mgpu_frame, mgpu_job_preempt, mgpu_job_done and
 *	mgpu_throttle. The order of their arguments is the interface.
 * Costs: one array lookup, which the verifier inlines, and one or two atomic adds per
 *	event; events come once per frame and once per job.
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

SEC("tp_btf/mgpu_frame")
int BPF_PROG(frame, __u32 vgpu)
{
	struct mgpu_account *a = account(vgpu);

	if (a)
		add(&a->frames, 1);
	return 0;
}

SEC("tp_btf/mgpu_job_done")
int BPF_PROG(job_done_charge, __u32 vgpu, __u64 job, __u32 kind, __s32 error,
	     __u64 engine_ns)
{
	struct mgpu_account *a = account(vgpu);

	if (!a)
		return 0;
	add(&a->jobs, 1);
	add(&a->engine_ns, engine_ns);
	mgpu_charge(vgpu, job, engine_ns);
	return 0;
}

SEC("tp_btf/mgpu_job_done")
int BPF_PROG(job_done_count, __u32 vgpu, __u64 job, __u32 kind, __s32 error,
	     __u64 engine_ns)
{
	struct mgpu_account *a = account(vgpu);

	if (!a)
		return 0;
	add(&a->jobs, 1);
	add(&a->engine_ns, engine_ns);
	return 0;
}

SEC("tp_btf/mgpu_job_preempt")
int BPF_PROG(job_preempt_charge, __u32 vgpu, __u64 job, __u32 kind,
	     __u64 engine_ns)
{
	struct mgpu_account *a = account(vgpu);

	if (!a)
		return 0;
	add(&a->engine_ns, engine_ns);
	mgpu_charge(vgpu, job, engine_ns);
	return 0;
}

SEC("tp_btf/mgpu_job_preempt")
int BPF_PROG(job_preempt_count, __u32 vgpu, __u64 job, __u32 kind,
	     __u64 engine_ns)
{
	struct mgpu_account *a = account(vgpu);

	if (a)
		add(&a->engine_ns, engine_ns);
	return 0;
}

SEC("tp_btf/mgpu_throttle")
int BPF_PROG(throttle, __u32 vgpu, __u64 nr, __u64 hold_ns)
{
	struct mgpu_account *a = account(vgpu);

	if (a)
		add(&a->throttled_ns, hold_ns);
	return 0;
}
