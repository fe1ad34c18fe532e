#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# timeout: 36600
#
# VMMs are killed, mgpud is killed and started again, eBPF programs come and go, the back
# end is taken away, and mgpu-renderd, its workers and VMMs that draw are killed, each a
# thousand times under load; see host/kills, and run-kills for the environment.
exec "$(dirname "$0")/run-kills" kills
