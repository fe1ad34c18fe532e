# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# For tests that need mgpu_soft with other parameters: it is loaded anew, and at the
# end once more as it was. To be sourced in the test host, where $top and $BUILD are.

: "${top:?}"
if [ -n "$(ls /sys/bus/mdev/devices 2>/dev/null)" ]; then
	echo 'TAP version 13'
	echo '1..0 # SKIP there are vGPUs, which keep mgpu_soft loaded'
	exit 4
fi

soft()		# PARAMETER...
{
	if [ -d /sys/module/mgpu_soft ]; then
		rmmod mgpu_soft || return
	fi
	"$top/tools/vm/modules" load mgpu_soft "$@"
}
trap soft EXIT

soft_refuses()	# PARAMETER
{
	soft "$1" >/dev/null 2>&1 || return 0
	echo "Bail out! mgpu_soft takes $1"
	exit 1
}
