# SPDX-License-Identifier: GPL-2.0-only
"""A service of a test that answers as ctl/pool/openapi.yaml says, with hosts that are played."""

import http.server
import json
import os
import random
import re
import secrets
import threading
import time
import urllib.parse

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = os.path.join(TOP, "ctl", "pool", "page")
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".js": "text/javascript; charset=utf-8"}
OPEN = ("queued", "attaching", "active", "releasing")
HOLDING = ("attaching", "active", "releasing")
WISHES = {"project": None, "target": "any", "precision": "any", "size_mib": 0, "memory_mib": None,
          "capabilities": [], "type": None, "weight": None, "floor_fps": None, "lease_s": None}


def page_policy():
    """Content-Security-Policy of the page, as the program sends it."""
    with open(os.path.join(TOP, "ctl", "pool", "page.h"), encoding="utf-8") as f:
        macro = re.search(r"#define PAGE_POLICY((?:[^\n]*\\\n)*[^\n]*)", f.read()).group(1)
    return "".join(re.findall(r'"([^"]*)"', macro))


class Fault(Exception):
    """An error of the API."""

    def __init__(self, status, code, text):
        super().__init__(text)
        self.status, self.code, self.text = status, code, text


class Pool:
    """State of a pool: everything that the API shows."""

    def __init__(self, delay=0.2):
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.delay = delay      # of attaching and detaching, seconds
        self.started = int(time.time())
        self.hosts, self.gpus, self.vms, self.projects = {}, {}, {}, {}
        self.requests, self.events, self.history, self.looks = {}, [], [], {}
        self.tokens = {}        # token -> {name, role, project, expires}
        self.timers = []

    # ---- what it has ----

    def add_token(self, token, name, role, project=None):
        self.tokens[token] = {"name": name, "role": role, "project": project, "expires": None}

    def add_project(self, name, weight=100, max_gpus=None):
        self.projects[name] = {"name": name, "weight": weight, "max_gpus": max_gpus}

    def add_host(self, name, up=True, why=""):
        self.hosts[name] = {"name": name, "up": up, "why": why}

    def add_vm(self, name, host, project, **more):
        self.vms[name] = {"name": name, "host": host, "project": project, "pinned": False,
                          "uuid": f"00000000-0000-4000-8000-{len(self.vms):012x}",
                          "consent": None, "seen": None, **more}

    def add_gpu(self, host, addr, model, slots=1, **more):
        gpu = {"name": f"{host}/{addr}", "host": host, "addr": addr, "functions": [addr],
               "group": len(self.gpus) + 1, "target": "whole" if slots == 1 else "vgpu",
               "model": model, "slots": slots, "memory_mib": 24576,
               "types": [] if slots == 1 else ["mgpu_virtio-1", "mgpu_virtio-2"],
               "capabilities": ["3d", "compute"], "precisions": ["fp32", "fp16"],
               "offline": False, "why": "", "present": True, **more}
        self.gpus[gpu["name"]] = gpu

    def add_request(self, vm, kind, state="queued", gpu=None, **more):
        """A request in any state."""
        asked = more.pop("asked", int(time.time()))
        chosen = self.gpus.get(gpu)
        r = {**WISHES, "id": len(self.requests) + 1, "key": f"played-{len(self.requests) + 1}",
             "vm": vm, "kind": kind, "state": state, "gpu": gpu, "uuid": None,
             "host": chosen and chosen["host"], "model": chosen and chosen["model"], "why": "",
             "asked": asked, "chosen": asked if gpu else None,
             "attached": asked + 2 if gpu and state != "attaching" else None, "ended": None,
             "until": None, "warned": None, "version": 1, "place": None, **more}
        r["project"] = r["project"] or self.vms[vm]["project"]
        self.requests[r["id"]] = r
        return r

    def event(self, what, actor, request=None, obj="", text=""):
        with self.lock:
            self.events.append({
                "id": len(self.events) + 1, "time": int(time.time()), "actor": actor, "what": what,
                "request": request["id"] if request else None,
                "object": obj or (request["vm"] if request else ""), "text": text})
            self.changed.notify_all()

    # ---- what happens ----

    def later(self, fn, *args):
        timer = threading.Timer(self.delay, fn, args)
        timer.daemon = True
        self.timers.append(timer)
        timer.start()

    def used(self, gpu):
        return sum(r["gpu"] == gpu and r["state"] in HOLDING for r in self.requests.values())

    def place(self):
        """Give free GPUs to those that wait."""
        with self.lock:
            for r in [r for r in self.requests.values() if r["state"] == "queued"]:
                for gpu in self.gpus.values():
                    if not gpu["offline"] and gpu["present"] and r["target"] in \
                            ("any", gpu["target"]) and self.used(gpu["name"]) < gpu["slots"]:
                        self.choose(r, gpu)
                        break

    def set(self, r, **fields):
        r.update(fields)
        r["version"] += 1

    def choose(self, r, gpu):
        self.set(r, state="attaching", gpu=gpu["name"], host=gpu["host"], model=gpu["model"],
                 chosen=int(time.time()), why=f"the smallest that fits: {gpu['model']}")
        self.event("choose", "service", r, text=r["why"])
        self.later(self.attached, r)

    def attached(self, r):
        with self.lock:
            if r["state"] == "attaching":
                self.set(r, state="active", attached=int(time.time()))
                self.event("attached", "service", r, text=f"{r['gpu']} is in {r['vm']}")

    def detached(self, r):
        with self.lock:
            self.set(r, state="released", ended=int(time.time()), why="released on request")
            self.event("released", "service", r, text=f"{r['gpu']} is free")
            self.place()

    def close(self):
        for timer in self.timers:
            timer.cancel()

    # ---- what it shows ----

    def sees(self, you, project):
        return you["role"] == "admin" or you["project"] in (None, project)

    def visible(self, you):
        return [r for r in self.requests.values() if self.sees(you, r["project"])]

    def request_json(self, r):
        queue = [q["id"] for q in self.requests.values() if q["state"] == "queued"]
        place = queue.index(r["id"]) + 1 if r["state"] == "queued" else None
        why = r["why"]
        if place:
            why = why or f"all {len(self.gpus)} GPUs that can do it are in use"
        return {**r, "place": place, "why": why}

    def gpu_json(self, gpu, you):
        return {**gpu, "used": self.used(gpu["name"]), "requests": [
            {k: r[k] for k in ("id", "vm", "project", "state")} for r in self.visible(you)
            if r["gpu"] == gpu["name"] and r["state"] in OPEN]}

    def vm_json(self, vm):
        return {**vm, "requests": [r["id"] for r in self.requests.values()
                                   if r["vm"] == vm["name"] and r["state"] in OPEN]}

    def project_json(self, p):
        own = [r["state"] for r in self.requests.values() if r["project"] == p["name"]]
        return {**p, "used": sum(s in HOLDING for s in own), "queued": own.count("queued")}

    def host_json(self, host, you):
        return {**host, "why": host["why"] if you["role"] == "admin" else "",
                "gpus": sum(g["host"] == host["name"] for g in self.gpus.values()),
                "vms": sum(v["host"] == host["name"] and self.sees(you, v["project"])
                           for v in self.vms.values())}


