# SPDX-License-Identifier: GPL-2.0-only
"""Guests that benches run in the test host, and commands in them."""
import importlib.util
import os
import re
import select
import shutil
import signal
import socket
import statistics
import subprocess
import time
from importlib.machinery import SourceFileLoader

from process import cpu_ns

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                   "..", "..", ".."))
BUILD = os.environ.get("BUILD", os.path.join(TOP, "build"))
BOOT = os.path.join(TOP, "tools", "guest", "boot")
GPUCTL = os.path.join(BUILD, "ctl", "gpuctl")
MODULES = os.path.join(TOP, "tools", "vm", "modules")
BOOT_LIMIT = 120            # seconds for a guest to come up


class BenchError(Exception):
    pass


class Hung(BenchError):
    """A guest that is alive and prints nothing any more."""


def load_script(name, path):
    """Load a program of this project as a module."""
    loader = SourceFileLoader(name, os.path.join(TOP, path))
    spec = importlib.util.spec_from_loader(name, loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


QMP = load_script("qmp", "tools/guest/qmp")


def call(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"{' '.join(command)} failed:\n"
                         f"{(done.stdout + done.stderr).strip()}")
    return done.stdout


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def median(values):
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else None


class Guest:
    """A guest with its serial port and monitor.

    @name: of its process and files
    @directory: where its files go
    @out: where its serial log is kept
    """

    # A line that says that nothing will come of it.
    BAD = re.compile(r"^(mgpu-flip: cannot|guest: no card|guest: cannot|"
                     r"guest: no root|Kernel panic)")

    def __init__(self, name, directory, out):
        self.name = name
        self.dir = directory
        self.out = out
        self.pid = None
        self.serial = None
        self.text = ""
        self.qmp = None
        self.orders = 0

    def boot(self, *options):
        call(BOOT, "--dir", self.dir, "--run", "sleep 1000000",
             "--name", self.name, *options)
        self.pid = int(read(os.path.join(self.dir, "pid")))
        # Everything from its beginning is in the file, the rest comes here.
        self.serial = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.serial.connect(os.path.join(self.dir, "serial"))
        self.text = read(os.path.join(self.dir, "serial.log"))
        self.qmp = QMP.Qmp(os.path.join(self.dir, "qmp"))
        self.wait_line(r"guest: card0 .*", BOOT_LIMIT)
        self.wait_line(r"guest: run .*", BOOT_LIMIT)

    def alive(self):
        return self.pid and os.path.exists(f"/proc/{self.pid}")

    def fail(self, what, hung=False):
        # A guest that QEMU has stopped, for it could not run it, did not hang.
        try:
            status = self.qmp.command("query-status")["status"]
        except (OSError, QMP.QmpError, AttributeError):
            status = "unknown"
        if status not in ("running", "unknown"):
            what += f" (QEMU: {status})"
            hung = False
        tail = "\n".join("  | " + t for t in
                         self.text.replace("\r", "").splitlines()[-15:])
        raise (Hung if hung else BenchError)(
            f"guest {self.name}: {what}; the end of its serial port:\n{tail}")

    def wait_line(self, pattern, seconds):
        """Wait until the guest prints a matching line; consume all up to it."""
        want = re.compile(pattern)
        end = time.monotonic() + seconds
        while True:
            head, newline, rest = self.text.partition("\n")
            if newline:
                self.text = rest
                if self.BAD.search(head):
                    self.fail(head.strip())
                found = want.search(head.strip())
                if found:
                    return found
                continue
            left = end - time.monotonic()
            if left <= 0:
                self.fail(f"did not print '{pattern}' within {seconds} s",
                          hung=True)
            if not self.alive():
                self.fail("its QEMU is gone")
            if select.select([self.serial], [], [], min(left, 1))[0]:
                data = self.serial.recv(65536)
                if not data:
                    self.fail("its serial port is closed")
                self.text += data.decode("utf-8", "replace")

    def send(self, command):
        """Let the guest run a command; it prints "guest: done STATUS" at its end."""
        self.serial.sendall(command.encode() + b"\n")

    def say(self, command):
        """Like send(), again until the guest has taken all of it (tools/guest/init)."""
        self.orders += 1
        line = f"\n={self.orders}:{len(command)} {command}\n".encode()
        for left in range(5, -1, -1):
            self.serial.sendall(line)
            try:
                self.wait_line(f"guest: took {self.orders}$", 10)
                return
            except Hung:
                if not left:
                    raise

    def pause(self):
        self.qmp.command("stop")

    def resume(self):
        self.qmp.command("cont")

    def threads(self):
        """Yield the threads of its QEMU: path in /proc, "vcpu" or "qemu"."""
        vcpus = [str(c["thread-id"])
                 for c in self.qmp.command("query-cpus-fast")]
        try:
            tasks = os.listdir(f"/proc/{self.pid}/task")
        except OSError:
            tasks = []
        return {f"/proc/{self.pid}/task/{t}":
                "vcpu" if t in vcpus else "qemu" for t in tasks}

    def cpu_ns(self):
        """Return the CPU time of its QEMU, with that of threads that have ended."""
        return cpu_ns(self.pid)

    def stop(self):
        if self.alive():
            try:
                self.qmp.command("quit")
            except (OSError, ValueError, AttributeError, QMP.QmpError):
                pass
            end = time.monotonic() + 10
            while self.alive() and time.monotonic() < end:
                time.sleep(0.1)
        if self.alive():
            os.kill(self.pid, signal.SIGKILL)
        while self.alive():
            time.sleep(0.1)
        log = os.path.join(self.dir, "serial.log")
        if os.path.exists(log):
            shutil.copyfile(log, os.path.join(self.out,
                                              f"serial-{self.name}.log"))
