# SPDX-License-Identifier: GPL-2.0-only
#
# The exposition is pure: no clock, no input or output.  Unit tests and the fuzz target have it
# without the rest.

metrics-pkgs := libmicrohttpd libseccomp libcap-ng
metrics-cflags := -Imetrics $(shell $(PKG_CONFIG) --cflags $(metrics-pkgs))
metrics-libs := $(shell $(PKG_CONFIG) --libs $(metrics-pkgs))
metrics-objs := $(patsubst %.c,$(OUT)/obj/%.o,$(wildcard metrics/*.c))
