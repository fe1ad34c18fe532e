#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# tests/lib/tap.sh: a test that goes wrong in whatever way does not pass. Each case is
# a script on the library, with the output and status that are expected; this test does
# not use the library itself.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
number=0
failures=0

# The lines that the script prints match the patterns of $want, one by one; the first
# is always the version. The script is on standard input.
gives()		# BEHAVIOUR STATUS
{
	local got lines patterns i bad=

	{
		echo 'set -uo pipefail'
		echo ". '$top/tests/lib/tap.sh'"
		# for the checks of the folder
		echo "echo \$tmp >'$dir/tmp'"
		cat
	} >"$dir/script"
	env -u MGPU_SLOW bash "$dir/script" >"$dir/out" 2>"$dir/err" </dev/null
	got=$?
	[ $got -eq "$2" ] || bad+="status $got, not $2"$'\n'
	mapfile -t lines <"$dir/out"
	mapfile -t patterns <<<"$want"
	[ "${tap_within-}" ] || patterns=('TAP version 13' "${patterns[@]}")
	[ ${#lines[@]} -eq ${#patterns[@]} ] ||
		bad+="${#lines[@]} lines, not ${#patterns[@]}"$'\n'
	for i in "${!lines[@]}"; do
		# shellcheck disable=SC2053 # it is a pattern
		[[ ${lines[i]} == ${patterns[i]-} ]] ||
			bad+="line $((i + 1)) is not '${patterns[i]-}'"$'\n'
	done
	[ -s "$dir/tmp" ] && [ ! -e "$(<"$dir/tmp")" ] || bad+="its folder stays"$'\n'
	number=$((number + 1))
	if [ -z "$bad" ]; then
		echo "ok $number $1"
		return
	fi
	failures=$((failures + 1))
	{ printf '%s' "$bad"; cat "$dir/out" "$dir/err"; } | sed 's/^/# /'
	echo "not ok $number $1"
}

echo 'TAP version 13'

want='ok 1 all is well
ok 2 with arguments
1..2'
gives 'a block that finds nothing wrong passes' 0 <<'END'
well() { [ 1 -eq 1 ] || echo 'wrong'; }
with() { [ "$1$2" = ab ] || echo 'wrong'; }
behaves 'all is well' well
behaves 'with arguments' with a b
done_testing
END

want='# it is wrong
# and so is that
not ok 1 something
1..1'
gives 'what a block prints is wrong' 1 <<'END'
block() { [ 1 -eq 2 ] || echo 'it is wrong'; echo 'and so is that'; }
behaves something block
done_testing
END

want='# it printed empty lines
not ok 1 empty lines
# file: 
not ok 2 an empty file
1..2'
gives 'what a block prints is wrong, and if it is nothing but a line' 1 <<'END'
block() { [ 1 -eq 2 ] || echo; }
behaves 'empty lines' block
block() { : >"$tmp/file"; [ 1 -eq 2 ] || show "$tmp/file"; }
behaves 'an empty file' block
done_testing
END

want='# it died, with status 0
not ok 1 dies
ok 2 goes on
1..2'
gives 'a block that exits before its end fails' 1 <<'END'
block() { [ 1 -eq 1 ]; exit 0; [ 1 -eq 2 ] || echo wrong; }
behaves dies block
well() { [ 1 -eq 1 ]; }
behaves 'goes on' well
done_testing
END

want='# standard error: *: nowhere: unbound variable
# it died, with status 1
not ok 1 dies
1..1'
gives 'a block that uses an unset variable fails' 1 <<'END'
block() { [ 1 -eq 1 ]; echo "$nowhere"; true; }
behaves dies block
done_testing
END

want='# it died, with status 137 (SIGKILL)
not ok 1 dies
1..1'
gives 'a block that is killed fails' 1 <<'END'
block() { [ 1 -eq 1 ]; kill -KILL $BASHPID; true; }
behaves dies block
done_testing
END

want='# it returned 7
not ok 1 returns
1..1'
gives 'a block that returns early with a status fails' 1 <<'END'
block() { [ 1 -eq 1 ] && return 7; echo 'never here'; }
behaves returns block
done_testing
END

want='# standard error: hu
not ok 1 complains
# standard error: *: command not found
not ok 2 mistyped
# standard error: *: unbound variable
not ok 3 nested
1..3'
gives 'a block that prints on standard error fails' 1 <<'END'
block() { [ 1 -eq 1 ]; echo hu >&2; }
behaves complains block
block() { [ 1 -eq 1 ]; ! comand; }
behaves mistyped block
block() { [ -z "$(echo $nowhere)" ]; }
behaves nested block
done_testing
END

want='# standard error: *syntax error*
not ok 1 syntax
1..1'
gives 'a block with an error of syntax fails' 1 <<'END'
block() { [ 1 -eq 1 ]; eval 'if'; true; }
behaves syntax block
done_testing
END

want='# it looked at nothing
not ok 1 no commands
# it looked at nothing
not ok 2 a loop over nothing
ok 3 a loop over words
ok 4 a function of its own
ok 5 the end of a pipe
1..5'
gives 'a block that looks at nothing fails' 1 <<'END'
list=()
block() { :; }
behaves 'no commands' block
loop() { local i; for i in "${list[@]}"; do [ "$i" = a ] || echo wrong; done; }
behaves 'a loop over nothing' loop
list=(a a)
behaves 'a loop over words' loop
asserts='sees finds'
finds() { true; }
block() { finds x; }
behaves 'a function of its own' block
block() { echo x | grep -q x; }
behaves 'the end of a pipe' block
done_testing
END

want='# there is no function nothing
not ok 1 none
1..1'
gives 'a block that is none fails' 1 <<'END'
behaves none nothing
done_testing
END

want='ok 1 cannot # SKIP no water
ok 2 never # SKIP no fire
# it is wrong
not ok 3 was wrong before
# it went on after a skip
not ok 4 went on
ok 5 the next
1..5'
gives 'a skip has a reason, and hides no failure' 1 <<'END'
block() { skip 'no water'; echo 'never here'; }
behaves cannot block
skipped never 'no fire'
block() { echo 'it is wrong'; skip 'no water'; }
behaves 'was wrong before' block
block() { [ 1 -eq 1 ]; (skip 'no water'); }
behaves 'went on' block
block() { [ 1 -eq 1 ]; }
behaves 'the next' block
done_testing
END

want='1..0 # SKIP no no-such-program'
gives 'a test is skipped where a program is missing' 4 <<'END'
needs bash no-such-program sh
END

want='Bail out! mgpuctl is not built'
gives 'a test without the program that it is about fails' 1 <<'END'
needs bash /nowhere/mgpuctl
END

want='1..2
ok 1 a
# * says so
# it returned 3
not ok 2 b'
gives 'a check runs in its shell, has a status, and its words are noted' 1 <<'END'
plan 2
a() { found=yes; }
check a a
b() { echo "$found says so" | sed 's/yes/ls/' >&2; return 3; }
check b b
END

want='ok 1 a
# the test ended in this check, with status 1
# so far
# *: nowhere: unbound variable
not ok 2 b
# the test ended early, with status 1, after 2 results'
gives 'a check that ends the test fails, by name, with what it said' 1 <<'END'
check a true
b() { echo 'so far'; echo $nowhere; }
check b b
check c true
done_testing
END

want='ok 1 a
# wrong
# and again
# the state was 3
not ok 2 b
ok 3 c
# it looked at nothing
not ok 4 d
1..4'
gives 'what is bad is judged once, with an explanation' 1 <<'END'
explain() { echo 'the state was 3'; }
[ 1 -eq 1 ] || bad wrong
judge a
[ 1 -eq 2 ] || bad wrong
bad and again
judge b
true | grep -q x && bad wrong
judge c
explain() { :; }
judge d
done_testing
END

want='ok 1 a
# the test ended early, with status 0, after 1 results'
gives 'a test that ends before its plan fails' 1 <<'END'
check a true
exit 0
END

want='1..2
ok 1 a
# the test ended early, with status 0, after 1 results'
gives 'a test with fewer results than planned fails' 1 <<'END'
plan 2
check a true
END

want='1..1
ok 1 a
ok 2 b
# planned 1 results and gave 2
# the test ended early, with status 1, after 2 results'
gives 'a test with more results than planned fails' 1 <<'END'
plan 1
check a true
check b true
done_testing
END

want='1..1
ok 1 a
the end, with 0'
gives 'a test with as many results as planned passes' 0 <<'END'
plan 1
last() { echo "the end, with $status"; }
at_exit last
check a true
END

want='Bail out! no modules
the logs, with 1'
gives 'a test that gives up fails, and its end is tidy' 1 <<'END'
logs() { echo "the logs, with $status"; true; }
at_exit logs
bail 'no modules'
END

want='# the test ended early, with status 1, after 0 results
first
second'
gives 'an unset variable ends a test, and not as one that passed' 4 <<'END'
first() { echo first; }
second() { echo second; status=4; }
at_exit first
at_exit second
echo $nowhere
done_testing
END

want='# the test ended early, with status *, after 0 results
last'
gives 'a test that is terminated fails' 143 <<'END'
last() { echo last; }
at_exit last
kill -TERM $$
sleep 10
END

want='# gone
Bail out! no tools'
gives 'what a test must have, it has' 1 <<'END'
must 'no shell' true
must 'no tools' sh -c 'echo gone; exit 1'
done_testing
END

want='# not within 0 s: sh -c echo so; false
# so
late
ok 1 soon
1..1'
gives 'what is awaited comes, or is told' 0 <<'END'
await 0 sh -c 'echo so; false' || echo late
check soon await 10 true
done_testing
END

want='# sh -c exit 3: status 3, not 2
# sh -c exit 3: complains in 0 lines: 
# sh -c exit 3: says '\'\'', nothing like '\''hu'\''
not ok 1 refused
1..1'
gives 'a refusal has a status and a line' 1 <<'END'
block() { refused sh 3 '^no$' -c 'echo no >&2; exit 3'; refused sh 2 hu -c 'exit 3'; }
behaves refused block
done_testing
END

want='ok 1 a'
tap_within=1
export tap_within
gives 'a part of another test prints neither version nor plan' 0 <<'END'
check a true
END

echo "1..$number"
exit $((failures > 0))
