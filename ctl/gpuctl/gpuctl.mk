# SPDX-License-Identifier: GPL-2.0-only
#
# What gpuctl needs besides libmgpu: libsmartcols for tables, ncurses for the screen of top.

gpuctl-cflags := $(shell $(PKG_CONFIG) --cflags smartcols ncursesw)
gpuctl-libs := $(shell $(PKG_CONFIG) --libs smartcols ncursesw)
