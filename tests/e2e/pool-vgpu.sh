#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# timeout: 1200
#
# mgpu-poold with the distribution's libvirt, and guests that run: a vGPU that libvirt makes is
# attached on request, used, released when it is idle, and given to another VM.
exec "$(dirname "$0")/host/boot-and-run" pool-vgpu
