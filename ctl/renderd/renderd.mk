# SPDX-License-Identifier: GPL-2.0-only
renderd-cflags := $(shell $(PKG_CONFIG) --cflags virglrenderer)
renderd-libs := $(shell $(PKG_CONFIG) --libs virglrenderer)
