#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The tests of the display again, on a back end that copies a frame only when the
# VMM looks (mgpu_soft's parameter scanout).
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
if again scanout=never >/dev/null 2>&1; then
	echo 'Bail out! mgpu_soft takes scanout=never'
	exit 1
fi
"$top/tools/vm/modules" load mgpu_soft scanout=lazy || exit 1
"$BUILD/kselftest/test_display"
