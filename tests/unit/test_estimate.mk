# SPDX-License-Identifier: GPL-2.0-only
test_estimate-srcs := ../../ctl/mgpud/estimate.c
test_estimate-cflags := -I../../ctl/mgpud
