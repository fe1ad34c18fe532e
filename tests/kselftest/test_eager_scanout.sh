#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The tests of the display again, on a back end whose engine copies a frame when the guest
# flushes it (mgpu_soft's parameter scanout).
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$top/build}
# shellcheck source=tests/lib/soft.sh
. "$top/tests/lib/soft.sh"

soft_refuses scanout=never
soft scanout=eager || exit 1
"$BUILD/kselftest/test_display"
