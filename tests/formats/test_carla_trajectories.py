"""Recordings from trajectories, read by logreel and by a parser of the bytes that knows nothing of it."""

from __future__ import annotations

import csv
import math
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from conftest import SHARED
from logreel.errors import LogError, UsageError
from logreel.schemas import osi
from support.harness.examples import half
from support.samples.carla.drive import BARRIER, BIKE, HERO, LEAD, LIGHTS, VAN, WALKER
from support.samples.carla.drive import drive as carla_drive
from support.samples.mcap.builder import Builder

HEADER = "time,id,x,y,z,roll,pitch,yaw\n"


class Naive:
    """A recording, read packet by packet as the format is described: version 2, vectors of float32."""

    ALWAYS = (20, 2, 3, 4, 5, 23, 6, 7, 8, 9, 10, 21, 22)

    def __init__(self, data: bytes) -> None:
        self.version, length = struct.unpack_from("<HH", data)
        assert data[4 : 4 + length] == b"CARLA_RECORDER"
        self.date, length = struct.unpack_from("<qH", data, 18)
        self.map, at = data[28 : 28 + length].decode(), 28 + length
        self.frames: list[dict[str, Any]] = []
        while at < len(data):
            packet, size = struct.unpack_from("<BI", data, at)
            content = data[at + 5 : at + 5 + size]
            assert len(content) == size
            at += 5 + size
            self.packet(packet, content)
        assert self.frames[-1]["packets"][-1] == 1

    def packet(self, packet: int, content: bytes) -> None:
        if packet == 0:
            assert not self.frames or self.frames[-1]["packets"][-1] == 1
            number, duration, elapsed = struct.unpack("<Qdd", content)
            self.frames.append({"number": number, "duration": duration, "elapsed": elapsed, "packets": []})
        frame = self.frames[-1]
        frame["packets"].append(packet)
        if packet in (6, 12, 13):
            (count,) = struct.unpack_from("<H", content)
            assert len(content) == 2 + 28 * count
            rows = [struct.unpack_from("<I6f", content, 2 + 28 * n) for n in range(count)]
            frame[packet] = {row[0]: row[1:] for row in rows}
            assert len(frame[packet]) == count
        elif packet == 3:
            (count,) = struct.unpack_from("<H", content)
            frame[3] = list(struct.unpack(f"<{count}I", content[2:]))
        elif packet == 2:
            frame[2] = self.actors(content)
        elif packet == 20:
            frame[20] = struct.unpack("<d", content)[0]
        elif packet in (7, 10):
            (count,) = struct.unpack_from("<H", content)
            assert len(content) == 2 + {7: 10, 10: 8}[packet] * count
            form = {7: "<IBfB", 10: "<II"}[packet]
            frame[packet] = [
                struct.unpack_from(form, content, 2 + struct.calcsize(form) * n) for n in range(count)
            ]
        elif packet not in (0, 1):
            assert content == b"\0\0"

    def actors(self, content: bytes) -> dict[int, Any]:
        (count,), at, added = struct.unpack_from("<H", content), 2, {}

        def text() -> str:
            nonlocal at
            (length,) = struct.unpack_from("<H", content, at)
            at += 2 + length
            return content[at - length : at].decode()

        for _ in range(count):
            actor, kind, *pose, _uid = struct.unpack_from("<IB6fI", content, at)
            at += 33
            description = text()
            (attributes,) = struct.unpack_from("<H", content, at)
            at += 2
            named = {}
            for _ in range(attributes):
                at += 1
                # Texts have number 4 in recordings of version 2.
                assert content[at - 1] == 4
                name = text()
                named[name] = text()
            added[actor] = (kind, description, pose, named)
        assert at == len(content)
        return added


def written(tmp_path: Path, table: str, **options: Any) -> Naive:
    (tmp_path / "in.csv").write_text(table)
    logreel.carla.write_trajectories(tmp_path / "in.csv", tmp_path / "out.log", force=True, **options)
    check(tmp_path / "out.log")
    return Naive((tmp_path / "out.log").read_bytes())


