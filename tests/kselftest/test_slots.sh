#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The tests of contexts again, on a device with two slots (mgpu_soft's parameters
# engines and cpus).
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$top/build}
# shellcheck source=tests/lib/soft.sh
. "$top/tests/lib/soft.sh"

soft_refuses cpus=none
soft cpus=0-1 || exit 1
if [ "$(cat /sys/module/mgpu_soft/parameters/engines)" != 2 ]; then
	echo 'Bail out! two CPUs are not two engines'
	exit 1
fi
"$BUILD/kselftest/test_context"
