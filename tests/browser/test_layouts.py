"""Panels anywhere: split, dragged, moved, maximised; undone; kept by name; as layout files that fit other logs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from browser.samples import sample
from browser.test_panels import DRAWN, panels
from browser.test_plots import kept
from browser.test_takeaway import taken

VOLTAGE = {"kind": "plot", "title": "V", "series": [{"topic": "battery_status", "field": "voltage_v"}]}
CURRENT = {"kind": "plot", "title": "A", "series": [{"topic": "battery_status", "field": "current_a"}]}
ANGLE = {"topic": "vehicle_attitude", "field": "q", "function": "roll"}
ROLL = {"kind": "plot", "title": "R", "series": [ANGLE]}
THREE = panels(VOLTAGE, CURRENT, ROLL)


def places(page: Any) -> list[list[Any]]:
    """Return title, left and top in tenths of the column, width in tenths, of each panel in the order of the page."""
    found: list[list[Any]] = page.evaluate(
        """() => {
            const base = document.getElementById("plots").getBoundingClientRect();
            return [...document.querySelectorAll("#plots .frame:not([hidden])")].map((frame) => {
                const { left, top, width, height } = frame.getBoundingClientRect();
                const title = frame.querySelector("h2").firstChild?.textContent ?? "";
                return [title, (left - base.left) / base.width, (top - base.top) / base.height, width / base.width]
                    .map((value) => typeof value === "number" ? Math.round(10 * value) : value);
            });
        }"""
    )
    return found


def named(page: Any) -> list[list[str]]:
    return [[panel["title"], panel.get("at", "row")] for panel in kept(page)]


def carry(page: Any, source: Any, target: Any, x: float, y: float, drop: bool = True) -> None:
    """Drag the middle of an element to a place in another one, in parts of its size."""
    at, to = source.bounding_box(), target.bounding_box()
    page.mouse.move(at["x"] + min(at["width"] / 2, 20), at["y"] + at["height"] / 2)
    page.mouse.down()
    page.mouse.move(to["x"] + x * to["width"], to["y"] + y * to["height"], steps=5)
    if drop:
        page.mouse.up()


def choose(page: Any, title: str, entry: str) -> None:
    page.locator(f"#plots .frame[aria-label={title}]").get_by_title("Menu of this panel").click()
    page.get_by_role("menuitem", name=entry).click()


def test_a_heading_is_dragged_to_every_side_with_a_hint(view: Any) -> None:
    found = view("ulog", state=THREE)
    page = found.page
    frame = page.locator("#plots .frame")
    assert places(page) == [["V", 0, 0, 10], ["A", 0, 3, 10], ["R", 0, 7, 10]]
    carry(page, frame.nth(2).locator("h2"), frame.nth(0), 0.85, 0.5, drop=False)
    hint = page.locator("#plots .hint")
    assert hint.bounding_box()["width"] == pytest.approx(frame.nth(0).bounding_box()["width"] / 2, abs=2)
    found.shot("panel-dragged")
    page.mouse.up()
    found.settle()
    assert hint.is_hidden()
    assert [[*place[:2], place[3]] for place in places(page)] == [["V", 0, 5], ["R", 5, 5], ["A", 0, 10]]
    assert named(page) == [["V", "row"], ["R", "right"], ["A", "row"]]
    page.wait_for_function(DRAWN)
    # Plots beside each other have an axis of time each.
    assert page.locator("#plots .frame .foot canvas").count() == 2
    carry(page, frame.nth(2).locator("h2"), frame.nth(1), 0.5, 0.8)
    found.settle()
    assert named(page) == [["V", "row"], ["R", "right"], ["A", "below"]]
    page.wait_for_function(DRAWN)
    carry(page, frame.nth(0).locator("h2"), frame.nth(1), 0.9, 0.5)
    found.settle()
    assert named(page) == [["R", "row"], ["V", "right"], ["A", "row"]]
    # To the edge of a row: above all of it. Escape leaves all as it is.
    carry(page, frame.nth(2).locator("h2"), frame.nth(0), 0.5, 0.01)
    found.settle()
    assert named(page) == [["A", "row"], ["R", "row"], ["V", "right"]]
    carry(page, frame.nth(0).locator("h2"), frame.nth(2), 0.9, 0.5, drop=False)
    page.keyboard.press("Escape")
    page.mouse.up()
    assert named(page) == [["A", "row"], ["R", "row"], ["V", "right"]]
    page.wait_for_function(DRAWN)


def test_keys_move_and_maximise_a_panel(view: Any) -> None:
    found = view("ulog", state=THREE)
    page = found.page
    page.locator("#plots .frame").nth(1).focus()
    steps = {
        "ArrowRight": [["V", "row"], ["A", "right"], ["R", "row"]],
        "ArrowLeft": [["A", "row"], ["V", "right"], ["R", "row"]],
        "ArrowDown": [["V", "row"], ["A", "row"], ["R", "row"]],
        "ArrowUp": [["A", "row"], ["V", "row"], ["R", "row"]],
    }
    for key, expected in steps.items():
        found.press(f"Shift+Alt+{key}")
        assert named(page) == expected, key
        assert page.evaluate("document.activeElement.querySelector('h2').textContent")[0] == "A"
        page.wait_for_function(DRAWN)
    found.press("f")
    page.wait_for_function(DRAWN)
    assert page.locator("#plots .frame:visible").count() == 1
    assert page.locator("#plots .frame:visible").bounding_box()["width"] == 1440
    assert page.locator("#tree").is_hidden()
    found.shot("panel-maximised")
    found.press("Alt+ArrowDown")
    assert places(page)[0][0] == "V"
    page.wait_for_function(DRAWN)
    found.press("Escape")
    assert page.locator("#plots .frame:visible").count() == 3
    page.locator("#plots .frame h2").nth(2).dblclick()
    found.settle()
    assert [place[0] for place in places(page)] == ["R"]
    page.wait_for_function(DRAWN)
    page.locator("#plots .frame:visible h2").dblclick()
    found.settle()
    assert len(places(page)) == 3
    page.wait_for_function(DRAWN)


def test_panels_are_split_widened_and_resized(view: Any) -> None:
    found = view("ulog", state=THREE)
    page = found.page
    choose(page, "V", "New plot at the right")
    page.wait_for_selector("#plots .frame.chosen .sentence:visible")
    found.find("battery voltage_v")
    choose(page, "V", "New plot below")
    found.find("battery current_a")
    assert [at for _, at in named(page)] == ["row", "below", "right", "row", "row"]
    page.wait_for_function(DRAWN)
    bar = page.locator("#plots .split.between")
    assert bar.count() == 1
    bar.focus()
    for _ in range(8):
        page.keyboard.press("ArrowLeft")
    wide = page.locator("#plots .frame").nth(2).bounding_box()["width"]
    carry(page, bar, page.locator("#plots"), 0.25, 0.2)
    found.settle()
    assert page.locator("#plots .frame").nth(2).bounding_box()["width"] > wide + 50
    page.wait_for_function(DRAWN)
    # Between two panels below each other, their shares; at the end of a row, its height.
    before = page.locator("#plots .frame").nth(0).bounding_box()["height"]
    carry(page, page.locator("#plots .grip").nth(0), page.locator("#plots .frame").nth(1), 0.5, 0.3)
    found.settle()
    assert page.locator("#plots .frame").nth(0).bounding_box()["height"] > before + 10
    row = page.locator("#plots .frame").nth(2).bounding_box()["height"]
    carry(page, page.locator("#plots .grip").nth(2), page.locator("#plots .frame").nth(3), 0.5, 0.4)
    found.settle()
    assert page.locator("#plots .frame").nth(2).bounding_box()["height"] > row + 20
    page.wait_for_function(DRAWN)
    # A link brings all of it back.
    saved = kept(page)
    assert {"tall", "wide", "height"} <= {name for panel in saved for name in panel}
    again = view("ulog", state=f"panels={quote(json.dumps(saved))}")
    assert places(again.page) == places(page)
    again.page.wait_for_function(DRAWN)


def test_picture_and_map_stand_beside_each_other_on_a_laptop_and_there_are_two_maps(
    view: Any, tmp_path: Path
) -> None:
    found = view("rosbag", size=(1280, 800))
    page = found.page
    page.click("#tools button:has-text('Add panel')")
    page.get_by_role("menuitem", name="Map and pictures side by side").click()
    found.settle()
    (one, two) = places(page)[:2]
    assert [one[0], two[0]] == ["Map", "Pictures"]
    assert [one[1:], two[1:]] == [[0, 0, 5], [5, 0, 5]]
    page.wait_for_selector(".frame[data-kind=map] > [data-ready=yes]")
    page.wait_for_selector(".frame[data-kind=picture] > [data-ready=yes]")
    # What is sent shows both, and the scene: as they were drawn.
    page.click("#tab-scene")
    page.wait_for_selector("#panel-scene[data-ready=yes]")
    sent = taken(found, "What is seen as a page", tmp_path / "sent").read_text()
    images = re.findall(r'<h4>([^<]*)</h4><img [^>]*src="data:image/webp;base64,([^"]*)"', sent)
    assert [title for title, _ in images] == ["Map", "Pictures", "3D"]
    assert min(len(data) for _, data in images) > 2000
    # A second map is dragged out of its tab; the tab keeps its own.
    carry(page, page.locator("#tab-map"), page.locator("#plots .frame").nth(0), 0.9, 0.6)
    found.settle()
    page.wait_for_function(
        "() => document.querySelectorAll('.frame[data-kind=map] > [data-ready=yes]').length === 2"
    )
    assert [place[0] for place in places(page)[:3]] == ["Map", "Map", "Pictures"]
    heights = page.locator(".frame[data-kind=map] .space").evaluate_all(
        "(all) => all.map((one) => one.clientHeight)"
    )
    assert min(heights) > 100
    found.shot("two-maps-and-a-picture")


def test_on_a_phone_panels_beside_each_other_stand_below_each_other(view: Any) -> None:
    found = view("ulog", size=(414, 800), state=panels(VOLTAGE, {**CURRENT, "at": "right"}, ROLL))
    assert [place[3] for place in places(found.page)] == [10, 10, 10]
    found.page.wait_for_function(DRAWN)
    assert named(found.page)[1] == ["A", "right"]


def test_changes_are_undone_and_done_again(view: Any) -> None:
    found = view("ulog")
    page = found.page
    # To look at all plots is no change.
    for part in (0.3, 0.6, 1, 0):
        page.evaluate(
            f"() => {{ const e = document.getElementById('plots'); e.scrollTop = {part} * e.scrollHeight; }}"
        )
        found.settle()
    found.press("Control+z")
    assert "nothing to undo" in page.inner_text("#said")
    page.locator("#plots .frame").first.focus()
    states = [kept(page)]
    for keys in (("x",), ("Shift+Alt+ArrowRight",), ("Shift+Alt+ArrowDown",)):
        found.press(*keys)
        states.append(kept(page))
    found.find("battery voltage_v")
    states.append(kept(page))
    page.locator("#plots .frame .legend button").first.click()
    states.append(kept(page))
    assert len({json.dumps(state) for state in states}) == 6

    for state in states[-2::-1]:
        found.press("Control+z")
        assert kept(page) == state
        page.wait_for_function(DRAWN)
    for state in states[1:]:
        found.press("Control+Shift+z")
        assert kept(page) == state
    found.press("Control+z")
    page.wait_for_function(DRAWN)
    # All panels at once are one step, without waiting for the address.
    page.click("#tools button:has-text('Layout')")
    page.get_by_role("menuitem", name="Plots that fit this log").click()
    found.settle()
    assert kept(page) == states[0]
    found.press("Control+z")
    assert kept(page) == states[-2]
    # In a box for text the keys are those of the browser.
    page.focus("#tree input")
    page.keyboard.press("Control+z")
    assert kept(page) == states[-2]


def layout_menu(page: Any, entry: str) -> None:
    page.click("#tools button:has-text('Layout')")
    page.locator(".menu button", has_text=re.compile(rf"^[✓\s]*{re.escape(entry)}$")).click()


def test_layouts_with_names_are_kept_for_a_kind_of_vehicle(
    view: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGREEL_DATA", str(tmp_path / "data"))
    found = view(sample("ulog", tmp_path), state=THREE)
    page = found.page

    def name(text: str) -> None:
        page.keyboard.type(text)
        page.keyboard.press("Enter")
        page.wait_for_selector("dialog[open]", state="detached")
        found.settle()

    layout_menu(page, "Save as…")
    name("three <b>")
    found.press("x")
    layout_menu(page, "Save as…")
    page.keyboard.press("Control+a")
    name("two")
    layout_menu(page, "three <b>")
    found.settle()
    assert len(places(page)) == 3
    layout_menu(page, "two")
    found.settle()
    assert len(places(page)) == 2
    page.wait_for_function(DRAWN)
    layout_menu(page, "Rename…")
    page.keyboard.press("Control+a")
    name("pair")
    # They are there after a reload, below the kind of vehicle, with the chosen one marked when it is chosen again.
    page.reload()
    page.wait_for_selector("html[data-ready=yes]")
    page.click("#tools button:has-text('Layout')")
    texts = [text.strip() for text in page.locator(".menu > *").all_inner_texts()]
    assert "Layouts for ulog rotary wing" in texts
    assert {"pair", "three <b>"} <= {*texts}
    assert "two" not in texts
    found.shot("menu-of-layouts")
    page.keyboard.press("Escape")
    layout_menu(page, "pair")
    found.settle()
    # Logs of the kind begin with it, without a click: in a viewer with another port, too, which this browser never saw.
    layout_menu(page, "Begin with it")
    found.settle()
    assert page.evaluate("localStorage.getItem('logreel.layouts')") is None
    found = view(sample("ulog", tmp_path))
    page = found.page
    assert len(places(page)) == 2
    layout_menu(page, "pair")
    found.settle()
    layout_menu(page, "Delete")
    page.wait_for_function("() => document.getElementById('said').textContent.startsWith('Deleted')")
    stored = json.loads((tmp_path / "data/layouts.json").read_text())["layouts"]
    assert [*stored["ulog rotary wing"]] == ["three <b>"]
    assert stored["ulog rotary wing"]["three <b>"]["panels"][2]["series"][0]["means"] == "roll"
    # A viewer that may not write leaves them to the browser, as another one did before.
    page.route("**/api/layouts", lambda route: route.fulfill(status=500, json={"error": "read-only"}))
    layout_menu(page, "Save as…")
    name("here")
    page.wait_for_function("() => localStorage.getItem('logreel.layouts')")
    page.unroute("**/api/layouts")
    found.errors.clear()
    page.reload()
    page.wait_for_selector("html[data-ready=yes]")
    layout_menu(page, "here")
    # Only a layout that is applied can be what logs begin with.
    found.settle()
    layout_menu(page, "Begin with it")
    page.wait_for_function("() => !localStorage.getItem('logreel.layouts').includes('here')")
    stored = json.loads((tmp_path / "data/layouts.json").read_text())
    assert ([*stored["layouts"]["ulog rotary wing"]], stored["begin"]) == (
        ["three <b>", "here"], {"ulog rotary wing": "here"},
    )  # fmt: skip
    # What somebody else wrote there does no harm.
    page.evaluate('localStorage.setItem(\'logreel.layouts\', \'{"ulog rotary wing": {"bad": 5}, "x": 7}\')')
    layout_menu(page, "bad")
    page.evaluate("localStorage.setItem('logreel.layouts', 'nonsense')")
    page.click("#tools button:has-text('Layout')")
    assert page.locator(".menu button", has_text="bad").count() == 0


OF_A_FLIGHT = {
    "logreel": "layout",
    "version": 2,
    "panels": [
        {"kind": "plot", "title": "gone", "height": 300, "series": [{"topic": "nothing", "field": "x"}]},
        {**ROLL, "at": "right", "wide": 2, "series": [{**ANGLE, "means": "roll"}]},
        {"kind": "picture"},
        {
            "kind": "xy",
            "title": "XY",
            "at": "right",
            "x": {"means": "acceleration x"},
            "y": {"means": "acceleration y"},
        },
        {"kind": "spectrogram", "at": "below", "title": "S", "means": "acceleration z"},
        {"kind": "map"},
        {"kind": "plot", "title": "empty", "at": "right", "series": []},
    ],
}


@pytest.mark.parametrize("name", ["ulog", "rosbag", "mcap"])
def test_a_layout_shows_what_each_log_has_of_it(view: Any, tmp_path: Path, name: str) -> None:
    found = view(sample(name, tmp_path), layout=OF_A_FLIGHT)
    page = found.page
    shown = [[panel.get("title") or panel["kind"], panel.get("at", "row")] for panel in kept(page)]
    expected = {
        "ulog": [["R", "row"], ["XY", "row"], ["S", "below"], ["map", "row"], ["empty", "right"]],
        "rosbag": [
            ["R", "row"],
            ["picture", "row"],
            ["XY", "right"],
            ["S", "below"],
            ["map", "row"],
            ["empty", "right"],
        ],
        "mcap": [["XY", "row"], ["S", "below"], ["map", "row"], ["empty", "right"]],
    }[name]
    # Panels below each other with nothing beside them are rows.
    if name != "rosbag":
        expected = [[title, "row" if at == "below" else at] for title, at in expected]
    assert shown == expected
    lacks = page.inner_text("#said")
    assert "This log lacks nothing.x" in lacks
    assert ("vehicle_attitude.q" in lacks) == (name == "mcap")
    assert ("Pictures" in lacks) == (name != "rosbag")
    page.click("#tools button:has-text('Layout')")
    assert lacks in page.locator(".menu").inner_text()
    page.keyboard.press("Escape")
    assert page.locator("#plots .sentence.bad:visible").count() == 0


def test_a_layout_file_is_opened_in_the_page(view: Any, tmp_path: Path) -> None:
    found = view("ulog", state=THREE)
    page = found.page
    saved = taken(found, "layout", tmp_path)
    layout = json.loads(saved.read_text())
    assert (layout["version"], layout["vehicle"]) == (2, "ulog rotary wing")
    means = [panel["series"][0]["means"] for panel in layout["panels"]]
    assert means == ["battery voltage", "battery current", "roll"]

    def give(text: str) -> str:
        path = tmp_path / "given.json"
        path.write_text(text)
        with page.expect_file_chooser() as chooser:
            layout_menu(page, "Open a layout file…")
        page.evaluate("document.getElementById('said').textContent = ''")
        chooser.value.set_files(path)
        page.wait_for_function("() => document.getElementById('said').textContent")
        found.settle()
        return str(page.inner_text("#said"))

    for wrong in ("", "[]", '{"panels": 5}', '{"version": 9, "panels": []}', '{"panels": [{"kind": 5}]}'):
        assert "given.json is no layout" in give(wrong)
        assert len(places(page)) == 3
    layout["panels"] = [layout["panels"][2], {**layout["panels"][0], "at": "right"}, {"kind": "nonsense"}]
    assert "Opened given.json" in give(json.dumps(layout))
    assert [place[0] for place in places(page)][:2] == ["R", "V"]
    assert "there is no panel" in page.inner_text("#plots .frame[data-kind=nonsense] .sentence")
    found.press("Control+z")
    assert [place[0] for place in places(page)] == ["V", "A", "R"]
    page.wait_for_function(DRAWN)
    # The page warns in the console of a panel that it does not know.
    found.errors.clear()
