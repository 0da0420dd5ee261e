"""What people see of results and logs at a prompt and in notebooks: tables, and the names that are theirs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from logreel.log.brief import Brief


class Block(NamedTuple):
    """One table of a result: its title, the names of its columns (none: no head), and rows of text."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


class Tabular(Brief):
    """Mixin for results that are tables for people: ``str()``, and HTML in notebooks; the repr stays short."""

    __slots__ = ()

    def _blocks(self) -> Iterable[Block]:
        raise NotImplementedError

    def __str__(self) -> str:
        lines: list[str] = []
        for block in self._blocks():
            lines += [*([""] if lines else []), _line(block.title)]
            rows = [[_line(cell) for cell in row] for row in (block.head, *block.rows) if row]
            widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
            for row in rows:
                cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
                lines.append(f"  {'  '.join(cells)}".rstrip())
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from logreel.log.html import table

        return "".join(table(block.title, block.head, block.rows) for block in self._blocks())


def _line(text: str) -> str:
    """Return text of a log on one line, without characters that control a terminal."""
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in " ".join(text.split()))


#: Members of a Log for authors of formats and outputs.
FOR_AUTHORS = {
    "check_unchanged",
    "derive",
    "format_state",
    "gather",
    "given_types",
    "holds_between",
    "messages_of",
    "note",
    "options",
    "rescan",
    "scan",
    "services",
    "source",
}


class ForPeople:
    """Mixin of Log: a table in notebooks; ``dir``, and so the completion of a prompt, lists what people use."""

    def _repr_html_(self) -> str:
        from logreel.log.html import log_table

        return log_table(self)

    def _ipython_key_completions_(self) -> list[str]:
        log: Any = self
        return list(log)

    def __dir__(self) -> list[str]:
        is_internal = re.compile(r"_(?!_|repr_html_|ipython)").match
        return [name for name in super().__dir__() if name not in FOR_AUTHORS and not is_internal(name)]
