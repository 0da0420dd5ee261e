"""The 3D scene at a moment has what plain loops over decoded messages find."""

from __future__ import annotations

import gc
import math
from typing import Any
from weakref import ref

import numpy as np
import pytest

import logreel
from logreel.lenses import LocalPose, Markers, lens_names, lenses
from logreel.lenses.cloud import SentMarkers
from logreel.lenses.motion import from_aerospace
from logreel.lenses.rotation import turn_to
from logreel.meaning import frames
from logreel.meaning.frames import NOWHERE, FramePlace, FramesAt, LogFrames
from logreel.meaning.scenes import USUAL_SIZES, CloudLook, scene_at, scene_sources
from support.oracles.frames import Oracle, Sent, slerp
from support.oracles.ros1 import channel
from support.samples.carla.drive import drive as carla_drive
from support.samples.koblenz.drive import drive as koblenz_drive
from support.samples.rosbag.builder import drive
from support.samples.ulog.builder import flight

S = 10**9


def matrix(turn: np.ndarray, place: np.ndarray | None = None) -> np.ndarray:
    """Return the 4 × 4 matrix of a quaternion x, y, z, w, by its textbook formula."""
    x, y, z, w = turn
    out = np.eye(4)
    out[:3, :3] = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    out[:3, 3] = 0 if place is None else place
    return out


def some_place(seed: int) -> FramePlace:
    rng = np.random.default_rng(seed)
    turn = rng.normal(size=4)
    return FramePlace(rng.normal(size=3), turn / np.linalg.norm(turn))


def test_places_combine_like_matrices() -> None:
    a, b = some_place(1), some_place(2)
    both, back = a.after(b), a.inverse()
    want = matrix(a.rotation, a.position) @ matrix(b.rotation, b.position)
    np.testing.assert_allclose(matrix(both.rotation, both.position), want, atol=1e-12)
    np.testing.assert_allclose(
        matrix(back.rotation, back.position), np.linalg.inv(matrix(a.rotation, a.position)), atol=1e-12
    )


def test_frames_are_placed_through_their_common_root() -> None:
    steps = {"odom": ("map", some_place(1)), "base": ("odom", some_place(2)), "arm": ("base", some_place(3))}
    tree = FramesAt({**steps, "camera": ("base", some_place(4))})
    world = {"map": np.eye(4)}
    for child, (parent, place) in tree.links.items():
        world[child] = world[parent] @ matrix(place.rotation, place.position)
    for source in world:
        for fixed in world:
            found = tree.place(source, fixed)
            np.testing.assert_allclose(
                matrix(found.rotation, found.position),
                np.linalg.inv(world[fixed]) @ world[source],
                atol=1e-12,
            )
    assert tree.place("elsewhere", "map") is None
    assert tree.fixed() == "map"


def test_circle_of_frames_ends() -> None:
    tree = FramesAt({"a": ("b", NOWHERE), "b": ("a", NOWHERE)})
    assert tree.names == ["a", "b"]
    assert tree.fixed() in tree.names
    tree.place("a", "b")


def test_axes_of_aircraft_are_exchanged_like_matrices() -> None:
    ned = np.array([[0, 1, 0], [1, 0, 0], [0, 0, -1.0]])
    flu = np.diag([1.0, -1, -1])
    for seed in range(5):
        turn = some_place(seed).rotation
        want = ned @ matrix(turn)[:3, :3] @ flu
        np.testing.assert_allclose(matrix(from_aerospace(turn[None])[0])[:3, :3], want, atol=1e-12)


@pytest.mark.parametrize("after", [0, 1, 777_000_000, 2 * S])
def test_transforms_are_interpolated_at_the_moment(after: int) -> None:
    with logreel.open(drive(3)) as log:
        at = log["/tf"].start + after
        tree = LogFrames.of(log).at(at)
        sent = []
        for message in log["/tf"]:
            for one in message.decode()["transforms"]:
                place, turn = one["transform"]["translation"], one["transform"]["rotation"]
                stamp = one["header"]["stamp"] or message.time
                frame, child = one["header"]["frame_id"], one["child_frame_id"]
                sent.append(Sent(frame, child, stamp, [place[n] for n in "xyz"], [turn[n] for n in "xyzw"]))
    oracle = Oracle(sent)
    assert set(tree.links) >= set(oracle.links)
    for child, own in oracle.links.items():
        parent, place = tree.links[child]
        assert parent == own[0].parent
        # Beyond the first and last transform, these are held.
        want = oracle.step(child, min(max(at, own[0].time), own[-1].time))
        np.testing.assert_allclose(matrix(place.rotation, place.position), want, atol=1e-9)


