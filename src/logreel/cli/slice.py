"""``logreel slice``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click

from logreel.cli import common, draw

if TYPE_CHECKING:
    from logreel.model.source import Definitions


@click.command()
@common.file
@common.output
@common.topics
@common.exclude
@common.start
@common.end
@click.option("-n", "--count", type=click.IntRange(min=0), metavar="N", help="Only the first N messages.")
@click.option("--keep-latched", is_flag=True, help="Carry in what is in force at the start.")
@common.compression
@common.chunk_size
@common.force
@common.msgdef
@common.as_json
def slice(  # noqa: A001 - the verb's name
    file: str,
    out: str,
    topics: tuple[str, ...],
    exclude: tuple[str, ...],
    start: str | None,
    end: str | None,
    count: int | None,
    keep_latched: bool,
    compression: str | None,
    chunk_bytes: int | None,
    force: bool,
    msgdef: Definitions,
    as_json: bool,
) -> int:
    """Write a part of a log as a log of the same format.

    Messages are copied as they are. Text, parameters and dropouts come along unless -t leaves them out;
    --keep-latched adds what is in force at -S: the last message of latched topics, parameters, actors.
    """
    from logreel.model.log import open_log
    from logreel.ops.slicing import slice_log

    with open_log(file, definitions=msgdef) as log:
        with draw.progress(out) as progress:
            done = slice_log(
                log,
                out,
                topics=topics or None,
                exclude=exclude,
                start=start,
                end=end,
                count=count,
                keep_latched=keep_latched,
                compression=compression,
                chunk_bytes=chunk_bytes,
                force=force,
                progress=progress,
            )
        if as_json:
            draw.echo_answer(log, **done.as_dict())
        else:
            draw.show_written(done)
        return draw.finish(log, done.skipped)
