#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The demo's evaluation, on made-up logs whose results are known."""
import json
import os
import re
import subprocess
import sys
import tempfile

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(TOP, "tools", "demo"))
sys.dont_write_bytecode = True

import pytap  # noqa: E402 pylint: disable=wrong-import-position
import report  # noqa: E402 pylint: disable=wrong-import-position
from workloads import WORKLOADS  # noqa: E402 pylint: disable=wrong-import-position

A, B = "00000000-0000-4000-8000-00000000000a", "00000000-0000-4000-8000-00000000000b"


def line(time_s, allocator, fds, fps_a, fps_b, state_b="active"):
    return json.dumps({
        "time_s": time_s, "allocator": allocator,
        "capacity": {"cpu": 2.0, "gpu": 1.0}, "fds": fds, "fds_optimal": -1.0,
        "vgpus": [
            {"id": 1, "uuid": A, "fps": fps_a, "gpu_share": 0.25,
             "cpu_share": 0.125, "cpu_s_per_frame": 0.01,
             "gpu_s_per_frame": 0.005, "frames": 10, "state": "active"},
            {"id": 2, "uuid": B, "fps": fps_b, "gpu_share": 0.5,
             "cpu_share": 0.25, "cpu_s_per_frame": 0.02,
             "gpu_s_per_frame": 0.01, "frames": 10, "state": state_b},
        ]}) + "\n"


# Phase "none" is 10 < t <= 14, "fea" 16 < t <= 20; what lies outside must not
# count, nor what ran under another allocator.
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
]
INFO = {
    "cpus": 2, "settle_s": 2,
    "vgpus": [{"uuid": A, "name": "A", "mode": "1920x1080"},
              {"uuid": B, "name": "B", "mode": "1024x768"}],
    "phases": [{"allocator": "none", "start_s": 10, "end_s": 14},
               {"allocator": "fea", "start_s": 16, "end_s": 20}],
}


def near(a, b):
    assert a is not None and abs(a - b) < 1e-9, f"{a} is not {b}"


def test_mean_and_deviation():
    none, fea = report.summarise(report.read_log(LOG), INFO)["runs"]
    near(none["fds_mean"], -3)
    near(none["fds_std"], (2 / 3) ** 0.5)
    near(fea["fds_mean"], -8 / 3)
    near(fea["fds_std"], (4 / 3) ** 0.5)
    near(none["seconds"], 4)


def test_period_without_f_is_counted_as_such():
    none, fea = report.summarise(report.read_log(LOG), INFO)["runs"]
    assert none["periods_without_fds"] == 0
    assert (fea["periods"], fea["periods_without_fds"]) == (4, 1)
    assert "fea: in 1 of 4 periods" in report.table(
        report.summarise(report.read_log(LOG), INFO))


def test_period_with_an_idle_vm_has_no_f():
    log = LOG[:5] + [line(13.5, "none", -1, 20, 0, "idle")] + LOG[5:]
    none = report.summarise(report.read_log(log), INFO)["runs"][0]
    near(none["fds_mean"], -3)
    assert (none["periods"], none["periods_without_fds"]) == (5, 1)


def test_rates_and_shares_of_each_vm():
    none = report.summarise(report.read_log(LOG), INFO)["runs"][0]
    a, b = none["vgpus"]
    assert (a["uuid"], b["uuid"]) == (A, B)
    near(a["fps"], 25)
    near(b["fps"], 40)
    near(b["fps_std"], 0)
    near(a["gpu_share"], 0.25)
    near(b["cpu_share"], 0.25)


def test_cost_is_that_of_a_frame_not_of_a_period():
    log = [json.loads(x) for x in LOG[2:4]]
    # a record's frames are those since the vGPU was created
    for record, fps, cost in zip(log, (30, 10), (0.01, 0.05)):
        record["vgpus"][0].update(fps=fps, frames=1000, cpu_s_per_frame=cost)
    records = report.read_log([json.dumps(x) for x in log])
    near(report.per_frame(records, A, "cpu_s_per_frame"), 0.02)


def test_keys_of_the_result():
    result = report.summarise(report.read_log(LOG), INFO)
    assert {"cpus", "runs"} <= set(result)
    for run in result["runs"]:
        assert {"allocator", "seconds", "fds_mean", "fds_std",
                "vgpus"} <= set(run)
        for v in run["vgpus"]:
            assert {"uuid", "fps", "gpu_share", "cpu_share"} <= set(v)
    json.dumps(result, allow_nan=False)


def run_of(allocator, mean, **more):
    vgpus = [{"uuid": A, "name": "A", "fps": more.get("fps", 20), "fps_std": 1,
              "gpu_share": 0.5, "cpu_share": 0.1, "cpu_s_per_frame": 0.01,
              "gpu_s_per_frame": 0.02},
             {"uuid": B, "name": "B", "fps": 25, "fps_std": 1,
              "gpu_share": 0.2, "cpu_share": 0.4, "cpu_s_per_frame": 0.03,
              "gpu_s_per_frame": 0.01}]
    return {"allocator": allocator, "fds_mean": mean, "fds_std": more.get("std", 0.1),
            "periods": 41, "periods_without_fds": 1,
            "fds_optimal_mean": more.get("best", -3), "vgpus": vgpus}


