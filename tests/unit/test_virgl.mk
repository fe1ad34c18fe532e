# SPDX-License-Identifier: GPL-2.0-only
test_virgl-srcs := ../../kmod/virgl.c ../../kmod/virgl_format.c \
	../../kmod/virgl_caps.c
