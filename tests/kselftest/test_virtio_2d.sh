#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Repeat tests of guests without OpenGL on vGPUs of mgpu_virtio: the results must be
# those of mgpu_soft. Those that reach the back end: features and resets, with
# jobs in flight; commands; pictures; memory that goes while it is shown; commands at
# random. Of a vGPU's PCI configuration, its interrupts and the pacing of its frames no
# back end knows: mgpu_soft is enough for test_config_space, test_interrupts and
# test_pacing.
#
# needs: gpu
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$top/build}
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
if [ -z "${MGPU_GPU-}" ]; then
	skip_all 'there is no GPU: tools/vm/run --gpu virtio'
fi
export MGPU_PARENT=$MGPU_GPU

passes()	# TEST
{
	local rc

	"$BUILD/kselftest/$1" >"$tmp/out" 2>&1
	rc=$?
	[ $rc -eq 0 ] || echo "status $rc"
	! grep -q '^not ok' "$tmp/out" || show "$tmp/out"
	grep -q '^ok' "$tmp/out" || echo 'nothing was tested'
}

for name in test_handshake test_commands test_display test_ring test_hostile; do
	behaves "$name passes on a physical GPU" passes $name
done

done_testing
