#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# timeout: 600
"""mgpu-poold crashes at every point, and at random times: nothing is lost, nothing served twice.

  test_pool_crash.py [--crashes N] [--seed N] [--database URL] [--report FILE]

Clients ask, wait and release while the service ends without any cleanup and starts again.  After
each crash, and at the end, libvirt's truth is compared with the rules: a GPU is in one VM, all of
its functions are, a request has one GPU, each key is one request, and all requests come to their
end.  --report writes how many crashes there were, and what was lost or served twice, as JSON.
"""

import argparse
import collections
import contextlib
import http.client
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True

import pytap  # noqa: E402 pylint: disable=wrong-import-position

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "lib"))
import poold  # noqa: E402 pylint: disable=wrong-import-position
import postgres  # noqa: E402 pylint: disable=wrong-import-position

OPTIONS = argparse.ArgumentParser()
OPTIONS.add_argument("--crashes", type=int, default=25)
OPTIONS.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
OPTIONS.add_argument("--database")
OPTIONS.add_argument("--report")
OPTIONS = OPTIONS.parse_args()

TMP = tempfile.mkdtemp()
GPUS = 3
VMS = 6
RETRY = "[attach]\nretry_s = 1\ntries = 50\n[limits]\nrate = 10000\nburst = 10000\n"
GONE = (OSError, http.client.HTTPException)


def points():
    """Names of the points."""
    return subprocess.run([poold.PROGRAM, "points"], capture_output=True, text=True,
                          check=True).stdout.split()


def check_devices(p, whole=False):
    """Compare what libvirt has with the rules; returns what is served twice, as text."""
    wrong = []
    by_function = collections.defaultdict(set)
    by_request = collections.defaultdict(set)
    for bus, function, vm, request in p.devices():
        by_function[bus, function].add(vm)
        by_request[request].add((vm, bus))
    for where, vms in by_function.items():
        if len(vms) > 1:
            wrong.append(f"function {where} is in {sorted(vms)}")
    for request, places in by_request.items():
        if len(places) > 1:
            wrong.append(f"request {request} has {sorted(places)}")
    for bus in {bus for bus, _ in by_function}:
        if whole and ((bus, 0) in by_function) != ((bus, 1) in by_function):
            wrong.append(f"a part of GPU {bus} is in a VM")
    return wrong


class Persistent:
    """Calls that go on over crashes, as a client should."""

    def __init__(self, p, stop):
        self.p = p
        self.stop = stop

    def call(self, method, target, body=None):
        """Repeat a call until it is answered; None when it is time to stop."""
        while not self.stop.is_set():
            try:
                answer = self.p.unix.call(method, target, body)
            except GONE:
                time.sleep(0.01)
                continue
            if answer.status in (429, 503):
                time.sleep(0.01)
                continue
            return answer
        return None


class Worker(threading.Thread):
    """A VM that asks for a GPU again and again, each time with a new key."""

    def __init__(self, p, vm, stop, seed):
        super().__init__()
        self.calls = Persistent(p, stop)
        self.vm = vm
        self.random = random.Random(seed)
        self.keys = {}
        self.error = None

    def one(self, number):
        """Ask, wait for the GPU, release."""
        key = f"{self.vm}-{number}"
        wish = {"key": key, "vm": self.vm, "kind": "training"}
        answer = self.calls.call("POST", "/v1/requests", wish)
        if not answer:
            return False
        assert answer.status in (200, 201), answer
        r = answer.json
        self.keys[key] = r["id"]
        while r["state"] in ("queued", "attaching"):
            answer = self.calls.call(
                "GET", f"/v1/requests/{r['id']}?wait=1&seen={r['version']}")
            if not answer:
                return False
            assert answer.status == 200, answer
            r = answer.json
            assert r["key"] == key, r
            if self.random.random() < 0.05:
                break
        if self.random.random() < 0.3:
            again = self.calls.call("POST", "/v1/requests", wish)
            if not again:
                return False
            assert again.status == 200 and again.json["id"] == r["id"], again
        answer = self.calls.call("POST", f"/v1/requests/{r['id']}/release",
                                 {"done": r["state"] == "active"})
        assert not answer or answer.status == 200, answer
        return bool(answer)

    def run(self):
        number = 0
        try:
            while self.one(number):
                number += 1
        except Exception as error:  # pylint: disable=broad-except
            self.error = f"{self.vm}: {type(error).__name__}: {error}"


def settle(p, keys):
    """Release all, wait for the end of all; returns what was lost and served twice."""
    lost, twice = [], check_devices(p)
    for r in p.unix.get("/v1/requests?open=1&limit=1000")["requests"]:
        p.unix.release(r["id"])

    def ended():
        return not p.unix.get("/v1/requests?open=1")["requests"] and not p.devices()

    try:
        poold.wait_for(ended, "all requests end")
    except AssertionError:
        lost += [f"request {r['id']} is {r['state']}: {r['why']}"
                 for r in p.unix.get("/v1/requests?open=1")["requests"]]
        lost += [f"device {d} stays" for d in p.devices()]
    stored, before = {}, None
    while True:
        rows = p.unix.get("/v1/requests?limit=1000" + (f"&before={before}" if before else ""))
        for r in rows["requests"]:
            if r["key"] in stored:
                twice.append(f"key {r['key']} is requests {stored[r['key']]} and {r['id']}")
            stored[r["key"]] = r["id"]
            before = r["id"]
        if not rows["requests"]:
            break
    for key, number in keys.items():
        if stored.get(key) != number:
            lost.append(f"request {number} of key {key} is {stored.get(key)}")
    return lost, twice


