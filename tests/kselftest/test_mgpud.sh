#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# mgpud as a service, on the loaded module: configuration and reload, what it tells
# a service manager, what a restart goes on with, agreements, exit statuses. What
# needs no module is tests/unit/test_mgpud_*.c's.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$top/build}
mgpud=$BUILD/ctl/mgpud
gpuctl=$BUILD/ctl/gpuctl
load=$BUILD/kselftest/vgpu_load
types=/sys/class/mdev_bus/mgpu_soft.0/mdev_supported_types
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
needs "$mgpud" "$gpuctl" "$load" jq python3 setpriv
export MGPUD_SOCKET=$tmp/mgpud.sock
pid=
listener=
loads=()
many=()

cleanup()
{
	local p

	for p in $pid $listener "${loads[@]}"; do
		kill "$p" 2>/dev/null && wait "$p" 2>/dev/null
	done
	for p in "${many[@]}"; do
		echo 1 >"/sys/bus/mdev/devices/$p/remove"
	done
}
at_exit cleanup

explain()
{
	echo "stderr: $(tail -n 5 "$tmp/err")"
}

config()	# LINE... : the configuration file
{
	{
		echo '[mgpud]'
		echo "state_file = $tmp/state/mgpud.state"
		echo 'state_period_s = 1'
		printf '%s\n' "$@"
	} >"$tmp/conf"
}

# In the background, without a pipe between: $pid is its own.
start()		# OPTION...
{
	"$mgpud" --config "$tmp/conf" "$@" >"$tmp/out" 2>"$tmp/err" &
	pid=$!
	await 40 grep -q '^ready ' "$tmp/out" && await 40 state '.pid == '$pid ||
		bad "mgpud $* is not ready: $(cat "$tmp/out" "$tmp/err")"
}

stop()		# [SIGNAL [STATUS]]
{
	local rc

	kill -"${1:-TERM}" "$pid"
	wait "$pid" 2>/dev/null
	rc=$?
	[ "$rc" -eq "${2:-0}" ] || bad "ended with $rc, not ${2:-0}"
	pid=
}

state()		# FILTER
{
	"$gpuctl" -j ctl show | jq -e "$1" >/dev/null
}

holds()		# FILTER
{
	await 40 state "$1" || bad "not so: $1: $("$gpuctl" -j ctl show | cut -c -600)"
}

status()	# STATUS PATTERN COMMAND...
{
	local want=$1 pattern=$2 got
	shift 2

	timeout 60 "$@" >"$tmp/out2" 2>"$tmp/err2"
	got=$?
	[ "$got" -eq "$want" ] || bad "$*: status $got, not $want"
	[ -z "$pattern" ] || grep -q -e "$pattern" "$tmp/err2" ||
		bad "$*: says '$(cat "$tmp/err2")', nothing like '$pattern'"
}

# ---- configuration and reload, and what a service manager hears of it ----

cat >"$tmp/listen.py" <<'END'
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
with open(sys.argv[2], "a", buffering=1) as f:
    while True:
        f.write(s.recv(4096).decode().replace("\n", "|") + "\n")
END
python3 "$tmp/listen.py" "$tmp/notify" "$tmp/heard" &
listener=$!
await 60 test -S "$tmp/notify" || bad 'nobody listens to notifications'

heard()		# PATTERN [TIMES]
{
	[ "$(grep -c -e "$1" "$tmp/heard")" -ge "${2:-1}" ]
}

# Datagrams keep their order: what was sent before it is written down, too.
mark()		# TEXT
{
	python3 -c 'import socket, sys
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(sys.argv[2].encode(),
							sys.argv[1])' \
		"$tmp/notify" "MARK=$1" && await 40 heard "^MARK=$1" ||
		bad "no mark '$1': $(cat "$tmp/heard")"
}

stopped()
{
	grep -q '^State:.T' "/proc/$pid/status"
}

config 'policy = fea' 'period_ms = 200' 'headroom = 1.5' 'log = changes' \
	'[sla]' 'ceiling = 500'
