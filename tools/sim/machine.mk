# SPDX-License-Identifier: GPL-2.0-only
#
# Sources and flags of machine.c, for the programs that use it. TOP is the root of the
# repository.

machine-tools := $(patsubst %/lib/rbtree.c,%,$(firstword \
	$(wildcard $(BUILD)/kernel/$(KERNEL)/source/tools/lib/rbtree.c \
		$(BUILD)/kernel/*/source/tools/lib/rbtree.c) \
	$(BUILD)/kernel/6.1/source/tools/lib/rbtree.c))
machine-deps := $(machine-tools)/lib/rbtree.c
machine-srcs := $(TOP)/tools/sim/machine.c $(machine-deps) $(addprefix $(TOP)/kmod/sched/, \
	throttle.c runq.c bucket.c policy_best_effort.c policy_fair.c policy_fixed.c)

# Callbacks need not use all that they are given.
machine-cflags := -isystem $(machine-tools)/include -I$(TOP)/kmod \
	-I$(TOP)/include -I$(TOP)/ctl/alloc -Wno-unused-parameter
