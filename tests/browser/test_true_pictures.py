"""Nothing is drawn that was not measured, and nothing is missing: on logs that are built to be drawn wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import logreel
from browser.test_panels import panels
from support.builders.pitfalls import EARLY, GAP, pitfalls


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "pitfalls.ulg"
    path.write_bytes(pitfalls())
    return path


#: Colours of part of a canvas, red green blue as text, by their number of pixels; the part in CSS pixels.
COLOURS = """(canvas, [left, top, width, height]) => {
    const pen = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d"), found = {};
    pen.drawImage(canvas, 0, 0);
    const { data } = pen.getImageData(left, top, width, height);
    for (let i = 0; i < data.length; i += 4) {
        const key = data.slice(i, i + 3).join(" ");
        if (data[i + 3] > 200) found[key] = (found[key] ?? 0) + 1;
    }
    return found;
}"""


def red(canvas: Any, *part: int) -> int:
    """Return the number of red pixels of a part of a canvas."""
    colours = canvas.evaluate(COLOURS, part)
    rgb = {tuple(map(int, key.split())): count for key, count in colours.items()}
    return sum(count for (r, g, b), count in rgb.items() if r > 150 and g < 90 and b < 90)


def test_texts_before_the_data_are_listed_and_marked_at_its_start(view: Any, path: Path) -> None:
    found = view(path)
    page = found.page
    page.wait_for_selector("#panel-text[data-count]")
    shown = page.locator("#panel-text .lines li")
    assert shown.count() == len(EARLY) + 1
    assert [shown.nth(n).locator(".text").inner_text() for n in range(3)] == [text for _, _, text in EARLY]
    assert shown.first.locator(".time").inner_text().startswith(("-5", "−5"))
    page.wait_for_selector("#timeline canvas[data-ready=yes]")
    assert red(page.locator("#timeline canvas"), 0, 0, 3, 24) > 0
    assert red(page.locator("#plots .frame canvas").first, 56, 0, 8, 16) > 0
    found.shot("early-texts")


#: The columns of pixels of a plot in which a series has its colour, as runs [from, to] in shares of the plot.
RUNS = """(canvas, [colour, left, right]) => {
    const pen = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d");
    pen.drawImage(canvas, 0, 0);
    const { data } = pen.getImageData(left, 20, canvas.width - left - right, canvas.height - 20);
    const width = canvas.width - left - right, runs = [];
    const wanted = colour.match(/\\w\\w/g).map((one) => parseInt(one, 16));
    for (let x = 0, on = false; x < width; x++) {
        let seen = false;
        for (let at = 4 * x; at < data.length && !seen; at += 4 * width) {
            seen = wanted.every((one, i) => Math.abs(data[at + i] - one) < 60);
        }
        if (seen && !on) runs.push([x / width, x / width]);
        if (seen) runs.at(-1)[1] = (x + 1) / width;
        on = seen;
    }
    return runs;
}"""
BLUE, ORANGE = "0072b2", "d55e00"


def runs(page: Any, frame: int, colour: str) -> list[list[float]]:
    """Return where a plot has a colour; holes of a few pixels, where other curves lie above it, do not count."""
    joined: list[list[float]] = []
    for low, high in page.locator("#plots .frame canvas").nth(frame).evaluate(RUNS, [colour, 60, 14]):
        if joined and low - joined[-1][1] < 0.02:
            joined[-1][1] = high
        else:
            joined.append([low, high])
    return joined


def plot(*series: dict[str, str]) -> dict[str, Any]:
    return {"kind": "plot", "series": list(series), "bands": False}


VOLTAGE = {"topic": "battery_status", "field": "voltage_v"}
SETPOINT = {"topic": "vehicle_local_position_setpoint", "field": "z", "function": "negative"}
ROLL = {"topic": "vehicle_attitude", "field": "q", "function": "roll"}


def test_lines_break_in_gaps_and_held_values_stay_when_zoomed(view: Any, path: Path) -> None:
    found = view(path, state=panels(plot(VOLTAGE), plot(ROLL, SETPOINT)))
    page = found.page
    gap = [one / 39.95 for one in GAP]
    before, after = runs(page, 0, BLUE)
    assert before == [pytest.approx(0, abs=0.01), pytest.approx(gap[0], abs=0.01)]
    assert after == [pytest.approx(gap[1], abs=0.01), pytest.approx(1, abs=0.01)]
    # The setpoint begins with its first message and holds to the end.
    first, last = runs(page, 1, ORANGE)[0][0], runs(page, 1, ORANGE)[-1][1]
    assert (first, last) == (pytest.approx(1 / 39.95, abs=0.01), pytest.approx(1, abs=0.01))
    # In a gap there is no value; before it, there is.
    box = page.locator("#plots .frame canvas").first.bounding_box()
    for share, expected in ((0.2, True), (sum(gap) / 2, False)):
        page.mouse.move(box["x"] + 60 + share * (box["width"] - 74), box["y"] + 50)
        page.wait_for_function(
            "(shown) => /\\d/.test(document.querySelector('.legend .value').textContent) === shown",
            arg=expected,
        )
    found.shot("gaps")
    for low, high in ((4, 16), (25, 33)):
        found = view(
            path,
            state=f"{panels(plot(VOLTAGE), plot(ROLL, SETPOINT))}&window=[{low}000000000,{high}000000000]",
        )
        (seen,) = runs(found.page, 1, ORANGE)
        assert seen == [pytest.approx(0, abs=0.01), pytest.approx(1, abs=0.01)]
        found.shot(f"held-{low}")


def test_a_wild_position_is_marked_and_told_and_does_not_scale_the_map(view: Any, path: Path) -> None:
    found = view(path, state='side="map"')
    page = found.page
    page.wait_for_selector("#panel-map[data-drawn][data-jumps]")
    found.settle()
    panel = page.evaluate("() => ({ ...document.getElementById('panel-map').dataset })")
    assert int(panel["jumps"]) == 2
    # 80 m of way, at 2 m/s.
    assert 80 < float(panel["metres"]) < 400
    assert [float(one) for one in panel["limits"].split()] == [pytest.approx(2, abs=0.1)] * 2
    assert "without 2 jumps of up to 500 km" in page.inner_text("#panel-map")
    canvas = page.locator("#panel-map canvas").first
    size = canvas.evaluate("(one) => [one.width, one.height]")
    assert red(canvas, 0, 0, *size) > 20
    found.shot("wild-position")
    with logreel.open(path) as log:
        report = logreel.report(log)
    assert report.html.count('class="jump"') == 1
    assert any("jumps by 500 km" in one.text for one in report.findings)
