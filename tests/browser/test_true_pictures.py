"""Nothing is drawn that was not measured, and nothing is missing: on logs that are built to be drawn wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from browser.pitfalls import EARLY, pitfalls


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
