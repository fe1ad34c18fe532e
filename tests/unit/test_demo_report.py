#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The demo's evaluation, on made-up logs whose results are known."""
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import types
from importlib.machinery import SourceFileLoader

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(TOP, "tools", "demo"))
sys.dont_write_bytecode = True

import pytap  # noqa: E402 pylint: disable=wrong-import-position
import report  # noqa: E402 pylint: disable=wrong-import-position
from policies import POLICIES, turns  # noqa: E402 pylint: disable=wrong-import-position
from workloads import WORKLOADS  # noqa: E402 pylint: disable=wrong-import-position

A, B = "00000000-0000-4000-8000-00000000000a", "00000000-0000-4000-8000-00000000000b"


def line(time_s, allocator, fds, fps_a, fps_b, state_b="active"):
    return json.dumps({
        "time_s": time_s, "allocator": allocator,
        "capacity": {"cpu_cores": 2.0, "gpu_engines": 1.0}, "fds": fds, "fds_optimal": -1.0,
        "vgpus": [
            {"id": 1, "uuid": A, "fps": fps_a, "reach_fps": 4 * fps_a, "gpu_share": 0.25,
             "cpu_share": 0.125, "cpu_s_per_frame": 0.01,
             "gpu_s_per_frame": 0.005, "frames": 10, "state": "active"},
            {"id": 2, "uuid": B, "fps": fps_b, "gpu_share": 0.5,
             "cpu_share": 0.25, "cpu_s_per_frame": 0.02,
             "gpu_s_per_frame": 0.01, "frames": 10, "state": state_b},
        ]}) + "\n"


# A turn of "none" is 10 < t <= 14, one of "fea" 16 < t <= 20; what lies outside must not
# count, nor what ran under another allocator. Then B is promised 30 frames/s.
LOG = [
    line(9, "none", -100, 1000, 1000),
    line(10, "none", -100, 1000, 1000),
    line(11, "none", -4, 10, 40), line(12, "none", -2, 20, 40),
    line(13, "none", -3, 30, 40), line(14, "none", -3, 40, 40),
    line(15, "none", -100, 1000, 1000), line(16, "fea", -100, 1000, 1000),
    line(16.5, "none", -100, 1000, 1000),
    line(17, "fea", -2, 30, 31), line(18, "fea", None, 30, 31),
    line(19, "fea", -4, 30, 31), line(20, "fea", -2, 30, 31),
    line(21, "fea", -100, 1000, 1000),
    line(22, "fea", -2, 30, 30), line(23, "fea", -2, 30, 29), line(24, "fea", -2, 30, 33),
]
INFO = {
    "cpus": 2,
    "vgpus": [{"uuid": A, "name": "A", "mode": "1920x1080"},
              {"uuid": B, "name": "B", "mode": "1024x768"}],
    "policies": {"none": {"order": "best-effort", "allocator": "none"},
                 "fea": {"order": "weighted", "allocator": "fea"}},
    "turns": [{"policy": "none", "round": 0, "start_s": 10, "end_s": 14},
              {"policy": "fea", "round": 0, "start_s": 16, "end_s": 20}],
    "promise": {"vgpu": B, "name": "B", "floor_fps": 30, "policy": "fea",
                "before": {"start_s": 16, "end_s": 20}, "promised_s": 20,
                "start_s": 21, "end_s": 24},
}


def result_of(log=None, info=None, frames=()):
    return report.summarise(report.read_log(log or LOG), list(frames), info or INFO)


def near(a, b):
    assert a is not None and abs(a - b) < 1e-9, f"{a} is not {b}"


def test_mean_and_deviation():
    none, fea = result_of()["runs"]
    near(none["f_mean"], -3)
    near(none["f_std"], (2 / 3) ** 0.5)
    near(fea["f_mean"], -8 / 3)
    near(fea["f_std"], (4 / 3) ** 0.5)
    near(none["turns"][0]["f_mean"], -3)
    near(none["seconds"], 4)


