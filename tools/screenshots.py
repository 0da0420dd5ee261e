"""Take the pictures of docs/images: ``python tools/screenshots.py [NAME…]`` (needs chromium, playwright and Pillow).

``report.png`` and ``viewer.png`` are for the README; ``screens/NAME-THEME-WIDTH.webp`` are first screens of the viewer
with one log of each format and kind of vehicle. All logs are made here. NAME chooses some of the pictures.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import logreel

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.builders.crash import crash
from support.builders.vehicles import plane, rover
from support.samples.bddf.builder import walk as bddf_walk
from support.samples.carla.drive import drive as carla_drive
from support.samples.koblenz.drive import drive as koblenz_drive
from support.samples.mcap.walk import walk as mcap_walk
from support.samples.rosbag.builder import drive as bag_drive
from support.samples.ulog.builder import flight

IMAGES = Path(__file__).parents[1] / "docs" / "images"
SCREENS = IMAGES / "screens"
#: Greatest size of a picture, and of all first screens together, in bytes; window of the pictures of the README.
MOST, MOST_SCREENS, SIZE = 300_000, 3_000_000, {"width": 1440, "height": 900}
#: Milliseconds that a page has to draw, and for which it then settles.
PATIENCE, SETTLING = 120_000, 1500
#: Quality of WebP, at which small text is sharp.
QUALITY = 62
#: Functions that make a log, by name of the picture, and the suffixes of their files.
LOGS = {
    "ulog-copter": (".ulg", flight),
    "ulog-crash": (".ulg", crash),
    "ulog-plane": (".ulg", plane),
    "ulog-rover": (".ulg", rover),
    "ulog-cut": (".ulg", lambda: flight(20.0)[:-20_003]),
    "bag-robot": (".bag", bag_drive),
    "carla-car": (".log", lambda: carla_drive().bytes()),
    "koblenz-car": (".log", lambda: koblenz_drive(4.0, packets=20)),
    "bddf-walker": (".bddf", bddf_walk),
    "mcap-walker": (".mcap", mcap_walk),
}
THEMES = ("light", "dark")
#: Width and height of windows: a laptop, a screen, a telephone.
WINDOWS = ((1280, 800), (1920, 1080), (414, 896))
#: Whether everything that the page asked for is drawn.
DRAWN = """() => document.documentElement.dataset.pending === "0"
    && [...document.querySelectorAll("#plots .frame")].every(({ dataset, lastChild }) =>
         "seen" in dataset && (!dataset.seen || lastChild.previousSibling.dataset.ready))
    && !document.querySelector("#plots [data-seen=yes] .busy")"""


def report(browser: Any, log: Path) -> bytes:
    """Return the picture of the report of a log."""
    page_file = log.with_suffix(".html")
    logreel.report(log).save(page_file)
    page = browser.new_page(viewport={**SIZE, "height": 1600}, color_scheme="light")
    page.set_default_timeout(PATIENCE)
    page.goto(page_file.as_uri())
    page.wait_for_selector("html[data-ready]")
    page.evaluate("drawWaiting(waiting.slice())")
    return shot(page)


def viewer(browser: Any, log: Path) -> bytes:
    """Return the picture of the viewer with a log."""
    from logreel.outputs.view import Viewer

    with Viewer([log]) as view:
        return shot(opened(browser, view, SIZE, "dark"))


def screens(browser: Any, log: Path) -> Iterator[tuple[str, int, bytes]]:
    """Yield theme, width and picture of the first screens of a log."""
    from logreel.outputs.view import Viewer

    with Viewer([log]) as view:
        for theme in THEMES:
            for width, height in WINDOWS:
                yield theme, width, shot(opened(browser, view, {"width": width, "height": height}, theme))


def opened(browser: Any, view: Any, size: dict[str, int], theme: str) -> Any:
    """Return a page with a viewer that has drawn its first screen."""
    page = browser.new_page(viewport=size, color_scheme=theme)
    page.set_default_timeout(PATIENCE)
    page.goto(f"{view.url}#token={quote(view.token, safe='')}")
    page.wait_for_selector("html[data-ready]")
    page.wait_for_function(DRAWN)
    page.wait_for_timeout(SETTLING)
    page.wait_for_function(DRAWN)
    return page


def shot(page: Any) -> bytes:
    """Return what a page shows as PNG, and close it."""
    picture: bytes = page.screenshot()
    page.close()
    return picture


def webp(picture: bytes) -> bytes:
    """Return a PNG as a small WebP."""
    from PIL import Image

    out = io.BytesIO()
    Image.open(io.BytesIO(picture)).convert("RGB").save(out, "WEBP", quality=QUALITY, method=6)
    return out.getvalue()


def keep(path: Path, picture: bytes) -> None:
    """Write a picture. Raises SystemExit for one that is too big."""
    if len(picture) >= MOST:
        raise SystemExit(f"{path} has {len(picture)} bytes: more than {MOST}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(picture)
    sys.stdout.write(f"wrote {path} ({len(picture)} bytes)\n")


def main(names: list[str]) -> int:
    """Take the pictures with these names; all if there are none."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise SystemExit("chromium is not installed: apt-get install chromium")
    wanted = names or ["report", "viewer", *LOGS]
    unknown = set(wanted) - {"report", "viewer", *LOGS}
    if unknown:
        raise SystemExit(f"no picture is called {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--enable-unsafe-swiftshader"]
        )
        log = Path(folder) / "flight.ulg"
        log.write_bytes(flight())
        for name, take in (("report", report), ("viewer", viewer)):
            if name in wanted:
                keep(IMAGES / f"{name}.png", take(browser, log))
        for name, (suffix, make) in LOGS.items():
            if name in wanted:
                made = Path(folder) / f"{name.partition('-')[2]}{suffix}"
                made.write_bytes(make())
                for theme, width, picture in screens(browser, made):
                    keep(SCREENS / f"{name}-{theme}-{width}.webp", webp(picture))
        browser.close()
    total = sum(path.stat().st_size for path in SCREENS.glob("*.webp"))
    if total > MOST_SCREENS:
        raise SystemExit(f"{SCREENS} has {total} bytes: more than {MOST_SCREENS}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
