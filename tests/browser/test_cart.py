"""A robot with a lidar, a camera, a model and states: what the page shows of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browser.test_space import colours, data, move_to, pixels, ready, state
from support.samples.rosbag.cart import cart, head_stl


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cart") / "cart.bag"
    path.write_bytes(cart())
    return path


def choose(found: Any, panel: str, button: str, entry: str) -> None:
    """Choose an entry of a menu of a panel."""
    found.page.click(f"#panel-{panel} .tool button:has-text('{button}')")
    found.page.click(f".menu button >> text=/^(✓| )*{entry}$/")
    found.settle()


def shown(view: Any, log: Path, topic: str, dark: bool) -> Any:
    """Open a page that shows one topic in 3D: chosen in the menu in the light, by the link in the dark."""
    found = view(
        log, state=state("scene", 2, **({"tabs": {"scene": {"topics": [topic]}}} if dark else {})), dark=dark
    )
    ready(found, "scene")
    if not dark:
        only(found, topic)
    return found


def only(found: Any, *topics: str) -> None:
    """Show nothing but *topics* in 3D."""
    for entry in ("/tf", "/tf_static", "/points", "/objects", "/robot_description"):
        found.page.click("#panel-scene .tool button:has-text('Show')")
        one = found.page.locator(f".menu button >> text=/^(✓| )*{entry}$/")
        if one.count() and (one.get_attribute("aria-checked") == "true") != (entry in topics):
            one.click()
        else:
            found.page.keyboard.press("Escape")
        found.settle()


@pytest.mark.parametrize("dark", [False, True])
def test_points_are_coloured_by_a_field_and_stay(view, log: Path, dark: bool) -> None:
    found = shown(view, log, "/points", dark)
    usual = pixels(found, "#panel-scene .space")
    assert "intensity 0" in found.page.inner_text("#panel-scene .notes")
    choose(found, "scene", "Points", "ring")
    ring = pixels(found, "#panel-scene .space")
    assert "ring 0" in found.page.inner_text("#panel-scene .notes")
    assert (ring != usual).any()
    choose(found, "scene", "Points", "6 px")
    large = pixels(found, "#panel-scene .space")
    changed = (large != ring).any(axis=2).mean()
    assert changed > 0.005
    choose(found, "scene", "Points", "1 s")
    choose(found, "scene", "Points", "One colour")
    found.shot(f"cart-points-{'dark' if dark else 'light'}")
    plain = pixels(found, "#panel-scene .space")
    assert "ring" not in found.page.inner_text("#panel-scene .notes")
    assert colours(plain) < colours(large)


def test_how_points_look_is_part_of_the_link(view, log: Path) -> None:
    look = {"colour": "z", "size": 4, "decay": 1}
    found = view(log, state=state("scene", 2, tabs={"scene": {"points": look, "topics": ["/points"]}}))
    ready(found, "scene")
    assert "/points: z " in found.page.inner_text("#panel-scene .notes")
    asked = [one for one in found.requests if "/scene?" in one]
    assert any("color=z" in one and "decay=1000" in one for one in asked)
    before = data(found, "scene", "time")
    move_to(found, 3)
    found.page.wait_for_function(
        "(t) => document.getElementById('panel-scene').dataset.time !== t", arg=before
    )
    found.shot("cart-points-z")
    assert np.ptp(pixels(found, "#panel-scene .space").reshape(-1, 3), axis=0).max() > 100


def test_detections_and_points_are_drawn_on_the_picture(view, log: Path) -> None:
    found = view(log, state=state("picture", 2))
    ready(found, "picture")
    overlay = "#panel-picture canvas.overlay"
    found.page.wait_for_selector(f"{overlay}[data-boxes='1']")
    boxed = pixels(found, "#panel-picture .shot .image").astype(int)
    found.shot("cart-detections")
    choose(found, "picture", "Draw", "/points")
    found.page.wait_for_selector(f"{overlay}[data-points='325']")
    found.shot("cart-picture-points")
    assert "distance [m] 8" in found.page.inner_text("#panel-picture .drawn")
    with_points = pixels(found, "#panel-picture .shot .image").astype(int)
    assert (boxed != with_points).any(axis=2).mean() > 0.01
    # The middle of the wall is in the middle of the picture, whose right edge shows nothing.
    choose(found, "picture", "Draw", "ring")
    assert "ring 0" in found.page.inner_text("#panel-picture .drawn")
    choose(found, "picture", "Draw", "/points")
    choose(found, "picture", "Draw", "/objects")
    found.page.wait_for_selector(f"{overlay}[data-solids='1']")
    found.shot("cart-solids")
    solid = pixels(found, "#panel-picture .shot .image").astype(int)
    assert (solid != boxed).any(axis=2).mean() > 0.005
    choose(found, "picture", "Draw", "/objects")
    choose(found, "picture", "Draw", "/detections")
    bare = pixels(found, "#panel-picture .shot .image")
    assert colours(bare) < 4
    # The box is 20 of 64 columns wide and around the middle.
    columns = np.flatnonzero((boxed != bare).any(axis=(0, 2)))
    high, wide = bare.shape[:2]
    scale = min(wide / 64, high / 48)
    assert columns[-1] - columns[0] == pytest.approx(20 * scale, abs=8)


def test_boxes_in_space_have_their_names(view, log: Path) -> None:
    found = view(log, state=state("scene", 2))
    ready(found, "scene")
    found.shot("cart-scene")
    assert "3 0.50" in found.page.inner_text("#panel-scene .space")
    with_box = pixels(found, "#panel-scene .space")
    choose(found, "scene", "Show", "/objects")
    assert (pixels(found, "#panel-scene .space") != with_box).any(axis=2).mean() > 0.002


@pytest.mark.parametrize("dark", [False, True])
def test_a_robot_is_drawn_and_its_meshes_come_from_the_folder(
    view, log: Path, tmp_path: Path, dark: bool
) -> None:
    found = shown(view, log, "/robot_description", dark)
    assert "Meshes (head.stl) are not drawn" in found.page.inner_text("#panel-scene .notes")
    bare = pixels(found, "#panel-scene .space")
    red, green, blue = np.moveaxis(bare.astype(int), -1, 0)
    assert ((red > 2 * green + 30) & (red > 2 * blue + 30)).sum() > 300
    assert ((blue > red + 50) & (blue > green + 50)).sum() > 20
    meshes = tmp_path / "share" / "cart" / "meshes"
    meshes.mkdir(parents=True)
    (meshes / "head.stl").write_bytes(head_stl())
    tabs = {"scene": {"topics": ["/robot_description"]}}
    found = view(log, state=state("scene", 2, tabs=tabs), dark=dark, meshes=str(tmp_path / "share"))
    ready(found, "scene")
    assert "Meshes" not in found.page.inner_text("#panel-scene .notes")
    assert any("/mesh?" in one and "head" not in one for one in found.requests)
    found.shot(f"cart-robot-{'dark' if dark else 'light'}")
    assert (pixels(found, "#panel-scene .space") != bare).any(axis=2).mean() > 0.002


def panel(kind: str, seconds: float, **settings: Any) -> str:
    return state("scene", seconds, panels=[{"kind": kind, **settings, "height": 400}])


def rows(found: Any) -> list[list[str]]:
    script = "(rows) => rows.map((row) => [...row.cells].map((cell) => cell.innerText))"
    return found.page.eval_on_selector_all("#plots tbody tr", script)


def test_table_of_messages_follows_the_cursor(view, log: Path) -> None:
    found = view(log, state=panel("table", 2, topic="/tf"))
    found.page.wait_for_selector("#plots .body[data-ready=yes]")
    found.page.wait_for_selector("#plots tr[aria-current=true]")
    found.shot("cart-table")
    assert found.page.get_attribute("#plots tr[aria-current=true]", "data-row") == "20"
    found.page.click("#plots tr[data-row='18']")
    found.settle()
    assert found.cursor == pytest.approx(1.8, abs=0.01)
    found.page.wait_for_selector("#plots tr[data-row='18'][aria-current=true]")
    move_to(found, 3.9)
    found.page.wait_for_selector("#plots tr[data-row='39'][aria-current=true]")
    row = next(cells for cells in rows(found) if cells[0] == "40")
    assert row[1] == "3.900"
    assert "child_frame_id: base_link" in row[2]


def test_diagnostics_are_listed_the_worst_first(view, log: Path) -> None:
    found = view(log, state=panel("diagnostics", 2))
    found.page.wait_for_selector("#plots .body[data-ready=yes] tbody tr")
    found.shot("cart-diagnostics")
    levels = [[row[0], row[1].lstrip("▸ "), row[2], row[3]] for row in rows(found)]
    assert levels == [
        ["error", "motor", "too hot", "1.500"],
        ["warning", "lidar", "dirty", "0.500"],
        ["good", "battery", "12.1 V", "0.500"],
    ]
    found.page.click("#plots button:has-text('motor')")
    assert ["", "tick", "15"] in [row[:3] for row in rows(found)]
    move_to(found, 3.8)
    found.page.wait_for_function("() => !document.querySelector('#plots tr[data-level=error]')")
    found.page.click("#plots tr:has-text('motor') button[title*='began']")
    found.settle()
    assert found.cursor == pytest.approx(3.5, abs=0.01)


def test_tree_of_frames_has_rates_and_ages_at_the_cursor(view, log: Path) -> None:
    found = view(log, state=panel("frames", 2.05), dark=True)
    found.page.wait_for_selector("#plots .body[data-count]")
    found.settle()
    found.shot("cart-frames")
    assert [row[:4] for row in rows(found)] == [
        ["map", "", "", ""],
        ["base_link", "map", "10 Hz", "50 ms"],
        ["camera", "base_link", "", "static"],
        ["lidar", "base_link", "", "static"],
    ]


def test_changes_of_parameters_stand_in_the_order_of_their_times(view) -> None:
    found = view("ulog", state=state("map", 0, panels=[{"kind": "parameters", "height": 300}]))
    found.page.select_option("#plots select[aria-label='Which parameters']", "over time")
    found.page.wait_for_selector("#plots .body[data-changes]")
    found.shot("parameters-over-time")
    buttons = found.page.locator("#plots tbody button")
    assert ["MPC_XY_CRUISE", "5", "6.5"] in [row[1:4] for row in rows(found)]
    assert buttons.count() == int(found.page.get_attribute("#plots .body", "data-changes")) > 0
    last = buttons.last
    seconds = float(last.inner_text().split()[0])
    last.click()
    found.settle()
    assert found.cursor == pytest.approx(seconds, abs=0.01)
    assert found.page.locator("#plots tr[aria-current=true]").count() == 1
