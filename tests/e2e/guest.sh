#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# timeout: 1860
#
# A QEMU/KVM guest with the stock kernel and its in-tree virtio_gpu on a vGPU.
exec "$(dirname "$0")/host/boot-and-run" guest
