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
@click.argument("a", metavar="A", type=arguments.FILE)
@click.argument("b", metavar="B", type=arguments.FILE)
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
@paths.text_output
@common.decrypt
@common.msgdef
@common.as_json
def diff(
    a: str,
    b: str,
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
    """Compare two logs.

    Compares topics, definitions, parameters, metadata, attachments, counts, times and rates, and on request messages
    and text. The exit code is 0 if nothing differs, else 4.
    """
    import contextlib

    from logreel.cli.exits import FOUND
    from logreel.ops.inspect.diff import diff as look
    from logreel.ops.open_logs import open_many

    with contextlib.ExitStack() as stack:
        both = open_many((a, b), stack, msgdef, segment=segment)
        for log in both:
            paths.note_decrypted(log)
        found = look(
            *both,
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
