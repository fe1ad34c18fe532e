#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# gpuctl render starts, lists and stops mgpu-renderd, without systemd and without a GPU. The
# same under systemd is in test_service.sh, records and GPUs in tests/unit/test_renderd.c.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$top/build}
gpuctl=$BUILD/ctl/gpuctl
record=/run/mgpu/renderd-none.pid
log=/run/mgpu/renderd-none.log
namespaces=/proc/sys/user/max_pid_namespaces
most=$(cat $namespaces)
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
needs "$gpuctl" "$BUILD/ctl/mgpu-renderd" jq pgrep python3
[ ! -e /run/systemd/system ] || skip_all 'systemd runs'
[ ! -d /sys/module/mgpu_user ] || bail 'mgpu_user is loaded'

cleanup()
{
	echo "$most" >$namespaces
	[ ! -s "$tmp/vmm" ] || kill "$(cat "$tmp/vmm")" 2>/dev/null
	"$gpuctl" render stop all force >/dev/null 2>&1
	cp "$log" "${OUT:-/tmp}/test_render_ctl-renderd.log" 2>/dev/null
	[ ! -d /sys/module/mgpu_user ] || /usr/sbin/rmmod mgpu_user
}
at_exit cleanup

asserts='lists prints'

lists()		# FILTER : what the list has
{
	"$gpuctl" -j render list >"$tmp/json" || echo "render list: status $?"
	"$top/tests/lib/json_schema.py" render_list "$tmp/json"
	jq -e ".renderds | $1" "$tmp/json" >/dev/null || echo "not so: $1: $(cat "$tmp/json")"
}

prints()	# PATTERN WORD... : in a line of gpuctl's output
{
	local pattern=$1
	shift

	"$gpuctl" "$@" >"$tmp/out" 2>"$tmp/err" || echo "$*: status $?: $(cat "$tmp/err")"
	grep -qe "$pattern" "$tmp/out" || echo "$*: no '$pattern': $(cat "$tmp/out")"
}

none()
{
	lists '. == []'
	refused "$gpuctl" 1 'no mgpu-renderd runs' render stop
	refused "$gpuctl" 1 "no mgpu-renderd renders on 'none'; 'gpuctl render list' lists" render stop none
	"$gpuctl" render stop all >"$tmp/out" 2>&1 || echo "stop all: status $?"
	[ ! -s "$tmp/out" ] || show "$tmp/out"
	refused "$gpuctl" 1 'the module mgpu_user is not loaded.*insmod' render start none
	refused "$gpuctl" 1 'there is no PCI device 0000:fe:1e.7; no GPU of this host has' \
		render start fe:1e.7
}
behaves 'without mgpu-renderd the list is empty, and errors say what to do' none

must 'mgpu_user does not load' "$top/tools/vm/modules" load mgpu_user

started()
{
	prints '^mgpu_user.0 serves without a GPU (process [0-9]*)$' render start none
	types=/sys/class/mdev_bus/mgpu_user.0/mdev_supported_types
	grep -qx "$types" "$tmp/out" || show "$tmp/out"
	[ -d $types/mgpu_user-medium-render ] || echo "types: $(ls $types)"
	lists 'length == 1 and (.[0] | .address == null and .node == null and
		.device == "mgpu_user.0" and .vgpus == 0 and .state == "serving")'
	pid=$(jq '.renderds[0].pid' "$tmp/json")
	[ "$(readlink "/proc/$pid/exe")" = "$BUILD/ctl/mgpu-renderd" ] || echo "pid is $pid"
	[ "$(head -n 1 $record)" = "$pid" ] || show $record
	# a daemon: a session of its own, and nothing of this test's open
	[ "$(ps -o sid= -p "$pid" | tr -d ' ')" = "$pid" ] || echo 'it has no session of its own'
	[ "$(readlink "/proc/$pid/fd/0")" = /dev/null ] || echo 'it reads'
	[ "$(readlink "/proc/$pid/fd/2")" = $log ] || echo 'it has no log'
	grep -q '^mgpu-renderd: serves mgpu_user.0$' $log || show $log
	prints "^none  *-  *mgpu_user.0  *$pid  *0  *serving$" render list
	"$gpuctl" -j render start none >"$tmp/json" || echo "start -j: status $?"
	"$top/tests/lib/json_schema.py" render_start "$tmp/json"
	jq -e ".pid == $pid and .types_path == \"$types\"" "$tmp/json" >/dev/null || show "$tmp/json"
	prints '^mgpu_user.0 already serves without a GPU' render start
}
behaves 'start makes a daemon that serves a device, once' started

