"""``logreel split``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import rich_click as click

from logreel.cli import arguments, common, draw
from logreel.cli import files as paths
from logreel.cli.help import verb

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.log import Log


@verb(
    examples={
        "logreel split flight.ulg --every 20s -o parts": "a log for every 20 seconds",
        "logreel split flight.ulg --on vehicle_status.nav_state -o modes": "a log for each flight mode",
        'logreel split flight.ulg --where "vehicle_status.arming_state = 2" -o armed': "a log for each time armed",
    },
)
@common.logs
@common.topics
@common.exclude
@common.start
@common.end
@common.segment
@click.option("--every", metavar="TIME", help="One log per interval of this length: 60s, 00:05:00.")
@click.option("--size", metavar="SIZE", help="Logs of at most this size: 100MB, 1GiB.")
@click.option("--by-topic", is_flag=True, help="One log per channel.")
@click.option("--by-segment", is_flag=True, help="One log per log in a file that contains several.")
@click.option(
    "--on",
    metavar="TOPIC.FIELD",
    type=arguments.TOPIC_OR_FIELD,
    help="A new log at each change of this field: vehicle_status.nav_state.",
)
@click.option(
    "--where",
    multiple=True,
    metavar="CONDITION",
    help='One log per interval in which this condition in SQL is true: "battery_status.voltage_v < 14".',
)
@click.option(
    "--name",
    metavar="TEMPLATE",
    help="File names, such as {stem}_{index:03}_{value}. Keys: {stem} {index} {start} {end} {utc}; {value} with --on, "
    "--by-topic and --by-segment; {topic} with --by-topic; {segment} with --by-segment.",
)
@common.keep_latched
@common.latched
@click.option(
    "-o",
    "--output",
    "folder",
    metavar="DIR",
    required=True,
    type=arguments.FOLDER,
    help="Folder for the new logs.",
)
@common.compression
@common.chunk_size
@common.options
@common.force
@common.decrypt
@common.msgdef
@common.as_json
def split(
    logs: paths.Logs,
    topics: tuple[str, ...],
    exclude: tuple[str, ...],
    start: str | None,
    end: str | None,
    segment: int | None,
    every: str | None,
    size: str | None,
    by_topic: bool,
    by_segment: bool,
    on: str | None,
    where: tuple[str, ...],
    name: str | None,
    keep_latched: bool,
    latched: tuple[str, ...],
    folder: str,
    compression: str | None,
    chunk_bytes: int | None,
    options: dict[str, Any],
    force: bool,
    decrypt: bool,
    msgdef: Definitions,
    as_json: bool,
) -> int:
    """Split a log into several logs: by time, size, channel, segment, value of a field, or condition.

    A value holds, and a condition is true, until the next message of its channel. Of several logs, each gets a folder
    in DIR, called as the log.
    """
    from logreel.log.times import duration_ns
    from logreel.ops.rewrite.split import split as write

    paths.no_folder(folder, "parts of a log")
    folders = paths.outputs_in(folder, logs, "") if logs.several else {}

    def answer(log: Log) -> int:
        place = paths.output_for(folders, log) if folders else folder
        if logs.several:
            os.makedirs(place, exist_ok=True)
        with draw.progress(place) as progress:
            done = write(
                log,
                place,
                topics=topics or None,
                exclude=exclude,
                start=start,
                end=end,
                every=None if every is None else duration_ns(every),
                size=None if size is None else common.bytes_of(size),
                by_topic=by_topic,
                by_segment=by_segment,
                on=on,
                where=where,
                name=name,
                keep_latched=keep_latched,
                latched=latched,
                compression=compression,
                chunk_bytes=chunk_bytes,
                options=options,
                force=force,
                progress=progress,
            )
        if as_json:
            draw.echo_answer(log, logs.several, output=place, logs=[one.as_dict() for one in done])
        else:
            for one in done:
                draw.show_written(one)
        return draw.finish(log, [sentence for one in done for sentence in one.skipped])

    return common.each_log(logs, answer, False, definitions=msgdef, segment=segment, decrypt=decrypt)
