"""ROS 1 definition of a Layout."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator

from logreel.errors import DefinitionError
from logreel.layout.layout import Layout
from logreel.layout.nodes import Bytes, Field, FixedArray, Node, Rest, Scalar, Sequence, String, Struct, Time
from logreel.schemas.ros1msg.names import is_name
from logreel.schemas.ros1msg.sections import Section, join_text

#: Package of generated types.
PACKAGE = "logreel"
#: Names of fields that the tools of ROS accept: they generate Python code.
FIELD = re.compile(rf"(?!(?:{'|'.join(keyword.kwlist)})\Z)[A-Za-z][A-Za-z0-9_]*")
_WORD = re.compile(r"[A-Za-z0-9]+")
_UNFIT = re.compile(r"[^A-Za-z0-9_/]+")


def type_name(topic: str) -> str:
    """Return the name of a generated type for *topic*: ``logreel/ImuData`` for ``/imu/data``."""
    return f"{PACKAGE}/{_camel(topic) or 'Message'}"


def topic_name(text: str) -> str:
    """Return *text* as a global name of ROS: ``/sensor/imu_1`` for ``sensor/imu[1]``."""
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
    sections: list[Section] = []
    _add(root, name, sections)
    return join_text(sections)


def _add(node: Struct, name: str, sections: list[Section]) -> None:
    place = len(sections)
    sections.append(Section(name, ""))
    lines = list(_lines(node, name, sections))
    # An empty text would say that the definition is not known.
    sections[place] = Section(name, "".join(f"{line}\n" for line in lines or ["# no fields"]))


def _lines(node: Struct, name: str, sections: list[Section]) -> Iterator[str]:
    for f in node.visible():
        if not is_name(f.name):
            raise DefinitionError(f"{f.name!r:.60} cannot be a field of ROS 1: letters, digits and _ only")
        yield f"{_type(f.node, f'{name}{_camel(f.name)}', sections)} {f.name}"


def _type(node: Node, name: str, sections: list[Section]) -> str:
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
