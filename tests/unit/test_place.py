#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""mgpu-place: its commands, on traces that this test makes."""

import json
import os
import random
import re
import subprocess
import sys
import tempfile

import pytap

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD", os.path.join(TOP, "build"))
PLACE = os.path.join(BUILD, "ctl", "mgpu-place")
POLICIES = ["first-fit", "best-fit", "random", "dot-product", "gpu-packing", "gpu-clustering",
            "fgd", "learned"]

tmp = tempfile.TemporaryDirectory()


def path(name):
    """Return the name of a file for this test."""
    return os.path.join(tmp.name, name)


def write(name, text):
    """Write a file for this test, and return its name."""
    with open(path(name), "w", encoding="utf-8") as file:
        file.write(text)
    return path(name)


def run(*args):
    """Run mgpu-place."""
    return subprocess.run([PLACE, *args], capture_output=True, text=True, check=False)


def output(*args):
    """Return the output of a call that must succeed."""
    done = run(*args)
    assert done.returncode == 0 and not done.stderr, (args, done.stderr)
    return done.stdout


def refused(status, error, *args):
    """See that a call is refused with this error."""
    done = run(*args)
    assert done.returncode == status, (args, done.returncode, done.stderr)
    assert done.stderr.startswith("mgpu-place: ") and done.stderr.count("\n") == 1, done.stderr
    assert error in done.stderr, (args, done.stderr)


def trace():
    """Return the options for a cluster and its tasks."""
    rng = random.Random(1)
    nodes = ["sn,cpu_milli,memory_mib,gpu,model"]
    nodes += [f"node-{i},{(96, 32)[i % 2] * 1000},262144,{(4, 8)[i % 3 == 0]},{'AB'[i % 2]}"
              for i in range(40)]
    tasks = ["name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,creation_time,deletion_time"]
    for i in range(500):
        gpus, milli = rng.choice([(0, 0), (1, 1000), (1, 250), (1, 470), (1, 600), (2, 1000)])
        start = rng.randrange(1000)
        tasks.append(f"t{i},{rng.choice([1, 4, 12]) * 1000},{rng.choice([1, 8]) * 1024},{gpus},"
                     f"{milli},{rng.choice(['', '', '', 'A', 'A|B']) if gpus else ''},LS,{start},"
                     f"{start + rng.randrange(500)}")
    return ["--nodes", write("nodes.csv", "\n".join(nodes) + "\n"),
            "--tasks", write("tasks.csv", "\n".join(tasks) + "\n")]


def weights():
    """Return the name of a file of weights."""
    name = path("weights")
    if not os.path.exists(name):
        output("train", *trace(), "--output", name, "--generations", "8", "--population", "6",
               "--replays", "1", "--part", "2")
    return name


def policies_are_listed():
    assert [p["name"] for p in json.loads(output("policies", "-j"))] == POLICIES
    assert [line.split()[0] for line in output("policies").splitlines()] == POLICIES
    with open(os.path.join(TOP, "Documentation", "placement.rst"), encoding="utf-8") as file:
        text = file.read()
    for policy in POLICIES:
        assert f"``{policy}``" in text, policy


def options_are_in_the_manual_page():
    with open(os.path.join(TOP, "Documentation", "man", "mgpu-place.1"), encoding="utf-8") as file:
        page = file.read().replace("\\-", "-")
    options = set(re.findall(r"--[a-z-]+", output("help")))
    assert len(options) > 20
    described = set(re.findall(r"^\.B[RI]? .*?(--[a-z-]+)", "\n".join(
        line for line, before in zip(page.splitlines()[1:], page.splitlines()) if before == ".TP"),
        re.M))
    assert options == described, options ^ described


def tables(text):
    """Return the rows of a table by policy, as lists of numbers, the last two times left out."""
    rows = [re.sub("%", "", line).split() for line in text.splitlines()
            if line.split()[0] in POLICIES]
    return {row[0]: [float(cell) for cell in row[1:-2]] for row in rows}


def replays():
    rows = tables(output("replay", *trace(), "--demand", "50,100,130", "--seeds", "2"))
    assert list(rows) == POLICIES[:-1]
    for row in rows.values():
        assert row[0] >= row[1] >= row[2] >= 0 and row[0] > 45, rows
    assert rows["fgd"][1] < rows["random"][1], rows
    rows = tables(output("replay", *trace(), "--weights", weights()))
    assert list(rows) == POLICIES
    chosen = json.loads(output("replay", *trace(), "--policy", "fgd", "--policy", "random", "-j"))
    assert [p["policy"] for p in chosen["placement"]] == ["fgd", "random"]
    assert [p["demand_pct"] for p in chosen["placement"][0]["points"]] == [95, 100, 105, 130]
    assert chosen["mode"] == "inflation" and chosen["seeds"] == 1
    assert chosen["placement"][0]["decision_us"] > 0