touch "$tmp/heard"
NOTIFY_SOCKET=$tmp/notify start --iterations 20
await 40 heard '^READY=1|STATUS=.' || bad "heard: $(cat "$tmp/heard")"
holds '.policy == "fea" and .period_ms == 200 and .headroom == 1.5 and .iterations == 20'
holds '.sla == {"floor": null, "ceiling": 500} and .config == "'"$tmp/conf"'"'
holds '.periods >= 3'
grep -q '^period=' "$tmp/out" && bad 'a line per period'
judge 'the configuration file is in force, and the command line counts more'

config 'policy = drf' 'period_ms = 300' 'iterations = 30' 'log = changes' \
	"socket = $tmp/other.sock" \
	'[vgpu 01234567-89ab-cdef-0123-456789abcdef]' 'floor = 30'
# the environment names the socket, so that the file's is no change
kill -HUP "$pid"
await 40 heard '^RELOADING=1|MONOTONIC_USEC=[0-9][0-9]*|' || bad "heard: $(cat "$tmp/heard")"
await 40 heard '^READY=1|' 2 || bad "heard: $(cat "$tmp/heard")"
holds '.policy == "drf" and .period_ms == 300 and .iterations == 20 and .headroom == 2'
holds '.sla.ceiling == null and (.agreements | length) == 1 and .agreements[0].floor == 30'
grep -q '^reloaded policy=drf ' "$tmp/out" || bad "log: $(cat "$tmp/out")"
judge 'SIGHUP brings another configuration into force'

echo 'polcy = fea' >>"$tmp/conf"
sed -i 's/^period_ms = .*/period_ms = 400/' "$tmp/conf"
kill -HUP "$pid"
await 40 heard '^READY=1|' 3 || bad "heard: $(cat "$tmp/heard")"
await 40 grep -q "$tmp/conf:[0-9]*: .*polcy" "$tmp/err" || bad "says $(cat "$tmp/err")"
holds '.policy == "drf" and .period_ms == 300 and (.agreements | length) == 1'
judge 'a bad configuration is refused, and the one before stays'
stop
await 40 heard '^STOPPING=1' || bad "heard: $(cat "$tmp/heard")"
[ "$(heard x; grep -c '^WATCHDOG=1' "$tmp/heard")" -eq 0 ] || bad 'keep-alives that nobody asked for'
judge 'it says that it ends'

: >"$tmp/heard"
config 'period_ms = 60000' 'log = changes'
NOTIFY_SOCKET=$tmp/notify WATCHDOG_USEC=1000000 start
await 40 heard '^WATCHDOG=1' 6 || bad "in a long period: $(cat "$tmp/heard")"
# and not while it is stopped, of course; nor does it make up for them
kill -STOP "$pid"
await 40 stopped || bad 'SIGSTOP does not stop it'
mark stopped
before=$(grep -c '^WATCHDOG=1' "$tmp/heard")
sleep 2
mark 'two seconds later'
[ "$(grep -c '^WATCHDOG=1' "$tmp/heard")" -eq "$before" ] || bad 'alive while stopped'
kill -CONT "$pid"
await 40 heard '^WATCHDOG=1' $((before + 2)) || bad 'no keep-alive afterwards'
stop
mark ended
: >"$tmp/heard"
NOTIFY_SOCKET=$tmp/notify WATCHDOG_USEC=1000000 WATCHDOG_PID=1 start
sleep 1
mark 'a second later'
heard '^WATCHDOG=1' && bad 'keep-alives that another process was asked for'
stop
judge 'keep-alives come at half of the time that is allowed'

config "socket = $tmp/first.sock" 'period_ms = 200'
unset MGPUD_SOCKET
MGPUD_SOCKET=$tmp/mgpud.sock
"$mgpud" --config "$tmp/conf" >"$tmp/out" 2>"$tmp/err" &
pid=$!
await 40 grep -q '^period=2 ' "$tmp/out" || bad "log: $(cat "$tmp/out" "$tmp/err")"
[ -S "$tmp/first.sock" ] || bad 'the socket is not where the file says'
sed -i 's/first.sock/second.sock/; s/period_ms = .*/period_ms = 250/' "$tmp/conf"
kill -HUP "$pid"
await 40 grep -q "socket stays $tmp/first.sock until" "$tmp/err" || bad "says $(cat "$tmp/err")"
await 40 grep -q '^reloaded .*period_ms=250 ' "$tmp/out" || bad "log: $(cat "$tmp/out")"
[ -S "$tmp/first.sock" ] || bad 'the socket is gone'
stop
export MGPUD_SOCKET
judge 'what takes a restart is said, and the rest is in force'

