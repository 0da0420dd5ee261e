"""Files that hold several logs, such as from a reused memory card."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

import logreel
from support.builders.contents import SAMPLES, content, sample
from support.samples.ulog.builder import Builder
from support.samples.ulog.builder import flight as made_flight

NAMES = ("a", "b", "c", "d")
S = 10**9


def rest(*starts: int) -> bytes:
    """Return a log of three seconds, followed by the rest of older ones, which start at a record without a header."""
    out = Builder(starts[0])
    out.info("sys_name", "PX4")
    for name in NAMES:
        out.format(f"{name}:uint64_t timestamp;uint32_t n;")
    for number, name in enumerate(NAMES):
        out.subscribe(name, number)
    for start in starts:
        for time in range(start, start + 3_000_000, 10_000):
            for number in range(len(NAMES)):
                out.data(number, struct.pack("<QI", time, start // 1_000_000))
    return out.bytes()


@pytest.fixture
def flights(tmp_path: Path) -> tuple[Path, list[bytes]]:
    """Three flights in one file, and each of them."""
    each = [made_flight(seconds) for seconds in (3.0, 5.0, 4.0)]
    path = tmp_path / "flash.ulg"
    path.write_bytes(b"".join(each))
    return path, each


def plain(log: logreel.Log) -> dict[str, Any]:
    return {topic: rows for topic, rows in content(log, "file").items() if not topic.startswith("~")}


def test_each_of_three_flights_in_a_file_is_the_flight(flights: tuple[Path, list[bytes]]) -> None:
    path, each = flights
    log = logreel.open(path)
    assert [one.number for one in log.segments] == [1, 2, 3]
    for one, data in zip(log.segments, each, strict=True):
        alone, part = logreel.open(data), logreel.open(path, segment=one.number)
        assert content(part) == content(alone)
        assert (part.start, part.end, part.utc_offset) == (alone.start, alone.end, alone.utc_offset)
        assert (one.start, one.end, one.messages) == (alone.start, alone.end, alone.message_count)
        assert dict(part.metadata) == dict(alone.metadata)
        assert dict(part.parameters) == dict(alone.parameters)
        assert part.text == alone.text
        assert not part.problems


def test_recover_of_three_flights_in_one_file_keeps_all_of_them(
    flights: tuple[Path, list[bytes]], tmp_path: Path, run: Any
) -> None:
    path, each = flights
    found = run("recover", path, "-o", tmp_path / "again.ulg")
    assert found.code == 0, found
    assert (tmp_path / "again.ulg").read_bytes() == path.read_bytes()
    found = run("recover", path, "-o", tmp_path / "second.ulg", "--segment", "2")
    assert found.code == 0, found
    assert plain(logreel.open(tmp_path / "second.ulg")) == plain(logreel.open(each[1]))


def test_recover_of_three_damaged_flights_keeps_the_messages_of_each(
    flights: tuple[Path, list[bytes]], tmp_path: Path, run: Any
) -> None:
    path, each = flights
    damaged = bytearray(path.read_bytes())
    for at in (len(each[0]) // 2, len(each[0]) + len(each[1]) // 2, len(damaged) - len(each[2]) // 2):
        damaged[at : at + 3000] = b"\xff" * 3000
    path.write_bytes(damaged)
    found = run("recover", path, "-o", tmp_path / "sound.ulg", "--json")
    assert found.code == 3
    assert found.json["lost_bytes"] > 6000
    with logreel.open(path) as log, logreel.open(tmp_path / "sound.ulg") as new:
        assert not [problem for problem in new.problems if problem.lost]
        assert plain(new) == plain(log)
        for one, other in zip(log.segments, new.segments, strict=True):
            assert (one.start, one.end, one.messages) == (other.start, other.end, other.messages)


@pytest.mark.parametrize("size", [1, 40])
def test_recover_keeps_every_message_where_a_subscription_of_a_later_flight_is_lost(
    flights: tuple[Path, list[bytes]], tmp_path: Path, size: int
) -> None:
    path, each = flights
    data = bytearray(path.read_bytes())
    at = data.index(b"A\x00", len(each[0]) + data[len(each[0]) :].index(b"vehicle_attitude:"))
    data[at : at + size] = b"\xff" * size
    path.write_bytes(data)
    done = logreel.recover(path, tmp_path / "sound.ulg")
    with logreel.open(path) as log, logreel.open(tmp_path / "sound.ulg") as new:
        assert not [problem for problem in new.problems if problem.lost]
        assert done.messages == log.message_count == new.message_count


def test_split_by_segment_makes_a_log_of_each(
    flights: tuple[Path, list[bytes]], tmp_path: Path, run: Any
) -> None:
    path, each = flights
    found = run("split", path, "--by-segment", "-o", tmp_path / "parts")
    assert found.code == 0, found
    parts = sorted((tmp_path / "parts").iterdir())
    assert [part.name for part in parts] == [f"flash_segment{n}.ulg" for n in (1, 2, 3)]
    for part, data in zip(parts, each, strict=True):
        log, alone = logreel.open(part), logreel.open(data)
        assert plain(log) == plain(alone)
        assert (log.start, log.end, log.utc_offset) == (alone.start, alone.end, alone.utc_offset)


def test_du_of_a_segment_counts_what_slice_writes_of_it(
    flights: tuple[Path, list[bytes]], run: Any, tmp_path: Path
) -> None:
    path = flights[0]
    for number in (1, 2, 3):
        out = tmp_path / f"{number}.ulg"
        logreel.slice(path, out, segment=number)
        part, alone = logreel.du(path, segment=number), logreel.du(out)
        assert (part.size, part.topics, part.other) == (alone.size, alone.topics, alone.other)
        assert json.loads(run("du", path, "--segment", str(number), "--json").out)["size"] == alone.size
    assert run("du", path, "--segment", "4").code == 2


def test_info_lists_the_segments(flights: tuple[Path, list[bytes]], run: Any) -> None:
    path, each = flights
    told = json.loads(run("info", path, "--json").out)["segments"]
    assert [one["messages"] for one in told] == [logreel.open(data).message_count for data in each]
    assert [one["offset"] for one in told] == [0, len(each[0]), len(each[0] + each[1])]
    assert "1: " in run("info", path).out
    assert "--segment" in run("info", path).out


def test_summary_names_all_flights_of_a_file(flights: tuple[Path, list[bytes]], run: Any) -> None:
    path, each = flights
    section = logreel.summary(path)["segments"]
    assert section["count"].value == 3
    for number, data in enumerate(each, 1):
        alone = logreel.open(data)
        value = section[f"log_{number}"].value
        assert (value["start_ns"], value["end_ns"], value["messages"]) == (
            alone.start,
            alone.end,
            alone.message_count,
        )
    assert "3; what follows is about the first" in run("summary", path).out
    assert "segments" not in logreel.summary(path, segment=2)
    assert "segments" not in logreel.summary(each[0])


def test_a_slice_is_of_one_segment(flights: tuple[Path, list[bytes]], tmp_path: Path, run: Any) -> None:
    path, each = flights
    run("slice", path, "-o", tmp_path / "x.ulg", "--segment", "2", "-S", "+1s", "-E", "+2s")
    logreel.slice(each[1], tmp_path / "y.ulg", start="+1s", end="+2s")
    one, other = logreel.open(tmp_path / "x.ulg"), logreel.open(tmp_path / "y.ulg")
    assert plain(one) == plain(other)
    assert (one.start, one.end, one.utc_offset) == (other.start, other.end, other.utc_offset)


@pytest.mark.parametrize(
    "verb",
    [
        ["info"], ["cat", "-n", "50"], ["cat", "--ros-axes"], ["schema"], ["params"], ["text"], ["attachments"],
        ["stats", "--fields"], ["convert", "-o", "OUT.ndjson"], ["convert", "-o", "OUT.mcap"],
        ["sort", "-o", "OUT.ulg"], ["slice", "-o", "OUT.ulg"], ["recover", "-o", "OUT.ulg"],
        ["split", "--every", "2s", "-o", "OUT"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_every_verb_that_reads_one_log_takes_a_segment(
    flights: tuple[Path, list[bytes]], tmp_path: Path, run: Any, verb: list[str]
) -> None:
    path, each = flights
    alone = tmp_path / "alone.ulg"
    alone.write_bytes(each[1])
    told = []
    for file, options in ((path, ("--segment", "2")), (alone, ())):
        place = tmp_path / file.stem
        place.mkdir()
        done = run(*(arg.replace("OUT", f"{place}/out") for arg in verb), file, *options, "--json")
        if "--ros-axes" in verb:
            assert (done.code, "no other axes" in done.err) == (2, True)
            continue
        assert done.code == 0, done
        found = done.json
        # What recover tells of is the damaged file as a whole.
        for key in ("path", "size", "segments", "output", "logs", *(["problems"] * ("recover" in verb))):
            found.pop(key, None)
        logs = [logreel.open(one) for one in sorted(place.rglob("*")) if one.suffix in (".ulg", ".mcap")]
        told.append((found, [plain(log) for log in logs], [(log.start, log.end) for log in logs]))
    assert told[:1] == told[1:]
    assert run(*(arg.replace("OUT", f"{tmp_path}/no") for arg in verb), path, "--segment", "4").code == 2


def test_play_takes_a_segment(flights: tuple[Path, list[bytes]], run: Any) -> None:
    path, each = flights
    done = run("play", path, "--segment", "3", "-r", "0", "--to", "null")
    assert (done.code, f"played {logreel.open(each[2]).message_count} messages" in done.err) == (0, True), (
        done
    )


def test_the_rest_of_an_older_log_is_a_separate_segment(tmp_path: Path) -> None:
    starts = (90_000_000, 50_000_000, 200_000_000, 10_000_000)
    path = tmp_path / "rest.ulg"
    path.write_bytes(rest(*starts[:2], starts[3]))
    log = logreel.open(path)
    assert [one.messages for one in log.segments] == [1200] * 3
    for number, start in ((1, 90), (2, 50), (3, 10)):
        part = logreel.open(logreel.recover(path, tmp_path / f"{number}.ulg", segment=number).path)
        assert list(part) == list(NAMES)
        assert set(part["a"]["n"].tolist()) == {start}
        assert (part.start, part.end) == (start * S, start * S + 2_990_000_000)
    assert "sys_name" not in log.segment(2).metadata


@pytest.mark.parametrize("suffix", sorted(SAMPLES))
def test_a_log_alone_is_the_first_segment(suffix: str, tmp_path: Path) -> None:
    log = logreel.open(sample(tmp_path, suffix))
    (one,) = log.segments
    assert (one.number, one.start, one.end, one.messages) == (1, log.start, log.end, log.message_count)
    assert log.segment(1) is log
    for wrong in (0, 2, -1, True, "1"):
        with pytest.raises(logreel.UsageError, match="no segment"):
            log.segment(wrong)  # type: ignore[arg-type]
    with pytest.raises(logreel.UsageError, match="no segment 2"):
        logreel.recover(log, tmp_path / f"x{suffix}", segment=2)


def test_segments_are_known_from_the_index_kept_of_a_file(flights: tuple[Path, list[bytes]]) -> None:
    path, _ = flights
    first = [logreel.open(path).segments, content(logreel.open(path, segment=2))]
    assert [logreel.open(path).segments, content(logreel.open(path, segment=2))] == first
