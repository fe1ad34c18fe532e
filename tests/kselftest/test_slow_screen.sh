#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A VMM that looks at its screen slowly, on a back end that copies a frame only when the
# VMM looks (mgpu_soft's parameter scanout).
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$top/build}
# shellcheck source=tests/lib/soft.sh
. "$top/tests/lib/soft.sh"

soft scanout=lazy || exit 1
MGPU_ONLY=looked_at_slowly "$BUILD/kselftest/test_starved"