def check(path: Path) -> None:
    log = logreel.open(path)
    assert log.problems == ()
    assert str(logreel.check(log)).endswith("sound")


def poses(log: logreel.Log) -> dict[tuple[int, int], np.ndarray]:
    ch = log["position"]
    names = (
        *(f"location.{axis}" for axis in "xyz"),
        *(f"rotation.{axis}" for axis in ("roll", "pitch", "yaw")),
    )
    times = ch.to_arrow()["time"].cast("int64").to_pylist()
    table = np.stack([np.asarray(ch[name], np.float64) for name in names], axis=1)
    return dict(zip(zip(times, ch["id"].tolist(), strict=True), table, strict=True))


def test_a_table_becomes_a_recording(tmp_path: Path) -> None:
    table = (
        "time,id,type,role,x,y,z,roll,pitch,yaw,vx,vy,vz,length,width,height\n"
        "10.0,7,truck,hero,1,2,3,0.1,0.2,0.3,4,5,6,8,2,3\n"
        "10.0,9,pedestrian,,-1,-2,0.9,0,0,3.1,,,,0.4,0.6,1.8\n"
        "10.1,7,truck,hero,1.5,2.5,3,0.1,0.2,0.3,4,5,6,8,2,3\n"
        "10.2,7,truck,hero,2,3,3,0.1,0.2,0.3,4,5,6,8,2,3\n"
        "\n"
        "10.2,8,vehicle.audi.tt,,0,0,0,0,0,0,,,,,,\n"
    )
    made = written(tmp_path, table, map="Town05", date="2026-01-02T03:04:05Z")
    assert (made.version, made.map, made.date) == (2, "Town05", 1767323045)
    assert [frame["number"] for frame in made.frames] == [1, 2, 3]
    assert [frame["elapsed"] for frame in made.frames] == pytest.approx([0, 0.1, 0.2])
    assert [frame["duration"] for frame in made.frames] == pytest.approx([0.1, 0.1, -1])
    for frame in made.frames:
        assert frame["packets"][0] == 0
        assert tuple(n for n in frame["packets"] if n in Naive.ALWAYS) == Naive.ALWAYS
        assert frame[20] == frame["elapsed"]
    first, second, last = made.frames
    assert first[6][7] == pytest.approx((100, -200, 300, *np.degrees((0.1, -0.2, -0.3))))
    assert last[6][7][:2] == pytest.approx((200, -300))
    assert {actor: row[:2] for actor, row in first[2].items()} == {
        7: (1, "vehicle.carlamotors.carlacola"), 9: (2, "walker.pedestrian.0001"),
    }  # fmt: skip
    assert first[2][7][3] == {"role_name": "hero"}
    assert first[2][7][2] == pytest.approx(first[6][7])
    assert first[12][7] == pytest.approx((4, -5, 6, 0, 0, 0))
    assert 9 not in first[12]
    # The origin of a vehicle is on the ground, that of a walker in its middle.
    assert first[13][7] == pytest.approx((0, 0, 150, 400, 100, 150))
    assert first[13][9] == pytest.approx((0, 0, 0, 20, 30, 90))
    assert (first[3], second[3], last[3]) == ([], [9], [])
    assert last[2][8][1] == "vehicle.audi.tt"
    assert 8 not in last[13]


