# SPDX-License-Identifier: GPL-2.0-only
"""A real mgpu-poold on played hosts: libvirt's test driver, in the process of the service.

The driver has no guests and plugs nothing into a running VM.  Its VMs are off, and their
definitions get the devices, by the calls that a real host gets for a VM that is off.
"""
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.append(os.path.join(TOP, "tests", "lib"))

from libvirt_node import node_xml  # noqa: E402 pylint: disable=wrong-import-position

BUILD = os.environ.get("BUILD", os.path.join(TOP, "build"))
PROGRAM = os.path.join(BUILD, "ctl", "mgpu-poold")
LIMIT_S = 120               # to start, and for an answer
# Ctrl-C is for the program that plays; what it started ends with it, however it ends.
APART = ("setpriv", "--pdeathsig", "KILL")
GONE = (OSError, http.client.HTTPException)


class PlayedError(Exception):
    pass


class UnixConnection(http.client.HTTPConnection):
    """HTTP at a Unix socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=LIMIT_S)
        self.path = path

    def connect(self):
        """Connect; without a timeout connect() would wait for room in the service's backlog."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        end = time.monotonic() + self.timeout
        while True:
            try:
                self.sock.connect(self.path)
                return
            except BlockingIOError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.001)


def listening_port(pid, path="tcp"):
    """The TCP port that a process listens at, None for none."""
    inodes = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            inodes.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
        except OSError:
            continue
    with open(f"/proc/{pid}/net/{path}", encoding="ascii") as file:
        for line in list(file)[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                return int(fields[1].split(":")[1], 16)
    return None


class Service:
    """A service with a folder of its own, for the time of a "with".

    @folder: an empty folder
    @hosts: of each host: its name, the models of its GPUs, and the names of its VMs
    @settings: further lines of the configuration
    """

    def __init__(self, folder, hosts, settings=""):
        self.folder = folder
        self.socket = os.path.join(folder, "socket")
        self.log_path = os.path.join(folder, "log")
        self.config = os.path.join(folder, "pool.conf")
        self.process = None
        self.uris = {}
        lines = [f"[database]\nurl = sqlite:{folder}/pool.db\n"
                 f"[listen]\nsocket = {self.socket}\nadmin_group = none\n{settings}\n"]
        for number, (name, models, vms) in enumerate(hosts):
            path = os.path.join(folder, f"{name}.xml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(node_xml(list(enumerate(models, 1)), vms, number))
            self.uris[name] = f"test://{path}"
            lines.append(f"[host {name}]\nuri = test://{path}\n")
        with open(self.config, "w", encoding="utf-8") as file:
            file.write("".join(lines))

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop(signal.SIGKILL)
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self, **env):
        """Start it, and wait until all of its hosts are up."""
        with open(self.log_path, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen([*APART, PROGRAM, "serve", "--config", self.config],
                                            stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                            env={**os.environ, **env}, start_new_session=True)
        end = time.monotonic() + LIMIT_S
        while not self.is_up():
            if self.process.poll() is not None:
                raise PlayedError(f"mgpu-poold ended: {self.log()[-500:]}")
            if time.monotonic() > end:
                raise PlayedError(f"the hosts of mgpu-poold do not come up: {self.log()[-500:]}")
            time.sleep(0.02)

    def is_up(self):
        try:
            hosts = self.get("/v1/hosts")["hosts"]
        except GONE:
            return False
        return len(hosts) == len(self.uris) and all(h["up"] for h in hosts)

    def stop(self, sig=signal.SIGTERM):
        if self.process and self.process.poll() is None:
            self.process.send_signal(sig)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def call(self, method, path, body=None):
        """Make a call of the API as the administrator that the socket makes of its owner."""
        connection = UnixConnection(self.socket)
        try:
            text = None if body is None else json.dumps(body)
            headers = {"Content-Type": "application/json"} if text else {}
            connection.request(method, path, body=text, headers=headers)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if answer.status >= 400:
            raise PlayedError(f"{method} {path}: {answer.status} {text[:300].decode()}")
        return json.loads(text) if text else None

    def get(self, path):
        return self.call("GET", path)

    def key(self, vm):
        """Make a key for a VM's agent."""
        return self.call("POST", f"/v1/vms/{vm}/key")["key"]

    def agents_port(self):
        return listening_port(self.process.pid)


class Agents:
    """Played agents (bench-pool-agents), for the time of a "with"."""

    def __init__(self, port, keys):
        self.refused = {}       # word of the error: number of answers
        # pylint: disable-next=consider-using-with
        self.process = subprocess.Popen(
            [*APART, os.path.join(BUILD, "bench", "bench-pool-agents"), f"127.0.0.1:{port}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
        for vm, key in keys.items():
            print("key", vm, key, file=self.process.stdin)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.terminate()
        self.process.wait(LIMIT_S)

    def ask(self, vm, verb, **fields):
        """Send a message; return how the answer was, its milliseconds, and its request."""
        words = [vm, verb] + [f"{name}={value}" for name, value in fields.items()]
        print(*words, file=self.process.stdin, flush=True)
        line = self.process.stdout.readline().split()
        if len(line) != 5:
            raise PlayedError("bench-pool-agents ended; see its error above")
        if line[2] != "ok":
            self.refused[line[2]] = self.refused.get(line[2], 0) + 1
        return line[2], float(line[3]), int(line[4])
