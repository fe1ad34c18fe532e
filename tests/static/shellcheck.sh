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

scripts=()
while read -r f; do
	[ -f "$f" ] || continue
	case $(LC_ALL=C head -c 64 "$f" | tr -d '\0' | sed -n 1p) in
	'#!'*/sh|'#!'*' sh'|'#!'*bash|'#!'*dash) scripts+=("$f") ;;
	esac
done < <(git ls-files -co --exclude-standard)

echo "1..${#scripts[@]}"
n=0
bad=0
for f in "${scripts[@]}"; do
	n=$((n + 1))
	shell=()
	# The test host's first program is run by busybox.
	case $(sed -n 1p "$f") in
	*busybox*) shell=(-s dash) ;;
	esac
	if out=$(shellcheck -x -S warning -e SC1091 "${shell[@]}" "$f" 2>&1); then
		echo "ok $n - shellcheck $f"
	else
		printf '%s\n' "$out" | sed 's/^/# /'
		echo "not ok $n - shellcheck $f"
		bad=1
	fi
done
exit $bad
