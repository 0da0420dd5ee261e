"""Records of an MCAP file by kind, for ``logreel du``."""

from __future__ import annotations

from collections.abc import Iterator

from logreel.formats.mcap import records
from logreel.formats.mcap.records import HEAD, MAGIC, MESSAGE_HEAD
from logreel.io.source import Buffer
from logreel.registry import format as storage
from logreel.registry.format import Storage, StoredRecord

KINDS = {
    records.HEADER: storage.FILE_HEADER, records.FOOTER: storage.INDEX, records.SCHEMA: storage.DEFINITIONS,
    records.CHANNEL: storage.DEFINITIONS, records.MESSAGE: storage.UNASSIGNED, records.CHUNK: "chunks",
    records.MESSAGE_INDEX: storage.INDEX, records.CHUNK_INDEX: storage.INDEX,
    records.ATTACHMENT: storage.ATTACHMENTS, records.ATTACHMENT_INDEX: storage.INDEX,
    records.STATISTICS: storage.INDEX, records.METADATA: storage.METADATA, records.METADATA_INDEX: storage.INDEX,
    records.SUMMARY_OFFSET: storage.INDEX, records.DATA_END: storage.INDEX,
}  # fmt: skip
#: Bytes of a chunk before the length of its compression: kind, length, two times, size, checksum.
_CHUNK_HEAD = HEAD + 8 + 8 + 8 + 4


def _records(data: Buffer, at: int, end: int) -> Iterator[StoredRecord]:
    while at < end:
        if data[at : min(at + len(MAGIC), end)].tobytes() == MAGIC:
            yield StoredRecord(storage.FILE_HEADER, len(MAGIC))
            at += len(MAGIC)
            continue
        if end - at < HEAD:
            return
        opcode, length = int(data[at]), _number(data, at + 1, 8)
        if opcode == records.CHUNK and (chunk := _chunk(data, at, length, end)) is not None:
            yield chunk
            at += chunk.size
            continue
        if at + HEAD + length > end or (opcode not in KINDS and opcode < records.PRIVATE):
            return
        yield StoredRecord(KINDS.get(opcode, "private records"), HEAD + length)
        at += HEAD + length


def _chunk(data: Buffer, at: int, length: int, end: int) -> StoredRecord | None:
    """Return the chunk at *at*; None if it is incomplete."""
    if end - at < _CHUNK_HEAD + 4:
        return None
    name = _number(data, at + _CHUNK_HEAD, 4)
    head = _CHUNK_HEAD + 4 + name + 8
    if head > HEAD + length or at + head > end:
        return None
    compression = (
        data[at + _CHUNK_HEAD + 4 : at + _CHUNK_HEAD + 4 + name].tobytes().decode("utf-8", "replace")
    )
    content = _number(data, at + head - 8, 8)
    if compression:
        if content > HEAD + length - head or at + HEAD + length > end:
            return None
        return StoredRecord("chunks", HEAD + length, compression, head, content)
    return StoredRecord(storage.CHUNK_HEADERS, head, "none", head, min(content, HEAD + length - head))


def _number(data: Buffer, at: int, width: int) -> int:
    return int.from_bytes(data[at : at + width].tobytes(), "little")


STORAGE = Storage(MESSAGE_HEAD, _records)
