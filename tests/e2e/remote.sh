#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# timeout: 1460
#
# OpenCL of the host in QEMU/KVM guests with the stock kernel and its in-tree virtio_gpu, by
# contexts of their vGPUs.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
out=${BUILD:-$here/../../build}/remote
# The guests find this on the file system that the test host lends them.
mkdir -p "$out/vendors"
gcc -std=gnu17 -O1 -Wall -Wextra -Werror -o "$out/busy" "$here/../remote/busy.c" -lOpenCL
realpath "$out/../ctl/libmgpu-opencl.so" >"$out/vendors/mgpu.icd"
exec "$here/host/boot-and-run" remote
