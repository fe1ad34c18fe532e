#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A Debian 13 with the packages, booted from a disk: services, a pool, reboots, and README's
# commands.
#
#   tests/packaging/boot-trixie.sh [--prepare]
set -uo pipefail

suite=trixie
# shellcheck source=tests/lib/packaging_boot.sh
. "$(dirname "$0")/../lib/packaging_boot.sh"
