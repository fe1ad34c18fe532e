#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The packages in a chroot of Debian 13: built, installed, upgraded, with modules for
# its kernel and the backports', removed and purged.
set -uo pipefail

suite=trixie
newer='linux-image-amd64/trixie-backports linux-headers-amd64/trixie-backports'
# shellcheck source=tests/lib/packaging_suite.sh
. "$(dirname "$0")/../lib/packaging_suite.sh"
