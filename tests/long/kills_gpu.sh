#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# timeout: 14400
#
# VMMs that draw on a GPU are killed, and the GPU is reset under load, each a thousand
# times; see host/kills_gpu, and run-kills for the environment.
exec "$(dirname "$0")/run-kills" kills_gpu
