"""Structure of CARLA recordings."""

from __future__ import annotations

from damage.structure.model import Structure, u16, u32


def carla(data: bytes) -> Structure:
    """Return the structure of a sound recording."""
    out = Structure(len(data))
    out.add("header version", 0, 2)
    out.add("header magic length", 2, 2)
    out.add("header magic", 4, 14, "raw")
    out.add("header date", 18, 8)
    out.add("header map length", 26, 2)
    at = 28 + u16(data, 26)
    while at < len(data):
        kind, size, body = data[at], u32(data, at + 1), at + 5
        out.add("packet kind", at, 1)
        out.add(f"packet {kind} size", at + 1, 4)
        if kind == 0:
            out.add("frame number", body, 8)
            out.add("frame duration", body + 8, 8, "f64")
            out.add("frame elapsed", body + 16, 8, "f64")
        elif kind not in (1, 14, 18, 20) and size >= 2:
            out.add(f"packet {kind} count", body, 2)
        if kind == 2:
            _actors(data, body, out)
        at = body + size
        out.records.append((body - 5, at, str(kind)))
    return out


def _actors(data: bytes, at: int, out: Structure) -> None:
    count, at = u16(data, at), at + 2
    for _ in range(count):
        out.add("actor id", at, 4)
        out.add("actor type", at + 4, 1)
        at += 4 + 1 + _pose(data, at + 5) + 4
        at = _text(data, at, "actor description", out)
        out.add("actor attribute count", at, 2)
        many, at = u16(data, at), at + 2
        for _ in range(many):
            out.add("attribute type", at, 1)
            at = _text(data, at + 1, "attribute id", out)
            at = _text(data, at, "attribute value", out)


def _pose(data: bytes, at: int) -> int:
    """Return the bytes of location and rotation, which release 0.10 writes as doubles: a description follows them."""
    begin = at + 24 + 4 + 2
    name = data[begin : begin + u16(data, begin - 2)]
    return 24 if name and name.isascii() and name.decode().isprintable() else 48


def _text(data: bytes, at: int, name: str, out: Structure) -> int:
    out.add(f"{name} length", at, 2)
    return at + 2 + u16(data, at)
