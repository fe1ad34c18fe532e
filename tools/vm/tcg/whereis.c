// SPDX-License-Identifier: GPL-2.0-only
/*
 * Answers a non-maskable interrupt by telling where the processor was.
 *
 * What an NMI prints comes out when some processor takes interrupts again; this
 * goes to QEMU's debug console, port 0xe9, at once. So whoever sends one to all
 * processors (tools/vm/run) learns which of them are alive, even when all have
 * their interrupts off, and what those are at.
 *
 * Only the test host loads this.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/io.h>
#include <linux/module.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>
#include <asm/nmi.h>

#define PORT	0xe9
#define HERE	0xe9	/* what is read there when somebody listens */

static void say(const char *line, int len)
{
	outsb(PORT, line, len);
}

/* Words of the stack that are looked at, and the callers that are told of. */
#define WORDS	128
#define CALLERS	7

/* Of one processor after the other. */
static arch_spinlock_t lock = __ARCH_SPIN_LOCK_UNLOCKED;

/* "PROCESSOR CODE", and of the kernel's code what may have called it. */
static int on_nmi(unsigned int type, struct pt_regs *regs)
{
	const unsigned long *sp = (const unsigned long *)regs->sp;
	unsigned int i, callers = 0;
	unsigned long word;
	char line[128];

	arch_spin_lock(&lock);
	say(line, scnprintf(line, sizeof(line), "%u %s%pS\n",
			    raw_smp_processor_id(),
			    user_mode(regs) ? "user " : "",
			    (void *)instruction_pointer(regs)));
	for (i = 0; i < WORDS && callers < CALLERS && !user_mode(regs); i++) {
		if (get_kernel_nofault(word, sp + i))
			break;
		/* Text of the kernel and of modules is in the last 2 GiB. */
		if (word < __START_KERNEL_map || word >= MODULES_END)
			continue;
		say(line, scnprintf(line, sizeof(line), " ? %pB\n",
				    (void *)word));
		callers++;
	}
	arch_spin_unlock(&lock);
	return NMI_HANDLED;
}

static int __init whereis_init(void)
{
	if (inb(PORT) != HERE) {
		pr_err("no debug console at port %#x\n", PORT);
		return -ENODEV;
	}
	say("ready\n", 6);
	return register_nmi_handler(NMI_UNKNOWN, on_nmi, 0, KBUILD_MODNAME);
}

static void __exit whereis_exit(void)
{
	unregister_nmi_handler(NMI_UNKNOWN, KBUILD_MODNAME);
}

module_init(whereis_init);
module_exit(whereis_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Where a processor is, told in answer to an NMI");
