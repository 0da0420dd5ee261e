"""Options of the command line: types of values with shell completion, options that verbs share, and groups of them.

A verb gets a group of options as one object: ``selection`` gives it a ``Selection`` of the library, ``output`` what is
said of the log that it writes, and ``logreel.cli.inputs.logs`` the logs of its arguments and how they are opened.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from logreel.dataclass import dataclass

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from logreel.io.source import Definitions
    from logreel.log.times import Clocked
    from logreel.ops.selection import Selection

#: A decorator that adds an option, an argument, or several of them to a verb or a command.
Declare = Callable[[Any], Any]


class Name(click.ParamType):  # type: ignore[type-arg]
    """Unchanged text, completed by the shell with names of files or folders.

    what  ``file`` or ``dir``
    """

    def __init__(self, what: str) -> None:
        self.name = self.what = what

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the item that makes the shell complete names of files or folders itself."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type=self.what)]


class FileOrParameter(Name):
    """Unchanged text, completed with names of parameters of the logs on the line, or else with names of files."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the parameters that start with *incomplete*; if there are none, the item for names of files."""
        from click.shell_completion import CompletionItem

        names = (
            dict.fromkeys(name for file in _files(ctx) for name in _parameters(file)) if incomplete else ()
        )
        items = [CompletionItem(name) for name in names if name.startswith(incomplete)]
        return items or super().shell_complete(ctx, param, incomplete)


class TopicType(click.ParamType):  # type: ignore[type-arg]
    """A channel, pattern or condition as unchanged text, completed from the logs on the line.

    Completed with topics and their types, reserved ones only after ``~``; if no topic starts like this, with
    conditions ``key=value``.
    """

    name = "topic"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the topics that start with *incomplete*; if there are none, the conditions."""
        files = _files(ctx)
        return _topic_items(files, incomplete) or _word_items(files, incomplete, _conditions)


class TopicOrField(TopicType):
    """As TopicType, and completed with fields after ``topic.``, as ``topic.field`` or ``topic:field,field``."""

    name = "topic-or-field"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the topics that start with *incomplete*; if there are none, the fields, or else the conditions."""
        files = _files(ctx)
        items = _topic_items(files, incomplete) or _word_items(files, incomplete, _fields)
        return items or _word_items(files, incomplete, _conditions)


