#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# gpuctl on the loaded module: what it sets is in force, what it prints is what
# the module says. Its command line by itself is tests/unit/test_gpuctl.sh's.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$top/build}
gpuctl=$BUILD/ctl/gpuctl
dev=mgpu_soft.0
types=/sys/class/mdev_bus/$dev/mdev_supported_types
vgpus=()
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
needs "$gpuctl" jq setpriv

cleanup()
{
	local uuid

	"$gpuctl" dev set $dev policy weighted job-timeout 4s
	for uuid in "${vgpus[@]}"; do
		echo 1 >"/sys/bus/mdev/devices/$uuid/remove"
	done
}
at_exit cleanup

create()	# TYPE
{
	local uuid

	uuid=$(cat /proc/sys/kernel/random/uuid)
	echo "$uuid" >"$types/mgpu_soft-$1/create" || exit 1
	vgpus+=("$uuid")
}

asserts='holds has'
# A filter over JSON that is true.
holds()		# FILTER WORD...
{
	local filter=$1
	shift

	"$gpuctl" -j "$@" >"$tmp/json" || echo "gpuctl -j $*: status $?"
	jq -e "$filter" "$tmp/json" >/dev/null ||
		echo "gpuctl -j $*: not so: $filter: $(cut -c -400 "$tmp/json")"
}

settings='[.weight, ."fps-limit", ."gpu-limit", ."gpu-period", ."gpu-burst"]'

has()		# VGPU WEIGHT FPS-LIMIT GPU-LIMIT GPU-PERIOD GPU-BURST
{
	holds "$settings == [$2, $3, $4, $5, $6]" vgpu show "$1"
}

create small
create large
a=${vgpus[0]}
b=${vgpus[1]}

vgpu_settings()
{
	"$gpuctl" vgpu set "$a" weight 7 fps 29.97 gpu-limit 30.5% period 10ms burst 500us
	has "$a" 7 29970 305000 10000 500
	"$gpuctl" vgpu set "$a" gpu-limit 250000ppm
	has "$a" 7 29970 250000 10000 500
	"$gpuctl" vgpu set "$a" period 1s
	has "$a" 7 29970 250000 1000000 500
	"$gpuctl" vgpu set "$a" burst 0
	has "$a" 7 29970 250000 1000000 0
	"$gpuctl" vgpu set "$a" gpu-limit none fps none
	has "$a" 7 0 0 1000000 0
	"$gpuctl" vgpu set "$a" mode 800x600
	holds '[."mode-width", ."mode-height", .weight] == [800, 600, 7]' vgpu show "$a"
	"$gpuctl" vgpu set "$a" mode max
	holds '[."mode-width", ."mode-height"] == [1024, 768]' vgpu show "$a"
	refused "$gpuctl" 1 "mode-width.*largest mode of the vGPU's type" vgpu set "$a" mode 1025x768
}
behaves 'every setting of a vGPU is set, alone and with others' vgpu_settings

batch()
{
	"$gpuctl" vgpu set "$a" weight 1 gpu-limit 10% period 100ms "${b:0:13}" weight 2 gpu-limit 20%
	has "$a" 1 0 100000 100000 0
	has "${b:0:13}" 2 0 200000 100000 0
	none=$(cat /proc/sys/kernel/random/uuid)
	printf '%s weight 5 burst 1ms # one\n\n%s gpu-limit 40%%\n' "$a" "$none" >"$tmp/batch"
	refused "$gpuctl" 1 "$none.*no vGPU has this uuid" vgpu set -b "$tmp/batch"
	has "$a" 1 0 100000 100000 0
	sed -i "s/$none/$b/" "$tmp/batch"
	"$gpuctl" vgpu set -b "$tmp/batch"
	has "$a" 5 0 100000 100000 1000
	has "$b" 2 0 400000 100000 0
}
behaves 'a batch of vGPUs is set as a whole or not at all' batch

vgpu_shown()
{
	"$gpuctl" vgpu show "${b:0:13}" >"$tmp/out" || echo "status $?"
	for line in 'gpu-limit:           40%' 'gpu-period:          100ms' \
		'gpu-burst:           0us' '  timeouts:          0' \
		'mode-width:          3840' 'mode-height:         2160' \
		'frame-interval-hist: -' 'latency-hist:        -'; do
		grep -qxF -e "$line" "$tmp/out" || echo "no line '$line'"
	done
	holds '[.stats[]] | length == 20 and all(. == 0)' vgpu show "$b"
	holds 'has("latency-hist") and ."latency-hist" == null' vgpu show "$b"
	holds 'length == 2 and all(has("gpu-limit"))' vgpu list
	"$gpuctl" vgpu list | grep -q 'GPU-LIMIT' || echo 'the list has no GPU-LIMIT'
}
behaves 'settings and counters of a vGPU are shown' vgpu_shown

