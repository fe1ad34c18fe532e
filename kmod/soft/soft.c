// SPDX-License-Identifier: GPL-2.0-only
/*
 * Back end without hardware: engines are kernel threads.
 *
 * An engine takes the time that its thread needs (engine=cpu), or the time that a described
 * GPU would need (engine=modelled).  A modelled engine executes tiles ahead and sleeps for
 * the rest of the GPU's time.  It keeps a clock of the GPU's work: what one wake-up comes
 * late, the next one comes earlier.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <linux/wait.h>

#include "backend.h"
#include "compat.h"
#include "soft/model.h"

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

static char *scanout = "lazy";
module_param(scanout, charp, 0444);
MODULE_PARM_DESC(scanout, "When to copy a frame to the display region: lazy (default), when the VMM reads it; or eager, by the engine at the flush");

static char *engine = "cpu";
module_param(engine, charp, 0444);
MODULE_PARM_DESC(engine, "Time that a job takes: cpu (default), that of the thread that executes it; or modelled, that of the GPU that model describes");

static char *model = "uhd630";
module_param(model, charp, 0444);
MODULE_PARM_DESC(model, "GPU to model: uhd630 (default), gt1030 or t4, and changes of it: fill= (megapixels/s), upload= and memory= (MB/s), command= (ns), inst= (million work units/s), slowdown= (factor of all times), separated by commas");

#ifdef MGPU_TEST
static unsigned int hang;
module_param(hang, uint, 0644);
MODULE_PARM_DESC(hang, "For tests: the next job of the vGPU with this id hangs (default 0: none)");
#endif

/**
 * struct soft_engine - an engine: a thread and its job
 * @soft: the device
 * @task: the thread
 * @cpu: its job
 * @clock_ns: until when the modelled GPU is busy with what it was given, CLOCK_MONOTONIC
 * @late_ns: time by which the emulation was slower than the GPU, nanoseconds
 * @memory_use: what its job uses of the modelled memory, see mgpu_model_cost(); 0
 *	without a job
 */
struct soft_engine {
	struct mgpu_soft *soft;
	struct task_struct *task;
	struct mgpu_cpu_engine cpu;
	u64 clock_ns;
	u64 late_ns;
	u32 memory_use;
};

/**
 * struct mgpu_soft - the device
 * @mdev: the same for the core
 * @wait: engines without a job; soft_kick() wakes one of them
 * @kicks: number of calls of soft_kick()
 * @engines: the engines
 */
struct mgpu_soft {
	struct mgpu_device *mdev;
	wait_queue_head_t wait;
	atomic_t kicks;
	struct soft_engine engines[];
};

static cpumask_var_t allowed;
static bool modelled;
static struct mgpu_model gpu;

/* How far a modelled engine's clock may lag behind, and catch up later, nanoseconds. */
#define MAX_LAG_NS	(5 * NSEC_PER_MSEC)

static struct soft_engine *to_soft_engine(struct mgpu_cpu_engine *e)
{
	return container_of(e, struct soft_engine, cpu);
}

/* The other engines' use of the memory is taken to stay as it is when the work begins. */
static u64 soft_price(struct mgpu_cpu_engine *cpu,
		      const struct mgpu_gpu_work *work)
{
	struct soft_engine *e = to_soft_engine(cpu);
	const struct soft_engine *all = e->soft->engines;
	u32 use[MGPU_MODEL_USERS], own, nr = 0, i;
	u64 ns;

	for (i = 0; i < engines; i++)
		if (&all[i] != e)
			use[nr++] = READ_ONCE(all[i].memory_use);
	ns = mgpu_model_cost(&gpu, work, engines,
			     mgpu_model_share(&gpu, use, nr), &own);
	WRITE_ONCE(e->memory_use, own);
	return ns;
}

static void soft_spend(struct mgpu_cpu_engine *cpu, u64 ns)
{
	struct soft_engine *e = to_soft_engine(cpu);
	u64 now = ktime_get_ns();
	ktime_t until;

	e->clock_ns += ns;
	if (e->clock_ns + MAX_LAG_NS < now) {
		WRITE_ONCE(e->late_ns, e->late_ns +
			   (now - MAX_LAG_NS - e->clock_ns));
		e->clock_ns = now - MAX_LAG_NS;
	}
	if (e->clock_ns <= now)
		return;
	until = ns_to_ktime(e->clock_ns);
	set_current_state(TASK_IDLE);
	schedule_hrtimeout_range(&until, 0, HRTIMER_MODE_ABS);
}

static const struct mgpu_engine_model soft_model = {
	.price = soft_price,
	.spend = soft_spend,
};

