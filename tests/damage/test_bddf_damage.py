"""BDDF files cut at every byte, mutated, or hostile, against the plain reader."""

from __future__ import annotations

import os
import struct
import time

import pytest
from mutations import mutate
from small_log_queries import by_place, in_time, read_all

import logreel
from conftest import SHARED
from logreel.formats.bddf import scan_builder
from logreel.formats.bddf.scan_builder import ScanBuilder
from logreel.io.source import Source
from support.oracles import bddf as oracle
from support.samples.bddf.builder import (
    T0,
    Builder,
    block,
    data_block,
    mapping,
    num,
    number,
    raw,
    stamp,
    walk,
)

CASES = int(os.environ.get("LOGREEL_FUZZ", "240"))
SAMPLES = SHARED / "data/bddf"
CUT = ("03_multi_series", "06_killed_no_index", "13_odd_times_late_series")

Place = tuple[int, int, int]


def small() -> bytes:
    """Return a file with every kind of series in a few blocks."""
    out = Builder({"note": "small"})
    text = out.messages("say", "text/plain", "line", names=["pid", "n"])
    speed = out.pods({"varname": "speed"}, "float32", [2], "m/s")
    turn = out.pods({"varname": "turn"}, "float32", [2], "rad/s")
    out.struct({"schema": "motion"}, {"speed": speed, "turn": turn})
    notes = out.messages("bosdyn.api.OperatorComment")
    for i in range(6):
        out.data(text, T0 + i, f"line {i}".encode(), [i, -i])
        out.values(speed, T0 + i, "float32", [i, 2, 3, 4])
        out.values(turn, T0 + i, "float32", [4, 3, 2, i])
        out.data(notes, T0 + i, raw(1, f"note {i}") + raw(2, stamp(T0 + i)))
    return out.bytes()


def found_in(data: bytes) -> ScanBuilder:
    source = Source.open(data)
    return ScanBuilder(source, scan_builder.find(source))


def places(got: ScanBuilder) -> list[Place]:
    """Return payload offset, payload size and time of every block, in file order."""
    index = got.index
    inside = [i for i, rule_set in enumerate(index.rules) if rule_set.synthetic is None]
    return by_place(index, inside, index.offsets, index.sizes, index.times)


def place(row: oracle.Row) -> Place:
    return row.end - len(row.payload), len(row.payload), row.ns


def every_cut(data: bytes) -> None:
    rows = oracle.walk(data).rows
    assert rows
    for cut in range(4, len(data)):
        found = found_in(data[:cut])
        assert places(found) == [place(row) for row in rows if row.end <= cut], cut
        assert any(p.code in ("truncated", "zeros", "header") for p in found.found.problems), cut


def some_block(kind: str, n: int) -> bytes:
    """Return block number *n*: of a declared series (D), of an undeclared one (U, V), or of an unknown kind (R)."""
    if kind == "R":
        return block(5, b"reserved content")
    return data_block({"D": 0, "U": 7, "V": 9}[kind], T0 + n, b"line %d" % n)


@pytest.mark.parametrize("order", ["UDDR", "UDR", "RDU", "DURD", "UDVD", "DUDDD", "RUDV", "DDUDRD"])
def test_every_cut_around_undeclared_and_unknown_blocks_keeps_all_whole_blocks(order: str) -> None:
    """Also where one or two whole blocks and a part of the next one follow."""
    out = Builder()
    out.messages("say", "text/plain", "line")
    data, ends = out.killed(), []
    for n, kind in enumerate(order):
        data += some_block(kind, n)
        ends += [len(data)] * (kind == "D")
    for cut in range(len(out.killed()), len(data) + 1):
        assert [at + size for at, size, _ in places(found_in(data[:cut]))] == [e for e in ends if e <= cut], (
            cut
        )


def test_every_cut_keeps_all_whole_blocks_and_invents_none() -> None:
    every_cut(small())


@pytest.mark.parametrize("name", CUT)
def test_every_cut_of_a_sample(name: str) -> None:
    path = SAMPLES / f"{name}.bddf"
    if not path.exists():
        pytest.skip("no samples of BDDF beside the repository (LOGREEL_SHARED)")
    every_cut(path.read_bytes())


