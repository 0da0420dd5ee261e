"""The queries of the simulator's client print the same text as the simulator, byte for byte."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path
from typing import Any

import pytest

import logreel
from conftest import SHARED
from damage.mutations import mutate
from logreel.errors import UsageError
from support.harness.examples import half
from support.oracles import carla as carla_oracle
from support.oracles import carla_queries
from support.samples.carla.builder import Builder, eventful
from support.samples.carla.drive import drive
from support.samples.carla.records import RELEASES

carla: Any = logreel.carla
SAMPLES = SHARED / "data/carla"
NAMES = sorted(p.stem for p in [*SAMPLES.glob("*.log"), *SAMPLES.glob("synthetic/*.log")]) or ["none"]
real = pytest.mark.skipif(
    not SAMPLES.is_dir(), reason="no CARLA recordings beside the repository (LOGREEL_SHARED)"
)


def sample(name: str) -> Path:
    path = SAMPLES / f"{name}.log"
    return path if path.exists() else SAMPLES / f"synthetic/{name}.log"


def expected(name: str) -> str:
    path = SAMPLES / "expected" / name
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return data.decode()


@real
@pytest.mark.parametrize("name", NAMES)
def test_query_texts_equal_the_simulator(name: str) -> None:
    log = logreel.open(sample(name))
    # The text of these samples is that of the code after 0.9.16.
    release = "0.9.17" if "0.9.16" in name else None
    assert carla.info(log, release=release).text() == expected(f"{name}.info.txt")
    assert carla.info(log, True, release).text() == expected(f"{name}.all.txt.gz")
    for kinds in ("aa", "hv", "vv"):
        assert carla.collisions(log, *kinds).text() == expected(f"{name}.collisions_{kinds}.txt")


@real
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("seconds", "centimetres"), [(1, 100), (30, 10)])
def test_blocked_equals_the_simulator(name: str, seconds: float, centimetres: float) -> None:
    got = carla.blocked(logreel.open(sample(name)), seconds, centimetres).text()
    want = expected(f"{name}.blocked_{seconds}_{centimetres}.txt")
    assert got.splitlines() == want.splitlines()


@pytest.mark.parametrize("seed", range(half(30)))
def test_collisions_of_random_scenes_equal_the_oracle(seed: int) -> None:
    data = carla_queries.scene(seed).bytes()
    log, plain = logreel.open(data), carla_oracle.read(data)
    for kinds in ("aa", "hv", "va", "wo", "ht", "aw"):
        found = carla.collisions(log, *kinds)
        rows = [
            (
                r["time_ns"],
                line.split()[1],
                r["id1"],
                r["description1"],
                line.split()[2],
                r["id2"],
                r["description2"],
            )
            for r, line in zip(found.rows(), found.text().splitlines()[5:-3], strict=True)
        ]
        want = carla_queries.collisions(plain, *kinds)
        assert rows == [(round(at * 1e9), *sides) for at, *sides in want]


@pytest.mark.parametrize("seed", range(half(30)))
def test_blocked_of_random_scenes_equals_the_oracle(seed: int) -> None:
    data = carla_queries.scene(seed, "0.10.0" if seed % 3 == 0 else "0.9.14").bytes()
    log, plain = logreel.open(data), carla_oracle.read(data)
    for seconds, centimetres in ((0.5, 20), (1, 100), (2, 250)):
        found = carla.blocked(log, seconds, centimetres).rows()
        rows = [(r["time_ns"], r["id"], r["description"], r["duration_s"]) for r in found]
        want = carla_queries.blocked(plain, seconds, centimetres)
        assert sorted(rows) == sorted((round(at * 1e9), *rest) for at, *rest in want)
        assert [r[3] for r in rows] == [r[3] for r in want]


def generations() -> Builder:
    """Build a recording with events of every kind whose text differs between releases."""
    out = Builder("2026", date=0)
    frame = out.frame(0.0).add(10, 1, "vehicle.a", (1.0, 2.0, 3.0)).parent(10, 20)
    frame.position(10, (1.0, 2.0, 3.0), (4.0, 5.0, 6.0)).vehicle(10, 0.5).walker(20, 7.0)
    frame.vehicle_light(10, 0x180).door(10, 1, False).bones(20, ("hip", (0.0,) * 3, (1.0,) * 3))
    frame.weather(*range(14))
    out.frame(0.5).position(10, (float("nan"), -float("nan"), float("-inf")))
    return out


HEAD = ["Version: 2", "Map: Town01", "Date: 01/01/70 00:00:00", ""]


@pytest.mark.parametrize(
    ("release", "lines", "missing"),
    [
        ("0.9.4", [" Parenting 10 with 10 (parent)"], "Positions"),
        (
            "0.9.6",
            [
                " Parenting 10 with 20 (parent)",
                "  Id: 10 Location (1, 2, 3) Rotation (4, 5, 6)",
                "  Id: 10 Location (nan, -nan, -inf) Rotation (0, 0, 0)",
                "  Vehicle id 10: Steering 0.5 Throttle 0 Brake 0 Handbrake 0 Gear 1",
                "  Walker id 20: speed 7",
            ],
            "light animations",
        ),
        (
            "0.9.10",
            [
                "  Id: 10 Location: (1, 2, 3) Rotation (4, 5, 6)",
                "  Id: 10 Steering: 0.5 Throttle: 0 Brake 0 Handbrake: 0 Gear: 1",
                "  Id: 20 speed: 7",
                "  Id: 10 Interior Fog",
            ],
            "Bone",
        ),
        ("0.9.14", [" Walkers Bones: 1", '     Bone: "hip" relative: Loc(0, 0, 0) Rot(1, 1, 1)'], "door"),
        (
            "0.9.15",
            [
                "  Id: 10 Location: (1, 2, 3) Rotation: (4, 5, 6)",
                "  Id: 10 Steering: 0.5 Throttle: 0 Brake: 0 Handbrake: 0 Gear: 1",
                " Vehicle door animations: 1",
                "  Doors opened:  Front Right ",
            ],
            "Weather",
        ),
        ("0.9.16", [" Vehicle door animations: 1"], "Weather"),
        ("0.9.17", [" Weathers: 1"], "Parenting 10 with 10"),
        ("0.10", [" Weathers: 1", " Vehicle door animations: 1"], "Parenting 10 with 10"),
    ],
)
def test_generations_print_different_text(release: str, lines: list[str], missing: str) -> None:
    log = logreel.open(generations().bytes())
    text = carla.info(log, True, release).text()
    found = text.splitlines()
    assert found[:4] == HEAD
    assert set(lines) <= set(found)
    assert missing not in text


def test_bones_and_frame_ends_print_empty_lines() -> None:
    log = logreel.open(generations().bytes())
    assert (
        carla.info(log, True, "0.9.14")
        .text()
        .endswith(" Walkers Bones: 0\n\n\nFrames: 2\nDuration: 0.5 seconds\n")
    )
    last = " Walkers Bones: 0\n\n\n\nFrames: 2\nDuration: 0.5 seconds\n"
    assert carla.info(log, True, "0.9.17").text().endswith(last)
    cut = logreel.open(generations().bytes()[:-5])
    # A frame without FrameEnd prints no empty line, but the end of the file does.
    assert carla.info(cut, True).text().endswith(last.replace("\n\n\n\n", "\n\n\n"))
    events = carla.info(log).text().splitlines()
    assert events[4:8] == ["Frame 1 at 0 seconds", " Create 10: vehicle.a (1) at (1, 2, 3)", *events[6:8]]
    assert "Frame 2 at 0.5 seconds" not in events
    assert " Weathers: 1" in events


@pytest.mark.parametrize(
    ("release", "guess"),
    [
        ("0.9.4", "0.9.4"),
        ("0.9.6", "0.9.6"),
        ("0.9.10", "0.9.10"),
        ("0.9.12", "0.9.10"),
        ("0.9.14", "0.9.14"),
        ("0.9.15", "0.9.15"),
        ("2023", "0.9.15"),
        ("0.10.0", "0.10"),
        ("0.9.16", "0.9.16"),
        ("2026", "0.9.17"),
        ("dreyevr-0.9.13", "0.9.10"),
    ],
)
def test_generation_is_inferred_from_the_recording(release: str, guess: str) -> None:
    log = logreel.open(eventful(release).bytes())
    assert carla.info(log, True).text() == carla.info(log, True, guess).text()


def ue5_physics() -> bytes:
    """Return a record of physics as the UE5 line writes it: a head, four lists, and wheels as memory."""
    vectors = [float(n) for n in range(1, 25)]
    head = struct.pack("<I6f", 10, *vectors[:6]) + b"\x01" + struct.pack("<f?7f", 0.5, True, *vectors[6:13])
    head += struct.pack("<12f?", *vectors[12:24], False)
    lists = struct.pack("<I4f", 2, 0.0, 500.0, 5000.0, 250.5) + struct.pack("<I2f", 2, 4.0, 2.5)
    lists += struct.pack("<If", 1, -3.0) + struct.pack("<I2f", 1, 20.0, 0.9)
    wheel = bytearray(208)
    struct.pack_into(
        "<3f9f6?", wheel, 4, 0.25, 0.5, -1.0, *vectors[:9], True, False, True, False, True, False
    )
    wheel[0], wheel[64], wheel[152], wheel[153] = 65, 66, 67, 68
    struct.pack_into("<f", wheel, 60, 30.0)
    wheel[72:96] = b"\xee" * 24
    struct.pack_into("<12fif", wheel, 96, *vectors[:12], -7, 0.15)
    struct.pack_into("<2fi9f", wheel, 156, 1500.0, 3000.0, 3, *vectors[:9])
    return head + lists + struct.pack("<I", 1) + bytes(wheel)


def test_physics_of_the_ue5_line_is_printed_as_its_query_does() -> None:
    out = Builder("0.10.0")
    out.frame(0.0).add(10, 1, "vehicle.a").put("PhysicsControl", ue5_physics(), ue5_physics())
    log = logreel.open(out.bytes())
    text = carla.info(log, True).text()
    one = """  Id: 10
   max_torque = 1
   max_rpm = 2
   MOI = 5
   rev_down_rate = 6
   differential_type = \x01
   front_rear_split = 0.5
   use_gear_auto_box = true
   gear_change_time = 7
   final_ratio = 8
   change_up_rpm = 9
   change_down_rpm = 10
   transmission_efficiency = 11
   mass = 12
   drag_coefficient = 13
   center_of_mass = (13, 14, 15)
   torque_curve = (0, 500) (5000, 250.5)
   steering_curve = (20, 0.9)
   forward_gear_ratios:
    gear 0: ratio 4
    gear 1: ratio 2.5
   reverse_gear_ratios:
    gear 0: ratio -3
   wheels:
