#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# timeout: 1260
#
# e2e/render.sh with a guest that is a stock Debian 13.
exec "$(dirname "$0")/host/boot-and-run" render --env GUEST_ROOT=debian13
