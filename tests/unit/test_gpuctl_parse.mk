# SPDX-License-Identifier: GPL-2.0-only
test_gpuctl_parse-srcs := ../../ctl/gpuctl/parse.c
test_gpuctl_parse-cflags := -iquote ../../ctl/lib -I../../ctl/gpuctl
