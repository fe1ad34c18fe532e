#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""mgpu-exporter, as a program.

It serves and writes what it should and where it should, no client holds it, and a real Prometheus
reads it.  Dashboard, alerts and documentation name metrics that there are.  The module is that of
metrics_kernel.h; mgpud and mgpu-remoted are of this test.
"""

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True

import pytap  # noqa: E402 pylint: disable=wrong-import-position

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD", os.path.join(TOP, "build"))
sys.path.insert(0, os.path.join(TOP, "tests", "lib"))
import prometheus  # noqa: E402 pylint: disable=wrong-import-position
from played_service import Service  # noqa: E402 pylint: disable=wrong-import-position

EXPORTER = os.path.join(BUILD, "unit", "test_metrics")
SLOW = float(os.environ.get("MGPU_SLOW", "1"))
UUID = "00000002-509f-382f-3c1e-e6bfe0fa1001"
OPENMETRICS = "application/openmetrics-text"
MGPUD = {"version": 1, "release": "1", "allocator": "fea", "period_s": 0.5, "sample_age_s": 0.2,
         "periods": 7, "trouble": [], "model": {"state": "off"}, "vgpus": [
             {"uuid": UUID, "fps": 59.5, "floor_fps": 30, "granted_fps": 30, "shortfall": False,
              "ceiling_fps": None, "state": "active", "description": "a \"game\"\\\n€"}]}
REMOTED = {"version": 1, "applications": [{"process": 7, "command": "x", "calls": 5}],
           "accounts": []}
TMP = tempfile.mkdtemp()


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        return file.read()


def program(name):
    """Path of one of Prometheus' programs."""
    try:
        return prometheus.program(name)
    except prometheus.Missing as why:
        raise pytap.Skip("no Prometheus") from why


ENV = dict(os.environ, MGPUD_SOCKET=os.path.join(TMP, "mgpud"),
           MGPU_REMOTE_CONTROL=os.path.join(TMP, "remoted"), METRICS_VGPUS="40")


def call(*words, status=0):
    """Run the exporter; return standard output and error."""
    done = subprocess.run([EXPORTER, *words], env=ENV, capture_output=True, text=True,
                          timeout=60 * SLOW, check=False)
    assert done.returncode == status, f"{words}: {done.returncode}: {done.stderr}"
    return done.stdout, done.stderr


@contextlib.contextmanager
def serving(*words, **env):
    """Run the exporter as a server; yields the process and its port, 0 for a UNIX socket."""
    with subprocess.Popen([EXPORTER, "serve", *words], env=dict(ENV, **env), text=True,
                          stdout=subprocess.PIPE) as server:
        try:
            line = server.stdout.readline() if "--listen" in words else ""
            yield server, int(line.split()[-1]) if line else 0
        finally:
            server.terminate()
            status = server.wait(timeout=20 * SLOW)
    assert status == 0, f"it ended with {status}"


def get(port, path="/metrics", method="GET", headers=None, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30 * SLOW)
    connection.request(method, path, body=body, headers=headers or {})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer, text


def names_in(expression):
    """Names of metrics in a query."""
    return set(re.findall(r"\bmgpu_\w+", expression))


def samples():
    """Names of all samples, as Prometheus stores them."""
    rows = [line.split("\t") for line in call("list")[0].splitlines()]
    assert len(rows) > 80, len(rows)
    found = set()
    for name, kind, *_ in rows:
        found |= {name + s for s in ("_bucket", "_count", "_sum")} if kind == "histogram" else {name}
    return found


# ---- what it writes

def check_format(text):
    """Check the rules of OpenMetrics that a line tells."""
    families, seen, family = set(), set(), None
    lines = text.split("\n")
    assert lines[-2:] == ["# EOF", ""] and lines.count("# EOF") == 1, lines[-3:]
    for line in lines[:-2]:
        word = re.match(r"# (TYPE|UNIT|HELP) (\w+) (.+)", line)
        if word:
            if word[1] == "TYPE":
                assert word[2] not in families, line
                family, kind = word[2], word[3]
                families.add(family)
            assert word[2] == family, line
            assert word[1] != "UNIT" or family.endswith("_" + word[3]), line
            continue
        sample = re.fullmatch(r'(\w+)(\{(\w+="([^"\\]|\\["\\n])*",?)*\})? (\S+)', line)
        assert sample, line
        suffix = {"counter": "_total", "info": "_info", "gauge": "",
                  "histogram": "_bucket"}[kind]
        assert sample[1] == family + suffix, line
        assert line.rsplit(" ", 1)[0] not in seen, line
        seen.add(line.rsplit(" ", 1)[0])
        float(sample[5])