# ---- exit statuses ----

config 'period_ms = 200'
status 2 'see mgpud --help' "$mgpud" --colour
status 2 'period_ms must be' "$mgpud" --period 3
status 2 'no arguments' "$mgpud" now
echo 'speed = 3' >>"$tmp/conf"
status 3 "$tmp/conf:5: speed" "$mgpud" --config "$tmp/conf"
status 3 "$tmp/conf:5: speed" "$mgpud" --config "$tmp/conf" --check
status 3 'No such file' "$mgpud" --config "$tmp/nothing"
config 'period_ms = 200'
status 0 '' "$mgpud" --config "$tmp/conf" --check
status 4 'permission' setpriv --inh-caps=-all --bounding-set=-all "$mgpud" --config "$tmp/conf"
start
status 6 "another mgpud (process $pid)" "$mgpud" --config "$tmp/conf"
stop INT
status 0 '' "$mgpud" --config "$tmp/conf" --once
if [ -z "$(ls /sys/bus/mdev/devices)" ] && "$top/tools/vm/modules" unload >/dev/null; then
	status 5 'modprobe' "$mgpud" --config "$tmp/conf"
	"$top/tools/vm/modules" load mgpu_soft >/dev/null || bad 'the modules do not load again'
fi
judge 'the exit status says why it did not run'

# ---- the unit ----

caps=$(sed -n 's/^CapabilityBoundingSet=//p' "$top/ctl/mgpud/mgpud.service" |
	tr 'A-Z ' 'a-z,' | sed 's/cap_//g; s/^/+/; s/,/,+/g')
[[ $caps == *+net_admin* ]] || bad "the unit's capabilities: $caps"
once_with()	# CAPABILITIES
{
	setpriv --inh-caps=-all --bounding-set="-all,$1" --no-new-privs \
		"$mgpud" --config "$tmp/conf" --once >"$tmp/out" 2>"$tmp/err" ||
		bad "with $1: does not run"
}

unlearned='Going on without learning how fast work is'
once_with +net_admin
grep -q "$unlearned" "$tmp/err" || bad "without BPF: says '$(cat "$tmp/err")'"
once_with "$caps"
grep -q '^ready .* bpf=yes charge=bpf ' "$tmp/out" || bad "log: $(cat "$tmp/out")"
grep -q "$unlearned" "$tmp/err" && bad "without contexts: says '$(cat "$tmp/err")'"
judge "the unit's capabilities are enough for all of it"

# ---- restarts ----

begin_load()
{
	# not the line of the one before
	rm -f "$tmp/load"
	"$load" 768 >"$tmp/load" &
	loads+=($!)
	await 40 test -s "$tmp/load" || bad 'no load'
	uuids+=("$(cat "$tmp/load")")
}

uuids=()
rm -rf "$tmp/state"
begin_load
begin_load
limits()
{
	"$gpuctl" -j vgpu list | jq -c '[.[]."fps-limit"]'
}

# The averages that the next one begins with, rounded.
kept()
{
	jq -c '[.boot_id] + [.vgpus[] | .uuid, .tgid, (.cpu * 1e9 | floor)]' \
		"$tmp/state/mgpud.state"
}

config 'policy = exact' 'period_ms = 200' 'log = changes'
start
holds '[.vgpus[] | select(.state == "active")] | length == 2'
holds '[.vgpus[] | select(.target_fps != null)] | length == 2'
holds '.periods >= 15'
holds '.restored == 0'
holds '.gap != null and .gap < 1e-6'
stop
before=$(limits)
[[ $before != *,0* && $before != '[0'* ]] || bad "no limits: $before"
jq -e '(.vgpus | length) == 2 and all(.vgpus[]; .cpu > 0 and .frames > 0 and .tgid > 1)
	and .control.lead >= 1 and .cpu_capacity > 0' "$tmp/state/mgpud.state" >/dev/null ||
	bad "state: $(cat "$tmp/state/mgpud.state")"
