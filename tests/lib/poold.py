# SPDX-License-Identifier: GPL-2.0-only
"""Runs mgpu-poold for tests: a private folder, libvirt's test driver, and calls of its API.

Every answer is checked against ctl/pool/openapi.yaml.  The driver's VMs are kept in a folder, so
that they outlive the service: see tests/unit/pool_persist.c.
"""

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import time
import urllib.parse
import xml.etree.ElementTree

import jsonschema
import yaml

from libvirt_node import node_xml

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD", os.path.join(TOP, "build"))
PROGRAM = os.path.join(BUILD, "unit", "test_poold")
SLOW = float(os.environ.get("MGPU_SLOW", "1"))
PATIENCE = 60 * SLOW

with open(os.path.join(TOP, "ctl/pool/openapi.yaml"), encoding="utf-8") as _file:
    OPENAPI = yaml.safe_load(_file)


def wait_for(condition, what):
    """Wait until a condition holds; returns its value."""
    end = time.monotonic() + PATIENCE
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"in vain: {what}")
        time.sleep(0.02)


def path_of(method, target):
    """The path of the description that a target is of, None for none."""
    path = urllib.parse.unquote(target.split("?")[0])
    # The one without parameters counts first.
    for pattern in sorted(OPENAPI["paths"], key=lambda p: "{" in p):
        if (re.fullmatch(re.sub(r"\{[a-z]+\}", "[^/]+", pattern), path) and
                method.lower() in OPENAPI["paths"][pattern]):
            return pattern
    return None


def check_answer(method, target, status, kind, body):
    """Compare an answer with the description of the API."""
    pattern = path_of(method, target)
    error = OPENAPI["components"]["responses"]["Error"]
    if pattern is None:
        response = error
        assert status in (400, 401, 403, 404, 405, 413, 429), (method, target, status)
    else:
        responses = OPENAPI["paths"][pattern][method.lower()]["responses"]
        response = responses.get(str(status), error)
        if "$ref" in response:
            response = error
        assert str(status) in responses or status >= 400, (method, target, status)
    content = response.get("content")
    if not content:
        assert body == b"", (method, target, body)
        return
    kind = kind.split(";")[0]
    assert kind in content, (method, target, status, kind)
    if kind != "application/json":
        return
    resolver = jsonschema.RefResolver("", OPENAPI)
    jsonschema.Draft202012Validator(content[kind]["schema"], resolver=resolver).validate(
        json.loads(body))


class Answer:
    """An answer: status, headers, and body as JSON or bytes."""

    def __init__(self, response, body):
        self.status = response.status
        self.headers = response.headers
        self.body = body
        self.json = None
        if (self.headers.get("Content-Type") or "").startswith("application/json"):
            self.json = json.loads(body)

    @property
    def text(self):
        """Text of the error."""
        return self.json["error"]["text"]

    def __repr__(self):
        return f"{self.status} {self.body[:300]!r}"


class UnixConnection(http.client.HTTPConnection):
    """HTTP at a Unix socket."""

    def __init__(self, path, timeout=PATIENCE):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Client:
    """Calls of the API over one connection after another."""

    def __init__(self, connect, token=None):
        self.connect = connect
        self.token = token

    def call(self, method, target, body=None, headers=None, check=True):
        """Make a call; @body: an object, or text as it is."""
        headers = dict(headers or {})
        if self.token:
            headers["Authorization"] = "Bearer " + self.token
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
        connection = self.connect()
        try:
            connection.request(method, target, body=body, headers=headers)
            response = connection.getresponse()
            answer = Answer(response, response.read())
        finally:
            connection.close()
        if check and target.startswith("/v1"):
            check_answer(method, target, answer.status,
                         answer.headers.get("Content-Type") or "", answer.body)
        return answer

    def get(self, target, **more):
        """Read something that must be there."""
        answer = self.call("GET", target, **more)
        assert answer.status == 200, f"{target}: {answer}"
        return answer.json

    def ask(self, key, vm="vm0", kind="training", **more):
        """Ask for a GPU."""
        return self.call("POST", "/v1/requests", {"key": key, "vm": vm, "kind": kind, **more})

    def release(self, number, **more):
        """Give it back."""
        answer = self.call("POST", f"/v1/requests/{number}/release", more or None)
        assert answer.status == 200, answer
        return answer.json

    def wait(self, number, *states):
        """Wait by long polls until a request is in one of the states."""
        end = time.monotonic() + PATIENCE
        r = self.get(f"/v1/requests/{number}")
        while r["state"] not in states:
            assert time.monotonic() < end, f"request {number} is {r['state']}: {r['why']}"
            r = self.get(f"/v1/requests/{number}?wait=5&seen={r['version']}")
        return r


