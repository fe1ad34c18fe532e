// SPDX-License-Identifier: GPL-2.0-only
/*
 * Back end without hardware: engines are kernel threads.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <linux/wait.h>

#include "backend.h"
#include "compat.h"

#define MAX_ENGINES	64
#define ENGINE_NICE	(-10)

static unsigned int engines;
module_param(engines, uint, 0444);
MODULE_PARM_DESC(engines, "Engines: jobs that run at once, each on its own thread (1 to 64; default: one per CPU in cpus, or 1)");

static char *cpus;
module_param(cpus, charp, 0444);
MODULE_PARM_DESC(cpus, "CPUs that the engines may use, a list such as 2-3,6 (default: all)");

static unsigned int max_vgpus = 1024;
module_param(max_vgpus, uint, 0444);
MODULE_PARM_DESC(max_vgpus, "vGPUs of all types together (1 to 4095; default 1024)");

static char *scanout = "eager";
module_param(scanout, charp, 0444);
MODULE_PARM_DESC(scanout, "When to copy a frame to the display region: eager (default), by the engine at the flush; or lazy, when the VMM reads it");

static unsigned int hang;
module_param(hang, uint, 0644);
MODULE_PARM_DESC(hang, "For tests: the next job of the vGPU with this id hangs (default 0: none)");

/* An engine: a thread and its job. */
struct soft_engine {
	struct mgpu_soft *soft;
	struct task_struct *task;
	struct mgpu_cpu_engine cpu;
};

struct mgpu_soft {
	struct mgpu_device *mdev;
	wait_queue_head_t wait;
	atomic_t kicks;
	struct soft_engine engines[];
};

static cpumask_var_t allowed;

/* For tests: hang until the watchdog or a reset ends the job. */
static void hang_if_asked(struct mgpu_job *job)
{
	u32 vgpu = READ_ONCE(hang);

	if (likely(!vgpu) || mgpu_job_vgpu(job) != vgpu ||
	    cmpxchg(&hang, vgpu, 0) != vgpu)
		return;
	while (!mgpu_job_must_end(job))
		usleep_range(1000, 2000);
}

static int soft_engine(void *data)
{
	struct soft_engine *e = data;
	struct mgpu_soft *soft = e->soft;
	struct mgpu_job *job;
	int seen;

	set_user_nice(current, ENGINE_NICE);
	while (!kthread_should_stop()) {
		seen = atomic_read(&soft->kicks);
		job = mgpu_sched_next(soft->mdev);
		if (!job) {
			wait_event_interruptible(soft->wait,
						 atomic_read(&soft->kicks) !=
						 seen || kthread_should_stop());
			continue;
		}
		mgpu_cpu_engine_begin(&e->cpu, job);
		hang_if_asked(job);
		/* After the last tile, too: the next job may have one tile only. */
		do {
			cond_resched();
		} while (mgpu_cpu_engine_step(&e->cpu));
	}
	return 0;
}

static void soft_kick(struct mgpu_device *mdev)
{
	struct mgpu_soft *soft = mgpu_device_priv(mdev);

	atomic_inc(&soft->kicks);
	wake_up(&soft->wait);
}

static const struct mgpu_backend_ops soft_ops = {
	.name = "soft",
	.owner = THIS_MODULE,
	.kick = soft_kick,
};

static void soft_stop_engines(struct mgpu_soft *soft)
{
	unsigned int i;

	for (i = 0; i < engines; i++) {
		if (soft->engines[i].task)
			kthread_stop(soft->engines[i].task);
		vfree(soft->engines[i].cpu.local);
	}
}

static int soft_start_engine(struct mgpu_soft *soft, unsigned int i)
{
	struct soft_engine *e = &soft->engines[i];
	struct task_struct *task;

	e->soft = soft;
	/* The memory is page-aligned: engines share no cache line. */
	e->cpu.local = vzalloc(MGPU_JOB_LOCAL_SIZE);
	if (!e->cpu.local)
		return -ENOMEM;
	task = kthread_create(soft_engine, e, "mgpu_soft/%u", i);
	if (IS_ERR(task))
		return PTR_ERR(task);
	e->task = task;
	if (cpus)
		set_cpus_allowed_ptr(task, allowed);
	wake_up_process(task);
	return 0;
}

