"""Options and loops over files that several verbs share."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import rich_click as click

from logreel.cli import arguments

if TYPE_CHECKING:
    from logreel.cli import files as paths
    from logreel.io.source import Definitions
    from logreel.log.log import Channel, Log
    from logreel.ops.query.topic_fields import FieldsByTopic


class HasDict(Protocol):
    """An object that can be printed as JSON."""

    def as_dict(self) -> dict[str, Any]:
        """Return the object as plain data."""


Result = TypeVar("Result", bound=HasDict)
Opened = TypeVar("Opened")


_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kKMGT]?)(i?)B?")
#: Numbers without leading zeros; with these, the value of metadata is a text.
_WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})")
_REAL = re.compile(r"-?(0|[1-9]\d*)\.\d+(e-?\d+)?")
TIMES = (
    "12.5 or +12.5s from the start, -30s from the end, 00:01:30, 2024-05-01T12:00:00Z, 1714564800.5 since 1970, or "
    "log:598.6 by the log's own clock."
)
#: Most logs whose interval is printed; key of what the context knows of it.
MOST_INTERVALS, INTERVALS = 8, "logreel.intervals"


def _tell_intervals(context: click.Context, option: click.Parameter, text: str | None) -> str | None:
    """Let the intervals that -S and -E mean be printed on stderr, one line for each log."""
    if text is None or context.resilient_parsing or INTERVALS in context.meta:
        return text
    context.meta[INTERVALS] = True
    from logreel.cli.draw import say
    from logreel.log.times import Clocked, interval_text, listeners

    told: set[str] = set()

    def tell(log: Clocked, first: int | None, last: int | None) -> None:
        line = f"{log.name}: interval: {interval_text(log, first, last)}"
        if line in told or len(told) > MOST_INTERVALS:
            return
        told.add(line)
        say(line if len(told) <= MOST_INTERVALS else "interval: likewise for the other logs")

    listeners.append(tell)
    context.call_on_close(lambda: listeners.remove(tell))
    return text


def _one_log(context: click.Context, argument: click.Parameter, names: tuple[str, ...]) -> Any:
    """Return the only name, or all names of several files that are one log."""
    return names[0] if len(names) == 1 else list(names)


file = click.argument(
    "file", metavar="FILE…", nargs=-1, required=True, type=arguments.FILE, callback=_one_log
)
one_file = click.argument("file", metavar="FILE", type=arguments.FILE)
files = click.argument("files", metavar="FILE…", nargs=-1, required=True, type=arguments.FILE)
topics = click.option(
    "-t",
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC",
    type=arguments.TOPIC,
    help="Only this channel: a name, a pattern such as 'sensor_*', 're:' and a regular expression, or a condition such "
    "as type=sensor_msgs/Imu.",
)
topics_or_fields = click.option(
    "-t",
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC[.FIELD]",
    type=arguments.TOPIC_OR_FIELD,
    help="Only this channel, a name, pattern, 're:…' or a condition such as type=sensor_msgs/Imu; or only fields "
    "of it: TOPIC.FIELD or TOPIC:FIELD,FIELD.",
)
exclude = click.option(
    "-x",
    "--exclude",
    multiple=True,
    metavar="TOPIC",
    type=arguments.TOPIC,
    help="Leave out this channel: a name, pattern, 're:…' or condition.",
)
count = click.option(
    "-n", "--count", type=click.IntRange(min=0), metavar="N", help="Only the first N messages."
)
start = click.option(
    "-S",
    "--start",
    metavar="TIME",
    callback=_tell_intervals,
    help=f"Start of the interval, included: {TIMES}",
)
end = click.option(
    "-E",
    "--end",
    metavar="TIME",
    callback=_tell_intervals,
    help="End of the interval, not included; same forms as --start.",
)
where = click.option(
    "--where",
    multiple=True,
    metavar="CONDITION",
    help="Only messages whose fields meet this condition in SQL, of channels that have these fields: "
    '"battery_status.voltage_v < 14".',
)
keep_latched = click.option(
    "--keep-latched", is_flag=True, help="Also copy the latched state at the start of each new log."
)
latched = click.option(
    "--latched", multiple=True, metavar="TOPIC", help="Treat this topic as latched; implies --keep-latched."
)
utc = click.option("--utc", is_flag=True, help="Show UTC times; needs a log with a known offset to UTC.")
interpolate = click.option(
    "--interpolate",
    is_flag=True,
    help="In tables: spread the times of the records in a message evenly up to the next message.",
)
decrypt = click.option(
    "--decrypt",
    is_flag=True,
    help="Of an encrypted log: allow that what is written from it can be read without its key.",
)
_msgdef = click.option(
    "--msgdef",
    "--descriptors",
    "msgdef",
    multiple=True,
    metavar="PATH",
    type=arguments.FILE,
    help="File, folder or Python module with message definitions, for logs that contain none.",
)
_types = click.option(
    "--type",
    "types",
    multiple=True,
    metavar="TOPIC=TYPE",
    help="Type of a ROS 1 topic, for logs without types: /scan=sensor_msgs/LaserScan.",
)


def msgdef(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--msgdef`` and ``--type`` to *command*, which gets both as its argument ``msgdef``."""

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
    "--ros-axes",
    is_flag=True,
    help="Convert to metres and right-handed axes, for logs with other units or axes.",
)
segment = click.option(
    "--segment",
    type=int,
    metavar="N",
    help="Use only log number N of a file that contains several logs; info lists them.",
)
force = click.option("--force", is_flag=True, help="Replace existing output.")
as_one = click.option(
    "--as-one", is_flag=True, help="Take all files together as one log, instead of each as a log of its own."
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object; times are in ns.")
output = click.option(
    "-o",
    "--output",
    "out",
    metavar="OUT",
    required=True,
    type=arguments.FILE,
    help="Path of the new log; - is stdout.",
)
safe_csv = click.option(
    "--safe-csv",
    is_flag=True,
    help="In CSV: put ' in front of text that a spreadsheet would run as a formula.",
)
form = click.option("--format", "form", metavar="NAME", help="Output format for -o -, such as mcap.")
rules = click.option(
    "--rules",
    "rules",
    multiple=True,
    metavar="FILE",
    type=arguments.FILE,
    help="Rules of migration: a file of ROS (.bmr) or TOML, or a folder of these.",
)
wanted = click.option(
    "--to",
    "wanted",
    multiple=True,
    metavar="PATH",
    type=arguments.FILE,
    help="File or folder with the wanted definitions (.msg) of types; these have to be reached.",
)
compression = click.option(
    "--compression",
    metavar="NAME",
    help="Compression of the new log, if its format has any; by default that of the source.",
)
options = click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    callback=lambda context, option, pairs: options_of(pairs),
    help="Option of the format of the new log, several allowed: version=1.2 for a bag.",
)
chunk_size = click.option(
    "--chunk-size",
    "chunk_bytes",
    metavar="SIZE",
    callback=lambda context, option, text: None if text is None else bytes_of(text),
    help="Size of the chunks of the new log, if its format has chunks: 1MiB.",
)


