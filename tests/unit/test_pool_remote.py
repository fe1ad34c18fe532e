#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# timeout: 900
"""mgpu-poold with remote hosts: libvirt's daemon by TLS and by ssh.

Each host is a libvirtd of its own, with libvirt's test driver, certificates or an SSH server made
for the test.  All of libvirt's remote protocol is real.
"""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading

sys.dont_write_bytecode = True

import pytap  # noqa: E402 pylint: disable=wrong-import-position

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "lib"))
import poold  # noqa: E402 pylint: disable=wrong-import-position
import remote_libvirt as remote  # noqa: E402 pylint: disable=wrong-import-position
from certificates import Authority, local_names  # noqa: E402 pylint: disable=wrong-import-position

# Lines of the configuration have 198 bytes: paths are short.
TMP = tempfile.mkdtemp(prefix="mp", dir="/tmp")
os.chmod(TMP, 0o755)
CA = Authority(TMP, "site")
OTHER_CA = Authority(TMP, "other")
SERVICE = CA.make("mgpu-poold")
PKI = remote.client_pki(TMP, CA.path, SERVICE)


class Made:
    """An authority that signed one certificate."""

    def __init__(self, path, pair):
        self.path, self.pair = path, pair

    def make(self, _name, _names):
        """Return the paths of the certificate and its key."""
        return self.pair


class Pool(poold.Poold):
    """A service whose hosts have the given URIs."""

    def __init__(self, folder, hosts):
        self.hosts = dict(hosts)
        super().__init__(folder)
        # Libvirtd has the VMs, not the service.
        self.env = {}

    def configure(self, config="", listen=""):
        """Write the configuration file."""
        hosts = "".join(f"[host {name}]\nuri = {uri}\n" for name, uri in self.hosts.items())
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(f"[database]\nurl = {self.database}\n[listen]\nsocket = {self.socket}\n"
                       f"admin_group = none\n[attach]\nretry_s = 1\n"
                       f"[limits]\nrate = 10000\nburst = 10000\n{hosts}{config}\n")

    def host(self, name):
        """A host as the API shows it."""
        for host in self.unix.get("/v1/status")["hosts"]:
            if host["name"] == name:
                return host
        raise AssertionError(f"no host {name}")

    def wait_up(self, *names):
        """Wait until hosts are up."""
        for name in names:
            poold.wait_for(lambda n=name: self.host(n)["up"], f"host {name} is up: {self.log()}")

    def wait_down(self, name, pattern=""):
        """Wait until a host is down, for a reason; returns the reason."""
        def reason():
            host = self.host(name)
            return not host["up"] and re.search(pattern, host["why"]) and host["why"]

        try:
            return poold.wait_for(reason, pattern)
        except AssertionError as error:
            raise AssertionError(f"{pattern}: {self.host(name)}") from error

    def ask(self, key, vm):
        """Ask for a GPU; returns the request's number."""
        answer = self.unix.ask(key, vm=vm)
        assert answer.status == 201, answer
        return answer.json["id"]

    def state(self, number):
        """State of a request."""
        return self.unix.get(f"/v1/requests/{number}")["state"]


class Scene:
    """Daemons and a service, which end together."""

    count = 0

    def __init__(self):
        Scene.count += 1
        self.folder = os.path.join(TMP, str(Scene.count))
        os.mkdir(self.folder)
        self.daemons = []
        self.pool = None

    def __enter__(self):
        return self

    def libvirtd(self, name, number, authority=CA, port=None):
        """Start a libvirtd with the VMs NAME0 and NAME1."""
        try:
            daemon = remote.Libvirtd(os.path.join(self.folder, name), authority.path,
                                     authority.make(name, local_names()),
                                     [f"{name}0", f"{name}1"], number, port)
        except remote.Missing as why:
            raise pytap.Skip(str(why)) from why
        self.daemons.append(daemon)
        return daemon.start()

    def sshd(self):
        """Start an SSH server."""
        try:
            daemon = remote.Sshd(os.path.join(self.folder, "s"))
        except remote.Missing as why:
            raise pytap.Skip(str(why)) from why
        self.daemons.append(daemon)
        return daemon.start()

    def serve(self, **hosts):
        """Start the service."""
        folder = os.path.join(self.folder, "pool")
        os.mkdir(folder)
        self.pool = Pool(folder, hosts)
        self.pool.begin()
        poold.wait_for(self.pool.serves, "it serves")
        return self.pool

    def __exit__(self, kind, value, trace):
        try:
            if self.pool and self.pool.process:
                status = self.pool.stop()
                assert kind or status == 0, f"{status}: {self.pool.log()}"
            assert kind or not self.pool or "Sanitizer" not in self.pool.log(), self.pool.log()
        finally:
            for daemon in self.daemons:
                if daemon.process:
                    daemon.send(signal.SIGCONT)
                daemon.end()