@pytest.mark.parametrize("lane", range(4))
def test_damaged_files_give_only_real_blocks(lane: int) -> None:
    base = small()
    for seed in range(lane, CASES, 4):
        data = mutate(base, seed)
        log = read_all(data, seed)
        if log is None:
            continue
        whole = found_in(data)
        found = places(whole)
        for start, size, ns in found:
            assert 0 <= start <= start + size <= len(data), seed
            assert any(_is_block(data, start - 12 - d, start, size, ns) for d in range(2, 64)), seed
        # A damaged declaration may lose its series, which is reported.
        sound = min((p.offset for p in whole.found.problems if p.lost), default=len(data))
        due = {place(row) for row in oracle.walk(data).rows if row.end <= sound}
        assert not due - set(found), seed


def _is_block(data: bytes, at: int, start: int, size: int, ns: int) -> bool:
    try:
        row = oracle.data_block(data, at, strict=False)
    except oracle.Bad:
        return False
    return place(row) == (start, size, ns)


@pytest.mark.parametrize("zeros", [1, 11, 12, 13, 500, 5000])
def test_zero_tail_is_no_data(zeros: int) -> None:
    whole = Builder()
    series = whole.messages("a", "text/plain", "t")
    for i in range(5):
        whole.data(series, T0 + i, b"x")
    found = found_in(whole.killed() + bytes(zeros))
    assert len(places(found)) == 5
    (problem,) = found.found.problems
    assert (problem.code, problem.size, problem.lost) == ("zeros", zeros, True)


def test_bytes_after_end_are_reported() -> None:
    data = small()
    for rest in (b"\x00" * 9, b"junk", bytes(range(256)) * 3):
        found = found_in(data + rest)
        assert places(found) == places(found_in(data))
        assert [p.size for p in found.found.problems] == [len(rest)]


def test_concatenated_files_are_read_as_one() -> None:
    a, b = small(), Builder()
    other = b.messages("other", "text/plain", "t")
    b.data(other, T0 + 50, b"from the other file")
    log = logreel.open(a + b.bytes() + a)
    assert len(log["other"]) == 1
    assert len(log["say"]) == 12
    assert [p.code for p in log.problems] == ["segment", "segment"]
    assert list(log["say"].to_arrow(["n"])["n"].to_pylist()) == [0, -1, -2, -3, -4, -5] * 2
    # The writer of the first file was killed: it has no end block.
    killed = logreel.open(Builder().killed() + a)
    assert len(killed["say"]) == 6


def test_reading_goes_on_after_damage() -> None:
    data = bytearray(small())
    rows = oracle.walk(bytes(data)).rows
    hit = rows[7]
    data[hit.at : hit.at + 12] = b"\xff" * 12
    found = found_in(bytes(data))
    assert places(found) == [place(row) for row in rows if row is not hit]
    lost = [p for p in found.found.problems if p.lost]
    assert [(p.code, p.offset, p.size) for p in lost] == [("garbage", hit.at, hit.end - hit.at)]


def test_blocks_of_lost_declaration_are_reported() -> None:
    out = Builder()
    out.messages("a", "text/plain", "t")
    data = bytearray(out.killed())
    for i in range(8):
        data += data_block(0, T0 + i, b"kept") + data_block(5, T0 + i, b"not declared")
    found = found_in(bytes(data))
    assert len(places(found)) == 8
    problem = next(p for p in found.found.problems if p.code == "undeclared")
    assert problem.lost
    assert problem.size == sum(len(data_block(5, T0 + i, b"not declared")) for i in range(8))


def test_every_cut_after_undeclared_blocks_keeps_all_whole_blocks() -> None:
    out = Builder()
    a = out.messages("a", "text/plain", "t")
    ends = []
    for i in range(8):
        if i in (2, 5):
            out.out += data_block(5, T0 + i, b"not declared") if i == 2 else block(7, b"what is this")
        out.data(a, T0 + i, b"line %d" % i)
        ends.append(len(out.out))
    data = out.bytes()
    for cut in range(ends[0], ends[-1] + 40):
        assert len(places(found_in(data[:cut]))) == sum(end <= cut for end in ends), cut


