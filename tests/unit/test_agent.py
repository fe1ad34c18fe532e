#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""mgpu-agent: commands, waiting, devices, queues and consent, with the service's real pool,
database and channel, and with a played /sys of the guest."""

import contextlib
import grp
import json
import os
import re
import resource
import select
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
from http.client import HTTPConnection

import pytap

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD", os.path.join(TOP, "build"))
CTL = os.path.join(BUILD, "ctl")
SLOW = int(os.environ.get("MGPU_SLOW", "1"))
AGENT = os.path.join(CTL, "mgpu-agent")
KEYS = {"vm-a": "a1" * 32, "vm-b": "b2" * 32}

tmp = tempfile.TemporaryDirectory()


def build():
    """Build the agent and the played service."""
    subprocess.run(["make", "-s", "-C", os.path.join(TOP, "ctl"), f"BUILD={BUILD}", "agent",
                    "pool", "place", "lib"], check=True, stdout=subprocess.DEVNULL)
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "gnutls", "sqlite3", "libpq",
                            "libnl-genl-3.0", "json-c"],
                           check=True, capture_output=True, text=True).stdout.split()
    program = os.path.join(tmp.name, "played_pool")
    subprocess.run(["gcc", "-std=gnu17", "-g", "-D_GNU_SOURCE", "-Wall", "-Wextra",
                    f"-I{TOP}/ctl/pool", f"-I{TOP}/ctl/agent", f"-I{TOP}/ctl/lib", "-o", program,
                    f"{TOP}/tests/unit/played_pool.c", f"{CTL}/libpool.a", f"{CTL}/libplace.a",
                    f"{CTL}/libmgpu.a", *flags, "-lm"], check=True)
    return program


PROGRAM = build()


def wait_until(what, seconds=30):
    """Wait until a function returns something true; return that."""
    end = time.monotonic() + seconds * SLOW
    while time.monotonic() < end:
        result = what()
        if result:
            return result
        time.sleep(0.02)
    raise AssertionError(f"not so after {seconds} s")


def write(path, text, mode=0o644):
    """Write a file, with its folders."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, mode)


class World:
    """A guest with a played /sys, and a service."""

    def __init__(self, settings=""):
        self.dir = tempfile.mkdtemp(dir=tmp.name)
        self.root = self.path("root")
        self.agents = []
        os.makedirs(f"{self.root}/proc")
        write(f"{self.root}/sys/bus/pci/devices/0000:00:02.0/class", "0x030000\n")
        os.symlink("../../../../bus/pci/drivers/bochs-drm",
                   f"{self.root}/sys/bus/pci/devices/0000:00:02.0/driver")
        with open(self.path("said"), "w", encoding="utf-8") as said:
            self.service = subprocess.Popen(
                [PROGRAM, self.path("db"), self.root, *(f"{n}:{k}" for n, k in KEYS.items())],
                stdin=subprocess.PIPE, stdout=said, text=True, bufsize=1)
        self.port = wait_until(lambda: re.search(r"^port (\d+)$", self.said(), re.M))[1]
        for vm, key in KEYS.items():
            write(self.path(f"{vm}.key"), f"{vm}:{key}\n", 0o600)
            self.configure(vm, settings)

    def configure(self, vm, settings=""):
        """Write the settings of a VM."""
        write(self.path(f"{vm}.conf"),
              f"service=127.0.0.1:{self.port}\nkey={self.path(vm + '.key')}\n"
              f"state={self.path(vm + '.state')}\nqueue={self.path('queue')}\n"
              f"root={self.root}\nbind=20\nreport=1\nnvml=/nonexistent\n{settings}")

    def path(self, name):
        """Return the name of a file of this world."""
        return os.path.join(self.dir, name)

    def said(self):
        """Return what the service has printed."""
        with open(self.path("said"), encoding="utf-8") as f:
            return f.read()

    def tell(self, *commands):
        """Give the service commands, and wait for each."""
        for command in commands:
            before = self.said().count(f"did {command.split()[0]}\n")
            self.service.stdin.write(command + "\n")
            wait_until(lambda c=command, n=before: self.said().count(f"did {c.split()[0]}\n") > n)

    def start(self, *words, vm="vm-a", **more):
        """Start the agent."""
        with open(self.path("errors"), "a", encoding="utf-8") as errors:
            agent = subprocess.Popen([AGENT, words[0], "--config", self.path(f"{vm}.conf"),
                                      *words[1:]], stdout=subprocess.PIPE, stderr=errors,
                                     text=True, **more)
        self.agents.append(agent)
        return agent

    def errors(self):
        """Return what agents of start() said."""
        with open(self.path("errors"), encoding="utf-8") as f:
            return f.read()

    def agent(self, *words, vm="vm-a", seconds=60):
        """Run the agent to its end."""
        return subprocess.run([AGENT, words[0], "--config", self.path(f"{vm}.conf"), *words[1:]],
                              capture_output=True, text=True, check=False, timeout=seconds * SLOW)

    def states(self, vm="vm-a"):
        """Return the VM's open requests, by number."""
        out = self.agent("state", vm=vm)
        assert out.returncode == 0, out.stderr
        return {int(w[0]): w[1] for w in (line.split("=", 1)[1].split() for line in
                                          out.stdout.splitlines() if re.match(r"r\d+=", line))}

    def close(self):
        """Stop all."""
        for agent in self.agents:
            if agent.poll() is None:
                agent.kill()
            agent.wait()
            agent.stdout.close()
        self.service.stdin.close()
        self.service.wait(20 * SLOW)
        shutil.rmtree(self.dir)


@contextlib.contextmanager
def world(settings=""):
    """Yield a world, and end it."""
    w = World(settings)
    try:
        yield w
    finally:
        w.close()


