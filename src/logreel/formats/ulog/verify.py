"""What accounts for all bytes of a ULog: findings of ``verify`` that only ULogs have, and ``STORAGE``, for ``du``."""

from __future__ import annotations

import hashlib
import itertools
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from logreel.errors import Finding, Severity
from logreel.formats.ulog import records
from logreel.formats.ulog.non_data_records import KeyedRecord, NonDataRecords
from logreel.formats.ulog.records import (
    APPENDED_FLAG,
    BASIC,
    DATA_HEAD,
    FILE_HEADER,
    HEAD,
    INCOMPATIBLE_AT,
    MAGIC,
    OFFSETS_AT,
    RECORD,
    SYNC,
)
from logreel.index.message_index import MessageIndex
from logreel.io.source import Buffer
from logreel.layout.nodes import SCALARS
from logreel.registry import format as storage
from logreel.registry.format import Storage, StoredRecord

#: Greatest version of the file header that is described.
VERSION = 1
#: Attachment whose SHA-256 another record states, by the name of that record.
_DIGESTED = {"metadata_events_sha256": "metadata_events"}


def verify(others: NonDataRecords, index: MessageIndex) -> Iterator[Finding]:
    """Yield findings of what the file says of itself in its header, flags and keyed records, and does not hold."""
    yield from _header(others, index)
    yield from _flags(others)
    yield from _sync_marks(others)
    yield from _subscriptions(others)
    yield from _keyed(others)
    yield from _digests(others)


def _header(others: NonDataRecords, index: MessageIndex) -> Iterator[Finding]:
    """Yield ``version`` for a version from the future, ``header`` for a start after the last message."""
    version = int(others.source.view[7])
    if version > VERSION and others.found.segments[0] == 0:
        yield Finding(
            "version", "warn", 7, 1, f"the header states version {version}, {VERSION} is the last described"
        )
    stored = [n for n in range(len(others.found.channels)) if index.count(n)]
    last = max((int(index.times(n).max()) for n in stored), default=None)
    start = others.found.segment_us[0] * 1000
    if last is not None and others.found.segments[0] == 0 and start > last:
        text = f"the header states that the log begins at {start} ns, its last message is of {last} ns"
        yield Finding("header", "warn", 8, 8, text)


def _flags(others: NonDataRecords) -> Iterator[Finding]:
    """Yield ``flags`` for flag bits that contradict the file."""
    if others.lacks_defaults_flag:
        at = others.keyed.positions("Q")
        text = (
            f"{len(at)} defaults of parameters (Q) that the flag bits do not announce: readers that follow the "
            "specification say there are none; recover sets compatible bit 0"
        )
        yield Finding("flags", "warn", at[0], 0, text, count=len(at))
    view = others.source.view
    if others.found.begin <= FILE_HEADER:
        return
    is_announced = bool(int(view[INCOMPATIBLE_AT]) & APPENDED_FLAG)
    offsets = struct.unpack_from("<3Q", view, OFFSETS_AT)
    if is_announced != any(offsets):
        text = "appended data, but no offset of it" if is_announced else "no appended data, but offsets of it"
        yield Finding("flags", "warn", INCOMPATIBLE_AT, 1, f"the flag bits state {text}")
    if any(later and not earlier for earlier, later in itertools.pairwise(offsets)):
        yield Finding(
            "flags", "warn", OFFSETS_AT, 24, "an offset of appended data is missing before another one"
        )


def _sync_marks(others: NonDataRecords) -> Iterator[Finding]:
    """Yield ``sync`` for sync records that do not hold the eight bytes that they are searched by."""
    marks = [at for at in others.marks.tolist() if others.source.view[at + 2] == ord("S")]
    payloads = {at: records.payload_at(others.source, at) for at in marks}
    wrong = [at for at, payload in payloads.items() if payload != SYNC and len(payload) == len(SYNC)]
    if wrong:
        text = f"{len(wrong)} of {len(marks)} sync marks do not have the bytes that a sync mark has"
        # Early specifications did not define them.
        severity: Severity = "warn" if len(wrong) < len(marks) else "note"
        yield Finding("sync", severity, wrong[0], 0, text, count=len(wrong))


