#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Test the benches' reports on made-up results."""
import contextlib
import glob
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import types
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.dont_write_bytecode = True

import pytap  # noqa: E402 pylint: disable=wrong-import-position


def program(name):
    """Load a program of tools/bench as a module."""
    loader = SourceFileLoader(name.replace("-", "_").replace("/", "_"),
                              os.path.join(TOP, "tools", "bench", name))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


os.environ.setdefault("OUT", "/nonexistent")
report = program("sched/report")
virtio = program("virtio/report")
render = program("render/report")
in_host = program("virtio/in-host")
gl = program("common/gl.py")
vs_qemu = program("vs-qemu/in-host")
isolation = program("isolation/report")
preempt = program("preempt/report")
deferred = program("deferred/report")
cases = deferred.cases
deferred_in_host = program("deferred/in-host")
operate = program("operate/report")
operate_in_host = program("operate/in-host")

TEMPORARY = tempfile.TemporaryDirectory()
COST = [{"vgpus": n, "bpf": bpf, "ns_per_job": ns}
        for bpf, n, ns in (("attached", 1024, 300), ("attached", 1, 100),
                           ("detached", 1, 50), ("detached", 64, 40))]


def results(*records, cut=""):
    """A directory with these results; @cut is the start of one more line."""
    directory = tempfile.mkdtemp(dir=TEMPORARY.name)
    with open(os.path.join(directory, "sched.jsonl"), "w",
              encoding="utf-8") as f:
        for part, record in records:
            f.write(json.dumps({"part": part, **record}) + "\n")
        f.write(cut)
    with open(os.path.join(directory, "level0.json"), "w",
              encoding="utf-8") as f:
        json.dump({"level0_cpus": 2}, f)
    return directory


def took(part):
    return "took", {"what": part, "seconds": 1.5}


def test_growth():
    assert report.growth(COST) == [
        {"bpf": "attached", "from_vgpus": 1, "to_vgpus": 1024, "ratio": 3.0},
        {"bpf": "detached", "from_vgpus": 1, "to_vgpus": 64, "ratio": 0.8}]
    assert report.growth(COST[:1]) == []


def test_collect():
    out = report.collect(results(
        ("conditions", {"kernel": "6.1"}),
        ("fps", {"target": 30, "rate_err": 0.1}),
        ("fps", {"target": 60, "failed": "no frames"}), took("fps"),
        *(("cost", c) for c in COST), took("cost")))
    assert out["fps"] == [{"target": 30, "rate_err": 0.1}]
    assert out["failed"] == [{"part": "fps", "target": 60,
                              "failed": "no frames"}]
    assert out["conditions"]["fps"] == {"kernel": "6.1", "level0_cpus": 2}
    assert "shares" not in out and "shares" not in out["conditions"]
    assert len(out["cost"]) == 4 and len(out["cost_growth"]) == 2
    assert out["took"] == {"fps": {"seconds": 1.5}, "cost": {"seconds": 1.5}}


def test_cut_short():
    out = report.collect(results(("idle", {"neighbours": 0}),
                                 cut='{"part": "idle", "neigh'))
    assert out["idle"] == [{"neighbours": 0}]
    bad = results(("idle", {"neighbours": 0}), cut="nonsense\n")
    try:
        report.collect(bad)
    except report.report.ReportError as e:
        assert ":2 is not a result" in str(e), e
    else:
        assert False, "nonsense was taken for a result"


def test_merge():
    old = report.collect(results(
        ("conditions", {"kernel": "old"}), ("fps", {"target": 30}),
        ("shares", {"case": "a", "failed": "x"}),
        ("shares", {"case": "b"}), took("fps"), took("shares")))
    new = report.collect(results(
        ("conditions", {"kernel": "new"}), ("shares", {"case": "a"}),
        took("shares")))
    out = report.merge(old, new)
    assert out["fps"] == [{"target": 30}]
    assert out["shares"] == [{"case": "a"}]
    assert "failed" not in out
    assert out["conditions"]["fps"]["kernel"] == "old"
    assert out["conditions"]["shares"]["kernel"] == "new"
    # a part that gave nothing this time leaves nothing old
    out = report.merge(old, report.collect(results(took("fps"))))
    assert "fps" not in out and out["shares"] == [{"case": "b"}]


