#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# mgpud preempts: its policies on the loaded module, with guests that compute.
# tests/unit/test_preempt.c tests the decisions, test_ctx_view.c the requests.
#
# needs: quiet
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$top/build}
mgpud=$BUILD/ctl/mgpud
gpuctl=$BUILD/ctl/gpuctl
compute=$BUILD/kselftest/vgpu-compute
frames=$BUILD/kselftest/vgpu-load
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
# shellcheck source=tests/lib/soft.sh
. "$top/tests/lib/soft.sh"
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

soft engines=2 scanout=eager || bail 'mgpu_soft does not load'

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
		echo 'allocator = none'
		echo 'log = changes'
		echo '[preemption]'
		printf '%s\n' "$@"
	} >"$tmp/conf"
	"$mgpud" --config "$tmp/conf" >"$tmp/out" 2>"$tmp/err" &
	pid=$!
	await 60 grep -q '^ready ' "$tmp/out" || bad "mgpud is not ready: $(cat "$tmp/err")"
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
#
# A trial asks its questions without a process for each, as far as it can: starting a
# process takes as long as a job.

asserts='holds is_right chooses reaches can_set'
exec {never}<> <(:)

# A machine NAME: its vGPU's id is in $NAME, lines for it go to &$in_NAME, what it
# says comes from &$out_NAME.
a=''
b=''
declare -A answer
machine()	# NAME
{
	local in out

	mkfifo "$tmp/$1.in"
	"$compute" <"$tmp/$1.in" >"$tmp/$1" 2>"$tmp/$1.err" &
	machines+=($!)
	exec {in}>"$tmp/$1.in"
	await 60 test -s "$tmp/$1" || bail "no machine: $(cat "$tmp/$1.err")"
	exec {out}<"$tmp/$1"
	declare -g "in_$1=$in" "out_$1=$out"
	declare -g "$1=$("$gpuctl" -j vgpu show "$(head -n 1 "$tmp/$1")" | jq .id)"
}

# A job, or what else a line may be, for a context; an answer of before is forgotten.
tell()		# NAME VERB CTX WORD...
{
	local fd=in_$1

	unset "answer[$1 $3]"
	shift
	echo "$*" >&"${!fd}"
}

# Whether a machine has said what became of a context's job.
has_said()	# NAME CTX
{
	local fd=out_$1 ctx rest

	while read -r -u "${!fd}" ctx rest; do
		answer[$1 $ctx]=$rest
	done
	[ -v "answer[$1 $2]" ]
}

# Whether the machine stood still since it was set to no: a look at a file came late by
# what mgpud's looks are apart.
stood_still=no

# Until a job has ended. Sets what is said of it: its time, $ms, the $digest of its
# result, when it $went, and when it $came, ms.
ended()		# NAME CTX
{
	local end=$((SECONDS + 60 * slow)) now last=${EPOCHREALTIME/./}

	until has_said "$1" "$2"; do
		if ((SECONDS > end)); then
			bad "context $2 of $1 does not end: $(cat "$tmp/$1.err")"
			ms=0 digest=none went=0 came=0
			return 1
		fi
		read -r -t 0.02 -u "$never"
		now=${EPOCHREALTIME/./}
		[ $((now - last)) -le 150000 ] || stood_still=yes
		last=$now
	done
	read -r ms digest went <<<"${answer[$1 $2]}"
	came=$((${went:-0} - ms))
}

is_right()	# NAME CTX DIGEST
{
	ended "$1" "$2" && [ "$digest" != "$3" ] &&
		bad "context $2 of $1: ${answer[$1 $2]}, not $3"
}

# The time that it runs alone, ms, into $ms, and the digest into $digest.
alone()		# NAME WORD...
{
	local name=$1
	shift

	tell "$name" job 1 "$@"
	ended "$name" 1
}

