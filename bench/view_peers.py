"""The viewer of logreel beside Rerun's: time from the command to a picture, and memory, for the same log.

    python bench/view_peers.py [megabytes]

Needs chromium, playwright and rerun-sdk; without a graphics card both draw in software. Rerun reads no ULog, so it gets
the ``.rrd`` that logreel writes of the log; writing it is timed separately. Rerun runs without a window
(``--headless``): its time ends with a picture taken after it shows the recording, whose views may still be filling;
that of logreel ends when all plots of the first screen have their curves. Memory is the sum of the proportional set
sizes (PSS) of all processes, mapped files included, at that time.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import biglog
import logreel

ROUNDS = 3
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
        page.set_default_timeout(600_000)
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
        while client is None:
            try:
                client = ViewerClient(f"rerun+http://127.0.0.1:{port}/proxy")
            except ConnectionError:
                time.sleep(0.05)
        # The recording is active before its first data are there: an end of its timelines says that they are.
        while not any(line.end for one in client.get_state().recordings for line in one.timelines):
            time.sleep(0.05)
        client.save_screenshot(str(picture))
        while not picture.exists():
            time.sleep(0.02)
        return time.perf_counter() - started, megabytes(process.pid)
    finally:
        picture.unlink(missing_ok=True)
        process.terminate()
        process.wait()


def main(size: int = 100) -> None:
    """Print the medians of both."""
    path = biglog.make(size)
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        rrd = Path(folder) / "log.rrd"
        logreel.convert(path, rrd)
        converted = time.perf_counter() - started
        cache = Path(folder) / "cache"
        of_logreel(path, cache)
        ours = [of_logreel(path, cache) for _ in range(ROUNDS)]
        theirs = [of_rerun(rrd, Path(folder) / "rerun.png") for _ in range(ROUNDS)]
        seconds, own, browser = (statistics.median(column) for column in zip(*ours, strict=True))
        print(f"{path.stat().st_size / 1e6:.0f} MB of ULog, {rrd.stat().st_size / 1e6:.0f} MB as .rrd")
        print(f"  logreel view: {seconds:.1f} s to the first plots, {own:.0f} MB + browser {browser:.0f} MB")
        seconds, most = (statistics.median(column) for column in zip(*theirs, strict=True))
        print(f"  rerun: {seconds:.1f} s to its first picture of the recording, {most:.0f} MB")
        print(f"  writing the .rrd: {converted:.1f} s")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
