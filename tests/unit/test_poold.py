#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# timeout: 600
"""mgpu-poold as a program: all of it, with libvirt's test driver.

The real libvirt library and SQLite are used; VMs of the test driver are off, so that their
definitions get the devices.  test_poold.c says how its libvirt outlives the service.
"""

import concurrent.futures
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True

from cryptography import x509  # noqa: E402 pylint: disable=wrong-import-position

import pytap  # noqa: E402 pylint: disable=wrong-import-position

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "lib"))
import poold  # noqa: E402 pylint: disable=wrong-import-position
import postgres  # noqa: E402 pylint: disable=wrong-import-position
from certificates import Authority, local_names  # noqa: E402 pylint: disable=wrong-import-position

TMP = tempfile.mkdtemp()
NOBODY = 65534


@contextlib.contextmanager
def service(**options):
    """A service in a folder of its own."""
    folder = tempfile.mkdtemp(dir=TMP)
    with poold.serving(folder, **options) as p:
        yield p


# ---- certificates

CA = Authority(TMP, "ca")
OTHER_CA = Authority(TMP, "other")
SERVER = CA.make("poold", local_names())


def listen(server=SERVER, more=""):
    """Lines of [listen] for TLS."""
    return (f"address = 127.0.0.1:0\ncertificate = {server[0]}\nkey = {server[1]}\n"
            f"client_ca = {CA.path}\n{more}")


def port_of(p):
    """The port that the kernel chose."""
    return int(re.findall(r"listening at port (\d+)", p.log())[-1])


# ---- the API

def routes():
    done = subprocess.run([os.path.join(poold.BUILD, "unit", "test_pool_api"), "routes"],
                          capture_output=True, text=True, check=True)
    program = set(done.stdout.splitlines())
    described = {f"{method.upper()} {path}" for path, methods in poold.OPENAPI["paths"].items()
                 for method in methods}
    assert program == described, program ^ described


def gives_and_takes(**options):
    with service(**options) as p:
        first = p.unix.ask("one")
        assert first.status == 201 and first.json["gpu"] == "one/0000:01:00.0", first
        r = p.unix.wait(1, "active")
        assert r["why"] and r["attached"], r
        assert p.devices() == [(1, 0, "vm0", 1), (1, 1, "vm0", 1)], p.devices()
        second = p.unix.ask("two", vm="vm1").json
        assert second["state"] == "queued" and second["place"] == 1 and second["why"], second
        third = p.unix.ask("three", vm="vm2").json
        assert third["place"] == 2, third
        p.unix.release(3)
        assert p.unix.get("/v1/requests/3")["state"] == "cancelled"
        p.unix.release(1, done=True)
        r = p.unix.wait(2, "active")
        assert p.devices() == [(1, 0, "vm1", 2), (1, 1, "vm1", 2)], p.devices()
        assert p.unix.get("/v1/requests/1")["state"] == "released"
        rows = p.unix.get("/v1/history")["history"]
        assert [(row["kind"], row["done"]) for row in rows] == [("training", True)], rows
        spans = p.unix.get("/v1/use")["spans"]
        assert {span["request"] for span in spans} == {1, 2}, spans
        what = [e["what"] for e in p.unix.get("/v1/requests/1/events")["events"]]
        assert what[0] == "request" and "attached" in what and what[-1] == "released", what
        assert p.unix.get("/v1/requests/1/use")["uses"] == []
        p.unix.release(2)
        p.unix.wait(2, "released")
        assert p.devices() == []


def every_answer_is_described():
    """Each route is called once at least; Client.call() compares."""
    called = set()
    with service() as p:
        real = p.unix.call

        def call(method, target, *more, **named):
            called.add(f"{method} {poold.path_of(method, target)}")
            return real(method, target, *more, **named)

        p.unix.call = call
        assert p.unix.call("PUT", "/v1/projects/p", {"weight": 200, "max_gpus": 3}).status == 200
        assert p.unix.call("PUT", "/v1/vms/vm0", {"project": "p", "pinned": True}).status == 200
        assert p.unix.call("POST", "/v1/vms/vm0/key").status == 201
        p.unix.ask("k", floor_fps=29.97, lease_s=600, capabilities=["3d"], precision="fp16",
                   size_mib=5, target="whole", project="p")
        p.unix.ask("k", vm="vm1")
        p.unix.wait(1, "active")
        assert p.unix.call("POST", "/v1/requests/1/extend", {"seconds": 900}).status == 200
        for path in ("status", "hosts", "gpus", "vms", "projects", "requests", "requests/1",
                     "requests/2", "requests/1/use", "requests/1/events", "events", "history",
                     "use", "tokens", "requests?open=1&limit=1", "requests?before=2",
                     "events?after=3&limit=2", "use?since=5"):
            p.unix.get("/v1/" + path)
        assert p.unix.call("PUT", "/v1/gpus/one/0000:01:00.0",
                           {"offline": True, "why": "fan", "model": "RTX"}).status == 200
        assert p.unix.call("PUT", "/v1/tokens/t", {"role": "viewer"}).status == 201
        assert p.unix.get("/v1/tokens/t")["role"] == "viewer"
        assert p.unix.call("DELETE", "/v1/tokens/t").status == 204
        p.unix.release(1)
        p.unix.release(2)
        p.unix.wait(1, "released")
        assert p.unix.call("DELETE", "/v1/hosts/one").status == 409
        assert p.unix.call("DELETE", "/v1/vms/vm0").status == 204
        assert p.unix.call("DELETE", "/v1/projects/p").status == 204
        for path in ("history.csv", "openapi.yaml"):
            assert p.unix.call("GET", "/v1/" + path).status == 200
        with contextlib.closing(poold.UnixConnection(p.socket)) as c:
            c.request("GET", "/v1/events/stream")
            assert c.getresponse().status == 200
            called.add("GET /v1/events/stream")
        everything = {f"{method.upper()} {path}"
                      for path, methods in poold.OPENAPI["paths"].items() for method in methods}
        assert everything <= called, everything - called


