#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# tools/setup/private-apt finds the sources of another suite, and downloads what is not
# there: apt takes packages from a folder.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
# shellcheck source=tools/setup/private-apt
. "$top/tools/setup/private-apt"
for tool in apt-get apt-cache dpkg-deb; do
	command -v $tool >/dev/null || skip_all "no $tool"
done
plan 9

# --- sources

apt_etc=$tmp/etc
mkdir -p "$apt_etc/sources.list.d"

is()		# WANTED GOT
{
	[ "$1" = "$2" ] || echo "'$2', not '$1'"
}
asserts=is

newer_form()
{
	cat >"$apt_etc/sources.list.d/debian.sources" <<-'END'
		Types: deb-src
		URIs: http://source/debian
		Suites: bookworm

		Types: deb
		URIs: http://off/debian
		Suites: bookworm
		Enabled: no

		# a comment
		Types: deb deb-src
		URIs: http://one/debian http://two/debian
		Suites: bookworm bookworm-updates
		Signed-By: /keys/debian.gpg

		Types: deb
		URIs: http://sec/debian
		Suites: bookworm-security
	END
	is 'deb [signed-by=/keys/debian.gpg] http://one/debian trixie main' \
		"$(source_line 'bookworm|stable' trixie)"
	is 'deb http://sec/debian trixie-security main' \
		"$(source_line 'bookworm-security|stable-security' trixie-security)"
	is '' "$(source_line buster trixie)"
}
behaves 'a source of the newer form is found' newer_form
older_form()
{
	rm "$apt_etc/sources.list.d/debian.sources"
	cat >"$apt_etc/sources.list" <<-'END'
		# deb http://comment/debian bookworm main
		deb-src http://source/debian bookworm main
		deb http://updates/debian bookworm-updates main
		deb [signed-by=/keys/a.gpg arch=amd64] http://one/debian/ bookworm main contrib
		deb http://two/debian stable main
	END
	is 'deb [signed-by=/keys/a.gpg arch=amd64] http://one/debian/ trixie main' \
		"$(source_line 'bookworm|stable' trixie)"
	is 'deb http://two/debian trixie main' "$(source_line stable trixie)"
	is '' "$(source_line bookworm-security trixie-security)"
}
behaves 'a source of the older form is found' older_form

die()
{
	echo "died: $*"
	exit 1
}

# Of a suite with a source, of one without security updates, and of one without a source.
lists()
{
	private_apt()
	{
		shift
		printf '%s\n' "$@"
	}

	printf '%s\n' 'deb http://one/debian bookworm main' \
		'deb http://sec/debian bookworm-security main' >"$apt_etc/sources.list"
	is $'deb http://one/debian trixie main\ndeb http://sec/debian trixie-security main' \
		"$(suite_lists "$tmp/state" trixie trixie-security)"
	echo 'deb http://one/debian stable main' >"$apt_etc/sources.list"
	is 'deb http://one/debian trixie main' "$(suite_lists "$tmp/state" trixie trixie-security)"
	: >"$apt_etc/sources.list"
	suite_lists "$tmp/state" trixie trixie-security >"$tmp/said" &
	! wait $! || echo 'it ends with status 0'
	grep -q '^died: apt has no source of Debian 12 to take the one of trixie from' "$tmp/said" ||
		show "$tmp/said"
}
behaves 'lists of a suite and of its security updates are read from where Debian 12 is' lists

# --- packages: upper needs lower, and other is for itself

repo=$tmp/repo
mkdir "$repo"
for p in lower upper other; do
	mkdir -p "$tmp/$p/DEBIAN" "$tmp/$p/usr/$p"
	cat >"$tmp/$p/DEBIAN/control" <<-END
		Package: mgpu-test-$p
		Version: 1:2.3
		Architecture: all
		Maintainer: mgpu
		Description: $p
	END
	[ $p != upper ] || echo 'Depends: mgpu-test-lower' >>"$tmp/$p/DEBIAN/control"
	deb=$repo/mgpu-test-${p}_2.3_all.deb
	dpkg-deb -b "$tmp/$p" "$deb" >/dev/null || bail 'cannot make a package'
	cat "$tmp/$p/DEBIAN/control" >>"$repo/Packages"
	printf 'Filename: ./%s\nSize: %d\nSHA256: %s\n\n' "${deb##*/}" "$(stat -c %s "$deb")" \
		"$(sha256sum <"$deb" | cut -d' ' -f1)" >>"$repo/Packages"
done

check 'package lists are read' private_apt "$tmp/state" "deb [trusted=yes] copy:$repo ./"
dependencies()
{
	is 'mgpu-test-lower=1:2.3 mgpu-test-upper=1:2.3' \
		"$(with_dependencies mgpu-test-upper | sort | tr '\n' ' ' | sed 's/ $//')"
}
behaves 'packages come with what they depend on, and with nothing else' dependencies

# The file's name has an escaped colon.
file_of()	# PACKAGE
{
	echo "$tmp/dl/mgpu-test-${1}_1%3a2.3_all.deb"
}
downloads()
{
	fetch_debs "$tmp/dl" mgpu-test-lower=1:2.3 mgpu-test-upper >"$tmp/said" || cat "$tmp/said"
	is 2 "${#debs[@]}"
	is "$(file_of lower) $(file_of upper)" \
		"$(printf '%s\n' "${debs[@]}" | sort | tr '\n' ' ' | sed 's/ $//')"
	cmp "$repo/mgpu-test-lower_2.3_all.deb" "$(file_of lower)"
	cmp "$repo/mgpu-test-upper_2.3_all.deb" "$(file_of upper)"
}
behaves 'their files are downloaded' downloads
repairs()
{
	printf x | dd of="$(file_of lower)" bs=1 seek=100 conv=notrunc 2>/dev/null
	rm "$(file_of upper)"
	fetch_debs "$tmp/dl" mgpu-test-lower mgpu-test-upper >"$tmp/said" || cat "$tmp/said"
	cmp "$repo/mgpu-test-lower_2.3_all.deb" "$(file_of lower)"
	cmp "$repo/mgpu-test-upper_2.3_all.deb" "$(file_of upper)"
}
behaves 'a damaged file is downloaded again, and so is a lost one' repairs
away()
{
	mv "$repo" "$repo.away"
	fetch_debs "$tmp/dl" mgpu-test-lower mgpu-test-upper >"$tmp/said" || cat "$tmp/said"
	! fetch_debs "$tmp/dl" mgpu-test-other >"$tmp/said" || echo 'no failure'
	[ -s "$tmp/said" ] || echo 'no reason'
	mv "$repo.away" "$repo"
}
behaves 'what is there needs no source; what is not fails with a reason' away
unknown()
{
	! fetch_debs "$tmp/dl" mgpu-test-nothing >"$tmp/said" || echo 'no failure'
	grep -q mgpu-test-nothing "$tmp/said" || echo 'no reason'
}
behaves 'an unknown package fails with a reason' unknown
