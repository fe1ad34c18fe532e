# SPDX-License-Identifier: GPL-2.0-only
test_mgpud_server-srcs := ../../ctl/mgpud/server.c ../../ctl/mgpud/settings.c \
	../../ctl/mgpud/preempt_settings.c $(wildcard ../../ctl/alloc/*.c ../../ctl/preempt/*.c)
test_mgpud_server-cflags := -I../../ctl/mgpud -I../../ctl/alloc -I../../ctl/preempt \
	-iquote ../../ctl/lib -fopenmp-simd \
	$(shell pkg-config --cflags json-c)
test_mgpud_server-libs := $(shell pkg-config --libs json-c)