wheel #0:
"""
    wheel = (
        " axle_type: A offset: (0.250000, 0.500000, -1.000000) wheel_radius: 1 wheel_width: 2 wheel_mass: 3"
        " cornering_stiffness: 4 friction_force_multiplier: 5 side_slip_modifier: 6 slip_threshold: 7"
        " skid_threshold: 8 max_steer_angle: 9 affected_by_steering: 1 affected_by_brake: 0"
        " affected_by_handbrake: 1 affected_by_engine: 0 abs_enabled: 1 traction_control_enabled: 0"
        " max_wheelspin_rotation: 30 external_torque_combine_method: B lateral_slip_graph: []"
        " suspension_axis: (1.000000, 2.000000, 3.000000)"
        " suspension_force_offset: (4.000000, 5.000000, 6.000000) suspension_max_raise: 7"
        " suspension_max_drop: 8 suspension_damping_ratio: 9 wheel_load_ratio: 10 spring_rate: 11"
        " spring_preload: 12 suspension_smoothing: -7 rollbar_scaling: 0.15 sweep_shape: C sweep_type: D"
        " max_brake_torque: 1500 max_hand_brake_torque: 3000 wheel_index: 3"
        " location: (1.000000, 2.000000, 3.000000) old_location: (4.000000, 5.000000, 6.000000)"
        " velocity: (7.000000, 8.000000, 9.000000)\n"
    )
    assert f" Physics Control events: 2\n{one}{wheel}{one}{wheel}" in text


@pytest.mark.parametrize("cut", [1, 100, 230])
def test_physics_that_does_not_fill_its_packet_is_not_printed(cut: int) -> None:
    for record in (ue5_physics()[:-cut], ue5_physics() + bytes(cut), bytes(4) + b"\xff" * 300):
        out = Builder("0.10.0")
        out.frame(0.0).add(10, 1, "vehicle.a").put("PhysicsControl", record)
        assert "Physics" not in carla.info(logreel.open(out.bytes()), True).text()


def test_letters_of_signs_and_sensors_equal_the_simulator() -> None:
    out = Builder()
    frame = out.frame(0.0).add(1, 4, "traffic.stop").add(2, 5, "sensor.lidar").add(3, 1, "vehicle.a")
    frame.collision(0, 1, 2).collision(1, 3, 0xFFFFFFFF, (True, False))
    log = logreel.open(out.bytes())
    rows = carla.collisions(log).text().splitlines()[5:7]
    assert rows[0].startswith("       0   h a       1 traffic.stop")
    assert rows[1].rstrip() == f"       0   v o       3 {'vehicle.a':<35} 4294967295"
    right = carla.collisions(log, correct=True)
    assert " s n " in right.text()
    assert (right.rows()[0]["type1"], right.rows()[0]["type2"]) == ("traffic_sign", "sensor")
    assert len(carla.collisions(log, "h")) == 2
    assert [r["id1"] for r in carla.collisions(log, "h", correct=True).rows()] == [3]
    assert len(carla.collisions(log, "s", "n", correct=True)) == 1


def test_corrected_queries_keep_actors_after_a_removal() -> None:
    out = Builder()
    frame = out.frame(0.0).add(1, 1, "vehicle.a").add(2, 1, "vehicle.b")
    for i in range(1, 9):
        for actor in (1, 2):
            frame.position(actor, (500.0, 100.0 * actor, 0.0))
        frame = out.frame(i * 0.5)
        if i == 4:
            frame.remove(1)
    frame.collision(0, 2, 1)
    log = logreel.open(out.bytes())
    assert carla.collisions(log).rows()[0]["description1"] == ""
    (row,) = carla.collisions(log, correct=True).rows()
    assert (row["description1"], row["description2"]) == ("vehicle.b", "vehicle.a")
    # The removal of 1 makes the simulator forget 2, and stays begin at the origin, far from the first positions.
    assert {r["id"]: r["duration_s"] for r in carla.blocked(log, 1, 10).rows()} == {1: 3.5, 2: 1.5}
    right = carla.blocked(log, 1, 10, correct=True)
    assert {r["id"]: (r["time_ns"], r["duration_s"]) for r in right.rows()} == {1: (0, 4.0), 2: (0, 4.0)}


def test_last_frame_subtracts_a_second_unless_corrected() -> None:
    out = Builder()
    for i in range(5):
        out.frame(float(i)).add(7, 1, "vehicle.a").position(7, (1.0, 0.0, 0.0))
    log = logreel.open(out.bytes())
    assert carla.blocked(log, 1, 10).rows()[0]["duration_s"] == 3.0
    assert carla.blocked(log, 1, 10, correct=True).rows()[0]["duration_s"] == 4.0


def test_rows_table_and_text_agree() -> None:
    log = logreel.open(drive().bytes())
    for answer in (carla.info(log), carla.collisions(log), carla.blocked(log, 2, 50)):
        rows = answer.rows()
        assert len(rows) == len(answer) == answer.to_arrow().num_rows > 0
        assert set(answer.to_arrow().column_names) == set(rows[0])
    events = carla.info(log).rows()
    assert {e["event"] for e in events} == {"create", "destroy", "parent", "collision"}
    assert sum(e["event"] == "collision" for e in events) == 6
    hero = next(e for e in events if e["id"] == 100)
    assert hero["location"] == [-15000.0, 200.0, 30.0]
    assert {"type": 3, "name": "role_name", "value": "hero"} in hero["attributes"]
    assert [e["other"] for e in events if e["event"] == "parent"] == [100]


def test_invalid_arguments_of_queries_are_refused() -> None:
    log = logreel.open(eventful().bytes())
    for kinds in (("x",), ("", "a"), ("a", "vv"), ("s",)):
        with pytest.raises(UsageError, match="kinds of actors"):
            carla.collisions(log, *kinds)
    with pytest.raises(UsageError, match=r"no generation '0.9.5'"):
        carla.info(log, release="0.9.5")


def ask_everything(data: bytes) -> None:
    """Run every query on any bytes."""
    try:
        log = logreel.open(data)
    except logreel.LogError:
        return
    if log.format != "carla":
        return
    for correct in (False, True):
        carla.collisions(log, correct=correct).text()
        carla.blocked(log, 0.0, 10.0, correct=correct).text()
    carla.info(log, True).text()
    carla.info(log).to_arrow()


def test_queries_of_truncated_recordings() -> None:
    data = eventful("0.9.16", frames=2).bytes()
    for size in range(0, len(data), 41):
        ask_everything(data[:size])


@pytest.mark.parametrize("release", RELEASES)
def test_queries_of_damaged_recordings(release: str) -> None:
    data = eventful(release).bytes()
    ask_everything(data)
    for seed in range(half(8)):
        ask_everything(mutate(data, seed))


def test_queries_of_records_without_frames() -> None:
    out = eventful("2026")
    for frame in out.frames:
        frame.begun = frame.ended = False
    ask_everything(out.bytes())
    log = logreel.open(out.bytes())
    assert (log.metadata["map"], "frames" in log.channels, len(log.actors)) == ("Town01", False, 8)
    assert log.actor(10).trajectory()["frame"].to_pylist() == [0, 0, 0, 0]
    assert carla.Replay(log).poses(0.0) == {}
    assert carla.MetricsLog(log).get_total_frame_count() == 0


def test_queries_of_an_empty_recording() -> None:
    log = logreel.open(Builder().bytes())
    assert carla.collisions(log).text().splitlines()[-2:] == ["Frames: 0", "Duration: 0 seconds"]
    assert carla.blocked(log).rows() == carla.info(log).rows() == []
    assert carla.info(log, True).text().splitlines()[-2:] == ["Frames: 0", "Duration: 0 seconds"]
