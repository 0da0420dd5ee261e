"""``logreel stats``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click

from logreel.cli import common, draw
from logreel.cli import files as paths
from logreel.cli.help import verb

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.log import Log
    from logreel.ops.inspect.stats import ChannelStats


#: Columns that are shown only if a channel has a value there: gaps, messages out of order, duplicates.
RARE = range(6, 9)


@verb(
    examples={
        "logreel stats drive.bag -t /imu": "rate, jitter and gaps of a channel",
        "logreel stats flight.ulg -t battery_status --fields": "also minimum, mean and maximum of its fields",
    },
)
@common.logs
@common.topics_or_fields
@common.exclude
@common.start
@common.end
@common.where
@common.segment
@click.option("--fields", is_flag=True, help="Also show minimum, mean and maximum of every numeric field.")
@common.ros_axes
@common.decrypt
@common.msgdef
@paths.text_output
@common.as_json
def stats(
    logs: paths.Logs,
    ros_axes: bool,
    msgdef: Definitions,
    topics: tuple[str, ...],
    exclude: tuple[str, ...],
    start: str | None,
    end: str | None,
    where: tuple[str, ...],
    segment: int | None,
    fields: bool,
    as_json: bool,
) -> int:
    """Show rate, jitter, gaps and order of the messages of each channel.

    A gap is an interval without messages that is longer than five median periods and twice the 90th percentile of the
    periods.
    """
    from logreel.ops.inspect.stats import stats as look

    def answer(log: Log) -> int:
        chosen = common.chosen_fields(log, topics, exclude)
        found = look(log, chosen, start=start, end=end, fields=fields, where=where)
        if as_json:
            draw.echo_answer(log, logs.several, channels=[one.as_dict() for one in found])
        else:
            show(found)
        bad = [
            f"the fields of {one.topic!r} cannot be decoded"
            for one in found
            if (fields or chosen[one.topic] is not None) and one.fields is None
        ]
        return draw.finish(log, bad)

    return common.each_log(logs, answer, not as_json, definitions=msgdef, ros_axes=ros_axes, segment=segment)


def show(found: list[ChannelStats]) -> None:
    """Print statistics for people."""
    from logreel.log.times import duration_text

    head = (
        "channel",
        "messages",
        "rate",
        "period",
        "jitter",
        "longest",
        "gaps",
        "out of order",
        "duplicates",
        "size",
    )
    rows = []
    for one in found:
        p = one.period_ns
        times = [duration_text(round(t)) for t in (p.median, p.std, p.max)] if p else ["", "", ""]
        counts = [str(n) if n else "" for n in (one.gap_count, one.out_of_order, one.duplicates)]
        size = draw.size_text(one.bytes)
        rows.append((one.topic, str(one.messages), draw.rate_text(one.rate), *times, *counts, size))
    # Empty columns would only make the table wider.
    used = [i for i in range(len(head)) if i not in RARE or any(row[i] for row in rows)]
    draw.table([head[i] for i in used], [[row[i] for i in used] for row in rows], right=range(1, len(used)))
    for one in found:
        if one.fields:
            draw.echo()
            values = [
                (f.path, *map(draw.number_text, (f.min, f.mean, f.max)), str(f.nan) if f.nan else "")
                for f in one.fields
            ]
            draw.table((one.topic, "min", "mean", "max", "NaN"), values, right=range(1, 5))
