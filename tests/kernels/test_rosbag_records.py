"""Records of rosbag against plain Python: random and damaged ones, up to a forbidden page."""

from __future__ import annotations

import struct

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from logreel.kernels import rosbag
from support.harness.examples import examples
from support.harness.guard import guarded

END, CUT, BAD, FOREIGN, FULL = range(5)
OPS = st.integers(1, 9)


def _header(fields: list[tuple[bytes, bytes]]) -> bytes:
    parts = [name + b"=" + value for name, value in fields]
    return b"".join(struct.pack("<I", len(p)) + p for p in parts)


@st.composite
def records(draw: st.DrawFn) -> bytes:
    """One record: of a connection number, of names, or of another op; fields in any order, some unknown."""
    kind = draw(st.sampled_from(("conn", "names", "other", "other", "broken")))
    stamp = draw(st.binary(min_size=8, max_size=8))
    fields = [(b"op", b"\x02")]
    if kind == "conn":
        fields += [(b"conn", draw(st.binary(min_size=4, max_size=4))), (b"time", stamp)]
    elif kind == "names":
        fields += [(b"sec", stamp[:4]), (b"nsec", stamp[4:])]
        fields += [(name, draw(st.binary(max_size=6))) for name in (b"topic", b"md5", b"type")]
    elif kind == "other":
        fields = [(b"op", bytes((draw(OPS.filter(lambda op: op != 2)),)))]
    else:
        fields += draw(
            st.lists(
                st.sampled_from(((b"conn", bytes(4)), (b"time", stamp), (b"sec", stamp[:4]))), max_size=2
            )
        )
    fields += draw(
        st.lists(
            st.tuples(st.binary(max_size=3).map(lambda n: n.replace(b"=", b"")), st.binary(max_size=5)),
            max_size=2,
        )
    )
    head, data = _header(draw(st.permutations(fields))), draw(st.binary(max_size=30))
    return struct.pack("<I", len(head)) + head + struct.pack("<I", len(data)) + data


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """Records, some bytes changed, or cut, or something strange put in."""
    parts = draw(st.lists(records() | st.binary(max_size=12), max_size=8))
    data = bytearray(b"".join(parts))
    for _ in range(draw(st.integers(0, 2)) if data else 0):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.sampled_from((0, 1, 2, 4, 61, 127, 255)))
    return bytes(data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data)


def parse(data: bytes, pos: int, end: int) -> tuple[int, dict[bytes, bytes], int, int]:
    """How the record at *pos* is (0 whole, CUT, BAD), its fields, start and size of its data."""
    fields: dict[bytes, bytes] = {}
    if end - pos < 4:
        return CUT, fields, 0, 0
    n = int.from_bytes(data[pos : pos + 4], "little")
    if n > end - pos - 4:
        return CUT, fields, 0, 0
    at, stop = pos + 4, pos + 4 + n
    count = 0
    while at < stop:
        size = int.from_bytes(data[at : at + 4], "little")
        count += 1
        name, equals, value = data[at + 4 : at + 4 + size].partition(b"=")
        if stop - at < 4 or size > stop - at - 4 or not equals or count > 256:
            return BAD, fields, 0, 0
        wanted = {b"op": 1, b"conn": 4, b"time": 8, b"sec": 4, b"nsec": 4}
        if len(value) == wanted.get(name, len(value)):
            fields[name] = value
        at += 4 + size
    if b"op" not in fields:
        return BAD, fields, 0, 0
    if end - stop < 4:
        return CUT, fields, 0, 0
    size = int.from_bytes(data[stop : stop + 4], "little")
    return (CUT if size > end - stop - 4 else 0), fields, stop + 4, size


def stamp_of(fields: dict[bytes, bytes]) -> int | None:
    if b"sec" in fields and b"nsec" in fields:
        sec, nsec = fields[b"sec"], fields[b"nsec"]
    elif b"time" in fields:
        sec, nsec = fields[b"time"][:4], fields[b"time"][4:]
    else:
        return None
    return int.from_bytes(sec, "little") * 10**9 + int.from_bytes(nsec, "little")


