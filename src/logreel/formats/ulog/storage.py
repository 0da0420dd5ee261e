"""Records of a ULog by kind, for ``logreel du``."""

from __future__ import annotations

from collections.abc import Iterator

from logreel.formats.ulog.records import DATA_HEAD, FILE_HEADER, HEAD, MAGIC, RECORD
from logreel.io.source import Buffer
from logreel.registry import format as storage
from logreel.registry.format import Storage, StoredRecord

KINDS = {
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
        if record_type not in KINDS or at + HEAD + size > end:
            return
        yield StoredRecord(KINDS[record_type], HEAD + size)
        at += HEAD + size


STORAGE = Storage(DATA_HEAD, _records)
