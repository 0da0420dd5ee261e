"""Traces of OSI from recordings of CARLA: decoded by the mcap and protobuf libraries, and by OSI's own messages."""

from __future__ import annotations

import importlib.util
import math
import random
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, unknown_fields
from mcap.reader import make_reader

import logreel
from conftest import SHARED
from logreel.errors import LogError
from logreel.schemas import osi
from support.harness.examples import half
from support.samples.carla.builder import Builder, eventful
from support.samples.carla.drive import BARRIER, BIKE, HERO, LEAD, LIGHTS, VAN, WALKER
from support.samples.carla.drive import drive as carla_drive
from support.samples.rosbag.builder import drive


@cache
def decoder(descriptors: bytes) -> Any:
    pool = descriptor_pool.DescriptorPool()
    listed = descriptor_pb2.FileDescriptorSet.FromString(descriptors)
    for file in listed.file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("osi3.GroundTruth"))


class Trace:
    """A trace, read by the mcap library with all its checksums, and by the descriptors in it."""

    def __init__(self, path: Path) -> None:
        with open(path, "rb") as file:
            reader = make_reader(file, validate_crcs=True)
            self.metadata = {record.name: dict(record.metadata) for record in reader.iter_metadata()}
            self.frames = []
            for schema, channel, message in reader.iter_messages():
                assert schema is not None
                self.schema, self.channel = schema, channel
                self.frames.append((message, decoder(schema.data).FromString(message.data)))

    def times(self) -> list[int]:
        for message, truth in self.frames:
            assert message.log_time == message.publish_time
            assert message.log_time == truth.timestamp.seconds * 10**9 + truth.timestamp.nanos
        return [message.log_time for message, _ in self.frames]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[logreel.Log, Trace, Path]:
    folder = tmp_path_factory.mktemp("osi")
    (folder / "a.log").write_bytes(carla_drive(27.0).bytes())
    log = logreel.open(folder / "a.log")
    done = logreel.convert(log, folder / "a_gt.osi.mcap")
    assert done.skipped == ()
    assert done.notes == ("3 actors that are neither traffic nor scenery are left out",)
    return log, Trace(folder / "a_gt.osi.mcap"), folder / "a_gt.osi.mcap"


def test_a_trace_follows_the_conventions(made: tuple[logreel.Log, Trace, Path]) -> None:
    log, trace, path = made
    assert (trace.schema.name, trace.schema.encoding) == ("osi3.GroundTruth", "protobuf")
    assert trace.channel.message_encoding == "protobuf"
    assert set(trace.channel.metadata) == {
        f"net.asam.osi.trace.channel.{name}" for name in ("osi_version", "protobuf_version", "description")
    }
    about = trace.metadata["net.asam.osi.trace"]
    assert {
        "version", "min_osi_version", "max_osi_version", "min_protobuf_version", "max_protobuf_version",
    } <= set(about)  # fmt: skip
    assert about["zero_time"] == "20231114T221321.0Z"
    with open(path, "rb") as file:
        summary = make_reader(file).get_summary()
        assert summary is not None
        assert summary.chunk_indexes
    assert trace.times() == log["frames"].to_arrow()["time"].cast("int64").to_pylist()
    _, truth = trace.frames[0]
    assert (truth.version.version_major, truth.version.version_minor) == (3, 8)
    assert truth.map_reference == "Town03"


def test_objects_are_where_the_recording_has_them(made: tuple[logreel.Log, Trace, Path]) -> None:
    log, trace, _ = made
    metrics = logreel.carla.MetricsLog(log)
    seen: dict[int, int] = {}
    for number, (_, truth) in enumerate(trace.frames, 1):
        assert truth.host_vehicle_id.value == HERO
        for thing in truth.moving_object:
            actor = thing.id.value
            seen[actor] = seen.get(actor, 0) + 1
            pose = metrics.get_actor_transform(actor, number)
            box = metrics.get_actor_bounding_box(actor)
            assert pose is not None
            # The simulator's own geometry, in its left-handed axes, gives the centre of the box.
            x, y, z = np.array(pose.location) + np.array(pose.rotation.axes().outer(box.location))
            base = thing.base
            assert np.allclose([base.position.x, base.position.y, base.position.z], [x, -y, z], atol=1e-4)
            angles = [base.orientation.roll, base.orientation.pitch, base.orientation.yaw]
            due = np.radians([pose.rotation.roll, -pose.rotation.pitch, -pose.rotation.yaw])
            assert np.allclose(np.exp(1j * np.array(angles)), np.exp(1j * due), atol=1e-6)
            assert np.abs(angles).max() <= math.pi
            assert np.allclose(
                [base.dimension.length, base.dimension.width, base.dimension.height], 2 * np.array(box.extent)
            )
            velocity = metrics.get_actor_velocity(actor, number)
            assert velocity is not None
            due = np.array(velocity) * (1, -1, 1)
            assert np.allclose([base.velocity.x, base.velocity.y, base.velocity.z], due, atol=1e-5)
            gain = metrics.get_actor_acceleration(actor, number)
            assert gain is not None
            due = np.array(gain) * (1, -1, 1)
            assert np.allclose(
                [base.acceleration.x, base.acceleration.y, base.acceleration.z], due, atol=1e-4
            )
    positions = log["position"]["id"]
    assert seen == {actor: int((positions == actor).sum()) for actor in (HERO, LEAD, BIKE, VAN, WALKER)}


