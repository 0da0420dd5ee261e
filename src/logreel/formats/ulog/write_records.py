"""Encode ULog records from plain values."""

from __future__ import annotations

import re
import struct
from typing import Any

from logreel.errors import UsageError
from logreel.formats.ulog.records import RECORD
from logreel.write.payloads import Payload

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
        kind = "char" if isinstance(value, str) else "uint8_t"
        return pack_key(f"{kind}[{len(data)}] {name}", name), data
    if isinstance(value, float):
        return pack_key(f"double {name}", name), pack_number(name, "d", value)
    if isinstance(value, bool):
        return pack_key(f"bool {name}", name), pack_number(name, "?", value)
    if not isinstance(value, int):
        raise UsageError(f"metadata {name!r}: a ULog holds text, numbers and bytes, not {value!r:.40}")
    for kind, code in _WHOLE:
        try:
            return pack_key(f"{kind} {name}", name), struct.pack("<" + code, value)
        except struct.error:
            continue
    raise UsageError(f"metadata {name!r}: {value} does not fit 64 bits")
