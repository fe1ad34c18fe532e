# SPDX-License-Identifier: GPL-2.0-only
#
# The decision, libplace.a, is pure: no input or output.  Readers, replays, training and the
# command line are mgpu-place's.

place-pure := place/place.c place/policies.c place/potential.c
place-cflags := -Iplace
place-libs := -lpthread
place-pure-objs := $(patsubst %.c,$(OUT)/obj/%.o,$(place-pure))
place-objs := $(patsubst %.c,$(OUT)/obj/%.o,$(filter-out $(place-pure),$(wildcard place/*.c)))
