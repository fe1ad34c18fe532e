#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# mgpu-trace without the module: its command line.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$top/build}
trace=$BUILD/ctl/mgpu-trace
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"

must 'mgpu-trace cannot be built' make -s -C "$top/ctl" trace BUILD="$BUILD"

wrong_calls()
{
	refused "$trace" 2 'no command; the command is: record -o FILE'
	refused "$trace" 2 "unknown command 'play'" play
	refused "$trace" 2 'record needs -o FILE' record
	refused "$trace" 2 "seconds 'x': must be a number from 0.1 to 100000" record -o "$tmp/f" -s x
	refused "$trace" 2 'seconds .0.: must be' record -o "$tmp/f" -s 0
	refused "$trace" 2 'seconds .nan.: must be' record -o "$tmp/f" -s nan
	refused "$trace" 2 "^mgpu-trace: unknown option --nonsense; 'mgpu-trace --help' lists all\$" record --nonsense
}
behaves 'calls that make no sense are refused' wrong_calls

manual_page()
{
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
}
behaves 'the manual page knows its options and columns' manual_page

no_module()
{
	[ ! -d /sys/module/mgpu ] || skip 'the module is loaded'
	refused "$trace" 1 'mgpu' record -o "$tmp/f" -s 1
	[ ! -e "$tmp/f" ] || echo 'it left a file'
}
behaves 'without the module it says so, and writes nothing' no_module

done_testing
