#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# sparse, with the endian checks, has nothing to say about the modules.
set -uo pipefail

cd "$(dirname "$0")/../.." || exit 1
BUILD=${BUILD:-$PWD/build}
KERNEL=${KERNEL:-6.1}
kdir=$BUILD/kernel/$KERNEL/kdir
dir=$BUILD/kmod/$KERNEL

echo 'TAP version 13'
if ! command -v sparse >/dev/null; then
	echo '1..0 # SKIP sparse is not installed'
	exit 4
fi
if [ ! -f "$dir/mgpu.ko" ]; then
	echo '1..0 # SKIP the modules are not built, run: make kmod'
	exit 4
fi

echo 1..1
exec 9>"$dir/.lock"
flock 9
# What is built is up to date; C=2 then runs sparse and nothing else.
if ! out=$(make -s -C "$kdir" M="$dir" W=1 C=2 -j"$(nproc)" modules 9>&- 2>&1); then
	printf '%s\n' "$out" | sed 's/^/# /'
	echo 'not ok 1 - sparse runs'
	exit 1
fi
# The kernel's own headers are not ours to mend.
ours=$(printf '%s\n' "$out" | grep -E "^($dir/)?(kmod|include)/|$dir" |
	grep -E 'warning:|error:' || true)
if [ -z "$ours" ]; then
	echo 'ok 1 - sparse is silent about the modules'
else
	printf '%s\n' "$ours" | sed "s,$dir/,,; s/^/# /"
	echo 'not ok 1 - sparse is silent about the modules'
	exit 1
fi
