# SPDX-License-Identifier: GPL-2.0-only
#
# Lists and trees are the kernel's own, from the source of a test kernel.
runq-tools := $(patsubst %/lib/rbtree.c,%,$(firstword \
	$(wildcard $(BUILD)/kernel/$(KERNEL)/source/tools/lib/rbtree.c \
		$(BUILD)/kernel/*/source/tools/lib/rbtree.c) \
	$(BUILD)/kernel/6.1/source/tools/lib/rbtree.c))

$(runq-tools)/lib/rbtree.c:
	@echo 'test_runq: there is no $@, run: make kernel' >&2; exit 1

test_runq-deps := $(runq-tools)/lib/rbtree.c
test_runq-srcs := ../../kmod/runq.c ../../kmod/bucket.c \
	../../kmod/policy_best_effort.c ../../kmod/policy_fair.c \
	../../kmod/policy_fixed.c $(runq-tools)/lib/rbtree.c
# Callbacks need not use all that they are given.
test_runq-cflags := -isystem $(runq-tools)/include -I../../include \
	-Wno-unused-parameter
