"""Logs and channels as small HTML tables for notebooks; everything that comes out of a log is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from logreel.errors import LogError
from logreel.log.times import duration_text

if TYPE_CHECKING:
    from logreel.log.channel import Channel
    from logreel.log.log import Log

#: Rows of a table in a notebook; the rest is counted.
ROWS = 50


def log_html(log: Log) -> str:
    """What a log is, and its channels."""
    channels = [ch for ch in log.channels.values() if not ch.reserved]
    span = "" if log.duration is None else f", {duration_text(log.duration)}"
    head = f"{log.name}: {log.format} {log.version}, {len(channels)} channels{span}"
    rows = [(ch.topic, ch.schema.name, *_numbers(ch)) for ch in channels]
    return _table(head, ("topic", "type", "messages", "rate"), rows)


def channel_html(ch: Channel) -> str:
    """What a channel holds, and its fields."""
    count, rate = _numbers(ch)
    head = f"{ch.topic} ({ch.schema.name}): {count} messages{rate and f', {rate}'}"
    try:
        rows = [(path,) for path in ch.fields]
    except LogError as error:
        rows = [(error.text,)]
    return _table(head, ("field",), rows)


def _numbers(ch: Channel) -> tuple[str, str]:
    if ch.log.closed:
        return "", ""
    return str(len(ch)), "" if ch.rate is None else f"{ch.rate:.4g} Hz"


def _table(head: str, names: Iterable[str], rows: Sequence[Sequence[str]]) -> str:
    cells = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows[:ROWS]]
    more = f"<p>and {len(rows) - ROWS} more</p>" if len(rows) > ROWS else ""
    top = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return f"<div><p>{escape(head)}</p><table><tr>{top}</tr>{body}</table>{more}</div>"