RUN = ("run", "--kind", "training", "--size", "4G", "--")


def working(agent):
    """Wait until the agent has started sleep; return the agent."""
    wait_until(lambda: "sleep" in subprocess.run(
        ["ps", "--ppid", str(agent.pid), "-o", "comm="], capture_output=True, text=True,
        check=False).stdout)
    return agent


def runs():
    """run: the command has the device's name, and the GPU goes back with success."""
    with world() as w:
        done = w.agent(*RUN, "sh", "-c", "echo $MGPU_GPU $MGPU_GPU_DRIVER $MGPU_REQUEST; exit 0")
        assert done.returncode == 0, done.stderr
        assert done.stdout == "0000:00:11.0 nvidia 1\n"
        wait_until(lambda: "outcome 1 done=1" in w.said())
        assert w.states() == {}
        done = w.agent(*RUN, "sh", "-c", "exit 3")
        assert done.returncode == 3
        wait_until(lambda: "outcome 2 done=0" in w.said())
        assert w.agent(*RUN, "sh", "-c", "kill -9 $$").returncode == 137
        assert w.agent(*RUN, "/nonexistent").returncode == 127
        assert w.agent(*RUN, "/").returncode == 126
        assert os.listdir(w.path("vm-a.state")) == []


def options():
    """The request has the wishes of the command line, and options of the command stay its own."""
    with world() as w:
        done = w.agent("run", "--kind", "render", "--size", "1T", "--memory", "2G", "--precision",
                       "fp16", "--target", "whole", "--capabilities", "3d,compute", "--lease",
                       "2h", "echo", "--kind", "x", "-h")
        assert done.returncode == 0 and done.stdout == "--kind x -h\n", done.stderr
        with contextlib.closing(sqlite3.connect(w.path("db"))) as db:
            db.row_factory = sqlite3.Row
            row = dict(db.execute("SELECT * FROM pool_request").fetchone())
        assert row["kind"] == "render" and row["vm"] == "vm-a" and row["project"] == "p", row
        assert 1024 * 1024 in row.values() and 2048 in row.values() and 7200 in row.values(), row
        for words, text in ((("--size", "4"), "invalid value"), (("--lease", "x"), "invalid"),
                            (("--floor", "nan"), "invalid"), (("--sise", "4G"), "--size")):
            done = w.agent("run", "--kind", "x", *words, "true")
            assert done.returncode == 2 and text in done.stderr, done.stderr
        done = w.agent("run", "--kind", "x", "--target", "all", "true")
        assert done.returncode == 125 and "target has an unknown word" in done.stderr, done.stderr
        assert w.agent("run", "true").returncode == 2
        assert w.agent("run", "--kind", "x").returncode == 2


def waits():
    """run waits in the queue with place and reason, and --no-wait does not."""
    with world() as w:
        first = [w.start(*RUN, "sleep", "600", vm=vm) for vm in ("vm-a", "vm-b")]
        wait_until(lambda: list(w.states().values()) + list(w.states("vm-b").values()) ==
                   ["active"] * 2)
        done = w.agent("run", "--no-wait", "--kind", "training", "--", "true")
        assert done.returncode == 75 and "waits at place 1" in done.stderr, done.stderr
        last = w.start(*RUN, "true")
        wait_until(lambda: "waits at place 1: " in w.errors())
        working(first[0]).send_signal(signal.SIGTERM)
        assert first[0].wait(30 * SLOW) == 143
        assert last.wait(30 * SLOW) == 0


def leaves_core(start):
    """Whether a program that aborts leaves a core."""
    process = start(preexec_fn=lambda: resource.setrlimit(
        resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)))
    process.send_signal(signal.SIGABRT)
    status = os.waitpid(process.pid, 0)[1]
    process.poll()
    assert os.WTERMSIG(status) == signal.SIGABRT, status
    return os.WCOREDUMP(status)


def cores():
    """The agent's memory has the VM's key: there is no core of it, but there may be one of a job."""
    with world() as w:
        if not leaves_core(lambda **more: subprocess.Popen(["sleep", "60"], cwd=w.dir, **more)):
            raise pytap.Skip("no program leaves a core here")
        assert not leaves_core(lambda **more: working(w.start(*RUN, "sleep", "60", cwd=w.dir,
                                                              **more)))
        done = w.agent(*RUN, "sh", "-c", f"cd {w.dir}; ulimit -c unlimited; kill -ABRT $$")
        assert done.returncode == 128 + signal.SIGABRT, done
        assert any(name.startswith("core") for name in os.listdir(w.dir))


def signals():
    """Signals reach the command; before it they take the request back."""
    with world() as w:
        agent = w.start(*RUN, "sh", "-c", "trap 'echo got; exit 9' USR1; echo up; "
                        "while :; do sleep 0.05; done")
        assert agent.stdout.readline() == "up\n"
        agent.send_signal(signal.SIGUSR1)
        assert agent.stdout.readline() == "got\n"
        assert agent.wait(30 * SLOW) == 9
        w.tell("attach no")
        agent = w.start(*RUN, "true")
        wait_until(lambda: "attaching" in w.states().values())
        agent.send_signal(signal.SIGINT)
        assert agent.wait(30 * SLOW) == 125
        assert "interrupted" in w.errors()
        w.tell("attach yes")
        wait_until(lambda: w.states() == {})


def plug(w, addr, class_="0x030200", driver="nvidia"):
    """Have a PCI device in the guest; return its folder."""
    folder = f"{w.root}/sys/bus/pci/devices/{addr}"
    write(f"{folder}/class", f"{class_}\n")
    os.symlink(f"../../../../bus/pci/drivers/{driver}", f"{folder}/driver")
    return folder


