#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The demo of the pool: its clock, its VMs, and a short run with mgpu-poold."""
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import urllib.request

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD", os.path.join(TOP, "build"))
DEMO = os.path.join(TOP, "tools", "demo", "pool")
sys.path.insert(0, DEMO)
sys.dont_write_bytecode = True

import play  # noqa: E402 pylint: disable=wrong-import-position
import pytap  # noqa: E402 pylint: disable=wrong-import-position

SLOW = float(os.environ.get("MGPU_SLOW", "1"))
TEMPORARY = tempfile.TemporaryDirectory()
CLOCK = os.path.join(BUILD, "demo-pool", "clock.so")


# ---- the clock

def catches_up():
    clock = play.Clock(1000000.0, 60, 60)
    assert clock.speed == 61
    assert clock.at(1000000.0) == clock.begin == 1000000 - 3600
    assert clock.at(1000030.0) == 1000000 - 3600 + 30 * 61
    assert not clock.caught_up(1000059.9) and clock.caught_up(1000060.0)
    assert clock.at(1000060.0) == 1000060 and clock.at(1000061.5) == 1000061.5


def preloaded(begin, speed):
    """Seconds since 1970 that a program sees, monotonic ones, and those since the boot."""
    code = ("import time; print(time.time(), time.monotonic(), "
            "time.clock_gettime(time.CLOCK_BOOTTIME))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                          env=dict(os.environ, LD_PRELOAD=CLOCK,
                                   MGPU_DEMO_CLOCK=f"{int(begin * 1e9)} {speed}"))
    return [float(word) for word in done.stdout.split()]


def preloads():
    import time  # pylint: disable=import-outside-toplevel
    now = time.time()
    seen, monotonic, _ = preloaded(now - 1e6, 2)
    assert now - 1e6 <= seen < now - 1e6 + 2 * (time.time() - now) + 1, (now, seen)
    assert monotonic <= time.monotonic()
    # The time since the boot goes with it.
    seen, _, boot = preloaded(now - 1e6, 2)
    boot += time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    # Without it they would be a million seconds apart.
    assert abs(boot - seen) < 60, (boot, seen)
    # It never goes beyond the time of day.
    seen, _, _ = preloaded(now - 1e-3, 10**9)
    assert now <= seen <= time.time(), (now, seen)


# ---- the VMs

class Recorder:
    """A service that remembers calls."""

    def __init__(self):
        self.calls = []

    def ask(self, vm, key, kind):
        self.calls.append(("ask", vm, key, kind))
        return len(self.calls)

    def use(self, _r, busy_s, energy_j, _memory_mib):
        self.calls.append(("use", busy_s, energy_j))

    def release(self, r):
        self.calls.append(("release", r["id"]))


def made(forgets):
    """A VM whose request is there, and that works since 100 s."""
    pool = Recorder()
    vm = play.Vm("one", pool, random.Random(1), 0)
    vm.step(vm.next, {})
    assert pool.calls[0][:3] == ("ask", "one", "one-1"), pool.calls
    vm.kind, vm.work_s, vm.forgets = "training", 600, forgets
    row = {"id": 1, "vm": "one", "state": "active", "attached": 100.0,
           "model": "NVIDIA RTX A5000"}
    return pool, vm, row


def works():
    pool, vm, row = made(False)
    for now in range(100, 700, 30):
        vm.step(now, {1: row})
        assert ("release", 1) not in pool.calls, now
    vm.step(700, {1: row})
    assert pool.calls[-1] == ("release", 1), pool.calls[-1]
    used = [call[1] for call in pool.calls if call[0] == "use"]
    assert used == sorted(used) and used[-1] <= 600, used
    # Gone: it asks again, later.
    vm.step(710, {})
    assert vm.request is None and vm.next > 710


def faster():
    """A faster model and haste make work shorter, but no use longer than the time."""
    pool, vm, row = made(False)
    row["model"] = "NVIDIA L40S"
    for now in range(100, 131, 10):
        vm.step(now, {1: row}, 15)
    assert pool.calls[-1] == ("release", 1), pool.calls
    assert all(call[1] <= 30 for call in pool.calls if call[0] == "use"), pool.calls


def forgets():
    pool, vm, row = made(True)
    for now in range(100, 5000, 60):
        vm.step(now, {1: row})
    assert ("release", 1) not in pool.calls
    used = [call[1] for call in pool.calls if call[0] == "use"]
    assert used[-1] == used[-10] > 0, "the counter of forgotten work stands still"


