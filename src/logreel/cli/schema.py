"""``logreel schema``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logreel.cli import arguments, common, draw
from logreel.cli import files as paths
from logreel.cli.help import verb

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.log import Log
    from logreel.ops.inspect.schema import SchemaInfo


@verb(
    examples={
        "logreel schema drive.bag /imu": "the definition of a channel, and its fields",
        "logreel schema flight.ulg 'battery*' --json": "the channels that a pattern matches, as JSON",
    },
)
@common.logs_and_words("FILE… [TOPIC…]", arguments.FILE_OR_TOPIC)
@common.topics
@common.exclude
@common.ros_axes
@common.segment
@common.decrypt
@common.msgdef
@paths.text_output
@common.as_json
def schema(
    logs: paths.Logs,
    words: tuple[str, ...],
    ros_axes: bool,
    segment: int | None,
    msgdef: Definitions,
    topics: tuple[str, ...],
    exclude: tuple[str, ...],
    as_json: bool,
) -> int:
    """Show message definitions, and fields with types and units.

    TOPIC is a channel or a pattern such as 'sensor_*'; by default all channels are shown. Arguments that exist as files
    or folders, or end like the name of a log, are logs; all others are topics.
    """
    from logreel.ops.inspect.schema import schema as look

    def answer(log: Log) -> int:
        wanted = (*words, *topics)
        channels = common.chosen(log, wanted or tuple(log.channels), exclude)
        found = [look(ch) for ch in channels]
        if as_json:
            schemas = [one.as_dict() for one in found]
            draw.echo_json({"path": log.name, "schemas": schemas}, line=logs.several)
            return 0
        for number, one in enumerate(found):
            if number:
                draw.echo()
            show(one)
        return 0

    return common.each_log(logs, answer, not as_json, definitions=msgdef, segment=segment, ros_axes=ros_axes)


def show(one: SchemaInfo) -> None:
    """Print one definition for people."""
    draw.echo(f"{one.topic}  ({one.name}, {one.encoding})")
    for name, value in one.metadata.items():
        draw.echo(f"  {name}: {value}")
    for line in one.text.splitlines():
        draw.echo(f"  | {line}")
    if one.fields is None:
        draw.echo(f"  cannot be decoded: {one.trouble}")
    else:
        draw.table(("field", "type", "unit"), [(f.path, f.type, f.unit) for f in one.fields], indent=2)