def no_device():
    """A GPU that does not come, or has no driver, is an error that says so; it goes back."""
    with world("bind=1\n") as w:
        w.tell("device no")
        done = w.agent(*RUN, "true")
        assert done.returncode == 125, done.stderr
        assert "no new GPU is in the guest after 1 s" in done.stderr, done.stderr
        w.tell("device yes", "driver -")
        done = w.agent(*RUN, "true")
        assert done.returncode == 125 and "0000:00:12.0 has no driver" in done.stderr, done.stderr
        wait_until(lambda: w.states() == {})
        # A device that is no GPU does not count, even if it is new and has a driver.
        w.tell("device no", "driver nvidia", "attach no")
        agent = w.start(*RUN, "true")
        wait_until(lambda: "attaching" in w.states().values())
        plug(w, "0000:00:07.0", "0x020000", "e1000e")
        w.tell("attach yes")
        assert agent.wait(30 * SLOW) == 125
        assert "no new GPU is in the guest" in w.errors()


def restart():
    """An agent that was killed asks for the same request again, and for the same device."""
    with world() as w:
        agent = w.start(*RUN, "sleep", "600")
        wait_until(lambda: w.states() == {1: "active"})
        wait_until(lambda: "device=0000:00:11.0" in
                   "".join(open(f"{w.path('vm-a.state')}/{n}", encoding="utf-8").read()
                           for n in os.listdir(w.path("vm-a.state")) if n.endswith(".request")))
        agent.kill()
        agent.wait()
        # Another command is another request.
        done = w.agent(*RUN, "sh", "-c", "echo $MGPU_REQUEST $MGPU_GPU")
        assert done.stdout == "2 0000:00:12.0\n", done.stderr
        agent = w.start(*RUN, "sleep", "600")
        time.sleep(0.5)
        assert w.states() == {1: "active"}
        # A third of the same words is one more, as the first is at work.
        other = w.start(*RUN, "sleep", "600")
        wait_until(lambda: w.states() == {1: "active", 3: "active"})
        for a in (agent, other):
            working(a).terminate()
            assert a.wait(30 * SLOW) == 143
        wait_until(lambda: w.states() == {})
        # The former request is over: the next is a new one.
        assert w.agent(*RUN, "true").returncode == 0
        assert "event vm:vm-a request 4" in w.said()


def two_at_once():
    """Requests whose GPUs come at the same time have a GPU each."""
    with world() as w:
        w.tell("attach no")
        agents = [w.start(*RUN, "sh", "-c", "echo $MGPU_GPU; exec sleep 600") for _ in range(2)]
        wait_until(lambda: list(w.states().values()) == ["attaching"] * 2)
        w.tell("attach yes")
        got = sorted(a.stdout.readline() for a in agents)
        assert got == ["0000:00:11.0\n", "0000:00:12.0\n"], (got, w.errors())
        for a in agents:
            a.terminate()
            assert a.wait(30 * SLOW) == 143
        wait_until(lambda: w.states() == {})


def probing():
    """A driver has the device before its DRM device is there: the command waits for that."""
    for driver, below in ("amdgpu", ""), ("virtio-pci", "/virtio3"):
        with world() as w:
            w.tell("card no", f"driver {driver}")
            agent = w.start(*RUN, "sh", "-c", "echo $MGPU_GPU $MGPU_RENDER_NODE")
            folder = f"{w.root}/sys/bus/pci/devices/0000:00:11.0"
            wait_until(lambda f=folder: os.path.exists(f"{f}/class"))
            os.makedirs(f"{folder}{below}/drm/renderD129")
            time.sleep(2.5)
            assert not select.select([agent.stdout], [], [], 0)[0], w.errors()
            os.mkdir(f"{folder}{below}/drm/card1")
            assert agent.stdout.readline() == "0000:00:11.0 /dev/dri/renderD129\n", w.errors()
    # A driver without DRM is believed long before the time for it is over.
    with world("bind=3600\n") as w:
        w.tell("card no")
        done = w.agent(*RUN, "sh", "-c", "echo $MGPU_GPU $MGPU_RENDER_NODE")
        assert done.stdout == "0000:00:11.0\n", done.stderr


def same_address():
    """A GPU that comes to the address of one that was still leaving is a new one."""
    with world() as w:
        w.tell("attach no")
        leaving = plug(w, "0000:00:11.0")
        agent = w.start(*RUN, "sh", "-c", "echo $MGPU_GPU")
        wait_until(lambda: "attaching" in w.states().values())
        # The folder stays elsewhere, so that no other one gets its number.
        os.rename(leaving, w.path("gone"))
        w.tell("attach yes")
        assert agent.stdout.readline() == "0000:00:11.0\n", w.errors()


def boot():
    """After a boot of the guest, which numbers devices anew, the devices of before are known."""
    with world() as w:
        boot_id = f"{w.root}/proc/sys/kernel/random/boot_id"
        write(boot_id, "a\n")
        w.tell("attach no")
        agent = w.start(*RUN, "sh", "-c", "echo $MGPU_GPU")
        wait_until(lambda: "attaching" in w.states().values())
        agent.kill()
        agent.wait()
        os.rename(f"{w.root}/sys/bus/pci/devices/0000:00:02.0", w.path("gone"))
        plug(w, "0000:00:02.0", "0x030000", "bochs-drm")
        write(boot_id, "b\n")
        w.tell("attach yes")
        done = w.agent(*RUN, "sh", "-c", "echo $MGPU_GPU")
        assert done.stdout == "0000:00:11.0\n", done.stderr


