# SPDX-License-Identifier: GPL-2.0-only
test_mgpud_server-srcs := ../../ctl/mgpud/server.c ../../ctl/mgpud/settings.c \
	../../ctl/mgpud/fds.c ../../ctl/mgpud/alloc.c \
	../../ctl/mgpud/alloc_fea.c ../../ctl/mgpud/alloc_vgasa.c \
	../../ctl/mgpud/alloc_none.c
test_mgpud_server-cflags := -I../../ctl/mgpud $(shell pkg-config --cflags json-c)
test_mgpud_server-libs := $(shell pkg-config --libs json-c)
