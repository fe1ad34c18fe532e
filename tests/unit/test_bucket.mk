# SPDX-License-Identifier: GPL-2.0-only
test_bucket-srcs := ../../kmod/bucket.c
