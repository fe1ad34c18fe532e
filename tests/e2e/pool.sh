#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# timeout: 1200
#
# mgpu-poold with the distribution's libvirt, and guests that run: a vGPU and a whole GPU are
# attached on request, used, released, and given to another VM.
exec "$(dirname "$0")/host/boot-and-run" pool --spare-gpus