def one_answer_for_a_key(**options):
    with service(gpus=4, vms=8, **options) as p:
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(lambda i: p.unix.ask(f"k{i % 4}", vm=f"vm{i % 4}"), range(48)))
        assert sum(a.status == 201 for a in answers) == 4, answers
        assert {a.status for a in answers} == {200, 201}, answers
        assert {a.json["id"] for a in answers} == {1, 2, 3, 4}, answers
        assert p.unix.ask("k0", vm="vm5").status == 409
        for i in range(1, 5):
            p.unix.wait(i, "active")
            p.unix.release(i)
            p.unix.wait(i, "released")
        # A restart, and requests that are over, forget no key.
        assert p.stop() == 0
        p.start()
        again = p.unix.ask("k0")
        assert again.status == 200 and again.json["state"] == "released", again
        assert p.unix.ask("new").json["id"] > 4


def lasts_over_restarts(**options):
    with service(vms=3, **options) as p:
        p.unix.ask("a")
        p.unix.ask("b", vm="vm1")
        p.unix.wait(1, "active")
        before = p.devices()
        assert p.stop() == 0
        p.start()
        assert p.unix.get("/v1/requests/1")["state"] == "active"
        assert p.unix.get("/v1/requests/2")["place"] == 1
        assert p.devices() == before
        # Taken away from the VM while the service is not there.
        assert p.stop() == 0
        shutil.rmtree(p.libvirt)
        os.mkdir(p.libvirt)
        p.start()
        r = p.unix.wait(1, "released")
        assert r["why"] == "the VM does not have the whole GPU any more", r
        p.unix.wait(2, "active")
        assert {d[2] for d in p.devices()} == {"vm1"}


def goes_on_when_the_clock_is_set():
    folder = tempfile.mkdtemp(dir=TMP)
    path = os.path.join(folder, "clock")
    p = poold.Poold(folder, gpus=2)
    hour = 3600

    def set_clock(seconds):
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(f"{seconds}")
        os.rename(path + ".new", path)

    def begin():
        """The service's time, and the machine's before and after it was asked."""
        before = time.monotonic()
        return p.unix.get("/v1/status")["now"], before, time.monotonic()

    def passed(since):
        """Seconds of the service since begin(), and at least and at most of the machine."""
        own, before, after = begin()
        return own - since[0], before - since[2], after - since[1]

    set_clock(0)
    p.start(MGPU_TEST_CLOCK=path)
    try:
        p.unix.ask("stays", lease_s=10 * hour)
        kept = p.unix.wait(1, "active")
        p.unix.ask("ends", vm="vm1", lease_s=5)
        p.unix.wait(2, "active", "released")
        since = begin()
        set_clock(-hour)
        # The lease is over after its seconds, not an hour later.
        ended = p.unix.wait(2, "released")
        assert ended["ended"] - ended["attached"] >= 5, ended
        own, least, most = passed(since)
        assert least * 0.9 - 2 <= own <= most * 1.1 + 2, (own, least, most)
        set_clock(400 * 24 * hour)
        time.sleep(0.1)
        own, least, most = passed(since)
        assert least * 0.9 - 2 <= own <= most * 1.1 + 2, (own, least, most)
        assert p.unix.get("/v1/requests/1")["state"] == "active"
        poold.wait_for(lambda: "the clock" in p.log(), "a line about the clock")
        set_clock(-24 * hour)
        assert p.stop() == 0
        # The next one does not begin before what is stored.
        p.start(MGPU_TEST_CLOCK=path)
        own = passed(since)[0]
        assert own >= kept["attached"] - since[0], own
        assert p.unix.get("/v1/requests/1")["state"] == "active"
        # Without a request the service takes a later time at once, such as the first one of NTP.
        p.unix.release(1)
        p.unix.wait(1, "released")
        before = begin()
        set_clock(24 * hour)
        poold.wait_for(lambda: passed(before)[0] >= 24 * hour - 60, "the time of the clock")
    finally:
        if p.process:
            assert p.stop() == 0, p.log()


def long_polls():
    with service() as p:
        p.unix.ask("a")
        p.unix.wait(1, "active")
        b = p.unix.ask("b", vm="vm1").json
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            waiting = [pool.submit(p.unix.get, f"/v1/requests/2?wait=60&seen={b['version']}")
                       for _ in range(8)]
            # They hold up nobody.
            p.unix.get("/v1/status")
            p.unix.release(1)
            for w in waiting:
                answer = w.result(poold.PATIENCE)
                assert answer["version"] != b["version"], answer
        now = p.unix.get(f"/v1/requests/1?wait=1&seen={p.unix.get('/v1/requests/1')['version']}")
        assert now["state"] in ("released", "releasing"), now


def long_poll_of_a_token_that_goes():
    """Its answer has nothing that came after."""
    with service() as p:
        token = p.unix.call("PUT", "/v1/tokens/t", {"role": "viewer"}).json["token"]
        p.unix.ask("a")
        r = p.unix.wait(1, "active")
        with contextlib.closing(poold.UnixConnection(p.socket)) as c:
            c.request("GET", f"/v1/requests/1?wait=60&seen={r['version']}",
                      headers={"Authorization": "Bearer " + token})
            # It waits once later calls were answered.
            for _ in range(3):
                p.unix.get("/v1/status")
            assert p.unix.call("DELETE", "/v1/tokens/t").status == 204
            p.unix.get("/v1/status")
            p.unix.release(1)
            answer = c.getresponse()
            assert answer.status == 200
            assert json.load(answer)["version"] == r["version"]


# ---- streams

class Stream:
    """Server-Sent Events."""

    def __init__(self, connection, target="/v1/events/stream", **headers):
        self.connection = connection
        connection.request("GET", target, headers=headers)
        self.response = connection.getresponse()

    def event(self):
        """The next event, None at the end of the stream."""
        for line in iter(self.response.readline, b""):
            if line.startswith(b"data: "):
                return json.loads(line[6:])
        return None