def test_scan_is_the_last_one_before_the_moment_without_failed_echoes() -> None:
    with logreel.open(drive(3)) as log:
        at = log.start + 1_234_000_000
        found = {item.topic: item for item in scene_at(log, at).items}["/scan"]
        message = [m for m in log["/scan"] if m.time <= at][-1]
        scan = message.decode()
    points = [
        (r * math.cos(a), r * math.sin(a), 0.0)
        for i, r in enumerate(scan["ranges"])
        if scan["range_min"] <= r <= scan["range_max"]
        for a in [scan["angle_min"] + i * scan["angle_increment"]]
    ]
    assert found.time == message.time
    assert found.frame == "base_scan"
    np.testing.assert_allclose(found.arrays["position"], points, atol=1e-5)
    assert "no transform from 'base_scan'" in found.note
    assert found.place is not None


def test_vehicle_has_the_attitude_and_position_of_the_flight_controller() -> None:
    with logreel.open(flight(10)) as log:
        at = log.start + 7 * S
        (item,) = scene_at(log, at).items
        local = {m.time: m.decode() for m in log["vehicle_local_position"]}
        attitude = {m.time: m.decode()["q"] for m in log["vehicle_attitude"]}
        shown = [one.topic for one in scene_sources(log)]
    assert (item.topic, item.kind) == ("vehicle_local_position", "body")
    assert shown == ["vehicle_local_position"]
    # North, east, down, on the line between the messages around each message of the attitude.
    want = [np.interp(at, list(local), [one[n] for one in local.values()]) for n in "xyz"]
    np.testing.assert_allclose(item.arrays["position"][0], [want[1], want[0], -want[2]], atol=2e-3)
    first, last = max(t for t in attitude if t <= at), min(t for t in attitude if t > at)
    w, x, y, z = slerp(attitude[first], attitude[last], (at - first) / (last - first))
    ned, flu = np.array([[0, 1, 0], [1, 0, 0], [0, 0, -1.0]]), np.diag([1.0, -1, -1])
    want = ned @ matrix(np.array([x, y, z, w]))[:3, :3] @ flu
    np.testing.assert_allclose(matrix(item.arrays["rotation"][0])[:3, :3], want, atol=1e-4)


def test_actors_have_boxes_in_metres() -> None:
    with logreel.open(carla_drive(5).bytes()) as log:
        at = log.start + 2 * S
        (item,) = scene_at(log, at).items
        message = [m for m in log["position"] if m.time <= at][-1].decode()
        boxes = {b["id"]: b for m in log["bounding_boxes"] for b in m.decode()["records"]}
    want = {a["id"]: a["location"] for a in message["records"] if a["id"] in boxes}
    numbers = [int(label.split("\n")[1].split()[0]) for label in item.labels]
    assert sorted(numbers) == sorted(want)
    for number, place, size in zip(numbers, item.arrays["position"], item.arrays["size"], strict=True):
        x, y, z = (want[number][n] for n in "xyz")
        np.testing.assert_allclose(place, (x / 100, -y / 100, z / 100), atol=1e-3)
        half = boxes[number]["extent"]
        np.testing.assert_allclose(size, [half[n] / 50 for n in "xyz"], rtol=1e-3)


def test_actors_without_boxes_have_the_usual_sizes_of_their_type() -> None:
    recording = carla_drive(2)
    recording.additional = False
    for frame in recording.frames:
        frame.records.pop("BoundingBox", None)
    with logreel.open(recording.bytes()) as log:
        (item,) = scene_at(log, log.start + S).items
    sizes = {label.split()[-1]: size for label, size in zip(item.labels, item.arrays["size"], strict=True)}
    assert "The log has no sizes of the actors" in item.note
    for model, name in (
        ("tesla.model3", "vehicle"),
        ("mercedes.sprinter", "van"),
        ("yamaha.yzf", "motorcycle"),
    ):
        np.testing.assert_allclose(sizes[f"vehicle.{model}"], USUAL_SIZES[name], rtol=1e-6)
    np.testing.assert_allclose(sizes["walker.pedestrian.0012"], USUAL_SIZES["walker"], rtol=1e-6)


