# SPDX-License-Identifier: GPL-2.0-only
#
# Models, and what is expected from them, are pure and become liblearn.a.

learn-pure-objs := $(patsubst %.c,$(OUT)/obj/%.o,$(wildcard learn/*.c))
learn-cflags := -O3 -fopenmp-simd -Ilearn -Ialloc