# A member of a context, into $value.
member()	# NAME CTX KEY
{
	local json

	json=$("$gpuctl" -j ctx show "${!1}" "$2")
	value=
	[[ $json =~ \"$3\":\"?([0-9a-z]+) ]] && value=${BASH_REMATCH[1]}
}

# Until a context has a slot; false when its job has ended before.
reaches()	# NAME CTX
{
	local end=$((SECONDS + 60 * slow))

	until has_said "$1" "$2"; do
		member "$1" "$2" slots
		[ "$value" != 1 ] || return 0
		if ((SECONDS > end)); then
			bad "context $2 of $1 gets no slot"
			return 1
		fi
	done
	return 1
}

# How often a slot was taken from context 1 of a's.
taken()
{
	local switched

	member a 1 preemptions
	switched=$value
	member a 1 flushes
	taken=$((switched + value))
}

can_set()	# WORD...
{
	"$gpuctl" "$@" || bad "refused: $*"
}

machine a
machine b
"$gpuctl" dev set $device policy best-effort slots 1 job-timeout 60s || bad 'slots stay as they are'

# Jobs that take as long on this machine, whatever it is. The long one outlives a look
# at whether it runs, the arrival of the other, and what mgpud needs for a look.
long_ms=1200
short_ms=60

scaled()	# AMOUNT MS MOST
{
	local n=$(($1 * $2 / (ms + 1)))

	echo $((n < 1 ? 1 : n > $3 ? $3 : n))
}

lasts()		# AMOUNT
{
	long=$1
	alone a mandelbrot "$long"
	right=$digest
	echo "# long: mandelbrot $long, $ms ms"
}

# The least time of some runs, into $ms: what a busy machine adds is not the job's.
quickest()	# NAME WORD...
{
	local least=

	for _ in 1 2 3 4; do
		alone "$@"
		[[ $ms =~ ^[1-9][0-9]*$ ]] || bail "a job alone: $problem"
		[ -n "$least" ] && [ "$ms" -ge "$least" ] || least=$ms
	done
	ms=$least
}

quickest a mandelbrot 50
lasts "$(scaled 50 $long_ms 4000)"
quickest b gather 1000
short=$(scaled 1000 $short_ms 60000)
alone b gather "$short"
short_right=$digest
echo "# short: gather $short, $ms ms"

# Has mgpud see a kind of job, which may be over before it looks.
learns()	# NAME OP AMOUNT
{
	local try seen="[.preempt.learned[] | select(.op == \"$2\")][0].jobs >= 1"

	for try in 1 2 3 4 5; do
		! await 1 state "$seen" >/dev/null || return 0
		alone "$1" "$2" $(($3 * try))
	done
	holds "$seen"
}

# A choice is right in 4 of 5 trials, whatever the machine is busy with. TRIAL sets
# $choice, or leaves it empty when the trial says nothing, as there was nothing to
# choose from: then there is another one, up to 10 in all, for which TRIAL may make its
# jobs $longer times as long. Ends when it is decided.
chooses()	# WHAT TRIAL...
{
	local want=$1 right_ones=0 wrong_ones=0 try
	shift

	longer=1
	for ((try = 1; try <= 10 && right_ones < 4 && wrong_ones < 2; try++)); do
		choice=
		"$@"
		[ -z "$problem" ] || return
		case $choice in
		'')	echo "# no trial: $why"
			longer=$((longer < 8 ? 2 * longer : 8)) ;;
		"$want") right_ones=$((right_ones + 1)) ;;
		*)	wrong_ones=$((wrong_ones + 1))
			echo "# $choice, not $want: $why" ;;
		esac
	done
	echo "# $want: $right_ones right, $wrong_ones wrong in $((try - 1)) trials"
	if [ $wrong_ones -ge 2 ]; then
		bad "$wrong_ones of $((right_ones + wrong_ones)) choices are not $want"
	elif [ $right_ones -lt 4 ]; then
		bad "could not be judged: in 10 trials there was a choice $((right_ones + wrong_ones)) times"
	fi
}

