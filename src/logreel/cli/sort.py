"""``logreel sort``."""

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
        "logreel sort drive.bag -o sorted.bag": "the messages in the order of their times",
        "logreel sort flight.ulg -o sorted.ulg --force": "replace an earlier output",
    },
)
@common.logs
@common.output
@common.selection
@common.compression
@common.chunk_size
@common.options
@common.force
@common.segment
@common.decrypt
@common.msgdef
@common.as_json
def sort(
    logs: paths.Logs,
    out: str,
    selection: dict[str, Any],
    compression: str | None,
    chunk_bytes: int | None,
    options: dict[str, Any],
    force: bool,
    segment: int | None,
    decrypt: bool,
    msgdef: Definitions,
    as_json: bool,
) -> int:
    """Write a log with its messages sorted by time."""
    from logreel.ops.rewrite.slice import sort_log
    from logreel.ops.selection import Selection

    def write(log: Log, path: Destination, name: str) -> int:
        with draw.progress(name) as progress:
            done = sort_log(
                log,
                path,
                selection=Selection(**selection),
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
