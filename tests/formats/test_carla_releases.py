"""Built recordings of every release and of forks: content as in the plain reader, and the inferred release."""

from __future__ import annotations

import struct

import pytest

import logreel
from logreel.errors import UnsupportedError
from support.builders.carla_rows import assert_accounted, assert_equal, walked
from support.oracles import carla as oracle
from support.samples.carla.builder import Builder, eventful, text_mode
from support.samples.carla.drive import drive
from support.samples.carla.records import RELEASES, counted

#: Bytes up to the end of the first packet of the samples.
FIRST = 63

INFERRED = {
    "0.9.4": "0.9.4 to 0.9.5",
    "0.9.6": "0.9.6 to 0.9.9",
    "0.9.10": "0.9.10",
    "0.9.12": "0.9.12 to 0.9.13",
    "0.9.14": "0.9.14",
    "0.9.15": "0.9.15",
    "2023": "after 0.9.15",
    "2024": "after 0.9.15",
    "0.9.16": "0.9.16",
    "2026": "after 0.9.16",
    "0.10.0": "0.10",
    "dreyevr-0.9.13": "0.9.12 to 0.9.13",
    "dreyevr-0.9.14": "0.9.14",
}


@pytest.mark.parametrize("release", RELEASES)
def test_every_release_is_read_as_built(release: str) -> None:
    data = eventful(release).bytes()
    log = logreel.open(data)
    assert log.problems == ()
    assert_equal(log, oracle.read(data))
    assert_accounted(walked(data), data)
    assert log.metadata["attribute_base"] == RELEASES[release].attribute
    assert log.metadata["engine"] == ("UE5" if RELEASES[release].wide else "UE4")
    assert log.metadata.get("fork") == ("DReyeVR" if release.startswith("dreyevr") else None)


@pytest.mark.parametrize(("release", "inferred"), INFERRED.items())
def test_release_is_inferred_from_content(release: str, inferred: str) -> None:
    log = logreel.open(eventful(release).bytes())
    # Positions of a prop distinguish 0.9.11 from 0.9.10.
    assert log.version == inferred


@pytest.mark.parametrize(("release", "inferred"), INFERRED.items())
def test_a_recording_cut_in_its_first_frame_is_not_taken_for_an_older_release(
    release: str, inferred: str
) -> None:
    data = bytes(eventful(release, frames=1).bytes())
    found = set()
    for cut in range(FIRST, len(data), 7):
        with logreel.open(data[:cut]) as log:
            found.add(log.version)
    found -= {"", inferred}
    assert found
    assert all(one.endswith(" or later") for one in found), found
    assert all(_number(one) <= _number(inferred.removeprefix("after ")) for one in found), found


def _number(release: str) -> list[int]:
    return [int(part) for part in release.partition(" ")[0].split(".")]


def test_positions_of_props_show_a_later_release() -> None:
    out = Builder("0.9.10")
    frame = out.frame(0.0).add(1, 0, "static.prop.mesh").position(1, (0.0, 0.0, 0.0))
    frame.physics(7)
    assert logreel.open(out.bytes()).version == "0.9.11"


def test_bundled_drive_is_read_completely() -> None:
    data = drive(4.0).bytes()
    log = logreel.open(data)
    assert log.problems == ()
    assert_equal(log, oracle.read(data))


@pytest.mark.parametrize(
    ("release", "kinds"), [("0.9.16", "wheels bikers doors"), ("2023", "doors wheels bikers")]
)
def test_shifting_kinds_are_inferred_from_content(release: str, kinds: str) -> None:
    log = logreel.open(eventful(release).bytes())
    found = {ch.metadata["packet"]: ch.topic for ch in log.channels.values()}
    assert [found[kind] for kind in (21, 22, 23)] == kinds.split()


@pytest.mark.parametrize(("version", "kinds"), [(2, "wheels bikers doors"), (1, "doors wheels bikers")])
def test_empty_shifting_kinds_are_inferred_from_the_header(version: int, kinds: str) -> None:
    out = Builder("0.9.16", version=version)
    out.frame(0.0)
    found = {ch.metadata["packet"]: ch.topic for ch in logreel.open(out.bytes()).channels.values()}
    assert [found[kind] for kind in (21, 22, 23)] == kinds.split()


def test_packets_of_users_and_forks_are_kept_as_bytes() -> None:
    out = Builder("0.9.14")
    for i in range(3):
        frame = out.frame(0.05 * i)
        for kind in (101, 139, 140, 200, 255):
            frame.packet(kind, bytes([kind, i]))
    log = logreel.open(out.bytes())
    assert log.problems == ()
    assert log.table("packet_139")["data"].to_pylist() == [b"\x8b\0", b"\x8b\1", b"\x8b\2"]
    assert log["packet_255"]["frame"].tolist() == [1, 2, 3]
    message = next(log.messages(["packet_200"], start=50_000_000))
    assert message.decode() == {"frame": 2, "data": b"\xc8\1"}


