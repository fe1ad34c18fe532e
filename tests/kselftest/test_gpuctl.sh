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
needs "$gpuctl" jq setpriv python3

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

settings='[.weight, .limit_fps, .gpu_limit_share, .gpu_period_s, .gpu_burst_s]'

has()		# VGPU WEIGHT LIMIT_FPS GPU_LIMIT_SHARE GPU_PERIOD_S GPU_BURST_S
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
	has "$a" 7 29.97 0.305 0.01 0.0005
	"$gpuctl" vgpu set "$a" gpu-limit 250000ppm
	has "$a" 7 29.97 0.25 0.01 0.0005
	"$gpuctl" vgpu set "$a" period 1s
	has "$a" 7 29.97 0.25 1 0.0005
	"$gpuctl" vgpu set "$a" burst 0
	has "$a" 7 29.97 0.25 1 0
	"$gpuctl" vgpu set "$a" gpu-limit none fps none
	has "$a" 7 null null 1 0
	"$gpuctl" vgpu set "$a" mode 800x600
	holds '[.mode_width_px, .mode_height_px, .weight] == [800, 600, 7]' vgpu show "$a"
	"$gpuctl" vgpu set "$a" mode max
	holds '[.mode_width_px, .mode_height_px] == [1024, 768]' vgpu show "$a"
	"$gpuctl" vgpu set "$a" quarantine on
	holds '.quarantine == true' vgpu show "$a"
	"$gpuctl" vgpu list | grep -q '0, quarantine$' || echo 'the list tells of no quarantine'
	"$gpuctl" vgpu set "$a" quarantine off
	holds '.quarantine == false' vgpu show "$a"
	refused "$gpuctl" 1 "mode-width.*largest mode of the vGPU's type" vgpu set "$a" mode 1025x768
}
behaves 'every setting of a vGPU is set, alone and with others' vgpu_settings

batch()
{
	"$gpuctl" vgpu set "$a" weight 1 gpu-limit 10% period 100ms "${b:0:13}" weight 2 gpu-limit 20%
	has "$a" 1 null 0.1 0.1 0
	has "${b:0:13}" 2 null 0.2 0.1 0
	none=$(cat /proc/sys/kernel/random/uuid)
	printf '%s weight 5 burst 1ms # one\n\n%s gpu-limit 40%%\n' "$a" "$none" >"$tmp/batch"
	refused "$gpuctl" 1 "$none.*no vGPU has this uuid" vgpu set -b "$tmp/batch"
	has "$a" 1 null 0.1 0.1 0
	sed -i "s/$none/$b/" "$tmp/batch"
	"$gpuctl" vgpu set -b "$tmp/batch"
	has "$a" 5 null 0.1 0.1 0.001
	has "$b" 2 null 0.4 0.1 0
}
behaves 'a batch of vGPUs is set as a whole or not at all' batch

all_and_lists()
{
	"$gpuctl" vgpu set all weight 9 burst 0 fps 25
	has "$a" 9 25 0.1 0.1 0
	has "$b" 9 25 0.4 0.1 0
	"$gpuctl" vgpu set "${a:0:13},$b" weight 8 fps none
	has "$a" 8 null 0.1 0.1 0
	has "$b" 8 null 0.4 0.1 0
	refused "$gpuctl" 1 "$none.*no vGPU has this uuid" vgpu set "$a,$none" weight 7
	has "$a" 8 null 0.1 0.1 0
	refused "$gpuctl" 1 'duplicate vGPU in the batch' vgpu set all weight 7 "$a" fps 30
	has "$b" 8 null 0.4 0.1 0
	"$gpuctl" vgpu set "$a" weight 5 burst 1ms "$b" weight 2
}
none=$(cat /proc/sys/kernel/random/uuid)
behaves 'all vGPUs and lists of them are set as a whole or not at all' all_and_lists

