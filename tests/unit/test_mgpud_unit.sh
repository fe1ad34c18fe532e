#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# mgpud's unit is one that systemd takes, its settings are true of mgpud, and what
# the manual page says of options is what mgpud has.
set -uo pipefail

unit=mgpud/mgpud.service program=mgpud man=mgpud.8
# shellcheck source=tests/lib/unit.sh
. "$(dirname "$0")/../lib/unit.sh"

behaves 'systemd takes the unit' takes_unit mgpud.service
behaves 'its exposure is low' exposed mgpud.service 30

asserts=has

told_truly()
{
	has Type=notify RuntimeDirectory=mgpu StateDirectory=mgpu LogsDirectory=mgpu
	# a reload checks first, and then sends the signal
	[ "$(sed -n 's/^ExecReload=//p' "$unit")" = '/usr/local/sbin/mgpud --check
/bin/kill -HUP $MAINPID' ] || echo 'a reload is not checked'
	grep -q '^WatchdogSec=[1-9]' "$unit" || echo 'no watchdog'
	# final are all but success, anything else, and a module that --once did not find
	statuses=$(sed -n '/^\.SH EXIT STATUS/,/^\.SH ENV/s/^\.B \([0-9]*\)$/\1/p' "$man")
	[ "$(echo $statuses)" = '0 1 2 3 4 5 6' ] || echo "statuses: $statuses"
	has 'RestartPreventExitStatus=2 3 4 6'
	grep -qF '/run/mgpu/mgpud.sock' "$top/ctl/lib/mgpud_client.h" || echo 'another socket'
	grep -qF '/var/lib/mgpu/' "$top/ctl/lib/mgpud_settings.h" || echo 'another state file'
}
behaves 'its claims about mgpud are true' told_truly

behaves 'the manual page has the options' man_has_options '\(OUTPUT\|CONF\)'

# Options and keys that were called policy.
old_name()
{
	[ -x "$program" ] || skip 'mgpud is not built'
	refused "$program" 2 '^mgpud: --policy is called --allocator now: use --allocator fea$' \
		--policy fea
	printf '[mgpud]\npolicy = fea\n' >"$tmp/conf"
	refused "$program" 3 "$tmp/conf:2: policy is called allocator now: use allocator = fea" \
		--config "$tmp/conf" --check
}
behaves 'an old name is refused with the new one' old_name

# Preemption without a module: everything that needs none works.
preemption()
{
	[ -x "$program" ] || skip 'mgpud is not built'
	"$program" --help | sed -n '/^Preemption policies:/,/^$/p' >"$tmp/out"
	for policy in none always drain flush mgpu; do
		grep -q "^  $policy  *[a-z]" "$tmp/out" || echo "help does not explain $policy"
	done
	refused "$program" 2 '^mgpud: --preempt: .* none, always, drain, flush or mgpu, not "exact"$' --preempt exact
	printf '[preemption]\npolicy = drain\nstarve_ms = 0\n' >"$tmp/conf"
	refused "$program" 3 "$tmp/conf:3: starve_ms must be .*1 to 3600000 milliseconds" --config "$tmp/conf" --check
	sed -i 's/= 0/= 20/' "$tmp/conf"
	"$program" --config "$tmp/conf" --preempt flush --check >"$tmp/out" 2>&1 || show "$tmp/out"
}
behaves 'preemption is configured by file and command line' preemption

install_to()
{
	[ -x "$program" ] || skip 'mgpud is not built'
	for prefix in /usr/local /usr; do
		rm -rf "$tmp/root"
		make -s -C "$top/ctl" install BUILD="$BUILD" PREFIX=$prefix \
			DESTDIR="$tmp/root" >"$tmp/out" 2>&1 || show "$tmp/out"
		installed=$(find "$tmp/root" -name mgpud.service)
		grep -q "^ExecStart=$prefix/sbin/mgpud$" "$installed" ||
			echo "$installed: $(grep ExecStart "$installed")"
		grep -q "^ExecReload=$prefix/sbin/mgpud --check$" "$installed" ||
			echo "$installed: $(grep ExecReload "$installed")"
		[ -x "$tmp/root$prefix/sbin/mgpud" ] || echo "no $prefix/sbin/mgpud"
		[ -f "$tmp/root/etc/mgpu/mgpud.conf" ] || echo 'no configuration file'
	done
	# a file that was edited stays
	echo '# mine' >"$tmp/root/etc/mgpu/mgpud.conf"
	make -s -C "$top/ctl" install BUILD="$BUILD" PREFIX=/usr DESTDIR="$tmp/root" \
		>"$tmp/out" 2>&1 || show "$tmp/out"
	[ "$(cat "$tmp/root/etc/mgpu/mgpud.conf")" = '# mine' ] ||
		echo 'the configuration file was replaced'
}
behaves 'it is installed with its programs, and no configuration is lost' install_to

done_testing
