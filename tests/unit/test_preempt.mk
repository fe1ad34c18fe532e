# SPDX-License-Identifier: GPL-2.0-only
test_preempt-srcs := $(wildcard ../../ctl/preempt/*.c)
test_preempt-cflags := -I../../ctl/preempt $(shell pkg-config --cflags json-c)
test_preempt-libs := $(shell pkg-config --libs json-c)
