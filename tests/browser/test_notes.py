"""Notes in the viewer: flags, the list in the findings, keys, and the file beside the log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import logreel
from browser.samples import sample

SECOND = 10**9


def beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.notes.json")


def write(found: Any, key: str, title: str) -> None:
    """Add a note by a key."""
    found.page.keyboard.press(key)
    found.page.fill("dialog.note input[aria-label=Title]", title)
    found.page.select_option("dialog.note select", "red")
    found.page.click("dialog.note .main")
    found.page.wait_for_selector("dialog.note", state="detached")


def flag(found: Any, second: float, whole: float) -> list[int]:
    """Return the colour in the strip of time where the flag of a moment would be."""
    return found.page.evaluate(
        """(share) => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => {
            const canvas = document.querySelector("#timeline canvas"), ratio = canvas.width / canvas.clientWidth;
            const pixel = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
            const pen = pixel.getContext("2d", { willReadFrequently: true });
            const left = Math.round(share * canvas.clientWidth * ratio + 3 * ratio);
            pen.drawImage(canvas, -left, -Math.round(20.5 * ratio));
            done([...pen.getImageData(0, 0, 1, 1).data]);
        })))""",
        second / whole,
    )


def test_a_note_is_made_shown_changed_and_removed(view, tmp_path: Path) -> None:
    path = sample("ulog", tmp_path)
    with logreel.open(path) as log:
        start, whole = log.start, log.duration / SECOND
    found = view(path, state=f"window=%5B{2 * SECOND}%2C{4 * SECOND}%5D&cursor={3 * SECOND}")
    page = found.page
    before = flag(found, 3, whole)
    write(found, "b", "<b>Bump</b>")
    write(found, "Shift+B", "Span")
    (span, moment) = logreel.notes(path)
    assert (moment.begin - start, moment.end, moment.title) == (3 * SECOND, None, "<b>Bump</b>")
    assert (span.begin - start, span.end - start, span.colour) == (2 * SECOND, 4 * SECOND, "red")
    titles = page.locator("#lower .noted .what")
    assert titles.all_inner_texts() == ["Span", "<b>Bump</b>"]
    assert flag(found, 3, whole) != before
    # A click shows the note from elsewhere; a flag in the strip sets the cursor to its moment.
    found.press("0")
    page.click("#lower .noted .finding >> nth=0")
    found.settle()
    assert found.window == (1 * SECOND, 5 * SECOND)
    assert found.cursor == 2
    found.press("0")
    box = page.locator("#timeline canvas").bounding_box()
    page.mouse.click(box["x"] + 3 / whole * box["width"] + 6, box["y"] + 20)
    found.settle()
    assert found.cursor == 3
    page.click("#lower .noted .change >> nth=1")
    page.fill("dialog.note textarea", "more")
    page.click("dialog.note .main")
    page.wait_for_selector("dialog.note", state="detached")
    assert [note.text for note in logreel.notes(path)] == ["", "more"]
    page.click("#lower .noted .change >> nth=1")
    page.click("dialog.note button:has-text('Remove')")
    page.wait_for_selector("dialog.note", state="detached")
    assert [note.title for note in logreel.notes(path)] == ["Span"]
    # What another program wrote is there after a reload, too.
    notes = logreel.notes(path)
    notes.add("1s", "From outside")
    notes.save()
    page.reload()
    page.wait_for_selector("#lower .noted >> nth=1")
    assert titles.all_inner_texts() == ["From outside", "Span"]


def test_notes_that_cannot_be_written_stay_in_the_page_and_can_be_saved(view, tmp_path: Path) -> None:
    path = sample("ulog", tmp_path)
    beside(path).write_text("not of logreel")
    found = view(path, state=f"cursor={3 * SECOND}")
    page = found.page
    page.keyboard.press("b")
    assert "stays in this page" in page.inner_text("dialog.note")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog.note", state="detached")
    write(found, "b", "Mine")
    assert "Kept in this page only" in page.inner_text("#said")
    assert page.inner_text("#lower .noted .what") == "Mine"
    page.click("#tools button[aria-haspopup]:has-text('Take away')")
    with page.expect_download() as download:
        page.click(".menu button:has-text('Notes as a file')")
    assert download.value.suggested_filename == "flight.ulg.notes.json"
    download.value.save_as(tmp_path / "saved")
    assert beside(path).read_text() == "not of logreel"
    (tmp_path / "saved").replace(beside(path))
    (note,) = logreel.notes(path)
    assert note.title == "Mine"
    assert json.loads(beside(path).read_text())["log"]["name"] == "flight.ulg"
