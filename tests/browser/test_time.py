"""One window and one cursor for all panels: zoom, pan, cursors, text, the address, play."""

from __future__ import annotations

from pathlib import Path

import pytest

import logreel
from browser.samples import content

#: The window of the page in ns, from the texts that the timeline has for screen readers.
WINDOW = "document.querySelector('#timeline canvas').getAttribute('aria-valuetext')"


def centre(page, at: float = 0.5) -> tuple[float, float]:
    """Return the place of the pointer at a part of the width of the first plot."""
    box = page.locator("#plots .frame .u-over").first.bounding_box()
    return box["x"] + box["width"] * at, box["y"] + box["height"] / 2


@pytest.fixture
def flight(view):
    """A page with a generated flight."""
    return view("ulog")


@pytest.fixture(scope="module")
def lasting_flight(lasting_view):
    return lasting_view("ulog")


@pytest.fixture
def whole_flight(lasting_flight):
    """The page of tests that change window and cursors only: with the whole log, and the cursor at its start."""
    lasting_flight.page.mouse.move(5, 5)
    lasting_flight.page.evaluate("document.activeElement.blur()")
    lasting_flight.press("Home", "0")
    assert lasting_flight.window == (float("-inf"), float("inf"))
    assert lasting_flight.cursor == 0
    return lasting_flight


def test_the_wheel_zooms_at_the_pointer_and_a_double_click_shows_all(whole_flight) -> None:
    page = whole_flight.page
    box = page.locator("#plots .frame .u-over").first.bounding_box()
    page.mouse.move(*centre(page, 0.25))
    for _ in range(4):
        page.mouse.wheel(0, -300)
    whole_flight.settle()
    low, high = whole_flight.window
    assert high - low < 5e9
    # What was under the pointer is there still: a quarter of ten seconds.
    assert abs((low + (high - low) * 0.25) - 0.25 * 10e9) < 0.02 * 10e9, box
    page.mouse.dblclick(*centre(page))
    whole_flight.settle()
    assert whole_flight.window == (float("-inf"), float("inf"))


def test_a_drag_zooms_and_a_drag_with_shift_pans(whole_flight) -> None:
    page = whole_flight.page
    page.mouse.move(*centre(page, 0.4))
    page.mouse.down()
    page.mouse.move(*centre(page, 0.5), steps=4)
    page.mouse.move(*centre(page, 0.6), steps=4)
    page.mouse.up()
    whole_flight.settle()
    low, high = whole_flight.window
    assert (low, high) == pytest.approx((4e9, 6e9), rel=0.03)
    points = page.locator("#plots .frame .body").first.get_attribute("data-points")
    assert int(points) > 10
    page.keyboard.down("Shift")
    page.mouse.move(*centre(page, 0.5))
    page.mouse.down()
    page.mouse.move(*centre(page, 0.75), steps=5)
    page.mouse.up()
    page.keyboard.up("Shift")
    whole_flight.settle()
    after = whole_flight.window
    assert after[0] == pytest.approx(low - (high - low) / 4, rel=0.03)
    assert after[1] - after[0] == high - low


def test_all_plots_show_the_same_window(whole_flight) -> None:
    whole_flight.press("+", "+")
    ends = whole_flight.page.evaluate(
        "[...document.querySelectorAll('#plots .frame .u-over')].map((one) => one.clientWidth)"
    )
    assert len(set(ends)) == 1, "the axes of the plots are not aligned"


def test_the_cursor_moves_text_message_and_values(whole_flight) -> None:
    page = whole_flight.page
    page.click("#tab-message")
    page.mouse.click(*centre(page, 0.1))
    page.mouse.move(5, 5)
    whole_flight.settle()
    first = page.get_attribute("#panel-message", "data-row")
    values = page.locator("#plots .frame .legend").first.inner_text()
    assert whole_flight.cursor == pytest.approx(1.0, abs=0.05)
    page.mouse.click(*centre(page, 0.5))
    page.mouse.move(5, 5)
    whole_flight.settle()
    assert whole_flight.cursor == pytest.approx(5.0, abs=0.05)
    assert page.get_attribute("#panel-message", "data-row") != first
    assert page.locator("#plots .frame .legend").first.inner_text() != values
    current = page.locator("#panel-text li[aria-current=true] .time")
    assert float(current.inner_text()) <= 5.1
    # And back: a line of text sets the cursor.
    line = page.locator("#panel-text .lines li").first
    at = float(line.locator(".time").inner_text())
    line.click()
    whole_flight.settle()
    assert whole_flight.cursor == pytest.approx(at, abs=0.002)


