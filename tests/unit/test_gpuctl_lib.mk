# SPDX-License-Identifier: GPL-2.0-only
test_gpuctl_lib-srcs := ../../ctl/lib/msg.c ../../ctl/lib/fields.c \
	../../ctl/lib/hist.c ../../ctl/lib/mgpu.c
test_gpuctl_lib-cflags := -iquote ../../ctl/lib \
	$(shell pkg-config --cflags libnl-genl-3.0)
test_gpuctl_lib-libs := $(shell pkg-config --libs libnl-genl-3.0)