def test_kinds_lights_signs_and_scenery(made: tuple[logreel.Log, Trace, Path]) -> None:
    log, trace, _ = made
    metrics = logreel.carla.MetricsLog(log)
    colors = {2: "Red", 3: "Yellow", 4: "Green"}
    braked = 0
    for number, (_, truth) in enumerate(trace.frames, 1):
        things = {thing.id.value: thing for thing in truth.moving_object}
        hero = things[HERO]
        assert (hero.type, hero.model_reference) == (2, "vehicle.tesla.model3")
        assert hero.vehicle_classification.type == 4
        assert things[WALKER].type == 3
        assert not things[WALKER].HasField("vehicle_classification")
        lights = hero.vehicle_classification.light_state
        names = metrics.get_vehicle_lights(HERO, number)
        assert (lights.brake_light_state == 3) == ("Brake" in names)
        assert (lights.head_light == 3) == ("LowBeam" in names)
        assert (lights.indicator_state == 4) == ("RightBlinker" in names)
        braked += lights.brake_light_state == 3
        if BIKE in things:
            assert things[BIKE].vehicle_classification.type == 10
        (barrier,) = truth.stationary_object
        assert barrier.id.value == BARRIER
        assert (barrier.base.position.x, barrier.base.position.y) == (-20.0, -7.8)
        (sign,) = truth.traffic_sign
        assert sign.main_sign.classification.type == 17
        assert len(truth.traffic_light) == 3 * len(LIGHTS)
        for lamp in truth.traffic_light:
            head = lamp.id.value & 0xFFFFFFFF
            lit = metrics.get_traffic_light_state(head, number) == colors[lamp.classification.color]
            assert lamp.classification.mode == (3 if lit else 2)
    assert 0 < braked < len(trace.frames)
    names = ("moving_object", "stationary_object", "traffic_sign", "traffic_light")
    every = [thing.id.value for name in names for thing in getattr(trace.frames[0][1], name)]
    assert len(every) == len(set(every))


def test_messages_of_osi_itself_decode_a_trace(made: tuple[logreel.Log, Trace, Path]) -> None:
    spec = importlib.util.find_spec("betterosi")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("needs betterosi, which contains the descriptors of OSI")
    folder = Path(spec.submodule_search_locations[0]) / "generated"
    (genuine,) = folder.glob("3.8.*/osi3_descriptor_set.pb")
    decode = decoder(genuine.read_bytes())
    for message, truth in made[1].frames:
        theirs = decode.FromString(message.data)
        assert str(theirs) == str(truth)
        assert not len(unknown_fields.UnknownFieldSet(theirs))


def test_the_tables_have_no_number_twice() -> None:
    for name in osi.MESSAGES:
        numbers = [field.number for field in osi.fields(name).values()]
        assert numbers == sorted(set(numbers)), name
    assert osi.values("TrafficSign.MainSign.Classification.Type") == {
        "UNKNOWN": 0, "OTHER": 1, "GIVE_WAY": 16, "STOP": 17, "SPEED_LIMIT_BEGIN": 52,
    }  # fmt: skip