def test_period_without_f_is_counted_as_such():
    result = result_of()
    none, fea = result["runs"]
    assert none["periods_without_f"] == 0
    assert (fea["periods"], fea["periods_without_f"]) == (4, 1)
    assert "Left out: 1 of 11 s" in report.table(result), report.table(result)


def test_period_with_an_idle_vm_has_no_f():
    log = LOG[:5] + [line(13.5, "none", -1, 20, 0, "idle")] + LOG[5:]
    none = result_of(log)["runs"][0]
    near(none["f_mean"], -3)
    assert (none["periods"], none["periods_without_f"]) == (5, 1)


def test_period_without_a_processor_is_left_out():
    records = report.read_log(LOG)
    # of two processors for a second: a tenth, then all but a tenth
    waits = ["10,0\n", "11,200000000\n", "12,2000000000\n", "13,\n", "14,2000000000\n"]
    report.add_waits(records, waits, 2)
    near(records[2]["waited"], 0.1)
    near(records[3]["waited"], 0.9)
    assert "waited" not in records[4] and "waited" not in records[5]
    result = report.summarise(records, [], INFO)
    none = result["runs"][0]
    assert (none["periods"], none["periods_spoilt"]) == (4, 1)
    near(none["f_mean"], -10 / 3)
    near(none["fps"][0], 80 / 3)
    assert "waited for this machine" in report.table(result)
    # a thread that ended takes its waits along
    report.add_waits(records, ["10,5\n", "11,4\n"], 2)
    near(records[2]["waited"], 0)


def test_rates_and_shares_of_each_vm():
    none = result_of()["runs"][0]
    near(none["fps"][0], 25)
    near(none["fps"][1], 40)
    near(none["fps_std"][1], 0)
    near(none["gpu_share"][0], 0.25)
    near(none["cpu_share"][1], 0.25)


def test_dominant_share_is_the_larger_one():
    log = [json.loads(x) for x in LOG[2:6]]
    for record, cpu in zip(log, (0.125, 0.75, 0.125, None)):
        record["vgpus"][0]["cpu_share"] = cpu
    records = report.read_log([json.dumps(x) for x in log])
    assert [report.dominant_share(r, A) for r in records] == [0.25, 0.75, 0.25, 0.25]
    assert report.dominant_share(records[0], "another") is None
    none = result_of()["runs"][0]
    assert none["dominant_share"] == [0.25, 0.5]
    assert none["share_for_weight"] == [0.5, 0.5]


def test_reach_is_a_share():
    record = report.read_log(LOG[2:3])[0]
    vgpu = record["vgpus"][B]
    assert report.reach(record, B) is None      # nothing bounds it
    vgpu["reach_fps"] = 1.5 * vgpu["fps"]
    near(report.reach(record, B), 1.5 * report.dominant_share(record, B))
    vgpu["reach_fps"] = 100 * vgpu["fps"]
    near(report.reach(record, B), 1)
    vgpu.update(cpu_share=0, gpu_share=0)
    assert report.reach(record, B) is None
    assert report.reach(record, "another") is None
    log = [json.loads(x) for x in LOG]
    for r in log:
        for v in r["vgpus"]:
            v["reach_fps"] = 2 * v["fps"]
    none = result_of([json.dumps(x) for x in log])["runs"][0]
    near(none["reach"][0], 2 * none["dominant_share"][0])


def weighted(a, b):
    return dict(INFO, vgpus=[dict(INFO["vgpus"][0], weight=a),
                             dict(INFO["vgpus"][1], weight=b)])


def test_shares_are_shown_beside_unequal_weights():
    assert report.shares_table(result_of()) == ""
    assert report.shares_table(result_of(info=weighted(7, 7))) == ""
    result = result_of(info=weighted(300, 100))
    assert [v["weight"] for v in result["workloads"]] == [300, 100]
    text = report.shares_table(result)
    assert re.search(r"none +A +300 +0\.750 +0\.250 +1\.000\n +B +100 +0\.250 +0\.500", text), text


def test_distance_from_the_best():
    near(report.below_best({"f_mean": -3.3, "feasible_best": -3}), 0.1)
    assert report.below_best({"f_mean": None, "feasible_best": -3}) is None
    assert report.below_best({"f_mean": -3, "feasible_best": None}) is None


