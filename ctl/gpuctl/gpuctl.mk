# SPDX-License-Identifier: GPL-2.0-only
#
# gpuctl links libsmartcols for tables, ncurses for the screen of top, and libbpf for trace,
# besides libmgpu.

gpuctl-cflags := -I$(BUILD)/bpf -I../bpf $(shell $(PKG_CONFIG) --cflags smartcols ncursesw libbpf)
gpuctl-libs := $(shell $(PKG_CONFIG) --libs smartcols ncursesw libbpf)
gpuctl-deps := $(BUILD)/bpf/jobs.skel.h

$(gpuctl-deps): ../bpf/jobs.bpf.c ../bpf/jobs.h
	$(MAKE) -C ../bpf BUILD=$(BUILD)
