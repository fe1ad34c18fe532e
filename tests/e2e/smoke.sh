#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# timeout: 900
#
# The shortest test with a QEMU/KVM guest on a vGPU: of all end-to-end tests make check
# runs this one.
exec "$(dirname "$0")/host/boot-and-run" smoke
