# SPDX-License-Identifier: GPL-2.0-only
"""The packaged Prometheus on loopback: an installed one, or that of tools/setup/prometheus."""

import contextlib
import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

from loopback import free_port

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD", os.path.join(TOP, "build"))
LIMIT = 60 * float(os.environ.get("MGPU_SLOW", "1"))    # seconds for an answer


class Missing(Exception):
    """A program is not there, and what to do."""


class Failed(Exception):
    """Prometheus does not run, or refuses a query, and its words."""


def program(name):
    """Path of prometheus or promtool."""
    path = shutil.which(name, path=os.path.join(BUILD, "prometheus") + ":" + os.environ["PATH"])
    if not path:
        raise Missing(f"{name} is missing; run: tools/setup/prometheus")
    return path


class Server:
    """A Prometheus with its data in a folder, until the end of a with statement."""

    def __init__(self, home, config, *options):
        self.home, self.config, self.options = home, config, options
        self.address = f"127.0.0.1:{free_port()}"
        self.process = None

    def __enter__(self):
        path = os.path.join(self.home, "conf.yml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.config, file)
        with open(os.path.join(self.home, "log"), "wb") as log:
            self.process = subprocess.Popen(
                [program("prometheus"), f"--config.file={path}",
                 f"--storage.tsdb.path={self.home}/data", f"--web.listen-address={self.address}",
                 *self.options], stdout=log, stderr=log)
        end = time.monotonic() + LIMIT
        while not self.ready():
            if self.process.poll() is not None or time.monotonic() > end:
                self.stop()
                raise Failed(f"Prometheus does not answer; it said:\n{self.log()}")
            time.sleep(0.2)
        return self

    def __exit__(self, kind, value, trace):
        self.stop()

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def ready(self):
        with contextlib.suppress(OSError), \
                urllib.request.urlopen(f"http://{self.address}/-/ready", timeout=5):
            return True
        return False

    def log(self):
        with open(os.path.join(self.home, "log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def ask(self, path, **words):
        """Return the data of an answer of the API, version 1."""
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(words)}"
        try:
            with urllib.request.urlopen(url, timeout=LIMIT) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise Failed(f"Prometheus refuses {path} {words}: "
                         f"{error.read().decode(errors='replace')}") from error
