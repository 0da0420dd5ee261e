"""``logreel sort``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rich_click as click

from logreel.cli import common, draw
from logreel.cli import files as paths

if TYPE_CHECKING:
    from logreel.io.source import Definitions


@click.command()
@common.file
@common.output
@common.compression
@common.chunk_size
@common.options
@common.force
@common.segment
@common.msgdef
@common.as_json
def sort(
    file: paths.Given,
    out: str,
    compression: str | None,
    chunk_bytes: int | None,
    options: dict[str, Any],
    force: bool,
    segment: int | None,
    msgdef: Definitions,
    as_json: bool,
) -> int:
    """Write a log with its messages sorted by time."""
    from logreel.ops.rewrite.slice import sort_log
    from logreel.registry.open import open_log

    with open_log(file, definitions=msgdef, segment=segment) as log:
        path = paths.destination(out, paths.suffix_of(log.format), as_json)
        with draw.progress(out) as progress:
            done = sort_log(
                log,
                path,
                compression=compression,
                chunk_bytes=chunk_bytes,
                options=options,
                force=force,
                progress=progress,
            )
        if as_json:
            draw.echo_answer(log, **done.as_dict())
        else:
            draw.show_written(done, out)
        return draw.finish(log, done.skipped)
