#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# mgpud preempts: its policies on the loaded module, with guests that compute. What
# it decides is tests/unit/test_preempt.c's, what it asks for test_ctx_view.c's.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$top/build}
mgpud=$BUILD/ctl/mgpud
gpuctl=$BUILD/ctl/gpuctl
compute=$BUILD/kselftest/vgpu_compute
frames=$BUILD/kselftest/vgpu_load
# shellcheck source=tests/lib/soft.sh
. "$top/tests/lib/soft.sh"
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
needs "$mgpud" "$gpuctl" "$compute" "$frames" jq
export MGPUD_SOCKET=$tmp/mgpud.sock
device=mgpu_soft.0
pid=
machines=()

cleanup()
{
	local p

	for p in $pid "${machines[@]}"; do
		kill "$p" 2>/dev/null && wait "$p" 2>/dev/null
	done
	soft
}
at_exit cleanup

# Two engines at nice -10 leave user space little of two processors: what asks and
# tells, and measures, goes before them.
renice -n -15 $$ >/dev/null

soft engines=2 || bail 'mgpu_soft does not load'

explain()
{
	echo "contexts: $("$gpuctl" ctx list 2>&1)"
	echo "mgpud: $(tail -n 3 "$tmp/out" "$tmp/err" 2>/dev/null)"
}

start()		# LINE... : of [preemption]
{
	{
		echo '[mgpud]'
		echo "state_file = $tmp/state"
		echo 'period_ms = 200'
		echo 'policy = none'
		echo 'log = changes'
		echo '[preemption]'
		printf '%s\n' "$@"
	} >"$tmp/conf"
	"$mgpud" --config "$tmp/conf" >"$tmp/out" 2>"$tmp/err" &
	pid=$!
	await 60 grep -q '^ready ' "$tmp/out" || bad "mgpud is not ready: $(cat "$tmp/err")"
	await 60 "$gpuctl" ctl show || bad 'mgpud does not answer'
}

stop()		# [SIGNAL]
{
	kill "-${1:-TERM}" "$pid"
	wait "$pid" 2>/dev/null
	pid=
}

state()		# FILTER
{
	"$gpuctl" -j ctl show | jq -e "$1" >/dev/null
}

holds()		# FILTER
{
	await 60 state "$1" || bad "not so: $1: $("$gpuctl" -j ctl show | jq -c .preempt)"
}

# ---- machines ----

# A machine NAME: its vGPU's id is in $NAME, lines for it go to &$in_NAME, what it
# says is in $tmp/NAME.
a=''
b=''
machine()	# NAME
{
	local fd

	mkfifo "$tmp/$1.in"
	"$compute" <"$tmp/$1.in" >"$tmp/$1" 2>"$tmp/$1.err" &
	machines+=($!)
	exec {fd}>"$tmp/$1.in"
	declare -g "in_$1=$fd"
	await 60 test -s "$tmp/$1" || bad "no machine: $(cat "$tmp/$1.err")"
	declare -g "$1=$("$gpuctl" -j vgpu show "$(head -n 1 "$tmp/$1")" | jq .id)"
}

tell()		# NAME WORD...
{
	local fd=in_$1
	shift

	echo "$*" >&"${!fd}"
}

# What a machine has said since forget().
said()		# NAME
{
	local from=from_$1

	tail -n "+${!from:-2}" "$tmp/$1"
}

forget()	# NAME
{
	declare -g "from_$1=$(($(wc -l <"$tmp/$1") + 1))"
}

has_said()	# NAME CTX
{
	said "$1" | grep -q "^$2 "
}

# What is said of a job, once it has ended: its time, ms, the digest, and when.
ended()		# NAME CTX [SECONDS]
{
	if await "${3:-60}" has_said "$1" "$2"; then
		said "$1" | sed -n "s/^$2 //p"
	else
		bad "context $2 of $1 does not end: $(cat "$tmp/$1.err")"
	fi
}

# The time that it runs alone, ms, into $ms, and the digest into $digest.
alone()		# NAME WORD...
{
	local name=$1
	shift

	forget "$name"
	tell "$name" job 1 "$@"
	ended "$name" 1 >"$tmp/alone"
	read -r ms digest _ <"$tmp/alone"
}

context()	# NAME CTX FILTER
{
	"$gpuctl" -j ctx show "${!1}" "$2" | jq -e "$3" >/dev/null
}

# Until the filter holds; false when the job has ended before.
reaches()	# NAME CTX FILTER
{
	await 60 eval "has_said '$1' '$2' || context '$1' '$2' '$3'" &&
		! has_said "$1" "$2"
}

