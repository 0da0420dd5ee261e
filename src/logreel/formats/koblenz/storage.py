"""Messages and other content of a Koblenz log, for ``logreel du``."""

from __future__ import annotations

from collections.abc import Iterator

from logreel.formats.koblenz.records import FILE_HEADER, HEAD
from logreel.io.source import Buffer
from logreel.registry import format as storage
from logreel.registry.format import Storage, StoredRecord


def _records(data: Buffer, at: int, end: int) -> Iterator[StoredRecord]:
    if at == 0 and end >= FILE_HEADER:
        yield StoredRecord(storage.FILE_HEADER, FILE_HEADER)


STORAGE = Storage(HEAD, _records)
