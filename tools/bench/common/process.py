# SPDX-License-Identifier: GPL-2.0-only
"""Counters of the kernel about a process."""
import time


def peak_bytes(pid):
    """Most memory that a process had."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return None


def memory(pid):
    """Memory of a process now, bytes: all of it, and what no other process shares."""
    sums = {}
    with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as file:
        for line in file:
            key, value, *_ = line.split()
            if key.endswith(":") and value.isdigit():
                sums[key[:-1]] = int(value) * 1024
    return {"rss": sums["Rss"], "private": sums["Private_Clean"] + sums["Private_Dirty"]}


def cpu_ns(pid):
    """CPU time of a process, with that of threads that have ended."""
    # clock_getcpuclockid(3), which Python has for threads only
    return time.clock_gettime_ns((~pid << 3) | 2)