def test_cost_is_that_of_a_frame_not_of_a_period():
    log = [json.loads(x) for x in LOG[2:4]]
    # a record's frames are those since the vGPU was created
    for record, fps, cost in zip(log, (30, 10), (0.01, 0.05)):
        record["vgpus"][0].update(fps=fps, frames=1000, cpu_s_per_frame=cost)
    records = report.read_log([json.dumps(x) for x in log])
    near(report.per_frame(records, A, "cpu_s_per_frame"), 0.02)


def test_frame_times_are_those_of_the_turn():
    trace = ["# mgpu-trace cpus=2 engines=1 begin_s=5.0",
             "time_s,vgpu,frame,frames,cpu_s,engine_s,held_s",
             # at 9.9, 10.1, 10.2, 12.2 (after a lost one), 12.25 and 14.5
             f"4.9,{A},1,1,0,0,0", f"5.1,{A},2,1,0,0,0", f"5.15,{B},1,1,0,0,0",
             f"5.2,{A},3,1,0,0,0", f"7.2,{A},5,2,0,0,0", f"7.25,{A},6,1,0,0,0",
             f"9.5,{A},7,1,0,0,0", "# end seconds=10"]
    what, columns, frames = report.read_trace(trace)
    assert what == "# mgpu-trace cpus=2 engines=1" and columns.startswith("time_s,")
    records = report.read_log(LOG)
    times = report.frame_times(frames, A, records[2:6])
    assert [round(t, 6) for t in times] == [0.2, 0.1, 0.05], times
    none = report.summarise(records, frames, INFO)["runs"][0]
    near(none["p99_ms"][0], 200)
    assert none["p99_ms"][1] is None
    near(report.quantile(list(range(1, 201)), 0.99), 198)
    with tempfile.TemporaryDirectory() as d:
        report.split_trace(d, (what, columns, frames), INFO)
        with open(os.path.join(d, "trace-none.csv"), encoding="ascii") as f:
            lines = f.read().splitlines()
    assert lines[2] == f"0.100000000,{A},2,1,0,0,0", lines
    assert lines[-1] == "# end seconds=4.000" and len(lines) == 3 + 5, lines


def test_keys_of_the_result():
    result = result_of()
    assert {"cpus", "seed", "runs", "promise"} <= set(result)
    for run in result["runs"]:
        assert {"policy", "order", "allocator", "seconds", "f_mean", "f_std",
                "feasible_best", "fps", "p99_ms", "turns", "gain"} <= set(run)
        assert len(run["fps"]) == 2
    json.dumps(result, allow_nan=False)


def test_promise_counts_whole_frames():
    p = result_of()["promise"]
    assert (p["kept"], p["periods"]) == (2, 3)
    near(p["floor_kept"], 2 / 3)
    near(p["before_fps"], 31)
    assert p["policy"] == "fea"
    assert "B was then promised 30 frames/s" in report.words(result_of())
    record = dict(report.read_log(LOG)[-1], seconds=1.01)
    for fps, good in ((30 / 1.01, True), (29 / 1.01, False)):
        record["vgpus"] = {B: {"fps": fps}}
        assert report.kept(record, B, 30) == good
    assert result_of(info=dict(INFO, promise=None))["promise"] is None


def run_of(policy, *f, fps=20):
    return {"policy": policy, "f_mean": sum(f) / len(f), "f_std": 0.1,
            "feasible_best": -3, "fps": [fps, 25], "fps_std": [1, 1],
            "p99_ms": [100, 50], "gpu_share": [0.5, 0.2], "cpu_share": [0.1, 0.4],
            "cpu_s_per_frame": [0.01, 0.03], "gpu_s_per_frame": [0.02, 0.01],
            "periods": 40, "periods_without_f": 0, "periods_spoilt": 0,
            "turns": [{"round": i, "f_mean": x, "fps": [fps, 25],
                       "cpu_s_per_frame": [0.01, 0.03]} for i, x in enumerate(f)]}


