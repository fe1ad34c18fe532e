#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# gpuctl trace on the loaded module: the recording of vGPUs under load, with mgpud, keeps
# Perfetto's rules, and its tracks have what the module's own counters say.
# unit/test_gpuctl_trace_file.py tests recordings without the module.
#
# Its jobs are flushes that the engine copies.
# soft: scanout=eager
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$top/build}
gpuctl=$BUILD/ctl/gpuctl
mgpud=$BUILD/ctl/mgpud
load=$BUILD/kselftest/vgpu-load
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
needs "$gpuctl" "$mgpud" "$load" jq python3 setpriv
export MGPUD_SOCKET=$tmp/mgpud.sock
pids=()

cleanup()
{
	local pid

	for pid in "${pids[@]}"; do
		kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
	done
}
at_exit cleanup
# The loads leave little of two processors.
renice -n -15 $$ >/dev/null

start_load()	# FILE
{
	nice -n 15 "$load" 256 >"$1" &
	pids+=($!)
	await 40 test -s "$1" || bail 'no load'
}

stat_of()	# UUID NAME
{
	"$gpuctl" -j vgpu show "$1" | jq ".stats.$2"
}

start_load "$tmp/a"
start_load "$tmp/b"
a=$(cat "$tmp/a")
b=$(cat "$tmp/b")
"$gpuctl" vgpu set "$a" fps 20 || bail 'gpuctl'
printf '[mgpud]\nallocator = fea\n' >"$tmp/conf"
"$mgpud" --config "$tmp/conf" >"$tmp/out" 2>"$tmp/err" &
pids+=($!)
await 60 grep -q '^ready ' "$tmp/out" || bail "mgpud is not ready: $(cat "$tmp/err")"

# The counters between which the recording is.
"$gpuctl" trace record -o "$tmp/trace" -t 3600 --json >"$tmp/result" 2>"$tmp/err" &
recorder=$!
# It records when all of its programs are attached, and then looks where vGPUs stand.
attached()
{
	[ "$(find "/proc/$recorder/fd" -lname 'anon_inode:bpf_link' | wc -l)" -ge \
		"$(grep -c '^SEC("tp_btf/' "$top/bpf/jobs.bpf.c")" ]
}
await 60 attached || bail "it does not record: $(cat "$tmp/err")"
sleep 1
frames_before=$(stat_of "$a" frames)
preempted_before=$(stat_of "$b" preempted)
sleep $((4 * slow))
frames_after=$(stat_of "$a" frames)
preempted_after=$(stat_of "$b" preempted)
kill -INT $recorder
wait $recorder
ended_with=$?

ended()
{
	[ $ended_with -eq 0 ] || echo "status $ended_with: $(cat "$tmp/err")"
	[ "$(jq -r .ended "$tmp/result")" = interrupted ] || show "$tmp/result"
	[ "$(jq .lost "$tmp/result")" = 0 ] || show "$tmp/result"
	[ "$(jq .size_bytes "$tmp/result")" = "$(stat -c %s "$tmp/trace")" ] || show "$tmp/result"
}
behaves 'a signal ends a recording, in which no event was lost' ended

tracks()
{
	local name

	python3 "$top/tests/lib/perfetto.py" "$tmp/trace" >"$tmp/tracks" || return
	for name in "vGPUs/.*${a:0:8}/"{frames,throttled,waiting,'frame rate'} \
			"vGPUs/.*${b:0:8}/"{frames,waiting,'GPU share'} \
			mgpud 'devices/mgpu_soft.0/slot 0'; do
		grep -Eq "^[1-9][0-9]*	mgpu/$name\$" "$tmp/tracks" || echo "nothing on $name"
	done
	grep -q '^0	mgpu/lost events$' "$tmp/tracks" || show "$tmp/tracks"
}
behaves 'a recording keeps the rules of Perfetto, and has each track' tracks

counts()
{
	local frames preempted

	"$gpuctl" -j report "$tmp/trace" >"$tmp/figures" || echo "status $?"
	frames=$(jq ".vgpus[] | select(.uuid == \"$a\") | .frames" "$tmp/figures")
	[ "$frames" -ge $((frames_after - frames_before)) ] ||
		echo "$frames frames of $frames_before to $frames_after"
	[ "$frames_after" -gt "$frames_before" ] || echo 'no frames'
	preempted=$(jq ".vgpus[] | select(.uuid == \"$b\") | .preempted" "$tmp/figures")
	[ "$preempted" -ge $((preempted_after - preempted_before)) ] ||
		echo "$preempted preempted of $preempted_before to $preempted_after"
	jq -e --arg a "$a" '[.vgpus[] | select(.uuid == $a)][0] | .fps <= 21 and .held_share > 0' \
		"$tmp/figures" >/dev/null || show "$tmp/figures"
	jq -e '[.decisions[].decision] | index("allocator fea")' "$tmp/figures" >/dev/null ||
		show "$tmp/figures"
}
behaves 'its figures are those of the counters of the module' counts

page()
{
	"$gpuctl" report "$tmp/trace" -o "$tmp/report.html" || echo "status $?"
	grep -q "${a:0:8}" "$tmp/report.html" || echo 'no vGPU'
	grep -q 'No events were lost' "$tmp/report.html" || echo 'no sentence'
}
behaves 'a report has a page' page

one()
{
	"$gpuctl" trace record -o "$tmp/one" -t 1 --vgpu "$b" >"$tmp/said" 2>&1 || show "$tmp/said"
	python3 "$top/tests/lib/perfetto.py" "$tmp/one" >"$tmp/tracks" || return
	grep -Eq "^[1-9][0-9]*	mgpu/vGPUs/.*${b:0:8}/frames" "$tmp/tracks" || show "$tmp/tracks"
	! grep "${a:0:8}" "$tmp/tracks"
}
behaves 'only the vGPU that is named is recorded' one

# The device has one slot: a second one would be of a job whose end was not seen.
begins()
{
	local i

	for ((i = 0; i < 6; i++)); do
		"$gpuctl" trace record -o "$tmp/short" -t 1 >"$tmp/said" 2>&1 || show "$tmp/said"
		python3 "$top/tests/lib/perfetto.py" "$tmp/short" >"$tmp/tracks" || return
		grep -q '	mgpu/devices/mgpu_soft.0/slot 0$' "$tmp/tracks" || show "$tmp/tracks"
		! grep '/slot 1$' "$tmp/tracks" || return
	done
}
behaves 'a job whose end is seen at the begin of a recording has left its slot' begins

rights()
{
	setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all,+net_admin \
		--ambient-caps=-all,+net_admin --bounding-set=-all,+net_admin \
		sh -c 'cd "$(mktemp -d)" && exec "$0" trace record -o file -t 1' "$gpuctl" \
		>"$tmp/said" 2>&1 && echo 'it records'
	grep -q 'run as root, or with CAP_BPF' "$tmp/said" || show "$tmp/said"
}
behaves 'without the right to load BPF programs it says what to do' rights

done_testing
