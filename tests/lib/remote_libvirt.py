# SPDX-License-Identifier: GPL-2.0-only
"""A private libvirtd, reached by TLS and ssh, for tests of mgpu-poold's remote hosts.

The daemon has libvirt's test driver only, and writes nothing outside of its folder.  Root runs it,
and the SSH server, as nobody, who is named pool to the latter.
"""

import contextlib
import os
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile

import poold
from libvirt_node import node_xml
from loopback import free_port

UNPACKED = os.path.join(poold.BUILD, "sshd")
LIBRARIES = os.path.join(UNPACKED, "usr/lib/x86_64-linux-gnu")
PRELOADED = os.path.join(poold.BUILD, "unit", "kept_libvirt.so")
USER = 65534        # nobody: of libvirtd and the SSH server, when root runs the test


class Missing(Exception):
    """A program is not there, and the reason."""


def answers(port):
    """Whether a server listens at a port."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5):
        return True
    return False


class Daemon:
    """A program of the unprivileged user, with a folder of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.process = None
        os.makedirs(folder, exist_ok=True)

    def path(self, *names):
        """A path in the folder."""
        return os.path.join(self.folder, *names)

    def write(self, name, text, mode=0o644):
        """Write a file of the folder."""
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(name), mode)

    def own(self):
        """Give the folder to the user."""
        if os.geteuid():
            return
        for parent, folders, files in os.walk(self.folder):
            for name in [".", *folders, *files]:
                os.chown(os.path.join(parent, name), USER, USER)

    def begin(self, words, **env):
        """Start the program."""
        self.own()
        if not os.geteuid():
            words = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", *words]
        with open(self.path("log"), "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, cwd=self.folder,
                                            env=dict(os.environ, **env))

    def send(self, sig):
        """Send a signal to it, and to all that run programs of its folder."""
        pids = {self.process.pid}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/exe").startswith(self.folder + "/"):
                    pids.add(int(pid))
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, sig)

    def end(self):
        """End it as a loss of power does."""
        if self.process:
            self.send(signal.SIGKILL)
            self.process.wait()
            self.process = None

    def log(self):
        """What it printed."""
        with open(self.path("log"), encoding="utf-8", errors="replace") as file:
            return file.read()


class Libvirtd(Daemon):
    """A libvirtd with a host of the test driver, by TLS and a Unix socket."""

    def __init__(self, folder, authority, certificate, vms, number, port=None):
        super().__init__(folder)
        self.program = shutil.which("libvirtd", path=os.environ["PATH"] + ":/usr/sbin")
        if not self.program:
            raise Missing("no libvirtd, run: make deps")
        self.port = port or free_port()
        self.socket = self.path("libvirt-sock")
        self.kept = self.path("kept")
        os.mkdir(self.kept)
        for source, name in ((authority, "ca.pem"), (certificate[0], "cert.pem"),
                             (certificate[1], "key.pem"), (PRELOADED, "kept.so")):
            shutil.copy(source, self.path(name))
        self.write("node.xml", node_xml([(1, "AD102")], vms, number))
        self.write("libvirtd.conf", f"""
listen_tls = 1
listen_addr = "127.0.0.1"
tls_port = "{self.port}"
ca_file = "{self.path('ca.pem')}"
cert_file = "{self.path('cert.pem')}"
key_file = "{self.path('key.pem')}"
tls_allowed_dn_list = ["CN=mgpu-poold"]
unix_sock_dir = "{folder}"
auth_unix_rw = "none"
host_uuid = "6d677075-0001-4000-8000-{number:012x}"
log_outputs = "3:stderr"
""")

    def start(self):
        """Start it, and wait until it listens."""
        folder = self.folder
        self.begin([self.program, "--listen", "--config", self.path("libvirtd.conf"),
                    "--pid-file", self.path("pid")],
                   LD_PRELOAD=self.path("kept.so"), MGPU_TEST_LIBVIRT=self.kept,
                   # Drivers that manage this machine are left out.
                   LIBVIRT_DRIVER_DIR=folder, HOME=folder, XDG_RUNTIME_DIR=folder,
                   XDG_CONFIG_HOME=folder, XDG_CACHE_HOME=folder, XDG_DATA_HOME=folder)

        def listens():
            assert self.process.poll() is None, f"libvirtd ended: {self.log()}"
            return answers(self.port)

        poold.wait_for(listens, "libvirtd listens")
        return self

    def tls(self, pki, port=None):
        """Its URI by TLS, with a folder of certificates."""
        return (f"test+tls://localhost:{port or self.port}{self.path('node.xml')}"
                f"?pkipath={pki}")

    def devices(self):
        """What its VMs have."""
        return poold.devices_of(self.kept)


