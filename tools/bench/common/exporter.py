# SPDX-License-Identifier: GPL-2.0-only
"""Scrapes of mgpu-exporter by HTTP."""
import http.client
import statistics
import subprocess
import time

from process import cpu_ns, peak_bytes

FRESH_S = 1.1                   # until the sources are read again


class ExporterError(Exception):
    pass


def get(port, path):
    """Ask for a page; return milliseconds and bytes."""
    begin = time.monotonic()
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    client.request("GET", path, headers={"Accept": "application/openmetrics-text"})
    answer = client.getresponse()
    size = len(answer.read())
    client.close()
    if answer.status != 200:
        raise ExporterError(f"status {answer.status} of {path}")
    return (time.monotonic() - begin) * 1e3, size


def scrapes(command, runs, env=None):
    """Scrape a server; return times, bytes, and CPU time and memory of both processes.

    Before each scrape it is asked for "/", which is all of HTTP and nothing of metrics.

    @command: mgpu-exporter, or a program that is it on a played module
    @runs: number of scrapes, each of which reads the sources
    """
    words = ["serve", "--listen", "127.0.0.1:0"]
    with subprocess.Popen([*command, *words], env=env, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as server:
        try:
            line = server.stdout.readline().split()
            if not line:
                raise ExporterError(f"{command[0]} serves nothing")
            port = int(line[-1])
            get(port, "/")      # the process that answers is there
            with open(f"/proc/{server.pid}/task/{server.pid}/children", encoding="utf-8") as file:
                child, = (int(pid) for pid in file.read().split())
            plain, times, cpu = [], [], []
            for _ in range(runs):
                plain.append(get(port, "/")[0])
                before = cpu_ns(server.pid), cpu_ns(child)
                ms, size = get(port, "/metrics")
                times.append(ms)
                cpu.append(((cpu_ns(server.pid) - before[0]) / 1e6,
                            (cpu_ns(child) - before[1]) / 1e6))
                time.sleep(FRESH_S)
            memory = [peak_bytes(server.pid), peak_bytes(child)]
        finally:
            server.terminate()
    return {"runs": runs, "http_ms": round(statistics.median(times), 2),
            "http_ms_each": [round(t, 2) for t in times],
            "index_ms": round(statistics.median(plain), 2),
            "reader_cpu_ms": round(statistics.median(c[0] for c in cpu), 2),
            "http_cpu_ms": round(statistics.median(c[1] for c in cpu), 2), "bytes": size,
            "reader_peak_bytes": memory[0], "http_peak_bytes": memory[1]}
