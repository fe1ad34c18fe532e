#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# mgpu-renderd draws what guests ask for: the tests of OpenGL on a vGPU of mgpu_user, whose
# workers render without a GPU. Their recordings have the same pictures when they are
# replayed without the module.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$top/build}
log=${OUT:-/tmp}/test_render-renderd.log
program=${RENDERD:-$BUILD/ctl/mgpu-renderd}
recordings=$(mktemp -d) || exit 1
trap 'rm -rf "$recordings"' EXIT

"$top/tools/vm/modules" load mgpu_user || exit 1
"$program" --record "$recordings" >"$log" 2>&1 &
renderd=$!
for ((i = 0; i < 300; i++)); do
	parent=$(sed -n 's/^mgpu-renderd: serves //p' "$log")
	[ -z "$parent" ] || break
	sleep 0.1
done
if [ -z "$parent" ]; then
	sed 's/^/# /' "$log"
	echo 'Bail out! mgpu-renderd did not start'
	exit 1
fi
# Emulated processors draw, and compile shaders first.
"$BUILD/ctl/gpuctl" dev set "$parent" job-timeout 30s || exit 1
# A worker has memory for some 80 contexts of llvmpipe beside its resources, and for more
# while it records.
MGPU_CONTEXT_INIT=1 MGPU_BLOBS=1 MGPU_CONTEXTS=64 MGPU_SLOW=4 MGPU_GPU=$parent "$BUILD/kselftest/test_virgl"
rc=$?
kill "$renderd"
wait "$renderd" || rc=1
/usr/sbin/rmmod mgpu_user || rc=1

# No transfer from the host differs, and there are some.
if ! "$program" replay --check "$recordings"/*.mgpurec >"$log.replay" 2>&1 ||
	! grep -q '^transfers from the host: [1-9]' "$log.replay"; then
	sed 's/^/# /' "$log.replay"
	rc=1
fi
exit $rc
