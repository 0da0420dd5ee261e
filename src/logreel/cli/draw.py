"""Output for people: escaped text, tables, progress bars, and sentences on stderr."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from logreel.log.log import Log
    from logreel.ops.rewrite.target import Rewritten

#: Control characters, and characters that reorder, hide or break a line: logs may contain them, terminals act on
#: them.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)

#: The space between a number and its unit.
_BEFORE_UNIT = re.compile(
    r"(?<=\d) (?=(?:[nµm]?s|min|h|[kM]?Hz|[kcm]?m|m/s²?|[kMG]?B|[mk]?[VA]|deg|%)(?!\w))"
)
#: Number of notes that are printed; more are counted.
NOTES = 5
#: Bytes of a command line; with longer ones, FILE stands for what was given.
LINE = 240
#: Number of array items or bytes that are printed of a value.
ITEMS = 16
#: Least and greatest width to which text for people is wrapped.
NARROW, WIDE = 40, 120
#: Place in a click context of the AnswerShape.
SHAPE = "logreel.shape"


class AnswerShape(Protocol):
    """How ``--brief``, ``--fields`` and ``--limit`` want answers; see ``logreel.cli.answers.ShapedAnswers``."""

    brief: bool
    fields: Sequence[str]
    limit: int | None
    most: int | None

    def share(self, logs: int) -> None:
        """Note that there are so many *logs*."""

    def show(
        self, value: Mapping[str, Any], line: bool = False, left: Mapping[str, int] | None = None
    ) -> None:
        """Print an object; *left*: entries that are missing in it already, by the place of their list."""

    def stream(
        self,
        head: Mapping[str, Any],
        key: str,
        entries: Iterable[Mapping[str, Any]],
        tail: Callable[[], Mapping[str, Any]],
        count: int,
    ) -> None:
        """Print an object of which the list *key* is made while it is printed; *count*: its entries in all."""

    def show_lines(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Print objects, one per line."""


def shape() -> AnswerShape | None:
    """Return how answers of the running command are shaped; None: they are complete."""
    context = click.get_current_context(silent=True)
    return None if context is None else context.meta.get(SHAPE)


def notation() -> str:
    """Return the option for which the running command answers with an object: --json, --brief or --fields."""
    shaped = shape()
    if shaped is None or "--json" in (click.get_current_context().find_root().obj or ()):
        return "--json"
    return "--brief" if shaped.brief else "--fields"


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return {9: "\\t", 10: "\\n", 13: "\\r"}.get(code) or (
        f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
    )


def safe(text: object) -> str:
    """Return *text* on one line, with control characters escaped."""
    return _UNSAFE.sub(_escaped, str(text))


