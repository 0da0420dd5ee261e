"""Take away: files, pictures, layouts and links."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet
import pytest

import logreel
from browser.samples import content, sample

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
    found = view(sample("ulog", tmp_path))
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
    found = view(sample("ulog", tmp_path))
    found.page.locator("#plots .frame").first.focus()
    path = taken(found, "as PNG", tmp_path)
    head = path.read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    assert int.from_bytes(head[16:20], "big") > 400


def test_a_layout_is_saved_and_opens_again(view, tmp_path: Path) -> None:
    found = view(sample("ulog", tmp_path))
    found.find("battery voltage_v")
    layout = json.loads(taken(found, "layout", tmp_path).read_text())
    kinds = [panel["kind"] for panel in layout["panels"]]
    again = view(sample("ulog", tmp_path), layout=layout)
    assert again.page.locator("#plots .frame").count() == len(kinds)
    assert (
        again.page.locator("#plots .legend").all_inner_texts()
        == found.page.locator("#plots .legend").all_inner_texts()
    )


def test_the_link_opens_the_same_view(view, tmp_path: Path) -> None:
    found = view(sample("ulog", tmp_path))
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
