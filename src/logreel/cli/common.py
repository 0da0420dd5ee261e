"""What several verbs share: options, and the way through many files."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import rich_click as click

from logreel.cli import arguments

if TYPE_CHECKING:
    from logreel.log.log import Channel, Log
    from logreel.ops.query.topic_fields import FieldsByTopic


class Plain(Protocol):
    """What can be shown as JSON."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""


Found = TypeVar("Found", bound=Plain)
Opened = TypeVar("Opened")


_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kMGT]?)(i?)B?")
TIMES = "+12.5s from the start, -30s from the end, 00:01:30, 2024-05-01T12:00:00Z, or 123ns."

file = click.argument("file", metavar="FILE", type=arguments.FILE)
files = click.argument("files", metavar="FILE…", nargs=-1, required=True, type=arguments.FILE)
topics = click.option(
    "-t",
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC",
    type=arguments.TOPIC,
    help="A channel, a pattern such as 'sensor_*', or 're:' and a regular expression.",
)
topics_or_fields = click.option(
    "-t",
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC[.FIELD]",
    type=arguments.TOPIC_OR_FIELD,
    help="A channel or pattern, as in other verbs; fields of it are TOPIC.FIELD or TOPIC:FIELD,FIELD.",
)
exclude = click.option(
    "-x",
    "--exclude",
    multiple=True,
    metavar="TOPIC",
    type=arguments.TOPIC,
    help="Leave out a channel or a pattern.",
)
count = click.option(
    "-n", "--count", type=click.IntRange(min=0), metavar="N", help="Only the first N messages."
)
start = click.option("-S", "--start", metavar="TIME", help=f"First moment: {TIMES}")
end = click.option("-E", "--end", metavar="TIME", help="End, itself not included; written like --start.")
utc = click.option("--utc", is_flag=True, help="Wall-clock times, where the log tells them.")
interpolate = click.option(
    "--interpolate",
    is_flag=True,
    help="In tables, spread the times of records that share one evenly to the next message.",
)
_msgdef = click.option(
    "--msgdef",
    "--descriptors",
    "msgdef",
    multiple=True,
    metavar="PATH",
    type=arguments.FILE,
    help="File, folder or Python module with message definitions, for logs that carry none.",
)
_types = click.option(
    "--type",
    "types",
    multiple=True,
    metavar="TOPIC=TYPE",
    help="Type of a topic of ROS 1 whose log does not tell: /scan=sensor_msgs/LaserScan.",
)


def msgdef(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for what logs do not say of their messages; *command* takes it all as ``msgdef``."""

    @functools.wraps(command)
    def call(*args: Any, msgdef: tuple[str, ...], types: tuple[str, ...], **options: Any) -> Any:
        from logreel.errors import UsageError

        for pair in types:
            if "=" not in pair:
                raise UsageError(f"--type {pair!r}: write TOPIC=TYPE")
        given = {topic: kind for topic, _, kind in (pair.rpartition("=") for pair in types)}
        return command(*args, msgdef=(*msgdef, given) if given else msgdef, **options)

    return _msgdef(_types(call))


ros_axes = click.option(
    "--ros-axes", is_flag=True, help="Metres and right-handed axes, for logs that have others."
)
segment = click.option(
    "--segment", type=int, metavar="N", help="Only this one of several logs in the file; info lists them."
)
force = click.option("--force", is_flag=True, help="Replace what is there.")
as_json = click.option("--json", "as_json", is_flag=True, help="One JSON object; times in ns.")
output = click.option(
    "-o",
    "--output",
    "out",
    metavar="OUT",
    required=True,
    type=arguments.FILE,
    help="The new log; - is stdout.",
)
form = click.option("--format", "form", metavar="NAME", help="With -o -: as what, such as csv or mcap.")
compression = click.option(
    "--compression", metavar="NAME", help="Of the new log, where its format has one; else as in the source."
)
chunk_size = click.option(
    "--chunk-size",
    "chunk_bytes",
    metavar="SIZE",
    callback=lambda context, option, text: None if text is None else bytes_of(text),
    help="Of the new log's chunks, where its format has them: 1MiB.",
)


def each(
    names: Sequence[str],
    look: Callable[[str], Found],
    show: Callable[[Found], None],
    as_json: bool,
    gap: bool = False,
) -> tuple[list[Found], int]:
    """What *look* gives of every file, shown as it comes; and an exit code for those that could not be opened.

    names  as ``files.expand`` gives them
    gap    an empty line between what is shown of two files

    The code is that of the first one where there was no other, 3 where only some were left out, else 0. JSON is a line
    for each.
    """
    from logreel.cli import draw
    from logreel.cli.exits import LOST

    found: list[Found] = []

    def tell(name: str) -> None:
        found.append(look(name))
        if as_json:
            draw.echo_json(found[-1].as_dict(), line=True)
            return
        if gap and len(found) > 1:
            draw.echo()
        show(found[-1])

    _, code = open_each(names, tell)
    return found, LOST if code and found else code


def open_each(names: Sequence[str], look: Callable[[str], Opened]) -> tuple[list[Opened], int]:
    """What *look* gives of every file; and the exit code of the first that it cannot open, which are told, else 0."""
    from logreel.cli.exits import report
    from logreel.cli.files import file_of
    from logreel.errors import LogError

    found: list[Opened] = []
    code = 0
    for name in names:
        try:
            found.append(look(file_of(name)))
        except (LogError, OSError) as error:
            if isinstance(error, BrokenPipeError):
                raise
            context = click.get_current_context(silent=True)
            failed = report(error, () if context is None else context.find_root().obj or ())
            code = code or failed
    return found, code


def chosen_fields(log: Log, topics: Sequence[str], exclude: Sequence[str]) -> FieldsByTopic:
    """Return the channels that -t and -x mean, with the fields that -t names; None: all fields."""
    from logreel.ops.query.topic_fields import fields_by_topic

    kept = fields_by_topic(log, topics) if topics else dict.fromkeys(ch.topic for ch in log.match(None))
    without = {ch.topic for ch in log.match(exclude)} if exclude else set()
    return {topic: fields for topic, fields in kept.items() if topic not in without}


def chosen(log: Log, topics: Sequence[str], exclude: Sequence[str]) -> list[Channel]:
    """The channels that -t and -x mean."""
    without = {ch.number for ch in log.match(exclude)} if exclude else set()
    return [ch for ch in log.match(topics or None) if ch.number not in without]


def bytes_of(text: str) -> int:
    """A number of bytes as people write it."""
    from logreel.errors import UsageError

    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"cannot read the size {text!r}: write 100MB, 1GiB or 5000000")
    number, unit, binary = match.groups()
    return int(float(number) * (1024 if binary else 1000) ** " kMGT".index(unit or " "))