def sums():
    def row(state, asked, attached, ended, why=""):
        return {"state": state, "asked": asked, "attached": attached, "ended": ended, "why": why}

    out = play.summary([row("released", 0, 10, 110, "idle for 600 s"), row("active", 50, 100, None),
                        row("queued", 150, None, None)], 200, 2, 0)
    assert (out["requests"], out["released"], out["in_use"], out["waiting"]) == (3, 1, 1, 1), out
    assert out["taken_back_idle"] == 1 and out["wait_most_s"] == 50, out
    assert abs(out["lent"] - 200 / 400) < 1e-9, out
    assert len(list(play.lines(out))) == 3
    assert play.summary([], 0, 2, 0)["lent"] is None and list(play.lines(play.summary([], 0, 2, 0)))


def names():
    vms = play.vm_names()
    flat = [vm for host in vms.values() for vm in host]
    assert len(flat) == len(set(flat)) == sum(host[2] for host in play.HOSTS)


# ---- the demo

def begin(**options):
    """Start the demo, in a short form."""
    settings = {"MINUTES": "40", "SECONDS": "6", "PICTURES": "no", "STAY": "no", **options}
    return subprocess.Popen(
        [os.path.join(DEMO, "run")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
        env=dict(os.environ, BUILD=BUILD, DEMO_POOL_OUT=TEMPORARY.name,
                 **{f"DEMO_POOL_{name}": value for name, value in settings.items()}))


def lines_until(demo, pattern):
    """Read what the demo prints until a line; returns what the pattern found."""
    said = []
    for line in demo.stdout:
        said.append(line)
        found = re.search(pattern, line)
        if found:
            return found
    raise AssertionError("".join(said))


def get(url):
    with urllib.request.urlopen(url, timeout=60 * SLOW) as answer:
        return answer.read()


def limited(demo):
    timer = threading.Timer(120 * SLOW, demo.kill)
    timer.start()
    return timer


def plays():
    with begin() as demo:
        timer = limited(demo)
        try:
            url = lines_until(demo, r"the page is (http://127\.0\.0\.1:\d+/)").group(1)
            assert b"<html" in get(url) and b"export" in get(url + "page/service.js")
            assert len(json.loads(get(url + "v1/gpus"))["gpus"]) == 10
            rest = demo.stdout.read()
            assert demo.wait() == 0, rest
        finally:
            timer.cancel()
            demo.kill()
    with open(os.path.join(TEMPORARY.name, "summary.json"), encoding="utf-8") as file:
        figures = json.load(file)
    assert figures["released"] > 5 and figures["failed"] == 0, figures
    assert figures["lent"] > 0.2 and figures["wait_p50_s"] is not None, figures
    assert figures["pictures"] == [], figures


def stays_until_interrupted():
    with begin(STAY="yes", SECONDS="2", MINUTES="5") as demo:
        timer = limited(demo)
        try:
            url = lines_until(demo, r"works on: (http://\S+)").group(1)
            get(url)
            # As a terminal does
            os.killpg(demo.pid, signal.SIGINT)
            rest = demo.stdout.read()
            assert demo.wait() == 0, rest
            assert "results are in" in rest, rest
        finally:
            timer.cancel()
            demo.kill()


def refuses():
    for name, value in (("SECONDS", "0"), ("MINUTES", "x"), ("STAY", "maybe"), ("PORT", "70000"),
                        ("SEED", "-1"), ("PICTURES", "maybe")):
        with begin(**{name: value}) as demo:
            said = demo.stdout.read()
            assert demo.wait() == 1 and f"DEMO_POOL_{name}={value}" in said, said
            assert said.count("\n") == 1, f"it played before: {said}"


def port_is_taken():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with begin(PORT=str(port)) as demo:
            said = demo.stdout.read()
            assert demo.wait() == 1 and "Traceback" not in said, said
            assert f"port {port} of 127.0.0.1: Address already in use; set DEMO_" in said, said


def main():
    for folder, goal in (("tools/bench", ["pool-agents"]), ("tools/demo/pool", [])):
        subprocess.run(["make", "-s", "--no-print-directory", "-C", os.path.join(TOP, folder),
                        f"BUILD={BUILD}", *goal], check=True, stdout=subprocess.DEVNULL)
    return pytap.run([
        (catches_up, "the hour is played, and then the clock is right"),
        (preloads, "a program that the clock is preloaded to sees it"),
        (works, "a VM asks, works, reports, and gives the GPU back"),
        (faster, "work ends earlier on a faster GPU, and its use is never more than the time"),
        (forgets, "a VM that forgets its GPU works no more"),
        (sums, "the summary counts requests, waits and lent GPUs"),
        (names, "VMs have names of their own"),
        (plays, "a short demo shows its page, and writes its summary"),
        (stays_until_interrupted, "it stays until it is interrupted"),
        (refuses, "wrong options are refused, before anything is played"),
        (port_is_taken, "a port that is taken is refused"),
    ])


if __name__ == "__main__":
    sys.exit(main())
