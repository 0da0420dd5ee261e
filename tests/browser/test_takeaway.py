"""Take away: files, pictures, layouts and links."""

from __future__ import annotations

import json
import zlib
from base64 import urlsafe_b64encode
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import pyarrow.csv
import pyarrow.parquet
import pytest

import logreel
from browser.samples import content, sample
from browser.test_panels import panels
from support.builders.pitfalls import pitfalls

SECOND = 10**9


def taken(found, text: str, folder: Path) -> Path:
    """Choose an entry of the menu; return the file that the browser saved."""
    page = found.page
    page.click("#tools button[aria-haspopup]:has-text('Take away')")
    with page.expect_download() as download:
        page.click(f".menu button:has-text({text!r})")
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


@pytest.mark.parametrize("name", ["ulog", "rosbag"])
def test_the_interval_as_a_log_has_the_bytes_of_slice(view, tmp_path: Path, name: str) -> None:
    source = sample(name, tmp_path)
    with logreel.open(source) as log:
        start = log.start
    found = view(source, state=f"window=%5B{1 * SECOND}%2C{3 * SECOND}%5D")
    got = taken(found, "as a log", tmp_path)
    expected = tmp_path / f"expected{source.suffix}"
    logreel.slice(source, expected, start=start + SECOND, end=start + 3 * SECOND)
    assert got.read_bytes() == expected.read_bytes()
    assert len(got.read_bytes()) < len(content(name))


def test_the_plotted_fields_are_saved_as_csv_and_parquet(view, tmp_path: Path) -> None:
    found = view("ulog")
    page = found.page
    while page.locator("#plots .frame").count():
        page.locator("#plots .frame").first.focus()
        page.keyboard.press("x")
    found.find("battery voltage_v")
    csv = pyarrow.csv.read_csv(taken(found, "as CSV", tmp_path))
    parquet = pyarrow.parquet.read_table(taken(found, "as Parquet", tmp_path))
    with logreel.open(content("ulog")) as log:
        values = log["battery_status"]["voltage_v"].tolist()
    assert parquet["voltage_v"].to_pylist() == values
    assert csv["voltage_v"].to_pylist() == pytest.approx(values)


def test_a_plot_is_saved_as_png(view, tmp_path: Path) -> None:
    found = view("ulog")
    found.page.locator("#plots .frame").first.focus()
    path = taken(found, "as PNG", tmp_path)
    head = path.read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    assert int.from_bytes(head[16:20], "big") > 400


def test_a_layout_is_saved_and_opens_again(view, tmp_path: Path) -> None:
    found = view("ulog")
    found.find("battery voltage_v")
    layout = json.loads(taken(found, "layout", tmp_path).read_text())
    kinds = [panel["kind"] for panel in layout["panels"]]
    again = view(sample("ulog", tmp_path), layout=layout)
    assert again.page.locator("#plots .frame").count() == len(kinds)
    assert (
        again.page.locator("#plots .legend").all_inner_texts()
        == found.page.locator("#plots .legend").all_inner_texts()
    )


def test_the_link_opens_the_same_view(view) -> None:
    found = view("ulog")
    page = found.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    found.press("+", "+")
    page.click("#tools button:has-text('Take away')")
    page.click(".menu button:has-text('link')")
    page.wait_for_selector("#said.on")
    link = page.evaluate("navigator.clipboard.readText()")
    other = page.context.new_page()
    other.goto(link)
    other.wait_for_selector("html[data-ready=yes]")
    text = "document.querySelector('#timeline canvas').getAttribute('aria-valuetext')"
    assert other.evaluate(text) == page.evaluate(text)
    other.close()