/* For tests: hang until the watchdog or a reset ends the job. */
static void hang_if_asked(struct mgpu_job *job)
{
#ifdef MGPU_TEST
	u32 vgpu = READ_ONCE(hang);

	if (likely(!vgpu) || mgpu_job_vgpu(job) != vgpu ||
	    cmpxchg(&hang, vgpu, 0) != vgpu)
		return;
	while (!mgpu_job_must_end(job))
		usleep_range(1000, 2000);
#endif
}

/* Return whether an engine has to leave its sleep: it was kicked, or has to stop. */
static bool must_go_on(struct mgpu_soft *soft, int seen)
{
	return atomic_read(&soft->kicks) != seen || kthread_should_stop();
}

static int soft_engine(void *data)
{
	struct soft_engine *e = data;
	struct mgpu_soft *soft = e->soft;
	struct mgpu_job *job;
	int seen;

	set_user_nice(current, ENGINE_NICE);
	e->cpu.model = modelled ? &soft_model : NULL;
	e->clock_ns = ktime_get_ns();
	while (!kthread_should_stop()) {
		seen = atomic_read(&soft->kicks);
		job = mgpu_sched_next(soft->mdev);
		if (!job) {
			wait_event_interruptible_exclusive(soft->wait,
							   must_go_on(soft, seen));
			e->clock_ns = ktime_get_ns();
			continue;
		}
		mgpu_cpu_engine_begin(&e->cpu, job);
		hang_if_asked(job);
		/* After the last tile, too: the next job may have one tile only. */
		do {
			cond_resched();
		} while (mgpu_cpu_engine_step(&e->cpu));
		WRITE_ONCE(e->memory_use, 0);
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
		.engine_on_cpu = !modelled,
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

static ssize_t model_show(struct device *dev, struct device_attribute *attr,
			  char *buf)
{
	int len = mgpu_model_print(&gpu, buf, PAGE_SIZE - 1);

	return len + sysfs_emit_at(buf, len, "\n");
}
static DEVICE_ATTR_RO(model);

/* Emit the sum over all engines of the u64 at @offset in struct soft_engine. */
static ssize_t emit_sum(struct device *dev, size_t offset, char *buf)
{
	const struct mgpu_soft *soft = dev_get_drvdata(dev);
	unsigned int i;
	u64 sum = 0;

	for (i = 0; i < engines; i++)
		sum += READ_ONCE(*(const u64 *)((const char *)&soft->engines[i] +
						offset));
	return sysfs_emit(buf, "%llu\n", sum);
}

static ssize_t emulation_cpu_ns_show(struct device *dev,
				     struct device_attribute *attr, char *buf)
{
	return emit_sum(dev, offsetof(struct soft_engine, cpu.cpu_ns), buf);
}
static DEVICE_ATTR_RO(emulation_cpu_ns);

static ssize_t emulation_late_ns_show(struct device *dev,
				      struct device_attribute *attr, char *buf)
{
	return emit_sum(dev, offsetof(struct soft_engine, late_ns), buf);
}
static DEVICE_ATTR_RO(emulation_late_ns);

static struct attribute *soft_attrs[] = {
	&dev_attr_model.attr,
	&dev_attr_emulation_cpu_ns.attr,
	&dev_attr_emulation_late_ns.attr,
	NULL
};

/* The attributes are about a model. */
static umode_t soft_attr_visible(struct kobject *kobj, struct attribute *attr,
				 int n)
{
	return modelled ? attr->mode : 0;
}

static const struct attribute_group soft_group = {
	.attrs = soft_attrs,
	.is_visible = soft_attr_visible,
};

static const struct attribute_group *soft_groups[] = { &soft_group, NULL };

static struct platform_driver soft_driver = {
	.probe = soft_probe,
	.remove = soft_remove_compat,
	.driver = {
		.name = "mgpu_soft",
		.dev_groups = soft_groups,
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

/* Parse the parameters engine and model. */
static int parse_model(void)
{
	const char *bad;

	modelled = !strcmp(engine, "modelled");
	if (!modelled && strcmp(engine, "cpu")) {
		pr_err("mgpu_soft: engine=%s: must be cpu or modelled\n", engine);
		return -EINVAL;
	}
	bad = mgpu_model_parse(model, &gpu);
	if (bad) {
		pr_err("mgpu_soft: model=%s: '%.*s' is neither uhd630, gt1030 or t4 nor fill, upload, inst or memory=1 to %u, command=0 to %u or slowdown=1 to %u\n",
		       model, (int)strcspn(bad, ","), bad, MGPU_MODEL_MAX,
		       MGPU_MODEL_MAX, MGPU_MODEL_SLOWDOWN_MAX);
		return -EINVAL;
	}
	return 0;
}

static int __init soft_start(void)
{
	int ret;

	ret = parse_model();
	if (ret)
		return ret;
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