def test_angles_in_degrees_and_quaternions(tmp_path: Path) -> None:
    turns = [(0.3, -0.5, 2.5), (-1.0, 0.2, -3.0), (0.0, 1.2, 0.0)]
    radians = written(
        tmp_path, HEADER + "".join(f"{n},5,0,0,0,{r},{p},{y}\n" for n, (r, p, y) in enumerate(turns))
    )
    degrees = written(
        tmp_path,
        "time_ns,id,x,y,z,roll_deg,pitch_deg,yaw_deg\n"
        + "".join(
            f"{n * 10**9},5,0,0,0,{','.join(map(repr, np.degrees(t).tolist()))}\n"
            for n, t in enumerate(turns)
        ),
    )
    lines = []
    for n, (roll, pitch, yaw) in enumerate(turns):
        # Yaw first, then pitch, then roll: the product of three quaternions.
        q = np.array([0.0, 0.0, 0.0, 2.0])
        for axis, angle in ((2, yaw), (1, pitch), (0, roll)):
            v = np.zeros(3)
            v[axis] = math.sin(angle / 2)
            w = math.cos(angle / 2)
            q = np.append(q[3] * v + w * q[:3] + np.cross(q[:3], v), q[3] * w - q[:3] @ v)
        lines.append(f"{n},5,0,0,0,{','.join(map(repr, q.tolist()))}\n")
    quaternions = written(tmp_path, "time,id,x,y,z,qx,qy,qz,qw\n" + "".join(lines))
    for n, (roll, pitch, yaw) in enumerate(turns):
        due = np.degrees([roll, -pitch, -yaw])
        for made in (radians, degrees, quaternions):
            assert made.frames[n][6][5][3:] == pytest.approx(due, abs=1e-4)


