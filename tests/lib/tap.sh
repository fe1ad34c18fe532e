# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# TAP for shell tests, for bash; to be sourced. A test has results in three forms:
#
#   behaves BEHAVIOUR FUNCTION [ARGUMENT]...
#           The function is a block that runs in a subshell. All that it prints is
#           wrong, on standard error too. It must end by itself, with status 0, and
#           have executed a check.
#   check BEHAVIOUR COMMAND...
#           The command runs in this shell, and may set variables. Its output is
#           noted; its status decides.
#   bad TEXT..., any number of times, then judge BEHAVIOUR
#           For a test whose steps are at its top level.
#
# plan N is for the beginning; a test without a plan calls done_testing at its end,
# which prints one. A test that ends earlier has failed. at_exit FUNCTION is for what
# must be done at any end: the trap on EXIT is this library's, so that the status stays.
#
# Sets tmp, a folder that goes with the test, and prints the version line, unless
# tap_within=PLAN says that another program prints both lines for this one.

tmp=$(mktemp -d) || { echo 'Bail out! cannot make a temporary folder'; exit 1; }
tap=$tmp/.tap
mkdir "$tap"
number=0
failures=0
problem=
looked=0
slow=${MGPU_SLOW:-1}
tap_planned=${tap_within-}
tap_doing=
tap_ended=no
tap_hooks=()
exec {tap_out}>&1 {tap_err}>&2

# Functions of the test that are checks, besides those of tap_looks().
asserts=

# As comments, which the text may have been already.
note()		# TEXT...
{
	local text=$'\n'$*

	text=${text//$'\n# '/$'\n'}
	text=${text//$'\n'/$'\n# '}
	echo "${text#$'\n'}"
}

# Print more about a failure; a test may define its own.
explain()
{
	:
}

# Called before a failure, or a reason to bail out, is printed. The function of a test
# may end the test instead.
before_failure()
{
	:
}

# PROBLEM is empty when all is well.
tap_result()	# PROBLEM BEHAVIOUR
{
	local text

	[ -z "$1" ] || before_failure
	number=$((number + 1))
	if [ -z "$1" ]; then
		echo "ok $number $2"
		return
	fi
	failures=$((failures + 1))
	note "$1"
	text=$(explain)
	[ -z "$text" ] || note "$text"
	echo "not ok $number $2"
	return 1
}

# The reason is the same on every machine: no numbers, no paths.
skipped()	# BEHAVIOUR REASON
{
	number=$((number + 1))
	echo "ok $number $1 # SKIP $2"
}

skip_all()	# REASON
{
	echo "1..0 # SKIP $1"
	tap_ended=yes
	exit 4
}

plan()		# RESULTS
{
	tap_planned=$1
	echo "1..$1"
}

done_testing()
{
	if [ -z "$tap_planned" ]; then
		plan $number
	elif [ "$number" -ne "$tap_planned" ]; then
		note "planned $tap_planned results and gave $number"
		exit 1
	fi
	tap_ended=yes
	exit $((failures > 0))
}

bail()		# REASON
{
	before_failure
	echo "Bail out! $*"
	tap_ended=yes
	exit 1
}

# FUNCTION is called at the end, whatever the end. $status is the test's exit status,
# which the function may change.
at_exit()	# FUNCTION
{
	tap_hooks+=("$1")
}

tap_exit()
{
	local status=$? hook

	trap - EXIT DEBUG
	# a check that ends the test has its output elsewhere
	# shellcheck disable=SC2261
	exec 1>&"$tap_out" 2>&"$tap_err"
	if [ -n "$tap_doing" ] && [ $tap_ended = no ]; then
		tap_result "the test ended in this check, with status $status"$'\n'"$(cat "$tap/said")" \
			"$tap_doing"
	fi
	if [ $tap_ended = no ] && [ "$tap_planned" = $number ]; then
		[ $status -ne 0 ] || status=$((failures > 0))
	elif [ $tap_ended = no ]; then
		note "the test ended early, with status $status, after $number results"
		[ $status -ne 0 ] || status=1
	fi
	for hook in "${tap_hooks[@]}"; do
		"$hook"
	done
	rm -rf "$tmp"
	exit "$status"
}
trap tap_exit EXIT

# ---- results

# Count commands that check: of a block, and of the test's top level. Without any the
# result would say nothing.
tap_looks()	# COMMAND
{
	local name=${1%%[[:space:]]*}

	case $name in
	'['|'[['|test|grep|diff|cmp|jq|await|refused) looked=$((looked + 1)) ;;
	*)	[[ " $asserts " != *" $name "* ]] || looked=$((looked + 1)) ;;
	esac
}
trap 'tap_looks "$BASH_COMMAND"' DEBUG

