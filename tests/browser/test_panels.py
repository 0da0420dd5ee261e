"""Panels: XY plots, arrays, spectrograms, derived curves, parameters, problems, comparison of logs."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import pytest

import logreel
from browser.samples import content
from support.samples.ulog.builder import flight


def panels(*given: dict) -> str:
    """Return the state of an address with these panels."""
    return f"panels={quote(json.dumps(list(given)))}"


ACCEL = {"topic": "sensor_accel", "field": "x"}
CASES = {
    "xy of functions": {
        "kind": "xy",
        "x": {"topic": "vehicle_attitude", "field": "q", "function": "roll"},
        "y": {"topic": "vehicle_attitude", "field": "q", "function": "pitch"},
    },
    "xy": {
        "kind": "xy",
        "x": {"topic": "vehicle_local_position", "field": "x"},
        "y": {"topic": "vehicle_local_position", "field": "y"},
    },
    "spectrogram": {"kind": "spectrogram", **ACCEL},
    "array": {"kind": "array", "topic": "vehicle_attitude", "field": "q"},
    "function": {"kind": "plot", "series": [{"topic": "vehicle_attitude", "field": "q", "function": "roll"}]},
    "sql": {"kind": "plot", "series": [{"topic": "sensor_accel", "sql": "sqrt(x * x + y * y + z * z)"}]},
}


@pytest.fixture(scope="module")
def each(lasting_view):
    """A page with a panel of each case, in their order."""
    return lasting_view("ulog", state=panels(*CASES.values()))


@pytest.mark.parametrize("name", CASES)
def test_a_panel_draws(each, name: str) -> None:
    if name == "sql":
        pytest.importorskip("duckdb", reason="duckdb is not installed")
    found, number = each, list(CASES).index(name)
    assert found.page.locator("#plots .frame").count() == len(CASES)
    frame = found.page.locator("#plots .frame").nth(number)
    frame.scroll_into_view_if_needed()
    found.settle()
    body = frame.locator(".body")
    assert frame.locator(".sentence:visible").all_inner_texts() == []
    found.page.wait_for_function(
        "(n) => Number(document.querySelectorAll('#plots .frame .body')[n].dataset.points) > 0", arg=number
    )
    colours = body.locator("canvas").first.evaluate(
        """(canvas) => {
            const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            const found = new Set();
            for (let i = 0; i < data.length; i += 4) if (data[i + 3]) found.add(data.slice(i, i + 3).join(" "));
            return found.size; }"""
    )
    assert colours > (50 if name == "spectrogram" else 3)
    found.shot(f"panel-{name}")


def test_an_expression_that_is_wrong_is_said_in_its_plot(view) -> None:
    pytest.importorskip("duckdb", reason="duckdb is not installed")
    wrong = {"kind": "plot", "series": [{"topic": "sensor_accel", "sql": "no_such_column + 1"}]}
    found = view("ulog", state=panels(wrong, CASES["array"]))
    assert "no_such_column" in found.page.inner_text("#plots .frame .sentence.bad")


def test_a_derived_curve_is_added_by_its_form(view) -> None:
    found = view("ulog", state=panels({"kind": "plot", "series": [ACCEL]}))
    page = found.page
    page.locator("#plots .frame").first.focus()
    page.keyboard.press("m")
    page.click(".menu button:has-text('derived')")
    page.select_option("dialog[open] select[aria-label=Function]", "derivative")
    page.click("dialog[open] button.main")
    page.wait_for_function("() => document.querySelector('#plots .legend').children.length === 2")
    found.settle()
    assert page.locator("#plots .sentence:visible").count() == 0


def test_parameters_and_problems_are_listed(view, tmp_path: Path) -> None:
    path = tmp_path / "cut.ulg"
    path.write_bytes(content("ulog")[: len(content("ulog")) * 2 // 3 - 5])
    found = view(path)
    page = found.page
    page.click("#tab-parameters")
    page.wait_for_selector("#panel-parameters[data-ready] tbody tr")
    page.fill("#panel-parameters input", "BAT")
    page.wait_for_function(
        """() => [...document.querySelectorAll("#panel-parameters tbody tr")]
            .every((row) => /b.*a.*t/i.test(row.textContent))"""
    )
    page.click("#facts button:has-text('problem')")
    page.wait_for_selector("#panel-problems[data-ready] tbody tr")
    assert int(page.get_attribute("#panel-problems", "data-count")) >= 1
    assert page.get_attribute("#tab-problems", "aria-selected") == "true"


def test_two_logs_lie_over_each_other_with_an_offset(view, tmp_path: Path) -> None:
    one, two = tmp_path / "one.ulg", tmp_path / "two.ulg"
    one.write_bytes(content("ulog"))
    two.write_bytes(flight(6))
    series = {"topic": "battery_status", "field": "voltage_v"}
    found = view(one, two, state=panels({"kind": "plot", "series": [series]}, {"kind": "compare"}))
    page = found.page
    page.click("button:has-text('Same curves of all logs')")
    page.wait_for_function("() => document.querySelector('#plots .legend').children.length === 2")
    found.settle()
    assert page.locator("#plots .legend i.other").count() == 1
    before = page.evaluate("document.querySelector('#plots .frame canvas').toDataURL()")
    page.fill("input[aria-label='Offset of two.ulg in seconds']", "2.5")
    page.keyboard.press("Tab")
    found.settle()
    page.wait_for_function("() => location.hash.includes('offsets')")
    assert page.evaluate("document.querySelector('#plots .frame canvas').toDataURL()") != before
    found.shot("compare")
    # With Alt, the row of a log is dragged in the strip of time.
    box = page.locator("#timeline canvas").bounding_box()
    y = box["y"] + box["height"] * 0.8
    page.keyboard.down("Alt")
    page.mouse.move(box["x"] + 300, y)
    page.mouse.down()
    page.mouse.move(box["x"] + 400, y, steps=4)
    page.mouse.up()
    page.keyboard.up("Alt")
    found.settle()
    moved = float(page.input_value("input[aria-label='Offset of two.ulg in seconds']"))
    assert moved > 2.6
    page.select_option("select[aria-label=Alignment]", "utc")
    found.settle()
    assert page.input_value("input[aria-label='Offset of two.ulg in seconds']") == "0"


def test_texts_before_the_first_data_message_are_on_the_page(view, shared: Path) -> None:
    path = shared / "data/ulog/ekf_failure.ulg"
    if not path.exists():
        pytest.skip("no such flight among the samples")
    with logreel.open(path) as log:
        lines = [one for one in log.text if not one.repeated]
        early = [one.text for one in lines if one.time < log.start]
    found = view(path)
    found.page.wait_for_selector("#panel-text[data-count]")
    found.settle()
    assert found.page.get_attribute("#panel-text", "data-count") == str(len(lines))
    shown = found.page.inner_text("#panel-text")
    assert len(early) > 5
    assert all(text in shown for text in early)
    found.shot("texts-before-the-data")


#: Whether each plot in sight has coloured pixels, which neither axes nor bands have.
DRAWN = """() => {
    const box = document.getElementById("plots").getBoundingClientRect();
    const bodies = [...document.querySelectorAll("#plots .frame .body")].filter((body) => {
        const { top, bottom } = body.getBoundingClientRect();
        return bottom - top > 60 && top + 60 < box.bottom && bottom - 60 > box.top;
    });
    return bodies.length > 0 && bodies.every((body) => {
        const canvas = body.querySelector("canvas");
        if (!canvas || Math.abs(canvas.clientHeight - body.clientHeight) > 2) return false;
        const pen = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
        pen.drawImage(canvas, 0, 0);
        const { data } = pen.getImageData(0, 0, canvas.width, canvas.height);
        for (let i = 0; i < data.length; i += 4) {
            const [red, green, blue, alpha] = data.slice(i, i + 4);
            if (alpha > 200 && Math.max(red, green, blue) - Math.min(red, green, blue) > 100) return true;
        }
        return false;
    });
}"""


def test_no_plot_in_sight_is_ever_blank(view) -> None:
    found = view("ulog")
    page = found.page

    def scroll(part: float) -> None:
        page.evaluate(
            f"() => {{ const e = document.getElementById('plots'); e.scrollTop = {part} * e.scrollHeight; }}"
        )

    def check() -> None:
        page.wait_for_function(DRAWN)

    check()
    for part in (1, 0.5, 0):
        scroll(part)
        check()
        # A new plot comes behind the chosen one, wherever that is, and into sight.
        page.keyboard.press("Control+k")
        page.wait_for_function("() => document.querySelectorAll('#found [role=option]').length > 20")
        page.keyboard.type("battery voltage_v")
        page.wait_for_selector("#found[data-for='battery voltage_v']")
        page.keyboard.press("Shift+Enter")
        found.settle()
        check()
        assert "voltage_v" in page.inner_text("#plots .frame.chosen .legend")
        scroll(1 - part)
        page.set_viewport_size({"width": 1200 + int(200 * part), "height": 800 + int(100 * part)})
        check()
        scroll(part)
        check()
    for entry in ("Move down", "Move down", "Move up"):
        page.locator("#plots .frame.chosen").get_by_title("Menu of this panel").click()
        page.get_by_role("menuitem", name=entry).click()
        check()
    scroll(1)
    # Its height changes while it is away.
    page.evaluate("() => { document.querySelector('#plots .frame').style.height = '333px'; }")
    scroll(0)
    check()
    while page.locator("#plots .frame").count() > 2:
        found.press("x")
        check()


def test_what_happens_while_a_panel_is_away_never_leaves_it_blank(view) -> None:
    found = view("ulog")
    page = found.page

    def scroll(part: float) -> None:
        page.evaluate(
            f"() => {{ const e = document.getElementById('plots'); e.scrollTop = {part} * e.scrollHeight; }}"
        )

    def check() -> None:
        page.wait_for_function(DRAWN)

    # The window, the theme and the width of the column change while the first plots are away.
    scroll(1)
    check()
    found.press("+", "t")
    page.set_viewport_size({"width": 1100, "height": 700})
    scroll(0)
    check()
    scroll(1)
    found.press("0", "t")
    page.set_viewport_size({"width": 1500, "height": 950})
    scroll(0)
    check()
    # A curve is hidden and shown again, from the end of the column.
    for _ in range(2):
        page.locator("#plots .frame").first.get_by_title("Menu of this panel").click()
        page.locator(".menu [role=menuitemcheckbox]").first.click()
        scroll(1)
        scroll(0)
        check()
    # The height is dragged, and a divider of the page, too.
    for grip in ("#plots .frame .grip", "[data-split=side]"):
        box = page.locator(grip).first.bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.mouse.down()
        page.mouse.move(box["x"] - 60, box["y"] + 90, steps=3)
        page.mouse.up()
        check()
        scroll(1)
        check()
        scroll(0)
        check()
    # A field is dragged from the tree into the column, beside the plots in sight.
    scroll(0.5)
    count = page.locator("#plots .frame").count()
    page.locator("#tree [role=treeitem]").filter(has_text="battery_status").first.click()
    field = page.locator("#tree [draggable=true]").first
    field.drag_to(page.locator("#plots .frame .body").nth(count // 2))
    found.settle()
    check()
    # An empty panel says what to do; all plots come back as they were at first.
    page.click("#tools button:has-text('Add panel')")
    page.get_by_role("menuitem", name="Plot", exact=True).click()
    page.wait_for_selector("#plots .frame.chosen .sentence:visible")
    page.click("#tools button:has-text('Add panel')")
    page.get_by_role("menuitem", name="Plots that fit this log").click()
    for part in (0, 0.6, 1):
        scroll(part)
        check()