def test_gain_is_between_turns_of_a_round():
    # the machine became twice as bad from round to round
    result = {"workloads": INFO["vgpus"],
              "runs": [run_of("none", -3.436, -6.872), run_of("vgasa", -5.53, -11.06),
                       run_of("weighted", -3.3, -6.6), run_of("fea", -3.042, -6.084)]}
    report.add_gains(result)
    fea = result["runs"][3]
    assert abs(fea["gain"]["none"]["mean"] - 0.115) < 5e-4
    assert abs(fea["gain"]["vgasa"]["mean"] - 0.45) < 5e-4
    assert fea["gain"]["none"]["error"] < 1e-9
    near(fea["frames_over_weighted"]["mean"], 0)
    text = report.gains_table(result)
    assert "+11.5 %" in text and "45.0 %" in text and "chance" not in text
    # a round without a figure counts for nothing
    fea["turns"][0]["f_mean"] = None
    assert len(report.gains(fea, result["runs"][0], report.f_of)) == 1


def test_gain_within_its_error_is_no_gain():
    result = {"runs": [run_of("none", -3.1, -3.1), run_of("fea", -3.0, -3.18)]}
    report.add_gains(result)
    near(result["runs"][1]["gain"]["none"]["error"],
         2 * (0.18 / 3.1 / 2 ** 0.5) / 2 ** 0.5)
    assert "from chance" in report.gains_table(result)


def test_words_say_what_a_user_gained():
    runs = [run_of("none", -3.5, -3.5), run_of("weighted", -3.1, -3.1),
            run_of("exact", -3.05, -3.05, fps=10)]
    runs[0].update(fps=[9, 9], p99_ms=[300, 210])
    runs[2].update(fps=[6, 25], p99_ms=[300, 41])
    result = {"workloads": INFO["vgpus"], "runs": runs, "promise": None}
    report.add_gains(result)
    text = report.words(result)
    assert "B showed 9.0 frames/s as on any shared GPU, and 25.0 with mgpu" in text, text
    assert "B's p99 frame time fell from 210 to 41 ms." in text, text
    assert "12.9 % higher, and 1.7 % below the best" in text, text


def test_replay_stands_beside_what_was_measured():
    result = {"workloads": INFO["vgpus"], "runs": [run_of("none", -3.1)]}
    sim = {"runs": [
        {"policy": p, "mean": -3.2, "std": 0.1,
         "vms": [{"name": A, "fps": 21}, {"name": B, "fps": 24}]}
        for p in ("none", "clairvoyant")]}
    text = report.replay_table(result, sim)
    assert "A 20.0 -> 21.0   B 25.0 -> 24.0" in text, text
    assert "A - -> 21.0" in text and "-3.100" in text and "-3.200" in text
    assert report.replay_table(result, None) == ""


def test_host_time_is_what_neither_vms_nor_engines_have():
    records = report.read_log(LOG)
    near(report.host_cpus(records[2:6], 4), 4 - 2 - 0.75)
    near(report.host_cpus(records[2:6], 2), 0)
    near(report.host_cpus(records[2:6], 4, False), 4 - 2)


def replay_with(info, directory):
    """Return the simulator's arguments; a program that prints them stands for it."""
    trace = os.path.join(directory, "trace-none.csv")
    with open(trace, "w", encoding="ascii") as f:
        f.write("a trace\n")
    sim = os.path.join(directory, "sim")
    with open(sim, "w", encoding="ascii") as f:
        f.write("#!/bin/sh\n"
                "for a; do last=$a; done\n"
                "echo \"{\\\"runs\\\": [{\\\"policy\\\": \\\"none\\\", "
                "\\\"called\\\": \\\"$*\\\"}]}\" >\"$last\"\n")
    os.chmod(sim, 0o755)
    real, report.SIM = report.SIM, sim
    try:
        return report.replay(directory, report.read_log(LOG), info)["runs"]
    finally:
        report.SIM = real


