# SPDX-License-Identifier: GPL-2.0-only
#
# The preemption bench: guests that compute, played by the tests' own VMM, what mgpud
# decides with, and the simulator's clairvoyant. make bench-preempt builds it by itself.

PREEMPT_OBJ := $(OBJ)/preempt

preempt-srcs := $(wildcard preempt*.c) common.c sched_stats.c \
	$(addprefix $(TOP)/tests/kselftest/,vmm.c gpu.c compute.c) \
	$(TOP)/kmod/compute.c \
	$(addprefix $(TOP)/ctl/mgpud/,preempter.c ctx_view.c bpf_why.c) \
	$(TOP)/tools/sim/preempt_model.c $(TOP)/tools/sim/preempt_stream.c
preempt-objs := $(foreach f,$(preempt-srcs),$(PREEMPT_OBJ)/$(subst ../,,$(f:.c=.o)))
preempt-deps := $(BUILD)/bpf/contexts.skel.h
preempt-libs := $(BUILD)/ctl/libpreempt.a $(BUILD)/ctl/libmgpu.a
preempt-cflags := -I$(BUILD)/bpf -I$(TOP)/bpf -I$(TOP)/ctl/lib -I$(TOP)/ctl/preempt \
	-I$(TOP)/include/uapi -I$(TOP)/include \
	$(shell $(PKG_CONFIG) --cflags libbpf json-c libnl-genl-3.0)

$(preempt-deps):
	$(MAKE) -C $(TOP)/bpf BUILD=$(BUILD)

# Always looked at: which of its sources changed only ctl's Makefile knows.
$(preempt-libs): preempt-always
	@$(MAKE) --no-print-directory -C $(TOP)/ctl BUILD=$(BUILD) \
		$(patsubst lib%.a,%,$(subst libmgpu.a,lib,$(notdir $@)))

$(PREEMPT_OBJ)/%.o: %.c preempt.mk Makefile | $(preempt-deps)
	@mkdir -p $(@D)
	$(CC) $(BENCH_CFLAGS) $(preempt-cflags) $(CFLAGS) -MMD -MP -c -o $@ $<

$(PREEMPT_OBJ)/%.o: $(TOP)/%.c preempt.mk Makefile | $(preempt-deps)
	@mkdir -p $(@D)
	$(CC) $(BENCH_CFLAGS) $(preempt-cflags) $(CFLAGS) -MMD -MP -c -o $@ $<

$(OUT)/bench-preempt: $(preempt-objs) $(preempt-libs)
	$(CC) $(BENCH_CFLAGS) $(CFLAGS) $(LDFLAGS) $(sched-ldflags) -o $@ $^ \
		$(shell $(PKG_CONFIG) --libs libbpf json-c libnl-genl-3.0) -lm -pthread

-include $(preempt-objs:.o=.d)

.PHONY: preempt-always