device_settings()
{
	holds '.policy == "weighted" and ."builtin-policy" == "weighted" and ."job-timeout" == 4000' dev show $dev
	"$gpuctl" dev set $dev policy fixed job-timeout 2.5s
	holds '.policy == "fixed" and ."builtin-policy" == "fixed" and ."job-timeout" == 2500' dev show $dev
	"$gpuctl" dev set "$("$gpuctl" -j dev show $dev | jq .id)" policy best-effort
	holds '.[0].policy == "best-effort" and .[0]."job-timeout" == 2500' dev list
	"$gpuctl" dev show $dev >"$tmp/out"
	for line in 'policy:              best-effort' 'job-timeout:         2.5s'; do
		grep -qxF -e "$line" "$tmp/out" || echo "no line '$line'"
	done
	refused "$gpuctl" 1 "policy 'fair': .*weighted, equal, best-effort or fixed" dev set $dev policy fair job-timeout 9s
	holds '.policy == "best-effort" and ."job-timeout" == 2500' dev show $dev
	refused "$gpuctl" 1 "no device is named 'mgpu_hard.0'" dev set mgpu_hard.0 policy fixed
}
behaves 'policy and timeout of a device are set and shown' device_settings

types_shown()
{
	local small='.types[] | select(.name == "mgpu_soft-small")'

	holds ".[0].dev == \"$dev\" and (.[0] | $small | .available >= 0 and
		(.description | test(\"memory 32 MiB.*resources 4096, contexts 0\")))" type show
	holds ".[0] | $small | .available >= 0" type show $dev
	"$gpuctl" type show $dev | grep '^mgpu_soft-large-render .*contexts 256' >/dev/null ||
		echo 'no large-render with contexts in the table'
	refused "$gpuctl" 1 nowhere type show nowhere
}
behaves 'types are shown with their limits' types_shown

events()
{
	timeout 30 "$gpuctl" -j monitor -n 3 >"$tmp/json" 2>"$tmp/err" &
	timeout 30 "$gpuctl" monitor -n 3 >"$tmp/text" 2>>"$tmp/err" &
	# until both have heard enough: when they begin to listen is not known
	while [ -n "$(jobs -r)" ]; do
		"$gpuctl" dev set $dev policy equal
		"$gpuctl" dev set $dev policy fixed
		sleep 0.1
	done
	wait
	cat "$tmp/err"
	jq -se 'length == 3 and all(.event == "dev-policy-ntf" and .dev.name == "'$dev'"
		and (.dev.policy == "equal" or .dev.policy == "fixed"))' "$tmp/json" >/dev/null ||
		echo "events: $(cat "$tmp/json")"
	[ "$(grep -c " policy  dev [0-9]* $dev policy \(equal\|fixed\)$" "$tmp/text")" = 3 ] ||
		echo "events: $(cat "$tmp/text")"
}
behaves 'a change of policy is an event' events

top_shows()
{
	"$gpuctl" dev set $dev policy equal
	holds '(.devs[0] | .name == "'$dev'" and .policy == "equal" and .vgpus == 2)
		and ([.vgpus[]."gpu-limit"] | sort == [100000, 400000])
		and all(.vgpus[]; ."gpu-share" == 0 and ."limited-share" == 0)' top -n 1 -d 0.1
	"$gpuctl" top -n 1 -d 0.1 >"$tmp/out"
	grep -q "^$dev: policy equal, 0 of 2 vGPUs wait for 1 engine$" "$tmp/out" ||
		echo "top: $(cat "$tmp/out")"
	grep -q "${a:0:8} .* 10% " "$tmp/out" || echo "top: $(cat "$tmp/out")"
}
behaves 'top shows policy and limits' top_shows

without_capability()
{
	local words

	for words in 'dev list' "dev show $dev" 'vgpu list' "vgpu show $a" \
		"vgpu set $a weight 5" 'ctx list' 'top -n 1' 'monitor -n 1' \
		'monitor contexts -n 1'; do
		# shellcheck disable=SC2086
		refused timeout 1 'not permitted: .*CAP_NET_ADMIN' 20 \
			setpriv --inh-caps=-all --bounding-set=-all "$gpuctl" $words
	done
}
behaves 'without CAP_NET_ADMIN each command says what it needs' without_capability

done_testing
