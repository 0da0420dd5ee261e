"""Input files of the arguments of a verb, and the destination of its output."""

from __future__ import annotations

import functools
import glob
import io
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import rich_click as click

from logreel.cli import arguments
from logreel.io.remote.address import is_url

if TYPE_CHECKING:
    from logreel.io.output_stream import OutputStream
    from logreel.log.log import Log

STDOUT = "-"
#: One log: the name of a file, folder or pattern, or the names of several that are one log.
Given = str | list[str]
Out = TypeVar("Out", str, "str | None")
Name = TypeVar("Name", bound="str | list[str]")
Verb = TypeVar("Verb", bound=Callable[..., int])


def given_logs(names: Sequence[str], as_one: bool) -> list[Given]:
    """Return the logs that *names* mean: those of ``expand``, or with *as_one* all files together as one."""
    return [list(names)] if as_one else list(expand(names))


def expand(names: Sequence[str]) -> list[str]:
    """Return *names* with each folder replaced by the logs in and below it, and each pattern by the files it matches.

    An address that ends with a slash means the logs below it.

    Hidden files are ignored, and so are files that no format recognises, unless only one format has their suffix.
    A folder without logs stays in the list; ``file_of`` refuses it.
    """
    return [path for name in names for path in (_found(name) or (name,))]


def _found(name: str) -> list[str]:
    """Return the logs that a folder, a pattern or an address of a prefix means; nothing if *name* is none of these."""
    if is_url(name):
        return _remote_logs(name)
    return list(_logs_below(name)) if os.path.isdir(name) else matches(name)


def _remote_logs(url: str) -> list[str]:
    """Return the objects below a prefix with a suffix of a known format, in natural order."""
    from logreel.io.remote.listing import is_prefix, objects_below
    from logreel.log.part_checks import natural_key
    from logreel.registry.registry import log_suffixes

    if not is_prefix(url):
        return []
    suffixes = log_suffixes()
    found = (one for one in objects_below(url) if one.lower().endswith(suffixes))
    return sorted(found, key=natural_key)


def matches(name: str) -> list[str]:
    """Return the files that the pattern *name* matches, in natural order; nothing if it is no pattern."""
    if not glob.has_magic(name) or os.path.lexists(name):
        return []
    from logreel.log.part_checks import natural_key

    return sorted((path for path in glob.glob(name) if os.path.isfile(path)), key=natural_key)


def file_of(name: Name) -> Name:
    """Return *name*; raises UnknownFormatError for a folder, in which ``expand`` found no log."""
    from logreel.errors import UnknownFormatError

    if isinstance(name, str) and os.path.isdir(name):
        raise UnknownFormatError("a folder with no log of a known format in or below it", path=name)
    return name


def _logs_below(root: str) -> Iterator[str]:
    """Yield the paths of the logs in and below a folder."""
    from logreel.registry.registry import formats

    counts = Counter(suffix for fmt in formats().values() for suffix in fmt.suffixes)
    own = tuple(suffix for suffix, count in counts.items() if count == 1)
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name[:1] != ".")
        for name in sorted(files):
            path = os.path.join(folder, name)
            if name[:1] != "." and os.path.isfile(path) and (name.lower().endswith(own) or _is_log(path)):
                yield path


def _is_log(path: str) -> bool:
    from logreel.errors import LogError
    from logreel.io.source import Source
    from logreel.registry.registry import find_format

    try:
        find_format(Source.open(path))
    except (LogError, OSError):
        return False
    return True


class _NoOutput(Exception):
    """Raised after a verb failed, so that its output file is not written."""


def text_output(verb: Verb) -> Verb:
    """Add the options -o and --force to a verb that prints text; -o writes the text to a file.

    The verb calls ``note_decrypted`` with each log that it opens, and does not get the value of --decrypt itself.
    """

    @functools.wraps(verb)
    def call(*args: Any, out: str | None, force: bool, **options: Any) -> int:
        options.pop("decrypt", None)
        given = (options.get(name) for name in ("file", "files", "a", "b"))
        sources = [s for one in given if one is not None for s in ([one] if isinstance(one, str) else one)]
        code = 0
        try:
            with _to_file(out, force, sources):
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


def inputs_and_output(names: Sequence[str], option: str | None) -> tuple[Given, str]:
    """Return the files of one log and OUT, which is the last of *names* or given with -o.

    Raises UsageError for both or neither.
    """
    from logreel.errors import UsageError

    *given, last = names
    if option is not None:
        if given and last != STDOUT and not os.path.exists(last) and not matches(last):
            raise UsageError(f"two outputs: {last} and {option}; give OUT once")
        given, last = list(names), option
    if not given:
        raise UsageError("say where to write: OUT, or -o OUT")
    return given[0] if len(given) == 1 else given, last


def no_folder(out: str, what: str) -> str:
    """Return *out*, the name of a folder; raises UsageError for ``-``."""
    from logreel.errors import UsageError

    if out == STDOUT:
        raise UsageError(f"{what} are several files, which do not fit on stdout: give a folder with -o")
    return out
