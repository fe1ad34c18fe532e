# SPDX-License-Identifier: GPL-2.0-only
"""Programs of the bench of remoted OpenCL and CUDA, the order of runs, and what a run printed."""
import os
import re
import statistics
import zlib

LOOPS, CUDA_LOOPS = "loops", "cuda_loops"
# The program by itself: with the OpenCL of the machine that has the device and, in a guest, with
# an OpenCL of the guest's own.
NATIVE, NATIVE_GUEST = "native", "native_guest"
MODES = (NATIVE, "one", "batched", "deferred")
VM_MODES = (NATIVE, NATIVE_GUEST, "one", "batched", "deferred")
# Parts of the bench: transports of OpenCL, and CUDA by a Unix socket.
PARTS = ("unix", "cuda", "vsock", "vgpu")
# APIs and their devices: PoCL's processor, and the library of CUDA's driver that records.
OPENCL = {"api": "opencl", "device": "basic"}
CUDA = tuple({"api": api, "device": "recorder"} for api in ("cuda", "cudart"))


def loop(loop_class, launches, spin):
    """Return the command of a loop, which loops.c describes."""
    return f"{LOOPS} {loop_class} {launches} {spin}"


def loop_numbers(case):
    """Return class, launches and spin of a loop, 0 for CUDA's; None for another program."""
    name, *words = case.split()
    if name not in (LOOPS, CUDA_LOOPS) or not words:
        return None
    return (*map(int, words), 0)[:3]


# Kernels that count to nothing, and for 100 us or more. basic waits for the user events of events.c
# for ever. cg reads back 20,000 times.
UNIX = (*(loop(c, 2000, 0) for c in (1, 2, 3)), *(loop(c, 200, 100000) for c in (1, 2, 3)),
        "vecadd", "stencil", "bfs", "cg 588", "nbody 1000", "kmeans 500", "fft 200",
        "lstm 5000", "maps", "images", "errors", "builds", "loops-constant",
        "loops-induction", "loops-results")
# Programs of packages, whose output has times.
PACKAGED = ("clinfo", "clpeak --kernel-latency")
# Less of the same, for an emulated guest: a round trip takes it milliseconds, a program's start
# seconds.
VM = (loop(1, 40, 0), "lstm 40", loop(3, 40, 0), "loops-results 60", "cg 1", loop(1, 10, 200000),
      "vecadd", loop(2, 40, 0), loop(2, 10, 200000), loop(3, 10, 200000))
VM_QUICK = (loop(1, 50, 0), "vecadd")
# cuda_loops.h describes the loops.
CUDA_CASES = {"cuda": (*(f"{CUDA_LOOPS} {c} 2000" for c in (1, 2, 3)),
                       "vecadd", "loops", "search", "streams"),
              "cudart": (*(f"{CUDA_LOOPS} {c} 2000" for c in (1, 2, 3)),
                         "calls", "samples", "classes")}
# The programs among them that nvcc compiles.
NVCC = tuple(("cudart", name) for name in (CUDA_LOOPS, "samples", "classes"))


def cases(transport, quick):
    """Return the commands that are measured by a transport."""
    if transport == "unix":
        return UNIX + PACKAGED
    return VM_QUICK if quick else VM


def cuda_program(programs, api, name):
    """Return the file of a program of CUDA in the directory of prepare."""
    return os.path.join(programs, "bin", f"{api}-{name}")


def part(row):
    """Return the part of the bench that has measured a row."""
    return "cuda" if row["device"] == CUDA[0]["device"] else row["transport"]


def turns(number, modes):
    """Return the modes of a round: each begins with another one. Round 0 fills caches."""
    first = (number - 1) % len(modes) if number else 0
    return modes[first:] + modes[:first]


def vm_turns(number):
    """Return the modes of a round out of a VM: all in odd rounds, and in the first the guest's own.
    Even rounds compare the two that take least."""
    if number % 2 == 0:
        return turns(number // 2, ("batched", "deferred"))
    return turns(number // 2 + 1, VM_MODES if number == 1 else MODES)


def counts(errors):
    """Return what the front end counted, from its line on standard error."""
    found = dict(re.findall(r"\b(requests|waits|bytes|grouped)=(\d+)", errors))
    names = {"requests": "calls", "waits": "round_trips"}
    return {names.get(key, key): int(value) for key, value in found.items()}


def launch_us(text):
    """Return the times of launches that loops.c printed."""
    return [float(us) for us in re.findall(r"^us (\S+)$", text, re.M)]


def launch_times(us):
    """Return the median of a run's repetitions, and how many there were, if any."""
    return {"us": statistics.median(us), "repetitions": len(us)} if us else {}


def checksum(text):
    """Return a number of what a program printed, without the times of launches."""
    return zlib.crc32(re.sub(r"^us .*\n", "", text, flags=re.M).encode())


def once(line):
    """Return what a line of once says of a run, or None if it is incomplete or the run failed."""
    words = dict(word.split("=", 1) for word in line.split() if "=" in word)
    if not re.fullmatch(r"once status=0 .* end", line.strip()):
        return None
    try:
        cpu = sum(int(m) * 60e3 + float(s) * 1e3 for m, s in
                  re.findall(r"(\d+)m([\d.]+)s", words["user"] + " " + words["system"]))
        found = {"ms": int(words["ran_us"]) / 1e3, "cpu_ms": cpu, "sum": words["sum"],
                 **counts(line)}
        us = [float(each) for each in words["us"].split(",") if each]
    except (KeyError, ValueError):
        return None
    return {**found, **launch_times(us)}