def streams():
    with service() as p:
        stream = Stream(poold.UnixConnection(p.socket))
        assert stream.response.headers["Content-Type"] == "text/event-stream"
        p.unix.ask("a")
        p.unix.wait(1, "active")
        seen = [stream.event() for _ in range(3)]
        assert [e["what"] for e in seen][0] == "request", seen
        assert [e["id"] for e in seen] == sorted(e["id"] for e in seen), seen
        stream.connection.close()
        resumed = Stream(poold.UnixConnection(p.socket), **{"Last-Event-ID": str(seen[0]["id"])})
        assert resumed.event() == seen[1]
        behind = Stream(poold.UnixConnection(p.socket),
                        f"/v1/events/stream?after={seen[1]['id']}")
        assert behind.event() == seen[2]
        # Rights that changed end streams.
        token = p.unix.call("PUT", "/v1/tokens/t", {"role": "viewer"}).json["token"]
        mine = Stream(poold.UnixConnection(p.socket), Authorization="Bearer " + token)
        assert mine.response.status == 200
        assert p.unix.call("DELETE", "/v1/tokens/t").status == 204
        assert mine.event() is None
        assert p.unix.call("GET", "/v1/events/stream",
                           headers={"Authorization": "Bearer " + token}).status == 401


def streams_of_a_token_that_expires():
    with service() as p:
        expires = int(time.time()) + 5
        token = p.unix.call("PUT", "/v1/tokens/t", {"role": "viewer", "expires": expires}).json["token"]
        mine = Stream(poold.UnixConnection(p.socket, timeout=10 * poold.PATIENCE),
                      Authorization="Bearer " + token)
        assert mine.response.status == 200, mine.response.status
        while mine.event():
            pass
        assert p.unix.call("GET", "/v1/status",
                           headers={"Authorization": "Bearer " + token}).status == 401


def tokens_of_a_project_that_goes():
    """A later project of the name is another one."""
    with service() as p:
        p.unix.call("PUT", "/v1/projects/q", {})
        tokens = [p.unix.call("PUT", f"/v1/tokens/{name}", {"role": role, "project": "q"}).json["token"]
                  for name, role in (("t", "project"), ("v", "viewer"))]
        mine = Stream(poold.UnixConnection(p.socket), Authorization="Bearer " + tokens[0])
        assert p.unix.call("DELETE", "/v1/projects/q").status == 204
        assert mine.event() is None
        p.unix.call("PUT", "/v1/projects/q", {})
        for token in tokens:
            assert p.unix.call("GET", "/v1/status",
                               headers={"Authorization": "Bearer " + token}).status == 401


def streams_of_a_project():
    with service(gpus=2) as p:
        p.unix.call("PUT", "/v1/projects/q", {})
        p.unix.call("PUT", "/v1/vms/vm1", {"project": "q"})
        token = p.unix.call("PUT", "/v1/tokens/t", {"role": "project", "project": "q"}).json["token"]
        mine = Stream(poold.UnixConnection(p.socket), Authorization="Bearer " + token)
        p.unix.ask("theirs")
        p.unix.wait(1, "active")
        p.unix.ask("mine", vm="vm1")
        for _ in range(3):
            event = mine.event()
            assert event["request"] == 2, event
        # Behind many events of others, and before none.
        for _ in range(300):
            p.unix.call("PUT", "/v1/projects/other", {})
        p.unix.ask("late", vm="vm1", target="whole")
        p.unix.release(3)
        p.unix.wait(3, "cancelled", "released")
        late = Stream(poold.UnixConnection(p.socket), f"/v1/events/stream?after={event['id']}",
                      Authorization="Bearer " + token)
        for line in iter(late.response.readline, b""):
            # A comment comes when there was nothing to send for long.
            assert not line.startswith(b":"), line
            if b'"request":3' in line:
                break
        else:
            raise AssertionError("the stream ended")


# ---- callers

def tls_and_tokens():
    with service(listen=listen()) as p:
        port = port_of(p)
        assert p.tls(port, CA.path).call("GET", "/v1/status").status == 401
        for role, project in (("admin", None), ("viewer", None), ("project", "default")):
            token = p.unix.call("PUT", f"/v1/tokens/{role}",
                                {"role": role, "project": project}).json["token"]
            you = p.tls(port, CA.path, token).get("/v1/status")["you"]
            assert you == {"name": role, "role": role, "project": project}, you
        answer = p.tls(port, CA.path, token).call("GET", "/v1/status")
        assert answer.headers["Strict-Transport-Security"], answer.headers
        try:
            p.tls(port, CA.path, token, version=ssl.TLSVersion.TLSv1_2).call("GET", "/v1/status")
            old = True
        except (ssl.SSLError, ConnectionError):
            old = False
        assert not old
        p.tls(port, CA.path, token, version=ssl.TLSVersion.TLSv1_3).get("/v1/status")
        # No HTTP without TLS.
        try:
            plain = http.client.HTTPConnection("127.0.0.1", port, timeout=poold.PATIENCE)
            plain.request("GET", "/v1/status")
            plain.getresponse()
            served = True
        except (OSError, http.client.HTTPException):
            served = False
        assert not served


CLIENTS = """
[client ops]
role = admin
[client urn:mgpu:q]
role = project
project = q
[client watch.example]
role = viewer
[project q]
weight = 50
"""


