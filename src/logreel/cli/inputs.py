"""The logs of the arguments of a verb: opening each, showing or writing something of it, and where output goes."""

from __future__ import annotations

import functools
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from logreel.cli import options
from logreel.dataclass import dataclass, field, replace

if TYPE_CHECKING:
    from logreel.io.output_stream import OutputStream
    from logreel.log.log import Channel, Log
    from logreel.log.topic_fields import FieldsByTopic
    from logreel.ops.selection import Selection

STDOUT = "-"
#: One log: the name of a file, folder or pattern, or the names of several that are one log.
Names = str | list[str]
Out = TypeVar("Out", str, "str | None")
Verb = TypeVar("Verb", bound=Callable[..., int])
#: Place in a click context of the words that are no logs.
_WORDS = "logreel.words"


class HasDict(Protocol):
    """An object that can be printed as JSON."""

    def as_dict(self) -> dict[str, Any]:
        """Return the object as plain data."""


Result = TypeVar("Result", bound=HasDict)
Opened = TypeVar("Opened")


@dataclass(frozen=True)
class Logs:
    """The logs of the arguments FILE… of a verb: each file, also of folders and patterns, is a log of its own.

    names   words on the command line
    as_one  True: all files are the parts of one recording
    anyway  True: also if they tell that they are of different recordings
    opening  how each is opened: keyword arguments of ``open_log``
    """

    names: tuple[str, ...]
    as_one: bool = False
    anyway: bool = False
    opening: Mapping[str, Any] = field(default_factory=dict)

    @functools.cached_property
    def each(self) -> list[Names]:
        """What ``open`` takes for each log."""
        from logreel.errors import UsageError
        from logreel.registry.open import expand

        if self.anyway and not self.as_one:
            raise UsageError("--anyway insists on --as-one: add it, or leave --anyway out")
        # Most often the only name is that of a file.
        files = expand(self.names)
        return [files] if self.as_one else [*files]

    @property
    def several(self) -> bool:
        """Whether there are several logs."""
        return len(self.each) > 1

    @property
    def files(self) -> list[str]:
        """The paths of all files."""
        return [path for log in self.each for path in ([log] if isinstance(log, str) else log)]

    def only(self, why: str) -> Names:
        """Return the only log; raises UsageError for several, whose text begins with *why*."""
        from logreel.errors import UsageError

        if self.several:
            raise UsageError(f"{why}, not {len(self.each)}: name one of them, or join parts with --as-one")
        return self.each[0]

    @contextmanager
    def open(self, log: Names) -> Iterator[Log]:
        """Open one of the logs."""
        from logreel.registry.open import open_log

        with open_log(log, anyway=self.anyway, **self.opening) as opened:
            self._parts.saw(opened)
            yield opened

    @functools.cached_property
    def _parts(self) -> SplitRecordings:
        return SplitRecordings(self.files if self.several else ())

    def saw(self, log: Log) -> None:
        """Note a log that was opened in another way than by ``open``."""
        self._parts.saw(log)

    def offer(self) -> None:
        """Say on stderr which of the logs that were opened look like parts of one recording."""
        self._parts.offer()


files = click.argument("files", metavar="FILE…", nargs=-1, required=True, type=options.FILE)
one_file = click.argument("file", metavar="FILE", type=options.FILE)
as_one_flag = click.option(
    "--as-one",
    is_flag=True,
    help="Take all files as the parts of one recording, instead of as separate logs.",
)
anyway_flag = click.option(
    "--anyway",
    is_flag=True,
    help="With --as-one: also if the files contain different recordings.",
)


def logs(*opening: str, files: options.Declare = files) -> options.Declare:
    """Return a decorator that adds FILE…, ``--as-one``, ``--anyway`` and options for how the logs are opened.

    The verb gets all as its argument ``logs``, a ``Logs``.

    opening  segment, ros_axes, decrypt, definitions
    files    argument of the verb in place of FILE…
    """
    return options.as_object(
        "logs", _logs, files, as_one_flag, anyway_flag, *options.opening_options(*opening)
    )