def prints():
    text = call("print", "--openmetrics")[0]
    check_format(text)
    assert "mgpu_vgpu_info{" in text and '\nmgpu_source_up{source="remoted"} 1\n' in text
    assert f'uuid="{UUID}",type="medium-render",name="a \\"game\\"\\\\\\n€"}} 1\n' in text
    assert "_bucket" not in call("print", "--no-histograms")[0]
    for bad in ("a_total 1\n# EOF\n", "# TYPE a counter\na 1\n# EOF\n", "# TYPE a gauge\na 1\n",
                '# TYPE a gauge\na{b="\n"} 1\n# EOF\n', "# TYPE a gauge\na 1\na 1\n# EOF\n"):
        try:
            check_format(bad)
        except (AssertionError, UnboundLocalError):
            continue
        assert False, f"not noticed: {bad!r}"


def writes_file():
    path = os.path.join(TMP, "mgpu.prom")
    call("textfile", path)
    text = read(path)
    assert "\nmgpu_vgpu_frames_total{" in text and "# EOF" not in text
    assert os.listdir(TMP).count("mgpu.prom.tmp") == 0
    # it is replaced, not written: an open file stays whole
    with open(path, encoding="utf-8") as old:
        call("textfile", path, "--no-histograms")
        assert old.read() == text and read(path) != text
    assert "ends with .prom" in call("textfile", os.path.join(TMP, "x.txt"), status=2)[1]
    assert "No such file" in call("textfile", "/nonexistent/x.prom", status=1)[1]
    with subprocess.Popen([EXPORTER, "textfile", path, "--interval", "1"], env=ENV) as writer:
        time.sleep(0.1)
        os.unlink(path)
        end = time.monotonic() + 20 * SLOW
        while not os.path.exists(path) and time.monotonic() < end:
            time.sleep(0.1)
        writer.terminate()
    assert os.path.exists(path)


def ready_later():
    folder, address = os.path.join(TMP, "later"), os.path.join(TMP, "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.settimeout(20 * SLOW)
        with subprocess.Popen([EXPORTER, "textfile", folder + "/x.prom", "--interval", "1"],
                              env=dict(ENV, NOTIFY_SOCKET=address), stderr=subprocess.PIPE,
                              text=True) as writer:
            try:
                assert "No such file" in writer.stderr.readline()
                os.mkdir(folder)
                assert manager.recv(100) == b"READY=1"
                assert os.path.exists(folder + "/x.prom")
            finally:
                writer.terminate()


# ---- where it serves

def refuses_addresses():
    for words, why in (
            ((), "nothing is served unless asked for"),
            (("--listen", "0.0.0.0:9960"), "no loopback address.*--any-address"),
            (("--listen", "[::]:9960"), "no loopback address"),
            (("--listen", "10.0.0.1:9960"), "no loopback address"),
            (("--listen", "localhost:9960"), "address in numbers"),
            (("--listen", "127.0.0.1"), "address in numbers"),
            (("--listen", "127.0.0.1:70000"), "address in numbers"),
            (("--listen", "127.0.0.1:-1"), "address in numbers"),
            (("--listen", "::1:9960"), "address in numbers"),
            (("--socket", TMP + "/" + "x" * 120), "at most 107 bytes"),
            (("--socket", __file__), "no socket"),
            (("--socket", "/nonexistent/x"), "No such file")):
        said = call("serve", *words, status=1 if words else 2)[1]
        assert re.search(why, said) and said.count("\n") == 1, said
    with serving("--listen", "0.0.0.0:0", "--any-address") as (_, port):
        assert get(port)[0].status == 200


def listens(path):
    """Wait until a UNIX socket takes connections."""
    end = time.monotonic() + 20 * SLOW
    while time.monotonic() < end:
        with socket.socket(socket.AF_UNIX) as client:
            with contextlib.suppress(ConnectionRefusedError, FileNotFoundError):
                client.connect(path)
                return
        time.sleep(0.05)
    assert False, "it does not listen"


def unix_socket():
    path = os.path.join(TMP, "metrics")
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(path)
    with serving("--socket", path):
        listens(path)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(path)
            client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            assert client.recv(100).startswith(b"HTTP/1.1 200")
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o660
        assert "in use" in call("serve", "--socket", path, status=1)[1]
    assert not os.path.exists(path)


def answers():
    with serving("--listen", "127.0.0.1:0") as (_, port):
        answer, text = get(port)
        assert answer.status == 200 and answer.getheader("Content-Type").startswith("text/plain")
        assert text.startswith("# TYPE mgpu_exporter_info gauge\n")
        answer, text = get(port, headers={"Accept": OPENMETRICS + ";version=1.0.0,*/*;q=0.1"})
        assert answer.getheader("Content-Type").startswith(OPENMETRICS)
        check_format(text)
        answer, text = get(port, method="HEAD")
        assert answer.status == 200 and not text and int(answer.getheader("Content-Length"))
        assert get(port, "/")[0].status == 200
        assert get(port, "/../etc/passwd")[0].status == 404
        for method in ("POST", "PUT", "DELETE", "OPTIONS"):
            answer, _ = get(port, method=method, body="x" if method == "POST" else None)
            assert answer.status == 405 and answer.getheader("Allow") == "GET, HEAD"
        # the module is asked once a second for all
        begin = time.monotonic()
        texts = {get(port)[1] for _ in range(9)}
        assert len(texts) <= 2 + time.monotonic() - begin


# ---- hostile clients

def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=30 * SLOW)


