#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The modules build without a warning at W=1.
set -uo pipefail

cd "$(dirname "$0")/../.." || exit 1
BUILD=${BUILD:-$PWD/build}
dir=$BUILD/kmod/${KERNEL:-6.1}

echo 'TAP version 13'
if [ ! -f "$dir/mgpu.ko" ]; then
	echo '1..0 # SKIP the modules are not built, run: make kmod'
	exit 4
fi
echo 1..1
if [ -s "$dir/warnings.log" ]; then
	sed 's/^/# /' "$dir/warnings.log"
	echo 'not ok 1 - W=1 is silent'
	exit 1
fi
echo 'ok 1 - W=1 is silent'
