# SPDX-License-Identifier: GPL-2.0-only
"""Rows of remoted CUDA: programs of the driver API and of the runtime API.

The device is tests/remote/cuda/record.c, a library of the driver that copies, but computes nothing,
and can record its calls. Natively a program uses it directly. Programs of the runtime API use this
project's runtime library each time.
"""

import os
import shutil
import subprocess
import sys
import time

from programs import MODES, in_turns, loop_row, program_row, timed

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
CTL = os.path.join(os.environ.get("BUILD", os.path.join(TOP, "build")), "ctl")
REMOTE, TESTS = os.path.join(TOP, "ctl", "remote"), os.path.join(TOP, "tests", "remote", "cuda")
HERE = os.path.dirname(os.path.abspath(__file__))
NVCC = shutil.which("nvcc") or os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"),
                                            "bin", "nvcc")
INCLUDES = ["-I" + os.path.join(REMOTE, part) for part in ("", "cuda", "cuda/runtime")] + [
    "-I" + os.path.join(CTL, "gen")]
DEVICE, TRANSPORT, LAUNCHES = "recorder", "unix", 2000

# nvcc compiles the files whose names end in .cu.
LOOPS = {"cuda": os.path.join(HERE, "cuda_loops.c"), "cudart": os.path.join(HERE, "cuda_loops.cu")}
PROGRAMS = [("cuda", os.path.join(TESTS, name + ".c"))
            for name in ("vecadd", "loops", "search", "streams")] + [
            ("cudart", os.path.join(TESTS, "runtime", name))
            for name in ("calls.c", "samples.cu", "classes.cu")]


class Bench:
    """The library that records, a server that uses it, and one that has the calls recorded."""

    def __init__(self, folder):
        self.folder, self.servers = folder, []
        self.plain = {key: value for key, value in os.environ.items()
                      if not key.startswith(("MGPU_REMOTE", "MGPU_CUDA"))}
        self.plain["XDG_CACHE_HOME"] = self.path("reports")
        os.mkdir(self.path("native"))
        self.gcc("-fPIC", "-shared", "-fvisibility=hidden", "-Wl,-soname,libcuda.so.1",
                 os.path.join(TESTS, "record.c"),
                 *(os.path.join(REMOTE, "cuda", part + ".c")
                   for part in ("errors", "image", "ranges")), "-o",
                 self.path("native/libcuda.so.1"))
        self.serve("timed", self.plain)
        self.serve("recorded", dict(self.plain, MGPU_CUDA_RECORD=self.path("record")))

    def path(self, name):
        """Return the name of a file of this run."""
        return os.path.join(self.folder, name)

    def gcc(self, *args):
        """Compile a program in C, or a library."""
        subprocess.run(["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-O2", *INCLUDES, *args], check=True)

    def serve(self, name, env):
        """Start a server."""
        self.servers.append(subprocess.Popen(
            [os.path.join(CTL, "mgpu-remoted"), "--socket", self.path(name), "--cuda",
             self.path("native/libcuda.so.1")], env=env))
        while not os.path.exists(self.path(name)):
            if self.servers[-1].poll() is not None:
                sys.exit("mgpu-remoted has ended")
            time.sleep(0.02)

    def stop(self):
        """Stop the servers."""
        for server in self.servers:
            server.terminate()
            server.wait()

    def build(self, api, source):
        """Return a program, with a report of its loops; None if it cannot be built here."""
        name = self.path(api + "-" + os.path.basename(source).replace(".", "-"))
        if source.endswith(".cu"):
            if not os.path.exists(NVCC):
                print(f"{os.path.basename(source)}: nvcc, of CUDA's toolkit, is not installed, "
                      "left out", file=sys.stderr)
                return None
            subprocess.run([NVCC, "-cudart", "shared", "-arch=sm_80", "--no-compress", "-std=c++17",
                            "-O2", source, "-o", name], check=True)
        elif api == "cuda":
            self.gcc(source, "-o", name, "-L" + self.path("native"), "-l:libcuda.so.1")
        else:
            self.gcc(source, "-o", name, "-L" + os.path.join(CTL, "cuda"), "-l:libcudart.so.13",
                     "-lpthread")
        subprocess.run([os.path.join(CTL, "mgpu-defer"), "analyse", "--assume-success", name],
                       env=self.plain, stdout=subprocess.DEVNULL, check=True)
        return name

    def environment(self, mode, server):
        """Return the environment of a program."""
        ours = os.path.join(CTL, "cuda")
        if mode == "native":
            # The runtime library is beside the front end, which is not to be found.
            return dict(self.plain, LD_LIBRARY_PATH=self.path("native") + ":" + ours)
        return dict(self.plain, LD_LIBRARY_PATH=ours, MGPU_REMOTE=self.path(server),
                    MGPU_REMOTE_MODE=mode, MGPU_REMOTE_COUNTS="1")

    def run(self, mode, *args):
        """Run a program; return what timed() does."""
        return timed(args, self.environment(mode, "timed"), self.folder)

    def record(self, mode, *args):
        """Return the calls of the driver that a program makes, or that are made for it."""
        env = self.environment(mode, "recorded")
        if mode == "native":
            env["MGPU_CUDA_RECORD"] = self.path("record")
        timed(args, env, self.folder)
        self.wait()
        with open(self.path("record"), encoding="utf-8") as file:
            text = file.read()
        os.unlink(self.path("record"))
        return text

    def wait(self):
        """Wait until the server that records has no program any more."""
        pid = self.servers[-1].pid
        while True:
            with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
                if not file.read():
                    return
            time.sleep(0.02)

    def equal(self, *args):
        """Return whether the calls are the same in all modes."""
        return len({self.record(mode, *args) for mode in MODES}) == 1


def measure_loops(bench, rounds):
    """Return the costs of launches in loops."""
    rows = []
    for api, source in LOOPS.items():
        name = bench.build(api, source)
        for loop_class in (1, 2, 3) if name else ():
            args = (name, str(loop_class), str(LAUNCHES))
            found = in_turns(rounds, lambda mode, args=args: bench.run(mode, *args))
            rows.append({"api": api, "class": loop_class, "device": DEVICE, "transport": TRANSPORT,
                         "spin": 0, **loop_row(found, LAUNCHES), "equal": bench.equal(*args)})
            print(f"{api}, class {loop_class}: measured", file=sys.stderr)
    return rows


def measure_programs(bench, rounds):
    """Return what whole programs take."""
    rows = []
    for api, source in PROGRAMS:
        name = bench.build(api, source)
        if name:
            found = in_turns(rounds, lambda mode, name=name: bench.run(mode, name))
            rows.append({"api": api, "name": os.path.basename(source).split(".")[0],
                         "device": DEVICE, "transport": TRANSPORT, **program_row(found),
                         "equal": bench.equal(name)})
            print(f"{api}, {os.path.basename(source)}: measured", file=sys.stderr)
    return rows


def measure(folder, rounds):
    """Return the rows by the part that they belong to."""
    bench = Bench(folder)
    try:
        return {"loops": measure_loops(bench, rounds), "programs": measure_programs(bench, rounds)}
    finally:
        bench.stop()
