# SPDX-License-Identifier: GPL-2.0-only
test_exact-srcs := ipopt_fds.c $(wildcard ../../ctl/alloc/*.c)
test_exact-cflags := -O2 -I../../ctl/alloc $(shell pkg-config --cflags ipopt)
test_exact-libs := $(shell pkg-config --libs ipopt)
