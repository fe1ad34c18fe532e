// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kfunc with which eBPF programs charge jobs.
 */
#include <linux/bpf.h>
#include <linux/btf.h>
#include <linux/btf_ids.h>
#include <linux/module.h>
#include <linux/rcupdate.h>

#include "compat.h"
#include "mgpu.h"

/**
 * mgpu_charge - charge a job's engine time to its vGPU
 * @vgpu: ID of the vGPU
 * @job: ID of a job of that vGPU that is leaving its engine
 * @ns: engine time since an engine took the job, nanoseconds
 *
 * Context: programs on the tracepoints mgpu_job_done and mgpu_job_preempt.  Takes no
 * lock.
 * Return: 0; -ENOENT if there is no such vGPU; -EALREADY if the job was charged, is not
 * leaving its engine, or is not a 2D job (the module charges others).
 */
__bpf_kfunc int mgpu_charge(u32 vgpu, u64 job, u64 ns)
{
	struct mgpu_vgpu *v;
	int i, ret = -EALREADY;

	rcu_read_lock();
	v = xa_load(&mgpu_vgpus, vgpu);
	if (!v) {
		ret = -ENOENT;
		goto out;
	}
	for (i = 0; job && i < MGPU_NR_VQS; i++) {
		struct mgpu_job *j = &v->lane[i].draw.job;

		if (atomic64_read(&j->charge) != job)
			continue;
		WRITE_ONCE(j->charged_ns, ns);
		if (atomic64_cmpxchg(&j->charge, job, 0) != job)
			continue;
		atomic64_add(ns, &v->stats.charged_bpf_ns);
		ret = 0;
		break;
	}
out:
	rcu_read_unlock();
	return ret;
}

BTF_KFUNCS_START(mgpu_kfuncs)
BTF_ID_FLAGS(func, mgpu_charge)
BTF_KFUNCS_END(mgpu_kfuncs)

static const struct btf_kfunc_id_set mgpu_kfunc_set = {
	.owner = THIS_MODULE,
	.set = &mgpu_kfuncs,
};

/*
 * Register the kfunc.  A failure (no BTF) is not an error: the module then charges all
 * jobs.
 */
int mgpu_bpf_init(void)
{
	int ret = register_btf_kfunc_id_set(BPF_PROG_TYPE_TRACING,
					    &mgpu_kfunc_set);

	if (ret)
		pr_warn("mgpu: eBPF programs cannot charge jobs (error %d): build the module with BTF\n",
			ret);
	return 0;
}
