# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# TAP for shell tests; to be sourced. Sets tmp, a folder that goes with the test,
# and prints the version line.

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
number=0
failures=0
slow=${MGPU_SLOW:-1}

# PROBLEM is empty when all is well, or begins with SKIP.
result()	# PROBLEM BEHAVIOUR
{
	number=$((number + 1))
	case $1 in
	'')	echo "ok $number $2" ;;
	SKIP*)	echo "ok $number $2 # $1" ;;
	*)	printf '%s\n' "$1" | sed 's/^/# /'
		echo "not ok $number $2"
		failures=$((failures + 1)) ;;
	esac
}

# For tests whose steps are not in a subshell: bad() says what is wrong, any number
# of times, and judge() makes a result of it. A test may have an explain() that
# prints what else is to be known then.
problem=
bad()		# TEXT...
{
	problem+="$*"$'\n'
}

explain()
{
	:
}

judge()		# BEHAVIOUR
{
	[ -z "$problem" ] || problem+=$(explain)
	result "$problem" "$1"
	problem=
}

# Until a command succeeds, for some seconds.
await()		# SECONDS COMMAND...
{
	local end=$((SECONDS + $1 * slow))
	shift

	while ! "$@" >/dev/null 2>&1; do
		((SECONDS <= end)) || return 1
		sleep 0.1
	done
}

# The test is skipped where one of them is missing.
needs()		# PROGRAM...
{
	local program

	for program; do
		command -v "$program" >/dev/null && continue
		echo "1..0 # SKIP no $program"
		exit 4
	done
}

# A command line that a program must refuse: with this exit status, nothing on
# standard output, and a pattern in one line of complaint. Prints what is wrong.
refused()	# PROGRAM STATUS PATTERN WORD...
{
	local program=$1 want=$2 pattern=$3 name=${1##*/} got
	shift 3

	"$program" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
	got=$?
	[ "$got" -eq "$want" ] || echo "$name $*: status $got, not $want"
	[ ! -s "$tmp/out" ] || echo "$name $*: prints $(head -1 "$tmp/out")"
	[ "$(wc -l <"$tmp/err")" -eq 1 ] ||
		echo "$name $*: complains in $(wc -l <"$tmp/err") lines: $(head -3 "$tmp/err")"
	grep -qe "$pattern" "$tmp/err" ||
		echo "$name $*: says '$(cat "$tmp/err")', nothing like '$pattern'"
}

echo 'TAP version 13'
