# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Checks of a program's unit of systemd and of its manual page. To be sourced by a script that has set
#
#   unit	the unit, in ctl/
#   program	the program, in $BUILD/ctl/
#   man		the manual page, in Documentation/man/
#
# of which it makes paths; it sources tap.sh.
top=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$top/build}
unit=$top/ctl/${unit:?}
program=$BUILD/ctl/${program:?}
man=$top/Documentation/man/${man:?}
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
: "${tmp:?}"

# Have systemd look at the unit under the file name NAME, with a program that there is: the
# path of the program is that of an installation.
takes_unit()		# NAME
{
	command -v systemd-analyze >/dev/null || skip 'no systemd-analyze'
	sed "s,^\(Exec[A-Z][a-z]*\)=[^ ]*/${program##*/},\1=/bin/true," "$unit" >"$tmp/${unit##*/}"
	[ "$1" = "${unit##*/}" ] || cp "$tmp/${unit##*/}" "$tmp/$1"
	systemd-analyze verify --man=no "$tmp/$1" >"$tmp/out" 2>&1 || cat "$tmp/out"
	# complaints about this unit only, not about others on this machine
	! grep -F -e "$1" -e "${unit##*/}" "$tmp/out"
}

# The exposure of the unit that takes_unit() has looked at, as systemd-analyze rates it.
exposed()		# NAME MAX
{
	systemd-analyze security --help 2>/dev/null | grep -q -e --offline ||
		skip 'no systemd-analyze that looks at files'
	systemd-analyze security --offline=true "--threshold=$2" "$tmp/$1" >"$tmp/out" 2>&1 ||
		show "$tmp/out"
}

has()			# LINE... : of the unit
{
	local line

	for line in "$@"; do
		grep -qxF -e "$line" "$unit" || echo "no line '$line'"
	done
}

# The options of --help are those between .SH OPTIONS and the section that matches END.
man_has_options()	# END
{
	[ -x "$program" ] || skip "${program##*/} is not built"
	"$program" --help | sed -n 's/^  \(-.,\|   \) --\([a-z-]*\).*/\2/p' >"$tmp/want"
	sed -n "/^\.SH OPTIONS/,/^\.SH $1/"'{s/^\.B[IR]\? \(\\-. ", " \)\?\\-\\-\([a-z\\-]*\).*/\2/p}' \
		"$man" | tr -d '\\' >"$tmp/got"
	diff "$tmp/want" "$tmp/got"
	[ -s "$tmp/want" ] || echo 'no options'
}
