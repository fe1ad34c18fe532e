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

group = os.path.basename(os.readlink(f"/sys/bus/mdev/devices/{sys.argv[1]}/iommu_group"))
container = os.open("/dev/vfio/vfio", os.O_RDWR)
file = os.open(f"/dev/vfio/{group}", os.O_RDWR)
fcntl.ioctl(file, BASE + 4, struct.pack("i", container))        # VFIO_GROUP_SET_CONTAINER
fcntl.ioctl(container, BASE + 2, 1)                             # VFIO_SET_IOMMU
fcntl.ioctl(file, BASE + 6, sys.argv[1].encode() + b"\0")       # VFIO_GROUP_GET_DEVICE_FD
with open(sys.argv[2], "w", encoding="utf-8"):
    pass
signal.pause()