def test_vs_qemu_cut_short():
    """Each turn's figures are in the file before the next turn begins."""
    class Device:
        def __init__(self, device):
            self.device = device

    def once(guest, watched):
        fps = 100 if guest.device == "qemu" else 600 - 400 * watched
        return {"fps": fps, "cpu_ms_per_frame": 1000 / fps, "latency_us_p50": 10,
                "command_latency_us_p50": 5}

    vs_qemu.OUT = tempfile.mkdtemp(dir=TEMPORARY.name)
    vs_qemu.once = once
    vs_qemu.call = lambda *_: "QEMU\n"
    path = os.path.join(vs_qemu.OUT, "vs_qemu.json")
    turns = vs_qemu.compare([Device("mgpu"), Device("qemu")])
    for repeats, watched in ((1, False), (1, True), (2, False), (2, True)):
        cases = next(turns)
        for c in cases:
            c["beside"] = "mgpu"
        vs_qemu.write(cases, {}, False)
        out = report.read_json(path)
        assert not out["complete"]
        assert [c["repeats"] for c in out["cases"] if c["watched"] == watched] == \
            [repeats] * 2
        assert [r["fps_ratio"] for r in out["ratios"]] == \
            ([6, 2] if repeats > 1 or watched else [6])
        assert out["fps_ratio"] == 6
    assert os.listdir(vs_qemu.OUT) == ["vs_qemu.json"]


def virtio_results(**runs):
    """A directory with these runs: names to lists of (part, record)."""
    directory = tempfile.mkdtemp(dir=TEMPORARY.name)
    for name, records in runs.items():
        path = os.path.join(directory, name.replace("_", "-"))
        with open(path + ".jsonl", "w", encoding="utf-8") as f:
            for part, record in records:
                f.write(json.dumps({"part": part, **record}) + "\n")
        with open(path + ".json", "w", encoding="utf-8") as f:
            json.dump({"level0_cpus": 2}, f)
    return directory


def client(number, where, fps, **more):
    return "client_run", {"round": number, "where": where, "client": "cube",
                          "fps": fps, **more}


def light(slots, wait, longest=10, **more):
    return "isolation_run", {"round": 1, "policy": "weighted", "slots": slots,
                             "slice_us": 0, "flood_fps": 5, "light_fps": 20,
                             "light_longest_wait_ms": wait, "light_longest_job_ms": 1,
                             "flood_longest_job_ms": longest, **more}


def test_virtio_clients():
    out = virtio.collect(virtio_results(
        clients_1=[("conditions", {"kernel": "6.1"}), client(1, "native", 100),
                   client(1, "mgpu", 50, engine_ms_per_frame=2),
                   client(1, "qemu", 25)],
        # the machine was busy in this one, for all alike
        clients_2=[client(2, "native", 10), client(2, "mgpu", 6),
                   client(2, "qemu", 3)],
        clients_3=[client(3, "native", 110),
                   client(3, "mgpu", 66, engine_ms_per_frame=4)]))
    cube, = out["clients"]
    assert cube["name"] == "cube" and cube["rounds"] == 3
    assert (cube["native_fps"], cube["mgpu_fps"], cube["qemu_fps"]) == \
        (100, 50, 14)
    assert cube["native_fps_each"] == [100, 10, 110]
    # medians of the ratios in a round, not ratios of the medians
    assert cube["mgpu_vs_native"] == 0.6 and cube["mgpu_vs_qemu"] == 2
    assert cube["mgpu_engine_ms_per_frame"] == 3
    assert "native_engine_ms_per_frame" not in cube
    assert out["machine"][0] == {"run": "clients-1", "level0_cpus": 2,
                                 "kernel": "6.1"}
    assert "failed" not in out


def test_virtio_isolation():
    alone = "isolation_alone", {"round": 1, "light_fps": 30, "light_p99_ms": 40}
    out = virtio.collect(virtio_results(isolation_1=[
        alone, light(2, 21), light(4, 42), light(4, 41, longest=8),
        light(4, 5, slice_us=4000, light_fps=27)]))
    two, four, cut = out["isolation"]
    assert two["light_alone_fps"] == 30 and two["light_vs_alone"] == 0.6667
    assert two["bound_ms"] == 21 and two["within_bound"] == 1
    # 42 is above 4 * 10 + 1, and 41 above 4 * 8 + 1
    assert four["rounds"] == 2 and four["within_bound"] == 0
    assert four["bound_ms"] == 37
    assert cut["slice_us"] == 4000 and cut["light_vs_alone"] == 0.9


def test_virtio_leaks():
    rows = [("leaks_run", {"round": 1, "cycle": i, "pages": int(i == 2),
                           "bytes": 0, "running_pages": 100,
                           "running_bytes": 1 << 20, "slab_kib": kib,
                           "available_kib": 1000 - kib})
            for i, kib in ((1, 100), (2, 150), (3, 152), (4, 154))]
    out = virtio.collect(virtio_results(leaks_1=rows))["leaks"]
    # memory that any of them left counts, also if it was freed later
    assert out["pages"] == 1 and out["bytes"] == 0 and out["guests"] == 4
    assert out["slab_kib_per_guest"] == 2 and out["available_kib_per_guest"] == -2


