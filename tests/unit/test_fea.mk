# SPDX-License-Identifier: GPL-2.0-only
test_fea-srcs := $(wildcard ../../ctl/alloc/*.c)
test_fea-cflags := -I../../ctl/alloc
