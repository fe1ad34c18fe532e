# SPDX-License-Identifier: GPL-2.0-only
test_estimate-srcs := $(wildcard ../../ctl/alloc/*.c)
test_estimate-cflags := -I../../ctl/alloc -DDATA='"$(abspath data)"'
