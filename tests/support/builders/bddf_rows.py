"""Written BDDF files, read by the plain reader."""

from __future__ import annotations

from pathlib import Path

import logreel
from support.oracles import bddf as oracle

LINE = logreel.Schema("line", "text/plain")
FLOAT = logreel.Schema("float64", "bddf")
POINT = logreel.Schema("float32[2]", "bddf")
NUMBERED = {"additional_indexes": ["pid", "n"]}


def closed(path: Path) -> oracle.Closed:
    """Return the content of a complete file."""
    return oracle.closed(path.read_bytes())


def rows(path: Path) -> list[tuple[int, int, bytes, list[int]]]:
    """Return series, time, payload and additional indexes of each message of a complete file."""
    return [(row.series, row.ns, row.payload, row.numbers) for row in closed(path).rows]
