#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Test the control bench's report on made-up demos, and what its programs refuse."""
import contextlib
import fcntl
import io
import json
import os
import subprocess
import sys
import tempfile
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BENCH = os.path.join(TOP, "tools", "bench", "control")
sys.dont_write_bytecode = True

import pytap  # noqa: E402 pylint: disable=wrong-import-position


def program(path):
    loader = SourceFileLoader("control_report", path)
    module = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


control = program(os.path.join(BENCH, "report"))
TEMPORARY = tempfile.TemporaryDirectory()
CONDITIONS = {"part": "conditions", "add": False, "quick": False}


def near(a, b):
    assert a is not None and abs(a - b) < 1e-9, f"{a} is not {b}"


def demo_run(policy, f, fps_c, gain=()):
    run = {"policy": policy, "f_mean": f, "f_std": 0.02, "feasible_best": -3.0,
           "fps": [4, 20, fps_c], "p99_ms": [700, 60, 100], "share_for_weight": [0.5, 0.25, 0.25],
           "dominant_share": [0.45, 0.3, 0.2], "reach": [1.0, 0.9, 0.21],
           "gain": {base: {"mean": g} for base, g in gain},
           "periods": 28, "periods_spoilt": 1, "periods_without_f": 0, "turns": [{}] * 4}
    if policy != "weighted":
        run["frames_over_weighted"] = {"mean": -0.01}
    return run


def demo_result(seed, f_exact=-3.03, kept=0.9, weights=(100, 100, 100)):
    """A demo's result.json, as far as the bench needs it."""
    return {"seed": seed, "cpus": 2, "kernel": "6.1",
            "workloads": [{"name": n, "weight": w} for n, w in zip("ABC", weights)],
            "promise": {"policy": "exact", "floor_kept": kept},
            "runs": [demo_run("none", -3.6, 9), demo_run("weighted", -3.0, 18,
                                                         [("none", 0.16)]),
                     demo_run("exact", f_exact, 17, [("none", 0.15 + seed / 1000),
                                                     ("weighted", -0.01)])]}


def measured(*demos, add=False, socket=None):
    """A directory as tools/bench/control/run leaves it: @demos are of what runs or weights
    measured, and None in place of a result is a demo that failed."""
    directory = tempfile.mkdtemp(dir=TEMPORARY.name)
    lines = [dict(CONDITIONS, add=add)]
    if socket is not None:
        lines.append({"part": "socket", "status": 0, "seconds": 200, "load_before": 0.5,
                      "log": "socket.log"})
        with open(os.path.join(directory, "socket.jsonl"), "w", encoding="utf-8") as f:
            f.writelines(json.dumps(x) + "\n" for x in socket)
    for i, (part, key, result) in enumerate(demos):
        lines.append({"part": part, "status": 0 if result else 1, "seconds": 270,
                      "load_before": 0.5, "log": f"demo-{i}/output.log", "dir": f"demo-{i}",
                      "seed" if part == "runs" else "weights": key})
        os.mkdir(os.path.join(directory, f"demo-{i}"))
        if result:
            with open(os.path.join(directory, f"demo-{i}", "result.json"), "w",
                      encoding="utf-8") as f:
                json.dump(result, f)
    with open(os.path.join(directory, "measured.jsonl"), "w", encoding="utf-8") as f:
        f.writelines(json.dumps(x) + "\n" for x in lines)
    return control.collect(directory)


def seeds(*numbers, **more):
    return measured(*(("runs", n, demo_result(n)) for n in numbers), **more)


SOCKET = [{"part": "conditions", "kernel": "6.1"},
          {"part": "socket", "clients": 64, "added_part": 0.02, "added_part_max": 0.03,
           "pairs": 10},
          {"part": "instructions", "work": 5}]


def test_a_row_for_each_seed_and_policy():
    out = control.merge({}, seeds(12, 11))
    assert [(r["seed"], r["policy"]) for r in out["runs"]] == [
        (s, p) for s in (11, 12) for p in ("none", "weighted", "exact")]
    exact = out["runs"][2]
    assert (exact["f_mean"], exact["f_std"], exact["feasible_best"]) == (-3.03, 0.02, -3)
    assert exact["fps"] == [4, 20, 17] and exact["p99_ms"] == [700, 60, 100]
    assert [r["floor_kept"] for r in out["runs"][:3]] == [None, None, 0.9]
    near(exact["below_best"], 0.01)
    near(exact["gain_over_none"], 0.161)
    assert exact["rounds"] == 4 and exact["periods_spoilt"] == 1
    assert "failed" not in out and out["took"]["runs"]["seconds"] == 540
    json.dumps(out, allow_nan=False)


