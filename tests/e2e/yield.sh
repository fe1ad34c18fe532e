#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# timeout: 300
#
# A test host stands still, and its clock with it, while the file of MGPU_YIELD_TO exists,
# and its time limit does not go on.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

echo 'TAP version 13'
echo 1..2
# In the test host: say so, and how many seconds have passed after five.
command='begin=$(cut -d . -f 1 /proc/uptime); echo begins; sleep 5
	echo $(($(cut -d . -f 1 /proc/uptime) - begin))'
start=
exec 3< <(MGPU_YIELD_TO=$tmp/file "$top/tools/vm/run" --timeout 15 -- sh -c "$command" 2>"$tmp/log"
	echo "status $?")
while read -r -u 3 line; do
	case $line in
	begins)
		start=$SECONDS
		: >"$tmp/file"
		sleep 15
		rm "$tmp/file" ;;
	'status '*) status=${line#* } ;;
	*)	passed=$line ;;
	esac
done
took=$((SECONDS - ${start:-SECONDS}))

bad=0
verdict()	# NUMBER DESCRIPTION COMMAND...
{
	local n=$1 what=$2
	shift 2

	if "$@"; then
		echo "ok $n - $what"
		return
	fi
	sed 's/^/# /' "$tmp/log"
	echo "# status ${status:-none}, ${passed:-no} seconds in the test host, $took here"
	echo "not ok $n - $what"
	bad=1
}
verdict 1 'the time limit does not go on' [ "${status:-none}" = 0 ]
# It stops after at most a second, and the whole seconds of three clocks are compared.
verdict 2 'the clock stands still' [ "${passed:-999}" -le $((took - 15 + 3)) ]
exit $bad