def _logs(files: Sequence[str], as_one: bool, anyway: bool, **values: Any) -> Logs:
    return Logs(tuple(files), as_one, anyway, options.opening_of(**values))


def logs_and_words(metavar: str, value_type: Any, *opening: str) -> options.Declare:
    """Return a decorator like ``logs`` for verbs that also take other words, as their argument ``words``.

    Words that exist as files or folders, or end like the name of a log, are logs.

    metavar     how the help names the arguments
    value_type  their type
    """
    both = click.argument(
        "files", metavar=metavar, nargs=-1, required=True, type=value_type, callback=_logs_first
    )
    add_logs = logs(*opening, files=both)

    def add(verb: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(verb)
        def call(*args: Any, **values: Any) -> Any:
            return verb(*args, words=_context().meta[_WORDS], **values)

        decorated: Callable[..., Any] = add_logs(call)
        return decorated

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
    if word == "-" or "://" in word or (os.path.exists(word) and {*word}.isdisjoint("*?[")):
        return True
    from logreel.registry.registry import log_suffixes

    return not word.startswith("re:") and (os.path.exists(word) or word.lower().endswith(log_suffixes()))


class SplitRecordings:
    """Files that look like parts of one recording by their names, which is offered if their clocks agree."""

    def __init__(self, files: Sequence[str]) -> None:
        self._recordings: list[list[str]] = []
        if len(files) > 1:
            from logreel.io.part_files import split_recordings

            self._recordings = split_recordings(files)
        self._names = {name for parts in self._recordings for name in parts}
        self._seen: dict[str, Any] = {}

    def saw(self, log: Log) -> None:
        """Keep what tells of which recording an open log is a part."""
        if log.name not in self._names:
            return
        from logreel.log.part_checks import RecordingFacts
        from logreel.registry.registry import formats

        fmt = formats()[log.format]
        if fmt.splits:
            self._seen[log.name] = replace(RecordingFacts.of(log, fmt.identity), log=None)

    def offer(self) -> None:
        """Say on stderr which files look like parts of one recording."""
        from logreel.cli.draw import say

        for parts in self._recordings:
            seen = [self._seen[name] for name in parts if name in self._seen]
            if len(seen) == len(parts):
                from logreel.log.part_checks import follow_each_other

                if follow_each_other(seen):
                    say(f"{parts[0]} … {parts[-1]} look like {len(parts)} parts of one recording: --as-one")


class _NoOutput(Exception):
    """Raised after a verb failed, so that its output file is not written."""


def text_output(verb: Verb) -> Verb:
    """Add the options -o and --force to a verb that prints text; -o writes the text to a file.

    The verb calls ``note_decrypted`` with each log that it opens.
    """

    @functools.wraps(verb)
    def call(*args: Any, out: str | None, force: bool, **values: Any) -> int:
        code = 0
        try:
            with _to_file(out, force, options.logs_among(values)):
                code = verb(*args, **values)
                if code and not _has_output(code):
                    raise _NoOutput
        except _NoOutput:
            pass
        return code

    for option in (
        click.option("--force", is_flag=True, help="Replace an existing OUT."),
        click.option(
            "-o",
            "--output",
            "out",
            metavar="OUT",
            type=options.FILE,
            help="Write to this file instead of stdout.",
        ),
    ):
        call = option(call)
    return call  # type: ignore[return-value]


def note_decrypted(log: Log, writes: bool = False) -> None:
    """If -o writes a file, show a note for an encrypted *log*; raise UsageError without --decrypt.

    writes  True: the verb writes a file without -o, too
    """
    context = click.get_current_context(silent=True)
    params = {} if context is None else context.params
    # Text on stdout is only read.
    if writes or params.get("out", params.get("folder")) not in (None, STDOUT):
        from logreel.cli.draw import show_notes
        from logreel.log.source_files import decrypted_notes

        show_notes(decrypted_notes(log, params.get("decrypt", False)))


@contextmanager
def _to_file(out: str | None, force: bool, sources: Iterable[str]) -> Iterator[None]:
    """Redirect stdout of the block to the file *out*, which appears when the block ends without an exception."""
    if out is None or out == STDOUT:
        yield
        return
    from logreel.cli.draw import say
    from logreel.io.atomic_file import STDIN, keep_sources
    from logreel.outputs.files import new_file
    from logreel.registry.open import expand

    keep_sources(out, [STDIN if name == "-" else name for name in expand(list(sources))])
    with new_file(out, force) as file:
        before, text = sys.stdout, io.TextIOWrapper(file, "utf-8", errors="backslashreplace", newline="\n")
        sys.stdout = text
        try:
            yield
            text.flush()
        finally:
            sys.stdout = before
            text.detach()
    say(f"wrote {out}")


def destination(out: Out, suffix: str, as_json: bool, text: bool = False) -> Out | OutputStream:
    """Return what to write: the path *out*, or stdout as a stream for ``-``.

    suffix   suffix of the output on stdout, which chooses its format
    as_json  True: the verb prints JSON on stdout
    text     True: a terminal can show the output

    Raises UsageError for binary output to a terminal, and if JSON goes to stdout, too.
    """
    if out != STDOUT:
        return out
    from logreel.cli.draw import SafeLines, notation
    from logreel.errors import UsageError
    from logreel.io.output_stream import OutputStream

    if as_json:
        raise UsageError(f"{notation()} and -o - would both write to stdout: leave out one of them")
    terminal = sys.stdout.isatty()
    if terminal and not text:
        raise UsageError(f"{suffix} is no text for a terminal: redirect the output, or give a file with -o")
    sys.stdout.flush()
    return OutputStream(SafeLines() if terminal else sys.stdout.buffer, f"<stdout>{suffix}")


def log_suffix(log: Log) -> str:
    """Return the suffix of a log of the same format."""
    return suffix_of(log.format)


def suffix_of(form: str) -> str:
    """Return the suffix for a format name or suffix: ``rosbag`` is ``.bag``, ``csv`` is ``.csv``."""
    from logreel.registry.registry import suffix_of as find

    return find(form)


def check_form(form: str | None, out: str | None) -> None:
    """Raise UsageError for ``--format`` with an output that is not stdout: its suffix chooses the format."""
    from logreel.errors import UsageError

    if form is not None and out != STDOUT:
        raise UsageError("--format is for -o -: otherwise the suffix of OUT says as what it is written")


def one_output(argument: str | None, option: str | None) -> str:
    """Return OUT, given as the second argument or with -o; raises UsageError for both or neither."""
    from logreel.errors import UsageError

    if argument is not None and option is not None:
        raise UsageError(f"two outputs: {argument} and {option}; give OUT once")
    out = argument if argument is not None else option
    if out is None:
        raise UsageError("say where to write: OUT, or -o OUT")
    return out


def inputs_and_output(names: Sequence[str], option: str | None) -> tuple[list[str], str]:
    """Return the names of logs and OUT, which is the last of *names* or given with -o.

    Raises UsageError for both or neither.
    """
    from logreel.errors import UsageError
    from logreel.registry.open import matches

    *logs, last = names
    if option is not None:
        if logs and last != STDOUT and not os.path.exists(last) and not matches(last):
            raise UsageError(f"two outputs: {last} and {option}; give OUT once")
        logs, last = list(names), option
    if not logs:
        raise UsageError("say where to write: OUT, or -o OUT")
    return logs, last


def is_folder(out: str) -> bool:
    """Return whether OUT is a folder: it ends with a slash, or exists."""
    return out.endswith("/") or os.path.isdir(out)


def folder_for_several(out: str, logs: Logs) -> str:
    """Return *out*, the folder for the outputs of several logs; raises UsageError if it is the name of a file."""
    from logreel.errors import UsageError

    if is_folder(out):
        return out
    raise UsageError(
        f"{len(logs.each)} logs do not fit into one: {'stdout' if out == STDOUT else out}",
        hint="write a log for each into a folder, OUT/; join the parts of one recording with --as-one; or make one log "
        "of several with 'logreel merge'",
    )


@contextmanager
def made_folder(folder: str) -> Iterator[None]:
    """Make a folder for outputs, which is removed again if nothing is written into it."""
    made = not os.path.isdir(folder)
    os.makedirs(folder, exist_ok=True)
    try:
        yield
    finally:
        if made:
            with suppress(OSError):
                os.rmdir(folder)


def outputs_in(folder: str, logs: Logs, suffix: str | None = None) -> dict[str, str]:
    """Return the path in *folder* that is written for each of several logs, by the name of the log.

    It is called as the log, with the suffix of the log or with *suffix*; where two logs have the same name, the names
    of their folders come before it. Raises UsageError if a path is that of a log.
    """
    from logreel.io.atomic_file import STDIN, keep_sources

    names = [log[0] if isinstance(log, list) else log for log in logs.each]
    files: dict[str, str] = {}
    for depth in range(1, 2 + max(name.count("/") for name in names)):
        files = {name: _output_name(name, depth, suffix) for name in names}
        if len({*files.values()}) == len(files):
            break
    outputs = {name: os.path.join(folder, out) for name, out in files.items()}
    for out in outputs.values():
        keep_sources(out, [STDIN if name == STDOUT else name for name in names])
    return outputs


def output_for(outputs: Mapping[str, str], log: Log) -> str:
    """Return the path of *outputs* for a log, whose name may be another one than on the command line."""
    from logreel.io.atomic_file import STDIN

    address = STDOUT if log.name == STDIN else str(log.source.address)
    return outputs[log.name] if log.name in outputs else outputs[address]


def _output_name(name: str, depth: int, suffix: str | None) -> str:
    """Return a file name made of the last *depth* parts of a path."""
    named = "stdin" if name == STDOUT else name
    words = [word for word in named.partition("?")[0].split("/") if word not in ("", ".", "..")]
    base = "_".join(words[-depth:])
    return base if suffix is None else os.path.splitext(base)[0] + suffix


def no_folder(out: str, what: str) -> str:
    """Return *out*, the name of a folder; raises UsageError for ``-``."""
    from logreel.errors import UsageError

    if out == STDOUT:
        raise UsageError(f"{what} are several files, which do not fit on stdout: give a folder with -o")
    return out


def print_each(
    logs: Logs,
    look: Callable[[Names], Result],
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

    printed = 0

    def print_result(result: Result) -> None:
        nonlocal printed
        printed += 1
        if as_json:
            draw.echo_json(result.as_dict(), line=True, left=getattr(result, "left", None))
            return
        if gap and printed > 1:
            draw.echo()
        show(result)

    results, code = open_each(logs, look, print_result)
    if code and results:
        from logreel.cli.exits import LOST

        code = LOST
    return results, code


def answer_each(
    logs: Logs,
    look: Callable[[Log], Result],
    show: Callable[[Result], None],
    as_json: bool,
) -> tuple[list[Result], int, int]:
    """Do the same as ``print_each`` with answers that *look* reads from the content of each open log.

    Returns all results, the exit code of ``print_each``, and 3 if a log lost data or has content that cannot be
    decoded, else 0.
    """
    from logreel.cli import draw

    codes: list[int] = []

    def answer(name: Names) -> Result:
        with logs.open(name) as log:
            note_decrypted(log)
            result = look(log)
            codes.append(draw.finish(log))
            return result

    results, code = print_each(logs, answer, show, as_json, gap=True)
    return results, code, max(codes, default=0)


def each_log(logs: Logs, answer: Callable[[Log], int], heading: bool, stack: ExitStack | None = None) -> int:
    """Open each log, let *answer* print what it says, and return the exit code.

    answer   returns an exit code
    heading  print the name of each log above its answer, if there are several
    stack    closes the logs; None: each is closed after its answer

    Of one log, an error ends the verb. Of several, it is reported and the others go on: the exit code is 3 if there
    was any answer, else that of the first error.
    """
    from logreel.cli import draw

    codes: list[int] = []

    def look(name: Names) -> None:
        with ExitStack() as closing:
            log = (closing if stack is None else stack).enter_context(logs.open(name))
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
    from logreel.cli.exits import LOST

    answered, code = open_each(logs, look)
    return LOST if code and answered else code or max(codes, default=0)


def write_each(
    logs: Logs,
    out: str,
    write: Callable[[Log, Any, str], int],
    suffix: str | Callable[[Log], str],
    as_json: bool,
) -> int:
    """Open each log, let *write* make an output of it, and return the exit code, as ``each_log`` does.

    out     the output; or a folder, which gets an output for each log, called as the log
    write   is called with the log, a path or the stream of stdout, and the output as a user would name it
    suffix  suffix of the outputs; or returns that of the output of a log on stdout, and outputs in a folder have the
            suffix of their log
    """

    def write_only(log: Log) -> int:
        known = suffix if isinstance(suffix, str) else suffix(log)
        return write(log, destination(out, known, as_json), out)

    if not logs.several and (not is_folder(out) or _is_folder_of(logs, out)):
        return each_log(logs, write_only, False)
    same = suffix if isinstance(suffix, str) else None
    outputs = outputs_in(folder_for_several(out, logs), logs, same)

    def write_one(log: Log) -> int:
        # Parts that are joined have one output, called as the first of them.
        path = next(iter(outputs.values())) if logs.as_one else output_for(outputs, log)
        return write(log, path, path)

    with made_folder(out):
        return each_log(logs, write_one, False)


def _is_folder_of(logs: Logs, out: str) -> bool:
    """Return whether OUT is a folder that becomes a log, of the format of the only log."""
    from logreel.outputs.registry import is_log_folder

    if not is_log_folder(out) or not isinstance(logs.each[0], str) or logs.each[0] == STDOUT:
        return False
    from logreel.ops.rewrite.folders import folder_for
    from logreel.registry.registry import format_named

    with logs.open(logs.each[0]) as log:
        fmt = format_named(log.format)
        return fmt is not None and folder_for(fmt, log)[0] is not None


def _has_output(code: int) -> bool:
    from logreel.cli.exits import FOUND, LOST

    return code in (LOST, FOUND)


def open_each(
    logs: Logs,
    look: Callable[[Names], Opened],
    use: Callable[[Opened], object] | None = None,
) -> tuple[list[Opened], int]:
    """Return the results of *look* for the logs that can be opened, and the exit code of the first error, else 0.

    use  called with each result at once

    Errors of *look* are reported on stderr; those of *use* and of outputs, such as a full disk, are no fault of one log
    and end all. Logs that look like parts of one recording are named on stderr at the end.
    """
    from logreel.cli.draw import shape
    from logreel.errors import LogError, UsageError

    if (shaped := shape()) is not None:
        shaped.share(len(logs.each))
    results: list[Opened] = []
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
            from logreel.cli.exits import report

            context = click.get_current_context(silent=True)
            words = () if context is None else context.find_root().obj or ()
            failed = report(error, words, context)
            code = code or failed
            continue
        results.append(result)
        if use is not None:
            use(result)
    logs.offer()
    return results, code


def chosen_fields(log: Log, selection: Selection) -> FieldsByTopic:
    """Return the channels chosen by -t and -x, with the fields that -t names; None: all fields."""
    from logreel.log.topic_fields import fields_by_topic

    topics, exclude = selection.topics, selection.exclude
    kept = fields_by_topic(log, topics) if topics else dict.fromkeys(ch.topic for ch in log.match(None))
    without = {ch.topic for ch in log.match(exclude)} if exclude else set()
    return {topic: fields for topic, fields in kept.items() if topic not in without}


def chosen(log: Log, topics: Sequence[str], exclude: Iterable[str]) -> list[Channel]:
    """Return the channels chosen by -t and -x."""
    without = {ch.number for ch in log.match(exclude)} if exclude else set()
    return [ch for ch in log.match(topics or None) if ch.number not in without]
