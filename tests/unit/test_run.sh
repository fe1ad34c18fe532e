#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# tests/run counts what test programs print, and nothing that is no pass is one. Runs
# a copy of it on programs that are made here.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
needs make awk timeout
asserts='ends_with says'

mkdir -p "$tmp/tests/unit" "$tmp/tests/e2e" "$tmp/build"
cp "$top/tests/run" "$tmp/tests/run"
: >"$tmp/tests/skips"

program()	# NAME, its text on standard input
{
	{ echo '#!/bin/bash'; cat; } >"$tmp/tests/unit/$1.sh"
	chmod +x "$tmp/tests/unit/$1.sh"
}

# The runner's output is in $tmp/out, its status in $status.
run()		# [VARIABLE=VALUE]... ARGUMENT...
{
	env -u CI -u MGPU_SKIPS -u MGPU_RESULTS -u MGPU_ONLY -u MGPU_LONG -u MGPU_QUIET -u JOBS \
		BUILD="$tmp/build" KERNEL=6.1 "${@:1:$#-1}" \
		"$tmp/tests/run" "${@: -1}" >"$tmp/out" 2>&1
	status=$?
}

ends_with()	# STATUS LAST-LINE
{
	[ "$status" -eq "$1" ] || echo "status $status, not $1"
	[ "$(tail -n 1 "$tmp/out")" = "$2" ] ||
		echo "the last line is '$(tail -n 1 "$tmp/out")', not '$2'"
}

says()		# PATTERN
{
	grep -qE -e "$1" "$tmp/out" || echo "no line like '$1' in: $(cat "$tmp/out")"
}

program good <<<'echo 1..2; echo ok 1 one; echo ok 2 two'
program crash <<<'echo 1..2; echo ok 1 one; kill -SEGV $$'
program status <<<'echo 1..1; echo ok 1 one; exit 3'
program few <<<'echo 1..3; echo ok 1 one'
program noplan <<<'echo ok 1 one'
program empty <<<'exit 0'
program four <<<'exit 4'
program nothing <<<'echo 1..0'
program wrong <<<'echo 1..2; echo "# seen 4"; echo not ok 1 one; echo ok 2 two; exit 1'
program failing <<'END'
echo 1..2
echo '# expected 3'
echo '# seen 4'
echo not ok 1 one '# TODO later'
echo ok 2 two
exit 1
END
program skipping <<<'echo 1..2; echo "ok 1 one # SKIP no moon"; echo ok 2 two'
program skipall <<<'echo "1..0 # SKIP no sun"; exit 4'
program again <<<'echo 1..1; echo "# measured again: rate (1, 2)"; echo ok 1 one'
program retry <<<'echo 1..1; echo "# retried: a cause"; echo ok 1 one'
program retries <<<'echo 1..1; echo "# retried: a"; echo "# retried: b"; echo "# retried: c"; echo ok 1 one'
program slow <<'END'
# timeout: 1
echo 1..1
sleep 30
echo ok 1 one
END

counts()
{
	run unit/good.sh
	ends_with 0 '2 passed, 0 failed, 0 skipped'
}
behaves 'results are counted' counts

# Here is no kernel, and no tests/kselftest.
needs_no_kernel()
{
	run unit/good.sh
	! grep '^make' "$tmp/out"
}
behaves 'programs without a kernel run where there is none' needs_no_kernel

fails()
{
	local name

	while read -r name text; do
		run "unit/$name.sh"
		[ "$status" -eq 1 ] || echo "$name: status $status, not 1"
		says "$text"
	done <<-'END'
	crash died of signal 11
	status ended with status 3
	few planned 3 results and printed 1
	noplan printed no plan
	empty printed no plan
	four printed no plan
	nothing planned no results
	slow ran out of time
	END
}
behaves 'a program that crashes, hangs or prints less than its plan has failed' fails

shows()
{
	run unit/failing.sh
	ends_with 1 '1 passed, 1 failed, 0 skipped'
	says '# expected 3'
	says '# seen 4'
	says '^failed: unit/failing.sh'
	says 'last lines of'
	grep -q 'seen 4' "$tmp/build/check/unit/failing.sh.log" || echo 'no log is kept'
}
behaves 'a failure is never excused, and is shown with the comments before it' shows

