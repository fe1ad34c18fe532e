# SPDX-License-Identifier: GPL-2.0-only
"""A picture of the dashboard for Grafana, of what mgpu-exporter answered in make demo.

A Prometheus gets the recorded answers, and is asked the queries of ctl/metrics/mgpu-dashboard.json.
page.jsx draws what it says with Grafana's library, which npm installs below build/dashboard.
"""
import contextlib
import functools
import http.server
import json
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import threading
import time

import prometheus
from browser import Browser

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
BUILD = os.environ.get("BUILD", os.path.join(TOP, "build"))
BOARD = os.path.join(TOP, "ctl", "metrics", "mgpu-dashboard.json")
SITE = os.path.join(BUILD, "dashboard")
ROW, GAP = 38, 8            # pixels of a row of Grafana's grid, with the gap, and of that
WIDTH = 1240                # pixels of the page
TARGET = 'instance="127.0.0.1:9960",job="mgpu"'     # as in metrics.rst's quick start
LIMIT = 60                  # seconds for a server to answer


class DashboardError(Exception):
    pass


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if done.returncode:
        raise DashboardError(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr).strip()}")


# ---- the page

def build_page():
    """Install Grafana's library, unless it is there, and bundle the page with it."""
    if not shutil.which("npm"):
        raise DashboardError("npm is missing; run: apt install npm")
    os.makedirs(SITE, exist_ok=True)
    with open(os.path.join(HERE, "package.json"), encoding="utf-8") as f:
        wanted = f.read()
    stamp = os.path.join(SITE, ".installed")
    with contextlib.suppress(FileNotFoundError), open(stamp, encoding="utf-8") as f:
        wanted = None if f.read() == wanted else wanted
    if wanted:
        print("pictures: installing Grafana's library below build/dashboard (450 MB)", flush=True)
        shutil.copy(os.path.join(HERE, "package.json"), SITE)
        run("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", cwd=SITE)
        with open(stamp, "w", encoding="utf-8") as f:
            f.write(wanted)
    modules = os.path.join(SITE, "node_modules")
    run(os.path.join(modules, ".bin", "esbuild"), os.path.join(HERE, "page.jsx"), "--bundle",
        '--define:process.env.NODE_ENV="production"', "--loader:.ttf=empty", "--minify",
        f"--outfile={SITE}/page.js", env={**os.environ, "NODE_PATH": modules})
    with open(os.path.join(SITE, "index.html"), "w", encoding="utf-8") as f:
        f.write('<!doctype html><meta charset="utf-8"><title>mgpu</title>'
                '<link rel="icon" href="data:,">'
                '<style>body { margin: 0 }</style>'
                '<link rel="stylesheet" href="page.css"><div id="styles"></div>'
                '<div id="root"></div>'
                '<script src="page.js"></script>\n')


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves icons and fonts where Grafana's server has them."""

    def translate_path(self, path):
        inter = "@fontsource/inter/files/inter-latin"
        for begin, there in (("build/img/", "@grafana/ui/dist/public/img/"),
                             ("fonts/inter/Inter-Regular", f"{inter}-400-normal"),
                             ("fonts/inter/Inter-Medium", f"{inter}-500-normal")):
            if path.startswith(f"/public/{begin}"):
                path = f"/node_modules/{there}" + path[len(f"/public/{begin}"):]
        return super().translate_path(path)

    def log_message(self, format, *args):   # pylint: disable=redefined-builtin
        pass


@contextlib.contextmanager
def site():
    """Serve the page at a loopback address; yields that."""
    with http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(Handler, directory=SITE)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/index.html"
        finally:
            server.shutdown()


# ---- the answers

def samples(text, milliseconds):
    """Yield the samples of an answer with the labels of its target, and their time."""
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, more, rest = re.fullmatch(r"(\w+)(\{)?(.*)", line).groups()
            yield (f"{name}{{{TARGET}{',' if more else '}'}{rest}"
                   f" {milliseconds // 1000}.{milliseconds % 1000:03}\n")


