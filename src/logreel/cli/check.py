"""Verbs that judge logs: check, health and diff."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from logreel.cli import draw, inputs, options
from logreel.cli.help import shell_lines, verb
from logreel.errors import SEVERITIES

if TYPE_CHECKING:
    from logreel.errors import Finding, Severity
    from logreel.lenses.facts import Detection
    from logreel.log.log import Log
    from logreel.ops.health.health import Health
    from logreel.ops.inspect.check import Checked
    from logreel.ops.inspect.diff import ChannelDiff, Difference, ValueDiff
    from logreel.ops.selection import Selection

#: Number of findings with the same code that check prints; more are counted.
LINES = 20
#: Seconds before and after a detection that its slice contains.
AROUND = 2
#: Findings of one detector and bound that health prints.
LISTED = 10
SECOND = 10**9
#: Rows of a table of diff that are printed without --all, if one thing differs, and if several do.
ROWS, FEW_ROWS = 20, 5
#: Characters of a cell that diff prints without --all.
WIDTH = 26
#: The same for the last cell of a line that has no other long ones.
LONG = 60
#: A name or value that a log does not have.
ABSENT = "-"


def fail_on(default: str) -> options.Declare:
    """Return a decorator that adds the option for the lowest severity of findings that is a failure."""
    return click.option(
        "--fail-on",
        type=click.Choice(SEVERITIES),
        default=default,
        show_default=True,
        help="Lowest severity that gives exit code 4.",
    )


def _known_types(with_types: bool, rules: tuple[str, ...], wanted: tuple[str, ...]) -> dict[str, Any]:
    """Return what types are compared with, as keyword arguments of the library."""
    return {"types": with_types, "rules": rules, "to": wanted}


@verb(
    examples={
        "logreel check flight.ulg": "damage and irregularities of a log",
        "logreel check logs --fail-on error": "exit code 4 only for errors in the logs of a folder",
        "logreel check --learn logs -o contract.toml": "what good logs have in common, as a contract",
    },
)
@fail_on("warn")
@click.option(
    "--contract", metavar="FILE", type=options.FILE, help="TOML file with further requirements on the log."
)
@click.option("--max-size", metavar="SIZE", help="A log of more than this is an error: 10MB, 1GiB.")
@click.option(
    "--learn",
    is_flag=True,
    help="Take all logs as good ones, and write a contract of what they have in common, with headroom.",
)
@click.option(
    "--update",
    metavar="CONTRACT",
    type=options.FILE,
    help="Learn into this contract, and keep what a person changed in it; with -o into another file.",
)
@options.as_object(
    "known",
    _known_types,
    click.option(
        "--types",
        "with_types",
        is_flag=True,
        help="Also compare types with known definitions: what would have to be migrated.",
    ),
    options.rules,
    options.wanted,
)
@options.selection()
@inputs.text_output
@inputs.logs("segment", "decrypt", "definitions")
@options.answer
def check(
    logs: inputs.Logs,
    fail_on: Severity,
    contract: str | None,
    max_size: str | None,
    learn: bool,
    update: str | None,
    known: dict[str, Any],
    selection: Selection,
    as_json: bool,
) -> int:
    """Check logs for defects: damage, checksums, index, definitions, clocks, gaps, duplicates.

    -t, -x, -S, -E and --where limit what is checked of messages: order, gaps, duplicates, dropouts, types, contract.
    Damage, checksums, index, payloads and definitions are always those of the whole file.

    --types, --rules and --to name what migrate would do. --json prints one object per log, each on one line. If a log
    cannot be opened, the others are still checked.

    --learn prints no findings, but writes a contract with what all logs have in common, with margins and the figures
    of each line.
    """
    from logreel.cli.exits import FOUND
    from logreel.errors import UsageError
    from logreel.ops.inspect.check import check as look

    if learn or update is not None:
        if as_json or contract is not None or max_size is not None or any(known.values()):
            raise UsageError("--learn writes a contract, and goes with -t, -x, --update and -o only")
        return _learn(logs, selection, update)
    required = None
    if contract is not None:
        from logreel.ops.inspect.contract import read_contract

        required = read_contract(contract)
    if max_size is not None:
        from logreel.ops.inspect.contract import Contract

        rules_of, topics = ({}, {}) if required is None else (required.rules, required.topics)
        required = Contract({**rules_of, "max_size": options.bytes_of(max_size)}, topics)
    chosen = options.members_of(selection)

    def answer(names: inputs.Names) -> Checked:
        with logs.open(names) as log:
            inputs.note_decrypted(log)
            return look(log, **chosen, contract=required, **known)

    results, code = inputs.print_each(logs, answer, _show_findings, as_json)
    return code or (FOUND if any(result.worse(fail_on) for result in results) else 0)


def _learn(logs: inputs.Logs, selection: Selection, update: str | None) -> int:
    """Print the contract that is learned from the logs, or write it into *update* where -o names no other file."""
    from logreel.errors import UsageError
    from logreel.ops.inspect.learn import learn_contract

    chosen = {name: value for name, value in options.members_of(selection).items() if value}
    if chosen.keys() - {"topics", "exclude"}:
        raise UsageError("a contract is learned from whole logs: leave -S, -E and --where out")

    def opened() -> Iterator[Log]:
        for names in logs.each:
            with logs.open(names) as log:
                inputs.note_decrypted(log, writes=is_in_place)
                yield log

    is_in_place = update is not None and click.get_current_context().params.get("out") is None
    learned = learn_contract(opened(), **chosen, update=update)
    if update is not None and is_in_place:
        learned.save(update, force=True)
    else:
        sys.stdout.write(learned.toml)
    count, kept, missing = len(learned.runs), len(learned.kept), len(learned.left_out)
    told = f"learned from {count} run{'s' * (count > 1)}"
    told += f", kept {kept} line{'s' * (kept > 1)} of yours" if kept else ""
    told += f"; not learned: {missing}, named at the end of the contract" if missing else ""
    draw.say(told)
    if is_in_place:
        draw.say(f"wrote {update}")
    return 0


def _show_findings(result: Checked) -> None:
    """Print the findings of one log, at most LINES for each code; each line of a pipe names the log."""
    if not result.worse("warn"):
        draw.echo(f"{result.path}: sound")
    elif sys.stdout.isatty():
        draw.echo_head(result.path)
    seen: Counter[str] = Counter()
    for finding in result.findings:
        seen[finding.code] += 1
        if seen[finding.code] <= LINES:
            _show_line(result, finding.severity, f"{finding.code}: {_finding_text(finding)}")
    for code, n in seen.items():
        if n > LINES:
            _show_line(result, "", f"and {n - LINES} more of {code}; --json has them all")


def _show_line(result: Checked, severity: str, text: str) -> None:
    """Print a line about a log: below its name on a terminal, behind it in a pipe."""
    if sys.stdout.isatty():
        draw.echo_wrapped(f"  {severity:<7}", text)
    else:
        draw.echo(": ".join([result.path, *([severity] if severity else []), text]))


def _finding_text(finding: Finding) -> str:
    """Return topic, text and place of a finding as one line."""
    from logreel.log.times import seconds_text

    place = [f"at byte {finding.offset}"] if finding.offset is not None else []
    place += [f"at {seconds_text(finding.time_ns)} s"] if finding.time_ns is not None else []
    where = f" ({', '.join(place)})" if place else ""
    return f"{finding.topic}: {finding.text}{where}" if finding.topic else f"{finding.text}{where}"


@verb(
    examples={
        "logreel health drive.bag": "faults of the robot, with the interval of each",
        "logreel health logs --fail-on warn": "exit code 4 if any log in a folder has a warning or an error",
    },
)
@click.option(
    "--detector",
    "detectors",
    multiple=True,
    metavar="NAME",
    help="Run only this detector, or those that match a pattern; may be repeated.",
)
@fail_on("error")
@options.selection("topics", "exclude", "start", "end", "where", "segment")
@inputs.text_output
@inputs.logs("decrypt", "definitions")
@options.answer
def health(
    logs: inputs.Logs,
    detectors: tuple[str, ...],
    fail_on: Severity,
    selection: Selection,
    as_json: bool,
) -> int:
    """Look for faults of the robot: silent and stuck sensors, clocks, losses, vibration, failsafes …

    Findings of a detector are listed together, worst first, each with its interval and the measured value, then the
    bound and the command that slices the worst one from the log. The end lists detectors without a finding, and what
    could not be assessed. For several logs, a table follows. If a detector fails, only its result is missing; the exit
    code is 3.
    """
    from logreel.cli.exits import FOUND, LOST
    from logreel.ops.health.health import health as look

    def assessed(log: Log) -> Health:
        return look(log, detectors or None, **options.members_of(selection))

    results, code, lost = inputs.answer_each(logs, assessed, _show_health, as_json)
    if len(results) > 1 and not as_json:
        _show_table(results)
    for result in results:
        for name, error in result.failed:
            draw.say(f"{result.path}: the detector {name} failed: {error}")
    if any(result.worse(fail_on) for result in results):
        return code or FOUND
    return code or (LOST if any(result.failed for result in results) else lost)


def _show_health(result: Health) -> None:
    """Print the result for people: findings of one detector together, worst first, each bound and command once."""
    draw.echo_head(result.path)
    groups: dict[str, dict[str, list[Detection]]] = {}
    for detection in result.detections:
        source = f" ({detection.source})" if detection.source not in ("", "logreel") else ""
        bound = f"{detection.threshold}{source}"
        groups.setdefault(detection.detector, {}).setdefault(bound, []).append(detection)
    for detector, by_bound in groups.items():
        draw.echo(f"  {detector}")
        for bound, group in by_bound.items():
            for detection in group[:LISTED]:
                draw.echo_wrapped(f"    {detection.severity:<7}", detection.text)
            if len(group) > LISTED:
                draw.echo(f"    and {len(group) - LISTED} more; --json lists all")
            if bound:
                draw.echo_wrapped("    bound  ", bound)
        # Of the worst one: an interval that holds all of them may be the whole log.
        line = draw.safe(_slice_line(result, next(iter(by_bound.values()))[0]))
        for part in shell_lines(line, draw.width(), 11) if sys.stdout.isatty() else [f"{' ' * 11}{line}"]:
            draw.echo(part)
    if not result.detections:
        draw.echo("  nothing found")
    for name, text in result.clean:
        draw.echo_wrapped("  ok    ", f"{name}: {text}")
    for name, text in result.not_assessed:
        draw.echo_wrapped("  -     ", f"{name}: not assessed, {text}")
    for name, text in result.failed:
        draw.echo_wrapped("  !     ", f"{name}: failed and found nothing, {text}")


def _show_table(logs: Sequence[Health]) -> None:
    """Print one line for each of several logs: findings by severity, and by detector."""
    rows = []
    for log in logs:
        counts: Counter[str] = Counter(detection.severity for detection in log.detections)
        detectors = Counter(detection.detector for detection in log.detections)
        names = [f"{name} {n}" if n > 1 else name for name, n in detectors.items()]
        numbers = [str(counts[severity] or "") for severity in SEVERITIES]
        rows.append((log.path, *numbers, str(len(log.failed) or ""), ", ".join(names) or "nothing found"))
    draw.echo()
    used = [i for i in range(6) if i in (0, 5) or any(row[i] for row in rows)]
    head = ("log", *SEVERITIES, "failed", "findings")
    draw.table(
        [head[i] for i in used], [[row[i] for i in used] for row in rows], right=range(1, len(used) - 1)
    )


def _slice_line(result: Health, detection: Detection) -> str:
    """Return the command that cuts the interval of a detection out of the log, with some seconds around it."""
    zero, last = result.start_ns or 0, result.end_ns or 0
    # Detections may lie before or behind the log, whose ends leave out single messages with other times.
    start, end = (min(max(time, zero), last) for time in (detection.start, detection.end))
    begin = max((start - zero) / SECOND - AROUND, 0)
    stem, suffix = os.path.splitext(os.path.basename(result.path))
    out = f"{stem}_{detection.detector}{suffix}"
    segment = "" if result.segment is None else f" --segment {result.segment}"
    interval = f"-S +{begin:.1f}s -E +{(end - zero) / SECOND + AROUND:.1f}s"
    return f"logreel slice {shlex.quote(result.path)}{segment} {interval} -o {shlex.quote(out)}"


_both = click.argument("files", metavar="A B", nargs=-1, required=True, type=options.FILE)


@verb(
    examples={
        "logreel diff first.ulg second.ulg": "what differs between two logs",
        "logreel diff first.ulg second.ulg --only params,text": "compare parameters and lines of text",
        "logreel diff first.ulg second.ulg --messages -t 'sensor_*'": "also compare the messages of some channels",
    },
)
@options.selection("topics", "exclude", "start", "end")
@click.option("--fields", is_flag=True, help="Also compare minimum, mean and maximum of every numeric field.")
@click.option("--messages", is_flag=True, help="Also compare times and bytes of all messages.")
@click.option(
    "--only",
    multiple=True,
    metavar="WHAT",
    callback=lambda context, option, texts: [name for text in texts for name in text.split(",") if name],
    help="Compare only this: log, metadata, params, attachments, topics, messages or text; several with commas.",
)
@click.option("--all", "in_full", is_flag=True, help="Print long lists and values in full.")
@inputs.text_output
@inputs.logs("segment", "decrypt", "definitions", files=_both)
@options.answer_with_keys
def diff(
    logs: inputs.Logs,
    selection: Selection,
    fields: bool,
    messages: bool,
    only: list[str],
    in_full: bool,
    as_json: bool,
) -> int:
    """Compare two logs; with --as-one, also folders or patterns of the parts of two recordings.

    Compares topics, definitions, parameters, metadata, attachments, counts, times and rates, and on request messages
    and text. The exit code is 0 if nothing differs, else 4.
    """
    from logreel.cli.exits import FOUND
    from logreel.errors import UsageError
    from logreel.ops.inspect.diff import diff as look
    from logreel.registry.open import open_many

    if len(logs.names) != 2:
        raise UsageError(f"diff compares two logs, A and B, not {len(logs.names)}")
    both = [
        inputs.Logs((name,), logs.as_one, logs.anyway).only(f"{name}: one side is one log")
        for name in logs.names
    ]
    with contextlib.ExitStack() as stack:
        opened = open_many(both, stack, parts=True, anyway=logs.anyway, **logs.opening)
        for log in opened:
            inputs.note_decrypted(log)
        chosen = options.members_of(selection)
        difference = look(*opened, **chosen, fields=fields, messages=messages, only=only or None)
    if as_json:
        draw.echo_json(difference.as_dict())
    else:
        _show_difference(difference, in_full)
    return 0 if difference.same else FOUND


class _Table(NamedTuple):
    """Differences of one kind; *width*: characters of a cell."""

    head: Sequence[str]
    rows: list[tuple[str, ...]]
    right: Sequence[int] = ()
    width: int = WIDTH


def _show_difference(difference: Difference, in_full: bool) -> None:
    """Print the difference of two logs.

    in_full  True: print all rows and values in full
    """
    if difference.same:
        draw.echo(f"{difference.a} and {difference.b}: no difference")
        return
    draw.echo(f"A  {difference.a}  ({difference.formats[0]})")
    draw.echo(f"B  {difference.b}  ({difference.formats[1]})")
    tables = [
        _Table(("log", "A", "B"), [_fact_row(fact) for fact in difference.log], (1, 2)),
        _Table(
            ("metadata", "A", "B"),
            [row for value in difference.metadata for row in _value_rows(value.name, value.a, value.b)],
        ),
        _Table(
            ("parameter", "A", "B"),
            [_parameter_row(parameter) for parameter in _with_values_first(difference)],
            (1, 2),
        ),
        _Table(
            ("attachment", "A", "B"),
            [_attachment_row(attachment) for attachment in difference.attachments],
            (1, 2),
        ),
        *_topic_tables(difference, in_full),
        _Table(("only in", "time", "level", "text"), list(_line_rows(difference)), (1,), LONG),
    ]
    tables = [table for table in tables if table.rows]
    limit = ROWS if len(tables) == 1 else FEW_ROWS
    for table in tables:
        draw.echo()
        rows = table.rows if in_full else [_cut_row(row, table.width) for row in table.rows[:limit]]
        draw.table(table.head, rows, table.right)
        if len(rows) < len(table.rows):
            draw.echo(f"… {len(table.rows) - len(rows)} more, --all")
    _show_definitions(difference, in_full, limit)


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
    sides = [{} if side_value is None else side_value for side_value in (a, b)]
    if any(sides) and isinstance(sides[0], dict) and isinstance(sides[1], dict):
        for key in dict.fromkeys([*sides[0], *sides[1]]):
            of_a, of_b = (side.get(key) for side in sides)
            if of_a != of_b:
                yield from _value_rows(f"{name}.{key}", of_a, of_b)
        return
    yield name, *(_of_list(value) if isinstance(value, list) else _text(value) for value in (a, b))


def _of_list(value: list[Any]) -> str:
    nested = any(isinstance(item, (list, dict)) for item in value)
    return f"{len(value)} entries" if nested else draw.value_text(value)


def _with_values_first(difference: Difference) -> list[ValueDiff]:
    """Return the changes of parameters, those that both logs have first."""
    return sorted(difference.parameters, key=lambda change: change.a is None or change.b is None)


def _parameter_row(change: ValueDiff) -> tuple[str, ...]:
    name = change.name
    for side_type, label in ((list, "changes"), (dict, "defaults")):
        if isinstance(change.a, side_type) or isinstance(change.b, side_type):
            name = f"{name.removesuffix(f'.{label}')}, {label}"
    return name, *(_parameter_text(value) for value in (change.a, change.b))


def _parameter_text(value: Any) -> str:
    from logreel.log.times import seconds_text

    match value:
        case list():
            changes = (f"{draw.value_text(c['value'])} at {seconds_text(c['time_ns'])} s" for c in value)
            return ", ".join(changes) or "none"
        case dict():
            return ", ".join(f"{draw.value_text(v)} ({origin})" for origin, v in value.items()) or "none"
    return ABSENT if value is None else draw.value_text(value)


def _attachment_row(change: ValueDiff) -> tuple[str, ...]:
    """Return sizes, and the beginnings of checksums if the sizes are equal."""
    sides = [side or {} for side in (change.a, change.b)]
    texts = [draw.size_text(side["size"]) if side else ABSENT for side in sides]
    if texts[0] == texts[1]:
        texts = [f"{text}, {side['sha256'][:8]}" for text, side in zip(texts, sides, strict=True)]
    return change.name, *texts


def _topic_tables(difference: Difference, in_full: bool) -> Iterator[_Table]:
    """Yield tables of the topics and of their fields, or with *in_full* of each change, and one of the messages."""
    from logreel.ops.inspect.diff import rank

    differing = [ch for ch in difference.channels if not ch.same]
    if "topics" in difference.only:
        if in_full:
            rows = [row for ch in differing for row in _change_rows(ch)]
            yield _Table(("topic", "what", "A", "B"), rows, (2, 3))
        else:
            rows = [(ch.topic, *_counts(ch), _other_changes(ch)) for ch in differing]
            rows = [
                row for row, ch in zip(rows, differing, strict=True) if row[3] or len(set(ch.messages)) > 1
            ]
            yield _Table(("topic", "messages A", "B", "other differences"), rows, (1, 2), LONG)
    changed = sorted(
        ((field.name, field.a, field.b, ch.topic) for ch in differing for field in ch.fields),
        key=lambda row: rank(row[0], _distance(row[1], row[2])),
    )
    if not in_full:
        rows = [(f"{topic}.{name}", _statistics(a), _statistics(b)) for name, a, b, topic in changed]
        yield _Table(("field: min, mean, max, rms", "A", "B"), rows, (1, 2), LONG)
    if "messages" in difference.only:
        compared = [(ch.topic, ch.compared) for ch in differing if ch.compared is not None]
        rows = [
            (
                topic,
                *map(str, (messages.equal, messages.changed, messages.only_a, messages.only_b)),
                messages.first_text(),
            )
            for topic, messages in compared
            if not messages.same
        ]
        if "topics" not in difference.only:
            rows += [(ch.topic, "0", "0", *map(str, ch.messages), "") for ch in differing if ch.only]
        head = ("messages of", "equal", "changed", "only in A", "only in B", "first difference")
        yield _Table(head, rows, (1, 2, 3, 4), LONG)


def _distance(*sides: dict[str, Any] | None) -> float | None:
    from logreel.ops.inspect.stats import FieldStats, distance

    return distance([None if side is None else FieldStats("", **side) for side in sides])


def _statistics(side: dict[str, Any] | None) -> str:
    return ABSENT if side is None else ", ".join(_text(side[name]) for name in ("min", "mean", "max", "rms"))


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
    told += [f"{len(ch.fields)} field{'s' * (len(ch.fields) > 1)}"] if ch.fields else []
    return ", ".join(told)


def _change_rows(ch: ChannelDiff) -> Iterator[tuple[str, ...]]:
    if ch.only:
        yield ch.topic, "messages", *_counts(ch)
    for change in ch.changes:
        yield ch.topic, *_fact_row(change)
    for change in ch.fields:
        sides = [side or {} for side in (change.a, change.b)]
        for name in dict.fromkeys([*sides[0], *sides[1]]):
            a, b = (side.get(name) for side in sides)
            if a != b:
                yield ch.topic, f"{change.name}, {name}", _text(a), _text(b)


def _line_rows(difference: Difference) -> Iterator[tuple[str, ...]]:
    from logreel.log.times import seconds_text
    from logreel.ops.inspect.text import level_name

    for line in difference.text:
        source = f"[{line.source}] " if line.source else ""
        where = line.only.upper()
        yield where, f"{seconds_text(line.time_ns)} s", level_name(line.level), f"{source}{line.text}"


def _show_definitions(difference: Difference, in_full: bool, limit: int) -> None:
    """Print the differences of the definitions, if they are short or everything is wanted."""
    schemas = [ch.schema.splitlines() for ch in difference.channels if ch.schema]
    if not schemas:
        return
    draw.echo()
    if in_full or sum(map(len, schemas)) <= limit:
        for line in (line for lines in schemas for line in lines):
            draw.echo(line)
    else:
        draw.echo(f"definitions of {len(schemas)} topic{'s' * (len(schemas) > 1)} differ, --all shows how")