def devices_of(folder):
    """What libvirt has: the bus of each GPU function and the VM and request that have it."""
    found = []
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".xml"):
            continue
        tree = xml.etree.ElementTree.parse(os.path.join(folder, name))
        for device in tree.iter("hostdev"):
            address = device.find("source/address")
            alias = device.find("alias").get("name")
            request = int(alias.split("-")[2])
            found.append((int(address.get("bus"), 16), int(address.get("function"), 16),
                          name[:-4], request))
    return found


class Poold:
    """A service with its folder."""

    def __init__(self, folder, gpus=1, vms=4, config="", database=None, listen=""):
        self.folder = folder
        self.socket = os.path.join(folder, "socket")
        self.libvirt = os.path.join(folder, "libvirt")
        self.log_path = os.path.join(folder, "log")
        self.config = os.path.join(folder, "pool.conf")
        self.database = database or "sqlite:" + os.path.join(folder, "pool.db")
        self.process = None
        self.env = {"MGPU_TEST_LIBVIRT": self.libvirt}
        os.makedirs(self.libvirt, exist_ok=True)
        self.describe(gpus, vms)
        self.configure(config, listen)
        self.unix = Client(lambda: UnixConnection(self.socket))

    def describe(self, gpus, vms):
        """Write the host that it has."""
        with open(os.path.join(self.folder, "node.xml"), "w", encoding="utf-8") as file:
            file.write(node_xml([(bus, "AD102") for bus in range(1, gpus + 1)],
                                [f"vm{i}" for i in range(vms)]))

    def configure(self, config="", listen=""):
        """Write the configuration file."""
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(f"[database]\nurl = {self.database}\n"
                       f"[listen]\nsocket = {self.socket}\nadmin_group = none\n{listen}\n"
                       f"[host one]\nuri = test://{self.folder}/node.xml\n{config}\n")

    def run(self, *words, status=0, **more):
        """Run a command; returns its standard output and error."""
        done = subprocess.run([PROGRAM, *words, "--config", self.config], capture_output=True,
                              text=True, timeout=PATIENCE, check=False, **more)
        assert done.returncode == status, f"{words}: {done.returncode}: {done.stderr}"
        return done.stdout, done.stderr

    def begin(self, **env):
        """Start it, without waiting for it."""
        with open(self.log_path, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [PROGRAM, "serve", "--config", self.config], stdout=log, stderr=log,
                env=dict(os.environ, **self.env, **env))

    def serves(self):
        """Whether it answers; raises when it has ended."""
        assert self.process.poll() is None, f"it ended: {self.log()}"
        try:
            return self.unix.call("GET", "/v1/status").json
        except (OSError, http.client.HTTPException):
            return None

    def start(self, **env):
        """Start it, and wait until its host is up."""
        self.begin(**env)
        wait_for(lambda: (self.serves() or {}).get("hosts", [{}])[0].get("up"), "the host is up")

    def stop(self, sig=signal.SIGTERM):
        """End it; returns the status."""
        if not self.process:
            return None
        self.process.send_signal(sig)
        try:
            status = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        self.process = None
        return status

    def log(self):
        """What it printed."""
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def devices(self):
        """What libvirt has."""
        return devices_of(self.libvirt)

    def tls(self, port, authority, token=None, certificate=None, version=None):
        """A client by TLS."""
        context = ssl.create_default_context(cafile=authority)
        if version:
            context.minimum_version = context.maximum_version = version
        if certificate:
            context.load_cert_chain(*certificate)
        return Client(lambda: http.client.HTTPSConnection("localhost", port, context=context,
                                                          timeout=PATIENCE), token)


@contextlib.contextmanager
def serving(folder, **options):
    """A running service, which must end by itself and without a sanitizer's report."""
    service = Poold(folder, **options)
    try:
        service.start()
        yield service
    finally:
        if service.process:
            status = service.stop()
            assert status == 0, f"{status}: {service.log()}"
    assert "Sanitizer" not in service.log(), service.log()
