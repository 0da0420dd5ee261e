"""Input files of the arguments of a verb, and the destination of its output."""

from __future__ import annotations

import functools
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import rich_click as click

from logreel.cli import arguments

if TYPE_CHECKING:
    from logreel.io.output_stream import OutputStream
    from logreel.log.log import Log

STDOUT = "-"
#: One log: the name of a file, folder or pattern, or the names of several that are one log.
Given = str | list[str]
Out = TypeVar("Out", str, "str | None")
Verb = TypeVar("Verb", bound=Callable[..., int])


@dataclass(frozen=True)
class Logs:
    """The logs of the arguments FILE… of a verb: each file, also of folders and patterns, is a log of its own.

    names   words on the command line
    as_one  True: all files are the parts of one recording
    anyway  True: also if they tell that they are of different recordings
    """

    names: tuple[str, ...]
    as_one: bool = False
    anyway: bool = False

    @functools.cached_property
    def each(self) -> list[Given]:
        """What ``open`` takes for each log."""
        from logreel.errors import UsageError
        from logreel.registry.log_files import expand

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

    def only(self, why: str) -> Given:
        """Return the only log; raises UsageError for several, whose text begins with *why*."""
        from logreel.errors import UsageError

        if self.several:
            raise UsageError(f"{why}, not {len(self.each)}: name one of them, or join parts with --as-one")
        return self.each[0]

    @contextmanager
    def open(self, log: Given, **options: Any) -> Iterator[Log]:
        """Open one of the logs; *options* are those of ``open_log``, by default --decrypt of the command line."""
        from logreel.registry.open import open_log

        context = click.get_current_context(silent=True)
        if context is not None and context.params.get("decrypt"):
            # A part of a log is written to be asked about.
            options.setdefault("decrypt", True)
        with open_log(log, anyway=self.anyway, **options) as opened:
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

    The verb calls ``note_decrypted`` with each log that it opens, and does not get the value of --decrypt itself.
    """

    @functools.wraps(verb)
    def call(*args: Any, out: str | None, force: bool, **options: Any) -> int:
        options.pop("decrypt", None)
        code = 0
        try:
            with _to_file(out, force, arguments.logs_among(options)):
                code = verb(*args, **options)
                from logreel.cli.exits import FOUND, LOST

                if code not in (0, LOST, FOUND):
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
            type=arguments.FILE,
            help="Write to this file instead of stdout.",
        ),
    ):
        call = option(call)
    return call  # type: ignore[return-value]


def note_decrypted(log: Log) -> None:
    """If -o writes a file, show a note for an encrypted *log*; raise UsageError without --decrypt."""
    context = click.get_current_context(silent=True)
    given = {} if context is None else context.params
    # Text on stdout is only read.
    if given.get("out", given.get("folder")) not in (None, STDOUT):
        from logreel.cli.draw import show_notes
        from logreel.log.decrypted import decrypted_notes

        show_notes(decrypted_notes(log, given.get("decrypt", False)))


@contextmanager
def _to_file(out: str | None, force: bool, sources: Iterable[str]) -> Iterator[None]:
    """Redirect stdout of the block to the file *out*, which appears when the block ends without an exception."""
    if out is None or out == STDOUT:
        yield
        return
    from logreel.cli.draw import say
    from logreel.io.atomic_file import STDIN, keep_sources
    from logreel.outputs.files import new_file
    from logreel.registry.log_files import expand

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
    from logreel.cli.draw import SafeLines
    from logreel.errors import UsageError
    from logreel.io.output_stream import OutputStream

    if as_json:
        raise UsageError("--json and -o - would both write to stdout: leave out one of them")
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
    from logreel.registry.log_files import matches

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
    found: dict[str, str] = {}
    for depth in range(1, 2 + max(name.count("/") for name in names)):
        found = {name: _output_name(name, depth, suffix) for name in names}
        if len({*found.values()}) == len(found):
            break
    outputs = {name: os.path.join(folder, out) for name, out in found.items()}
    for out in outputs.values():
        keep_sources(out, [STDIN if name == STDOUT else name for name in names])
    return outputs


def output_for(outputs: Mapping[str, str], log: Log) -> str:
    """Return the path of *outputs* for a log, whose name may be another one than on the command line."""
    from logreel.io.atomic_file import STDIN

    given = STDOUT if log.name == STDIN else str(log.source.address)
    return outputs[log.name] if log.name in outputs else outputs[given]


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
