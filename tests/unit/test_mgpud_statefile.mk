# SPDX-License-Identifier: GPL-2.0-only
test_mgpud_statefile-srcs := ../../ctl/mgpud/statefile.c ../../ctl/mgpud/settings.c \
	$(wildcard ../../ctl/alloc/*.c ../../ctl/preempt/*.c)
test_mgpud_statefile-cflags := -I../../ctl/mgpud -I../../ctl/alloc -I../../ctl/preempt -fopenmp-simd \
	$(shell pkg-config --cflags json-c)
test_mgpud_statefile-libs := $(shell pkg-config --libs json-c) -lpthread
