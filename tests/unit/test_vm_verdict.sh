#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# tools/vm/verdict takes a console for the emulation's fault only if the first report
# is, and no trace has a frame of the modules. The consoles are made here, of lines
# that the kernels print.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
# shellcheck source=tools/vm/verdict
. "$top/tools/vm/verdict"
asserts='is_emulation is_ours emulation_stuck'

start='[    5.000000] mgpu-session: the command starts'
vmexit='[   61.1] general protection fault, maybe for address 0x0: 0000 [#1] PREEMPT SMP NOPTI
[   61.1] CPU: 1 PID: 812 Comm: qemu-system-x86 Tainted: G           OE      6.1.0-56-amd64 #1
[   61.1] RIP: 0010:__svm_vcpu_run+0x9e/0x140 [kvm_amd]
[   61.1] Call Trace:
[   61.1]  svm_vcpu_run+0x2a/0x60 [kvm_amd]
[   61.1] ---[ end trace 0000000000000000 ]---
[   61.1] Kernel panic - not syncing: Fatal exception in interrupt'
int3='[   70.2] int3: 0000 [#1] PREEMPT SMP NOPTI
[   70.2] RIP: 0010:__schedule+0x2b1/0xb60
[   70.2] Call Trace:
[   70.2] ---[ end trace 0000000000000000 ]---'
int3_new=${int3/int3:/Oops: int3:}
warning='[   60.0] WARNING: CPU: 0 PID: 7 at kernel/workqueue.c:1638 __queue_work+0x3ce/0x400
[   60.0] RIP: 0010:__queue_work+0x3ce/0x400
[   60.0] ---[ end trace 0000000000000000 ]---'
ours_trace='[   80.0] WARNING: CPU: 0 PID: 7 at lib/refcount.c:28 refcount_warn_saturate+0xba/0x110
[   80.0] RIP: 0010:refcount_warn_saturate+0xba/0x110
[   80.0]  vgpu_put+0x3c/0x50 [mgpu]
[   80.0] ---[ end trace 0000000000000000 ]---'
linked='[   61.0] Modules linked in: mgpu_soft(OE) mgpu(OE) kvm_amd kvm'

console()	# PART...
{
	printf '%s\n' '[    1.0] WARNING: before the command' "$start" "$@" >"$tmp/console"
}

is_emulation()	# PART...
{
	console "$@"
	emulation_fault "$tmp/console" >/dev/null || echo "not taken for the emulation's: $1"
}

is_ours()	# PART...
{
	local said

	console "$@"
	! said=$(emulation_fault "$tmp/console") || echo "taken for '$said': $1"
}

alone()
{
	is_emulation "$vmexit"
	is_emulation "$vmexit" "$linked"
	is_emulation "$int3"
	is_emulation "$int3_new"
	is_emulation "$vmexit" "$int3"
	[ "$(emulation_fault "$tmp/console")" = \
		"an interrupt right after #VMEXIT: QEMU's emulation of SVM went wrong" ] ||
		echo 'the fault is not named'
}
behaves 'a first report that only the emulation explains is its fault' alone

before()
{
	is_ours "$warning" "$vmexit"
	is_ours "$warning" "$int3"
	is_ours "$warning"
	is_ours '[   60.0] BUG: KASAN: slab-use-after-free in vgpu_close+0x1/0x2' "$vmexit"
	is_ours ''
}
behaves 'a report before it is not dropped' before

frames()
{
	is_ours "$vmexit" "$ours_trace"
	is_ours "$ours_trace" "$vmexit"
	is_ours "${int3/__schedule+0x2b1\/0xb60/sched_pick+0x1\/0x40 [mgpu]}"
	is_ours "${vmexit/svm_vcpu_run+0x2a\/0x60 \[kvm_amd]/irq_raise+0x2\/0x90 [mgpu_soft]}"
	is_ours "$vmexit" '[   90.0]  ? virtio_done+0x1/0x30 [mgpu_virtio]'
	# %pS in a message, without the size
	is_ours "$vmexit" '[   90.0] workqueue: ring_work+0x0 [mgpu] hogged a CPU'
}
behaves 'a frame of the modules in any trace makes it theirs' frames

second_dump()
{
	# the register dump that counts is the report's own
	is_ours "${warning/---\[ end*/}" '[   60.1] RIP: 0010:__svm_vcpu_run+0x9e/0x140 [kvm_amd]'
}
behaves 'a later register dump does not excuse a report' second_dump

window()
{
	console
	[ -z "$(reports "$tmp/console")" ] || echo "a report from before the command: $(reports "$tmp/console")"
	console "$warning"
	[ "$(reports "$tmp/console" | grep -c 'queue_work')" -eq 2 ] ||
		echo "the report is not shown: $(reports "$tmp/console")"
}
behaves 'reports before the start of the command do not count' window

power_down()
{
	local end='[   31.871] reboot: Power down' offline

	offline='[   31.899] sched: Unexpected reschedule of offline CPU#1!
[   31.900] WARNING: CPU: 2 PID: 168 at arch/x86/kernel/apic/ipi.c:68 native_smp_send_reschedule+0x35/0x40
[   31.940] Call Trace:
[   31.949] ---[ end trace 0000000000000000 ]---'
	console "$end" "$offline"
	[ -z "$(reports "$tmp/console")" ] || echo "a report from after the end: $(reports "$tmp/console")"
	console "$offline" "$end"
	reports "$tmp/console" | grep -q 'native_smp_send_reschedule' || echo 'a report is missed'
	console '[   20.0] mgpu-session: the command ended with 0' "$warning" "$end"
	reports "$tmp/console" | grep -q 'queue_work' || echo 'a report behind the command is missed'
	# a guest that powers down is no end
	console '[   20.0] mgpu-e2e: guest: reboot: Power down' "$warning" "$end"
	reports "$tmp/console" | grep -q 'queue_work' || echo 'a report behind a guest is missed'
}
behaves 'nor do those of processors that were stopped to power down' power_down

stuck()
{
	printf '%s\n' ready '0 sched_pick+0x10/0x40 [mgpu]' ' engine_thread+0x4/0x80 [mgpu_soft]' \
		'1 svm_vcpu_run+0x9/0x60 [kvm_amd]' >"$tmp/answers"
	console
	emulation_stuck "$tmp/console" "$tmp/answers" || echo 'a processor that takes no NMI'
	printf '%s\n' ' INTERRUPTED WITH INTERRUPTS OFF _raw_spin_lock+0x1/0x30' >>"$tmp/answers"
	emulation_stuck "$tmp/console" "$tmp/answers" || echo "interrupted in the kernel's own code"
	printf '%s\n' ' runq_add+0x1/0x30 [mgpu]' >>"$tmp/answers"
	! emulation_stuck "$tmp/console" "$tmp/answers" || echo 'interrupted in the modules'
	printf 'ready\n' >"$tmp/answers"
	console "$warning"
	! emulation_stuck "$tmp/console" "$tmp/answers" || echo 'a report was dropped'
	console "$vmexit"
	emulation_stuck "$tmp/console" "$tmp/answers" || echo 'stuck after a fault of the emulation'
}
behaves "a processor that stands still is the emulation's unless there was a report" stuck

done_testing
