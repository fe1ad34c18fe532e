#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Turn a demo's measurements into a table, a plot and result.json.

usage: tools/demo/report.py DIR

DIR has what tools/demo/in-host left there:

  mgpud.log    one JSON object per line and period, as mgpud writes it
  turns.json   which time belongs to which policy, what ran, and on which GPU
  waits.csv    how long the emulator had waited for processors at each record of the
               log; may be missing
  trace.csv    what every frame cost; may be missing

Only periods that lie inside a turn and ran under its allocator are counted; the time
after each change of policy is not part of a turn.  Two kinds of periods are left out and
counted as such: those in which the emulated processors waited for this machine's for more
than SPOILT of the time, and those in which a VM showed no frame, which have no f.

Written to DIR: result.json, plot.png and the plot's data, the traces of each policy, and
replay*.json, what the simulator made of none's.  Standard deviations are those of a
sample (n - 1).  A gain is the part of |f| that a policy takes away, between two turns of
the same round.
"""
import json
import math
import os
import re
import statistics
import subprocess
import sys

SPOILT = 0.25               # share of the processors' time
PUBLISHED = {"none": 0.115, "vgasa": 0.45}      # gains of the source's FEA
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SIM = os.path.join(os.environ.get("BUILD", os.path.join(TOP, "build")),
                   "sim", "mgpu-sim")


class ReportError(Exception):
    pass


# ---- input ----

def read_log(lines):
    """The log's records; a last line that was cut off is left out."""
    lines = [line for line in lines if line.strip()]
    records = []
    for i, line in enumerate(lines):
        try:
            record = json.loads(line)
            record["time_s"] = float(record["time_s"])
            record["vgpus"] = {v["uuid"]: v for v in record["vgpus"]}
        except (ValueError, KeyError, TypeError) as e:
            if i == len(lines) - 1 and not line.endswith("\n"):
                break
            raise ReportError(f"line {i + 1} of the log is not a period's "
                              f"record ({e}): {line.strip()[:100]}") from e
        records.append(record)
    for before, record in zip(records, records[1:]):
        record["seconds"] = record["time_s"] - before["time_s"]
    return records


def add_waits(records, lines, cpus):
    """Add to each record the share of its period for which the emulated processors
    waited for one; lines are those of waits.csv."""
    at = {}
    for line in lines:
        time_s, ns = line.strip().split(",")
        at[float(time_s)] = int(ns) if ns else None
    for before, record in zip(records, records[1:]):
        a, b = at.get(before["time_s"]), at.get(record["time_s"])
        if None not in (a, b):
            # the count of a thread that ended is lost
            record["waited"] = max(b - a, 0) / 1e9 / record["seconds"] / cpus


def read_trace(lines):
    """The first two lines, and for each frame its time in the log's clock and its line
    without the time."""
    what, columns, *rest = lines
    begin = float(re.search(r"begin_s=([0-9.]+)", what)[1])
    frames = [x.split(",", 1) for x in rest if not x.startswith("#")]
    return (re.sub(r" begin_s=\S+", "", what), columns,
            [(begin + float(t), row) for t, row in frames])


# ---- figures ----

def number(value):
    """value if it is a finite number, else None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if math.isfinite(value) else None


def mean(values):
    return statistics.fmean(values) if values else None


def std(values):
    return statistics.stdev(values) if len(values) > 1 else None


def known(values):
    return [v for v in values if v is not None]


def quantile(values, q):
    """The value that a part q of all values does not exceed."""
    values = sorted(values)
    return values[min(math.ceil(q * len(values)), len(values)) - 1] if values else None


def spoilt(record):
    return record.get("waited", 0) > SPOILT


def in_turn(records, turn, allocator):
    return [r for r in records if turn["start_s"] < r["time_s"] <= turn["end_s"]
            and r.get("allocator") == allocator]


def fairness(record, vgpus, key="fds"):
    """f of a period, None unless every VM was active in it."""
    for v in vgpus:
        if record["vgpus"].get(v["uuid"], {}).get("state") != "active":
            return None
    return number(record.get(key))


def series(records, uuid, key):
    return known(number(r["vgpus"].get(uuid, {}).get(key)) for r in records)


def dominant_share(record, uuid):
    """The larger of a VM's shares of CPU and engine time, from which f is computed."""
    v = record["vgpus"].get(uuid, {})
    shares = known(number(v.get(key)) for key in ("cpu_share", "gpu_share"))
    return max(shares) if shares else None