stale()
{
	"$gpuctl" vgpu set "$a" fps 30 target 25
	holds '.target_stale == true' vgpu show "$a"
	holds '[.vgpus[] | select(.target_stale).uuid] == ["'"$a"'"]' vgpu list
	"$gpuctl" vgpu list | grep -q ' 25 stale ' || "$gpuctl" vgpu list
	holds '.fps_limit_by == "gpuctl" and .fps_target_by == "gpuctl"' vgpu show "$a"
	"$gpuctl" vgpu show "$a" | grep -q '^fps-target: *25, in force$' || "$gpuctl" vgpu show "$a"
	"$gpuctl" vgpu set "$a" gpu-limit 30% gpu-target 20%
	holds '.gpu_limit_by == "gpuctl" and .gpu_target_share == 0.2' vgpu show "$a"
	"$gpuctl" vgpu show "$a" | grep -q '^gpu-target: *20%, in force$' || "$gpuctl" vgpu show "$a"
	"$gpuctl" vgpu set "$a" gpu-target none gpu-limit 10%
	"$gpuctl" vgpu set "$a" target none
	holds '.target_stale == false and .limit_fps == 30' vgpu show "$a"
	"$gpuctl" vgpu set "$a" fps none
}
behaves 'a target is stale without mgpud' stale

created()
{
	local uuid count id

	id=$("$gpuctl" -j dev show $dev | jq .id)
	uuid=$("$gpuctl" vgpu create $dev small name 'desk 1' weight 7 fps 30) || echo "status $?"
	[ -d "/sys/bus/mdev/devices/$uuid" ] || echo "there is no '$uuid'"
	holds '[.weight, .limit_fps, .name, .vm] == [7, 30, "desk 1", null]' vgpu show "$uuid"
	"$gpuctl" vgpu list | grep -q " $uuid  desk 1  *$dev  .*small " || "$gpuctl" vgpu list
	refused "$gpuctl" 1 "a device with the UUID $uuid exists" vgpu create $dev small uuid "$uuid"
	refused "$gpuctl" 1 "has no type 'tiny', but: .*mgpu_soft-small" vgpu create $dev tiny
	# what is refused leaves nothing behind
	count=$("$gpuctl" -j vgpu | jq '.vgpus | length')
	refused "$gpuctl" 1 "mode-width.*largest mode of the vGPU's type" vgpu create $dev small mode 1025x768
	holds ".vgpus | length == $count" vgpu list
	"$gpuctl" vgpu remove "$uuid" || echo "status $?"
	[ ! -e "/sys/bus/mdev/devices/$uuid" ] || echo "'$uuid' is still there"
	[ ! -e "/run/mgpu/names/$uuid" ] || echo 'its name is still there'
	refused "$gpuctl" 1 'no vGPU has' vgpu remove "$uuid"
	"$gpuctl" -j vgpu create "$id" mgpu_soft-small uuid "$uuid" >"$tmp/created.json"
	"$top/tests/lib/json_schema.py" vgpu_show "$tmp/created.json"
	holds '.name == null and .weight == 100' vgpu show "$uuid"
	"$gpuctl" vgpu remove "$uuid"
}
behaves 'a vGPU is created with settings and a name, and removed' created