def say(text: str) -> None:
    """Print one sentence on stderr; stdout is flushed first, so that both keep their order on a terminal."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    sys.stderr.write(f"logreel: {safe(text)}\n")


def echo(text: str = "") -> None:
    """Print one line on stdout, with control characters escaped."""
    sys.stdout.write(safe(text) + "\n")


def echo_head(text: str) -> None:
    """Print one line on stdout as a heading, with control characters escaped."""
    sys.stdout.write(emphasis(safe(text)) + "\n")


def width() -> int:
    """Return the columns to which text for people is wrapped: those of the terminal, else 100."""
    return min(max(shutil.get_terminal_size((100, 0)).columns, NARROW), WIDE)


def echo_wrapped(head: str, text: str, indent: int | None = None) -> None:
    """Print *text* behind *head*, on a terminal on as many lines as its width asks for, else on one.

    Programs take the lines of a pipe one by one.

    indent  columns in front of further lines; None: those of *head*
    """
    if not sys.stdout.isatty():
        echo(head + text)
        return
    head = safe(head)
    for line in wrapped(text, width(), head, " " * (_width(head) if indent is None else indent)):
        echo(line)


def wrapped(text: str, columns: int, head: str = "", indent: str = "") -> list[str]:
    """Return the lines of *text*, with control characters escaped, behind *head* and *indent*; at least one.

    A number and its unit stay on one line.
    """
    lines = textwrap.wrap(
        _BEFORE_UNIT.sub("\xa0", safe(text)),
        columns,
        initial_indent=head,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )
    return [line.replace("\xa0", " ") for line in lines] or [head]


class SafeLines(io.RawIOBase):
    """A binary file that prints the UTF-8 lines written to it with ``echo``."""

    def __init__(self) -> None:
        self._rest = b""

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Any) -> int:
        """Print the lines that *data* completes; keep the rest."""
        *lines, self._rest = (self._rest + bytes(data)).split(b"\n")
        for line in lines:
            echo(line.decode("utf-8", "replace"))
        return len(data)


def echo_json(value: Mapping[str, Any], line: bool = False, left: Mapping[str, int] | None = None) -> None:
    """Print *value* as one JSON object in ASCII, in the shape that the options of the command ask for.

    line  True: on one line, even on a terminal
    left  entries that ``AnswerShape.most`` kept out of *value*, by the place of their list
    """
    shaped = shape()
    if shaped is None:
        write_json(value, line)
    else:
        shaped.show(value, line, left)


def echo_json_lines(rows: Iterable[Mapping[str, Any]]) -> None:
    """Print each of *rows* as one line of JSON, in the shape that the options of the command ask for."""
    shaped = shape()
    if shaped is not None:
        shaped.show_lines(rows)
        return
    for row in rows:
        write_json(row, True)


def write_json(value: Any, line: bool = False) -> None:
    """Print *value* as JSON in ASCII; *line*: on one line, even on a terminal."""
    indent = 2 if sys.stdout.isatty() and not line else None
    sys.stdout.write(json.dumps(value, allow_nan=False, indent=indent) + "\n")


def echo_answer(log: Log, several: bool = False, **content: Any) -> None:
    """Print the object of ``--json`` for *log*: path, *content*, problems; on one line if it is one of *several*."""
    problems = [problem.as_dict() for problem in log.problems]
    echo_json({"path": log.name, **content, "problems": problems}, line=several)


def command_line(verb: str, words: Sequence[str], more: Sequence[str] = ()) -> str:
    """Return a command line for a shell; a very long one with FILE in place of its arguments.

    words  the words after the name of the program, with those of *verb*
    """
    import shlex

    text = " ".join(["logreel", *map(shlex.quote, words), *more])
    if len(json.dumps(text)) > LINE or not text.isprintable():
        text = " ".join(["logreel", verb, "FILE", *more])
    return text


def size_text(size: int) -> str:
    """Return a number of bytes as text: ``512 B``, ``4.1 kB``, ``2.2 MB``."""
    if size < 1000:
        return f"{size} B"
    value = float(size)
    for unit in ("kB", "MB", "GB", "TB"):
        value /= 1000
        if value < 999.5 or unit == "TB":
            break
    return f"{value:.1f} {unit}" if value < 99.95 else f"{value:.0f} {unit}"


def rate_text(rate: float | None) -> str:
    """Return a rate as text: ``49.9 Hz``; empty for None."""
    if rate is None:
        return ""
    return f"{rate:.0f} Hz" if rate >= 99.5 else f"{rate:.3g} Hz"


def number_text(value: float | int | None) -> str:
    """Return a number with at most nine significant digits; empty for None."""
    return "" if value is None else str(value) if isinstance(value, int) else f"{value:.9g}"


def value_text(value: Any) -> str:
    """Return a value of a message or parameter as short text; empty for None."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case float():
            from logreel.ops.json_values import float_text

            return float_text(value)
        case str():
            return json.dumps(value, ensure_ascii=False)
        case bytes():
            more = f"… ({len(value)} bytes)" if len(value) > ITEMS else ""
            return f"0x{value[:ITEMS].hex()}{more}"
        case list():
            more = f", … ({len(value)} in all)" if len(value) > ITEMS else ""
            return f"[{', '.join(map(value_text, value[:ITEMS]))}{more}]"
        case dict():
            return f"{{{fields_text(value)}}}"
        case _:
            return str(value)


def fields_text(data: dict[str, Any]) -> str:
    """Return the fields of a message on one line: ``x=1.5 q=[1, 0, 0, 0]``."""
    return " ".join(f"{name}={value_text(value)}" for name, value in data.items())


