# SPDX-License-Identifier: GPL-2.0-only
"""Programs that run on this machine, natively and remoted: the common parts of unix and cuda."""
import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, os.pardir, "common")]

# pylint: disable=wrong-import-position
import cases  # noqa: E402
from daemons import Daemon  # noqa: E402
from guests import BUILD, BenchError  # noqa: E402
from results import results  # noqa: E402

CTL = os.path.join(BUILD, "ctl")
TRANSPORT = "unix"

result = results("deferred")


def server(socket, *options, env):
    """Return a server for a "with"; its log is named after its socket."""
    name = os.path.basename(socket)
    return Daemon(name, "env", *(f"{key}={value}" for key, value in env.items()),
                  os.path.join(CTL, "mgpu-remoted"), "--socket", socket, *options,
                  ready=lambda: os.path.exists(socket))


def remoted(socket, mode):
    """Return what the environment of a remoted program has beside."""
    return {"MGPU_REMOTE": socket, "MGPU_REMOTE_MODE": mode, "MGPU_REMOTE_COUNTS": "1"}


class Programs:
    """Programs of prepare, and a folder for the files of this run."""

    def __init__(self, folder, programs):
        self.folder = folder
        self.programs = programs

    def path(self, name):
        """Return the name of a file of this run."""
        return os.path.join(self.folder, name)

    def run(self, args, env):
        """Run a program; return what it printed, and what that took."""
        env = {**os.environ, "XDG_CACHE_HOME": os.path.join(self.programs, "reports"), **env}
        with open(self.path("out"), "w+", encoding="utf-8") as out, \
                open(self.path("err"), "w+", encoding="utf-8") as err:
            start = time.monotonic()
            process = subprocess.Popen(args, env=env, stdout=out, stderr=err)
            _, status, usage = os.wait4(process.pid, 0)
            ms = (time.monotonic() - start) * 1000
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            err.seek(0)
            text, errors = out.read(), err.read()
        if process.returncode:
            mode = env.get("MGPU_REMOTE_MODE", cases.NATIVE)
            raise BenchError(f"{' '.join(args)} ({mode}) failed: {errors}")
        return text, {"ms": ms, "cpu_ms": (usage.ru_utime + usage.ru_stime) * 1000,
                      **cases.counts(errors), **cases.launch_times(cases.launch_us(text))}


def add_run(api, case, mode, number, took):
    """Add what a run took."""
    result("run", {"transport": TRANSPORT, **api, "case": case, "mode": mode, "round": number,
                   **took})


def measure(api, case, rounds, run):
    """Add the rounds of a program; run(mode) returns what a run took."""
    for number in range(rounds + 1):
        for mode in cases.turns(number, cases.MODES):
            add_run(api, case, mode, number, run(mode))


def main(part, measure_all):
    """Measure a part of the bench by measure_all(folder for its files, options)."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", required=True)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    for variable in [key for key in os.environ if key.startswith(("MGPU_REMOTE", "MGPU_CUDA"))]:
        del os.environ[variable]
    os.environ.pop("OCL_ICD_VENDORS", None)
    # Servers end, and the files of this run go, also when time is up.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(f"bench: {part}: ended by a signal"))
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        try:
            measure_all(folder, options)
        except BenchError as e:
            sys.exit(f"bench: {part}: {e}")
    result("took", {"what": part, "seconds": time.monotonic() - start})
