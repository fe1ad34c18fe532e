#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The directories of kmod/ keep to their contracts: the scheduler reaches jobs by their
# callbacks alone, and back ends see their contract and headers of their own.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
plan 1
check 'sched/ calls no kind of job by name; back ends include their contract only' \
	"$top/tools/kmod-graph" --check
done_testing
