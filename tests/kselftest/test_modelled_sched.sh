#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The tests of the scheduler again, on the engine of a described GPU. Its times are about
# those of a processor that is emulated.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$top/build}
# shellcheck source=tests/lib/soft.sh
. "$top/tests/lib/soft.sh"

soft scanout=eager engine=modelled model=uhd630,slowdown=10 || exit 1
"$BUILD/kselftest/test_sched"