def test_recordings_come_back_from_their_traces(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(carla_drive(27.0).bytes())
    logreel.convert(tmp_path / "a.log", tmp_path / "a.osi.mcap")
    done = logreel.carla.write_trajectories(tmp_path / "a.osi.mcap", tmp_path / "b.log")
    assert (done.actors, done.notes, done.lost) == (10, (), ())
    check(tmp_path / "b.log")
    before, after = logreel.open(tmp_path / "a.log"), logreel.open(tmp_path / "b.log")
    assert (after.metadata["map"], after.metadata["date"]) == (
        before.metadata["map"],
        before.metadata["date"],
    )
    assert list(after["frames"]["frame"]) == list(before["frames"]["frame"])
    here, there = poses(before), poses(after)
    shared = [key for key in here if key[1] in (HERO, LEAD, BIKE, VAN, WALKER)]
    assert {key for key in there if key[1] != BARRIER} == set(shared)
    assert max(np.abs(here[key][:3] - there[key][:3]).max() for key in shared) < 0.1
    assert max(np.abs(here[key][3:] - there[key][3:]).max() for key in shared) < 0.01
    for actor in (HERO, LEAD, BIKE, VAN, WALKER, BARRIER):
        assert after.actor(actor).description == before.actor(actor).description
    assert after.actor(HERO).attributes == {"role_name": "hero"}
    assert after.actor(BIKE).end == before.actor(BIKE).end
    boxes = [logreel.carla.MetricsLog(log).get_actor_bounding_box(LEAD) for log in (before, after)]
    assert np.allclose(np.array(boxes[0]), np.array(boxes[1]), atol=1e-5)
    for log in (before, after):
        velocity = log.actor(LEAD).trajectory()["velocity"][100].as_py()
        assert velocity == pytest.approx(before.actor(LEAD).trajectory()["velocity"][100].as_py(), abs=1e-5)
    metrics = [logreel.carla.MetricsLog(log) for log in (before, after)]
    for frame in range(1, len(before["frames"]) + 1):
        for light in LIGHTS:
            states = [log.get_traffic_light_state(light, frame) for log in metrics]
            assert states[0] == states[1]
        for actor in (HERO, LEAD, VAN):
            names = [log.get_vehicle_lights(actor, frame) for log in metrics]
            assert names[0] == names[1]
    for light in LIGHTS:
        assert after.actor(light).type == "traffic_light"
        assert after.actor(light).description == before.actor(light).description
    naive = Naive((tmp_path / "b.log").read_bytes())
    # The simulator finds its traffic lights by their places, in whole centimetres.
    assert [naive.frames[0][2][light][2][:3] for light in LIGHTS] == [
        [-900, -900, 15], [900, -900, 15], [-900, 900, 15], [900, 900, 15],
    ]  # fmt: skip
    assert sum(len(frame[6]) for frame in naive.frames) == len(there)


@pytest.mark.parametrize("ros_axes", [False, True])
def test_recordings_come_back_from_tables_of_their_positions(tmp_path: Path, ros_axes: bool) -> None:
    (tmp_path / "a.log").write_bytes(carla_drive(27.0).bytes())
    log = logreel.open(tmp_path / "a.log", ros_axes=ros_axes)
    logreel.convert(log, tmp_path / "a.csv", topics="position")
    names = {str(WALKER): "walker.pedestrian.0012"}
    done = logreel.carla.write_trajectories(
        tmp_path / "a.csv", tmp_path / "b.log", ros_axes=ros_axes, blueprints=names, map="Town03"
    )
    assert "columns that are not used: frame" in done.notes
    # Actor 1 is the spectator to the simulator.
    assert any("1 is 2" in note for note in done.notes)
    check(tmp_path / "b.log")
    here, there = poses(logreel.open(tmp_path / "a.log")), poses(logreel.open(tmp_path / "b.log"))
    assert {(time, 2 if actor == 1 else actor) for time, actor in here} == set(there)
    for (time, actor), row in here.items():
        again = there[time, 2 if actor == 1 else actor]
        assert np.abs(row[:3] - again[:3]).max() < 0.1
        assert np.abs(np.exp(1j * np.radians(row[3:])) - np.exp(1j * np.radians(again[3:]))).max() < 1e-4
    assert logreel.open(tmp_path / "b.log").actor(WALKER).type == "walker"


@pytest.mark.skipif(not (SHARED / "data/carla").is_dir(), reason="no CARLA recordings beside the repository")
def test_real_recordings_come_back(tmp_path: Path) -> None:
    path = SHARED / "data/carla/sr_DistanceToLaneCenter_2021.log"
    logreel.convert(path, tmp_path / "a.osi.mcap")
    logreel.carla.write_trajectories(tmp_path / "a.osi.mcap", tmp_path / "b.log")
    check(tmp_path / "b.log")
    here, there = poses(logreel.open(path)), poses(logreel.open(tmp_path / "b.log"))
    shared = set(here) & set(there)
    assert len(shared) > 0.98 * len(here)
    apart = np.array([np.abs(here[key] - there[key]) for key in shared])
    assert apart[:, :3].max() < 0.1
    assert apart[:, 3:].max() < 0.01


def test_ids_blueprints_and_rounding(tmp_path: Path) -> None:
    table = (
        "time,id,type,x,y,z,roll,pitch,yaw\n0,1,bus,9000000.001,0,0,0,0,0\n0,5,tank,1,0,0,0,0,0\n"
        "0,99999999999,,1,0,0,0,0,0\n"
    )
    (tmp_path / "a.csv").write_text(table)
    done = logreel.carla.write_trajectories(
        tmp_path / "a.csv",
        tmp_path / "a.log",
        blueprints={"tank": "vehicle.tank.big", "1": "vehicle.bus.red"},
    )
    assert any("2 ids are not possible" in note for note in done.notes)
    assert any("rounded by up to" in note for note in done.notes)
    assert any("names no map" in note for note in done.notes)
    actors = logreel.open(tmp_path / "a.log").actors
    assert {actor.id: actor.description for actor in actors.values()} == {
        2: "vehicle.bus.red", 5: "vehicle.tank.big", 3: "vehicle.tesla.model3",
    }  # fmt: skip
    for wrong, why in (({"5": "tank"}, "is no blueprint"), ({"6": "vehicle.a.b"}, "no id, model or type")):
        with pytest.raises(UsageError, match=why):
            logreel.carla.write_trajectories(tmp_path / "a.csv", tmp_path / "b.log", blueprints=wrong)
    with pytest.raises(LogError, match="exists"):
        logreel.carla.write_trajectories(tmp_path / "a.csv", tmp_path / "a.log")
    assert not (tmp_path / "b.log").exists()


GOOD = "1,5,0,0,0,0,0,0\n"


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ("", "no column time_ns or time, id, x, y, z, roll,pitch,yaw or "),
        ("time,id,x,y\n1,2,3,4\n", "no column z, roll,pitch,yaw"),
        ("time,id,x,y,z,roll,pitch,yaw,x\n", "several columns are called 'x'"),
        (HEADER, "no pose of any actor"),
        (HEADER + GOOD + "2,5,0,0,0,0,0\n", "line 3: 7 cells, where the table has 8 columns"),
        (HEADER + GOOD + "2,5,nan,0,0,0,0,0\n", "line 3: x is 'nan', not a finite number"),
        (HEADER + "2,5,0,inf,0,0,0,0\n", "line 2: y is 'inf'"),
        (HEADER + "2,5,0,0,0,0,0,\n", "line 2: yaw is ''"),
        (HEADER + "2,5,0,0,0,0,0,1e300\n", "line 2: yaw is '1e300'"),
        (HEADER + "2,a,0,0,0,0,0,0\n", "line 2: id is 'a', not a whole number"),
        (HEADER + "2,-4,0,0,0,0,0,0\n", "line 2: id is -4, and below 0"),
        (HEADER + "1e11,4,0,0,0,0,0,0\n", "which no recording can hold"),
        (HEADER + GOOD + "0.5,5,0,0,0,0,0,0\n", "line 3: actor 5 is after a later time: time is 0.5"),
        (HEADER + GOOD + GOOD, "line 3: actor 5 is again at the same time"),
        (HEADER + '1,5,0,0,0,0,0,"0\n', "is no table: unexpected end of data"),
        ("time,id,x,y,z,qx,qy,qz,qw\n1,5,0,0,0,0,0,0,0\n", "line 2: the quaternion is 0 0 0 0"),
        (HEADER[:-1] + ",length,width,height\n1,5,0,0,0,0,0,0,1,-2,3\n", "line 2: length, width and height"),
        (HEADER[:-1] + ",vx,vy,vz\n1,5,0,0,0,0,0,0,1,,3\n", "line 2: vy is ''"),
    ],
)  # fmt: skip
def test_wrong_tables_raise_errors_with_their_line(tmp_path: Path, table: str, why: str) -> None:
    (tmp_path / "a.csv").write_text(table)
    with pytest.raises(LogError) as error:
        logreel.carla.write_trajectories(tmp_path / "a.csv", tmp_path / "a.log")
    assert why in str(error.value)
    assert not (tmp_path / "a.log").exists()