behaves()	# BEHAVIOUR FUNCTION [ARGUMENT]...
{
	local what=$1 status rc trouble complaints
	shift

	if ! declare -F "$1" >/dev/null; then
		tap_result "there is no function $1" "$what"
		return
	fi
	: >"$tap/end"
	: >"$tap/skip"
	(
		looked=0
		declare -ft "$1"
		trap 'tap_looks "$BASH_COMMAND"' DEBUG
		"$@"
		echo "$? $looked" >"$tap/end"
	) >"$tap/said" 2>"$tap/complaints"
	status=$?
	trouble=$(<"$tap/said")
	[ -n "$trouble" ] || [ ! -s "$tap/said" ] || trouble='it printed empty lines'
	complaints=$(<"$tap/complaints")
	[ -z "$complaints" ] ||
		trouble+=$'\n'"standard error: ${complaints//$'\n'/$'\n'standard error: }"
	if [ -s "$tap/end" ]; then
		read -r rc looked <"$tap/end"
		[ "$rc" -eq 0 ] || trouble+=$'\n'"it returned $rc"
		[ "$looked" -gt 0 ] || trouble+=$'\n''it looked at nothing'
		[ ! -s "$tap/skip" ] || trouble+=$'\n''it went on after a skip'
	elif [ ! -s "$tap/skip" ]; then
		trouble+=$'\n'"it died, with status $status"
		[ $status -le 128 ] || trouble+=" (SIG$(kill -l "$status"))"
	elif [ -z "$trouble" ]; then
		skipped "$what" "$(<"$tap/skip")"
		return
	fi
	looked=0
	tap_result "${trouble#$'\n'}" "$what"
}

# In a block: end it. A complaint that it printed before is still a failure.
skip()		# REASON
{
	echo "$*" >"$tap/skip"
	exit 0
}

check()		# BEHAVIOUR COMMAND...
{
	local rc=0 trouble
	tap_doing=$1
	shift

	"$@" >"$tap/said" 2>&1 || rc=$?
	[ ! -s "$tap/said" ] || note "$(<"$tap/said")"
	trouble=$problem
	problem=
	looked=0
	[ $rc -eq 0 ] || trouble+="it returned $rc"
	tap_result "${trouble%$'\n'}" "$tap_doing"
	rc=$?
	tap_doing=
	return $rc
}

bad()		# TEXT...
{
	problem+="$*"$'\n'
}

judge()		# BEHAVIOUR
{
	local trouble=$problem

	[ "$looked" -gt 0 ] || trouble+='it looked at nothing'
	looked=0
	problem=
	tap_result "${trouble%$'\n'}" "$1"
}

# ---- what tests often do

# Run a command that must succeed for the test to go on.
must()		# REASON COMMAND...
{
	local reason=$1
	shift

	"$@" >"$tap/said" 2>&1 && return
	note "$(cat "$tap/said")"
	bail "$reason"
}

# Wait until a command succeeds, for some seconds; after that print its last output.
await()		# SECONDS COMMAND...
{
	local end=$((SECONDS + $1 * slow)) seconds=$1
	shift

	until "$@" >"$tap/awaited" 2>&1; do
		if ((SECONDS > end)); then
			echo "# not within $((seconds * slow)) s: $*"
			tail -n 5 "$tap/awaited" | cut -c -300 | sed 's/^/# /'
			return 1
		fi
		sleep 0.1
	done
}

# Skip the test where a program of the system is missing. A program of this project,
# given with its path, must have been built.
needs()		# PROGRAM...
{
	local program

	for program; do
		command -v "$program" >/dev/null && continue
		[[ $program != */* ]] || bail "${program##*/} is not built"
		skip_all "no $program"
	done
}

# Print a file's content as a complaint, even if it is empty.
show()		# FILE
{
	echo "${1##*/}: $(cat "$1")"
}

# A command line that a program must refuse: with this exit status, nothing on
# standard output, and a pattern in one line of complaint. Prints what is wrong.
refused()	# PROGRAM STATUS PATTERN WORD...
{
	local program=$1 want=$2 pattern=$3 name=${1##*/} got lines
	shift 3

	"$program" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
	got=$?
	[ "$got" -eq "$want" ] || echo "$name $*: status $got, not $want"
	[ ! -s "$tmp/out" ] || echo "$name $*: prints $(head -1 "$tmp/out")"
	mapfile -t lines <"$tmp/err"
	[ ${#lines[@]} -eq 1 ] ||
		echo "$name $*: complains in ${#lines[@]} lines: ${lines[*]::3}"
	grep -qe "$pattern" "$tmp/err" ||
		echo "$name $*: says '${lines[*]}', nothing like '$pattern'"
}

[ -n "$tap_planned" ] || echo 'TAP version 13'