def test_virtio_merge():
    old = virtio.collect(virtio_results(
        clients_1=[client(1, "mgpu", 50)],
        isolation_1=[light(2, 9), ("failed", {"what": "isolation", "why": "x"})]))
    assert old["failed"]
    new = virtio.collect(virtio_results(isolation_1=[light(4, 9)]))
    out = virtio.merge(old, new)
    assert out["clients"] == old["clients"] and "failed" not in out
    assert [c["slots"] for c in out["isolation"]] == [4]
    assert sorted(m["run"] for m in out["machine"]) == ["clients-1",
                                                        "isolation-1"]
    # a part that gave nothing this time leaves nothing old
    out = virtio.merge(old, virtio.collect(virtio_results(
        isolation_1=[("failed", {"what": "isolation", "why": "y"})])))
    assert "isolation" not in out and out["failed"][0]["why"] == "y"


def on_gpu(part, gpu="virtio", **record):
    return part, {"gpu": gpu, **record}


def drawn(gpu, number, where, fps, cpu=None):
    return on_gpu("client_run", gpu, round=number, where=where, client="cube", fps=fps,
                  level1_ms_per_frame=cpu)


def test_render():
    out = render.collect(virtio_results(
        clients_virtio=[drawn("virtio", n, where, fps * n, cpu) for n in (1, 2, 3)
                        for where, fps, cpu in (("native", 100, 1), ("mgpu", 60, 3),
                                                ("qemu", 40, 4))] +
        [("took", {"what": "clients-virtio", "seconds": 9})],
        clients_llvmpipe=[drawn("llvmpipe", 1, "mgpu", 7)],
        isolation_virtio=[on_gpu("isolation_run", policy=policy, flooded=flooded,
                                 promised_fps=promised, light_fps=fps, light_p99_ms=50,
                                 light_latency_ms_p99=9, light_engine_share=0.1)
                          for policy, flooded, promised, fps in
                          (("weighted", False, None, 30), ("weighted", True, None, 24),
                           ("floor", True, 25, 25), ("floor", True, 25, 20),
                           ("floor", True, 25, 26))],
        hostile_virtio=[on_gpu("hostile_run", attacker="gl-hang", kept=0.99, pairs=2),
                        on_gpu("hostile_run", attacker="gl-loop", failed="x")],
        recover_virtio=[on_gpu("recover_run", cycle=n, ms=ms) for n, ms in
                        enumerate((300, 900, 500))],
        leaks_virtio=[on_gpu("leaks_run", cycle=n, running_pages=9, pages=0, bytes=0,
                             mdevs=0, files=files, renderd_files=0,
                             processes=int(n == 1))
                      for n, files in enumerate((0, 4, 2))]))
    other, cube = out["clients"]
    assert (cube["gpu"], cube["native_fps"], cube["mgpu_fps"], cube["qemu_fps"]) == \
        ("virtio", 200, 120, 80)
    assert cube["mgpu_vs_qemu"] == 1.5 and cube["mgpu_vs_native"] == 0.6
    assert (cube["mgpu_cpu_ms"], cube["qemu_cpu_ms"]) == (3, 4)
    assert (other["gpu"], other["mgpu_fps"], other["qemu_fps"]) == ("llvmpipe", 7, None)
    # A promise is the floor, or what the light client has alone.
    weighted, floor, hang = out["isolation"]
    assert (weighted["promised_fps"], weighted["kept"]) == (30, 0.8)
    assert (floor["promised_fps"], floor["light_fps"], floor["kept"]) == (25, 25, 1)
    assert hang["case"] == "gl-hang" and hang["kept"] == 0.99
    assert out["failed"] == [{"what": "hostile-virtio", "case": "gl-loop", "why": "x"}]
    assert out["recover_ms"] == [{"gpu": "virtio", "ms": 500, "cycles": 3,
                                  "most_ms": 900}]
    leaks, = out["leaks"]
    assert leaks["processes"] == 1 and leaks["files"] == 4 and leaks["guests"] == 3
    machine = {m["run"]: m for m in out["machine"]}
    assert machine["clients-virtio"]["took_s"] == 9
    # One client that is measured again replaces its own row.
    new = render.collect(virtio_results(hostile_virtio=[], clients_virtio=[
        drawn("virtio", 1, "mgpu", 50)]))
    both = render.merge(out, new)
    assert sorted((c["gpu"], c["mgpu_fps"]) for c in both["clients"]) == \
        [("llvmpipe", 7), ("virtio", 50)]
    assert both["isolation"] == out["isolation"] and both["recover_ms"]
    assert both["failed"] == [] and len(both["machine"]) == len(out["machine"])
    # A run that measured nothing has all lists.
    assert render.merge({}, render.collect(virtio_results()))["clients"] == []


def attack(name, kept):
    return "rows", {"attacker": name, "kept": kept}