class Mute:
    """A server that takes connections and says nothing; with @full, it answers no SYN."""

    def __init__(self, full=False):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=0)
        self.port = self.listener.getsockname()[1]
        self.ended = threading.Event()
        self.taken = []
        if full:
            self.fill()
        else:
            threading.Thread(target=self.take, daemon=True).start()

    def take(self):
        """Take a connection, and read until the client ends it."""
        client = self.listener.accept()[0]
        with contextlib.suppress(OSError):
            while client.recv(1024):
                pass
        self.ended.set()
        client.close()
        self.listener.close()

    def fill(self):
        """Connect until the queue of connections is full."""
        for _ in range(4):
            s = socket.socket()
            s.setblocking(False)
            s.connect_ex(("127.0.0.1", self.port))
            self.taken.append(s)


def both_by_tls():
    with Scene() as scene:
        a, b = scene.libvirtd("a", 1), scene.libvirtd("b", 2)
        p = scene.serve(one=a.tls(PKI), two=b.tls(PKI))
        p.wait_up("one", "two")
        first, second = p.ask("k1", "a0"), p.ask("k2", "b0")
        p.unix.wait(first, "active")
        p.unix.wait(second, "active")
        assert a.devices() == [(1, 0, "a0", first), (1, 1, "a0", first)], a.devices()
        assert b.devices() == [(1, 0, "b0", second), (1, 1, "b0", second)], b.devices()
        p.unix.release(second)
        p.unix.wait(second, "released")
        assert not b.devices()


def lost_and_found():
    with Scene() as scene:
        a, b = scene.libvirtd("a", 1), scene.libvirtd("b", 2)
        p = scene.serve(one=a.tls(PKI), two=b.tls(PKI))
        p.wait_up("one", "two")
        held, other = p.ask("k1", "b0"), p.ask("k2", "a0")
        p.unix.wait(held, "active")
        p.unix.wait(other, "active")
        b.end()
        why = p.wait_down("two", "libvirt closed the connection|no connection to libvirt")
        assert why.startswith("two: "), why
        waiting = p.ask("k3", "b1")
        # The other host goes on.
        p.unix.release(other)
        p.unix.wait(other, "released")
        p.unix.wait(p.ask("k4", "a1"), "active")
        why = p.wait_down("two", "Connection refused; start the host.s libvirtd")
        assert "localhost" in why or str(b.port) in why, why
        assert p.state(held) == "active" and p.state(waiting) == "queued"
        b.start()
        p.wait_up("two")
        assert p.state(held) == "active", p.unix.get(f"/v1/requests/{held}")
        assert p.state(waiting) == "queued"
        assert {d[3] for d in b.devices()} == {held}, b.devices()
        p.unix.release(held)
        p.unix.wait(waiting, "active")
        assert {d[2] for d in b.devices()} == {"b1"}, b.devices()


def silent():
    with Scene() as scene:
        a, b = scene.libvirtd("a", 1), scene.libvirtd("b", 2)
        p = scene.serve(one=a.tls(PKI), two=b.tls(PKI))
        p.wait_up("one", "two")
        held = p.ask("k1", "b0")
        p.unix.wait(held, "active")
        b.send(signal.SIGSTOP)
        stuck = p.ask("k2", "b1")
        rounds = 0
        while p.host("two")["up"]:
            # Neither the API nor the other host waits for it.
            number = p.ask(f"n{rounds}", "a0")
            p.unix.wait(number, "active")
            p.unix.release(number)
            p.unix.wait(number, "released")
            rounds += 1
        assert rounds > 1, p.log()
        p.wait_down("two", "no answer within 30 s; see whether the host runs")
        assert p.state(held) == "active" and p.state(stuck) == "queued"
        b.send(signal.SIGCONT)
        p.wait_up("two")
        assert p.state(held) == "active", p.unix.get(f"/v1/requests/{held}")


def documented_certificates():
    folder = os.path.join(TMP, "doc")
    os.mkdir(folder)
    with open(os.path.join(TOP, "Documentation", "pool.rst"), encoding="utf-8") as file:
        text = re.search(r"(?ms)^      cat >ca\.info .*?^      done$", file.read())[0]
    # The host's name in the URI is the name in its certificate.
    commands = textwrap.dedent(text).replace("node7.example.org", "localhost")
    subprocess.run(["sh", "-ec", commands], cwd=folder, check=True, capture_output=True)

    def pem(name):
        return os.path.join(folder, name)

    with Scene() as scene:
        a = scene.libvirtd("a", 1, authority=Made(pem("cacert.pem"), (pem("node7.pem"),
                                                                      pem("node7.key"))))
        pki = remote.client_pki(TMP, pem("cacert.pem"), (pem("service.pem"), pem("service.key")))
        p = scene.serve(a=a.tls(pki), other=a.tls(PKI))
        p.wait_up("a")
        p.unix.wait(p.ask("k1", "a0"), "active")
        p.wait_down("other", "the authority in cacert.pem must have signed")


