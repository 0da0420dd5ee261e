"""Findings of ``verify`` that only ULogs have."""

from __future__ import annotations

from collections.abc import Iterator

from logreel.errors import Finding
from logreel.formats.ulog.non_data_records import NonDataRecords


def verify(others: NonDataRecords) -> Iterator[Finding]:
    """Yield ``flags`` if the flag bits hide defaults of parameters from readers that trust them."""
    if others.lacks_defaults_flag:
        at = others.keyed.positions("Q")
        text = (
            f"{len(at)} defaults of parameters (Q) that the flag bits do not announce: readers that follow the "
            "specification say there are none; recover sets compatible bit 0"
        )
        yield Finding("flags", "warn", at[0], 0, text, count=len(at))