before=$(kept)
config 'policy = exact' 'period_ms = 60000' 'log = changes'
start
holds '.restored == 2'
grep -q '^restored vgpus=2 ' "$tmp/out" || bad "log: $(cat "$tmp/out")"
# in its first period nothing is measured yet: what it ends with is what
# it began with, and the limits are there
[[ $(limits) != *,0* && $(limits) != '[0'* ]] || bad "limits are gone: $(limits)"
stop
[ "$(kept)" = "$before" ] || bad "kept $(kept), not $before"
judge 'a restart goes on with the estimates of the one before, and limits stay'

config 'policy = exact' 'period_ms = 200' 'log = changes'
start
holds '.periods >= 10'
stop KILL 137
[[ $(limits) != *,0* && $(limits) != '[0'* ]] || bad "limits are gone: $(limits)"
kill -0 "${loads[0]}" "${loads[1]}" || bad 'a VMM is gone'
[ -S "$MGPUD_SOCKET" ] || bad 'no socket was left to be replaced'
start
holds '.restored == 2'
holds '[.vgpus[] | select(.state == "active" and .target_fps != null)] | length == 2'
stop
judge 'after kill -9 limits stay, VMs go on, and the next one takes over'

for text in '{"version":1,' 'no JSON' '{"version":99}' ''; do
	echo "$text" >"$tmp/state/mgpud.state"
	start
	grep -q "state file $tmp/state/mgpud.state is not used: " "$tmp/err" ||
		bad "to '$text' it says '$(cat "$tmp/err")'"
	[ "$(grep -c 'state file' "$tmp/err")" = 1 ] || bad "says $(cat "$tmp/err")"
	holds '.restored == 0 and .periods >= 2'
	stop
done
sed -i 's/"boot_id":"[^"]*"/"boot_id":"another"/' "$tmp/state/mgpud.state"
start
grep -q 'mgpud: state file .* from before the machine was started' "$tmp/out" ||
	bad "log: $(cat "$tmp/out")"
stop
config 'period_ms = 200' 'log = changes'
sed -i 's,^state_file = .*,state_file = /proc/mgpud.state,' "$tmp/conf"
start
holds '.periods >= 8'
[ "$(grep -c 'cannot write state file' "$tmp/err")" = 1 ] || bad "says $(cat "$tmp/err")"
stop
judge 'a state file that is none is ignored, one that cannot be written is said once'

# ---- agreements ----

config 'period_ms = 200' 'log = changes'
start
# an engine that serves both as fast as it can gives neither 10,000 frames/s
timeout 300 "$gpuctl" -j ctl watch >"$tmp/watch" 2>&1 &
watcher=$!
await 40 test -s "$tmp/watch" || bad 'no watch'
"$gpuctl" ctl sla default floor 10000 || bad 'default floor: refused'
"$gpuctl" ctl sla "${uuids[0]:0:13}" floor none ceiling 40 || bad 'ceiling: refused'
holds '.shortfalls == 1 and .sla.floor == 10000'
holds '.vgpus[] | select(.uuid == "'"${uuids[1]}"'") |
	.floor == 10000 and .granted < 10000 and .shortfall'
holds '.vgpus[] | select(.uuid == "'"${uuids[0]}"'") |
	.floor == null and .ceiling == 40 and .target_fps <= 40 and (.shortfall | not)'
await 40 state '.vgpus[] | select(.uuid == "'"${uuids[0]}"'") | .fps <= 44' ||
	bad "above its ceiling: $("$gpuctl" -j ctl show)"
"$gpuctl" ctl sla >"$tmp/sla" || bad 'ctl sla: refused'
grep -q '^default  *10000.000  *none' "$tmp/sla" || bad "ctl sla: $(cat "$tmp/sla")"
grep -q "^${uuids[0]}  *none  *40.000" "$tmp/sla" || bad "ctl sla: $(cat "$tmp/sla")"
"$gpuctl" ctl sla "${uuids[1]}" >"$tmp/sla"
grep -q ' 10000.000 .* short$' "$tmp/sla" || bad "ctl sla VGPU: $(cat "$tmp/sla")"
"$gpuctl" -j ctl sla | jq -e '.sla.floor == 10000 and (.agreements | length) == 1' >/dev/null ||
	bad "-j ctl sla: $("$gpuctl" -j ctl sla)"
