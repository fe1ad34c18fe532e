#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# timeout: 1500
#
# A QEMU/KVM guest on a vGPU of mgpu-renderd --dmabuf: QEMU shows its screen with OpenGL on
# the GPU, from the worker's dma-buf.
exec "$(dirname "$0")/host/boot-and-run" dmabuf