def print_each(
    names: Sequence[paths.Given],
    look: Callable[[paths.Given], Result],
    show: Callable[[Result], None],
    as_json: bool,
    gap: bool = False,
) -> tuple[list[Result], int]:
    """Call *look* for each file and print the result at once; return all results and the exit code.

    names    from ``files.expand``
    show     prints a result for people
    as_json  print a line of JSON instead
    gap      print an empty line between two results

    The exit code is 0 if all files could be opened, 3 if only some could, else that of the first error.
    """
    from logreel.cli import draw
    from logreel.cli.exits import LOST

    printed = 0

    def print_result(result: Result) -> None:
        nonlocal printed
        printed += 1
        if as_json:
            draw.echo_json(result.as_dict(), line=True)
            return
        if gap and printed > 1:
            draw.echo()
        show(result)

    results, code = open_each(names, look, print_result)
    return results, LOST if code and results else code


def answer_each(
    names: Sequence[paths.Given],
    look: Callable[[Log], Result],
    show: Callable[[Result], None],
    as_json: bool,
    definitions: Definitions = (),
) -> tuple[list[Result], int, int]:
    """Do the same as ``print_each`` with answers that *look* reads from the content of each open log.

    Returns all results, the exit code of ``print_each``, and 3 if a log lost data or has content that cannot be
    decoded, else 0.
    """
    from logreel.cli import draw
    from logreel.cli.files import note_decrypted
    from logreel.registry.open import open_log

    codes: list[int] = []

    def one(name: paths.Given) -> Result:
        with open_log(name, definitions=definitions) as log:
            note_decrypted(log)
            found = look(log)
            codes.append(draw.finish(log))
            return found

    found, code = print_each(names, one, show, as_json, gap=True)
    return found, code, max(codes, default=0)


