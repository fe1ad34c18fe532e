# SPDX-License-Identifier: GPL-2.0-only
"""Arithmetic of the pool's bench: from what was measured to figures, aims and tables."""
import math

P99_MS = 1000               # on top of what libvirt and the guest take
MEMORY_MIB = 64
CPU = 0.05
UTILISATION = 1.5           # times static assignment's


def quantile(values, part):
    """Return the least value that a part of all values does not exceed; None without values."""
    if not values:
        return None
    return sorted(values)[max(0, math.ceil(part * len(values)) - 1)]


def latency(samples_ms, host):
    """Figures of requests.

    @samples_ms: from each request to the answer that its GPU is attached
    @host: of attachments alone: milliseconds from job to answer, and in libvirt
    """
    answers, libvirt = [h[0] for h in host], [h[1] for h in host]
    p99, host_p99 = quantile(samples_ms, 0.99), quantile(answers, 0.99)
    return {"requests": len(samples_ms), "p50_ms": quantile(samples_ms, 0.5), "p99_ms": p99,
            "most_ms": max(samples_ms), "libvirt_ms": quantile(libvirt, 0.5),
            "libvirt_p99_ms": quantile(libvirt, 0.99), "host_p50_ms": quantile(answers, 0.5),
            "host_p99_ms": host_p99, "on_top_p99_ms": p99 - host_p99}


def replay(measured):
    """Rows of the replay, and utilisation against static assignment."""
    rows = measured["replay"]
    by_policy = {row["policy"]: row["utilisation"] for row in rows}
    out = {**measured, "over_static": {}}
    for policy in ("static-equal", "static-peak", "first-fit"):
        if by_policy.get(policy):
            out["over_static"][policy] = by_policy["history"] / by_policy[policy]
    return out


def interval(before, after):
    """Figures of a service between two looks (seconds, CPU ns, transactions of its database)."""
    seconds = after["at"] - before["at"]
    return {"seconds": seconds, "cpu": (after["cpu_ns"] - before["cpu_ns"]) / 1e9 / seconds,
            "rss_mib": after["rss"] / 2**20,
            "commits_per_s": (after["commits"] - before["commits"]) / seconds}


def perf_counts(text):
    """Counts of perf stat -x; None for an event that is not supported here."""
    counts = {}
    for line in text.splitlines():
        fields = line.split(",")
        if len(fields) > 2 and fields[2]:
            name = fields[2].split(":")[-2 if fields[2].endswith((":u", ":k")) else -1]
            counts[name] = int(fields[0]) if fields[0].isdigit() else None
    return counts


def aims(result):
    """Yield (what, figure, aim, whether it is met) for all that was measured."""
    for row in result.get("latency", []):
        if "p99_ms" in row:
            what = f"{row['concurrent']} at once, {row['hosts']}: ms on top of the host, 99 %"
            yield what, row["on_top_p99_ms"], P99_MS, row["on_top_p99_ms"] <= P99_MS
    ratio = result.get("replay", {}).get("over_static", {}).get("static-peak")
    if ratio:
        yield "utilisation, times static assignment's", ratio, UTILISATION, ratio >= UTILISATION
    ratio = result.get("replay", {}).get("over_static", {}).get("static-equal")
    if ratio:
        yield ("utilisation, times that of static assignment of as many GPUs", ratio, UTILISATION,
               ratio >= UTILISATION)
    cost = result.get("cost", {})
    if cost.get("states"):
        memory = max(state["rss_mib"] for state in cost["states"])
        yield "MiB of mgpu-poold", memory, MEMORY_MIB, memory <= MEMORY_MIB
        for state in cost["states"]:
            yield f"part of a processor, {state['state']}", state["cpu"], CPU, state["cpu"] < CPU
    crashes = result.get("crashes", {})
    if "tried" in crashes:
        bad = crashes["lost"] + crashes["twice"]
        yield f"lost or served twice in {crashes['tried']} crashes", bad, 0, bad == 0


def merge(old, new, part):
    """Figures with those of older parts: a part that was measured now is new, or it failed."""
    failed = {**old.get("failed", {}), **new.get("failed", {})}
    if "failed" not in new:
        failed.pop(part, None)
    out = {**old, **new, "failed": failed}
    if not failed:
        del out["failed"]
    return out
