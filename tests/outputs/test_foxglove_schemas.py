"""Messages in Foxglove's schemas, compared with Foxglove's own library."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, json_format, message_factory

import logreel
from logreel.lenses import ActorPose, PacketCloud, RangeScan, lenses
from logreel.outputs.foxglove.exchange import Encoded, Encoder, encoders_for, message_for_lens
from logreel.outputs.foxglove.messages import MESSAGES, wellknown
from logreel.schemas.protobuf.types import Types, descriptor_set
from support.builders.contents import SAMPLES

fox = pytest.importorskip("foxglove.messages", reason="needs foxglove-sdk")
NS = 10**9


def described(raw: bytes) -> dict[tuple[str, str], Any]:
    """Every field and enumeration of a set of descriptors."""
    found: dict[tuple[str, str], Any] = {}
    for file in descriptor_pb2.FileDescriptorSet.FromString(raw).file:
        for message in file.message_type:
            name = f"{file.package}.{message.name}"
            for f in message.field:
                found[name, f.name] = (f.number, f.type, f.label, f.type_name)
            for enum in message.enum_type:
                found[name, enum.name] = [(v.name, v.number) for v in enum.value]
    return found


@pytest.mark.parametrize("name", MESSAGES)
def test_schemas_are_those_of_foxglove(name: str) -> None:
    """Newer releases may have additional fields, which stay empty; no field differs."""
    theirs = described(getattr(fox, name).get_schema().data)
    ours = described(descriptor_set(wellknown(name)))
    assert ours == {key: theirs.get(key) for key in ours}


def stamp(time: int) -> Any:
    return fox.Timestamp(*divmod(time, NS))


def vector(values: Any) -> Any:
    return fox.Vector3(**{axis: values[axis] for axis in "xyz"})


def turn(values: Any) -> Any:
    return fox.Quaternion(**{axis: values[axis] for axis in "xyzw"})


def origin() -> Any:
    return fox.Pose(position=fox.Vector3(), orientation=fox.Quaternion(w=1))


def location(_: Any, time: int, m: dict[str, Any]) -> Any:
    return fox.LocationFix(
        timestamp=stamp(m["header"]["stamp"] or time),
        latitude=m["latitude"],
        longitude=m["longitude"],
        altitude=m["altitude"],
        position_covariance=m["position_covariance"],
        position_covariance_type=fox.LocationFixPositionCovarianceType.DiagonalKnown,
    )


def pose(_: Any, time: int, m: dict[str, Any]) -> Any:
    inner = m["pose"]["pose"]
    found = fox.Pose(position=vector(inner["position"]), orientation=turn(inner["orientation"]))
    return fox.PoseInFrame(
        timestamp=stamp(m["header"]["stamp"] or time), frame_id=m["header"]["frame_id"], pose=found
    )


def transforms(_: Any, time: int, m: dict[str, Any]) -> Any:
    return fox.FrameTransforms(
        transforms=[
            fox.FrameTransform(
                timestamp=stamp(one["header"]["stamp"] or time),
                parent_frame_id=one["header"]["frame_id"],
                child_frame_id=one["child_frame_id"],
                translation=vector(one["transform"]["translation"]),
                rotation=turn(one["transform"]["rotation"]),
            )
            for one in m["transforms"]
        ]
    )


def scan(_: Any, time: int, m: dict[str, Any]) -> Any:
    return fox.LaserScan(
        timestamp=stamp(m["header"]["stamp"] or time),
        frame_id=m["header"]["frame_id"],
        pose=origin(),
        start_angle=m["angle_min"],
        end_angle=m["angle_min"] + m["angle_increment"] * (len(m["ranges"]) - 1),
        ranges=m["ranges"],
        intensities=m["intensities"],
    )


def log_line(_: Any, time: int, m: dict[str, Any]) -> Any:
    level = {1: "Debug", 2: "Info", 4: "Warning", 8: "Error", 16: "Fatal"}[m["level"]]
    return fox.Log(
        timestamp=stamp(m["header"]["stamp"] or time),
        level=getattr(fox.LogLevel, level),
        message=m["msg"],
        name=m["name"],
    )


def picture(topic: str, time: int, m: dict[str, Any]) -> Any:
    kind = "jpeg" if m["data"][:1] == b"\xff" else "png"
    return fox.CompressedImage(
        timestamp=stamp(m["header"]["stamp"] or time), frame_id=topic, data=m["data"], format=kind
    )


DRIVE = {
    "/gps/fix": ("LocationFix", location),
    "/odom": ("PoseInFrame", pose),
    "/tf": ("FrameTransforms", transforms),
    "/scan": ("LaserScan", scan),
    "/rosout": ("Log", log_line),
    "/camera/compressed": ("CompressedImage", picture),
}


@cache
def made_by_library(schema: str) -> Any:
    types = Types((), descriptor_set(wellknown(schema)))
    return message_factory.GetMessageClass(types.find(f"foxglove.{schema}"))


def parsed(schema: str, data: bytes) -> Any:
    return made_by_library(schema).FromString(data)


def payloads(found: Encoded) -> list[bytes]:
    return [found.data[a:b].tobytes() for a, b in itertools.pairwise(found.start.tolist())]


def made_of(ch: logreel.Channel) -> Iterator[Encoder]:
    """Return the encoders for all lenses, also for types that tools know."""
    for lens in lenses(ch):
        meaning = message_for_lens(lens)
        if meaning is not None:
            schema, fill = meaning
            yield Encoder(ch, f"{ch.topic}/{schema}", wellknown(schema), fill, {})


def values(message: Any) -> Any:
    """Plain values; their library leaves negative zeros out, like all zeros."""
    return json_format.MessageToDict(message, always_print_fields_with_no_presence=True)


@pytest.fixture(scope="module")
def drive() -> logreel.Log:
    return logreel.open(SAMPLES[".bag"]())


@pytest.mark.parametrize("topic", DRIVE)
def test_messages_are_what_foxglove_writes(drive: logreel.Log, topic: str) -> None:
    schema, build = DRIVE[topic]
    (encoder,) = made_of(drive[topic])
    assert encoder.schema.name == f"foxglove.{schema}"
    found = encoder.encode()
    due = [build(topic, m.time, m.decode()).encode() for m in drive.messages([topic])]
    assert len(found) == len(due) > 0
    for ours, theirs in zip(payloads(found), due, strict=True):
        assert values(parsed(schema, ours)) == values(parsed(schema, theirs))
    assert found.time.tolist() == drive[topic].times.tolist()


def bag(folder: Path, name: str, messages: list[Any], text: str = "") -> logreel.Channel:
    with logreel.create(folder / "a.bag") as w:
        number = w.add_channel("/x", logreel.Schema(name, "ros1msg", text))
        for k, one in enumerate(messages):
            w.write(number, NS + k, one)
    return logreel.open(folder / "a.bag")["/x"]


def test_raw_pictures_are_little_endian_without_padding(tmp_path: Path) -> None:
    pixels = np.arange(2 * 3 * 3, dtype=np.uint8)
    padded = b"".join(pixels[9 * r : 9 * r + 9].tobytes() + b"\0" for r in range(2))
    deep = np.arange(6, dtype=">u2").tobytes()
    shared = {"height": 2, "width": 3}
    ch = bag(
        tmp_path,
        "sensor_msgs/Image",
        [
            {**shared, "encoding": "rgb8", "step": 10, "data": padded},
            {**shared, "encoding": "mono16", "is_bigendian": 1, "step": 6, "data": deep},
            {**shared, "encoding": "nonsense", "step": 6, "data": deep},
        ],
    )
    (encoder,) = made_of(ch)
    one, two = (parsed("RawImage", raw) for raw in payloads(encoder.encode()))
    due = fox.RawImage(
        timestamp=stamp(NS), frame_id="/x", width=3, height=2, encoding="rgb8", step=9, data=pixels.tobytes()
    )
    assert one == parsed("RawImage", due.encode())
    assert np.frombuffer(two.data, "<u2").tolist() == list(range(6))
    assert (two.step, two.encoding) == (6, "mono16")
    assert [p.code for p in ch.log.problems] == ["picture"]


def test_point_clouds_are_packed(tmp_path: Path) -> None:
    names = (("x", 0, 7), ("y", 4, 7), ("z", 8, 7), ("time", 16, 8), ("ring", 12, 2))
    fields = [{"name": n, "offset": o, "datatype": t, "count": 1} for n, o, t in names]
    points = b"".join(struct.pack("<fffB3xd", k, k + 1, k + 2, k, k / 2) for k in range(5))
    cloud = {"height": 1, "width": 5, "fields": fields, "point_step": 24, "row_step": 120, "data": points}
    cloud["header"] = {"frame_id": "lidar"}
    (encoder,) = made_of(bag(tmp_path, "sensor_msgs/PointCloud2", [cloud, {}]))
    one, none = (parsed("PointCloud", raw) for raw in payloads(encoder.encode()))
    kinds = fox.PackedElementFieldNumericType
    due = fox.PointCloud(
        timestamp=stamp(NS),
        frame_id="lidar",
        pose=origin(),
        point_stride=21,
        fields=[
            *(fox.PackedElementField(name=n, offset=4 * k, type=kinds.Float32) for k, n in enumerate("xyz")),
            fox.PackedElementField(name="time", offset=12, type=kinds.Float64),
            fox.PackedElementField(name="ring", offset=20, type=kinds.Uint8),
        ],
        data=b"".join(struct.pack("<fffdB", k, k + 1, k + 2, k / 2, k) for k in range(5)),
    )
    assert one == parsed("PointCloud", due.encode())
    assert (none.frame_id, none.data) == ("/x", b"")


def test_poses_of_a_message_stay_together(tmp_path: Path) -> None:
    poses = [{"position": {"x": float(k)}, "orientation": {"w": 1.0}} for k in range(3)]
    messages = [{"header": {"frame_id": "map"}, "poses": poses[:n]} for n in (2, 0, 3)]
    (encoder,) = made_of(bag(tmp_path, "geometry_msgs/PoseArray", messages))
    found = encoder.encode()
    assert found.time.tolist() == [NS, NS + 2]
    read = [parsed("PosesInFrame", raw) for raw in payloads(found)]
    assert [[p.position.x for p in one.poses] for one in read] == [[0, 1], [0, 1, 2]]
    assert {one.frame_id for one in read} == {"map"}


def test_positions_that_are_not_known_are_left_out(tmp_path: Path) -> None:
    fix = {"latitude": 50.0, "longitude": 7.0, "altitude": 1.0}
    messages = [fix, {**fix, "status": {"status": -1}}, {**fix, "latitude": float("nan")}, fix]
    (encoder,) = made_of(bag(tmp_path, "sensor_msgs/NavSatFix", messages))
    assert encoder.encode().time.tolist() == [NS, NS + 3]


def test_actors_are_a_scene() -> None:
    log = logreel.open(SAMPLES[".rec"]())
    (encoder,) = made_of(log["position"])
    found = encoder.encode()
    lens = next(lens for lens in lenses(log["position"]) if isinstance(lens, ActorPose))
    states = lens.states(log["position"])
    read = [parsed("SceneUpdate", raw) for raw in payloads(found)]
    assert found.time.tolist() == sorted(set(states.time.tolist()))
    entities = [one for scene in read for one in scene.entities]
    assert [int(one.id) for one in entities] == states.id.tolist()
    assert all(len(scene.deletions) == 1 and scene.deletions[0].type == 1 for scene in read)
    for k, one in enumerate(entities):
        assert {pair.key: pair.value for pair in one.metadata} == {
            "class": states.kind[k],
            "model": states.model[k],
        }
        if np.isfinite(states.size[k]).all():
            (cube,) = one.cubes
            assert [cube.size.x, cube.size.y, cube.size.z] == states.size[k].tolist()
            middle = np.array([cube.pose.position.x, cube.pose.position.y, cube.pose.position.z])
            distance = np.linalg.norm(middle - states.position[k])
            assert distance == pytest.approx(np.linalg.norm(states.centre[k]))
        else:
            (arrow,) = one.arrows
            assert arrow.pose.position.x == states.position[k, 0]
    assert {len(one.cubes) for one in entities} == {0, 1}
    due = fox.SceneUpdate(
        deletions=[fox.SceneEntityDeletion(type=fox.SceneEntityDeletionType.All)], entities=[]
    )
    assert parsed("SceneUpdate", due.encode()).deletions[0].type == 1


def test_koblenz_scans_equal_their_lens() -> None:
    log = logreel.open(SAMPLES[".vel"]())
    ranged = 0
    for ch in log.channels.values():
        for lens in lenses(ch):
            if isinstance(lens, RangeScan):
                (encoder,) = encoders_for(ch)
                read = [parsed("LaserScan", raw) for raw in payloads(encoder.encode())]
                for one, due in zip(read, lens.scans(ch), strict=True):
                    assert np.array_equal(np.array(one.ranges), due.ranges, equal_nan=True)
                    assert (one.start_angle, one.end_angle) == pytest.approx((due.angles[0], due.angles[-1]))
                ranged += len(read)
            if isinstance(lens, PacketCloud):
                turns = list(lens.clouds(ch))
                (encoder,) = encoders_for(ch)
                whole = encoder.encode()
                assert whole.time.tolist() == [one.time for one in turns]
                edges = [*range(log.start or 0, log.end or 0, 300_000_000), None]
                parts = [encoder.encode(a, b) for a, b in itertools.pairwise(edges)]
                assert b"".join(p.data.tobytes() for p in parts) == whole.data.tobytes()
                (first, *_) = payloads(whole)
                assert len(parsed("PointCloud", first).data) == 26 * len(turns[0].xyz)
    assert ranged == 50


@pytest.mark.parametrize("suffix", SAMPLES)
def test_intervals_together_are_the_whole(suffix: str) -> None:
    log = logreel.open(SAMPLES[suffix]())
    assert log.start is not None
    assert log.end is not None
    middle = (log.start + log.end) // 2
    for ch in log.channels.values():
        for encoder in encoders_for(ch):
            whole, first, second = encoder.encode(), encoder.encode(log.start, middle), encoder.encode(middle)
            assert payloads(whole) == payloads(first) + payloads(second), encoder.topic
