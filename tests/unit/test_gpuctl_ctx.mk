# SPDX-License-Identifier: GPL-2.0-only
# All of gpuctl in the test, with a kernel and a clock of the test's.
test_gpuctl_ctx-srcs := $(wildcard ../../ctl/gpuctl/*.c ../../ctl/lib/*.c)
test_gpuctl_ctx-cflags := -include test_gpuctl_ctx.h -iquote ../../ctl/lib \
	-I../../ctl/lib -I../../ctl/gpuctl -DMGPU_VERSION='"test"' \
	$(shell pkg-config --cflags libnl-genl-3.0 json-c)
test_gpuctl_ctx-libs := $(shell pkg-config --libs libnl-genl-3.0 json-c) \
	-Wl,--wrap=genl_ctrl_resolve,--wrap=genl_ctrl_resolve_grp \
	-Wl,--wrap=nl_socket_add_membership,--wrap=sendto,--wrap=recvmsg \
	-Wl,--wrap=clock_gettime,--wrap=nanosleep
