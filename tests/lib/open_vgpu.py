#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Hold a vGPU open, as a VMM does, until this process is killed.

    tests/lib/open_vgpu.py UUID FILE

FILE is made when the vGPU is open.
"""

import fcntl
import os
import signal
import struct
import sys

BASE = ord(";") << 8 | 100      # VFIO_TYPE, VFIO_BASE


def hold(uuid, ready):
    """Open a vGPU, and wait for ever.

    @ready: called when it is open
    """
    group = os.path.basename(os.readlink(f"/sys/bus/mdev/devices/{uuid}/iommu_group"))
    container = os.open("/dev/vfio/vfio", os.O_RDWR)
    file = os.open(f"/dev/vfio/{group}", os.O_RDWR)
    # VFIO_GROUP_SET_CONTAINER, VFIO_SET_IOMMU, VFIO_GROUP_GET_DEVICE_FD
    fcntl.ioctl(file, BASE + 4, struct.pack("i", container))
    fcntl.ioctl(container, BASE + 2, 1)
    fcntl.ioctl(file, BASE + 6, uuid.encode() + b"\0")
    ready()
    signal.pause()


def make_file():
    with open(sys.argv[2], "w", encoding="utf-8"):
        pass


if __name__ == "__main__":
    hold(sys.argv[1], make_file)
