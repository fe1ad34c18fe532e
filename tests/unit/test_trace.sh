#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# mgpu-trace without the module: what it makes of its command line.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$top/build}
trace=$BUILD/ctl/mgpu-trace
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"

if ! make -s -C "$top/ctl" trace BUILD="$BUILD" >"$tmp/make" 2>&1; then
	sed 's/^/# /' "$tmp/make"
	echo '1..1'
	echo 'not ok 1 mgpu-trace is built'
	exit 1
fi

problem=$(
	refused "$trace" 2 'no command; the command is: record -o FILE'
	refused "$trace" 2 'unknown command play' play
	refused "$trace" 2 'record needs -o FILE' record
	refused "$trace" 2 "seconds 'x': must be a number from 0.1 to 100000" record -o "$tmp/f" -s x
	refused "$trace" 2 'seconds .0.: must be' record -o "$tmp/f" -s 0
	refused "$trace" 2 'seconds .nan.: must be' record -o "$tmp/f" -s nan
	refused "$trace" 2 'try --help' record --nonsense
)
result "$problem" 'calls that make no sense are refused'

problem=$(
	man=$top/Documentation/man/mgpu-trace.8
	"$trace" --help >"$tmp/help" || echo "status $?"
	for o in $(grep -oe '--[a-z]*' "$tmp/help" | sort -u); do
		grep -qF -- "${o//-/\\-}" "$man" || echo "the manual page lacks $o"
	done
	columns=$(sed -n 's/.*begin_s=.*\\n\([a-z_,]*\)\\n".*/\1/p' "$top/ctl/trace/record.c")
	[ "$columns" = time_s,vgpu,frame,frames,cpu_s,engine_s,held_s ] ||
		echo "columns are '$columns'"
	for c in ${columns//,/ }; do
		grep -qx "\.B $c" "$man" || echo "the manual page lacks column $c"
	done
)
result "$problem" 'the manual page knows its options and columns'

if [ ! -d /sys/module/mgpu ]; then
	problem=$(refused "$trace" 1 'mgpu' record -o "$tmp/f" -s 1
		[ ! -e "$tmp/f" ] || echo 'it left a file')
	result "$problem" 'without the module it says so, and writes nothing'
else
	number=$((number + 1))
	echo "ok $number without the module it says so # SKIP the module is loaded"
fi

echo "1..$number"
exit $((failures > 0))