def test_isolation():
    both = virtio_results(soft=[("conditions", {"slots": 1}), attack("hang", 0.9)],
                          gpu=[attack("gl-loop", 1), ("rows", {"attacker": "gl-hang",
                                                               "failed": "x"})])
    old = isolation.collect(both)
    assert [(r["device"], r["attacker"]) for r in old["rows"]] == \
        [("gpu", "gl-loop"), ("soft", "hang")]
    assert old["failed"] == [{"device": "gpu", "attacker": "gl-hang", "failed": "x"}]
    assert old["conditions"]["soft"] == {"level0_cpus": 2, "slots": 1}
    assert "skipped" not in old
    # a device that is not there is no result, and no failure
    soft = virtio_results(soft=[attack("hang", 0.8)])
    with open(os.path.join(soft, "skipped"), "w", encoding="utf-8") as f:
        f.write("no GL")
    new = isolation.collect(soft)
    assert new["skipped"] == [{"device": "gpu", "why": "no GL"}]
    assert "failed" not in new
    out = isolation.merge(old, new)
    assert {r["attacker"]: r["kept"] for r in out["rows"]} == {"gl-loop": 1, "hang": 0.8}
    # an attack that failed this time leaves nothing old
    out = isolation.merge(old, isolation.collect(virtio_results(
        soft=[("rows", {"attacker": "hang", "failed": "y"})])))
    assert [r["attacker"] for r in out["rows"]] == ["gl-loop"]


def test_virtio_lines():
    frames = gl.Frames()
    for line in ("gl name=x t=1.000 frames=10 fps=10.00 p50_ms=1.00",
                 "something else",
                 "gl name=x t=2.000 frames=30 fps=20.00 p50_ms=1.00",
                 '{"frames": 50, "seconds": 3.0, "fps": 16.7}'):
        frames.line(line)
    assert frames.counted() == (40, 2.0) and frames.rate() == 20
    frames = gl.Frames()
    assert frames.line("Rendered 100 frames in 2.0 sec (50.0 fps)")
    assert frames.rate() is None
    assert frames.line("Rendered 300 frames in 4.0 sec (75.0 fps)")
    assert frames.rate() == 100
    # a guest's clock that went back gives no rate
    assert frames.line("Rendered 500 frames in 1.0 sec (500.0 fps)")
    assert frames.rate() is None
    frames = gl.Frames()
    assert not frames.line("[build] <default>: FPS: 42 FrameTime: 23.810 ms")
    assert frames.rate() == 42
    frames = gl.Frames()
    assert frames.line("    GL_VERSION:     OpenGL ES 3.2 Mesa 22.3.6")
    assert frames.line("[build] duration=6.0: FPS: 42 FrameTime: 23.810 ms")
    assert frames.counted() == (252, 6) and frames.rate() == 42
    frames = gl.Frames()
    # weston-simple-egl counts from one line to the next
    for n in (90, 100, 200):
        assert frames.line(f"{n} frames in 5 seconds: {n / 5:f} fps")
    assert frames.counted() == (300, 10) and frames.rate() == 30


def test_refused():
    lines = ["gl name=x t=1.000 frames=10", "gl name=x t=2.000 frames=30",
             '{"frames": 50, "seconds": 3.0, "fps": 16.7}[    9.1] hello: a message']

    def says(more):
        return "; ".join(f"echo '{line}'" for line in lines + more)
    assert gl.run(gl.Native(), says([])).rate() == 20
    try:
        gl.run(gl.Native(), says(["[    9.2] [drm:virtio_gpu_dequeue_ctrl_func "
                                  "[virtio_gpu]] *ERROR* response 0x1200 (command 0x207)"]))
    except gl.BenchError as e:
        assert "refused 1 commands" in str(e), e
    else:
        raise AssertionError("frames that nobody drew are counted")


def test_virtio_quantile():
    hist = [0] * 32
    assert gl.quantile_us(hist, 0.5) is None
    hist[3] = 10
    assert gl.quantile_us(hist, 0.5) == 12
    hist[10] = 10
    assert gl.quantile_us(hist, 0.5) == 16
    assert gl.quantile_us(hist, 1) == 2048


def test_virtio_waits():
    events = [(0.000, "mgpu_job_submit", 1, 1, 0),
              (0.001, "mgpu_job_submit", 1, 2, 0),
              (0.002, "mgpu_job_done", 2, 1, 9000000),
              (0.010, "mgpu_job_done", 1, 1, 2000000),
              # it waits for its own since 0.010 only
              (0.013, "mgpu_job_done", 1, 2, 3000000)]
    got = in_host.job_times(events, 1)
    assert round(got["longest_wait_ms"], 6) == 10
    assert got["longest_job_ms"] == 3 and got["jobs"] == 2
    assert in_host.job_times(events, 2)["longest_job_ms"] == 9


def stream_run(engine, policy, norm_ipc, number):
    return "streams_run", dict(
        dict.fromkeys(("turnaround_mean", "turnaround_p99", "preemptions", "takes", "busy_s",
                       "late_max_ms", "decider_cpu", "emulation_cpu", "emulation_late"), 1),
        engine=engine, stream="tuned", policy=policy, round=number, norm_ipc=norm_ipc)


