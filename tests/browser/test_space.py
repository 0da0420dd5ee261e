"""Map, 3D and pictures: they draw what the log holds, and follow the cursor."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

from browser.samples import sample
from logreel.outputs.media.pictures import png
from ops.test_summary_of_odd_logs import FIX, bag, fix
from outputs.view.test_view_pictures import compressed, video
from support.builders.ros1_messages import header, xyz
from support.oracles.ros1 import channel
from support.samples.carla.drive import drive as carla_drive

Image = pytest.importorskip("PIL.Image")

#: A tile of one colour.
TILE = png(np.full((8, 8, 3), (250, 180, 40), np.uint8))


def state(tab: str, seconds: float | None = None, **more: Any) -> str:
    """Return the state of an address that shows a tab at the side, with the cursor at a time."""
    values = {"side": tab, **more} | ({} if seconds is None else {"cursor": int(seconds * 1e9)})
    return "&".join(f"{name}={quote(json.dumps(value))}" for name, value in values.items())


def pixels(found: Any, selector: str) -> np.ndarray:
    """Return what is seen of an element: uint8[height, width, 3]."""
    data = found.page.locator(selector).screenshot()
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def ready(found: Any, tab: str) -> None:
    found.page.wait_for_selector(f"#panel-{tab}[data-ready]")
    found.settle()


def colours(image: np.ndarray) -> int:
    return len(np.unique(image.reshape(-1, 3), axis=0))


def move_to(found: Any, seconds: float) -> None:
    """Set the cursor by a click into the timeline."""
    box = found.page.locator("#timeline canvas").bounding_box()
    least, most = (
        float(found.page.get_attribute("#timeline canvas", f"aria-value{end}")) for end in ("min", "max")
    )
    found.page.mouse.click(
        box["x"] + box["width"] * (seconds - least) / (most - least), box["y"] + box["height"] / 2
    )
    found.settle()


def data(found: Any, tab: str, name: str) -> str | None:
    return found.page.get_attribute(f"#panel-{tab}", f"data-{name}")


@pytest.mark.parametrize("name", ["ulog", "rosbag", "carla", "bddf"])
def test_map_draws_the_track_and_the_place_at_the_cursor(view, name: str) -> None:
    # The flight stands still at first.
    found = view(name, state=state("map", 5 if name == "ulog" else 0.2))
    ready(found, "map")
    before, place = pixels(found, "#panel-map .space"), data(found, "map", "marker")
    assert colours(before) > 20
    found.shot(f"map-{name}")
    found.press("Shift+ArrowRight")
    found.page.wait_for_function(
        "(before) => document.getElementById('panel-map').dataset.marker !== before", arg=place
    )
    after = pixels(found, "#panel-map .space")
    assert (before != after).any()
    # Only the marker and its place in words changed.
    assert (before != after).any(axis=2).mean() < 0.1


@pytest.fixture(scope="module")
def mapped(lasting_view):
    """A page with the map of a flight."""
    found = lasting_view("ulog", state=state("map", 4))
    ready(found, "map")
    return found


def test_map_click_sets_the_cursor_and_keys_move_it(mapped) -> None:
    found = mapped
    x, y = (int(part) for part in data(found, "map", "marker").split(","))
    move_to(found, 8)
    assert found.cursor == pytest.approx(8, abs=0.1)
    canvas = found.page.locator("#panel-map canvas.over")
    canvas.click(position={"x": x, "y": y})
    found.settle()
    assert found.cursor == pytest.approx(4, abs=0.3)
    drawn = int(data(found, "map", "drawn"))
    place = data(found, "map", "marker")
    canvas.press("ArrowLeft")
    canvas.press("+")
    found.page.wait_for_function(
        "(n) => Number(document.getElementById('panel-map').dataset.drawn) > n", arg=drawn
    )
    found.settle()
    assert data(found, "map", "marker") != place
    assert found.cursor == pytest.approx(4, abs=0.3)  # the keys of the map do not move the cursor
    canvas.press("0")
    found.page.wait_for_function(
        "(before) => document.getElementById('panel-map').dataset.marker === before", arg=place
    )


def test_map_colours_the_track_by_a_field_of_a_plot(mapped) -> None:
    found = mapped
    before = pixels(found, "#panel-map .space")
    found.find("battery voltage_v")
    found.page.click("#panel-map .tool button:has-text('Colour')")
    found.page.click(".menu button:has-text('battery_status.voltage_v')")
    found.settle()
    assert (pixels(found, "#panel-map .space") != before).any()
    found.shot("map-colour")


def test_map_shows_tiles_of_a_file_through_the_server(view, tmp_path: Path) -> None:
    writer = pytest.importorskip("pmtiles.writer")
    from pmtiles.tile import Compression, TileType, zxy_to_tileid

    path = tmp_path / "tiles.pmtiles"
    with open(path, "wb") as file:
        out = writer.Writer(file)
        for number in sorted(
            zxy_to_tileid(z, x, y) for z in range(3) for x in range(1 << z) for y in range(1 << z)
        ):
            out.write_tile(number, TILE)
        out.finalize(
            {"tile_type": TileType.PNG, "tile_compression": Compression.NONE}, {"attribution": "© Maker"}
        )
    found = view(sample("ulog", tmp_path), state=state("map", 2), tiles=str(path))
    ready(found, "map")
    # The track is small: tiles of zoom level 2 are shown where they are of use.
    canvas = found.page.locator("#panel-map canvas.over")
    for _ in range(26):
        canvas.press("-")
    found.settle()
    found.page.wait_for_function(
        """() => { const canvas = document.querySelector("#panel-map canvas"), pen = canvas.getContext("2d");
            const { data } = pen.getImageData(0, 0, canvas.width, canvas.height);
            let n = 0;
            for (let i = 0; i < data.length; i += 4) n += data[i] === 250 && data[i + 1] === 180 && data[i + 2] === 40;
            return n > 5000; }"""
    )
    assert "© Maker" in found.page.inner_text("#panel-map")
    assert any("/api/tiles/" in one for one in found.requests)
    found.shot("map-tiles")


def test_map_without_tiles_asks_for_none(mapped) -> None:
    found = mapped
    assert not any("/api/tiles/" in one for one in found.requests)
    assert any("/api/world" in one for one in found.requests)


@pytest.mark.parametrize("name", ["rosbag", "carla", "ulog"])
def test_scene_draws_and_follows_the_cursor(view, name: str) -> None:
    found = view(name, state=state("scene", 0.3))
    ready(found, "scene")
    assert found.page.locator("#panel-scene .sentence").count() == 0
    before, drawn = pixels(found, "#panel-scene .space"), int(data(found, "scene", "drawn"))
    found.shot(f"scene-{name}")
    assert len(found.page.screenshot()) > 10_000
    time = data(found, "scene", "time")
    found.press("Shift+ArrowRight")
    found.page.wait_for_function(
        "(before) => document.getElementById('panel-scene').dataset.time !== before", arg=time
    )
    found.settle()
    assert int(data(found, "scene", "drawn")) > drawn
    after = pixels(found, "#panel-scene .space")
    assert (before != after).any()
    # With everything switched off only the ground is left.
    shown = found.page.locator(".menu button[aria-checked='true']:not(:has-text('Names'))")
    while True:
        found.page.click("#panel-scene .tool button:has-text('Show')")
        if not shown.count():
            found.page.keyboard.press("Escape")
            break
        shown.first.click()
        found.settle()
    found.page.wait_for_selector("#panel-scene .sentence")
    empty = pixels(found, "#panel-scene .space")
    assert (empty != after).any(axis=2).mean() > 0.002


def test_scene_is_drawn_only_when_something_changes(view) -> None:
    found = view("rosbag", state=state("scene", 1))
    ready(found, "scene")
    drawn = data(found, "scene", "drawn")
    frames = """(n) => new Promise((done) => {
        const next = () => (n-- ? requestAnimationFrame(next) : done());
        next(); })"""
    found.page.evaluate(frames, 30)
    assert data(found, "scene", "drawn") == drawn
    found.page.locator("#panel-scene .space").press("ArrowLeft")
    found.page.wait_for_function(
        "(n) => document.getElementById('panel-scene').dataset.drawn !== n", arg=drawn
    )


def test_markers_and_grids_have_their_colours_and_names(view) -> None:
    def marker(
        number: int, shape: int, x: float, colour: tuple[float, float, float], **more: Any
    ) -> dict[str, Any]:
        pose = {"position": xyz(x, 4, 0.5), "orientation": {"w": 1}}
        return {
            "header": header("map"),
            "id": number,
            "type": shape,
            "pose": pose,
            "scale": xyz(1.5, 1.5, 1.5),
            "color": dict(zip("rgba", (*colour, 1.0), strict=True)),
            **more,
        }

    steps = [xyz(0, 0), xyz(2, 3), xyz(4, 0), xyz(6, 3)]
    shapes = [marker(n, n, 2.0 * n, (1, 0, 0)) for n in range(4)]
    line = marker(4, 4, 8, (0, 0.7, 0), points=steps)
    label = marker(9, 9, 2, (1, 1, 1), text="dock 7")
    later = [{**one, "color": {"r": 0.0, "g": 0.2, "b": 1.0, "a": 1.0}} for one in shapes]
    ch = channel("visualization_msgs/MarkerArray", {"markers": [*shapes, line, label]}, {"markers": later})
    found = view(ch.log, state=state("scene", 0.5))
    ready(found, "scene")
    found.shot("scene-markers")
    seen = pixels(found, "#panel-scene .space").astype(int)
    red, green, blue = np.moveaxis(seen, -1, 0)
    assert ((red > 2 * green + 40) & (red > 2 * blue + 40)).sum() > 400
    assert ((green > red + 60) & (green > blue + 60)).sum() > 20
    assert "dock 7" in found.page.inner_text("#panel-scene .space")
    move_to(found, 1.5)
    found.page.wait_for_function("() => Number(document.getElementById('panel-scene').dataset.time) > 1e9")
    red, green, blue = np.moveaxis(pixels(found, "#panel-scene .space").astype(int), -1, 0)
    assert ((red > 2 * green + 40) & (red > 2 * blue + 40)).sum() == 0
    assert ((blue > red + 60) & (blue > green + 40)).sum() > 400


def test_occupied_cells_are_dark_and_lie_where_the_grid_says(view) -> None:
    cells = np.zeros((40, 60), np.int8)
    cells[:, 30:], cells[:20, :20] = 100, -1
    info = {"resolution": 0.5, "width": 60, "height": 40, "origin": {"orientation": {"w": 1}}}
    grid = {"header": header("map"), "info": info, "data": cells.ravel().tolist()}
    found = view(channel("nav_msgs/OccupancyGrid", grid).log, state=state("scene", 0))
    ready(found, "scene")
    found.page.click("#panel-scene .tool button:has-text('View')")
    found.page.click(".menu button:has-text('From above')")
    found.settle()
    found.shot("scene-grid")
    grey = pixels(found, "#panel-scene .space").mean(axis=2)
    dark, width = grey < 60, grey.shape[1]
    columns = np.flatnonzero(dark.mean(axis=0) > 0.1)
    # The occupied half is on the right, x to the right seen from above.
    assert width * 0.4 < columns[0] < columns[-1] < width
    assert dark[:, columns[0] : columns[-1]].sum() > 0.1 * dark.size


def test_scene_can_be_placed_in_another_frame(view) -> None:
    found = view("rosbag", state=state("scene", 2))
    ready(found, "scene")
    before = pixels(found, "#panel-scene .space")
    assert found.page.locator("#panel-scene .tool button:has-text('Frame map')").count() == 1
    found.page.click("#panel-scene .tool button:has-text('Frame map')")
    found.page.click(".menu button:has-text('base_footprint')")
    found.page.wait_for_selector("#panel-scene .tool button:has-text('Frame base_footprint')")
    found.settle()
    assert (pixels(found, "#panel-scene .space") != before).any()


def test_three_is_loaded_when_the_scene_is_first_shown(view) -> None:
    found = view("rosbag", state=state("picture", 1))
    ready(found, "picture")
    assert not any("/vendor/three/" in one for one in found.requests)
    found.page.click("#tab-scene")
    ready(found, "scene")
    assert any("/vendor/three/" in one for one in found.requests)


@pytest.mark.parametrize("name", ["rosbag", "koblenz"])
def test_picture_changes_with_the_cursor(view, name: str) -> None:
    found = view(name, state=state("picture", 0.5))
    ready(found, "picture")
    before, row = pixels(found, "#panel-picture .shot .image >> nth=0"), data(found, "picture", "row")
    assert colours(before) > 3
    found.shot(f"picture-{name}")
    found.page.click("#panel-picture button[title='Next picture']")
    found.page.wait_for_function(
        "(before) => document.getElementById('panel-picture').dataset.row !== before", arg=row
    )
    found.settle()
    assert float(data(found, "picture", "row").split(",")[0]) > float(row.split(",")[0])
    assert (pixels(found, "#panel-picture .shot .image >> nth=0") != before).any()


def test_before_the_first_picture_it_is_shown_with_a_note(view) -> None:
    channel = compressed("png", png(np.full((8, 8, 3), 90, np.uint8)), png(np.full((8, 8, 3), 200, np.uint8)))
    channel.log.scan.start = -5 * 10**9
    found = view(channel.log, state=state("picture", 1))
    ready(found, "picture")
    assert "The first picture, 4.0 s after this moment." in found.page.inner_text("#panel-picture")
    assert (pixels(found, "#panel-picture .shot .image >> nth=0")[:, :, 0] == 90).any()


def test_actors_without_boxes_have_usual_sizes_and_a_note(view, tmp_path: Path) -> None:
    recording = carla_drive(4)
    recording.additional = False
    for frame in recording.frames:
        frame.records.pop("BoundingBox", None)
    path = tmp_path / "drive.log"
    path.write_bytes(recording.bytes())
    found = view(path, state=state("scene", 2))
    ready(found, "scene")
    assert "The log has no sizes of the actors" in found.page.inner_text("#panel-scene .notes")
    assert found.page.locator("#panel-scene .sentence:visible").count() == 0
    assert found.page.locator("#panel-scene .tag").count() >= 1
    found.shot("actors-without-boxes")
    assert colours(pixels(found, "#panel-scene .scene canvas")) > 100


def test_broken_picture_is_a_sentence_in_its_place(view) -> None:
    found = view(compressed("jpeg", b"\xff\xd8\xff\xe0 nothing").log, state=state("picture", 0.5))
    ready(found, "picture")
    assert re.search("cannot decode|cut off", found.page.inner_text("#panel-picture .sentence"))


@pytest.mark.parametrize(("kind", "codec"), [("h264", "libx264"), ("h265", "libx265")])
def test_video_is_shown_by_the_browser_or_the_server(view, kind: str, codec: str) -> None:
    found = view(compressed(kind, *video(codec)).log, state=state("picture", 2.5))
    ready(found, "picture")

    def grey() -> float:
        image = pixels(found, "#panel-picture .shot .image")
        return float(image[image.shape[0] // 2, image.shape[1] // 2, 0])

    assert grey() == pytest.approx(20 + 25 * 2, abs=8)
    for seconds, number in ((3.5, 3), (6.5, 6), (1.5, 1)):
        before = data(found, "picture", "row")
        move_to(found, seconds)
        found.page.wait_for_function(
            "(before) => document.getElementById('panel-picture').dataset.row !== before", arg=before
        )
        found.settle()
        assert grey() == pytest.approx(20 + 25 * number, abs=8)


@pytest.fixture(scope="module")
def small(lasting_view, tmp_path_factory: pytest.TempPathFactory):
    """A page in the dark on a small screen."""
    path = sample("rosbag", tmp_path_factory.mktemp("small"))
    return lasting_view(path, size=(1024, 700), dark=True, state=state("map", 2))


@pytest.mark.parametrize("tab", ["map", "scene", "picture"])
def test_panels_of_space_in_the_dark_on_a_small_screen(small, tab: str) -> None:
    found = small
    found.page.click(f"#tab-{tab}")
    ready(found, tab)
    assert np.median(pixels(found, f"#panel-{tab} .tool")) < 80
    box = found.page.locator(f"#panel-{tab}").bounding_box()
    # Nothing sticks out at the right edge.
    for button in found.page.locator(f"#panel-{tab} .tool button:visible").all():
        one = button.bounding_box()
        assert one["x"] + one["width"] <= box["x"] + box["width"]
    found.shot(f"{tab}-dark-1024")


def test_a_jump_breaks_the_line_on_the_map_and_is_told(view, tmp_path: Path) -> None:
    rows = [fix(n, 47.0 + n * 1e-5 + (10 if 40 <= n < 60 else 0), 8.0 + n * 1e-5) for n in range(101)]
    bag(tmp_path / "jump.bag", {"/fix": FIX}, rows)
    found = view(tmp_path / "jump.bag", state=state("map", 10))
    ready(found, "map")
    found.shot("map-with-a-jump")
    assert "without 2 jumps of up to 1112 km" in found.page.inner_text("#panel-map")


def test_the_first_picture_is_shown_at_the_start(view) -> None:
    channel = compressed("png", png(np.full((8, 8, 3), 90, np.uint8)), png(np.full((8, 8, 3), 200, np.uint8)))
    channel.log.scan.start = -400_000
    found = view(channel.log, state=state("picture", 0))
    ready(found, "picture")
    assert "first one comes" not in found.page.inner_text("#panel-picture")
    assert colours(pixels(found, "#panel-picture .shot .image >> nth=0")) >= 1
