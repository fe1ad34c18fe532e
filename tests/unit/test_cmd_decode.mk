# SPDX-License-Identifier: GPL-2.0-only
test_cmd_decode-srcs := ../../kmod/cmd_decode.c
