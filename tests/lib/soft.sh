# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# For tests that need mgpu_soft with other parameters. To be sourced in the test host,
# where $top and $BUILD are. At the end of the test mgpu_soft is loaded once more, as it
# was; a test with tests/lib/tap.sh, sourced before, calls soft itself, from a function
# for at_exit.

: "${top:?}"
if [ -n "$(ls /sys/bus/mdev/devices 2>/dev/null)" ]; then
	reason='there are vGPUs, which keep mgpu_soft loaded'
	! declare -F skip_all >/dev/null || skip_all "$reason"
	echo 'TAP version 13'
	echo "1..0 # SKIP $reason"
	exit 4
fi

soft()		# PARAMETER...
{
	if [ -d /sys/module/mgpu_soft ]; then
		rmmod mgpu_soft || return
	fi
	"$top/tools/vm/modules" load mgpu_soft "$@"
}
declare -F at_exit >/dev/null || trap soft EXIT

soft_refuses()	# PARAMETER
{
	soft "$1" >/dev/null 2>&1 || return 0
	echo "Bail out! mgpu_soft takes $1"
	exit 1
}
