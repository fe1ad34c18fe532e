// SPDX-License-Identifier: GPL-2.0-only
/*
 * What eBPF programs may call.
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
 * @vgpu: id of the vGPU
 * @job: id of a job of that vGPU that is just leaving the engine
 * @ns: engine time since it was started, nanoseconds
 *
 * To be called by the programs on the tracepoints mgpu_job_done and
 * mgpu_job_preempt.  Takes no lock.
 *
 * Return: 0; -ENOENT when there is no such vGPU; -EALREADY when the job has
 * been charged, or is not one that is leaving the engine.
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
		struct mgpu_job *j = &v->lane[i].job;

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

/* Without BTF the module works, and charges by itself. */
int mgpu_bpf_init(void)
{
	int ret = register_btf_kfunc_id_set(BPF_PROG_TYPE_TRACING,
					    &mgpu_kfunc_set);

	if (ret)
		pr_warn("mgpu: eBPF cannot charge (error %d): was the module built with BTF?\n",
			ret);
	return 0;
}