skips()
{
	: >"$tmp/tests/skips"
	run unit/skipping.sh
	ends_with 0 '1 passed, 0 failed, 1 skipped'
	says 'not expected: .*no moon'
	run CI=true unit/skipping.sh
	ends_with 1 '1 passed, 1 failed, 0 skipped'
	run MGPU_SKIPS=strict unit/skipall.sh
	ends_with 1 '0 passed, 1 failed, 0 skipped'
	printf '%s\n' '# reasons' '6.1 unit/skipping.sh no moon' '* unit/skipall.sh no sun' \
		>"$tmp/tests/skips"
	run CI=true unit/skipping.sh
	ends_with 0 '1 passed, 0 failed, 1 skipped'
	run CI=true unit/skipall.sh
	ends_with 0 '0 passed, 0 failed, 1 skipped'
	run CI=true KERNEL=6.12 unit/skipping.sh
	ends_with 1 '1 passed, 1 failed, 0 skipped'
}
behaves 'a skip that is not expected on this kernel is a failure in CI' skips

retries()
{
	run unit/retry.sh
	ends_with 0 '1 passed, 0 failed, 0 skipped, 1 retried'
	run unit/retries.sh
	ends_with 1 '1 passed, 1 failed, 0 skipped, 3 retried'
	run unit/again.sh
	ends_with 0 '1 passed, 0 failed, 0 skipped'
	says '^measured again: 1 '
}
behaves 'retries are counted, and more than two are a failure' retries

selects()
{
	run 'unit/{good,status}.sh'
	ends_with 2 "$(tail -n 1 "$tmp/out")"
	run 'unit/@(good|again).sh'
	ends_with 0 '3 passed, 0 failed, 0 skipped'
	run unit/none.sh
	ends_with 2 "$(tail -n 1 "$tmp/out")"
	says "no test program matches 'unit/none.sh'"
	run --only
	ends_with 2 "$(tail -n 1 "$tmp/out")"
	run JOBS=0 unit/good.sh
	ends_with 2 "tests/run: JOBS must be a whole number from 1, not '0'"
}
behaves 'programs are selected by patterns, and one that matches nothing is refused' selects

# A slow one beside a quick one takes no longer than by itself; both are accounted for.
program pause <<<'echo 1..1; until [ -e '"$tmp"'/go ]; do sleep 0.1; done; echo ok 1 one'
program go <<<'echo 1..1; touch '"$tmp"'/go; echo ok 1 one'
parallel()
{
	rm -f "$tmp/go"
	run JOBS=2 'unit/@(pause|go).sh'
	ends_with 0 '2 passed, 0 failed, 0 skipped'
	grep -q $'^unit\tpause.sh\t[0-9]*\t1\t0\t0\t0\t0$' "$tmp/build/check/times.tsv" ||
		echo "times.tsv: $(cat "$tmp/build/check/times.tsv")"
}
behaves 'two programs run at a time, and their times are kept' parallel

# The first one's log takes long to judge; the second one dies meanwhile.
program long <<<'echo 1..1; seq -f "# %.0f" 1500000; echo ok 1 one; touch '"$tmp"'/go'
program dies <<END
echo 1..1
until [ -e "$tmp/go" ]; do sleep 0.01; done
sleep 0.1
kill -SEGV \$\$
END
beside()
{
	rm -f "$tmp/go"
	run JOBS=2 'unit/@(long|dies|good).sh'
	ends_with 1 '3 passed, 1 failed, 0 skipped'
	says 'died of signal 11'
}
behaves 'a program that crashes while another one is judged is counted' beside

sums()
{
	: >"$tmp/results"
	run MGPU_RESULTS="$tmp/results" unit/retry.sh
	ends_with 0 'sum: passed 1, failed 0, skipped 0, retried 1'
	[ "$(cat "$tmp/results")" = '1 0 0 1' ] || echo "results: $(cat "$tmp/results")"
}
behaves 'counts are added to a file for continuous integration' sums

reasons()
{
	: >"$tmp/results"
	run MGPU_RESULTS="$tmp/results" 'unit/@(wrong|good|crash).sh'
	[ "$(sort "$tmp/results")" = "$(sort <<-'END'
		# unit/wrong.sh: not ok 1 one
		# unit/wrong.sh: | # seen 4
		# unit/crash.sh: failed: died of signal 11
		4 2 0 0
	END
	)" ] || echo "results: $(cat "$tmp/results")"
}
behaves 'failures are added to that file' reasons

# They look for the file themselves.
for name in measures other; do
	{
		echo '#!/bin/bash'
		[ $name = other ] || echo '# needs: quiet'
		echo "echo 1..1; [ -e '$tmp/quiet' ] && echo ok 1 || echo not ok 1"
	} >"$tmp/tests/e2e/$name.sh"
	chmod +x "$tmp/tests/e2e/$name.sh"
done
quiet()
{
	run MGPU_QUIET="$tmp/quiet" 'e2e/*'
	ends_with 1 '1 passed, 1 failed, 0 skipped'
	says '^ok +e2e/measures.sh'
	[ ! -e "$tmp/quiet" ] || echo 'the file is left'
}
behaves 'a program that measures can have the machine for itself' quiet

done_testing
