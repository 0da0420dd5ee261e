"""``logreel sort``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logreel.cli import common, draw
from logreel.cli import files as paths
from logreel.cli.help import verb

if TYPE_CHECKING:
    from logreel.io.source import Definitions


@verb(
    examples={
        "logreel sort drive.bag -o sorted.bag": "the messages in the order of their times",
        "logreel sort flight.ulg -o sorted.ulg --force": "replace an earlier output",
    },
)
@common.file
@common.output
@common.compression
@common.chunk_size
@common.options
@common.force
@common.segment
@common.decrypt
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
    decrypt: bool,
    msgdef: Definitions,
    as_json: bool,
) -> int:
    """Write a log with its messages sorted by time."""
    from logreel.ops.rewrite.slice import sort_log
    from logreel.registry.open import open_log

    with open_log(file, definitions=msgdef, segment=segment, decrypt=decrypt) as log:
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
