# SPDX-License-Identifier: GPL-2.0-only
renderd-pkgs := virglrenderer epoxy libseccomp libcap-ng
renderd-cflags := $(shell $(PKG_CONFIG) --cflags $(renderd-pkgs))
renderd-libs := $(shell $(PKG_CONFIG) --libs $(renderd-pkgs))
