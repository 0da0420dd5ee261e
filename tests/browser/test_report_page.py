"""Reports in a real browser: opened from disk, zoomed, in both colour schemes, printed; nothing leaves the file."""

from __future__ import annotations

import functools
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import logreel
from browser.conftest import PATIENCE, shoot
from support.builders.contents import SAMPLES
from support.builders.crash import FALL, LOW, crash
from support.builders.pitfalls import pitfalls


@functools.cache
def report(data: bytes) -> str:
    """Return the page of the report of a log."""
    with logreel.open(data) as log:
        return logreel.report(log).html


@pytest.fixture(scope="module")
def offline(browser: Any) -> Iterator[Any]:
    """Return what the pages of reports share: to begin it costs a process."""
    shared = browser.new_context(offline=True, color_scheme="light")
    yield shared
    shared.close()


@pytest.fixture
def opened(offline: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Open the report of a log from a file; at the end, no error and no request but the file itself."""
    pages: list[tuple[Any, list[str], list[str]]] = []

    def open_report(data: bytes, dark: bool = False, width: int = 1440) -> Any:
        path = tmp_path / f"report{len(pages)}.html"
        path.write_text(report(data), "utf-8")
        page, errors, requests = offline.new_page(), [], []
        page.set_viewport_size({"width": width, "height": 900})
        if dark:
            page.emulate_media(color_scheme="dark")
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda m: errors.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]")
        pages.append((page, errors, requests))
        return page

    yield open_report
    for page, errors, requests in pages:
        page.close()
        assert not errors
        assert [one for one in requests if not one.startswith(("file:", "data:"))] == []


def shown_span(page: Any) -> list[float]:
    found: list[float] = page.evaluate("shownSpan")
    return found


@pytest.mark.parametrize("suffix", sorted(SAMPLES))
def test_reports_open_from_disk_and_draw(opened: Callable[..., Any], suffix: str) -> None:
    page = opened(SAMPLES[suffix]())
    page.evaluate("for (const one of document.querySelectorAll('details.more')) one.open = true")
    page.evaluate("drawWaiting(waiting.slice())")
    drawn = page.evaluate("plots.filter(({ plot }) => plot.data[0].length > 0).length")
    assert drawn == page.evaluate("data.panels.length") > 0
    shoot(page, f"report{suffix}", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_drag_zooms_all_charts_and_a_key_shows_all_again(opened: Callable[..., Any]) -> None:
    page = opened(SAMPLES[".ulg"]())
    whole = shown_span(page)
    chart = page.locator("figure .u-over").first
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.25, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.75, middle, steps=5)
    page.mouse.up()
    page.wait_for_function("whole => shownSpan[1] - shownSpan[0] < (whole[1] - whole[0]) * 0.6", arg=whole)
    spans = page.evaluate(
        "plots.filter((p) => p.panel.kind !== 'spectrum').map(({ plot }) => plot.scales.x.max)"
    )
    assert len(set(spans)) == 1
    page.keyboard.press("0")
    assert shown_span(page) == whole


def test_the_cursor_moves_a_circle_on_the_track(opened: Callable[..., Any]) -> None:
    page = opened(SAMPLES[".ulg"]())
    assert page.get_attribute("#here", "cx") == "-99"
    chart = page.locator("figure .u-over").first
    # A pointer that moved before the chart was drawn is not noticed: it goes on moving.
    for step in range(300):
        chart.hover(position={"x": 40 + step % 40, "y": 20})
        if page.get_attribute("#here", "cx") != "-99":
            return
        page.wait_for_timeout(100)
    pytest.fail("the circle does not move")


def test_a_click_on_a_time_shows_that_moment(opened: Callable[..., Any]) -> None:
    page = opened(SAMPLES[".bag"]())
    button = page.locator("#text button.at").last
    at = float(button.get_attribute("data-at"))
    button.click()
    low, high = shown_span(page)
    assert low <= at <= high
    assert high - low < 0.2 * page.evaluate("data.span[1] - data.span[0]")


def test_a_click_on_a_finding_shows_its_interval_in_its_chart(opened: Callable[..., Any]) -> None:
    page = opened(crash())
    whole = shown_span(page)
    item = page.locator("#findings li", has_text="battery_status: 3.10 V a cell")
    item.locator("button.at").click()
    low, high = shown_span(page)
    assert whole[0] < low < LOW < FALL - 0.1 < high < whole[1]
    chart = page.locator(item.locator("a").get_attribute("href"))
    assert chart.locator("h4").inner_text().startswith("Battery")
    box = chart.bounding_box()
    assert 0 <= box["y"] < 450


def test_dark_and_light_have_their_colours(opened: Callable[..., Any]) -> None:
    data = SAMPLES[".ulg"]()
    ground = "getComputedStyle(document.body).backgroundColor"
    light, dark = opened(data), opened(data, dark=True)
    colours = light.evaluate(ground), dark.evaluate(ground)
    assert colours[0] != colours[1]
    dark.click("#theme")
    assert dark.evaluate(ground) == colours[0]
    shoot(dark, "report-switched")


#: The strips, and the areas of the curves of the first charts: left and right edge in pixels.
EDGES = """() => {
  const edges = (one) => { const box = one.getBoundingClientRect(); return [box.left, box.right]; };
  const bands = [...document.querySelectorAll("#strip .bands")].map(edges);
  return [bands, [...document.querySelectorAll("figure .u-over")].slice(0, bands.length).map(edges)];
}"""


@pytest.mark.parametrize(("width", "columns"), [(1280, 2), (414, 1)])
def test_the_strip_has_the_edges_of_the_charts_in_each_column(
    opened: Callable[..., Any], width: int, columns: int
) -> None:
    page = opened(SAMPLES[".ulg"](), width=width)
    for size in (width, 1700 - width):
        page.set_viewport_size({"width": size, "height": 900})
        expected = columns if size == width else 3 - columns
        page.wait_for_function("n => document.querySelectorAll('#strip .bands').length === n", arg=expected)
        page.evaluate("document.querySelector('figure').scrollIntoView()")
        page.wait_for_selector("figure .u-over")
        strips, charts = page.evaluate(EDGES)
        assert len(strips) == len(charts) == expected
        for strip, chart in zip(strips, charts, strict=True):
            assert strip == pytest.approx(chart, abs=1.5)


def test_folded_charts_are_drawn_when_they_are_shown(opened: Callable[..., Any]) -> None:
    page = opened(SAMPLES[".ulg"]())
    assert page.locator("#panels > details.more figure .uplot").count() == 0
    page.click("#panels > details.more > summary")
    page.wait_for_selector("#panels > details.more figure .uplot")
    assert page.evaluate("plots.at(-1).plot.width") > 300


def test_a_narrow_window_shows_one_column(opened: Callable[..., Any]) -> None:
    page = opened(SAMPLES[".ulg"](), width=600)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def lines_by_colour(pdf: bytes) -> dict[tuple[int, ...], int]:
    """Return the number of lines that are drawn in a PDF by colour, 0 to 255."""
    colour, waiting, found = (0, 0, 0), 0, Counter[tuple[int, ...]]()
    for content in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL):
        try:
            words = zlib.decompress(content).split()
        except zlib.error:
            continue
        for at, word in enumerate(words):
            if word == b"RG":
                colour = tuple(round(255 * float(part)) for part in words[at - 3 : at])
            elif word in (b"l", b"c"):
                waiting += 1
            elif word == b"S":
                found[colour] += waiting
                waiting = 0
            elif word in (b"f", b"n"):
                waiting = 0
    return found


@pytest.mark.parametrize("scripts", [True, False])
def test_paper_has_all_charts_in_light_colours_also_without_scripts(
    browser: Any, tmp_path: Path, scripts: bool
) -> None:
    path = tmp_path / "report.html"
    with logreel.open(pitfalls()) as log:
        written = logreel.report(log)
    written.save(path)
    context = browser.new_context(color_scheme="dark", offline=True, java_script_enabled=scripts)
    page = context.new_page()
    page.goto(path.as_uri())
    if not scripts:
        # On the screen, too, the pictures stand where charts that can be zoomed would be.
        pictures = page.locator("figure svg.still:visible")
        assert pictures.count() == len(written.charts) > 0
        assert page.locator("figure svg.still path.t0").count() == len(written.charts)
        assert page.locator("svg.still path.gap").count() > 0
    page.emulate_media(media="print")
    assert page.locator("figure .still:visible").count() == 2 * len(written.charts)
    assert page.locator("figure .uplot:visible").count() == 0
    out = page.pdf(prefer_css_page_size=True)
    context.close()
    drawn = lines_by_colour(out)
    # The attitude alone has hundreds of points; #0072B2 and #D55E00 are the first two colours on white.
    assert drawn[0x00, 0x72, 0xB2] > 100
    assert drawn[0xD5, 0x5E, 0x00] > 2


def test_markup_in_a_log_is_text(opened: Callable[..., Any], tmp_path: Path) -> None:
    evil = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>"
    path = tmp_path / "evil.mcap"
    with logreel.create(path) as out:
        text = '{"type": "object", "properties": {"v": {"type": "number"}}}'
        ch = out.add_channel(evil, logreel.Schema(evil, "jsonschema", text))
        for i in range(50):
            out.write(ch, i * 10**8, b'{"v": %d}' % i)
    page = opened(path.read_bytes())
    assert page.title() != "run"
    assert page.locator("img").count() == 0
    assert "<img src=x" in page.inner_text("#topics")
