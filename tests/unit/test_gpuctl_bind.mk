# SPDX-License-Identifier: GPL-2.0-only
test_gpuctl_bind-srcs := ../../ctl/gpuctl/pci_gpu.c ../../ctl/lib/mgpu.c \
	../../ctl/lib/msg.c ../../ctl/lib/fields.c
test_gpuctl_bind-cflags := -iquote ../../ctl/lib -I../../ctl/gpuctl \
	$(shell pkg-config --cflags libnl-genl-3.0)
test_gpuctl_bind-libs := $(shell pkg-config --libs libnl-genl-3.0)
