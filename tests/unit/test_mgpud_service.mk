# SPDX-License-Identifier: GPL-2.0-only
test_mgpud_service-srcs := ../../ctl/mgpud/watchdog.c ../../ctl/mgpud/sla_watch.c \
	$(wildcard ../../ctl/alloc/*.c)
test_mgpud_service-cflags := -I../../ctl/mgpud -I../../ctl/alloc -fopenmp-simd
