"""The viewer on large logs: time to the first picture, panning and zooming, building pyramids, and memory.

    python bench/view.py page [megabytes] [rounds]
    python bench/view.py first [megabytes]
    python bench/view.py pan [million samples] [fields]

``page`` opens the page in chromium, without a cached index: seconds to the first plot after the command and after the
browser began to load, to the redrawn plots after a zoom, requests and bytes at page load, and CPU of the server.
``first`` starts ``logreel view`` on a log of 300 MB, and asks as the page does: session, channels, overview, charts and
the series of the first charts. ``pan`` makes a log of 100 million messages with some int16 fields (which is 10 GB for
fifty fields), draws every field, and then asks for random windows of the first one. The viewer runs in a separate
process; its memory is what is not mapped from files (RssAnon).
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import numpy as np
import pyarrow as pa

import bench_path  # noqa: F401 - before what it makes importable
import biglog
import logreel
from logreel.io.arrays import keep_freed_memory
from logreel.meaning.columns import FieldColumn
from logreel.meaning.pyramids import STEP, Pyramid
from support.samples.ulog.builder import Builder

#: Width of a plot, and windows that are asked for.
PIXELS, WINDOWS = 1200, 400
#: Microseconds between two messages of the log of ``pan``.
STEP_US = 100


class Server:
    """A viewer in a process of its own."""

    def __init__(self, path: Path, cache: Path) -> None:
        self.started, self.began = time.perf_counter(), time.time()
        command = [sys.executable, "-m", "logreel", "view", str(path), "--no-browser"]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env={**os.environ, "LOGREEL_CACHE": str(cache)}
        )
        self.address = (self.process.stdout or sys.stdin).readline().strip()
        address = urlsplit(self.address)
        self._token = address.fragment.partition("=")[2]
        self._connection = http.client.HTTPConnection(address.hostname or "", address.port or 0, timeout=600)

    def ask(self, what: str, **given: Any) -> bytes:
        query = urlencode({name.rstrip("_"): value for name, value in given.items()}, doseq=True)
        # The server closes a connection that is idle for some seconds.
        self._connection.close()
        self._connection.request(
            "GET", f"/api/{what}?{query}", headers={"Authorization": f"Bearer {self._token}"}
        )
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{what}: {answer.status} {body!r}")
        return body

    def json(self, what: str, **given: Any) -> Any:
        return json.loads(self.ask(what, **given))

    def anonymous(self) -> float:
        """Return the memory that is not mapped from files, MB."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon"))

    def cpu(self) -> float:
        """Return the CPU that it took, s."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()


def first_picture(path: Path, cache: Path) -> dict[str, float]:
    """Return seconds from the command to each answer, one after the other."""
    server = Server(path, cache)
    marks = {"address": time.perf_counter() - server.started}

    def mark(name: str) -> None:
        marks[name] = time.perf_counter() - server.started

    try:
        while not server.json("session")["logs"][0]["opened"]:
            time.sleep(0.01)
        mark("session")
        panels = server.json("logs/0/charts")
        mark("charts")
        wanted = [one for panel in panels["panels"][: panels["first"]] for one in panel["series"]]
        names = ("topic", "field", "function", "where")
        if wanted:
            series = [json.dumps({name: one[name] for name in names}) for one in wanted]
            server.ask("logs/0/series", s=series, px=PIXELS)
        mark(f"{len(wanted)} series")
        server.json("logs/0/overview", bins=PIXELS)
        mark("overview")
        server.json("logs/0/channels")
        mark("channels")
        marks["MB"] = server.anonymous()
    finally:
        server.close()
    return marks


#: Notes when the first plot is drawn, and when any plot was drawn last, in ms after the page began to load.
WATCH = """addEventListener("DOMContentLoaded", () => new MutationObserver((changes) => {
    for (const { target } of changes) if (target.closest("#plots")) {
        window.drawnFirst ??= performance.now();
        window.drawnLast = performance.now();
    }
}).observe(document.body, { subtree: true, attributeFilter: ["data-points"] }));"""
#: Whether all plots in sight are drawn.
QUIET = """() => document.documentElement.dataset.ready && document.documentElement.dataset.pending === "0"
    && !document.querySelector("#plots .busy") && window.drawnLast < performance.now() - 300"""


def in_page(browser: Any, path: Path) -> dict[str, float]:
    """Return what a page takes in a browser that runs already; see ``page``."""
    server = Server(path, Path("off"))
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    try:
        page, requests = context.new_page(), []
        page.add_init_script(WATCH)
        page.on("request", lambda request: requests.append(request.url))
        page.goto(server.address)
        page.wait_for_function(QUIET, timeout=120_000)
        origin, drawn_first, size = page.evaluate(
            """() => [performance.timeOrigin, window.drawnFirst, performance.getEntriesByType("resource")
                .reduce((sum, entry) => sum + entry.transferSize, 0)]"""
        )
        marks = {
            "first plot after the command, s": (origin + drawn_first) / 1e3 - server.began,
            "first plot after loading began, s": drawn_first / 1e3,
            "requests": len(requests),
            "kB": size / 1e3,
            "CPU of the server, s": server.cpu(),
        }
        zooms = []
        for _ in range(4):
            asked = page.evaluate("performance.now()")
            page.keyboard.press("+")
            page.wait_for_function(f"() => window.drawnLast > {asked} && ({QUIET})()", timeout=120_000)
            zooms.append((page.evaluate("window.drawnLast") - asked) / 1e3)
        return {**marks, "first zoom, s": zooms[0], "next zooms, s": statistics.median(zooms[1:])}
    finally:
        context.close()
        server.close()


def page(megabytes: int = 300, rounds: int = 3) -> None:
    """Print medians and spread of what a page takes with a log of some size."""
    from playwright.sync_api import sync_playwright

    path = biglog.make(megabytes)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=os.environ.get("LOGREEL_CHROMIUM") or shutil.which("chromium"),
            args=["--no-sandbox", "--enable-unsafe-swiftshader"],
        )
        results = [in_page(browser, path) for _ in range(rounds)]
        browser.close()
    print(f"page with a log of {path.stat().st_size / 1e6:.0f} MB, index not cached, {rounds} rounds:")
    for name in results[0]:
        values = sorted(one[name] for one in results)
        print(f"  {name:36}{statistics.median(values):8.2f}   ({values[0]:.2f} to {values[-1]:.2f})")


def first(megabytes: int = 300) -> None:
    path = biglog.make(megabytes)
    with tempfile.TemporaryDirectory() as cache:
        first_picture(path, Path(cache))
        rounds = [first_picture(path, Path(cache)) for _ in range(3)]
    print(
        f"first picture of {path.stat().st_size / 1e6:.0f} MB, warm index cache, seconds after the command:"
    )
    for name in rounds[0]:
        print(f"  {name:12} {statistics.median(one[name] for one in rounds if name in one):8.2f}")


def write_large(path: Path, samples: int, fields: int) -> None:
    """Write a ULog with one topic of *samples* messages with *fields* int16 fields: noisy waves."""
    names = [f"v{i:02}" for i in range(fields)]
    head = Builder(start_us=1_000_000).flags()
    head.format("wave:uint64_t timestamp;" + "".join(f"int16_t {name};" for name in names)).subscribe(
        "wave", 0
    )
    record = np.dtype([("size", "<u2"), ("kind", "u1"), ("id", "<u2"), ("time", "<u8"), ("v", "<i2", fields)])
    rng = np.random.default_rng(7)
    with open(path, "wb") as out:
        out.write(head.bytes())
        for lo in range(0, samples, 1 << 19):
            n = min(1 << 19, samples - lo)
            rows = np.empty(n, record)
            rows["size"], rows["kind"], rows["id"] = record.itemsize - 3, ord("D"), 0
            at = lo + np.arange(n)
            rows["time"] = 1_000_000 + at * STEP_US
            wave = np.sin(at / 1e5)[:, None] * 1000 + rng.integers(-99, 99, (n, 1))
            rows["v"] = (wave * (1 + np.arange(fields) / fields)).astype("<i2")
            out.write(rows.tobytes())


def reading(path: Path, cache: Path) -> float:
    """Return the seconds that reading one column in pieces takes."""
    os.environ["LOGREEL_CACHE"] = str(cache)
    keep_freed_memory()
    with logreel.open(path) as log:
        column = FieldColumn(log["wave"], "v00")
        started = time.perf_counter()
        for lo in range(0, column.messages, STEP):
            column.read(slice(lo, min(column.messages, lo + STEP)))
        return time.perf_counter() - started


def building(path: Path, cache: Path) -> float:
    """Return the seconds that building the pyramid of the same column takes."""
    os.environ["LOGREEL_CACHE"] = str(cache)
    with logreel.open(path) as log:
        column = FieldColumn(log["wave"], "v00")
        started = time.perf_counter()
        Pyramid.build(column, "", lambda part: None)
        return time.perf_counter() - started


def drawn(server: Server, field: str, lo: int, hi: int) -> pa.Schema:
    body = server.ask("logs/0/series", topic="wave", field=field, px=PIXELS, from_=lo, to=hi)
    return pa.ipc.open_stream(body).schema


def pan(millions: int = 100, fields: int = 4) -> None:
    samples = millions * 1_000_000
    folder = Path(tempfile.mkdtemp(prefix="logreel-bench-view-"))
    try:
        path = folder / "large.ulg"
        write_large(path, samples, fields)
        cache = folder / "cache"
        server = Server(path, cache)
        print(f"{path.stat().st_size / 1e9:.1f} GB, {millions} million messages, {fields} fields")
        while not server.json("session")["logs"][0]["opened"]:
            time.sleep(0.05)
        print(f"  opened, without a cached index: {time.perf_counter() - server.started:.1f} s")
        length = server.json("session")["logs"][0]["duration"]
        started = time.perf_counter()
        sample = drawn(server, "v00", 0, length).metadata[b"points"].decode()
        print(f"  first answer about a field: {time.perf_counter() - started:.2f} s ({sample})")
        # As the page does, which asks again when it is told that the pyramid is there, or after some seconds.
        while drawn(server, "v00", 0, length).metadata[b"points"] != b"extrema":
            time.sleep(0.5)
        print(f"  exact answer: {time.perf_counter() - started:.2f} s, asked for each 0.5 s")
        read, built = (min(job(path, cache) for _ in range(3)) for job in (reading, building))
        print(
            f"  alone: pyramid {built:.2f} s, reading the column in pieces {read:.2f} s, ratio {built / read:.2f}"
        )
        before = server.anonymous()
        rng = np.random.default_rng(1)
        took = []
        for _ in range(WINDOWS):
            span = int(length * 10 ** -rng.uniform(0, 6))
            lo = int(rng.integers(0, length - span + 1))
            at = time.perf_counter()
            drawn(server, "v00", lo, lo + span)
            took.append((time.perf_counter() - at) * 1e3)
        p50, p95 = np.percentile(took, [50, 95])
        print(f"  {WINDOWS} windows of {PIXELS} px: median {p50:.1f} ms, 95th percentile {p95:.1f} ms")
        for number in range(fields):
            while drawn(server, f"v{number:02}", 0, length).metadata[b"points"] != b"extrema":
                time.sleep(0.02)
        print(
            f"  memory not mapped: {before:.0f} MB with one plot, {server.anonymous():.0f} MB with {fields}"
        )
        server.close()
        server = Server(path, cache)
        while not server.json("session")["logs"][0]["opened"]:
            time.sleep(0.01)
        print(f"  opened again, with the index in the cache: {time.perf_counter() - server.started:.2f} s")
        for number in range(fields):
            drawn(server, f"v{number:02}", 0, length)
        print(
            f"  {fields} plots: {time.perf_counter() - server.started:.2f} s, not mapped {server.anonymous():.0f} MB"
        )
        server.close()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    job, *numbers = sys.argv[1:] or ["page"]
    {"page": page, "first": first, "pan": pan}[job](*map(int, numbers))
