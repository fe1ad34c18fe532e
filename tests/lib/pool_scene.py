# SPDX-License-Identifier: GPL-2.0-only
"""Pools with a past for tests and pictures: mgpu-poold with hosts of libvirt's test driver.

A scene is made once: the service takes the requests, and its database gets the past. Each test has
a copy of the folder and a service of its own.
"""

import datetime
import hashlib
import ipaddress
import os
import random
import re
import shutil
import socket
import sqlite3
import tempfile
import threading
import time

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

import poold
from libvirt_node import node_xml

TOKENS = {"admin-token": ("anna", "admin", ""), "vision-token": ("victor", "project", "vision"),
          "viewer-token": ("wilma", "viewer", "")}
SERVICES = []   # those that make scenes
PARTS = {"training": 0.93, "inference": 0.45, "rendering": 0.7, "notebook": 0.2}


def certificate(folder):
    """Make a key and a certificate of loopback; returns their paths."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.utcnow()
    made = (x509.CertificateBuilder().subject_name(name).issuer_name(name)
            .public_key(key.public_key()).serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=30))
            .add_extension(x509.SubjectAlternativeName(
                [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
            .sign(key, hashes.SHA256()))
    paths = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
    with open(paths[0], "wb") as file:
        file.write(made.public_bytes(serialization.Encoding.PEM))
    with open(paths[1], "wb") as file:
        file.write(key.private_bytes(serialization.Encoding.PEM,
                                     serialization.PrivateFormat.PKCS8,
                                     serialization.NoEncryption()))
    return paths


class Pool(poold.Poold):
    """A service of a scene's folder."""

    def __init__(self, folder, host, broken=None):
        """@host: the name of the host; @broken: the name of one that never answers, too."""
        self.host, self.broken = host, broken
        super().__init__(folder)

    def describe(self, gpus, vms):
        """The host is in the folder."""

    def configure(self, config="", listen=""):
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(f"[database]\nurl = {self.database}\n[listen]\nsocket = {self.socket}\n"
                       "admin_group = none\naddress = 127.0.0.1:0\n"
                       f"certificate = {self.folder}/cert.pem\nkey = {self.folder}/key.pem\n"
                       "[limits]\nrate = 10000\nburst = 40000\nopens = 10000\n"
                       "opens_burst = 40000\n")
            file.write(f"[host {self.host}]\nuri = test://{self.folder}/node.xml\n")
            if self.broken:
                file.write(f"[host {self.broken}]\nuri = test://{self.folder}/none.xml\n")

    def port(self):
        return int(re.findall(r"listening at port (\d+)", self.log())[-1])

    def start(self, **env):
        self.begin(**env)
        poold.wait_for(lambda: any(h["up"] for h in (self.serves() or {"hosts": []})["hosts"]),
                       "the host is up")

    def put(self, path, **body):
        """Change something as an admin."""
        answer = self.unix.call("PUT", path, body)
        assert answer.status in (200, 201), answer
        return answer.json

    def sql(self, statement, rows):
        """Change the database; the service does not run."""
        assert not self.process
        with sqlite3.connect(os.path.join(self.folder, "pool.db")) as db:
            db.executemany(statement, rows)
        db.close()


def insert(pool, table, rows):
    """Insert rows, which are dicts of the same columns."""
    if rows:
        names = list(rows[0])
        pool.sql(f"INSERT INTO {table} ({', '.join(names)}) VALUES "
                 f"({', '.join('?' * len(names))})", [tuple(r[n] for n in names) for r in rows])


def looks_of(request, kind, begin, end, idle_from=None):
    """Looks at the use of a GPU, as the kind of work does."""
    rng, busy, rows = random.Random(request), 0, []
    for at in range(begin + 300, end + 1, 300):
        part = 0 if idle_from and at > idle_from else rng.gauss(PARTS[kind], 0.12)
        busy += int(min(1, max(0, part)) * 300e9)
        rows.append({"request": request, "time": at, "source": "a", "busy_ns": busy,
                     "energy_mj": 0, "memory_mib": 0})
    return rows


def past_of(number, vm, kind, gpu, asked, ended):
    """A request that is over."""
    return {"id": number, "project": vm.split("-")[0], "key": f"past-{number}", "vm": vm,
            "kind": kind, "target": "any", "precision": "any", "size_mib": 4096, "memory_mib": 0,
            "capabilities": "", "type": "", "weight": 0, "floor_mhz": 0, "lease": 0,
            "state": "released", "gpu": gpu, "uuid": "", "why": "released by its VM",
            "asked": asked, "chosen": asked, "attached": asked + number % 7 * 90 + 2,
            "ended": ended, "until": 0, "warned": 0, "tries": 0, "cancel": 0}


