#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# systemd takes the unit of mgpu-poold, its settings are true of mgpu-poold, and the manual pages
# have its options and settings.
set -uo pipefail

unit=pool/mgpu-poold.service program=mgpu-poold man=mgpu-poold.8
# shellcheck source=tests/lib/unit.sh
. "$(dirname "$0")/../lib/unit.sh"
conf=$top/Documentation/man/mgpu-pool.conf.5
must 'mgpu-poold cannot be built' make -s -C "$top/ctl" pool BUILD="$BUILD"

behaves 'systemd takes the unit' takes_unit mgpu-poold.service
behaves 'its exposure is low' exposed mgpu-poold.service 30

asserts=has

told_truly()
{
	has Type=notify User=mgpu-pool Group=mgpu-pool RuntimeDirectory=mgpu-pool \
		StateDirectory=mgpu-pool 'RestartPreventExitStatus=2 3' Restart=on-failure \
		NoNewPrivileges=yes
	grep -q '"/run/mgpu-pool/socket"' "$top/ctl/pool/config.c" || echo 'another socket'
	grep -q '"sqlite:/var/lib/mgpu-pool/pool.db"' "$top/ctl/pool/config.c" ||
		echo 'another database'
	grep -q '^u mgpu-pool ' "$top/ctl/pool/sysusers" || echo 'no user mgpu-pool'
	grep -q '^m mgpu-pool libvirt$' "$top/ctl/pool/sysusers" || echo 'not in the group libvirt'
	grep -q 'chown(addr->sun_path' "$top/ctl/pool/listen.c" || echo 'no group of the socket'
	sed -n '/^SystemCallFilter=~@privileged/,$p' "$unit" | grep -qx 'SystemCallFilter=@chown' ||
		echo 'the socket cannot get its group: @privileged has chown()'
}
behaves 'its claims about mgpu-poold are true' told_truly

install_to()
{
	for prefix in /usr/local /usr; do
		rm -rf "$tmp/root"
		make -s -C "$top/ctl" install BUILD="$BUILD" PREFIX=$prefix \
			DESTDIR="$tmp/root" >"$tmp/out" 2>&1 || show "$tmp/out"
		grep -q "^ExecStart=$prefix/sbin/mgpu-poold serve\$" \
			"$(find "$tmp/root" -name mgpu-poold.service)" || echo 'another ExecStart'
		for file in sbin/mgpu-poold share/man/man8/mgpu-poold.8 lib/sysusers.d/mgpu-pool.conf \
			share/man/man5/mgpu-pool.conf.5 share/bash-completion/completions/mgpu-poold; do
			[ -f "$tmp/root$prefix/$file" ] || echo "no $prefix/$file"
		done
		"$program" config --config "$tmp/root/etc/mgpu/pool.conf" >"$tmp/out" 2>&1 ||
			show "$tmp/out"
	done
}
behaves 'it is installed with its program, accounts and settings' install_to

behaves 'the manual page has the options' man_has_options 'EXIT'

# Sections and keys of the table in config.c, in their order, with their defaults.
settings()
{
	sed -n 's/^\t\(WHOLE\|TEXT\|SETTING\)("\([a-z]*\)", "\([a-z0-9_]*\)",.*/\2 \3/p' \
		"$top/ctl/pool/config.c" >"$tmp/want"
	[ "$(wc -l <"$tmp/want")" -gt 25 ] || echo 'hardly a setting was found'
	awk '/^\.SH SECTION/ { section = substr($3, 2); sub(/\]$/, "", section) }
	     /^\.BR [a-z0-9_]+ " \(/ && section !~ /^(host|project|client)$/ { print section, $2 }' \
		"$conf" >"$tmp/got"
	diff "$tmp/want" "$tmp/got"
	while read -r section key; do
		awk -v s="[$section]" -v k="$key" '
			/^\[/ { now = $0 }
			now == s && $0 ~ "^#?" k " = " { found = 1 }
			END { exit !found }' "$top/ctl/pool/pool.conf" || echo "pool.conf lacks $section $key"
	done < <(grep -v '^attach\|^limits' "$tmp/want")
}
behaves 'the manual page and pool.conf have the settings' settings

defaults()
{
	local key value

	sed -n 's/^#\([a-z0-9_]*\) = \([^ ]*\)$/\1 \2/p' "$top/ctl/pool/pool.conf" |
		awk '!seen[$1]++' >"$tmp/pairs"
	while read -r key value; do
		case $key in address|certificate|key|client_ca|listen|uri|weight|max_gpus|role) continue ;; esac
		grep -q "^\.BR $key \" (.*default $value)\"" "$conf" ||
			echo "another default of $key than $value"
		grep -q "\"$key\",.*\"$value\"\(),\| },\)" "$top/ctl/pool/config.c" ||
			grep -A1 "\"$key\"," "$top/ctl/pool/config.c" | grep -q "\"$value\")," ||
			echo "config.c has another default of $key"
	done <"$tmp/pairs"
	[ "$(wc -l <"$tmp/pairs")" -gt 15 ] || echo 'hardly a default was found'
}
behaves 'the defaults are those of the program' defaults

done_testing
