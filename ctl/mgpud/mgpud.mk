# SPDX-License-Identifier: GPL-2.0-only
mgpud-cflags := -I$(BUILD)/bpf -I../bpf $(shell $(PKG_CONFIG) --cflags libbpf inih)
mgpud-libs := $(shell $(PKG_CONFIG) --libs libbpf inih) -lpthread
mgpud-deps := $(BUILD)/bpf/account.skel.h $(BUILD)/bpf/cputime.skel.h

$(mgpud-deps):
	$(MAKE) -C ../bpf BUILD=$(BUILD)

# ---- installing ----
#
#   make -C ctl install [PREFIX=/usr/local] [DESTDIR=DIR]
#
# The configuration file that is there already stays.

PREFIX ?= /usr/local
DESTDIR ?=
sbindir := $(PREFIX)/sbin
# systemd looks for units below /etc, /usr/local/lib and /lib.
unitdir := $(if $(filter /usr,$(PREFIX)),/lib,$(PREFIX)/lib)/systemd/system

install: gpuctl mgpud
	install -d $(DESTDIR)$(sbindir) $(DESTDIR)$(unitdir) $(DESTDIR)/etc/mgpu \
		$(DESTDIR)$(PREFIX)/share/man/man8 \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions
	install $(OUT)/mgpud $(OUT)/gpuctl $(wildcard $(OUT)/mgpu-policy) $(DESTDIR)$(sbindir)
	sed 's,/usr/local/sbin,$(sbindir),' mgpud/mgpud.service \
		>$(DESTDIR)$(unitdir)/mgpud.service
	[ -e $(DESTDIR)/etc/mgpu/mgpud.conf ] || \
		install -m 644 mgpud/mgpud.conf $(DESTDIR)/etc/mgpu/mgpud.conf
	install -m 644 $(wildcard ../Documentation/man/*.8) \
		$(DESTDIR)$(PREFIX)/share/man/man8
	install -m 644 $(OUT)/gpuctl.bash-completion \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/gpuctl

.PHONY: install
