"""``logreel migrate``."""

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
    from logreel.ops.migrate import Migrated


@verb(
    examples={
        "logreel migrate old.bag -o new.bag --rules rules.toml": "messages in other types, by rules",
        "logreel migrate old.bag -o partial.bag --rules rules.toml --partial": "keep what no rule covers",
    },
)
@common.logs
@click.option(
    "-o", "--output", "out", metavar="OUT", type=arguments.FILE, help="Path of the new log; - is stdout."
)
@common.rules
@common.wanted
@click.option(
    "--only-rules",
    is_flag=True,
    help="Do not update types to the definitions that logreel knows, only by rules.",
)
@click.option(
    "--partial",
    is_flag=True,
    help="Leave messages as they are where a rule is missing, and exit with code 3.",
)
@click.option(
    "--write-template",
    "write_template",
    metavar="FILE",
    type=arguments.FILE,
    help="Write the beginning of each missing rule into FILE (.bmr or .toml), and no log.",
)
@common.compression
@common.chunk_size
@common.force
@common.segment
@common.decrypt
@common.msgdef
@common.as_json
def migrate(
    logs: paths.Logs,
    out: str | None,
    rules: tuple[str, ...],
    wanted: tuple[str, ...],
    only_rules: bool,
    partial: bool,
    write_template: str | None,
    compression: str | None,
    chunk_bytes: int | None,
    force: bool,
    segment: int | None,
    decrypt: bool,
    msgdef: Definitions,
    as_json: bool,
) -> int:
    """Write a log with its messages in other versions of their types, by rules.

    Rules are files of ROS (.bmr) or TOML. Types whose fields only changed their order or their nested types need no
    rules. All other messages stay as they are. check --types lists what would be migrated.
    """
    from logreel.errors import UsageError
    from logreel.ops.migrate import migrate as run
    from logreel.ops.migrate import write_template as write_rules_to

    if (out is None) == (write_template is None):
        raise UsageError("give the new log with -o OUT, or --write-template FILE")

    def write_rules(log: Log) -> int:
        count = write_rules_to(
            log, write_template or "", rules=rules, to=wanted, known=not only_rules, force=force
        )
        draw.say(
            f"{write_template}: {count} rule{'s' * (count > 1)} to complete"
            if count
            else "no rule is missing; nothing is written"
        )
        return 0

    def write(log: Log, path: Destination, name: str) -> int:
        with draw.progress(name) as progress:
            done = run(
                log,
                path,
                rules=rules,
                to=wanted,
                known=not only_rules,
                partial=partial,
                compression=compression,
                chunk_bytes=chunk_bytes,
                force=force,
                progress=progress,
            )
        if as_json:
            draw.echo_answer(log, logs.several, **done.as_dict())
        else:
            _show(done, name)
        return draw.finish(log, done.skipped)

    options: dict[str, Any] = {"definitions": msgdef, "segment": segment, "decrypt": decrypt}
    if write_template is not None:
        logs.only("--write-template is for one log")
        return common.each_log(logs, write_rules, False, **options)
    return common.write_each(logs, out or "", write, paths.log_suffix, as_json, **options)


def _show(done: Migrated, out: str) -> None:
    """Print what was written, and the types that changed; on stderr if the log goes to stdout."""
    draw.show_written(done, out)
    if not done.changes or out == paths.STDOUT:
        return
    rows = [
        (
            one.topic,
            str(one.messages),
            _version(one.old_type, one.old_version),
            _version(one.new_type, one.new_version),
        )
        for one in done.changes
    ]
    draw.table(("topic", "messages", "from", "to"), rows, right=(1,))


def _version(name: str, version: str) -> str:
    return f"{name} {version[:8]}"
