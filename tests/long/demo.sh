#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# timeout: 2400
#
# make demo's main job, tools/demo/run: it ends well, its files and its table say the
# same, every VM played under every policy, and no VM exceeded its limit.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
export BUILD=${BUILD:-$top/build} KERNEL=${KERNEL:-6.1}
export DEMO_OUT=${OUT:-$BUILD/check/long/demo}
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
plan 7
needs gnuplot jq python3
out=$DEMO_OUT
policies=(none weighted vgasa fea exact)

runs()
{
	local rc

	mkdir -p "$out"
	"$top/tools/demo/run" >"$out/said" 2>"$out/complaints"
	rc=$?
	sed -n 's/^demo: \(the emulated processor went wrong.*\); once more$/# retried: demo: \1/p' \
		"$out/complaints" >&"$tap_out"
	tail -n 20 "$out/complaints"
	return $rc
}
check 'the demo ends with status 0' runs || bail 'no demo'

# As many colours as a picture has, of which a plot has some and a screen many.
colours()	# FILE.png
{
	python3 - "$1" <<'END'
import struct, sys, zlib
with open(sys.argv[1], "rb") as f:
    data = f.read()
if data[:8] != b"\x89PNG\r\n\x1a\n":
    sys.exit("no PNG file")
at, pixels, header = 8, b"", None
while at < len(data):
    size, kind = struct.unpack(">I4s", data[at:at + 8])
    body = data[at + 8:at + 8 + size]
    if kind == b"IHDR":
        header = struct.unpack(">IIBB", body[:10])
    elif kind == b"IDAT":
        pixels += body
    at += 12 + size
width, height, depth, colour = header
pixels = zlib.decompress(pixels)
bytes_each = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour] * depth // 8 or 1
# The filter of a row makes other numbers of the same colours; one for all rows will do.
print(width, height, len({pixels[i:i + bytes_each]
                          for i in range(1, len(pixels) - bytes_each, bytes_each)}))
END
}

files()
{
	local f want width height found

	while read -r f want; do
		read -r width height found < <(colours "$out/$f") || { echo "$f: no picture"; continue; }
		[ "$((width * height))" -ge 480000 ] || echo "$f: ${width}x$height"
		[ "$found" -ge "$want" ] || echo "$f: $found colours"
	done <<-END
		plot.png 10
		modetest.png 10
		screen-a.png 50
		screen-b.png 50
		screen-c.png 50
	END
	for f in result.json replay-{best-effort,weighted}.json turns.json mgpud.log \
		"${policies[@]/#/trace-}"; do
		[[ $f != trace-* ]] || f+=.csv
		[ -s "$out/$f" ] || echo "$f: not there, or empty"
	done
}
behaves 'the pictures are not empty, and all files exist' files

played()
{
	local p

	for p in "${policies[@]}"; do
		jq -e --arg p "$p" '.runs[] | select(.policy == $p) |
			.seconds >= 27 and .periods >= 20 and (.turns | length) == 4 and
			.periods_without_f <= .periods / 10 and
			(.fps | length) == 3 and (.p99_ms | length) == 3 and
			all(.fps[]; . > 1) and all(.gpu_share[]; . > 0) and
			all(.cpu_share[]; . > 0) and all(.p99_ms[]; . > 0)' \
			"$out/result.json" >/dev/null ||
			echo "$p: $(jq -c --arg p "$p" '.runs[] | select(.policy == $p)' "$out/result.json")"
		# a frame is a line of the trace, which nothing fell out of
		for vgpu in $(awk -F, '!/^#/ && NR > 2 { print $2 }' "$out/trace-$p.csv" | sort -u); do
			[ "$(grep -c "^[0-9.]*,$vgpu," "$out/trace-$p.csv")" -ge 28 ] ||
				echo "$p: few frames of vGPU $vgpu in the trace"
		done
	done
	[ "$(jq '.runs | length' "$out/result.json")" -eq 5 ] || echo 'not five policies'
}
behaves 'every VM played under every policy' played

