# SPDX-License-Identifier: GPL-2.0-only
trace-cflags := -I$(BUILD)/bpf -I../bpf $(shell $(PKG_CONFIG) --cflags libbpf)
trace-libs := $(shell $(PKG_CONFIG) --libs libbpf)
trace-deps := $(BUILD)/bpf/frames.skel.h

$(trace-deps): ../bpf/frames.bpf.c ../bpf/frames.h
	$(MAKE) -C ../bpf BUILD=$(BUILD)
