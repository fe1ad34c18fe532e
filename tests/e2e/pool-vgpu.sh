#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# timeout: 1200
#
# mgpu-poold with the distribution's libvirt, and guests that run: a vGPU that libvirt makes is
# attached on request, used, released when it is idle, and given to another VM.
top=$(cd "$(dirname "$0")/../.." && pwd)
suite=${LIBVIRT_SUITE:-bookworm}
if [ ! -e "${BUILD:-$top/build}/libvirt/$suite/.complete" ]; then
	echo 'TAP version 13'
	echo '1..0 # SKIP no libvirt to test with; run: make libvirt'
	exit 4
fi
exec "$top/tests/e2e/host/boot-and-run" pool-vgpu --env "LIBVIRT_SUITE=$suite"
