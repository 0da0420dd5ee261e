"""Small HTML tables for notebooks; all text from a log is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Protocol

from logreel.errors import LogError
from logreel.log.schema import Schema
from logreel.log.times import duration_text

#: Rows that a table shows; further rows are counted.
ROWS = 50


class ShownChannel(Protocol):
    """The part of a Channel that tables show."""

    topic: str
    schema: Schema

    def __len__(self) -> int: ...

    @property
    def rate(self) -> float | None: ...

    @property
    def fields(self) -> list[str]: ...


def channel_table(ch: ShownChannel, closed: bool) -> str:
    """Return the fields of a channel; *closed*: whether its log is, so that nothing can be counted."""
    count, rate = _numbers(ch, closed)
    head = f"{ch.topic} ({ch.schema.name}): {count} messages{rate and f', {rate}'}"
    try:
        rows = [(path,) for path in ch.fields]
    except LogError as error:
        rows = [(error.text,)]
    return table(head, ("field",), rows)


def log_table(log: Any) -> str:
    """Return the channels of a log below a line about it as a whole."""
    channels = [ch for ch in log.channels.values() if not ch.reserved]
    span = "" if log.duration is None else f", {duration_text(log.duration)}"
    head = f"{log.name}: {log.format} {log.version}, {len(channels)} channels{span}"
    rows = [(ch.topic, ch.schema.name, *_numbers(ch, log.closed)) for ch in channels]
    return table(head, ("topic", "type", "messages", "rate"), rows)


def _numbers(ch: ShownChannel, closed: bool) -> tuple[str, str]:
    """Return the message count and the rate as text; both are empty if the log is closed."""
    if closed:
        return "", ""
    return str(len(ch)), "" if ch.rate is None else f"{ch.rate:.4g} Hz"


def table(head: str, names: Iterable[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of *rows* with column *names* as HTML, below the line *head*."""
    cells = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows[:ROWS]]
    more = f"<p>and {len(rows) - ROWS} more</p>" if len(rows) > ROWS else ""
    top = "".join(f"<th>{escape(name)}</th>" for name in names)
    top = f"<tr>{top}</tr>" if top else ""
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return f"<div><p>{escape(head)}</p><table>{top}{body}</table>{more}</div>"
