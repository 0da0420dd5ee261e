"""Point clouds in the scene: what colours them, and clouds of the past in the fixed frame."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import logreel
from logreel.meaning import scenes
from logreel.meaning.scenes import PLAIN, CloudLook, SceneItem, scene_at
from support.builders.ros1_messages import cloud
from support.oracles.ros1 import channel
from support.samples.koblenz.drive import drive as koblenz_drive
from support.samples.rosbag.cart import RATE, WALL, cart, wall

S = 10**9


@pytest.fixture
def log() -> Iterator[logreel.Log]:
    with logreel.open(cart()) as opened:
        yield opened


def points(log: logreel.Log, at: float, **look: object) -> SceneItem:
    (item,) = scene_at(log, log.start + round(at * S), "map", ["/points"], look=CloudLook(**look)).items
    return item


@pytest.mark.parametrize(("field", "column"), [("x", 0), ("z", 2), ("intensity", 3), ("ring", 4)])
def test_a_field_colours_the_points(log: logreel.Log, field: str, column: int) -> None:
    item = points(log, 2, colour=field)
    assert item.fields == ["x", "y", "z", "intensity", "ring"]
    assert item.colour == field
    np.testing.assert_array_equal(item.arrays["value"], wall(2)[:, column])


def test_points_without_a_choice_have_the_colours_or_the_intensity_or_the_height(log: logreel.Log) -> None:
    assert points(log, 2).colour == points(log, 2, colour="no such field").colour == "intensity"
    plain = points(log, 2, colour=PLAIN)
    assert plain.colour == PLAIN
    assert plain.arrays.keys() == {"position"}
    rows = np.array([(1, 2, 3, 0x112233, 9), (4, 5, 6, 0xFF0080, 7)], "<f4,<f4,<f4,<u4,<u4")
    fields = [("x", 0, 7, 1), ("y", 4, 7, 1), ("z", 8, 7, 1), ("rgb", 12, 6, 1), ("t", 16, 6, 1)]
    coloured = channel("sensor_msgs/PointCloud2", cloud(fields, rows.tobytes(), width=2, step=20)).log
    (item,) = scene_at(coloured, 0).items
    assert (item.colour, item.fields) == ("rgb", ["rgb", "x", "y", "z", "t"])
    assert item.arrays["rgb"].tolist() == [[0x11, 0x22, 0x33], [0xFF, 0, 0x80]]
    (item,) = scene_at(coloured, 0, look=CloudLook("t")).items
    assert item.arrays["value"].tolist() == [9, 7]
    bare = channel("sensor_msgs/PointCloud2", cloud(fields[:3], rows.tobytes(), width=2, step=20)).log
    assert scene_at(bare, 0).items[0].arrays["value"].tolist() == [3, 6]


def test_clouds_of_the_past_stay_where_they_were(log: logreel.Log) -> None:
    one, several = points(log, 2), points(log, 2, decay=S)
    assert one.place is not None
    assert one.place.numbers()[:3] == [2, 0, 1]
    assert len(several.arrays["position"]) == (RATE + 1) * len(one.arrays["position"])
    assert (several.frame, several.place and several.place.numbers()[:3]) == ("map", [0, 0, 0])
    # The wall does not move, however the cart does.
    np.testing.assert_allclose(several.arrays["position"][:, 0], WALL, atol=1e-4)
    newest = several.arrays["position"][: len(one.arrays["position"])]
    np.testing.assert_allclose(newest, one.arrays["position"] + (2, 0, 1), atol=1e-5)
    # Asked again, and for a moment later, the clouds that are kept give the same.
    again = points(log, 2, decay=S)
    np.testing.assert_array_equal(again.arrays["position"], several.arrays["position"])
    assert len(points(log, 2.3, decay=S).arrays["position"]) == len(again.arrays["position"])


def test_clouds_of_the_past_are_bounded(log: logreel.Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenes, "PAST", 5)
    item = points(log, 3, decay=2 * S, points=600)
    assert "15 older clouds are left out" in item.note
    assert len(item.arrays["position"]) <= 600
    np.testing.assert_allclose(item.arrays["position"][:, 0], WALL, atol=1e-4)


def test_arrays_of_the_past_are_kept_only_in_the_same_fixed_frame(log: logreel.Log) -> None:
    at, look = log.start + 2 * S, CloudLook("", S)
    (item,) = scene_at(log, at, "map", ["/points"], look=look).items
    have = {"/points": item.time}
    assert not scene_at(log, at, "map", ["/points"], have, look).items[0].arrays
    assert scene_at(log, at, None, ["/points"], have, look).items[0].arrays
    other = scene_at(log, at, "base_link", ["/points"], look=look).items[0]
    # Seen from the cart, the wall comes nearer: each cloud has its place at its own time.
    assert other.arrays["position"][:, 0].min() == pytest.approx(WALL - 2, abs=1e-4)
    assert other.arrays["position"][:, 0].max() == pytest.approx(WALL - 1, abs=1e-4)


def test_clouds_without_a_frame_stay_where_the_vehicle_was() -> None:
    with logreel.open(koblenz_drive(1)) as log:
        plain = {item.topic: item for item in scene_at(log, log.end).items if item.kind in ("cloud", "scan")}
        look = CloudLook("", S // 2)
        past = {item.topic: item for item in scene_at(log, log.end, look=look).items if item.topic in plain}
    assert plain
    for topic, item in past.items():
        assert len(item.arrays["position"]) > len(plain[topic].arrays["position"])