def test_two_cursors_show_differences(whole_flight) -> None:
    page = whole_flight.page
    page.mouse.click(*centre(page, 0.2))
    page.keyboard.down("Shift")
    page.mouse.click(*centre(page, 0.7))
    page.keyboard.up("Shift")
    page.mouse.move(5, 5)
    whole_flight.settle()
    assert "Δ 5." in page.inner_text("#play .delta") or "Δ 4.9" in page.inner_text("#play .delta")
    assert "Δ" in page.locator("#plots .frame .legend").first.inner_text()
    whole_flight.press("c")
    assert "Δ" not in page.inner_text("#play .delta")


def test_a_line_of_text_passes_the_filter_or_not(flight) -> None:
    page = flight.page
    page.wait_for_selector("#panel-text[data-ready] li")
    every = int(page.get_attribute("#panel-text", "data-count"))
    page.select_option("#panel-text select[aria-label=Level]", "4")
    page.wait_for_function(f"() => Number(document.getElementById('panel-text').dataset.count) < {every}")
    levels = page.locator("#panel-text .lines li > :nth-child(2)").all_inner_texts()
    assert set(levels) <= {"warning", "error", "critical", "alert", "emergency"}
    page.fill("#panel-text input", "no such words")
    page.wait_for_function("() => document.getElementById('panel-text').dataset.count === '0'")
    assert "passes the filter" in page.inner_text("#panel-text")


def test_the_address_brings_the_view_back(flight) -> None:
    page = flight.page
    flight.press("+", "+", "ArrowRight", "ArrowRight")
    flight.find("battery voltage_v")
    window, cursor = flight.window, flight.cursor
    # The address is written a quarter of a second after the view has changed.
    page.wait_for_timeout(600)
    curves = page.locator("#plots .legend").all_inner_texts()
    page.reload()
    page.wait_for_selector("html[data-ready=yes]")
    flight.settle()
    assert flight.window == window
    assert flight.cursor == cursor
    assert page.locator("#plots .legend").all_inner_texts() == curves


def test_the_strip_of_time_sets_the_window(whole_flight) -> None:
    page = whole_flight.page
    box = page.locator("#timeline canvas").bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.3, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, y, steps=5)
    page.mouse.up()
    whole_flight.settle()
    assert whole_flight.window == pytest.approx((3e9, 5e9), rel=0.03)
    # Its edge is dragged on.
    page.mouse.move(box["x"] + box["width"] * 0.5, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.8, y, steps=5)
    page.mouse.up()
    whole_flight.settle()
    assert whole_flight.window == pytest.approx((3e9, 8e9), rel=0.03)


def test_play_moves_the_cursor_and_pauses(flight) -> None:
    page = flight.page
    page.select_option("#play select", "5")
    page.keyboard.press("Escape")
    page.locator("#plots .frame").first.focus()
    page.keyboard.press(" ")
    page.wait_for_function(
        "() => Number(document.querySelector('#timeline canvas').getAttribute('aria-valuenow')) > 0.5"
    )
    page.keyboard.press(" ")
    flight.settle()
    stopped = flight.cursor
    assert page.get_attribute("#play button", "aria-pressed") == "false"
    flight.settle()
    assert flight.cursor == stopped


def test_clocks_change_all_times(flight) -> None:
    page = flight.page
    before = page.inner_text("#play .now")
    flight.press("k")
    assert page.inner_text("#play .now") != before
    assert page.inner_text("#tools") != ""


def test_a_growing_log_is_followed(view, tmp_path: Path) -> None:
    data = content("ulog")
    path = tmp_path / "growing.ulg"
    path.write_bytes(data[: len(data) // 2])
    found = view(path, follow=True)
    page = found.page
    before = float(page.get_attribute("#timeline canvas", "aria-valuemax"))
    with path.open("ab") as file:
        file.write(data[len(data) // 2 :])
    page.wait_for_function("() => document.documentElement.dataset.grown")
    page.wait_for_function(
        f"() => Number(document.querySelector('#timeline canvas').getAttribute('aria-valuemax')) > {before} + 1"
    )
    found.settle()
    assert found.window == (float("-inf"), float("inf")), "the window that showed all shows all"
    with logreel.open(data) as log:
        told = f"{log.message_count:,} messages"
    page.wait_for_function("(told) => document.getElementById('facts').textContent.includes(told)", arg=told)
