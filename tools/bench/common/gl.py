# SPDX-License-Identifier: GPL-2.0-only
"""Clients of OpenGL in the test host and in guests, and what they cost."""
import glob
import json
import os
import pty
import re
import time

from guests import BUILD, GPUCTL, BenchError, Guest, call, read
from results import OUT, say

KERNEL = os.environ.get("KERNEL", "6.1")
GPU = os.environ.get("MGPU_GPU", "")
RUN = "/run/gl-bench"

WIDTH, HEIGHT = 1920, 1080
TYPE = "medium-render"
START_LIMIT = 90            # seconds for a client to draw its first frames
FLOOD = 1                   # layers of a frame that floods

GL = os.path.join(BUILD, "guest", "mgpu-gl")

# On a GPU whose driver does not have it, such as virgl, virglrenderer executes nothing more of
# a context with a sampler. mgpu-renderd says the same to Mesa; QEMU has the same library.
os.environ["MESA_EXTENSION_OVERRIDE"] = "+GL_AMD_seamless_cubemap_per_texture"

# kmscube ends on input, so it gets none; it prints its number of frames every 2 s.
KMSCUBE = ("rm -f /tmp/in /tmp/out; mkfifo /tmp/in /tmp/out; "
           "stdbuf -oL kmscube 0<>/tmp/in >/tmp/out & p=$!; n=0; "
           "while read -r l; do echo \"$l\"; case $l in Rendered*) n=$((n+1)); "
           "[ $n -lt {reports} ] || break;; esac; done </tmp/out; "
           "kill $p; wait $p; true")
GLMARK = ("stdbuf -oL glmark2-es2-drm "
          "--visual-config red=8:green=8:blue=8:alpha=0 "
          "-b {scene}:duration={seconds}")


def gl(load, seconds, extra=""):
    return f"{GL} --load {load} --seconds {seconds:g}{extra}"


