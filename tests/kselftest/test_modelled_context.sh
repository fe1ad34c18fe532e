#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The tests of contexts again, on two engines of a described GPU. Its times are about
# those of a processor that is emulated.
#
# needs: quiet
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$top/build}
# shellcheck source=tests/lib/soft.sh
. "$top/tests/lib/soft.sh"

soft engine=modelled engines=2 model=uhd630,slowdown=300 || exit 1
"$BUILD/kselftest/test_context"
