"""Records of a ULog from plain values."""

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


def record(letter: str, *parts: Payload) -> bytes:
    """A record with its header. Raises UsageError for more than it can hold."""
    size = sum(map(len, parts))
    if size > MAX_SIZE:
        raise UsageError(f"a record of {size} bytes; a ULog holds at most {MAX_SIZE} in one")
    return b"".join((RECORD.pack(size, ord(letter)), *parts))


def key(text: str, name: str) -> bytes:
    """The key *text*, which ends in *name*, behind its length."""
    if not _KEY.match(name) or len(text) > 255:
        raise UsageError(f"{name!r:.60} is no name of a ULog: letters, digits, _ - and / only")
    return bytes((len(text),)) + text.encode()


def packed(name: str, code: str, value: Any) -> bytes:
    """One number."""
    try:
        return struct.pack("<" + code, value)
    except (struct.error, OverflowError) as error:
        raise UsageError(f"{name!r}: {value!r:.40} cannot be written: {error}") from None


def key_value(name: str, value: Any) -> tuple[bytes, bytes]:
    """Key and value of information: of the first type that holds *value*."""
    if isinstance(value, str | bytes):
        data = value.encode() if isinstance(value, str) else value
        kind = "char" if isinstance(value, str) else "uint8_t"
        return key(f"{kind}[{len(data)}] {name}", name), data
    if isinstance(value, float):
        return key(f"double {name}", name), packed(name, "d", value)
    if isinstance(value, bool):
        return key(f"bool {name}", name), packed(name, "?", value)
    if not isinstance(value, int):
        raise UsageError(f"metadata {name!r}: a ULog holds text, numbers and bytes, not {value!r:.40}")
    for kind, code in _WHOLE:
        try:
            return key(f"{kind} {name}", name), struct.pack("<" + code, value)
        except struct.error:
            continue
    raise UsageError(f"metadata {name!r}: {value} does not fit 64 bits")
