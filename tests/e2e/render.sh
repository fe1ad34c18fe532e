#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# timeout: 1260
#
# OpenGL in a QEMU/KVM guest with the stock kernel, its in-tree virtio_gpu and Mesa, on a vGPU
# of mgpu-renderd, whose worker renders without a GPU.
exec "$(dirname "$0")/host/boot-and-run" render