def client_pki(folder, authority, certificate):
    """A folder as pkipath= of a URI names it."""
    pki = tempfile.mkdtemp(dir=folder)
    for source, name in ((authority, "cacert.pem"), (certificate[0], "clientcert.pem"),
                         (certificate[1], "clientkey.pem")):
        shutil.copy(source, os.path.join(pki, name))
    return pki


def make_key(path):
    """Make a key of ssh; returns its path."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path], check=True,
                   stdin=subprocess.DEVNULL)
    return path


def public(path):
    """The public half of a key."""
    with open(path + ".pub", encoding="utf-8") as file:
        return file.read()


class Sshd(Daemon):
    """An SSH server with one account, for one key."""

    def __init__(self, folder):
        super().__init__(folder)
        if not os.path.exists(os.path.join(UNPACKED, ".complete")):
            raise Missing("no SSH server, run: make sshd")
        self.port = free_port()
        self.user = "pool"
        self.clients = 0
        shutil.copy(os.path.join(UNPACKED, "usr/sbin/sshd"), folder)
        shutil.copy(os.path.join(UNPACKED, "bin/nc.openbsd"), self.path("nc"))
        for where in (LIBRARIES, os.path.join(UNPACKED, "lib/x86_64-linux-gnu")):
            for name in os.listdir(where) if os.path.isdir(where) else []:
                if ".so" in name:
                    shutil.copy(os.path.join(where, name), folder)
        self.host_key = make_key(self.path("host_key"))
        self.key = make_key(os.path.join(os.path.dirname(folder), "id_ed25519"))
        self.write("authorized_keys", public(self.key))
        self.write("passwd", f"{self.user}:x:{USER}:{USER}::{folder}:/bin/sh\n")
        self.write("group", f"{self.user}:x:{USER}:\n")
        self.write("sshd_config", f"""
Port {self.port}
ListenAddress 127.0.0.1
HostKey {self.host_key}
AuthorizedKeysFile {self.path('authorized_keys')}
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
""")
        # It may be that of anybody who runs the test.
        if os.geteuid():
            self.user = subprocess.check_output(["id", "-un"], text=True).strip()

    def start(self):
        """Start it, and wait until it listens."""
        env = {"LD_LIBRARY_PATH": self.folder}
        if not os.geteuid():
            env.update(LD_PRELOAD=self.path("libnss_wrapper.so"),
                       NSS_WRAPPER_PASSWD=self.path("passwd"), NSS_WRAPPER_GROUP=self.path("group"))
        self.begin([self.path("sshd"), "-D", "-e", "-f", self.path("sshd_config")], **env)
        poold.wait_for(lambda: answers(self.port), "sshd listens")
        return self

    def client(self, key=None, known=True):
        """A program as ssh is for the service's user: its key, and the hosts that it knows."""
        self.clients += 1
        program = f"{self.folder}.{self.clients}"
        with open(program + ".known", "w", encoding="utf-8") as file:
            file.write(f"[127.0.0.1]:{self.port} {public(self.host_key)}" if known else "")
        words = ["ssh", "-F", "none", "-o", f"UserKnownHostsFile={program}.known",
                 "-o", "GlobalKnownHostsFile=none", "-o", "IdentitiesOnly=yes",
                 "-o", "IdentityAgent=none", "-i", key or self.key]
        with open(program, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\necho "$*" >{program}.words\nexec {shlex.join(words)} "$@"\n')
        os.chmod(program, 0o755)
        return program

    def uri(self, libvirtd, program, port=None):
        """The URI of a libvirtd by ssh."""
        return (f"test+ssh://{self.user}@127.0.0.1:{port or self.port}"
                f"{libvirtd.path('node.xml')}?socket={libvirtd.socket}"
                f"&netcat={self.path('nc')}&command={program}")