"$gpuctl" top -n 1 -d 0.3 >"$tmp/top"
grep -q '/10000.0 ' "$tmp/top" || bad "top: $(cat "$tmp/top")"
sleep 2
"$gpuctl" ctl sla "${uuids[0]}" floor 50 2>"$tmp/err2" && bad 'a floor above the ceiling is taken'
grep -q 'above ceiling' "$tmp/err2" || bad "says $(cat "$tmp/err2")"
"$gpuctl" ctl sla default floor none
"$gpuctl" ctl sla "${uuids[0]}" default
holds '.shortfalls == 0 and .sla.floor == null and .agreements == []'
await 40 grep -q sla-met "$tmp/watch" || bad 'no sla-met'
kill "$watcher"
wait "$watcher"
[ "$(grep -c '^sla-shortfall ' "$tmp/err")" = "$(grep -c '^sla-met ' "$tmp/err")" ] ||
	bad 'not as many ends as beginnings'
[ "$(grep -c "^sla-shortfall vgpu=[0-9]* uuid=${uuids[1]} floor=10000.00 granted=" "$tmp/err")" = 1 ] ||
	bad 'not one shortfall in the log'
jq -se '[.[] | select(.event == "sla-shortfall" and .uuid == "'"${uuids[1]}"'")] |
	length == 1 and .[0].floor == 10000 and .[0].granted < 10000' "$tmp/watch" >/dev/null ||
	bad "watched: $(grep event "$tmp/watch")"
jq -se '[.[] | select(has("policy"))] | length > 5' "$tmp/watch" >/dev/null || bad 'no states'
"$gpuctl" ctl set policy vgasa && "$gpuctl" ctl sla default floor 30
await 40 grep -q 'the policy vgasa keeps no floors' "$tmp/err" || bad 'silent about vgasa'
stop
judge 'a promise that cannot be kept is an event, once, and its end another'

# ---- as many vGPUs as there may be ----

for p in "${loads[@]}"; do
	kill "$p"
	wait "$p" || bad "a load ended with $?"
done
loads=()
mapfile -t uuids < <(python3 -c '
import sys, uuid
for _ in range(int(sys.argv[1])):
    print(uuid.uuid4())' "$(cat "$types/mgpu_soft-small/available_instances")")
for uuid in "${uuids[@]}"; do
	echo "$uuid" >"$types/mgpu_soft-small/create" && many+=("$uuid")
done
[ ${#many[@]} -ge 1024 ] || bad "only ${#many[@]} vGPUs"
printf '%s fps 30\n' "${many[@]}" >"$tmp/batch"
"$gpuctl" vgpu set -b "$tmp/batch" || bad 'a batch for all: refused'
"$gpuctl" -j vgpu list | jq -e 'length == '"${#many[@]}"' and all(."fps-limit" == 30000)' >/dev/null ||
	bad 'not all have the limit'
# the last one of them is no vGPU
{ head -n -1 "$tmp/batch"; echo "$(cat /proc/sys/kernel/random/uuid) fps 60"; } |
	sed 's/fps 30/fps 60/' >"$tmp/batch2"
"$gpuctl" vgpu set -b "$tmp/batch2" 2>/dev/null && bad 'a batch with a wrong entry is taken'
"$gpuctl" -j vgpu list | jq -e 'all(."fps-limit" == 30000)' >/dev/null ||
	bad 'a batch with a wrong entry changed something'
config 'policy = none' 'period_ms = 1000' 'log = periods'
start
await 40 grep -q '^period=1 ' "$tmp/out" || bad 'no period'
stop
"$gpuctl" -j vgpu list | jq -e 'all(."fps-limit" == 0)' >/dev/null ||
	bad 'mgpud did not take all limits away'
judge 'limits of 1,024 vGPUs go out in one batch, all or nothing'

done_testing
