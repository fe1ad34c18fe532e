# SPDX-License-Identifier: GPL-2.0-only
"""Common parts of the reports on GL clients."""
import os
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

# pylint: disable=wrong-import-position
import report  # noqa: E402

PLACES = ("native", "mgpu", "qemu")
# Of a client's runs, beside its rate.
FIGURES = ("client_s_per_s", "level1_ms_per_frame", "level1_ticks_ms_per_frame",
           "qemu_ms_per_frame", "vcpu_ms_per_frame", "engine_ms_per_frame",
           "client_cpu_ms_per_frame", "jobs_per_frame", "commands_per_frame",
           "doorbells_per_frame", "interrupts_per_frame", "latency_us_p50",
           "latency_us_p99", "frame_ms_median", "frame_ms_p99")


def read_lines(directory):
    """Return the results by part; "machine" has the machine of each run."""
    found = {}
    for name, machine, records in report.read_runs(directory):
        for part, record in records:
            found.setdefault(part, []).append(record)
        found.setdefault("machine", []).append({"run": name, **machine})
    return found


def median(rows, key):
    """Over the rows that have it; None if none has."""
    values = [r[key] for r in rows if r.get(key) is not None]
    return float(f"{statistics.median(values):.5g}") if values else None


def ratio(a, b):
    return round(a / b, 4) if a and b else None


def by(rows, *keys):
    """Groups, in the order in which they first come."""
    groups = {}
    for r in rows:
        groups.setdefault(tuple(r[k] for k in keys), []).append(r)
    return groups


def paired(rows, a, b):
    """Median of the ratios of the rates in the same round."""
    rounds = by(rows, "round")
    found = []
    for group in rounds.values():
        rate = {r["where"]: r["fps"] for r in group}
        if rate.get(a) and rate.get(b):
            found.append(rate[a] / rate[b])
    return round(statistics.median(found), 4) if found else None


def clients(rows):
    """Return the clients, with the medians of their rounds by place."""
    out = []
    for (name,), group in by(rows, "client").items():
        c = {"name": name, "rounds": len({r["round"] for r in group})}
        places = by(group, "where")
        for where in PLACES:
            mine = places.get((where,), [])
            c[f"{where}_fps"] = median(mine, "fps")
            c[f"{where}_fps_each"] = [round(r["fps"], 2) for r in mine]
        unpolled = places.get(("mgpu_unpolled",))
        if unpolled:
            c["mgpu_unpolled_fps"] = median(unpolled, "fps")
            c["mgpu_vs_unpolled"] = paired(group, "mgpu", "mgpu_unpolled")
        c["mgpu_vs_native"] = paired(group, "mgpu", "native")
        c["mgpu_vs_qemu"] = paired(group, "mgpu", "qemu")
        for key in FIGURES:
            for where in PLACES:
                value = median(places.get((where,), []), key)
                if value is not None:
                    c[f"{where}_{key}"] = value
        out.append(c)
    return out


def print_busy(out):
    """Print the runs in which this machine had other things to do."""
    busy = [m for m in out.get("machine", [])
            if m.get("emulator_waited_s", 0) > 0.1 * m.get("emulator_ran_s", 0)]
    for m in busy:
        print(f"{m['run']}: this machine was busy: the emulator ran for "
              f"{m['emulator_ran_s']:.0f} s and waited for "
              f"{m['emulator_waited_s']:.0f} s")
