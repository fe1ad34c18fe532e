#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# timeout: 2460
#
# OpenGL in QEMU/KVM guests with the stock kernel, its in-tree virtio_gpu and Mesa, on
# vGPUs of a physical virtio-gpu.
#
# needs: quiet
exec "$(dirname "$0")/host/boot-and-run" gl