# As many walks as a job can have, at most.
walks()		# AMOUNT
{
	echo $(($1 < 65536 ? $1 : 65536))
}

# And as many iterations.
most()		# AMOUNT
{
	echo $(($1 < 4000 ? $1 : 4000))
}

# ---- who goes first ----

# A long job of a's has the only slot; then comes a short one of b's. The choice is b if
# its job ended in the first half of the time that a's went on for: of two that end
# together, either may be heard of first. It is a if that went on for long enough to
# lose its slot, which is nothing against b if the machine stood still.
either()	# WANTED
{
	local b_came b_went looks=$((400 * slow))

	stood_still=no
	tell a job 1 mandelbrot "$long"
	reaches a 1
	tell b job 1 gather "$short"
	is_right b 1 "$short_right"
	b_came=$came b_went=$went
	is_right a 1 "$right"
	why="a ended $((went - b_went)) ms after b, and $((went - b_came)) after it came"
	if [ $((2 * (went - b_went))) -ge $((went - b_came)) ]; then
		choice=b
	elif [ "$1$stood_still" = byes ]; then
		why+=', but the machine stood still'
	elif [ $((went - b_came)) -ge "$looks" ]; then
		choice=a
	fi
}

# Sets $lost: how often a lost its slot meanwhile.
first()		# NAME: who is to be
{
	local before

	taken
	before=$taken
	chooses "$1" either "$1"
	taken
	lost=$((taken - before))
}

start 'policy = none'
holds '.preempt.policy == "none" and .preempt.bpf'
first a
[ "$lost" -eq 0 ] || bad 'slots were taken'
learns a mandelbrot "$long"
learns b gather "$short"
judge 'without preemption who comes first is done first'

can_set ctl set preempt always
first b
member a 1 preemptions
preemptions=$value
member a 1 resumes
[ "$lost" -ge 4 ] || bad "the slot was taken $lost times"
[ "$preemptions" -ge 4 ] && [ "$preemptions" -eq "$value" ] ||
	bad "slots were taken $preemptions times and given back $value times"
holds '.preempt.decisions.preempt >= 4 and .preempt.by.switch >= 4'
judge 'a newcomer has its slot at once, and no byte is another'

can_set ctl set preempt flush
first b
member a 1 flushes
[ "$value" -ge 4 ] || bad "work was begun anew $value times"
judge 'what can be done again is dropped for a newcomer'

can_set ctl set preempt drain
first a
[ "$lost" -eq 0 ] || bad 'slots were taken'
judge 'a job is ended first where slots are drained'

# one slot, so there is no company to gain by: only the bound makes a switch
can_set ctl set preempt mgpu preempt-starve-ms 100
first b
judge 'nobody waits for longer than the bound'
can_set ctl set preempt-starve-ms 3600000
first a
[ "$lost" -eq 0 ] || bad 'slots were taken'
judge 'what brings nothing is not done'

# ---- trouble ----

can_set dev set $device slots 1
can_set ctl set preempt always preempt-min-gain 0.02
# Two are without a slot, in the middle of their jobs: each newcomer has the only one.
two_wait()
{
	local job

	told=()
	for job in 'a 1' 'b 1' 'b 2'; do
		told+=("$job")
		tell "${job% *}" job "${job#* }" mandelbrot "$long"
		# shellcheck disable=SC2086
		reaches $job || return
	done
	stop KILL
	! has_said a 1 && ! has_said b 1 && return
	start 'policy = always'
	return 1
}

for try in 1 2 3 4 5; do
	here=yes
	two_wait && break
	here=no
	echo "# try $try: not all of them at once"
	[ -z "$problem" ] || break
	for job in "${told[@]}"; do
		# shellcheck disable=SC2086
		[ -v "answer[$job]" ] || ended $job
	done
	[ "$long" -ge 2000 ] || lasts $((long * 2))