def add_use(pool, request, step=300):
    """Looks at the use of a request's GPU since it was attached, as its kind of work does."""
    rng = random.Random(request["id"])
    part = {"training": 0.93, "inference": 0.45, "rendering": 0.7}.get(request["kind"], 0.2)
    busy, looks = 0, []
    for at in range(request["attached"] + step, (request["ended"] or int(time.time())) + 1, step):
        worked = 0 if request["warned"] and at > request["warned"] - 3600 else \
            min(1, max(0, rng.gauss(part, 0.12)))
        busy += int(worked * step * 1e9)
        looks.append([at, busy])
    pool.looks[request["id"]] = looks


def add_day(pool, slots, now, rng):
    """Requests of a day before now that are over, each on a GPU of its own time."""
    vms = list(pool.vms)
    kinds = {"training": 9000, "inference": 3000, "rendering": 2400, "notebook": 5400}
    for gpu in slots:
        at = now - 86400 + rng.randrange(9000)
        while True:
            kind = rng.choice(list(kinds))
            held = int(kinds[kind] * rng.uniform(0.6, 1.4))
            if at + held > now - 1800:
                break
            r = pool.add_request(rng.choice(vms), kind, "released", gpu, asked=at,
                                 ended=at + held, why="released by its VM")
            r["attached"] = at + rng.randrange(2, 600)
            add_use(pool, r)
            seconds = float(r["ended"] - r["attached"])
            pool.history.append({
                "request": r["id"], "project": r["project"], "kind": kind, "model": r["model"],
                "target": pool.gpus[gpu]["target"], "precision": "any", "size_mib": 4096,
                "seconds": seconds, "busy_ns": (pool.looks[r["id"]] or [[0, 0]])[-1][1],
                "energy_mj": int(seconds * 180000), "memory_mib": 9000, "ended": r["ended"],
                "done": rng.random() < 0.9})
            at += held + rng.randrange(300, 5400)


