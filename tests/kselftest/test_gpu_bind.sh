#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# gpuctl dev bind and unbind on a GPU: it goes from mgpu_virtio to virtio_gpu and
# back, and not while it is in use. The same on a machine of files, with all that
# can go wrong there, is tests/unit/test_gpuctl_bind.c's.
#
# needs: gpu
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$top/build}
gpuctl=$BUILD/ctl/gpuctl
gpu=${MGPU_GPU-}
PATH=$PATH:/usr/sbin:/sbin
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
needs "$gpuctl" jq modprobe
if [ -z "$gpu" ]; then
	skip_all 'there is no GPU: tools/vm/run --gpu virtio'
fi
if ! modprobe -n virtio_gpu 2>/dev/null; then
	skip_all 'this kernel has no virtio_gpu'
fi
types=/sys/class/mdev_bus/$gpu/mdev_supported_types

# The GPU is mgpu_virtio's again.
cleanup()
{
	local vgpu pid

	while read -r pid; do
		kill "$pid" 2>/dev/null
	done <"$tmp/pids"
	for vgpu in "/sys/bus/pci/devices/$gpu"/*-*-*-*-*/remove; do
		[ ! -e "$vgpu" ] || echo 1 >"$vgpu"
	done
	"$gpuctl" dev bind "$gpu" force >/dev/null
}
: >"$tmp/pids"
at_exit cleanup

asserts='is_driver done_so'

driver()
{
	basename "$(readlink -f /sys/bus/pci/devices/"$gpu"/virtio*/driver)"
}

is_driver()	# DRIVER
{
	[ "$(driver)" = "$1" ] || echo "the driver is $(driver), not $1"
}

done_so()	# FILTER WORD...
{
	local filter=$1
	shift

	if ! "$gpuctl" -j dev "$@" >"$tmp/json" 2>"$tmp/err"; then
		echo "dev $*: $(cat "$tmp/err")"
	elif ! jq -e "$filter" "$tmp/json" >/dev/null; then
		echo "dev $*: not so: $filter: $(cat "$tmp/json")"
	else
		"$top/tests/lib/json_schema.py" dev_bind "$tmp/json"
	fi
	[ ! -s "$tmp/err" ] || echo "dev $*: complains: $(cat "$tmp/err")"
}

# Without its text console, which it would take with it, Linux 6.1's virtio_gpu
# leaves no warning behind when it loses a GPU.
rmmod virtio_gpu 2>/dev/null
modprobe drm_kms_helper 2>/dev/null &&
	echo N >/sys/module/drm_kms_helper/parameters/fbdev_emulation

shared()
{
	is_driver mgpu_virtio
	done_so '.address == "'"$gpu"'" and .driver == "mgpu_virtio" and .before == .driver' bind "$gpu"
	jq -r '.types[].name' "$tmp/json" >"$tmp/got"
	find "$types/" -mindepth 1 -maxdepth 1 -printf '%f\n' | LC_ALL=C sort >"$tmp/want"
	LC_ALL=C sort "$tmp/got" | diff "$tmp/want" -
	[ -s "$tmp/want" ] || echo 'there are no types'
	jq -e 'all(.types[]; .available > 0 and (.description | test("virtio-gpu")))' \
		"$tmp/json" >/dev/null || echo "types: $(cat "$tmp/json")"
	"$gpuctl" dev bind "${gpu#0000:}" >"$tmp/out" || echo "status $?"
	grep -q "^$gpu is shared by mgpu_virtio, as before$" "$tmp/out" || show "$tmp/out"
	grep -q '^virtio-pci-medium  *[0-9][0-9]*  *virtio-gpu 2D' "$tmp/out" || show "$tmp/out"
}
behaves 'a GPU that is shared stays so, and its types are listed' shared

left_and_taken()
{
	uuid=$(cat /proc/sys/kernel/random/uuid)
	echo "$uuid" >"$types/virtio-pci-small/create" || echo 'no vGPU can be made'
	"$gpuctl" -j vgpu show "$uuid" | jq -e '.dev_name == "'"$gpu"'"' >/dev/null ||
		echo 'the vGPU is not on the GPU'
	# no VMM has it open: it goes with the GPU
	done_so '.before == "mgpu_virtio" and .driver == null' unbind "$gpu" leave
	[ ! -e "/sys/bus/mdev/devices/$uuid" ] || echo 'the vGPU is left'
	[ ! -e "/sys/class/mdev_bus/$gpu" ] || echo 'the mdev parent is left'
	done_so '.before == null and .driver == null' unbind "$gpu" leave
	done_so '.before == null and .driver == "mgpu_virtio"' bind "$gpu"
	echo "$uuid" >"$types/virtio-pci-small/create" || echo 'no vGPU can be made again'
	echo 1 >"/sys/bus/mdev/devices/$uuid/remove"
}
behaves 'a GPU may be left without a driver, and taken from there' left_and_taken