def test_files_hold_what_is_seen(view, tmp_path: Path) -> None:
    pytest.importorskip("duckdb", reason="duckdb is not installed")
    path = tmp_path / "pitfalls.ulg"
    path.write_bytes(pitfalls())
    voltage = {"topic": "battery_status", "field": "voltage_v", "unit": "V"}
    inverted = {**voltage, "function": "negative", "unit": ""}
    wrong = {"topic": "battery_status", "sql": "voltage_v * nothing"}
    one = {"kind": "plot", "title": "Battery", "series": [voltage, inverted, wrong]}
    cursors = f"cursor={9 * SECOND}&cursor2={25 * SECOND}"
    found = view(path, state=f"{panels(one)}&{cursors}")
    page = found.page
    page.wait_for_selector("#timeline canvas[data-ready=yes]")
    # A wrong expression says why, beside the curves that can be drawn.
    assert 'column "nothing" not found' in page.inner_text("#plots .legend .why")
    # The key for the theme leaves the cursors where they are.
    lines = "[...document.querySelectorAll('#plots .line:not([hidden])')].map((one) => one.style.transform)"
    before = page.evaluate(lines)
    assert len(before) == 2
    for _ in range(2):
        found.press("t")
        assert page.evaluate(lines) == before
    page.locator("#plots .frame").first.focus()
    drawing = ElementTree.fromstring(taken(found, "as SVG", tmp_path).read_text())
    texts = [text.strip() for text in drawing.itertext() if text.strip()]
    for text in ("Battery", "0", "20", "35", "9.00", "25.00", "Position", "Mission", "s"):
        assert text in texts, text
    assert any("negative(battery_status.voltage_v) -15.55" in text for text in texts)
    assert any("15.55 V" in text for text in texts)
    classes = Counter(one.get("class") for one in drawing.iter())
    assert (classes["cursor"], classes["gap"], classes["curve"]) == (2, 1, 3)
    curve = next(one for one in drawing.iter() if one.get("class") == "curve")
    assert curve.get("d").count("M") == 2
    picture = taken(found, "as PNG", tmp_path).read_bytes()
    size = [int.from_bytes(picture[at : at + 4], "big") for at in (16, 20)]
    assert size == [2 * float(drawing.get(name)) for name in ("width", "height")]
    table = pyarrow.csv.read_csv(taken(found, "as CSV", tmp_path))
    assert table.column_names == ["time_ns", "voltage_v", "negative(voltage_v)"]
    with logreel.open(path) as log:
        volts = log["battery_status"]["voltage_v"].astype(float)
        assert table["time_ns"].to_pylist() == log["battery_status"].times.tolist()
    assert table["negative(voltage_v)"].to_pylist() == pytest.approx((-volts).tolist())
    # The keys for texts obey the filter of the texts.
    page.select_option("#panel-text select[aria-label=Level]", "3")
    found.settle()
    page.locator("#plots .frame").first.focus()
    found.press("Home", "n")
    assert "No text" not in page.inner_text("#said")
    assert found.cursor == pytest.approx(0, abs=0.01)
    page.select_option("#panel-text select[aria-label=Level]", "")
    page.locator("#plots .frame").first.focus()
    found.press("n")
    assert found.cursor == pytest.approx(20, abs=0.01)


def test_a_wrong_expression_is_said_in_its_form(view) -> None:
    pytest.importorskip("duckdb", reason="duckdb is not installed")
    found = view(
        "ulog",
        state=panels({"kind": "plot", "series": [{"topic": "sensor_accel", "field": "x"}]}),
    )
    page = found.page
    page.locator("#plots .frame").first.focus()
    page.keyboard.press("m")
    page.click(".menu button:has-text('derived')")
    page.fill("dialog[open] textarea", "no_such_column + 1")
    page.click("dialog[open] button.main")
    page.wait_for_selector("dialog[open] p.bad")
    assert "no_such_column" in page.inner_text("dialog[open] p.bad")
    page.fill("dialog[open] textarea", "x * 2")
    page.click("dialog[open] button.main")
    page.wait_for_function("() => document.querySelector('#plots .legend').children.length === 2")


def address(page: Any) -> str:
    """Return the fragment of the address, once it is written."""
    page.wait_for_timeout(700)
    return str(page.evaluate("location.hash"))


def seen(page: Any) -> list[str]:
    return [title.split(" [")[0] for title in page.locator("#plots .frame h2").all_inner_texts()]


def test_a_link_is_short_and_opens_the_same_view_elsewhere(view, tmp_path: Path) -> None:
    path = sample("ulog", tmp_path)
    found = view(path, dark=True)
    assert address(found.page) == "#f=flight.ulg"
    found.press("+", "c", "t", "x")
    found.find("battery voltage_v")
    short = address(found.page)
    assert len(short) <= 200, short
    titles, window = seen(found.page), found.window
    # Another viewer, which has a token of its own, of a file with that name among others.
    (tmp_path / "other").mkdir()
    (tmp_path / "other/flight.ulg").write_bytes(path.read_bytes())
    bag = sample("rosbag", tmp_path)
    other = view(tmp_path / "other/flight.ulg", bag, keep=False)
    assert other.window != window
    with other.page.expect_navigation(wait_until="load"):
        other.page.evaluate("(hash) => { location.hash = hash; }", f"#token=of-another&{short[1:]}")
    other.page.wait_for_selector("html[data-ready=yes]")
    other.settle()
    assert (seen(other.page), other.window) == (titles, window)
    assert other.page.get_attribute("html", "data-theme") == "light"
    # The one refused token is all that may be in the console.
    assert [error for error in other.errors if "401" not in error] == []


