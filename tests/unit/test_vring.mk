# SPDX-License-Identifier: GPL-2.0-only
test_vring-srcs := ../../kmod/vring.c
