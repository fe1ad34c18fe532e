#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The mutations of tests/mutate fit the code.
exec "$(dirname "$0")/../mutate" --check
