# SPDX-License-Identifier: GPL-2.0-only
#
# The allocators alone, on random problems, against each other and Ipopt. Not for
# the test host: make bench-alloc builds it by itself.

ALLOC_LIB := $(BUILD)/ctl/liballoc.a

$(ALLOC_LIB): $(wildcard $(TOP)/ctl/alloc/*.[ch])
	$(MAKE) -C $(TOP)/ctl BUILD=$(BUILD) alloc

$(OUT)/bench-alloc: alloc.c $(TOP)/tests/unit/ipopt_fds.c \
		$(wildcard $(TOP)/tests/unit/*.h) $(ALLOC_LIB) alloc.mk Makefile
	@mkdir -p $(@D)
	$(CC) $(BENCH_CFLAGS) -I$(TOP)/ctl/alloc -I$(TOP)/tests/unit \
		$(shell $(PKG_CONFIG) --cflags ipopt json-c) $(CFLAGS) $(LDFLAGS) \
		-o $@ $< $(TOP)/tests/unit/ipopt_fds.c $(ALLOC_LIB) \
		$(shell $(PKG_CONFIG) --libs ipopt json-c) -lm