# How often a slot was taken from a context.
taken()		# NAME CTX
{
	"$gpuctl" -j ctx show "${!1}" "$2" | jq '.preemptions + .flushes'
}

machine a
machine b
"$gpuctl" dev set $device policy best-effort slots 1 job-timeout 60s || bad 'slots stay as they are'

# Jobs of about 3 s and 300 ms on this machine, whatever it is.
scaled()	# AMOUNT MS MOST
{
	local n=$(($1 * $2 / (ms + 1)))

	echo $((n < 1 ? 1 : n > $3 ? $3 : n))
}

alone a mandelbrot 100
[[ $ms =~ ^[0-9]+$ ]] || bail "a job alone: $problem"

lasts()		# AMOUNT
{
	long=$1
	alone a mandelbrot "$long"
	long_ms=$ms
	right=$digest
	echo "# long: mandelbrot $long, $long_ms ms"
}

# After a try in which it may have been gone too soon.
last_longer()
{
	[ "$long" -ge 4000 ] || [ "$long_ms" -ge 10000 ] ||
		lasts $((long < 2000 ? long * 2 : 4000))
}

lasts "$(scaled 100 3000 4000)"
alone b gather 1000
short=$(scaled 1000 300 60000)
alone b gather "$short"
short_right=$digest
echo "# short: gather $short, $ms ms"

is_right()	# NAME CTX DIGEST
{
	ended "$1" "$2" >"$tmp/ended"
	[ "$(cut -d ' ' -f 2 "$tmp/ended")" = "$3" ] ||
		bad "context $2 of $1: $(cat "$tmp/ended"), not $3"
}

# When a job was submitted, ms, into $came, and when it ended into $went.
took()		# NAME CTX
{
	local ms

	ended "$1" "$2" >"$tmp/ended"
	read -r ms _ went <"$tmp/ended"
	came=$((${went:-0} - ${ms:-0}))
}

# Has mgpud see a kind of job, which may be over before it looks.
learns()	# NAME OP AMOUNT
{
	local try seen="[.preempt.learned[] | select(.op == \"$2\")][0].jobs >= 1"

	for try in 1 2 3 4 5; do
		! await 3 state "$seen" || return 0
		alone "$1" "$2" $(($3 * try))
	done
	holds "$seen"
}

# ---- who goes first ----

# A long job of a's has the only slot; then comes a short one of b's. Says which
# ends first, and how often a lost its slot. A machine that is held up may tell of
# its end late, and what was long may be gone when the other comes: that is never
# so in every try.
first()		# NAME: who is to be
{
	local before try

	before=$(taken a 1)
	for try in 1 2 3 4 5; do
		forget a
		forget b
		tell a job 1 mandelbrot "$long"
		reaches a 1 '.slots == 1'
		tell b job 1 gather "$short"
		is_right b 1 "$short_right"
		is_right a 1 "$right"
		took b 1
		short_went=$went
		took a 1
		winner=b
		[ "$short_went" -lt "$went" ] || winner=a
		[ -z "$problem" ] || break
		[ $winner != "$1" ] || break
		echo "# try $try: $winner was first, by $((went - short_went)) ms"
		[ "$1" = a ] || last_longer
	done
	lost=$(($(taken a 1) - before))
	[ $winner = "$1" ] || bad "$winner was first"
}

start 'policy = none'
holds '.preempt.policy == "none" and .preempt.bpf'
first a
[ "$lost" -eq 0 ] || bad 'slots were taken'
learns a mandelbrot "$long"
learns b gather "$short"
judge 'without preemption who comes first is done first'

"$gpuctl" ctl set preempt always || bad 'the policy cannot be set'
first b
context a 1 '.preemptions >= 1 and .preemptions == .resumes' || bad 'no slot was taken and given back'
holds '.preempt.decisions.preempt >= 1 and .preempt.by.switch >= 1'
judge 'a newcomer has its slot at once, and no byte is another'

"$gpuctl" ctl set preempt flush || bad 'the policy cannot be set'
first b
context a 1 '.flushes >= 1' || bad 'nothing was begun anew'
judge 'what can be done again is dropped for a newcomer'

"$gpuctl" ctl set preempt drain || bad 'the policy cannot be set'
first a
[ "$lost" -eq 0 ] || bad 'slots were taken'
judge 'a job is ended first where slots are drained'

