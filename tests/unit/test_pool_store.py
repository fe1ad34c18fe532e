#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# timeout: 600
"""The database of mgpu-poold on a real PostgreSQL server, and crashes of both.

test_pool_store runs all of its cases on the server.  As a service it then stores groups of
requests, each group in a transaction, while this test kills it, or the server.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

sys.dont_write_bytecode = True

import pytap  # noqa: E402 pylint: disable=wrong-import-position

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD", os.path.join(TOP, "build"))
sys.path.insert(0, os.path.join(TOP, "tests", "lib"))
import postgres  # noqa: E402 pylint: disable=wrong-import-position

PROGRAM = os.path.join(BUILD, "unit", "test_pool_store")
SLOW = float(os.environ.get("MGPU_SLOW", "1"))
TMP = tempfile.mkdtemp()
SQLITE = "sqlite:" + os.path.join(TMP, "pool.db")


def server():
    try:
        return postgres.Server()
    except postgres.Missing as why:
        raise pytap.Skip(str(why)) from why


def all_cases():
    with server() as running:
        template = urllib.parse.unquote(running.url("DATABASE")).replace("DATABASE", "%s")
        done = subprocess.run([PROGRAM], env=dict(os.environ, POOL_STORE_SERVER=template),
                              capture_output=True, text=True, timeout=500 * SLOW, check=False)
        lines = done.stdout.splitlines()
        bad = [line for line in lines if not line.startswith(("ok ", "TAP version"))]
        assert done.returncode == 0, "\n".join(bad)
        assert sum(line.startswith("ok ") and "postgresql: " in line for line in lines) > 35, lines
        assert not any("# SKIP" in line for line in lines), lines


class Writer:
    """A service that stores groups, and what it told."""

    def __init__(self, url):
        self.url = url
        self.next = 0
        self.told = []
        self.process = None

    def start(self):
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [PROGRAM, "write", self.url, str(self.next)], stdout=subprocess.PIPE, text=True)

    def line(self):
        line = self.process.stdout.readline().split()
        if line and line[0] in ("done", "failed", "stale"):
            self.told.append((line[0], int(line[1])))
            self.next = int(line[1]) + 1
        return line

    def read_until(self, word, count=1):
        """Read until it told a word so many times."""
        while count:
            line = self.line()
            assert line, "the service ended"
            count -= line[0] == word

    def kill(self):
        """It may have done one more group, and not told so."""
        self.process.kill()
        while self.line():
            pass
        self.process.wait()
        self.next += 1

    def check(self):
        """All that was done is there, and nothing that failed; no group is in parts."""
        result = subprocess.run([PROGRAM, "check", self.url], capture_output=True, text=True,
                                timeout=120 * SLOW, check=False)
        assert result.returncode == 0, "a group is in parts"
        there = {int(line.split()[1]) for line in result.stdout.splitlines()
                 if line.startswith("there")}
        done = {group for word, group in self.told if word == "done"}
        failed = {group for word, group in self.told if word != "done"}
        assert done, self.told
        assert done <= there, f"lost: {done - there}"
        # what the service could not know made it start again
        unknown = set()
        for (word, group), (after, _) in zip(self.told, self.told[1:]):
            if word == "failed" and after in ("stale", "failed"):
                unknown.add(group)
        stale = sum(word == "stale" for word, _ in self.told)
        assert len(there & failed) <= stale, (there & failed, self.told)
        assert there & failed <= unknown, there & failed
        return len(done)


def killed(url, times):
    writer = Writer(url)
    for i in range(times):
        writer.start()
        writer.read_until("open")
        writer.read_until("done", i + 1)
        writer.kill()
    assert writer.check() >= times


def service_killed_sqlite():
    killed(SQLITE, 20)
    assert os.path.exists(SQLITE.split(":", 1)[1])


def service_killed_postgres():
    with server() as running:
        killed(running.url(), 20)
        assert running.process.poll() is None


def server_killed():
    with server() as running:
        writer = Writer(running.url())
        writer.start()
        writer.read_until("open")
        for _ in range(5):
            writer.read_until("done", 20)
            running.kill()
            writer.read_until("failed")
            running.start()
        writer.read_until("done", 20)
        writer.kill()
        assert writer.check() >= 120


def second_service():
    """Two processes: the second is told of the first, and takes over when it is gone."""
    with server() as running:
        for url in (SQLITE + "2", running.url()):
            first, second = Writer(url), Writer(url)
            second.next = 100000
            first.start()
            first.read_until("done")
            second.start()
            line = " ".join(second.line())
            assert f"process {first.process.pid} on" in line and "end it first" in line, line
            first.kill()
            second.read_until("open")
            second.read_until("done")
            second.kill()
            first.told += second.told
            assert first.check()


try:
    STATUS = pytap.run([
        (all_cases, "all cases of test_pool_store on a server"),
        (service_killed_sqlite, "a service on SQLite that is killed loses no transaction"),
        (service_killed_postgres, "a service on PostgreSQL that is killed loses no transaction"),
        (server_killed, "a server that is killed loses no transaction, and the service goes on"),
        (second_service, "a second service waits until the first is gone"),
    ])
finally:
    shutil.rmtree(TMP)
sys.exit(STATUS)
