"""Verbs that ask logs questions: sql, and tf for transforms between frames."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from logreel.cli import draw, inputs, options
from logreel.cli.help import verb

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.log.log import Log
    from logreel.meaning.frames import FrameLink
    from logreel.meaning.transforms import DrawnJoint, Missing, RigidTransforms, Transforms
    from logreel.ops.selection import Selection

#: Forms of the result of SQL.
FORMS = ["table", "csv", "parquet", "json", "ndjson", "arrow"]
#: Forms of a tree of frames, and marks of findings, as in ``logreel summary``.
TREE_FORMS = ("text", "json", "urdf", "dot")
MARKS = {"error": "!!", "warn": "!", "note": ""}
#: Rows of a lookup with --every, at most.
MOST = 1_000_000


class QueryResult:
    """Where the rows of a query go, and in which form; raises UsageError for options that contradict each other.

    form  one of FORMS
    """

    def __init__(self, form: str | None, out: str | None, safe_csv: bool, force: bool, as_json: bool) -> None:
        from logreel.errors import UsageError
        from logreel.outputs.tables import BINARY, form_of

        if as_json and (form or out):
            raise UsageError(f"{draw.notation()} is a form of its own: leave out --format and -o")
        if out is None or out == inputs.STDOUT:
            if form in BINARY and sys.stdout.isatty():
                raise UsageError(f"{form} is no text for a terminal: give a file with -o")
        elif form == "table":
            raise UsageError("a table to read goes to stdout: leave out -o, or choose csv")
        to_stdout = out is None or out == inputs.STDOUT
        self.form = form or ("table" if to_stdout else form_of(out or ""))
        if safe_csv and self.form != "csv":
            raise UsageError("--safe-csv is about formulas in CSV: it needs --format csv or -o x.csv")
        self._out = None if to_stdout else out
        self._safe_csv, self._force, self._as_json = safe_csv, force, as_json

    def show(
        self,
        schema: pa.Schema,
        batches: Iterator[pa.RecordBatch],
        about: dict[str, Any],
        logs: Sequence[Log] = (),
    ) -> None:
        """Print or write the rows.

        about  what stands before the rows in the object of --json
        logs   what is asked: their problems stand behind the rows, and their files must not be replaced
        """
        from logreel.io.atomic_file import keep_sources
        from logreel.log.source_files import inputs_of
        from logreel.outputs.files import new_table
        from logreel.outputs.tables import writers
        from logreel.outputs.tables.csv import write_safe_result
        from logreel.outputs.tables.ndjson import plain_rows

        if self._as_json:
            columns = [{"name": field.name, "type": str(field.type)} for field in schema]
            shape, count = draw.shape(), 0
            rows: list[dict[str, Any]] = []
            most = None if shape is None else shape.most
            for batch in batches:
                count += batch.num_rows
                rows += plain_rows(batch if most is None else batch.slice(0, max(most - len(rows), 0)))
            problems = [problem.as_dict() for log in logs for problem in log.problems]
            draw.echo_json(
                {**about, "columns": columns, "rows": rows, **({"problems": problems} if logs else {})},
                left={"rows": count - len(rows)},
            )
            return
        if self.form == "table":
            _print_table(schema, batches)
            return
        write = write_safe_result if self._safe_csv else writers()[self.form]
        if self._out is None:
            sys.stdout.flush()
            target: Any = draw.SafeLines() if sys.stdout.isatty() else sys.stdout.buffer
            write(target, schema, batches)
            return
        keep_sources(self._out, [name for log in logs for name in inputs_of(log)])
        count = new_table(self._out, self._force, write, schema, batches)
        draw.say(f"wrote {count} row{'s' * (count != 1)} to {self._out}")


#: Options of a query for its result: the verb gets a ``QueryResult`` as its argument ``result``.
result_options = options.as_object(
    "result",
    QueryResult,
    click.option(
        "--format",
        "form",
        type=click.Choice(FORMS),
        metavar="NAME",
        help=f"Format of the result: {', '.join(FORMS)}; by default from -o, else a table to read.",
    ),
    click.option(
        "-o", "--output", "out", metavar="OUT", type=options.FILE, help="Write the result to this file."
    ),
    options.safe_csv,
    options.force,
    options.answer,
)


@verb(
    examples={
        'logreel sql "SELECT max(voltage_v) FROM battery_status" flight.ulg': "one number from a channel",
        'logreel sql "FROM battery_status LIMIT 5" flight.ulg -o battery.csv': "rows of a channel as CSV",
    },
)
@click.argument("query")
@result_options
@options.selection("topics", "exclude", "start", "end")
@options.utc
@inputs.logs("ros_axes", "segment", "decrypt", "definitions")
def sql(query: str, logs: inputs.Logs, result: QueryResult, selection: Selection, utc: bool) -> int:
    """Query channels as tables with DuckDB's SQL.

    logreel sql "SELECT avg(voltage_v) FROM battery_status" flight.ulg

    Each topic is a table over all logs, with the columns time, time_ns, log, and its fields. Topics with other
    characters than letters, digits and _ go in double quotes, or are written with _ instead: imu_data is /imu/data.
    The tables logreel.logs and logreel.channels list logs and channels. A folder means all logs in and below it. If a
    file cannot be opened, the query runs on the others.
    """
    from logreel.cli.exits import LOST
    from logreel.ops.query.sql import answer
    from logreel.registry.open import check_types, open_one_of_several

    with contextlib.ExitStack() as stack:

        def opened(names: inputs.Names) -> Log:
            log = open_one_of_several(names, anyway=logs.anyway, **logs.opening)
            logs.saw(log)
            return stack.enter_context(log)

        tables, code = inputs.open_each(logs, opened)
        if not tables:
            return code
        check_types(tables)
        for log in tables:
            inputs.note_decrypted(log)
        start, end, topics = selection.start, selection.end, tuple(selection.topics or ())
        rows = stack.enter_context(
            answer(query, tables, start, end, utc, topics=topics or None, exclude=selection.exclude)
        )
        result.show(*rows, {"paths": [log.name for log in tables]}, tables)
        return max(code and LOST, *(draw.finish(log) for log in tables))


def _print_table(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
    """Print the rows as a table: durations in seconds, timestamps in RFC 3339."""
    import pyarrow as pa

    from logreel.log.times import seconds_text, utc_text
    from logreel.outputs.tables.ndjson import plain_rows

    def cell(column_type: pa.DataType, value: Any) -> str:
        if value is None or isinstance(value, str):
            return value or ""
        if pa.types.is_duration(column_type):
            return seconds_text(value)
        return utc_text(value) if pa.types.is_timestamp(column_type) else draw.value_text(value)

    kinds = schema.types
    rows = [
        [cell(column_type, value) for column_type, value in zip(kinds, row.values(), strict=True)]
        for batch in batches
        for row in plain_rows(batch)
    ]
    texts = (pa.types.is_string, pa.types.is_nested, pa.types.is_timestamp, pa.types.is_boolean)
    right = [i for i, column_type in enumerate(kinds) if not any(of(column_type) for of in texts)]
    draw.table(schema.names, rows, right)


@dataclass(frozen=True)
class FrameQuery:
    """What is asked of the frames of a log: their tree, or a lookup if there are *source* and *target*.

    form  one of TREE_FORMS
    """

    source: str | None
    target: str | None
    times: tuple[str, ...]
    every: str | None
    missing: Missing
    max_gap: str | None
    fixed: str | None
    form: str

    def __post_init__(self) -> None:
        from logreel.errors import UsageError

        if (self.source is None) != (self.target is None):
            raise UsageError(
                "--from and --to belong together: logreel tf FILE --from base_link --to map --at +12s"
            )
        if self.source is None and (self.every or self.max_gap or self.missing != "error"):
            raise UsageError("--every, --missing and --max-gap are for lookups: give --from and --to, too")
        if self.source is not None and (self.fixed or self.form in ("urdf", "dot")):
            raise UsageError("--fixed and the forms urdf and dot are for the tree: leave out --from and --to")
        if self.source is None and len(self.times) > 1:
            raise UsageError("one --at is enough for the joints of the tree; lookups take several")
        if self.every and self.times:
            raise UsageError("give --at or --every")

    def show(self, log: Log, frames: Transforms, selection: Selection, several: bool) -> None:
        """Print the tree, or the transforms of the lookup."""
        if self.source is None or self.target is None:
            time = self.times[0] if self.times else None
            _show_tree(log, frames, self.fixed, time, self.form, several)
            return
        at = _regular(log, self.every, selection) if self.every else list(self.times) or None
        known = frames.lookup(self.target, self.source, at, missing=self.missing, max_gap=self.max_gap)
        _show_lookup(log, frames, known, self.form, several)


def _frame_query(form: str | None, as_json: bool, **members: Any) -> FrameQuery:
    return FrameQuery(form=_tree_form(form, as_json), **members)


#: Options of tf: the verb gets a ``FrameQuery`` as its argument ``asked``.
_asked = options.as_object(
    "asked",
    _frame_query,
    click.option(
        "--from", "source", metavar="FRAME", help="Look up the transform of points given in this frame …"
    ),
    click.option("--to", "target", metavar="FRAME", help="… to this one: the target_frame of tf2."),
    click.option(
        "--at",
        "times",
        multiple=True,
        metavar="TIME",
        help=f"Time of the lookup, or of the joints of URDF; may be repeated: {options.TIMES}",
    ),
    click.option("--every", metavar="LENGTH", help="Look up at regular times of the interval: 0.5s, 20ms."),
    click.option(
        "--missing",
        type=click.Choice(("error", "nan", "hold")),
        default="error",
        show_default=True,
        help="Where the transform is not known: fail, leave it empty, or take the nearest one.",
    ),
    click.option(
        "--max-gap", metavar="LENGTH", help="Do not interpolate between transforms further apart: 0.5s."
    ),
    click.option(
        "--fixed", metavar="FRAME", help="Draw the tree from this frame, and only what it is connected with."
    ),
    click.option(
        "--format",
        "form",
        type=click.Choice(TREE_FORMS),
        help="Form of the output; by default that of the suffix of OUT (.urdf, .json, .dot), else text.",
    ),
    options.answer,
)


@verb(
    examples={
        "logreel tf drive.bag": "the tree of frames, and what is wrong with it",
        "logreel tf drive.bag --from base_footprint --to map --at +2s": "where the robot was after 2 s",
    },
)
@_asked
@click.option("--poses", is_flag=True, help="Use poses of vehicles and actors even if there are transforms.")
@click.option(
    "--log-time",
    is_flag=True,
    help="A transform is valid when it was logged, not at the stamp that it contains.",
)
@options.selection("start", "end")
@inputs.text_output
@inputs.logs("segment", "decrypt", "definitions")
def tf(logs: inputs.Logs, asked: FrameQuery, poses: bool, log_time: bool, selection: Selection) -> int:
    """Show the tree of coordinate frames with its coverage in time, or look up transforms between two frames.

    Links whose transforms hold for all times are static. With --from and --to, position, rotation and angles at the
    given times are shown, interpolated as tf2 does; without --at, at the latest time that all links cover. Faults
    of the tree are marked with ! or !!: several roots or parents, interruptions, jumps.
    """
    from logreel.meaning.transforms import transforms

    if asked.form in ("urdf", "dot"):
        logs.only(f"{asked.form} describes one log")

    def answer(log: Log) -> int:
        start, end, stamps = selection.start, selection.end, False if log_time else None
        frames = transforms(log, start=start, end=end, poses=True if poses else None, stamps=stamps)
        asked.show(log, frames, selection, logs.several)
        return draw.finish(log)

    return inputs.each_log(logs, answer, asked.form == "text")


def _tree_form(form: str | None, as_json: bool) -> str:
    """Return the form of the output, by default that of the suffix of -o."""
    from logreel.errors import UsageError

    suffix = os.path.splitext(options.parameter("out") or "")[1].lower().lstrip(".")
    if form and as_json and form != "json":
        raise UsageError(f"{draw.notation()} and --format {form}: leave out one of them")
    if as_json:
        return "json"
    return form or {"gv": "dot", "xml": "urdf"}.get(suffix, suffix if suffix in TREE_FORMS else "text")


def _regular(log: Log, every: str, selection: Selection) -> Any:
    """Return int64[n] ns from the start of the interval to its end."""
    import numpy as np

    from logreel.errors import UsageError
    from logreel.log.times import duration_ns, interval

    step, (first, last) = duration_ns(every), interval(log, selection.start, selection.end)
    low, high = log.start if first is None else first, log.end if last is None else last
    if step <= 0 or low is None or high is None:
        raise UsageError(f"--every {every}: give a length of time such as 0.5s")
    if (high - low) // step >= MOST:
        raise UsageError(
            f"--every {every} gives more than {MOST} rows: take a longer one, or an interval with -S and -E"
        )
    return np.arange(low, high + 1, step, dtype=np.int64)


def _show_lookup(log: Log, frames: Transforms, known: RigidTransforms, form: str, several: bool) -> None:
    """Print the transforms of a lookup."""
    import numpy as np

    if form == "json":
        draw.echo_answer(log, several, **known.as_dict(), chain=frames.chain(known.target, known.source))
        return
    draw.echo_head(f"{known.source} in {known.target}")
    draw.echo(f"by {' → '.join(frames.chain(known.target, known.source))}")
    rows = []
    angles = np.degrees(np.atleast_2d(known.euler))
    places, turns = np.atleast_2d(known.translation), np.atleast_2d(known.rotation)
    for n, time in enumerate(np.atleast_1d(known.time).tolist()):
        numbers = [*(f"{v + 0.0:.4f}" for v in places[n]), *(f"{v + 0.0:.5f}" for v in turns[n])]
        numbers += [f"{v + 0.0:.2f}" for v in angles[n]]
        rows.append((_since(log, time), *(numbers if np.isfinite(places[n]).all() else [""] * 10)))
    draw.table(
        ("time", "x m", "y m", "z m", "qx", "qy", "qz", "qw", "roll °", "pitch °", "yaw °"),
        rows,
        right=range(11),
    )


def _show_tree(
    log: Log, frames: Transforms, fixed: str | None, time: str | None, form: str, several: bool
) -> None:
    """Print the tree of frames."""
    from logreel.meaning.transforms import dot, joints, urdf

    if form == "json":
        drawn = [joint.as_dict() for joint in joints(frames, fixed, time)]
        draw.echo_answer(log, several, **frames.tree.as_dict(), joints=drawn)
    elif form == "urdf":
        _echo_lines(urdf(frames, os.path.splitext(os.path.basename(log.name))[0] or "robot", fixed, time))
    elif form == "dot":
        _echo_lines(dot(frames, fixed))
    elif not frames.frames:
        draw.echo("no transforms between frames")
    else:
        _draw(log, frames, joints(frames, fixed, time), fixed)


def _echo_lines(text: str) -> None:
    for line in text.splitlines():
        draw.echo(line)


def _draw(log: Log, frames: Transforms, drawn: list[DrawnJoint], fixed: str | None) -> None:
    rows: list[tuple[str, ...]] = []
    roots = [fixed.lstrip("/")] if fixed is not None else frames.tree.roots
    open_at: list[bool] = []
    for n, joint in enumerate(drawn):
        if joint.depth == 1 and joint.upper not in [row[0] for row in rows]:
            rows.append((joint.upper, *[""] * 5))
        last = next(
            (later.depth < joint.depth for later in drawn[n + 1 :] if later.depth <= joint.depth), True
        )
        open_at[joint.depth - 1 :] = [not last]
        lines = "".join("│  " if is_open else "   " for is_open in open_at[:-1])
        rows.append(
            (f"{lines}{'└─ ' if last else '├─ '}{joint.lower}", *_cells(log, joint.link, joint.turned))
        )
    rows += [(root, *[""] * 5) for root in roots if root not in [row[0] for row in rows]]
    draw.table(("frame", "link", "rate", "messages", "known", "channel"), rows, right=(2, 3))
    for finding in frames.tree.findings:
        when = f" (first at {_since(log, finding.time_ns)})" if finding.time_ns is not None else ""
        draw.echo(f"{MARKS[finding.severity]:<2}{finding.text}{when}")


def _cells(log: Log, link: FrameLink, turned: bool) -> tuple[str, ...]:
    state = ("static" if link.static else "moving") + (" (parent)" if turned else "")
    if link.static:
        known = "always"
    else:
        first, last = link.intervals[0][0], link.intervals[-1][1]
        gaps = len(link.intervals) - 1
        known = f"{_since(log, first)} to {_since(log, last)}" + (
            f", {gaps} gaps" if gaps > 1 else ", 1 gap" * gaps
        )
    return state, draw.rate_text(link.rate), str(link.messages), known, ", ".join(link.topics)


def _since(log: Log, time: int) -> str:
    """Return a time as -S and --at take it: seconds after the start of the log."""
    from logreel.log.times import seconds_text

    ns = time - (log.start or 0)
    return f"{'-' if ns < 0 else '+'}{seconds_text(abs(ns), 3)}s"
