"""What is decoded while something is asked for; tests/conftest.py makes the fixture known."""

from __future__ import annotations

from typing import Any

import pytest

from logreel.log import tables
from logreel.log.log import Channel


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
    seen, make = Decoding(), tables.table_of

    def watched(ch: Channel, fields: list[str] | None, rows: Any, shape: tables.Shape = tables.PLAIN) -> Any:
        seen.fields.update(ch.fields if fields is None else fields)
        seen.rows += range(*rows.indices(len(ch))) if isinstance(rows, slice) else rows.tolist()
        return make(ch, fields, rows, shape)

    monkeypatch.setattr(tables, "table_of", watched)
    return seen
