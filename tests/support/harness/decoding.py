"""What is decoded while something is asked for; tests/conftest.py makes the fixture known."""

from __future__ import annotations

from typing import Any

import pytest

from logreel.log.tables import TableReader


class Decoding:
    """The fields and the messages of each piece that was decoded."""

    def __init__(self) -> None:
        self.fields: set[str] = set()
        self.rows: list[int] = []

    def forget(self) -> None:
        self.fields.clear()
        self.rows.clear()


@pytest.fixture
def decoding(monkeypatch: pytest.MonkeyPatch) -> Decoding:
    """Watches every table that is made of a channel."""
    seen, read = Decoding(), TableReader.read

    def watched(reader: TableReader, rows: Any) -> Any:
        ch, fields = reader.ch, reader.projection.fields
        seen.fields.update(ch.layout.paths() if fields is None else fields)
        seen.rows += range(*rows.indices(len(ch))) if isinstance(rows, slice) else rows.tolist()
        return read(reader, rows)

    monkeypatch.setattr(TableReader, "read", watched)
    return seen
