#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Every file of ours says in its first lines under which licence it is.
set -uo pipefail

cd "$(dirname "$0")/../.." || exit 1
echo 'TAP version 13'
echo 1..1
missing=()
while read -r f; do
	[ -f "$f" ] || continue
	case $f in
	# Data, licences and ABI descriptions have no place for it.
	COPYING|VERSION|LICENSES/*|Documentation/ABI/*|*.png|*.svg|*.json|*.bin|*.weights|*/corpus/*|.clang-format) continue ;;
	debian/changelog|debian/copyright|debian/source/format) continue ;;
	esac
	# neither empty nor binary
	LC_ALL=C grep -Iq . "$f" || continue
	head -n 5 "$f" | grep -q 'SPDX-License-Identifier:' || missing+=("$f")
done < <(git ls-files -co --exclude-standard)
if [ ${#missing[@]} -eq 0 ]; then
	echo 'ok 1 - every file has an SPDX line'
else
	printf '# no SPDX line: %s\n' "${missing[@]}"
	echo 'not ok 1 - every file has an SPDX line'
	exit 1
fi
