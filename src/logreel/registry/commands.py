"""What a format can be asked beyond what every log can: commands as plain descriptions, answers as plain data.

A format names its commands in ``Format.commands``; the command line makes verbs of them, ``logreel FORMAT COMMAND``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Option:
    """One thing that a command can be told.

    name      of the keyword that the command takes
    flags     as written on the command line, such as ``--all``; none: an argument that may be left out
    kind      bool for a switch, float, str, or the texts to choose from
    """

    name: str
    flags: tuple[str, ...] = ()
    help: str = ""
    kind: type | tuple[str, ...] = str
    default: Any = None


@dataclass(frozen=True, slots=True)
class Command:
    """A question about logs of one format.

    run  called with an open Log and the options as keywords
    """

    name: str
    help: str
    run: Callable[..., Answer]
    options: tuple[Option, ...] = ()


@dataclass(frozen=True)
class Answer:
    """What a command found: as a table, and as text for people.

    key      what the rows are called
    columns  values by name, all of one length; times in ns have names that end in ``_ns``
    lines    makes the text, line by line
    about    what holds for all rows
    """

    key: str
    columns: Mapping[str, Sequence[Any]]
    lines: Callable[[], Iterator[str]]
    about: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def rows(self) -> list[dict[str, Any]]:
        """A dict of plain values for each row."""
        plain = [_plain(column) for column in self.columns.values()]
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*plain, strict=True)]

    def to_arrow(self) -> pa.Table:
        """The rows as a ``pyarrow.Table``."""
        import pyarrow as pa

        return pa.table({name: pa.array(column) for name, column in self.columns.items()})

    def text(self) -> str:
        """All lines, each with its line feed."""
        return "".join(f"{line}\n" for line in self.lines())


def _plain(column: Any) -> list[Any]:
    return column.tolist() if hasattr(column, "tolist") else list(column)
