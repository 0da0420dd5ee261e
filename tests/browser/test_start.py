"""The start of the page with a log of each format: what it asks for and when, and a field found by search."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest

from browser.conftest import opening
from browser.samples import SAMPLES

#: Requests of a page until it is at rest, and bytes of its own files, at most.
REQUESTS, BYTES = 25, 600_000


@pytest.fixture(scope="module", params=SAMPLES)
def started(tabs: Any, sampled: Any, request: pytest.FixtureRequest):
    """Return the name of a sample, a page that has opened it, and the paths that the page asked for until then."""
    with opening(tabs, sampled) as open_view:
        page = open_view(request.param)
        page.page.wait_for_selector("#timeline canvas[data-ready=yes]")
        page.settle()
        yield request.param, page, [urlsplit(url).path for url in page.requests]


def test_a_page_needs_few_requests_and_the_first_plots_before_all_else(started) -> None:
    _, page, asked = started
    files = [path for path in asked if not path.startswith("/api/") and "/three/" not in path]
    assert len(asked) <= REQUESTS, asked
    assert {"/page.js", "/page.css"} <= {*files}
    assert not [path for path in files if path.startswith("/static/") and not path.endswith("icon.svg")]
    first = asked.index("/api/logs/0/series")
    for later in ("channels", "overview", "text", "findings"):
        assert asked.index(f"/api/logs/0/{later}") > first, asked
    # Of three.js nothing is loaded before 3D is looked at.
    assert any("/three/" in path for path in asked) == bool(
        page.page.locator("#tab-scene[aria-selected=true]").count()
    )
    sizes = page.page.evaluate(
        "performance.getEntriesByType('resource').map(({ name, decodedBodySize }) => [name, decodedBodySize])"
    )
    assert sum(size for url, size in sizes if urlsplit(url).path in files) < BYTES


def test_a_field_is_found_by_search_and_plotted(started) -> None:
    name, found, _ = started
    page, about = found.page, SAMPLES[name]
    found.shot(f"first-{name}")
    before = page.locator("#plots .frame").count()
    assert before >= 1, "the first screen has no plot"
    assert about.file in page.inner_text("#facts")
    # A new plot: Shift.
    page.keyboard.press("Control+k")
    page.wait_for_function("() => document.querySelectorAll('#found [role=option]').length > 20")
    page.keyboard.type(about.words)
    page.wait_for_selector(f"#found[data-for={about.words!r}]")
    assert page.text_content("#found [aria-selected=true] .label") == f"{about.topic}.{about.field}"
    page.keyboard.press("Shift+Enter")
    page.wait_for_function(f"() => document.querySelectorAll('#plots .frame').length === {before + 1}")
    found.settle()
    plot = page.locator("#plots .frame.chosen")
    assert about.field in plot.locator(".legend").inner_text()
    assert int(plot.locator(".body").get_attribute("data-points")) > 1


def test_a_link_that_names_other_panels_opens_them(view) -> None:
    state = 'panels=[{"kind":"plot","series":[{"topic":"battery_status","field":"voltage_v"}]}]'
    page = view("ulog", state=state)
    assert page.page.locator("#plots .frame").count() == 1
    assert int(page.page.get_attribute("#plots .body", "data-points")) > 1
