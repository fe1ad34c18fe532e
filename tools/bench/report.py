#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Put the bench's results into one file and print them as tables.

usage: tools/bench/report.py [--add] DIR FILE

DIR has what tools/bench/run-sched left there:

  sched.jsonl   bench-sched's results, one JSON object a line
  level0.json   about the machine that ran the test host
  vs_qemu.json  optional, the comparison with QEMU's own device
  runq.json     optional, instructions per job of the run queue alone

Written to FILE: one JSON object.  With --add, parts that are not in DIR are
taken over from FILE as it was.
"""
import json
import os
import sys

PARTS = ("shares", "fps", "idle", "cost")


class ReportError(Exception):
    pass


def read_json(path):
    """What is in the file, or None if there is none."""
    try:
        with open(path, encoding="utf-8") as f:
            return json.load(f)
    except FileNotFoundError:
        return None
    except ValueError as e:
        raise ReportError(f"{path} is not JSON: {e}") from e


def read_lines(path):
    """The results, by part; a run that was cut short has its first ones."""
    found = {}
    try:
        with open(path, encoding="utf-8") as f:
            lines = f.readlines()
    except FileNotFoundError:
        return found
    for i, line in enumerate(lines):
        try:
            record = json.loads(line)
            found.setdefault(record.pop("part"), []).append(record)
        except (ValueError, KeyError) as e:
            if i == len(lines) - 1 and not line.endswith("\n"):
                break
            raise ReportError(f"{path}:{i + 1} is not a result: {e}") from e
    return found


def growth(cost):
    """Cost per job with the most vGPUs as a multiple of that with the fewest."""
    out = []
    for bpf in ("attached", "detached"):
        rows = sorted((c for c in cost if c["bpf"] == bpf),
                      key=lambda c: c["vgpus"])
        if len(rows) < 2 or rows[0]["ns_per_job"] <= 0:
            continue
        out.append({"bpf": bpf, "from_vgpus": rows[0]["vgpus"],
                    "to_vgpus": rows[-1]["vgpus"],
                    "ratio": round(rows[-1]["ns_per_job"] /
                                   rows[0]["ns_per_job"], 3)})
    return out


def collect(directory):
    lines = read_lines(os.path.join(directory, "sched.jsonl"))
    out = {}
    conditions = {}
    for record in lines.get("conditions", []):
        conditions.update(record)
    conditions.update(read_json(os.path.join(directory, "level0.json")) or {})
    for part in PARTS:
        rows = lines.get(part, [])
        good = [r for r in rows if "failed" not in r]
        bad = [r for r in rows if "failed" in r]
        if good:
            out[part] = good
        if bad:
            out.setdefault("failed", []).extend({"part": part, **r} for r in bad)
        if rows:
            out.setdefault("conditions", {})[part] = conditions
    if "cost" in out:
        out["cost_growth"] = growth(out["cost"])
    if "made" in lines:
        out["made"] = lines["made"][-1]
    out["took"] = {r["what"]: r for r in lines.get("took", [])}
    for r in out["took"].values():
        r.pop("what")
    vs_qemu = read_json(os.path.join(directory, "vs_qemu.json"))
    if vs_qemu:
        out["vs_qemu"] = vs_qemu
    runq = read_json(os.path.join(directory, "runq.json"))
    if runq:
        out["cost_runq"] = runq
    return out


def merge(old, new):
    """@new over @old; where a part was measured again, nothing old is left."""
    out = dict(old)
    again = [p for p in PARTS if p in new.get("took", {})]
    for key in ("conditions", "took"):
        out[key] = {**old.get(key, {}), **new.get(key, {})}
    out["failed"] = [f for f in old.get("failed", []) if f["part"] not in again]
    for part in again:
        out.pop(part, None)
    for key, value in new.items():
        if key == "failed":
            out["failed"] += value
        elif key not in ("conditions", "took"):
            out[key] = value
    if not out["failed"]:
        del out["failed"]
    return out


# ---- tables ----

def table(title, header, rows):
    if not rows:
        return
    print(title)
    cells = [header] + [[str(c) for c in row] for row in rows]
    width = [max(len(row[i]) for row in cells) for i in range(len(header))]
    for row in cells:
        line = [c.ljust(w) if i == 0 else c.rjust(w)
                for i, (c, w) in enumerate(zip(row, width))]
        print("  " + "  ".join(line).rstrip())
    print()


def print_shares(rows):
    table("Shares: largest error, percentage points, in windows of 1 s and 100 ms",
          ["case", "policy", "part of", "1 s", "median", "100 ms", "95 %",
           "median", "windows", "with all windows", "busy", "jobs/s", "job us"],
          [[r["case"], r["policy"], r["share_of"], f"{r['err_1s_pp']:.2f}",
            f"{r['err_1s_median_pp']:.2f}", f"{r['err_100ms_pp']:.2f}",
            f"{r['err_100ms_p95_pp']:.2f}", f"{r['err_100ms_median_pp']:.2f}",
            f"{r['windows_1s']}, {r['windows_100ms']}",
            f"{r['err_1s_all_pp']:.2f}, {r['err_100ms_all_pp']:.2f}",
            f"{r['engine_busy'] * 100:.0f} %", f"{r['jobs_per_s']:.0f}",
            "/".join(f"{us:.0f}" for us in r["job_us"][:2])]
           for r in rows])


def print_fps(rows):
    table("Pacing: fps_limit, at the module and as the VM's client sees it",
          ["target", "engine", "rate error", "p50 dev us", "p99 dev us",
           "max dev us", "frames", "client rate error", "client p99 dev us"],
          [[r["target"], r["load"], f"{r['rate_err'] * 100:.4f} %",
            f"{r['p50_dev_us']:.0f}", f"{r['p99_dev_us']:.0f}",
            f"{r['max_dev_us']:.0f}", r["frames"],
            f"{r['client_rate_err'] * 100:.4f} %",
            f"{r['client_p99_dev_us']:.0f}"] for r in rows])


def print_idle(rows):
    table("Idle neighbours: one active vGPU's rate against that with none",
          ["neighbours", "loss", "jobs/s", "25 %", "75 %", "pieces"],
          [[r["neighbours"], f"{r['loss'] * 100:.2f} %",
            f"{r['jobs_per_s']:.0f}", f"{r['jobs_per_s_p25']:.0f}",
            f"{r['jobs_per_s_p75']:.0f}",
            f"{r['pieces']} of {r['piece_ms']} ms"] for r in rows])


def print_cost(out):
    rows = sorted(out["cost"], key=lambda r: (r["bpf"], r["vgpus"]))
    table("Cost: CPU time of the engine's thread beside engine time",
          ["vGPUs", "BPF", "ns/job", "engine ns/job", "client ns/job",
           "jobs/s", "thread busy", "doorbells/job"],
          [[r["vgpus"], r["bpf"], f"{r['ns_per_job']:.0f}",
            f"{r['engine_ns_per_job']:.0f}",
            f"{r['client_cpu_ns_per_job']:.0f}", f"{r['jobs_per_s']:.0f}",
            f"{r['engine_thread_busy'] * 100:.0f} %",
            f"{r['doorbells_per_job']:.3f}"] for r in rows])
    for g in out.get("cost_growth", []):
        print(f"  BPF {g['bpf']}: {g['to_vgpus']} vGPUs cost {g['ratio']:.2f} "
              f"times as much per job as {g['from_vgpus']}")
    if out.get("cost_growth"):
        print()


def print_runq(runq):
    rows = runq.get("cost", [])
    sizes = sorted({r["vgpus"] for r in rows})
    by = {(r["policy"], r["vgpus"]): r for r in rows}
    policies = list(dict.fromkeys(r["policy"] for r in rows))
    for key, what in (("instructions_per_job", "instructions"),
                      ("ns_per_job", "ns")):
        if any(r.get(key) is None for r in rows):
            continue
        table(f"Run queue alone, in user space: {what} per job, by vGPUs",
              ["policy"] + [str(n) for n in sizes],
              [[p] + [f"{by[p, n][key]:.0f}" for n in sizes]
               for p in policies])


def print_vs_qemu(result):
    print("Against QEMU's own virtio-gpu (the rest is in the file)")
    for key, value in result.items():
        if isinstance(value, (int, float)):
            print(f"  {key} {value:.2f}")
    print()


def print_all(out):
    if "shares" in out:
        print_shares(out["shares"])
    if "fps" in out:
        print_fps(out["fps"])
    if "idle" in out:
        print_idle(out["idle"])
    if "cost" in out:
        print_cost(out)
    if "cost_runq" in out:
        print_runq(out["cost_runq"])
    if "vs_qemu" in out:
        print_vs_qemu(out["vs_qemu"])
    for f in out.get("failed", []):
        print(f"FAILED  {f}")
    seen = []
    for part, c in out.get("conditions", {}).items():
        for other, parts in seen:
            if other == c:
                parts.append(part)
                break
        else:
            seen.append((c, [part]))
    for c, parts in seen:
        print(f"Conditions of {', '.join(parts)}: " +
              ", ".join(f"{k} {v}" for k, v in c.items()))
    if out.get("took"):
        print("Took: " + ", ".join(f"{k} {v['seconds']:.0f} s"
                                   for k, v in out["took"].items()))


def main(argv):
    add = "--add" in argv
    args = [a for a in argv if a != "--add"]
    if len(args) != 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    try:
        new = collect(args[0])
        old = (read_json(args[1]) or {}) if add else {}
    except ReportError as e:
        print(f"report: {e}", file=sys.stderr)
        return 1
    out = merge(old, new)
    with open(args[1] + ".tmp", "w", encoding="utf-8") as f:
        json.dump(out, f, indent=1)
        f.write("\n")
    os.replace(args[1] + ".tmp", args[1])
    print_all(out)
    return 1 if out.get("failed") else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