# one slot, so there is no company to gain by: only the bound makes a switch
"$gpuctl" ctl set preempt mgpu preempt-starve-ms 100 || bad 'the policy cannot be set'
first b
judge 'nobody waits for longer than the bound'
"$gpuctl" ctl set preempt-starve-ms 3600000 || bad 'the bound cannot be set'
first a
[ "$lost" -eq 0 ] || bad 'slots were taken'
judge 'what brings nothing is not done'

# ---- who is next ----

"$gpuctl" dev set $device slots 2 || bad 'slots stay as they are'
"$gpuctl" ctl set preempt-min-gain 1 || bad 'the least gain cannot be set'
holds '[.preempt.learned[] | select(.op == "gather") | .class] == ["memory"]'
holds '[.preempt.learned[] | select(.op == "mandelbrot") | .class] == ["compute"]'
# As many walks as a job can have, at most.
walks()		# AMOUNT
{
	echo $(($1 < 65536 ? $1 : 65536))
}

# One that waits for memory stays; the other slot's job ends first, and who comes then
# is judged. A try says nothing where the first was gone before one of the two that
# waited had ended, or one of them came too late: the next has shorter ones beside it.
# What is learned while others slow the machine may mislead, but not every time.
shorter=1
got=none
for try in 1 2 3 4 5; do
	forget a
	forget b
	tell a job 1 gather "$(walks $((short * 40 * shorter)))"
	reaches a 1 '.slots == 1'
	tell b job 2 mandelbrot $((long / shorter + 1))
	tell b job 3 gather "$(walks $((short * 5 / shorter + 1)))"
	tell b job 4 mandelbrot $((long / 2 / shorter + 1))
	took b 2
	free=$went
	took b 3
	gather_came=$came gather_went=$went
	took b 4
	mandelbrot_came=$came mandelbrot_went=$went
	took a 1
	stayed=$went
	[ -z "$problem" ] || break
	echo "# try $try: 0 ms free, $((gather_came - free)) to $((gather_went - free)) gather," \
		"$((mandelbrot_came - free)) to $((mandelbrot_went - free)) mandelbrot," \
		"$((stayed - free)) the first ended"
	if [ "$gather_came" -ge "$free" ] || [ "$mandelbrot_came" -ge "$free" ] ||
	   { [ "$stayed" -le "$gather_went" ] && [ "$stayed" -le "$mandelbrot_went" ]; }; then
		shorter=$((shorter < 4 ? shorter * 2 : 4))
	elif [ "$mandelbrot_went" -lt "$gather_went" ]; then
		got=mandelbrot
		break
	else
		got=gather
	fi
done
[ $got = mandelbrot ] || bad "beside one that waits for memory came $got"
judge 'a slot that becomes free is given to the better company'

# ---- trouble ----

"$gpuctl" dev set $device slots 1
"$gpuctl" ctl set preempt always preempt-min-gain 0.02 || bad 'the policy cannot be set'
# Two are without a slot, in the middle of their jobs.
for try in 1 2 3 4 5; do
	forget a
	forget b
	here=yes
	tell a job 1 mandelbrot "$long"
	reaches a 1 '.slots == 1' || here=no
	tell b job 1 mandelbrot "$long"
	reaches b 1 '.slots == 1' || here=no
	reaches a 1 '.slots == 0 and .queued == 1' || here=no
	tell b job 2 mandelbrot "$long"
	reaches b 2 '.slots == 1' || here=no
	reaches b 1 '.slots == 0 and .queued == 1' || here=no
	context a 1 '.slots == 0 and .queued == 1' || here=no
	[ $here = no ] || break
	echo "# try $try: not all of them at once"
	for job in 'a 1' 'b 1' 'b 2'; do
		# shellcheck disable=SC2086
		ended $job >/dev/null
	done
	[ -z "$problem" ] || break
	last_longer
done
[ $here = yes ] || bad 'a newcomer has no slot, or who had it has one, too'
stop KILL
for job in 'a 1' 'b 1' 'b 2'; do
	# shellcheck disable=SC2086
	is_right $job "$right"
done
judge 'when mgpud is killed, what it had preempted goes on'

start 'policy = mgpu' 'cost = 0.2,0.5'
holds '.preempt.cost.a == 0.2 and .preempt.cost.b == 0.5 and .preempt.cost.source == "set"'
learns a gather "$short"
stop
jobs=$(jq '[.. | objects | select(has("jobs") and has("ipc")) | .jobs] | add' "$tmp/state")
[ "${jobs%.*}" -ge 1 ] || bad "the state file has $jobs jobs"
# another boot: ids mean something else, what was learned does not
sed -i -E 's/("boot_id": *")[^"]*"/\1other"/' "$tmp/state"
start
holds '[.preempt.learned[] | select(.jobs >= 1) | .op] | contains(["gather"])'
judge 'what was learned outlasts mgpud and the machine'

