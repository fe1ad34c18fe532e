#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Recordings of gpuctl trace record keep Perfetto's rules, and gpuctl report makes pages of them.

gpuctl runs on the kernel of test_gpuctl_ctx and the events of played_source.c.
"""

import html.parser
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

import pytap  # noqa: E402 pylint: disable=wrong-import-position

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD", os.path.join(TOP, "build"))
GPUCTL = os.path.join(BUILD, "unit", "test_gpuctl_ctx")
UUID_1 = "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001"
UUID_2 = "12345678-509f-382f-3c1e-e6bfe0fa1002"
GAME = "mgpu/vGPUs/vGPU 1, 83b8f4f2"
OTHER = "mgpu/vGPUs/vGPU 2, 12345678"
MS = 1000000


def gpuctl(*words, status=0):
    ran = subprocess.run([GPUCTL, *words], capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == status, f"{words}: status {ran.returncode}: {ran.stderr}"
    return ran


def path(name):
    return os.path.join(FOLDER, name)


def record(name, *options):
    gpuctl("trace", "record", "-o", path(name), *options)
    with open(path(name), "rb") as file:
        return file.read()


def kept():
    """The recording's tracks have what was played."""
    trace = perfetto.Trace(record("kept", "-t", "2"))
    waits = trace.slices(GAME + "/waiting")
    frames = trace.slices(GAME + "/frames")
    slots = trace.slices("mgpu/devices/mgpu_soft.0/slot 0") + \
        trace.slices("mgpu/devices/mgpu_soft.0/slot 1")
    # of two seconds the recording begins and ends within 10 ms
    assert 195 <= len(frames) <= 200, len(frames)
    assert {end - begin for begin, end, *_ in frames} == {10 * MS}
    assert {end - begin for begin, end, *_ in waits} == {1 * MS}
    assert {end - begin for begin, end, *_ in trace.slices(GAME + "/throttled")} == {2 * MS}
    assert {name for *_, name, _ in slots} == {"vGPU 1", "vGPU 2"}
    ends = [args.get("end") for *_, args in slots]
    preempted = [event for event in trace.events
                 if trace.path(event.track) == OTHER + "/preempted"]
    assert 195 <= len(preempted) <= 200
    assert ends.count("preempted") == len(preempted)
    (begin, end, _, args), = trace.slices("mgpu/recording")
    assert end - begin == 2000 * MS
    assert args["clock"] == "CLOCK_MONOTONIC" and args["ended"] == "time" and args["lost"] == 6
    gaps = trace.slices("mgpu/lost events")
    assert [gap[3]["lost"] for gap in gaps] == [3, 3], gaps


def some():
    """With --vgpu the recording has no other vGPU."""
    for name in ("2", UUID_2, UUID_2[:9]):
        trace = perfetto.Trace(record("some", "-t", "0.5", "--vgpu", name))
        assert OTHER in map(trace.path, trace.tracks)
        assert GAME not in map(trace.path, trace.tracks)
    said = gpuctl("trace", "record", "-o", path("none"), "--vgpu", "nobody", status=1).stderr
    assert "no VM has the name 'nobody', and 'nobody' names no vGPU: give" in said, said
    said = gpuctl("trace", "record", "-o", path("none"), "--vgpu", "77", status=1).stderr
    assert "no vGPU has the id '77'" in said, said
    assert not os.path.exists(path("none"))


def bounded():
    """A recording that would be too large ends early, and says so."""
    ran = gpuctl("-j", "trace", "record", "-o", path("full"), "-t", "3600", "-m", "64K")
    result = json.loads(ran.stdout)
    size = os.path.getsize(path("full"))
    assert 40000 < size <= 65536, size
    assert result["ended"] == "size" and result["size_bytes"] == size, result
    assert result["duration_s"] < 60 and "--max-size" in ran.stderr
    with open(path("full"), "rb") as file:
        assert perfetto.Trace(file.read()).slices("mgpu/recording")


def flooded():
    """--time ends a recording while vGPUs send events as fast as gpuctl reads them."""
    os.environ["PLAYED_FLOOD"] = "1"
    try:
        ran = gpuctl("-j", "trace", "record", "-o", path("flood"), "-t", "1", "-m", "1M")
    finally:
        del os.environ["PLAYED_FLOOD"]
    result = json.loads(ran.stdout)
    assert result["ended"] == "time" and result["duration_s"] <= 1, result
    with open(path("flood"), "rb") as file:
        trace = perfetto.Trace(file.read())
    (_, end, *_), = trace.slices("mgpu/recording")
    assert trace.events[-1].ns <= end and len(trace.slices(GAME + "/frames")) > 90


