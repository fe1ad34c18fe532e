#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# systemd takes the unit of mgpu-renderd, its settings are true of mgpu-renderd, and
# mgpu-renderd refuses GPUs that it does not find.
set -uo pipefail

unit=renderd/mgpu-renderd@.service program=mgpu-renderd man=mgpu-renderd.8
# shellcheck source=tests/lib/unit.sh
. "$(dirname "$0")/../lib/unit.sh"
needs "$program"

# systemd-analyze looks for no file with a colon; test_service.sh has such an instance.
behaves 'systemd takes the unit' takes_unit mgpu-renderd@none.service
behaves 'its exposure is medium at most' exposed mgpu-renderd@none.service 50

asserts=has

told_truly()
{
	has Type=notify RuntimeDirectory=mgpu RuntimeDirectoryPreserve=yes KillMode=mixed \
		OOMPolicy=continue 'ExecStart=/usr/local/sbin/mgpu-renderd --gpu %i'
	statuses=$(sed -n '/^\.SH EXIT STATUS/,/^\.SH FILES/s/^\.B \([0-9]*\)$/\1/p' "$man")
	[ "$(echo $statuses)" = '0 1 2 3' ] || echo "statuses: $statuses"
	has 'RestartPreventExitStatus=2 3'
	grep -qx '#define STATUS_BUSY	3.*' "$top/ctl/renderd/main.c" || echo 'another status'
	# what would keep workers from a sandbox, or Mesa from compiling shaders
	! grep '^\(MemoryDenyWriteExecute\|PrivateDevices\|PrivateUsers\)=' "$unit"
}
behaves 'its claims about mgpu-renderd are true' told_truly

install_to()
{
	for prefix in /usr/local /usr; do
		rm -rf "$tmp/root"
		make -s -C "$top/ctl" install BUILD="$BUILD" PREFIX=$prefix \
			DESTDIR="$tmp/root" >"$tmp/out" 2>&1 || show "$tmp/out"
		installed=$(find "$tmp/root" -name mgpu-renderd@.service)
		grep -q "^ExecStart=$prefix/sbin/mgpu-renderd --gpu %i$" "$installed" ||
			echo "$installed: $(grep ExecStart "$installed")"
		[ -x "$tmp/root$prefix/sbin/mgpu-renderd" ] || echo "no $prefix/sbin/mgpu-renderd"
	done
}
behaves 'it is installed with its program' install_to

behaves 'the manual page has the options' man_has_options REPLAY

no_gpu()
{
	for address in 0000:03:00.8 03:20.0 03:00 ../0000:03:00.0 mgpu_soft.0 ''; do
		refused "$program" 2 "'$address' is no PCI address: give one as in 0000:03:00.0 or 03:00.0, or none .*render node" \
			--gpu "$address"
	done
	refused "$program" 1 'there is no PCI device 00aa:fe:1e.6; .*render node' -g 00AA:fe:1E.6
	refused "$program" 1 "cannot find /dev/dri/renderD0: No such file.*'ls /dev/dri' lists" \
		--node /dev/dri/renderD0
	refused "$program" 2 'give --gpu or --node, not both' -g none -n /dev/dri/renderD128
	refused "$program" 2 'give --record or --venus, not both' --venus -r /tmp
	refused "$program" 2 'give --record or --remote, not both' --remote -r /tmp
	refused "$program" 2 'did you mean --gpu' --gpuu none
	refused "$program" 2 'wants a value' --gpu
}
behaves 'a GPU that is not there is refused, with those that are' no_gpu

done_testing
