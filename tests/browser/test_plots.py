"""Plots as instruments: each part as people reach it, as the address keeps it, and as it is taken away."""

from __future__ import annotations

import json
import zlib
from base64 import urlsafe_b64decode
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree

import numpy as np
import pytest

import logreel
from browser.samples import content, sample
from browser.test_panels import panels
from browser.test_takeaway import taken

SECOND = 10**9
VOLTAGE = {"topic": "battery_status", "field": "voltage_v", "unit": "V"}
CURRENT = {"topic": "battery_status", "field": "current_a", "unit": "A"}


def kept(page: Any) -> list[Any]:
    """Return the panels in the address, once it is written; empty for those that the log deserves."""
    page.wait_for_timeout(400)
    (text,) = parse_qs(urlsplit(page.url).fragment).get("panels", ["[]"])
    if text.startswith("~"):
        packed = urlsafe_b64decode(text[1:] + "=" * (-len(text[1:]) % 4))
        text = zlib.decompress(packed, wbits=-15).decode()
    return json.loads(text)


def axis(page: Any, key: str = "y") -> list[float]:
    """Return the range of an axis of the first plot."""
    text = page.get_attribute("#plots .frame .body", f"data-{key}")
    return [float(one) for one in text.split()]


def test_legend_and_axes_by_pointer_and_keys(view: Any, tmp_path: Path) -> None:
    found = view("ulog", state=panels({"kind": "plot", "series": [VOLTAGE, CURRENT]}))
    page = found.page
    names = page.locator("#plots .legend button.name")
    assert [names.nth(n).get_attribute("aria-pressed") for n in range(2)] == ["true", "true"]
    # A click hides a curve, which stays in the legend; Enter shows it again; with Shift it is alone, then all are.
    names.nth(1).click()
    found.settle()
    assert names.nth(1).get_attribute("aria-pressed") == "false"
    assert [one.get("hidden") for one in kept(page)[0]["series"]] == [None, True]
    csv = taken(found, "as CSV", tmp_path).read_text()
    assert "voltage_v" in csv
    assert "current_a" not in csv
    names.nth(1).focus()
    found.press("Enter")
    assert names.nth(1).get_attribute("aria-pressed") == "true"
    names.nth(1).click(modifiers=["Shift"])
    assert [names.nth(n).get_attribute("aria-pressed") for n in range(2)] == ["false", "true"]
    names.nth(1).click(modifiers=["Shift"])
    assert [names.nth(n).get_attribute("aria-pressed") for n in range(2)] == ["true", "true"]

    # The wheel over the axis zooms, a drag moves, keys do the same, a double click fits.
    found.settle()
    low, high = axis(page)
    handle = page.locator("#plots .yaxis.left")
    handle.hover()
    page.mouse.wheel(0, -400)
    page.wait_for_timeout(100)
    zoomed = axis(page)
    assert low < zoomed[0] < zoomed[1] < high
    handle.focus()
    found.press("ArrowUp")
    assert axis(page)[0] == pytest.approx(zoomed[0] + 0.1 * (zoomed[1] - zoomed[0]))
    assert kept(page)[0]["y"] == pytest.approx(axis(page))
    handle.dblclick()
    assert axis(page) == pytest.approx([low, high])

    # The dialog, by keys alone: limits, a logarithmic left axis, the current at the right.
    found.press("m")
    page.locator(".menu button", has_text="Axes and limits").focus()
    page.keyboard.press("Enter")
    page.get_by_label("Left axis, lower limit").fill("20")
    page.get_by_label("Left axis, upper limit").fill("10")
    page.keyboard.press("Enter")
    assert page.locator("dialog .bad").inner_text() == "The lower limit must be below the upper one."
    page.get_by_label("Left axis, lower limit").fill("1")
    page.get_by_label("Left axis, upper limit").fill("100")
    page.get_by_label("Left axis, logarithmic").check()
    page.get_by_label("battery_status.current_a at the right axis").check()
    page.get_by_label("Left axis, upper limit").press("Enter")
    found.settle()
    assert axis(page) == [1, 100]
    with logreel.open(content("ulog")) as log:
        current = log["battery_status"]["current_a"]
    low, high = axis(page, "y2")
    assert low < current.min() <= current.max() < high < 1.3 * current.max()
    (panel,) = kept(page)
    assert (panel["y"], panel["log"], panel["series"][1]["axis"]) == ([1, 100], {"y": True, "y2": False}, 2)
    found.shot("plot-axes")
    drawing = ElementTree.fromstring(taken(found, "as SVG", tmp_path).read_text())
    texts = [
        one.text for one in drawing.iter("{http://www.w3.org/2000/svg}text") if one.get("class") == "unit"
    ]
    assert texts == ["V", "A"]
    heights = [
        one.get("d")
        for one in drawing.iter("{http://www.w3.org/2000/svg}path")
        if one.get("class") == "curve"
    ]
    assert len(heights) == 2
    # A layout opens with the same axes.
    layout = json.loads(taken(found, "layout", tmp_path).read_text())
    again = view(sample("ulog", tmp_path), layout=layout)
    assert axis(again.page) == [1, 100]
    assert axis(again.page, "y2") == pytest.approx([low, high])


