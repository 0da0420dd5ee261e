"""The viewer on large logs: time to the first picture, panning and zooming, building pyramids, and memory.

``page`` opens the page in chromium, without a cached index: seconds to the first plot after the command and after the
browser began to load, and to the redrawn plots after a zoom, requests and bytes at page load, and CPU of the server.
``first`` starts ``logreel view`` on a log, and asks as the page does: session, channels, overview, charts, and series
of the first charts. ``pan`` makes a log of many messages with some int16 fields, draws every field, and then asks for
random windows of the first one. The viewer runs in a separate process; its memory is what is not mapped from files.
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


def page(path: str) -> dict[str, float]:
    """Return what a page takes in a browser that runs already, without a cached index; needs chromium, playwright."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--enable-unsafe-swiftshader"]
        )
        # The first page of a browser waits for much that is not ours.
        browser.new_page().goto("about:blank")
        server = Server(Path(path), Path("off"))
        try:
            return _in_page(browser.new_page(viewport={"width": 1440, "height": 900}), server)
        finally:
            browser.close()
            server.close()


def _in_page(page: Any, server: Server) -> dict[str, float]:
    page.set_default_timeout(60_000)
    requests: list[str] = []
    page.add_init_script(WATCH)
    page.on("request", lambda request: requests.append(request.url))
    page.goto(server.address)
    page.wait_for_function(QUIET)
    origin, drawn_first, size = page.evaluate(
        """() => [performance.timeOrigin, window.drawnFirst, performance.getEntriesByType("resource")
            .reduce((sum, entry) => sum + entry.transferSize, 0)]"""
    )
    marks = {
        "first plot after the command, s": (origin + drawn_first) / 1e3 - server.began,
        "first plot after loading began, s": drawn_first / 1e3,
        "requests": len(requests),
        "page, kB": size / 1e3,
        "CPU of the server, s": server.cpu(),
    }
    zooms = []
    for _ in range(4):
        asked = page.evaluate("performance.now()")
        page.keyboard.press("+")
        page.wait_for_function(f"() => window.drawnLast > {asked} && ({QUIET})()")
        zooms.append((page.evaluate("window.drawnLast") - asked) / 1e3)
    return {**marks, "first zoom, s": zooms[0], "next zooms, s": statistics.median(zooms[1:])}


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


def first(path: str) -> dict[str, float]:
    """Return the seconds to each answer, with a warm cache of indexes, and the memory then."""
    with tempfile.TemporaryDirectory() as cache:
        first_picture(Path(path), Path(cache))
        marks = first_picture(Path(path), Path(cache))
    return {name if name == "MB" else f"{name}, s": value for name, value in marks.items()}


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


def pan(millions: int, fields: int) -> dict[str, float]:
    """Return times of opening, drawing every field, and random windows of the first one, and memory."""
    samples, found = millions * 1_000_000, {}
    folder = Path(tempfile.mkdtemp(prefix="logreel-bench-view-"))
    try:
        path = folder / "large.ulg"
        write_large(path, samples, fields)
        found["size, GB"] = path.stat().st_size / 1e9
        cache = folder / "cache"
        server = Server(path, cache)
        while not server.json("session")["logs"][0]["opened"]:
            time.sleep(0.05)
        found["opened without an index, s"] = time.perf_counter() - server.started
        length = server.json("session")["logs"][0]["duration"]
        started = time.perf_counter()
        drawn(server, "v00", 0, length)
        found["first answer about a field, s"] = time.perf_counter() - started
        # As the page does, which asks again when it is told that the pyramid is there, or after some seconds.
        while drawn(server, "v00", 0, length).metadata[b"points"] not in (b"extrema", b"all"):
            time.sleep(0.5)
        found["exact answer, s"] = time.perf_counter() - started
        read, built = (min(job(path, cache) for _ in range(3)) for job in (reading, building))
        found |= {"pyramid, s": built, "reading the column, s": read, "pyramid / reading": built / read}
        found["memory with one plot, MB"] = server.anonymous()
        rng = np.random.default_rng(1)
        took = []
        for _ in range(WINDOWS):
            span = int(length * 10 ** -rng.uniform(0, 6))
            lo = int(rng.integers(0, length - span + 1))
            at = time.perf_counter()
            drawn(server, "v00", lo, lo + span)
            took.append((time.perf_counter() - at) * 1e3)
        found["window, median, ms"], found["window, 95 %, ms"] = map(float, np.percentile(took, [50, 95]))
        for number in range(fields):
            while drawn(server, f"v{number:02}", 0, length).metadata[b"points"] not in (b"extrema", b"all"):
                time.sleep(0.02)
        found["memory with all plots, MB"] = server.anonymous()
        server.close()
        server = Server(path, cache)
        while not server.json("session")["logs"][0]["opened"]:
            time.sleep(0.01)
        found["opened again, s"] = time.perf_counter() - server.started
        for number in range(fields):
            drawn(server, f"v{number:02}", 0, length)
        found["all plots, s"] = time.perf_counter() - server.started
        server.close()
    finally:
        shutil.rmtree(folder)
    return found


