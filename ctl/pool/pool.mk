# SPDX-License-Identifier: GPL-2.0-only
#
# All but main.c becomes libpool.a, for tests and benchmarks.

pool-pkgs := libvirt libxml-2.0 libmicrohttpd gnutls sqlite3 libpq inih
pool-cflags := -Ipool -Iplace -Iagent $(shell $(PKG_CONFIG) --cflags $(pool-pkgs))
pool-libs := $(shell $(PKG_CONFIG) --libs $(pool-pkgs)) -lpthread
pool-objs := $(patsubst %.c,$(OUT)/obj/%.o,$(filter-out pool/main.c,$(wildcard pool/*.c))) \
	$(OUT)/obj/agent/wire.o

$(OUT)/obj/pool/page.o: $(wildcard pool/page/*)
$(OUT)/obj/pool/openapi.o: pool/openapi.yaml
