# SPDX-License-Identifier: GPL-2.0-only
test_gpuctl_out-srcs := ../../ctl/gpuctl/out.c ../../ctl/lib/fields.c \
	../../ctl/lib/hist.c
test_gpuctl_out-cflags := -iquote ../../ctl/lib -I../../ctl/gpuctl \
	$(shell pkg-config --cflags json-c)
test_gpuctl_out-libs := $(shell pkg-config --libs json-c)
