#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# systemd takes the unit of mgpu-agent, its settings are true of mgpu-agent, and the manual page
# has its options and settings.
set -uo pipefail

unit=agent/mgpu-agent.service program=mgpu-agent man=mgpu-agent.1
# shellcheck source=tests/lib/unit.sh
. "$(dirname "$0")/../lib/unit.sh"
must 'mgpu-agent cannot be built' make -s -C "$top/ctl" agent BUILD="$BUILD"

behaves 'systemd takes the unit' takes_unit mgpu-agent.service
behaves 'its exposure is that of a service that runs jobs' exposed mgpu-agent.service 45

asserts=has

told_truly()
{
	has Type=notify KillMode=mixed 'RestartPreventExitStatus=1 2' StateDirectory=mgpu-agent \
		StateDirectoryMode=0700 NoNewPrivileges=yes
	grep -q '"/var/lib/mgpu-agent"' "$top/ctl/agent/conf.h" || echo 'another StateDirectory'
	grep -qF /var/lib/mgpu-agent "$man" || echo 'the manual page does not have it'
}
behaves 'its claims about mgpu-agent are true' told_truly

install_to()
{
	for prefix in /usr/local /usr; do
		rm -rf "$tmp/root"
		make -s -C "$top/ctl" install BUILD="$BUILD" PREFIX=$prefix \
			DESTDIR="$tmp/root" >"$tmp/out" 2>&1 || show "$tmp/out"
		grep -q "^ExecStart=$prefix/bin/mgpu-agent watch\$" \
			"$(find "$tmp/root" -name mgpu-agent.service)" || echo 'another ExecStart'
		for file in bin/mgpu-agent share/man/man1/mgpu-agent.1 \
			share/bash-completion/completions/mgpu-agent; do
			[ -f "$tmp/root$prefix/$file" ] || echo "no $prefix/$file"
		done
		[ -f "$tmp/root/etc/mgpu/agent.conf" ] || echo 'no agent.conf'
	done
}
behaves 'it is installed with its program and settings' install_to

behaves 'the manual page has the options' man_has_options KEY

# The settings of the program are in the manual page, and those of agent.conf are settings.
settings()
{
	sed -n 's/^\t{ "\([a-z]*\)", offsetof(.*/\1/p' "$top/ctl/agent/conf.c" >"$tmp/want"
	echo service >>"$tmp/want"
	[ "$(wc -l <"$tmp/want")" -gt 5 ] || echo 'hardly a setting was found'
	sed -n '/^\.SH SETTINGS/,/^\.SH EXIT/s/^\.B \([a-z]*\)$/\1/p' "$man" >"$tmp/got"
	sort "$tmp/want" | comm -23 - <(sort "$tmp/got") >"$tmp/out"
	[ ! -s "$tmp/out" ] || show "$tmp/out"
	sed -n 's/^#\([a-z]*\)=.*/\1/p' "$top/ctl/agent/agent.conf" | sort |
		comm -23 - <(sort "$tmp/want") >"$tmp/out"
	[ ! -s "$tmp/out" ] || show "$tmp/out"
	sed 's/^#\([a-z]*=\)/\1/' "$top/ctl/agent/agent.conf" >"$tmp/agent.conf"
	printf 'vm=a\nkey=%s/key\n' "$tmp" >>"$tmp/agent.conf"
	refused "$program" 1 "$tmp/key: No such file" state --config "$tmp/agent.conf"
}
behaves 'the settings are those of the manual page' settings

# A guest needs the C library and GnuTLS.
libraries()
{
	readelf -d "$program" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -v '^libc\.so\|^libgnutls\.so'
	[ "$(stat -Lc %s "$program")" -gt 0 ] || echo 'no program'
}
behaves 'it needs the C library and GnuTLS only' libraries

done_testing