def _subscriptions(others: NonDataRecords) -> Iterator[Finding]:
    """Yield ``subscription`` for the end of a subscription that never began."""
    known = {
        records.parse_subscription(records.payload_at(others.source, at))[1]
        for at in others.keyed.positions("A")
    }
    for at in others.marks.tolist():
        payload = records.payload_at(others.source, at)
        if others.source.view[at + 2] == ord("R") and len(payload) == 2:
            number = int.from_bytes(payload, "little")
            if number not in known:
                text = f"a record ends the subscription of message id {number}, which has none"
                yield Finding("subscription", "warn", at, 0, text)


def _keyed(others: NonDataRecords) -> Iterator[Finding]:
    """Yield ``information`` for values, parts and defaults that are not what their records state."""
    continues = set[str]()
    for entry in others.keyed.entries:
        text = _wrong_size(entry)
        if not text and entry.kind == "Q" and not entry.default_kinds:
            text = f"a default of {entry.key.name!r} states that it is none (bits {entry.key.head:#x})"
        if not text and entry.kind == "M" and entry.key.head and entry.name not in continues:
            text = f"a part of {entry.key.name!r} continues one that is not there"
        if entry.kind == "M":
            continues.add(entry.name)
        if text:
            yield Finding("information", "warn", entry.offset, 0, text)


def _wrong_size(entry: KeyedRecord) -> str:
    type_name, count, size = entry.key.type, entry.key.count, len(entry.key.data)
    if type_name not in BASIC:
        return ""
    due = np.dtype(SCALARS[BASIC[type_name]][0]).itemsize * (1 if count is None else count)
    if due == size:
        return ""
    return f"{entry.key.name!r} states {due} bytes ({type_name}{'' if count is None else f'[{count}]'}), it has {size}"


def _digests(others: NonDataRecords) -> Iterator[Finding]:
    """Yield ``checksum`` for content whose SHA-256 the file states, and that has another one."""
    stated: dict[str, Any] = {e.key.name: e for e in others.keyed.entries if e.key.name in _DIGESTED}
    for name, entry in stated.items():
        parts = others.keyed.multiples.get(_DIGESTED[name] + others.found.suffix(entry.offset), [])
        for value_parts in parts[:1]:
            digest = hashlib.sha256(b"".join(part.key.data for part in value_parts)).hexdigest()
            if (
                isinstance(entry.value, str)
                and len(entry.value) == len(digest)
                and entry.value.lower() != digest
            ):
                text = f"the SHA-256 of {_DIGESTED[name]!r} is {digest}, the file states {entry.value}"
                yield Finding("checksum", "error", entry.offset, 0, text)


#: What of a file is no message, by kind of record.
_STORED = {
    ord("B"): storage.FILE_HEADER, ord("F"): storage.DEFINITIONS, ord("A"): storage.DEFINITIONS,
    ord("R"): storage.DEFINITIONS, ord("I"): storage.METADATA, ord("M"): storage.METADATA,
    ord("P"): "parameters", ord("Q"): "parameters", ord("L"): "text", ord("C"): "text", ord("S"): "sync marks",
    ord("O"): "dropouts", ord("D"): storage.UNASSIGNED,
}  # fmt: skip
#: A file header before the version, which differs.
_MAGIC = MAGIC[:-1]


def _records(data: Buffer, at: int, end: int) -> Iterator[StoredRecord]:
    while at < end:
        if end - at >= FILE_HEADER and data[at : at + len(_MAGIC)].tobytes() == _MAGIC:
            yield StoredRecord(storage.FILE_HEADER, FILE_HEADER)
            at += FILE_HEADER
            continue
        if end - at < HEAD:
            return
        size, record_type = RECORD.unpack(data[at : at + HEAD].tobytes())
        if record_type not in _STORED or at + HEAD + size > end:
            return
        yield StoredRecord(_STORED[record_type], HEAD + size)
        at += HEAD + size


STORAGE = Storage(DATA_HEAD, _records)