def crashes_at(point):
    """One crash at a point, at its first or second time; returns whether it was reached."""
    reached = 0
    for count in (1, 2):
        folder = tempfile.mkdtemp(dir=TMP)
        p = poold.Poold(folder, gpus=1, vms=3, config=RETRY)
        stop = threading.Event()
        try:
            p.begin(MGPU_POOL_CRASH=f"{point}:{count}")
            calls = Persistent(p, stop)
            done = threading.Thread(target=lambda: life(calls, keys))
            keys = {}
            done.start()
            while p.process.poll() is None and done.is_alive():
                time.sleep(0.01)
            if p.process.poll() is not None:
                assert p.process.returncode == 99, p.log()
                reached += 1
                twice = check_devices(p)
                assert not twice, (point, count, twice)
                p.start()
            done.join(poold.PATIENCE)
            assert not done.is_alive(), f"{point}:{count}: the client waits: {p.log()}"
            assert len(keys) == 2, (point, count, keys)
            lost, twice = settle(p, keys)
            assert not lost and not twice, (point, count, lost, twice)
            assert p.stop() == 0, p.log()
            assert "Sanitizer" not in p.log(), p.log()
        finally:
            stop.set()
            if p.process and p.process.poll() is None:
                p.process.kill()
                p.process.wait()
            shutil.rmtree(folder)
    return reached


def life(calls, keys):
    """Two VMs, one GPU: the second gets it when the first gives it back."""
    numbers = []
    for vm in ("vm0", "vm1"):
        answer = None
        while not answer or answer.status == 404 or answer.status == 422:
            # The host may not be there yet.
            answer = calls.call("POST", "/v1/requests", {"key": vm, "vm": vm, "kind": "work"})
            if not answer:
                return
        assert answer.status in (200, 201), answer
        keys[vm] = answer.json["id"]
        numbers.append(answer.json["id"])
    for number in numbers:
        state = None
        while state != "active":
            answer = calls.call("GET", f"/v1/requests/{number}")
            if not answer:
                return
            state = answer.json["state"]
            assert state in ("queued", "attaching", "active"), answer
        calls.call("POST", f"/v1/requests/{number}/release", {"done": True})


def every_point():
    for point in points():
        assert crashes_at(point), f"{point} was not reached"


def names_are_those_of_the_sources():
    found = set()
    for folder in ("ctl/pool", "tests/unit"):
        for name in os.listdir(os.path.join(TOP, folder)):
            if name.endswith(".c") and name not in ("crash.c", "test_poold.c"):
                with open(os.path.join(TOP, folder, name), encoding="utf-8") as file:
                    found |= set(re.findall(r'crash_point\("([a-z-]+)"\)', file.read()))
    assert found == set(points()), found ^ set(points())


def crash(p, chance):
    """Kill the service at a random time, and start it again; returns what is served twice."""
    time.sleep(chance.uniform(0, 0.4))
    p.process.send_signal(signal.SIGKILL)
    p.process.wait()
    twice = check_devices(p)
    p.begin()
    if chance.random() < 0.7:
        # Else it is killed again while it starts.
        poold.wait_for(p.serves, "it serves")
    return twice


def on_a_server():
    try:
        server = postgres.Server()
    except postgres.Missing as why:
        raise pytap.Skip(str(why)) from why
    with server as running:
        random_times(running.url())
        assert OPTIONS.crashes


def random_times(database=OPTIONS.database):
    chance = random.Random(OPTIONS.seed)
    print(f"# --seed {OPTIONS.seed}, {OPTIONS.crashes} crashes")
    folder = tempfile.mkdtemp(dir=TMP)
    p = poold.Poold(folder, gpus=GPUS, vms=VMS, config=RETRY, database=database)
    stop = threading.Event()
    workers = [Worker(p, f"vm{i}", stop, chance.random()) for i in range(VMS)]
    twice, keys, tried = [], {}, 0
    try:
        p.start()
        for worker in workers:
            worker.start()
        for _ in range(OPTIONS.crashes):
            twice += crash(p, chance)
            tried += 1
        poold.wait_for(p.serves, "it serves")
        time.sleep(0.5)
        stop.set()
        for worker in workers:
            worker.join(poold.PATIENCE)
            keys.update(worker.keys)
        errors = [w.error for w in workers if w.error]
        lost, more = settle(p, keys)
        twice += more
        assert p.stop() == 0, p.log()
        report = {"tried": tried, "lost": len(lost), "twice": len(twice), "requests": len(keys),
                  "database": (database or "sqlite").split(":")[0]}
        print("# " + json.dumps(report))
        if OPTIONS.report:
            with open(OPTIONS.report, "w", encoding="utf-8") as file:
                json.dump(report, file)
        assert not errors, errors
        assert not lost and not twice, (lost, twice)
        assert len(keys) > OPTIONS.crashes / 10, f"{len(keys)} requests: the test tries nothing"
        assert "Sanitizer" not in p.log(), p.log()
    finally:
        stop.set()
        if p.process and p.process.poll() is None:
            with contextlib.suppress(OSError):
                p.process.kill()
                p.process.wait()


def main():
    tests = [
        (names_are_those_of_the_sources, "the sources have the points that are tested"),
        (every_point, "after a crash at each point nothing is lost or served twice"),
        (random_times, "after crashes at random times nothing is lost or served twice"),
        (on_a_server, "nor with the database on PostgreSQL"),
    ]
    try:
        return pytap.run(tests if not OPTIONS.report else tests[2:3])
    finally:
        shutil.rmtree(TMP)


if __name__ == "__main__":
    sys.exit(main())