def replays_repeat():
    def figures(*args):
        found = json.loads(output("replay", *trace(), "-j", *args))
        for row in found["placement"]:
            del row["decision_us"], row["decision_p99_us"]
        return found["placement"]
    assert figures("--seed", "5") == figures("--seed", "5") != figures("--seed", "6")


def replays_by_time():
    rows = tables(output("replay", *trace(), "--by-time"))
    assert list(rows) == POLICIES[:-1]
    found = json.loads(output("replay", *trace(), "--by-time", "-j", "--part", "4"))
    assert found["mode"] == "time"
    assert all(0 < p["peak_allocated_gpu_pct"] <= 100 and p["refused"] > 0
               for p in found["placement"]), found


def replays_with_churn():
    rows = tables(output("replay", *trace(), "--churn", "90"))
    assert list(rows) == POLICIES[:-1]
    found = json.loads(output("replay", *trace(), "--churn", "90", "-j", "--policy", "fgd"))
    assert found["mode"] == "churn"
    (row,) = found["placement"]
    assert 10 <= row["unallocated_gpu_pct"] < 40 and row["placed"] > row["refused"], row
    refused(2, "--by-time and --churn exclude each other", "replay", *trace(), "--by-time",
            "--churn", "90")


def training_repeats():
    first = weights()
    options = ("--generations", "8", "--population", "6", "--replays", "1", "--part", "2")
    text = output("train", *trace(), "--output", path("again"), *options, "--threads", "2")
    assert "of fgd's" in text
    with open(first, encoding="utf-8") as one, open(path("again"), encoding="utf-8") as two:
        assert one.read() == two.read()
    found = json.loads(output("inspect", first, "-j"))
    assert found["version"] == 1 and len(found["weights_milli"]) > 40
    assert len(output("inspect", first).splitlines()) == len(found["weights_milli"]) + 1
    assert not os.path.exists(path("again.tmp"))


STATE = {
    "types": [{"name": "small", "gpu_milli": 125, "gpu_memory_mib": 1024},
              {"name": "medium", "gpu_milli": 250, "gpu_memory_mib": 4096}],
    "nodes": [
        {"name": "a", "model": "A10", "cpu_milli": 32000, "memory_mib": 65536,
         "gpu_memory_mib": 24576, "gpus": [{"free_milli": 250, "memory_free_mib": 4096,
                                           "compute": 1}, {}],
         "types": ["small", "medium"], "capabilities": ["opengl"]},
        {"name": "b", "model": "T4", "cpu_milli": 32000, "memory_mib": 65536, "gpus": [{}, {}],
         "types": ["small"]},
        {"name": "c", "model": "A10", "cpu_milli": 32000, "memory_mib": 65536,
         "cpu_free_milli": 100, "gpus": [{}]}]}


def decides():
    state = write("state.json", json.dumps(STATE))
    text = output("place", "--state", state, "--cpu-milli", "1000", "--gpu-milli", "100",
                  "--gpu-memory-mib", "2048", "--vgpu", "--kind", "compute")
    assert text.startswith("node a (A10), GPU 0\ntype medium: 250 thousandths of a GPU, 4096 MiB\n"
                           "neighbours of the same kind: 1\n1 of 3 nodes fit\n"), text
    assert "2 filtered, offers no vGPU type that is large enough: b c\n" in text, text
    found = json.loads(output("place", "--state", state, "--cpu-milli", "1000", "--num-gpu", "2",
                              "-j"))
    assert found["choice"]["node"] == "b" and found["choice"]["gpus"] == [0, 1], found
    assert found["policy"] == "best-fit"
    assert found["filtered"] == [
        {"node": "a", "reason": "too little of its GPUs is free"},
        {"node": "c", "reason": "too little host CPU is free"}], found
    text = output("place", "--state", state, "--gpu-spec", "T4|none", "--num-gpu", "1")
    assert text.startswith("node b (T4), GPU 0\n") and "2 filtered, GPUs of another model: a c" in text
    text = output("place", "--state", state, "--capability", "opengl", "--num-gpu", "0")
    assert text.startswith("node a (A10)\n"), text
    done = run("place", "--state", state, "--cpu-milli", "33000", "-j")
    assert done.returncode == 1 and json.loads(done.stdout)["choice"] is None
    refused(1, "no node fits", "place", "--state", state, "--cpu-milli", "33000")


def decides_with_a_workload():
    options = trace()
    for policy in ("fgd", "learned"):
        more = ["--weights", weights()] if policy == "learned" else []
        found = json.loads(output("place", "--state", path("nodes.csv"), "--tasks",
                                  path("tasks.csv"), "--gpu-milli", "470", "--cpu-milli", "4000",
                                  "-j", *more))
        assert found["policy"] == policy and found["choice"]["gpu_milli"] == 470, found
    assert options


