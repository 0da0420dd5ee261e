"""``logreel diff``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click

from logreel.cli import arguments, common, draw
from logreel.cli import files as paths
from logreel.cli.help import verb

if TYPE_CHECKING:
    from logreel.io.source import Definitions


@verb(
    examples={
        "logreel diff first.ulg second.ulg": "what differs between two logs",
        "logreel diff first.ulg second.ulg --only params,text": "compare parameters and lines of text",
        "logreel diff first.ulg second.ulg --messages -t 'sensor_*'": "also compare the messages of some channels",
    },
)
@click.argument("files", metavar="A B", nargs=-1, required=True, type=arguments.FILE)
@common.topics
@common.exclude
@common.start
@common.end
@common.segment
@click.option("--fields", is_flag=True, help="Also compare minimum, mean and maximum of every numeric field.")
@click.option("--messages", is_flag=True, help="Also compare times and bytes of all messages.")
@click.option(
    "--only",
    multiple=True,
    metavar="WHAT",
    callback=lambda context, option, given: [name for one in given for name in one.split(",") if name],
    help="Compare only this: log, metadata, params, attachments, topics, messages or text; several with commas.",
)
@click.option("--all", "whole", is_flag=True, help="Print long lists and values in full.")
@common.as_one_flag
@common.anyway_flag
@paths.text_output
@common.decrypt
@common.msgdef
@common.as_json
def diff(
    files: tuple[str, ...],
    as_one: bool,
    anyway: bool,
    topics: tuple[str, ...],
    exclude: tuple[str, ...],
    start: str | None,
    end: str | None,
    segment: int | None,
    fields: bool,
    messages: bool,
    only: list[str],
    whole: bool,
    msgdef: Definitions,
    as_json: bool,
) -> int:
    """Compare two logs; with --as-one, also folders or patterns of the parts of two recordings.

    Compares topics, definitions, parameters, metadata, attachments, counts, times and rates, and on request messages
    and text. The exit code is 0 if nothing differs, else 4.
    """
    import contextlib

    from logreel.cli.exits import FOUND
    from logreel.errors import UsageError
    from logreel.ops.inspect.diff import diff as look
    from logreel.registry.open_logs import open_many

    if len(files) != 2:
        raise UsageError(f"diff compares two logs, A and B, not {len(files)}")
    both = [paths.Logs((name,), as_one, anyway).only(f"{name}: one side is one log") for name in files]
    with contextlib.ExitStack() as stack:
        opened = open_many(both, stack, msgdef, segment=segment, parts=True, anyway=anyway)
        for log in opened:
            paths.note_decrypted(log)
        found = look(
            *opened,
            topics=topics or None,
            exclude=exclude,
            start=start,
            end=end,
            fields=fields,
            messages=messages,
            only=only or None,
        )
    if as_json:
        draw.echo_json(found.as_dict())
    else:
        from logreel.cli.diff_text import show

        show(found, whole)
    return 0 if found.same else FOUND