def crashed():
    """A request that ended after a crash does not keep its address from a later one."""
    with world() as w:
        assert w.agent(*RUN, "true").returncode == 0
        wait_until(lambda: w.states() == {})
        left = w.path("vm-a.state/run-crashed-0.request")
        # The second is none that the service has: retention deleted it.
        for number, device in ((1, "0000:00:12.0"), (99, "0000:00:13.0")):
            write(left, f"key=x\nid={number}\ndevice={device}\n", 0o600)
            done = w.agent(*RUN, "sh", "-c", "echo $MGPU_GPU")
            assert done.stdout == device + "\n", done
            assert not os.path.exists(left)


def disk():
    """A damaged file of a request is as none."""
    with world() as w:
        agent = w.start(*RUN, "sleep", "600")
        wait_until(lambda: w.states() == {1: "active"})
        agent.kill()
        agent.wait()
        state = w.path("vm-a.state")
        for name in os.listdir(state):
            if name.endswith(".request"):
                write(f"{state}/{name}", "key=" + "x" * 1000 + "\nid=-3\n=\nbefore\n", 0o600)
        assert w.agent(*RUN, "true").returncode == 0
        assert w.agent("release", "1").returncode == 0


def reconnects():
    """A service that goes and comes is met with patience, and what is due is done."""
    with world() as w:
        agent = w.start(*RUN, "sh", "-c", "echo up; read x; exit 0", stdin=subprocess.PIPE)
        assert agent.stdout.readline() == "up\n"
        w.tell("end")
        agent.stdin.write("\n")
        agent.stdin.close()
        assert agent.wait(30 * SLOW) == 0
        wait_until(lambda: "outcome 1 done=1" in w.said())
        # Without a listener a command by hand gives up, and says where it tried.
        w.configure("vm-b", "service=127.0.0.1:1\n")
        with subprocess.Popen([AGENT, "state", "--config", w.path("vm-b.conf")],
                              stderr=subprocess.PIPE, text=True) as b:
            line = b.stderr.readline()
            b.kill()
        assert "no connection to the service at 127.0.0.1:1: Connection refused" in line, line
        # The second place counts when the first does not answer.
        w.configure("vm-b", f"service=127.0.0.1:1 127.0.0.1:{w.port}\n")
        assert w.states("vm-b") == {}


def released_later():
    """A release that the service cannot store is made up for at the next start."""
    with world() as w:
        agent = w.start(*RUN, "sh", "-c", "echo up; read x", stdin=subprocess.PIPE)
        assert agent.stdout.readline() == "up\n"
        with contextlib.closing(sqlite3.connect(w.path("db"), isolation_level=None)) as db:
            db.execute("BEGIN IMMEDIATE")
            agent.stdin.write("\n")
            agent.stdin.close()
            assert agent.wait(60 * SLOW) == 0
            db.execute("ROLLBACK")
        assert w.states() == {1: "active"}
        assert "request 1 is not released yet: the service cannot write" in w.errors(), w.errors()
        assert w.agent(*RUN, "true").returncode == 0
        wait_until(lambda: "outcome 1 done=1" in w.said() and w.states() == {})
        assert os.listdir(w.path("vm-a.state")) == []


def taken():
    """A GPU that the service takes back ends the command, with the reason."""
    with world() as w:
        agent = w.start(*RUN, "sleep", "600")
        wait_until(lambda: w.states() == {1: "active"})
        working(agent)
        w.tell("release 1")
        assert agent.wait(30 * SLOW) == 143
        assert "the service takes the GPU of request 1 back" in w.errors()
        # The same while use is reported.
        assert w.agent("consent", "yes").returncode == 0
        agent = w.start(*RUN, "sleep", "600")
        wait_until(lambda: w.states() == {2: "active"})
        fdinfo(w, 100, 1, "0000:00:12.0")
        wait_until(lambda: uses(w))
        w.tell("release 2")
        assert agent.wait(30 * SLOW) == 143


def by_hand():
    """request, state, extend and release by hand; a key makes a request the same one."""
    with world() as w:
        done = w.agent("request", "--kind", "training", "--key", "mine", "--wait")
        assert done.returncode == 0, done.stderr
        fields = dict(line.split("=", 1) for line in done.stdout.splitlines())
        assert fields["id"] == "1" and fields["state"] == "active" and fields["key"] == "mine"
        assert fields["gpu"].startswith("h/0000:4") and fields["why"], fields
        done = w.agent("request", "--kind", "training", "--key", "mine")
        assert "id=1\n" in done.stdout
        done = w.agent("request", "--kind", "other", "--key", "mine")
        assert done.returncode == 1 and "with other wishes; use a new key" in done.stderr, done
        done = w.agent("extend", "1", "2h")
        until = int(re.search(r"^until=(\d+)$", done.stdout, re.M)[1])
        assert abs(until - time.time() - 7200) < 600
        assert "until=0\n" in w.agent("extend", "1", "0").stdout
        done = w.agent("release", "--done", "1")
        assert done.returncode == 0 and "id=1\n" in done.stdout
        wait_until(lambda: "state=released\n" in w.agent("state", "1").stdout)
        # Another VM's request, and none, look alike.
        one, none = w.agent("state", "1", vm="vm-b"), w.agent("state", "9", vm="vm-b")
        assert one.returncode == 1 and one.stderr == none.stderr, one.stderr
        for words in (("state", "x"), ("extend", "1"), ("release",), ("consent", "maybe"),
                      ("watch", "x"), ("stat",)):
            assert w.agent(*words).returncode in (1, 2), words


