#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Turn a demo's measurements into a table, a plot and result.json.

usage: tools/demo/report.py DIR

DIR has what tools/demo/in-host left there:

  mgpud.log    one JSON object per line and period, as mgpud writes it
  phases.json  which time belongs to which allocator, what ran, and on which GPU
  trace-none.csv  what every frame cost without control; may be missing

Only periods that lie inside a phase and ran under its allocator are counted; the
time after each switch of allocator is not part of a phase (settle_s). f is that of
all the VMs: a period in which one of them showed no frame has none, and is
counted as such (periods_without_fds) instead of as one with fewer VMs.

Written to DIR: result.json, plot.png and the plot's data, and replay.json, what
the simulator made of the trace. The standard deviations are those of a sample
(n - 1). A gain is the part of |f| that an allocator takes away.
"""
import json
import math
import os
import statistics
import subprocess
import sys

WINDOW = 30                 # intervals of the moving average
PUBLISHED = {"none": 0.115, "vgasa": 0.45}      # gains of the source's FEA
VGASA_FPS = 30
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SIM = os.path.join(os.environ.get("BUILD", os.path.join(TOP, "build")),
                   "sim", "mgpu-sim")


class ReportError(Exception):
    pass


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
    return records


def number(value):
    """value if it is a finite number, else None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if math.isfinite(value) else None


def mean(values):
    return statistics.fmean(values) if values else None


def std(values):
    return statistics.stdev(values) if len(values) > 1 else None


def in_phase(records, phase):
    return [r for r in records
            if phase["start_s"] < r["time_s"] <= phase["end_s"]
            and r.get("allocator") == phase["allocator"]]


def fairness(record, vgpus, key="fds"):
    """f of a period, None unless every VM was active in it."""
    for v in vgpus:
        if record["vgpus"].get(v["uuid"], {}).get("state") != "active":
            return None
    return number(record.get(key))


def moving_average(values, window=WINDOW):
    """Mean of the last window values that are known, None before then."""
    out = []
    known = []
    for v in values:
        if v is not None:
            known.append(v)
        out.append(mean(known[-window:]) if len(known) >= window else None)
    return out


def series(records, uuid, key):
    values = (number(r["vgpus"].get(uuid, {}).get(key)) for r in records)
    return [v for v in values if v is not None]


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


def summarise_phase(records, phase, vgpus):
    part = in_phase(records, phase)
    if not part:
        raise ReportError(f"the log has no period under allocator "
                          f"'{phase['allocator']}' between {phase['start_s']} and "
                          f"{phase['end_s']} s")
    fds = [fairness(r, vgpus) for r in part]
    known = [f for f in fds if f is not None]
    optimal = [f for f in (fairness(r, vgpus, "fds_optimal") for r in part)
               if f is not None]
    run = {
        "allocator": phase["allocator"],
        "seconds": round(phase["end_s"] - phase["start_s"], 3),
        "fds_mean": mean(known),
        "fds_std": std(known),
        "fds_optimal_mean": mean(optimal),
        "periods": len(part),
        "periods_without_fds": len(fds) - len(known),
        "vgpus": [],
    }
    for v in vgpus:
        uuid = v["uuid"]
        run["vgpus"].append({
            "uuid": uuid,
            "name": v.get("name", uuid),
            "fps": mean(series(part, uuid, "fps")),
            "fps_std": std(series(part, uuid, "fps")),
            "gpu_share": mean(series(part, uuid, "gpu_share")),
            "cpu_share": mean(series(part, uuid, "cpu_share")),
            "cpu_s_per_frame": per_frame(part, uuid, "cpu_s_per_frame"),
            "gpu_s_per_frame": per_frame(part, uuid, "gpu_s_per_frame"),
        })
    return run


def summarise(records, info):
    return {
        "cpus": info["cpus"],
        "kernel": info.get("kernel"),
        "gpu": info.get("gpu", "soft"),
        "device": info.get("device"),
        "settle_s": info.get("settle_s"),
        "workloads": info["vgpus"],
        "runs": [summarise_phase(records, p, info["vgpus"])
                 for p in info["phases"]],
    }


