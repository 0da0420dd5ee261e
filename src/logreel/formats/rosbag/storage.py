"""Records of a bag by kind, for ``logreel du``: versions 1.2 and 2.0, whose records have a header with fields."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from logreel.formats.rosbag import records
from logreel.formats.rosbag.records import BadRecord, parse_fields
from logreel.io.arrays import I64
from logreel.io.source import Buffer
from logreel.registry import format as storage
from logreel.registry.format import Storage, StoredRecord

KINDS = {
    records.OP_DEFINITION: storage.DEFINITIONS, records.OP_MESSAGE: storage.UNASSIGNED,
    records.OP_FILE: storage.FILE_HEADER, records.OP_INDEX: storage.INDEX, records.OP_CHUNK: "chunks",
    records.OP_CHUNK_INFO: storage.INDEX, records.OP_CONNECTION: storage.DEFINITIONS,
}  # fmt: skip
_LINE = b"#ROS"
#: Longest header of a message that is looked for, bytes; that of version 1.2 has the names of topic and type.
_LONGEST = 2048
#: Rounds of the search for headers of another length; further ones are taken for other bytes.
_ROUNDS = 64


def _records(data: Buffer, at: int, end: int) -> Iterator[StoredRecord]:
    if at == 0 and data[: len(_LINE)].tobytes() == _LINE:
        line = data[: min(64, end)].tobytes().partition(b"\n")
        yield StoredRecord(storage.FILE_HEADER, len(line[0]) + len(line[1]))
        at += len(line[0]) + len(line[1])
    while end - at >= 8:
        n = _u32(data, at)
        if n > end - at - 8:
            return
        try:
            fields = parse_fields(data[at + 4 : at + 4 + n].tobytes())
        except BadRecord:
            return
        op = fields.get(b"op", b"\0")[:1]
        head, size = n + 8, _u32(data, at + 4 + n)
        compression = fields.get(b"compression", b"").decode("latin-1")
        if not op or op[0] not in KINDS:
            return
        if op[0] == records.OP_CHUNK and compression == "none" and b"encryption" not in fields:
            yield StoredRecord(storage.CHUNK_HEADERS, head, compression, head, size)
            at += head
            continue
        if size > end - at - head:
            return
        is_chunk = op[0] == records.OP_CHUNK
        yield StoredRecord(
            KINDS[op[0]], head + size, compression if is_chunk else "", head, size if is_chunk else 0
        )
        at += head + size


def _u32(data: Buffer, at: int) -> int:
    return int.from_bytes(data[at : at + 4].tobytes(), "little")


def _heads(data: Buffer, start: I64, size: I64) -> I64:
    """Return int64[n]: bytes of each record before its payload; 0 where there is no header with fields.

    The length of a header stands only before it. Headers of one connection have one length, so few lengths are tried.
    """
    sizes = np.zeros(len(start), np.int64)
    left = np.arange(len(start))
    for _ in range(_ROUNDS):
        if not len(left):
            break
        n = _header_before(data, int(start[left[0]]))
        if n is None:
            left = left[1:]
            continue
        at = start[left] - n - 8
        fits = at >= 0
        fits[fits] = _u32_at(data, at[fits]) == n
        sizes[left[fits]] = n + 8
        left = left[~fits]
    return sizes


def _header_before(data: Buffer, start: int) -> int | None:
    """Return the length of the header of the record whose payload begins at *start*; None if there is none."""
    first = max(start - 8 - _LONGEST, 0)
    before = data[first : max(start - 4, first)].tobytes()
    for n in range(8, len(before) - 3):
        at = len(before) - n - 4
        if int.from_bytes(before[at : at + 4], "little") == n:
            try:
                fields = parse_fields(before[at + 4 :])
            except BadRecord:
                continue
            # The end of a header can look like a whole one, if the value before it is its length.
            if b"op" in fields and {b"conn", b"topic"} & {*fields} and {b"time", b"sec"} & {*fields}:
                return n
    return None


def _u32_at(data: Buffer, at: I64) -> I64:
    return np.ascontiguousarray(data[at[:, None] + np.arange(4)]).view("<u4")[:, 0].astype(np.int64)


STORAGE = Storage(_heads, _records)
