# SPDX-License-Identifier: GPL-2.0-only
#
# The analysis, libdefer.a, is all of it but the command line.

defer-cflags := -Idefer $(shell $(PKG_CONFIG) --cflags capstone libelf libdw)
defer-libs := $(shell $(PKG_CONFIG) --libs capstone libelf libdw)
defer-objs := $(patsubst %.c,$(OUT)/obj/%.o,$(filter-out defer/main.c,$(wildcard defer/*.c))) \
	$(OUT)/obj/defer/api_table.o

api := api
include api/api.mk

$(OUT)/obj/defer/api_table.o: $(OUT)/api_table.c defer/api.h
	@mkdir -p $(@D)
	$(CC) $(CTL_CFLAGS) $(defer-cflags) $(CFLAGS) -MMD -MP -c -o $@ $<
