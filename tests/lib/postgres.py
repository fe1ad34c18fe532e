# SPDX-License-Identifier: GPL-2.0-only
"""A private PostgreSQL server for tests.

It is an installed one or that of tools/setup/postgresql, has a folder of its own, and listens on a
Unix socket there.  It refuses to run as root: then it runs as nobody.
"""

import contextlib
import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.parse

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD", os.path.join(TOP, "build"))
SLOW = float(os.environ.get("MGPU_SLOW", "1"))
UNPACKED = os.path.join(BUILD, "postgresql")


class Missing(Exception):
    """There is no server, and the reason."""


def folder_of_programs():
    for root in ("/", UNPACKED):
        found = glob.glob(os.path.join(root, "usr/lib/postgresql/*/bin/initdb"))
        if found:
            return os.path.dirname(max(found))
    raise Missing("no PostgreSQL server, run: make postgresql")


def readable(programs):
    """Whether nobody can run what is in a folder, which may be below a private one."""
    return not subprocess.run(["setpriv", "--reuid=nobody", "--clear-groups", "--regid=nogroup",
                               "test", "-x", programs + "/initdb"], check=False).returncode


class Server:
    """A server; its folder goes with it."""

    def __init__(self, settings=()):
        self.programs = folder_of_programs()
        self.home = tempfile.mkdtemp(prefix="mgpu-postgres-")
        self.data = os.path.join(self.home, "data")
        self.process = None
        self.settings = list(settings)
        self.prefix = []
        self.env = dict(os.environ, LC_ALL="C", TZ="GMT")
        try:
            self.prepare()
        except BaseException:
            shutil.rmtree(self.home)
            raise

    def prepare(self):
        if self.programs.startswith(UNPACKED):
            self.env["LD_LIBRARY_PATH"] = ":".join(glob.glob(UNPACKED + "/usr/lib/*-linux-gnu"))
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(self.home, nobody.pw_uid, nobody.pw_gid)
            self.prefix = ["setpriv", "--reuid=nobody", "--clear-groups", "--regid=nogroup"]
            if not readable(self.programs):
                self.move_programs()
        self.program("initdb", "-D", self.data, "-U", "pool", "-A", "trust", "-E", "UTF8",
                     "--no-locale", "--no-sync")
        hba = os.path.join(self.data, "pg_hba.conf")
        with open(hba, encoding="utf-8") as file:
            text = file.read()
        with open(hba, "w", encoding="utf-8") as file:
            file.write("local all secretive scram-sha-256\n" + text)

    def move_programs(self):
        """Copy the unpacked server to where nobody can read it."""
        copy = os.path.join(self.home, "programs")
        shutil.copytree(os.path.join(UNPACKED, "usr"), copy + "/usr", symlinks=True)
        self.programs = self.programs.replace(UNPACKED, copy, 1)
        self.env["LD_LIBRARY_PATH"] = self.env["LD_LIBRARY_PATH"].replace(UNPACKED, copy)

    def program(self, name, *words):
        done = subprocess.run([*self.prefix, os.path.join(self.programs, name), *words],
                              cwd=self.home, env=self.env, capture_output=True, text=True,
                              timeout=120 * SLOW, check=False)
        if done.returncode:
            raise AssertionError(f"{name}: {done.stderr}")

    def start(self):
        """Start it, and wait until it takes connections."""
        with open(os.path.join(self.home, "log"), "ab") as log:
            self.process = subprocess.Popen(  # pylint: disable=consider-using-with
                [*self.prefix, os.path.join(self.programs, "postgres"), "-D", self.data,
                 "-k", self.home, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "jit=off",
                 "-c", "shared_buffers=16MB", "-c", "max_connections=30", "-c", "TimeZone=GMT",
                 *[word for setting in self.settings for word in ("-c", setting)]],
                cwd=self.home, env=self.env, stdout=log, stderr=log, start_new_session=True)
        end = time.monotonic() + 60 * SLOW
        while not self.is_ready():
            assert self.process.poll() is None and time.monotonic() < end, self.log()
            time.sleep(0.05)

    def is_ready(self):
        """Whether its file of state says so: no client is needed for it."""
        try:
            with open(os.path.join(self.data, "postmaster.pid"), encoding="utf-8") as file:
                lines = file.read().split("\n")
        except FileNotFoundError:
            return False
        return len(lines) > 7 and lines[0] == str(self.process.pid) and lines[7].strip() == "ready"

    def log(self):
        with open(os.path.join(self.home, "log"), encoding="utf-8", errors="replace") as file:
            return file.read()[-4000:]

    def kill(self):
        """End all of its processes at once, as a crash does."""
        os.killpg(self.process.pid, signal.SIGKILL)
        for child in self.backends():
            # one that saw the end of its parent ends by itself
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        self.process.wait()
        while self.backends():
            time.sleep(0.01)

    def backends(self):
        """Its processes: each is in a group of its own, and has the folder as its own."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink(f"/proc/{pid}/cwd") == self.data:
                    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                        if file.read().rsplit(")", 1)[1].split()[0] != "Z":
                            found.append(int(pid))
            except OSError:
                continue
        return found

    def url(self, database="postgres", user="pool"):
        return f"postgresql://{user}@/{database}?host={urllib.parse.quote(self.home, safe='')}"

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(timeout=30 * SLOW)
            except subprocess.TimeoutExpired:
                self.kill()
        shutil.rmtree(self.home, ignore_errors=True)

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()
