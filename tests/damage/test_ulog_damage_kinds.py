"""Kinds of damage in real ULog files, each built byte by byte: messages read and problems reported."""

from __future__ import annotations

import struct
from random import Random

import pytest
from full_read import full_read
from mutations import mutate
from ulog_byte_accounting import assert_accounted

import logreel
from logreel.index import block_table as block_builder
from logreel.log.log import Log
from support.samples.ulog import builder
from support.samples.ulog.builder import Builder

TICK = "tick:uint64_t timestamp;uint32_t n;"
TOCK = "tock:uint64_t timestamp;uint16_t n;"
S = 1_000_000


def tick(n: int, time_us: int | None = None) -> bytes:
    return struct.pack("<QI", 10 * S + n if time_us is None else time_us, n)


def tock(n: int) -> bytes:
    return struct.pack("<QH", 10 * S + n, n)


def started() -> Builder:
    return Builder(start_us=S).flags().format(TICK).format(TOCK).subscribe("tick", 0).subscribe("tock", 1)


def ticks(out: Builder, numbers: range) -> Builder:
    for n in numbers:
        out.data(0, tick(n)).data(1, tock(n))
    return out


def opened(data: bytes) -> Log:
    """Return the log after reading it completely, with every byte accounted for."""
    log = full_read(data)
    assert log is not None
    assert_accounted(log)
    return log


def numbers(log: Log, topic: str = "tick") -> list[int]:
    return log[topic]["n"].tolist() if topic in log and len(log[topic]) else []


def lost(log: Log) -> list[tuple[str, int, int]]:
    return [(p.code, p.offset, p.offset + p.size) for p in log.problems if p.lost]


# ------------------------------------------------------------------ cut and filled ends

RECORDS = {
    "D": lambda out: out.data(0, tick(99)),
    "L": lambda out: out.text(6, 11 * S, "a line of text"),
    "C": lambda out: out.tagged(6, 3, 11 * S, "a tagged line"),
    "I": lambda out: out.info("sys_name", "PX4"),
    "M": lambda out: out.info_multiple("lines", "one of many"),
    "P": lambda out: out.parameter("GAIN", 1.5),
    "Q": lambda out: out.default_parameter("GAIN", 1.5),
    "F": lambda out: out.format("later:uint64_t timestamp;float x;"),
    "A": lambda out: out.subscribe("tick", 7, multi_id=1),
    "S": lambda out: out.sync(),
    "O": lambda out: out.dropout(9),
    "R": lambda out: out.unsubscribe(0),
}


@pytest.mark.parametrize("letter", RECORDS)
def test_cut_in_any_record_loses_only_that_record(letter: str) -> None:
    out = ticks(started(), range(10))
    begin = len(out)
    whole = RECORDS[letter](out).bytes()
    for size in range(begin, len(whole)):
        log = opened(whole[:size])
        assert numbers(log) == numbers(log, "tock") == list(range(10))
        assert lost(log) == ([("truncated", begin, size)] if size > begin else [])
    assert lost(opened(whole)) == []


@pytest.mark.parametrize("tail", [1, 2, 3, 5, 14, 16, 17, 18, 500, 70_000])
@pytest.mark.parametrize(
    "header", [b"", b"\x0e", b"\x0e\x00D", b"\x0e\x00D\x00\x00", b"\x1e\x00D", b"\xff\xffI"]
)
def test_zero_tail_gives_no_rows(tail: int, header: bytes) -> None:
    """Also if the header before the zeros makes them a record of the right size."""
    out = ticks(started(), range(10))
    begin = len(out)
    log = opened(out.junk(header + bytes(tail)).bytes())
    assert numbers(log) == list(range(10)) or header[:3] == b"\x0e\x00D"
    assert numbers(log)[:10] == list(range(10))
    if len(header) + tail != 17:
        assert len(log["tick"]) == 10
        assert [(a, b) for _, a, b in lost(log)] == [(begin, begin + len(header) + tail)]


# ------------------------------------------------------------------ damage inside


