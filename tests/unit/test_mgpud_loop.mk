# SPDX-License-Identifier: GPL-2.0-only
test_mgpud_loop-srcs := ../../ctl/mgpud/fds.c ../../ctl/mgpud/alloc.c \
	../../ctl/mgpud/alloc_fea.c ../../ctl/mgpud/alloc_vgasa.c \
	../../ctl/mgpud/alloc_none.c ../../ctl/mgpud/estimate.c \
	../../ctl/mgpud/decide.c
test_mgpud_loop-cflags := -I../../ctl/mgpud
