"""Decode formats, keys and records of ULog field by field: the part of the oracle below the file."""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Iterable
from typing import Any

#: What `struct` calls each basic type.
CODES = {
    "int8_t": "<b",
    "uint8_t": "<B",
    "bool": "<?",
    "char": "<c",
    "int16_t": "<h",
    "uint16_t": "<H",
    "int32_t": "<i",
    "uint32_t": "<I",
    "float": "<f",
    "int64_t": "<q",
    "uint64_t": "<Q",
    "double": "<d",
}
#: Bits and microseconds per tick of every type a timestamp may have.
CLOCKS = {"uint64_t": (64, 1), "uint32_t": (32, 1), "uint16_t": (16, 1), "uint8_t": (8, 1000)}
KEY = re.compile(rb"(%s)(\[\d+\])? ([a-zA-Z0-9_/-]+)" % "|".join(CODES).encode())
FIELD = re.compile(r"([a-zA-Z0-9_/-]+)(?:\[(\d+)\])? ([a-zA-Z0-9_]+)")
NAME = re.compile(r"[a-zA-Z0-9_/-]+")
LARGEST_RECORD = 65535 - 2

Formats = dict[str, list[tuple[str, int | None, str]]]


def parse_format(payload: bytes) -> tuple[str, list[tuple[str, int | None, str]]] | None:
    """Return name and fields (type, array length or None, name) of a format message; None if it is invalid."""
    name, colon, rest = payload.decode("utf-8", "replace").partition(":")
    parts = rest.removesuffix(";").split(";")
    matches = [FIELD.fullmatch(part) for part in parts]
    if not colon or not NAME.fullmatch(name) or name in CODES or not all(matches):
        return None
    fields = [(m[1], int(m[2]) if m[2] else None, m[3]) for m in matches if m]
    # An array of nothing has no meaning in C, where the definitions come from.
    return None if any(count == 0 for _, count, _ in fields) else (name, fields)


class Topic:
    """A subscription with its resolved format: (path, code or text length, offset) of every field."""

    def __init__(self, name: str, multi_id: int, formats: Formats) -> None:
        self.name, self.multi_id = name, multi_id
        self.key = f"{name}[{multi_id}]" if multi_id else name
        self.fields: list[tuple[str, str | int, int]] = []
        self.size = self._size(name, formats, ())
        padding = 0
        for kind, count, field_name in reversed(formats[name]):
            if not field_name.startswith("_padding"):
                break
            padding += self._size(kind, formats, ()) * (1 if count is None else count)
        self.smallest = self.size - padding
        clocks = [(k, c, f) for k, c, f in formats[name] if f == "timestamp"]
        if not clocks or clocks[0][0] not in CLOCKS or clocks[0][1] is not None:
            raise LookupError("no timestamp")
        self.bits, self.unit = CLOCKS[clocks[0][0]]
        if (
            self.smallest <= LARGEST_RECORD
        ):  # otherwise no record can exist, and there may be millions of fields
            self._walk(name, "", 0, formats)

    def _size(self, kind: str, formats: Formats, inside: tuple[str, ...]) -> int:
        """Return the bytes of one *kind*. Raises LookupError for an unknown type or one that contains itself."""
        if kind in CODES:
            return struct.calcsize(CODES[kind])
        if kind in inside or kind not in formats:
            raise LookupError(kind)
        fields = formats[kind]
        return sum(self._size(k, formats, (*inside, kind)) * (1 if c is None else c) for k, c, _ in fields)

    def _walk(self, name: str, prefix: str, at: int, formats: Formats) -> None:
        for kind, count, field_name in formats[name]:
            one = self._size(kind, formats, ())
            if not field_name.startswith("_padding"):
                if kind == "char" and count is not None:
                    self.fields.append((prefix + field_name, count, at))
                else:
                    for i in range(1 if count is None else count):
                        path = prefix + field_name + ("" if count is None else f"[{i}]")
                        if kind in CODES:
                            self.fields.append((path, CODES[kind], at + i * one))
                        else:
                            self._walk(kind, path + ".", at + i * one, formats)
            at += one * (1 if count is None else count)

    @functools.cached_property
    def _all_fields(self) -> tuple[struct.Struct, list[str], list[str]]:
        """All fields as one struct, their paths, and those of texts."""
        codes, end = ["<"], 0
        for _, code, at in self.fields:
            own = f"{code}s" if isinstance(code, int) else code[1:]
            codes.append(f"{at - end}x{own}")
            end = at + struct.calcsize("<" + own)
        paths = [path for path, _, _ in self.fields]
        return (
            struct.Struct("".join(codes)),
            paths,
            [path for path, code, _ in self.fields if isinstance(code, int)],
        )

    @functools.cached_property
    def _clock(self) -> tuple[struct.Struct, int]:
        """The field of the time, and where it is."""
        code, at = next((code, at) for path, code, at in self.fields if path == "timestamp")
        return struct.Struct(str(code)), at

    def clock(self, payload: bytes) -> int:
        """Return the time of a record as it is stored."""
        code, at = self._clock
        time: int = code.unpack_from(payload, at)[0]
        return time

    def columns(self, payloads: Iterable[bytes]) -> dict[str, tuple[Any, ...]]:
        """Return the values of all records by path, as ``decode`` does those of one."""
        fields, paths, texts = self._all_fields
        columns = dict(zip(paths, zip(*map(fields.unpack_from, payloads), strict=True), strict=True))
        for path in texts:
            columns[path] = tuple(_text(value) for value in columns[path])
        return columns

    def decode(self, payload: bytes) -> dict[str, Any]:
        fields, paths, texts = self._all_fields
        values: dict[str, Any] = dict(zip(paths, fields.unpack_from(payload), strict=True))
        for path in texts:
            values[path] = _text(values[path])
        return values


def _text(value: bytes) -> str:
    return value.split(b"\0")[0].decode("utf-8", "replace")


def parse_key(payload: bytes, at: int) -> tuple[str, bool, str, bytes] | None:
    """Return type, whether it is an array, name and value bytes of the key whose length is at *at*; None: invalid."""
    if at >= len(payload) or at + 1 + payload[at] > len(payload):
        return None
    m = KEY.fullmatch(payload, at + 1, at + 1 + payload[at])
    if m is None:
        return None
    kind, value = m[1].decode(), payload[m.end() :]
    # A single value needs its bytes; an array is as long as the message says, whatever its type says.
    if m[2] is None and len(value) < struct.calcsize(CODES[kind]):
        return None
    return kind, m[2] is not None, m[3].decode(), value


def value_of(kind: str, array: bool, _name: str, value: bytes) -> Any:
    """Return a number, text for `char`, bytes for `uint8_t[]`, a list for other arrays."""
    if kind == "char":
        return (value if array else value[:1]).decode("utf-8", "replace")
    if not array:
        return struct.unpack_from(CODES[kind], value)[0]
    if kind == "uint8_t":
        return value
    one = struct.calcsize(CODES[kind])
    return [struct.unpack_from(CODES[kind], value, i * one)[0] for i in range(len(value) // one)]
