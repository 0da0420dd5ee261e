"""What people see of results and logs at a prompt and in notebooks: tables of text and HTML."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Protocol

from logreel.errors import LogError
from logreel.log.scan import Schema, one_line, table
from logreel.log.times import duration_text

#: Longest text of a log that notebooks show.
LONGEST = 400


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


#: Bytes of a log up to which a notebook shows at once what happened, and a picture.
QUICK = 1 << 28
#: Width of the pictures of a log, in pixels.
PICTURE = 520
#: Problems and facts of a section that notebooks show, and subjects that they show otherwise.
PROBLEMS, FACTS, ELSEWHERE = 3, 6, ("recording", "text", "sensors", "topics")


def log_html(log: Any) -> str:
    """Return what a notebook shows of a log: what it is, problems, what happened, the first charts, and its channels.

    It needs no script, and asks for nothing. What cannot be read is left out: the problems say why.
    """
    channels = [ch for ch in log.channels.values() if not ch.reserved]
    span = "" if log.duration is None else f", {duration_text(log.duration)}"
    head = f"{log.name}: {log.format} {log.version}, {len(channels)} channels{span}"
    rows = [(ch.topic, ch.schema.name, *_numbers(ch, log.closed)) for ch in channels]
    listed = table("", ("topic", "type", "messages", "rate"), rows)
    if log.closed or not channels:
        return f"<div><p>{_escaped(head)}</p>{listed}</div>"
    parts = [f"<p><b>{_escaped(head)}</b></p>", _problems(log)]
    if log.size <= QUICK:
        for part in (_happened, _first_charts):
            with suppress(LogError, TypeError):
                parts.append(part(log))
    else:
        parts.append("<p>Large: <code>logreel.summary(log)</code> says what happened.</p>")
    folded = f"<details><summary>{len(channels)} channels</summary>{listed}</details>"
    return f"<div>{''.join(parts)}{folded}</div>"


def _problems(log: Any) -> str:
    """Return a line on the problems and lost bytes of a log, and its first problems."""
    problems = log.problems
    if not problems:
        return "<p>No problems.</p>"
    lost = sum(problem.size for problem in problems if problem.lost)
    count = f"{len(problems)} problem{'s' * (len(problems) != 1)}, {lost} bytes lost"
    shown = sorted(problems, key=lambda problem: not problem.lost)[:PROBLEMS]
    items = [f"<li>{_escaped(problem.text)} (at byte {problem.offset})</li>" for problem in shown]
    if len(problems) > PROBLEMS:
        items.append(f"<li>and {len(problems) - PROBLEMS} more in <code>log.problems</code></li>")
    return f'<p style="color:#c0392b"><b>{count}</b></p><ul>{"".join(items)}</ul>'


def _happened(log: Any) -> str:
    rows = []
    for section in log.services.verb("summary")(log):
        facts = [
            f'<span style="color:{"#c0392b" if fact.level < 4 else "#b07400"}">{text}</span>'
            if fact.level is not None
            else text
            for fact in section.facts[:FACTS]
            for text in [f"{_escaped(fact.label)} <b>{_escaped(fact.text)}</b>"]
        ]
        if section.key not in ELSEWHERE:
            facts += [f"and {len(section.facts) - FACTS} more"] if len(section.facts) > FACTS else []
            rows.append(f"<li>{_escaped(section.title)}: {'; '.join(facts)}</li>")
    return f"<ul>{''.join(rows)}</ul>" if rows else ""


def _first_charts(log: Any) -> str:
    """Return pictures of the charts that matter most."""
    still: str = log.services.verb("plot")(log).still(PICTURE)
    return still


def _escaped(text: str) -> str:
    """Return text of a log for HTML, on one line and of bounded length."""
    from html import escape

    shown = one_line(text)
    return escape(shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…")


def _numbers(ch: ShownChannel, closed: bool) -> tuple[str, str]:
    """Return the message count and the rate as text; both are empty if the log is closed."""
    if closed:
        return "", ""
    return str(len(ch)), "" if ch.rate is None else f"{ch.rate:.4g} Hz"
