#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Run the kernel self-tests; called in the test host by tests/run, or by hand:
#
#   tools/vm/run -- tests/kselftest/run-in-vm.sh [TEST]...
#   tools/vm/run --gpu virtio -- tests/kselftest/run-in-vm.sh TEST...
#
# Loads the modules, runs each test program of TEST_PROGS and TEST_GEN_PROGS
# in the manner of kselftest, unloads the modules and sees that nothing is
# left. Where there is a GPU the back end is the one for it, and the tests are to
# be those that need one; where there is none, those skip themselves. A test whose opening
# comment has a line 'soft: PARAMETER...' gets mgpu_soft with these parameters. The
# programs' output is in $OUT/NAME.log; standard output is one line when a program
# starts and one when it ends, which tests/run reads:
#
#   @start NAME
#   @done NAME STATUS
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
export BUILD=${BUILD:-$top/build}
export KERNEL=${KERNEL:-6.1}
: "${OUT:=$(mktemp -d)}"
export OUT

if [ $# -eq 0 ]; then
	mapfile -t tests < <("$top/tests/run" --list-kselftest)
	set -- "${tests[@]}"
fi

timeout=45
if [ -f "$here/settings" ]; then
	t=$(sed -n 's/^timeout=\([0-9]*\).*/\1/p' "$here/settings")
	timeout=${t:-$timeout}
fi
# 0 means no limit to kselftest; here the whole run has one.
[ "$timeout" -gt 0 ] || timeout=3600
timeout=$((timeout * ${MGPU_SLOW:-1}))

# Run a step of our own as a test program with one result.
step()	# NAME DESCRIPTION COMMAND...
{
	local name=$1 what=$2 rc
	shift 2

	echo "@start $name"
	{
		echo "TAP version 13"
		echo "1..1"
		if "$@" 2>&1 | sed 's/^/# /'; then
			echo "ok 1 - $what"
			rc=0
		else
			echo "not ok 1 - $what"
			rc=1
		fi
	} >"$OUT/$name.log"
	rc=$(grep -c '^not ok' "$OUT/$name.log")
	echo "@done $name $rc"
	return "$rc"
}

failed=0
# Parameters that mgpu_soft was loaded with.
parameters=()

load_all()
{
	if [ -n "${MGPU_GPU-}" ]; then
		"$top/tools/vm/modules" load mgpu_virtio
	else
		# for tests that load it anew themselves, too
		export MGPU_SOFT="${parameters[*]}"
		"$top/tools/vm/modules" load mgpu_soft "${parameters[@]}"
	fi
}

# Load mgpu_soft with the parameters that a test asks for, unless it has them.
load_for()	# TEST
{
	local source=$here/$1 wanted=()

	[ -z "${MGPU_GPU-}" ] || return 0
	[ -f "$source" ] || source=$here/${1##*/}.c
	[ ! -f "$source" ] || read -ra wanted < <(head -c 4096 "$source" |
		LC_ALL=C sed -nE 's/^(#| \*) soft: //p')
	[ "${wanted[*]}" != "${parameters[*]}" ] || return 0
	parameters=("${wanted[@]}")
	[ ! -d /sys/module/mgpu_soft ] || rmmod mgpu_soft || return
	load_all
}

# Clean up after a case that crashed or ran out of time, so that its vGPUs do not disturb
# the next program. Prints what was left. Returns 2 if a vGPU cannot be removed: the
# modules then cannot be unloaded, and whoever tries waits for ever.
tidy()	# STATUS
{
	local vgpu stuck=no left=

	for vgpu in /sys/bus/mdev/devices/*; do
		[ -e "$vgpu" ] || continue
		left+=" ${vgpu##*/}"
		timeout 20 sh -c 'echo 1 >"$1/remove"' sh "$vgpu" &
		# It may wait where no signal reaches it.
		for _ in $(seq 250); do
			[ -e "$vgpu" ] || break
			sleep 0.1
		done
		if [ -e "$vgpu" ]; then
			echo "# cannot remove ${vgpu##*/}"
			stuck=yes
		fi
	done
	[ -z "$left" ] || echo "# vGPUs that were left behind:$left"
	[ $stuck = no ] || return 2
	[ "$1" -ne 0 ] && [ "$1" -ne 4 ] || return 0
	"$top/tools/vm/modules" unload && load_all || echo '# the modules cannot be loaded anew'
}

step modules-load 'the modules load' load_all || exit 1

for t in "$@"; do
	name=${t##*/}
	case $t in
	/*)	prog=$t ;;
	*)	prog=$here/$t
		[ -x "$prog" ] || prog=$BUILD/kselftest/$t ;;
	esac
	echo "@start $name"
	echo "mgpu-test: $name starts" >/dev/kmsg
	load_for "$t" || { echo "run-in-vm: mgpu_soft ${parameters[*]} cannot be loaded" >&2; exit 1; }
	(cd "$here" && timeout -k 5 "$timeout" "$prog") \
		</dev/null >"$OUT/$name.log" 2>&1
	rc=$?
	tidy $rc >"$OUT/left" 2>&1
	stuck=$?
	if [ -s "$OUT/left" ]; then
		cat "$OUT/left" >>"$OUT/$name.log"
		# a passing test leaves nothing
		[ $rc -ne 0 ] || rc=1
	fi
	rm -f "$OUT/left"
	echo "mgpu-test: $name ended with $rc" >/dev/kmsg
	[ $rc -eq 0 ] || [ $rc -eq 4 ] || failed=1
	echo "@done $name $rc"
	[ $stuck -ne 2 ] || exit 1
done

step modules-unload 'the modules unload and leave nothing behind' \
	"$top/tools/vm/modules" unload || failed=1
exit $failed