def client_commands(seconds):
    """Return name and command of each client."""
    whole = max(2, round(seconds))
    return {
        "kmscube": KMSCUBE.replace("{reports}", str(1 + max(1, whole // 2))),
        **{f"glmark2-{scene}": GLMARK.format(scene=scene, seconds=whole)
           for scene in ("build", "texture", "effect2d")},
        "gl-offscreen": gl("cube", seconds + 1, " --offscreen"),
        "gl-light": gl("light", seconds + 1),
        "gl-finish": gl("finish", seconds + 1),
        "gl-upload": gl("upload", seconds + 1),
    }


# ---- what a client prints

class Frames:
    """Frames that a client reports; each kind of client has its own lines."""

    GL = re.compile(r"^(?:gl|vk) name=\S+ t=([\d.]+) frames=(\d+)")
    CUBE = re.compile(r"^Rendered (\d+) frames in ([\d.]+) sec")
    MARK = re.compile(r"FPS:\s*([\d.]+)\s+FrameTime")
    # A serial port may lose some of these lines.
    MARK_BEGIN = re.compile(r"GL_(VENDOR|RENDERER|VERSION):|glmark2 \d")
    MARK_SECONDS = re.compile(r"^\[\w+\] .*\bduration=([\d.]+)")
    WESTON = re.compile(r"^(\d+) frames in \d+ seconds: ([\d.]+) fps")

    def __init__(self):
        self.first = None           # (frames, seconds)
        self.last = None
        self.fps = None
        self.summary = {}

    def line(self, text):
        """Read a line; return True if it counts frames."""
        at = None
        found = self.GL.search(text)
        if found:
            at = int(found.group(2)), float(found.group(1))
        found = self.CUBE.search(text)
        if found:
            at = int(found.group(1)), float(found.group(2))
        found = self.MARK.search(text)
        if found:
            self.fps = float(found.group(1))
            seconds = self.MARK_SECONDS.search(text)
            if seconds:
                seconds = float(seconds.group(1))
                at = round(self.fps * seconds), seconds
        if self.MARK_BEGIN.search(text):
            at = 0, 0
        found = self.WESTON.search(text)
        if found and float(found.group(2)):
            # Of the last seconds only
            n, seconds = self.last or (0, 0)
            n += int(found.group(1))
            at = n, seconds + int(found.group(1)) / float(found.group(2))
        if text.startswith("{"):
            # A message of the guest's kernel may follow.
            self.summary = json.JSONDecoder().raw_decode(text)[0]
            at = self.summary["frames"], self.summary["seconds"]
        if not at:
            return False
        self.first = self.first or at
        self.last = at
        return True

    def may_be_last(self, text):
        return text.startswith(("{", "Rendered")) or \
            any(p.search(text) for p in (self.MARK, self.WESTON))

    def counted(self):
        """Return frames and seconds from the first report to the last."""
        if self.first is None or self.last == self.first:
            return 0, 0
        return self.last[0] - self.first[0], self.last[1] - self.first[1]

    def rate(self):
        """Return frames/s; None without any, or when the client's clock went back."""
        frames, seconds = self.counted()
        if not self.fps and seconds:
            return frames / seconds if seconds > 0 else None
        return self.fps or self.summary.get("fps")


class Native:
    """The test host itself, with the interface of a guest."""

    def __init__(self):
        self.name = "native"
        self.child = None
        self.fd = None
        self.text = ""

    def start(self, command):
        pid, fd = pty.fork()
        if not pid:
            os.environ["XDG_RUNTIME_DIR"] = "/run"
            os.execv("/bin/sh", ["sh", "-c", f"{command}; echo guest: done $?"])
        self.child, self.fd = pid, fd
        self.text = ""

    def next_line(self, seconds):
        end = time.monotonic() + seconds
        while "\n" not in self.text:
            if time.monotonic() > end:
                raise BenchError(f"in the test host: silent for {seconds} s: "
                                 f"{self.text!r}")
            try:
                data = os.read(self.fd, 4096)
            except OSError:
                data = b""
            if not data:
                raise BenchError("in the test host: the client ended early: "
                                 f"{self.text!r}")
            self.text += data.decode("utf-8", "replace")
        line, _, self.text = self.text.partition("\n")
        return line.strip()

    def end(self):
        if self.child:
            os.close(self.fd)
            os.waitpid(self.child, 0)
            self.child = None

    def threads(self):
        return {}

    def cpu_ns(self):
        return 0


class GlGuest(Guest):
    """A guest with the host's root file system, or another one of tools/guest/boot."""

    def __init__(self, name, *gpu, root="host"):
        super().__init__(name, os.path.join(RUN, name), OUT)
        self.gpu = gpu
        self.root = root

    def up(self):
        self.boot(*self.gpu, "--root", self.root, "--smp", "1")

    def start(self, command):
        self.send(command)

    def next_line(self, seconds):
        return self.wait_line(r".", seconds).string

    def end(self):
        pass


def run(place, command, begun=None, ended=None):
    """Run a client. Call begun() at its first report and ended() at each that may be
    its last: the measurement lies between them."""
    frames = Frames()
    said = []
    place.start(command)
    try:
        while True:
            line = place.next_line(START_LIMIT)
            said.append(line)
            done = re.match(r"guest: done (\d+)", line)
            if done:
                break
            new = frames.first is None
            if frames.line(line):
                if new and begun:
                    begun()
                elif ended and frames.may_be_last(line):
                    ended()
    finally:
        place.end()
    refused = [line for line in said if "*ERROR* response" in line]
    if refused:
        # It counts frames, but they are not drawn.
        raise BenchError(f"{place.name}: the GPU refused {len(refused)} commands of '{command}': "
                         + refused[0])
    if frames.rate() is None or done.group(1) != "0":
        raise BenchError(f"{place.name}: '{command}' ended with status "
                         f"{done.group(1)}, and said:\n  " + "\n  ".join(said[-8:]))
    return frames


# ---- counters

def busy_ns():
    """Return the busy time of the test host's processors, and the same by ticks,
    which has interrupts apart."""
    ran = 0
    for line in read("/proc/schedstat").splitlines():
        if re.match(r"cpu\d", line):
            ran += int(line.split()[7])
    f = read("/proc/stat").split("\n", 1)[0].split()
    ticks = sum(int(f[i]) for i in (1, 2, 3, 6, 7))
    return ran, ticks * 1e9 / os.sysconf("SC_CLK_TCK")


def flat(o, found):
    """Return numbers and histograms of a vGPU, by name."""
    items = o.items() if isinstance(o, dict) else enumerate(o)
    for k, v in items:
        if isinstance(v, list) and v and all(isinstance(n, int) for n in v):
            found[k] = v
        elif isinstance(v, (dict, list)):
            flat(v, found)
        elif isinstance(v, (int, float)) and not isinstance(v, bool):
            found[k] = v
    return found


def vgpu(uuid):
    return flat(json.loads(call(GPUCTL, "-j", "vgpu", "show", uuid)), {})


def quantile_us(hist, part):
    """Return an interpolated quantile of a histogram; bucket i begins at 2^i us."""
    total = sum(hist)
    if not total:
        return None
    want, seen = part * total, 0
    for i, n in enumerate(hist):
        if n and seen + n >= want:
            low = 2 ** i if i else 0
            return low + (2 ** (i + 1) - low) * (want - seen) / n
        seen += n
    return float(2 ** len(hist))


def difference(a, b):
    return {k: [y - x for x, y in zip(a[k], v)] if isinstance(v, list)
            else v - a.get(k, 0) for k, v in b.items() if k in a}


class Watch:
    """Counters between the first and the last report of a client."""

    def __init__(self, place, uuid=None):
        self.place = place
        self.vcpus = [path for path, part in place.threads().items()
                      if part == "vcpu"]
        self.uuid = uuid
        self.a = self.b = None

    @staticmethod
    def ran_ns(path):
        stat = read(path + "/schedstat").split()
        return int(stat[0]) if stat else 0

    def take(self):
        ran, ticks = busy_ns()
        vcpu = sum(self.ran_ns(path) for path in self.vcpus)
        # QEMU starts and ends threads as it goes along
        at = {"at_s": time.monotonic(), "level1": ran, "level1_ticks": ticks,
              "vcpu": vcpu,
              "qemu": self.place.cpu_ns() - vcpu,
              "bench": self.ran_ns("/proc/self")}
        if self.uuid:
            at.update(vgpu(self.uuid))
        return at

    def begin(self):
        self.a = self.take()

    def end(self):
        self.b = self.take()

    def per_frame(self, frames, seconds):
        """Return the figures by frame of a client that has counted @seconds."""
        if not self.a or not self.b or not frames:
            return {}
        d = difference(self.a, self.b)
        r = {"client_s_per_s": seconds / d["at_s"],
             "level1_ms_per_frame": (d["level1"] - d["bench"]) / 1e6 / frames,
             "level1_ticks_ms_per_frame": d["level1_ticks"] / 1e6 / frames}
        if self.vcpus:
            r["qemu_ms_per_frame"] = d["qemu"] / 1e6 / frames
            r["vcpu_ms_per_frame"] = d["vcpu"] / 1e6 / frames
        if self.uuid:
            r["engine_ms_per_frame"] = d["engine_s"] * 1e3 / frames
            for key in ("jobs", "commands", "doorbells", "interrupts"):
                if key in d:
                    r[f"{key}_per_frame"] = d[key] / frames
            hist = d.get("latency_hist")
            if hist:
                r["latency_us_p50"] = quantile_us(hist, 0.5)
                r["latency_us_p99"] = quantile_us(hist, 0.99)
        return r


# ---- the GPU and its vGPUs

def mode_of(place):
    """Return the mode that the clients choose by default."""
    frames = run(place, gl("light", 0.5))
    return f"{frames.summary['width']}x{frames.summary['height']}", \
        frames.summary["renderer"]


def vgpu_create(uuid):
    """Make a vGPU on the only device of mgpu."""
    found = glob.glob(f"/sys/class/mdev_bus/*/mdev_supported_types/*-{TYPE}/create")
    if len(found) != 1:
        raise BenchError(f"{len(found)} devices offer the vGPU type {TYPE}")
    with open(found[0], "w", encoding="ascii") as f:
        f.write(uuid)


def vgpu_remove(uuid):
    path = f"/sys/bus/mdev/devices/{uuid}/remove"
    if os.path.exists(path):
        with open(path, "w", encoding="ascii") as f:
            f.write("1")


def native_driver():
    """Bind the distribution's driver to the GPU, without a console: a console would
    draw while the test host stops, of which 6.1 warns."""
    call("modprobe", "drm_kms_helper", "fbdev_emulation=0")
    call("modprobe", "virtio_gpu")
    end = time.monotonic() + 20
    while not glob.glob("/dev/dri/card*") or not glob.glob("/dev/dri/render*"):
        if time.monotonic() > end:
            raise BenchError("virtio_gpu found no GPU with 3D: "
                             + call("dmesg").strip()[-500:])
        time.sleep(0.1)


def device_name():
    devices = json.loads(call(GPUCTL, "-j", "dev", "list"))
    found = []

    def search(o):
        if isinstance(o, dict) and "backend" in o:
            found.append(str(o["id"]))
        elif isinstance(o, (dict, list)):
            for v in o.values() if isinstance(o, dict) else o:
                search(v)
    search(devices)
    if not found:
        raise BenchError(f"gpuctl lists no device: {devices}")
    return found[0]


# ---- loads

def measure(result, place, commands, uuid=None, **case):
    """Run clients, and add a "client_run" of each with the keys of @case."""
    for name, command in commands.items():
        watch = Watch(place, uuid)
        frames = run(place, command, watch.begin, watch.end)
        r = {**case, "client": name, "fps": frames.rate(),
             **watch.per_frame(*frames.counted())}
        s = frames.summary
        # mgpu-vk's has no times.
        if "cpu_s" in s:
            r.update({"frame_ms_median": s["frame_ms_median"],
                      "frame_ms_p99": s["frame_ms_p99"],
                      "client_cpu_ms_per_frame": s["cpu_s"] * 1e3 / s["frames"]})
        result("client_run", r)
        say(f"{' '.join(str(v) for v in case.values())}: {name:16} "
            f"{r['fps']:7.1f} frames/s"
            + "".join(f", {k} {r[k + '_ms_per_frame']:.2f} ms" for k in
                      ("level1", "qemu", "vcpu", "engine")
                      if k + "_ms_per_frame" in r))


def check_modes(result, modes):
    """Add the modes and renderers of places, which must have the same mode."""
    for where, (mode, renderer) in modes.items():
        result("conditions", {f"mode_{where}": mode, f"renderer_{where}": renderer})
    if len({m for m, _ in modes.values()}) != 1:
        raise BenchError("the screens differ, so the figures do not compare: "
                         + ", ".join(f"{w} {m}" for w, (m, _) in modes.items()))


def conditions(**more):
    return {"kernel": os.uname().release, "cpus": os.cpu_count(),
            "qemu": call("qemu-system-x86_64", "--version").split("\n")[0],
            "guest": f"stock kernel {KERNEL}, 1 processor, KVM", **more}


def light_run(guest, seconds, rate):
    frames = run(guest, gl("light", seconds,
                           f" --fps {rate:g} --sync" if rate else ""))
    return frames.summary


def flood_begin(guest, uuid):
    """Return when it draws; it does not end by itself.  Its output is thrown away:
    it is not read meanwhile, and the guest would wait for a reader."""
    before = vgpu(uuid)["jobs"]
    guest.send(gl("flood", 1e6, f" --work {FLOOD} >/dev/null"))
    end = time.monotonic() + START_LIMIT
    while vgpu(uuid)["jobs"] < before + 20:
        if time.monotonic() > end:
            guest.fail("floods nothing", hung=True)
        time.sleep(0.5)


def memory():
    """Return the free memory and that of the kernel's slabs, KiB."""
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as f:
        f.write("3")
    time.sleep(0.5)
    found = dict(re.findall(r"^(\w+):\s+(\d+) kB", read("/proc/meminfo"), re.M))
    return {"available_kib": int(found["MemAvailable"]),
            "slab_kib": int(found["Slab"])}