# Print the process of the worker that waits for a vGPU, without the PIDs in @not.
spare()		# NOT
{
	pgrep -x mgpu-spare | grep -vx "${1:-none}"
}

spares()
{
	pid=$(head -n 1 $record)
	await 40 spare || echo 'there is none'
	first=$(spare)
	[ "$(ps -o ppid= -p "$first" | tr -d ' ')" = "$pid" ] || echo 'it is not of mgpu-renderd'
	[ "$(ps -o nlwp= -p "$first" | tr -d ' ')" = 1 ] || echo 'it has threads'
	# it has Mesa, and neither the device nor a GPU
	grep -q '_dri\.so$' "/proc/$first/maps" || echo 'it has not loaded the driver'
	find "/proc/$first/fd" -lname '/dev/*' ! -lname /dev/null >"$tmp/out"
	[ ! -s "$tmp/out" ] || show "$tmp/out"
	for kind in ipc mnt net pid uts; do
		[ "$(readlink "/proc/$first/ns/$kind")" != "$(readlink "/proc/$pid/ns/$kind")" ] ||
			echo "it has mgpu-renderd's $kind namespace"
	done
	# another one, with other addresses
	kill -KILL "$first"
	await 40 spare "$first" || echo 'there is no other one'
	grep -q '^mgpu-renderd: a spare worker has ended; the next one starts in [01] s$' $log ||
		show $log
	lists '.[0] | .vgpus == 0 and .state == "serving"'
}
behaves 'a worker waits for the next vGPU, and another one if it dies' spares

only_one()
{
	pid=$(head -n 1 $record)
	refused "$BUILD/ctl/mgpu-renderd" 3 "another mgpu-renderd (process $pid) renders without a GPU; end it with 'gpuctl render stop none'" \
		--gpu none
	lists '.[0].state == "serving"'
}
behaves 'a second mgpu-renderd of the same GPU is refused' only_one

uuid=$(cat /proc/sys/kernel/random/uuid)
types=/sys/class/mdev_bus/mgpu_user.0/mdev_supported_types
refuses_vgpus()
{
	echo "$uuid" >$types/mgpu_user-small-render/create || echo 'no vGPU can be made'
	lists '.[0].vgpus == 1'
	refused "$gpuctl" 1 "mgpu_user.0 has vGPUs: $uuid (no VM): .*, or say 'force'" render stop
	refused "$gpuctl" 1 "mgpu_user.0 has vGPUs: $uuid" render stop all
	lists '.[0].state == "serving"'
	echo 1 >"/sys/bus/mdev/devices/$uuid/remove"
	prints '^none: stopped; removed mgpu_user.0$' render stop none
	lists '. == []'
	[ ! -e $record ] || echo 'the record is left'
	[ ! -e /sys/class/mdev_bus/mgpu_user.0 ] || echo 'the device is left'
}
behaves 'stop refuses while a vGPU exists, and removes the device else' refuses_vgpus

last_worker()
{
	sed -n 's/^mgpu-renderd: vGPU [0-9]* has worker //p' $log | tail -n 1
}

another_worker()	# PID : the last one is not that
{
	[ "$(last_worker)" != "$1" ]
}

