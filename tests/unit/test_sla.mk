# SPDX-License-Identifier: GPL-2.0-only
test_sla-srcs := $(wildcard ../../ctl/alloc/*.c)
test_sla-cflags := -I../../ctl/alloc