def test_preempt_engines():
    runs = [stream_run(engine, policy, ipc * (2 if engine == "modelled" else 1), n)
            for engine in ("cpu", "modelled") for n in (0, 1)
            for policy, ipc in (("none", 1.0), ("always", 1.25), ("mgpu", 1.2))]
    out = preempt.collect(results(
        *runs, ("streams_simulated", {"engine": "modelled", "stream": "tuned",
                                      "policy": "mgpu", "norm_ipc": 3})))
    for key, factor in (("streams", 1), ("streams_modelled", 2)):
        policies = out[key][0]["policies"]
        assert policies["mgpu"]["norm_ipc"] == 1.2 * factor and \
            policies["mgpu"]["rounds"] == 2 and policies["mgpu"]["vs_none"] == 1.2
        assert policies["mgpu"]["best_fixed"] == "always" and \
            policies["mgpu"]["vs_best_fixed"] == 0.96
    assert "simulated_norm_ipc" not in out["streams"][0]["policies"]["mgpu"]
    assert out["streams_modelled"][0]["policies"]["mgpu"]["simulated_norm_ipc"] == 3
    # one engine that is measured again leaves the other's figures
    again = preempt.collect(results(*runs[6:], took("streams_modelled")))
    both = preempt.merge({**out, "took": {"streams": {}, "streams_modelled": {}}}, again)
    assert both["streams"] == out["streams"] and len(both["streams_modelled"]) == 1


def remoted(transport, case, api=cases.OPENCL, **modes):
    """Runs of a program, whose first round does not count: modes to values of the rounds."""
    us = cases.launch_times if cases.loop_numbers(case) else lambda _: {}
    return [("run", {"transport": transport, **api, "case": case, "mode": mode, "round": number,
                     "ms": value, **us([value] * 4), "cpu_ms": 2.0, "sum": "a", "calls": 9,
                     "round_trips": 3, "waited_ms": value / 4,
                     "bytes": 100 if mode == "deferred" else 400, "grouped": 5})
            for mode, values in modes.items() for number, value in enumerate((999, *values))]


def recorded(case, sums="aaaa", api=cases.CUDA[0]):
    """Runs of a program of CUDA: with its calls recorded in some modes, then without in all."""
    timed = remoted("unix", case, api, **{mode: [2, 4] for mode in cases.MODES})
    for _, run in timed:
        del run["sum"]
    return [("run", {"transport": "unix", **api, "case": case, "mode": mode, "round": 0, "ms": 999,
                     "cpu_ms": 999, "sum": record, "bytes": 1})
            for mode, record in zip(cases.MODES, sums)] + timed


def test_deferred_rows():
    out = deferred.collect(virtio_results(
        vgpu=remoted("vgpu", "loops 2 200 0", native=[1, 2, 9], native_guest=[3, 3, 3],
                     one=[80, 90, 100], batched=[4, 5, 6], deferred=[2, 10, 3]) +
        remoted("vgpu", "cg 4", native=[10, 20, 30], one=[60, 60, 90], batched=[40, 50, 60],
                deferred=[20, 50, 90]),
        unix=remoted("unix", "clinfo", native=[5], one=[6], batched=[7], deferred=[8])))
    row, = out["loops"]
    assert (row["class"], row["transport"], row["launches"], row["spin"], row["rounds"]) == \
        (2, "vgpu", 200, 0, 3)
    assert [row[f"{m}_us"] for m in cases.VM_MODES] == [2, 3, 90, 5, 3]
    assert (row["api"], row["device"]) == ("opencl", "basic")
    assert row["deferred_least_us"] == 2 and row["one_least_us"] == 80
    # 200 launches, repeated four times after one that is not timed
    assert (row["batched_bytes"], row["deferred_bytes"]) == (0.4, 0.1)
    # medians of the ratios in a round, not ratios of the medians
    assert row["deferred_to_batched"] == 0.5 and row["one_to_deferred"] == 33.333
    _, cg = sorted(out["programs"], key=lambda r: r["transport"])
    assert (cg["name"], cg["batched_ms"], cg["deferred_to_batched"]) == ("cg 4", 50, 1)
    assert (cg["calls"], cg["round_trips"], cg["bytes"], cg["batched_bytes"], cg["cpu_ms"]) == \
        (9, 3, 100, 400, 2)
    assert cg["equal"] is True and "native_guest_ms" not in cg
    assert cg["waited_part"] == 0.25
    assert [m["run"] for m in out["machine"]] == ["unix", "vgpu"]


