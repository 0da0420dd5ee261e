"""``logreel add``."""

from __future__ import annotations

import os
import sys

import rich_click as click

from logreel.cli import arguments, common, draw
from logreel.cli import files as paths
from logreel.cli.help import verb

ATTACHMENT, METADATA = "attachment", "metadata"


@verb(
    examples={
        "logreel add metadata flight.ulg operator=Kim place=hall": "add values to a log",
        "logreel add attachment walk.mcap notes.txt": "add a file to a log",
    },
)
@click.argument("what", type=click.Choice([ATTACHMENT, METADATA]), metavar="attachment|metadata")
@common.one_file
@click.argument("values", metavar="PATH…|NAME=VALUE…", nargs=-1, required=True, type=arguments.FILE)
@click.option("--name", metavar="NAME", help="Name of the attachment; by default that of its file.")
@click.option(
    "--media-type", metavar="TYPE", help="Type of the attachments, such as image/png; by default by suffix."
)
@common.as_json
def add(
    what: str, file: str, values: tuple[str, ...], name: str | None, media_type: str | None, as_json: bool
) -> int:
    """Add files or metadata to an existing log.

    "add attachment FILE PATH…" adds files, "add metadata FILE NAME=VALUE…" adds values. The log is replaced when the
    new one is complete.
    """
    from logreel.errors import UsageError
    from logreel.ops.add import add_attachments, add_metadata

    if what == METADATA:
        if name is not None or media_type is not None:
            raise UsageError("--name and --media-type are for attachments")
        done = add_metadata(file, common.metadata_of(values, ""))
        many = len(done.metadata)
    else:
        done = add_attachments(file, _contents(values, name), media_type)
        many = len(done.attachments)
    if as_json:
        draw.echo_json(done.as_dict())
    else:
        draw.say(f"added {f'{many} attachments' if many > 1 and what == ATTACHMENT else what} to {file}")
    return 0


def _contents(values: tuple[str, ...], name: str | None) -> dict[str, bytes]:
    """Return the content of files by name; - is standard input."""
    from logreel.errors import UsageError

    if name is not None and len(values) > 1:
        raise UsageError("--name is for a single attachment")
    if paths.STDOUT in values and name is None:
        raise UsageError("- is standard input, which has no name: add --name")
    found: dict[str, bytes] = {}
    for path in values:
        key = name or os.path.basename(path)
        if key in found:
            raise UsageError(f"two files are called {key!r}: add one of them with --name")
        if path == paths.STDOUT:
            found[key] = sys.stdin.buffer.read()
        else:
            with open(path, "rb") as one:
                found[key] = one.read()
    return found