def gain(run, base):
    """Part of |f| that run has less than base, None when one is not known."""
    if run["fds_mean"] is None or not base or not base["fds_mean"]:
        return None
    return (run["fds_mean"] - base["fds_mean"]) / abs(base["fds_mean"])


def error(run):
    """Standard error of a mean f, as if its periods were independent."""
    n = run["periods"] - run["periods_without_fds"]
    if run["fds_std"] is None or run["fds_mean"] is None or n < 2:
        return None
    return run["fds_std"] / math.sqrt(n)


def gain_error(run, base):
    """Two standard errors of a gain, None when they are not known."""
    if not base or gain(run, base) is None or None in (error(run), error(base)):
        return None
    return 2 * math.hypot(error(run), error(base)) / abs(base["fds_mean"])


def add_gains(result):
    by_allocator = {run["allocator"]: run for run in result["runs"]}
    for run in result["runs"]:
        for base in PUBLISHED:
            run[f"gain_over_{base}"] = gain(run, by_allocator.get(base))
            run[f"gain_error_{base}"] = gain_error(run, by_allocator.get(base))


# ---- replay ----

def engine_on_cpu(info):
    """Is engine time CPU time of the host?  It is where nothing else is said."""
    return (info.get("device") or {}).get("engine_on_cpu", True)


def host_cpus(part, cpus, engines=True):
    """CPUs that neither VMs nor, if they are on CPUs, engines could have had."""
    used = []
    for r in part:
        cpu = number(r.get("capacity", {}).get("cpu"))
        gpu = sum(number(v.get("gpu_share")) or 0
                  for v in r["vgpus"].values()) if engines else 0
        if cpu is not None:
            used.append(cpus - cpu - gpu)
    return max(0.0, min(mean(used) or 0.0, cpus - 0.5))