def test_a_link_of_other_files_says_so_and_one_with_nonsense_opens_the_usual_view(
    view, tmp_path: Path
) -> None:
    path = sample("ulog", tmp_path)
    usual = seen(view(path).page)
    bomb = urlsafe_b64encode(zlib.compress(b"[" * (64 << 20), wbits=-15)).decode()
    found = view(
        path, state=f"f=%3Cb%3Eold.ulg&f=flight.ulg&panels=~{bomb[:60000]}&window=~AAAA&theme=~&sizes=[[["
    )
    assert "old.ulg" in found.page.inner_text("#said")
    assert seen(found.page) == usual
    found = view(path, state="panels=[1,%22900-901%22,[7000,{}],%22x%22]")
    assert seen(found.page) == usual
    found = view(path, state="panels=[%221-2%22,999,[0,{%22title%22:%22Mine%22}]]")
    assert seen(found.page) == [*usual[1:3], "Mine"]


def test_what_is_seen_is_one_page_that_loads_nothing(view, browser, tmp_path: Path) -> None:
    path = sample("ulog", tmp_path)
    notes = logreel.notes(path)
    notes.add("2s", "In sight", colour="red")
    notes.add("9s", "Later")
    notes.save()
    battery = {"topic": "battery_status"}
    power = {**battery, "sql": "voltage_v * current_a", "label": "power", "unit": "W"}
    hidden = {**battery, "field": "current_a", "hidden": True}
    shown = [
        {"kind": "plot", "title": "</script>Power", "series": [power, hidden]},
        {"kind": "plot", "title": "Voltage", "series": [{**battery, "field": "voltage_v"}], "y": [0, 20]},
        {"kind": "xy", "title": "Way", **{a: {"topic": "vehicle_local_position", "field": a} for a in "xy"}},
        {"kind": "xy", "title": "Half", "at": "right", "x": {**battery, "field": "voltage_v"}},
        {"kind": "array", "topic": "vehicle_attitude", "field": "q"},
        {"kind": "spectrogram", "at": "right", "topic": "sensor_accel", "field": "x"},
        {"kind": "table", "at": "right", "topic": "battery_status"},
    ]
    state = f"panels={quote(json.dumps(shown))}&window=[{1 * SECOND},{4 * SECOND}]&cursor={3 * SECOND}"
    file = taken(view(path, state=state), "What is seen as a page", tmp_path / "saved")
    assert file.name == "flight.ulg.html"
    requests: list[str] = []
    page = browser.new_page()
    page.on("request", lambda request: requests.append(request.url))
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-ready=true]")
    page.wait_for_selector("figure[data-live] >> nth=1")
    assert requests == [file.as_uri()]
    assert page.locator("nav a").all_inner_texts()[:2] == ["Findings", "Notes"]
    assert "Parameters" not in page.locator("nav").inner_text()
    assert page.locator("#notes b").all_inner_texts() == ["In sight"]
    assert [one.split(" [")[0] for one in page.locator("figure h4, figcaption").all_inner_texts()][:2] == [
        "</script>Power", "Voltage"
    ]  # fmt: skip
    # What only the viewer draws is a picture; nothing is left out without a word.
    figures = page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll("#charts figure:not([data-live])")].map((one) => [
            one.querySelector("h4").textContent.split(" ")[0], [one.querySelectorAll("svg path").length,
            one.querySelector("img")?.naturalWidth ?? 0, one.querySelector("p").textContent]]))"""
    )
    assert [*figures] == ["Way", "Half", "vehicle_attitude.q", "Spectrogram", "Map"]
    assert figures["Way"][0] == 12
    assert "with a dot at the cursor" in figures["Way"][2]
    assert figures["Half"] == [0, 0, "This plot had no two fields of this log."]
    assert figures["vehicle_attitude.q"][0] == 1
    assert "4 values" in figures["vehicle_attitude.q"][2]
    assert min(figures["Spectrogram"][1], figures["Map"][1]) > 300
    assert figures["Map"][2] == "A still picture of what was seen at 3.00 s."
    assert page.locator("#charts > .note").inner_text() == "Seen, but not on this page: Table."
    span, curves = page.evaluate(
        """[data.span, data.panels.filter(({ curves }) => curves.length)
            .map(({ curves }) => curves.map(({ name, values }) => [name, values.length]))]"""
    )
    assert span == pytest.approx([1, 4])
    assert [[name for name, _ in panel] for panel in curves] == [["power"], ["voltage_v"]]
    with logreel.open(path) as log:
        inside = log["battery_status"].to_arrow(start="1s", end="4s").num_rows
    assert curves[1][0][1] == inside
    page.close()
