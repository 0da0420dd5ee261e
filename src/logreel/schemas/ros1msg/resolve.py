"""Definitions of channels: from the text in the log, else from a registry."""

from __future__ import annotations

from logreel.errors import DefinitionError
from logreel.schemas.ros1msg.definition import Definition, link
from logreel.schemas.ros1msg.grammar import MAX_TEXT
from logreel.schemas.ros1msg.names import MAX_NAME, short_name
from logreel.schemas.ros1msg.registry import Bundle, Registry, standard
from logreel.schemas.ros1msg.sections import split_text

#: Checksum of a message without fields.
MD5_EMPTY = "d41d8cd98f00b204e9800998ecf8427e"


def parse(text: str, name: str, registry: Registry | None = None) -> Definition:
    """Return the Definition of type *name* from its concatenated text; raise DefinitionError.

    registry  used for types that the text does not define; None: the standard messages

    Unused sections are ignored, even invalid ones.
    """
    if len(text) > MAX_TEXT:
        raise DefinitionError(
            f"{name[:80]}: a definition of {len(text)} characters; at most {MAX_TEXT} are read"
        )
    if len(name) > MAX_NAME:
        raise DefinitionError(f"{name[:80]}…: a type name of {len(name)} characters")
    find = (standard() if registry is None else registry).message
    return link(short_name(name), Bundle(split_text(text, name)), find, closed=True)


def define(name: str, text: str = "", md5: str = "*", registry: Registry | None = None) -> Definition:
    """Return the Definition of a channel: from its *text*, or from *registry* if the text is empty.

    md5  version of the type; ``*`` or empty: any

    A *text* is used whatever its checksum: compare with ``Definition.matches``. Raises DefinitionError for an invalid
    text, and if there is no text and no version with this checksum is known.
    """
    if text.strip():
        return parse(text, name, registry)
    if md5 == MD5_EMPTY:
        return parse("", name, registry)
    known = standard() if registry is None else registry
    found = known.find(name, md5)
    if found is not None:
        return found
    versions = f", only others than that of md5 {md5[:80]}" if known.find(name) else ""
    raise DefinitionError(f"the log carries no definition of {name[:80]}, and none is known{versions}")


def as_read(name: str, text: str, md5: str, registry: Registry) -> tuple[str, str]:
    """Return the concatenated text by which messages of type *name* are read, and its checksum if that is unknown.

    text, md5  as in the log; returned unchanged if the text is complete or cannot be used
    """
    try:
        found = define(name, text, md5, registry)
    except DefinitionError:
        return text, md5
    return found.text if found.borrowed or not text.strip() else text, md5 if md5 not in (
        "",
        "*",
    ) else found.md5


def full_text(name: str, registry: Registry | None = None, md5: str = "*") -> str:
    """Return the concatenated text of the type *name*, as publishers send it; raise DefinitionError if unknown."""
    return define(name, "", md5, registry).text
