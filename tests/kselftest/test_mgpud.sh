#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# mgpud as a service, on the loaded module: configuration and reload, what it tells
# a service manager, what a restart goes on with, agreements, exit statuses.
# tests/unit/test_mgpud_*.c test what needs no module.
#
# Its jobs are flushes that the engine copies.
# soft: scanout=eager
# needs: quiet
#
# Each mgpud loads its BPF programs, which takes seconds on an emulated processor: a
# process serves as many checks as possible before it ends.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$top/build}
mgpud=$BUILD/ctl/mgpud
gpuctl=$BUILD/ctl/gpuctl
load=$BUILD/kselftest/vgpu-load
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

# The loads leave little of two processors: this script and mgpud go before them.
renice -n -15 $$ >/dev/null

explain()
{
	echo "stderr: $(tail -n 5 "$tmp/err")"
}

asserts='holds status hears saved once_with'
state_file=$tmp/state/mgpud.state
state_period=1

config()	# LINE... : the configuration file
{
	{
		echo '[mgpud]'
		echo "state_file = $state_file"
		echo "state_period_s = $state_period"
		printf '%s\n' "$@"
	} >"$tmp/conf"
}

# In the background, without a pipe between: $pid is its own.
start()		# OPTION...
{
	"$mgpud" --config "$tmp/conf" "$@" >"$tmp/out" 2>"$tmp/err" &
	pid=$!
	await 40 grep -q '^ready ' "$tmp/out" ||
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

# Writes down each datagram. At SIGUSR1 a line MARK, after all that was sent before it.
cat >"$tmp/listen.py" <<'END'
import select, signal, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
wake, waker = socket.socketpair()
waker.setblocking(False)
signal.set_wakeup_fd(waker.fileno())
signal.signal(signal.SIGUSR1, lambda number, frame: None)
s.bind(sys.argv[1])
s.setblocking(False)
with open(sys.argv[2], "a", buffering=1) as f:
    while True:
        ready, _, _ = select.select([s, wake], [], [])
        marks = wake.recv(64) if wake in ready else b""
        try:
            while True:
                f.write(s.recv(4096).decode().replace("\n", "|") + "\n")
        except BlockingIOError:
            pass
        f.write("MARK\n" * len(marks))
END
touch "$tmp/heard"
python3 "$tmp/listen.py" "$tmp/notify" "$tmp/heard" &
listener=$!
await 60 test -S "$tmp/notify" || bad 'nobody listens to notifications'

heard()		# PATTERN [TIMES]
{
	[ "$(grep -c -e "$1" "$tmp/heard")" -ge "${2:-1}" ]
}

hears()		# PATTERN [TIMES]
{
	await 40 heard "$@" || bad "no $1: heard $(cat "$tmp/heard")"
}

# Return when the listener has written down all messages that were sent until now.
mark()
{
	local marks

	marks=$(grep -c '^MARK' "$tmp/heard")
	kill -USR1 $listener
	hears '^MARK' $((marks + 1))
}

kept_alive()
{
	grep -c '^WATCHDOG=1' "$tmp/heard"
}

stopped()
{
	grep -q '^State:.T' "/proc/$pid/status"
}

mkdir "$tmp/state"
echo '{"version":1,' >"$state_file"
config 'allocator = fea' 'period_ms = 200' 'headroom = 1.5' 'log = changes' \
	'[sla]' 'ceiling = 500'
# the keep-alives are asked of another process
NOTIFY_SOCKET=$tmp/notify WATCHDOG_USEC=200000 WATCHDOG_PID=1 start --iterations 20
hears '^READY=1|STATUS=.'
holds '.allocator == "fea" and .period_s == 0.2 and .headroom == 1.5 and .iterations == 20 and
	.sla == {"floor_fps": null, "ceiling_fps": 500} and .config == "'"$tmp/conf"'"'
holds '.periods >= 3'
! grep '^period=' "$tmp/out" || bad 'a line per period'
judge 'the configuration file is in force, and the command line counts more'

# tests/unit/test_mgpud_statefile.c has what else it may be
holds '.restored == 0'
grep -q "state file $state_file is not used: " "$tmp/err" || bad "says '$(cat "$tmp/err")'"
[ "$(grep -c 'state file' "$tmp/err")" = 1 ] || bad "says $(cat "$tmp/err")"
judge 'a state file that is none is ignored'

# what is set at run time counts more than the file, then as before
"$gpuctl" ctl set headroom 3 || bad 'headroom: refused'
config 'allocator = drf' 'period_ms = 300' 'iterations = 30' 'log = changes' 'headroom = 2.5' \
	"socket = $tmp/other.sock" \
	'[vgpu 01234567-89ab-cdef-0123-456789abcdef]' 'floor = 30'
# the environment names the socket, so that the file's is no change
kill -HUP "$pid"
hears '^RELOADING=1|MONOTONIC_USEC=[0-9][0-9]*|'
hears '^READY=1|' 2
holds '.allocator == "drf" and .period_s == 0.3 and .iterations == 20 and .headroom == 3 and
	.sources == (.sources + {"allocator": "file", "iterations": "command-line",
		"headroom": "run-time", "beta": "default", "socket": "environment"}) and
	.sla.ceiling_fps == null and (.agreements | length) == 1 and .agreements[0].floor_fps == 30'
grep -q '^reloaded allocator=drf ' "$tmp/out" || bad "log: $(cat "$tmp/out")"
judge 'SIGHUP brings another configuration into force'

echo 'polcy = fea' >>"$tmp/conf"
sed -i 's/^period_ms = .*/period_ms = 400/' "$tmp/conf"
kill -HUP "$pid"
hears '^READY=1|' 3
await 40 grep -q "$tmp/conf:[0-9]*: .*polcy" "$tmp/err" || bad "says $(cat "$tmp/err")"
holds '.allocator == "drf" and .period_s == 0.3 and (.agreements | length) == 1'
judge 'a bad configuration is refused, and the one before stays'

"$gpuctl" ctl show | grep -q '^headroom  *3 (run time)$' || bad "show: $("$gpuctl" ctl show)"
"$gpuctl" ctl reset headroom || bad 'reset: refused'
holds '.headroom == 2.5 and .sources.headroom == "file" and .run_time == {}'
grep -q "^reset .* uid=0 pid=[0-9][0-9]*$" "$tmp/out" || bad "log: $(cat "$tmp/out")"
judge 'what is set at run time lasts through a reload, until it is reset'

config 'period_ms = 200'
status 6 "another mgpud (process $pid)" "$mgpud" --config "$tmp/conf"
judge 'there is one mgpud'
stop
hears '^STOPPING=1'
mark
[ "$(kept_alive)" -eq 0 ] || bad 'keep-alives that another process was asked for'
judge 'it says that it ends'

: >"$tmp/heard"
config 'period_ms = 60000' 'log = changes'
NOTIFY_SOCKET=$tmp/notify WATCHDOG_USEC=600000 start
hears '^WATCHDOG=1' 6
# and not while it is stopped, of course; nor does it make up for them
kill -STOP "$pid"
await 40 stopped || bad 'SIGSTOP does not stop it'
mark
before=$(kept_alive)
sleep 1
mark
[ "$(kept_alive)" -eq "$before" ] || bad 'alive while stopped'
kill -CONT "$pid"
hears '^WATCHDOG=1' $((before + 2))
stop
judge 'keep-alives come at half of the time that is allowed, in a long period, too'

: >"$tmp/heard"
state_file=/proc/mgpud.state
config "socket = $tmp/first.sock" 'period_ms = 200'
state_file=$tmp/state/mgpud.state
unset MGPUD_SOCKET
NOTIFY_SOCKET=$tmp/notify "$mgpud" --config "$tmp/conf" >"$tmp/out" 2>"$tmp/err" &
pid=$!
await 40 grep -q '^period=2 ' "$tmp/out" || bad "log: $(cat "$tmp/out" "$tmp/err")"
[ -S "$tmp/first.sock" ] || bad 'the socket is not where the file says'
sed -i 's/first.sock/second.sock/; s/period_ms = .*/period_ms = 250/' "$tmp/conf"
kill -HUP "$pid"
await 40 grep -q "socket stays $tmp/first.sock until" "$tmp/err" || bad "says $(cat "$tmp/err")"
await 40 grep -q '^reloaded .*period_ms=250 ' "$tmp/out" || bad "log: $(cat "$tmp/out")"
[ -S "$tmp/first.sock" ] || bad 'the socket is gone'
judge 'settings that need a restart are named, and the rest is in force'
# it is to be written every second
await 40 grep -q '^period=12 ' "$tmp/out" || bad "log: $(cat "$tmp/out")"
MGPUD_SOCKET=$tmp/first.sock "$gpuctl" ctl set headroom 3 2>"$tmp/err2" || bad 'headroom: refused'
grep -q '^gpuctl: warning: this holds only until mgpud ends, .*/proc/mgpud.state' "$tmp/err2" ||
	bad "says $(cat "$tmp/err2")"
MGPUD_SOCKET=$tmp/first.sock "$gpuctl" -j ctl show |
	jq -e '.trouble | length == 1 and (.[0] | test("cannot write state file"))' >/dev/null ||
	bad 'no trouble'
stop INT
[ "$(grep -c 'cannot write state file' "$tmp/err")" = 1 ] || bad "says $(cat "$tmp/err")"
judge 'a state file that cannot be written is said once'
mark
hears '^STOPPING=1'
[ "$(kept_alive)" -eq 0 ] || bad 'keep-alives that nobody asked for'
judge 'keep-alives come only on request'
export MGPUD_SOCKET=$tmp/mgpud.sock

# ---- exit statuses ----

status 2 'unknown option --colour' "$mgpud" --colour
status 2 'period must be' "$mgpud" --period 3
status 2 "unknown command 'now'" "$mgpud" now
config 'period_ms = 200'
echo 'speed = 3' >>"$tmp/conf"
status 3 "$tmp/conf:5: speed" "$mgpud" --config "$tmp/conf"
status 3 "$tmp/conf:5: speed" "$mgpud" --config "$tmp/conf" --check
status 3 'No such file' "$mgpud" --config "$tmp/nothing"
config 'period_ms = 200'
status 0 '' "$mgpud" --config "$tmp/conf" --check
status 4 'permission' setpriv --inh-caps=-all --bounding-set=-all "$mgpud" --config "$tmp/conf"
judge 'the exit status says why it did not run'
if [ -n "$(ls /sys/bus/mdev/devices)" ]; then
	skipped 'without the module it waits, and says so' 'there are vGPUs, which keep the module loaded'
else
	"$top/tools/vm/modules" unload >"$tmp/modules" || bad "the modules do not go: $(cat "$tmp/modules")"
	status 5 'modprobe' "$mgpud" --config "$tmp/conf" --once
	: >"$tmp/heard"
	NOTIFY_SOCKET=$tmp/notify "$mgpud" --config "$tmp/conf" >"$tmp/out" 2>"$tmp/err" &
	pid=$!
	hears '^READY=1|STATUS=.*modprobe'
	holds '.trouble[0] | test("modprobe")'
	holds '.sample_age_s == null'
	"$gpuctl" ctl set period-ms 300 || bad 'period-ms: refused'
	"$top/tools/vm/modules" load mgpu_soft scanout=eager >"$tmp/modules" ||
		bad "the modules do not load again: $(cat "$tmp/modules")"
	await 40 grep -q '^ready .* period_ms=300 ' "$tmp/out" || bad "log: $(cat "$tmp/out")"
	hears '^STATUS=dividing'
	holds '.trouble == [] and .periods >= 2 and .sample_age_s < 60'
	stop
	rm -rf "$tmp/state"
	judge 'without the module it waits, and says so'
fi

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

unlearned='Continuing without learning the speed of work'
once_with +net_admin
grep -q "$unlearned" "$tmp/err" || bad "without BPF: says '$(cat "$tmp/err")'"
# mgpud --once ends with status 0
once_with "$caps"
grep -q '^ready .* bpf=yes charge=bpf ' "$tmp/out" || bad "log: $(cat "$tmp/out")"
! grep -q "$unlearned" "$tmp/err" || bad "without contexts: says '$(cat "$tmp/err")'"
judge "the unit's capabilities are enough for all of it"

# ---- restarts ----

begin_load()
{
	# not the line of the one before
	rm -f "$tmp/load"
	nice -n 15 "$load" 768 >"$tmp/load" &
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
	"$gpuctl" -j vgpu list | jq -c '[.vgpus[].target_fps]'
}

# The averages that the next one begins with, rounded.
kept()
{
	jq -c '[.boot_id] + [.vgpus[] | .uuid, .tgid, (.cpu * 1e9 | floor)]' \
		"$tmp/state/mgpud.state"
}

all_have_limits()
{
	[[ $(limits) =~ ^\[[0-9.]+,[0-9.]+\]$ ]]
}

limited()
{
	all_have_limits || bad "limits are gone: $(limits)"
}

# mgpud stands still, and has set limits of all: a vGPU that needs none in a period has none.
stands_limited()
{
	kill -STOP "$pid"
	until [ "$(ps -o state= -p "$pid")" = T ]; do
		sleep 0.01
	done
	all_have_limits && return
	kill -CONT "$pid"
	return 1
}

limited_now()
{
	[ "$(limits)" = '[30,30]' ]
}

saved()		# FILTER
{
	jq -e "$1" "$state_file" >/dev/null
}

config 'allocator = exact' 'period_ms = 200' 'log = changes' 'on_exit = keep'
start
holds '[.vgpus[] | select(.state == "active" and .target_fps != null)] | length == 2'
holds '.restored == 0 and .gap != null and .gap < 1e-6'
await 40 saved '(.vgpus | length) == 2 and all(.vgpus[]; .cpu > 0 and .frames > 0 and .tgid > 1 and .lead >= 1)
	and .cpu_capacity > 0' || bad "state: $(cat "$state_file")"
await 40 stands_limited || bad 'a vGPU never has a limit'
stop KILL 137
limited
before=$(kept)
kill -0 "${loads[0]}" "${loads[1]}" || bad 'a VMM is gone'
[ -S "$MGPUD_SOCKET" ] || bad 'no socket was left to be replaced'
config 'allocator = exact' 'period_ms = 60000' 'log = changes' 'on_exit = keep'
start
holds '.restored == 2'
grep -q '^restored vgpus=2 ' "$tmp/out" || bad "log: $(cat "$tmp/out")"
judge 'after kill -9 limits stay, VMs go on, and the next one takes over'

# in its first period mgpud has measured nothing yet: it ends with the limits that it
# began with
limited
stop
limited
[ "$(kept)" = "$before" ] || bad "kept $(kept), not $before"
# from now on it is written at the beginning and at the end
state_period=3600
config 'allocator = exact' 'period_ms = 200' 'log = changes'
start
holds '.restored == 2 and
	([.vgpus[] | select(.state == "active" and .target_fps != null)] | length) == 2'
judge 'a restart goes on with the estimates of the one before, and limits stay'

# ---- agreements ----

# an engine that serves both as fast as it can gives neither 10,000 frames/s
timeout 300 "$gpuctl" -j ctl watch >"$tmp/watch" 2>&1 &
watcher=$!
await 40 test -s "$tmp/watch" || bad 'no watch'
"$gpuctl" ctl sla default floor 10000 || bad 'default floor: refused'
"$gpuctl" ctl sla "${uuids[0]:0:13}" floor none ceiling 40 || bad 'ceiling: refused'
holds '.shortfalls == 1 and .sla.floor_fps == 10000 and
	(.vgpus[] | select(.uuid == "'"${uuids[1]}"'") |
		.floor_fps == 10000 and .granted_fps < 10000 and .shortfall) and
	(.vgpus[] | select(.uuid == "'"${uuids[0]}"'") |
		.floor_fps == null and .ceiling_fps == 40 and .target_fps <= 40 and
		.fps <= 44 and (.shortfall | not))'
"$gpuctl" ctl sla >"$tmp/sla" || bad 'ctl sla: refused'
grep -q '^default  *-  *10000.000  *none' "$tmp/sla" || bad "ctl sla: $(cat "$tmp/sla")"
grep -q "^${uuids[0]}  *-  *none  *40.000" "$tmp/sla" || bad "ctl sla: $(cat "$tmp/sla")"
"$gpuctl" ctl sla "${uuids[1]}" >"$tmp/sla"
grep -q ' 10000.000 .* short$' "$tmp/sla" || bad "ctl sla VGPU: $(cat "$tmp/sla")"
"$gpuctl" -j ctl sla | jq -e '.sla.floor_fps == 10000 and (.agreements | length) == 1' >/dev/null ||
	bad "-j ctl sla: $("$gpuctl" -j ctl sla)"
"$gpuctl" top -n 1 -d 0.3 >"$tmp/top"
grep -q '/10000.0 ' "$tmp/top" || bad "top: $(cat "$tmp/top")"
# it is not said again
holds ".periods >= $("$gpuctl" -j ctl show | jq '.periods + 8')"
"$gpuctl" ctl sla "${uuids[0]}" floor 50 2>"$tmp/err2" && bad 'a floor above the ceiling is taken'
grep -q 'above ceiling' "$tmp/err2" || bad "says $(cat "$tmp/err2")"
"$gpuctl" ctl sla default floor none
"$gpuctl" ctl sla "${uuids[0]}" default
holds '.shortfalls == 0 and .sla.floor_fps == null and .agreements == []'
await 40 grep -q sla-met "$tmp/watch" || bad 'no sla-met'
kill "$watcher"
wait "$watcher"
[ "$(grep -c '^sla-shortfall ' "$tmp/err")" = "$(grep -c '^sla-met ' "$tmp/err")" ] ||
	bad 'not as many ends as beginnings'
[ "$(grep -c "^sla-shortfall vgpu=[0-9]* uuid=${uuids[1]} floor_fps=10000.00 granted_fps=" "$tmp/err")" = 1 ] ||
	bad 'not one shortfall in the log'
jq -se '[.[] | select(.event == "sla-shortfall" and .uuid == "'"${uuids[1]}"'")] |
	length == 1 and .[0].floor_fps == 10000 and .[0].granted_fps < 10000' "$tmp/watch" >/dev/null ||
	bad "watched: $(grep event "$tmp/watch")"
jq -se '[.[] | select(has("allocator"))] | length > 5' "$tmp/watch" >/dev/null || bad 'no states'
# as Documentation/mgpu.schema.json describes them
jq -c 'select(has("allocator"))' "$tmp/watch" | tail -n 3 >"$tmp/states"
jq -c 'select(has("event"))' "$tmp/watch" >"$tmp/events"
bad_states=$("$top/tests/lib/json_schema.py" state "$tmp/states" 2>&1) || bad "state: $bad_states"
bad_states=$("$top/tests/lib/json_schema.py" watch_event "$tmp/events" 2>&1) ||
	bad "event: $bad_states"
"$gpuctl" ctl set allocator vgasa && "$gpuctl" ctl sla default floor 30
await 40 grep -q 'the allocator vgasa keeps no floors' "$tmp/err" || bad 'silent about vgasa'
judge 'a promise that cannot be kept is an event, once, and its end another'

# the limits of vgasa are in force, and go
"$gpuctl" ctl sla default floor none
await 40 limited_now || bad "limits: $(limits)"
rm "$state_file"
stop
saved '(.vgpus | length) == 2 and .settings.allocator == "vgasa"' || bad "state: $(cat "$state_file")"
judge 'it keeps its estimates and what was set when it ends'
grep -q '^released vgpus=2$' "$tmp/out" || bad "log: $(tail -n 3 "$tmp/out")"
[ "$(limits)" = '[null,null]' ] || bad "limits stay: $(limits)"
judge 'a signal that ends it releases the limits, unless they are to stay'

# ---- as many vGPUs as there may be ----

for p in "${loads[@]}"; do
	kill "$p"
	wait "$p" || bad "a load ended with $?"
done
loads=()
create_all()
{
	local uuid places

	places=$(cat "$types/mgpu_soft-small/available_instances")
	while [ ${#many[@]} -lt "$places" ] && read -r uuid </proc/sys/kernel/random/uuid; do
		echo "$uuid" >"$types/mgpu_soft-small/create" || break
		many+=("$uuid")
	done
}

create_all
[ ${#many[@]} -ge 1024 ] || bad "only ${#many[@]} vGPUs"
printf '%s fps 30 target 20\n' "${many[@]}" >"$tmp/batch"
"$gpuctl" vgpu set -b "$tmp/batch" || bad 'a batch for all: refused'
"$gpuctl" -j vgpu list | jq -e '.vgpus | length == '"${#many[@]}"' and all(.limit_fps == 30 and .target_fps == 20)' >/dev/null ||
	bad 'not all have the limit and the target'
# the last one of them is no vGPU
{ head -n -1 "$tmp/batch"; echo "$(cat /proc/sys/kernel/random/uuid) fps 60"; } |
	sed 's/fps 30/fps 60/' >"$tmp/batch2"
"$gpuctl" vgpu set -b "$tmp/batch2" 2>/dev/null && bad 'a batch with a wrong entry is taken'
"$gpuctl" -j vgpu list | jq -e '.vgpus | all(.limit_fps == 30)' >/dev/null ||
	bad 'a batch with a wrong entry changed something'
# a state of another boot has nothing about today's vGPUs, but what was set
sed -i 's/"boot_id":"[^"]*"/"boot_id":"another"/' "$state_file"
config 'allocator = fea' 'period_ms = 1000' 'log = periods'
start
holds '.allocator == "vgasa" and .sources.allocator == "run-time"'
"$gpuctl" ctl set allocator none || bad 'allocator: refused'
await 40 grep -q '^period=[0-9]* allocator=none ' "$tmp/out" || bad 'no period'
grep -q 'mgpud: state file .* settings, because it was written before the last boot' "$tmp/out" ||
	bad "log: $(cat "$tmp/out")"
holds '.restored == 0'
stop
"$gpuctl" -j vgpu list | jq -e '.vgpus | all(has("target_fps") and .target_fps == null and .limit_fps == 30)' >/dev/null ||
	bad 'mgpud did not take all targets away, or took limits'
judge 'limits of 1,024 vGPUs go out in one batch, all or nothing'

done_testing
