"""Logs, plots and the viewer inside a page of a notebook server on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import logreel
from browser.conftest import PATIENCE, shoot
from support.builders.contents import SAMPLES


@pytest.fixture
def notebook(tmp_path: Path) -> Iterator[str]:
    """Serve a folder, as notebook servers do, from another port than the viewer; yield its URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=tmp_path))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://localhost:{server.server_port}/page.html"
    server.shutdown()
    server.server_close()


def test_outputs_of_cells_are_shown_inline(browser: Any, notebook: str, tmp_path: Path) -> None:
    (tmp_path / "flight.ulg").write_bytes(SAMPLES[".ulg"]())
    with logreel.open(tmp_path / "flight.ulg") as log, log.view() as viewer:
        outputs = [log, log.plot("battery_status.voltage_v"), viewer]
        html = "<hr>".join(f"<div>{output._repr_html_()}</div>" for output in outputs)
        (tmp_path / "page.html").write_text(f"<!doctype html><meta charset=utf-8><body>{html}")
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        page, errors, requests = context.new_page(), [], []
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(notebook)
        # The pictures of the log are there without scripts.
        sizes = page.evaluate("[...document.images].map((one) => [one.naturalWidth, one.complete])")
        assert len(sizes) == 3
        assert all(width > 0 and complete for width, complete in sizes)
        page.locator("iframe").nth(0).content_frame.locator("figure .u-over").first.wait_for()
        shoot(page, "notebook")
        # Frames of other origins are painted when they are seen.
        page.locator("iframe").nth(1).scroll_into_view_if_needed()
        inner = page.locator("iframe").nth(1).content_frame
        inner.locator("html[data-ready]").wait_for()
        inner.get_by_text("battery_status").first.wait_for()
        shoot(page, "notebook-viewer")
        assert errors == []
        mine = (notebook.rpartition("/")[0], viewer.url, "data:", "blob:", "about:")
        assert [url for url in requests if not url.startswith(mine)] == []
        context.close()
