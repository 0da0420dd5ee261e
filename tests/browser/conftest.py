"""Fixtures: a real browser, and pages of the viewer in it; without chromium or playwright the tests are skipped."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from logreel.outputs.view import Viewer

playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: pip install playwright"
)

#: Where screenshots are kept: git ignores this folder.
SHOTS = Path(__file__).parents[2] / "build" / "screenshots"
SIZE = (1440, 900)
#: Milliseconds after which a state that does not come fails a test; a busy machine is slow.
PATIENCE = 60_000
#: Errors of the graphics of a browser without a graphics card, which no page can avoid.
_NOT_OURS = re.compile(r"GPU stall|GL Driver Message|WebGL-0x")
CHROMIUM = os.environ.get("LOGREEL_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests of the browser in one process: one browser at a time is enough for a small machine."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("browser"))


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Debian's chromium without a window, driven by playwright."""
    if CHROMIUM is None:
        pytest.skip("chromium is not installed: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--enable-unsafe-swiftshader", "--disable-gpu-vsync"],
        )
        yield found
        found.close()


class ViewPage:
    """A page of the viewer, opened and laid out.

    page      the page of playwright
    errors    messages of the console that are errors, and exceptions
    requests  addresses that the page asked for
    """

    def __init__(self, page: Any, viewer: Viewer) -> None:
        self.page, self.viewer = page, viewer
        self.errors: list[str] = []
        self.requests: list[str] = []
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.errors.append(error.stack or str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.set_default_timeout(PATIENCE)

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning") and not _NOT_OURS.search(message.text):
            self.errors.append(message.text)

    def open(self, state: str = "") -> ViewPage:
        """Load the page, with a *state* in its address, and wait until it is laid out."""
        self.page.goto(f"{self.viewer.url}#token={quote(self.viewer.token, safe='')}&{state}")
        self.page.wait_for_selector("html[data-ready]")
        self.settle()
        return self

    def settle(self) -> None:
        """Wait until all plots have drawn what they asked for, and no request is under way."""
        self.page.wait_for_function(
            """() => document.documentElement.dataset.pending === "0"
                && [...document.querySelectorAll("#plots .frame")].every(({ dataset, lastChild }) =>
                     "seen" in dataset && (!dataset.seen || lastChild.previousSibling.dataset.ready))
                && !document.querySelector("#plots [data-seen=yes] .busy")
                && new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() =>
                     done(document.documentElement.dataset.pending === "0"))))"""
        )

    def shot(self, name: str) -> Path:
        """Save what is seen to ``build/screenshots/NAME.png``; return the path."""
        SHOTS.mkdir(parents=True, exist_ok=True)
        path = SHOTS / f"{name}.png"
        self.page.screenshot(path=path)
        return path

    def press(self, *keys: str) -> None:
        """Press keys one after the other, and wait for what they change."""
        for key in keys:
            self.page.keyboard.press(key)
        self.settle()

    def find(self, text: str) -> None:
        """Plot the best match of a search in the palette."""
        self.page.keyboard.press("Control+k")
        self.page.wait_for_selector("dialog.palette[open] .item[role=option]")
        self.settle()
        self.page.keyboard.type(text)
        self.page.wait_for_selector(f"#found[data-for={text!r}]")
        self.page.keyboard.press("Enter")
        self.settle()

    @property
    def foreign(self) -> list[str]:
        """Requests that left this viewer."""
        own = (self.viewer.url, f"blob:{self.viewer.url}", "data:")
        return [one for one in self.requests if not one.startswith(own)]

    @property
    def window(self) -> tuple[float, float]:
        """The window in ns, as the timeline says it: of the address after it was written."""
        self.page.wait_for_timeout(300)
        found = re.search(r"window=%5B(-?\d+)%2C(-?\d+)%5D", self.page.url)
        return (float(found[1]), float(found[2])) if found else (float("-inf"), float("inf"))

    @property
    def cursor(self) -> float | None:
        """The cursor in seconds, as the timeline says it to screen readers."""
        return float(self.page.get_attribute("#timeline canvas", "aria-valuenow"))


@pytest.fixture
def view(browser: Any) -> Iterator[Callable[..., ViewPage]]:
    """Open logs in a page: ``view(*files, size=(1440, 900), dark=False, state="", **options of Viewer)``.

    At the end of the test no error may be in the console, and no request may have left the machine.
    """
    pages: list[ViewPage] = []
    with contextlib.ExitStack() as stack:

        def open_view(
            *files: Any,
            size: tuple[int, int] = SIZE,
            dark: bool = False,
            state: str = "",
            keep: bool = True,
            **options: Any,
        ) -> ViewPage:
            viewer = stack.enter_context(Viewer(files, **options))
            context = browser.new_context(
                viewport={"width": size[0], "height": size[1]},
                color_scheme="dark" if dark else "light",
                accept_downloads=True,
            )
            stack.callback(context.close)
            page = ViewPage(context.new_page(), viewer)
            if keep:
                pages.append(page)
            return page.open(state)

        yield open_view
        errors = [error for page in pages for error in page.errors]
        foreign = [address for page in pages for address in page.foreign]
    assert not errors
    assert not foreign