def test_statistics_are_those_of_all_values(view: Any, tmp_path: Path) -> None:
    """Of 2479 values in 300 pixels, and between the cursors."""
    accel = {"topic": "sensor_combined", "field": "accelerometer_m_s2[2]"}
    cursors = f"cursor={2 * SECOND}&cursor2={4 * SECOND}"
    state = f"{panels({'kind': 'plot', 'series': [accel]})}&{cursors}"
    found = view("ulog", size=(900, 700), state=state)
    page = found.page
    found.press("m")
    page.click(".menu button:has-text('Statistics')")
    page.wait_for_selector(".statistics tr[data-span=cursors]")
    assert kept(page)[0]["statistics"] is True
    with logreel.open(content("ulog")) as log:
        table = log["sensor_combined"].to_arrow(["accelerometer_m_s2[2]"])
        times = log["sensor_combined"].times - log.start
    values = np.array(table.column(1).to_pylist(), float)
    between = values[(times >= 2 * SECOND) & (times <= 4 * SECOND)]
    for span, own in (("visible", values), ("cursors", between)):
        row = page.locator(f".statistics tr[data-span={span}] td")
        shown = row.evaluate_all("(all) => Object.assign({}, ...all.map((one) => ({...one.dataset})))")
        expected = {
            "count": len(own), "min": own.min(), "max": own.max(), "mean": own.mean(), "rms": np.sqrt(np.mean(own**2)),
        }  # fmt: skip
        assert {name: float(text) for name, text in shown.items()} == pytest.approx(expected, rel=1e-12)
    assert len(between) < len(values)
    found.shot("plot-statistics")
    assert "rms" in taken(found, "as SVG", tmp_path).read_text()


def test_states_are_lanes_and_stamps_are_times(view: Any, tmp_path: Path) -> None:
    states = [
        {"topic": "vehicle_status", "field": "nav_state"},
        {"topic": "vehicle_status", "field": "arming_state"},
        {"topic": "vehicle_land_detected", "field": "landed"},
    ]
    stamps = [{"topic": "sensor_gps", "field": "timestamp_sample"}]
    both = panels({"kind": "plot", "series": states}, {"kind": "plot", "series": stamps})
    found = view("ulog", state=f"{both}&cursor={5 * SECOND}")
    page = found.page
    assert page.get_attribute("#plots .frame .body", "data-lanes") == "3"
    found.shot("plot-states")
    drawing = ElementTree.fromstring(taken(found, "as SVG", tmp_path).read_text())
    tops = {
        one.get("y")
        for one in drawing.iter("{http://www.w3.org/2000/svg}rect")
        if one.get("fill-opacity") == "0.35"
    }
    assert len(tops) == 3
    text = page.locator("#plots .frame").nth(1).locator(".legend .value").inner_text()
    with logreel.open(content("ulog")) as log:
        gps = log["sensor_gps"]
        row = int(np.searchsorted(gps.times, log.start + 5 * SECOND, "right")) - 1
        expected = gps["timestamp_sample"][row] / 1e6
    assert float(text.removesuffix(" s")) == pytest.approx(expected, abs=1e-3)


