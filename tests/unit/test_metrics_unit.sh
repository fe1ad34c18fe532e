#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# systemd takes the unit of mgpu-exporter, its settings are true of mgpu-exporter, and the manual
# page has its options.
set -uo pipefail

unit=metrics/mgpu-exporter.service program=mgpu-exporter man=mgpu-exporter.1
# shellcheck source=tests/lib/unit.sh
. "$(dirname "$0")/../lib/unit.sh"
needs "$program"

behaves 'systemd takes the unit' takes_unit mgpu-exporter.service
behaves 'its exposure is low' exposed mgpu-exporter.service 20

asserts=has

told_truly()
{
	local listen

	has Type=notify DynamicUser=yes CapabilityBoundingSet=CAP_NET_ADMIN IPAddressDeny=any \
		RestartPreventExitStatus=2
	listen=$(sed -n 's,^ExecStart=.* serve --listen ,,p' "$unit")
	[ "$listen" = 127.0.0.1:9960 ] || echo "it listens at '$listen'"
	grep -qF "$listen" "$man" || echo "the manual page does not have $listen"
	grep -qF "$listen/metrics" "$top/Documentation/metrics.rst" || echo 'nor does metrics.rst'
}
behaves 'its claims about mgpu-exporter are true' told_truly

install_to()
{
	for prefix in /usr/local /usr; do
		rm -rf "$tmp/root"
		make -s -C "$top/ctl" install BUILD="$BUILD" PREFIX=$prefix \
			DESTDIR="$tmp/root" >"$tmp/out" 2>&1 || show "$tmp/out"
		grep -q "^ExecStart=$prefix/sbin/mgpu-exporter serve " \
			"$(find "$tmp/root" -name mgpu-exporter.service)" || echo 'another ExecStart'
		for file in sbin/mgpu-exporter share/man/man1/mgpu-exporter.1 \
			share/mgpu/mgpu-alerts.yml share/mgpu/mgpu-dashboard.json; do
			[ -f "$tmp/root$prefix/$file" ] || echo "no $prefix/$file"
		done
	done
}
behaves 'it is installed with its program, alert rules and dashboard' install_to

behaves 'the manual page has the options' man_has_options SECURITY

done_testing