def test_deferred_cut_short():
    """Runs that were made count; missing ones have no figure, and differing ones are reported."""
    runs = remoted("vsock", "loops 1 200 0", native=[1], one=[9]) + \
        remoted("vsock", "vecadd", native=[1, 2], one=[2, 2], batched=[2], deferred=[3])
    runs[-1][1]["sum"] = "b"
    out = deferred.collect(virtio_results(vsock=runs))
    row, = out["loops"]
    assert row["deferred_us"] is None and row["one_to_deferred"] is None
    assert row["batched_bytes"] is None and row["deferred_bytes"] is None
    assert row["equal"] is None
    vecadd, = out["programs"]
    assert vecadd["equal"] is False and vecadd["deferred_to_batched"] == 1.5
    assert deferred.failed(out)
    # without a round that counts
    out = deferred.collect(virtio_results(vsock=remoted("vsock", "vecadd", native=[], one=[])))
    assert out["programs"][0]["native_ms"] is None and not deferred.failed(out)
    deferred.print_all(out)


def test_deferred_cuda():
    """Times are those of runs without a record, and equal is what the records say."""
    driver, runtime = cases.CUDA
    out = deferred.collect(virtio_results(cuda=recorded("cuda_loops 3 50") + recorded("loops") +
                                          recorded("loops", "aaab", runtime)))
    row, = out["loops"]
    assert (row["api"], row["device"], row["class"], row["launches"], row["spin"]) == \
        ("cuda", "recorder", 3, 50, 0)
    assert (row["rounds"], row["one_us"], row["equal"]) == (2, 3, True)
    assert (row["batched_bytes"], row["deferred_bytes"]) == (1.6, 0.4)
    # a program has the name of OpenCL's loops, but no classes
    loops, other = out["programs"]
    assert (loops["api"], loops["name"], loops["native_ms"], loops["bytes"], loops["cpu_ms"]) == \
        ("cuda", "loops", 3, 100, 2)
    assert loops["equal"] is True and (other["api"], other["equal"]) == ("cudart", False)
    assert deferred.failed(out)
    out = deferred.collect(virtio_results(cuda=recorded("loops", "aaa", driver)))
    assert out["programs"][0]["equal"] is None and not deferred.failed(out)
    with contextlib.redirect_stdout(io.StringIO()) as said:
        deferred.print_all(out)
    assert "Programs, cuda, ms" in said.getvalue() and "unix" not in said.getvalue()


def test_deferred_aims():
    def verdicts(transport, **modes):
        out = deferred.collect(virtio_results(x=remoted(transport, "loops 1 9 0", **modes) +
                                              remoted(transport, "vecadd", **modes)))
        return [good for _, good, _ in deferred.aims(out["loops"], out["programs"])]

    assert verdicts("vgpu", native=[1], one=[160], batched=[10], deferred=[10]) == \
        [True, None, True, True, True]
    assert verdicts("vgpu", native=[100], one=[159], batched=[10], deferred=[10.3]) == \
        [False, True, True, False, True]
    assert verdicts("vgpu", native=[100], one=[1], batched=[106], deferred=[106]) == \
        [False, False, False, True, True]


def test_deferred_merge():
    old = deferred.collect(virtio_results(
        unix=remoted("unix", "vecadd", native=[1]) +
        [("classify", {"loops": 2, "right": 2, "bold": 0, "analysis_ms_per_mb": 3})],
        vgpu=remoted("vgpu", "cg 4", native=[2]) +
        [("failed", {"what": "vgpu", "case": "cg 4", "why": "x"})]))
    new = deferred.collect(virtio_results(vgpu=remoted("vgpu", "vecadd", native=[3])))
    out = deferred.merge(old, new)
    assert [(r["transport"], r["name"]) for r in out["programs"]] == \
        [("unix", "vecadd"), ("vgpu", "vecadd")]
    assert out["classify"]["right"] == 2 and out["analysis_ms_per_mb"] == 3
    assert out["failed"] == [] and [m["run"] for m in out["machine"]] == ["unix", "vgpu"]
    # CUDA is by a Unix socket, too, but another part
    out = deferred.merge(out, deferred.collect(virtio_results(cuda=recorded("search"))))
    out = deferred.merge(out, deferred.collect(virtio_results(
        unix=remoted("unix", "stencil", native=[1]))))
    assert sorted(r["name"] for r in out["programs"]) == ["search", "stencil", "vecadd"]
    out = deferred.merge(out, deferred.collect(virtio_results(
        cuda=[("failed", {"what": "cuda", "case": None, "why": "x"})])))
    assert sorted(r["name"] for r in out["programs"]) == ["stencil", "vecadd"]
    assert [f["what"] for f in out["failed"]] == ["cuda"]


def test_deferred_once():
    line = "once status=0 ran_us=1500 user=0m1.250s system=1m0.500s us=3.0,1.0,2.0, sum=12 " \
        "requests=7 waits=2 bytes=99 groups=1 grouped=4 end"
    assert cases.once(line) == {"ms": 1.5, "cpu_ms": 61750, "us": 2, "repetitions": 3,
                                "sum": "12", "calls": 7, "round_trips": 2, "bytes": 99,
                                "grouped": 4}
    native = "once status=0 ran_us=9 user=0m0.0s system=0m0.0s us= sum=1  end"
    assert cases.once(native) == {"ms": 0.009, "cpu_ms": 0, "sum": "1"}
    # failed, cut short, and with characters that a serial port lost
    for bad in (line.replace("status=0", "status=1"), line[:-4], line.replace("ran_us", "rn_us"),
                line.replace("1.0,", "1..0,"), line.replace("user=0m1.250s ", ""), ""):
        assert cases.once(bad) is None, bad


