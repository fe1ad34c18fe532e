# SPDX-License-Identifier: GPL-2.0-only
test_preempt_state-srcs := ../../ctl/mgpud/preempt_state.c ../../kmod/compute.c \
	../../ctl/lib/fields.c $(wildcard ../../ctl/preempt/*.c)
test_preempt_state-cflags := -I../../include -I../../ctl/mgpud -I../../ctl/preempt \
	-iquote ../../ctl/lib $(shell pkg-config --cflags json-c)
test_preempt_state-libs := $(shell pkg-config --libs json-c)