def keys():
    """A key that others may read, that is none, or that is missing is refused with a remedy."""
    with world() as w:
        os.chmod(w.path("vm-a.key"), 0o640)
        done = w.agent("state")
        assert done.returncode == 1 and "chmod 600" in done.stderr, done.stderr
        assert KEYS["vm-a"] not in done.stderr
        write(w.path("vm-a.key"), "vm-a:a1b2\n", 0o600)
        assert "64 hexadecimal digits" in w.agent("state").stderr
        write(w.path("vm-a.key"), KEYS["vm-a"] + "\n", 0o600)
        assert "the VM's name is unknown" in w.agent("state").stderr
        w.configure("vm-a", "vm=vm-a\n")
        assert w.states() == {}
        write(w.path("vm-a.key"), "vm-a:" + KEYS["vm-b"] + "\n", 0o600)
        done = w.agent("state")
        assert done.returncode == 1 and "refuses the key of the VM 'vm-a'" in done.stderr
        # fw_cfg, without a file
        fw_cfg = f"{w.root}/sys/firmware/qemu_fw_cfg/by_name/opt/org.mgpu/agent-key/raw"
        w.configure("vm-a", "key=\n")
        if not os.path.exists("/etc/mgpu/agent.key"):
            assert "the VM has no key" in w.agent("state").stderr
            write(fw_cfg, "vm-a:" + KEYS["vm-a"], 0o400)
            assert w.states() == {}
        w.configure("vm-a", "what=ever\n")
        assert "unknown setting 'what'" in w.agent("state").stderr


NVML = """
#include <string.h>
#include <stdlib.h>
#include <stdio.h>
typedef struct { unsigned long long t; union { double d; unsigned u; unsigned long long l; } v; } sample;
static int open_;
int nvmlShutdown(void) { open_--; return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *a, void **d) { *d = &open_; return strcmp(a, "0000:00:11.0"); }
int nvmlDeviceGetUtilizationRates(void *d, unsigned *u) { u[0] = 7; u[1] = 0; return 0; }
int nvmlDeviceGetSamples(void *d, int type, unsigned long long since, int *kind, unsigned *nr, sample *s)
{
	if (*nr < 2 || type != 1) return 2;
	s[0].t = since + 1; s[0].v.u = 40; s[1].t = since + 2; s[1].v.u = 60; *kind = 1; *nr = 2;
	return 0;
}
int nvmlDeviceGetTotalEnergyConsumption(void *d, unsigned long long *mj)
{
	static unsigned long long e = 1000000; *mj = e; e += 500; return 0;
}
int nvmlDeviceGetMemoryInfo(void *d, unsigned long long *m) { m[0] = m[1] = 0; m[2] = 3ull << 30; return 0; }
"""


def make_nvml(w, init):
    """Make a played library of NVIDIA with a function for its start, and have the agent use it."""
    write(w.path("nvml.c"), NVML + init)
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-o", w.path("nvml.so"), w.path("nvml.c")],
                   check=True)
    w.configure("vm-a", f"nvml={w.path('nvml.so')}\n")


