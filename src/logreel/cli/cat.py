"""``logreel cat``."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import rich_click as click

from logreel.cli import common, draw, following
from logreel.cli import files as paths
from logreel.cli.help import verb

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.io.source import Definitions
    from logreel.log.log import Channel, Log
    from logreel.log.topic_fields import FieldsByTopic


STYLES = ("text", "ndjson", "csv")


@verb(
    examples={
        "logreel cat flight.ulg -t battery_status:voltage_v,current_a -n 10": "the first ten values of two fields",
        "logreel cat drive.bag -t /imu -S +5s -E +6s -o imu.csv": "one second of a channel as CSV",
    },
)
@common.logs
@common.topics_or_fields
@common.exclude
@common.start
@common.end
@common.where
@common.count
@click.option(
    "--format",
    "style",
    type=click.Choice(STYLES),
    metavar="NAME",
    help="Output format: text, ndjson or csv; by default from the suffix of -o, else text.",
)
@common.utc
@common.interpolate
@common.safe_csv
@common.ros_axes
@common.segment
@common.decrypt
@common.msgdef
@following.follow
@paths.text_output
@common.as_json
def cat(
    logs: paths.Logs,
    ros_axes: bool,
    segment: int | None,
    msgdef: Definitions,
    topics: tuple[str, ...],
    exclude: tuple[str, ...],
    start: str | None,
    end: str | None,
    where: tuple[str, ...],
    count: int | None,
    style: str | None,
    utc: bool,
    interpolate: bool,
    safe_csv: bool,
    follow: bool,
    as_json: bool,
) -> int:
    """Print decoded messages in time order.

    csv prints one channel, in file order; of several logs, its first column is the log. -f prints in file order, and
    with --json one object per message. So are messages of a pipe, as text or ndjson, while they come.
    """
    from logreel.errors import UsageError
    from logreel.log.times import interval, shift_of

    context = click.get_current_context()
    style = style or _style_of(None if context is None else context.params.get("out"))
    if safe_csv and (as_json or style != "csv"):
        raise UsageError("--safe-csv is about formulas in CSV: it needs --format csv")
    if interpolate and (as_json or style != "csv"):
        raise UsageError("--interpolate spreads the times of rows: it needs --format csv")
    if where and follow:
        raise UsageError("-f shows messages as they come: leave out --where")
    if not (where or as_json or style == "csv") and following.comes_slowly(logs.names, start, end):
        follow = True
    if follow:
        if style == "csv" and not as_json:
            raise UsageError("-f prints messages as text or ndjson: leave out --format csv")
        if logs.names != ("-",):
            following.refuse_output()
        style = "ndjson" if as_json else style
        with (
            following.ending() as event,
            following.opened(logs.names, event, msgdef, ros_axes, segment) as log,
        ):
            return _follow(log, event, topics, exclude, (start, end), count, style, utc)

    tables = _LogTables(safe_csv)

    def answer(log: Log) -> int:
        span = interval(log, start, end)
        shift = shift_of(log, utc)
        fields = common.chosen_fields(log, topics, exclude)
        if where:
            from logreel.ops.query.where import limit

            log, kept, notes = limit(log, where, fields, *span)
            fields = {topic: fields[topic] for topic in kept}
            draw.show_notes(notes)
        channels = [log[topic] for topic in fields]
        skipped: list[str] = []
        if as_json or style != "csv":
            _messages(log, fields, span, count, "json" if as_json else style, shift, skipped, logs.several)
        else:
            tables.add(log.name, channels, fields, span, count, utc, interpolate)
            if not logs.several:
                tables.write()
        return draw.finish(log, skipped)

    options: dict[str, Any] = {"definitions": msgdef, "segment": segment, "ros_axes": ros_axes}
    if logs.several and style == "csv" and not as_json:
        # The columns of all are known before the first row is written.
        with contextlib.ExitStack() as stack:
            code = common.each_log(logs, answer, False, stack, **options)
            tables.write(True)
            return code
    return common.each_log(logs, answer, style == "text" and not as_json, **options)


def _follow(
    log: Log,
    event: following.Ending,
    topics: tuple[str, ...],
    exclude: tuple[str, ...],
    bounds: tuple[str | None, str | None],
    count: int | None,
    style: str,
    utc: bool,
) -> int:
    from logreel.log.times import shift_of, time_text
    from logreel.outputs.tables.ndjson import Decoder, line

    skipped: list[str] = []
    decoders: dict[str, Decoder] = {}
    name, choose = log.name, following.Choice(topics, exclude)

    def lines() -> Iterator[str]:
        for message in log.follow(choose, *bounds, poll=following.POLL, stop=event):
            topic = message.channel.topic
            if topic not in decoders:
                decoders[topic] = Decoder([message.channel], skipped, choose.fields)
            data = decoders[topic](message)
            if data is None:
                continue
            shift = shift_of(log, utc)
            if style == "ndjson":
                yield line(message, data, shift)
            else:
                when = time_text(message.time, shift)
                yield draw.safe(f"{when}  {topic}  {draw.fields_text(data)}")

    for text in itertools.islice(lines(), count):
        sys.stdout.write(text + "\n")
    # Names that no channel had so far will not come any more, nor messages of an interval.
    choose.check(log)
    following.check_interval(log, name, bounds)
    for decoder in decoders.values():
        decoder.report()
    return following.finish(log, event, skipped)


def _style_of(out: str | None) -> str:
    """Return the output format for the suffix of -o."""
    suffix = os.path.splitext(out or "")[1].removeprefix(".").lower()
    return suffix if suffix in STYLES else "text"


def _messages(
    log: Log,
    fields: FieldsByTopic,
    span: tuple[int | None, int | None],
    count: int | None,
    style: str,
    shift: int | None,
    skipped: list[str],
    several: bool,
) -> None:
    from logreel.log.times import time_text
    from logreel.outputs.tables.ndjson import decoded, line

    out = sys.stdout
    channels = [log[topic] for topic in fields]
    if style == "json":
        out.write(f'{{"path": {json.dumps(log.name)}, "messages": [')
    between = ""
    for message, data in itertools.islice(decoded(log, channels, *span, skipped, fields), count):
        if style == "text":
            when = time_text(message.time, shift)
            out.write(draw.safe(f"{when}  {message.channel.topic}  {draw.fields_text(data)}") + "\n")
        elif style == "ndjson":
            out.write(line(message, data, shift, log.name if several else None) + "\n")
        else:
            out.write(between + line(message, data, shift))
            between = "," if several else ",\n"
    if style == "json":
        problems = json.dumps([problem.as_dict() for problem in log.problems])
        out.write(f'], "skipped": {json.dumps(skipped)}, "problems": {problems}}}\n')


class _LogTables:
    """The rows of a channel of each log, which are written as one table."""

    def __init__(self, safe: bool) -> None:
        self._safe = safe
        self._tables: list[tuple[str, pa.Schema, Iterator[pa.RecordBatch]]] = []

    def add(
        self,
        name: str,
        channels: list[Channel],
        fields: FieldsByTopic,
        span: tuple[int | None, int | None],
        count: int | None,
        utc: bool,
        interpolate: bool,
    ) -> None:
        """Add the rows of the only one of *channels* of the log *name*."""
        from logreel.errors import UsageError
        from logreel.outputs.tables.csv import limited

        if len(channels) != 1:
            raise UsageError(f"csv shows one channel, not {len(channels)}: choose it with -t")
        self._tables.append((name, *limited(channels[0], *span, utc, count, interpolate, fields)))

    def write(self, several: bool = False) -> None:
        """Write all rows to stdout; of *several* logs with the column ``log``."""
        from logreel.outputs.tables.csv import write, write_safe, write_together

        sys.stdout.flush()
        out = draw.SafeLines() if sys.stdout.isatty() else sys.stdout.buffer
        if several:
            write_together(out, self._tables, self._safe)
            return
        for _, schema, batches in self._tables:
            (write_safe if self._safe else write)(out, schema, batches)
