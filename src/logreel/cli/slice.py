"""``logreel slice``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logreel.cli import common, draw
from logreel.cli import files as paths
from logreel.cli.help import verb

if TYPE_CHECKING:
    from logreel.io.output_stream import Destination
    from logreel.io.source import Definitions
    from logreel.log.log import Log


@verb(
    examples={
        "logreel slice flight.ulg -S +10s -E +20s -o part.ulg": "ten seconds of a log",
        "logreel slice drive.bag -x '/camera/*' -o small.bag": "a log without its pictures",
        'logreel slice flight.ulg --where "sensor_gps.fix_type = 3" -o fix.ulg': "messages that meet a condition",
    },
)
@common.logs
@common.output
@common.topics
@common.exclude
@common.start
@common.end
@common.where
@common.count
@common.keep_latched
@common.segment
@common.latched
@common.compression
@common.chunk_size
@common.options
@common.force
@common.decrypt
@common.msgdef
@common.as_json
def slice(  # noqa: A001 - the verb's name
    logs: paths.Logs,
    out: str,
    topics: tuple[str, ...],
    exclude: tuple[str, ...],
    start: str | None,
    end: str | None,
    where: tuple[str, ...],
    count: int | None,
    keep_latched: bool,
    segment: int | None,
    latched: tuple[str, ...],
    compression: str | None,
    chunk_bytes: int | None,
    options: dict[str, Any],
    force: bool,
    decrypt: bool,
    msgdef: Definitions,
    as_json: bool,
) -> int:
    """Write a part of a log as a new log of the same format.

    Messages are copied unchanged. Text, parameters and dropouts are included unless -t names other channels.
    --keep-latched adds the state at -S: latched topics, static transforms, parameters, actors.
    """
    from logreel.ops.rewrite.slice import slice_log

    def write(log: Log, path: Destination, name: str) -> int:
        with draw.progress(name) as progress:
            done = slice_log(
                log,
                path,
                topics=topics or None,
                exclude=exclude,
                start=start,
                end=end,
                where=where,
                count=count,
                keep_latched=keep_latched,
                latched=latched,
                compression=compression,
                chunk_bytes=chunk_bytes,
                options=options,
                force=force,
                progress=progress,
            )
        if as_json:
            draw.echo_answer(log, logs.several, **done.as_dict())
        else:
            draw.show_written(done, name)
        return draw.finish(log, done.skipped)

    options_of_logs = {"definitions": msgdef, "segment": segment, "decrypt": decrypt}
    return common.write_each(logs, out, write, paths.log_suffix, as_json, **options_of_logs)