def outcome_of(r, model, looks, done):
    seconds = r["ended"] - r["attached"]
    return {"request": r["id"], "project": r["project"], "kind": r["kind"], "model": model,
            "target": "whole", "precision": "any", "size_mib": r["size_mib"],
            "microseconds": seconds * 1000000, "busy_ns": looks[-1]["busy_ns"] if looks else 0,
            "energy_mj": seconds * 180000, "memory_mib": 9000, "ended": r["ended"], "done": done}


def add_past(pool, gpus, vms, now):
    """A day of requests that are over, on each GPU one after the other."""
    rng, requests, uses, outcomes = random.Random(7), [], [], []
    lengths = {"training": 9000, "inference": 3000, "rendering": 2400, "notebook": 5400}
    for gpu, model in gpus:
        at = now - 86400 + rng.randrange(9000)
        while True:
            kind = rng.choice(list(lengths))
            speed = 1.0 if model == "L40S" else 1.5
            ended = at + int(lengths[kind] * speed * rng.uniform(0.8, 1.2))
            if ended > now - 6000:
                break
            r = past_of(len(requests) + 1, rng.choice(vms), kind, gpu, at, ended)
            looks = looks_of(r["id"], kind, r["attached"], ended)
            requests.append(r)
            uses += looks
            outcomes.append(outcome_of(r, model, looks, int(rng.random() < 0.9)))
            at = ended + rng.randrange(300, 5400)
    insert(pool, "pool_request", requests)
    insert(pool, "pool_use", uses)
    insert(pool, "pool_outcome", outcomes)


def add_tokens(pool):
    insert(pool, "pool_token", [
        {"name": name, "hash": hashlib.sha256(token.encode()).hexdigest(), "role": role,
         "project": project, "expires": 0} for token, (name, role, project) in TOKENS.items()])


def backdate(pool, ages, now):
    """Move requests that the service took to the past: {id: seconds ago}."""
    for number, (ago, kind) in ages.items():
        for column in ("asked", "chosen", "attached"):
            pool.sql(f"UPDATE pool_request SET {column} = ? + ? WHERE id = ? AND {column} > 0",
                     [(now - ago, {"asked": 0, "chosen": 1, "attached": 2}[column], number)])
        pool.sql("UPDATE pool_event SET time = ? + (what != 'request') WHERE request = ?",
                 [(now - ago, number)])
        if kind:
            insert(pool, "pool_use", looks_of(number, kind, now - ago + 2, now,
                                              now - 3600 if kind == "notebook" else None))


SMALL_GPUS = ([(0x41 + i, "L40S") for i in range(4)] + [(0x81 + i, "RTX A5000") for i in range(4)] +
              [(0xc1 + i, "RTX A4000") for i in range(3)])
MEMORY = {"L40S": 46068, "RTX A5000": 24564, "RTX A4000": 16376}
ACTIVE = (("vision-1", "training", 40000, 5400), ("vision-2", "training", 40000, 4100),
          ("vision-3", "inference", 40000, 3000), ("vision-4", "training", 40000, 2000),
          ("speech-1", "inference", 20000, 8000), ("speech-2", "training", 20000, 3900),
          ("speech-3", "notebook", 20000, 9000), ("design-1", "rendering", 12000, 6000),
          ("design-2", "rendering", 12000, 3000))
QUEUED = (("vision-5", "training", 40960, 700), ("vision-6", "inference", 40960, 420),
          ("speech-5", "inference", 32768, 95))


def make_small(folder):
    """A host with 11 GPUs, 18 VMs of three projects, and the day that they had."""
    now = int(time.time())
    vms = [f"{p}-{i}" for p in ("vision", "speech", "design") for i in range(1, 7)]
    pool = make(folder, "node1", SMALL_GPUS, vms)
    for vm in vms:
        pool.put(f"/v1/vms/{vm}", project=vm.split("-")[0])
    pool.put("/v1/vms/speech-2", pinned=True)
    for bus, model in SMALL_GPUS:
        pool.put(f"/v1/gpus/node1/0000:{bus:02x}:00.0", memory_mib=MEMORY[model],
                 capabilities=["3d", "compute"], precisions=["fp32", "fp16"])
    pool.put("/v1/gpus/node1/0000:c3:00.0", offline=True, why="fan replaced on Monday")
    pool.stop()
    add_tokens(pool)
    add_past(pool, [(f"node1/0000:{b:02x}:00.0", m) for b, m in SMALL_GPUS], vms, now)
    pool.start()
    ages = {}
    for vm, kind, memory, ago in ACTIVE:
        r = pool.unix.ask(f"now-{vm}", vm, kind, memory_mib=memory).json
        assert "id" in r, (vm, r)
        pool.unix.wait(r["id"], "active")
        ages[r["id"]] = ago, kind
    for vm, kind, memory, ago in QUEUED:
        r = pool.unix.ask(f"now-{vm}", vm, kind, memory_mib=memory, target="whole").json
        assert r["state"] == "queued", r
        ages[r["id"]] = ago, None
    pool.stop()
    backdate(pool, ages, now)
    return pool.host


