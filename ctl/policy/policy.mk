# SPDX-License-Identifier: GPL-2.0-only
#
# Scheduling policies need libbpf 1.4: that of tools/setup/libbpf, if it was called, or the
# installed one. LIBBPF_STATIC=1 links with the installed libbpf.a.
-include $(BUILD)/libbpf/libbpf.mk
ifeq ($(LIBBPF_LIBS),)
ifeq ($(shell $(PKG_CONFIG) --atleast-version=1.4 libbpf && echo yes),yes)
LIBBPF_CFLAGS := $(shell $(PKG_CONFIG) --cflags libbpf)
LIBBPF_LIBS := $(if $(LIBBPF_STATIC),$(patsubst -lbpf,-l:libbpf.a,$(shell \
	$(PKG_CONFIG) --static --libs libbpf)),$(shell $(PKG_CONFIG) --libs libbpf))
else
policy: no-libbpf
endif
endif

policy-cflags := $(LIBBPF_CFLAGS) -Wa,-I$(BUILD)/bpf
policy-libs := $(LIBBPF_LIBS)
policy-deps := $(BUILD)/bpf/policy_deadline.bpf.o $(BUILD)/bpf/policy_priority.bpf.o

no-libbpf:
	@echo 'mgpu-policy: it needs libbpf 1.4 or later: install libbpf-dev of the backports, or run: make libbpf' >&2
	@false

$(policy-deps): $(wildcard ../bpf/policy*)
	$(MAKE) -C ../bpf BUILD=$(BUILD)

$(OUT)/obj/policy/examples.o: $(policy-deps)

.PHONY: no-libbpf