def cloud(points: np.ndarray) -> logreel.Log:
    fields = [
        {"name": n, "offset": 4 * i, "datatype": 7, "count": 1}
        for i, n in enumerate(("x", "y", "z", "intensity"))
    ]
    data = points.astype("<f4").tobytes()
    value = {"header": {"frame_id": "/lidar"}, "height": 1, "width": len(points), "fields": fields}
    value |= {"point_step": 16, "row_step": 16 * len(points), "data": data}
    return channel("sensor_msgs/PointCloud2", value).log


def test_large_clouds_are_decimated_to_the_limit_and_say_so() -> None:
    points = np.random.default_rng(1).normal(size=(1000, 4))
    points[::10, 0] = np.nan
    (item,) = scene_at(cloud(points), S, look=CloudLook(points=200)).items
    finite = points[np.isfinite(points[:, 0])].astype(np.float32)
    assert item.total == 900
    np.testing.assert_array_equal(item.arrays["position"], finite[::5, :3])
    np.testing.assert_array_equal(item.arrays["value"], finite[::5, 3])
    assert item.note.startswith("180 of 900 points are shown.")
    assert item.frame == "lidar"


def test_grids_have_their_cells_and_size() -> None:
    cells = np.random.default_rng(2).integers(-1, 101, (3, 5)).astype(np.int8)
    origin = {"position": {"x": 1.0, "y": 2.0, "z": 0.5}, "orientation": {"x": 0, "y": 0, "z": 0.6, "w": 0.8}}
    info = {"resolution": 0.25, "width": 5, "height": 3, "origin": origin}
    grid = {"header": {"frame_id": "/map"}, "info": info, "data": cells.ravel().tolist()}
    short = {**grid, "data": cells.ravel()[:7].tolist()}
    log = channel("nav_msgs/OccupancyGrid", grid, short).log
    assert lens_names(log["/x"]) == ["grid"]
    (item,) = scene_at(log, 0).items
    assert (item.kind, item.frame, item.note) == ("grid", "map", "")
    np.testing.assert_array_equal(item.arrays["cells"].view(np.int8), cells)
    np.testing.assert_allclose(item.arrays["size"], (1.25, 0.75))
    np.testing.assert_allclose(item.arrays["position"], [(1, 2, 0.5)])
    np.testing.assert_allclose(item.arrays["rotation"], [(0, 0, 0.6, 0.8)])
    # Cells that a message lacks are unknown.
    (item,) = scene_at(log, S).items
    assert item.arrays["cells"].view(np.int8).ravel().tolist() == [*cells.ravel()[:7].tolist(), -1, -1, -1]


def test_large_grids_show_the_most_occupied_of_several_cells() -> None:
    cells = np.random.default_rng(3).integers(-1, 101, (700, 2500)).astype(np.int8)
    info = {"resolution": 0.1, "width": 2500, "height": 700, "origin": {"orientation": {"w": 1}}}
    (item,) = scene_at(
        channel("nav_msgs/OccupancyGrid", {"info": info, "data": cells.ravel().tolist()}).log, 0
    ).items
    shown = item.arrays["cells"].view(np.int8)
    assert shown.shape == (234, 834)
    for row, column in ((0, 0), (5, 7), (233, 100), (233, 833)):
        assert shown[row, column] == cells[3 * row : 3 * row + 3, 3 * column : 3 * column + 3].max()
    np.testing.assert_allclose(item.arrays["size"], (250.2, 70.2), rtol=1e-6)
    assert "3 x 3 cells" in item.note


RED, BLUE = {"r": 1.0, "g": 0.0, "b": 0.0, "a": 1.0}, {"r": 0.0, "g": 0.0, "b": 1.0, "a": 0.5}


