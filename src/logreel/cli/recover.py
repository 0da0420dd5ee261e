"""``logreel recover``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click

from logreel.cli import common, draw

if TYPE_CHECKING:
    from logreel.model.log import Log
    from logreel.model.source import Definitions
    from logreel.ops.recovery import Recovered


@click.command()
@common.file
@click.option(
    "-o", "--output", "out", metavar="OUT", help="The new log; x.bag.active becomes x.bag by itself."
)
@common.compression
@common.chunk_size
@common.force
@common.msgdef
@common.as_json
def recover(
    file: str,
    out: str | None,
    compression: str | None,
    chunk_bytes: int | None,
    force: bool,
    msgdef: Definitions,
    as_json: bool,
) -> int:
    """Write what is there of a damaged log as a sound one.

    Every message that is wholly there is kept, and all definitions. What was lost is listed with its bytes
    and the times around it. The new log is opened again before it gets its name; the damaged one stays.
    """
    from logreel.model.log import open_log
    from logreel.ops.recovery import recover as save

    with open_log(file, definitions=msgdef) as log:
        with draw.progress(file) as progress:
            done = save(
                log, out, compression=compression, chunk_bytes=chunk_bytes, force=force, progress=progress
            )
        if as_json:
            draw.echo_answer(log, **done.as_dict())
        else:
            _show(log, done)
        return draw.finish(log, done.skipped)


def _show(log: Log, done: Recovered) -> None:
    """Print the ledger for people."""
    from logreel.ops.times import time_text

    draw.show_written(done)
    if not done.lost:
        return

    def text(time: int | None) -> str:
        return "" if time is None else time_text(time, log.utc_offset if log.epoch == "unix" else None)

    rows = [(str(p.offset), str(p.size), text(p.start_ns), text(p.end_ns), p.code, p.text) for p in done.lost]
    draw.table(("at byte", "bytes", "after", "before", "what", ""), rows, right=(0, 1))
