"""Framed records with wide keys: rows by a digest, then the whole key is compared."""

from __future__ import annotations

import struct
from random import Random

import numpy as np
import pytest

from logreel.errors import UsageError
from logreel.index.block_table import BAD, CUT, END, BlockBuilder
from logreel.index.marked_records import MarkedRecords
from logreel.kernels import framed
from support.harness.guard import guarded

MARK, BITS, WORD = 0x49, 6, (1 << 64) - 1
HEAD = 13


def tables(known: list[int], multiplier: int) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """spec, tags and keys for records of u32 size, a mark and a key of eight bytes; None where digests collide."""
    signed = multiplier - (1 << 64) if multiplier >> 63 else multiplier
    spec = np.array([(HEAD, 0, 0xFFFFFFFF, 4, 4, 5, -1, HEAD, signed, 64 - BITS)], framed.SPEC)
    tags = np.zeros(256, framed.TAG)
    tags[MARK] = 1, 9, 1000, 0, 255
    keys = np.zeros(1 << BITS, framed.KEY)
    keys["channel"] = -1
    for channel, key in enumerate(known):
        row = (key * multiplier & WORD) >> 64 - BITS
        if keys["channel"][row] >= 0:
            return None
        keys[row] = channel, 9, 1000, key - (1 << 64) if key >> 63 else key
    return spec, tags, keys


def record(key: int, size: int = 20) -> bytes:
    return struct.pack("<IBQ", 9 + size, MARK, key) + bytes(size)


@pytest.mark.parametrize("seed", range(20))
def test_only_whole_keys_are_accepted(seed: int) -> None:
    rng = Random(seed)
    known = [rng.getrandbits(64) for _ in range(5)]
    found = None
    while found is None:
        multiplier = rng.getrandbits(64) | 1
        found = tables(known, multiplier)
    spec, tags, keys = found
    # Some of another key, among which those of the same row as a known one.
    others = [k for k in (rng.getrandbits(64) for _ in range(2000)) if k not in known]
    same = [k for k in others if keys["channel"][(k * multiplier & WORD) >> 64 - BITS] >= 0]
    assert len(same) > 20
    sound = [rng.choice(known) for _ in range(30)]
    raw = b"".join(record(key, rng.randrange(30)) for key in sound)
    for stranger in (same[0], others[0], known[0] ^ 1 << 63, known[0] ^ 1):
        builder = BlockBuilder(guarded(raw + record(stranger)), spec, (HEAD, HEAD))
        builder.declare(5)
        assert builder.walk(0, len(raw) + 33, tags, keys) == (BAD, len(raw))
        blocks, _ = builder.finish(5)
        assert np.diff(blocks.start, axis=1)[0].tolist() == [sound.count(key) for key in known]
        assert framed.resync(guarded(record(stranger) + raw), 0, 33 + len(raw), 2, spec, tags, keys, 99) == 33


def test_a_key_at_the_edge_of_the_data() -> None:
    found = tables([7], 1 << 58 | 1)
    assert found is not None
    spec, tags, keys = found
    raw = record(7, 0)
    for cut in range(len(raw) + 1):
        builder = BlockBuilder(guarded(raw[:cut]) if cut else np.zeros(1, np.uint8), spec, (HEAD, HEAD))
        builder.declare(1)
        why, pos = builder.walk(0, cut, tags, keys) if cut else (END, 0)
        assert (why, pos) == ((END, cut) if cut in (0, len(raw)) else (CUT, 0))


def test_keys_can_be_declared_between_walks() -> None:
    one, two = tables([7], 1 << 58 | 1), tables([7, 9], 1 << 58 | 1)
    assert one is not None
    assert two is not None
    raw = record(7) * 3 + record(9) * 2
    builder = BlockBuilder(guarded(raw), one[0], (HEAD, HEAD))
    builder.declare(1)
    why, pos = builder.walk(0, len(raw), one[1], one[2])
    assert (why, pos) == (BAD, 99)
    builder.declare(2)
    builder.follow(two[0])
    assert builder.walk(pos, len(raw), two[1], two[2]) == (END, len(raw))
    blocks, _ = builder.finish(2)
    assert blocks.offsets(0).tolist() == [13, 46, 79]
    assert blocks.offsets(1).tolist() == [112, 145]


def test_blocks_grow_where_records_are_large() -> None:
    found = tables([7], 1 << 58 | 1)
    assert found is not None
    spec, tags, keys = found
    tags["most"][MARK] = keys["most"] = 1 << 30
    raw = np.frombuffer(record(7, 300_000) * 40, np.uint8)
    builder = BlockBuilder(raw, spec, (HEAD, HEAD))
    builder.declare(1)
    assert builder.walk(0, len(raw), tags, keys) == (END, len(raw))
    blocks, _ = builder.finish(1)
    assert blocks.offsets(0).tolist() == [13 + 300_013 * i for i in range(40)]
    steps = np.diff(blocks.base)
    assert (np.diff(steps) > 0).all()
    assert steps[-1] > 4 * steps[0]


@pytest.mark.parametrize("mark", [b"\xa3\x95", b"\x49", b"\xfe" * 7])
def test_records_whose_size_follows_from_their_kind(mark: bytes) -> None:
    rng = Random(1)
    sizes = {0: 1, 7: 60, 128: 3, 255: 0}
    data, starts = b"", dict[int, list[int]]({kind: [] for kind in sizes})
    for _ in range(400):
        kind = rng.choice(list(sizes))
        starts[kind].append(len(data) + len(mark) + 1)
        data += mark + bytes([kind]) + bytes(sizes[kind])
    # The walk stops at a kind to read, at one that is unknown, and at another mark.
    for last in (
        mark + b"\x09" + bytes(4),
        mark + b"\x08" + bytes(4),
        bytes(len(mark)) + b"\x07" + bytes(60),
    ):
        records = MarkedRecords(guarded(data + last), mark)
        for channel, (kind, size) in enumerate(sizes.items()):
            records.declare(kind, size, channel)
        records.declare(9, 4, None)
        assert records.walk(0) == len(data)
        table, _ = records.blocks.finish(4)
        assert [table.offsets(channel).tolist() for channel in range(4)] == list(starts.values())
    # Damage ends where records follow each other again; a kind without its mark is no record.
    wrong = b"\x05\x06" + bytes(len(mark)) + b"\x09" + bytes(4)
    records = MarkedRecords(guarded(wrong + data), mark)
    for channel, (kind, size) in enumerate(sizes.items()):
        records.declare(kind, size, channel)
    records.declare(9, 4, None)
    assert records.find(0) == len(wrong)
    assert records.find(len(wrong) + len(data)) == -1


@pytest.mark.parametrize("mark", [b"", bytes(8)])
def test_marks_have_up_to_seven_bytes(mark: bytes) -> None:
    with pytest.raises(UsageError, match="1 to 7"):
        MarkedRecords(np.zeros(9, np.uint8), mark)