def marker(number: int, shape: int, **more: Any) -> dict[str, Any]:
    pose = {"position": {"x": 1.0, "y": 2.0, "z": 3.0}, "orientation": {"x": 0, "y": 0, "z": 0.6, "w": 0.8}}
    scale = {"x": 0.5, "y": 1.0, "z": 2.0}
    return {"ns": "a", "id": number, "type": shape, "pose": pose, "scale": scale, "color": RED} | more


def test_markers_are_drawn_where_their_pose_and_points_say() -> None:
    points = [{"x": float(n), "y": 0.0, "z": 0.0} for n in range(3)]
    sent = [
        *(marker(n, n) for n in range(4)),
        marker(4, 4, points=points),
        marker(5, 5, points=points, colors=[RED, BLUE, RED]),
        marker(7, 7, points=points),
        marker(8, 8, points=points, color=BLUE),
        marker(9, 9, text="here"),
        marker(10, 10),
        marker(11, 11, points=points),
        marker(12, 1, color={"r": 1.0, "g": 1.0, "b": 1.0, "a": 0.0}),
        marker(13, 0, points=points[:2]),
    ]
    log = channel("visualization_msgs/MarkerArray", {"markers": sent}).log
    assert lens_names(log["/x"]) == ["markers"]
    (item,) = scene_at(log, 0).items
    turned = matrix(np.array([0, 0, 0.6, 0.8]), np.array([1.0, 2.0, 3.0]))
    places = [(turned @ (n, 0, 0, 1))[:3] for n in range(3)]
    arrays = item.arrays
    # Arrow, cube, sphere, cylinder; the three spheres of the list, the mesh as a box, and the arrow between two points.
    assert arrays["shape"].tolist() == [0, 1, 2, 3, 2, 2, 2, 1, 0]
    np.testing.assert_allclose(arrays["solid"][0], (1, 2, 3, 0, 0, 0.6, 0.8, 0.5, 1, 2), rtol=1e-6)
    np.testing.assert_allclose(arrays["solid"][4:7, :3], places, rtol=1e-6)
    np.testing.assert_allclose(arrays["solid"][8, :3], places[0], rtol=1e-6)
    np.testing.assert_allclose(arrays["solid"][8, 7:], (1, 1, 1), rtol=1e-6)
    along = matrix(arrays["solid"][8, 3:7])[:3, 0]
    np.testing.assert_allclose(along, places[1] - places[0], atol=1e-6)
    np.testing.assert_allclose(arrays["segment"], [places[n] for n in (0, 1, 1, 2, 0, 1)], rtol=1e-6)
    assert arrays["segment_colour"].tolist() == [[255, 0, 0, 255]] * 5 + [[0, 0, 255, 128]]
    np.testing.assert_allclose(arrays["triangle"], places, rtol=1e-6)
    np.testing.assert_allclose(arrays["point"], places, rtol=1e-6)
    assert arrays["point_colour"].tolist() == [[0, 0, 255, 128]] * 3
    assert item.labels == ["here"]
    np.testing.assert_allclose(arrays["text_at"], [(1, 2, 3)])
    assert "1 meshes are drawn as boxes" in item.note
    assert "1 markers are transparent" in item.note