def lost():
    """Lost events are reported, marked in the recording, and in the report."""
    ran = gpuctl("-j", "trace", "record", "-o", path("lost"), "-t", "3.5")
    assert json.loads(ran.stdout)["lost"] == 9
    assert "9 events were lost" in ran.stderr
    figures = json.loads(gpuctl("-j", "report", path("lost")).stdout)
    assert figures["lost"] == 9 and [gap["lost"] for gap in figures["gaps"]] == [3, 3, 3]
    gpuctl("report", path("lost"), "-o", path("lost.html"))
    with open(path("lost.html"), encoding="utf-8") as file:
        page = file.read()
    assert "9 events were lost" in page and page.count('class="band"') >= 3 * 4


def without_mgpud():
    """That mgpud does not answer is in the recording, once, and told."""
    ran = gpuctl("trace", "record", "-o", path("alone"), "-t", "5")
    assert ran.stderr.count("decisions of the controller") == 1, ran.stderr
    with open(path("alone"), "rb") as file:
        trace = perfetto.Trace(file.read())
    notes = [event for event in trace.events if trace.path(event.track) == "mgpu/mgpud"]
    assert len(notes) == 1, notes


def catches(process, number):
    """Whether a process has a handler of a signal by now."""
    with open(f"/proc/{process.pid}/status", encoding="utf-8") as file:
        caught = re.search(r"^SigCgt:\s*(\w+)$", file.read(), re.M)[1]
    return int(caught, 16) >> (number - 1) & 1