def test_summary_is_of_medians_over_seeds():
    out = control.merge({}, measured(
        *(("runs", s, demo_result(s, f, kept))
          for s, f, kept in ((11, -3.03, 0.9), (12, -3.3, None), (13, -3.06, 1.0)))))
    exact = out["summary"]["exact"]
    assert exact["gain_over_none"]["of"] == 3
    near(exact["gain_over_none"]["median"], 0.162)
    near(exact["below_best"]["median"], 0.02)
    near(exact["below_best"]["most"], 0.1)
    # a promise that was not made counts for nothing
    assert exact["floor_kept"] == {"median": 0.95, "least": 0.9, "most": 1.0, "of": 2}
    assert out["summary"]["none"]["floor_kept"] is None
    assert out["summary"]["weighted"]["frames_over_weighted"] is None
    assert out["summary"]["none"]["fps"][2]["median"] == 9
    assert control.spread([None]) is None


def test_weights_have_shares_beside_what_could_be_reached():
    w = [400, 100, 100]
    out = control.merge({}, measured(("weights", w, demo_result(11, weights=w))))
    row = out["weights"][-1]
    assert (row["weights"], row["policy"], row["seed"]) == (w, "exact", 11)
    assert row["dominant_share"] == [0.45, 0.3, 0.2] and row["reach"] == [1.0, 0.9, 0.21]
    assert row["share_for_weight"] == [0.5, 0.25, 0.25]
    assert (row["f_mean"], row["feasible_best"]) == (-3.03, -3.0)
    assert "summary" not in out


def test_socket_is_one_object():
    out = control.merge({}, measured(socket=SOCKET))
    assert out["socket"]["added_part"] == 0.02
    assert out["socket"]["instructions"] == {"work": 5}
    assert out["socket"]["conditions"] == {"kernel": "6.1"}
    # a program that ended well and left nothing has failed
    assert control.merge({}, measured(socket=[]))["failed"][0]["why"] == "no result"


def test_other_parts_are_kept():
    old = control.merge({}, seeds(11, socket=SOCKET))
    w = [1, 2, 3]
    out = control.merge(old, measured(("weights", w, demo_result(11, weights=w))))
    assert out["runs"] == old["runs"] and out["socket"] == old["socket"]
    assert out["summary"] == old["summary"] and len(out["weights"]) == 3
    # a part that is measured again leaves nothing old
    out = control.merge(out, seeds(12))
    assert {r["seed"] for r in out["runs"]} == {12} and len(out["weights"]) == 3
    out = control.merge(out, measured(("runs", 12, None)))
    assert "runs" not in out and "summary" not in out and "weights" in out


def test_seeds_are_added():
    old = control.merge({}, seeds(11, 12))
    out = control.merge(old, measured(("runs", 12, demo_result(12, -3.5)),
                                      ("runs", 13, demo_result(13)), add=True))
    assert [r["seed"] for r in out["runs"]] == 3 * [11] + 3 * [12] + 3 * [13]
    assert out["runs"][5]["f_mean"] == -3.5
    assert out["summary"]["exact"]["f_mean"]["of"] == 3
    # a seed that failed this time leaves nothing old
    out = control.merge(out, measured(("runs", 12, None), add=True))
    assert {r["seed"] for r in out["runs"]} == {11, 13}


def test_failures_are_named_with_their_logs():
    new = measured(("runs", 11, demo_result(11)), ("runs", 12, None),
                   ("weights", [1, 2, 3], None))
    out = control.merge({}, new)
    assert {r["seed"] for r in out["runs"]} == {11}
    assert control.failed(out) and [f["part"] for f in out["failed"]] == ["runs", "weights"]
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        control.print_all(out)
    assert "FAILED  runs seed 12: status 1; see demo-1/output.log" in said.getvalue()
    assert "FAILED  weights 1-2-3: status 1; see demo-2/output.log" in said.getvalue()
    # until the same is measured again
    out = control.merge(out, seeds(12, add=True))
    assert [f["part"] for f in out["failed"]] == ["weights"]
    assert {r["seed"] for r in out["runs"]} == {11, 12}


