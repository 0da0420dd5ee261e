"""Small HTML tables for notebooks; everything that comes out of a log is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

#: Rows of a table in a notebook; the rest is counted.
ROWS = 50


def table(head: str, names: Iterable[str], rows: Sequence[Sequence[str]]) -> str:
    cells = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows[:ROWS]]
    more = f"<p>and {len(rows) - ROWS} more</p>" if len(rows) > ROWS else ""
    top = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return f"<div><p>{escape(head)}</p><table><tr>{top}</tr>{body}</table>{more}</div>"