# The rows of the table have the figures of result.json, as far as they are printed.
table()
{
	jq -r '. as $all | .runs[] | . as $run | range(3) |
		"\($run.policy) \($all.workloads[.].name) \($run.fps[.]) \($run.p99_ms[.]) \($run.gpu_share[.] * 100)"' \
		"$out/result.json" >"$tmp/want"
	awk '
		$1 ~ /^(none|weighted|vgasa|fea|exact)$/ && $3 ~ /^[0-9]+x[0-9]+$/ { policy = $1; $1 = ""; $0 = $0 }
		$1 ~ /^[ABC]$/ && $2 ~ /^[0-9]+x[0-9]+$/ {
			sub(/%/, "", $6)
			print policy, $1, $3, $5, $6
		}' "$out/said" >"$tmp/got"
	[ "$(wc -l <"$tmp/got")" -eq 15 ] || echo "$(wc -l <"$tmp/got") rows"
	paste -d ' ' "$tmp/want" "$tmp/got" | awk '
		function far(a, b, by) { return a - b > by || b - a > by }
		$1 != $6 || $2 != $7 || far($3, $8, 0.051) || far($4, $9, 0.51) || far($5, $10, 0.51) {
			print "differs: " $0
		}'
}
behaves 'the table has the figures of result.json' table

# A limit is that of the period before, and changes a little after a period begins: in
# the sum over a turn no VM shows more than it was allowed. Two frames are the ends'.
kept()
{
	local said

	said=$(jq -rs --slurpfile info "$out/turns.json" '
		. as $records | $info[0].policies as $policies | $info[0].turns[] |
		select($policies[.policy].allocator != "none") | . as $turn |
		[$records[] | select(.time_s > $turn.start_s and .time_s <= $turn.end_s)] as $part |
		$part[0].vgpus[].uuid as $uuid |
		[$part[] | {t: .time_s, v: (.vgpus[] | select(.uuid == $uuid))}] as $mine |
		[range(1; $mine | length) as $i |
			{dt: ($mine[$i].t - $mine[$i - 1].t),
			 frames: ($mine[$i].v.frames - $mine[$i - 1].v.frames),
			 limit: ([$mine[$i - 1, $i].v | .target_fps * (.lead // 1)?] | max)}] |
		{frames: (map(.frames) | add), allowed: (map(.dt * .limit) | add),
		 unlimited: any(.[]; .limit == null)} |
		"\($turn.policy) \($uuid[-1:]) \(.frames) \(.allowed) \(.unlimited)"' "$out/mgpud.log")
	note "$said" >&"$tap_out"
	[ "$(wc -l <<<"$said")" -eq 36 ] || echo "not three VMs in twelve turns: $said"
	awk '$5 == "true" || $3 > 1.02 * $4 + 2 { print "policy, VM, frames, allowed: " $0 }' <<<"$said"
	# vgasa allows the same to all, whatever they do
	jq -e '.runs[] | select(.policy == "vgasa") | all(.fps[]; . <= 30.6)' \
		"$out/result.json" >/dev/null || echo 'vgasa: above 30 frames/s'
}
behaves 'no VM exceeded its limits' kept

# Limits that hold no VM back would be kept, too.
held()
{
	local total

	total=$(awk -F, '!/^#/ && NR > 2 { sum += $7 } END { print sum + 0 }' "$out/trace-fea.csv")
	note "frames were held for $total s under fea" >&"$tap_out"
	[ "$(jq -n "$total > 0.5")" = true ] || echo 'no frame was held'
	total=$(awk -F, '!/^#/ && NR > 2 { sum += $7 } END { print sum + 0 }' "$out/trace-none.csv")
	[ "$(jq -n "$total < 0.01")" = true ] || echo "held for $total s under none"
}
behaves 'frames were held under fea, and none under none' held

replayed()
{
	local f

	for f in best-effort weighted; do
		jq -e '(.runs | length) >= 1 and all(.runs[]; .mean < 0 and .mean > -20 and
			(.vms | length) == 3 and all(.vms[]; .fps > 0))' \
			"$out/replay-$f.json" >/dev/null || jq -c . "$out/replay-$f.json"
	done
	grep -q '^replay of none' "$out/said" || echo 'not in the report'
}
behaves 'the frames recorded are replayed' replayed

done_testing
