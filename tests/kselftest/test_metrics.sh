#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# mgpu-exporter on the loaded module: what it prints is what gpuctl prints, with histograms of
# frames that were shown, and it needs one capability. unit/test_metrics.py tests what needs no
# module.
#
# Its jobs are flushes that the engine copies.
# soft: scanout=eager
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$top/build}
exporter=$BUILD/ctl/mgpu-exporter
gpuctl=$BUILD/ctl/gpuctl
load=$BUILD/kselftest/vgpu-load
types=/sys/class/mdev_bus/mgpu_soft.0/mdev_supported_types
vgpus=()
pid=
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
needs "$exporter" "$gpuctl" "$load" jq python3 setpriv
export MGPUD_SOCKET=/nonexistent MGPU_REMOTE_CONTROL=/nonexistent

cleanup()
{
	local uuid

	[ -z "$pid" ] || { kill "$pid"; wait "$pid"; }
	for uuid in "${vgpus[@]}"; do
		echo 1 >"/sys/bus/mdev/devices/$uuid/remove"
	done
}
at_exit cleanup

# Value of a sample of a vGPU.
sample()	# NAME UUID [LABELS]
{
	sed -n "s/^$1{parent=\"mgpu_soft.0\",uuid=\"$2\"${3-}} //p" "$tmp/metrics"
}

uuid=$(cat /proc/sys/kernel/random/uuid)
echo "$uuid" >"$types/mgpu_soft-small/create" || bail 'no vGPU'
vgpus+=("$uuid")

# While nothing changes the counters: a vGPU that was never open has no histograms.
closed()
{
	"$exporter" print >"$tmp/metrics" || echo "status $?"
	grep -qx 'mgpu_source_up{source="module"} 1' "$tmp/metrics" || show "$tmp/metrics"
	[ "$(sample mgpu_vgpu_frames_total "$uuid")" = 0 ] || echo 'frames'
	[ "$(sample mgpu_vgpu_open "$uuid")" = 0 ] || echo 'open'
	[ -z "$(sample mgpu_vgpu_latency_seconds_count "$uuid")" ] || echo 'a histogram'
	[ -z "$(sample mgpu_vgpu_vmm_cpu_seconds_total "$uuid")" ] || echo 'CPU time'
	[ "$(sample mgpu_vgpu_frame_rate_limit_hertz "$uuid")" = +Inf ] || echo 'a limit'
}
behaves 'a vGPU that is not open has what is known of it' closed

# vgpu-load makes a vGPU, prints its UUID, and shows frames until it is ended.
"$load" 256 >"$tmp/load" &
pid=$!
await 40 test -s "$tmp/load" || bail 'no load'
loaded=$(cat "$tmp/load")

frames()
{
	"$gpuctl" -j vgpu show "$loaded" | jq -e '.stats.frames > 100' >/dev/null
}
await 60 frames || bail 'it shows no frames'
"$gpuctl" vgpu set "$loaded" fps 29.97 weight 300 gpu-limit 30.5% || bail 'gpuctl'

same()
{
	local before after key name value

	"$gpuctl" -j vgpu show "$loaded" >"$tmp/before"
	"$exporter" print >"$tmp/metrics" || echo "status $?"
	"$gpuctl" -j vgpu show "$loaded" >"$tmp/after"
	while read -r key name; do
		before=$(jq -r "$key" "$tmp/before")
		after=$(jq -r "$key" "$tmp/after")
		value=$(sample "$name" "$loaded")
		awk -v a="$before" -v v="$value" -v b="$after" \
			'BEGIN { exit !(v != "" && a <= v && v <= b) }' ||
			echo "$name: $before, $value, $after"
	done <<-END
		.stats.frames mgpu_vgpu_frames_total
		.stats.jobs mgpu_vgpu_jobs_total
		.stats.engine_s mgpu_vgpu_engine_seconds_total
		.stats.queue_s mgpu_vgpu_queue_seconds_total
		.stats.doorbells mgpu_vgpu_doorbells_total
		.weight mgpu_vgpu_weight
		.limit_fps mgpu_vgpu_frame_rate_limit_hertz
		.gpu_limit_share mgpu_vgpu_engine_limit_ratio
		.mem_limit_bytes mgpu_vgpu_memory_limit_bytes
		(.latency_hist|add) mgpu_vgpu_latency_seconds_count
		(.frame_interval_hist|add) mgpu_vgpu_frame_interval_seconds_count
	END
	value=$(sample mgpu_vgpu_frame_interval_seconds_count "$loaded")
	[ "${value:-0}" -gt 50 ] || echo "$value frames in the histogram"
	[ "$(sample mgpu_vgpu_frame_interval_seconds_bucket "$loaded" ',le="+Inf"')" = "$value" ] ||
		echo 'the last bucket is not the count'
	awk -v v="$(sample mgpu_vgpu_vmm_cpu_seconds_total "$loaded")" 'BEGIN { exit !(v > 0) }' ||
		echo 'no CPU time'
}
behaves 'a vGPU that shows frames has the counters that gpuctl prints' same

checked()
{
	[ -x "$BUILD/prometheus/promtool" ] || skip 'no promtool'
	"$BUILD/prometheus/promtool" check metrics <"$tmp/metrics" >"$tmp/out" 2>&1 || show "$tmp/out"
	[ ! -s "$tmp/out" ] || show "$tmp/out"
}
behaves 'promtool finds no fault in it' checked

nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
capability()
{
	"${nobody[@]}" --inh-caps=-all --ambient-caps=-all --bounding-set=-all "$exporter" print \
		>"$tmp/out" 2>"$tmp/err" || echo "status $?"
	grep -qx 'mgpu_source_up{source="module"} 0' "$tmp/out" || show "$tmp/out"
	! grep '^mgpu_vgpu_' "$tmp/out"
	grep -q 'not permitted: .*CAP_NET_ADMIN' "$tmp/err" || show "$tmp/err"
	"${nobody[@]}" --inh-caps=-all,+net_admin --ambient-caps=-all,+net_admin \
		--bounding-set=-all,+net_admin "$exporter" serve --listen 127.0.0.1:0 >"$tmp/port" &
	server=$!
	await 20 grep -q port "$tmp/port"
	python3 - "$(sed 's/.* //' "$tmp/port")" >"$tmp/out" <<-'END'
		import sys, urllib.request
		with urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/metrics") as answer:
		    print(answer.read().decode())
	END
	kill "$server"
	wait "$server" || echo "serve: status $?"
	grep -qx 'mgpu_source_up{source="module"} 1' "$tmp/out" || show "$tmp/out"
	grep -q "^mgpu_vgpu_latency_seconds_bucket{.*$loaded" "$tmp/out" || echo 'no histogram'
}
behaves 'one capability suffices, and without it vGPUs are absent' capability

done_testing
