# SPDX-License-Identifier: GPL-2.0-only
mgpud-cflags := -I$(BUILD)/bpf -I../bpf $(shell $(PKG_CONFIG) --cflags libbpf inih)
mgpud-libs := $(shell $(PKG_CONFIG) --libs libbpf inih) -lpthread
mgpud-deps := $(BUILD)/bpf/account.skel.h $(BUILD)/bpf/cputime.skel.h \
	$(BUILD)/bpf/contexts.skel.h

$(mgpud-deps) &:
	$(MAKE) -C ../bpf BUILD=$(BUILD)