def test_replay_has_the_engines_where_they_are():
    with tempfile.TemporaryDirectory() as d:
        info = dict(INFO, cpus=4)
        first, second = replay_with(info, d)
        assert (first["policy"], second["policy"]) == ("none", "weighted")
        assert "--order best-effort --allocator none " in first["called"], first
        assert "--order weighted " in second["called"], second
        for run in first, second:
            assert "--engines-on-cpus" in run["called"], run
            assert "--host-cpus 1.25" in run["called"], run
            assert f"--weight {A}=100 --weight {B}=100" in run["called"], run
        info["device"] = {"backend": "virtio", "engines": 1, "engine_on_cpu": False}
        called = replay_with(info, d)[0]["called"]
        assert "on-cpus" not in called and "--host-cpus 2.0" in called, called
        called = replay_with(weighted(300, 50), d)[0]["called"]
        assert f"--weight {A}=300 --weight {B}=50" in called, called


def test_result_says_which_gpu_it_was():
    device = {"backend": "virtio", "engines": 1, "engine_on_cpu": False}
    result = result_of(info=dict(INFO, gpu="virtio", device=device))
    assert (result["gpu"], result["device"]) == ("virtio", device)


def test_cost_of_the_emulation_is_reported():
    turns = [dict(t, emulation_cpu_s=0.2, emulation_late_s=0.04) for t in INFO["turns"]]
    result = result_of(info=dict(INFO, turns=turns, settings=["engine=modelled"]))
    near(result["runs"][0]["emulation_cpu"], 0.05)
    assert "5.0 % of\none of 2 CPUs" in report.costs(result), report.costs(result)
    assert "modelled" not in report.costs(result_of())


def test_turns_are_balanced():
    names = list(POLICIES)
    for seed in range(20):
        order = turns(names, 4, seed)
        assert len(order) == 20 and sorted(set(order)) == sorted(order)
        for pair in (0, 2):
            for p in names:
                at = [i for i, t in enumerate(order) if t[1] == p and t[0] in (pair, pair + 1)]
                assert sum(at) == 2 * pair * len(names) + 2 * len(names) - 1, (order, p)
    assert turns(names, 4, 1) == turns(names, 4, 1) != turns(names, 4, 2)


def test_a_vm_or_mgpud_that_stands_still_is_noticed():
    with tempfile.TemporaryDirectory() as d:
        os.environ["OUT"] = d
        loader = SourceFileLoader("in_host", os.path.join(TOP, "tools/demo/in-host"))
        demo = importlib.util.module_from_spec(
            importlib.util.spec_from_loader("in_host", loader))
        loader.exec_module(demo)
        now = [1000.0]
        demo.time = types.SimpleNamespace(monotonic=lambda: now[0])
        ctl = demo.Controller()
        ctl.check = lambda: None
        path = os.path.join(d, "log")
        with open(path, "w", encoding="utf-8") as log, open(path, encoding="utf-8") as ctl.file:
            def second(**frames):
                now[0] += 1
                log.write(json.dumps({"time_s": now[0], "vgpus": [
                    {"uuid": u, "frames": n} for u, n in frames.items()]}) + "\n")
                log.flush()
                ctl.poll()
                ctl.check_progress()

            for i in range(100):
                second(a=i, b=i)
            for i in range(100, 100 + demo.HUNG_LIMIT):
                second(a=i, b=99)
            try:
                second(a=999, b=99)
            except demo.DemoError as e:
                assert "VM B has shown nothing" in str(e), e
            else:
                raise AssertionError("a VM stood still")
            second(a=1000, b=100)
            now[0] += demo.HUNG_LIMIT + 1
            try:
                ctl.check_progress()
            except demo.DemoError as e:
                assert "no record" in str(e), e
            else:
                raise AssertionError("mgpud stood still")


def test_clients_are_named_where_they_differ():
    vgpus = [dict(v, client=c) for v, c in zip(INFO["vgpus"], ("kmscube", "glmark2"))]
    named = dict(INFO, vgpus=vgpus)
    for info, found in ((INFO, False), (named, True)):
        result = result_of(info=info)
        assert ("A: kmscube, B: glmark2" in report.table(result)) == found
        script = report.gnuplot_script(info, result, "data", "png")
        assert ("title 'A  kmscube  1920x1080'" in script) == found, script
        assert ("title 'A  1920x1080'" in script) != found, script