def fits(fields: dict[bytes, bytes]) -> bool:
    named = {b"topic", b"md5", b"type"} <= fields.keys()
    return fields[b"op"] != b"\x02" or (stamp_of(fields) is not None and (b"conn" in fields or named))


def plain_walk(
    data: bytes, end: int, cap: int, foreign: int
) -> tuple[int, int, list[tuple[object, ...]], list[tuple[int, int]]]:
    pos, rows, notes = 0, list[tuple[object, ...]](), list[tuple[int, int]]()
    while pos < end:
        if len(rows) >= cap or len(notes) >= cap:
            return FULL, pos, rows, notes
        why, fields, start, size = parse(data, pos, end)
        known = b"op" in fields and why != BAD
        if known and not fits(fields):
            why = BAD
        elif known and foreign >> min(fields[b"op"][0], 63) & 1:
            why = FOREIGN
        if why:
            return why, pos, rows, notes
        if fields[b"op"] == b"\x02":
            key = fields.get(b"conn") or tuple(fields[n] for n in (b"topic", b"md5", b"type"))
            rows.append((key, stamp_of(fields), start, size))
        else:
            notes.append((pos, fields[b"op"][0]))
        pos = start + size
    return END, pos, rows, notes


@settings(max_examples=examples(400))
@given(files(), st.integers(1, 6), st.sampled_from((0, 1 << 3, 0b11111000)), st.data())
def test_walk_equals_the_plain_walk_of_bags(data: bytes, cap: int, foreign: int, draw: st.DataObject) -> None:
    end = draw.draw(st.integers(0, len(data))) if draw.draw(st.booleans()) else len(data)
    key, time = np.zeros(cap, np.uint64), np.zeros(cap, np.int64)
    start, size, note = np.zeros(cap, np.int64), np.zeros(cap, np.int64), np.zeros((cap, 2), np.int64)
    # What lies after the end may not be looked at.
    why, pos, n, m = rosbag.walk(guarded(data[:end]), 0, end, key, time, start, size, note, foreign, 7)
    want_why, want_pos, rows, notes = plain_walk(data, end, cap, foreign)
    assert (why, pos, n, m) == (want_why, want_pos, len(rows), len(notes))
    assert note[:m].tolist() == [list(row) for row in notes]
    assert time[:n].tolist() == [row[1] for row in rows]
    assert start[:n].tolist() == [row[2] for row in rows]
    assert size[:n].tolist() == [row[3] for row in rows]
    found = dict[object, int]()
    for value, row in zip(key[:n].tolist(), rows, strict=True):
        if isinstance(row[0], bytes):
            assert value == int.from_bytes(row[0], "little")
        else:
            # A hash: equal names have one, others another.
            assert found.setdefault(row[0], value) == value
    assert len(set(found.values())) == len(found)


@settings(max_examples=examples(400))
@given(files(), st.sampled_from((16, 64, 1 << 15)), st.data())
def test_find_record_equals_trying_every_position(data: bytes, longest: int, draw: st.DataObject) -> None:
    pos = draw.draw(st.integers(0, len(data)))
    due = len(data)
    for at in range(pos, len(data) - 15):
        why, fields, _, _ = parse(data, at, len(data))
        short = 8 <= int.from_bytes(data[at : at + 4], "little") <= longest
        if short and why == 0 and 1 <= fields[b"op"][0] <= 7 and fits(fields):
            due = at
            break
    assert rosbag.find_record(guarded(data), pos, len(data), longest) == due


