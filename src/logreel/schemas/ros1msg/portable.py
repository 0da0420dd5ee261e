"""Definitions as parsers of today read them, whatever names the types had when the log was recorded."""

from __future__ import annotations

from collections.abc import Mapping

from logreel.errors import DefinitionError
from logreel.schemas.ros1msg.definition import Definition
from logreel.schemas.ros1msg.grammar import Message
from logreel.schemas.ros1msg.names import spellings
from logreel.schemas.ros1msg.resolve import parse
from logreel.schemas.ros1msg.respell import HEADER, respelled
from logreel.schemas.ros1msg.sections import Section, join_text

_HEADER_FIELDS = (("uint32", "seq"), ("time", "stamp"), ("string", "frame_id"))


def portable(text: str, name: str) -> str:
    """Return the concatenated *text* of type *name* in a spelling that needs no knowledge of earlier releases.

    Types are named where they are used as they are defined, ``std_msgs/Header`` is called so in every section
    (``roslib/Header`` until 2010), words are separated by blanks, and definitions that the text leaves out are added
    where they are known. Fields, and thereby the md5sum, stay. A text that needs nothing of that, or cannot be used,
    is returned unchanged.
    """
    try:
        found = parse(text, name)
    except DefinitionError:
        return text
    names = _names(found)
    sections: dict[str, str] = {}
    for one, message in found.messages.items():
        sections.setdefault(names[one], respelled(message, found.uses[one], names))
    same = all(names[one] == one and sections[one] == m.text for one, m in found.messages.items())
    return text if same and not found.borrowed else join_text(Section(*item) for item in sections.items())


def _names(found: Definition) -> Mapping[str, str]:
    """Return the new name of each message; the first one, which the text does not name, keeps its name."""
    names = {name: name for name in found.messages}
    earlier = set(spellings(HEADER)) & names.keys() - {found.name}
    # A package may have a Header with other fields: then both are kept.
    if all(_is_header(found.messages[name]) for name in earlier):
        names |= dict.fromkeys(earlier, HEADER)
    return names


def _is_header(message: Message) -> bool:
    return tuple((f.spelled, f.name) for f in message.fields) == _HEADER_FIELDS