class OnceGuest:
    """A guest in which once prints a line for each mode; the program fails in @bad."""

    def __init__(self, bad=None):
        self.bad = bad
        self.said = []
        self.lines = []

    def say(self, command):
        self.said.append(command)
        status = 0
        self.lines = []
        for mode in command.split()[3].split(","):
            status = int(mode == self.bad)
            self.lines.append(f"once status={status} ran_us=1000 user=0m0.1s system=0m0.0s us= "
                              f"sum={len(mode)} end")
            if status:
                break
        self.lines += [f"guest: done {status}"]

    def wait_line(self, pattern, _):
        return re.search(pattern, self.lines.pop(0))

    def alive(self):
        return True


def test_deferred_in_guest():
    """Neighbouring modes of the guest are one command; native is none of it."""
    found = []
    options = types.SimpleNamespace(transport="vgpu", programs="/p")
    deferred_in_host.result = lambda part, record: found.append((part, record))
    deferred_in_host.waited_ms = lambda: 5
    guest = OnceGuest()
    with contextlib.redirect_stdout(io.StringIO()):
        deferred_in_host.measure(guest, options, 3, "cg 1", ("native_guest", "one", "deferred"))
    assert guest.said == [f"MGPU_REMOTE=vgpu {deferred_in_host.ONCE} /p native,one,deferred cg 1"]
    assert [(part, r["mode"], r["sum"], r["round"], r["case"]) for part, r in found] == \
        [("run", "native_guest", "6", 3, "cg 1"), ("run", "one", "3", 3, "cg 1"),
         ("run", "deferred", "8", 3, "cg 1")]
    assert not guest.lines
    # what ran before the one that failed counts
    found.clear()
    with contextlib.redirect_stdout(io.StringIO()):
        deferred_in_host.measure(OnceGuest("batched"), options, 3, "cg 1",
                                 ("one", "batched", "deferred"))
    assert [part for part, _ in found] == ["run", "failed"], found
    assert found[1][1]["what"] == "vgpu" and "cg 1 (batched)" in found[1][1]["why"]


def test_deferred_turns():
    modes = ("a", "b", "c")
    assert [cases.turns(n, modes) for n in range(5)] == \
        [modes, modes, ("b", "c", "a"), ("c", "a", "b"), modes]
    assert cases.vm_turns(1) == cases.VM_MODES
    assert cases.vm_turns(3) == ("one", "batched", "deferred", "native")
    assert [cases.vm_turns(n)[0] for n in (2, 4, 6)] == ["batched", "deferred", "batched"]


def test_deferred_command_line():
    def run(*args):
        return subprocess.run([os.path.join(TOP, "tools", "bench", "deferred", "run"), *args],
                              capture_output=True, text=True, check=False,
                              env={**os.environ, "BUILD": TEMPORARY.name})

    done = run("--help")
    assert done.returncode == 0 and done.stdout.startswith("usage: "), done
    for args, said in ((("--transport", "tcp"), "--transport takes unix, vsock, vgpu"),
                       (("--transport", "unix,"), "not 'unix,'"),
                       (("--transport",), "needs a value"),
                       (("--rounds", "0"), "--rounds takes a whole number from 1"),
                       (("--rounds", "1000"), "not '1000'"),
                       (("--fast",), "unknown option '--fast'"),
                       (("--cuda", "--transport", "unix"), "it takes no --transport"),
                       (("--cuda",), "is missing; run: make bench-deferred"),
                       (("--quick",), "is missing; run: make bench-deferred")):
        done = run(*args)
        assert done.returncode == 1 and said in done.stderr, (args, done.stderr)
        assert not done.stdout, args
        written = glob.glob(os.path.join(TEMPORARY.name, "bench", "*"))
        assert not written, (args, written)


# ---- programs of the host with many vGPUs

def mgpud_samples(first_bytes, bytes_per_s):
    """10 minutes; memory settles within the first."""
    return [{"s": s, "cpu_s": 0.02 * s, "rss": first_bytes * (s >= 60) + round(bytes_per_s * s),
             "private": first_bytes} for s in range(0, 601, 5)]