def _topic_items(files: list[str], incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    topics_of_logs: dict[str, str] = {}
    for file in files:
        topics_of_logs |= {topic: schema for topic, schema in _topics(file) if topic not in topics_of_logs}
    return [
        CompletionItem(topic, help=schema)
        for topic, schema in topics_of_logs.items()
        if topic.startswith(incomplete) and (topic[:1] != "~" or incomplete[:1] == "~")
    ]


def _word_items(
    files: list[str], incomplete: str, words: Callable[[str, str], list[str]]
) -> list[CompletionItem]:
    """Return what *words* finds in each file for *incomplete*, without repeats."""
    from click.shell_completion import CompletionItem

    completions = dict.fromkeys(word for file in files for word in words(file, incomplete))
    return [CompletionItem(word) for word in completions if word.startswith(incomplete)]


def _files(ctx: click.Context) -> list[str]:
    """Return the log files on the line, without ``-``: standard input is the keyboard."""
    # click parses no arguments if the line ends in an option without its value, so add a value.
    words: list[str] = ctx.find_root().obj[len(ctx.command_path.split()) - 1 :]
    params = ctx.params
    if words and words[-1][:1] == "-":
        params = ctx.command.make_context(None, [*words, "x"], ctx.parent, resilient_parsing=True).params
    return [name for name in logs_among(params) if name != "-"]


def logs_among(parameters: Mapping[str, Any]) -> list[str]:
    """Return the words on the command line that name logs, from the parameters of a verb."""
    words = [parameters.get(name) for name in ("file", "files", "paths")]
    words.append(getattr(parameters.get("logs"), "names", None))
    return [name for value in words if value for name in ([value] if isinstance(value, str) else value)]


def _topics(file: str) -> list[tuple[str, str]]:
    """Return topics and schema names of the log at *file*; nothing if it cannot be opened."""
    from logreel.registry.open import open_log

    # Errors of the file are reported when the command runs, not while it is typed.
    with contextlib.suppress(Exception), open_log(file) as log:
        return [(topic, ch.schema.name) for topic, ch in log.channels.items()]
    return []


def _parameters(file: str) -> list[str]:
    """Return the parameters of the log at *file*; nothing if it cannot be opened."""
    from logreel.registry.open import open_log

    with contextlib.suppress(Exception), open_log(file) as log:
        return list(log.parameters)
    return []


def _fields(file: str, incomplete: str) -> list[str]:
    """Return *incomplete* with its last field replaced by each field of its topic in the log at *file*."""
    from logreel.registry.open import open_log

    with contextlib.suppress(Exception), open_log(file) as log:
        for at in range(len(incomplete) - 1, 0, -1):
            if incomplete[at] in ".:" and incomplete[:at] in log:
                named = incomplete[at + 1 :].split(",")[:-1] if incomplete[at] == ":" else []
                begun = incomplete[: at + 1] + "".join(f"{field}," for field in named)
                return [begun + field for field in log[incomplete[:at]].fields if field not in named]
    return []


def _conditions(file: str, incomplete: str) -> list[str]:
    """Return *incomplete* with its last condition replaced by each ``key=value`` that holds in the log at *file*."""
    from logreel.registry.open import open_log

    before, comma, last = incomplete.rpartition(",")
    key = last.partition("=")[0]
    if not key:
        return []
    with contextlib.suppress(Exception), open_log(file) as log:
        return [
            f"{before}{comma}{name}={value}"
            for ch in log.match(None)
            for name in ch.facts
            # The long forms of a key are offered only once they are typed.
            if name.startswith(key) and set(":.") & {*name} <= {*key}
            for value in ch.facts[name]
        ]
    return []


class FileOrTopic(TopicType):
    """Unchanged text, completed with topics of the logs on the line, or else with names of files."""

    name = "file-or-topic"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the topics that start with *incomplete*; if there are none, the item for names of files."""
        items = _topic_items(_files(ctx), incomplete)
        return items or FILE.shell_complete(ctx, param, incomplete)


class FileOrField(FileOrTopic):
    """As FileOrTopic, and completed with fields."""

    name = "file-or-field"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the topics that start with *incomplete*, else the fields; if there are none, names of files."""
        files = _files(ctx)
        items = _topic_items(files, incomplete) or _word_items(files, incomplete, _fields)
        return items or FILE.shell_complete(ctx, param, incomplete)


FILE, FOLDER, TOPIC, TOPIC_OR_FIELD = Name("file"), Name("dir"), TopicType(), TopicOrField()
FILE_OR_PARAMETER, FILE_OR_TOPIC, FILE_OR_FIELD = FileOrParameter("file"), FileOrTopic(), FileOrField()


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
    from logreel.log.times import interval_text, listeners

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


topics = click.option(
    "-t",
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC",
    type=TOPIC,
    help="Only this channel: a name, a pattern such as 'sensor_*', 're:' and a regular expression, or a condition such "
    "as type=sensor_msgs/Imu.",
)
topics_or_fields = click.option(
    "-t",
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC[.FIELD]",
    type=TOPIC_OR_FIELD,
    help="Only this channel, a name, pattern, 're:…' or a condition such as type=sensor_msgs/Imu; or only fields "
    "of it: TOPIC.FIELD or TOPIC:FIELD,FIELD.",
)
exclude = click.option(
    "-x",
    "--exclude",
    multiple=True,
    metavar="TOPIC",
    type=TOPIC,
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

_around = (
    click.option(
        "--around",
        multiple=True,
        metavar="CONDITION",
        help="Only windows around the moments at which this condition, as for --where, begins to hold, or around each "
        '"changed(TOPIC.FIELD)"; overlapping windows are one. Several: windows of each.',
    ),
    click.option("--before", metavar="TIME", help="With --around: length before such a moment; default 10s."),
    click.option("--after", metavar="TIME", help="With --around: length after such a moment; default 30s."),
    click.option(
        "--debounce",
        metavar="TIME",
        help="With --around: the condition has to have been false for so long before it begins to hold; default 0s.",
    ),
)


def around(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Add --around, --before, --after and --debounce."""
    for option in reversed(_around):
        verb = option(verb)
    return verb


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
    help="Allow unencrypted output from an encrypted log.",
)
_msgdef = click.option(
    "--msgdef",
    "--descriptors",
    "msgdef",
    multiple=True,
    metavar="PATH",
    type=FILE,
    help="File, folder or Python module with message definitions, for logs that contain none.",
)
_types = click.option(
    "--type",
    "types",
    multiple=True,
    metavar="TOPIC=TYPE",
    help="Type of a ROS 1 topic, for logs without types: /scan=sensor_msgs/LaserScan.",
)


def _definitions(msgdef: tuple[str, ...] = (), types: tuple[str, ...] = ()) -> Definitions:
    """Return what ``--msgdef`` and ``--type`` say, as the library takes it."""
    from logreel.errors import UsageError

    for pair in types:
        if "=" not in pair:
            raise UsageError(f"--type {pair!r}: write TOPIC=TYPE")
    by_topic = {topic: name for topic, _, name in (pair.rpartition("=") for pair in types)}
    return (*msgdef, by_topic) if by_topic else msgdef


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
follow = click.option(
    "-f",
    "--follow",
    is_flag=True,
    help="Wait for more while the file grows, also if it is renamed, replaced or split; FILE also means FILE.active.",
)
force = click.option("--force", is_flag=True, help="Replace existing output.")


def _shape_part(context: click.Context, option: click.Parameter, value: Any) -> Any:
    """Keep what one of the options says about the shape of answers, for ``_shaped``."""
    if value is not None and value is not False:
        context.meta.setdefault(_PARTS, {})[option.name] = value
    return value


def _shaped(context: click.Context, option: click.Parameter, is_json: bool) -> bool:
    """Return whether the verb makes the object of --json; answers get the shape that the options ask for.

    A brief answer for people is made of the same object.
    """
    parts = context.meta.get(_PARTS)
    if parts is None or context.resilient_parsing:
        return is_json
    from logreel.cli.answers import ShapedAnswers
    from logreel.cli.draw import SHAPE
    from logreel.errors import UsageError

    fields, brief = parts.get("members"), "brief" in parts
    if not (is_json or fields or brief):
        hint = (
            "; -n limits what is printed"
            if any("-n" in param.opts for param in context.command.params)
            else ""
        )
        raise UsageError(f"--limit shortens the lists of --json: add it{hint}")
    names = [] if fields is None else [name.strip() for name in fields.split(",")]
    if fields is not None and not all(names):
        raise UsageError(f"--fields {fields!r}: write names with commas, such as path,channels.topic")
    as_json = is_json or not brief
    words = context.find_root().obj or ()
    context.meta[SHAPE] = ShapedAnswers(context, words, names, parts.get("limit"), brief, as_json)
    return True


#: Place in a click context of what the options say about the shape of answers.
_PARTS = "logreel.shape-parts"
_json = click.option(
    "--json", "as_json", is_flag=True, callback=_shaped, help="Print one JSON object; times are in ns."
)
_brief = click.option(
    "--brief",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_shape_part,
    help="At most 2 kB: the main facts, what is left out, and how to see it; with --json, one object for each log.",
)
_limit = click.option(
    "--limit",
    type=click.IntRange(min=0),
    metavar="N",
    is_eager=True,
    expose_value=False,
    callback=_shape_part,
    help="With --json: at most N entries of each list; left_out counts the others.",
)


def _members(*spellings: str) -> Declare:
    return click.option(
        *spellings,
        "members",
        metavar="NAMES",
        is_eager=True,
        expose_value=False,
        callback=_shape_part,
        help="Print only these members of the object of --json: path,channels.topic; 'schema --of' lists all.",
    )


def json_and_fields(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Add --json, which the verb gets as ``as_json``, and --fields; --limit is an option of its own."""
    return _json(_members("--fields", "--keys")(verb))  # type: ignore[no-any-return]


def as_json(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Add --json to a verb that writes, which gets it as ``as_json``, with --fields and --limit for its object."""
    return json_and_fields(_limit(verb))


def answer(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Add --json, --fields and --limit, as ``as_json`` does, and --brief to a verb that reads.

    ``as_json`` is also True for a brief answer: ``draw.echo_json`` prints it as text if that is asked for.
    """
    return _brief(as_json(verb))


def answer_with_keys(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Do the same as ``answer`` for a verb whose --fields are those of messages: members are chosen by --keys."""
    return _brief(_json(_members("--keys")(_limit(verb))))  # type: ignore[no-any-return]


out = click.option(
    "-o",
    "--output",
    "out",
    metavar="OUT",
    required=True,
    type=FILE,
    help="Path of the new log; - is stdout.",
)
safe_csv = click.option(
    "--safe-csv",
    is_flag=True,
    help="In CSV: put ' in front of text that a spreadsheet would run as a formula.",
)
output_format = click.option("--format", metavar="NAME", help="Output format for -o -, such as mcap.")
rules = click.option(
    "--rules",
    "rules",
    multiple=True,
    metavar="FILE",
    type=FILE,
    help="Rules of migration: a file of ROS (.bmr) or TOML, or a folder of these.",
)
wanted = click.option(
    "--to",
    "wanted",
    multiple=True,
    metavar="PATH",
    type=FILE,
    help="File or folder with the definitions (.msg) of the types that the messages have to get.",
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
strict = click.option(
    "--strict", is_flag=True, help="Into a log: fail if something would have to be left out."
)
chunk_size = click.option(
    "--chunk-size",
    "chunk_bytes",
    metavar="SIZE",
    callback=lambda context, option, text: None if text is None else bytes_of(text),
    help="Size of the chunks of the new log, if its format has chunks: 1MiB.",
)


#: Options of the members of a Selection. ``fields`` is the form of ``topics`` that takes fields, too.
_MEMBERS: dict[str, Declare] = {
    "topics": topics, "fields": topics_or_fields, "exclude": exclude, "start": start, "end": end, "where": where,
    "count": count, "keep_latched": keep_latched, "segment": segment, "latched": latched, "around": around,
}  # fmt: skip
#: Options of how a log is opened, for ``opening``.
_OPENING = {
    "segment": (segment,),
    "ros_axes": (ros_axes,),
    "decrypt": (decrypt,),
    "definitions": (_msgdef, _types),
}
#: Options of the output of a verb that writes a log.
_OUTPUT = {
    "out": out, "format": output_format, "strict": strict, "compression": compression, "chunk_bytes": chunk_size,
    "options": options, "force": force,
}  # fmt: skip


def as_object(name: str, make: Callable[..., Any], *declare: Declare) -> Declare:
    """Return a decorator that adds options to a verb, which gets them as one argument *name*, made by *make*.

    declare  the options and arguments, in the order of the help; *make* gets their values by name
    """
    command = click.Command("")
    for option in declare:
        option(command)
    names = [param.name for param in command.params if param.name is not None and param.expose_value]

    def add(verb: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(verb)
        def call(*args: Any, **values: Any) -> Any:
            members = {member: values.pop(member) for member in names}
            return verb(*args, **{name: make(**members)}, **values)

        for option in reversed(declare):
            call = option(call)
        return call

    return add


def opening(*names: str) -> Declare:
    """Return a decorator that adds options for how logs are opened: segment, ros_axes, decrypt, definitions.

    The verb gets them as its argument ``opening``, keyword arguments for ``open_log``.
    """
    return as_object("opening", opening_of, *opening_options(*names))


def opening_options(*names: str) -> list[Declare]:
    """Return the options that ``opening`` adds; ``opening_of`` makes keyword arguments for ``open_log`` of them."""
    return [option for name in names for option in _OPENING[name]]


def opening_of(**values: Any) -> dict[str, Any]:
    """Return keyword arguments for ``open_log`` from the values of options."""
    if "types" in values:
        values["definitions"] = _definitions(values.pop("msgdef"), values.pop("types"))
    return values


#: Adds ``--msgdef`` and ``--type``, which the verb gets as its argument ``definitions``.
definitions = as_object("definitions", _definitions, *opening_options("definitions"))


def selection(*members: str | Declare) -> Declare:
    """Return a decorator that adds options for members of a Selection, by default -t -x -S -E --where.

    members  of Selection, or options of the verb in their place; ``fields`` are topics that may name fields

    The verb gets a ``Selection`` as its argument ``selection``.
    """
    names = members or ("topics", "exclude", "start", "end", "where")
    return as_object(
        "selection", _selection, *(_MEMBERS[name] if isinstance(name, str) else name for name in names)
    )


def _selection(
    topics: tuple[str, ...] = (),
    around: tuple[str, ...] = (),
    before: str | None = None,
    after: str | None = None,
    debounce: str | None = None,
    **members: Any,
) -> Selection:
    from logreel.errors import UsageError
    from logreel.ops.selection import Around, Selection

    lengths = {"before": before, "after": after, "debounce": debounce}
    chosen = {name: text for name, text in lengths.items() if text is not None}
    if chosen and not around:
        raise UsageError(f"--{next(iter(chosen))} is for windows: add --around CONDITION")
    windows = Around(around, **chosen) if around else None
    return Selection(topics=topics or None, around=windows, **members)


def members_of(selection: Selection) -> dict[str, Any]:
    """Return the members of a Selection that choose something, for functions that take them as keyword arguments."""
    values = {name: getattr(selection, name) for name in _MEMBERS if name != "fields"}
    # Not by equality: 0 messages, and the log number 0, are a choice.
    return {
        name: value for name, value in values.items() if not (value is None or value is False or value == ())
    }


@dataclass(frozen=True)
class LogToWrite:
    """The log that a verb writes.

    out      path, ``-`` for stdout, or None if the verb chooses it
    format   name of the format, for stdout; None: by the suffix, or that of the source
    options  how it is written: keyword arguments of the library, see ``TargetOptions``
    """

    out: str | None
    format: str | None
    options: dict[str, Any]

    @property
    def name(self) -> str:
        """The output of a verb that cannot do without one."""
        return self.out or ""


def output(*members: str | Declare) -> Declare:
    """Return a decorator that adds options for the output of a verb, which gets them as a ``LogToWrite``.

    members  of ``out``, ``format``, and of the library's ``TargetOptions``; or options of the verb in their place
    """
    return as_object(
        "output", _output, *(_OUTPUT[name] if isinstance(name, str) else name for name in members)
    )


def _output(out: str | None = None, format: str | None = None, **options: Any) -> LogToWrite:
    return LogToWrite(out, format, options)


def parameter(name: str) -> Any:
    """Return the value of a parameter of the running command; None if there is no such parameter."""
    context = click.get_current_context(silent=True)
    return None if context is None else context.params.get(name)


def flag(name: str) -> str:
    """Return the long spelling of the option for a parameter of the running command; *name* if there is none."""
    context = click.get_current_context(silent=True)
    params = () if context is None else context.command.params
    return next((spelling_of(param) for param in params if param.name == name), name)


def spelling_of(param: click.Parameter) -> str:
    """Return the spelling of an option that is its name, else the first long one."""
    plain = f"--{(param.name or '').replace('_', '-')}"
    return (
        plain if plain in param.opts else next((opt for opt in param.opts if opt[:2] == "--"), param.opts[0])
    )


def shared() -> dict[str, click.Option]:
    """Return the options that many verbs have, by name."""
    command = click.Command("")
    for option in (
        *_MEMBERS.values(),
        utc,
        interpolate,
        decrypt,
        ros_axes,
        force,
        safe_csv,
        *_OUTPUT.values(),
    ):
        option(command)
    return {
        param.name: param
        for param in command.params
        if isinstance(param, click.Option) and param.name is not None
    }


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

    values: dict[str, bool | int | str] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not name or not equals:
            raise UsageError(f"--option {pair!r}: write NAME=VALUE")
        truth = {"true": True, "false": False}.get(text.lower())
        values[name] = truth if truth is not None else int(text) if _WHOLE.fullmatch(text) else text
    return values


def _metadata_value(text: str) -> int | float | str:
    if _WHOLE.fullmatch(text):
        return int(text)
    if _REAL.fullmatch(text):
        return float(text)
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text
