# SPDX-License-Identifier: GPL-2.0-only
test_fea-srcs := ../../ctl/mgpud/fds.c ../../ctl/mgpud/alloc.c \
	../../ctl/mgpud/alloc_fea.c ../../ctl/mgpud/alloc_vgasa.c \
	../../ctl/mgpud/alloc_none.c
test_fea-cflags := -I../../ctl/mgpud
