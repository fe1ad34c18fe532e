# SPDX-License-Identifier: GPL-2.0-only
"""Clients of the API in the pool's bench: many requests at once, and what a page asks for."""
import http.client
import json
import random
import selectors
import threading
import time

from played import LIMIT_S, PlayedError, UnixConnection

WAIT_S = 30                 # of a long poll


class Call:
    """A connection with a call at a time, in a selector's loop."""

    def __init__(self, path):
        self.connection = UnixConnection(path)
        self.connection.connect()
        self.sock = self.connection.sock
        self.data = b""

    def send(self, method, target, body=None):
        text = b"" if body is None else json.dumps(body).encode()
        self.data = b""
        self.sock.sendall(f"{method} {target} HTTP/1.1\r\nHost: localhost\r\n"
                          "Content-Type: application/json\r\n"
                          f"Content-Length: {len(text)}\r\n\r\n".encode() + text)

    def receive(self):
        """Read what is there; return the object once the answer is complete."""
        more = self.sock.recv(65536)
        if not more:
            raise PlayedError("the service closed a connection")
        self.data += more
        head, found, body = self.data.partition(b"\r\n\r\n")
        if not found:
            return None
        lines = head.decode().split("\r\n")
        fields = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines[1:])}
        if len(body) < int(fields["content-length"]):
            return None
        if int(lines[0].split()[1]) >= 400:
            raise PlayedError(f"{lines[0]}: {body.decode()}")
        return json.loads(body)


def until(path, first, over):
    """Make a call on a connection each, then wait by long polls until the request is over.

    @first: (method, target, body) of each
    @over: whether a request is as it should be
    Return milliseconds and the last answer of each.
    """
    calls = [Call(path) for _ in first]
    taken = [0.0] * len(first)
    rows = [None] * len(first)
    end = time.monotonic() + LIMIT_S
    with selectors.DefaultSelector() as selector:
        for i, call in enumerate(calls):
            selector.register(call.sock, selectors.EVENT_READ, i)
        for i, call in enumerate(calls):
            taken[i] = time.monotonic()
            call.send(*first[i])
        while selector.get_map():
            if time.monotonic() > end:
                raise PlayedError("requests are not served: " +
                                  str([r and r["state"] for r in rows][:10]))
            for key, _ in selector.select(1):
                i = key.data
                answer = calls[i].receive()
                if not answer:
                    continue
                rows[i] = answer
                if over(answer):
                    taken[i] = (time.monotonic() - taken[i]) * 1e3
                    selector.unregister(key.fileobj)
                    calls[i].connection.close()
                elif answer["state"] in ("failed", "cancelled"):
                    raise PlayedError(f"request {answer['id']}: {answer['why']}")
                else:
                    calls[i].send("GET", f"/v1/requests/{answer['id']}?wait={WAIT_S}"
                                         f"&seen={answer['version']}")
    return taken, rows


def attach(path, vms, name):
    """Ask for a GPU for each VM, all at once; return milliseconds until attached, and requests."""
    return until(path, [("POST", "/v1/requests",
                         {"key": f"{name}-{vm}", "vm": vm, "kind": "bench"}) for vm in vms],
                 lambda r: r["state"] == "active")


def release(path, rows):
    """Give GPUs back, and wait until they are."""
    until(path, [("POST", f"/v1/requests/{r['id']}/release", {"done": True}) for r in rows],
          lambda r: r["state"] == "released")


class Page(threading.Thread):
    """Asks for what the page asks for while its overview is open (ctl/pool/page).

    It reads the stream of events; after an event it reads GPUs and open requests, at most twice a
    second and for a fifth of its time, and the long lists at most every 5 s; use every 15 s.
    """

    FAST_S = 0.5
    SLOW_S = 5
    USE_S = 15
    SLOW = ("/v1/status", "/v1/vms", "/v1/projects", "/v1/requests?limit=1000",
            "/v1/history?limit=1000", "/v1/tokens")

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path = path
        self.stopped = threading.Event()
        self.changed = True
        self.events = 0
        self.calls = 0
        self.bytes = 0
        self.error = None
        self.stream = UnixConnection(path)
        self.stream.request("GET", "/v1/events/stream")
        self.reader = threading.Thread(target=self.read, daemon=True)

    def read(self):
        try:
            for line in iter(self.stream.getresponse().readline, b""):
                if line.startswith(b"data:"):
                    self.events += 1
                    self.changed = True
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            pass

    def load(self, connection, *targets):
        for target in targets:
            answer = self.get(connection, target)
            self.bytes += len(answer.read())
            self.calls += 1
            if answer.status != 200:
                raise PlayedError(f"{target}: status {answer.status}")

    @staticmethod
    def get(connection, target):
        """Make a call; the service closes a connection that is idle, and browsers open another."""
        try:
            connection.request("GET", target)
            return connection.getresponse()
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            connection.close()
            connection.request("GET", target)
            return connection.getresponse()

    def open_requests(self, connection):
        self.load(connection, "/v1/gpus", "/v1/requests?open=1&limit=1000")

    def use(self, connection):
        self.load(connection, f"/v1/use?since={int(time.time()) - 86400}")

    def loop(self, connection):
        fast = slow = use = 0
        self.load(connection, "/", "/page/page.js", "/page/page.css", "/v1/events?limit=1000")
        while not self.stopped.wait(0.05):
            now = time.monotonic()
            if self.changed and now >= fast:
                self.changed = False
                self.open_requests(connection)
                end = time.monotonic()
                fast = end + max(self.FAST_S, 4 * (end - now))
                slow = slow if now < slow else self.slow(connection)
            if now >= use:
                self.use(connection)
                use = now + self.USE_S

    def slow(self, connection):
        self.load(connection, *self.SLOW)
        self.use(connection)
        return time.monotonic() + self.SLOW_S

    def run(self):
        self.reader.start()
        connection = UnixConnection(self.path)
        try:
            self.loop(connection)
        except (OSError, http.client.HTTPException, PlayedError) as error:
            self.error = str(error)
        connection.close()

    def stop(self):
        self.stopped.set()
        self.join()
        self.stream.close()
        if self.error:
            raise PlayedError(f"page: {self.error}")


class Every(threading.Thread):
    """Calls a function every so many seconds, by the clock, until stop()."""

    def __init__(self, seconds, function):
        super().__init__(daemon=True)
        self.seconds = seconds
        self.function = function
        self.stopped = threading.Event()
        self.calls = 0
        self.error = None
        self.start()

    def run(self):
        due = time.monotonic()
        while True:
            due = max(due + self.seconds, time.monotonic() - self.seconds)
            if self.stopped.wait(max(0, due - time.monotonic())):
                return
            try:
                self.function()
                self.calls += 1
            except (OSError, http.client.HTTPException, PlayedError) as error:
                self.error = str(error)
                return

    def stop(self):
        self.stopped.set()
        self.join()
        if self.error:
            raise PlayedError(self.error)


class Turnover:
    """Gives a GPU back and asks for one again, as users do."""

    def __init__(self, service, seed=22):
        self.service = service
        self.random = random.Random(seed)
        self.number = 0

    def once(self):
        rows = self.service.get("/v1/requests?open=1&limit=1000")["requests"]
        active = [r for r in rows if r["state"] == "active"]
        if not active:
            return
        r = self.random.choice(active)
        self.number += 1
        self.service.call("POST", f"/v1/requests/{r['id']}/release", {"done": True})
        self.service.call("POST", "/v1/requests", {"key": f"turn-{self.number}", "vm": r["vm"],
                                                   "kind": "bench"})
