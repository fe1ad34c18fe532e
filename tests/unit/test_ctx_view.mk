# SPDX-License-Identifier: GPL-2.0-only
test_ctx_view-srcs := ../../ctl/mgpud/ctx_view.c ../../ctl/lib/fields.c \
	$(wildcard ../../ctl/preempt/*.c)
test_ctx_view-cflags := -iquote ../../ctl/lib -I../../ctl/mgpud -I../../ctl/preempt -I../../bpf \
	$(shell pkg-config --cflags json-c)
test_ctx_view-libs := $(shell pkg-config --libs json-c)