def _width(text: str) -> int:
    """Return the width of *text* in terminal columns."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else not unicodedata.combining(c) for c in text)


def table(
    head: Sequence[str], rows: Collection[Sequence[str]], right: Collection[int] = (), indent: int = 0
) -> None:
    """Print rows in aligned columns on stdout; cells are never truncated.

    right  indices of the right-aligned columns
    """
    lines = table_lines(head, rows, right, indent)
    if any(head):
        sys.stdout.write(emphasis(lines.pop(0)) + "\n")
    for line in lines:
        sys.stdout.write(line + "\n")


def table_lines(
    head: Sequence[str], rows: Collection[Sequence[str]], right: Collection[int] = (), indent: int = 0
) -> list[str]:
    """Return the lines of ``table``, without that of the heads if all are empty."""
    texts = [[safe(cell) for cell in row] for row in rows]
    head = [safe(cell) for cell in head]
    widths = [max(_width(row[i]) for row in [head, *texts]) for i in range(len(head))]

    def line(row: Sequence[str]) -> str:
        pads = [" " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)]
        cells = [p + c if i in right else c + p for i, (c, p) in enumerate(zip(row, pads, strict=True))]
        return (" " * indent + "  ".join(cells)).rstrip()

    return [line(row) for row in ([head, *texts] if any(head) else texts)]


def mark(level: int | None) -> str:
    """Return the mark of a fact with a syslog level: an error, a warning, or nothing."""
    return "" if level is None else "!" if level >= 4 else "!!"


def emphasis(text: str) -> str:
    """Return *text* with the colour of headings, if stdout is a terminal with colours."""
    return f"\x1b[1;36m{text}\x1b[0m" if has_colors() else text


def has_colors() -> bool:
    """Return whether stdout is a terminal with colours."""
    plain = not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not plain


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """Yield a function that updates a progress bar on stderr; None if stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn(safe(what), markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def show_written(done: Rewritten, name: str = "") -> None:
    """Print what was written to a new log, and its notes, on stderr.

    name  the output as the user named it; empty: its path
    """
    n = len(done.channels)
    messages = f"{done.messages} message{'s' * (done.messages != 1)} of {n} channel{'s' * (n != 1)}"
    where = "stdout" if name == "-" else name or done.path
    say(f"wrote {messages} to {where} ({size_text(done.size)})")
    show_notes(done.notes)


def show_windows(log: Log, done: object) -> None:
    """Print the windows that were written of *log* on stderr, if it was asked for windows."""
    from logreel.log.times import utc_shift

    windows = getattr(done, "windows", ())
    for window in windows[:NOTES]:
        say(window.text(utc_shift(log)))
    if len(windows) > NOTES:
        say(f"and {len(windows) - NOTES} more windows; --json has them all")


def show_notes(notes: Sequence[str]) -> None:
    """Print the first notes on stderr, and how many there are more."""
    for note in notes[:NOTES]:
        say(note)
    if len(notes) > NOTES:
        say(f"and {len(notes) - NOTES} more notes; --json has them all")


def finish(log: Log, skipped: Sequence[str] = ()) -> int:
    """Return the exit code of a verb that printed content of *log*: 3 if data was lost or skipped, else 0.

    Losses are reported on stderr in one sentence, and each problem between the files of one log in a further one.
    """
    from logreel.errors import CHANGED
    from logreel.log.part_checks import BETWEEN_FILES

    lost = [problem for problem in log.problems if problem.lost]
    losses = list(skipped[:1])
    if len(skipped) > 1:
        losses[0] += f", and {len(skipped) - 1} more like this"
    # Messages that cannot be decoded are still in the index, so no bytes count as unread.
    bad = sum(problem.count for problem in lost if problem.code == "payload")
    unread = [problem for problem in lost if problem.code != "payload"]
    if unread:
        size = sum(problem.size for problem in unread)
        where = "one place" if len(unread) == 1 else f"{len(unread)} places"
        # What info says of a log with an index is as old as the index.
        verb = "check" if any(problem.code == CHANGED.code for problem in log.problems) else "info"
        amount = "1 byte" if size == 1 else f"{size} bytes"
        losses.append(f"{amount} in {where} of the log could not be read, 'logreel {verb}' says more")
    if bad:
        messages = f"{bad} messages" if bad > 1 else "one message"
        losses.append(f"{messages} could not be decoded, 'logreel check' says more")
    losses += [p.text for p in log.problems if p.code == "definition" and not p.offset][:3]
    if losses:
        say(f"{log.name}: {'; '.join(losses)}")
    between = [problem.text for problem in log.problems if problem.code in BETWEEN_FILES]
    for text in between[:NOTES]:
        say(text)
    return 3 if lost or skipped else 0