def large_requests():
    with serving("--listen", "127.0.0.1:0") as (_, port):
        for request in (b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n",
                        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 20000 + b"\r\n",
                        b"\0" * 5000, b"POST /metrics HTTP/1.1\r\nContent-Length: 1000000000\r\n\r\n"):
            with connect(port) as client:
                with contextlib.suppress(OSError):
                    client.sendall(request)
                got = b""
                with contextlib.suppress(ConnectionResetError):
                    got = client.recv(1000)
            assert not got or re.match(rb"HTTP/1.[01] (4|5)\d\d ", got), got
        assert get(port)[0].status == 200


def slow_clients():
    """Clients that are never idle, and never done, take all connections: for a while."""
    done = threading.Event()

    def drip(client):
        for byte in b"GET /metrics HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 1000:
            if done.wait(0.5):
                return
            try:
                client.sendall(bytes([byte]))
            except OSError:
                return

    with serving("--listen", "127.0.0.1:0") as (server, port):
        clients = [connect(port) for _ in range(40)]
        threads = [threading.Thread(target=drip, args=(client,)) for client in clients]
        for thread in threads:
            thread.start()
        begin = time.monotonic()
        assert get(port)[0].status == 200
        took = time.monotonic() - begin
        done.set()
        for thread in threads:
            thread.join()
        assert server.poll() is None
    for client in clients:
        client.close()
    assert took < 25 * SLOW, took


def slow_readers():
    """Clients that read an answer slowly keep no more than four in memory."""
    path = os.path.join(TMP, "slow")

    def ask_slowly():
        client = socket.socket(socket.AF_UNIX)
        client.connect(path)
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        clients.append(client)
        return client.recv(12)

    def drain(client, size):
        """Read enough that the server's kernel asks for more."""
        while size > 0 and (got := client.recv(65536)):
            size -= len(got)

    # a socket holds 200 KiB of an answer of 2.4 MB
    with serving("--socket", path, METRICS_VGPUS="300") as (server, _):
        listens(path)
        clients, texts, steps = [], [], []
        for _ in range(5):
            steps.append(time.monotonic())
            texts.append(ask_slowly())
            time.sleep(1)
            for client in clients:
                drain(client, 300000)
        steps.append(time.monotonic())
        # where a step takes longer than a client may be idle, the first ones are gone
        longest = max(after - before for before, after in zip(steps, steps[1:]))
        assert longest > 2.5 or texts == [b"HTTP/1.1 200"] * 4 + [b"HTTP/1.1 503"], texts
        assert server.poll() is None
        for client in clients:
            client.close()
        end = time.monotonic() + 20 * SLOW
        while ask_slowly() != b"HTTP/1.1 200":
            assert time.monotonic() < end
            time.sleep(0.2)
        clients[-1].close()


