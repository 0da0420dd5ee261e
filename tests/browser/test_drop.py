"""The page that reads logs, in a real browser: what it shows and writes is what logreel does, and nothing is sent.

LOGREEL_DROP names a folder that ``make drop`` has built; else LOGREEL_PYODIDE names a Pyodide distribution, from which
it is built here (two minutes). The page itself is always that of ``site/drop``.
"""

from __future__ import annotations

import contextlib
import functools
import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import logreel
from browser.conftest import PATIENCE, shoot
from support.builders.contents import SAMPLES

ROOT = Path(__file__).resolve().parents[2]
POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; "
    "style-src 'self'; img-src 'self'"
)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the page of the checkout, and the runtime and wheels that were built."""
    built = Path(os.environ.get("LOGREEL_DROP") or ROOT / "build/drop").absolute()
    if not (built / "contents.json").is_file():
        if not (pyodide := os.environ.get("LOGREEL_PYODIDE")):
            pytest.skip("the page is not built: make drop PYODIDE=FOLDER, or LOGREEL_PYODIDE=FOLDER")
        built = tmp_path_factory.mktemp("built") / "drop"
        command = [sys.executable, str(ROOT / "tools/build_drop.py"), pyodide, "--out", str(built)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if "to compile for Pyodide this needs" in done.stderr:
            pytest.skip(done.stderr.strip())
        assert done.returncode == 0, done.stderr
    page = tmp_path_factory.mktemp("page")
    shutil.copytree(
        ROOT / "site/drop", page, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
    )
    for name in ("runtime", "wheels", "contents.json"):
        (page / name).symlink_to(built / name)
    return page


@pytest.fixture(scope="session")
def address(folder: Path) -> Iterator[str]:
    """Return the address of the page that was built."""
    with served(folder) as url:
        yield url


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder with the policy of the page for each file, so that it holds for the worker, too."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        extensions_map = http.server.SimpleHTTPRequestHandler.extensions_map | {
            ".mjs": "text/javascript",
            ".wasm": "application/wasm",
        }

        def end_headers(self) -> None:
            self.send_header("Content-Security-Policy", POLICY)
            super().end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing."""

    handler = functools.partial(Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


class DropPage:
    """The page in a browser, with all that it asked for and complained of."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        self.context = browser.new_context(viewport={"width": 1100, "height": 800}, **options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(2 * PATIENCE)
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.context.on("request", lambda request: self.requests.append(request.url))
        self.page.on(
            "console", lambda m: self.errors.append(m.text) if m.type in ("error", "warning") else None
        )
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.goto(address)
        self.page.wait_for_selector("html[data-ready]")

    def read(self, name: str, data: bytes) -> None:
        """Choose a file, and wait until all about it is shown."""
        self.page.set_input_files("#file", {"name": name, "mimeType": "application/x-log", "buffer": data})
        self.wait()

    def wait(self) -> None:
        self.page.wait_for_selector("html[data-done]", state="attached")

    def save(self, verb: str, target: Path) -> Path:
        """Press a button, and save the file that the page offers."""
        self.page.click(f"#{verb}")
        self.page.wait_for_selector(f"html[data-{verb}]", state="attached")
        with self.page.expect_download() as coming:
            self.page.click(".result:last-child .save")
        path = target / coming.value.suggested_filename
        coming.value.save_as(path)
        return path

    def text(self, where: str) -> str:
        return str(self.page.locator(where).evaluate("element => element.textContent"))


@pytest.fixture(scope="session")
def shown(browser: Any, address: str) -> Iterator[DropPage]:
    """Return one page for most tests: it starts Python once."""
    page = DropPage(browser, address)
    yield page
    page.context.close()
    assert page.errors == []
    assert [url for url in page.requests if not url.startswith((address, "blob:"))] == []


@pytest.mark.parametrize(
    ("suffix", "name"), [(suffix, {".rec": ".log"}.get(suffix, suffix)) for suffix in SAMPLES]
)
def test_a_log_is_shown_recovered_and_reported(
    shown: DropPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, name: str
) -> None:
    if "without lzma" in shown.text("#lacking"):
        # Not every distribution has it: then events of PX4 are left out here, too.
        monkeypatch.setitem(sys.modules, "lzma", None)
    data = SAMPLES[suffix]()
    before = len(shown.requests)
    shown.read(f"drive{name}", data)
    with logreel.open(data) as log:
        assert shown.text("#error") == ""
        assert f"{log.message_count:,} message" in shown.text("#facts")
        facts = [fact for section in logreel.summary(log) for fact in section]
        lines = shown.page.locator("#summary dd").all_text_contents()
        assert lines == [fact.text for fact in facts]
        findings = [found.text for found in logreel.health(log).detections]
        assert len(findings) == shown.page.locator("#health article").count()
        assert all(text in shown.text("#health") for text in findings)
        assert shown.page.locator("#channels tbody tr").count() == len(log.channels)
        path = shown.save("recover", tmp_path)
        assert path.name == f"drive_recovered{name}"
        logreel.recover(log, tmp_path / f"right{suffix}")
        assert same_messages(path, tmp_path / f"right{suffix}")
        page = shown.save("report", tmp_path).read_text("utf-8")
        # The names of files and the time of writing differ.
        assert abs(len(page) - len(logreel.report(log).html)) < 2000
        assert "<title>" in page
    assert [url for url in shown.requests[before:] if not url.startswith("blob:")] == []


def same_messages(first: Path, second: Path) -> bool:
    """Return whether two logs have the same messages, byte by byte."""

    def messages(path: Path) -> list[tuple[str, int, bytes]]:
        with logreel.open(path) as log:
            return [(message.channel.topic, message.time, bytes(message.data)) for message in log.messages()]

    return messages(first) == messages(second)


def test_damage_is_told_and_what_is_left_is_saved(shown: DropPage, tmp_path: Path) -> None:
    data = bytearray(SAMPLES[".ulg"]())
    data[len(data) // 2 : len(data) // 2 + 3000] = bytes(3000)
    shown.read("crashed.ulg", bytes(data))
    with logreel.open(bytes(data)) as log:
        assert log.problems
        assert shown.text("#tab-problems") == f"Damage ({len(log.problems)})"
        assert log.problems[0].text in shown.text("#problems")
        recovered = shown.save("recover", tmp_path)
        assert "could not be read" in shown.text("#results")
        with logreel.open(recovered) as sound:
            assert (sound.problems, sound.message_count) == ((), log.message_count)


@pytest.mark.parametrize(
    ("name", "data", "sentence"),
    [
        ("photo.ulg", b"\x89PNG" * 1000, "format"),
        ("empty.bag", b"", "empty"),
        ("<img src=x onerror=alert(1)>.log", b"?" * 100, "<img src=x onerror=alert(1)>.log"),
    ],
)
def test_what_is_no_log_is_refused_in_a_sentence(
    shown: DropPage, name: str, data: bytes, sentence: str
) -> None:
    shown.read(name, data)
    assert sentence in shown.text("#error")
    assert not shown.page.is_visible("#log")
    assert shown.page.locator("img").count() == 0
    # The page goes on.
    shown.read("good.ulg", SAMPLES[".ulg"]())
    assert (shown.text("#error"), shown.text("#name")) == ("", "good.ulg")


def test_names_of_a_log_stay_text(shown: DropPage, tmp_path: Path) -> None:
    topic = "/<b>bold</b>"
    with logreel.create(tmp_path / "x.bag") as writer:
        writer.write(writer.add_channel(topic, logreel.Schema("a/B", "ros1msg", "int32 n")), 10**18, {"n": 1})
    shown.read("<b>.bag", (tmp_path / "x.bag").read_bytes())
    assert shown.text("#name") == "<b>.bag"
    assert topic in shown.text("#channels")
    assert shown.page.locator("#log b").count() == 0


def test_a_file_is_dropped_anywhere(shown: DropPage) -> None:
    drop = """([name, bytes]) => {
        const transfer = new DataTransfer();
        for (const file of bytes) transfer.items.add(new File([new Uint8Array(file)], name));
        for (const type of ["dragenter", "dragover", "drop"])
            document.querySelector("footer").dispatchEvent(
                new DragEvent(type, { dataTransfer: transfer, bubbles: true, cancelable: true }));
    }"""
    data = list(SAMPLES[".bag"]())
    shown.page.evaluate("delete document.documentElement.dataset.done")
    shown.page.evaluate(drop, ["dropped.bag", [data]])
    shown.wait()
    assert (shown.text("#name"), shown.text("#error")) == ("dropped.bag", "")
    shown.page.evaluate(drop, ["several.bag", [data, data]])
    shown.wait()
    assert "one log at a time" in shown.text("#error")
    shown.page.evaluate(drop, ["", []])
    assert shown.text("#error") == "That is no file."


def test_the_keyboard_is_enough(shown: DropPage) -> None:
    shown.read("a.ulg", SAMPLES[".ulg"]())
    page = shown.page
    page.focus("#drop")
    with page.expect_file_chooser():
        page.keyboard.press("Enter")
    page.focus("#tab-summary")
    seen = []
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft", "Home", "End"):
        page.keyboard.press(key)
        (panel,) = page.locator("[role=tabpanel]:not([hidden])").all()
        seen.append(panel.get_attribute("id"))
        assert page.evaluate("document.activeElement.getAttribute('aria-selected')") == "true"
    assert seen == ["health", "channels", "problems", "summary", "problems", "summary", "problems"]


def test_a_verb_is_cancelled_and_the_next_log_is_read(browser: Any, address: str) -> None:
    one = DropPage(browser, address)
    big = logreel_of(64)
    one.page.set_input_files("#file", {"name": "big.ulg", "mimeType": "x/y", "buffer": big})
    one.page.click("#cancel")
    assert not one.page.is_visible("#log")
    one.read("next.bag", SAMPLES[".bag"]())
    assert one.text("#name") == "next.bag"
    # Another file ends what is under way, too.
    one.page.set_input_files("#file", {"name": "big.ulg", "mimeType": "x/y", "buffer": big})
    one.read("last.bag", SAMPLES[".bag"]())
    one.page.wait_for_function("document.querySelector('#name').textContent === 'last.bag'")
    assert one.errors == []
    one.context.close()


def logreel_of(copies: int) -> bytes:
    """Return a ULog whose messages are repeated, so that reading it takes a while."""
    data = SAMPLES[".ulg"]()
    return data + data[len(data) // 2 :] * copies


def test_the_worker_cannot_fetch_after_it_has_started(shown: DropPage) -> None:
    (worker,) = shown.page.workers
    names = ["fetch", "XMLHttpRequest", "WebSocket", "EventSource", "importScripts", "Worker"]
    assert worker.evaluate("names => names.filter(name => self[name] !== undefined)", names) == []


@pytest.mark.parametrize(("scheme", "width"), [("light", 1100), ("dark", 1100), ("dark", 400)])
def test_it_is_readable_in_both_schemes_and_on_a_narrow_screen(
    browser: Any, address: str, scheme: str, width: int
) -> None:
    one = DropPage(browser, address, color_scheme=scheme)
    one.page.set_viewport_size({"width": width, "height": 900})
    one.read("drive.bag", SAMPLES[".bag"]())
    shoot(one.page, f"drop-{scheme}-{width}")
    # Nothing is wider than the screen but tables, which scroll.
    assert one.page.evaluate("document.documentElement.scrollWidth") <= width
    ground, text = one.page.evaluate(
        "['backgroundColor', 'color'].map(name => getComputedStyle(document.body)[name].match(/\\d+/g).map(Number))"
    )
    assert (sum(ground) < sum(text)) == (scheme == "dark")
    one.context.close()


def test_a_large_log_gets_the_memory_of_a_worker_of_its_own(browser: Any, address: str) -> None:
    one = DropPage(browser, address)
    started: list[Any] = []
    one.page.on("worker", lambda worker: started.append(worker))
    one.read("small.ulg", SAMPLES[".ulg"]())
    assert started == []
    one.page.evaluate("delete document.documentElement.dataset.done")
    one.page.evaluate(
        """bytes => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([new Uint8Array(bytes), new Uint8Array(257e6)], "large.ulg"));
            dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, cancelable: true }));
        }""",
        list(SAMPLES[".ulg"]()),
    )
    one.wait()
    assert (len(started), one.text("#name")) == (1, "large.ulg")
    one.context.close()


@pytest.mark.parametrize("broken", ["contents.json", "logs.py"])
def test_a_page_that_cannot_start_says_why(browser: Any, broken: str, request: pytest.FixtureRequest) -> None:
    # A checkout has no runtime: the page itself tells that it was not built.
    folder = ROOT / "site/drop" if broken == "contents.json" else request.getfixturevalue("folder")
    with served(folder) as url:
        page = browser.new_page()
        page.set_default_timeout(PATIENCE)
        if broken == "logs.py":
            page.route("**/logs.py", lambda route: route.fulfill(body="raise ValueError('something odd')"))
        page.goto(url)
        page.wait_for_selector("#error:not([hidden])")
        expected = (
            "contents.json is missing (404)" if broken == "contents.json" else "ValueError: something odd"
        )
        assert page.inner_text("#error") == f"logreel ended with an error of its own: {expected}"
        page.close()


def test_what_the_page_was_built_from_is_there(folder: Path) -> None:
    contents = json.loads((folder / "contents.json").read_text())
    assert [name for name in contents["wheels"] if not (folder / "wheels" / name).is_file()] == []
    assert "numpy" in contents["packages"]