given_back()
{
	done_so '.before == "mgpu_virtio" and .driver == "virtio_gpu"' unbind "$gpu"
	is_driver virtio_gpu
	await 40 test -c /dev/dri/card0 || echo 'there is no /dev/dri/card0'
	done_so '.before == "virtio_gpu" and .driver == .before' unbind "$gpu"
}
behaves 'a GPU that is given back is a card of the host again' given_back

card_in_use()
{
	sleep 1000 9<>/dev/dri/card0 &
	holder=$!
	echo $holder >>"$tmp/pids"
	await 40 test -e /proc/$holder/fd/9 || echo 'nobody has it open'
	refused "$gpuctl" 1 "$gpu is in use: by [a-z]* (pid $holder)" dev bind "$gpu"
	is_driver virtio_gpu
	kill $holder
	wait $holder 2>/dev/null
	done_so '.before == "virtio_gpu" and .driver == "mgpu_virtio"' bind "$gpu"
	[ ! -e /dev/dri/card0 ] || echo '/dev/dri/card0 is left'
	[ -d "$types/virtio-pci-small" ] || echo 'there are no types'
}
behaves 'a card that a program has open is left to it, and taken when it is not' card_in_use

# A process that has a vGPU open, as a VMM has.
uuid=$(cat /proc/sys/kernel/random/uuid)
echo "$uuid" >"$types/virtio-pci-small/create"
vmm_in_use()
{
	"$top/tests/lib/open_vgpu.py" "$uuid" "$tmp/open" &
	vmm=$!
	echo $vmm >>"$tmp/pids"
	await 30 test -e "$tmp/open" || echo 'the vGPU cannot be opened'
	refused "$gpuctl" 1 "VMs use vGPUs of $gpu: $uuid (pid $vmm)" dev unbind "$gpu" leave
	is_driver mgpu_virtio
	"$gpuctl" dev unbind "$gpu" leave force >"$tmp/out" 2>"$tmp/err" &
	unbind=$!
	await 60 grep -q 'asks the VMMs of 1 vGPU to let go, and waits' "$tmp/err" || show "$tmp/err"
	sleep 0.3
	[ -e /proc/$unbind ] || echo 'it does not wait'
	kill $vmm
	wait $vmm 2>/dev/null
	wait $unbind || echo "status $?"
	grep -q "^$gpu: it has no driver; before, it was mgpu_virtio$" "$tmp/out" || show "$tmp/out"
	done_so '.before == null and .driver == "mgpu_virtio"' bind "$gpu"
}
behaves 'a GPU that a VMM uses is taken away only by force, which waits' vmm_in_use

no_gpu()
{
	refused "$gpuctl" 1 'there is no PCI device 0000:00:1e.7' dev bind 00:1e.7
	refused "$gpuctl" 1 'no PCI address' dev bind "$gpu/"
	others=0
	for dir in /sys/bus/pci/devices/*; do
		address=${dir##*/}
		[ "$address" != "$gpu" ] || continue
		refused "$gpuctl" 1 "$address is \\(no virtio device\\|a virtio device of kind\\)" \
			dev bind "$address" force
		# it is found out in the same way: some are enough
		[ $others -ge 3 ] ||
			refused "$gpuctl" 1 "$address is \\(no virtio device\\|a virtio device of kind\\)" \
				dev unbind "$address" leave force
		others=$((others + 1))
	done
	[ $others -ge 3 ] || echo "only $others other devices"
	is_driver mgpu_virtio
}
behaves 'a device that is no GPU is refused, and stays as it is' no_gpu

no_module()
{
	done_so '.driver == null' unbind "$gpu" leave
	rmmod mgpu_virtio
	refused "$gpuctl" 1 'insmod' dev bind "$gpu"
	done_so '.before == null and .driver == "virtio_gpu"' unbind "$gpu"
	refused "$gpuctl" 1 'insmod' dev bind "$gpu"
	is_driver virtio_gpu
	"$top/tools/vm/modules" load mgpu_virtio
	is_driver virtio_gpu
	done_so '.before == "virtio_gpu" and .driver == "mgpu_virtio"' bind "$gpu"
}
behaves 'without the module, the error says how to have it, and the GPU stays' no_module

# Loaded, it takes each GPU that appears, also from tests that do not expect it.
rmmod virtio_gpu 2>/dev/null

done_testing