def unprivileged():
    """The process that reads requests can open, connect to, and start nothing."""
    with serving("--listen", "127.0.0.1:0") as (server, port):
        assert get(port)[0].status == 200
        with open(f"/proc/{server.pid}/task/{server.pid}/children", encoding="utf-8") as file:
            child, = file.read().split()
        status = dict(line.split(":\t", 1) for line in read(f"/proc/{child}/status").splitlines()
                      if ":\t" in line)
        for name in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb"):
            assert int(status[name], 16) == 0 or (name == "CapBnd" and os.geteuid()), name
        assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
        # it does not outlive the process that reads the sources, nor the other way round
        os.kill(int(child), signal.SIGKILL)
        assert server.wait(timeout=20 * SLOW) == 1
        server.wait = lambda timeout=None: 0


# ---- Prometheus

def promtool_likes_it():
    done = subprocess.run([program("promtool"), "check", "metrics"], input=call("print")[0],
                          capture_output=True, text=True, check=False)
    assert not done.returncode and not done.stderr, done.stdout + done.stderr


def alerts():
    rules = os.path.join(TOP, "ctl", "metrics", "mgpu-alerts.yml")
    data = os.path.join(TOP, "tests", "unit", "data", "metrics_alerts.yml")
    text, known = read(rules), samples()
    unknown = {n for n in names_in(re.sub(r"(?m)^\s*#.*", "", text)) if n not in known}
    assert not unknown, unknown
    names = re.findall(r"- alert: (\w+)", text)
    assert len(names) > 10
    assert sorted(names) == sorted(re.findall(r'alertname="(\w+)"', read(data)))
    for words in (("check", "rules", rules), ("test", "rules", data)):
        done = subprocess.run([program("promtool"), *words], capture_output=True, text=True,
                              check=False)
        assert not done.returncode, done.stdout + done.stderr


def queries():
    """Queries of the dashboard, with its variables filled in, and their legends."""
    board = json.loads(read("ctl/metrics/mgpu-dashboard.json"))
    found = [(target["expr"], target["legendFormat"]) for panel in board["panels"]
             for target in panel.get("targets", [])]
    assert len(found) > 30, len(found)
    return [(re.sub(r"\$(instance|parent|uuid)\b", ".*", query)
             .replace("$__rate_interval", "1m"), legend) for query, legend in found]


def dashboard():
    board = json.loads(read("ctl/metrics/mgpu-dashboard.json"))
    known = samples()
    variables = [v["definition"] for v in board["templating"]["list"] if "definition" in v]
    for query in [query for query, _ in queries()] + variables:
        assert names_in(query), query
        assert names_in(query) <= known, names_in(query) - known
    ids = [panel["id"] for panel in board["panels"]]
    assert len(set(ids)) == len(ids)
    for panel in board["panels"]:
        assert panel["type"] == "row" or panel["description"], panel
        # Grafana's own thresholds make every value above 80 red
        assert panel["type"] != "stat" or panel["fieldConfig"]["defaults"]["thresholds"], panel
        # rates are extrapolated, and a line above the maximum of its axis is not drawn
        assert ("max" not in panel.get("fieldConfig", {}).get("defaults", {}) or
                not any("rate(" in t["expr"] for t in panel["targets"])), panel
        # a UUID takes a line of the legend, so it stands only for a name that there is not
        for target in panel.get("targets", []):
            assert ("{{uuid}}" not in target["legendFormat"] or
                    target["legendFormat"].endswith("{{name}} {{uuid}}") and
                    panel["transformations"][0]["id"] == "renameByRegex"), panel


@contextlib.contextmanager
def scraping(target):
    """Run a Prometheus that scrapes the target each second; yields it."""
    home = os.path.join(TMP, "prometheus")
    os.mkdir(home)
    with prometheus.Server(home, {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [os.path.join(TOP, "ctl", "metrics", "mgpu-alerts.yml")],
            "scrape_configs": [{"job_name": "mgpu", "static_configs": [
                {"targets": [f"127.0.0.1:{target}"]}]}]}) as server:
        yield server


def comes(server, what):
    """Wait for something of Prometheus: a scrape that takes longer than its second has failed."""
    end = time.monotonic() + 50 * SLOW
    while not (found := what()):
        assert time.monotonic() < end, server.log()
        time.sleep(0.3)
    return found


