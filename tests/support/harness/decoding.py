"""A fixture that records which columns are decoded; see tests/conftest.py."""

from __future__ import annotations

from typing import Any

import pytest

from logreel.log.tables import TableReader


class Decoding:
    """Fields and numbers of messages of all batches that were decoded."""

    def __init__(self) -> None:
        self.fields: set[str] = set()
        self.rows: list[int] = []

    def forget(self) -> None:
        self.fields.clear()
        self.rows.clear()


@pytest.fixture
def decoding(monkeypatch: pytest.MonkeyPatch) -> Decoding:
    """Return a record of all tables that are decoded from channels."""
    seen, read = Decoding(), TableReader.read

    def watched(reader: TableReader, rows: Any) -> Any:
        ch, fields = reader.ch, reader.projection.fields
        seen.fields.update(ch.layout.paths() if fields is None else fields)
        seen.rows += range(*rows.indices(len(ch))) if isinstance(rows, slice) else rows.tolist()
        return read(reader, rows)

    monkeypatch.setattr(TableReader, "read", watched)
    return seen