def test_workloads_are_complete():
    assert set(WORKLOADS) == {"soft", "virtio", "host"}
    for work in WORKLOADS.values():
        games = work["games"]
        assert [g["name"] for g in games] == ["A", "B", "C"]
        assert len({g["uuid"] for g in games}) == 3
        for g in games:
            # tools/guest/boot takes none
            assert '"' not in g["before"] + g["run"]
            assert re.fullmatch(r"[0-9]+x[0-9]+", g["mode"])
            assert g["set_mode"] or g["mode"] in g["run"]
            re.compile(g["ready"])


def test_guests_that_draw_by_themselves_are_noticed():
    def complains(text):
        return re.search(rf"^({WORKLOADS['virtio']['complaint']})", text, re.M)

    for good in ('  renderer: "virgl (LLVMPIPE (LLVM 15.0.6, 256 bits))"',
                 "    GL_RENDERER:    virgl (llvmpipe (LLVM 19.1, 256 bits))",
                 "gl name=C t=1.0 frames=20 fps=20.00", "Modifiers failed!"):
        assert not complains("guest: run x\n" + good + "\n"), good
    for bad in ('  renderer: "llvmpipe (LLVM 15.0.6, 256 bits)"',
                "    GL_RENDERER:    softpipe", "mgpu-gl: no card",
                "failed to initialize EGL", "Error: eglInitialize() failed"):
        assert complains("guest: run x\n" + bad + "\n"), bad


def test_cut_off_last_line_is_left_out():
    records = report.read_log(LOG + [LOG[0][:40]])
    assert len(records) == len(LOG)


def test_damaged_line_is_refused():
    try:
        report.read_log([LOG[0], "{}\n", LOG[1]])
    except report.ReportError as e:
        assert "line 2" in str(e)
    else:
        raise AssertionError("a record without its keys was accepted")


def test_turn_without_periods_is_refused():
    info = dict(INFO, policies={"vgasa": {"order": "weighted", "allocator": "vgasa"}},
                turns=[{"policy": "vgasa", "round": 0, "start_s": 0, "end_s": 99}])
    try:
        result_of(info=info)
    except report.ReportError as e:
        assert "vgasa" in str(e)
    else:
        raise AssertionError("an empty turn gave a result")


def test_program_writes_result_and_plot():
    with tempfile.TemporaryDirectory() as d:
        with open(os.path.join(d, "mgpud.log"), "w", encoding="utf-8") as f:
            f.writelines(LOG)
        with open(os.path.join(d, "turns.json"), "w", encoding="utf-8") as f:
            json.dump(INFO, f)
        done = subprocess.run(
            [sys.executable, os.path.join(TOP, "tools/demo/report.py"), d],
            capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "-3.000" in done.stdout and "-2.667" in done.stdout
        with open(os.path.join(d, "result.json"), encoding="utf-8") as f:
            near(json.load(f)["runs"][0]["f_mean"], -3)
        with open(os.path.join(d, "plot.png"), "rb") as f:
            assert f.read(8) == b"\x89PNG\r\n\x1a\n"


def test_demo_without_a_second_that_counts_has_failed():
    with tempfile.TemporaryDirectory() as d:
        with open(os.path.join(d, "mgpud.log"), "w", encoding="utf-8") as f:
            f.writelines(LOG)
        with open(os.path.join(d, "turns.json"), "w", encoding="utf-8") as f:
            json.dump(INFO, f)
        with open(os.path.join(d, "waits.csv"), "w", encoding="ascii") as f:
            f.writelines(f"{json.loads(x)['time_s']},{i * 10**10}\n" for i, x in enumerate(LOG))
        done = subprocess.run(
            [sys.executable, os.path.join(TOP, "tools/demo/report.py"), d],
            capture_output=True, text=True, check=False)
        assert done.returncode == 1 and "no second counts" in done.stderr, done.stderr
        assert "waited for this machine" in done.stdout, done.stdout


def main():
    return pytap.run([(f, n[5:].replace("_", " "))
                      for n, f in globals().items() if n.startswith("test_")])


if __name__ == "__main__":
    sys.exit(main())
