#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The packages in a chroot of Debian 12: built, installed, upgraded, with modules for
# its 6.1 and 6.12, removed and purged.
set -uo pipefail

suite=bookworm
newer='linux-image-6.12-amd64 linux-headers-6.12-amd64'
# shellcheck source=tests/lib/packaging_suite.sh
. "$(dirname "$0")/../lib/packaging_suite.sh"