def refused_certificates():
    # Of the client: by a name that the host does not allow, and by an authority that it does not.
    stranger = remote.client_pki(TMP, CA.path, CA.make("somebody"))
    both = os.path.join(TMP, "both.pem")
    with open(both, "wb") as file:
        for authority in (CA, OTHER_CA):
            with open(authority.path, "rb") as part:
                file.write(part.read())
    forged = remote.client_pki(TMP, both, OTHER_CA.make("mgpu-poold"))
    mixed = remote.client_pki(TMP, CA.path, OTHER_CA.make("mgpu-poold"))
    with Scene() as scene:
        a, b = scene.libvirtd("a", 1), scene.libvirtd("b", 2, authority=OTHER_CA)
        p = scene.serve(good=a.tls(PKI), server=b.tls(PKI), name=a.tls(stranger),
                        forged=a.tls(forged), mixed=a.tls(mixed),
                        none=a.tls(os.path.join(TMP, "none")))
        p.wait_up("good")
        p.wait_down("server", "Failed to verify peer's certificate; "
                    "the authority in cacert.pem must have signed the host's servercert.pem")
        for name in ("name", "forged"):
            p.wait_down(name, "the host refuses the service's certificate; .*clientcert.pem"
                        ".*tls_allowed_dn_list")
        p.wait_down("mixed", "failed validation.*; .*clientcert.pem")
        p.wait_down("none", "Cannot read CA certificate.*; .*cacert.pem")
        # The key of a certificate is nobody's but the service's.
        assert "PRIVATE KEY" not in p.log()


def by_ssh():
    with Scene() as scene:
        a, b, sshd = scene.libvirtd("a", 1), scene.libvirtd("b", 2), scene.sshd()
        ssh = sshd.client()
        p = scene.serve(one=sshd.uri(a, ssh), two=sshd.uri(b, ssh))
        p.wait_up("one", "two")
        first, second = p.ask("k1", "a0"), p.ask("k2", "b0")
        p.unix.wait(first, "active")
        p.unix.wait(second, "active")
        assert {d[3] for d in a.devices()} == {first}, a.devices()
        assert {d[3] for d in b.devices()} == {second}, b.devices()
        # Ssh asks for nothing, even where the service has a terminal.
        with open(ssh + ".words", encoding="utf-8") as file:
            assert "BatchMode=yes" in file.read()
        sshd.end()
        p.wait_down("one", "Connection refused.*; start the host's SSH server")
        assert p.state(first) == "active"
        sshd.start()
        p.wait_up("one", "two")
        assert p.state(first) == "active", p.unix.get(f"/v1/requests/{first}")


def refused_by_ssh():
    with Scene() as scene:
        a, sshd = scene.libvirtd("a", 1), scene.sshd()
        key = remote.make_key(os.path.join(scene.folder, "another"))
        p = scene.serve(key=sshd.uri(a, sshd.client(key=key)),
                        unknown=sshd.uri(a, sshd.client(known=False)))
        p.wait_down("key", r"Permission denied \(publickey\).*; put the public half .*keyfile")
        p.wait_down("unknown", "Host key verification failed.*; .*known_hosts")
        assert not p.unix.get("/v1/gpus")["gpus"]


def mute_hosts():
    tls, ssh, lost = Mute(), Mute(), Mute(full=True)
    with Scene() as scene:
        a, sshd = scene.libvirtd("a", 1), scene.sshd()
        p = scene.serve(good=a.tls(PKI), tls=a.tls(PKI, tls.port),
                        ssh=sshd.uri(a, sshd.client(), ssh.port), lost=a.tls(PKI, lost.port))
        p.wait_up("good")
        rounds = 0
        while not all(p.host(name)["why"].endswith("its libvirtd") for name in ("tls", "ssh", "lost")):
            number = p.ask(f"n{rounds}", "a0")
            p.unix.wait(number, "active")
            p.unix.release(number)
            p.unix.wait(number, "released")
            rounds += 1
        assert rounds > 1, p.log()
        for name in ("tls", "ssh", "lost"):
            p.wait_down(name, "no answer within 30 s; see whether the host runs")
        # An attempt that hangs is broken, so that the next one can find the host well.
        assert tls.ended.wait(poold.PATIENCE) and ssh.ended.wait(poold.PATIENCE)
        scene.libvirtd("b", 2, port=tls.port)
        p.wait_up("tls")


def main():
    tests = [
        (both_by_tls, "two hosts by TLS give GPUs"),
        (lost_and_found, "a libvirtd that ends and starts again changes no request"),
        (silent, "keepalive notices a host that is silent, and no other waits for it"),
        (documented_certificates, "the documented commands make certificates that are taken"),
        (refused_certificates, "wrong certificates are refused, with what to do"),
        (by_ssh, "two hosts by ssh give GPUs, and a lost connection is repaired"),
        (refused_by_ssh, "a wrong key and an unknown host are refused, with what to do"),
        (mute_hosts, "hosts that do not answer block no other"),
    ]
    only = sys.argv[1:]
    try:
        return pytap.run([t for t in tests if not only or t[0].__name__ in only])
    finally:
        shutil.rmtree(TMP)


if __name__ == "__main__":
    sys.exit(main())
