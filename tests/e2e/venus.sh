#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# timeout: 1460
#
# Vulkan in a QEMU/KVM guest, a stock Debian 13, on a vGPU of mgpu-renderd, which runs in a
# root of Debian 13: its virglrenderer has the Venus that Mesa wants, and its Mesa lavapipe.
exec "$(dirname "$0")/host/boot-and-run" venus