# Beside Rerun.

DRAWN = """() => document.documentElement.dataset.pending === "0"
    && document.querySelectorAll("#plots .frame").length > 0
    && [...document.querySelectorAll("#plots .frame")].every(({ dataset, lastChild }) =>
         "seen" in dataset && (!dataset.seen || lastChild.previousSibling.dataset.ready))
    && !document.querySelector("#plots [data-seen=yes] .busy")"""


def family(pid: int) -> list[int]:
    """Return a process and all processes below it."""
    found, parents = [pid], {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            rest = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(stat.parent.name)] = int(rest[1])
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


def megabytes(pid: int) -> float:
    """Return the proportional set size of a process and those below it, MB."""
    total = 0
    for one in family(pid):
        try:
            lines = Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


def of_logreel(path: Path, cache: Path) -> tuple[float, float, float]:
    """Return seconds to the first plots, and MB of the server and of the browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--enable-unsafe-swiftshader"]
        )
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.set_default_timeout(60_000)
        mine = set(family(os.getpid()))
        started = time.perf_counter()
        server = subprocess.Popen(
            [sys.executable, "-m", "logreel", "view", str(path), "--no-browser"],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "LOGREEL_CACHE": str(cache)},
        )
        try:
            address = (server.stdout or sys.stdin).readline().strip()
            assert urlsplit(address).hostname == "127.0.0.1", address
            page.goto(address)
            page.wait_for_selector("html[data-ready]")
            page.wait_for_function(DRAWN)
            took = time.perf_counter() - started
            own = megabytes(server.pid)
            # The driver of the tests is no part of a browser.
            chromium = [
                p for p in mine if b"chromium" in Path(f"/proc/{p}/cmdline").read_bytes().split(b"\\0")[0]
            ]
            return took, own, megabytes(min(chromium)) if chromium else 0.0
        finally:
            browser.close()
            server.terminate()
            server.wait()


def of_rerun(path: Path, picture: Path) -> tuple[float, float]:
    """Return seconds until the recording is shown and a picture of the window is taken, and MB then."""
    from rerun.experimental import ViewerClient

    rerun, port = Path(sys.executable).with_name("rerun"), "9877"
    started = time.perf_counter()
    process = subprocess.Popen(
        [rerun, "--headless", "--bind", "127.0.0.1", "--port", port, "--window-size", "1440x900", path],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        client: ViewerClient | None = None
        shown = False
        while not shown or client is None or not picture.exists():
            if process.poll() is not None or time.perf_counter() - started > 60:
                raise RuntimeError(f"rerun shows no recording within a minute: {process.returncode}")
            time.sleep(0.02)
            try:
                client = client or ViewerClient(f"rerun+http://127.0.0.1:{port}/proxy")
                # The recording is active before its first data are there: an end of its timelines says that they are.
                if not shown and any(
                    line.end for one in client.get_state().recordings for line in one.timelines
                ):
                    shown = True
                    client.save_screenshot(str(picture))
            except ConnectionError:
                continue
        return time.perf_counter() - started, megabytes(process.pid)
    finally:
        picture.unlink(missing_ok=True)
        process.terminate()
        process.wait()


def peers(path: str) -> dict[str, float]:
    """Return the time from the command to a picture, and memory, of this viewer and of Rerun's, for the same log.

    Needs chromium, playwright and rerun-sdk; without a graphics card both draw in software. Rerun reads no ULog, so it
    gets the ``.rrd`` that logreel writes of the log; writing it is timed separately. Rerun runs without a window
    (``--headless``): its time ends with a picture taken after it shows the recording, whose views may still be filling;
    that of logreel ends when all plots of the first screen have their curves. Memory is the sum of the proportional set
    sizes (PSS) of all processes, mapped files included, at that time.
    """
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        rrd = Path(folder) / "log.rrd"
        logreel.convert(path, rrd)
        found = {"writing the .rrd, s": time.perf_counter() - started, ".rrd, MB": rrd.stat().st_size / 1e6}
        cache = Path(folder) / "cache"
        of_logreel(Path(path), cache)
        ours, theirs = [], []
        for _ in range(3):
            ours.append(of_logreel(Path(path), cache))
            theirs.append(of_rerun(rrd, Path(folder) / "rerun.png"))
    seconds, own, browser = (statistics.median(column) for column in zip(*ours, strict=True))
    found |= {"logreel view: first plots, s": seconds, "logreel view, MB": own, "its browser, MB": browser}
    seconds, most = (statistics.median(column) for column in zip(*theirs, strict=True))
    return {**found, "rerun: first picture, s": seconds, "rerun, MB": most}
