# SPDX-License-Identifier: GPL-2.0-only
#
# The comparison with QEMU's own device: a program for the test host.

programs += $(OUT)/vs-qemu-copy

$(OUT)/vs-qemu-copy: vs-qemu-copy.c Makefile vs_qemu.mk
	@mkdir -p $(@D)
	$(CC) $(BENCH_CFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $<