# Each output is a line as Documentation/mgpu.schema.json describes it.
described()
{
	local output words file files=()

	while read -r output words; do
		file=$tmp/${#files[@]}.json
		files+=("$output" "$file")
		# shellcheck disable=SC2086
		"$gpuctl" -j $words >"$file"
		[ "$output" = top_sample ] || [ "$(wc -l <"$file")" = 1 ] || show "$file"
	done <<-END
		dev_list dev
		dev_show dev show $dev
		type_list type
		type_list type show $dev
		vgpu_list vgpu
		vgpu_show vgpu show $a
		ctx_list ctx
		status status
		top_sample top -n 2 -d 0.1
		release version
	END
	"$top/tests/lib/json_schema.py" "${files[@]}"
}
behaves 'JSON is as its schema describes it' described

# mgpud does not run here, which the exit status tells.
status_shown()
{
	"$gpuctl" status >"$tmp/out"
	[ $? -eq 3 ] || echo "status $?"
	grep -q "^module  *ok  *mgpu [0-9.]* with .*mgpu_soft.*; .*$dev (" "$tmp/out" || show "$tmp/out"
	grep -q '^vgpus  *ok  *2, of which 0 open$' "$tmp/out" || show "$tmp/out"
	grep -q '^mgpud  *not ok  *mgpud does not run' "$tmp/out" || show "$tmp/out"
	"$gpuctl" -j status >"$tmp/json"
	jq -e '.version == 1 and .ok == false and .module.ok and .mgpud.running == false and
		(.module.devs | index("'$dev'") != null)' "$tmp/json" >/dev/null || show "$tmp/json"
	"$gpuctl" vgpu set "$b" quarantine on
	"$gpuctl" status >"$tmp/out"
	grep -q '^vgpus  *not ok  *.* 1 in quarantine: ' "$tmp/out" || show "$tmp/out"
	"$gpuctl" vgpu set "$b" quarantine off
}
behaves 'status tells what works and what does not' status_shown

vgpu_shown()
{
	"$gpuctl" vgpu show "${b:0:13}" >"$tmp/out" || echo "status $?"
	for line in 'gpu-limit:           40%, in force' 'gpu-period:          100ms' \
		'gpu-burst:           0us' '  timeouts:          0' \
		'mode-width:          3840' 'mode-height:         2160' \
		'frame-interval-hist: -' 'latency-hist:        -'; do
		grep -qxF -e "$line" "$tmp/out" || echo "no line '$line'"
	done
	holds '[.stats[]] | length == 22 and all(. == 0)' vgpu show "$b"
	holds 'has("latency_hist") and .latency_hist == null' vgpu show "$b"
	holds '.version == 1 and (.vgpus | length == 2 and all(has("gpu_limit_share")))' vgpu list
	"$gpuctl" vgpu list | grep -q 'GPU-LIMIT' || echo 'the list has no GPU-LIMIT'
}
behaves 'settings and counters of a vGPU are shown' vgpu_shown

device_settings()
{
	holds '.policy == "weighted" and .builtin_policy == "weighted" and .job_timeout_s == 4' dev show $dev
	"$gpuctl" dev set $dev policy fixed job-timeout 2.5s
	holds '.policy == "fixed" and .builtin_policy == "fixed" and .job_timeout_s == 2.5' dev show $dev
	"$gpuctl" dev set $dev hang-limit none
	holds 'has("hang_limit") and .hang_limit == null' dev show $dev
	"$gpuctl" dev set $dev hang-limit 3
	holds '.hang_limit == 3' dev show $dev
	"$gpuctl" dev set "$("$gpuctl" -j dev show $dev | jq .id)" policy best-effort
	holds '.devs[0].policy == "best-effort" and .devs[0].job_timeout_s == 2.5' dev list
	"$gpuctl" dev show $dev >"$tmp/out"
	for line in 'policy:              best-effort' 'job-timeout:         2.5s'; do
		grep -qxF -e "$line" "$tmp/out" || echo "no line '$line'"
	done
	refused "$gpuctl" 1 "policy 'fair': .*weighted, equal, best-effort or fixed" dev set $dev policy fair job-timeout 9s
	holds '.policy == "best-effort" and .job_timeout_s == 2.5' dev show $dev
	refused "$gpuctl" 1 "no device is named 'mgpu_hard.0'" dev set mgpu_hard.0 policy fixed
}
behaves 'policy and timeout of a device are set and shown' device_settings

types_shown()
{
	local small='.types[] | select(.name == "mgpu_soft-small")'

	holds ".devs[0].dev == \"$dev\" and (.devs[0] | $small | .available >= 0 and
		(.description | test(\"memory 32 MiB.*resources 4096, contexts 0\")))" type show
	holds ".devs[0] | $small | .available >= 0" type show $dev
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
		and ([.vgpus[].gpu_limit_share] | sort == [0.1, 0.4])
		and all(.vgpus[]; .gpu_share == 0 and .limited_share == 0)' top -n 1 -d 0.1
	"$gpuctl" top -n 1 -d 0.1 >"$tmp/out"
	grep -q "^$dev: policy equal, 0 of 2 vGPUs wait for 1 engine$" "$tmp/out" ||
		echo "top: $(cat "$tmp/out")"
	grep -q "${a:0:8} .* 10% " "$tmp/out" || echo "top: $(cat "$tmp/out")"
}
behaves 'top shows policy and limits' top_shows

without_capability()
{
	local words

	for words in status 'dev list' "dev show $dev" 'vgpu list' "vgpu show $a" \
		"vgpu set $a weight 5" "vgpu create $dev small" "vgpu remove $a" 'ctx list' 'top -n 1' 'monitor -n 1' \
		'monitor contexts -n 1'; do
		# shellcheck disable=SC2086
		refused timeout 1 'not permitted: .*CAP_NET_ADMIN' 20 \
			setpriv --inh-caps=-all --bounding-set=-all "$gpuctl" $words
	done
}
behaves 'without CAP_NET_ADMIN each command says what it needs' without_capability

done_testing