static int soft_probe(struct platform_device *pdev)
{
	const struct mgpu_device_caps caps = {
		.engines = engines,
		.engine_on_cpu = true,
		.lazy_scanout = !strcmp(scanout, "lazy"),
		.compute = true,
		.max_vgpus = max_vgpus,
	};
	struct mgpu_soft *soft;
	unsigned int i;
	int ret;

	soft = kzalloc(struct_size(soft, engines, engines), GFP_KERNEL);
	if (!soft)
		return -ENOMEM;
	init_waitqueue_head(&soft->wait);
	platform_set_drvdata(pdev, soft);

	soft->mdev = mgpu_device_register(&pdev->dev, &soft_ops, &caps, soft);
	if (IS_ERR(soft->mdev)) {
		ret = PTR_ERR(soft->mdev);
		goto err_free;
	}

	for (i = 0; i < engines; i++) {
		ret = soft_start_engine(soft, i);
		if (ret)
			goto err_unregister;
	}
	return 0;

err_unregister:
	mgpu_device_unregister(soft->mdev);
	soft_stop_engines(soft);
	mgpu_device_free(soft->mdev);
err_free:
	kfree(soft);
	return ret;
}

static void soft_remove(struct platform_device *pdev)
{
	struct mgpu_soft *soft = platform_get_drvdata(pdev);

	/* This waits for the VMMs; the engines must run meanwhile. */
	mgpu_device_unregister(soft->mdev);
	soft_stop_engines(soft);
	mgpu_device_free(soft->mdev);
	kfree(soft);
}

MGPU_PLATFORM_REMOVE(soft_remove);

static struct platform_driver soft_driver = {
	.probe = soft_probe,
	.remove = soft_remove_compat,
	.driver = {
		.name = "mgpu_soft",
	},
};

static struct platform_device *soft_pdev;

/* Parse the parameter cpus; return the default number of engines or -EINVAL. */
static int parse_cpus(void)
{
	if (!cpus)
		return 1;
	if (cpulist_parse(cpus, allowed) ||
	    !cpumask_and(allowed, allowed, cpu_online_mask)) {
		pr_err("mgpu_soft: cpus=%s: must be a list of CPUs that are online, such as 2-3,6\n",
		       cpus);
		return -EINVAL;
	}
	return min_t(unsigned int, cpumask_weight(allowed), MAX_ENGINES);
}

static int __init soft_start(void)
{
	int ret;

	ret = parse_cpus();
	if (ret < 0)
		return ret;
	if (!engines)
		engines = ret;
	if (engines > MAX_ENGINES) {
		pr_err("mgpu_soft: engines=%u: must be 1 to %u\n", engines,
		       MAX_ENGINES);
		return -EINVAL;
	}
	if (!max_vgpus || max_vgpus > 4095) {
		pr_err("mgpu_soft: max_vgpus=%u: must be 1 to 4095\n",
		       max_vgpus);
		return -EINVAL;
	}

	if (strcmp(scanout, "eager") && strcmp(scanout, "lazy")) {
		pr_err("mgpu_soft: scanout=%s: must be eager or lazy\n",
		       scanout);
		return -EINVAL;
	}

	ret = platform_driver_register(&soft_driver);
	if (ret)
		return ret;
	soft_pdev = platform_device_register_simple("mgpu_soft", 0, NULL, 0);
	if (IS_ERR(soft_pdev)) {
		platform_driver_unregister(&soft_driver);
		return PTR_ERR(soft_pdev);
	}
	return 0;
}

static int __init soft_init(void)
{
	int ret;

	if (!zalloc_cpumask_var(&allowed, GFP_KERNEL))
		return -ENOMEM;
	ret = soft_start();
	if (ret)
		free_cpumask_var(allowed);
	return ret;
}

static void __exit soft_exit(void)
{
	platform_device_unregister(soft_pdev);
	platform_driver_unregister(&soft_driver);
	free_cpumask_var(allowed);
}

module_init(soft_init);
module_exit(soft_exit);

MODULE_DESCRIPTION("Mediated GPU: back end that runs on CPUs");
MODULE_AUTHOR("The mgpu developers");
MODULE_LICENSE("GPL");
