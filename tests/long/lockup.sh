#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# timeout: 900
#
# A minute of jobs of one tile each, back to back, on the only processor of a kernel that
# is not preempted and that panics when its detector finds a soft lockup; see host/lockup.
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/../e2e/host/boot-and-run" "$here/host/lockup" --smp 1 \
	--append 'preempt=none softlockup_panic=1'
