"""``logreel merge``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rich_click as click

from logreel.cli import arguments, common, draw
from logreel.cli import files as paths
from logreel.cli.help import verb

if TYPE_CHECKING:
    from logreel.io.source import Definitions


@verb(
    examples={
        "logreel merge first.ulg second.ulg -o both.ulg --align start": "one log from two flights, from the same start",
        "logreel merge flight.ulg drive.bag -o all.mcap --align start": "two formats in one MCAP, from the same start",
    },
)
@click.argument("files", metavar="IN…", nargs=-1, required=True, type=arguments.FILE)
@common.output
@common.form
@common.topics
@common.exclude
@common.start
@common.end
@common.segment
@click.option(
    "--align", metavar="HOW", help="Shift the clocks of all logs but the first: utc, start, or by +2.5s."
)
@click.option(
    "--anyway",
    is_flag=True,
    help="Also merge logs whose clocks began at different times, as if it were one clock.",
)
@click.option(
    "--prefix",
    "prefixes",
    multiple=True,
    metavar="TEXT",
    help="Prefix for the topics of a log; repeat it for each log.",
)
@click.option("--rename", multiple=True, metavar="OLD=NEW", help="Rename a topic.")
@common.compression
@common.chunk_size
@common.options
@common.force
@common.decrypt
@common.msgdef
@common.as_json
def merge(
    files: tuple[str, ...],
    out: str,
    form: str | None,
    topics: tuple[str, ...],
    exclude: tuple[str, ...],
    start: str | None,
    end: str | None,
    segment: int | None,
    align: str | None,
    anyway: bool,
    prefixes: tuple[str, ...],
    rename: tuple[str, ...],
    compression: str | None,
    chunk_bytes: int | None,
    options: dict[str, Any],
    force: bool,
    decrypt: bool,
    msgdef: Definitions,
    as_json: bool,
) -> int:
    """Merge several logs into one, in time order: logs of one format, or of any formats into an MCAP.

    A folder means all logs in and below it. Clocks are shifted only with --align, and logs whose clocks began at
    different times, such as flights after several boots, are merged only with it. Channels with the same name and
    definition become one channel.
    """
    import contextlib

    from logreel.errors import UsageError
    from logreel.outputs.merge_formats import merge as write
    from logreel.registry.log_files import expand
    from logreel.registry.open_logs import open_many

    paths.check_form(form, out)
    for pair in rename:
        if "=" not in pair:
            raise UsageError(f"--rename {pair!r}: write OLD=NEW")
    changes = {old: new for old, _, new in (pair.partition("=") for pair in rename)}
    with contextlib.ExitStack() as stack:
        names = expand(files)
        logs = open_many(names, stack, msgdef, segment=segment, decrypt=decrypt, parts=True)
        path = paths.destination(out, paths.suffix_of(form or logs[0].format), as_json)
        with draw.progress(out) as progress:
            done = write(
                logs,
                path,
                format=form,
                topics=topics or None,
                exclude=exclude,
                start=start,
                end=end,
                align=align,
                anyway=anyway,
                prefixes=prefixes,
                rename=changes,
                compression=compression,
                chunk_bytes=chunk_bytes,
                options=options,
                force=force,
                progress=progress,
            )
        if as_json:
            problems = [{"path": log.name} | p.as_dict() for log in logs for p in log.problems]
            draw.echo_json({"paths": names, **done.as_dict(), "problems": problems})
        else:
            draw.show_written(done, out)
        codes = [draw.finish(log, done.skipped if n == 0 else ()) for n, log in enumerate(logs)]
        return max(codes)
