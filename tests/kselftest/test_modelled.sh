#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# mgpu_soft with the engine of a described GPU. A frame of 1024x768 pixels takes 98 ms, a command 0.1 ms.
#
# needs: quiet
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$top/build}
# shellcheck source=tests/lib/soft.sh
. "$top/tests/lib/soft.sh"

soft_refuses engine=gpu
soft_refuses model=
soft_refuses model=voodoo
soft_refuses model=t4,fill=0
soft_refuses model=slowdown=100001
soft engine=modelled model=uhd630,fill=4000,command=200,slowdown=500 || exit 1
"$BUILD/kselftest/test_modelled"