def reach(record, uuid):
    """The dominant share that a VM could have had with the machine to itself."""
    v = record["vgpus"].get(uuid, {})
    share, fps, alone = dominant_share(record, uuid), number(v.get("fps")), \
        number(v.get("reach_fps"))
    return min(share * alone / fps, 1) if share and fps and alone else None


def per_frame(records, uuid, key):
    """Mean cost of a frame: every frame counts the same, not every period.

    Periods are equally long, so the rate tells how many frames were in one; a
    record's frames are those since the vGPU was created.
    """
    total = frames = 0
    for r in records:
        v = r["vgpus"].get(uuid, {})
        cost, n = number(v.get(key)), number(v.get("fps"))
        if cost is not None and n:
            total += cost * n
            frames += n
    return total / frames if frames else None


def frame_times(frames, uuid, records):
    """Times from one frame of a VM to its next one, of those that end in the periods
    given.  Where the recorder lost frames, there is none."""
    periods = [(r["time_s"] - r.get("seconds", 0), r["time_s"]) for r in records]
    out = []
    last = None
    for t, row in frames:
        vgpu, _, lost, _ = row.split(",", 3)
        if vgpu != uuid:
            continue
        if last is not None and int(lost) == 1 and any(a < t <= b for a, b in periods):
            out.append(t - last)
        last = t
    return out


def measure(records, frames, vgpus):
    """Figures of periods."""
    good = [r for r in records if not spoilt(r)]
    fds = known(fairness(r, vgpus) for r in good)
    best = known(fairness(r, vgpus, "fds_optimal") for r in good)
    return {
        "seconds": round(sum(r.get("seconds", 0) for r in records), 3),
        "f_mean": mean(fds),
        "f_std": std(fds),
        "feasible_best": mean(best),
        "periods": len(records),
        "periods_spoilt": len(records) - len(good),
        "periods_without_f": len(good) - len(fds),
        "fps": [mean(series(good, v["uuid"], "fps")) for v in vgpus],
        "fps_std": [std(series(good, v["uuid"], "fps")) for v in vgpus],
        "p99_ms": [None if (q := quantile(frame_times(frames, v["uuid"], good), 0.99))
                   is None else q * 1e3 for v in vgpus],
        **{key: [mean(series(good, v["uuid"], key)) for v in vgpus]
           for key in ("gpu_share", "cpu_share")},
        "dominant_share": [mean(known(dominant_share(r, v["uuid"]) for r in good))
                           for v in vgpus],
        **{key: [per_frame(good, v["uuid"], key) for v in vgpus]
           for key in ("cpu_s_per_frame", "gpu_s_per_frame")},
    }


def kept(record, uuid, floor):
    """Did a VM show all the whole frames of its floor in a period?"""
    fps = number(record["vgpus"].get(uuid, {}).get("fps"))
    if fps is None:
        return False
    frames = round(fps * record["seconds"])
    return frames >= math.floor(floor * record["seconds"])


def summarise_promise(records, frames, info):
    """The floor that was promised and the rate that came of it; None without a promise."""
    p = info.get("promise")
    if not p:
        return None
    vgpus = info["vgpus"]
    allocator = info["policies"][p["policy"]]["allocator"]
    i = [v["uuid"] for v in vgpus].index(p["vgpu"])
    part = in_turn(records, p, allocator)
    good = [r for r in part if not spoilt(r)]
    before = measure(in_turn(records, p["before"], allocator), frames, vgpus)
    figures = measure(part, frames, vgpus)
    return {
        **figures,
        "policy": p["policy"],
        "name": vgpus[i]["name"],
        "floor_fps": p["floor_fps"],
        "before_fps": before["fps"][i],
        "promised_fps": figures["fps"][i],
        "kept": sum(kept(r, p["vgpu"], p["floor_fps"]) for r in good),
        "floor_kept": mean([float(kept(r, p["vgpu"], p["floor_fps"])) for r in good]),
    }


