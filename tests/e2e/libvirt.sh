#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# timeout: 900
#
# mdevctl and libvirt of the distribution: types, attributes, automatic starts, node devices,
# and a domain with a vGPU.  LIBVIRT_SUITE=trixie takes Debian 13's.
exec "$(dirname "$0")/host/boot-and-run" libvirt
