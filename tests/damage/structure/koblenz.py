"""Structure of Koblenz logs in which sizes count the header without themselves."""

from __future__ import annotations

from damage.structure.model import Structure, u32

_IMAGE, _VELODYNE, _LASER = 0x109C9, 0x3112B, 0x30910


def koblenz(data: bytes) -> Structure:
    """Return the structure of a sound log."""
    out = Structure(len(data))
    out.add("header major", 4, 2)
    out.add("header minor", 6, 2)
    out.add("index count", 8, 4)
    count = u32(data, 8)
    for i in range(count):
        out.add("index entry", 12 + 8 * i, 8)
    at = 12 + 8 * count
    while at + 4 <= len(data) and (size := u32(data, at)) != 0xFFFFFFFF:
        kind, body = u32(data, at + 5), at + 21
        for name, place, width in (("size", 0, 4), ("mark", 4, 1), ("type", 5, 4), ("version", 9, 4)):
            out.add(f"message {name}", at + place, width)
        out.add("message time", at + 13, 8, "f64")
        if kind == _IMAGE:
            out.add("image size", body + 16, 4)
        elif kind == _VELODYNE:
            out.add("velodyne count", body, 4)
        elif kind == _LASER:
            out.add("laser model length", body, 4)
            name = body + 4 + u32(data, body)
            out.add("laser name length", name, 4)
            out.add("laser count", name + 4 + u32(data, name), 4)
        at += 4 + size
        out.records.append((body - 21, at, hex(kind)))
    return out
