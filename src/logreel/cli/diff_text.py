"""The result of ``logreel diff`` as tables that fit on a screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from logreel.cli import draw

if TYPE_CHECKING:
    from logreel.ops.inspect.diff import ChannelDiff, Difference, ValueDiff

#: Rows of a table that are printed without --all, if one thing differs, and if several do.
ROWS, FEW_ROWS = 20, 5
#: Characters of a cell that are printed without --all.
WIDTH = 26
#: The same for the last cell of a line that has no other long ones.
LONG = 60
#: A name or value that a log does not have.
ABSENT = "-"


class _Table(NamedTuple):
    """Differences of one kind; *width*: characters of a cell."""

    head: Sequence[str]
    rows: list[tuple[str, ...]]
    right: Sequence[int] = ()
    width: int = WIDTH


def show(found: Difference, whole: bool) -> None:
    """Print the difference of two logs.

    whole  True: print all rows and values in full
    """
    if found.same:
        draw.echo(f"{found.a} and {found.b}: no difference")
        return
    draw.echo(f"A  {found.a}  ({found.formats[0]})")
    draw.echo(f"B  {found.b}  ({found.formats[1]})")
    tables = [
        _Table(("log", "A", "B"), [_fact_row(one) for one in found.log], (1, 2)),
        _Table(
            ("metadata", "A", "B"),
            [row for one in found.metadata for row in _value_rows(one.name, one.a, one.b)],
        ),
        _Table(("parameter", "A", "B"), [_parameter_row(one) for one in _with_values_first(found)], (1, 2)),
        _Table(("attachment", "A", "B"), [_attachment_row(one) for one in found.attachments], (1, 2)),
        *_topic_tables(found, whole),
        _Table(("only in", "time", "level", "text"), list(_line_rows(found)), (1,), LONG),
    ]
    tables = [one for one in tables if one.rows]
    limit = ROWS if len(tables) == 1 else FEW_ROWS
    for one in tables:
        draw.echo()
        rows = one.rows if whole else [_cut_row(row, one.width) for row in one.rows[:limit]]
        draw.table(one.head, rows, one.right)
        if len(rows) < len(one.rows):
            draw.echo(f"… {len(one.rows) - len(rows)} more, --all")
    _show_definitions(found, whole, limit)


def _cut_row(row: tuple[str, ...], width: int) -> tuple[str, ...]:
    """Return the cells of a row, the long ones cut; values that begin alike are cut where they differ."""
    name, *cells = row
    start = 0
    if len(cells) == 2 and min(map(len, cells)) > width:
        common = next((i for i, (a, b) in enumerate(zip(*cells, strict=False)) if a != b), 0)
        start = max(common - width // 2, 0) if common > width * 3 // 4 else 0
    shown = [f"…{cell[start + 1 :]}" if start else cell for cell in cells]
    return (_cut(name, max(width, 40)), *(_cut(cell, width) for cell in shown))


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _fact_row(change: ValueDiff) -> tuple[str, ...]:
    """Return a row for a number or text; names of times end in ``_ns``."""
    name = change.name.removesuffix("_ns")
    return name, *(_text(value, is_time=name != change.name) for value in (change.a, change.b))


def _text(value: Any, is_time: bool = False) -> str:
    from logreel.log.times import seconds_text

    if value is None:
        return ABSENT
    if is_time and isinstance(value, int):
        return f"{seconds_text(value)} s"
    if isinstance(value, float):
        return f"{value:.6g}"
    return value if isinstance(value, str) else draw.value_text(value)


def _value_rows(name: str, a: Any, b: Any) -> Iterator[tuple[str, ...]]:
    """Yield a row for each value of metadata that differs; those inside of mappings have names with dots."""
    sides = [{} if one is None else one for one in (a, b)]
    if any(sides) and isinstance(sides[0], dict) and isinstance(sides[1], dict):
        for key in dict.fromkeys([*sides[0], *sides[1]]):
            one, two = (side.get(key) for side in sides)
            if one != two:
                yield from _value_rows(f"{name}.{key}", one, two)
        return
    yield name, *(_of_list(value) if isinstance(value, list) else _text(value) for value in (a, b))


def _of_list(value: list[Any]) -> str:
    nested = any(isinstance(one, (list, dict)) for one in value)
    return f"{len(value)} entries" if nested else draw.value_text(value)


def _with_values_first(found: Difference) -> list[ValueDiff]:
    """Return the changes of parameters, those that both logs have first."""
    return sorted(found.parameters, key=lambda change: change.a is None or change.b is None)


def _parameter_row(change: ValueDiff) -> tuple[str, ...]:
    name = change.name
    for kind, label in ((list, "changes"), (dict, "defaults")):
        if isinstance(change.a, kind) or isinstance(change.b, kind):
            name = f"{name.removesuffix(f'.{label}')}, {label}"
    return name, *(_parameter_text(value) for value in (change.a, change.b))


def _parameter_text(value: Any) -> str:
    from logreel.log.times import seconds_text

    match value:
        case list():
            changes = (f"{draw.value_text(c['value'])} at {seconds_text(c['time_ns'])} s" for c in value)
            return ", ".join(changes) or "none"
        case dict():
            return ", ".join(f"{draw.value_text(v)} ({kind})" for kind, v in value.items()) or "none"
    return ABSENT if value is None else draw.value_text(value)


def _attachment_row(change: ValueDiff) -> tuple[str, ...]:
    """Return sizes, and the beginnings of checksums if the sizes are equal."""
    sides = [one or {} for one in (change.a, change.b)]
    texts = [draw.size_text(one["size"]) if one else ABSENT for one in sides]
    if texts[0] == texts[1]:
        texts = [f"{text}, {one['sha256'][:8]}" for text, one in zip(texts, sides, strict=True)]
    return change.name, *texts


def _topic_tables(found: Difference, whole: bool) -> Iterator[_Table]:
    """Yield a table of the topics, or with *whole* of each change, and one of the messages."""
    differing = [ch for ch in found.channels if not ch.same]
    if "topics" in found.only:
        if whole:
            rows = [row for ch in differing for row in _change_rows(ch)]
            yield _Table(("topic", "what", "A", "B"), rows, (2, 3))
        else:
            rows = [(ch.topic, *_counts(ch), _other_changes(ch)) for ch in differing]
            rows = [
                row for row, ch in zip(rows, differing, strict=True) if row[3] or len(set(ch.messages)) > 1
            ]
            yield _Table(("topic", "messages A", "B", "other differences"), rows, (1, 2), LONG)
    if "messages" in found.only:
        compared = [(ch.topic, ch.compared) for ch in differing if ch.compared is not None]
        rows = [
            (topic, *map(str, (one.equal, one.changed, one.only_a, one.only_b)), one.first_text())
            for topic, one in compared
            if not one.same
        ]
        if "topics" not in found.only:
            rows += [(ch.topic, "0", "0", *map(str, ch.messages), "") for ch in differing if ch.only]
        head = ("messages of", "equal", "changed", "only in A", "only in B", "first difference")
        yield _Table(head, rows, (1, 2, 3, 4), LONG)


def _counts(ch: ChannelDiff) -> tuple[str, str]:
    a, b = map(str, ch.messages)
    return (a, ABSENT) if ch.only == "a" else (ABSENT, b) if ch.only == "b" else (a, b)


def _other_changes(ch: ChannelDiff) -> str:
    """Return all differences but the number of messages, in a line."""
    told = [
        f"{change.name} {_text(change.a)} → {_text(change.b)}"
        for change in ch.changes
        if change.name in ("type", "encoding")
    ]
    told += ["definition"] if ch.schema else []
    # Rates that look equal differ as little as the times do, which are named.
    rates = [draw.rate_text(rate) or ABSENT for c in ch.changes if c.name == "rate" for rate in (c.a, c.b)]
    told += [f"rate {rates[0]} → {rates[1]}"] if len(set(rates)) > 1 else []
    told += [
        change.name.removesuffix("_ns") for change in ch.changes if change.name in ("start_ns", "end_ns")
    ]
    told += [change.name for change in ch.changes if change.name.startswith("metadata.")]
    told += [f"{len(ch.fields)} fields"] if ch.fields else []
    return ", ".join(told)


def _change_rows(ch: ChannelDiff) -> Iterator[tuple[str, ...]]:
    if ch.only:
        yield ch.topic, "messages", *_counts(ch)
    for change in ch.changes:
        yield ch.topic, *_fact_row(change)
    for change in ch.fields:
        sides = [one or {} for one in (change.a, change.b)]
        for name in dict.fromkeys([*sides[0], *sides[1]]):
            a, b = (one.get(name) for one in sides)
            if a != b:
                yield ch.topic, f"{change.name}, {name}", _text(a), _text(b)


def _line_rows(found: Difference) -> Iterator[tuple[str, ...]]:
    from logreel.log.times import seconds_text
    from logreel.ops.inspect.text import level_name

    for line in found.text:
        source = f"[{line.source}] " if line.source else ""
        where = line.only.upper()
        yield where, f"{seconds_text(line.time_ns)} s", level_name(line.level), f"{source}{line.text}"


def _show_definitions(found: Difference, whole: bool, limit: int) -> None:
    """Print the differences of the definitions, if they are short or everything is wanted."""
    schemas = [ch.schema.splitlines() for ch in found.channels if ch.schema]
    if not schemas:
        return
    draw.echo()
    if whole or sum(map(len, schemas)) <= limit:
        for line in (line for lines in schemas for line in lines):
            draw.echo(line)
    else:
        draw.echo(f"definitions of {len(schemas)} topic{'s' * (len(schemas) > 1)} differ, --all shows how")
