// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kfunc with which eBPF programs charge jobs.
 */
#include <linux/bpf.h>
#include <linux/btf.h>
#include <linux/btf_ids.h>
#include <linux/module.h>
#include <linux/xarray.h>

#include "compat.h"
#include "mgpu.h"

/**
 * mgpu_charge - charge a job's engine time to its vGPU
 * @vgpu: ID of the vGPU
 * @job: ID of the job of that vGPU that is leaving its engine
 * @ns: engine time since an engine took the job, nanoseconds
 *
 * Context: programs on the tracepoints mgpu_job_done and mgpu_job_preempt, in the
 * event of the job.  Takes no lock.
 * Return: 0; -ENOENT if there is no such vGPU; -EALREADY if the job was charged, or the
 * event that runs on this CPU is not the job's.
 */
__bpf_kfunc int mgpu_charge(u32 vgpu, u64 job, u64 ns)
{
	if (mgpu_sched_charge(vgpu, job, ns))
		return 0;
	return xa_load(&mgpu_vgpus, vgpu) ? -EALREADY : -ENOENT;
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
