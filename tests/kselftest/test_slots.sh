#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The tests of contexts again, on a device with two slots (mgpu_soft's parameters
# engines and cpus).
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$top/build}

if [ -n "$(ls /sys/bus/mdev/devices 2>/dev/null)" ]; then
	echo 'TAP version 13'
	echo '1..0 # SKIP there are vGPUs, which keep mgpu_soft loaded'
	exit 4
fi

again()		# PARAMETER...
{
	rmmod mgpu_soft && "$top/tools/vm/modules" load mgpu_soft "$@"
}

trap again EXIT
if again cpus=none >/dev/null 2>&1; then
	echo 'Bail out! mgpu_soft takes cpus=none'
	exit 1
fi
"$top/tools/vm/modules" load mgpu_soft cpus=0-1 || exit 1
if [ "$(cat /sys/module/mgpu_soft/parameters/engines)" != 2 ]; then
	echo 'Bail out! two CPUs are not two engines'
	exit 1
fi
"$BUILD/kselftest/test_context"
