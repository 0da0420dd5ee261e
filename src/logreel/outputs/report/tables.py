"""Tables of a report: topics, text, parameters and problems, each with a bounded number of rows."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.ops.inspect.params import differs
from logreel.ops.inspect.text import level_name
from logreel.outputs.plot.printable import printable

if TYPE_CHECKING:
    from logreel.log.log import Channel, Log
    from logreel.log.scan import Parameter, TextLine

#: Most rows of each table, and the longest text of a cell.
ROWS, LONGEST = 2000, 400
#: Messages of a channel whose times are compared; longer channels get no longest gap.
COMPARED = 5_000_000


def cell_text(value: object, longest: int = LONGEST) -> str:
    """Return *value* as escaped text for HTML, on one line and of bounded length."""
    text = " ".join(str(value).split())
    if len(text) > longest:
        text = text[: longest - 1] + "…"
    return escape(printable(text), True)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Return a table of cells that are HTML; *right*: columns of numbers."""
    style = [' class="n"' if i in right else "" for i in range(len(head))]
    titles = "".join(f'<th scope="col"{s}>{escape(h)}</th>' for h, s in zip(head, style, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{s}>{c}</td>" for c, s in zip(row, style, strict=True)) + "</tr>"
        for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>'


def more(total: int, what: str) -> str:
    """Return a note on rows that are left out; empty for none."""
    return f'<p class="note">{total - ROWS} more {what} are not shown.</p>' if total > ROWS else ""


def topics(log: Log) -> str:
    """Return the table of channels: messages, rate, longest gap, and bytes."""
    channels = [ch for ch in log.channels.values() if len(ch)]
    empty = [ch.topic for ch in log.channels.values() if not len(ch) and not ch.reserved]
    sizes = log.index.sizes_are_cheap
    rows = []
    for ch in channels[:ROWS]:
        rate = ch.rate
        rows.append(
            (
                cell_text(ch.topic),
                cell_text(ch.schema.name),
                str(len(ch)),
                "" if rate is None else f"{rate:.4g} Hz",
                _longest(ch),
                _bytes(ch.bytes) if sizes else "",
            )
        )
    head = ("Topic", "Type", "Messages", "Rate", "Longest gap", "Size")
    out = table(head, rows, (2, 3, 4, 5)) + more(len(channels), "topics")
    if empty:
        names = cell_text(", ".join(empty), 2000)
        out += f'<p class="note">Without messages: {names}</p>'
    return out


def _longest(ch: Channel) -> str:
    if not 1 < len(ch) <= COMPARED:
        return ""
    return f"{int(np.diff(np.sort(ch.times)).max()) / 1e9:.3f} s"


def _bytes(size: int) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size //= 1000
    return f"{size} {unit}"


def text(lines: Sequence[TextLine], moment: Callable[[int], str]) -> str:
    """Return the table of text lines; if there are too many, the most severe."""
    some = list(lines)
    if len(some) > ROWS:
        chosen = sorted(range(len(some)), key=lambda i: (7 if some[i].level is None else some[i].level, i))[
            :ROWS
        ]
        some = [some[i] for i in sorted(chosen)]
    rows = []
    for line in some:
        level = level_name(line.level)
        rows.append(
            (
                moment(line.time),
                f'<span class="{_severity(line.level)}">{level}</span>',
                cell_text(line.source, 60),
                cell_text(line.text),
            )
        )
    return table(("Time", "Level", "Source", "Text"), rows, (0,)) + more(
        len(lines), "lines of less severe levels"
    )


def _severity(level: int | None) -> str:
    if level is None or level > 4:
        return "note"
    return "warn" if level == 4 else "bad"


def parameters(found: Sequence[Parameter], moment: Callable[[int], str]) -> str:
    """Return the table of parameters: changed ones first, then those that differ from a default."""
    order = sorted(found, key=lambda p: (not p.changes, not differs(p), p.name))
    rows = []
    for one in order[:ROWS]:
        changes = ", ".join(f"{moment(c.time)} → {cell_text(_short(c.value), 40)}" for c in one.changes[:8])
        if len(one.changes) > 8:
            changes += f" and {len(one.changes) - 8} more"
        defaults = ", ".join(f"{value}" for value in dict.fromkeys(map(_short, one.defaults.values())))
        rows.append(
            (cell_text(one.name, 80), cell_text(_short(one.value), 60), cell_text(defaults, 60), changes)
        )
    return table(("Parameter", "Value", "Default", "Changes"), rows, (1, 2)) + more(len(found), "parameters")


def _short(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.7g}"
    if isinstance(value, bytes):
        return base64.b64encode(value[:30]).decode()
    return str(value)


def problems(log: Log) -> str:
    """Return the table of problems with their places in the file."""
    rows = [
        (
            str(problem.offset),
            str(problem.size),
            '<span class="bad">yes</span>' if problem.lost else "no",
            cell_text(problem.code, 40),
            cell_text(problem.text),
        )
        for problem in log.problems[:ROWS]
    ]
    return table(("Byte", "Bytes", "Lost", "Code", "What"), rows, (0, 1)) + more(
        len(log.problems), "problems"
    )


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """Return pairs of label and value as a list."""
    return (
        "<dl>"
        + "".join(f"<div><dt>{escape(a)}</dt><dd>{cell_text(b)}</dd></div>" for a, b in pairs)
        + "</dl>"
    )


def metadata(log: Log) -> str:
    """Return the table of metadata that are short values."""
    rows = [
        (cell_text(name, 80), cell_text(_short(value), 200))
        for name, value in log.metadata.items()
        if isinstance(value, (str, int, float)) and len(str(value)) < LONGEST
    ]
    return table(("Name", "Value"), rows[:ROWS])