def certificates():
    with service(listen=listen(), config=CLIENTS) as p:
        port = port_of(p)

        def you(certificate):
            answer = p.tls(port, CA.path, certificate=certificate).call("GET", "/v1/status")
            return answer.json.get("you", {}).get("role", answer.status)

        assert you(CA.make("ops")) == "admin"
        assert you(CA.make("x", [x509.UniformResourceIdentifier("urn:mgpu:q")])) == "project"
        assert you(CA.make("x", [x509.DNSName("watch.example")])) == "viewer"
        assert you(CA.make("x")) == 401
        assert you(CA.make("ops2", [x509.DNSName("ops.example")])) == 401
        for bad in (OTHER_CA.make("ops"), CA.make("ops", days=-1)):
            try:
                role = you(bad)
            except (ssl.SSLError, ConnectionError, http.client.HTTPException):
                role = 401
            assert role == 401, role
        # A token counts more than the certificate.
        token = p.unix.call("PUT", "/v1/tokens/v", {"role": "viewer"}).json["token"]
        both = p.tls(port, CA.path, token, certificate=CA.make("ops"))
        assert both.get("/v1/status")["you"]["role"] == "viewer"
        wrong = p.tls(port, CA.path, "mgpu-wrong", certificate=CA.make("ops"))
        assert wrong.call("GET", "/v1/status").status == 401


def users_of_the_socket():
    if os.geteuid():
        raise pytap.Skip("not root")
    def as_nobody(p):
        os.chmod(TMP, 0o755)
        os.chmod(p.folder, 0o755)
        read, write = os.pipe()
        child = os.fork()
        if not child:
            text = b"?"
            try:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
                answer = p.unix.call("GET", "/v1/status")
                text = f"{answer.status} {answer.json.get('you', {}).get('role')}".encode()
            except OSError as error:
                text = type(error).__name__.encode()
            finally:
                os.write(write, text)
                os._exit(0)
        os.close(write)
        with open(read, encoding="utf-8") as file:
            text = file.read()
        os.waitpid(child, 0)
        return text

    with service() as p:
        assert p.unix.get("/v1/status")["you"]["role"] == "admin"
        assert as_nobody(p) == "PermissionError", as_nobody(p)
        os.chmod(p.socket, 0o666)
        assert as_nobody(p) == "401 None", as_nobody(p)
    with service(listen="others = viewer\n") as p:
        assert as_nobody(p) == "200 viewer", as_nobody(p)


def wrong_tokens_are_slowed_down():
    with service(listen=listen(), config="[limits]\nopens_burst = 1000\n") as p:
        client = p.tls(port_of(p), CA.path, "mgpu-wrong")
        answers = [client.call("GET", "/v1/status") for _ in range(60)]
        assert answers[0].status == 401 and "expired" in answers[0].text, answers[0]
        assert answers[0].headers["WWW-Authenticate"].startswith("Bearer"), answers[0].headers
        slowed = [a for a in answers if a.status == 429]
        assert slowed and int(slowed[0].headers["Retry-After"]) >= 1, answers
        # Another client is served.
        p.unix.get("/v1/status")
        log = [e for e in p.unix.get("/v1/events?limit=1000")["events"] if e["what"] == "refused"]
        assert 0 < len(log) <= 31, len(log)
        assert log[0]["object"] == "127.0.0.1", log[0]


def rates():
    with service(config="[limits]\nrate = 1\nburst = 8\n") as p:
        statuses = [p.unix.call("GET", "/v1/status").status for _ in range(40)]
        assert 429 in statuses and statuses.count(200) >= 1, statuses


def large_history():
    """The history is sent from disk, and in so many pieces at a time only."""
    with service() as p:
        p.stop()
        with contextlib.closing(sqlite3.connect(os.path.join(p.folder, "pool.db"))) as db, db:
            db.executemany("INSERT INTO pool_outcome VALUES (?, 'default', 'training', 'A100', 'whole', "
                           "'any', 0, 1000000, 0, 0, 0, 1700000000, 1)",
                           ((i,) for i in range(1, 60001)))
        p.start()
        with contextlib.ExitStack() as stack:
            deaf = []
            for _ in range(4):
                deaf.append(stack.enter_context(socket.socket(socket.AF_UNIX)))
                deaf[-1].settimeout(poold.PATIENCE)
                deaf[-1].connect(p.socket)
                deaf[-1].sendall(b"GET /v1/history.csv HTTP/1.0\r\n\r\n")
                assert deaf[-1].recv(12) == b"HTTP/1.1 200", "a history is sent"
            folder = f"/proc/{p.process.pid}/fd"
            files = [os.readlink(f"{folder}/{fd}") for fd in os.listdir(folder)]
            on_disk = [f for f in files if f.startswith("/var/tmp/#")]
            assert len(on_disk) == 4 and not any("memfd" in f for f in files), files
            answer = p.unix.call("GET", "/v1/history.csv")
            assert answer.status == 503 and int(answer.headers["Retry-After"]) > 0, answer
            deaf[0].close()
            poold.wait_for(lambda: p.unix.call("GET", "/v1/history.csv").status == 200,
                           "the history is sent again")
            whole = b""
            while more := deaf[1].recv(1 << 20):
                whole += more
            assert whole.count(b"\r\n60000,") == 1 and whole.endswith(b",1\r\n"), whole[-100:]


def in_a_row(p, path, count, token=None):
    """Send calls without waiting for answers. Return the statuses, up to one that ends it."""
    head = f"GET {path} HTTP/1.1\r\nHost: x\r\n"
    head += f"Authorization: Bearer {token}\r\n" if token else ""
    got = b""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(poold.PATIENCE)
        s.connect(p.socket)
        s.sendall((head + "\r\n").encode() * count)
        while len(re.findall(rb"HTTP/1\.1 \d+", got)) < count:
            more = s.recv(65536)
            if not more:
                break
            got += more
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+)", got)]


def long_calls():
    """A client gets a part of the service's time, however many calls it may make."""
    with service(config="[limits]\nrate = 100000\nburst = 100\n") as p:
        token = p.unix.call("PUT", "/v1/tokens/v", {"role": "viewer"}).json["token"]
        statuses = in_a_row(p, "/v1/use", 40, token)
        assert statuses[0] == 200 and statuses[-1] == 429, statuses
        assert in_a_row(p, "/v1/use", 40) == [200] * 40


