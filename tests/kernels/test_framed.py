"""The walker of framed records against a plain reading of the same rules, with forbidden memory behind the data."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logreel.kernels import block_table, framed
from support.harness.examples import examples
from support.harness.guard import guarded

REFUSE, DATA, NOTE, STOP, TOLERATE = range(5)
END, PARSE, BAD, CUT, FULL = range(5)
UNDECLARED, TOLERATED = -1, -2
KINDS = b"DNSTX"
CHANNELS = 4


def undeclared(count: int) -> np.ndarray:
    keys = np.zeros(count, framed.KEY)
    keys["channel"] = UNDECLARED
    return keys


@dataclass
class Framing:
    """A framing and its tables: as numbers for the kernel, and as what they mean for the oracle."""

    header: int
    size_at: int
    size_mask: int
    size_add: int
    kind_at: int
    key_at: int
    key_mask: int
    payload: int
    tags: np.ndarray = field(default_factory=lambda: np.zeros(256, framed.TAG))
    keys: np.ndarray = field(default_factory=lambda: undeclared(1))

    @property
    def spec(self) -> np.ndarray:
        places = (self.header, self.size_at, self.size_mask, self.size_add)
        return np.array(
            [(*places, self.kind_at, self.key_at, self.key_mask, self.payload, 0, 0)], framed.SPEC
        )

    def number(self, data: bytes, at: int, end: int, mask: int) -> int:
        return int.from_bytes(data[at : min(at + 4, end)], "little") & mask

    def judge(self, data: bytes, pos: int, end: int, undeclared: bool = False) -> tuple[int, int, int]:
        """Action (BAD: -1, CUT: -2), where the next record begins, and the channel of a data record."""
        if end - pos < self.header:
            return -2, 0, 0
        size = self.number(data, pos + self.size_at, end, self.size_mask)
        action, least, most, low, high = self.tags[data[pos + self.kind_at]].tolist()
        after, channel = pos + size + self.size_add, 0
        if action == REFUSE or not least <= size <= most:
            return -1, 0, 0
        if action == DATA:
            width = low
            if end - pos < self.payload:
                return -2, 0, 0
            key = self.number(data, pos + self.key_at, end, self.key_mask)
            channel, least, most, _ = (
                self.keys[key].tolist() if key < len(self.keys) else (UNDECLARED, 0, 0, 0)
            )
            if channel == UNDECLARED and not undeclared:
                return -1, 0, 0
            if channel == TOLERATED:
                action = TOLERATE
            elif channel >= 0:
                count = data[pos + self.payload : min(pos + self.payload + 2, end)]
                agrees = not width or len(count) < 2 or size == 2 + width * int.from_bytes(count, "little")
                if not (least <= size <= most and agrees):
                    return -1, 0, 0
        elif end - pos > self.header and size and not low <= data[pos + self.header] <= high:
            return -1, 0, 0
        return (-2 if after > end else action), after, channel

    def chain(self, data: bytes, pos: int, end: int, need: int) -> bool:
        count, declares = 0, False
        for _ in range(16 * need):
            if pos == end:
                return count > 0
            action, after, _ = self.judge(data, pos, end, declares)
            if action < 0:
                return action == -2 and count >= 2
            declares |= action == STOP
            count += action != TOLERATE
            pos = after
            if count == need:
                return True
        return False


def random_framing(rng: Random, hostile: bool) -> Framing:
    """Sizes and keys of one to four bytes at any place; *hostile*: tables that allow every size."""
    size_width, key_width = rng.choice((2, 2, 4)), rng.choice((1, 2, 4))
    parts = [("size", size_width), ("kind", 1), ("key", key_width)]
    key_in_header = rng.random() < 0.5
    if not key_in_header:
        parts.pop()
    rng.shuffle(parts)
    places, at = {}, rng.randrange(2)
    for name, width in parts:
        places[name] = at
        at += width + rng.randrange(2)
    header = at
    places.setdefault("key", header)
    payload = header if key_in_header else header + key_width
    add = rng.choice((0, header, 4))
    out = Framing(
        header,
        places["size"],
        256**size_width - 1,
        add,
        places["kind"],
        places["key"],
        256**key_width - 1,
        payload,
    )
    # The smallest size that leads to another place, and leaves room for what is before the payload.
    least = max(0, payload - add, 1 - add)
    top = 2**62 if hostile else least + 40
    for kind, action in zip(KINDS, (DATA, NOTE, STOP, TOLERATE, NOTE), strict=True):
        low = rng.choice((0, 0, 3)) if action == DATA else rng.choice((0, 0, 40))
        out.tags[kind] = action, least, top, low, rng.choice((low, 255))
    out.keys = undeclared(rng.choice((1, 3, 300)))
    for number in range(min(6, len(out.keys))):
        channel = rng.choice((*range(CHANNELS), UNDECLARED, TOLERATED))
        out.keys[number] = channel, least, rng.choice((least + 8, top)), 0
    return out


def random_stream(rng: Random, f: Framing) -> bytes:
    """Mostly sound records, with wrong sizes, unknown keys and garbage among them, cut anywhere."""
    out = bytearray()
    for _ in range(rng.choice((0, 3, 30, 120))):
        if rng.random() < 0.05:
            out += rng.randbytes(rng.randrange(1, 9))
            continue
        record = bytearray(rng.randbytes(f.payload + rng.choice((0, 1, 7, 30))))
        size = len(record) - f.size_add
        if rng.random() < 0.03:
            size = rng.choice((0, 1, f.size_mask, f.size_mask - 7, len(out)))
        key = rng.choice((0, 1, 2, 3, 4, 5, 6, 299)) if rng.random() < 0.3 else rng.randrange(3)
        for at, value, mask in ((f.key_at, key, f.key_mask), (f.size_at, size, f.size_mask)):
            width = (mask.bit_length() + 7) // 8
            record[at : at + width] = (value & mask).to_bytes(width, "little")
        record[f.kind_at] = rng.choice(KINDS + b"DDDDD")
        items, rest = divmod(size - 2, max(1, int(f.tags["first_least"][ord("D")])))
        if f.tags["first_least"][ord("D")] and rest == 0 and 0 <= items < 1 << 16 and rng.random() < 0.9:
            record[f.payload : f.payload + 2] = items.to_bytes(2, "little")
        out += record
    return bytes(out[: len(out) - rng.randrange(4)] if rng.random() < 0.5 and len(out) > 4 else out)


@dataclass
class Run:
    """What a walk over a part collects: (channel, payload) of data records, notes, and why and where it stopped."""

    records: list[tuple[int, int]]
    notes: list[int]
    why: int
    pos: int
    last: int
    blocks: int = field(default=0, compare=False)


def plain(f: Framing, data: bytes, pos: int, end: int) -> Run:
    run = Run([], [], END, pos, -1)
    while run.pos < end:
        action, after, channel = f.judge(data, run.pos, end)
        if action < 0 or action == STOP:
            run.why = PARSE if action == STOP else BAD if action == -1 else CUT
            break
        if action == DATA:
            run.records.append((channel, run.pos + f.payload))
        else:
            run.notes.append(run.pos)
        run.last, run.pos = run.pos, after
    return run


def compiled(f: Framing, data: np.ndarray, pos: int, end: int, block: int, room: int, notes_room: int) -> Run:
    """The same by the kernel, block by block, with ``group`` at the end of each."""
    record, note = np.zeros(room, np.uint64), np.zeros(notes_room, np.int64)
    length, lengths = np.zeros(room, np.uint32), np.zeros(len(data) + 1, np.uint32)
    count = np.zeros(CHANNELS, np.int64)
    state = np.array([pos, pos, 0, 0, -1], np.int64)
    run = Run([], [], FULL, pos, -1)
    entry, used = np.zeros(len(data) + 1, np.uint32), 0
    while run.why == FULL:
        run.why = framed.walk(data, state, end, block, f.spec, f.tags, f.keys, record, count, note, length)
        at, base, n, m, run.last = state.tolist()
        pairs = [(int(r) >> 32, base + (int(r) & 0xFFFFFFFF)) for r in record[:n]]
        assert all(p - f.payload < base + block for _, p in pairs)
        ends = [f.judge(data, p - f.payload, end)[1] for _, p in pairs]
        sizes = [after - (p - f.payload) - f.size_add for after, (_, p) in zip(ends, pairs, strict=True)]
        assert length[:n].tolist() == sizes
        run.records += pairs
        run.blocks += 1
        run.notes += note[:m].tolist()
        assert count.tolist() == [sum(c == k for c, _ in pairs) for k in range(CHANNELS)]
        start = np.zeros(CHANNELS + 1, np.int64)
        before, used = used, block_table.group_records(record, n, count, start, entry, used, length, lengths)
        assert (start[0], start[-1], not count.any()) == (before, used, True)
        for k in range(CHANNELS):
            assert lengths[start[k] : start[k + 1]].tolist() == [
                size for size, (c, _) in zip(sizes, pairs, strict=True) if c == k
            ]
            assert (base + entry[start[k] : start[k + 1]].astype(np.int64)).tolist() == [
                p for c, p in pairs if c == k
            ]
        run.pos, state[1:4] = at, (at, 0, 0)
    return run


@settings(max_examples=examples(400))
@given(st.integers(0, 2**32), st.booleans())
def test_walk_and_group_equal_the_plain_reading(seed: int, hostile: bool) -> None:
    rng = Random(seed)
    f = random_framing(rng, hostile)
    stream = random_stream(rng, f)
    if not stream:
        return
    data = guarded(stream)
    end = rng.choice((len(stream), rng.randrange(len(stream) + 1)))
    pos = 0
    rooms = rng.choice((1, 64, 1000, 1 << 20)), rng.choice((1, 5, 500)), rng.choice((1, 5, 500))
    # As a caller would: over what stops the walk, to the end of the part.
    while pos < end:
        got = compiled(f, data, pos, end, *rooms)
        assert got == plain(f, stream, pos, end)
        pos = got.pos + 1


@settings(max_examples=examples(300))
@given(st.integers(0, 2**32), st.booleans())
def test_resync_equals_the_plain_reading(seed: int, hostile: bool) -> None:
    rng = Random(seed)
    f = random_framing(rng, hostile)
    stream = rng.randbytes(rng.randrange(20)) + random_stream(rng, f)
    if not stream:
        return
    data = guarded(stream)
    end, need = rng.choice((len(stream), rng.randrange(len(stream) + 1))), rng.choice((1, 2, 6))
    pos = rng.randrange(len(stream))
    last = rng.choice((pos, pos + 10, len(stream)))
    due = (at for at in range(pos, min(last + 1, end)) if f.chain(stream, at, end, need))
    assert framed.resync(data, pos, end, need, f.spec, f.tags, f.keys, last) == next(due, -1)


@pytest.mark.parametrize("room", [1, 2, 3])
def test_a_full_block_ends_before_the_next_acceptable_record_only(room: int) -> None:
    """Whoever closes a full block may rely on its last record: what follows it is sound."""
    f = Framing(3, 0, 0xFFFF, 3, 2, 3, 0xFF, 4)
    f.tags[ord("D")] = DATA, 1, 9, 0, 255
    f.keys[0] = 0, 1, 9, 0
    data = guarded(b"\1\0D\0" * room + b"\1\0?\0")
    got = compiled(f, data, 0, len(data), 1 << 20, room, 1)
    assert (got.why, got.pos, got.blocks) == (BAD, 4 * room, 1)


def test_sizes_near_the_top_of_32_bits_do_not_wrap() -> None:
    f = Framing(5, 0, 0xFFFFFFFF, 5, 4, 5, 0xFF, 6)
    f.tags[ord("D")] = DATA, 0, 2**62, 0, 255
    f.keys[0] = 0, 0, 2**62, 0
    for size in (2**32 - 1, 2**32 - 5, 2**31, 2**31 - 1):
        data = guarded(size.to_bytes(4, "little") + b"D\0" + bytes(20))
        got = compiled(f, data, 0, len(data), 1 << 20, 9, 9)
        assert (got.why, got.pos) == (CUT, 0)
