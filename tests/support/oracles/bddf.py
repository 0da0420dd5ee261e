"""Plain reader of BDDF, written from the format description alone: the reference for the fast reader."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

END_BYTES = 40


class Bad(ValueError):
    """The bytes do not follow the format description."""


@dataclass
class Row:
    """One data block."""

    at: int
    end: int
    series: int
    ns: int
    payload: bytes
    numbers: list[int]


@dataclass
class Walk:
    """Content before the first invalid byte: data blocks, declared series, and where and why reading stopped."""

    rows: list[Row] = field(default_factory=list)
    series: set[int] = field(default_factory=set)
    stop: int = 0
    why: str = ""


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for k in range(10):
        if at + k >= len(data):
            raise Bad("cut")
        value += (data[at + k] % 128) << (7 * k)
        if data[at + k] < 128:
            if value >= 1 << 64:
                raise Bad("more than 64 bits")
            return value, at + k + 1
    raise Bad("too long")


def fields(data: bytes) -> list[tuple[int, int | bytes]]:
    """Return tag and value of every field."""
    at, found = 0, []
    while at < len(data):
        tag, at = varint(data, at)
        if tag >> 3 == 0 or tag >= 1 << 32:
            raise Bad("no such field")
        if tag % 8 == 0:
            value, at = varint(data, at)
            found.append((tag, value))
            continue
        if tag % 8 == 2:
            size, at = varint(data, at)
        elif tag % 8 in (1, 5):
            size = 8 if tag % 8 == 1 else 4
        else:
            raise Bad("no such wire type")
        if size > len(data) - at:
            raise Bad("cut")
        found.append((tag, data[at : at + size]))
        at += size
    return found


def signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def stamp(pairs: list[bytes]) -> int:
    """Return a time in ns, limited to int64; its parts may be in several fields, which are merged."""
    seconds = nanos = 0
    for part in pairs:
        for tag, value in fields(part):
            if tag == 8:
                seconds = signed(value)
            elif tag == 16:
                if not 0 <= value < 10**9:
                    raise Bad("nanoseconds")
                nanos = value
    return min(max(seconds * 10**9 + nanos, -(1 << 63)), (1 << 63) - 1)


def descriptor(data: bytes) -> tuple[int, int, list[int]]:
    """Return series, time in ns and additional indexes of a data descriptor."""
    series, times, numbers = 0, [], []
    for tag, value in fields(data):
        if tag == 8:
            series = value
        elif tag == 18:
            times.append(value)
        elif tag == 24:
            numbers.append(signed(value))
        elif tag == 26:
            at = 0
            while at < len(value):
                one, at = varint(value, at)
                numbers.append(signed(one))
    return series, stamp(times), numbers


def data_block(data: bytes, at: int, strict: bool = True) -> Row:
    """Return the data block at *at*. Raises Bad. *strict*: its descriptor must be readable, too."""
    if len(data) - at < 12 or data[at + 7] != 0:
        raise Bad("no data block")
    size = int.from_bytes(data[at : at + 7], "little")
    d = int.from_bytes(data[at + 8 : at + 12], "little")
    if not 2 <= d <= size or size > len(data) - at - 12:
        raise Bad("does not fit")
    head = data[at + 12 : at + 12 + d]
    try:
        series, ns, numbers = descriptor(head)
    except Bad:
        if strict:
            raise
        series, numbers = 0, []
        times = []
        for tag, value in fields(head):
            series = value if tag == 8 else series
            times += [value] if tag == 18 else []
        ns = stamp(times)
    end = at + 12 + size
    return Row(at, end, series, ns, data[at + 12 + d : end], numbers)


def walk(data: bytes) -> Walk:
    """Read the blocks from the front up to the first invalid one."""
    out, at = Walk(), 4
    while at < len(data):
        out.stop = at
        if len(data) - at < 8:
            out.why = "cut"
            return out
        kind, size = data[at + 7], int.from_bytes(data[at : at + 7], "little")
        try:
            if kind == 0:
                row = data_block(data, at, strict=False)
                if row.series not in out.series:
                    raise Bad("not declared")
                out.rows.append(row)
                at = row.end
            elif kind == 2:
                out.why = "end" if data[at + 36 : at + 40] == b"FDDB" else "bad end"
                out.stop = at
                return out
            elif kind == 1 and size <= len(data) - at - 8:
                for tag, value in fields(data[at + 8 : at + 8 + size]):
                    if tag == 18:
                        out.series.add(sum(v for t, v in fields(value) if t == 8))
                at += 8 + size
            else:
                raise Bad("no block")
        except Bad as error:
            out.why = str(error)
            return out
    out.stop, out.why = at, "no end"
    return out


# ------------------------------------------------------------------------------------ files that were closed


@dataclass
class Declared:
    """Content of a series descriptor; *kind*: field tag and bytes of its type."""

    at: int
    identifier: bytes = b""
    series_type: str = ""
    spec: dict[str, str] = field(default_factory=dict)
    hash: int = 0
    kind: tuple[int, bytes] = (0, b"")
    annotations: dict[str, str] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    description: str = ""


@dataclass
class Closed:
    """Content of a complete and valid file."""

    annotations: dict[str, str]
    checksum: int
    series: list[Declared]
    rows: list[Row]


def need(truth: object, why: str) -> None:
    if not truth:
        raise Bad(why)


def pairs(values: list[bytes]) -> dict[str, str]:
    """Return a map of text to text."""
    found = {}
    for value in values:
        inside = dict(fields(value))
        found[inside.get(10, b"").decode()] = inside.get(18, b"").decode()
    return found


def of(data: bytes, tag: int) -> list[bytes]:
    """Return all values of one field."""
    return [value for t, value in fields(data) if t == tag]


def varints(data: bytes) -> list[int]:
    found, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        found.append(value)
    return found


def declared(data: bytes, at: int, number: int) -> Declared:
    by_tag = dict(fields(data))
    need(by_tag.get(8, 0) == number, "series are not numbered in order")
    name = by_tag[18]
    out = Declared(at, name, dict(fields(name)).get(10, b"").decode(), pairs(of(name, 18)), by_tag.get(24, 0))
    text = out.series_type + "".join(k + out.spec[k] for k in sorted(out.spec))
    need(out.hash == int.from_bytes(hashlib.sha1(text.encode()).digest()[:8], "big"), "hash")
    kinds = [(tag, by_tag[tag]) for tag in (34, 42, 50) if tag in by_tag]
    need(len(kinds) <= 1, "two types")
    out.kind = kinds[0] if kinds else (0, b"")
    out.annotations, out.description = pairs(of(data, 58)), by_tag.get(74, b"").decode()
    out.names = [value.decode() for value in of(data, 66)]
    return out


def closed(data: bytes) -> Closed:
    """Read a file that must be valid to the last byte. Raises Bad."""
    need(data[:4] == b"BDDF", "magic")
    need(data[-4:] == b"FDDB" and data[-40:-32] == (24).to_bytes(7, "little") + b"\2", "end block")
    at, blocks = 4, []
    while at < len(data) - END_BYTES:
        size = int.from_bytes(data[at : at + 7], "little")
        need(data[at + 7] in (0, 1), "kind of a block")
        blocks.append((at, data[at + 7], data[at + 8 : at + 8 + size]))
        at += size + (12 if data[at + 7] == 0 else 8)
    need(at == len(data) - END_BYTES, "blocks do not end at the end block")
    place, kind, body = blocks[0]
    need(kind == 1 and len(fields(body)) == 1 and fields(body)[0][0] == 10, "file descriptor")
    by_tag = fields(fields(body)[0][1])
    need([v for t, v in by_tag if t == 10] == [b"\x08\x01"], "version")
    checksum = dict(by_tag)[24]
    need(checksum in (1, 2) and dict(by_tag)[32] == 20, "checksum")
    out = Closed(pairs([v for t, v in by_tag if t == 18]), checksum, [], [])
    indexes, last = [], None
    for place, kind, body in blocks[1:]:
        need(last is None, "blocks behind the file index")
        if kind == 0:
            need(not indexes, "data behind an index")
            out.rows.append(data_block(data, place))
            need(out.rows[-1].series < len(out.series), "data before its declaration")
            continue
        parts = fields(body)
        if not parts:
            last = (place, b"")
            need(not out.series, "an empty file index")
            continue
        ((tag, content),) = parts
        if tag == 18:
            need(not indexes, "a declaration behind an index")
            out.series.append(declared(content, place, len(out.series)))
        elif tag == 26:
            _series_index(content, out, len(indexes))
            indexes.append(place)
        else:
            need(tag == 34, "descriptor")
            last = (place, content)
    need(last is not None, "no file index")
    _file_index(last[1], out, indexes)
    need(int.from_bytes(data[-32:-24], "little") == last[0], "place of the file index")
    digest = hashlib.sha1(data[:-24]).digest() if checksum == 2 else bytes(20)
    need(data[-24:-4] == digest, "digest")
    return out


def _series_index(content: bytes, out: Closed, number: int) -> None:
    by_tag, rows = dict(fields(content)), [row for row in out.rows if row.series == number]
    need(by_tag.get(8, 0) == number and by_tag[16] == out.series[number].at, "series index")
    found = []
    for entry in of(content, 26):
        times, places, numbers = of(entry, 10), of(entry, 16), of(entry, 26)
        need(len(times) == len(places) == 1 and len(numbers) <= 1, "entry")
        found.append((places[0], stamp(times), [signed(n) for n in varints(b"".join(numbers))]))
    need(found == [(row.at, row.ns, row.numbers) for row in rows], "entries")
    need(by_tag.get(32, 0) == sum(len(row.payload) for row in rows), "bytes of payloads")
    need(all(len(row.numbers) == len(out.series[number].names) for row in rows), "additional indexes")


def _file_index(content: bytes, out: Closed, indexes: list[int]) -> None:
    need(of(content, 10) == [one.identifier for one in out.series], "identifiers")
    need(varints(b"".join(of(content, 18))) == indexes, "places of indexes")
    need(varints(b"".join(of(content, 26))) == [one.hash for one in out.series], "hashes")
    need(len(indexes) == len(out.series), "an index for each series")
