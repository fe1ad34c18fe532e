#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The pool's bench: its arithmetic, its played hosts, and what its program refuses."""
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
from importlib.machinery import SourceFileLoader

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BENCH = os.path.join(TOP, "tools", "bench", "pool")
sys.path[:0] = [BENCH, os.path.join(TOP, "tests", "lib")]
sys.dont_write_bytecode = True

import pytap  # noqa: E402 pylint: disable=wrong-import-position
import figures  # noqa: E402 pylint: disable=wrong-import-position
from libvirt_node import node_xml  # noqa: E402 pylint: disable=wrong-import-position

TEMPORARY = tempfile.TemporaryDirectory()


def program():
    """The program that make bench-pool calls, as a module."""
    loader = SourceFileLoader("bench_pool_run", os.path.join(BENCH, "run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def near(a, b):
    assert a is not None and abs(a - b) < 1e-9, f"{a} is not {b}"


def quantiles():
    values = list(range(100, 0, -1))
    assert figures.quantile(values, 0.5) == 50
    assert figures.quantile(values, 0.99) == 99
    assert figures.quantile(values, 1) == 100
    assert figures.quantile([7], 0.99) == figures.quantile([7], 0) == 7
    assert figures.quantile([1, 2], 0.5) == 1
    assert figures.quantile([], 0.5) is None
    assert values[0] == 100, "the values are sorted in place"


def latencies():
    row = figures.latency([10.0 * i for i in range(1, 101)],
                          [(2.0 * i, 0.5) for i in range(1, 101)])
    assert row["requests"] == 100
    near(row["p50_ms"], 500)
    near(row["p99_ms"], 990)
    near(row["most_ms"], 1000)
    near(row["libvirt_ms"], 0.5)
    near(row["host_p99_ms"], 198)
    near(row["on_top_p99_ms"], 792)


def ratios():
    rows = [{"policy": "history", "utilisation": 0.75}, {"policy": "static-peak",
                                                         "utilisation": 0.25}]
    out = figures.replay({"requests": 10, "replay": rows})
    near(out["over_static"]["static-peak"], 3)
    assert "static-equal" not in out["over_static"] and out["requests"] == 10


def intervals():
    state = figures.interval({"at": 10.0, "cpu_ns": 10**9, "rss": 0, "commits": 5},
                             {"at": 30.0, "cpu_ns": 2 * 10**9, "rss": 5 * 2**20, "commits": 45})
    near(state["cpu"], 0.05)
    near(state["seconds"], 20)
    near(state["rss_mib"], 5)
    near(state["commits_per_s"], 2)


def counts():
    text = ("1234,,raw_syscalls:sys_enter,99,100.00,,\n"
            "<not supported>,,instructions,0,100.00,,\n"
            "77,,instructions:u,0,100.00,,\nsome error\n")
    assert figures.perf_counts(text.replace("77,,instructions:u", "x,,cycles")) == {
        "sys_enter": 1234, "instructions": None, "cycles": None}
    assert figures.perf_counts(text)["instructions"] == 77


def reached():
    """Each aim is met at its figure, and not met beyond it."""
    def met(**result):
        return [row[3] for row in figures.aims(result)]

    def row(on_top):
        return {"hosts": "test", "concurrent": 1, "p99_ms": 1, "on_top_p99_ms": on_top}

    def cost(mib, cpu):
        return {"states": [{"state": "rest", "rss_mib": mib, "cpu": cpu}]}

    assert met(latency=[row(1000), row(1001), {"hosts": "real", "skipped": "x"}]) == [True, False]
    assert met(cost=cost(64, 0.049)) == [True, True]
    assert met(cost=cost(64.1, 0.05)) == [False, False]
    assert met(crashes={"tried": 9, "lost": 0, "twice": 0}) == [True]
    assert met(crashes={"tried": 9, "lost": 1, "twice": 0}) == [False]
    assert met(crashes={"tried": 9, "lost": 0, "twice": 1}) == [False]
    assert met(replay={"over_static": {"static-peak": 1.5, "static-equal": 1.4}}) == [True, False]
    assert not met(replay={"skipped": "no trace"})


def merges():
    old = figures.merge({"cost": 1, "crashes": 2}, {"cost": 3}, "cost")
    assert old == {"cost": 3, "crashes": 2}, old
    bad = figures.merge(old, {"failed": {"cost": "why"}}, "cost")
    assert bad == {**old, "failed": {"cost": "why"}}, bad
    assert figures.merge(bad, {"replay": 1}, "replay")["failed"] == {"cost": "why"}
    assert "failed" not in figures.merge(bad, {"cost": 4}, "cost")


def hosts():
    """A played host is what libvirt's driver reads: VMs that are off, GPUs with their group."""
    tree = xml.etree.ElementTree.fromstring(node_xml([(1, "A & B"), (2, "C")], ["one", "two"], 3))
    names = [d.findtext("name") for d in tree.findall("domain")]
    assert names == ["one", "two"], names
    uuids = {d.findtext("uuid") for d in tree.findall("domain")}
    other = xml.etree.ElementTree.fromstring(node_xml([], ["one", "two"], 4))
    uuids |= {d.findtext("uuid") for d in other.findall("domain")}
    assert len(uuids) == 4 and all(re.fullmatch(r"[0-9a-f-]{36}", u) for u in uuids), uuids
    gpus = [d for d in tree.iter("device") if d.findtext("capability/class") == "0x030000"]
    assert [g.findtext("capability/product") for g in gpus] == ["A & B", "C"]
    assert all(len(g.findall("capability/iommuGroup/address")) == 2 for g in gpus)


def conditions():
    out = program().conditions()
    assert out["processors"] >= 1 and out["load"] >= 0, out


def refuses():
    environment = dict(os.environ, BUILD=TEMPORARY.name)
    run = [os.path.join(BENCH, "run")]
    done = subprocess.run([*run, "speed"], env=environment, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 2 and "a part is one of" in done.stderr, done


def without_trace():
    """Without a trace the part says so, and the file has it."""
    environment = dict(os.environ, BUILD=TEMPORARY.name)
    for name in ("NODES", "TASKS", "MGPU_BENCH_ALONE"):
        environment.pop(name, None)
    done = subprocess.run([os.path.join(BENCH, "run"), "replay"], env=environment,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "NODES=FILE" in done.stdout, done
    with open(os.path.join(TEMPORARY.name, "bench", "pool.json"), encoding="utf-8") as file:
        result = json.load(file)
    assert "skipped" in result["replay"] and "replay" in result["conditions"], result


if __name__ == "__main__":
    sys.exit(pytap.run([
        (quantiles, "quantiles are values that were measured"),
        (latencies, "latency on top is that of the service alone"),
        (ratios, "utilisation is compared with static assignment"),
        (intervals, "a state's share of a processor is CPU time by time"),
        (counts, "counts of perf are read, and those that there are not"),
        (reached, "aims are met at their figure, and missed beyond"),
        (merges, "a part that is measured again takes the place of the older one"),
        (hosts, "played hosts have VMs and GPUs of their own"),
        (conditions, "conditions are told"),
        (refuses, "an unknown part is refused"),
        (without_trace, "a replay without a trace says so"),
    ]))