def summarise(records, frames, info):
    vgpus = info["vgpus"]
    runs = []
    for policy, p in info["policies"].items():
        turns = [t for t in info["turns"] if t["policy"] == policy]
        parts = [in_turn(records, t, p["allocator"]) for t in turns]
        for t, part in zip(turns, parts):
            if not part:
                raise ReportError(f"the log has no period under allocator "
                                  f"'{p['allocator']}' between {t['start_s']} and "
                                  f"{t['end_s']} s")
        runs.append({
            "policy": policy, **p, **measure(sum(parts, []), frames, vgpus),
            "share_for_weight": shares_for_weights(vgpus),
            "reach": [mean(known(reach(r, v["uuid"])
                                 for r in sum(parts, []) if not spoilt(r)))
                      for v in vgpus],
            "emulation_cpu": emulation(turns, "emulation_cpu_s"),
            "emulation_late": emulation(turns, "emulation_late_s"),
            "turns": [{"round": t["round"], "start_s": t["start_s"],
                       **measure(part, frames, vgpus)}
                      for t, part in zip(turns, parts)],
        })
    result = {k: info.get(k) for k in ("cpus", "kernel", "gpu", "settings", "seed",
                                       "device")}
    result.update(workloads=vgpus, runs=runs,
                  promise=summarise_promise(records, frames, info))
    add_gains(result)
    return result


def emulation(turns, key):
    """Part of the turns' time, None where the GPU was not modelled."""
    if any(key not in t for t in turns):
        return None
    return sum(t[key] for t in turns) / sum(t["end_s"] - t["start_s"] for t in turns)


def weights(vgpus):
    """Weights of the VMs; equal ones in a log that has none."""
    return [v.get("weight", 100) for v in vgpus]


def shares_for_weights(vgpus):
    return [w / sum(weights(vgpus)) for w in weights(vgpus)]


def by_policy(result):
    return {run["policy"]: run for run in result["runs"]}


def gains(run, base, figure):
    """Of each round, how much higher a figure of a turn is than in base's, as a part
    of that."""
    other = {t["round"]: figure(t) for t in base["turns"]}
    out = []
    for t in run["turns"]:
        a, b = figure(t), other.get(t["round"])
        if None not in (a, b) and b:
            out.append((a - b) / abs(b))
    return out


def f_of(turn):
    return turn["f_mean"]


def below_best(figures):
    """How far f is below the best that the same seconds allowed, as a part of that."""
    f, best = figures["f_mean"], figures["feasible_best"]
    return None if f is None or not best else (best - f) / abs(best)


def frames_of(turn):
    return None if None in turn["fps"] else sum(turn["fps"])


def summary(values):
    """Mean, and two standard errors of it."""
    if not values:
        return None
    around = std(values)
    return {"mean": mean(values), "median": statistics.median(values),
            "error": None if around is None else 2 * around / math.sqrt(len(values))}


def add_gains(result):
    runs = by_policy(result)
    for run in result["runs"]:
        run["gain"] = {base: summary(gains(run, runs[base], f_of))
                       for base in ("none", "weighted", "vgasa")
                       if base in runs and base != run["policy"]}
        if "weighted" in runs and run["policy"] != "weighted":
            run["frames_over_weighted"] = summary(gains(run, runs["weighted"], frames_of))


# ---- replay ----

def host_cpus(part, cpus, engines=True):
    """CPUs that neither VMs nor, if they are on CPUs, engines could have had."""
    used = []
    for r in part:
        cpu = number(r.get("capacity", {}).get("cpu_cores"))
        gpu = sum(number(v.get("gpu_share")) or 0
                  for v in r["vgpus"].values()) if engines else 0
        if cpu is not None:
            used.append(cpus - cpu - gpu)
    return max(0.0, min(mean(used) or 0.0, cpus - 0.5))


def split_trace(directory, trace, info):
    """Write the frames of each policy's turns to a file, one turn behind the other."""
    what, columns, frames = trace
    for policy in info["policies"]:
        rows = []
        length = 0
        for t in info["turns"]:
            if t["policy"] != policy:
                continue
            rows += [f"{at - t['start_s'] + length:.9f},{row}" for at, row in frames
                     if t["start_s"] < at <= t["end_s"]]
            length += t["end_s"] - t["start_s"]
        with open(os.path.join(directory, f"trace-{policy}.csv"), "w",
                  encoding="ascii") as f:
            f.write("\n".join([what, columns, *rows, f"# end seconds={length:.3f}", ""]))


