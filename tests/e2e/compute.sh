#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# timeout: 1860
#
# Compute jobs of QEMU/KVM guests with the stock kernel and its in-tree virtio_gpu.
#
# needs: quiet
exec "$(dirname "$0")/host/boot-and-run" compute