def wrong_calls_are_refused():
    options = trace()
    state = write("state.json", json.dumps(STATE))
    refused(2, "no command; the commands are")
    refused(2, "replay needs --tasks", "replay", "--nodes", path("nodes.csv"))
    refused(2, "--state is not for replay", "replay", *options, "--state", state)
    refused(2, "replay takes options only, not 'now'", "replay", *options, "now")
    refused(2, "inspect takes one file, not 0", "inspect")
    refused(2, "--json is not for train", "train", *options, "--output", path("x"), "-j")
    refused(2, "--policy 'banana': no such policy", "replay", *options, "--policy", "banana")
    refused(2, "learned needs --weights", "replay", *options, "--policy", "learned")
    refused(2, "fgd needs --tasks", "place", "--state", state, "--policy", "fgd")
    refused(2, "place takes one --policy", "place", "--state", state, "--policy", "random",
            "--policy", "random")
    refused(2, "--seeds '0': it must be a whole number from 1 to 1000", "replay", *options,
            "--seeds", "0")
    refused(2, "--num-gpu '17'", "place", "--state", state, "--num-gpu", "17")
    refused(2, "--kind 'x': it must be compute or memory", "place", "--state", state, "--kind", "x")
    refused(2, "a vGPU is on one GPU", "place", "--state", state, "--vgpu", "--num-gpu", "2")
    for demand in ("", "0", "100,", "100,95", "301", "-5", "5x"):
        refused(2, f"--demand '{demand}': it must be", "replay", *options, "--demand", demand)


def wrong_files_are_refused():
    options = trace()
    state = write("state.json", json.dumps(STATE))
    nodes, tasks = options[1], options[3]
    refused(1, "none.csv: No such file", "replay", "--nodes", path("none.csv"), "--tasks", tasks)
    refused(1, "nodes.csv:1:1: no column 'num_gpu'", "replay", "--nodes", nodes, "--tasks", nodes)
    bad = write("bad.csv", "cpu_milli,memory_mib,num_gpu,gpu_milli\n1,2,1,1001\n")
    refused(1, "bad.csv:2:7: gpu_milli is '1001'; it must be", "replay", "--nodes", nodes,
            "--tasks", bad)
    bad = write("bad.csv", "cpu_milli,memory_mib,num_gpu,gpu_milli\n1,2,1,1000\n")
    refused(1, "no columns creation_time and deletion_time", "replay", "--nodes", nodes,
            "--tasks", bad, "--by-time")
    bad = write("bad.csv", "cpu_milli,memory_mib,num_gpu,gpu_milli\n1,2,0,0\n")
    refused(1, "there is nothing to measure", "replay", "--nodes", nodes, "--tasks", bad)
    refused(1, "there is nothing to learn", "train", "--nodes", nodes, "--tasks", bad,
            "--output", path("x"))
    assert not os.path.exists(path("x"))
    refused(1, "not a file of weights", "inspect", nodes)
    with open(weights(), encoding="utf-8") as file:
        text = file.read()
    bad = write("bad", text.replace("checksum ", "checksum 1", 1)[:-2] + "\n")
    refused(1, "the checksum is wrong", "replay", *options, "--weights", bad)
    bad = write("bad.json", "{")
    refused(1, "bad.json: not JSON at byte", "place", "--state", bad)
    refused(1, "has no such model", "place", "--state", state, "--gpu-spec", "H100")
    refused(1, "no node of", "place", "--state", state, "--capability", "vulkan")
    refused(1, "has no vGPU types", "place", "--state", nodes, "--vgpu")


def main():
    with tmp:
        done = subprocess.run(["make", "-s", "-C", os.path.join(TOP, "ctl"), "place",
                               f"BUILD={BUILD}"], capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"Bail out! mgpu-place cannot be built: {done.stderr}")
            return 1
        return pytap.run([
            (policies_are_listed, "the policies are listed, and described"),
            (options_are_in_the_manual_page, "each option is in the manual page"),
            (replays, "a replay has a row for each policy"),
            (replays_repeat, "a replay is the same for a seed"),
            (replays_by_time, "a replay by time has a row for each policy"),
            (replays_with_churn, "a replay with churn has a row for each policy"),
            (training_repeats, "training gives the same weights on any number of threads"),
            (decides, "a decision has a node, GPUs, a type, and why others were filtered"),
            (decides_with_a_workload, "a decision can have a workload and weights"),
            (wrong_calls_are_refused, "a wrong call is refused with what to do"),
            (wrong_files_are_refused, "a wrong file is refused with what to do"),
        ])


if __name__ == "__main__":
    sys.exit(main())