def test_filters_and_expressions_across_topics(view: Any, tmp_path: Path) -> None:
    pytest.importorskip("duckdb", reason="duckdb is not installed")
    found = view("ulog", state=panels({"kind": "plot", "series": [VOLTAGE]}))
    page = found.page

    def derive(function: str, **fields: str) -> None:
        found.press("m")
        page.click(".menu button:has-text('Add a derived curve')")
        page.wait_for_selector("dialog[aria-label='Derived curve'][open]")
        page.get_by_label("Function", exact=True).select_option(function)
        for label, text in fields.items():
            page.get_by_label(label.replace("_", " ")).fill(text)
        page.click("dialog .main")
        page.wait_for_selector("dialog[aria-label='Derived curve']", state="detached")
        found.settle()

    derive("moving_mean", Number_of_the_function="2")
    derive("integral")
    derive("", SQL_expression="voltage_v - vehicle_local_position.z")
    found.settle()
    series = kept(page)[0]["series"]
    assert [one.get("function") or one.get("sql") for one in series[1:]] == [
        "moving_mean 2", "integral", "voltage_v - vehicle_local_position.z",
    ]  # fmt: skip
    names = page.locator("#plots .legend button.name").all_inner_texts()
    assert names[1] == "moving_mean(battery_status.voltage_v, 2)"
    rows = taken(found, "as CSV", tmp_path).read_text().splitlines()
    assert rows[0].split(",")[2:] == [
        '"moving_mean(voltage_v', ' 2)"', "integral(voltage_v)", "voltage_v - vehicle_local_position.z",
    ]  # fmt: skip
    with logreel.open(content("ulog")) as log:
        battery, place = log["battery_status"], log["vehicle_local_position"]
        at = place.times.searchsorted(battery.times, "right") - 1
        expected = battery["voltage_v"].astype(float) - np.where(at >= 0, place["z"][at], np.nan)
        volts, seconds = battery["voltage_v"].astype(float), battery.times / 1e9
    got = [row.split(",") for row in rows[1:]]
    np.testing.assert_allclose([float(row[-1]) if row[-1] else np.nan for row in got], expected, rtol=1e-6)
    near = np.abs(seconds - seconds[20]) <= 1
    assert float(got[20][2]) == pytest.approx(volts[near].mean(), rel=1e-9)
    assert float(got[-1][3]) == pytest.approx(np.trapezoid(volts, seconds), rel=1e-9)
    found.shot("plot-derived")


def test_xy_spectrogram_and_map_are_saved_at_twice_their_size(view: Any, tmp_path: Path) -> None:
    place = {"topic": "vehicle_local_position", "unit": "m"}
    xy = {"kind": "xy", "x": {**place, "field": "x"}, "y": {**place, "field": "y"}}
    waterfall = {"kind": "spectrogram", "topic": "sensor_accel", "field": "x"}
    found = view("ulog", state=panels(xy, waterfall))
    page = found.page
    frames = page.locator("#plots .frame")
    frames.nth(0).focus()
    found.press("m")
    page.click(".menu button:has-text('Same scale on both axes')")
    found.settle()
    across, up = map(float, page.get_attribute("#plots .frame .body", "data-scales").split())
    assert across == pytest.approx(up, rel=1e-4)
    assert kept(page)[0]["equal"] is True
    assert page.get_attribute("#plots .frame .body", "data-units") == "m m"
    bars = 26 + 20
    for number, entry in ((0, "plot as PNG"), (1, "plot as PNG"), (None, "Map as PNG")):
        box = page.locator("#panel-map .space") if number is None else frames.nth(number).locator(".body")
        if number is not None:
            frames.nth(number).focus()
        size = box.evaluate("({ clientWidth, clientHeight }) => [2 * clientWidth, 2 * clientHeight]")
        path = taken(found, entry, tmp_path)
        head = path.read_bytes()[16:24]
        width, height = int.from_bytes(head[:4], "big"), int.from_bytes(head[4:], "big")
        assert (width, height) == (size[0], size[1] + 2 * bars)