def replay(directory, records, info):
    """Simulate the trace without control; None if there is no trace."""
    trace = os.path.join(directory, "trace-none.csv")
    phase = next((p for p in info["phases"] if p["allocator"] == "none"), None)
    if not phase or not os.path.exists(trace) or not os.path.exists(SIM):
        return None
    path = os.path.join(directory, "replay.json")
    on_cpu = engine_on_cpu(info)
    host = host_cpus(in_phase(records, phase), info["cpus"], on_cpu)
    done = subprocess.run(
        [SIM, "--trace", trace, "--cpus", str(info["cpus"]), "--host-cpus",
         f"{host:.4f}", *(["--engines-on-cpus"] if on_cpu else []),
         "--json", path],
        capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReportError(f"the trace cannot be replayed: {done.stderr.strip()}")
    with open(path, encoding="utf-8") as f:
        return json.load(f)


# ---- text ----

def fmt(value, form, scale=1):
    return "-" if value is None else format(value * scale, form)


def table(result):
    out = []
    names = {v["uuid"]: v for v in result["workloads"]}
    out.append("allocator VM  screen       frames/s          share of       "
               "ms per frame     fairness f")
    out.append("                           mean     sd     GPU    CPU      GPU"
               "      CPU      mean     sd   best")
    for run in result["runs"]:
        out.append("-" * 94)
        for i, v in enumerate(run["vgpus"]):
            line = (f"{run['allocator'] if i == 0 else '':9} "
                    f"{v['name']:3} "
                    f"{names[v['uuid']].get('mode', ''):9} "
                    f"{fmt(v['fps'], '.1f'):>8} "
                    f"{fmt(v['fps_std'], '.1f'):>6} "
                    f"{fmt(v['gpu_share'], '.1f', 100):>6}% "
                    f"{fmt(v['cpu_share'], '.1f', 100):>5}% "
                    f"{fmt(v['gpu_s_per_frame'], '.2f', 1e3):>8} "
                    f"{fmt(v['cpu_s_per_frame'], '.2f', 1e3):>8} ")
            if i == 0:
                line += (f" {fmt(run['fds_mean'], '8.3f'):>8} "
                         f"{fmt(run['fds_std'], '6.3f'):>6} "
                         f"{fmt(run['fds_optimal_mean'], '6.3f'):>6}")
            out.append(line.rstrip())
    out.append("-" * 94)
    for run in result["runs"]:
        if run["periods_without_fds"]:
            out.append(f"{run['allocator']}: in {run['periods_without_fds']} of "
                       f"{run['periods']} periods a VM showed no frame; they "
                       f"have no f and are left out of its mean")
    clients = [f"{v['name']}: {v['client']}" for v in result["workloads"]
               if v.get("client")]
    if clients:
        out.append(", ".join(clients))
    out.append("f: the higher (nearer to 0) the fairer; best: what the optimal "
               "rates of the same\nseconds would score, the mean over them. "
               "Shares: of what all VMs together can have.")
    return "\n".join(out)


def percent(value):
    return "-" if value is None else f"{value * 100:+.1f} %"


def gains(result):
    out = ["gain in f         measured (+/- 2 s.e.)   published"]
    for base, published in PUBLISHED.items():
        for run in result["runs"]:
            if run["allocator"] in PUBLISHED or run[f"gain_over_{base}"] is None:
                continue
            note = "up to " if base == "vgasa" else ""
            around = run[f"gain_error_{base}"]
            out.append(f"{run['allocator']:6} over {base:6} "
                       f"{percent(run[f'gain_over_{base}']):>8} "
                       f"(+/- {fmt(around, '.1f', 100)} %)        {note}"
                       f"{published * 100:.1f} %, FEA"
                       + ("" if around is None or
                          abs(run[f"gain_over_{base}"]) > around
                          else "; no difference that can be told from chance"))
    return "\n".join(out) if len(out) > 1 else ""


def dominant(v):
    return max(((v["gpu_share"], "GPU"), (v["cpu_share"], "CPU")),
               key=lambda x: x[0] or 0)


def reasons(result):
    """Why the gain over none is what it is, from the figures."""
    by_allocator = {run["allocator"]: run for run in result["runs"]}
    none = by_allocator.get("none")
    if not none or none["fds_mean"] is None or none["fds_optimal_mean"] is None:
        return ""
    first = none["vgpus"][0]
    costs = []
    for v in none["vgpus"]:
        if None in (v["cpu_s_per_frame"], v["gpu_s_per_frame"]):
            return ""
        ratio = [v[k] / first[k] if first[k] else 0
                 for k in ("cpu_s_per_frame", "gpu_s_per_frame")]
        share, what = dominant(v)
        costs.append(f"  {v['name']}: {v['cpu_s_per_frame'] * 1e3:.1f} ms of CPU and "
                     f"{v['gpu_s_per_frame'] * 1e3:.1f} ms of GPU ({ratio[0]:.2f} and "
                     f"{ratio[1]:.2f} times {first['name']}'s); has "
                     f"{share * 100:.0f} % of the {what}")
    room = (none["fds_optimal_mean"] - none["fds_mean"]) / abs(none["fds_mean"])
    out = ["what a frame costs, and each VM's dominant share, without control:"]
    out += costs
    out.append(f"Without control f is {none['fds_mean']:.3f}; the best rates of the "
               f"same seconds would have\nscored {none['fds_optimal_mean']:.3f}. So "
               f"{room * 100:.1f} % is the most that any allocator can gain here.")
    if room < PUBLISHED["none"]:
        out.append("That is below the published gain: this host's scheduler and the "
                   "engine's order are\nnearly fair by themselves, which the source's "
                   "were not.")
    best = none["fds_optimal_mean"]
    for run in result["runs"]:
        if run["allocator"] in PUBLISHED or run["fds_mean"] is None:
            continue
        if run["fds_optimal_mean"] is not None:
            lost = (run["fds_optimal_mean"] - run["fds_mean"]) / abs(run["fds_mean"])
            moved = (run["fds_optimal_mean"] - best) / abs(best)
            out.append(f"{run['allocator']}: {lost * 100:.1f} % below the best of its own "
                       f"seconds, whose best was {percent(moved)}\nagainst that of "
                       f"none's (costs differ from phase to phase).")
    vgasa = by_allocator.get("vgasa")
    slow = all(v["fps"] is not None and v["fps"] < VGASA_FPS for v in none["vgpus"])
    if vgasa and slow:
        out.append(f"No VM reached {VGASA_FPS} frames/s without control, so vgasa's cap "
                   f"held back next to nothing,\nand the gain over it is about that "
                   f"over none.")
    return "\n".join(out)


def replay_table(result, sim, info):
    """Measured and replayed, side by side."""
    if not sim:
        return ""
    names = {v["uuid"]: v["name"] for v in info["vgpus"]}
    measured = {run["allocator"]: run for run in result["runs"]}
    out = ["replay of none's frames in the simulator, beside what was measured:",
           "allocator        f mean (sd)          frames/s",
           "             measured    replayed     measured -> replayed"]
    for run in sim["runs"]:
        m = measured.get(run["policy"])
        fps = {v["uuid"]: v["fps"] for v in m["vgpus"]} if m else {}
        rates = []
        for v in sorted(run["vms"], key=lambda v: names.get(v["name"], v["name"])):
            have = fps.get(v["name"])
            rates.append(f"{names.get(v['name'], v['name'])} {fmt(have, '.1f')}"
                         f" -> {fmt(v['fps'], '.1f')}")
        out.append(f"{run['policy']:11} "
                   f"{fmt(m and m['fds_mean'], '.3f'):>6} "
                   f"({fmt(m and m['fds_std'], '.2f')})  "
                   f"{fmt(run['mean'], '.3f'):>6} ({fmt(run['std'], '.2f')})   "
                   + "   ".join(rates))
    out.append(f"{sim['simulated_s']:.0f} s were simulated in "
               f"{sim['cpu_s'] * 1e3:.0f} ms.")
    return "\n".join(out)


# ---- plot ----

def plot_data(records, info):
    """Rows of text for gnuplot: one block per phase, with its settling."""
    uuids = [v["uuid"] for v in info["vgpus"]]
    origin = info["phases"][0]["start_s"] - info.get("settle_s", 0)
    blocks = []
    for phase in info["phases"]:
        rows = []
        part = in_phase(records, phase)
        average = moving_average([fairness(r, info["vgpus"]) for r in part])
        counted = {id(r): a for r, a in zip(part, average)}
        whole = dict(phase, start_s=phase["start_s"] - info.get("settle_s", 0))
        for r in in_phase(records, whole):
            a = counted.get(id(r))
            values = [r["time_s"] - origin]
            values += [number(r["vgpus"].get(u, {}).get("fps")) for u in uuids]
            values += [fairness(r, info["vgpus"]), a,
                       fairness(r, info["vgpus"], "fds_optimal")]
            rows.append(" ".join("NaN" if x is None else f"{x:.6g}"
                                 for x in values))
        blocks.append("\n".join(rows))
    return "\n\n\n".join(blocks) + "\n", origin


COLOURS = ["#c0392b", "#2471a3", "#1e8449", "#7d3c98", "#b9770e"]


def gnuplot_script(info, result, origin, data, png):
    n = len(info["vgpus"])
    settle = info.get("settle_s", 0)
    last = info["phases"][-1]["end_s"] - origin
    fds = n + 2
    blocks = len(info["phases"])
    s = [
        "set terminal pngcairo size 1280,900 font 'DejaVu Sans,12' "
        "background '#ffffff'",
        f"set output '{png}'",
        "set encoding utf8",
        "set multiplot layout 2,1",
        f"set xrange [0:{last:.3f}]",
        "set lmargin 10",
        f"set rmargin {33 if any(v.get('client') for v in info['vgpus']) else 24}",
        "set tmargin 5",
        "set grid ytics back linetype 1 linewidth 1 linecolor rgb '#dddddd'",
        "set key outside right top Left reverse samplen 2",
        "set tics nomirror",
        "set border 3",
    ]
    for i, phase in enumerate(info["phases"]):
        start = phase["start_s"] - origin
        end = phase["end_s"] - origin
        s.append(f"set object {2 * i + 1} rectangle from {start - settle:.3f},"
                 f"graph 0 to {start:.3f},graph 1 fillcolor rgb '#eeeeee' "
                 f"fillstyle solid noborder behind")
        if i:
            s.append(f"set arrow {i} from {start - settle:.3f},graph 0 to "
                     f"{start - settle:.3f},graph 1 nohead linecolor rgb "
                     f"'#555555' front")
        s.append(f"set label {i + 1} 'allocator: {phase['allocator']}' at "
                 f"{(start + end) / 2:.3f},graph 1.05 center font ',13'")
    s += [
        "set title 'Frame rate of each VM' offset 0,1.2",
        "set ylabel 'frames per second'",
        "set yrange [0:*]",
        "unset xlabel",
    ]
    plots = []
    for b in range(blocks):
        for i, v in enumerate(info["vgpus"]):
            name = "  ".join(x for x in (v["name"], v.get("client"),
                                         v.get("mode", "")) if x)
            title = f"title '{name}'" if b == 0 else "notitle"
            plots.append(f"'{data}' index {b} using 1:{i + 2} with lines "
                         f"linewidth 2 linecolor rgb '{COLOURS[i % 5]}' {title}")
    s.append("plot " + ", \\\n ".join(plots))
    for i, run in enumerate(result["runs"]):
        start = info["phases"][i]["start_s"] - origin
        end = info["phases"][i]["end_s"] - origin
        s.append(f"set label {i + 1} 'mean {fmt(run['fds_mean'], '.3f')}, "
                 f"s.d. {fmt(run['fds_std'], '.3f')}' at "
                 f"{(start + end) / 2:.3f},graph 1.05 center font ',11'")
    s += [
        "set title 'Fairness of each second (higher is fairer)' offset 0,1.2",
        "set ylabel 'fairness f on dominant shares'",
        "set xlabel 'time in seconds (grey: settling, not counted)'",
        "set yrange [*:*]",
        "set offsets graph 0, 0, graph 0.05, graph 0.05",
    ]
    plots = []
    for b in range(blocks):
        first = b == 0
        plots.append(f"'{data}' index {b} using 1:{fds + 2} with lines "
                     f"linewidth 1 dashtype 2 linecolor rgb '#888888' "
                     + ("title 'best possible'" if first else "notitle"))
        plots.append(f"'{data}' index {b} using 1:{fds} with points pointtype 7 "
                     f"pointsize 0.6 linecolor rgb '#e59866' "
                     + ("title 'each second'" if first else "notitle"))
        plots.append(f"'{data}' index {b} using 1:{fds + 1} with lines "
                     f"linewidth 3 linecolor rgb '#6c3483' "
                     + (f"title 'mean of last {WINDOW}'" if first
                        else "notitle"))
    s.append("plot " + ", \\\n ".join(plots))
    s.append("unset multiplot")
    return "\n".join(s) + "\n"


def plot(directory, records, info, result):
    data = os.path.join(directory, "plot.dat")
    script = os.path.join(directory, "plot.gp")
    png = os.path.join(directory, "plot.png")
    text, origin = plot_data(records, info)
    with open(data, "w", encoding="utf-8") as f:
        f.write(text)
    with open(script, "w", encoding="utf-8") as f:
        f.write(gnuplot_script(info, result, origin, data, png))
    try:
        done = subprocess.run(["gnuplot", script], capture_output=True,
                              text=True, check=False)
    except FileNotFoundError as e:
        raise ReportError("gnuplot is missing; run: make deps") from e
    if done.returncode:
        raise ReportError(f"gnuplot: {done.stderr.strip()}")


def main(argv):
    if len(argv) != 2 or argv[1].startswith("-"):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    directory = argv[1]
    try:
        with open(os.path.join(directory, "phases.json"),
                  encoding="utf-8") as f:
            info = json.load(f)
        with open(os.path.join(directory, "mgpud.log"), encoding="utf-8") as f:
            records = read_log(f.readlines())
        result = summarise(records, info)
        add_gains(result)
        sim = replay(directory, records, info)
        if sim:
            result["replay"] = [{"allocator": r["policy"], "mean": r["mean"],
                                 "std": r["std"]} for r in sim["runs"]]
        with open(os.path.join(directory, "result.json"), "w",
                  encoding="utf-8") as f:
            json.dump(result, f, indent=2)
            f.write("\n")
        for text in (table(result), gains(result), reasons(result),
                     replay_table(result, sim, info)):
            if text:
                print(text + "\n")
        plot(directory, records, info, result)
    except (OSError, ValueError, KeyError, ReportError) as e:
        print(f"report: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
