# SPDX-License-Identifier: GPL-2.0-only
"""What the VMs of the pool's demo do: an hour of work, played against mgpu-poold."""
import random

# Name, models of GPUs, and number of VMs
HOSTS = (("node1", ("NVIDIA L40S",) * 4, 7), ("node2", ("NVIDIA RTX A5000",) * 4, 7),
         ("node3", ("AMD Instinct MI210",) * 2, 4))
# Memory in MiB, power in W, and how much faster than an RTX A5000 it is, of each model.
MODELS = {"NVIDIA L40S": (46068, 300, 1.7), "NVIDIA RTX A5000": (24564, 210, 1.0),
          "AMD Instinct MI210": (65536, 280, 1.4)}
PROJECTS = (("vision", 200), ("speech", 100), ("design", 100))
# Of each kind of work: seconds on an RTX A5000, part of the time in which the GPU is busy, how many
# of ten users forget to give the GPU back.
KINDS = {"training": (840, 0.93, 1), "inference": (300, 0.45, 0), "rendering": (420, 0.7, 1),
         "notebook": (540, 0.25, 5)}
PAUSE_S = 200               # mean time between two requests of a VM
REPORT_S = 60               # between two reports of use
HOLDING = ("attaching", "active", "releasing")


def vm_names():
    """Names of each host's VMs; a host has VMs of all projects."""
    names, number = {}, {name: 0 for name, _ in PROJECTS}
    for host, _, vms in HOSTS:
        names[host] = []
        for _ in range(vms):
            project = PROJECTS[sum(number.values()) % len(PROJECTS)][0]
            number[project] += 1
            names[host].append(f"{project}-{number[project]}")
    return names


class Clock:
    """The clock of clock.c: time that goes SPEED times as fast until it is the real time."""

    def __init__(self, real, minutes, seconds):
        self.loaded = real
        self.speed = 1 + round(minutes * 60 / seconds)
        self.begin = real - (self.speed - 1) * seconds

    def at(self, real):
        return min(real, self.begin + (real - self.loaded) * self.speed)

    def caught_up(self, real):
        return self.at(real) >= real

    def setting(self):
        """MGPU_DEMO_CLOCK"""
        return f"{int(self.begin * 1e9)} {self.speed}"


class Vm:
    """A VM: it asks, works, and gives the GPU back or forgets to.

    @pool: calls of the service: ask(vm, key, kind), release(request), use(request, ...)
    """

    def __init__(self, name, pool, rng, now):
        self.name = name
        self.pool = pool
        self.rng = rng
        self.number = 0
        self.request = None     # number of the open request
        self.kind = None
        self.forgets = False
        self.work_s = 0         # on an RTX A5000
        self.done_s = 0         # of it
        self.busy_s = 0
        self.seen = None        # when it was looked at last while the GPU was there
        self.reported = None
        self.next = now + rng.expovariate(1 / PAUSE_S)

    def step(self, now, rows, haste=1):
        """Do what is due at a time.

        @rows: open requests by number
        @haste: work takes so many times less
        """
        r = rows.get(self.request)
        if self.request and not r:
            self.request = None
            self.next = now + self.rng.expovariate(haste / PAUSE_S)
        elif not self.request and now >= self.next:
            self.ask()
        elif r and r["state"] == "active":
            self.work(now, r, haste)

    def ask(self):
        self.number += 1
        self.kind = self.rng.choices(list(KINDS), (4, 3, 2, 2))[0]
        self.forgets = self.rng.random() * 10 < KINDS[self.kind][2]
        self.work_s = KINDS[self.kind][0] * self.rng.uniform(0.6, 1.4)
        self.done_s = self.busy_s = 0
        self.seen = self.reported = None
        self.request = self.pool.ask(self.name, f"{self.name}-{self.number}", self.kind)

    def work(self, now, r, haste):
        memory, watts, speed = MODELS.get(r["model"], (0, 0, 1))
        passed = max(0, now - max(self.seen or 0, r["attached"]))
        self.seen = now
        if self.done_s < self.work_s:
            self.done_s += passed * speed * haste
            self.busy_s += passed * KINDS[self.kind][1]
        if self.reported is None or now - self.reported >= REPORT_S / haste:
            self.reported = now
            self.pool.use(r, self.busy_s, self.busy_s * watts, memory * 2 // 5)
        if self.done_s >= self.work_s and not self.forgets:
            self.pool.use(r, self.busy_s, self.busy_s * watts, memory * 2 // 5)
            self.pool.release(r)


def summary(rows, end, gpus, since):
    """Figures of what was played.

    @rows: all requests; @end: time of the service; @gpus: number of GPUs; @since: begin
    """
    waits = sorted(r["attached"] - r["asked"] for r in rows if r["attached"])
    held = sum((r["ended"] or end) - r["attached"] for r in rows if r["attached"])
    return {"requests": len(rows), "attached": len(waits),
            "released": sum(r["state"] == "released" for r in rows),
            "failed": sum(r["state"] == "failed" for r in rows),
            "waiting": sum(r["state"] == "queued" for r in rows),
            "in_use": sum(r["state"] in HOLDING for r in rows),
            "taken_back_idle": sum(r["state"] == "released" and "idle" in r["why"] for r in rows),
            "by_history": sum(r["why"].startswith("history:") for r in rows),
            "wait_p50_s": waits[len(waits) // 2] if waits else None,
            "wait_most_s": waits[-1] if waits else None,
            "lent": held / (gpus * (end - since)) if end > since else None}


def lines(figures):
    """The summary as text."""
    yield (f"{figures['requests']} requests: {figures['released']} released, "
           f"{figures['in_use']} have a GPU, {figures['waiting']} wait, {figures['failed']} failed")
    if figures["attached"]:
        yield (f"wait for a GPU: {figures['wait_p50_s']} s in the median, "
               f"{figures['wait_most_s']} s at most; GPUs were lent for "
               f"{figures['lent']:.0%} of the time")
    yield f"taken back because they were idle: {figures['taken_back_idle']} GPUs"


def generators(names, pool, now, seed=22):
    """VMs that work, each with random numbers of its own."""
    return [Vm(vm, pool, random.Random(f"{seed} {vm}"), now)
            for vms in names.values() for vm in vms]
