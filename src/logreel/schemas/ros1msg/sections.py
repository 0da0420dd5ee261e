"""Concatenated definition texts: a definition, then those of all types that it uses."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from logreel.schemas.ros1msg.names import MAX_NAME, short_name

#: Line between two definitions.
RULE = "=" * 80
#: Some writers draw shorter or longer lines; no field or constant looks like this.
_HEAD = re.compile(r"^={20,}[ \t]*\r?\nMSG:([^\n]*)\n?", re.MULTILINE)


class Section(NamedTuple):
    """A definition text and its type name."""

    name: str
    text: str


def split_text(text: str, name: str) -> list[Section]:
    """Return the definitions in *text*, that of *name* first, each verbatim."""
    found = []
    pos = 0
    name = short_name(name)
    for head in _HEAD.finditer(text):
        # The line feed before a separator belongs to it.
        found.append(Section(name, text[pos : max(pos, head.start() - 1)]))
        name, pos = short_name(head[1].strip())[:MAX_NAME], head.end()
    found.append(Section(name, text[pos:]))
    return found


def join_text(sections: Iterable[Section]) -> str:
    """Return the concatenated text of *sections*, the first one without a heading."""
    first, *others = sections
    return "\n".join([first.text, *(f"{RULE}\nMSG: {name}\n{text}" for name, text in others)])
