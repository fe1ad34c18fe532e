#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# timeout: 960
#
# OpenGL in a QEMU/KVM guest with the stock kernel, its in-tree virtio_gpu and Mesa, on a vGPU
# of mgpu-renderd, whose worker renders without a GPU. The guest maps buffers of the worker.
exec "$(dirname "$0")/host/boot-and-run" blobs
