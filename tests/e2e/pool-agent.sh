#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# timeout: 1200
#
# mgpu-agent in guests that run, which reach mgpu-poold by vsock: one works with GPUs, another
# one has no power over the first one's requests.
exec "$(dirname "$0")/host/boot-and-run" pool-agent --spare-gpus
