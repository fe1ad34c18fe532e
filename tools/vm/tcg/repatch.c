// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kernel code that is patched under running processors, made safe for QEMU's TCG.
 *
 * A tracepoint, a static key or a BPF trampoline that goes on or off is a change
 * of instructions (text_poke_bp() in arch/x86/kernel/alternative.c): an int3 is
 * written over the first byte, every processor is interrupted, then follow the
 * other bytes, an interrupt, the first byte, an interrupt. TCG throws translated
 * code away when its instructions are written. But one emulated processor may
 * have read the old instruction before another's write, and enter its translation
 * into the common table after it: from then on all of them execute what is not in
 * memory any more. An int3 without a handler ends in a panic, or, before Linux
 * 6.2, in an endless loop; a tracepoint that is stale the other way is deaf.
 *
 * An emulated processor takes an interrupt between two translations. So when all
 * took that of a step, all that was read before it is in the table. Writing the
 * same bytes once more throws it away, and what is translated now is right.
 *
 * Only the test host loads this.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/irqflags.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/uaccess.h>
#include <asm/processor-flags.h>
#include <asm/special_insns.h>

/*
 * Text that was written since the last step, under the kernel's text_mutex, which is
 * held through the step, too. A batch has up to a page of struct text_poke_loc.
 */
#define BATCH	512

struct patch {
	u8 *at;
	size_t len;
};

static struct patch batch[BATCH];
static unsigned int batched;
static bool stepped;

static unsigned long patches;
module_param(patches, ulong, 0444);
MODULE_PARM_DESC(patches, "Patches seen (read only)");

static void set_cr0(unsigned long cr0)
{
	/* write_cr0() does not let go of the write protection */
	asm volatile("mov %0, %%cr0" : : "r" (cr0) : "memory");
}

/* __text_poke(how, at, from, len) */
static int on_poke(struct kprobe *kp, struct pt_regs *regs)
{
	if (stepped) {
		stepped = false;
		batched = 0;
	}
	patches++;
	if (batched == BATCH) {
		pr_warn_once("a batch has more than %u patches\n", BATCH);
		return 0;
	}
	batch[batched].at = (u8 *)regs->si;
	batch[batched].len = regs->cx;
	batched++;
	return 0;
}

/* do_sync_core(), on every processor; the last to come is the one that counts. */
static int on_step(struct kprobe *kp, struct pt_regs *regs)
{
	unsigned long flags, cr0;
	unsigned int i;
	size_t n;
	u8 byte;

	local_irq_save(flags);
	cr0 = native_read_cr0();
	set_cr0(cr0 & ~X86_CR0_WP);
	for (i = 0; i < READ_ONCE(batched); i++) {
		for (n = 0; n < batch[i].len; n++) {
			/* a step without a patch may find code that is gone */
			if (get_kernel_nofault(byte, batch[i].at + n))
				break;
			__put_kernel_nofault(batch[i].at + n, &byte, u8, gone);
		}
gone:
		;
	}
	set_cr0(cr0);
	local_irq_restore(flags);
	WRITE_ONCE(stepped, true);
	return 0;
}

static struct kprobe probes[] = {
	{ .symbol_name = "__text_poke", .pre_handler = on_poke },
	{ .symbol_name = "do_sync_core", .pre_handler = on_step },
};

static int __init repatch_init(void)
{
	unsigned int i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(probes); i++) {
		ret = register_kprobe(&probes[i]);
		if (ret) {
			pr_err("no probe on %s: %d\n", probes[i].symbol_name, ret);
			while (i--)
				unregister_kprobe(&probes[i]);
			return ret;
		}
	}
	return 0;
}

static void __exit repatch_exit(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(probes); i++)
		unregister_kprobe(&probes[i]);
}

module_init(repatch_init);
module_exit(repatch_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Patched kernel code, made safe for an emulated processor");