def scraped():
    program("prometheus")
    with serving("--listen", "127.0.0.1:0") as (_, target), scraping(target) as server:
        # the time of a good scrape, with others before it; those of that time have ended
        good = comes(server, lambda: server.ask(
            "query", time=time.time() - 2,
            query="sum_over_time(up[1m]) > 2 and up == 1 and on (instance) count by (instance) "
                  '(mgpu_source_up{source=~"module|mgpud|remoted"} == 1) == 3')["result"])

        def ask(query):
            return server.ask("query", query=query, time=good[0]["value"][0])["result"]

        def value_of(query):
            return float(ask(query)[0]["value"][1])

        def healthy():
            target, = server.ask("targets")["activeTargets"]
            return target["health"] == "up" and not target["lastError"]

        def fires_alone(alert):
            return [a["labels"]["alertname"] for a in server.ask("alerts")["alerts"]
                    if a["state"] == "firing"] == [alert]

        comes(server, healthy)
        comes(server, lambda: fires_alone("MgpuQuarantine"))
        assert value_of("count(mgpu_vgpu_frames_total)") == 40
        # counts of vGPU N are N times 0 1 2 3 4 0 1 ...; the first has no histogram
        assert value_of(f'mgpu_vgpu_latency_seconds_bucket{{uuid="{UUID}",le="+Inf"}}') == 92
        assert value_of("histogram_quantile(0.5, mgpu_vgpu_latency_seconds_bucket"
                        f'{{uuid="{UUID}"}})') > 0.001
        labels = ask(f'mgpu_vgpu_info{{uuid="{UUID}"}}')[0]["metric"]
        assert labels["name"] == MGPUD["vgpus"][0]["description"] and labels["type"]
        about = {m["metric"]: m for m in server.ask("targets/metadata")}
        assert about["mgpu_vgpu_engine_seconds"]["type"] == "counter"
        assert about["mgpu_vgpu_engine_seconds"]["unit"] == "seconds"
        assert about["mgpu_vgpu_latency_seconds"]["type"] == "histogram"
        # all queries of the dashboard are valid, and most have a result here
        answers = [(query, legend, ask(query)) for query, legend in queries()]
        empty = [query for query, _, answer in answers if not answer]
        assert all(re.search("controller_preemptions|fairness|model_|renderd|received|sent|busy|"
                             "rate.*calls", query) for query in empty), empty
        for query, legend, answer in answers:
            labels = {label for series in answer for label in series["metric"]}
            assert not answer or set(re.findall(r"{{(\w+)}}", legend)) <= labels, (query, legend)


# ---- the documentation

def documented():
    page = read("Documentation/metrics.rst")
    table = {}
    for name, kind, unit, labels, text in re.findall(
            r"^   \* - ``(\w+)``\n     - (\w+)\n     -(?: (.*))?\n     -(?: (.*))?\n     - (.*)$",
            page, flags=re.M):
        table[name] = (kind, unit, labels, text)
    real = {row[0]: tuple(row[1:]) for row in (line.split("\t")
                                               for line in call("list")[0].splitlines())}
    assert len(real) > 80
    differ = {name for name in real.keys() | table.keys() if real.get(name) != table.get(name)}
    assert not differ, differ


try:
    SERVICES = [Service(ENV["MGPUD_SOCKET"], MGPUD), Service(ENV["MGPU_REMOTE_CONTROL"], REMOTED)]
    STATUS = pytap.run([
        (prints, "it prints valid OpenMetrics"),
        (writes_file, "it replaces a file for node_exporter"),
        (ready_later, "it is ready once the first file is written"),
        (refuses_addresses, "it serves at no address unless asked, and at loopback addresses"),
        (unix_socket, "it serves at a UNIX socket, which goes with it"),
        (answers, "it answers GET and HEAD in the format that a client accepts"),
        (large_requests, "a large or damaged request is refused"),
        (slow_clients, "clients that are slow do not hold it"),
        (slow_readers, "clients that read slowly keep few answers in memory"),
        (unprivileged, "the process that reads requests has no privileges"),
        (promtool_likes_it, "promtool finds no fault"),
        (alerts, "alert rules name metrics that there are, and fire when they should"),
        (dashboard, "each query of the dashboard names metrics that there are"),
        (scraped, "a Prometheus scrapes it, and the dashboard's queries have results"),
        (documented, "the documentation has all metrics, as they are"),
    ])
finally:
    shutil.rmtree(TMP)
sys.exit(STATUS)
