# SPDX-License-Identifier: GPL-2.0-only
mgpud-cflags := -I$(BUILD)/bpf -I../bpf $(shell $(PKG_CONFIG) --cflags libbpf)
mgpud-libs := $(shell $(PKG_CONFIG) --libs libbpf)
mgpud-deps := $(BUILD)/bpf/account.skel.h $(BUILD)/bpf/cputime.skel.h

$(mgpud-deps):
	$(MAKE) -C ../bpf BUILD=$(BUILD)
