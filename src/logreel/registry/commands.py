"""Descriptions of format-specific commands, and their results as plain data.

A format names its commands in ``Format.commands``; on the command line they are ``logreel FORMAT COMMAND``. Other
packages add commands with entry points of the group ``logreel.commands``, which are called ``FORMAT.COMMAND``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.log.log import Log


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a command.

    name     keyword of the function
    flags    spelling on the command line, such as ``--all``; none: an optional argument
    help     description for people
    kind     bool for a switch, int, float, str, or a tuple of allowed texts
    default  value if the option is not given
    metavar  name of its value in the help; empty: by its kind
    """

    name: str
    flags: tuple[str, ...] = ()
    help: str = ""
    kind: type | tuple[str, ...] = str
    default: Any = None
    metavar: str = ""


class Example(NamedTuple):
    """A command line, which begins with ``logreel``, and what it does, in a few words."""

    line: str
    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """A command for logs of one format.

    name      name on the command line
    help      description for people
    run       called with an open Log, and the options as keywords
    options   options of the command
    examples  command lines for the help of the command
    plays     True: *run* returns a Playback, which the command line can also send to sinks
    prints    True: *run* may write to standard output, because it runs code of the user
    opens     False: *run* is called with a path, which may be that of a log of another format or of no log, and returns
              a Content
    formats   names of further formats whose logs it takes
    """

    name: str
    help: str
    run: Callable[..., Answer | Playback | Content]
    options: tuple[Option, ...] = ()
    examples: tuple[Example, ...] = ()
    plays: bool = False
    prints: bool = False
    opens: bool = True
    formats: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """The result of a command: a table, and text for people.

    key      name of the rows in JSON; empty: there are none
    columns  values by name, all of one length; names of times in ns end in ``_ns``
    lines    yields the text, line by line
    about    values that apply to all rows, by name
    """

    key: str
    columns: Mapping[str, Sequence[Any]]
    lines: Callable[[], Iterator[str]]
    about: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def rows(self) -> list[dict[str, Any]]:
        """Return a dict of plain values for each row."""
        plain = [_plain(column) for column in self.columns.values()]
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*plain, strict=True)]

    def to_arrow(self) -> pa.Table:
        """Return the rows as a ``pyarrow.Table``."""
        import pyarrow as pa

        return pa.table({name: pa.array(column) for name, column in self.columns.items()})

    def text(self) -> str:
        """Return all lines, each with its line feed."""
        return "".join(f"{line}\n" for line in self.lines())


@dataclass(frozen=True, slots=True)
class Playback:
    """The result of a command that replays a log: steps as text and as plain data, and a log that a Player can play.

    lines  yields a line of text per step
    rows   yields a dict of plain values per step; names of times in ns end in ``_ns``
    log    opens a log that has the steps as messages
    rate   speed of the replay relative to this log
    """

    lines: Callable[[], Iterator[str]]
    rows: Callable[[], Iterator[dict[str, Any]]]
    log: Callable[[], AbstractContextManager[Log]]
    rate: float


@dataclass(frozen=True, slots=True)
class Content:
    """The result of a command that extracts bytes, for a file or a pipe.

    parts  yields the bytes
    about  plain values that describe them, by name
    notes  sentences for people
    lost   sentences about what could not be extracted
    """

    parts: Callable[[], Iterator[bytes]]
    about: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    def read(self) -> bytes:
        """Return all bytes."""
        return b"".join(self.parts())


def _plain(column: Any) -> list[Any]:
    return column.tolist() if hasattr(column, "tolist") else list(column)