def small_pool():
    """Three hosts with 11 GPUs and the day that they had, for tests and pictures."""
    pool, now, rng = Pool(), int(time.time()), random.Random(7)
    for project, weight in (("vision", 200), ("speech", 100), ("design", 100)):
        pool.add_project(project, weight)
    for host in ("node1", "node2", "node3"):
        pool.add_host(host)
    for i in range(4):
        pool.add_gpu("node1", f"0000:{0x41 + i:02x}:00.0", "NVIDIA L40S", memory_mib=46068,
                     functions=[f"0000:{0x41 + i:02x}:00.{f}" for f in (0, 1)])
        pool.add_gpu("node2", f"0000:{0x81 + i:02x}:00.0", "NVIDIA RTX A5000")
    for i in range(3):
        pool.add_gpu("node3", f"0000:{0xc1 + i:02x}:00.0", "virtio-gpu (mgpu)", slots=4,
                     memory_mib=8192, capabilities=["3d"], precisions=[])
    gpus = list(pool.gpus)
    for i in range(18):
        project = ("vision", "speech", "design")[i % 3]
        pool.add_vm(f"{project}-{i // 3 + 1}", f"node{i % 3 + 1}", project,
                    consent=now - 90000, seen=now - 4 * i - 2)
    add_day(pool, [g for g in gpus if pool.gpus[g]["slots"] == 1], now, rng)
    fits = "training took 38 min on this model and 61 min on NVIDIA RTX A5000 (9 rows)"
    thin = "the smallest that fits: 24 GiB; history is thin (2 rows)"
    quick = "best by history: 0.21 s for each GiB (14 rows)"
    floor = "a vGPU with a floor of 30 frames/s fits here"
    fewest = "a vGPU of this parent is free: fewest slots left"
    busy = "waits for one of 4 GPUs with 40 GiB: all are in use"
    for vm, kind, gpu, ago, why in (
            ("vision-1", "training", gpus[0], 5400, fits),
            ("vision-2", "training", gpus[2], 4100, fits),
            ("speech-1", "training", gpus[4], 3900, fits),
            ("vision-3", "inference", gpus[1], 3000, thin),
            ("speech-2", "inference", gpus[3], 8000, quick),
            ("speech-3", "notebook", gpus[5], 9000, "the smallest that fits: 24 GiB"),
            ("vision-4", "training", gpus[7], 2000, "next best: every NVIDIA L40S is in use"),
            ("design-1", "rendering", gpus[8], 6000, floor),
            ("design-2", "rendering", gpus[8], 3000, fewest),
            ("design-3", "desktop", gpus[9], 7000, "a vGPU of this parent is free")):
        r = pool.add_request(vm, kind, "active", gpu, asked=now - ago, why=why)
        if kind == "notebook":
            r["warned"] = now - 120
        add_use(pool, r)
    pool.vms["speech-2"]["pinned"] = True
    pool.gpus[gpus[10]].update(offline=True, why="fan replaced on Monday")
    for vm, kind, ago, more in (
            ("vision-5", "training", 700,
             {"memory_mib": 40960, "precision": "fp16", "target": "whole"}),
            ("speech-4", "training", 420, {"memory_mib": 40960, "target": "whole"}),
            ("speech-5", "inference", 95, {"memory_mib": 32768, "target": "whole"})):
        pool.add_request(vm, kind, asked=now - ago, why=busy, **more)
    pool.add_request("vision-6", "training", "attaching", gpus[6], asked=now - 900, why=fits)
    for r in list(pool.requests.values())[-14:]:
        pool.event("request", f"vm:{r['vm']}", r, text=f"asks for a GPU for {r['kind']}")
        if r["attached"]:
            pool.event("attached", "service", r, text=f"{r['gpu']} is in {r['vm']}")
            pool.events[-1]["time"] = r["attached"]
            pool.events[-2]["time"] = r["asked"]
        else:
            pool.events[-1]["time"] = r["asked"]
    pool.events.sort(key=lambda e: e["time"])
    for i, e in enumerate(pool.events, 1):
        e["id"] = i
    return pool