@pytest.mark.parametrize("sectors", [1, 2, 8])
@pytest.mark.parametrize("how", ["missing", "zero", "random"])
def test_lost_sector_loses_only_its_records(sectors: int, how: str) -> None:
    data = ticks(started(), range(1000)).bytes()
    whole = opened(data)
    for begin in range(1024, 16_384, 512 * 5):
        end = begin + 512 * sectors
        hole = {"missing": b"", "zero": bytes(end - begin), "random": Random(begin).randbytes(end - begin)}[
            how
        ]
        log = opened(data[:begin] + hole + data[end:])
        for topic, size in (("tick", 12), ("tock", 10)):
            at = whole.index.offsets(whole[topic].number).tolist()
            due = {n for n, a in enumerate(at) if a + size <= begin or a - 5 >= end}
            got = numbers(log, topic)
            assert due - set(got) == set()
            # A record with the end of another record has the right size: this cannot be detected.
            assert len(set(got) - due) <= (how == "missing") + (how == "random")
        assert sum(b - a for _, a, b in lost(log)) < 512 * sectors + 40


@pytest.mark.parametrize("letter", "DLIMPQFAS")
@pytest.mark.parametrize("bit", range(16))
def test_bit_flip_in_size_loses_only_that_record(letter: str, bit: int) -> None:
    out = ticks(started(), range(20))
    begin = len(out)
    end = len(RECORDS[letter](out))
    for n in range(20, 60):
        # Marks between, as records of 32 bytes in all would let a wrong power of two end at a sound record again.
        out.data(0, tick(n)).sync().data(1, tock(n))
    data = bytearray(out.bytes())
    data[begin + bit // 8] ^= 1 << bit % 8
    log = opened(bytes(data))
    got = numbers(log)
    assert [n for n in got if n != 99] == list(range(60))
    assert numbers(log, "tock") == list(range(60))
    # Texts and values may be longer or shorter than they say, where the next record proves it.
    assert all(begin <= a and b <= end for _, a, b in lost(log)), lost(log)


def test_bit_flips_in_all_sizes_of_flight() -> None:
    """One of 50 records gets a wrong size: at least 97 % of the others are read."""
    data = bytearray(builder.flight(2))
    whole = opened(bytes(data))
    rng = Random(1)
    at = sorted(rng.sample(whole.index.offset[whole.index.chunk == -1].tolist(), whole.message_count // 50))
    for payload in at:
        data[payload - 5 + rng.randrange(2)] ^= 1 << rng.randrange(8)
    log = opened(bytes(data))
    assert log.message_count > 0.97 * (whole.message_count - len(at))


@pytest.mark.parametrize("destroyed", [b"tick:", b"\0\0\0tick"], ids=["format", "subscription"])
@pytest.mark.parametrize("byte", [0, 7])
def test_lost_definition_loses_only_its_topic(destroyed: bytes, byte: int) -> None:
    data = bytearray(ticks(started(), range(100)).bytes())
    data[data.index(destroyed) + len(destroyed) - 4] = byte
    log = opened(bytes(data))
    assert numbers(log, "tock") == list(range(100))
    undeclared = [p for p in log.problems if p.code == "undeclared"]
    if len(log.channels.get("tick", ())):
        assert [bytes(m.data) for m in log.messages("tick")] == [tick(n) for n in range(100)]
    else:
        assert sum(p.size for p in undeclared) == 100 * 17
    assert log.problems


def test_records_inside_wrong_size_may_precede_their_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: offsets relative to the block were negative, and grouping them wrote out of bounds."""
    monkeypatch.setattr(block_builder, "BLOCK", 64)
    inner = ticks(Builder(), range(20, 30)).bytes()[16:]
    for more in range(0, 6000, 400):
        out = ticks(started(), range(20)).text(6, S, "x" * more)
        begin = len(out)
        out.raw("I", b"\x09int32_t x" + inner).junk(b"\xff" * 9)
        log = opened(ticks(out, range(30, 40)).bytes())
        assert numbers(log) == numbers(log, "tock") == list(range(40))
        assert lost(log) == [
            ("garbage", begin, begin + 13),
            ("garbage", begin + 13 + len(inner), begin + 22 + len(inner)),
        ]


# ------------------------------------------------------------------ more than one log in a file


def flight_of(seconds: range, step: int = 1000) -> Builder:
    out = started()
    for t in range(seconds.start * S, seconds.stop * S, S // 10):
        out.data(0, struct.pack("<QI", t, t // step)).data(1, struct.pack("<QH", t, 7))
    return out


def test_tail_of_older_log_has_separate_channels() -> None:
    """A complete log, then the end of an older and longer one in the same file: same ids, earlier times."""
    new, old = flight_of(range(100, 130)).bytes(), flight_of(range(20, 90)).bytes()
    begin = len(new)
    for cut in (1, 3, 510):
        tail = old[len(old) // 2 + cut :]
        log = opened(new + tail)
        fresh = opened(new)
        for topic in ("tick", "tock"):
            assert (log[topic].times == fresh[topic].times).all()
            assert len(log[f"{topic}@2"]) >= len(tail) // 32 - 2
            assert log[f"{topic}@2"].times.max() < 90 * S * 1000
        assert (log.start, log.end) == (fresh.start, fresh.end)
        assert "segment" in [p.code for p in log.problems]
        assert all(begin <= a and b <= begin + 40 for _, a, b in lost(log))


@pytest.mark.parametrize("junk", [b"", b"\0" * 7, b"\xff" * 600])
def test_second_file_has_its_own_definitions(junk: bytes) -> None:
    first = flight_of(range(100, 110)).bytes()
    second = (
        Builder(start_us=5 * S).flags().info("sys_name", "other").format("tick:uint64_t timestamp;float z;")
    )
    second.parameter("GAIN", 2.0).subscribe("tick", 1).subscribe("gone", 0)
    for n in range(50):
        second.data(1, struct.pack("<Qf", 6 * S + n, n))
    log = opened(first + junk + second.bytes())
    assert len(log["tick"]) == len(log["tock"]) == 100
    assert log["tick@2"]["z"].tolist() == list(range(50))
    assert (log["tick@2"].start, log.start) == (6 * S * 1000, S * 1000)
    assert log.metadata["sys_name@2"] == "other"
    assert log.parameters["GAIN@2"].value == 2.0
    assert [(a, b) for _, a, b in lost(log)] == ([(len(first), len(first) + len(junk))] if junk else [])


# ------------------------------------------------------------------ appended parts


def test_message_cut_by_appended_part_is_lost_alone() -> None:
    for size in range(1, 17):
        out = ticks(started(), range(10))
        begin = len(out)
        out.junk(Builder().data(0, tick(99)).bytes()[16 : 16 + size]).append_part()
        end = len(out)
        log = opened(ticks(out, range(10, 20)).bytes())
        assert numbers(log) == list(range(20))
        assert lost(log) == [("truncated", begin, end)]


@pytest.mark.parametrize("offset", [1, 16, 59, 10**6, 2**63, 2**64 - 1])
def test_offset_outside_file_is_reported_and_not_used(offset: int) -> None:
    out = Builder(start_us=S).flags(incompat=1, offsets=(offset,)).format(TICK).format(TOCK)
    log = opened(ticks(out.subscribe("tick", 0).subscribe("tock", 1), range(10)).bytes())
    assert numbers(log) == list(range(10))
    assert [(p.code, p.lost) for p in log.problems] == [("offset", False)]


def test_offset_inside_record_loses_that_record() -> None:
    data = bytearray(ticks(started(), range(100)).bytes())
    for offset in range(500, 540):
        data[16 + 3 + 8] |= 1
        data[35:43] = struct.pack("<Q", offset)
        log = opened(bytes(data))
        assert len(numbers(log)) + len(numbers(log, "tock")) >= 199
        assert sum(b - a for _, a, b in lost(log)) in (0, 15, 17)


# ------------------------------------------------------------------ the rest


def test_every_truncation_can_be_opened() -> None:
    data = builder.tiny(4)
    whole = logreel.open(data).index
    mask = whole.chunk == -1
    ends = (whole.offset + whole.size)[mask]
    for cut in range(16, len(data) + 1):
        log = opened(data[:cut])
        assert log.message_count == (ends <= cut).sum(), cut
        assert all(b == cut for _, a, b in lost(log))


def test_strict_raises_first_problem() -> None:
    data = builder.tiny()[:-3]
    with pytest.raises(logreel.DamagedError) as caught:
        logreel.open(data, strict=True)
    assert caught.value.problem == logreel.open(data).problems[0]
    logreel.open(builder.tiny(), strict=True)


def test_every_byte_of_mutants_is_accounted_for() -> None:
    """The same as the fuzz run, in this process, for use in a debugger."""
    for seed in range(150):
        log = full_read(mutate(builder.tiny(), seed))
        if log is not None:
            assert_accounted(log)
