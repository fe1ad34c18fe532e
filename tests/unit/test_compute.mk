# SPDX-License-Identifier: GPL-2.0-only
test_compute-srcs := ../../kmod/compute.c
test_compute-cflags := -I../../include