def large_pool(vms=1000, gpus=200):
    """Many VMs and GPUs, two thirds of them in use, and a queue."""
    pool, now = Pool(), int(time.time())
    for i in range(10):
        pool.add_project(f"project-{i}")
    for i in range(25):
        pool.add_host(f"node{i:02}")
    for i in range(gpus):
        pool.add_gpu(f"node{i % 25:02}", f"0000:{0x41 + i // 25:02x}:00.0", "NVIDIA L40S")
    for i in range(vms):
        pool.add_vm(f"vm-{i:04}", f"node{i % 25:02}", f"project-{i % 10}")
    for i, gpu in enumerate(list(pool.gpus)[:gpus * 2 // 3]):
        r = pool.add_request(f"vm-{i:04}", "training", "active", gpu, asked=now - 7200 - i,
                             why="the smallest that fits")
        add_use(pool, r)
    for i in range(vms - 300, vms):
        pool.add_request(f"vm-{i:04}", "training", asked=now - i, target="vgpu",
                         why="no host of the pool offers vGPUs now")
        pool.event("request", f"vm:vm-{i:04}", pool.requests[len(pool.requests)], text="asks")
    return pool


def limited(rows, query):
    limit = int(query.get("limit", 100))
    if not 1 <= limit <= 1000:
        raise Fault(400, "invalid", "limit must be from 1 to 1000")
    return rows[:limit]


class Api:
    """The routes: each is a function of the caller, the query, the body and parts of the path."""

    def __init__(self, pool):
        self.pool = pool

    def status(self, you, _query, _body):
        p = self.pool
        states = [r["state"] for r in p.visible(you)]
        return {"version": "0.1.0", "now": int(time.time()), "database": "sqlite 3.40.1",
                "uptime": int(time.time()) - p.started,
                "you": {k: you[k] for k in ("name", "role", "project")},
                "hosts": [p.host_json(h, you) for h in p.hosts.values()],
                "requests": {s: states.count(s) for s in OPEN}, "gpus": len(p.gpus),
                "slots": sum(g["slots"] for g in p.gpus.values()),
                "used": sum(p.used(g) for g in p.gpus),
                "queued": sum(r["state"] == "queued" for r in p.requests.values()),
                "last_event": len(p.events)}

    def list_gpus(self, you, _query, _body):
        return {"gpus": [self.pool.gpu_json(g, you) for g in self.pool.gpus.values()]}

    def list_vms(self, you, _query, _body):
        return {"vms": [self.pool.vm_json(v) for v in self.pool.vms.values()
                        if self.pool.sees(you, v["project"])]}

    def list_projects(self, you, _query, _body):
        return {"projects": [self.pool.project_json(p) for p in self.pool.projects.values()
                             if self.pool.sees(you, p["name"])]}

    def list_requests(self, you, query, _body):
        before = int(query.get("before", 1 << 53))
        rows = [r for r in reversed(self.pool.visible(you)) if r["id"] < before and
                (query.get("open") != "1" or r["state"] in OPEN)]
        return {"requests": [self.pool.request_json(r) for r in limited(rows, query)]}

    def find(self, you, number):
        r = self.pool.requests.get(int(number))
        if not r or not self.pool.sees(you, r["project"]):
            raise Fault(404, "not_found", f"there is no request {number}; list the requests")
        return r

    def one_request(self, you, _query, _body, number):
        return self.pool.request_json(self.find(you, number))

    def request_events(self, you, query, _body, number):
        own = [e for e in self.pool.events if e["request"] == self.find(you, number)["id"]]
        return {"events": limited(own, query), "next": own[-1]["id"] if own else 0}

    def ask(self, you, _query, body):
        vm = self.pool.vms.get(body.get("vm"))
        if you["role"] == "viewer":
            raise Fault(403, "forbidden", "a viewer makes no requests; use another token")
        if not vm or not self.pool.sees(you, vm["project"]):
            raise Fault(404, "not_found",
                        f"there is no VM '{body.get('vm')}'; define it with libvirt")
        if not re.fullmatch(r"[a-z0-9._-]+", body.get("kind", "")):
            raise Fault(400, "invalid", "kind must be of a-z, 0-9, '.', '_' and '-'")
        for r in self.pool.requests.values():
            if r["key"] == body["key"] and r["project"] == vm["project"]:
                return 200, self.pool.request_json(r)
        r = self.pool.add_request(body["vm"], body["kind"], **{
            k: v or WISHES[k] for k, v in body.items() if k not in ("vm", "kind", "key")})
        r["key"], r["size_mib"] = body["key"], body.get("size_mib", 0)
        self.pool.event("request", f"{you['role']}:{you['name']}", r, text=f"{r['kind']} asked")
        self.pool.place()
        return 201, self.pool.request_json(r)

    def change(self, you, number):
        if you["role"] == "viewer":
            raise Fault(403, "forbidden", "a viewer changes nothing; use another token")
        return self.find(you, number)

    def release(self, you, _query, _body, number):
        r = self.change(you, number)
        actor = f"{you['role']}:{you['name']}"
        if r["state"] == "queued":
            self.pool.set(r, state="cancelled", ended=int(time.time()), why="cancelled")
            self.pool.event("cancel", actor, r, text="cancelled")
        elif r["state"] in ("attaching", "active"):
            self.pool.set(r, state="releasing", why="release asked")
            self.pool.event("release", actor, r, text="release asked")
            self.pool.later(self.pool.detached, r)
        return self.pool.request_json(r)

    def extend(self, you, _query, body, number):
        r = self.change(you, number)
        self.pool.set(r, until=int(time.time()) + body["seconds"] if body["seconds"] else None)
        self.pool.event("extend", f"{you['role']}:{you['name']}", r, text="lease changed")
        return self.pool.request_json(r)

    def list_events(self, you, query, _body):
        after = int(query.get("after", 0))
        rows = limited([e for e in self.pool.events if e["id"] > after], query)
        return {"events": [e for e in rows if self.event_visible(you, e)],
                "next": rows[-1]["id"] if rows else after}

    def event_visible(self, you, event):
        r = self.pool.requests.get(event["request"])
        return (you["role"] == "admin" or
                bool(r and self.pool.sees(you, r["project"])))

    def list_history(self, you, query, _body):
        return {"history": limited([h for h in reversed(self.pool.history)
                                    if self.pool.sees(you, h["project"])], query)}

    def list_use(self, you, query, _body):
        now = int(time.time())
        since = int(query.get("since", now - 86400))
        return {"since": since, "now": now, "spans": [{
            "gpu": r["gpu"], "request": r["id"], "vm": r["vm"], "project": r["project"],
            "kind": r["kind"], "state": r["state"], "from": r["attached"], "to": r["ended"],
            "points": self.pool.looks.get(r["id"], [])} for r in self.pool.visible(you)
                if r["attached"] and (r["ended"] or now) >= since]}

    # ---- administration ----

    def list_tokens(self, you, _query, _body):
        self.admin(you)
        return {"tokens": list(self.pool.tokens.values())}

    def admin(self, you):
        if you["role"] != "admin":
            raise Fault(403, "forbidden", "only an admin may do it; use an admin's token")

    def put_token(self, you, _query, body, name):
        self.admin(you)
        token = secrets.token_hex(32)
        self.drop_token(you, None, None, name, quiet=True)
        self.pool.add_token(token, name, body["role"], body.get("project"))
        self.pool.event("token", f"admin:{you['name']}", obj=name, text="made")
        return 201, {**self.pool.tokens[token], "token": token}

    def drop_token(self, you, _query, _body, name, quiet=False):
        self.admin(you)
        found = [t for t, v in self.pool.tokens.items() if v["name"] == name]
        for t in found:
            del self.pool.tokens[t]
        if not found and not quiet:
            raise Fault(404, "not_found", f"there is no token '{name}'")
        return 204, None

    def put_gpu(self, you, _query, body, host, addr):
        self.admin(you)
        gpu = self.pool.gpus.get(f"{host}/{addr}")
        if not gpu:
            raise Fault(404, "not_found", f"there is no GPU {host}/{addr}; list the GPUs")
        gpu.update(body)
        self.pool.event("gpu", f"admin:{you['name']}", obj=gpu["name"],
                        text="offline" if gpu["offline"] else "changed")
        self.pool.place()
        return self.pool.gpu_json(gpu, you)

    def put_vm(self, you, _query, body, name):
        self.admin(you)
        self.pool.vms[name].update(body)
        self.pool.event("vm", f"admin:{you['name']}", obj=name, text="changed")
        return self.pool.vm_json(self.pool.vms[name])

    def drop_vm(self, you, _query, _body, name):
        self.admin(you)
        if self.pool.vm_json(self.pool.vms[name])["requests"]:
            raise Fault(409, "conflict", f"{name} has open requests; release them first")
        del self.pool.vms[name]
        self.pool.event("vm", f"admin:{you['name']}", obj=name, text="forgotten")
        return 204, None

    def new_key(self, you, _query, _body, name):
        self.admin(you)
        self.pool.event("key", f"admin:{you['name']}", obj=name, text="a new key was made")
        return 201, {"vm": name, "key": secrets.token_hex(32)}

    def put_project(self, you, _query, body, name):
        self.admin(you)
        self.pool.add_project(name, body.get("weight", 100), body.get("max_gpus"))
        self.pool.event("project", f"admin:{you['name']}", obj=name, text="changed")
        return self.pool.project_json(self.pool.projects[name])

    def drop_project(self, you, _query, _body, name):
        self.admin(you)
        if any(v["project"] == name for v in self.pool.vms.values()):
            raise Fault(409, "conflict", f"project '{name}' has VMs; move them first")
        del self.pool.projects[name]
        self.pool.event("project", f"admin:{you['name']}", obj=name, text="removed")
        return 204, None


NAME = r"([A-Za-z0-9_][A-Za-z0-9._:-]*)"
ROUTES = [(method, re.compile(path.replace("NAME", NAME).replace("ID", r"(\d+)")), fn, template)
          for method, path, fn, template in [
    ("GET", "/v1/status", "status", "/v1/status"),
    ("GET", "/v1/gpus", "list_gpus", "/v1/gpus"),
    ("GET", "/v1/vms", "list_vms", "/v1/vms"),
    ("GET", "/v1/projects", "list_projects", "/v1/projects"),
    ("GET", "/v1/requests", "list_requests", "/v1/requests"),
    ("POST", "/v1/requests", "ask", "/v1/requests"),
    ("GET", "/v1/requests/ID", "one_request", "/v1/requests/{id}"),
    ("GET", "/v1/requests/ID/events", "request_events", "/v1/requests/{id}/events"),
    ("POST", "/v1/requests/ID/release", "release", "/v1/requests/{id}/release"),
    ("POST", "/v1/requests/ID/extend", "extend", "/v1/requests/{id}/extend"),
    ("GET", "/v1/events", "list_events", "/v1/events"),
    ("GET", "/v1/history", "list_history", "/v1/history"),
    ("GET", "/v1/use", "list_use", "/v1/use"),
    ("GET", "/v1/tokens", "list_tokens", "/v1/tokens"),
    ("PUT", "/v1/tokens/NAME", "put_token", "/v1/tokens/{name}"),
    ("DELETE", "/v1/tokens/NAME", "drop_token", "/v1/tokens/{name}"),
    ("PUT", "/v1/gpus/NAME/NAME", "put_gpu", "/v1/gpus/{host}/{addr}"),
    ("PUT", "/v1/vms/NAME", "put_vm", "/v1/vms/{name}"),
    ("DELETE", "/v1/vms/NAME", "drop_vm", "/v1/vms/{name}"),
    ("POST", "/v1/vms/NAME/key", "new_key", "/v1/vms/{name}/key"),
    ("PUT", "/v1/projects/NAME", "put_project", "/v1/projects/{name}"),
    ("DELETE", "/v1/projects/NAME", "drop_project", "/v1/projects/{name}"),
]]


class Handler(http.server.BaseHTTPRequestHandler):
    """HTTP of the service."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, body, kind, more=()):
        self.send_response(status)
        for name, value in [("Content-Type", kind), ("Content-Length", str(len(body))),
                            ("Content-Security-Policy", page_policy()),
                            ("X-Content-Type-Options", "nosniff"),
                            ("Referrer-Policy", "no-referrer"),
                            ("Cache-Control", "no-cache"), *more]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def reply_json(self, status, value):
        self.reply(status, b"" if value is None else json.dumps(value).encode(),
                   "application/json")

    def caller(self):
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        you = self.server.pool.tokens.get(token)
        if not you:
            raise Fault(401, "unauthorized", "the token is not valid; ask an admin for another")
        return you

    def handle_any(self):
        if self.server.down:    # a connection that was kept
            self.close_connection = True
            return
        url = urllib.parse.urlsplit(self.path)
        path = urllib.parse.unquote(url.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if path == "/" or path.startswith("/page/"):
            self.reply_file("index.html" if path == "/" else path.removeprefix("/page/"))
            return
        try:
            you = self.caller()
            if path == "/v1/events/stream":
                self.stream(you, int(query.get("after", len(self.server.pool.events))))
            elif path == "/v1/history.csv":
                self.reply(200, b"request,kind\r\n1,training\r\n", "text/csv; charset=utf-8")
            else:
                self.call(path, you, query, json.loads(body) if body else {})
        except Fault as fault:
            self.reply_json(fault.status, {"error": {"code": fault.code, "text": fault.text}})

    do_GET = do_POST = do_PUT = do_DELETE = handle_any

    def reply_file(self, name):
        kind = TYPES.get(os.path.splitext(name)[1])
        if "/" in name or not kind or not os.path.exists(os.path.join(PAGE, name)):
            self.reply(404, b"", "text/plain")
            return
        with open(os.path.join(PAGE, name), "rb") as f:
            self.reply(200, f.read(), kind)

    def call(self, path, you, query, body):
        for method, pattern, fn, template in ROUTES:
            found = pattern.fullmatch(path)
            if method != self.command or not found:
                continue
            with self.server.pool.lock:
                answer = getattr(self.server.api, fn)(you, query, body, *found.groups())
            status, value = answer if isinstance(answer, tuple) else (200, answer)
            self.server.answers.append((method, template, status, value, body))
            self.reply_json(status, value)
            return
        raise Fault(404, "not_found", f"there is no {path}")

    def stream(self, you, after):
        pool, api = self.server.pool, self.server.api
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        self.wfile.write(b":\n\n")
        while not self.server.down:
            with pool.lock:
                if len(pool.events) <= after:
                    pool.changed.wait(0.2)
                fresh = [e for e in pool.events[after:] if api.event_visible(you, e)]
                after = len(pool.events)
            for e in fresh:
                self.wfile.write(f"id: {e['id']}\ndata: {json.dumps(e)}\n\n".encode())
            self.wfile.flush()


class Service(http.server.ThreadingHTTPServer):
    """The service at a port of loopback that the kernel chose, until close()."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, pool, port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.pool, self.api, self.down, self.answers = pool, Api(pool), False, []
        self.url = f"http://127.0.0.1:{self.server_port}/"
        self.thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def handle_error(self, *_):
        pass    # the browser has closed a connection

    def close(self):
        """Stop answering; streams end, too."""
        self.down = True
        self.shutdown()
        self.thread.join()
        self.server_close()
