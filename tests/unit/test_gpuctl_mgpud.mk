# SPDX-License-Identifier: GPL-2.0-only
test_gpuctl_mgpud-srcs := ../../ctl/lib/mgpud_client.c ../../ctl/lib/msg.c \
	../../ctl/lib/fields.c
test_gpuctl_mgpud-cflags := -iquote ../../ctl/lib \
	$(shell pkg-config --cflags libnl-genl-3.0 json-c)
test_gpuctl_mgpud-libs := $(shell pkg-config --libs libnl-genl-3.0 json-c) \
	-lpthread