def test_a_policy_without_a_second_that_counts_has_failed():
    result = demo_result(11)
    result["runs"][2].update(f_mean=None, f_std=None, feasible_best=None, fps=3 * [None],
                             dominant_share=3 * [None], reach=3 * [None])
    out = control.merge({}, measured(("runs", 11, result), ("weights", [1, 1, 1], result)))
    assert [f["why"] for f in out["failed"]] == 2 * ["no second of exact counts"]
    # the others count
    assert out["runs"][1]["f_mean"] == -3 and out["summary"]["exact"]["f_mean"] is None
    with contextlib.redirect_stdout(io.StringIO()):
        control.print_all(out)


def test_tables_have_medians_and_ranges():
    w = [400, 100, 100]
    out = control.merge(control.merge({}, seeds(11, 12, 13, socket=SOCKET)),
                        measured(("weights", w, demo_result(11, weights=w))))
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        control.print_all(out)
    text = said.getvalue()
    assert "seeds 11 12 13" in text and "+16.2 (+16.1..+16.3)" in text, text
    assert "400-100-100" in text and "0.500 0.250 0.250" in text and "0.210" in text, text
    assert "64 hostile clients took 2.00 %" in text, text


def refuses(program_path, *options, **variables):
    """The error of a program that refuses these options and variables."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("BENCH_", "DEMO_"))}
    done = subprocess.run([program_path, *options], env={**env, **variables}, capture_output=True,
                          text=True, check=False)
    assert done.returncode == 1 and not done.stdout, done
    return done.stderr


def test_variables_are_checked_before_anything_runs():
    run = os.path.join(BENCH, "run")
    for what, said in (({"BENCH_PARTS": "runs socks"}, "there is no part 'socks'"),
                       ({"BENCH_PARTS": " "}, "BENCH_PARTS is blank"),
                       ({"BENCH_SEEDS": "11 0"}, "BENCH_SEEDS=0: must be a whole number"),
                       ({"BENCH_SEEDS": "1000001"}, "from 1 to 1000000"),
                       ({"BENCH_SEEDS": "3 4 3"}, "duplicate seed or weights '3'"),
                       ({"BENCH_WEIGHTS": "1 2 3, 1 2"}, "BENCH_WEIGHTS='1 2': must be three"),
                       ({"BENCH_WEIGHTS": "1 2 3,1  2 3"}, "duplicate seed or weights '1 2 3'"),
                       ({"BENCH_WEIGHTS": "1 2 10001"}, "'10001' must be a whole number")):
        text = refuses(run, **what)
        assert text.startswith("bench: ") and said in text, text
    demo = os.path.join(TOP, "tools", "demo", "run")
    for value, said in (("1 2", "must be three weights, of VMs A, B and C"),
                        ("1 2 3 4", "must be three weights"), ("0 2 3", "'0' must be a whole"),
                        ("1 2 x", "'x' must be a whole number from 1 to 10000")):
        text = refuses(demo, DEMO_WEIGHTS=value)
        assert text.startswith("demo: DEMO_WEIGHTS=") and said in text, text


def test_a_second_bench_in_a_build_directory_is_refused():
    with tempfile.TemporaryDirectory() as build:
        os.mkdir(os.path.join(build, "bench"))
        with open(os.path.join(build, "bench", ".lock"), "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            trace = os.path.join(build, "trace.csv")
            for command in (["control/run"], ["sched/run"], ["vs-qemu/run"], ["alloc/run"],
                            ["place/run", "--nodes", trace, "--tasks", trace, "--train", trace],
                            ["learn/run"], ["operate/scrape"]):
                text = refuses(os.path.join(TOP, "tools", "bench", command[0]), *command[1:],
                               BUILD=build)
                assert text.startswith("bench: another bench runs with " + build), text
            assert os.listdir(build) == ["bench"] and \
                os.listdir(os.path.join(build, "bench")) == [".lock"], "a result was written"
        text = refuses(os.path.join(BENCH, "run"), BUILD=build)
        assert "is missing; run: make bench-control" in text, text


if __name__ == "__main__":
    sys.exit(pytap.run([(f, n[5:].replace("_", " "))
                        for n, f in list(globals().items()) if n.startswith("test_")]))
