# SPDX-License-Identifier: GPL-2.0-only
"""A running mgpu-remoted, and programs that use it."""

import contextlib
import os
import re
import socket
import subprocess
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD", os.path.join(TOP, "build"))
CTL = os.path.join(BUILD, "ctl")
SLOW = int(os.environ.get("MGPU_SLOW", "1"))
MODES = ("one", "batched", "deferred")

tmp = tempfile.TemporaryDirectory()


def path(name):
    """Return the name of a file for this test."""
    return os.path.join(tmp.name, name)


# The environment of a program that uses no server.
PLAIN = {key: value for key, value in os.environ.items()
         if not key.startswith(("MGPU_REMOTE", "MGPU_CUDA")) and key != "OCL_ICD_VENDORS"}
PLAIN["XDG_CACHE_HOME"] = path("reports")


def run(*args, env=None, seconds=60):
    """Run a program and return what it left."""
    return subprocess.run(args, capture_output=True, text=True, check=False, env=env or PLAIN,
                          timeout=seconds * SLOW)


def build(*args):
    """Run a compiler, which must succeed."""
    done = run(*args, seconds=120)
    if done.returncode:
        raise RuntimeError(done.stderr)


def analyse(name):
    """Make the report that the deferred mode needs."""
    build(os.path.join(CTL, "mgpu-defer"), "analyse", "--assume-success", path(name))


def wait_until(what, seconds=20):
    """Wait until a function returns something true; return that."""
    end = time.monotonic() + seconds * SLOW
    while time.monotonic() < end:
        result = what()
        if result:
            return result
        time.sleep(0.02)
    raise AssertionError(f"{what.__name__} is not so after {seconds} s")


class Server:
    """A running mgpu-remoted.

    `env` is its environment, and `client` that of programs, but for the variables that name it.
    """

    def __init__(self, options, env, client):
        self.socket, self.log, self.client = path("socket"), path("log"), client
        with open(self.log, "w", encoding="utf-8") as log, \
                socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.bind(path("notify"))
            self.process = subprocess.Popen([os.path.join(CTL, "mgpu-remoted"), "--socket",
                                             self.socket, *options], stderr=log,
                                            env=dict(env, NOTIFY_SOCKET=path("notify")))
            notify.settimeout(20 * SLOW)
            assert notify.recv(100).startswith(b"READY=1"), self.said()
        os.unlink(path("notify"))

    def env(self, mode):
        """Return the environment of a program that uses it."""
        return dict(self.client, MGPU_REMOTE=self.socket, MGPU_REMOTE_MODE=mode)

    def programs(self):
        """Return the processes that it has for programs."""
        name = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        with open(name, encoding="ascii") as file:
            return [int(pid) for pid in file.read().split()]

    def has_none(self):
        """Return whether it has no process for a program."""
        return not self.programs()

    def said(self):
        """Return what it wrote to standard error."""
        with open(self.log, encoding="utf-8") as file:
            return file.read()

    def talk(self, *messages):
        """Send messages as a program, and return what comes until the other side closes."""
        got = b""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(20 * SLOW)
            sock.connect(self.socket)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                for message in messages:
                    sock.sendall(message)
                while data := sock.recv(65536):
                    got += data
        return got


@contextlib.contextmanager
def serving(*options, env, client):
    """Have a server, which must be alive and without programs in the end."""
    server = Server(options, env, client)
    try:
        yield server
        wait_until(server.has_none)
        assert server.process.poll() is None, server.said()
    finally:
        server.process.terminate()
        assert server.process.wait(20 * SLOW) == 0
        assert not os.path.exists(server.socket)


def start(*args, env):
    """Start a program that says when it is running."""
    process = subprocess.Popen(args, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True)
    assert process.stdout.readline() == "running\n", process.stderr.read()
    return process


def finish(process):
    """Wait for a program; return its output and status."""
    out, error = process.communicate(timeout=60 * SLOW)
    return out, error, process.returncode


def counts(done):
    """Return what the front end counted."""
    line = re.search(r"^mgpu: requests=.*", done.stderr, re.M)
    return {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", line[0])}
