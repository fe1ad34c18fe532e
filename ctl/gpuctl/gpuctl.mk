# SPDX-License-Identifier: GPL-2.0-only
#
# gpuctl links libsmartcols for tables, and ncurses for the screen of top, besides libmgpu.

gpuctl-cflags := $(shell $(PKG_CONFIG) --cflags smartcols ncursesw)
gpuctl-libs := $(shell $(PKG_CONFIG) --libs smartcols ncursesw)