def test_markers_stand_until_they_are_replaced_deleted_or_expire() -> None:
    """Against a plain loop over all messages."""
    rng = np.random.default_rng(4)
    messages = [
        {
            "markers": [
                marker(
                    int(rng.integers(4)),
                    1,
                    action=int(rng.choice([0, 0, 0, 2, 3], p=[0.3, 0.3, 0.2, 0.15, 0.05])),
                )
                | {"lifetime": int(rng.choice([0, 2, 5])) * S, "text": str(n)}
                for _ in range(rng.integers(3))
            ]
        }
        for n in range(60)
    ]
    ch = channel("visualization_msgs/MarkerArray", *messages)
    known: dict[int, SentMarkers] = {}
    for at in range(-S // 2, 62 * S, S // 2):
        due: dict[int, str] = {}
        until: dict[int, float] = {}
        for n, message in enumerate(messages):
            for one in message["markers"] if n * S <= at else ():
                if one["action"] == 3:
                    due.clear()
                elif one["action"] == 2:
                    due.pop(one["id"], None)
                else:
                    due[one["id"]] = one["text"]
                    until[one["id"]] = n * S + one["lifetime"] if one["lifetime"] else math.inf
        standing, left_out = Markers(True).standing(ch, at)
        assert {m.name: m.text for m in standing} == {
            f"a/{n}": text for n, text in due.items() if at < until[n]
        }
        assert left_out == 0
        # What was decoded for another moment tells the same.
        again, _ = Markers(True).standing(ch, at, known)
        assert [(m.name, m.text, m.time) for m in again] == [(m.name, m.text, m.time) for m in standing]
    assert len(known) == 60


def test_rotations_to_a_direction_turn_the_x_axis() -> None:
    for direction in np.array(
        [[2, 0, 0], [-3, 0, 0], [0, 1, 0], [0, 0, -1], [1, 2, 3], [-1, 1e-9, 0]], np.float64
    ):
        along = matrix(turn_to(direction))[:3, 0]
        np.testing.assert_allclose(along, direction / np.linalg.norm(direction), atol=1e-6)


def test_arrays_that_the_page_has_are_not_sent_again() -> None:
    with logreel.open(drive(3)) as log:
        first = scene_at(log, log.start + S)
        again = scene_at(log, log.start + S, have={item.topic: item.time for item in first.items})
        later = scene_at(log, log.start + 2 * S, have={item.topic: item.time for item in first.items})
    assert all(item.arrays for item in first.items)
    assert not any(item.arrays for item in again.items)
    sent = {item.topic: item.time for item in first.items}
    assert {item.topic for item in later.items if item.arrays} == {
        item.topic for item in later.items if item.time > sent[item.topic]
    }
    # The map was recorded once.
    assert {item.topic for item in later.items if not item.arrays} == {"/map"}
    assert [item.place.numbers() for item in again.items] == [item.place.numbers() for item in first.items]


def test_sensors_without_a_frame_are_drawn_at_the_vehicle() -> None:
    with logreel.open(koblenz_drive(1)) as log:
        items = {item.topic: item for item in scene_at(log, log.end).items}
        kinds = {one.topic: one.kind for one in scene_sources(log)}
    assert set(kinds.values()) == {"pose", "cloud", "scan"}
    scan = next(item for topic, item in items.items() if kinds[topic] == "scan")
    assert "does not say where the sensor is" in scan.note


def test_before_the_first_message_that_one_is_shown_with_a_note() -> None:
    with logreel.open(drive(1)) as log:
        items = scene_at(log, log.start - S).items
        first = min(item.time for item in items)
        assert items
        assert {item.time for item in items} == {first}
        assert first >= log.start
        assert all("Nothing was recorded before this moment" in item.note for item in items)
        assert not any("Nothing was recorded" in item.note for item in scene_at(log, first).items)


def test_unknown_fixed_frame_is_replaced() -> None:
    with logreel.open(drive(1)) as log:
        assert scene_at(log, log.end, "nothing").fixed == "map"
        assert scene_at(log, log.end, "odom").fixed == "odom"


def test_flat_poses_turn_about_the_vertical_axis() -> None:
    ch = channel("geometry_msgs/Pose2D", {"x": 1.0, "y": 2.0, "theta": math.pi / 2})
    (lens,) = (one for one in lenses(ch) if isinstance(one, LocalPose))
    found = lens.track(ch)
    assert found.position.tolist() == [[1, 2, 0]]
    np.testing.assert_allclose(matrix(found.rotation[0])[:3, 0], [0, 1, 0], atol=1e-12)


def test_caches_of_the_scene_do_not_keep_a_log_alive() -> None:
    log = logreel.open(koblenz_drive(1))
    scene_at(log, log.end)
    scene_at(bag := logreel.open(drive(1)), bag.end)
    gone = ref(log), ref(bag)
    log.close()
    bag.close()
    del log, bag
    gc.collect()
    assert [one() for one in gone] == [None, None]


def test_window_of_transforms_is_read_where_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    with logreel.open(drive(5)) as log:
        at = log.start + 4 * S
        want = LogFrames.of(log).at(at).links
        monkeypatch.setattr(frames, "MESSAGES", 10)
        monkeypatch.setattr(frames, "FEW", 1)
        some = LogFrames(log)
        assert some.links is None
        found = some.at(at).links
    assert set(found) == set(want)
    for child, (parent, place) in want.items():
        assert found[child][0] == parent
        assert found[child][1].numbers() == place.numbers()