def test_bytes_that_are_no_table(tmp_path: Path) -> None:
    for data in (b"\xff\xfe\x00", b"time\0,id\n", HEADER.encode() + b"1,\xff,0,0,0,0,0,0\n", b"a" * 300_000):
        (tmp_path / "a.csv").write_bytes(data)
        with pytest.raises(LogError):
            logreel.carla.write_trajectories(tmp_path / "a.csv", tmp_path / "a.log")
    (tmp_path / "a.csv").write_text(HEADER + GOOD)
    with pytest.raises(UsageError, match="axes that can be chosen"):
        logreel.carla.write_trajectories(tmp_path / "a.csv", tmp_path / "a.log", ros_axes=True)


def test_damaged_tables(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(carla_drive(1.0).bytes())
    logreel.convert(tmp_path / "a.log", tmp_path / "a.csv", topics="position")
    whole, dice = (tmp_path / "a.csv").read_bytes(), random.Random(7)
    for n in range(200):
        data = bytearray(whole)
        for _ in range(dice.randrange(1, 4)):
            data[dice.randrange(len(data))] = dice.choice(b'0123456789.,-"\n\0\xffen')
        (tmp_path / "b.csv").write_bytes(data if n % 2 else whole[: dice.randrange(len(whole))])
        try:
            logreel.carla.write_trajectories(tmp_path / "b.csv", tmp_path / "b.log", force=True)
        except LogError:
            continue
        check(tmp_path / "b.log")
        assert Naive((tmp_path / "b.log").read_bytes()).frames


def trace(path: Path, messages: list[tuple[int, bytes]]) -> Path:
    out = Builder().schema(1, osi.GROUND_TRUTH, "protobuf", osi.descriptor_set())
    out.channel(1, 1, "gt", "protobuf")
    for time, data in messages:
        out.message(1, time, data)
    path.write_bytes(out.bytes())
    return path


def truth(seconds: int, *bodies: dict[str, Any], **more: Any) -> bytes:
    content = {"timestamp": {"seconds": seconds, "nanos": 0}, "moving_object": bodies, **more}
    return osi.template("GroundTruth", content).data


def car(number: int, x: float = 0.0, **more: Any) -> dict[str, Any]:
    base = {"position": {"x": x, "y": 0.0, "z": 1.0}, "orientation": {"roll": 0.0, "pitch": 0.0, "yaw": 0.0}}
    return {"id": {"value": number}, "base": base, "type": "VEHICLE", **more}


def test_traces_of_others(tmp_path: Path) -> None:
    lamp = {"id": {"value": 3}, "classification": {"color": "RED", "icon": "NONE", "mode": "CONSTANT"}}
    bus = car(2**40, 5.0, vehicle_classification={"type": "BUS"}, model_reference="../../etc/passwd")
    bus["base"] = {"dimension": {"length": 10.0, "width": 3.0, "height": 4.0}, **bus["base"]}
    messages = [
        (0, truth(1, car(7), bus, host_vehicle_id={"value": 7}, map_reference="Town02.xodr")),
        (1, b"\x0a\xff"),
        (2, truth(2, car(7, 1.0), car(7, 2.0), car(8, math.nan), {"id": {"value": 9}})),
        (3, truth(1, car(7, 3.0))),
        (4, truth(3, car(7, 4.0), traffic_light=[lamp, lamp])),
    ]  # fmt: skip
    done = logreel.carla.write_trajectories(trace(tmp_path / "a.mcap", messages), tmp_path / "a.log")
    assert done.lost == (
        "1 messages are no ground truth: left out",
        "1 poses are of an id that the message has already: left out",
        "1 poses are not finite: left out",
        "1 poses have no id, position or orientation: left out",
        "1 messages have a time that is not after that of the one before: left out",
        "2 lamps are of no traffic light of the simulator: left out",
    )
    check(tmp_path / "a.log")
    made = Naive((tmp_path / "a.log").read_bytes())
    assert made.map == "Town02"
    assert [round(frame["elapsed"]) for frame in made.frames] == [0, 1, 2]
    assert made.frames[0][2][7][1:] == (
        "vehicle.tesla.model3", pytest.approx([0, 0, 100, 0, 0, 0]), {"role_name": "hero"},
    )  # fmt: skip
    # The middle of its box is 1 m above the ground, half of its height below that is its origin.
    assert made.frames[0][2][2][1] == "vehicle.mitsubishi.fusorosa"
    assert made.frames[0][6][2] == pytest.approx((500, 0, -100, 0, 0, 0))
    assert [frame[6][7][0] for frame in made.frames] == pytest.approx([0, 100, 400])


def test_traces_without_poses_and_damaged_ones(tmp_path: Path) -> None:
    for messages, why in (
        ([(0, b"")], "no pose of any actor"),
        ([(0, b"\xff")], "no pose of any actor; 1 messages are no ground truth"),
        ([], "no channel with messages of type osi3.GroundTruth"),
    ):
        with pytest.raises(LogError, match=why):
            logreel.carla.write_trajectories(trace(tmp_path / "a.mcap", messages), tmp_path / "a.log")
    with pytest.raises(LogError, match="no channel with messages"):
        logreel.carla.write_trajectories(carla_drive(1.0).bytes(), tmp_path / "a.log")
    (tmp_path / "c.log").write_bytes(carla_drive(1.0).bytes())
    logreel.convert(tmp_path / "c.log", tmp_path / "c.osi.mcap")
    with logreel.open(tmp_path / "c.osi.mcap") as log:
        payloads = [bytes(message.data) for message in log["ground_truth"]]
    dice = random.Random(3)
    for n in range(half(150)):
        mutants = []
        for at, data in enumerate(payloads[:4]):
            changed = bytearray(data)
            for _ in range(dice.randrange(1, 6)):
                changed[dice.randrange(len(changed))] = dice.randrange(256)
            mutants.append((at, bytes(changed) if n % 3 else data[: dice.randrange(len(data))]))
        try:
            logreel.carla.write_trajectories(
                trace(tmp_path / "d.mcap", mutants), tmp_path / "d.log", force=True
            )
        except LogError:
            continue
        check(tmp_path / "d.log")
        Naive((tmp_path / "d.log").read_bytes())


def test_nested_and_repeated_bytes_are_bounded(tmp_path: Path) -> None:
    deep = b""
    for _ in range(20_000):
        deep = b"\x2a" + osi.template("Identifier", {"value": len(deep)}).data[1:] + deep
    many = b"\x2a\x00" * 300_000
    done = logreel.carla.write_trajectories(
        trace(tmp_path / "a.mcap", [(0, deep), (1, many), (2, truth(1, car(7)))]), tmp_path / "a.log"
    )
    assert (done.frames, done.actors) == (1, 1)
    assert done.lost


def test_more_than_a_packet_holds_and_long_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logreel.formats.carla.simulator.trajectories.MOST_ACTORS", 3)
    lit_red = {"color": "RED", "icon": "NONE", "mode": "CONSTANT"}
    lamp = {"classification": lit_red, "model_reference": "traffic.traffic_light"}
    lamps = [lamp | {"source_reference": [osi.reference(30 + n, {}, None)]} for n in range(3)]
    for bodies, lit, count in (([car(n) for n in range(5, 9)], [], 4), ([car(5)], lamps, 4)):
        path = trace(tmp_path / "a.mcap", [(0, truth(1, *bodies, traffic_light=lit))])
        with pytest.raises(UsageError, match=f"{count} actors at one time"):
            logreel.carla.write_trajectories(path, tmp_path / "a.log")
        assert list(tmp_path.iterdir()) == [path]
    table = HEADER[:-1] + f",role,type\n0,5,0,0,0,0,0,0,{'r' * 70_000},vehicle.{'x' * 70_000}\n"
    made = written(tmp_path, table)
    (actor,) = made.frames[0][2].values()
    assert (actor[1], actor[3]["role_name"]) == ("vehicle.tesla.model3", "r" * 200)


def test_the_columns_are_those_of_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs/howto/carla.md").read_text()
    for name in ("time_ns", "roll_deg", "qx", "vx", "length", "location.x", "type", "role"):
        assert f"`{name}" in page, name


def test_the_command_writes_to_a_file(tmp_path: Path, run: Any) -> None:
    table = [
        ["time", "id", "x", "y", "z", "roll", "pitch", "yaw"],
        *([n, 5, n, 0, 0, 0, 0, 0] for n in range(3)),
    ]
    with open(tmp_path / "a.csv", "w", newline="") as file:
        csv.writer(file).writerows(table)
    done = run("carla", "write", tmp_path / "a.csv", "--map", "Town04", "--blueprints", "5=vehicle.mini.cooper",
               "-o", tmp_path / "a.log")  # fmt: skip
    assert done.code == 0
    made = Naive((tmp_path / "a.log").read_bytes())
    assert (made.map, made.frames[0][2][5][1]) == ("Town04", "vehicle.mini.cooper")
    messages = [(0, truth(1, car(7))), (1, b"\xff")]
    done = run("carla", "write", trace(tmp_path / "b.mcap", messages), "-o", tmp_path / "b.log")
    assert done.code == 3
    assert "1 messages are no ground truth: left out" in done.err
    check(tmp_path / "b.log")
    done = run("carla", "write", tmp_path / "a.csv", "--blueprints", "x", "-o", tmp_path / "c.log")
    assert done.code == 2
    assert not (tmp_path / "c.log").exists()
