#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# timeout: 9000
#
# An hour of VMs that come, play, compute, are reset, killed and removed at random while
# mgpud and the scheduling policies change; see host/soak.
#
#   SOAK_MINUTES=60   how long
#   SOAK_SEED=N       of the random choices; a new one each time unless told
here=$(cd "$(dirname "$0")" && pwd)
minutes=${SOAK_MINUTES:-60}
seed=${SOAK_SEED:-$((SRANDOM % 32768))}
if ! [[ $minutes =~ ^[1-9][0-9]*$ && $seed =~ ^[0-9]+$ ]]; then
	echo 'Bail out! SOAK_MINUTES and SOAK_SEED are whole numbers'
	exit 2
fi
exec "$here/../e2e/host/boot-and-run" "$here/host/soak" \
	--timeout $(((minutes * 60 + 600) * ${MGPU_SLOW:-1})) \
	--env "SOAK_MINUTES=$minutes" --env "SOAK_SEED=$seed"
