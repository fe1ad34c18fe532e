# SPDX-License-Identifier: GPL-2.0-only
"""Daemons of the host side that benches run in the test host."""
import glob
import os
import re
import subprocess
import time

from gl import GPU, native_driver, vgpu_remove
from guests import BUILD, MODULES, BenchError, call, read
from results import OUT

RENDERD = os.path.join(BUILD, "ctl", "mgpu-renderd")
NODE = "/dev/dri/renderD128"
START_LIMIT = 60            # seconds for mgpu-renderd, mgpud or a worker to start
UUIDS = ("6d677075-0000-4000-8000-0000000000d1",
         "6d677075-0000-4000-8000-0000000000d2")


def wait(what, why, seconds=START_LIMIT):
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            raise BenchError(why)
        time.sleep(0.005)


class Daemon:
    """A process of the host side with a log, for the time of a "with"; it says when it
    serves."""

    def __init__(self, name, *command, ready):
        self.name = name
        self.said = os.path.join(OUT, f"{name}.log")
        self.command = command
        self.ready = ready
        self.proc = None

    def log(self):
        return read(self.said)

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        with open(self.said, "w", encoding="utf-8") as f:
            self.proc = subprocess.Popen(self.command, stdout=f, stderr=f,
                                         stdin=subprocess.DEVNULL)
        wait(lambda: self.ready() or self.proc.poll() is not None,
             f"{self.name} does not start; see {self.said}")
        if self.proc.poll() is not None:
            raise BenchError(f"{self.name} ended:\n{self.log()[-500:]}")

    def stop(self):
        if self.proc and self.proc.poll() is None:
            self.proc.terminate()
            self.proc.wait(20)


class Renderd(Daemon):
    """mgpu-renderd with its module, on the GPU that there is. The end of it is that of
    the vGPUs, too.

    @options: of mgpu-renderd; by default the GPU, if there is one
    @inside: command that runs mgpu-renderd
    """

    def __init__(self, *options, inside=()):
        options = options or (("--node", NODE) if GPU else ())
        super().__init__("renderd", *inside, RENDERD, *options,
                         ready=lambda: "mgpu-renderd: serves " in self.log())

    def start(self):
        call(MODULES, "load", "mgpu_user")
        if GPU:
            native_driver()
        super().start()

    def stop(self):
        for uuid in UUIDS:
            vgpu_remove(uuid)
        super().stop()
        call(MODULES, "unload")

    def parent(self):
        """Return the name of the device that has the vGPUs."""
        return re.search(r"^mgpu-renderd: serves (\S+)$", self.log(), re.M)[1]

    def workers(self):
        """Return the processes of the workers that have started their renderer."""
        found = []
        for path in glob.glob("/proc/[0-9]*/status"):
            status = read(path)
            if re.search(r"^Name:\tmgpu-worker$", status, re.M) and \
                    re.search(r"^Seccomp:\t2$", status, re.M):
                found.append(int(path.split("/")[2]))
        return found