def replay(directory, records, info):
    """Simulate none's frames under all policies; None if there are none."""
    trace = os.path.join(directory, "trace-none.csv")
    if not os.path.exists(trace) or not os.path.exists(SIM):
        return None
    on_cpu = (info.get("device") or {}).get("engine_on_cpu", True)
    part = [r for t in info["turns"] if t["policy"] == "none"
            for r in in_turn(records, t, "none")]
    host = host_cpus(part, info["cpus"], on_cpu)
    weight = [x for v, w in zip(info["vgpus"], weights(info["vgpus"]))
              for x in ("--weight", f"{v['uuid']}={w}")]
    sim = None
    for order, allocators in (("best-effort", "none"),
                              ("weighted", "none,vgasa,fea,exact,clairvoyant")):
        path = os.path.join(directory, f"replay-{order}.json")
        done = subprocess.run(
            [SIM, "--trace", trace, "--cpus", str(info["cpus"]), "--host-cpus",
             f"{host:.4f}", *(["--engines-on-cpus"] if on_cpu else []),
             "--ahead", "2", *weight, "--order", order, "--allocator", allocators,
             "--json", path],
            capture_output=True, text=True, check=False)
        if done.returncode:
            raise ReportError(f"the trace cannot be replayed: {done.stderr.strip()}")
        with open(path, encoding="utf-8") as f:
            part = json.load(f)
        if sim:
            part["runs"][0]["policy"] = "weighted"
            part["runs"] = sim["runs"] + part["runs"]
        sim = part
    return sim


# ---- text ----

def fmt(value, form, scale=1):
    return "-" if value is None else format(value * scale, form)


def percent(value, digits=1):
    return "-" if value is None else f"{value * 100:+.{digits}f} %"


LINE = "-" * 98


def table(result):
    out = ["policy    VM  screen         frames/s      p99      share of       "
           "ms per frame     fairness f",
           "                           mean     sd      ms    GPU    CPU      GPU"
           "      CPU      mean    sd   best"]
    for run in result["runs"]:
        out.append(LINE)
        for i, v in enumerate(result["workloads"]):
            line = (f"{run['policy'] if i == 0 else '':9} {v['name']:3} "
                    f"{v.get('mode', ''):9} "
                    f"{fmt(run['fps'][i], '.1f'):>8} "
                    f"{fmt(run['fps_std'][i], '.1f'):>6} "
                    f"{fmt(run['p99_ms'][i], '.0f'):>7} "
                    f"{fmt(run['gpu_share'][i], '.0f', 100):>5}% "
                    f"{fmt(run['cpu_share'][i], '.0f', 100):>5}% "
                    f"{fmt(run['gpu_s_per_frame'][i], '.1f', 1e3):>8} "
                    f"{fmt(run['cpu_s_per_frame'][i], '.1f', 1e3):>8} ")
            if i == 0:
                line += (f" {fmt(run['f_mean'], '8.3f'):>8} "
                         f"{fmt(run['f_std'], '5.3f'):>5} "
                         f"{fmt(run['feasible_best'], '6.3f'):>6}")
            out.append(line.rstrip())
    out.append(LINE)
    clients = [f"{v['name']}: {v['client']}" for v in result["workloads"]
               if v.get("client")]
    if clients:
        out.append(", ".join(clients))
    out.append("f: the higher (nearer to 0) the fairer; best: the highest that the same "
               "seconds allowed,\nby what the VMs could have reached. p99: the time that "
               "99 of 100 frames do not exceed. Shares: of\nwhat all VMs together can have.")
    out += left_out(result)
    return "\n".join(out)


def shares_table(result):
    """The shares that the VMs got for their weights; nothing where these are equal."""
    vgpus = result["workloads"]
    if len(set(weights(vgpus))) == 1:
        return ""
    out = ["policy    VM  weight   share for it   dominant share   could reach alone"]
    for run in result["runs"]:
        for i, (v, w) in enumerate(zip(vgpus, weights(vgpus))):
            out.append(f"{run['policy'] if i == 0 else '':9} {v['name']:3} {w:>6} "
                       f"{fmt(run['share_for_weight'][i], '.3f'):>14} "
                       f"{fmt(run['dominant_share'][i], '.3f'):>16} "
                       f"{fmt(run['reach'][i], '.3f'):>19}")
    out.append("Dominant share: of that of which a VM needs most. A VM that could not reach "
               "the share for its\nweight alone does not get it, and others have the rest.")
    return "\n".join(out)


