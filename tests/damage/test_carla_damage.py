"""CARLA recordings cut at every byte and damaged in thousands of ways, against the plain reader."""

from __future__ import annotations

import os

import pytest
from mutations import mutate
from small_log_queries import in_time, read_all

import logreel
from support.builders.carla_rows import assert_accounted, packets, walked
from support.oracles import carla as oracle
from support.samples.carla.builder import Builder, eventful
from support.samples.carla.records import RELEASES

CASES = int(os.environ.get("LOGREEL_FUZZ", "80"))

Place = tuple[int, int, int]


def due(data: bytes) -> list[Place]:
    """Return offset, kind and end of every packet, by stated sizes."""
    begin = 28 + int.from_bytes(data[26:28], "little")
    return [(at, kind, at + 5 + len(payload)) for at, kind, payload in oracle.packets(data, begin)]


@pytest.mark.parametrize("release", ["0.9.16", "0.10.0"])
def test_every_cut_keeps_all_whole_packets_and_invents_none(release: str) -> None:
    data = eventful(release, frames=2, additional=release == "0.9.16").bytes()
    whole = due(data)
    for cut in range(20, len(data)):
        part = data[:cut]
        found = walked(part)
        kept = [place for place in whole if place[2] <= cut and found.header.size]
        assert packets(found) == kept, cut
        assert_accounted(found, part)
        assert all(p.code in ("truncated", "zeros", "header") for p in found.problems), cut
        assert cut in {end for _, _, end in whole} or cut < whole[0][2] or found.problems, cut


@pytest.mark.parametrize("release", RELEASES)
def test_a_cut_in_the_first_frame_changes_no_topic(release: str) -> None:
    """Which release numbers doors, wheels and bikers how is clear although their packets are empty, or missing."""
    out = Builder(release)
    for n in range(3):
        frame = out.frame(0.5 * n)
        if n:
            frame.position(7, (1.0, 2.0, 3.0)).vehicle(7, 0.5)
    data = bytes(out.bytes())
    topics = {m.offset: m.channel.topic for m in logreel.open(data).messages(order="file")}
    ends = [end for _, kind, end in due(data)]
    for end in ends[: ends.index(next(e for _, kind, e in due(data) if kind == 1)) + 2]:
        for cut in (end, end + 1, end + 5, end + 6):
            for one in logreel.open(data[:cut]).messages(order="file"):
                assert one.channel.topic == topics[one.offset], cut


def check_damaged(base: bytes, seed: int) -> None:
    """Read a damaged recording completely, and compare it with the plain reader."""
    data = mutate(base, seed)
    log = read_all(data, seed)
    if log is None:
        return
    found = walked(data)
    assert_accounted(found, data)
    got = packets(found)
    assert all(0 <= at < end <= len(data) for at, _, end in got), seed
    # Up to the first problem, the plain chain of packets is right.
    doubt = min((p.offset for p in found.problems), default=len(data))
    assert [one for one in got if one[2] <= doubt] == [one for one in due(data) if one[2] <= doubt], seed


@pytest.mark.parametrize("lane", range(4))
def test_damaged_recordings_account_for_every_byte(lane: int) -> None:
    bases = [eventful("0.9.16", frames=6).bytes(), eventful("0.10.0", frames=3).bytes()]
    for seed in range(lane, CASES, 4):
        check_damaged(bases[seed // 4 % 2], seed)


def sound() -> Builder:
    return eventful("0.9.14", frames=6)


def frames_of(data: bytes) -> list[int]:
    return logreel.open(data)["frames"]["frame"].tolist()


def test_reading_resumes_at_next_frame_or_inside_damaged_one() -> None:
    data = sound().bytes()
    whole = due(data)
    starts = [at for at, kind, _ in whole if kind == 0]
    (hit,) = [at for at, kind, _ in whole if kind == 6 and starts[2] < at < starts[3]]
    # A destroyed packet header loses only that packet.
    found = walked(data[:hit] + b"\xee" * 5 + data[hit + 5 :])
    (problem,) = found.problems
    assert (problem.offset, problem.lost) == (hit, True)
    assert [one for one in whole if one not in packets(found)] == [one for one in whole if one[0] == hit]
    # Damage across frames loses the bytes hit and the rest of the frame whose FrameStart is lost.
    hole = data[:hit] + bytes(starts[4] + 10 - hit) + data[starts[4] + 10 :]
    assert frames_of(hole) == [1, 2, 3, 6]


def test_damaged_headers_are_detected_from_content() -> None:
    data = sound().bytes()
    for at, kind, end in due(data):
        if kind in (1, 139) or at < 40:
            continue
        for wrong in (7, 1 << 20):
            found = walked(data[: at + 1] + wrong.to_bytes(4, "little") + data[at + 5 :])
            assert [p.lost for p in found.problems] == [False], (at, kind, wrong)
            assert (at, kind, end) in packets(found)
    starts = [at for at, kind, _ in due(data) if kind == 0]
    assert frames_of(data[: starts[2]] + b"\x7f" + data[starts[2] + 1 :]) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("zeros", [1, 4, 5, 6, 500, 5000])
def test_zero_tail_is_no_packet(zeros: int) -> None:
    data = sound().bytes()
    found = walked(data + bytes(zeros))
    (problem,) = found.problems
    assert (problem.code, problem.offset, problem.size, problem.lost) == ("zeros", len(data), zeros, True)


def test_absurd_time_does_not_extend_recording() -> None:
    out = sound()
    out.frames[3].elapsed = 1e30
    data = out.bytes()
    log = logreel.open(data)
    assert log.start == 0
    assert log.end == 250_000_000


@pytest.mark.parametrize("kind", [2, 15, 19, 21])
def test_absurd_counts_need_no_memory_or_time(kind: int) -> None:
    out = sound()
    out.frames[2].packet(kind, b"\xff" * 60, size=0)
    data = out.bytes() + b"\x01\0\0\0\0" * 20000
    assert read_all(data) is not None


def test_many_damaged_frames_take_linear_time() -> None:
    out = Builder("0.9.14")
    for i in range(3000):
        out.frame(0.05 * i).packet(30, b"\xff" * 9, size=1 << 30)
    data = out.bytes()
    with in_time():
        found = walked(data)
    assert len(found.problems) >= 3000
    assert_accounted(found, data)
