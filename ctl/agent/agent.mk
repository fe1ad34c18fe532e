# SPDX-License-Identifier: GPL-2.0-only
#
# Runs in guests: nothing but the C library and GnuTLS, and nothing of libmgpu that needs more.

agent-cflags := -Iagent $(shell $(PKG_CONFIG) --cflags gnutls)
agent-libs := $(shell $(PKG_CONFIG) --libs gnutls)
agent-objs := $(patsubst %.c,$(OUT)/obj/%.o,$(wildcard agent/*.c)) \
	$(addprefix $(OUT)/obj/lib/,cmdline.o complain.o drm_usage.o notify.o sysfs.o vm_name.o)