"$gpuctl" ctl set preempt-decay-memory 2 2>"$tmp/said" && bad 'a decay of 2 is taken'
grep -q '0.5 to 1' "$tmp/said" || bad "says $(cat "$tmp/said")"
"$gpuctl" ctl set preempt sometimes 2>"$tmp/said" && bad 'a policy that is none is taken'
grep -q 'always' "$tmp/said" || bad "says $(cat "$tmp/said")"
holds '.preempt.policy == "mgpu"'
judge 'a wrong setting is refused, with what is right'

# ---- shares and paces ----

# Engine time of both machines, at one moment.
engine_ns()
{
	"$gpuctl" -j vgpu list | jq -r --argjson a "$a" --argjson b "$b" \
		'(.[] | select(.id == $a)), (.[] | select(.id == $b)) | .stats["engine-ns"]'
}

# Of some seconds, as a ratio in percent.
ratio()		# SECONDS
{
	local from to

	mapfile -t from < <(engine_ns)
	sleep "$1"
	mapfile -t to < <(engine_ns)
	echo $((100 * (to[0] - from[0]) / (to[1] - from[1] + 1)))
}

"$gpuctl" dev set $device policy weighted slots 2 || bad 'the policy stays as it is'
# shellcheck disable=SC2154
"$gpuctl" vgpu set "$a" weight 300 || bad 'the weight stays as it is'
"$gpuctl" vgpu set "$b" weight 100 || bad 'the weight stays as it is'
"$gpuctl" ctl set preempt-starve-ms 100 || bad 'the bound cannot be set'
for ctx in 1 2 3 4; do
	tell a loop $ctx mandelbrot $((long / 4 + ctx))
	tell b loop $ctx gather "$(walks $((short * 2)))"
done
sleep 1
# What stands still has the engine all the same: a try may be spoilt.
for try in 1 2 3; do
	got=$(ratio 16)
	echo "# weights 300 : 100, engine time $got : 100"
	[ "$got" -lt 250 ] || [ "$got" -gt 350 ] || break
done
if [ "$got" -lt 250 ] || [ "$got" -gt 350 ]; then
	bad "3 : 1 is $got : 100"
fi
holds '.preempt.contexts >= 8 and .preempt.looks > 10'
judge 'VMs get the shares that they were promised while contexts are preempted'

"$gpuctl" ctl set preempt always || bad 'the policy cannot be set'
"$frames" 64 >"$tmp/frames" &
machines+=($!)
await 60 test -s "$tmp/frames" || bad 'nobody shows frames'

# Sets how many frames were shown, and when, in ms.
shown()
{
	local lines

	lines=$(wc -l <"$tmp/frames")
	kill -USR1 "${machines[-1]}"
	await 60 eval "[ \$(wc -l <'$tmp/frames') -gt $lines ]" ||
		bad 'frames are not told of'
	read -r frames_shown at < <(tail -n 1 "$tmp/frames")
}

"$gpuctl" vgpu set "$(head -n 1 "$tmp/frames")" fps 10 || bad 'no limit'
sleep 1
# How often any of the contexts lost a slot.
all_taken()
{
	"$gpuctl" -j ctx list | jq 'map(.preemptions) | add'
}

everybody_gets_some()
{
	"$gpuctl" -j ctx list | jq -e 'all(.[]; .id > 4 or .jobs >= 2)'
}

before=$(all_taken)
# A frame that is late is not made up for: of a machine that is held up there may
# be too few, but never too many.
for try in 1 2 3 4 5; do
	shown
	begin=$frames_shown
	since=$at
	sleep 10
	shown
	rate=$(((frames_shown - begin) * 1000000 / (at - since + 1)))
	echo "# limit 10 frames/s, shown $((rate / 1000)).$(printf %03d $((rate % 1000)))"
	[ "$rate" -lt 8000 ] || break
done
if [ "$rate" -lt 8000 ] || [ "$rate" -gt 10400 ]; then
	bad "10 frames/s are $rate mHz"
fi
lost=$(($(all_taken) - before))
echo "# $lost slots taken meanwhile"
[ "$lost" -ge 1 ] || bad "no slot was taken"
await 120 everybody_gets_some || bad 'somebody got nothing'
judge 'frames keep their pace, and nobody starves, while contexts are preempted'
stop
[ -s "$tmp/err" ] && bad "mgpud complained: $(cat "$tmp/err")"
judge 'there was nothing to complain of'

done_testing
