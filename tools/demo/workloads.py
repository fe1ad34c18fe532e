# SPDX-License-Identifier: GPL-2.0-only
"""Workloads of the demo's VMs: all that differs between the kinds of GPU.

WORKLOADS[gpu] has

  module    the back end that tools/vm/modules loads
  settings  its parameters
  renderd   mgpu-renderd executes: it has to be started
  floor     frames/s that VM C is promised at the end
  warm      programs and libraries that every guest opens: read once before, so
            that no guest waits for the disk
  limit     seconds that a VM may take until it shows frames
  complaint regular expression of lines on a serial port that end the demo
  games     one per VM

and a game

  name      of the VM, one capital letter
  uuid      of its vGPU
  type      of its vGPU, the end of the name in sysfs
  mode      of its screen
  set_mode  the vGPU is to have that mode; otherwise the client sets it
  client    what it runs, in a word or two; may be empty
  before    a client to run first, while no other VM runs; may be empty
  run       the command, without double quotes
  boot      more options for tools/guest/boot
  ready     regular expression of a line on its serial port, after which it shows
            frames as fast as it may
"""
import os
import shlex

BUILD = os.environ.get("BUILD", os.path.join(os.path.dirname(os.path.dirname(
    os.path.dirname(os.path.abspath(__file__)))), "build"))
UUID = "6d677075-0000-4000-8000-00000000000"
LIBRARIES = "/usr/lib/x86_64-linux-gnu"

# The reference experiment's three games: two at 1920x1080, one at 1024x768.  A is heavy:
# each of its frames is one long job for the GPU.  B thinks long, on more processors than
# the host has.  C is light, and short of nothing but its turn.  Each prepares up to two
# frames while the GPU has earlier ones.  Before its game, C runs a DRM client of another
# project, modetest, whose flips are not part of any measurement.
#
# The GPU is a described one, so that it is not one of the processors that the games need:
# a GeForce GT 1030, made slower, as processors are by emulation.
SOFT = {
    "module": "mgpu_soft",
    "settings": ["engine=modelled", "model=gt1030,slowdown=30"],
    "renderd": False,
    "floor": 30,
    "warm": [],
    "limit": 120,
    "complaint": r"mgpu-game: .*",
    "games": [
        {"name": "A", "type": "medium", "mode": "1920x1080", "before": "", "cpus": 2,
         "run": "mgpu-game --name A --mode 1920x1080 --theme night --ahead 2 "
                "--textures 1 --texture-kib 8192"},
        {"name": "B", "type": "medium", "mode": "1920x1080", "before": "", "cpus": 4,
         "run": "mgpu-game --name B --mode 1920x1080 --theme forest --ahead 2 "
                "--work 600 --threads 4"},
        {"name": "C", "type": "small", "mode": "1024x768", "cpus": 2,
         "before": "run-modetest 10 1024x768",
         "run": "mgpu-game --name C --mode 1024x768 --theme desert --ahead 2 "
                "--textures 1 --texture-kib 1536"},
    ],
}
for _game in SOFT["games"]:
    _game.update(uuid=UUID + _game["name"].lower(), set_mode=False, client="",
                 ready=r"^game name=.*fps=", boot=["--smp", str(_game["cpus"])])

# Three clients of OpenGL, two of which are not ours.  All take the largest mode
# that there is.  A clears a large screen for a cube, B computes each pixel of a
# smaller one from those of a picture, C draws next to nothing.  kmscube ends when it
# can read from its standard input; glmark2's scene lasts longer than any demo.  All
# have the medium type: 32 MiB, for pictures on the GPU and the guest's pages behind
# them, are too few for glmark2 at 1024x768.
VIRTIO = {
    "module": "mgpu_virtio",
    "settings": [],
    "renderd": False,
    "floor": 30,
    "limit": 240,
    "warm": ["/usr/bin/kmscube", "/usr/bin/glmark2-es2-drm",
             f"{BUILD}/guest/mgpu-gl", f"{LIBRARIES}/dri/virtio_gpu_dri.so"],
    # A client that draws with the guest's own processor shows frames, too.
    "complaint": r'mgpu-gl: .*|failed to .*|Error: .*|'
                 r' *GL_RENDERER: *(?!virgl)\S.*| *renderer: "(?!virgl).*',
    "games": [
        {"name": "A", "mode": "1920x1080", "client": "kmscube",
         "run": "sleep 100000 | kmscube",
         "ready": r"^Rendered [0-9]+ frames"},
        {"name": "B", "mode": "1024x768", "client": "glmark2",
         "run": "glmark2-es2-drm --visual-config red=8:green=8:blue=8:alpha=0 "
                "-b effect2d:duration=1000000",
         "ready": r"GL_RENDERER: *virgl"},
        {"name": "C", "mode": "1024x768", "client": "mgpu-gl",
         "run": f"{shlex.quote(BUILD + '/guest/mgpu-gl')} --name C --load light",
         "ready": r"^gl name=.*fps="},
    ],
}
for _game in VIRTIO["games"]:
    _game.update(uuid=UUID + _game["name"].lower(), type="medium-render",
                 set_mode=True, before="",
                 boot=["--smp", "1", "--root", "host"])

# The same clients, whose commands processes of the host execute.
HOST = {**VIRTIO, "module": "mgpu_user", "renderd": True}

WORKLOADS = {"soft": SOFT, "virtio": VIRTIO, "host": HOST}
