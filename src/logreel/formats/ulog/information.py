"""Values of information records (``I``, ``M``): from bytes to plain values, and back to the same bytes.

What plain values do not say is kept in the metadata under the name of the format, so that a converted log can be
converted back to the same records; see ``RecordDetails``.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.errors import DefinitionError, UsageError
from logreel.formats.ulog.definitions import Definitions
from logreel.formats.ulog.records import BASIC, RECORD, KeyValue
from logreel.layout.nodes import SCALARS

MAX_SIZE = 65535
_KEY = re.compile(r"[A-Za-z0-9_\-/]+\Z")
_WHOLE = (("int32_t", "i"), ("uint32_t", "I"), ("int64_t", "q"), ("uint64_t", "Q"))


def pack_record(letter: str, *parts: Payload) -> bytes:
    """Return a record with its header. Raises UsageError if the parts are too large."""
    size = sum(map(len, parts))
    if size > MAX_SIZE:
        raise UsageError(f"a record of {size} bytes; a ULog holds at most {MAX_SIZE} in one")
    return b"".join((RECORD.pack(size, ord(letter)), *parts))


def pack_key(text: str, name: str) -> bytes:
    """Return the key *text*, which ends in *name*, after its length. Raises UsageError for an invalid name."""
    if not _KEY.match(name) or len(text) > 255:
        raise UsageError(f"{name!r:.60} is no name of a ULog: letters, digits, _ - and / only")
    return bytes((len(text),)) + text.encode()


def pack_number(name: str, code: str, value: Any) -> bytes:
    """Encode a number by its struct code. Raises UsageError if it does not fit."""
    try:
        return struct.pack("<" + code, value)
    except (struct.error, OverflowError) as error:
        raise UsageError(f"{name!r}: {value!r:.40} cannot be written: {error}") from None


def pack_key_value(name: str, value: Any) -> tuple[bytes, bytes]:
    """Encode key and value of information, with the first type that holds *value*. Raises UsageError."""
    if isinstance(value, str | bytes):
        data = value.encode() if isinstance(value, str) else value
        type_name = "char" if isinstance(value, str) else "uint8_t"
        return pack_key(f"{type_name}[{len(data)}] {name}", name), data
    if isinstance(value, float):
        return pack_key(f"double {name}", name), pack_number(name, "d", value)
    if isinstance(value, bool):
        return pack_key(f"bool {name}", name), pack_number(name, "?", value)
    if not isinstance(value, int):
        raise UsageError(f"metadata {name!r}: a ULog holds text, numbers and bytes, not {value!r:.40}")
    for type_name, code in _WHOLE:
        try:
            return pack_key(f"{type_name} {name}", name), struct.pack("<" + code, value)
        except struct.error:
            continue
    raise UsageError(f"metadata {name!r}: {value} does not fit 64 bits")


if TYPE_CHECKING:
    from logreel.write.format_writer import Payload

#: Name in the metadata of the details that only this format has.
OWN = "ulog"
#: Information that is a version, packed into 32 bits: major, minor, patch, stage.
RELEASES = ("ver_sw_release", "ver_vendor_sw_release")
_STAGES = ((255, ""), (192, "-rc"), (128, "-beta"), (64, "-alpha"), (0, "-dev"))
_RELEASE = re.compile(r"v(\d{1,3})\.(\d{1,3})\.(\d{1,3})(?:(-dev|-alpha|-beta|-rc)(\d{1,2})?)?\Z")
_TYPE = re.compile(r"([A-Za-z0-9_\-/]+)(\[\d*\])?\Z")


def release(number: int) -> str:
    """Return a packed version as text: ``v1.16.0``, ``v1.16.0-rc`` or, with a number, ``v1.16.0-rc2``."""
    major, minor, patch, stage = struct.pack(">I", number)
    least, suffix = next(entry for entry in _STAGES if stage >= entry[0])
    return f"v{major}.{minor}.{patch}{suffix}" + (str(stage - least) if stage > least else "")


def release_number(text: str) -> int | None:
    """Return the packed version for which ``release`` gives *text*, or None."""
    match = _RELEASE.match(text)
    if match is None:
        return None
    stage = {suffix: least for least, suffix in _STAGES}[match[4] or ""] + int(match[5] or 0)
    parts = [int(match[n]) for n in (1, 2, 3)] + [stage]
    number = int.from_bytes(bytes(parts)) if max(parts) <= 255 else -1
    return number if number >= 0 and release(number) == text else None


def type_of(key_value: KeyValue) -> str:
    """Return the type of a value with its length in brackets; without the length for text."""
    if key_value.count is None:
        return key_value.type
    return f"{key_value.type}[]" if key_value.type == "char" else f"{key_value.type}[{key_value.count}]"


def is_binary(key_value: KeyValue) -> bool:
    """Return whether a value is binary content, to be shown as an attachment."""
    return key_value.type == "uint8_t" and key_value.count is not None


def value_of(key_value: KeyValue, definitions: Definitions) -> Any:
    """Decode a value: text, number, list, or dict for the type of a format; bytes if the size does not fit."""
    if key_value.type in BASIC:
        value = key_value.value()
        if key_value.name in RELEASES and type_of(key_value) == "uint32_t" and isinstance(value, int):
            return release(value)
        return value
    try:
        layout, least, size = definitions.value_layout(key_value.type, key_value.count)
    except DefinitionError:
        return key_value.data
    if not least <= len(key_value.data) <= size:
        return key_value.data
    row: Mapping[str, Any] = layout.decoder()(memoryview(key_value.data + bytes(size - len(key_value.data))))
    return row["value"]


def pack_value(name: str, value: Any, type_name: str | None) -> tuple[bytes, bytes]:
    """Encode key and value of information of type *type_name*; None: of the first type that holds *value*.

    Raises UsageError for a value that the type does not hold.
    """
    number = release_number(value) if name in RELEASES and isinstance(value, str) else None
    if number is not None and type_name in (None, "uint32_t"):
        value, type_name = number, "uint32_t"
    match = _TYPE.match(type_name or "")
    if match is None or match[1] not in BASIC or isinstance(value, str | bytes):
        return pack_key_value(name, value)
    dtype = np.dtype(SCALARS[BASIC[match[1]]][0])
    try:
        packed = np.array(value, dtype)
        if dtype.kind != "f" and (packed != np.array(value)).any():
            raise ValueError
        return pack_key(f"{type_name} {name}", name), packed.tobytes()
    except (ValueError, TypeError, OverflowError):
        raise UsageError(f"metadata {name!r}: {value!r:.40} is no {type_name}") from None


class RecordDetails:
    """Details of information records that plain values do not have, and that writing the same records needs.

    types    type of each value, by name
    parts    sizes of the parts of binary entries, by name
    raw      kind and payload of records that cannot be encoded from their value, by name
    formats  definitions of types that are not basic
    """

    def __init__(self) -> None:
        self.types: dict[str, str] = {}
        self.parts: dict[str, list[list[int]]] = {}
        self.raw: dict[str, list[list[Any]]] = {}
        self.formats: list[str] = []

    def add(
        self,
        letter: str,
        name: str,
        entries: Sequence[tuple[KeyValue, bytes]],
        values: Sequence[Any],
        definitions: Definitions,
    ) -> None:
        """Add all records of one key: key with value and payload of each, and the decoded values."""
        first = entries[0][0]
        self.types[name] = type_name = type_of(first)
        if first.type not in BASIC:
            self.formats += [t for t in definitions.text(first.type).splitlines() if t not in self.formats]
        for (detail, payload), value in zip(entries, values, strict=True):
            try:
                encoded = b"".join(pack_value(detail.name, value, type_name))
            except UsageError:
                encoded = b""
            if payload[letter == "M" :] != encoded:
                self.raw[name] = [[letter, payload] for _, payload in entries]
                return

    def metadata(self) -> dict[str, Any]:
        """Return the details that are not empty, as metadata."""
        every = {"types": self.types, "parts": self.parts, "raw": self.raw, "formats": self.formats}
        return {name: value for name, value in every.items() if value}
