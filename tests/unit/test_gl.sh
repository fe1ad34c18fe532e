#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# mgpu-gl without a GPU, on Mesa's software: its scenes have the pixels that it
# says they must have, its loads draw, and it says what it cannot do.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
export BUILD=${BUILD:-$top/build}
gl=$BUILD/guest/mgpu-gl
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"

must 'mgpu-gl cannot be built' make -s -C "$top/tools/guest" "$gl"

software=(--offscreen --card none --software)

if ! out=$("$gl" "${software[@]}" --load light --mode 64x64 --frames 1 2>&1); then
	note "$out"
	skip_all 'no GL by software here'
fi

scenes()
{
	"$gl" "${software[@]}" --verify --frames 3 >"$tmp/v" || echo "status $?"
	tail -n 1 "$tmp/v" | jq -e '.right and .rounds == 3 and .failed == 0 and
		.scenes + .skipped == 48 and .skipped <= 3' >/dev/null || show "$tmp/v"
}
behaves 'all scenes have the pixels that they must have' scenes

loads()
{
	for load in cube light flood finish upload; do
		"$gl" "${software[@]}" --load $load --mode 320x200 --frames 30 --name $load \
			>"$tmp/l" || echo "$load: status $?"
		tail -n 1 "$tmp/l" | jq -e --arg load $load '.load == $load and
			.name == $load and .frames == 30 and .fps > 0 and .cpu_s > 0 and
			.width == 320 and .height == 200 and .frame_ms_median > 0 and
			.frame_ms_median <= .frame_ms_p95 and .frame_ms_p95 <= .frame_ms_p99 and
			.frame_ms_p99 <= .frame_ms_max' >/dev/null || show "$tmp/l"
	done
}
behaves 'each load draws as many frames as it is told, and says how fast' loads

frame_rate()
{
	"$gl" "${software[@]}" --load light --mode 64x64 --fps 50 --seconds 1.5 >"$tmp/f" ||
		echo "status $?"
	# never faster; slower if the machine is busy
	tail -n 1 "$tmp/f" | jq -e '.fps <= 50.7 and .seconds >= 1.5' >/dev/null || show "$tmp/f"
	grep -q '^gl name=gl t=[1-9]' "$tmp/f" || { echo 'no line for a second'; cat "$tmp/f"; }
}
behaves 'a frame rate is kept to' frame_rate

wrong_calls()
{
	refused "$gl" 2 'cube, light, flood, finish or upload' --load teapot
	refused "$gl" 2 'a number from 1' --work 0
	refused "$gl" 2 'unexpected argument' here
	refused "$gl" 2 'invalid option' --cards /nowhere
	refused "$gl" 2 'needs a value' --card
	refused "$gl" 1 '1024x768' "${software[@]}" --mode large
	refused "$gl" 1 'at most 64' "${software[@]}" --load upload --work 65
	refused "$gl" 1 'cannot open /nowhere' --card /nowhere
	refused "$gl" 1 'cannot open /nowhere' --offscreen --card /nowhere
	refused "$gl" 1 'processors would render' --offscreen --card none
}
behaves 'a wrong call is refused with the reason' wrong_calls

done_testing
