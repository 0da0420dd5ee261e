"""Structure of BDDF files."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from damage.structure.model import Structure, u32, u64

#: Messages by field number: the name of the field, and the fields of its message if it has any.
_Tree = Mapping[int, tuple[str, Any]]
_STAMP: _Tree = {1: ("seconds", None), 2: ("nanos", None)}
_IDENTIFIER: _Tree = {1: ("series type", None), 2: ("spec", None)}
_FILE: _Tree = {
    1: ("version", {1: ("major", None), 2: ("minor", None), 3: ("patch", None)}),
    3: ("checksum type", None),
    4: ("checksum bytes", None),
}
_SERIES: _Tree = {
    1: ("index", None),
    2: ("identifier", _IDENTIFIER),
    3: ("hash", None),
    4: ("message type", {1: ("content type", None), 2: ("type name", None)}),
    5: ("pod type", {1: ("kind", None), 2: ("dimension", None)}),
    6: ("struct type", {1: ("member", {1: ("name", None), 2: ("hash", None)})}),
    8: ("index name", None),
}
_BLOCK_INDEX: _Tree = {
    1: ("series", None),
    2: ("declared at", None),
    3: ("entry", {1: ("time", _STAMP), 2: ("offset", None), 3: ("numbers", None)}),
    4: ("total bytes", None),
}
_FILE_INDEX: _Tree = {1: ("identifier", _IDENTIFIER), 2: ("offsets", None), 3: ("hashes", None)}
_DATA: _Tree = {1: ("series", None), 2: ("time", _STAMP), 3: ("numbers", None)}
_TOP: _Tree = {
    1: ("file", _FILE),
    2: ("series", _SERIES),
    3: ("block index", _BLOCK_INDEX),
    4: ("file index", _FILE_INDEX),
}
#: Fields that are packed varints.
_PACKED = {"numbers", "offsets", "hashes", "dimension"}


def bddf(data: bytes) -> Structure:
    """Return the structure of a sound file."""
    out, at = Structure(len(data)), 4
    while at < len(data) - 40:
        size, kind, begin = u64(data, at) & (1 << 56) - 1, data[at + 7], at
        name = {0: "data", 1: "descriptor"}.get(kind, "reserved")
        out.add(f"{name} block size", at, 7)
        out.add(f"{name} block kind", at + 7, 1)
        at += 8
        if kind == 0:
            out.add("data descriptor length", at, 4)
            _message(data, at + 4, at + 4 + u32(data, at), "data", _DATA, out)
            at += 4
        elif kind == 1:
            _message(data, at, at + size, "", _TOP, out)
        at += size
        out.records.append((begin, at, name))
    out.add("end block size", at, 7)
    out.add("end block kind", at + 7, 1)
    out.add("end index offset", at + 8, 8)
    out.add("end digest", at + 16, 20, "raw")
    out.add("end magic", at + 36, 4, "raw")
    out.records.append((at, len(data), "end"))
    return out


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at


def _message(data: bytes, at: int, end: int, where: str, tree: _Tree, out: Structure) -> None:
    while at < end:
        tag, at = _varint(data, at)
        name, inner = tree.get(tag >> 3, ("other", None))
        name = f"{where} {name}".strip()
        value, after = _varint(data, at)
        out.add(name if tag & 7 == 0 else f"{name} length", at, after - at, "varint")
        at = after
        if tag & 7 == 2:
            if inner is not None:
                _message(data, at, at + value, name, inner, out)
            elif name.split()[-1] in _PACKED:
                pos = at
                while pos < at + value:
                    _, after = _varint(data, pos)
                    out.add(f"{name} item", pos, after - pos, "varint")
                    pos = after
            elif value:
                out.add(name, at, value, "raw")
            at += value


def reseal(data: bytes) -> bytes:
    """Return *data* with the digest that its bytes have."""
    return data[:-24] + hashlib.sha1(data[:-24], usedforsecurity=False).digest() + data[-4:]
