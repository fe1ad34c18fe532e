// SPDX-License-Identifier: GPL-2.0-only
/*
 * Does the emulated processor keep its global interrupt flag?
 *
 * A processor clears and sets the flag (CLGI, STGI) with an interrupt pending in
 * between, which is to come after STGI; another loads the state of its FPU all the
 * time. These have nothing to do with each other, but in QEMU, see "The test host"
 * in Documentation/testing.rst. Loading fails always; the kernel's log has
 *
 *	lostgif: processor 0 beside 1: ROUNDS rounds, N CLGI lost, N STGI lost
 *
 * Nothing loads this by itself:
 *
 *	tools/vm/run -- sh -c 'insmod $BUILD/tcg/$KERNEL/lostgif.ko; dmesg | tail -n 1'
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpumask.h>
#include <linux/irq_work.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <asm/cpufeature.h>
#include <asm/fpu/api.h>
#include <asm/msr.h>

static unsigned int flag_cpu;
module_param(flag_cpu, uint, 0444);
MODULE_PARM_DESC(flag_cpu, "Processor that changes its flag (0)");

static unsigned int fpu_cpu = 1;
module_param(fpu_cpu, uint, 0444);
MODULE_PARM_DESC(fpu_cpu, "Processor that loads its FPU (1)");

static bool fxrstor;
module_param(fxrstor, bool, 0444);
MODULE_PARM_DESC(fxrstor, "Load with FXRSTOR, not FLDENV (N)");

static unsigned int seconds = 10;
module_param(seconds, uint, 0444);
MODULE_PARM_DESC(seconds, "How long (10)");

/* 6.16: these replace rdmsrl() and wrmsrl(). */
#ifndef rdmsrq
#define rdmsrq	rdmsrl
#define wrmsrq	wrmsrl
#endif

/* Of a burst, after which others may run. */
#define ROUNDS	1000

static unsigned long taken;

static void on_interrupt(struct irq_work *work)
{
	WRITE_ONCE(taken, taken + 1);
}

static DEFINE_IRQ_WORK(interrupt, on_interrupt);

static u8 state[512] __aligned(16);

static int load_fpu(void *unused)
{
	unsigned int i;
	u32 env[7];

	while (!kthread_should_stop()) {
		kernel_fpu_begin();
		asm volatile("fninit; fnstenv %0; fxsave %1" : "=m" (env), "=m" (state));
		for (i = 0; i < ROUNDS; i++) {
			if (fxrstor)
				asm volatile("fxrstor %0" : : "m" (state));
			else
				asm volatile("fldenv %0" : : "m" (env));
		}
		kernel_fpu_end();
		cond_resched();
	}
	return 0;
}

/* Interrupts come between two translations: a jump ends one. */
static void give_time(void)
{
	unsigned int i;

	for (i = 0; i < 20; i++)
		asm volatile("jmp 1f; 1:" : : : "memory");
}

static void clgi(void)
{
	asm volatile(".byte 0x0f, 0x01, 0xdd" : : : "memory");
	give_time();
}

static void stgi(void)
{
	asm volatile(".byte 0x0f, 0x01, 0xdc" : : : "memory");
	give_time();
}

static int change_flag(void *unused)
{
	unsigned long rounds, before, clgi_lost = 0, stgi_lost = 0;
	unsigned long end = jiffies + seconds * HZ;
	u64 efer;

	rdmsrq(MSR_EFER, efer);
	wrmsrq(MSR_EFER, efer | EFER_SVME);
	for (rounds = 0; time_before(jiffies, end); rounds++) {
		preempt_disable();
		before = READ_ONCE(taken);
		clgi();
		irq_work_queue(&interrupt);
		give_time();
		clgi_lost += READ_ONCE(taken) != before;
		stgi();
		stgi_lost += READ_ONCE(taken) == before;
		while (READ_ONCE(taken) == before)
			stgi();
		preempt_enable();
		if (rounds % ROUNDS == 0)
			cond_resched();
	}
	wrmsrq(MSR_EFER, efer);
	pr_info("processor %u beside %u: %lu rounds, %lu CLGI lost, %lu STGI lost\n",
		flag_cpu, fpu_cpu, rounds, clgi_lost, stgi_lost);
	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return 0;
}

static int __init lostgif_init(void)
{
	struct task_struct *fpu, *flag;

	if (!boot_cpu_has(X86_FEATURE_SVM) || flag_cpu == fpu_cpu ||
	    flag_cpu >= nr_cpu_ids || !cpu_online(flag_cpu) ||
	    fpu_cpu >= nr_cpu_ids || !cpu_online(fpu_cpu)) {
		pr_err("needs SVM and two online processors\n");
		return -EINVAL;
	}
	fpu = kthread_create(load_fpu, NULL, "lostgif/%u", fpu_cpu);
	if (IS_ERR(fpu))
		return PTR_ERR(fpu);
	flag = kthread_create(change_flag, NULL, "lostgif/%u", flag_cpu);
	if (IS_ERR(flag)) {
		kthread_stop(fpu);
		return PTR_ERR(flag);
	}
	kthread_bind(fpu, fpu_cpu);
	kthread_bind(flag, flag_cpu);
	wake_up_process(fpu);
	wake_up_process(flag);
	schedule_timeout_uninterruptible(seconds * HZ + HZ / 2);
	kthread_stop(flag);
	kthread_stop(fpu);
	return -EAGAIN;
}

module_init(lostgif_init);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Whether an emulated processor keeps its global interrupt flag");
