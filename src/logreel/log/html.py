"""Small HTML tables for notebooks; all text from a log is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

#: Rows that a table shows; further rows are counted.
ROWS = 50


def table(head: str, names: Iterable[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of *rows* with column *names* as HTML, below the line *head*."""
    cells = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows[:ROWS]]
    more = f"<p>and {len(rows) - ROWS} more</p>" if len(rows) > ROWS else ""
    top = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return f"<div><p>{escape(head)}</p><table><tr>{top}</tr>{body}</table>{more}</div>"
