# SPDX-License-Identifier: GPL-2.0-only
"""Runs of programs natively and remoted, in turns, and their rows in the report."""

import os
import re
import statistics
import subprocess
import sys
import time

MODES = ("native", "one", "batched", "deferred")


def timed(args, env, folder):
    """Run a program; return its output, milliseconds, those of the processor, and counts."""
    with open(os.path.join(folder, "out"), "w+", encoding="utf-8") as out, \
            open(os.path.join(folder, "err"), "w+", encoding="utf-8") as err:
        start = time.monotonic()
        process = subprocess.Popen(args, env=env, stdout=out, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
        ms = (time.monotonic() - start) * 1000
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        text, errors = out.read(), err.read()
    if process.returncode:
        sys.exit(f"{' '.join(args)} ({env.get('MGPU_REMOTE_MODE', 'native')}) failed: {errors}")
    counts = re.findall(r"(\w+)=(\d+)", errors) if "MGPU_REMOTE_COUNTS" in env else ()
    return (text, ms, (usage.ru_utime + usage.ru_stime) * 1000,
            {key: int(value) for key, value in counts})


def in_turns(rounds, once):
    """Call once(mode) for all modes in turns, the order changing; return lists by mode."""
    found = {mode: [] for mode in MODES}
    for mode in MODES:
        once(mode)
    for i in range(rounds):
        for mode in MODES[i % len(MODES):] + MODES[:i % len(MODES)]:
            found[mode].append(once(mode))
    return found


def loop_row(found, launches):
    """Return what a launch in a loop costs, of what timed() returned, with microseconds."""
    times = {mode: [[float(us) for us in re.findall(r"us (\S+)", text)]
                    for text, *_ in found[mode]] for mode in MODES}
    us = {mode: [statistics.median(some) for some in times[mode]] for mode in MODES}
    row = {mode + "_us": round(statistics.median(us[mode]), 3) for mode in MODES}
    row["deferred_to_native"] = round(statistics.median(
        d / n for d, n in zip(us["deferred"], us["native"])), 3)
    row["one_to_deferred"] = round(statistics.median(
        o / d for o, d in zip(us["one"], us["deferred"])), 3)
    # The first repetition is not timed.
    total = launches * (len(times["deferred"][-1]) + 1)
    for mode in ("batched", "deferred"):
        row[mode + "_bytes"] = round(found[mode][-1][3]["bytes"] / total, 2)
    return row


def program_row(found):
    """Return what runs of a program cost, of what timed() returned."""
    row = {mode + "_ms": round(statistics.median(ms for _, ms, *_ in found[mode]), 2)
           for mode in MODES}
    for other in ("one", "batched"):
        row["deferred_to_" + other] = round(statistics.median(
            d[1] / o[1] for d, o in zip(found["deferred"], found[other])), 3)
    counts = found["deferred"][-1][3]
    row.update(calls=counts["requests"], round_trips=counts["waits"], bytes=counts["bytes"],
               grouped=counts["grouped"],
               cpu_ms=round(statistics.median(cpu for _, _, cpu, _ in found["deferred"]), 2))
    return row