def interrupted():
    """A signal ends a recording, which is whole."""
    with subprocess.Popen([GPUCTL, "trace", "record", "-o", path("whole"), "-m", "1G"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while not catches(process, signal.SIGINT):
            assert process.poll() is None
            time.sleep(0.01)
        # time is virtual: it records until the signal comes, as fast as it can
        try:
            process.wait(0.3)
        except subprocess.TimeoutExpired:
            pass
        assert not os.path.exists(path("whole"))
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    with open(path("whole"), "rb") as file:
        data = file.read()
    assert b"interrupted" in data
    assert not [name for name in os.listdir(FOLDER) if name.endswith(".tmp")]


def refusals():
    """A file that cannot be written is refused before the recording, with a remedy."""
    os.mkdir(path("folder"))
    os.mkfifo(path("pipe"))
    for words, status, want in (
            (("trace", "record"), 2, "--output FILE"),
            (("trace", "record", "-o", path("x"), "extra"), 2, "no 'extra'"),
            (("trace", "record", "-o", path("x"), "-t", "0"), 2, "from 0.1 to 86400"),
            (("trace", "record", "-o", path("x"), "-m", "2G"), 2, "from 64K to 1G"),
            (("trace", "record", "-o", path("x"), "-m", "1KB"), 2, "from 64K to 1G"),
            (("trace", "record", "-o", path("x"), "-m", "18014398509481985K"), 2, "from 64K"),
            (("trace", "record", "-o", "/dev/null"), 1, "not a regular file"),
            (("trace", "record", "-o", path("folder")), 1, "not a regular file"),
            (("trace", "record", "-o", path("no/x")), 1, "make the folder"),
            (("report",), 2, "wants a FILE"),
            (("report", path("x"), "y"), 2, "not 'y'"),
            (("report", path("nothing")), 1, "No such file"),
            (("report", "/dev/null"), 1, "not a regular file"),
            (("report", path("pipe")), 1, "not a regular file"),
            (("report", path("kept"), "-o", path("kept")), 2, "recording itself"),
            (("report", GPUCTL), 1, "not from gpuctl trace"),
    ):
        ran = gpuctl(*words, status=status)
        assert want in ran.stderr and not ran.stdout, f"{words}: {ran.stderr}"
        assert len(ran.stderr.splitlines()) == 1, ran.stderr
    assert os.path.exists("/dev/null") and not os.path.isfile("/dev/null")
    open(path("empty"), "wb").close()
    assert "no events" in gpuctl("report", path("empty"), status=1).stderr


def published():
    """protoc, with the published field numbers, finds no other field, and the same values."""
    if not shutil.which("protoc"):
        raise pytap.Skip("no protoc")
    data = record("published", "-t", "1")
    decoded = subprocess.run(
        ["protoc", "--decode=Trace", f"--proto_path={TOP}/tests/unit/data", "perfetto.proto"],
        input=data, capture_output=True, check=True).stdout.decode()
    unknown = re.findall(r"^\s*\d+(?::| \{).*", decoded, re.M)
    assert not unknown, unknown[:5]
    trace = perfetto.Trace(data)
    assert decoded.count("track_event {") == len(trace.events)
    assert decoded.count("track_descriptor {") == len(trace.tracks)
    assert f"timestamp: {trace.events[-1].ns}\n" in decoded
    assert 'name: "vGPU 2, 12345678"' in decoded and 'string_value: "preempted"' in decoded
    back = subprocess.run(
        ["protoc", "--encode=Trace", f"--proto_path={TOP}/tests/unit/data", "perfetto.proto"],
        input=decoded.encode(), capture_output=True, check=True).stdout
    again = perfetto.Trace(back)
    assert again.events == trace.events and again.tracks == trace.tracks


# ---- the checker ----

def varint(value):
    out = b""
    while value > 0x7f:
        out += bytes([value & 0x7f | 0x80])
        value >>= 7
    return out + bytes([value])


def message(*parts):
    """Encode a message: pairs of number and value."""
    out = b""
    for number, value in parts:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        elif isinstance(value, float):
            out += varint(number << 3 | 1) + struct.pack("<d", value)
        else:
            out += varint(number << 3 | 2) + varint(len(value)) + value
    return out


SNAPSHOT = message((1, message((1, 3), (2, 5))), (1, message((1, 6), (2, 7))), (2, 3))


def track(uuid, *more, name=b"a"):
    return message((10, 1), (60, message((1, uuid), (2, name), *more)))


def event(ns, kind, uuid=1, clock=3, sequence=1, name=b"n", more=()):
    body = [(9, kind), (11, uuid), *more]
    if name and kind in (1, 3):
        body.append((23, name))
    return message((8, ns), (58, clock), (10, sequence), (11, message(*body)))


GOOD = (message((10, 1), (6, SNAPSHOT)), track(1), track(2, (5, 1), (8, b"")),
        event(10, 1), event(11, 1), event(12, 2), event(12, 2), event(12, 3),
        event(13, 4, 2, more=[(44, 1.5)]), event(5, 3, sequence=2))


def whole(*packets):
    return b"".join(message((1, packet)) for packet in packets)


def checker():
    """Each breach of a rule is found, and what keeps them is not."""
    assert len(perfetto.Trace(whole(*GOOD)).events) == 7
    for what, packets in (
            ("no sequence", (*GOOD, message((8, 20), (58, 3), (11, message((9, 3), (11, 1)))))),
            ("two snapshots", (GOOD[0], *GOOD)),
            ("clock is not CLOCK_MONOTONIC",
             (message((10, 1), (6, message((1, message((1, 6), (2, 7))), (2, 6)))), *GOOD[1:])),
            ("no time by a clock", GOOD[1:]),
            ("no time by a clock", (*GOOD, event(0, 3))),
            ("no time by a clock", (*GOOD, event(20, 3, clock=0))),
            ("clock is not CLOCK_MONOTONIC", (*GOOD, event(20, 3, clock=6))),
            ("time goes back", (*GOOD, event(12, 3))),
            ("not described before", (GOOD[0], *GOOD[2:])),
            ("not described before", (*GOOD, event(20, 3, 3), track(3))),
            ("is not described", (*GOOD, track(3, (5, 9)))),
            ("below themselves", (*GOOD, track(3, (5, 4)), track(4, (5, 3)))),
            ("two tracks", (*GOOD, track(1))),
            ("has no id", (*GOOD, track(0))),
            ("has no name", (*GOOD, track(3, name=b""))),
            ("of type 9", (*GOOD, event(20, 9))),
            ("of type 4 is on track", (*GOOD, event(20, 4, more=[(44, 1.5)]))),
            ("of type 3 is on track", (*GOOD, event(20, 3, 2))),
            ("no name", (*GOOD, event(20, 3, name=b""))),
            ("value is missing", (*GOOD, event(20, 4, 2))),
            ("none belongs", (*GOOD, event(20, 3, more=[(44, 1.5)]))),
            ("not begun", (*GOOD, event(20, 2))),
            ("does not end", (*GOOD, event(20, 1))),
            ("too deep", (*GOOD, *[event(20, 1)] * 513)),
            ("not UTF-8", (*GOOD, event(20, 3, name=b"\xff"))),
            ("no events", GOOD[:3]),
            ("cut off", (*GOOD, b"\x80")),
            ("cut off", (*GOOD, b"\x5a\x05")),
            ("wire type", (*GOOD, b"\x5b")),
            ("number 0", (*GOOD, b"\x00"))):
        try:
            perfetto.Trace(whole(*packets))
        except perfetto.Broken as why:
            assert what in str(why), f"{what}: {why}"
        else:
            assert False, f"{what}: not found"
    overlaps = whole(GOOD[0], track(1), event(1, 1), event(2, 1), event(3, 2), event(4, 2))
    try:
        perfetto.Trace(overlaps).slices("a")
    except perfetto.Broken as why:
        assert "overlap" in str(why)
    else:
        assert False, "an overlap is not found"


# ---- the page ----

class Page(html.parser.HTMLParser):
    """The elements of a page; all but void ones must be closed in their order."""

    VOID = {"meta", "br", "line", "rect", "circle", "path"}

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.links, self.words = [], [], [], ""
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.links += [value for key, value in attrs if key in ("src", "href", "xlink:href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, tag

    def handle_data(self, data):
        self.words += data


def page():
    """The page is whole, needs nothing else, and has a text for each plot."""
    record("page", "-t", "8")
    gpuctl("report", path("page"), "-o", path("page.html"))
    with open(path("page.html"), encoding="utf-8") as file:
        text = file.read()
    got = Page(text)
    assert not got.links and "url(" not in text and "http:" not in text and "<script" not in text
    policy = [attrs for tag, attrs in got.tags if attrs.get("http-equiv")]
    assert policy[0]["content"].startswith("default-src 'none'")
    assert "prefers-color-scheme:dark" in text
    ids = [attrs["id"] for _, attrs in got.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    plots = [attrs for tag, attrs in got.tags if tag == "svg"]
    assert len(plots) >= 7
    for plot in plots:
        assert plot["role"] == "img" and set(plot["aria-labelledby"].split()) <= set(ids)
    for number in re.findall(r"[ \"MLHV]-?(nan|inf)", text):
        assert False, number
    assert "How the VMs shared the GPU" in got.words and "vGPU 2, 12345678" in got.words


def figures():
    """The figures of a report are those of what was played."""
    record("figures", "-t", "10")
    got = json.loads(gpuctl("-j", "report", path("figures")).stdout)
    first, second = got["vgpus"][:2]
    assert first["uuid"] == UUID_1 and second["uuid"] == UUID_2
    for key, want, off in (("fps", 100, 1), ("frame_time_p50_s", 0.01, 1e-6),
                           ("frame_time_max_s", 0.01, 1e-6), ("held_share", 0.2, 0.01),
                           ("waiting_share", 0.1, 0.01), ("gpu_share", 0.125, 0.01)):
        assert abs(first[key] - want) < off, f"{key}: {first[key]}"
    assert abs(second["gpu_share"] - 0.1) < 0.01 and second["preempted"] >= 990
    # of each 10 ms, the first slot has 1 to 3 and 4 to 9, the second 5 to 7
    assert abs(got["slots"][0]["used_share"] - 0.7) < 0.02, got["slots"]
    assert abs(got["slots"][1]["used_share"] - 0.2) < 0.02, got["slots"]
    table = gpuctl("report", path("figures")).stdout
    assert re.search(r"^vGPU 1, 83b8f4f2 +\S+ +10\.0 ", table, re.M), table


TESTS = (
    (kept, "a recording keeps the rules and has what was played"),
    (some, "only the vGPUs that are named are recorded"),
    (bounded, "a recording is not larger than --max-size"),
    (flooded, "a recording ends while events never end"),
    (lost, "lost events are told, recorded and reported"),
    (without_mgpud, "a recording without mgpud says so"),
    (interrupted, "a signal ends a recording, whose file appears whole"),
    (refusals, "what cannot be done is refused with what to do"),
    (published, "the format is the published one"),
    (checker, "each breach of a rule is found"),
    (page, "the page of a report stands alone, and has a text for each plot"),
    (figures, "the figures of a report are right"),
)

sys.path.insert(0, os.path.join(TOP, "tests", "lib"))
import perfetto  # noqa: E402 pylint: disable=wrong-import-position

if __name__ == "__main__":
    subprocess.run(["make", "-s", "-C", os.path.join(TOP, "tests/unit"), f"BUILD={BUILD}",
                    GPUCTL], check=True, stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory() as FOLDER:
        os.environ["MGPUD_SOCKET"] = os.path.join(FOLDER, "mgpud.sock")
        status = pytap.run(TESTS)
    sys.exit(status)