def test_intervals_are_written_alone(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(carla_drive(5.0).bytes())
    done = logreel.convert(tmp_path / "a.log", tmp_path / "a.osi.mcap", start="+2s", end="+3s")
    trace = Trace(tmp_path / "a.osi.mcap")
    assert 18 <= len(trace.frames) <= 21
    assert 2e9 <= trace.times()[0] <= trace.times()[-1] < 3e9
    assert [written.rows for written in done.channels] == [len(trace.frames)]


@pytest.mark.parametrize("release", ["0.9.4", "0.9.10", "0.9.16", "2026", "0.10.0"])
def test_weather_boxes_and_roles_of_each_release(tmp_path: Path, release: str) -> None:
    out = Builder(release, town="Town01", date=1_700_000_000)
    frame = out.frame(0.0)
    frame.add(7, 1, "vehicle.ambulance.ford", (100.0, 200.0, 0.0), values={"role_name": "hero"})
    frame.position(7, (100.0, 200.0, 0.0), (0.0, 10.0, 90.0))
    if release == "2026":
        frame.weather(50.0, 60.0, 0.0, 0.0, 0.0, 30.0, *[0.0] * 8)
    out.frame(0.1).position(7, (100.0, 300.0, 0.0), (0.0, 10.0, 90.0))
    (tmp_path / "a.log").write_bytes(out.bytes())
    done = logreel.convert(tmp_path / "a.log", tmp_path / "a.osi.mcap")
    assert any("no known box" in note for note in done.notes)
    (_, first), (_, last) = Trace(tmp_path / "a.osi.mcap").frames
    thing = first.moving_object[0]
    assert thing.vehicle_classification.role == 3
    assert not thing.base.HasField("dimension")
    assert np.isclose(thing.base.velocity.y, -10.0)
    assert np.isclose(thing.base.orientation.yaw, -math.pi / 2)
    assert not thing.vehicle_classification.HasField("light_state")
    assert first.HasField("environmental_conditions") == (release == "2026")
    if release == "2026":
        for conditions in (first.environmental_conditions, last.environmental_conditions):
            assert (conditions.precipitation, conditions.fog) == (5, 2)
            assert conditions.clouds.fractional_cloud_cover == 6
            assert np.isclose(conditions.sun.elevation, math.radians(30))


def test_a_trace_that_reads_differently_is_no_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.log").write_bytes(carla_drive(1.0).bytes())
    encode = osi.Template.fill

    def wrong(self: osi.Template, columns: Any, count: int) -> Any:
        rows = encode(self, columns, count)
        rows[-1, self.places[0][1]] ^= 1
        return rows

    with monkeypatch.context() as patch:
        patch.setattr(osi.Template, "fill", wrong)
        with pytest.raises(LogError, match="reads differently"):
            logreel.convert(tmp_path / "a.log", tmp_path / "a.osi.mcap")
    assert list(tmp_path.iterdir()) == [tmp_path / "a.log"]
    with pytest.raises(LogError, match="no channel that holds actors"):
        logreel.convert(drive(), tmp_path / "c.osi.mcap")
    with pytest.raises(LogError, match="no channel that holds actors"):
        logreel.convert(Builder("0.9.15", town="Town01").bytes(), tmp_path / "c.osi.mcap")


@pytest.mark.parametrize("cut", range(12))
def test_what_is_left_of_a_cut_recording(tmp_path: Path, cut: int) -> None:
    data = carla_drive(2.0).bytes()
    (tmp_path / "a.log").write_bytes(data[: 3000 + cut * 3001])
    try:
        logreel.convert(tmp_path / "a.log", tmp_path / "a.osi.mcap")
    except LogError:
        return
    assert Trace(tmp_path / "a.osi.mcap").frames


def test_mutants_become_traces_that_read_back_or_errors(tmp_path: Path) -> None:
    samples = [
        carla_drive(0.3).bytes(),
        *(eventful(one, frames=3).bytes() for one in ("0.9.10", "0.10.0", "2026")),
    ]
    dice, written, tries = random.Random(11), 0, half(120)
    for _ in range(tries):
        data = bytearray(dice.choice(samples))
        for _ in range(dice.randrange(1, 10)):
            data[dice.randrange(18, len(data))] = dice.choice((0, 127, 128, 255, dice.randrange(256)))
        try:
            logreel.convert(bytes(data), tmp_path / "a.osi.mcap", force=True)
        except LogError:
            continue
        for _, truth in Trace(tmp_path / "a.osi.mcap").frames:
            for thing in truth.moving_object:
                assert math.isfinite(
                    thing.base.position.x + thing.base.orientation.yaw + thing.base.velocity.y
                )
        written += 1
    assert written > tries // 2


def test_frames_before_the_start_are_told(tmp_path: Path) -> None:
    out = Builder("0.9.15", town="Town01")
    for at in (-0.5, 0.0, 0.5):
        frame = out.frame(at)
        if at < 0:
            frame.add(7, 1, "vehicle.audi.tt")
        frame.position(7, (100.0, at, 0.0), (0.0, 0.0, 0.0))
    done = logreel.convert(out.bytes(), tmp_path / "a.osi.mcap")
    assert done.skipped == ("1 frames have a time below 0, which an MCAP cannot hold",)
    assert Trace(tmp_path / "a.osi.mcap").times() == [0, 500_000_000]


@pytest.mark.skipif(not (SHARED / "data/carla").is_dir(), reason="no CARLA recordings beside the repository")
def test_real_recordings(tmp_path: Path) -> None:
    for path in sorted((SHARED / "data/carla").glob("*.log")):
        log = logreel.open(path)
        logreel.convert(log, tmp_path / "a.osi.mcap", force=True)
        trace = Trace(tmp_path / "a.osi.mcap")
        assert len(trace.frames) == len(log["frames"])
        moving = {actor.id for actor in log.actors.values() if actor.type in ("vehicle", "walker")}
        count = sum(len(truth.moving_object) for _, truth in trace.frames)
        assert count == int(np.isin(log["position"]["id"], list(moving)).sum())
