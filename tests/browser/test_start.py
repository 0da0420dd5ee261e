"""The start of the page: how often it asks, in which order, and what it leaves for later."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from browser.samples import SAMPLES, sample

#: Requests of a page until it is at rest, and bytes of its own files, at most.
REQUESTS, BYTES = 25, 600_000


@pytest.mark.parametrize("name", SAMPLES)
def test_a_page_needs_few_requests_and_the_first_plots_before_all_else(
    view, tmp_path: Path, name: str
) -> None:
    page = view(sample(name, tmp_path))
    page.page.wait_for_selector("#timeline canvas[data-ready=yes]")
    page.settle()
    asked = [urlsplit(url).path for url in page.requests]
    files = [path for path in asked if not path.startswith("/api/") and "/three/" not in path]
    assert len(asked) <= REQUESTS, asked
    assert {"/page.js", "/page.css"} <= {*files}
    assert not [path for path in files if path.startswith("/static/") and not path.endswith("icon.svg")]
    first = asked.index("/api/logs/0/series")
    for later in ("channels", "overview", "text", "findings"):
        assert asked.index(f"/api/logs/0/{later}") > first, asked
    sizes = page.page.evaluate(
        "performance.getEntriesByType('resource').map(({ name, decodedBodySize }) => [name, decodedBodySize])"
    )
    assert sum(size for url, size in sizes if urlsplit(url).path in files) < BYTES


def test_three_js_is_loaded_when_3d_is_looked_at(view, tmp_path: Path) -> None:
    page = view(sample("ulog", tmp_path))
    assert page.page.locator("#tab-scene").get_attribute("aria-selected") == "false"
    assert not [url for url in page.requests if "three" in url]
    page.page.click("#tab-scene")
    page.page.wait_for_selector("#panel-scene canvas")
    assert [url for url in page.requests if "three" in url]


def test_a_link_that_names_other_panels_opens_them(view, tmp_path: Path) -> None:
    state = 'panels=[{"kind":"plot","series":[{"topic":"battery_status","field":"voltage_v"}]}]'
    page = view(sample("ulog", tmp_path), state=state)
    assert page.page.locator("#plots .frame").count() == 1
    assert int(page.page.get_attribute("#plots .body", "data-points")) > 1
