#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# timeout: 900
#
# mdevctl and libvirt of the distribution: types, attributes, automatic starts, node devices,
# and a domain with a vGPU.  LIBVIRT_SUITE=trixie takes Debian 13's.
top=$(cd "$(dirname "$0")/../.." && pwd)
suite=${LIBVIRT_SUITE:-bookworm}
if [ ! -e "${BUILD:-$top/build}/libvirt/$suite/.complete" ]; then
	echo 'TAP version 13'
	echo '1..0 # SKIP no libvirt to test with; run: make libvirt'
	exit 4
fi
exec "$top/tests/e2e/host/boot-and-run" libvirt --env "LIBVIRT_SUITE=$suite"
