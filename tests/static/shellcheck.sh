#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# None of our scripts gives shellcheck a reason to warn.
set -uo pipefail

cd "$(dirname "$0")/../.." || exit 1
echo 'TAP version 13'
if ! command -v shellcheck >/dev/null; then
	echo '1..0 # SKIP shellcheck is not installed'
	exit 4
fi

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

bash=()
busybox=()
while read -r f; do
	[ -f "$f" ] || continue
	case $(LC_ALL=C head -c 64 "$f" | tr -d '\0' | sed -n 1p) in
	# the test host's first program
	*busybox*) busybox+=("$f") ;;
	# to be sourced
	'# shellcheck shell=bash') bash+=("$f") ;;
	'#!'*/sh|'#!'*' sh'|'#!'*bash|'#!'*dash) bash+=("$f") ;;
	esac
done < <(git ls-files -co --exclude-standard)

# Several files at a time: each process reads the libraries that its files source
# once. A file of complaints for each process, and the last line its status.
check()		# SCRIPT... [-- OPTION...]
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
		"$dir" $(($# > 0 ? $# - 1 : 0)) "${@:2}"
}

check "${bash[@]}"
check "${busybox[@]}" -- -s dash
cat "$dir"/* >"$dir/all" 2>/dev/null

echo "1..$((${#bash[@]} + ${#busybox[@]}))"
n=0
bad=0
for f in "${bash[@]}" "${busybox[@]}"; do
	n=$((n + 1))
	if out=$(grep -F "$f:" "$dir/all" | grep "^$f:"); then
		printf '%s\n' "$out" | sed 's/^/# /'
		echo "not ok $n - shellcheck $f"
		bad=1
	else
		echo "ok $n - shellcheck $f"
	fi
done
exit $bad
