"""ROS 1 bags cut at every byte and damaged in thousands of ways, against the plain reader."""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest
from mutations import mutate

import logreel
from logreel.errors import LogError
from support.builders.bag_rows import fast_rows, plain_rows
from support.harness.limits import processor
from support.oracles import rosbag as bag_oracle
from support.samples.rosbag.builder import Builder, few, tiny, version_2_0
from support.samples.rosbag.old import version_1_2

CASES = int(os.environ.get("LOGREEL_FUZZ", "160"))
#: Nothing this small may take longer.
#: Of a processor: ten times what the slowest case takes here, or nearly; growth has tests of its own.
SECONDS = 30.0
BASES = {
    **{version: tiny(version) for version in ("0", "1.0", "1.1", "1.2", "2.0")},
    "1.2 indexed": version_1_2(few(), padded=80),
    "2.0 bz2": version_2_0(few(), Builder("bz2", chunk_bytes=400, padded=80)),
    "2.0 lz4": version_2_0(few(), Builder("lz4", chunk_bytes=400, padded=80)),
}
#: Versions with uncompressed messages.
PLAIN = ("0", "1.0", "1.1", "1.2", "1.2 indexed", "2.0")


def _open(data: bytes) -> logreel.Log | None:
    """Return the log; None if the reader refuses it."""
    try:
        return logreel.open(data)
    except LogError:
        return None


@pytest.mark.parametrize("base", PLAIN)
def test_every_cut_keeps_all_whole_messages_and_invents_none(base: str) -> None:
    data = BASES[base]
    bag = bag_oracle.read(data)
    whole = [(m.place + len(m.payload), row) for m, row in zip(bag.messages, plain_rows(bag), strict=True)]
    first = data.index(b"\n") + 1
    for cut in range(first, len(data)):
        log = _open(data[:cut])
        due = [row for end, row in whole if end <= cut]
        if log is None:
            # Without a mark at the beginning it takes whole lines to recognise a bag.
            assert base == "0", cut
            assert not due, cut
            continue
        assert fast_rows(log) == due, cut
        # The second line of version 1.0 is no message either.
        if cut % 7 or (base == "1.0" and cut < first + 5):
            continue
        lost = bag_oracle.read(data[:cut]).lost
        if lost:
            assert sum(p.size for p in log.problems if p.lost) == sum(b - a for a, b in lost), cut


@pytest.mark.parametrize("base", ["2.0 bz2", "2.0 lz4"])
def test_every_cut_keeps_all_whole_packed_chunks(base: str) -> None:
    data = BASES[base]
    bag = bag_oracle.read(data)
    chunks = sorted({m.chunk or 0 for m in bag.messages})
    assert len(chunks) > 1
    rows = plain_rows(bag)
    for cut in range(13, len(data)):
        judge = plain_rows(bag_oracle.read(data[:cut]))
        log = _open(data[:cut])
        assert log is not None
        got = fast_rows(log)
        assert got == rows[: len(got)], cut
        assert len(got) >= len(judge), cut


@pytest.mark.parametrize("cut", range(13))
def test_bag_cut_in_version_line_raises_clear_error(cut: int) -> None:
    with pytest.raises(LogError):
        logreel.open(tiny()[:cut])


@pytest.mark.parametrize("base", BASES)
def test_damage_never_raises_hangs_or_reads_outside(base: str) -> None:
    data = BASES[base]
    for seed in range(CASES):
        broken = mutate(data, seed)
        with processor(SECONDS):
            log = _open(broken)
            if log is not None:
                _check_places(log, broken, seed)
                for ch in log.channels.values():
                    # Nor does decoding.
                    assert len(ch.to_arrow()) >= 0


def _check_places(log: logreel.Log, data: bytes, seed: int) -> None:
    index = log.index
    found = index.select(order="file")
    for chunk, offset, size in zip(
        found.chunk.tolist(), found.offset.tolist(), found.size.tolist(), strict=True
    ):
        assert 0 <= offset <= offset + size <= len(index.chunks[chunk]), seed
    for problem in log.problems:
        assert 0 <= problem.offset <= problem.offset + problem.size <= len(data), (seed, problem)


@pytest.mark.parametrize("base", BASES)
def test_reader_finds_all_that_plain_reader_finds(base: str) -> None:
    """Of undamaged messages, at most those of one damaged place are missing, and the loss is reported."""
    data = BASES[base]
    # Names stand in two places, of which one counts; they are compared elsewhere.
    sound = Counter(row[3:] for row in plain_rows(bag_oracle.read(data)))
    for seed in range(CASES):
        broken = mutate(data, seed)
        try:
            judge = Counter(row[3:] for row in plain_rows(bag_oracle.read(broken)))
        except (ValueError, KeyError):
            continue
        log = _open(broken)
        if log is None:
            assert base in ("0", "1.0") or not broken.startswith(data[:10]), seed
            continue
        missing = (judge & sound) - Counter(row[3:] for row in fast_rows(log))
        if missing:
            assert log.problems, (seed, missing)
            # Damage to packed bytes can change many messages in one way.
            assert missing.total() <= 1 or base not in PLAIN, (seed, missing)


@pytest.mark.parametrize("base", ["1.2", "1.2 indexed", "2.0"])
def test_all_messages_read_are_in_the_file(base: str) -> None:
    """A payload is bytes of the file after the record header of a message."""
    data = BASES[base]
    for seed in range(CASES):
        broken = mutate(data, seed)
        log = _open(broken)
        if log is None:
            continue
        found = log.index.select(order="file")
        for offset, size in zip(found.offset.tolist(), found.size.tolist(), strict=True):
            if size:
                assert int.from_bytes(broken[offset - 4 : offset], "little") == size, seed


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"topic\n*\n*\n",
        b"#ROSLOG V1.0\n0002\n",
        b"#ROSRECORD V1.1\n",
        b"#ROSRECORD V1.2\n",
        b"#ROSBAG V2.0\n",
    ],
)
def test_noise_is_no_message(line: bytes) -> None:
    for seed in range(CASES // 4):
        rng = random.Random(seed)
        noise = rng.randbytes(rng.choice((0, 1, 3, 12, 100, 3000)))
        if seed % 3 == 0:
            noise = bytes(b & rng.choice((0x0F, 0xFF)) for b in noise)
        try:
            log = logreel.open(line + noise, format="rosbag")
        except LogError:
            continue
        # Version 0 has no marks: there anything that fits is a message.
        assert not fast_rows(log) or line == b"topic\n*\n*\n", seed
        _check_places(log, line + noise, seed)
