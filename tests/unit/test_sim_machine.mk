# SPDX-License-Identifier: GPL-2.0-only
TOP := ../..
include ../../tools/sim/machine.mk

test_sim_machine-deps := $(machine-deps)
test_sim_machine-srcs := $(machine-srcs) ../../tools/sim/costs.c \
	../../tools/sim/tracefile.c
test_sim_machine-cflags := -I../../tools/sim $(machine-cflags)
