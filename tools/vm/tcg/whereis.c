// SPDX-License-Identifier: GPL-2.0-only
/*
 * Answers a non-maskable interrupt by telling where the processor was.
 *
 * Output of an NMI appears when some processor takes interrupts again; this
 * goes to QEMU's debug console, port 0xe9, at once. So tools/vm/run, which sends one
 * to all processors, learns which of them are alive, even when all have
 * their interrupts off, and what those are at:
 *
 *	PROCESSOR CODE
 *	 CALLER
 *	 ...
 *	 interrupted CODE
 *	 ...
 *	 INTERRUPTED WITH INTERRUPTS OFF CODE
 *
 * The last is what no processor does. Whatever is deadlocked then, the locks that
 * the interrupted code held were no defence.
 *
 * Only the test host loads this.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/io.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <asm/nmi.h>
#include <asm/processor-flags.h>
#include <asm/unwind.h>

#define PORT	0xe9
#define HERE	0xe9	/* read from PORT if the debug console exists */

/* The callers that are told of. */
#define CALLERS	48

/* Of one processor after the other. */
static arch_spinlock_t lock = __ARCH_SPIN_LOCK_UNLOCKED;

static __printf(1, 2) void say(const char *fmt, ...)
{
	char line[160];
	va_list args;
	int len;

	va_start(args, fmt);
	len = vscnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	outsb(PORT, line, len);
}

/* Where @address is the entry of an interrupt that IF holds back. */
static bool is_maskable(unsigned long address)
{
	char symbol[KSYM_SYMBOL_LEN];

	scnprintf(symbol, sizeof(symbol), "%ps", (void *)address);
	return strstarts(symbol, "asm_sysvec_") ||
	       strstarts(symbol, "asm_common_interrupt");
}

static int on_nmi(unsigned int type, struct pt_regs *regs)
{
	unsigned long address, entry = 0;
	struct unwind_state state;
	struct pt_regs *was;
	unsigned int i;

	arch_spin_lock(&lock);
	say("%u %s%pS\n", raw_smp_processor_id(), user_mode(regs) ? "user " : "",
	    (void *)instruction_pointer(regs));
	if (user_mode(regs))
		goto out;
	unwind_start(&state, current, regs, NULL);
	for (i = 0; i < CALLERS && !unwind_done(&state); i++, unwind_next_frame(&state)) {
		address = unwind_get_return_address(&state);
		if (!address)
			break;
		was = unwind_get_entry_regs(&state, NULL);
		if (was && i && !user_mode(was))
			say(" %s %pS\n",
			    !(was->flags & X86_EFLAGS_IF) && is_maskable(entry) ?
			    "INTERRUPTED WITH INTERRUPTS OFF" : "interrupted",
			    (void *)address);
		else if (i)
			say(" %pB\n", (void *)address);
		entry = address;
	}
out:
	arch_spin_unlock(&lock);
	return NMI_HANDLED;
}

static int __init whereis_init(void)
{
	if (inb(PORT) != HERE) {
		pr_err("no debug console at port %#x\n", PORT);
		return -ENODEV;
	}
	say("ready\n");
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
