"""From the text that a log carries to a Definition."""

from __future__ import annotations

from logreel.errors import DefinitionError
from logreel.schemas.ros1msg.definition import Definition, link
from logreel.schemas.ros1msg.grammar import MAX_TEXT
from logreel.schemas.ros1msg.names import MAX_NAME, plain
from logreel.schemas.ros1msg.registry import Bundle, Registry, standard
from logreel.schemas.ros1msg.sections import split_text

#: The hash of a message without fields.
MD5_EMPTY = "d41d8cd98f00b204e9800998ecf8427e"


def parse(text: str, name: str, registry: Registry | None = None) -> Definition:
    """The Definition of type *name* from its concatenated text.

    registry  where types are looked up that the text uses and does not define; None: the standard messages

    Sections that nothing uses are left out, even broken ones. Raises DefinitionError.
    """
    if len(text) > MAX_TEXT:
        raise DefinitionError(f"{name[:80]}: a definition of {len(text)} characters")
    if len(name) > MAX_NAME:
        raise DefinitionError(f"{name[:80]}…: a type name of {len(name)} characters")
    find = (standard() if registry is None else registry).message
    return link(plain(name), Bundle(split_text(text, name)), find, closed=True)


def define(name: str, text: str = "", md5: str = "*", registry: Registry | None = None) -> Definition:
    """The Definition of a channel: from its *text*, or from *registry* where the log carries none.

    md5  which version of the type; ``*`` or empty: any

    A *text* is believed whatever its hash: compare with ``Definition.matches``. Raises DefinitionError where there
    is no text and no version of that hash is known.
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
    """The concatenated text by which messages of type *name* are read with *registry*, and its md5 where it is unknown.

    text, md5  as the log has them; the text comes back unchanged where it needs no other, or no use of it can be made
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
    """The concatenated text of the type *name* as a publisher would send it; raises DefinitionError if not known."""
    return define(name, "", md5, registry).text
