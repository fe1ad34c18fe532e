#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Processors of the engines (mgpu_soft's parameter cpus) that go offline and come back
# while there are jobs: frames and results go on, and are right.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$top/build}
programs=$BUILD/kselftest
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
# shellcheck source=tests/lib/soft.sh
. "$top/tests/lib/soft.sh"
rounds=2
[ -z "${MGPU_LONG-}" ] || rounds=20

# The last processor, which the test host does not need.
cpu=$(($(nproc --all) - 1))
switch=/sys/devices/system/cpu/cpu$cpu/online
load=
jobs=

finish()
{
	echo 1 >"$switch"
	[ -z "$load" ] || kill "$load" 2>/dev/null
	[ -z "$jobs" ] || kill "$jobs" 2>/dev/null
	wait
	soft
}

if [ $cpu -lt 1 ] || [ ! -w "$switch" ]; then
	skip_all 'no processor can be taken offline'
fi
at_exit finish

frames()	# prints how many were shown
{
	local before
	before=$(wc -l <"$tmp/load")
	kill -USR1 "$load"
	await 10 more_lines "$tmp/load" "$before" &&
		tail -n 1 "$tmp/load" | cut -d ' ' -f 1
}

more_lines()	# FILE LINES
{
	[ "$(wc -l <"$1")" -gt "$2" ]
}

# Until the load has shown this many frames more.
shows()		# FRAMES
{
	local from now
	from=$(frames) || return
	for _ in $(seq $((100 * slow))); do
		now=$(frames) || return
		[ "$now" -lt $((from + $1)) ] || return 0
		sleep 0.1
	done
	echo "frames: $from, later ${now:-none}"
	return 1
}

# A job of a context; prints its digest.
compute()
{
	local before
	before=$(wc -l <"$tmp/jobs")
	echo "job 1 mandelbrot 100" >&"$to_jobs"
	${1:+"$@"}
	await 60 more_lines "$tmp/jobs" "$before" || return
	tail -n 1 "$tmp/jobs" | cut -d ' ' -f 3
}

online()	# 0|1
{
	echo "$1" >"$switch" || bad "cpu$cpu: cannot write $1"
	[ "$(cat "$switch")" = "$1" ] || bad "cpu$cpu: online is not $1"
}

engines()
{
	local pid
	for pid in $(pgrep '^mgpu_soft/'); do
		grep -H Cpus_allowed_list "/proc/$pid/status"
	done
}

explain()
{
	engines
	tail -n 3 "$tmp/load" "$tmp/jobs"
	dmesg | tail -n 5
}

try_with()	# CPUS
{
	local want got

	soft "cpus=$1" || { bad "mgpu_soft cpus=$1"; return; }
	# a job may take long where processors are emulated
	"$BUILD/ctl/gpuctl" dev set mgpu_soft.0 job-timeout 60s ||
		bad 'gpuctl dev set'
	: >"$tmp/load"
	: >"$tmp/jobs"
	"$programs/vgpu-load" 256 >"$tmp/load" &
	load=$!
	exec {to_jobs}> >(exec "$programs/vgpu-compute" >"$tmp/jobs")
	jobs=$!
	await 10 test -s "$tmp/load" || bad 'no vGPU for frames'
	await 10 test -s "$tmp/jobs" || bad 'no vGPU for jobs'
	want=$(compute)
	[[ $want =~ ^[0-9a-f]+$ ]] || bad "a job without a digest: $want"
	for _ in $(seq $rounds); do
		got=$(compute online 0)
		[ "$got" = "$want" ] || bad "digest $got when cpu$cpu goes, not $want"
		problem+=$(shows 20)
		got=$(compute online 1)
		[ "$got" = "$want" ] || bad "digest $got when cpu$cpu comes, not $want"
		problem+=$(shows 20)
	done
	exec {to_jobs}>&-
	wait "$jobs" || bad "vgpu-compute ended with $?"
	jobs=
	kill "$load"
	wait "$load" || bad "vgpu-load ended with $?"
	load=
}

plan 2
check 'an engine goes on without the processor that it is bound to, and when it is back' \
	try_with $cpu
check 'two engines go on with one of their processors, and with both again' \
	try_with "$((cpu - 1))-$cpu"
done_testing
