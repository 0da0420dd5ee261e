"""Layouts of ROS 1 definitions, and definitions of Layouts, also as parsers of today read them."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping

from logreel.errors import DefinitionError
from logreel.layout.layout import Layout, shared
from logreel.layout.nodes import Bytes, Field, FixedArray, Node, Rest, Scalar, Sequence, String, Struct, Time
from logreel.schemas.ros1msg.definition import (
    HEADER,
    Definition,
    DefinitionText,
    FieldLine,
    MessageDefinition,
    is_name,
    join_text,
    respelled,
    spellings,
)
from logreel.schemas.ros1msg.registry import parse

#: char is unsigned, byte is signed. All lengths and counts have four bytes.
_SCALARS = {
    **{name: Scalar(name) for name in ("bool", "float32", "float64")},
    **{f"{sign}int{bits}": Scalar(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "char": Scalar("uint8"),
    "byte": Scalar("int8"),
}
BUILTIN_NODES: dict[str, Node] = {
    **_SCALARS,
    "time": Time(),
    "duration": Time(signed=True),
    "string": String(4),
}
COUNT_BYTES = 4


def layout(definition: Definition) -> Layout:
    """Return the Layout of a message, whose fields follow each other without padding.

    Raises DefinitionError for a type that is too large or nested too deep.
    """
    uses = tuple((name, tuple(definition.uses[name].items())) for name in definition.users)
    return shared(("ros1msg", uses, definition.text), lambda: _layout(definition))


def _layout(definition: Definition) -> Layout:
    structs: dict[str, Node] = {}
    try:
        for name in definition.users:
            uses = definition.uses[name]
            fields = [
                _field(f, BUILTIN_NODES.get(f.type) or structs[uses[f.type]])
                for f in definition.messages[name].fields
            ]
            structs[name] = Struct(tuple(fields))
        root = structs[definition.name]
        return Layout(root if isinstance(root, Struct) else Struct(()), definition.name)
    except DefinitionError as error:
        raise DefinitionError(f"{definition.name}: {error.text}") from None


def _field(f: FieldLine, item: Node) -> Field:
    """Return the Layout field of *f*."""
    if not f.array:
        return Field(f.name, item)
    if f.count is not None:
        return Field(f.name, FixedArray(item, f.count))
    if item == _SCALARS["uint8"]:
        return Field(f.name, Bytes(COUNT_BYTES))
    return Field(f.name, Sequence(item, COUNT_BYTES))


#: Package of generated types.
PACKAGE = "logreel"
#: Names of fields that the tools of ROS accept: they generate Python code.
FIELD = re.compile(rf"(?!(?:{'|'.join(keyword.kwlist)})\Z)[A-Za-z][A-Za-z0-9_]*")
_WORD = re.compile(r"[A-Za-z0-9]+")
_GLOBAL = re.compile(r"(?:/[A-Za-z]\w*)+", re.ASCII)
_UNFIT = re.compile(r"[^A-Za-z0-9_/]+")


def type_name(topic: str) -> str:
    """Return the name of a generated type for *topic*: ``logreel/ImuData`` for ``/imu/data``."""
    return f"{PACKAGE}/{_camel(topic) or 'Message'}"


def topic_name(text: str) -> str:
    """Return *text* as a global name of ROS: ``/sensor/imu_1`` for ``sensor/imu[1]``."""
    if _GLOBAL.fullmatch(text):
        return text
    parts = (_UNFIT.sub("_", part).strip("_") for part in text.split("/"))
    return "/" + "/".join(part if part[0].isalpha() else f"n{part}" for part in parts if part)


def _camel(text: str) -> str:
    joined = "".join(word[0].upper() + word[1:] for word in _WORD.findall(text))
    return joined if joined[:1].isalpha() or not joined else f"N{joined}"


def definition_from_layout(layout: Layout, name: str) -> str:
    """Return the definition of type *name* with the visible fields of *layout*, and of one type for each inner struct.

    Texts of a fixed size become strings; the records of a message of many records become the field ``records``. Raises
    DefinitionError for invalid field names and for arrays of arrays.
    """
    root = layout.root if isinstance(layout.root, Struct) else Struct((Field("records", layout.root),))
    sections: list[DefinitionText] = []
    _add(root, name, sections)
    return join_text(sections)


def _add(node: Struct, name: str, sections: list[DefinitionText]) -> None:
    place = len(sections)
    sections.append(DefinitionText(name, ""))
    lines = list(_lines(node, name, sections))
    # An empty text would say that the definition is not known.
    sections[place] = DefinitionText(name, "".join(f"{line}\n" for line in lines or ["# no fields"]))


def _lines(node: Struct, name: str, sections: list[DefinitionText]) -> Iterator[str]:
    for f in node.visible():
        if not is_name(f.name):
            raise DefinitionError(f"{f.name!r:.60} cannot be a field of ROS 1: letters, digits and _ only")
        yield f"{_type(f.node, f'{name}{_camel(f.name)}', sections)} {f.name}"


def _type(node: Node, name: str, sections: list[DefinitionText]) -> str:
    match node:
        case Scalar(type=t):
            return "int8" if t == "char" else t
        case Time(signed=signed):
            return "duration" if signed else "time"
        case String() | Rest(text=True) | FixedArray(item=Scalar(type="char")):
            return "string"
        case Bytes() | Rest() | Sequence(item=Scalar(type="char")):
            return "uint8[]"
        case Struct():
            taken = {section.name for section in sections}
            while name in taken:
                name += "_"
            _add(node, name, sections)
            return name
        case Sequence(item=item) | FixedArray(item=item):
            inner = _type(item, name, sections)
            if "[" in inner:
                raise DefinitionError("ROS 1 has no arrays of arrays")
            return f"{inner}[{node.count if isinstance(node, FixedArray) else ''}]"
        case _:
            raise DefinitionError(f"ROS 1 has nothing for {type(node).__name__}")


_HEADER_FIELDS = (("uint32", "seq"), ("time", "stamp"), ("string", "frame_id"))


def portable(text: str, name: str) -> str:
    """Return the concatenated *text* of type *name* in a spelling that needs no knowledge of earlier releases.

    Types are named where they are used as they are defined, ``std_msgs/Header`` is called so in every section
    (``roslib/Header`` until 2010), words are separated by blanks, and definitions that the text leaves out are added
    where they are known. Fields, and thereby the md5sum, stay. A text that needs nothing of that, or cannot be used,
    is returned unchanged.
    """
    try:
        definition = parse(text, name)
    except DefinitionError:
        return text
    names = _names(definition)
    sections: dict[str, str] = {}
    for message_name, message in definition.messages.items():
        sections.setdefault(names[message_name], respelled(message, definition.uses[message_name], names))
    same = all(
        names[message_name] == message_name and sections[message_name] == m.text
        for message_name, m in definition.messages.items()
    )
    return (
        text
        if same and not definition.borrowed
        else join_text(DefinitionText(*item) for item in sections.items())
    )


def _names(definition: Definition) -> Mapping[str, str]:
    """Return the new name of each message; the first one, which the text does not name, keeps its name."""
    names = {name: name for name in definition.messages}
    earlier = set(spellings(HEADER)) & names.keys() - {definition.name}
    # A package may have a Header with other fields: then both are kept.
    if all(_is_header(definition.messages[name]) for name in earlier):
        names |= dict.fromkeys(earlier, HEADER)
    return names


def _is_header(message: MessageDefinition) -> bool:
    return tuple((f.spelled, f.name) for f in message.fields) == _HEADER_FIELDS