def test_gain_is_that_of_the_published_figures():
    result = {"runs": [run_of("none", -3.436), run_of("vgasa", -5.53),
                       run_of("fea", -3.042), run_of("exact", None)]}
    report.add_gains(result)
    fea, exact = result["runs"][2:]
    assert abs(fea["gain_over_none"] - 0.115) < 5e-4
    assert abs(fea["gain_over_vgasa"] - 0.45) < 5e-4
    assert exact["gain_over_none"] is None
    text = report.gains(result)
    assert "+11.5 %" in text and "45.0 %" in text and "exact" not in text
    # 2 sqrt(0.1^2 / 40 * 2) of 3.436
    near(fea["gain_error_none"], 2 * (2 * 0.01 / 40) ** 0.5 / 3.436)
    assert "chance" not in text


def test_gain_within_its_error_is_no_gain():
    result = {"runs": [run_of("none", -3.1), run_of("fea", -3.08, std=0.3)]}
    report.add_gains(result)
    assert "from chance" in report.gains(result)


def test_reasons_come_from_the_figures():
    result = {"runs": [run_of("none", -3.1), run_of("vgasa", -3.1),
                       run_of("fea", -3.05)]}
    text = report.reasons(result)
    assert "3.2 % is the most" in text, text
    assert "below the published gain" in text
    assert "next to nothing" in text
    assert "3.00 and 0.50 times A's" in text
    far = {"runs": [run_of("none", -4, fps=60), run_of("vgasa", -4)]}
    text = report.reasons(far)
    assert "25.0 % is the most" in text, text
    assert "below the published" not in text and "next to nothing" not in text


def test_replay_stands_beside_what_was_measured():
    result = {"runs": [run_of("none", -3.1)]}
    sim = {"simulated_s": 100, "cpu_s": 0.01, "runs": [
        {"policy": p, "mean": -3.2, "std": 0.1,
         "vms": [{"name": A, "fps": 21}, {"name": B, "fps": 24}]}
        for p in ("none", "clairvoyant")]}
    text = report.replay_table(result, sim, INFO)
    assert "A 20.0 -> 21.0   B 25.0 -> 24.0" in text, text
    assert "A - -> 21.0" in text and "-3.100" in text and "-3.200" in text
    assert report.replay_table(result, None, INFO) == ""


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
                "echo \"{\\\"called\\\": \\\"$*\\\"}\" >\"$last\"\n")
    os.chmod(sim, 0o755)
    real, report.SIM = report.SIM, sim
    try:
        return report.replay(directory, report.read_log(LOG), info)["called"]
    finally:
        report.SIM = real


def test_replay_has_the_engines_where_they_are():
    with tempfile.TemporaryDirectory() as d:
        info = dict(INFO, cpus=4)
        called = replay_with(info, d)
        assert "--engines-on-cpus" in called and "--host-cpus 1.25" in called, called
        info["device"] = {"backend": "soft", "engines": 1, "engine_on_cpu": True}
        assert replay_with(info, d) == called
        info["device"] = {"backend": "virtio", "engines": 1, "engine_on_cpu": False}
        called = replay_with(info, d)
        assert "on-cpus" not in called and "--host-cpus 2.0" in called, called


def test_result_says_which_gpu_it_was():
    records = report.read_log(LOG)
    result = report.summarise(records, INFO)
    assert (result["gpu"], result["device"]) == ("soft", None)
    device = {"backend": "virtio", "engines": 1, "engine_on_cpu": False}
    result = report.summarise(records, dict(INFO, gpu="virtio", device=device))
    assert (result["gpu"], result["device"]) == ("virtio", device)


def test_clients_are_named_where_they_differ():
    records = report.read_log(LOG)
    vgpus = [dict(v, client=c) for v, c in zip(INFO["vgpus"], ("kmscube", "glmark2"))]
    named = dict(INFO, vgpus=vgpus)
    for info, found in ((INFO, False), (named, True)):
        result = report.summarise(records, info)
        assert ("A: kmscube, B: glmark2" in report.table(result)) == found
        script = report.gnuplot_script(info, result, 8, "data", "png")
        assert ("title 'A  kmscube  1920x1080'" in script) == found, script
        assert ("title 'A  1920x1080'" in script) != found, script


def test_workloads_are_complete():
    assert set(WORKLOADS) == {"soft", "virtio"}
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


def test_moving_average_starts_when_the_window_is_full():
    values = list(range(40))
    out = report.moving_average(values)
    assert out[28] is None
    near(out[29], 14.5)
    near(out[39], 24.5)
    near(report.moving_average([1, 2, 6], 2)[2], 4)
    assert report.moving_average([1, None, 6, 8], 2) == [None, None, 3.5, 7]


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


def test_phase_without_periods_is_refused():
    info = dict(INFO, phases=[{"allocator": "vgasa", "start_s": 0, "end_s": 99}])
    try:
        report.summarise(report.read_log(LOG), info)
    except report.ReportError as e:
        assert "vgasa" in str(e)
    else:
        raise AssertionError("an empty phase gave a result")


def test_program_writes_result_and_plot():
    with tempfile.TemporaryDirectory() as d:
        with open(os.path.join(d, "mgpud.log"), "w", encoding="utf-8") as f:
            f.writelines(LOG)
        with open(os.path.join(d, "phases.json"), "w", encoding="utf-8") as f:
            json.dump(INFO, f)
        done = subprocess.run(
            [sys.executable, os.path.join(TOP, "tools/demo/report.py"), d],
            capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "-3.000" in done.stdout and "-2.667" in done.stdout
        with open(os.path.join(d, "result.json"), encoding="utf-8") as f:
            near(json.load(f)["runs"][0]["fds_mean"], -3)
        with open(os.path.join(d, "plot.png"), "rb") as f:
            assert f.read(8) == b"\x89PNG\r\n\x1a\n"


def main():
    return pytap.run([(f, n[5:].replace("_", " "))
                      for n, f in globals().items() if n.startswith("test_")])


if __name__ == "__main__":
    sys.exit(main())
