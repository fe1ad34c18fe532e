# SPDX-License-Identifier: GPL-2.0-only
test_preempt_learn-srcs := $(wildcard ../../ctl/preempt/*.c)
test_preempt_learn-cflags := -I../../ctl/preempt $(shell pkg-config --cflags json-c)
test_preempt_learn-libs := $(shell pkg-config --libs json-c)