done
[ $here = yes ] || bad 'a newcomer has no slot, or who had it is done'
[ -z "$pid" ] || stop KILL
for job in 'a 1' 'b 1' 'b 2'; do
	# shellcheck disable=SC2086
	is_right $job "$right"
done
judge 'when mgpud is killed, what it had preempted goes on'

start 'policy = mgpu' 'cost = 0.2,0.5'
# what was set above lasts, and would count more
can_set ctl reset
holds '.preempt.cost.a == 0.2 and .preempt.cost.b == 0.5 and .preempt.cost.source == "set"'
learns a gather "$short"
learns a mandelbrot "$long"
stop
jobs=$(jq '[.. | objects | select(has("jobs") and has("ipc")) | .jobs] | add' "$tmp/state")
[ "${jobs%.*}" -ge 1 ] || bad "the state file has $jobs jobs"
# another boot: ids mean something else, what was learned does not
sed -i -E 's/("boot_id": *")[^"]*"/\1other"/' "$tmp/state"
# and how much one slows another, as far as it is learned while others slow the machine,
# would mislead below
jq '(.. | objects | select(has("kinds") and has("norm")) | .norm) |=
	[0.25, 0.09, 0.18, 0.67 | {slow: ., count: 1000}]' "$tmp/state" >"$tmp/steady" &&
	mv "$tmp/steady" "$tmp/state" || bad "the state file: $(cat "$tmp/state")"
start
holds '[.preempt.learned[] | select(.jobs >= 1) | .op] | contains(["gather"])'
judge 'what was learned outlasts mgpud and the machine'

! "$gpuctl" ctl set preempt-decay-memory 2 2>"$tmp/said" || bad 'a decay of 2 is taken'
grep -q '0.5 to 1' "$tmp/said" || bad "says $(cat "$tmp/said")"
! "$gpuctl" ctl set preempt sometimes 2>"$tmp/said" || bad 'a policy that does not exist is accepted'
grep -q 'always' "$tmp/said" || bad "says $(cat "$tmp/said")"
holds '.preempt.policy == "mgpu"'
judge 'a wrong setting is refused, with what is right'

# ---- who is next ----

can_set dev set $device slots 2
can_set ctl set preempt-min-gain 1 preempt-starve-ms 3600000
holds '[.preempt.learned[] | select(.op == "gather") | .class] == ["memory"]'
holds '[.preempt.learned[] | select(.op == "mandelbrot") | .class] == ["compute"]'
# A job that waits for memory stays; the other slot's job ends first, and the choice is
# between two jobs that both wait. There is no choice where one of the two did not wait,
# or where the first job was gone before one of them had ended.
company()
{
	local free gather_came gather_went mandelbrot_came mandelbrot_went

	tell a job 1 gather "$(walks $((short * 40 * longer)))"
	reaches a 1
	tell b job 2 mandelbrot "$(most $((long * longer / 2 + 1)))"
	reaches b 2
	tell b job 3 gather "$(walks $((short * 4 * longer)))"
	tell b job 4 mandelbrot "$(most $((long * longer / 4 + 1)))"
	ended b 2
	free=$went
	ended b 3
	gather_came=$came gather_went=$went
	ended b 4
	mandelbrot_came=$came mandelbrot_went=$went
	ended a 1
	why="0 ms free, $((gather_came - free)) to $((gather_went - free)) gather, $((
		mandelbrot_came - free)) to $((mandelbrot_went - free)) mandelbrot, $((
		went - free)) the first ended"
	if [ "$gather_came" -ge "$free" ] || [ "$mandelbrot_came" -ge "$free" ] ||
	   [ "$gather_went" -le "$free" ] || [ "$mandelbrot_went" -le "$free" ] ||
	   { [ "$went" -le "$gather_went" ] && [ "$went" -le "$mandelbrot_went" ]; }; then
		return
	fi
	choice=gather
	[ "$mandelbrot_went" -ge "$gather_went" ] || choice=mandelbrot
}

