# SPDX-License-Identifier: GPL-2.0-only
test_mgpud_config-srcs := ../../ctl/mgpud/config.c ../../ctl/mgpud/settings.c \
	../../ctl/mgpud/preempt_settings.c ../../ctl/mgpud/log.c \
	$(wildcard ../../ctl/alloc/*.c ../../ctl/preempt/*.c)
test_mgpud_config-cflags := -I../../ctl/mgpud -I../../ctl/alloc -I../../ctl/preempt \
	-iquote ../../ctl/lib -fopenmp-simd \
	-DEXAMPLE='"$(abspath ../../ctl/mgpud/mgpud.conf)"' $(shell pkg-config --cflags json-c inih)
test_mgpud_config-libs := $(shell pkg-config --libs json-c inih)
