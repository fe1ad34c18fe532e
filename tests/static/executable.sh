#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Each test script is executable: tests/run passes over a script that is not.
set -uo pipefail

cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh

scripts=()
for f in tests/{static,unit,kselftest,e2e,device,long,packaging}/*.{sh,py}; do
	# A library of other scripts names no interpreter.
	[[ ! -f $f || $(head -n 1 "$f") != '#!'* ]] || scripts+=("$f")
done

plan 1
[ ${#scripts[@]} -gt 20 ] || bad 'hardly a script was found'
for f in "${scripts[@]}"; do
	[ -x "$f" ] || bad "$f is not executable; run: chmod +x $f"
done
judge 'every test script is executable'
done_testing
