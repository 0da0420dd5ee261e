"""``logreel recover``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rich_click as click

from logreel.cli import arguments, common, draw
from logreel.cli import files as paths
from logreel.cli.help import verb

if TYPE_CHECKING:
    from logreel.io.output_stream import Destination
    from logreel.io.source import Definitions
    from logreel.log.log import Log
    from logreel.ops.rewrite.recover import Recovered


@verb(
    examples={
        "logreel recover broken.bag -o sound.bag": "everything that a damaged log still holds",
        "logreel recover broken.bag -o again.bag --json": "with the lost places as JSON",
    },
)
@common.logs
@click.option(
    "-o", "--output", "out", metavar="OUT", type=arguments.FILE,
    help="Path of the new log; - is stdout; the default for x.bag.active is x.bag.",
)  # fmt: skip
@common.form
@common.selection
@common.segment
@common.compression
@common.chunk_size
@common.options
@common.force
@common.decrypt
@common.msgdef
@common.as_json
def recover(
    logs: paths.Logs,
    out: str | None,
    form: str | None,
    selection: dict[str, Any],
    segment: int | None,
    decrypt: bool,
    msgdef: Definitions,
    compression: str | None,
    chunk_bytes: int | None,
    options: dict[str, Any],
    force: bool,
    as_json: bool,
) -> int:
    """Write the intact content of a damaged log as a new log.

    All complete messages and all definitions are kept. Lost parts are listed with their size and the times around
    them. The new log is verified before it gets its name; the damaged log is not changed.
    """
    from logreel.ops.record.lines import waiting_lines
    from logreel.ops.rewrite.recover import recover as save
    from logreel.ops.selection import Selection

    paths.check_form(form, out)
    for file in logs.files:
        if (lines := waiting_lines(file)) is None:
            continue
        draw.say(f"{lines} holds the first lines of this recording: logreel record NEW --from {lines}")

    def write(log: Log, path: Destination | None, name: str) -> int:
        with draw.progress(log.name) as progress:
            done = save(
                log,
                path,
                format=form,
                selection=Selection(**selection, segment=segment),
                compression=compression,
                chunk_bytes=chunk_bytes,
                options=options,
                force=force,
                progress=progress,
            )
        if as_json:
            draw.echo_answer(log, logs.several, **done.as_dict())
        else:
            _show(log, done, name)
        return draw.finish(log, done.skipped)

    if out is None:
        # The output of each is called as the log.
        return common.each_log(
            logs, lambda log: write(log, None, ""), False, definitions=msgdef, decrypt=decrypt
        )
    return common.write_each(
        logs,
        out,
        write,
        lambda log: paths.suffix_of(form or log.format),
        as_json,
        definitions=msgdef,
        decrypt=decrypt,
    )


def _show(log: Log, done: Recovered, out: str) -> None:
    """Print what was written and what was lost; on stderr if the log goes to stdout."""
    from logreel.log.times import time_text

    draw.show_written(done, out)
    if not done.lost:
        return

    def text(time: int | None) -> str:
        return "" if time is None else time_text(time, log.utc_offset if log.epoch == "unix" else None)

    rows = [(str(p.offset), str(p.size), text(p.start_ns), text(p.end_ns), p.code, p.text) for p in done.lost]
    if out == paths.STDOUT:
        for row in rows:
            draw.say(f"lost {row[1]} bytes at byte {row[0]}: {row[5]}")
        return
    draw.table(("at byte", "bytes", "after", "before", "what", ""), rows, right=(0, 1))
