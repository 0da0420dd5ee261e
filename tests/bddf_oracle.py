"""A plain reader of BDDF, written from the facts alone: slow, obvious, and the judge of the fast one."""

from __future__ import annotations

from dataclasses import dataclass, field

END_BYTES = 40


class Bad(ValueError):
    """These bytes are not what they should be."""


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
    """What lies before the first unsound byte: data blocks, declared series, and where and why it stopped."""

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
    """(tag, value) of every field."""
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
    """ns of a time, whose parts may be spread over several fields; held at the limits of int64."""
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
    """Series, ns and additional indexes."""
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
    """The data block at *at*; raises Bad. *strict*: its numbers must be readable too."""
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
    """Follow the blocks from the front as far as they are sound."""
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