def other_sites():
    with service() as p:
        for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"},
                        {"Origin": "null"}, {"Sec-Fetch-Site": "same-site"}):
            answer = p.unix.call("PUT", "/v1/projects/x", {}, headers=headers)
            assert answer.status == 403, (headers, answer)
            assert p.unix.call("GET", "/v1/status", headers=headers).status == 200
        for headers in ({"Origin": "http://localhost", "Host": "localhost"},
                        {"Sec-Fetch-Site": "same-origin"}):
            assert p.unix.call("PUT", "/v1/projects/x", {}, headers=headers).status == 200
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        assert p.unix.call("PUT", "/v1/projects/y", "{}", headers=form).status == 400
        assert p.unix.call("PUT", "/v1/projects/y", "{}",
                           headers={"Content-Type": "text/plain"}).status == 400


def rebound_names():
    """A site whose name leads to a forwarded port of the Unix socket."""
    with service(listen=listen()) as p:
        for host in ("evil.example", "evil.example:8080", "127.0.0.1.evil.example", "evil.example.",
                     "localhost.evil.example:1", ".1x", "evillocalhost.x"):
            for method, path in (("GET", "/v1/status"), ("PUT", "/v1/projects/x"), ("GET", "/")):
                body = {} if method == "PUT" else None
                answer = p.unix.call(method, path, body,
                                     headers={"Host": host, "Origin": f"http://{host}"})
                assert answer.status == 403 and "another host" in answer.text, (host, answer)
        for host in ("localhost", "localhost:8080", "127.0.0.1:8080", "[::1]:8080", "pool",
                     "pool.localhost:80"):
            answer = p.unix.call("PUT", "/v1/projects/x", {},
                                 headers={"Host": host, "Origin": f"http://{host}"})
            assert answer.status == 200, (host, answer)
        # With TLS the certificate proves the name.
        token = p.unix.call("PUT", "/v1/tokens/t", {"role": "viewer"}).json["token"]
        client = p.tls(port_of(p), CA.path, token)
        assert client.call("GET", "/v1/status", headers={"Host": "pool.example"}).status == 200


# ---- hostile clients