@settings(max_examples=examples(400))
@given(files(), st.data())
def test_located_messages_equal_those_of_the_walk(data: bytes, draw: st.DataObject) -> None:
    places = draw.draw(st.lists(st.integers(0, len(data) + 3), min_size=1, max_size=6).map(sorted))
    conn = draw.draw(st.sampled_from((0, 1, 0x01010101)))
    by_place = {}
    for at in places:
        pos, hops = at, 0
        while pos < len(data) and hops <= 64:
            why, fields, start, size = parse(data, pos, len(data))
            if why:
                break
            if fields[b"op"] == b"\x02":
                by_place[at] = (fields.get(b"conn"), stamp_of(fields), start, size)
                break
            pos, hops = start + size, hops + 1
    # Times are those found, so that only places and connections decide.
    times = [(by_place.get(at) or (None, 0, 0, 0))[1] or 0 for at in places]
    entry, size = np.array(places, np.uint32), np.zeros(len(places), np.uint32)
    run, good = np.array([[0, len(places), 0, len(data)]], np.int64), np.zeros(1, np.int64)
    conns = np.full(len(places), conn, np.uint32)
    rosbag.locate_messages(guarded(data), run, conns, entry, np.array(times, np.int64), size, good)
    due, after = 0, 0
    for at in places:
        found = by_place.get(at)
        if at < after or found is None or found[0] != conn.to_bytes(4, "little") or found[1] is None:
            break
        assert (entry[due], size[due]) == found[2:]
        after, due = found[2] + found[3], due + 1
    assert good.tolist() == [due]
    assert entry[due:].tolist() == places[due:]


@settings(max_examples=examples(200))
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.binary(min_size=8, max_size=8), st.binary(max_size=9)), max_size=9
    )
)
def test_records_with_equal_headers_are_located(rows: list[tuple[int, bytes, bytes]]) -> None:
    """Headers of one run that differ in the time only take a short way; those of other runs lie between."""
    data, places = b"", []
    for conn, stamp, payload in rows:
        fields = [(b"op", b"\x02"), (b"conn", conn.to_bytes(4, "little")), (b"time", stamp)]
        head = _header(fields if conn else fields[::-1])
        places.append(len(data))
        data += struct.pack("<I", len(head)) + head + struct.pack("<I", len(payload)) + payload
    order = sorted(range(len(rows)), key=lambda i: (rows[i][0], i))
    conns = [rows[i][0] for i in order]
    run = np.array(
        [[conns.index(c), conns.index(c) + conns.count(c), 0, len(data)] for c in sorted(set(conns))]
    )
    entry, size = np.array([places[i] for i in order], np.uint32), np.zeros(len(rows), np.uint32)
    times = np.array([stamp_of({b"time": rows[i][1]}) for i in order], np.int64)
    good = np.zeros(len(run), np.int64)
    rosbag.locate_messages(
        guarded(data or b"\0"),
        run.reshape(-1, 4).astype(np.int64),
        np.array(conns, np.uint32),
        entry,
        times,
        size,
        good,
    )
    assert good.sum() == len(rows)
    for at, n, i in zip(entry.tolist(), size.tolist(), order, strict=True):
        assert data[at : at + n] == rows[i][2]


def test_a_message_is_found_at_the_edge_of_memory() -> None:
    head = _header([(b"conn", bytes(4)), (b"op", b"\x02"), (b"time", bytes(8))])
    one = struct.pack("<I", len(head)) + head + struct.pack("<I", 3) + b"abc"
    for cut in range(len(one) + 1):
        data = guarded(one[:cut])
        arrays = [np.zeros(2, kind) for kind in (np.uint64, np.int64, np.int64, np.int64)]
        why, pos, n, _ = rosbag.walk(data, 0, cut, *arrays, np.zeros((2, 2), np.int64), 0, 7)  # type: ignore[call-arg]
        assert (why, pos, n) == ((END, cut, 1) if cut == len(one) else (END if not cut else CUT, 0, 0))
        assert rosbag.find_record(data, 0, cut, 1 << 15) == (0 if cut == len(one) else cut)
