"""Lookup of transforms: equal to tf2 and to a plain oracle, with the properties of rigid motions."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import logreel
from logreel.errors import LogError, NotFoundError, UsageError
from support.builders.frames import SECOND, START, TREE, bag, foxglove, robot, ros2
from support.oracles.frames import Oracle, Sent, matrix, tf2

NAMES = sorted({"map", *(child for child, *_ in TREE)})
HALF = 0.5**0.5


@pytest.fixture(scope="module")
def moving(tmp_path_factory: pytest.TempPathFactory) -> logreel.Transforms:
    return logreel.transforms(bag(tmp_path_factory.mktemp("tf") / "robot.bag", robot()))


def looked_up(tmp_path: Path, sent: list[Sent], **options: object) -> logreel.Transforms:
    return logreel.transforms(bag(tmp_path / "some.bag", sent), **options)


def link(times: list[int], turns: list[tuple[float, ...]] | None = None, child: str = "b") -> list[Sent]:
    turns = turns or [(0.0, 0.0, 0.0, 1.0)] * len(times)
    return [
        Sent("a", child, START + t, (float(n), 0.0, 0.0), turn)  # type: ignore[arg-type]
        for n, (t, turn) in enumerate(zip(times, turns, strict=True))
    ]


def test_every_pair_of_frames_as_the_plain_oracle(moving: logreel.Transforms) -> None:
    oracle = Oracle(robot())
    times = START + np.linspace(-0.2, 5.2, 40) * SECOND
    times = times.astype(np.int64)
    for target, source in itertools.product(NAMES, NAMES):
        found = moving.lookup(target, source, times, missing="nan")
        for n, time in enumerate(times.tolist()):
            wanted = oracle.lookup(target, source, time)
            assert bool(found.valid[n]) == (wanted is not None), (target, source, time)
            if wanted is not None:
                np.testing.assert_allclose(found.matrix[n], wanted, atol=1e-9)


def test_every_pair_of_frames_as_genuine_tf2(moving: logreel.Transforms) -> None:
    times = [START + n * SECOND // 7 for n in range(40)]
    asked = [(a, b, time) for a, b in itertools.product(NAMES, NAMES) for time in [None, *times]]
    equal = 0
    for (target, source, time), wanted in zip(asked, tf2(robot(), asked), strict=True):
        found = moving.lookup(target, source, time, missing="nan")
        assert bool(found.valid) == (wanted is not None), (target, source, time)
        if wanted is not None:
            np.testing.assert_allclose(found.translation, wanted[0], atol=1e-6)
            # A quaternion and its negative are the same rotation.
            assert abs(abs(np.dot(found.rotation, wanted[1])) - 1) < 1e-9
            if time is None and moving.latest_common_time(target, source) is not None:
                assert int(found.time) == wanted[2]
            equal += 1
    assert equal > 1000


def test_real_bag_as_genuine_tf2(shared: Path) -> None:
    path = shared / "data" / "rosbag" / "v20_real_turtlesim.bag"
    log = logreel.open(path)
    sent = []
    for message in log.messages(["/tf", "/tf_static"]):
        for one in message.decode()["transforms"]:
            t = one["transform"]
            place, turn = (
                tuple(t[n][a] for a in axes) for n, axes in (("translation", "xyz"), ("rotation", "xyzw"))
            )
            static = message.channel.topic == "/tf_static"
            frame, child = one["header"]["frame_id"].lstrip("/"), one["child_frame_id"].lstrip("/")
            sent.append(Sent(frame, child, one["header"]["stamp"], place, turn, static))
    frames = logreel.transforms(log)
    times = np.linspace(log.start, log.end, 200).astype(np.int64).tolist()
    pairs = [("turtle2", "turtle1"), ("turtle1", "carrot"), ("world", "carrot"), ("carrot", "turtle2")]
    asked = [(a, b, time) for a, b in pairs for time in [None, *times]]
    for (target, source, time), wanted in zip(asked, tf2(sent, asked), strict=True):
        found = frames.lookup(target, source, time, missing="nan")
        assert bool(found.valid) == (wanted is not None)
        if wanted is not None:
            # tf2 finds small angles by their cosine, which is exact to 1e-8 rad only.
            np.testing.assert_allclose(found.translation, wanted[0], atol=1e-5)
            assert abs(abs(np.dot(found.rotation, wanted[1])) - 1) < 1e-9


@pytest.mark.parametrize("write", [ros2, foxglove])
def test_other_schemas_give_the_same_frames(
    moving: logreel.Transforms, tmp_path: Path, write: Callable[[Path, list[Sent]], Path]
) -> None:
    found = logreel.transforms(write(tmp_path / "a.mcap", robot()))
    assert found.frames == moving.frames
    times = START + np.arange(10) * SECOND // 3
    a, b = (one.lookup("map", "camera", times, missing="nan") for one in (found, moving))
    np.testing.assert_array_equal(a.matrix, b.matrix)
    assert a.valid.any()


def test_changing_parents_and_repeated_stamps_as_genuine_tf2(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    sent = []
    for n in range(60):
        time = START + n * SECOND // 10
        turn = random.normal(size=4)
        turn = tuple((turn / np.linalg.norm(turn)).tolist())
        sent.append(Sent("odom" if n // 7 % 2 else "map", "box", time, tuple(random.normal(size=3)), turn))
        sent.append(Sent("map", "odom", time, tuple(random.normal(size=3)), turn))
        if n % 5 == 0:
            # Sent twice with other values: tf2 keeps the first.
            sent.append(Sent("map", "odom", time, (9.0, 9.0, 9.0), turn))
    frames = looked_up(tmp_path, sent)
    assert [one.code for one in frames.tree.findings] == ["tf-parents"]
    times = [START + n * SECOND // 23 for n in range(130)]
    asked = [(a, b, time) for a, b in itertools.permutations(("map", "odom", "box"), 2) for time in times]
    for (target, source, time), wanted in zip(asked, tf2(sent, asked), strict=True):
        found = frames.lookup(target, source, time, missing="nan")
        assert bool(found.valid) == (wanted is not None), (target, source, time)
        if wanted is not None:
            np.testing.assert_allclose(found.translation, wanted[0], atol=1e-6)


@given(st.sampled_from(NAMES), st.sampled_from(NAMES), st.sampled_from(NAMES), st.integers(0, 4 * SECOND))
def test_inverse_and_composition(moving: logreel.Transforms, a: str, b: str, c: str, since: int) -> None:
    times = START + np.array([since, since + SECOND // 3])
    try:
        ab, bc, ac = (moving.lookup(x, y, times) for x, y in ((a, b), (b, c), (a, c)))
    except LogError:
        return
    np.testing.assert_allclose((ab @ bc).matrix, ac.matrix, atol=1e-9)
    np.testing.assert_allclose(moving.lookup(b, a, times).matrix, ab.inverse().matrix, atol=1e-9)
    np.testing.assert_allclose((ab @ ab.inverse()).matrix, np.tile(np.eye(4), (2, 1, 1)), atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(ac.rotation, axis=-1), 1, atol=1e-12)
    points = np.arange(12.0).reshape(2, 2, 3)
    np.testing.assert_allclose(ab.apply(bc.apply(points)), ac.apply(points), atol=1e-8)
    homogeneous = np.concatenate([points, np.ones((2, 2, 1))], axis=-1)
    wanted = np.einsum("nij,nkj->nki", ac.matrix, homogeneous)[..., :3]
    np.testing.assert_allclose(ac.apply(points), wanted, atol=1e-9)


def test_rotations_take_the_shortest_way(tmp_path: Path) -> None:
    # 10° and 50° about z, the second as the negative quaternion.
    turns = [
        (0.0, 0.0, np.sin(np.radians(d / 2)) * s, np.cos(np.radians(d / 2)) * s)
        for d, s in ((10, 1), (50, -1))
    ]
    frames = looked_up(tmp_path, link([0, SECOND], turns))
    found = frames.lookup("a", "b", [START + SECOND // 4, START + SECOND // 2])
    np.testing.assert_allclose(np.degrees(found.euler[:, 2]), [20, 30], atol=1e-9)
    np.testing.assert_allclose(found.translation[:, 0], [0.25, 0.5])


def test_the_result_maps_points_from_source_to_target(tmp_path: Path) -> None:
    # b is 1 m ahead of a, and turned to the left: its x axis is the y axis of a.
    frames = looked_up(tmp_path, [Sent("a", "b", START, (1, 0, 0), (0, 0, HALF, HALF), True)])
    np.testing.assert_allclose(frames.lookup("a", "b").apply([1, 0, 0]), [1, 1, 0], atol=1e-12)
    np.testing.assert_allclose(frames.lookup("b", "a").apply([1, 1, 0]), [1, 0, 0], atol=1e-12)


def test_unusable_transforms_are_missing_and_counted(tmp_path: Path) -> None:
    good, zero, nan = (0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.0, 0.0), (float("nan"), 0.0, 0.0, 1.0)
    frames = looked_up(tmp_path, link([0, 1000, 2000, 3000], [good, zero, nan, good]))
    assert frames.links["b"].unusable == 2
    assert len(frames.links["b"]) == 2
    assert [one.code for one in frames.tree.findings] == ["tf-unusable"]
    np.testing.assert_allclose(frames.lookup("a", "b", START + 1500).translation, [1.5, 0, 0])


def test_frames_without_any_usable_transform_are_named(tmp_path: Path) -> None:
    nan, far = float("nan"), (1e308, 0.0, 0.0)
    sent = [*link([0, 1000]), *link([0, 1000], [(nan, 0.0, 0.0, 1.0)] * 2, "c")]
    sent += [one._replace(child="d", position=far) for one in link([0])]
    sent += [one._replace(child="a") for one in link([0])]
    frames = looked_up(tmp_path, sent)
    assert frames.frames == ["a", "b"]
    assert sorted(frames.notes) == [
        "1 transforms name no frame, or one frame as its own parent: they are ignored",
        "all 1 transforms of 'd' contain NaN, infinity or a zero quaternion",
        "all 2 transforms of 'c' contain NaN, infinity or a zero quaternion",
    ]
    assert [one.code for one in frames.tree.findings] == ["tf-note"] * 3


def test_quaternions_become_unit_ones(tmp_path: Path) -> None:
    frames = looked_up(tmp_path, link([0], [(0.0, 0.0, 3.0, 3.0)]))
    np.testing.assert_allclose(frames.lookup("a", "b").rotation, [0, 0, HALF, HALF])


def test_nothing_is_extrapolated(tmp_path: Path) -> None:
    frames = looked_up(tmp_path, link([0, SECOND, 2 * SECOND]))
    times = START + np.array([-1, 0, 2 * SECOND, 2 * SECOND + 1])
    with pytest.raises(LogError, match=r"is not known at .*the link a → b is known from .*missing='nan'"):
        frames.lookup("a", "b", times)
    found = frames.lookup("a", "b", times, missing="nan")
    assert found.valid.tolist() == [False, True, True, False]
    assert np.isnan(found.translation[[0, 3]]).all()
    assert np.isnan(found.rotation[[0, 3]]).all()
    assert frames.can_transform("a", "b", times).tolist() == [False, True, True, False]
    held = frames.lookup("a", "b", times, missing="hold")
    assert held.translation[:, 0].tolist() == [0, 0, 2, 2]
    assert found.as_dict()["transforms"][0] == {
        "time_ns": START - 1,
        "translation": None,
        "rotation_xyzw": None,
    }


def test_long_gaps_can_be_missing(tmp_path: Path) -> None:
    frames = looked_up(tmp_path, link([0, SECOND, 9 * SECOND, 10 * SECOND]))
    times = START + np.array([SECOND // 2, 5 * SECOND, 9 * SECOND])
    assert frames.lookup("a", "b", times).valid.all()
    assert frames.lookup("a", "b", times, missing="nan", max_gap="2s").valid.tolist() == [True, False, True]
    with pytest.raises(LogError, match="longer than max_gap"):
        frames.lookup("a", "b", times, max_gap="2s")


def test_static_transforms_hold_for_all_times(tmp_path: Path) -> None:
    frames = looked_up(
        tmp_path, [*link([0, SECOND]), Sent("b", "c", START + 5, (0, 2, 0), (0, 0, 0, 1), True)]
    )
    assert frames.lookup("b", "c", 0).translation.tolist() == [0, 2, 0]
    assert frames.latest_common_time("b", "c") is None
    assert frames.latest_common_time("a", "c") == START + SECOND
    assert frames.lookup("a", "c").translation.tolist() == [1, 2, 0]


def test_times_of_every_kind_are_accepted(tmp_path: Path) -> None:
    frames = looked_up(tmp_path, link([0, 2 * SECOND]))
    since = START + 1_000_000
    for time in ("+1s", since + SECOND, np.datetime64(since + SECOND, "ns"), [since + SECOND], ["+1s"],
                 np.array([since + SECOND], "datetime64[ns]"), np.array([since + SECOND], np.uint64)):  # fmt: skip
        found = frames.lookup("a", "b", time)
        np.testing.assert_allclose(found.translation.reshape(-1)[0], 0.5005)
    assert frames.lookup("a", "b", np.zeros((2, 0), np.int64)).translation.shape == (2, 0, 3)
    with pytest.raises(UsageError):
        frames.lookup("a", "b", "soon")


def test_unknown_and_unconnected_frames_are_errors(tmp_path: Path) -> None:
    sent = [*link([0, SECOND]), *link([0, SECOND], child="b2")]
    sent += [one._replace(parent="x", child="y") for one in link([0, SECOND])]
    frames = looked_up(tmp_path, sent)
    with pytest.raises(NotFoundError, match="no frame 'bb'; nearest: b"):
        frames.lookup("a", "bb")
    with pytest.raises(LogError, match="'y' is below 'x', 'b' below 'a'"):
        frames.lookup("b", "y")
    assert not frames.can_transform("b", "y", [1, 2]).any()
    assert frames.tree.roots == ["a", "x"]
    assert [one.code for one in frames.tree.findings] == ["tf-roots"]
    with pytest.raises(UsageError, match="missing='later'"):
        frames.lookup("a", "b", missing="later")
    with pytest.raises(UsageError, match="points"):
        frames.lookup("a", "b").apply([1, 2])


def test_circles_are_reported(tmp_path: Path) -> None:
    some = [("a", "b"), ("b", "c"), ("c", "a")]
    sent = [one._replace(parent=p, child=c) for p, c in some for one in link([0, SECOND])]
    frames = looked_up(tmp_path, sent)
    assert frames.tree.circles == [["b", "a", "c", "b"]]
    assert frames.tree.findings[0].code == "tf-circle"
    assert [frame for _, frame, _ in frames.tree.walk()] == ["b", "c", "a"]
    with pytest.raises(LogError, match="circle"):
        frames.lookup("a", "b")


def test_interruptions_and_jumps_are_found(tmp_path: Path) -> None:
    times = [n * SECOND // 10 for n in range(50)]
    sent = link([t + (3 * SECOND if n > 30 else 0) for n, t in enumerate(times)])
    sent = [one._replace(position=(n * 0.01 + 5 * (n >= 20), 0.0, 0.0)) for n, one in enumerate(sent)]
    tree = looked_up(tmp_path, sent).tree
    assert {one.code: one.time_ns for one in tree.findings} == {
        "tf-gap": START + 3 * SECOND,
        "tf-jump": START + 19 * SECOND // 10,
    }
    (only,) = tree.links
    assert only.intervals == (
        (START, START + 3 * SECOND),
        (START + 61 * SECOND // 10, START + 79 * SECOND // 10),
    )


def test_stamps_of_another_clock_are_not_used(tmp_path: Path) -> None:
    # A simulation stamps from 0, the recorder took Unix time.
    sent = link([0, SECOND])
    path = bag(tmp_path / "a.bag", sent, stamped=False)
    assert logreel.transforms(path).links["b"].start == START + 1_000_000
    assert logreel.transforms(bag(tmp_path / "b.bag", sent)).links["b"].start == START
    assert logreel.transforms(tmp_path / "b.bag", stamps=False).links["b"].start == START + 1_000_000


def test_a_log_without_frames_has_an_empty_tree(tmp_path: Path) -> None:
    frames = looked_up(tmp_path, [])
    assert frames.frames == []
    assert frames.tree.findings == []
    assert list(frames.tree.walk()) == []
    with pytest.raises(NotFoundError, match="no transforms between frames"):
        frames.lookup("a", "b")


def test_the_oracle_knows_a_quarter_turn() -> None:
    np.testing.assert_allclose(matrix((1, 2, 3), (0, 0, HALF, HALF))[0], [0, -1, 0, 1], atol=1e-12)