def make_large(folder):
    """1,000 VMs, 200 GPUs of which 133 are in use, and 300 requests that wait."""
    vms = [f"vm-{i:04}" for i in range(1000)]
    pool = make(folder, "node1", [(bus, "L40S") for bus in range(1, 201)], vms)
    for bus in range(3, 201, 3):
        pool.put(f"/v1/gpus/node1/0000:{bus:02x}:00.0", offline=True, why="is cleaned")
    for i in range(433):
        pool.unix.ask(f"key-{i}", vms[i], "training")
    poold.wait_for(lambda: not pool.serves()["requests"]["attaching"], "all are attached")
    pool.stop()
    add_tokens(pool)
    return pool.host


def make_old(folder):
    """2,500 requests that are over, with as many rows of the history and as many events."""
    now, count = int(time.time()), 2500
    pool = make(folder, "node1", [(0x41, "L40S")], ["vision-1", "speech-1"])
    pool.stop()
    add_tokens(pool)
    gpu = "node1/0000:41:00.0"
    past = [past_of(i, "vision-1", "training", gpu, now - (count - i) * 600, now - (count - i) * 600 + 590)
            for i in range(1, count + 1)]
    insert(pool, "pool_request", past)
    insert(pool, "pool_outcome", [outcome_of(r, "L40S", [], True) for r in past])
    pool.sql("UPDATE pool_event SET id = id + ?", [(count,)])
    insert(pool, "pool_event", [
        {"id": r["id"], "time": r["asked"], "actor": "vm:vision-1", "what": "request",
         "request": r["id"], "object": "vision-1", "text": f"past {r['id']}"} for r in past])
    return pool.host


def make_long(folder):
    """Names as long as they can be."""
    pool = make(folder, "a" * 50, [(0x41, "M" * 63)], ["v" * 63, "w" * 63])
    pool.put("/v1/projects/" + "p" * 63)
    for vm in ("v" * 63, "w" * 63):
        pool.put(f"/v1/vms/{vm}", project="p" * 63)
    pool.unix.ask("k" * 63, "v" * 63, "k" * 63)
    pool.unix.ask("l" * 63, "w" * 63, "k" * 63)
    poold.wait_for(lambda: pool.serves()["requests"]["active"], "the GPU is attached")
    pool.stop()
    add_tokens(pool)
    pool.sql("UPDATE pool_event SET text = ?", [("t" * 400,)])
    return pool.host


def make(folder, host, gpus, vms):
    """A running service with a host: gpus [(bus, model)], and names of VMs."""
    certificate(folder)
    with open(os.path.join(folder, "node.xml"), "w", encoding="utf-8") as file:
        file.write(node_xml(gpus, vms))
    pool = Pool(folder, host)
    SERVICES.append(pool)
    pool.start()
    for name in sorted({vm.split("-")[0] for vm in vms if "-" in vm}):
        pool.put(f"/v1/projects/{name}", weight=200 if name == "vision" else 100)
    return pool


class Scenes:
    """Folders of scenes, each made when it is first wanted."""

    def __init__(self):
        self.folder = tempfile.mkdtemp()
        self.made = {}

    def pool(self, maker, broken=None):
        """A service, not started, in a copy of a scene's folder."""
        if maker not in self.made:
            folder = tempfile.mkdtemp(dir=self.folder)
            self.made[maker] = folder, maker(folder)
        folder, host = self.made[maker]
        copy = tempfile.mkdtemp(dir=self.folder)
        shutil.copytree(folder, copy, dirs_exist_ok=True, ignore=shutil.ignore_patterns("socket*"))
        os.truncate(os.path.join(copy, "log"), 0)
        return Pool(copy, host, broken)

    def close(self):
        for pool in SERVICES:
            pool.stop()     # it runs if the making failed
        shutil.rmtree(self.folder)


class Wire(threading.Thread):
    """Passes connections on to a port of loopback, until it is cut."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.whole, self.open = port, True, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.start()

    def run(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            if not self.whole:
                client.close()
                continue
            service = socket.create_connection(("127.0.0.1", self.port))
            self.open += [client, service]
            for one, other in ((client, service), (service, client)):
                threading.Thread(target=self.pass_on, args=(one, other), daemon=True).start()

    @staticmethod
    def pass_on(one, other):
        try:
            while data := one.recv(65536):
                other.sendall(data)
        except OSError:
            pass    # it is cut
        for end in (one, other):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass    # the other thread was faster

    def cut(self):
        """End all connections, and take no others."""
        self.whole = False
        for end in self.open:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass    # it has ended
        self.open = []

    def mend(self):
        self.whole = True

    def close(self):
        self.cut()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