def import_answers(folder, home):
    """Write the recorded answers into a database; returns their times, in seconds."""
    times = sorted(int(name) for name in os.listdir(folder))
    if len(times) < 10:
        raise DashboardError(f"{folder} has {len(times)} answers, which are too few; "
                             "run: make demo DEMO_METRICS=1")
    path = os.path.join(home, "samples")
    with open(path, "w", encoding="utf-8") as out:
        for milliseconds in times:
            with open(os.path.join(folder, str(milliseconds)), encoding="utf-8") as f:
                out.writelines(samples(f.read(), milliseconds))
        out.write("# EOF\n")
    run(prometheus.program("promtool"), "tsdb", "create-blocks-from", "openmetrics", path,
        os.path.join(home, "data"))
    return [t / 1000 for t in times]


def answered(panels, answers):
    """Return the panels of rows in which a query has an answer, moved up."""
    rows = []
    for panel in panels:
        if panel["type"] == "row" or not rows:
            rows.append([])
        rows[-1].append(panel)
    kept, y = [], 0
    for row in rows:
        if any(answer for panel in row for answer in answers[panel["id"]].values()):
            up = row[0]["gridPos"]["y"] - y
            kept += [{**p, "gridPos": {**p["gridPos"], "y": p["gridPos"]["y"] - up}} for p in row]
            y = max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in kept)
    return kept


def page_of(board, folder):
    """Return what page.jsx draws: the dashboard, and the answers to its queries."""
    with tempfile.TemporaryDirectory() as home:
        times = import_answers(folder, home)
        scrape = max(1, round(statistics.median(b - a for a, b in zip(times, times[1:]))))
        start, end = (int(t) // scrape * scrape for t in (times[0] + scrape, times[-1]))
        # Grafana's values: a point for each scrape, unless a panel has fewer pixels than that.
        values = {v["name"]: v["allValue"] for v in board["templating"]["list"] if "allValue" in v}
        values["__rate_interval"] = f"{4 * scrape}s"
        answers = {}
        # The recording has no marks for series that ended: two scrapes later they are gone.
        with prometheus.Server(home, {}, "--storage.tsdb.retention.time=100y",
                               f"--query.lookback-delta={2 * scrape}s") as server:
            for panel in board["panels"]:
                answers[panel["id"]] = {
                    target["refId"]: server.ask(
                        "query_range", start=start, end=end, step=scrape,
                        query=re.sub(r"\$(\w+)", lambda m: values[m[1]], target["expr"]))["result"]
                    for target in panel.get("targets", [])}
    panels = answered(board["panels"], answers)
    rows = max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in panels)
    return {"panels": panels, "answers": answers, "start": start, "end": end, "step": scrape,
            "width": WIDTH, "height": rows * ROW + GAP}


# ---- the picture


def drawn(driver):
    """Return the page as PNG, once there are panels, and nothing is added to them."""
    begin, before = time.monotonic(), None
    while time.monotonic() < begin + LIMIT:
        time.sleep(1)
        png = driver.get_screenshot_as_png()
        if driver.execute_script("return window.faults.length"):
            return png
        if png == before and driver.execute_script("return document.querySelector('section')"):
            return png
        before = png
    raise DashboardError("Chromium has not drawn the dashboard")


def png_of(folder):
    """Return the dashboard as PNG."""
    with open(BOARD, encoding="utf-8") as f:
        board = json.load(f)
    build_page()
    page = page_of(board, folder)
    with open(os.path.join(SITE, "page.json"), "w", encoding="utf-8") as f:
        json.dump(page, f)
    with site() as address:
        browser = Browser(page["width"], page["height"])
        try:
            browser.command("Emulation.setScrollbarsHidden", hidden=True)
            browser.driver.get(address)
            png = drawn(browser.driver)
            faults = browser.driver.execute_script("return window.faults")
            faults = faults or [entry["message"] for entry in browser.driver.get_log("browser")
                                if entry["level"] == "SEVERE"]
            if faults:
                raise DashboardError("the page has faults:\n" + "\n".join(faults))
            return png
        finally:
            browser.close()
