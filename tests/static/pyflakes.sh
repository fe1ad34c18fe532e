#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# No Python program uses a name that it does not have, or has one that it does not use.
set -uo pipefail

cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
command -v pyflakes3 >/dev/null || skip_all 'pyflakes3 is not installed'

python=()
while read -r f; do
	[ -f "$f" ] || continue
	case $(LC_ALL=C head -c 64 "$f" | tr -d '\0' | sed -n 1p),$f in
	'#!'*python3,*|*.py) python+=("$f") ;;
	esac
done < <(git ls-files -co --exclude-standard)

plan ${#python[@]}
for f in "${python[@]}"; do
	check "pyflakes $f" pyflakes3 "$f"
done
done_testing
