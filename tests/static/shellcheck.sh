#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# No script gives shellcheck a reason to complain.
set -uo pipefail

cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
command -v shellcheck >/dev/null || skip_all 'shellcheck is not installed'

bash=()
busybox=()
while read -r f; do
	[ -f "$f" ] || continue
	case $(LC_ALL=C head -c 64 "$f" | tr -d '\0' | sed -n 1p) in
	# the first program of the test host and of guests
	*busybox*) busybox+=("$f") ;;
	# libraries
	'# shellcheck shell=bash') bash+=("$f") ;;
	'#!'*/sh|'#!'*' sh'|'#!'*bash|'#!'*dash) bash+=("$f") ;;
	esac
done < <(git ls-files -co --exclude-standard)

# Check several files at a time: each process reads the libraries that its files source
# once. Each process writes its complaints to a file, and its status if it failed.
mkdir "$tmp/said"
lint()		# SCRIPT... [-- OPTION...]
{
	local files=()

	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		files+=("$1")
		shift
	done
	[ ${#files[@]} -gt 0 ] || return
	# shellcheck disable=SC2016
	printf '%s\0' "${files[@]}" | xargs -0 -n 8 -P "${JOBS:-$(nproc)}" bash -c '
		said=$(mktemp "$0/XXXXXX")
		n=$1
		shift
		options=("${@:1:n}")
		shift "$n"
		shellcheck -x -S warning -e SC1091 -f gcc "${options[@]}" "$@" >"$said" 2>&1
		rc=$?
		# 1 is a complaint, which names its file
		[ $rc -le 1 ] || printf "%s: shellcheck ended with $rc\n" "$@" >>"$said"' \
		"$tmp/said" $(($# > 0 ? $# - 1 : 0)) "${@:2}"
}

lint "${bash[@]}"
lint "${busybox[@]}" -- -s dash
cat "$tmp"/said/* >"$tmp/all" 2>/dev/null

no_complaint()	# SCRIPT
{
	grep "^$1:" "$tmp/all" || true
}

plan $((${#bash[@]} + ${#busybox[@]}))
for f in "${bash[@]}" "${busybox[@]}"; do
	behaves "shellcheck $f" no_complaint "$f"
done
done_testing
