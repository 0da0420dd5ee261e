"""Options and loops over files that several verbs share."""

from __future__ import annotations

import functools
import glob
import os
import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import rich_click as click

from logreel.cli import arguments

if TYPE_CHECKING:
    from logreel.cli import files as paths
    from logreel.io.source import Definitions
    from logreel.log.log import Channel, Log
    from logreel.log.topic_fields import FieldsByTopic


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
#: Place in a click context of the words that are no logs.
_WORDS = "logreel.words"
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


files = click.argument("files", metavar="FILE…", nargs=-1, required=True, type=arguments.FILE)
as_one_flag = click.option(
    "--as-one",
    is_flag=True,
    help="Take all files as the parts of one recording, instead of each as a log of its own.",
)
anyway_flag = click.option(
    "--anyway",
    is_flag=True,
    help="With --as-one: also if the files tell that they are of different recordings.",
)
one_file = click.argument("file", metavar="FILE", type=arguments.FILE)


def logs(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add FILE…, ``--as-one`` and ``--anyway`` to *command*, which gets them as its argument ``logs``."""
    return files(as_one(command))


def logs_and_words(metavar: str, kind: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator like ``logs`` for commands that also take other words, as their argument ``words``.

    Words that exist as files or folders, or end like the name of a log, are logs.

    metavar  how the help names the arguments
    kind     their type
    """
    both = click.argument("files", metavar=metavar, nargs=-1, required=True, type=kind, callback=_logs_first)

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def call(*args: Any, **options: Any) -> Any:
            return command(*args, words=_context().meta[_WORDS], **options)

        return both(as_one(call))

    return add


def _context() -> click.Context:
    context = click.get_current_context()
    if context is None:
        raise TypeError("not within a command")
    return context


def _logs_first(context: click.Context, argument: click.Parameter, words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words that name logs, and keep the others for the command."""
    # Without any log, the error is that of a missing file.
    logs = [word for word in words if _is_log(word)] or list(words[:1])
    context.meta[_WORDS] = tuple(word for word in words if word not in logs)
    return tuple(logs)


def _is_log(word: str) -> bool:
    """Return whether an argument names a log: a file or folder that exists, or what looks like the path of a log."""
    if word == "-" or "://" in word or (os.path.exists(word) and not glob.has_magic(word)):
        return True
    from logreel.registry.registry import log_suffixes

    return not word.startswith("re:") and (os.path.exists(word) or word.lower().endswith(log_suffixes()))


def as_one(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--as-one`` and ``--anyway`` to *command*, whose ``files`` they join; it gets ``logs`` instead."""

    @functools.wraps(command)
    def call(*args: Any, files: Sequence[str], as_one: bool, anyway: bool, **options: Any) -> Any:
        from logreel.cli.files import Logs

        return command(*args, logs=Logs(tuple(files), as_one, anyway), **options)

    return as_one_flag(anyway_flag(call))


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


def selection(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add -t, -x, -S, -E and --where to *command*, which gets them as ``selection``, a dict of library parameters."""

    @functools.wraps(command)
    def call(*args: Any, **options: Any) -> Any:
        chosen = {name: options.pop(name) or None for name in ("topics", "start", "end")}
        chosen |= {name: options.pop(name) for name in ("exclude", "where")}
        return command(*args, selection=chosen, **options)

    return topics(exclude(start(end(where(call)))))


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


def shared() -> dict[str, click.Option]:
    """Return the options of this module by name."""

    command = click.Command("")
    for declare in (
        topics, exclude, count, start, end, where, keep_latched, latched, utc, interpolate, decrypt, ros_axes, segment,
        force, safe_csv, compression, chunk_size, options, anyway_flag,
    ):  # fmt: skip
        declare(command)
    return {one.name: one for one in command.params if isinstance(one, click.Option) and one.name is not None}


def print_each(
    logs: paths.Logs,
    look: Callable[[paths.Given], Result],
    show: Callable[[Result], None],
    as_json: bool,
    gap: bool = False,
) -> tuple[list[Result], int]:
    """Call *look* for each log and print the result at once; return all results and the exit code.

    show     prints a result for people
    as_json  print a line of JSON instead
    gap      print an empty line between two results

    The exit code is 0 if all logs could be opened, 3 if only some could, else that of the first error.
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

    results, code = open_each(logs, look, print_result)
    return results, LOST if code and results else code


def answer_each(
    logs: paths.Logs,
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

    codes: list[int] = []

    def answer(name: paths.Given) -> Result:
        with logs.open(name, definitions=definitions) as log:
            note_decrypted(log)
            found = look(log)
            codes.append(draw.finish(log))
            return found

    found, code = print_each(logs, answer, show, as_json, gap=True)
    return found, code, max(codes, default=0)


def each_log(
    logs: paths.Logs,
    answer: Callable[[Log], int],
    heading: bool,
    stack: ExitStack | None = None,
    **options: Any,
) -> int:
    """Open each log, let *answer* print what it says, and return the exit code.

    answer   returns an exit code
    heading  print the name of each log above its answer, if there are several
    stack    closes the logs; None: each is closed after its answer
    options  as for ``logreel.open``

    Of one log, an error ends the verb. Of several, it is reported and the others go on: the exit code is 3 if there
    was any answer, else that of the first error.
    """
    from logreel.cli import draw
    from logreel.cli.exits import LOST
    from logreel.cli.files import note_decrypted

    codes: list[int] = []

    def look(name: paths.Given) -> None:
        with ExitStack() as own:
            log = (own if stack is None else stack).enter_context(logs.open(name, **options))
            note_decrypted(log)
            if heading and logs.several:
                if codes:
                    draw.echo()
                draw.echo_head(log.name)
            codes.append(0)
            codes[-1] = answer(log)

    if not logs.several:
        look(logs.each[0])
        return codes[0]
    answered, code = open_each(logs, look)
    return LOST if code and answered else code or max(codes, default=0)


def write_each(
    logs: paths.Logs,
    out: str,
    write: Callable[[Log, Any, str], int],
    suffix: str | Callable[[Log], str],
    as_json: bool,
    **options: Any,
) -> int:
    """Open each log, let *write* make an output of it, and return the exit code, as ``each_log`` does.

    out     the output; or a folder, which gets an output for each log, called as the log
    write   is called with the log, a path or the stream of stdout, and the output as a user would name it
    suffix  suffix of the outputs; or returns that of the output of a log on stdout, and outputs in a folder have the
            suffix of their log
    """
    from logreel.cli import files

    def write_only(log: Log) -> int:
        known = suffix if isinstance(suffix, str) else suffix(log)
        return write(log, files.destination(out, known, as_json), out)

    if not logs.several and not files.is_folder(out):
        return each_log(logs, write_only, False, **options)
    same = suffix if isinstance(suffix, str) else None
    outputs = files.outputs_in(files.folder_for_several(out, logs), logs, same)

    def write_one(log: Log) -> int:
        # Parts that are joined have one output, called as the first of them.
        path = next(iter(outputs.values())) if logs.as_one else files.output_for(outputs, log)
        return write(log, path, path)

    with files.made_folder(out):
        return each_log(logs, write_one, False, **options)


def open_each(
    logs: paths.Logs,
    look: Callable[[paths.Given], Opened],
    use: Callable[[Opened], object] | None = None,
) -> tuple[list[Opened], int]:
    """Return the results of *look* for the logs that can be opened, and the exit code of the first error, else 0.

    use  called with each result at once

    Errors of *look* are reported on stderr; those of *use* and of outputs, such as a full disk, are no fault of one log
    and end all. Logs that look like parts of one recording are named on stderr at the end.
    """
    from logreel.cli.exits import report
    from logreel.errors import LogError, UsageError

    found: list[Opened] = []
    code = 0
    said: set[str] = set()
    for log in logs.each:
        try:
            result = look(log)
        except (LogError, OSError) as error:
            # Without a name, it is an error of the output.
            if not isinstance(error, LogError) and error.filename is None:
                raise
            # What is wrong with the words of the command line is wrong for each log.
            text = str(error) if isinstance(error, LogError) else ""
            if text in said and isinstance(error, UsageError):
                continue
            said.add(text)
            context = click.get_current_context(silent=True)
            words = () if context is None else context.find_root().obj or ()
            failed = report(error, words, None if context is None else context.command)
            code = code or failed
            continue
        found.append(result)
        if use is not None:
            use(result)
    logs.offer()
    return found, code


def chosen_fields(log: Log, topics: Sequence[str], exclude: Sequence[str]) -> FieldsByTopic:
    """Return the channels chosen by -t and -x, with the fields that -t names; None: all fields."""
    from logreel.log.topic_fields import fields_by_topic

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