chooses mandelbrot company
judge 'a slot that becomes free is given to the better company'
can_set ctl set preempt-min-gain 0.02

# ---- shares and paces ----

# Engine time of both machines, at one moment, and when that was, ns.
engine_ns()
{
	"$gpuctl" -j vgpu list | jq -r --argjson a "$a" --argjson b "$b" \
		'(.vgpus[] | select(.id == $a)), (.vgpus[] | select(.id == $b)) |
		 .stats.engine_s * 1e9 | round'
	date +%s%N
}

# Of some seconds: engine time of a's for 100 of b's, into $ratio, and for how many
# percent of the time of two engines there was a job, into $busy.
shares()	# SECONDS
{
	local from to

	mapfile -t from < <(engine_ns)
	sleep "$1"
	mapfile -t to < <(engine_ns)
	ratio=$((100 * (to[0] - from[0]) / (to[1] - from[1] + 1)))
	busy=$((100 * (to[0] + to[1] - from[0] - from[1]) / (2 * (to[2] - from[2]))))
	echo "# weights 300 : 100, engine time $ratio : 100, engines busy for $busy %"
}

fair()
{
	[ "$ratio" -ge 250 ] && [ "$ratio" -le 350 ] && [ "$busy" -ge 80 ]
}

can_set dev set $device policy weighted slots 2
# shellcheck disable=SC2154
can_set vgpu set "$a" weight 300
can_set vgpu set "$b" weight 100
can_set ctl set preempt-starve-ms 100
for ctx in 1 2 3 4; do
	tell a loop $ctx mandelbrot $((long * 3 / 4 + ctx))
	tell b loop $ctx gather "$(walks $((short * 10)))"
done
holds '.preempt.contexts >= 8'
shares 8
if ! fair; then
	echo "# measured again: the shares of the engines (got $ratio : 100, $busy % busy, wanted 250 to 350, 80 %)"
	shares 8
fi
fair || bad "3 : 1 is $ratio : 100, and the engines were busy for $busy %"
# what was busy is not more than there is
[ "$busy" -le 103 ] || bad "the engines were busy for $busy %"
holds '.preempt.looks > 10'
judge 'VMs get the shares that they were promised while contexts are preempted'

can_set ctl set preempt always
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
	"$gpuctl" -j ctx list | jq '.contexts | map(.preemptions) | add'
}

everybody_gets_some()
{
	"$gpuctl" -j ctx list | jq -e 'all(.contexts[]; .id > 4 or .jobs >= 2)'
}

# Frames a second, in thousandths, into $rate. No frame makes up for a late
# one: a machine that is held up shows too few, but never too many.
pace()		# SECONDS
{
	local begin since

	shown
	begin=$frames_shown
	since=$at
	sleep "$1"
	shown
	rate=$(((frames_shown - begin) * 1000000 / (at - since + 1)))
	echo "# limit 10 frames/s, shown $((rate / 1000)).$(printf %03d $((rate % 1000)))"
	[ "$rate" -le 10400 ] || bad "10 frames/s are $rate mHz"
}

# Until a slot was taken meanwhile: on a slow host mgpud looks only a few times a second.
before=$(all_taken)
lost=0
too_few=0
for ((window = 0; window < 8 && lost == 0; window++)); do
	pace 6
	if [ "$rate" -lt 8000 ]; then
		too_few=$((too_few + 1))
		echo "# frames at a limit: got $rate mHz, wanted 8000"
		[ "$too_few" -le 1 ] || bad "10 frames/s are $rate mHz"
	fi
	lost=$(($(all_taken) - before))
	echo "# $lost slots taken meanwhile"
done
[ "$lost" -ge 1 ] || bad "no slot was taken"
await 120 everybody_gets_some || bad 'somebody got nothing'
judge 'frames keep their pace, and nobody starves, while contexts are preempted'
stop
[ ! -s "$tmp/err" ] || bad "mgpud complained: $(cat "$tmp/err")"
judge 'there was nothing to complain of'

done_testing
