#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The back end whose engines are processes, by test_user.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$top/build}

# Drivers that take the PCI function that stands for a GPU, and that make dma-bufs.
/usr/sbin/modprobe pci-stub
/usr/sbin/modprobe -q vgem
"$top/tools/vm/modules" load mgpu_user || exit 1
"$BUILD/kselftest/test_user"
rc=$?
/usr/sbin/rmmod mgpu_user || rc=1
# Mesa would try it in the tests that follow.
/usr/sbin/rmmod vgem 2>/dev/null
exit $rc
