"""Two logs beside each other: both are named, aligned by what happened in them, and told where they differ."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from browser.test_takeaway import taken
from support.builders.crash import FAILSAFE, SAID, crash

#: Seconds by which the second flight is later in its log.
DELAY = 6.0
#: Whether the table of shifts has a text.
HAS = "(text) => Boolean(document.querySelector('#panel-compare tbody')?.textContent.includes(text))"
SIDE = "#panel-compare table[aria-label='Summaries side by side'] tr.differs"


def test_two_flights_are_aligned_by_what_happened_and_differ_side_by_side(view: Any, tmp_path: Path) -> None:
    one, two = tmp_path / "one.ulg", tmp_path / "two.ulg"
    one.write_bytes(crash(BAT_V_EMPTY=3.5, MPC_XY_P=0.95))
    two.write_bytes(crash(delay=DELAY, BAT_V_EMPTY=3.3, MPC_XY_P=0.95))
    found = view(one, two, size=(1280, 800))
    page = found.page
    assert [name in page.inner_text("#facts") for name in ("one.ulg, ", "two.ulg, ")] == [True, True]
    page.wait_for_selector("#panel-findings[data-ready]")
    # Findings of both, each with its log.
    said = page.locator("#panel-findings li", has_text=SAID)
    assert [name in said.nth(n).inner_text() for n, name in enumerate(("one.ulg", "two.ulg"))] == [True, True]

    page.click("#tab-compare")
    page.wait_for_selector("#panel-compare[data-ready]")
    shift = page.locator("#panel-compare tbody tr").nth(1).locator("td.number").last
    assert shift.inner_text() == "0 s"
    for align, expected in (("armed", DELAY), ("air", DELAY), (f"event:{SAID}", DELAY), ("start", 0)):
        page.select_option("select[aria-label=Alignment]", align)
        shown = f"−{expected:g} s" if expected else "0 s"
        page.wait_for_function(HAS, arg=shown)
        found.settle()
    page.select_option("select[aria-label=Alignment]", "air")
    page.fill("input[aria-label='Offset of two.ulg in seconds']", "1.5")
    page.keyboard.press("Tab")
    page.wait_for_function(HAS, arg="−4.5 s")
    # What differs comes first.
    page.wait_for_selector(SIDE)
    assert "+8.0 s to +56.0 s" in page.inner_text(f"{SIDE}:has-text('armed')")
    # The plots have the room that is left, and no more.
    ends = page.evaluate(
        "['#plots .frame', '#plots', '#ruler canvas'].map((one) => document.querySelector(one).clientWidth)"
    )
    assert len({*ends}) == 1
    found.shot("compare-side-by-side")

    # How far the curves are apart: the voltage falls DELAY later in the second, and is the same by arming.
    page.locator("#plots .frame", has_text="Battery").first.locator("h2").click()
    for align, apart in (("armed", False), ("start", True)):
        page.select_option("#panel-compare select", align)
        page.fill("input[aria-label='Offset of two.ulg in seconds']", "0")
        found.settle()
        if not apart:
            page.click("#panel-compare button:has-text('Differences')")
            page.wait_for_selector("#plots .frame:has-text('voltage: two.ulg − one.ulg') .body[data-points]")
        found.settle()
        box = page.locator("#timeline canvas").bounding_box()
        whole = page.evaluate(
            "(({ from, to }) => [+from, +to])(document.querySelector('#timeline canvas').dataset)"
        )
        share = (33e9 - whole[0]) / (whole[1] - whole[0])
        page.mouse.click(box["x"] + box["width"] * share, box["y"] + 30)
        found.settle()
        value = (
            page.locator("#plots .frame", has_text="voltage: two.ulg − one.ulg")
            .locator(".value")
            .inner_text()
        )
        assert (abs(float(value)) > 3) is apart
    page.select_option("#panel-compare select", "air")
    page.fill("input[aria-label='Offset of two.ulg in seconds']", "1.5")
    page.keyboard.press("Tab")
    found.shot("differences")

    # The alignment is part of the address, also before the panel is looked at.
    page.click("#tab-parameters")
    page.wait_for_selector("#panel-parameters[data-differ='1']")
    row = page.locator("#panel-parameters tbody tr").first
    assert row.locator("td").all_inner_texts() == ["BAT_V_EMPTY", "3.5", "3.3"]
    page.wait_for_function("() => location.hash.includes('align=%22air%22')")
    page.reload()
    page.wait_for_selector("html[data-ready]")
    page.click("#tab-compare")
    page.wait_for_function(HAS, arg="−4.5 s")
    page.select_option("#panel-compare select", "armed")
    page.wait_for_function(HAS, arg="−6 s")
    found.settle()
    assert float(page.get_attribute("#timeline canvas", "data-from")) == pytest.approx(-DELAY * 1e9)


def test_three_logs_have_statistics_side_by_side_bands_of_each_and_differences_of_chosen_ones(
    view: Any, tmp_path: Path
) -> None:
    paths = [tmp_path / f"{name}.ulg" for name in ("one", "two", "three")]
    for path, made in zip(paths, (crash(sound=True), crash(), crash(delay=DELAY)), strict=True):
        path.write_bytes(made)
    found = view(*paths, size=(1600, 1000))
    page = found.page
    page.click("#tab-compare")
    page.wait_for_selector("#panel-compare[data-ready]")
    page.click("#panel-compare .fields summary")
    page.wait_for_selector("#panel-compare .fields[data-ready]")
    table = page.locator("table[aria-label='Statistics side by side']")
    names = table.locator("th button").all_inner_texts()
    # What never varies in one log and varies in others comes before the rest; no difference comes last.
    assert set(names[:3]) <= {
        "vehicle_attitude.q[0]",
        "vehicle_status.nav_state",
        "battery_status.voltage_v",
        "vehicle_attitude.q[1]",
    }
    assert names[-1].endswith(".timestamp")
    rows = (
        table.locator("tr:has(th:has-text('battery_status.voltage_v')) + tr").locator("td").all_inner_texts()
    )
    assert rows == ["one.ulg", "16", "16.0299", "16.06", "16.0299", "600"]
    page.fill("input[aria-label='Find a field by its statistics']", "volt batt")
    assert table.locator("th button").all_inner_texts() == ["battery_status.voltage_v"]
    table.locator("th button").click()
    page.wait_for_selector("#plots .frame:has-text('battery_status') .legend li:nth-child(3)")
    found.settle()
    # The curve of each log has a colour and a dash of its own, in the legend and in what is saved.
    shown = page.locator("#plots .frame.chosen .legend")
    assert shown.locator("li .log").all_inner_texts() == ["two.ulg", "three.ulg"]
    marks = shown.locator("i").evaluate_all("(all) => all.map((one) => getComputedStyle(one).background)")
    dashes = [re.findall(r"rgba\(0, 0, 0, 0\) (\d+px),", mark) for mark in marks]
    assert dashes == [[], ["7px"], ["2px"]]
    assert len({re.search(r"rgb\(.*?\)", mark)[0] for mark in marks}) == 3
    saved = taken(found, "Chosen plot as SVG", tmp_path).read_text()
    paths_of = re.findall(r'<path [^>]*class="curve"[^>]*>', saved)
    strokes = [re.findall(r'stroke(?:-dasharray)?="([^"]*)"', path) for path in paths_of]
    assert [stroke[1:] for stroke in strokes] == [[], ["7 4"], ["2 3"]]
    assert len({stroke[0] for stroke in strokes}) == 3

    # The difference of the third log and the second, and of all others.
    page.select_option("select[aria-label='Log that is subtracted']", "1")
    assert page.locator("select[aria-label='Logs whose differences are shown'] option").all_inner_texts() == [
        "all others",
        "one.ulg",
        "three.ulg",
    ]
    page.click("#panel-compare button:has-text('Differences')")
    both = page.locator("#plots .frame", has_text="one.ulg, three.ulg − two.ulg")
    both.locator(".body[data-points]").wait_for()
    assert both.locator(".legend li").count() == 2
    found.settle()
    box = page.locator("#timeline canvas").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 33 / 60, box["y"] + 30)
    found.settle()
    values = [float(value) for value in both.locator(".legend .value").all_inner_texts()]
    # At 33 s the battery of the second alone is low.
    assert values == [pytest.approx(3.6, abs=0.1)] * 2
    # Each log has its bands behind the curves, in its part of the height.
    script = """async () => {
        const { bandsOf } = await import("/static/panels/plot_draw.js"), overviews = {};
        for (const id of ["0", "1", "2"]) {
            overviews[id] = await (await fetch(`/api/logs/${id}/overview`, { headers: TOKEN })).json();
        }
        const context = { data: { overviewNow: (id) => overviews[id] }, time: { shift: (id) => 1e9 * id } };
        return bandsOf(context, [{ id: "0" }, { id: "1" }, { id: "2" }]).filter(({ label }) => label === "Failsafe")
            .map(({ top, high, from }) => [top, high, from / 1e9]);
    }""".replace("TOKEN", json.dumps({"Authorization": f"Bearer {found.viewer.token}"}))
    third = 1 / 3
    expected = [[third, third, FAILSAFE + 1], [2 * third, third, FAILSAFE + DELAY + 2]]
    assert page.evaluate(script) == [pytest.approx(one, abs=0.6) for one in expected]
    found.shot("compare-three")


def test_a_difference_is_taken_between_messages_and_not_in_gaps(view: Any, tmp_path: Path) -> None:
    path = tmp_path / "one.ulg"
    path.write_bytes(crash(sound=True))
    page = view(path).page
    script = """async ([one, other, turns]) => {
        const { minus } = await import("/static/panels/difference.js");
        return minus(one, other, turns).v.map((value) => (Number.isNaN(value) ? null : value));
    }"""
    other = {"t": [0, 10, 20, 40], "v": [0, 10, 20, 40], "gaps": [[20, 40]], "held": False}
    one = {"t": [-5, 0, 5, 20, 30, 40, 45], "v": [1, 1, 1, 1, 1, 1, 1]}
    assert page.evaluate(script, [one, other, False]) == [None, 1, -4, -19, None, -39, None]
    assert page.evaluate(script, [one, {**other, "held": True, "gaps": []}, False])[2:5] == [1, -19, -19]
    turned = {"t": [0, 10], "v": [179, 179], "gaps": [], "held": False}
    assert page.evaluate(script, [{"t": [5], "v": [-179]}, turned, True]) == [2]
