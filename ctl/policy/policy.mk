# SPDX-License-Identifier: GPL-2.0-only
# libbpf.mk says LIBBPF_CFLAGS and LIBBPF_LIBS.
include $(BUILD)/libbpf/libbpf.mk

policy-cflags := $(LIBBPF_CFLAGS) -Wa,-I$(BUILD)/bpf
policy-libs := $(LIBBPF_LIBS)
policy-deps := $(BUILD)/bpf/policy_deadline.bpf.o $(BUILD)/bpf/policy_priority.bpf.o

$(BUILD)/libbpf/libbpf.mk: ../tools/setup/libbpf
	@BUILD=$(BUILD) ../tools/setup/libbpf && touch $@

$(policy-deps): $(wildcard ../bpf/policy*)
	$(MAKE) -C ../bpf BUILD=$(BUILD)

$(OUT)/obj/policy/examples.o: $(policy-deps)
