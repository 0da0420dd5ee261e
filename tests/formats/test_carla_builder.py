"""The builder writes what a plain reader reads back, for every release."""

from __future__ import annotations

import struct

import pytest

import logreel
from support.formats import sample_log
from support.oracles import carla as carla_oracle
from support.samples.carla.builder import Builder, eventful, text_mode
from support.samples.carla.drive import drive
from support.samples.carla.records import IDS, RELEASES


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("additional", [True, False])
def test_builder_states_true_packet_sizes(release: str, additional: bool) -> None:
    data = eventful(release, additional=additional).bytes()
    r = carla_oracle.read(data)
    assert (r.stop, r.why, r.outside) == (len(data), "", [])
    assert [f.number for f in r.frames] == [1, 2, 3, 4]
    assert all(f.ended for f in r.frames)
    assert [f.duration for f in r.frames][-1] == -1.0
    assert all(a.elapsed + a.duration == b.elapsed for a, b in zip(r.frames, r.frames[1:], strict=False))
    assert not [p for f in r.frames for p in f.packets if p.fault]
    layout = RELEASES[release]
    ids = {**IDS, **(layout.ids or {})}
    always = {*layout.always, *(layout.additional if additional else ())}
    for frame in r.frames:
        assert {ids[name] for name in always} <= {p.number for p in frame.packets}
        order = [
            number for number in dict.fromkeys(ids.values()) if number in {p.number for p in frame.packets}
        ]
        assert [p.number for p in frame.packets] == order


def test_built_values_are_read_back() -> None:
    r = carla_oracle.read(eventful("2026").bytes())
    first = r.frames[0]
    hero = next(a for a in first.records("EventAdd") if a["id"] == 10)
    assert (hero["uid"], hero["description"]) == (7, "vehicle.lincoln.mkz")
    assert hero["attributes"] == [
        {"type": 4, "name": "role_name", "value": "hero"},
        {"type": 5, "name": "color", "value": "15,11,44"},
    ]
    assert first.records("Position")[0]["location"] == {"x": 1000.0, "y": 2000.0, "z": 30.25}
    assert first.records("VehicleDoor") == [{"id": 10, "door": 0, "open": True}]
    assert first.records("AnimVehicleWheels")[1] == {"id": 12, "wheels": []}
    assert list(first.records("Weather")[0].values()) == list(range(14))


def test_builder_can_state_wrong_sizes_and_counts() -> None:
    out = Builder()
    frame = out.frame(0.0, number=9).position(1, (1.0, 2.0, 3.0)).remove(4)
    frame.totals["Position"] = 3
    frame.sizes["EventDel"] = 0
    frame.duration = 7.0
    frame.packet(200, b"abc").packet(201, b"abc", 9)
    out.frames[0].ended = False
    out.tail = b"xyz"
    data = out.bytes()
    assert data.endswith(struct.pack("<BI", 201, 9) + b"abcxyz")
    r = carla_oracle.read(data)
    assert (r.frames[0].number, r.frames[0].duration, r.frames[0].ended) == (9, 7.0, False)
    assert r.why == "too short"
    assert r.frames[0].records("EventDel") == [{"id": 4}]
    faults = {p.name: p.fault for p in r.frames[0].packets if p.fault}
    assert faults == {"Position": "too short"}


def test_text_mode_turns_line_feeds_into_two_bytes() -> None:
    assert text_mode(b"a\nb\r\n") == b"a\r\nb\r\r\n"


def test_drive_is_valid_and_reproducible() -> None:
    data = drive().bytes()
    assert data == drive().bytes()
    log = logreel.open(data)
    assert (log.problems, log.metadata["map"], log.end) == ((), "Town03", 29975000447)
    collisions = carla_oracle.read(data).rows("Collision")
    assert [frame.number for frame, _ in collisions] == [515, 515, 516, 516, 517, 517]
    assert sample_log("carla") == data
