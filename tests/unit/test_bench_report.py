#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What the bench's results are put together from, on made-up ones."""
import json
import os
import sys
import tempfile
import traceback

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(TOP, "tools", "bench"))
sys.dont_write_bytecode = True

import report  # noqa: E402 pylint: disable=wrong-import-position

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
    except report.ReportError as e:
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


TESTS = [
    (test_growth, "growth is from the fewest vGPUs to the most"),
    (test_collect, "results go to their parts, failures apart"),
    (test_cut_short, "a run that was cut short has its first results"),
    (test_merge, "parts that were not measured again are kept, others not"),
]


def main():
    failed = 0
    print("TAP version 13")
    print(f"1..{len(TESTS)}")
    for i, (test, what) in enumerate(TESTS, 1):
        try:
            test()
            print(f"ok {i} - {what}")
        except Exception:           # pylint: disable=broad-except
            failed = 1
            for line in traceback.format_exc().splitlines():
                print("# " + line)
            print(f"not ok {i} - {what}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
