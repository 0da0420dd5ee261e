"""Sliced, merged and recovered CARLA recordings: frames stay complete and keep their content."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import logreel
from conftest import SHARED
from logreel.formats.carla import copier as packet_copier
from logreel.ops.rewrite.recover import Recovered
from support.builders.contents import content, other_content
from support.oracles import carla as oracle
from support.samples.carla.builder import Builder, eventful, text_mode
from support.samples.carla.drive import drive
from support.samples.carla.records import RELEASES

SAMPLES = sorted((SHARED / "data/carla").rglob("*.log"))
STEP = 50_000_000


def sound(data: bytes) -> oracle.Recording:
    """Return the recording as the plain reader reads it; it must be complete, and all frames must end."""
    found = oracle.read(data)
    assert (found.stop, found.why, found.outside) == (len(data), "", [])
    assert all(frame.ended for frame in found.frames)
    return found


def rows(frames: list[oracle.Frame]) -> list[tuple[float, ...] | tuple[int, bytes]]:
    """Return frames and packets in file order."""
    found: list[tuple[float, ...] | tuple[int, bytes]] = []
    for frame in frames:
        found.append((frame.number, frame.duration, frame.elapsed))
        found += [(p.number, p.payload) for p in frame.packets]
    return found


def check(data: bytes, folder: Path) -> None:
    """Check every operation that gives a valid recording with the same bytes."""
    source, log, out = folder / "source.rec", logreel.open(data), folder / "out.rec"
    source.write_bytes(data)
    assert not log.problems
    for verb in (logreel.slice, logreel.sort, logreel.recover):
        done = verb(source, out, force=True)
        assert out.read_bytes() == data, verb.__name__
        assert done.messages == log.message_count
    middle = ((log.start or 0) + (log.end or 0)) // 2
    halves = [folder / "a.rec", folder / "b.rec"]
    logreel.slice(source, halves[0], end=middle, force=True)
    logreel.slice(source, halves[1], start=middle, force=True)
    first, second = (half.read_bytes() for half in halves)
    header = 28 + int.from_bytes(data[26:28], "little")
    assert first[:header] == second[:header]
    assert first + second[header:] == data
    done = logreel.merge(halves, out, force=True)
    assert out.read_bytes() == data
    assert (done.notes, done.skipped) == ((), ())


@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.stem)
def test_copied_samples_have_the_same_bytes(path: Path, tmp_path: Path) -> None:
    check(path.read_bytes(), tmp_path)


@pytest.mark.parametrize("release", RELEASES)
def test_copies_of_every_release_have_the_same_bytes(release: str, tmp_path: Path) -> None:
    made = eventful(release, frames=6)
    for number in (140, 255):
        made.frames[2].packet(number, b"of a user")
    check(made.bytes(), tmp_path)


def test_slice_keeps_all_frames_of_its_interval(tmp_path: Path) -> None:
    data, out = eventful(frames=8).bytes(), tmp_path / "a.rec"
    for wanted in (["position"], ["wheels", "walker"], ["frames"]):
        done = logreel.slice(data, out, topics=wanted, start=2 * STEP, end=6 * STEP, force=True)
        assert [one.topic for one in done.channels] == [t for t in logreel.open(data) if t in wanted]
        found = sound(out.read_bytes()).frames
        assert [frame.number for frame in found] == [3, 4, 5, 6]
        names = {oracle.TOPICS.get(p.name) for frame in found for p in frame.packets}
        assert names == set(wanted) - {"frames"}
    logreel.slice(data, out, exclude=["position", "frames"], force=True)
    assert set(logreel.open(data)) - set(logreel.open(out)) == {"position"}
    assert logreel.slice(data, out, count=3, force=True).messages == 3
    (frame,) = sound(out.read_bytes()).frames
    assert len(frame.packets) == 2


def alive(frames: list[oracle.Frame]) -> list[int]:
    """Return the actors that exist after some frames."""
    there: list[int] = []
    for frame in frames:
        there += [record["id"] for record in frame.records("EventAdd")]
        gone = [record["id"] for record in frame.records("EventDel")]
        there = [actor for actor in there if actor not in gone]
    return there


@pytest.mark.parametrize("release", ["0.9.4", "0.9.10", "0.9.16", "2026", "0.10.0"])
def test_keep_latched_carries_records_in_force(release: str, tmp_path: Path) -> None:
    made, out = eventful(release, frames=7), tmp_path / "a.rec"
    made.frames[1].add(50, 1, "vehicle.late").remove(12)
    made.frames[2].add(51, 1, "vehicle.later").remove(50)
    made.frames[4].add(52, 1, "vehicle.last").remove(51)
    due = sound(made.bytes()).frames
    for first in range(1, 7):
        start = round(due[first].elapsed * 1e9)
        logreel.slice(made.bytes(), out, start=start, keep_latched=True, force=True)
        found = sound(out.read_bytes()).frames
        assert [frame.number for frame in found] == [frame.number for frame in due[first:]]
        begin = found[0].records("EventAdd")
        new = [record["id"] for record in due[first].records("EventAdd")]
        assert [record["id"] for record in begin] == alive(due[:first]) + new
        known = {record["id"]: record for frame in due for record in frame.records("EventAdd")}
        assert begin == [known[record["id"]] for record in begin]
        assert [(r["child"], r["parent"]) for r in found[0].records("EventParent")] == [(30, 10)]
        assert alive(found) == alive(due)
        lasting = {
            "BoundingBox": 2,
            "PhysicsControl": 1,
            "TrafficLightTime": 1,
            "TriggerVolume": 1,
            "Weather": 1,
        }
        for name, count in lasting.items():
            before = [record for frame in due[: first + 1] for record in frame.records(name)]
            assert len(found[0].records(name)) == (count if before else 0), name
        # Everything except the carried records is unchanged.
        assert rows(found[1:]) == rows(due[first + 1 :])
        assert not logreel.open(out).problems
        assert logreel.open(out).text[0].text == f"the recording begins with {len(begin)} actors"
    logreel.slice(made.bytes(), out, start=STEP, keep_latched=True, topics=["position"], force=True)
    assert set(logreel.open(out)) == {"frames", "position"}
    logreel.slice(made.bytes(), out, start=STEP, force=True)
    assert [record["id"] for record in sound(out.read_bytes()).frames[0].records("EventAdd")] == [50]


def test_keep_latched_ignores_packets_of_forks(tmp_path: Path) -> None:
    made, out = eventful("dreyevr-0.9.13", frames=5), tmp_path / "a.rec"
    made.frames[0].packet(24, b"\1\0" + bytes(52))
    assert "packet_24" in logreel.open(made.bytes())
    logreel.slice(made.bytes(), out, start=STEP, keep_latched=True)
    found = sound(out.read_bytes()).frames
    assert [record["id"] for record in found[0].records("EventAdd")] == [1, 2, 3, 10, 11, 12, 20, 30]
    assert {p.number for p in found[0].packets} & {18, 24} == set()


def test_carried_actors_are_split_over_several_packets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packet_copier, "_MOST_RECORDS", 5)
    made, out = Builder(additional=False), tmp_path / "a.rec"
    for i in range(3):
        frame = made.frame(i * 0.05)
        for n in range(4):
            frame.add(4 * i + n, 0, "x")
    logreel.slice(made.bytes(), out, start=2 * STEP, keep_latched=True)
    (frame,) = sound(out.read_bytes()).frames
    assert [len(p.records) for p in frame.packets if p.name == "EventAdd"] == [5, 3, 4]  # type: ignore[attr-defined]
    assert [record["id"] for record in frame.records("EventAdd")] == list(range(12))


def test_merge_joins_equal_frames_and_renumbers_others(tmp_path: Path) -> None:
    one, two, out = tmp_path / "1.rec", tmp_path / "2.rec", tmp_path / "m.rec"
    one.write_bytes(eventful(frames=4).bytes())
    other = Builder("0.9.16", town="Town02")
    for i in range(4):
        other.frame(i * 0.05 + 0.02).position(10, (i, 0.0, 0.0))
    other.frames[0].add(10, 1, "vehicle.other")
    two.write_bytes(other.bytes())
    done = logreel.merge([one, two], out)
    assert len(done.notes) == 2
    assert "1 actors are in several recordings by the same id (10)" in done.notes[0]
    assert "7 frames got other numbers" in done.notes[1]
    assert len(done.skipped) == 1
    assert "map 'Town02'" in done.skipped[0]
    found = sound(out.read_bytes())
    assert (found.town, [frame.number for frame in found.frames]) == ("Town01", list(range(1, 9)))
    assert [frame.elapsed for frame in found.frames] == sorted(frame.elapsed for frame in found.frames)
    assert content(out)["position"][1] == sorted(
        content(one)["position"][1] + content(two)["position"][1], key=lambda row: row[0]
    )
    # Frames with the same number and time become one frame with the packets of both.
    done = logreel.merge([one, one], out, force=True)
    found = sound(out.read_bytes())
    assert [frame.number for frame in found.frames] == [1, 2, 3, 4]
    assert done.messages == 2 * logreel.open(one).message_count - 4
    assert [len(frame.records("Position")) for frame in found.frames] == [6] * 4
    done = logreel.merge([one, one], out, align="+1s", force=True)
    assert [round(frame.elapsed * 1e9) for frame in sound(out.read_bytes()).frames] == [
        *(i * STEP for i in range(4)),
        *(10**9 + i * STEP for i in range(4)),
    ]
    assert [frame.number for frame in sound(out.read_bytes()).frames] == list(range(1, 9))
    wide = tmp_path / "wide.rec"
    wide.write_bytes(eventful("0.10.0").bytes())
    with pytest.raises(logreel.UsageError, match="vectors of another width"):
        logreel.merge([one, wide], out, force=True)


def test_undecodable_actors_are_not_reported_as_shared_ids(tmp_path: Path) -> None:
    for name, actor in (("1.rec", 10), ("2.rec", 20)):
        out = Builder("0.9.16")
        damaged = out.frame(0.0).add(5, 1, "vehicle.damaged")
        damaged.records["EventAdd"] = [bytes(damaged.records["EventAdd"][0])[:-1]]
        out.frame(0.05).add(actor, 1, "vehicle.sound")
        (tmp_path / name).write_bytes(out.bytes())
        assert logreel.open(tmp_path / name)["actors"].to_arrow()["id"].to_pylist() == [None, actor]
    done = logreel.merge([tmp_path / "1.rec", tmp_path / "2.rec"], tmp_path / "m.rec")
    assert not [note for note in done.notes if "same id" in note]


def test_split_by_topic_and_merge_gives_the_same_recording(tmp_path: Path) -> None:
    source = tmp_path / "drive.log"
    source.write_bytes(drive(2.0).bytes())
    parts = logreel.split(source, tmp_path / "parts", by_topic=True)
    assert all(part.path.endswith(".log") for part in parts)
    logreel.merge([part.path for part in parts], tmp_path / "m.rec")
    assert content(tmp_path / "m.rec") == content(source)
    assert other_content(tmp_path / "m.rec") == other_content(source)


# ------------------------------------------------------------------------------------------------------- damage


def recovered(data: bytes, folder: Path) -> tuple[bytes, Recovered]:
    """Return the recovered recording, which must be valid and hold all messages."""
    out, log = folder / "out.rec", logreel.open(data)
    done = logreel.recover(data, out, force=True)
    assert done.messages == log.message_count
    assert content(out) == content(log)
    assert not logreel.open(out).problems
    assert [(x.offset, x.size) for x in done.lost] == [(p.offset, p.size) for p in log.problems if p.lost]
    for verb in (logreel.slice, logreel.sort):
        verb(data, folder / "other.rec", force=True)
        assert content(folder / "other.rec") == content(log)
    return out.read_bytes(), done


def test_recover_undoes_text_mode(tmp_path: Path) -> None:
    for release in ("0.10.0", "0.9.14"):
        data = eventful(release, frames=30).bytes()
        made, done = recovered(text_mode(data), tmp_path)
        assert made == data
        assert not done.lost


@pytest.mark.parametrize("name", ["EventAdd", "EventDel", "EventParent", "AnimVehicle", "WalkerBones"])
def test_recover_writes_true_sizes_for_placeholders(name: str, tmp_path: Path) -> None:
    for release in ("0.9.14", "0.10.0"):
        made = eventful(release)
        whole = made.bytes()
        made.frames[2].sizes[name] = 0
        made.frames[3].sizes[name] = 0
        assert made.bytes() != whole
        assert recovered(made.bytes(), tmp_path)[0] == whole
        # Also in a slice, and with records in force.
        log = logreel.open(made.bytes())
        for keep in (False, True):
            out, due = tmp_path / "part.rec", tmp_path / "due.rec"
            logreel.slice(log, out, start=2 * STEP, force=True, keep_latched=keep)
            logreel.slice(whole, due, start=2 * STEP, force=True, keep_latched=keep)
            assert out.read_bytes() == due.read_bytes()


def test_recover_repairs_a_frame_start_header(tmp_path: Path) -> None:
    whole = eventful(frames=6).bytes()
    at = whole.index(struct.pack("<BIQ", 0, 24, 4))
    damaged = whole[:at] + b"\x63\1\2\3\4" + whole[at + 5 :]
    assert recovered(damaged, tmp_path)[0] == whole


def test_recover_adds_missing_frame_ends(tmp_path: Path) -> None:
    made = eventful(frames=5)
    whole = made.bytes()
    made.frames[1].ended = made.frames[4].ended = False
    assert recovered(made.bytes(), tmp_path)[0] == whole
    logreel.slice(made.bytes(), tmp_path / "a.rec", topics=["position"], end=4 * STEP)
    logreel.slice(whole, tmp_path / "b.rec", topics=["position"], end=4 * STEP)
    assert (tmp_path / "a.rec").read_bytes() == (tmp_path / "b.rec").read_bytes()


def test_recover_rewrites_a_damaged_header(tmp_path: Path) -> None:
    for release, version in (("0.9.14", 1), ("0.9.16", 2)):
        data = bytearray(eventful(release).bytes())
        data[26:28] = b"\xff\xff"
        made, done = recovered(bytes(data), tmp_path)
        found = sound(made)
        assert (found.version, found.town, found.date) == (version, "", 1_700_000_001)
        assert [one.code for one in done.lost] == ["header"]


def test_recover_drops_damage_and_truncated_packets(tmp_path: Path) -> None:
    whole = eventful(frames=6).bytes()
    for at in range(200, len(whole) - 60, 797):
        for hole in (bytes(50), b"\xa5" * 50):
            made, _ = recovered(whole[:at] + hole + whole[at + 50 :], tmp_path)
            sound(made)
    for end in range(40, len(whole), 511):
        made, _ = recovered(whole[:end], tmp_path)
        sound(made)
