#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# mgpu-renderd on a GPU of the test host: the GPU is the parent of the vGPUs, which go when
# its driver is unbound, and VMMs show screens as dma-bufs. The same without a GPU, as far as
# that goes, is test_render_ctl.sh's and test_user.sh's.
#
# needs: gpu
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$top/build}
gpuctl=$BUILD/ctl/gpuctl
program=$BUILD/ctl/mgpu-renderd
gpu=${MGPU_GPU-}
PATH=$PATH:/usr/sbin:/sbin
record=/run/mgpu/renderd-$gpu.pid
log=/run/mgpu/renderd-$gpu.log
driver=/sys/bus/pci/drivers/virtio-pci
bus=/sys/class/mdev_bus
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
needs "$gpuctl" "$program" jq modprobe python3
if [ -z "$gpu" ]; then
	skip_all 'there is no GPU: tools/vm/run --gpu virtio'
fi
if ! modprobe -n virtio_gpu 2>/dev/null; then
	skip_all 'this kernel has no virtio_gpu'
fi
types=$bus/$gpu/mdev_supported_types
renderd=

cleanup()
{
	[ ! -s "$tmp/vmm" ] || kill "$(cat "$tmp/vmm")" 2>/dev/null
	[ -z "$renderd" ] || kill "$renderd" 2>/dev/null
	wait
	"$gpuctl" render stop all force >/dev/null 2>&1
	cat "$log" "$tmp"/*.log >"${OUT:-/tmp}/test_render_gpu-renderd.log" 2>/dev/null
	[ ! -d /sys/module/mgpu_user ] || rmmod mgpu_user
	[ -e "$driver/$gpu" ] || echo "$gpu" >"$driver/bind"
	"$gpuctl" dev bind "$gpu" force >/dev/null
}
at_exit cleanup

asserts='serves is_parent'

serves()	# FILTER : the record of the GPU
{
	"$gpuctl" -j render list >"$tmp/json" || echo "render list: status $?"
	jq -e ".renderds[0] | $1" "$tmp/json" >/dev/null || echo "not so: $1: $(cat "$tmp/json")"
}

is_parent()
{
	[ -d "$types/virtio-pci-medium-render" ] || echo "types: $(ls "$bus" "$types" 2>&1)"
}

# Linux 6.1's virtio_gpu leaves a warning when it loses a GPU with a text console.
rmmod virtio_gpu 2>/dev/null
modprobe drm_kms_helper 2>/dev/null &&
	echo N >/sys/module/drm_kms_helper/parameters/fbdev_emulation
must 'mgpu_user does not load' "$top/tools/vm/modules" load mgpu_user
"$gpuctl" dev unbind "$gpu" >"$tmp/out" 2>&1 || bail "$(cat "$tmp/out")"

started()
{
	"$gpuctl" render start "$gpu" >"$tmp/out" 2>&1 || show "$tmp/out"
	grep -q "^$gpu serves on /dev/dri/renderD128 (process [0-9]*)$" "$tmp/out" || show "$tmp/out"
	grep -qx "$types" "$tmp/out" || show "$tmp/out"
	serves ".device == \"$gpu\" and .address == .device and .state == \"serving\""
	is_parent
	[ ! -e $bus/mgpu_user.0 ] || echo 'mgpu_user.0 is a parent, too'
}
behaves 'a GPU is the parent of the vGPUs that mgpu-renderd serves on it' started

taken_over()
{
	pid=$(head -n 1 "$record")
	kill -KILL "$pid"
	await 20 test ! -e "/proc/$pid" || echo 'it does not die'
	serves ".device == \"$gpu\" and .state == \"dead\""
	inode=$(stat -Lc %i "$types")
	"$gpuctl" render start "$gpu" >"$tmp/out" 2>&1 || show "$tmp/out"
	serves ".device == \"$gpu\" and .state == \"serving\""
	[ "$(stat -Lc %i "$types")" = "$inode" ] || echo 'it has other types'
	"$gpuctl" render stop "$gpu" >"$tmp/out" 2>&1 || show "$tmp/out"
	grep -qx "$gpu: stopped; removed mgpu_user.0" "$tmp/out" || show "$tmp/out"
	[ ! -e "$bus/$gpu" ] || echo 'the GPU is a parent still'
}
behaves 'the next mgpu-renderd takes the vGPUs of the GPU over' taken_over

no_worker()
{
	! grep -qx mgpu-worker /proc/[0-9]*/comm 2>/dev/null
}

