"""Koblenz logs cut at every byte, mutated, or hostile, against the plain reader."""

from __future__ import annotations

import os
import struct
from itertools import islice, pairwise

import pytest
from mutations import mutate
from small_log_queries import by_place, read_all

import logreel
from conftest import SHARED
from logreel.errors import LogError
from logreel.lenses import lenses
from support.oracles import koblenz as oracle
from support.samples.koblenz.builder import END, Builder

CASES = int(os.environ.get("LOGREEL_FUZZ", "120"))
SAMPLES = SHARED / "data/koblenz"
URG = "Hokuyo_URG-04LX"
#: The smallest JPEG header that states a size.
PICTURE = b"\xff\xd8\xff\xc0\x00\x0b\x08\x00\x08\x00\x10\x01\x01\x11\x00\xff\xd9"

Range = tuple[int, int]


def packet(first: int, flags: tuple[int, ...] = (0xEEFF,)) -> bytes:
    blocks = b"".join(
        struct.pack("<HH", flags[i % len(flags)], (first + 20 * i) % 36000)
        + struct.pack("<HB", 900 + i, 7) * 32
        for i in range(12)
    )
    return blocks + struct.pack("<IBB", first, 0, 0)


def small(counted: int = 17, velodyne: tuple[bytes, ...] = (packet(200),), rounds: int = 4) -> Builder:
    """Return a log with every type, an unknown one, a later version, two scanners and two cameras."""
    out = Builder(counted)
    for i in range(rounds):
        ms = 1.5 + 400 * i
        out.obd(ms, 30 + i, 1500, 12.5).gps(ms + 1, (12, 0, i)).pose(ms + 2, (1, 0, 0, 0))
        out.image(ms + 3, i % 2, 16, 8, PICTURE).laser(ms + 4, URG, "left", [1000 + i] * 5)
        out.laser(ms + 4, URG, "right", [2000 + i] * 6)
        if i == 1:
            out.add("MyDataM", ms + 5, b"seventeen bytes..").add("OBDDataM", ms + 6, bytes(34), 102)
        if i == min(2, rounds - 1):
            out.velodyne(ms + 7, velodyne)
    return out


def unknown(counted: int = 17, mark: int = 0x49) -> Builder:
    """Return a log with undescribed types, and versions far from the described ones."""
    out = Builder(counted)
    for i in range(12):
        out.add("MyDataM" if i % 3 else "ArmStateM", 250.0 * i, bytes([i, mark, 0, 1]) * (i % 5), mark=mark)
        if i % 4 == 0:
            out.add("LaserRange2DDataM", 250.0 * i + 1, b"older than that", mark=mark)
            out.add("OBDDataM", 250.0 * i + 2, bytes(i), 200, mark=mark)
    return out


#: Sound files: under each reading, with an end mark before a preallocated rest, with room for a longer index.
BASES = {
    "A": small().bytes(),
    "B": small(21).bytes(),
    "C": small(0).bytes(),
    "end": small().bytes(tail=END + bytes(50)),
    "room": small().bytes(room=64),
    "unknown": unknown().bytes(),
    "unknown B": unknown(21).bytes(index=[]),
    "mark": unknown(mark=0x31).bytes(),
    "longer": small()
    .add("OBDDataM", 1700, bytes(32))
    .velodyne(1701, [])
    .add("OBDDataM", 1702, bytes(40))
    .bytes(),
}


def places(log: logreel.Log) -> list[Range]:
    """Return start and end of every message, in file order."""
    index = log.index
    found = by_place(index, range(len(index.rules)), index.offsets, index.sizes)
    return [(at - 21, at + size) for at, size in found]


def open_and_compare(data: bytes, case: object = "") -> tuple[logreel.Log, list[Range], list[Range]]:
    """Return the log, its messages and what is lost, compared with the plain reader; every byte is one or the other."""
    log, want = logreel.open(data), oracle.walk(data)
    assert log.metadata["size_reading"] == want.reading, case
    found = places(log)
    missing = [(p.offset, p.offset + p.size) for p in log.problems if p.lost and p.size]
    assert found == [(row.at, row.end) for row in want.rows], case
    assert sorted(missing) == sorted(want.lost), case
    tiles = sorted([*found, *missing])
    for (_, b), (c, _) in pairwise(tiles):
        assert b == c, case
    if tiles:
        assert tiles[-1][1] == (len(data) if want.end is None else want.end), case
    return log, found, missing


#: Messages by log. Most bytes of one of a Velodyne are packets: a log of few types has them, which opens faster.
CUT = {
    "every type": (small(velodyne=(), rounds=2), 15),
    "packets": (
        Builder().obd(1.5, 30, 1500, 12.5).velodyne(8.5, [packet(200)]).obd(401.5, 31, 1500, 12.5),
        3,
    ),
}


@pytest.mark.parametrize("name", CUT)
def test_every_cut_keeps_all_whole_messages_and_invents_none(name: str) -> None:
    builder, count = CUT[name]
    data = builder.bytes()
    rows = [(row.at, row.end) for row in oracle.walk(data).rows]
    assert len(rows) == count
    for cut in range(rows[0][0], len(data)):
        log, found, missing = open_and_compare(data[:cut], cut)
        assert found == [row for row in rows if row[1] <= cut], cut
        assert log.metadata["size_reading"] == "A"
        assert (sum(b - a for a, b in missing) == 0) == (cut in {rows[0][0], *(end for _, end in rows)}), cut


@pytest.mark.parametrize("counted", [21, 0])
def test_every_cut_with_other_size_readings(counted: int) -> None:
    data = small(counted).bytes()
    ends = [row.end for row in oracle.walk(data).rows]
    assert len(ends) == 27
    for cut in range(ends[2], len(data), 7):
        _, found, _ = open_and_compare(data[:cut], cut)
        assert len(found) == sum(end <= cut for end in ends)


def test_every_cut_inside_header_and_index() -> None:
    data = small().bytes()
    for cut in range(28):
        try:
            log = logreel.open(data[:cut])
        except LogError:
            assert cut < 12
        else:
            assert not len(log.index)


def check_damaged(base: bytes, seed: int) -> None:
    """Read a damaged log completely, and compare it with the plain reader."""
    data = mutate(base, seed)
    log = read_all(data, seed)
    if log is None or len(data) < 12:
        return
    for ch in log.channels.values():
        assert len(ch) > 0, seed
        for lens in lenses(ch):
            for reads in ("clouds", "pictures", "scans"):
                if hasattr(lens, reads):
                    for one in islice(getattr(lens, reads)(ch), 50):
                        assert isinstance(one.time, int), seed
            if hasattr(lens, "fixes"):
                assert len(lens.fixes(ch)) == len(ch), seed
    open_and_compare(data, seed)


@pytest.mark.parametrize("base", BASES)
def test_mutations_agree_with_the_plain_reader(base: str) -> None:
    for seed in range(CASES // len(BASES)):
        check_damaged(BASES[base], seed)


def test_mutations_of_a_sample() -> None:
    path = SAMPLES / "k07_size_counts_itself.log"
    if not path.exists():
        pytest.skip("no samples of Koblenz logs beside the repository (LOGREEL_SHARED)")
    base = path.read_bytes()
    for seed in range(CASES // 20):
        check_damaged(base, seed)