def test_frame_counter_is_decoded() -> None:
    out = Builder("0.9.14")
    out.frame(0.0).packet(18, struct.pack("<Q", 77))
    assert logreel.open(out.bytes())["frame_counter"]["counter"].tolist() == [77]


def test_float64_vectors_are_detected_from_actors_alone() -> None:
    out = Builder("0.10.0")
    out.frame(0.0).add(5, 1, "vehicle.a.b", (1.0, 2.0, 3.0))
    log = logreel.open(out.bytes())
    assert log["actors"]["location.y"].tolist() == [2.0]
    assert log["actors"]["location.y"].dtype == "float64"


def test_ue5_physics_is_kept_as_bytes() -> None:
    log = logreel.open(eventful("0.10.0").bytes())
    assert log["physics"].fields == ["frame", "data"]


@pytest.mark.parametrize("name", ["actors", "vehicle_control", "wheels", "bones", "physics"])
def test_placeholder_sizes_are_repaired_by_content(name: str) -> None:
    kinds = {"actors": "EventAdd", "vehicle_control": "AnimVehicle", "wheels": "AnimVehicleWheels"}
    kinds |= {"bones": "WalkerBones", "physics": "PhysicsControl"}
    sound, broken = eventful("0.9.16"), eventful("0.9.16")
    broken.frames[0].sizes[kinds[name]] = 0
    log, data = logreel.open(broken.bytes()), broken.bytes()
    assert [(p.code, p.lost) for p in log.problems] == [("head", False)]
    assert log.table(name).to_pylist() == logreel.open(sound.bytes()).table(name).to_pylist()
    assert_accounted(walked(data), data)


def test_text_mode_is_undone() -> None:
    out = eventful("0.10.0", frames=12)
    out.town = "Town10\nHD"
    data = out.bytes()
    log, sound = logreel.open(text_mode(data)), logreel.open(data)
    assert [(p.code, p.lost) for p in log.problems] == [("text_mode", False)]
    assert log.metadata == sound.metadata
    for topic in sound.channels:
        assert repr(log.table(topic).to_pylist()) == repr(sound.table(topic).to_pylist())


def test_frames_without_end_are_reported() -> None:
    out = eventful("0.9.14", frames=4)
    out.frames[1].ended = False
    log = logreel.open(out.bytes())
    assert [(p.code, p.lost) for p in log.problems] == [("frame_end", False)]
    assert log["frames"]["frame"].tolist() == [1, 2, 3, 4]
    out.frames[-1].ended = False
    assert [p.code for p in logreel.open(out.bytes()).problems] == ["frame_end", "truncated"]


def test_wrong_record_count_loses_one_packet_only() -> None:
    out = eventful("0.9.14", frames=4)
    data = out.bytes()
    place = data.index(counted([struct.pack("<II", 10, 0b11 << 1), struct.pack("<II", 12, 0)]))
    broken = data[:place] + b"\3" + data[place + 1 :]
    log = logreel.open(broken)
    assert [(p.code, p.offset, p.size) for p in log.problems] == [("garbage", place - 5, 5 + 18)]
    assert log["vehicle_lights"]["frame"].tolist() == [1, 1, 3, 3, 4, 4]


def test_file_without_magic_is_refused_with_its_name() -> None:
    with pytest.raises(UnsupportedError, match="mark is missing"):
        logreel.open(b"something else entirely", format="carla")


@pytest.mark.parametrize("scene", ["empty", "eventful"])
@pytest.mark.parametrize("release", RELEASES)
def test_truncation_in_the_first_frames_does_not_change_the_release(release: str, scene: str) -> None:
    made = eventful(release)
    if scene == "empty":
        made = Builder(release)
        for i in range(3):
            frame = made.frame(0.5 * i)
            if i == 0:
                frame.add(1, 0, "spectator")
            frame.position(1, (1.0, 2.0, 3.0))
    data = made.bytes()
    due = {ch.metadata["packet"]: ch.topic for ch in logreel.open(data).channels.values()}
    for cut in range(40, min(len(data), 900), 5):
        found = logreel.open(data[:cut]).channels.values()
        got = {ch.metadata["packet"]: ch.topic for ch in found if ch.topic.partition("_")[0] != "packet"}
        assert got.items() <= due.items(), (cut, got.items() - due.items())