uuid=$(cat /proc/sys/kernel/random/uuid)
unbound()
{
	"$gpuctl" render start "$gpu" >"$tmp/out" 2>&1 || show "$tmp/out"
	pid=$(head -n 1 "$record")
	echo "$uuid" >"$types/virtio-pci-small-render/create" || echo 'no vGPU can be made'
	"$top/tests/lib/open_vgpu.py" "$uuid" "$tmp/open" &
	echo $! >"$tmp/vmm"
	await 40 test -e "$tmp/open" || echo 'the vGPU cannot be opened'
	sh -c "echo $gpu >$driver/unbind" &
	unbinds=$!
	await 20 test ! -e "$bus/$gpu" || echo 'the vGPUs are not asked for'
	[ -e "$driver/$gpu" ] || echo 'the driver does not wait'
	kill "$(cat "$tmp/vmm")"
	: >"$tmp/vmm"
	wait $unbinds || echo "unbind: status $?"
	[ ! -e "$driver/$gpu" ] || echo 'the driver is bound'
	[ ! -e "/sys/bus/mdev/devices/$uuid" ] || echo 'the vGPU is left'
	await 20 test ! -e "/proc/$pid" || echo 'mgpu-renderd serves on'
	grep -q 'the device has ended: the GPU.s driver was unbound' "$log" || show "$log"
	serves '. == null'
	# It may be starting its renderer still, and holds the number of the render node.
	await 60 no_worker || echo 'the worker does not end'
	echo "$gpu" >"$driver/bind"
	# mgpu_virtio is loaded, and has it first.
	"$gpuctl" dev unbind "$gpu" >"$tmp/out" 2>&1 || show "$tmp/out"
	await 40 test -c /dev/dri/renderD128 || echo 'there is no render node'
	"$gpuctl" render start "$gpu" >"$tmp/out" 2>&1 || show "$tmp/out"
	is_parent
	"$gpuctl" render stop "$gpu" >"$tmp/out" 2>&1 || show "$tmp/out"
}
behaves 'when the driver is unbound the vGPUs go first, and come back after a rebind' unbound

# mgpu-renderd in the foreground
render()	# OPTION...
{
	"$program" "$@" >"$tmp/renderd.log" 2>&1 &
	renderd=$!
	await 60 grep -qE '^mgpu-renderd: (serves|--dmabuf)' "$tmp/renderd.log"
	grep -q '^mgpu-renderd: serves' "$tmp/renderd.log"
}

no_dmabuf()
{
	# The renderer complains, too.
	timeout 60 "$program" --dmabuf >"$tmp/out" 2>&1 && echo 'it ends with status 0'
	grep -q 'dmabuf: Mesa without a GPU exports no dma-bufs' "$tmp/out" || show "$tmp/out"
}
behaves 'without a GPU there are no dma-bufs' no_dmabuf

if render --dmabuf --gpu "$gpu"; then
	shows_dmabufs()
	{
		MGPU_PARENT=$gpu "$BUILD/kselftest/test_dmabuf" 2>&1
	}
	check 'VMMs show screens as dma-bufs, by test_dmabuf' shows_dmabufs
	kill "$renderd"
	wait "$renderd" || note "mgpu-renderd: status $?"
	renderd=
else
	bad "$(cat "$tmp/renderd.log")"
	judge 'mgpu-renderd serves with dma-bufs'
fi
done_testing
