"""``logreel attachments``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import rich_click as click

from logreel.cli import arguments, common, draw
from logreel.cli import files as paths
from logreel.cli.help import verb

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.log import Log
    from logreel.log.scan import Attachment


@verb(
    examples={
        "logreel attachments walk.mcap": "the files attached to a log",
        "logreel attachments walk.mcap -o files": "extract them to a folder",
    },
)
@common.logs
@click.option(
    "-o",
    "--output",
    "folder",
    metavar="DIR",
    type=arguments.FOLDER,
    help="Write the attachments to this folder; - writes a single one to stdout.",
)
@click.option("--name", metavar="NAME", help="Only this attachment; without -o its content goes to stdout.")
@common.force
@common.segment
@common.decrypt
@common.msgdef
@common.as_json
def attachments(
    logs: paths.Logs,
    folder: str | None,
    name: str | None,
    force: bool,
    segment: int | None,
    decrypt: bool,
    msgdef: Definitions,
    as_json: bool,
) -> int:
    """List or extract the files attached to logs; of several logs, each gets a folder in DIR."""
    from logreel.errors import NotFoundError
    from logreel.log.joined_log import inputs_of
    from logreel.outputs.files import extract

    if folder == paths.STDOUT or (folder is None and name is not None and not as_json):
        logs.only("the content of one attachment goes to stdout")
    outputs = paths.outputs_in(folder or "", logs, "") if logs.several and folder else {}

    def answer(log: Log) -> int:
        found = dict(log.attachments)
        if name is not None and name not in found:
            raise NotFoundError("attachment", name, found, path=log.name)
        chosen = [a for a in found.values() if name in (None, a.name)]
        if folder == paths.STDOUT:
            return _write_single(log, chosen, as_json)
        to = paths.output_for(outputs, log) if outputs else folder
        files = (
            extract(chosen, to, force, all_names=list(found), sources=inputs_of(log)) if to and chosen else {}
        )
        if as_json:
            draw.echo_answer(log, logs.several, attachments=[_as_dict(a, files) for a in chosen])
        elif folder:
            for path in files.values():
                draw.say(f"wrote {path}")
        elif name is not None:
            _to_stdout(chosen[0])
        elif chosen:
            rows = [(a.name, a.media_type, draw.size_text(a.size)) for a in chosen]
            draw.table(("name", "type", "size"), rows, right=(2,))
        return draw.finish(log)

    heading = folder is None and not as_json
    return common.each_log(logs, answer, heading, definitions=msgdef, segment=segment, decrypt=decrypt)


def _write_single(log: Log, chosen: list[Attachment], as_json: bool) -> int:
    """Write the only attachment to stdout, for ``-o -``; raises UsageError for several."""
    from logreel.errors import UsageError

    if as_json:
        raise UsageError("--json and -o - would both write to stdout: leave out one of them")
    if len(chosen) != 1:
        raise UsageError(
            f"{len(chosen)} attachments do not fit on stdout: choose one with --name", path=log.name
        )
    _to_stdout(chosen[0])
    return draw.finish(log)


def _as_dict(one: Attachment, files: dict[str, str]) -> dict[str, object]:
    file = files.get(one.name)
    return {"name": one.name, "media_type": one.media_type, "size": one.size, "file": file}


def _to_stdout(one: Attachment) -> None:
    """Write the content of an attachment to stdout; raises UsageError for binary data on a terminal."""
    from logreel.errors import UsageError

    data = one.read()
    if not sys.stdout.isatty():
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
    elif one.media_type.startswith("text/"):
        for line in data.decode("utf-8", "replace").splitlines():
            draw.echo(line)
    else:
        raise UsageError(f"{one.name} is not text: redirect the output, or use -o DIR")