def left_out(result):
    out = []
    runs = result["runs"] + ([result["promise"]] if result.get("promise") else [])
    periods = sum(run["periods"] for run in runs)
    for key, why in (("periods_spoilt", "the emulated processors waited for this "
                      f"machine's\nfor more than {SPOILT * 100:.0f} % of the time"),
                     ("periods_without_f", "a VM showed no frame, so there is no f")):
        n = sum(run[key] for run in runs)
        if n:
            out.append(f"Left out: {n} of {periods} s, in which {why}.")
    return out


def costs(result):
    """The cost of a frame in each round: the machine, not the policies."""
    rounds = sorted({t["round"] for run in result["runs"] for t in run["turns"]})
    out = ["CPU time of a frame by round, ms: " + "   ".join(
        f"{v['name']} " + " ".join(
            fmt(mean(known(t["cpu_s_per_frame"][i] for run in result["runs"]
                           for t in run["turns"] if t["round"] == r)), ".1f", 1e3)
            for r in rounds)
        for i, v in enumerate(result["workloads"]))]
    used = known(run["emulation_cpu"] for run in result["runs"])
    if used:
        late = known(run["emulation_late"] for run in result["runs"])
        out.append(f"The GPU is modelled ({' '.join(result.get('settings') or [])}). That took "
                   f"{mean(used) * 100:.1f} % of\none of {result['cpus']} CPUs, and jobs "
                   f"were late by {mean(late) * 100:.1f} % of the time.")
    return "\n".join(out)


SHOWN = {"weighted": ("none",), "fea": ("none", "weighted", "vgasa"),
         "exact": ("none", "weighted", "vgasa")}


def gains_table(result):
    """Gains in f, each between turns of the same round."""
    out = ["gain in f              mean (+/- 2 s.e.)   published"]
    for run in result["runs"]:
        for base in SHOWN.get(run["policy"], ()):
            g = run["gain"].get(base)
            if not g:
                continue
            line = (f"{run['policy']:8} over {base:8} {percent(g['mean']):>8} "
                    f"(+/- {fmt(g['error'], '.1f', 100)} %)")
            if base in PUBLISHED and run["policy"] != "weighted":
                line += (f"     {'up to ' if base == 'vgasa' else ''}"
                         f"{PUBLISHED[base] * 100:.1f} %, FEA")
            if g["error"] is not None and abs(g["mean"]) <= g["error"]:
                line += "; no difference that can be told from chance"
            out.append(line)
    return "\n".join(out) if len(out) > 1 else ""


def words(result):
    """The gain of a user, in plain words."""
    runs = by_policy(result)
    none, best = runs.get("none"), runs.get("exact")
    out = []
    if none and best and None not in none["fps"] + best["fps"]:
        heavy, light = result["workloads"][0]["name"], result["workloads"][-1]["name"]
        out.append(f"Beside {heavy}'s long frames, {light} showed {none['fps'][-1]:.1f} "
                   f"frames/s as on any shared GPU, and {best['fps'][-1]:.1f} with mgpu"
                   f"\n({heavy}: {none['fps'][0]:.1f} and {best['fps'][0]:.1f}).")
        if None not in (none["p99_ms"][-1], best["p99_ms"][-1]):
            a, b = none["p99_ms"][-1], best["p99_ms"][-1]
            out.append(f"{light}'s p99 frame time {'fell' if b < a else 'rose'} from "
                       f"{a:.0f} to {b:.0f} ms.")
        g, lost = best["gain"].get("none"), below_best(best)
        if g and lost is not None:
            out.append(f"The fairness f is {g['mean'] * 100:.1f} % higher, and "
                       f"{lost * 100:.1f} % below the best that these VMs could have reached.")
        g, frames = best["gain"].get("weighted"), best.get("frames_over_weighted")
        if g and frames:
            out.append(f"Control beside mgpu's queueing alone: f {percent(g['mean'])}, "
                       f"frames of all VMs {percent(frames['mean'])}.")
    p = result.get("promise")
    if p and p["promised_fps"] is not None:
        n = p["periods"] - p["periods_spoilt"]
        out.append(f"{p['name']} was then promised {p['floor_fps']} frames/s: it showed "
                   f"{fmt(p['before_fps'], '.1f')} before and {p['promised_fps']:.1f} "
                   f"after, and kept\nthe promised rate in {p['kept']} of {n} seconds.")
    return "\n".join(out)


