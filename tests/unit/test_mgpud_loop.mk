# SPDX-License-Identifier: GPL-2.0-only
test_mgpud_loop-srcs := $(wildcard ../../ctl/alloc/*.c)
test_mgpud_loop-cflags := -I../../ctl/alloc
