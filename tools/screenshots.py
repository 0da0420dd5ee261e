"""Take the pictures of docs/images: ``python tools/screenshots.py`` (needs chromium and playwright)."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import logreel

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.samples.ulog.builder import flight

IMAGES = Path(__file__).parents[1] / "docs" / "images"
#: Greatest size of a picture in bytes, and of the window in pixels.
MOST, SIZE = 300_000, {"width": 1440, "height": 900}
#: Milliseconds that a page has to draw.
PATIENCE = 120_000


def report(browser: Any, log: Path) -> Path:
    """Write the picture of the report of a log; return its path."""
    page_file = log.with_suffix(".html")
    logreel.report(log).save(page_file)
    page = browser.new_page(viewport={**SIZE, "height": 1600}, color_scheme="light")
    page.set_default_timeout(PATIENCE)
    page.goto(page_file.as_uri())
    page.wait_for_selector("html[data-ready]")
    page.evaluate("drawWaiting(waiting.slice())")
    return shot(page, "report.png")


def viewer(browser: Any, log: Path) -> Path:
    """Write the picture of the viewer with a log; return its path."""
    from logreel.outputs.view import Viewer

    with Viewer([log]) as view:
        page = browser.new_page(viewport=SIZE, color_scheme="dark")
        page.set_default_timeout(PATIENCE)
        page.goto(f"{view.url}#token={quote(view.token, safe='')}")
        page.wait_for_selector("html[data-ready]")
        page.wait_for_function(
            """() => document.documentElement.dataset.pending === "0"
                && [...document.querySelectorAll("#plots .frame")].every(({ dataset, lastChild }) =>
                     "seen" in dataset && (!dataset.seen || lastChild.previousSibling.dataset.ready))
                && !document.querySelector("#plots [data-seen=yes] .busy")"""
        )
        page.wait_for_timeout(1500)
        return shot(page, "viewer.png")


def shot(page: Any, name: str) -> Path:
    """Save what a page shows; return the path. Raises SystemExit for a picture that is too big."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    path = IMAGES / name
    page.screenshot(path=path)
    page.close()
    if path.stat().st_size >= MOST:
        raise SystemExit(f"{path} has {path.stat().st_size} bytes: more than {MOST}")
    return path


def main() -> int:
    """Take all pictures."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise SystemExit("chromium is not installed: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        log = Path(folder) / "flight.ulg"
        log.write_bytes(flight())
        browser = driver.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--enable-unsafe-swiftshader"]
        )
        for take in (report, viewer):
            path = take(browser, log)
            sys.stdout.write(f"wrote {path} ({path.stat().st_size} bytes)\n")
        browser.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