def test_blocks_of_unknown_kinds_are_skipped_by_size() -> None:
    out = Builder()
    a = out.messages("a", "text/plain", "t")
    out.data(a, T0, b"1")
    out.out += block(7, b"what is this")
    out.data(a, T0 + 1, b"2").data(a, T0 + 2, b"3")
    found = found_in(out.bytes())
    assert len(places(found)) == 3
    assert not any(p.lost for p in found.found.problems)


def test_wrong_index_is_not_used() -> None:
    data = small()
    rows = [place(row) for row in oracle.walk(data).rows]
    at = struct.unpack("<Q", data[-32:-24])[0]
    for change in (at - 30, at - 60, at + 20, len(data) - 30):
        for value in (0, 0x7F, 0xFF):
            broken = data[:change] + bytes([value]) + data[change + 1 :]
            assert places(found_in(broken)) == rows, (change, value)


def test_block_missing_in_index_is_found() -> None:
    out = Builder()
    a = out.messages("a", "text/plain", "t")
    out.data(a, T0, b"1")
    out.out += data_block(a, T0 + 1, b"the index does not know me")
    found = found_in(out.data(a, T0 + 2, b"3").bytes())
    assert len(places(found)) == 3
    assert not found.found.indexed


def index_blocks(entries: bytes) -> bytes:
    return block(1, raw(3, num(2, 22) + entries))


def test_index_with_repeated_block_is_cheap() -> None:
    out = Builder()
    a = out.messages("a", "text/plain", "t")
    at = len(out.out)
    out.data(a, T0, b"once")
    out._entries[a] *= 100_000
    data = out.bytes()
    with in_time():
        found = found_in(data)
    assert [p[0] for p in places(found)] == [at + 12 + 8]
    # And a list that names the same index for every series.
    many = Builder()
    for i in range(2000):
        many.messages(f"m{i}", "text/plain", "t")
    many.data(0, T0, b"x")
    many._entries[0] = out._entries[a][:20_000]
    assert len(places(found_in(many.bytes()))) == 1


BOMBS = {
    "size": b"\xff" * 7 + b"\x00" + b"\x08\x00\x00\x00" + b"\x12\x06" + bytes(6),
    "descriptor": b"\xff" * 7 + b"\x01",
    "length": struct.pack("<QI", 1 << 40, 0xFFFFFFFF),
    "varint": struct.pack("<QI", 12, 12) + b"\x08" + b"\xff" * 11,
    "nested": block(1, raw(2, raw(7, b"\x0a" * 3000))),
    "map": block(1, raw(2, mapping(7, {"k" * 1000: "v" * 1000}) * 50)),
    "series": block(1, raw(2, num(1, (1 << 32) - 1))),
    "dimensions": block(1, raw(2, num(1, 1) + raw(5, num(1, 10) + raw(2, number(0xFFFFFFFF) * 64)))),
    "deep": block(1, raw(2, num(1, 1) + raw(5, num(1, 10) + raw(2, number(1) * 5000)))),
    "zero": block(1, raw(2, num(1, 1) + raw(5, num(1, 10) + raw(2, number(0))))),
}


def cost(name: str, repeat: int) -> float:
    """Return the CPU seconds of reading a file with a number of hostile blocks."""
    out = Builder()
    series = out.messages("a", "text/plain", "t")
    out.data(series, T0, b"before")
    data = out.killed() + BOMBS[name] * repeat
    begin = time.process_time()
    log = read_all(data)
    assert log is not None
    assert len(log["a"]) == 1
    return time.process_time() - begin


@pytest.mark.parametrize("name", BOMBS)
def test_resource_bombs_take_linear_time(name: str) -> None:
    # What is only done once, imports above all, is done before; a square would be 64 times what is linear.
    few = max(min(cost(name, 16) for _ in range(3)), 0.005)
    assert cost(name, 16 * 64) < 10 * 64 * few


def test_overlapping_long_descriptors_take_linear_time() -> None:
    head = raw(2, stamp(T0)) + raw(9, bytes(100_000))
    one = struct.pack("<QI", len(head), len(head)) + b"\x12"
    with in_time():
        found_in(Builder().killed() + b"\xff" * 8 + one * 20_000 + bytes(100_000))


def test_damaged_bundled_log_is_readable() -> None:
    base = walk(2.0)
    for seed in range(0, CASES, 20):
        read_all(mutate(base, seed))
