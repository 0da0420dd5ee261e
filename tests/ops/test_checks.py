"""Every check finds its defect, and nothing in an undamaged log."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable

import numpy as np
import pytest

import logreel
from logreel.errors import Finding
from support.builders.planted import MS, SECOND, Row, moved, rows, steady, ulog
from support.samples.bddf.builder import T0
from support.samples.bddf.builder import Builder as Bddf
from support.samples.carla.builder import Builder as Carla
from support.samples.koblenz.builder import Builder as Koblenz
from support.samples.rosbag.builder import CHATTER, COUNT, START, string
from support.samples.rosbag.builder import Builder as Bag
from support.samples.rosbag.old import Topic

DAY = 24 * 3600 * SECOND


def found(data: bytes | Iterable[Row]) -> list[Finding]:
    return list(logreel.check(data if isinstance(data, bytes) else ulog(data)).findings)


def brief(data: bytes | Iterable[Row]) -> list[tuple[str, str, str | None, int]]:
    return [(f.code, f.severity, f.topic, f.count) for f in found(data)]


def test_sound_logs_have_no_findings() -> None:
    assert found(steady()) == []
    assert found(rows("a", [])) == []
    assert found(rows("a", [SECOND])) == []
    assert found(steady(1000, 1)) == []


# ------------------------------------------------------------------------------------------------- clocks


@pytest.mark.parametrize(("late", "severity"), [(25 * MS, "note"), (3001 * MS, "warn")])
def test_a_late_message_is_out_of_order(late: int, severity: str) -> None:
    planted = steady(600)
    planted[1500] = (planted[1500][0], planted[1500][1] - late, planted[1500][2])
    (one,) = found(planted)
    assert (one.code, one.severity, one.topic, one.count) == ("out-of-order", severity, planted[1500][0], 1)
    assert one.time_ns == planted[1500][1] * 1000
    assert struct.unpack_from("<Q", ulog(planted), one.offset or 0) == (planted[1500][1],)


def test_a_clock_that_is_set_back_is_one_finding() -> None:
    planted = moved(steady(), 450, -1404 * MS)
    (one,) = found(planted)
    assert (one.code, one.severity, one.topic) == ("clock-reset", "warn", None)
    assert "1.4 s in 3 channels" in one.text
    assert struct.unpack_from("<Q", ulog(planted), one.offset or 0) == (planted[450][1],)


def test_a_clock_set_back_twice_is_two_findings() -> None:
    planted = moved(moved(steady(900), 900, -1403 * MS), 1800, -1603 * MS)
    assert [f.code for f in found(planted)] == ["clock-reset"] * 2


def test_one_channel_that_falls_back_alone_is_no_reset_of_the_clock() -> None:
    planted = moved(steady(1000, 6), 4200, -5004 * MS, topics="a")
    assert brief(planted) == [("out-of-order", "warn", "a", 1)]


def test_thousands_of_late_messages_are_one_finding() -> None:
    times = [SECOND + n * 10 * MS + (15 * MS if n % 2 else 0) for n in range(4000)]
    assert brief([*rows("a", times), *rows("b", [SECOND])]) == [("out-of-order", "note", "a", 1999)]


@pytest.mark.parametrize(("by", "severity"), [(2 * 3600 * SECOND, "note"), (400 * DAY, "warn")])
def test_a_clock_jump_is_found(by: int, severity: str) -> None:
    (one,) = found(moved(steady(), 450, by))
    assert (one.code, one.severity) == ("jump", severity)
    assert one.time_ns == (steady()[449][1]) * 1000


def test_messages_with_wrong_times_are_a_jump() -> None:
    planted = [("odd", 0, 1), ("odd", 1, 2), *steady(start=60 * DAY)]
    (one,) = found(planted)
    assert (one.code, one.severity, one.topic, one.offset is not None) == ("jump", "warn", "odd", True)
    assert "2 messages before it (odd) have a wrong time" in one.text


def test_times_at_both_ends_of_64_bits() -> None:
    out = Bddf()
    number = out.messages("say", "text/plain", "line")
    for time in (-(2**62), 0, 2**62, T0, -1, 2**62 + 5):
        out.data(number, time, b"%d" % time)
    assert {f.code for f in found(out.bytes())} == {"out-of-order", "jump"}


def test_channels_that_seldom_come_do_not_jump() -> None:
    assert found(rows("seldom", [n * 3600 * SECOND for n in range(1, 40)])) == []


# --------------------------------------------------------------------------------------------------- gaps


def test_a_gap_of_one_channel_is_found() -> None:
    planted = [row for row in steady() if not (row[0] == "b" and 100 <= row[2] < 150)]
    (one,) = found(planted)
    assert (one.code, one.severity, one.topic, one.count) == ("gap", "note", "b", 1)
    assert one.time_ns == (5 * SECOND + 99 * 10 * MS + 1) * 1000
    assert "silent for 510 ms, usually every 10 ms" in one.text


def test_a_gap_of_all_channels_is_one_finding() -> None:
    planted = moved(steady(), 450, 4 * SECOND)
    (one,) = found(planted)
    assert (one.code, one.severity, one.topic) == ("gap", "warn", None)
    assert "3 of 3 regular channels are silent for 4.0 s" in one.text


def test_channels_with_bursts_have_no_gaps() -> None:
    rng = np.random.default_rng(7)
    irregular = np.cumsum(rng.exponential(SECOND, 500)).astype(np.int64) + SECOND
    bursts = [SECOND * (n // 20 + 1) + n % 20 * MS for n in range(500)]
    for times in (irregular.tolist(), bursts):
        assert found(rows("a", times)) == []


# --------------------------------------------------------------------------------------------- duplicates


def test_repeated_messages_are_duplicates() -> None:
    planted = steady()
    planted[400:400] = planted[370:400]
    again = [f for f in found(planted) if f.code == "duplicate"]
    assert sorted(f.topic or "" for f in again) == ["a", "b", "c"]
    assert {(f.severity, f.count, f.size) for f in again} == {("warn", 10, 160)}


def test_the_same_time_with_other_bytes_is_no_duplicate() -> None:
    planted = steady()
    planted[450:450] = [(planted[449][0], planted[449][1], -1)]
    assert found(planted) == []


def test_duplicates_in_compressed_chunks_are_found() -> None:
    out = Bag(compression="lz4", chunk_bytes=300)
    conn = out.connection(CHATTER)
    for n in range(60):
        out.message(conn, START + n * 10**8, string(f"line {n % 7}"))
        if n in (20, 41):
            out.message(conn, START + n * 10**8, string(f"line {n % 7}"))
    assert brief(out.bytes()) == [("duplicate", "warn", "/chatter", 2)]


def test_frozen_time_is_found() -> None:
    assert brief([*steady(), *rows("stuck", [0] * 30)])[-1][0] in ("frozen-time", "jump")
    assert brief(rows("stuck", [SECOND] * 30)) == [("frozen-time", "note", "stuck", 30)]


# --------------------------------------------------------------------------------- definitions and payloads


def bag(payloads: Iterable[bytes], topic: Topic = CHATTER, compression: str = "none") -> bytes:
    out = Bag(compression=compression, chunk_bytes=500)
    conn = out.connection(topic)
    for n, payload in enumerate(payloads):
        out.message(conn, START + n * 10**8, payload)
    return out.bytes()


@pytest.mark.parametrize("compression", ["none", "lz4"])
def test_payloads_that_do_not_fit_their_definition_are_found(compression: str) -> None:
    sound = [string("word" * (n % 9)) for n in range(100)]
    assert found(bag(sound, compression=compression)) == []
    planted = list(sound)
    planted[30], planted[31], planted[77] = planted[30][:-1] + b"", b"\xff\0\0\0short", planted[77] + b"!"
    planted[30] = planted[30][:3]
    told = sorted(found(bag(planted, compression=compression)), key=lambda f: f.code)
    assert [(f.code, f.severity, f.topic, f.count) for f in told] == [
        ("leftover", "warn", "/chatter", 1),
        ("payload", "error", "/chatter", 2),
    ]
    assert [f.time_ns for f in told] == [START + 77 * 10**8, START + 30 * 10**8]
    assert "the first is number 77" in told[0].text


def test_payloads_of_wrong_fixed_size_are_found() -> None:
    sound = [struct.pack("<i", n) for n in range(20)]
    assert found(bag(sound, COUNT)) == []
    assert brief(bag([*sound[:7], b"\0\0", *sound[7:], b"12345"], COUNT)) == [
        ("payload", "error", "/count", 1),
        ("leftover", "warn", "/count", 1),
    ]


def test_samples_that_do_not_fill_their_block_are_found() -> None:
    def log(payload: bytes) -> bytes:
        out = Bddf()
        speed = out.pods({"name": "speed"}, "float32")
        out.data(speed, T0, struct.pack("<3f", 1, 2, 3)).data(speed, T0 + 10**9, payload)
        return out.bytes()

    assert found(log(struct.pack("<2f", 4, 5))) == []
    codes = {f.code for f in found(log(b"123456"))}
    assert codes & {"payload", "leftover"}


def test_a_wrong_md5_of_a_definition_is_found() -> None:
    wrong = Topic("/chatter", "std_msgs/String", md5=hashlib.md5(b"another").hexdigest())
    sound = [string(f"{n}") for n in range(5)]
    (one,) = found(bag(sound, wrong))
    assert (one.code, one.severity, one.offset) == ("md5", "warn", None)


def test_irregular_frames_of_a_simulation_are_found() -> None:
    def log(numbers: list[int], wrong: float | None = None) -> bytes:
        out = Carla()
        for k, number in enumerate(numbers):
            out.frame(k * 0.05, number).position(1, (k * 1.0, 0.0, 0.0))
        if wrong is not None:
            out.frames[2].duration = wrong
        return out.bytes()

    assert found(log([1, 2, 3, 4, 5])) == []
    assert brief(log([1, 2, 7, 8, 9])) == [("frame_number", "warn", None, 1)]
    assert brief(log([1, 2, 3, 4, 5], 0.2)) == [("frame_time", "warn", None, 1)]


def test_a_wrong_index_is_found() -> None:
    out = Koblenz()
    for n in range(30):
        out.obd(n * 100.0, n, 1000, 0.5)
    assert found(out.bytes()) == []
    places = out.seconds(0)
    assert brief(out.bytes(index=[places[0], places[1] + 3, *places[2:]])) == [("index", "warn", None, 1)]


def test_very_many_findings_of_one_kind_become_one() -> None:
    data = bytearray(ulog(steady(2000)))
    for at in range(2000, len(data) - 2000, 4000):
        data[at : at + 100] = b"\xa5" * 100
    checked = found(bytes(data))
    holes = [f for f in checked if f.code == "garbage"]
    assert len(holes) == 1
    assert holes[0].count > 10
    assert "more like it, the largest at byte" in holes[0].text
    assert holes[0].size == sum(p.size for p in logreel.open(bytes(data)).problems if p.code == "garbage")


def test_a_wrong_summary_is_found() -> None:
    data = bytearray(bag([string("word")] * 60))
    assert found(bytes(data)) == []
    data[data.rfind(b"end_time=") + len(b"end_time=")] ^= 1
    (one,) = found(bytes(data))
    assert (one.code, one.severity, one.count) == ("index", "warn", 1)
    assert "the summary states other times for 1 of" in one.text
