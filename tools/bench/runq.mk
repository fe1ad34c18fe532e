# SPDX-License-Identifier: GPL-2.0-only
#
# The run queue alone, in user space.  Lists and trees are the kernel's own, from
# the source of a test kernel.

runq-tools := $(patsubst %/lib/rbtree.c,%,$(firstword $(wildcard \
	$(BUILD)/kernel/$(KERNEL)/source/tools/lib/rbtree.c \
	$(BUILD)/kernel/*/source/tools/lib/rbtree.c)))
runq-srcs := $(addprefix $(TOP)/kmod/,runq.c bucket.c policy_best_effort.c \
	policy_fair.c policy_fixed.c)

ifneq ($(runq-tools),)
programs += $(OUT)/runq
endif

# Callbacks need not use all that they are given.
$(OUT)/runq: runq.c $(runq-srcs) $(wildcard $(TOP)/kmod/*.h) runq.mk Makefile
	@mkdir -p $(@D)
	$(CC) $(BENCH_CFLAGS) -Wno-unused-parameter -isystem $(runq-tools)/include \
		-I$(TOP)/kmod -I$(TOP)/include $(CFLAGS) $(LDFLAGS) -o $@ $< \
		$(runq-srcs) $(runq-tools)/lib/rbtree.c