def sizes():
    with service() as p:
        with contextlib.closing(poold.UnixConnection(p.socket)) as c:
            c.putrequest("POST", "/v1/requests")
            c.putheader("Content-Length", str(64 * 1024 + 1))
            c.endheaders()
            assert c.getresponse().status == 413
        answer = p.unix.call("POST", "/v1/requests", " " * (64 * 1024))
        assert answer.status == 400, answer
        with contextlib.closing(poold.UnixConnection(p.socket)) as c:
            c.connect()
            c.sock.sendall(b"POST /v1/requests HTTP/1.1\r\nHost: x\r\n"
                           b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
            try:
                for _ in range(40):
                    c.sock.sendall(b"1000\r\n" + b"x" * 4096 + b"\r\n")
                got = c.sock.recv(100)
            except OSError:
                got = b""
            assert b" 201 " not in got and b" 200 " not in got, got
        with contextlib.closing(poold.UnixConnection(p.socket)) as c:
            c.connect()
            try:
                c.sock.sendall(b"GET /v1/status HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 200000)
                got = c.sock.recv(100)
            except OSError:
                got = b""
            assert b" 200 " not in got, got
        p.unix.get("/v1/status")


def drain(sock):
    """Read until the other side ends the connection."""
    try:
        while sock.recv(4096):
            pass
    except OSError:
        pass
    return True


def slow_clients():
    with service(config="[limits]\nrequest_s = 1\nconnections = 64\n") as p:
        stop = threading.Event()

        def dribble():
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(p.socket)
                s.settimeout(0.1)
                for byte in (b"GET /v1/status HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 10000):
                    try:
                        s.sendall(bytes([byte]))
                    except OSError:
                        return True
                    if stop.wait(0.05):
                        return False
            return False

        def never_reads():
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(p.socket)
                s.settimeout(poold.PATIENCE)
                s.sendall(b"GET /v1/openapi.yaml HTTP/1.1\r\nHost: x\r\n\r\n" * 200)
                return drain(s)

        with concurrent.futures.ThreadPoolExecutor(30) as pool:
            slow = [pool.submit(dribble) for _ in range(20)]
            deaf = pool.submit(never_reads)
            for i in range(20):
                # A call that a busy machine holds up for the second is cut off, too.
                begin = time.monotonic()
                assert p.serves() or time.monotonic() - begin >= 1, i
            assert all(s.result(poold.PATIENCE) for s in slow)
            assert deaf.result(poold.PATIENCE)
        stop.set()


def many_streams():
    with service(config="[limits]\nstreams = 4\n") as p:
        streams_ = [Stream(poold.UnixConnection(p.socket)) for _ in range(6)]
        statuses = [s.response.status for s in streams_]
        assert statuses == [200] * 4 + [503] * 2, statuses
        # A long poll is answered at once, then.
        r = p.unix.ask("a").json
        answer = p.unix.get(f"/v1/requests/1?wait=60&seen={r['version']}")
        assert answer["id"] == 1
        for s in streams_:
            s.connection.close()


def headers_and_page():
    with service() as p:
        page = p.unix.call("GET", "/")
        assert page.status == 200 and b"<html" in page.body, page
        for answer in (page, p.unix.call("GET", "/v1/status"), p.unix.call("GET", "/v1/none")):
            for name, value in (("X-Content-Type-Options", "nosniff"),
                                ("X-Frame-Options", "DENY"), ("Referrer-Policy", "no-referrer"),
                                ("Cross-Origin-Opener-Policy", "same-origin")):
                assert answer.headers[name] == value, (name, answer.headers)
            policy = answer.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy and "unsafe" not in policy, policy
            assert "frame-ancestors 'none'" in policy, policy
        assert not re.search(rb"<script(?![^>]*src=)", page.body), "inline script"
        for path in re.findall(rb'(?:src|href)="(/[^"]*)"', page.body):
            assert p.unix.call("GET", path.decode()).status == 200, path
        assert p.unix.call("HEAD", "/").body == b""
        assert p.unix.call("GET", "/page/../page/page.js").status in (401, 404)
        assert p.unix.call("GET", "/page/%2e%2e/main.c").status in (401, 404)


def exposed_secrets():
    """Files with secrets that every user can read are told of at the start."""
    key, url = SERVER[1], "postgresql://u:hidden@127.0.0.1:1/x?connect_timeout=1"
    mode = os.stat(key).st_mode
    for bits, told in ((0o644, True), (0o640, False)):
        os.chmod(key, bits)
        with service(listen=listen()) as p:
            assert ("every user can read the private key" in p.log()) == told, p.log()
        p.database = url
        p.configure()
        os.chmod(p.config, bits)
        error = p.run("serve", status=1)[1]
        assert ("every user can read the password" in error) == told, error
        assert "hidden" not in error, error
    os.chmod(key, mode)
    for url, told in (("postgresql://u@h/x?password=hidden", True), ("postgresql://u@h:1/x", False),
                      ("postgresql://h:1/a:b@c", False)):
        p.database = url + ("&" if "?" in url else "?") + "connect_timeout=1&host=127.0.0.1&port=1"
        p.configure()
        os.chmod(p.config, 0o644)
        error = p.run("serve", status=1)[1]
        assert ("every user can read the password" in error) == told, (url, error)


def no_secrets():
    with service() as p:
        token = p.unix.call("PUT", "/v1/tokens/t", {"role": "admin"}).json["token"]
        key = p.unix.call("POST", "/v1/vms/vm0/key").json["key"]
        p.unix.call("GET", "/v1/status", headers={"Authorization": "Bearer " + token})
        p.unix.call("GET", "/v1/status", headers={"Authorization": "Bearer x" + token})
        events = json.dumps(p.unix.get("/v1/events?limit=1000"))
        assert "token" in events and "vm-key" in events, events
        for secret in (token, key):
            assert secret not in events and secret not in p.log()
        assert p.stop() == 0
        with open(os.path.join(p.folder, "pool.db"), "rb") as file:
            database = file.read()
        assert token.encode() not in database
        assert os.stat(os.path.join(p.folder, "pool.db")).st_mode & 0o077 == 0
        p.start()


# ---- the service

def reloads():
    with service(listen=listen()) as p:
        port = port_of(p)
        token = p.unix.call("PUT", "/v1/tokens/t", {"role": "viewer"}).json["token"]
        p.tls(port, CA.path, token).get("/v1/status")
        stream = Stream(poold.UnixConnection(p.socket))
        old = Stream(http.client.HTTPSConnection(
            "localhost", port, context=ssl.create_default_context(cafile=CA.path),
            timeout=poold.PATIENCE), Authorization="Bearer " + token)
        assert stream.response.status == old.response.status == 200
        # A mistake changes nothing.
        p.configure("[idle]\nlook1_s = never\n", listen())
        p.process.send_signal(signal.SIGHUP)
        poold.wait_for(lambda: "look1_s 'never'" in p.log(), "the mistake is logged")
        p.tls(port, CA.path, token).get("/v1/status")
        p.configure("[project new]\nweight = 7\n", listen() + "socket = /other\n")
        with open(p.config, encoding="utf-8") as file:
            text = file.read().replace(f"socket = {p.socket}\n", "", 1)
        with open(p.config, "w", encoding="utf-8") as file:
            file.write(text)
        p.process.send_signal(signal.SIGHUP)
        poold.wait_for(lambda: "at a restart only" in p.log(), "the socket stays")
        # Another authority, another project, another host.
        p.configure("[project new]\nweight = 7\n[host two]\nuri = test:///default\n",
                    listen(OTHER_CA.make("poold", local_names())))
        p.process.send_signal(signal.SIGHUP)
        poold.wait_for(lambda: "new" in json.dumps(p.unix.get("/v1/projects")), "the project")
        poold.wait_for(lambda: all(h["up"] for h in p.unix.get("/v1/hosts")["hosts"]) and
                       len(p.unix.get("/v1/hosts")["hosts"]) == 2, "the host")
        p.tls(port, OTHER_CA.path, token).get("/v1/status")
        for ended in (stream, old):
            while ended.event():
                pass
        assert any(e["what"] == "reload" for e in p.unix.get("/v1/events")["events"])
        p.configure("", listen())
        p.process.send_signal(signal.SIGHUP)
        poold.wait_for(lambda: len(p.unix.get("/v1/hosts")["hosts"]) == 1, "the host goes")


def host_leaves():
    with service(gpus=2) as p:
        with open(p.config, encoding="utf-8") as file:
            with_host = file.read()
        without, name = with_host.split("[host one]")[0], "/v1/hosts/one"

        def configure(text):
            with open(p.config, "w", encoding="utf-8") as file:
                file.write(text)
            p.process.send_signal(signal.SIGHUP)

        def is_up():
            return p.unix.get("/v1/hosts")["hosts"][0]["up"]

        p.unix.ask("k1")
        p.unix.ask("k2", vm="vm1")
        p.unix.wait(1, "active")
        p.unix.wait(2, "active")
        configure(without)
        poold.wait_for(lambda: not is_up(), "the host left")
        assert "its requests wait" in p.unix.get("/v1/hosts")["hosts"][0]["why"]
        p.unix.release(2)
        # By mistake: nothing is lost.
        configure(with_host)
        poold.wait_for(is_up, "it is back")
        p.unix.wait(2, "released")
        assert p.unix.get("/v1/requests/1")["state"] == "active"
        assert {d[3] for d in p.devices()} == {1}, p.devices()
        # For good, as it seems; also after a restart.
        configure(without)
        poold.wait_for(lambda: not is_up(), "the host left again")
        assert p.stop() == 0, p.log()
        p.begin()
        poold.wait_for(p.serves, "it serves")
        assert p.unix.get("/v1/requests/1")["state"] == "active" and not is_up()
        assert p.unix.call("DELETE", name).status == 204
        assert p.unix.get("/v1/requests/1")["state"] == "released"
        assert not p.unix.get("/v1/hosts")["hosts"]
        configure(with_host)
        poold.wait_for(lambda: not p.devices(), "the device of the request that ended goes")


def refuses_a_second():
    with service() as p:
        _, error = p.run("serve", status=1)
        assert "serves the database" in error, error
        p.unix.get("/v1/status")
        # Beside it, with another database, but the same socket.
        with open(p.config, encoding="utf-8") as file:
            text = file.read().replace("pool.db", "other.db")
        other = os.path.join(p.folder, "other.conf")
        with open(other, "w", encoding="utf-8") as file:
            file.write(text)
        done = subprocess.run([poold.PROGRAM, "serve", "--config", other], capture_output=True,
                              text=True, timeout=poold.PATIENCE, check=False)
        assert done.returncode == 1 and "another mgpu-poold has" in done.stderr, done
        p.unix.get("/v1/status")


def ends_with_clients():
    folder = tempfile.mkdtemp(dir=TMP)
    notify = os.path.join(folder, "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(notify)
        s.settimeout(poold.PATIENCE)
        p = poold.Poold(folder, listen=listen())
        try:
            p.start(NOTIFY_SOCKET=notify)
            assert s.recv(1000).startswith(b"READY=1")
            p.unix.ask("a")
            r = p.unix.wait(1, "active")
            stream = Stream(poold.UnixConnection(p.socket))
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                waiting = [pool.submit(p.unix.call, "GET",
                                       f"/v1/requests/1?wait=60&seen={r['version']}")
                           for _ in range(4)]
                idle = socket.create_connection(("127.0.0.1", port_of(p)))
                # They wait once a later call was answered.
                p.unix.get("/v1/status")
                assert p.stop() == 0, p.log()
                for w in waiting:
                    with contextlib.suppress(OSError, http.client.HTTPException):
                        assert w.result(poold.PATIENCE).status == 200
            while stream.event():
                pass
            idle.close()
            assert s.recv(1000) == b"STOPPING=1"
            assert not os.path.exists(p.socket)
        finally:
            if p.process:
                p.stop(signal.SIGKILL)
        assert "Sanitizer" not in p.log(), p.log()


def commands():
    with service(gpus=2) as p:
        run = p.run
        out, _ = run("config")
        assert out.endswith(": good\n"), out
        out, _ = run("request", "vm0", "--kind", "training", "--wait", "60", "--json")
        assert json.loads(out)["state"] == "active", out
        out, _ = run("request", "vm1", "--kind", "render", "--key", "k", "--lease", "90")
        assert "vm1" in out and out.startswith("ID"), out
        again, _ = run("request", "vm1", "--kind", "render", "--key", "k", "--lease", "90")
        assert again.split()[6] == "2" or "2 " in again, again
        out, _ = run("list")
        assert len(out.splitlines()) == 3, out
        out, _ = run("release", "1", "--done")
        assert "releas" in out, out
        p.unix.wait(1, "released")
        out, _ = run("list", "--all", "--json")
        assert len(json.loads(out)["requests"]) == 2, out
        token, _ = run("token", "ci", "--role", "project", "--project", "default", "--days", "3")
        mine = poold.Client(p.unix.connect, token.strip())
        assert mine.get("/v1/status")["you"]["name"] == "ci"
        csv, _ = run("export")
        assert len(csv.splitlines()) == 2 and "training" in csv, csv
        for words, text in ((("release", "x"), "number of a request"),
                            (("release", "9", "--all"), "--all"),
                            (("request", "vm0"), "--kind"),
                            (("token", "a/b", "--role", "viewer"), "must be names"),
                            (("token", "a", "--role", "boss"), "viewer, project or admin"),
                            (("token", "a", "--role", "project"), "add --project"),
                            (("serv",), "serve"), (("list", "x"), "options only")):
            _, error = run(*words, status=2)
            assert text in error, (words, error)
        _, error = run("request", "none", "--kind", "x", status=1)
        assert "no VM 'none'" in error, error
        _, error = run("release", "77", status=1)
        assert "no request 77" in error, error
        _, error = run("list", "--socket", p.socket + "/" + "x" * 108, status=1)
        assert "File name too long" in error, error
        assert p.stop() == 0
        _, error = run("list", status=1)
        assert "start mgpu-poold" in error, error
        token, _ = run("token", "later", "--role", "viewer")
        same, _ = run("export")
        assert same == csv, same
        p.start()
        assert poold.Client(p.unix.connect, token.strip()).get("/v1/status")["you"]["name"] == "later"


def exported(body, length):
    """What export prints, and its status, when the answer announces so many bytes."""
    folder = tempfile.mkdtemp(dir=TMP)
    p = poold.Poold(folder)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(p.socket)
        listener.listen()
        listener.settimeout(poold.PATIENCE)

        def answer():
            listener.accept()[0].close()    # it sees that there is a service
            with listener.accept()[0] as s:
                s.recv(4096)
                head = f"HTTP/1.1 200 OK\r\nContent-Type: text/csv\r\n{length}\r\n"
                s.sendall(head.encode() + body)

        thread = threading.Thread(target=answer)
        thread.start()
        done = subprocess.run([poold.PROGRAM, "export", "--config", p.config], check=False,
                              capture_output=True, timeout=poold.PATIENCE)
        thread.join()
    return done.stdout, done.returncode, done.stderr.decode()


def exports_the_whole():
    """A service that ends while it sends must not pass for a short history."""
    large = b"0123456789abcde\n" * (5 << 20)
    out, status, error = exported(large, f"content-length: {len(large)}\r\n")
    assert status == 0 and out == large, (status, error, len(out))
    for length in (f"Content-Length: {len(large)}\r\n", ""):
        out, status, error = exported(large[:1000], length)
        assert status == 1 and "not all of it" in error, (length, status, error)


@contextlib.contextmanager
def database_server():
    """A PostgreSQL server."""
    try:
        server = postgres.Server()
    except postgres.Missing as why:
        raise pytap.Skip(str(why)) from why
    with server as running:
        yield running


def on_a_server():
    for test in (gives_and_takes, one_answer_for_a_key, lasts_over_restarts):
        with database_server() as server:
            test(database=server.url())
            assert "PANIC" not in server.log()


def server_goes_away():
    """The service ends or waits, and loses nothing; as under systemd, it is started again."""
    with database_server() as server:
        folder = tempfile.mkdtemp(dir=TMP)
        p = poold.Poold(folder, gpus=2, database=server.url())
        try:
            p.start()
            assert p.unix.get("/v1/status")["database"].startswith("postgresql"), p.log()
            p.unix.ask("before")
            p.unix.wait(1, "active")
            server.kill()
            try:
                lost = p.unix.ask("during", vm="vm1").status
            except (OSError, http.client.HTTPException):
                lost = 503
            assert lost == 503, lost
            server.start()

            def asked():
                if p.process.poll() is not None:
                    p.begin()
                try:
                    answer = p.unix.ask("during", vm="vm1")
                    return answer.json if answer.status in (200, 201) else None
                except (OSError, http.client.HTTPException):
                    return None

            r = poold.wait_for(asked, "the service takes the request")
            p.unix.wait(r["id"], "active")
            assert p.unix.get("/v1/requests/1")["state"] == "active"
            assert {d[2] for d in p.devices()} == {"vm0", "vm1"}, p.devices()
            assert p.stop() == 0, p.log()
            assert "Sanitizer" not in p.log(), p.log()
        finally:
            if p.process and p.process.poll() is None:
                p.stop(signal.SIGKILL)


def bad_starts():
    folder = tempfile.mkdtemp(dir=TMP)
    p = poold.Poold(folder)
    for config, lines, status, text in (
            ("[idle]\nlook_s = 1\n", "", 3, "did you mean 'look1_s'"),
            ("", "address = 127.0.0.1:0\n", 3, "needs certificate and key"),
            ("", "address = 127.0.0.1:0\ncertificate = /none\nkey = /none\n", 1, "/none: "),
            ("", f"address = 127.0.0.1:0\ncertificate = {SERVER[0]}\nkey = {CA.path}\n", 1,
             "give a certificate and its key"),
            ("", f"address = 127.0.0.1:0\ncertificate = {SERVER[0]}\nkey = {SERVER[1]}\n"
             f"client_ca = {SERVER[1]}\n", 1, "give a certificate and its key"),
            ("", f"address = nowhere\ncertificate = {SERVER[0]}\nkey = {SERVER[1]}\n", 1,
             "nowhere"),
            ("[agents]\nlisten = nowhere\n", "", 1, "nowhere")):
        p.configure(config, lines)
        _, error = p.run("serve", status=status)
        assert text in error, error
    p.database = "sqlite:/none/pool.db"
    p.configure()
    _, error = p.run("serve", status=1)
    assert "/none" in error, error


def main():
    tests = [
        (routes, "the program's routes are those of openapi.yaml"),
        (gives_and_takes, "a VM gets a GPU, the next one gets it after the release"),
        (every_answer_is_described, "every route is called, and its answers are as described"),
        (one_answer_for_a_key, "many calls with a key are one request"),
        (lasts_over_restarts, "requests and queue outlive the service"),
        (goes_on_when_the_clock_is_set, "a clock that is set neither ends nor holds up a lease"),
        (long_polls, "long polls are answered by the change"),
        (long_poll_of_a_token_that_goes, "a long poll ends with its token"),
        (streams, "a stream has events in order, resumes, and ends with its token"),
        (streams_of_a_token_that_expires, "a stream ends when its token expires"),
        (tokens_of_a_project_that_goes, "the tokens of a project go with it"),
        (streams_of_a_project, "a project's stream has its own events only"),
        (tls_and_tokens, "TLS 1.3 only, with tokens of three roles"),
        (certificates, "names of certificates have roles, and others are refused"),
        (users_of_the_socket, "users of the socket have the roles of the configuration"),
        (wrong_tokens_are_slowed_down, "wrong tokens are slowed down and logged, in bounded number"),
        (rates, "a client that asks too often is refused"),
        (large_history, "a large history takes no memory"),
        (long_calls, "calls that take long count as many"),
        (other_sites, "pages of other sites change nothing"),
        (rebound_names, "names of other sites that lead to the Unix socket are refused"),
        (sizes, "heads and bodies that are too large are refused"),
        (slow_clients, "slow clients are disconnected, and hold up nobody"),
        (many_streams, "streams are bounded"),
        (headers_and_page, "the page and the API have strict headers"),
        (exposed_secrets, "files with secrets that every user can read are told of"),
        (no_secrets, "neither log nor database has a secret of the API"),
        (reloads, "SIGHUP brings settings, certificates, projects and hosts"),
        (host_leaves, "requests of a host that leaves wait, or are ended, and none is lost"),
        (refuses_a_second, "a second service is refused"),
        (ends_with_clients, "the end answers clients that wait"),
        (commands, "commands ask, list, release, and make tokens"),
        (exports_the_whole, "an export that breaks off fails"),
        (on_a_server, "on PostgreSQL it gives, takes, and goes on, too"),
        (server_goes_away, "a database server that goes away costs no request"),
        (bad_starts, "a start that fails says why"),
    ]
    only = [t for t in tests if t[0].__name__ in sys.argv[1:]]
    try:
        return pytap.run(only or tests)
    finally:
        shutil.rmtree(TMP)


if __name__ == "__main__":
    sys.exit(main())
