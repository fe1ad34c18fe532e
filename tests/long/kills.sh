#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# timeout: 21600
#
# VMMs are killed, mgpud is killed and started again, eBPF programs come and go, and the
# back end is taken away, each a thousand times under load; see host/kills, and run-kills
# for the environment.
exec "$(dirname "$0")/run-kills" kills
