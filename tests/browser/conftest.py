"""Fixtures: a real browser, and pages of the viewer in it; without chromium or playwright the tests are skipped."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from browser.samples import SAMPLES, sample
from logreel.outputs.view import Viewer

playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: pip install playwright"
)

#: Where screenshots are kept if the variable LOGREEL_SCREENSHOTS is set: git ignores this folder.
SHOTS = Path(__file__).parents[2] / "build" / "screenshots"
SIZE = (1440, 900)
#: Milliseconds after which a state that does not come fails a test; a busy machine is slow.
PATIENCE = 60_000
#: Errors of the graphics of a browser without a graphics card, which no page can avoid.
_NOT_OURS = re.compile(r"GPU stall|GL Driver Message|WebGL-0x")
#: The browser: one without windows takes a fifth less CPU than one that does not show them.
CHROMIUM = os.environ.get("LOGREEL_CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser"))), None
)


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
        pytest.skip("chromium is not installed: apt-get install chromium-headless-shell")
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--enable-unsafe-swiftshader", "--disable-gpu-vsync"],
        )
        yield found
        found.close()


def shoot(page: Any, name: str, **options: Any) -> None:
    """Save what is seen to ``build/screenshots/NAME.png`` for people to look at, if they ask for it."""
    if os.environ.get("LOGREEL_SCREENSHOTS"):
        SHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SHOTS / f"{name}.png", **options)


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
        self._listeners = {
            "console": self._console,
            "pageerror": lambda error: self.errors.append(error.stack or str(error)),
            "request": lambda request: self.requests.append(request.url),
        }
        for kind, listener in self._listeners.items():
            page.on(kind, listener)
        page.set_default_timeout(PATIENCE)

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning") and not _NOT_OURS.search(message.text):
            self.errors.append(f"{message.text} {message.location.get('url', '')}")

    def open(self, state: str = "") -> ViewPage:
        """Load the page, with a *state* in its address, and wait until it is laid out."""
        self.page.goto(f"{self.viewer.url}#token={quote(self.viewer.token, safe='')}&{state}")
        self.page.wait_for_selector("html[data-ready]")
        self.settle()
        return self

    def leave(self) -> None:
        """End what was seen and kept in the tab, which the next page gets."""
        self.page.unroute_all()
        self.page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
        for kind, listener in self._listeners.items():
            self.page.remove_listener(kind, listener)

    def settle(self) -> None:
        """Wait until all plots have drawn what they asked for, and no request is under way."""
        self.page.wait_for_function(
            """() => document.documentElement.dataset.pending === "0"
                && [...document.querySelectorAll("#plots .frame")].every(({ dataset, lastChild }) =>
                     "seen" in dataset && (!dataset.seen || lastChild.previousSibling.dataset.ready))
                && !document.querySelector("#plots [data-seen=yes] .busy")
                && (async () => {
                     for (let i = 0; i < 4; i++) await new Promise(requestAnimationFrame);
                     return document.documentElement.dataset.pending === "0";
                   })()"""
        )

    def shot(self, name: str) -> None:
        """Save what is seen, as `shoot` does."""
        shoot(self.page, name)

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
        """The window in ns, as the timeline draws it; infinite for the whole log."""
        found = self.page.eval_on_selector("#timeline canvas", "(one) => ({...one.dataset})")
        if found["whole"]:
            return float("-inf"), float("inf")
        return float(found["from"]), float(found["to"])

    @property
    def cursor(self) -> float | None:
        """The cursor in seconds, as the timeline says it to screen readers."""
        return float(self.page.get_attribute("#timeline canvas", "aria-valuenow"))


class Tabs:
    """Tabs of one browser, used again: each new one would start another process of the browser.

    Viewers differ by their ports, and so have a storage each.
    """

    def __init__(self, context: Any) -> None:
        self.context = context
        self._free: list[Any] = []

    @contextlib.contextmanager
    def tab(self, size: tuple[int, int], dark: bool) -> Iterator[Any]:
        """Lend an empty tab."""
        page = self._free.pop() if self._free else self.context.new_page()
        page.set_viewport_size({"width": size[0], "height": size[1]})
        page.emulate_media(color_scheme="dark" if dark else "light")
        yield page
        page.goto("about:blank")
        self._free.append(page)


@pytest.fixture(scope="session")
def context(browser: Any) -> Iterator[Any]:
    """What all pages of viewers share."""
    shared = browser.new_context(accept_downloads=True)
    yield shared
    shared.close()


@pytest.fixture(scope="session")
def tabs(context: Any) -> Tabs:
    return Tabs(context)


@pytest.fixture(scope="session")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Viewer]]:
    """Return the viewer of a sample by its name, the same one for all tests: they change neither file nor folder."""
    with contextlib.ExitStack() as stack:

        @cache
        def viewer(name: str) -> Viewer:
            return stack.enter_context(Viewer((sample(name, tmp_path_factory.mktemp(name)),)))

        yield viewer


@contextlib.contextmanager
def opening(tabs: Tabs, sampled: Callable[[str], Viewer]) -> Iterator[Callable[..., ViewPage]]:
    """Open logs in pages; at the end no error may have been in them, and no foreign request."""
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
            if files[0] in SAMPLES:
                viewer = sampled(*files, **options)
            else:
                viewer = stack.enter_context(Viewer(files, **options))
            page = ViewPage(stack.enter_context(tabs.tab(size, dark)), viewer)
            stack.callback(page.leave)
            if keep:
                pages.append(page)
            return page.open(state)

        yield open_view
        errors = [error for page in pages for error in page.errors]
        foreign = [address for page in pages for address in page.foreign]
    assert not errors
    assert not foreign


@pytest.fixture
def view(tabs: Tabs, sampled: Callable[[str], Viewer]) -> Iterator[Callable[..., ViewPage]]:
    """Open logs in a page: ``view(*files, size=(1440, 900), dark=False, state="", **options of Viewer)``.

    The name of a sample in place of files opens that one. At the end of the test no error may be in the console, and no
    request may have left the machine.
    """
    with opening(tabs, sampled) as open_view:
        yield open_view
    tabs.context.clear_permissions()


@pytest.fixture(scope="module")
def lasting_view(tabs: Tabs, sampled: Callable[[str], Viewer]) -> Iterator[Callable[..., ViewPage]]:
    """Open logs as ``view`` does, in pages for all tests of a file: to load a page costs more than most tests of it."""
    with opening(tabs, sampled) as open_view:
        yield open_view