def open_each(
    names: Sequence[paths.Given],
    look: Callable[[paths.Given], Opened],
    use: Callable[[Opened], object] | None = None,
) -> tuple[list[Opened], int]:
    """Return the results of *look* for the files that can be opened, and the exit code of the first error, else 0.

    use  called with each result at once

    Errors of *look* are reported on stderr; those of *use*, such as a full disk, are no fault of one file and end all.
    """
    from logreel.cli.exits import report
    from logreel.cli.files import file_of
    from logreel.errors import LogError

    found: list[Opened] = []
    code = 0
    for name in names:
        try:
            result = look(file_of(name))
        except (LogError, OSError) as error:
            if isinstance(error, BrokenPipeError):
                raise
            context = click.get_current_context(silent=True)
            failed = report(error, () if context is None else context.find_root().obj or ())
            code = code or failed
            continue
        found.append(result)
        if use is not None:
            use(result)
    return found, code


def chosen_fields(log: Log, topics: Sequence[str], exclude: Sequence[str]) -> FieldsByTopic:
    """Return the channels chosen by -t and -x, with the fields that -t names; None: all fields."""
    from logreel.ops.query.topic_fields import fields_by_topic

    kept = fields_by_topic(log, topics) if topics else dict.fromkeys(ch.topic for ch in log.match(None))
    without = {ch.topic for ch in log.match(exclude)} if exclude else set()
    return {topic: fields for topic, fields in kept.items() if topic not in without}


def chosen(log: Log, topics: Sequence[str], exclude: Sequence[str]) -> list[Channel]:
    """Return the channels chosen by -t and -x."""
    without = {ch.number for ch in log.match(exclude)} if exclude else set()
    return [ch for ch in log.match(topics or None) if ch.number not in without]


def bytes_of(text: str) -> int:
    """Return the number of bytes for text such as ``100MB`` or ``1GiB``; raises UsageError for other text."""
    from logreel.errors import UsageError

    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"cannot read the size {text!r}: write 100MB, 1GiB or 5000000")
    number, unit, binary = match.groups()
    return int(float(number) * (1024 if binary else 1000) ** " KMGT".index(unit.upper() or " "))


def metadata_of(pairs: Sequence[str], option: str) -> dict[str, int | float | str]:
    """Return metadata from arguments NAME=VALUE: numbers, and texts, optionally in double quotes.

    option  what comes before them on the line, for error texts
    """
    from logreel.errors import UsageError

    for pair in pairs:
        if not pair.partition("=")[0] or "=" not in pair:
            raise UsageError(f"{option}{pair!r}: write NAME=VALUE")
    return {name: _metadata_value(text) for name, _, text in (pair.partition("=") for pair in pairs)}


def options_of(pairs: Sequence[str]) -> dict[str, bool | int | str]:
    """Return options from arguments NAME=VALUE: ``true`` and ``false``, whole numbers, and texts such as ``1.2``."""
    from logreel.errors import UsageError

    found: dict[str, bool | int | str] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not name or not equals:
            raise UsageError(f"--option {pair!r}: write NAME=VALUE")
        truth = {"true": True, "false": False}.get(text.lower())
        found[name] = truth if truth is not None else int(text) if _WHOLE.fullmatch(text) else text
    return found


def _metadata_value(text: str) -> int | float | str:
    if _WHOLE.fullmatch(text):
        return int(text)
    if _REAL.fullmatch(text):
        return float(text)
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text
