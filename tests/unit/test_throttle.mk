# SPDX-License-Identifier: GPL-2.0-only
test_throttle-srcs := ../../kmod/throttle.c