died()
{
	prints '^mgpu_user.0 serves' render start
	pid=$(head -n 1 $record)
	echo "$uuid" >$types/mgpu_user-small-render/create || echo 'no vGPU can be made'
	"$top/tests/lib/open_vgpu.py" "$uuid" "$tmp/open" &
	echo $! >"$tmp/vmm"
	await 40 test -e "$tmp/open" || echo 'the vGPU cannot be opened'
	refused "$gpuctl" 1 "mgpu_user.0 has vGPUs: $uuid (VM with pid $(cat "$tmp/vmm"))" \
		render stop none
	worker=$(last_worker)
	await 40 spare "$worker" || echo 'there is no next worker'
	next=$(spare "$worker")
	kill -KILL "$pid"
	await 20 test ! -e "/proc/$pid" || echo 'it does not die'
	await 20 test ! -e "/proc/$next" || echo 'the next worker waits still'
	lists '.[0] | .state == "dead" and .pid == null and .device == "mgpu_user.0" and .vgpus == 1'
	prints '^none  *-  *mgpu_user.0  *-  *1  *dead$' render list
	refused "$gpuctl" 1 "mgpu_user.0 has vGPUs: $uuid" render stop none
	: >$log
	prints '^mgpu_user.0 serves without a GPU' render start none
	lists '.[0] | .state == "serving" and .device == "mgpu_user.0" and .vgpus == 1'
	# the VM that was there has been served all the time
	[ -e "/proc/$worker" ] || echo 'the worker died with it'
	# it gets another worker when needed: the one that waits, or as soon as one can be started
	await 40 spare || echo 'no worker waits'
	next=$(spare)
	echo 0 >$namespaces
	kill -KILL "$worker"
	await 40 grep -qx "mgpu-renderd: vGPU [0-9]* has worker $next" $log || show $log
	await 40 grep -q '^mgpu-renderd: there is no spare worker now: No space' $log || show $log
	kill -KILL "$next"
	await 40 grep -q '^mgpu-renderd: vGPU [0-9]* has no worker now: No space' $log || show $log
	lists '.[0] | .state == "serving" and .vgpus == 1'
	echo "$most" >$namespaces
	await 40 another_worker "$next" || show $log
}
behaves 'after kill -9 the list says so, and the next one takes the device over' died

forced()
{
	"$gpuctl" render stop none force >"$tmp/out" 2>"$tmp/err" &
	stop=$!
	await 40 grep -q '^stopping' $record || show $record
	lists '.[0] | .state == "stopping" and .vgpus == 1'
	grep -q 'asks the VMMs of 1 vGPU to let go' "$tmp/err" || show "$tmp/err"
	[ -e /proc/$stop ] || echo 'it does not wait'
	kill "$(cat "$tmp/vmm")"
	: >"$tmp/vmm"
	wait $stop || echo "status $?: $(cat "$tmp/err")"
	grep -qx 'none: stopped; removed mgpu_user.0' "$tmp/out" || show "$tmp/out"
	lists '. == []'
}
behaves 'stop with force waits until the VMM has let go' forced

dead_is_removed()
{
	prints '^mgpu_user.0 serves' render start none
	pid=$(head -n 1 $record)
	kill -KILL "$pid"
	await 20 test ! -e "/proc/$pid" || echo 'it does not die'
	prints '^none: stopped; removed mgpu_user.0$' render stop
	[ ! -e /sys/class/mdev_bus/mgpu_user.0 ] || echo 'the device is left'
	lists '. == []'
	# a record without a device, with the ID of a process that is another one
	echo $$ >$record
	lists '.[0] | .state == "dead" and .pid == null and .device == null'
	prints '^none: stopped$' render stop
	[ ! -e $record ] || echo 'the record is left'
}
behaves 'stop removes what a process that died has left' dead_is_removed

fails()
{
	# the program ends before it serves
	mkdir "$tmp/bin"
	cp "$gpuctl" "$tmp/bin"
	printf '#!/bin/sh\necho "mgpu-renderd: a reason" >&2\nexit 7\n' >"$tmp/bin/mgpu-renderd"
	chmod +x "$tmp/bin/mgpu-renderd"
	"$tmp/bin/gpuctl" render start none >"$tmp/out" 2>"$tmp/err"
	[ $? -eq 1 ] || echo 'no status 1'
	diff - "$tmp/err" <<-END
		mgpu-renderd: a reason
		gpuctl: mgpu-renderd ended with status 7; $log has its messages
	END
	lists '. == []'
}
behaves 'a daemon that ends before it serves is an error, with its reason' fails

done_testing