def replay_table(result, sim):
    """Measured and replayed, side by side."""
    if not sim:
        return ""
    names = {v["uuid"]: v["name"] for v in result["workloads"]}
    measured = by_policy(result)
    out = ["replay of none's frames in the simulator, beside what was measured:",
           "policy          f mean (sd)          frames/s",
           "             measured    replayed     measured -> replayed"]
    for run in sim["runs"]:
        m = measured.get(run["policy"])
        fps = dict(zip(names, m["fps"])) if m else {}
        rates = []
        for v in sorted(run["vms"], key=lambda v: names.get(v["name"], v["name"])):
            have = fps.get(v["name"])
            rates.append(f"{names.get(v['name'], v['name'])} {fmt(have, '.1f')}"
                         f" -> {fmt(v['fps'], '.1f')}")
        out.append(f"{run['policy']:11} "
                   f"{fmt(m and m['f_mean'], '.3f'):>6} "
                   f"({fmt(m and m['f_std'], '.2f')})  "
                   f"{fmt(run['mean'], '.3f'):>6} ({fmt(run['std'], '.2f')})   "
                   + "   ".join(rates))
    return "\n".join(out)


# ---- plot ----

COLOURS = ["#c0392b", "#2471a3", "#1e8449", "#7d3c98", "#b9770e"]


def rows(values):
    return "\n".join(" ".join("NaN" if x is None else f"{x:.6g}" for x in r)
                     for r in values)


def plot_data(result, records, info):
    """Blocks of text for gnuplot: means of policies, single turns, the promise.

    Columns of the first two: number of the policy, f, best f, then the rate and the p99
    frame time of each VM; of the last: seconds, rate, spoilt or not.
    """
    means, turns = [], []
    for x, run in enumerate(result["runs"]):
        for to, figures in [(means, run)] + [(turns, t) for t in run["turns"]]:
            to.append([x, figures["f_mean"], figures["feasible_best"],
                       *sum(zip(figures["fps"], figures["p99_ms"]), ())])
    promised = []
    p = info.get("promise")
    if p:
        allocator = info["policies"][p["policy"]]["allocator"]
        for r in in_turn(records, dict(p, start_s=p["before"]["start_s"]), allocator):
            promised.append([r["time_s"] - p["promised_s"],
                             number(r["vgpus"].get(p["vgpu"], {}).get("fps"))])
    return "\n\n\n".join(rows(b) for b in (means, turns, promised or [[0, None]])) + "\n"


def clustered(vgpus, column, data):
    """A box per policy and VM, with a dot for each turn."""
    plots = []
    width = 0.8 / len(vgpus)
    for i, v in enumerate(vgpus):
        at = f"($1+{(i - (len(vgpus) - 1) / 2) * width:.4f})"
        name = "  ".join(x for x in (v["name"], v.get("client"), v.get("mode", "")) if x)
        plots.append(f"'{data}' index 0 using {at}:{column + 2 * i}:({width * 0.9:.4f}) "
                     f"with boxes fillstyle solid 0.55 noborder linecolor rgb "
                     f"'{COLOURS[i % 5]}' title '{name}'")
        plots.append(f"'{data}' index 1 using {at}:{column + 2 * i} with points "
                     f"pointtype 7 pointsize 0.5 linecolor rgb '#333333' notitle")
    return plots


def frame_times_panel(info, result, data):
    """The lines for the second panel; it is empty without a trace."""
    if not any(known(run["p99_ms"]) for run in result["runs"]):
        return ["set multiplot next"]
    return ["set title 'Frame time that 99 of 100 frames do not exceed'",
            "set ylabel 'milliseconds'",
            "set key top right",
            "plot " + ", \\\n ".join(clustered(info["vgpus"], 5, data))]