def fdinfo(w, pid, ns, addr="0000:00:11.0"):
    """Write what a DRM driver tells of a process."""
    os.makedirs(f"{w.root}/proc/{pid}/fd", exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.symlink("/dev/dri/renderD128", f"{w.root}/proc/{pid}/fd/5")
    write(f"{w.root}/proc/{pid}/fdinfo/5.new", f"drm-driver:\tx\ndrm-pdev:\t{addr}\n"
          f"drm-client-id:\t{pid}\ndrm-engine-render:\t{ns} ns\n")
    os.rename(f"{w.root}/proc/{pid}/fdinfo/5.new", f"{w.root}/proc/{pid}/fdinfo/5")


def uses(w):
    """Return the busy times that the database has."""
    with contextlib.closing(sqlite3.connect(w.path("db"))) as db:
        return [row[0] for row in db.execute("SELECT busy_ns FROM pool_use ORDER BY time, busy_ns")]


def consents():
    """Use is measured and reported after consent, and not before it or after its end."""
    with world() as w:
        mark = w.path("opened")
        make_nvml(w, 'int nvmlInit_v2(void) { fclose(fopen("' + mark + '", "w")); return 1; }')
        agent = w.start(*RUN, "sleep", "600")
        wait_until(lambda: w.states() == {1: "active"})
        fdinfo(w, 100, 1)
        time.sleep(3)
        assert uses(w) == [], "use came without consent"
        assert not os.path.exists(mark), "NVIDIA's library was opened without consent"
        assert w.agent("consent", "yes").stdout == "consent=yes\n"
        assert "event vm:vm-a consent" in w.said()
        wait_until(lambda: uses(w) and os.path.exists(mark))
        for i in range(1, 40):
            fdinfo(w, 100, i * 10**8)
            time.sleep(0.1)
        wait_until(lambda: uses(w)[-1] > 10**9)
        assert uses(w) == sorted(uses(w))
        # A process of another GPU adds nothing.
        wait_until(lambda: len(uses(w)) > 2 and uses(w)[-1] == uses(w)[-3])
        before = uses(w)[-1]
        for i in range(20):
            fdinfo(w, 200, i * 10**8, "0000:00:12.0")
            time.sleep(0.1)
        nr = len(uses(w))
        wait_until(lambda: len(uses(w)) > nr + 1)
        assert uses(w)[-1] == before, uses(w)
        assert w.agent("consent", "no").returncode == 0
        time.sleep(1.5)
        nr = len(uses(w))
        time.sleep(2)
        assert len(uses(w)) == nr, "use came after the consent's end"
        agent.terminate()
        agent.wait()


def warned():
    """An idle GPU's warning is told, runs the command, and an extension keeps the GPU."""
    with world() as w:
        w.configure("vm-a", f"notice=echo \"$MGPU_NOTICE $MGPU_REQUEST $MGPU_GPU\" "
                            f">{w.path('notice')}\n")
        agent = working(w.start(*RUN, "sleep", "600"))
        wait_until(lambda: w.states() == {1: "active"})
        w.tell("later 3601")
        wait_until(lambda: "event service idle 1" in w.said())
        w.tell("later 1000")
        wait_until(lambda: "the GPU of request 1 is idle" in w.errors())
        wait_until(lambda: os.path.exists(w.path("notice")) and
                   open(w.path("notice"), encoding="utf-8").read() == "idle 1 0000:00:11.0\n")
        assert "warned=0\n" in w.agent("extend", "1", "0").stdout
        w.tell("later 1000")
        time.sleep(1.5)
        assert w.states() == {1: "active"}
        w.tell("later 2601", "later 1200", "later 301")
        assert agent.wait(30 * SLOW) == 143
        assert "service takes the GPU of request 1 back" in w.errors()


def lease_ends():
    """The end of a lease is told in time, though the guest's clock is hours behind."""
    with world() as w:
        w.tell("later 7200")
        agent = working(w.start("run", "--kind", "training", "--lease", "1h", "--", "sleep", "600"))
        wait_until(lambda: w.states() == {1: "active"})
        time.sleep(1.5)
        assert "the lease of" not in w.errors()
        w.tell("later 3400")
        said = wait_until(lambda: re.search(r"lease of request 1 is over in (\d+) s", w.errors()))
        assert 0 < int(said[1]) <= 200, said[0]
        w.tell("later 200")
        assert agent.wait(30 * SLOW) == 143


def job(w, name, command, kind="training", **more):
    """Put a job into the queue."""
    lines = [f"kind={kind}", *(f"{k}={v}" for k, v in more.items()), f"command={command}"]
    write(w.path(f"queue/.{name}"), "\n".join(lines) + "\n")
    os.rename(w.path(f"queue/.{name}"), w.path(f"queue/{name}"))


def queue():
    """watch runs jobs in order, alike ones on one GPU, and gives it back at the end."""
    with world() as w:
        os.mkdir(w.path("queue"), 0o700)
        log = w.path("log")
        for i in range(3):
            job(w, f"{i}", f"echo {i} $MGPU_REQUEST $MGPU_GPU >>{log}")
        job(w, "3", f"echo 3 $MGPU_REQUEST $MGPU_GPU >>{log}; exit 1", kind="render")
        job(w, "4", "true", colour="red")
        write(w.path("queue/.5"), "not a job\n")
        # The service refuses this for good, and the next job has its turn.
        job(w, "00", "true", target="all")
        os.utime(w.path("queue/00"), (0, 0))
        daemon = w.start("watch")
        wait_until(lambda: os.path.exists(w.path("queue/failed/3")))
        assert os.path.exists(w.path("queue/failed/00"))
        assert open(log, encoding="utf-8").read() == (
            "0 1 0000:00:11.0\n1 1 0000:00:11.0\n2 1 0000:00:11.0\n3 2 0000:00:12.0\n")
        wait_until(lambda: os.path.exists(w.path("queue/failed/4")))
        assert "job 4: colour: unknown name" in w.errors()
        wait_until(lambda: w.states() == {})
        wait_until(lambda: "outcome 1 done=1" in w.said() and "outcome 2 done=0" in w.said())
        assert sorted(os.listdir(w.path("queue/done"))) == [
            "0", "0.log", "1", "1.log", "2", "2.log", "3.log"]
        # A later job is seen, without a look once a minute.
        job(w, "6", "echo out; echo err >&2")
        wait_until(lambda: os.path.exists(w.path("queue/done/6")), 20)
        assert open(w.path("queue/done/6.log"), encoding="utf-8").read() == "out\nerr\n"
        daemon.terminate()
        assert daemon.wait(30 * SLOW) == 0
        assert os.path.exists(w.path("queue/.5"))


def queue_survives():
    """A job that was cut off runs again at the next start, with the same request."""
    with world() as w:
        os.mkdir(w.path("queue"), 0o700)
        job(w, "long", f"echo $MGPU_REQUEST >>{w.path('log')}; [ -e {w.path('go')} ] || sleep 600")
        daemon = w.start("watch")
        wait_until(lambda: os.path.exists(w.path("log")))
        daemon.kill()
        daemon.wait()
        write(w.path("go"), "")
        daemon = w.start("watch")
        wait_until(lambda: os.path.exists(w.path("queue/done/long")))
        assert open(w.path("log"), encoding="utf-8").read() == "1\n1\n"
        wait_until(lambda: w.states() == {})
        daemon.terminate()
        assert daemon.wait(30 * SLOW) == 0


def pipe():
    """watch takes jobs from a pipe, a line each."""
    with world() as w:
        os.mkfifo(w.path("queue"), 0o600)
        daemon = w.start("watch")
        with open(w.path("queue"), "w", encoding="utf-8") as f:
            f.write(f"kind=training size=1G command=echo one  two >>{w.path('log')}\n"
                    "\n" + "x" * 10000 + "\n"
                    f"kind=training size=1G command=echo three >>{w.path('log')}\n")
        wait_until(lambda: os.path.exists(w.path("log")) and
                   open(w.path("log"), encoding="utf-8").read() == "one two\nthree\n")
        assert "a line of the pipe is too long" in w.errors()
        daemon.terminate()
        assert daemon.wait(30 * SLOW) == 0


def logs():
    """A job's output does not reach those who have a former log of its name open."""
    with world() as w:
        write(w.path("queue/done/mine.log"), "former\n")
        os.chmod(w.path("queue"), 0o700)
        with open(w.path("queue/done/mine.log"), encoding="utf-8") as former:
            job(w, "mine", "echo secret")
            daemon = w.start("watch")
            wait_until(lambda: os.path.exists(w.path("queue/done/mine")))
            assert former.read() == "former\n"
        assert open(w.path("queue/done/mine.log"), encoding="utf-8").read() == "secret\n"
        daemon.terminate()
        assert daemon.wait(30 * SLOW) == 0


def owners():
    """Jobs run as the owners of their files; a queue that others can change is refused."""
    if os.geteuid():
        raise pytap.Skip("root is needed to own files as another user")
    with world() as w:
        for path in (tmp.name, w.dir):
            os.chmod(path, 0o711)
        os.mkdir(w.path("queue"))
        os.chmod(w.path("queue"), 0o777)
        done = w.agent("watch")
        assert done.returncode == 1 and "others could replace jobs" in done.stderr, done.stderr
        os.chmod(w.path("queue"), stat.S_ISVTX | 0o733)
        # A folder for logs that another user made, or leads elsewhere.
        for name, make in (("done", lambda path: os.symlink(w.dir, path)),
                           ("done", os.mkdir), ("failed", os.mkdir)):
            path = w.path(f"queue/{name}")
            make(path)
            os.chown(path, 65534, 65534, follow_symlinks=False)
            job(w, "victim", "true")
            done = w.agent("watch")
            assert done.returncode == 1 and f"queue/{name}: " in done.stderr, done.stderr
            assert not os.path.exists(w.path("victim.log"))
            assert os.listdir(w.path("queue")).count("victim") == 1
            (os.unlink if os.path.islink(path) else os.rmdir)(path)
            os.unlink(w.path("queue/victim"))
        job(w, "nobody", "id -u; id -G; cat /proc/self/status | grep CapEff")
        os.chown(w.path("queue/nobody"), 65534, 65534)
        write(w.path("secret"), "kind=x\ncommand=true\n", 0o600)
        os.symlink(w.path("secret"), w.path("queue/link"))
        os.link(w.path("secret"), w.path("queue/hard"))
        write(w.path("queue/a\nmgpu-agent: forged"), "kind=x\ncommand=true\n")
        daemon = w.start("watch")
        wait_until(lambda: os.path.lexists(w.path("queue/failed/hard")) and
                   os.path.lexists(w.path("queue/failed/link")) and
                   os.path.exists(w.path("queue/done/nobody")))
        said = open(w.path("queue/done/nobody.log"), encoding="utf-8").read().split("\n")
        assert said[0] == "65534" and "0" not in said[1].split(), said
        assert re.fullmatch(r"CapEff:\s*0+", said[2]), said
        assert os.stat(w.path("queue/done/nobody.log")).st_uid == 65534
        assert not [name for _, _, names in os.walk(w.path("queue")) for name in names
                    if "forged" in name]
        daemon.terminate()
        assert daemon.wait(30 * SLOW) == 0


def others_reported():
    """watch reports the use of a GPU that was asked for by hand, and tells of warnings."""
    with world() as w:
        # A screen that QEMU emulates is not it.
        write(f"{w.root}/sys/bus/pci/devices/0000:00:02.0/vendor", "0x1234\n")
        os.mkdir(w.path("queue"), 0o700)
        assert w.agent("consent", "yes").returncode == 0
        assert w.agent("request", "--kind", "x", "--wait").returncode == 0
        daemon = w.start("watch")
        fdinfo(w, 100, 1)
        wait_until(lambda: uses(w))
        for i in range(1, 30):
            fdinfo(w, 100, i * 10**8)
            time.sleep(0.1)
        wait_until(lambda: uses(w)[-1] > 10**9)
        # All work is reported before the clock moves.
        wait_until(lambda: len(uses(w)) > 2 and uses(w)[-1] == uses(w)[-3])
        w.tell("later 3601")
        wait_until(lambda: "event service idle 1" in w.said())
        w.tell("later 1000")
        wait_until(lambda: "the GPU of request 1 is idle" in w.errors())
        assert w.agent("release", "1").returncode == 0
        wait_until(lambda: os.listdir(w.path("vm-a.state")) == ["consent"])
        # A job's GPU is reported by the job's process only.
        job(w, "1", "sleep 3")
        wait_until(lambda: os.path.exists(w.path("queue/done/1")))
        assert not [n for n in os.listdir(w.path("vm-a.state")) if n.startswith("reported")]
        daemon.terminate()
        assert daemon.wait(30 * SLOW) == 0


def reporter_restarts():
    """watch goes on to report after a restart, and forgets what ended meanwhile."""
    with world() as w:
        write(f"{w.root}/sys/bus/pci/devices/0000:00:02.0/vendor", "0x1234\n")
        os.mkdir(w.path("queue"), 0o700)
        assert w.agent("consent", "yes").returncode == 0
        assert w.agent("request", "--kind", "x", "--wait").returncode == 0
        for i in range(2):
            nr = len(uses(w))
            daemon = w.start("watch")
            fdinfo(w, 100, i + 1)
            wait_until(lambda n=nr: len(uses(w)) > n + 1)
            daemon.terminate()
            assert daemon.wait(30 * SLOW) == 0
        assert w.agent("release", "1").returncode == 0
        assert "reported-1.request" in os.listdir(w.path("vm-a.state"))
        daemon = w.start("watch")
        wait_until(lambda: os.listdir(w.path("vm-a.state")) == ["consent"])
        daemon.terminate()
        assert daemon.wait(30 * SLOW) == 0


def reporter_without_device():
    """Of GPUs of which any may be the one that was asked for, watch measures none."""
    with world() as w:
        os.mkdir(w.path("queue"), 0o700)
        # Without a root and an address the paths are relative, of glibc's text for no string.
        write(w.path("(null)/sys/bus/pci/devices/gpu_busy_percent"), "50\n")
        assert w.agent("consent", "yes").returncode == 0
        assert w.agent("request", "--kind", "x", "--wait").returncode == 0
        daemon = w.start("watch", cwd=w.dir)
        wait_until(lambda: "reported-1.request" in os.listdir(w.path("vm-a.state")))
        time.sleep(3)
        assert uses(w) == []
        daemon.terminate()
        assert daemon.wait(30 * SLOW) == 0


def listening(pid):
    """Return the TCP ports at which a process listens."""
    with open(f"/proc/{pid}/net/tcp", encoding="ascii") as f:
        sockets = {w[9]: int(w[1].split(":")[1], 16) for w in map(str.split, f) if w[3] == "0A"}
    links = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            links.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return [port for inode, port in sockets.items() if f"socket:[{inode}]" in links]


def real_service():
    """mgpu-poold makes a key, and knows the agent by it."""
    program = os.path.join(CTL, "mgpu-poold")
    if not os.path.exists(program):
        raise pytap.Skip("mgpu-poold is not built")
    with tempfile.TemporaryDirectory(dir=tmp.name) as d:
        write(f"{d}/pool.conf", f"[database]\nurl = sqlite:{d}/db\n[listen]\nsocket = {d}/s\n"
              f"admin_group = {grp.getgrgid(os.getgid()).gr_name}\n[agents]\n"
              "listen = 127.0.0.1:0\n[host one]\nuri = test:///default\n")
        with subprocess.Popen([program, "serve", "--config", f"{d}/pool.conf"]) as poold:
            try:
                port = wait_until(lambda: listening(poold.pid))[0]
                wait_until(lambda: '"test"' in call(f"{d}/s", "GET", "/v1/vms"))
                key = json.loads(call(f"{d}/s", "POST", "/v1/vms/test/key"))["key"]
                write(f"{d}/key", f"test:{key.rsplit(':', 1)[-1]}\n", 0o600)
                write(f"{d}/conf", f"service=127.0.0.1:{port}\nkey={d}/key\nstate={d}/state\n")
                for words, said in ((["state"], "vm=test\n"), (["consent", "yes"], "consent=yes\n"),
                                    (["state"], "consent=yes\n")):
                    done = subprocess.run([AGENT, words[0], "--config", f"{d}/conf", *words[1:]],
                                          capture_output=True, text=True, check=False)
                    assert done.returncode == 0 and said in done.stdout, done.stderr
                call(f"{d}/s", "POST", "/v1/vms/test/key")
                done = subprocess.run([AGENT, "state", "--config", f"{d}/conf"],
                                      capture_output=True, text=True, check=False)
                assert done.returncode == 1 and "refuses the key" in done.stderr, done.stderr
            finally:
                poold.terminate()


def call(path, method, url):
    """Call the API on a Unix socket; return the answer's body."""
    http = HTTPConnection("localhost", timeout=20 * SLOW)
    http.sock = socket.socket(socket.AF_UNIX)
    http.sock.connect(path)
    http.request(method, url)
    with contextlib.closing(http):
        return http.getresponse().read().decode()


def nvml():
    """NVIDIA's library gives use, energy and memory."""
    with world() as w:
        make_nvml(w, "int nvmlInit_v2(void) { return open_++; }")
        assert w.agent("consent", "yes").returncode == 0
        begun = time.time()
        agent = w.start(*RUN, "sleep", "600")
        wait_until(lambda: uses(w) and uses(w)[-1] > 10**9)
        # Half of the time that went by, at most.
        assert uses(w)[-1] <= (time.time() - begun) * 10**9 / 2
        with contextlib.closing(sqlite3.connect(w.path("db"))) as db:
            assert db.execute("SELECT max(memory_mib) FROM pool_use").fetchone() == (3072,)
        agent.terminate()
        agent.wait()
        wait_until(lambda: "outcome 1" in w.said())
        assert "memory_mib=3072" in w.said()


if __name__ == "__main__":
    sys.exit(pytap.run([
        (runs, "run has the device's name for the command, and its status"),
        (options, "the request has what the command line says"),
        (waits, "run waits with place and reason, or not at all"),
        (cores, "there is no core of the agent, which has the key"),
        (signals, "signals are forwarded, or take the request back"),
        (no_device, "a device that does not come is an error"),
        (probing, "a command waits until the driver's probe has ended"),
        (restart, "a request survives the agent's restart"),
        (two_at_once, "GPUs that come at the same time go to a request each"),
        (same_address, "a GPU at the address of one that was leaving is a new one"),
        (boot, "devices of before a boot of the guest are known"),
        (crashed, "a request that ended after a crash keeps no address"),
        (disk, "a damaged file of a request is as none"),
        (reconnects, "the agent connects again"),
        (released_later, "a release that the service cannot store is done later"),
        (taken, "a GPU that is taken back ends the command"),
        (by_hand, "requests can be made and ended by hand"),
        (keys, "keys come from a file or fw_cfg, and bad ones are refused"),
        (consents, "use is reported with consent only"),
        (warned, "a warning is told, and an extension answers it"),
        (lease_ends, "the end of a lease is told by the service's clock"),
        (queue, "watch runs the jobs of a folder"),
        (queue_survives, "a job that was cut off runs again with its request"),
        (pipe, "watch runs the lines of a pipe"),
        (logs, "a job's output goes to a new file"),
        (owners, "jobs run as their owners"),
        (others_reported, "watch reports what was asked for by hand"),
        (reporter_restarts, "watch reports what was asked for by hand after a restart, too"),
        (reporter_without_device, "watch measures no GPU that may be another's"),
        (real_service, "mgpu-poold knows the agent by the key that it made"),
        (nvml, "NVIDIA's library is read if it is there"),
    ]))