def test_operate_growth():
    steady = operate.growth(mgpud_samples(1 << 20, 0))
    assert steady["cpu_share"] == 0.02 and steady["seconds"] == 600
    assert steady["rss_bytes"] == 1 << 20 and steady["rss_grew_bytes"] == 0
    assert abs(steady["rss_bytes_per_hour"]) < 1 and steady["private_bytes_per_hour"] == 0
    leak = operate.growth(mgpud_samples(1 << 20, 100))
    assert abs(leak["rss_bytes_per_hour"] - 360000) < 1 and leak["rss_grew_bytes"] == 45000
    few = operate.growth(mgpud_samples(1, 0)[:2])
    assert few["rss_bytes_per_hour"] is None and few["samples"] == 2


def operate_results(**parts):
    directory = tempfile.mkdtemp(dir=TEMPORARY.name)
    for name, records in parts.items():
        with open(os.path.join(directory, f"{name}.jsonl"), "w", encoding="utf-8") as f:
            for part, record in records:
                f.write(json.dumps({"part": part, **record}) + "\n")
    return directory


def test_operate_parts():
    command = {"command": "vgpu list", "vgpus": 10, "pairs": 7, "more_ms": 1, "more_cpu_ms": 1,
               "calls": 5, "sends": 1, "most": {"read": 3}}
    mgpud = {"vgpus": 1000, "periods": 5, "period_calls": 12.5, "most": {},
             "samples": mgpud_samples(1, 0)}
    old = operate.collect(operate_results(
        commands=[("command", command), ("command", {**command, "vgpus": 100}), took("commands")],
        growth=[("mgpud", {"case": "growth", **mgpud})],
        rest=[("failed", {"what": "rest", "why": "no mgpud"})]))
    assert [c["vgpus"] for c in old["parts"]["commands"]["command"]] == [10, 100]
    assert old["parts"]["growth"]["mgpud"]["seconds"] == 600
    assert operate.failed(old)
    new = operate.collect(operate_results(
        commands=[("command", command)], rest=[("mgpud", {"case": "rest", **mgpud})]))
    out = operate.merge(old, new)
    # a part that is measured again has nothing of the old one, nor its failure
    assert len(out["parts"]["commands"]["command"]) == 1 and not operate.failed(out)
    assert set(out["parts"]) == {"commands", "growth", "rest"}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        operate.print_all(out)
    assert re.search(r"^  vgpu list +10 +1.0 +1.0 +5 +1 +read 3$", printed.getvalue(), re.M), \
        printed.getvalue()


def test_operate_calls():
    text = ("# event histogram\n{ id: sys_openat                    [257] } hitcount:          3\n"
            "{ id: sys_read                      [  0] } hitcount:         12\n\nTotals:\n")
    assert operate_in_host.calls_of(text) == {"openat": 3, "read": 12}
    assert operate_in_host.summary({"read": 12, "sendto": 2, "sendmsg": 1}) == {
        "calls": 15, "sends": 3, "most": {"read": 12, "sendto": 2, "sendmsg": 1}}


TESTS = [
    (test_growth, "growth is from the fewest vGPUs to the most"),
    (test_collect, "results go to their parts, failures apart"),
    (test_cut_short, "a run that was cut short has its first results"),
    (test_vs_qemu_cut_short, "the comparison with QEMU stores each turn"),
    (test_merge, "parts that were not measured again are kept, others not"),
    (test_virtio_clients, "GL clients are compared in the same round"),
    (test_virtio_isolation, "a wait is held against slots and the longest job"),
    (test_virtio_leaks, "memory that any guest left behind is in the result"),
    (test_virtio_merge, "the GL bench keeps other parts, too"),
    (test_render, "clients, promises and leaks of mgpu-renderd go to their rows"),
    (test_isolation, "rows of both devices are in one file, and one that is not there is said"),
    (test_virtio_lines, "frames are counted from the first report to the last"),
    (test_refused, "a client whose commands the GPU refused has no figure"),
    (test_virtio_quantile, "quantiles are interpolated in their bucket"),
    (test_preempt_engines, "streams on processors and on a modelled GPU are two results"),
    (test_deferred_rows, "runs of remoted programs are compared in the same round"),
    (test_deferred_cut_short, "a remoted program that lacks runs has no figures of them"),
    (test_deferred_cuda, "programs of CUDA are compared by the records of their calls"),
    (test_deferred_aims, "aims of remoted programs are met at their bounds, or missing"),
    (test_deferred_merge, "transports and CUDA are kept unless they were measured again"),
    (test_deferred_once, "a line about a run counts only if it is complete"),
    (test_deferred_in_guest, "a guest runs a program in several modes, until one fails"),
    (test_deferred_turns, "each round begins with another mode"),
    (test_deferred_command_line, "the bench of remoted programs refuses bad options"),
    (test_operate_growth, "growth of memory is a slope over what is left when it has settled"),
    (test_operate_parts, "parts of many vGPUs are kept unless they were measured again"),
    (test_operate_calls, "system calls are counted by name"),
    (test_virtio_waits, "a job waits since its vGPU's turn came"),
]


if __name__ == "__main__":
    sys.exit(pytap.run(TESTS))