def gnuplot_script(info, result, data, png):
    names = ", ".join(f"'{r['policy']}' {x}" for x, r in enumerate(result["runs"]))
    n = len(result["runs"])
    s = [
        "set terminal pngcairo size 1280,900 font 'DejaVu Sans,12' "
        "background '#ffffff'",
        f"set output '{png}'",
        "set encoding utf8",
        "set multiplot layout 2,2",
        "set grid ytics back linetype 1 linewidth 1 linecolor rgb '#dddddd'",
        "set tics nomirror",
        "set border 3",
        f"set xrange [-0.6:{n - 0.4}]",
        f"set xtics ({names})",
        "set key top left reverse Left samplen 1",
        "set title 'Frame rate (dots: single turns)'",
        "set ylabel 'frames per second'",
        "set yrange [0:*]",
        "set offsets 0, 0, graph 0.25, 0",
        "plot " + ", \\\n ".join(clustered(info["vgpus"], 4, data)),
        *frame_times_panel(info, result, data),
        "set title 'Fairness (higher is fairer)'",
        "set ylabel 'fairness f on dominant shares'",
        "set yrange [*:*]",
        "set offsets 0, 0, graph 0.1, graph 0.25",
        "set key bottom right",
        f"plot '{data}' index 0 using ($1-0.3):3:(0.6):(0) with vectors nohead "
        "linewidth 2 dashtype 2 linecolor rgb '#888888' "
        "title 'best that the VMs could have reached', \\\n"
        f" '{data}' index 0 using ($1-0.3):2:(0.6):(0) with vectors nohead linewidth 4 "
        "linecolor rgb '#6c3483' title 'mean', \\\n"
        f" '{data}' index 1 using 1:2 with points pointtype 7 pointsize 0.7 linecolor rgb "
        "'#e59866' title 'single turns'",
    ]
    p = info.get("promise")
    if p:
        colour = COLOURS[[v["uuid"] for v in info["vgpus"]].index(p["vgpu"]) % 5]
        s += [
            f"set title 'Promise: gpuctl ctl sla {p['name']} floor {p['floor_fps']}'",
            "set ylabel 'frames per second'",
            "set xlabel 'seconds since the promise'",
            "set xrange [*:*]",
            "set xtics auto",
            "set yrange [0:*]",
            "set offsets 0, 0, graph 0.1, 0",
            "set arrow 1 from 0, graph 0 to 0, graph 1 nohead dashtype 2 "
            "linecolor rgb '#555555'",
            f"plot (x < 0 ? 1/0 : {p['floor_fps']}) with lines linewidth 2 dashtype 2 "
            f"linecolor rgb '#555555' title 'promised', \\\n"
            f" '{data}' index 2 using 1:2 with linespoints linewidth 2 pointtype 7 "
            f"pointsize 0.6 linecolor rgb '{colour}' "
            f"title '{p['name']}, each second'",
        ]
    s.append("unset multiplot")
    return "\n".join(s) + "\n"


def plot(directory, records, info, result):
    data = os.path.join(directory, "plot.dat")
    script = os.path.join(directory, "plot.gp")
    with open(data, "w", encoding="utf-8") as f:
        f.write(plot_data(result, records, info))
    with open(script, "w", encoding="utf-8") as f:
        f.write(gnuplot_script(info, result, data, os.path.join(directory, "plot.png")))
    try:
        done = subprocess.run(["gnuplot", script], capture_output=True,
                              text=True, check=False)
    except FileNotFoundError as e:
        raise ReportError("gnuplot is missing; run: make deps") from e
    if done.returncode:
        raise ReportError(f"gnuplot: {done.stderr.strip()}")


def read_lines(path):
    with open(path, encoding="utf-8") as f:
        return f.readlines()


def main(argv):
    if len(argv) != 2 or argv[1].startswith("-"):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    directory = argv[1]
    try:
        info = json.loads("".join(read_lines(os.path.join(directory, "turns.json"))))
        records = read_log(read_lines(os.path.join(directory, "mgpud.log")))
        waits = os.path.join(directory, "waits.csv")
        if os.path.exists(waits):
            add_waits(records, read_lines(waits), info["cpus"])
        path = os.path.join(directory, "trace.csv")
        frames = []
        if os.path.exists(path):
            trace = read_trace([x.rstrip("\n") for x in read_lines(path)])
            frames = trace[2]
            split_trace(directory, trace, info)
        result = summarise(records, frames, info)
        sim = replay(directory, records, info)
        if sim:
            result["replay"] = [{"policy": r["policy"], "mean": r["mean"],
                                 "std": r["std"]} for r in sim["runs"]]
        with open(os.path.join(directory, "result.json"), "w",
                  encoding="utf-8") as f:
            json.dump(result, f, indent=2)
            f.write("\n")
        for text in (table(result), shares_table(result), costs(result), gains_table(result),
                     replay_table(result, sim), words(result)):
            if text:
                print(text + "\n")
        if not known(run["f_mean"] for run in result["runs"]):
            raise ReportError("no second counts, all were left out; see above, and run the "
                              "demo while the machine does less")
        plot(directory, records, info, result)
    except (OSError, ValueError, KeyError, ReportError) as e:
        print(f"report: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
