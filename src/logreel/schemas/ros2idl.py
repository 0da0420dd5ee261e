"""IDL of ROS 2 (``ros2idl``), which bags have for types that are defined in ``.idl``, and Layouts of their messages.

What rosidl generates and reads is read: modules, structs, constants, enumerations, typedefs, sequences, arrays of one
dimension, texts; of annotations those that change the bytes of messages. They are as those of the same ``.msg``, so
``ros2msg`` makes the Layout, and ``cdr`` reads what has none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import md5
from typing import TypeVar

from logreel.errors import DefinitionError
from logreel.layout.layout import Layout
from logreel.layout.nodes import MAX_LEAVES
from logreel.schemas.ros1msg.definition import short_name
from logreel.schemas.ros2msg import (
    APPENDABLE,
    FINAL,
    LITTLE,
    MAX_TEXT,
    MUTABLE,
    NUMBERS,
    Ros2Definition,
    Ros2Field,
    layout_of,
)

T = TypeVar("T")

#: Types of ``.msg`` by those of IDL.
_TYPES = {
    "boolean": "bool",
    "octet": "uint8",
    "char": "uint8",
    "short": "int16",
    "unsigned short": "uint16",
    "long": "int32",
    "unsigned long": "uint32",
    "long long": "int64",
    "unsigned long long": "uint64",
    "float": "float32",
    "double": "float64",
    **{name: name for name in NUMBERS if name[-1].isdigit() and not name.startswith("float")},
}
#: What changes the bytes of messages in a way that is not read.
_UNREAD = {"union", "bitset", "bitmask", "map", "fixed", "any", "interface", "valuetype"}
#: Types of enumerations by ``@bit_bound``, up to so many bits.
_ENUMERATIONS = {8: "uint8", 16: "uint16", 32: "uint32"}
_SECTION = re.compile(r"^=+\s*\nIDL: .*$", re.MULTILINE)
_TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/|^[ \t]*\#[^\n]*
        |(?P<token>::|[A-Za-z_]\w*|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[0-9][\w.]*(?:[eE][-+]?\d+)?|[][{}()<>;,:=@+*/|&^~-])""",
    re.VERBOSE | re.DOTALL | re.MULTILINE | re.ASCII,
)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)
#: Most modules in one another.
MAX_MODULES = 16


@dataclass(frozen=True, slots=True)
class _Type:
    """The type of a member: a name as ``Ros2Field`` has it, and what it is an array of."""

    name: str
    is_array: bool = False
    count: int | None = None
    is_enumeration: bool = False


@dataclass(slots=True)
class _Scope:
    """What was defined, by full names such as ``pkg/msg/Type``."""

    structs: dict[str, Ros2Definition] = field(default_factory=dict)
    types: dict[str, _Type] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)


def parse(text: str, name: str) -> Mapping[str, Ros2Definition]:
    """Return the structs that a text defines, by ``pkg/Type``; *name*: type that it is of.

    Raises DefinitionError with the number of the line.
    """
    if len(text) > MAX_TEXT:
        raise DefinitionError(
            f"{name[:80]}: a definition of {len(text)} characters; at most {MAX_TEXT} are read"
        )
    # Sections stand in the order of use: types are resolved when all are known.
    scope = _Scope()
    sections = [section for section in _SECTION.split(text) if section.strip()]
    for section in reversed(sections):
        _Parser(section, name, scope).specification(())
    return scope.structs


def layout(name: str, text: str, encapsulation: bytes = LITTLE) -> Layout:
    """Return the Layout of little-endian CDR messages of type *name*; *text*: IDL with all that it uses.

    encapsulation  what the messages begin with, as for ``ros2msg.layout``

    Raises DefinitionError for an invalid text, and for what it has that is not read, such as unions.
    """
    return layout_of(name, parse(text, name), encapsulation)


def hashed_id(name: str) -> int:
    """Return the id of a member that is made of a name, as ``@autoid(HASH)`` and ``@hashid`` say."""
    digest = md5(name.encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[:4], "little") & 0x0FFFFFFF


class _Parser:
    """Parses one file."""

    def __init__(self, text: str, name: str, scope: _Scope) -> None:
        self._text, self._name, self._scope = text, name, scope
        self._tokens, self._places, self._at, at = list[str](), list[int](), 0, 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                self._places, self._at = [at], 0
                raise self._error(f"unexpected {text[at : at + 20]!r}")
            if match["token"] is not None:
                self._tokens.append(match["token"])
                self._places.append(at)
            at = match.end()

    def _error(self, text: str) -> DefinitionError:
        place = self._places[min(self._at, len(self._places) - 1)] if self._places else 0
        return DefinitionError(
            f"{self._name[:80]}, IDL line {self._text.count(chr(10), 0, place) + 1}: {text}"
        )

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self, *expected: str) -> str:
        token = self._peek()
        if not token or (expected and token not in expected):
            raise self._error(f"expected {' or '.join(map(repr, expected)) or 'more'}, found {token[:40]!r}")
        self._at += 1
        return token

    def _identifier(self) -> str:
        if not _IDENTIFIER.fullmatch(self._peek()):
            raise self._error(f"expected a name, found {self._peek()[:40]!r}")
        return self._take()

    def _annotations(self) -> dict[str, list[str]]:
        """Return what is in the brackets of annotations, ``@name`` or ``@name(…)``, by name."""
        stated = dict[str, list[str]]()
        while self._peek() == "@":
            self._take()
            name = self._identifier()
            stated[name] = self._balanced("(", ")")[1:-1] if self._peek() == "(" else []
        return stated

    def _balanced(self, first: str, last: str) -> list[str]:
        depth, tokens = 0, list[str]()
        while depth or self._peek() == first:
            tokens.append(self._take())
            depth += (tokens[-1] == first) - (tokens[-1] == last)
        return tokens

    def _extensibility(self, stated: dict[str, list[str]]) -> str:
        name = (stated.get("extensibility") or [""])[-1].lower()
        return next((word for word in (FINAL, APPENDABLE, MUTABLE) if word in stated or word == name), "")

    def _member_id(self, name: str, stated: dict[str, list[str]], is_hashed: bool) -> int | None:
        """Return the id of a member in messages of mutable types; None: that after the one before it."""
        if "id" in stated:
            digits = "".join(stated["id"])
            try:
                number = int(digits, 0)
            except ValueError:
                number = -1
            if not 0 <= number < 1 << 28:
                raise self._error(f"{digits[:40]!r} is no id of a member")
            return number
        if "hashid" in stated or is_hashed:
            return hashed_id("".join(stated.get("hashid", ())).strip('"') or name)
        return None

    # ---------------------------------------------------------------------------------------------- definitions

    def specification(self, modules: tuple[str, ...]) -> None:
        """Parse definitions up to the end of the text, or of the module that *modules* lead to."""
        if len(modules) > MAX_MODULES:
            raise self._error(f"more than {MAX_MODULES} modules in one another")
        while self._peek() and self._peek() != "}":
            stated = self._annotations()
            word = self._take("module", "struct", "const", "enum", "typedef", ";", *_UNREAD)
            if word == "module":
                inner = (*modules, self._identifier())
                self._take("{")
                self.specification(inner)
                self._take("}")
            elif word == "struct":
                self._struct(modules, stated)
            elif word == "enum":
                bits = self._number(stated["bit_bound"], modules) if "bit_bound" in stated else 32
                kept = next((_ENUMERATIONS[most] for most in _ENUMERATIONS if 0 < (bits or 0) <= most), None)
                if kept is None:
                    raise self._error("an enumeration has 1 to 32 bits")
                self._scope.types["/".join((*modules, self._identifier()))] = _Type(kept, is_enumeration=True)
                self._balanced("{", "}")
            elif word == "typedef":
                self._typedef(modules)
            elif word == "const":
                self._constant(modules)
            elif word != ";":
                raise self._error(f"{word} is not read")
        if not modules and self._peek():
            raise self._error("unexpected '}'")

    def _struct(self, modules: tuple[str, ...], annotations: dict[str, list[str]]) -> None:
        is_hashed = [word.upper() for word in annotations.get("autoid", ["SEQUENTIAL"])] in ([], ["HASH"])
        name, fields = "/".join((*modules, self._identifier())), list[Ros2Field]()
        if self._peek() == ";":
            return
        if self._peek() == ":":
            raise self._error("structs that inherit are not read")
        self._take("{")
        while self._peek() != "}":
            stated = self._annotations()
            base = self._type(modules)
            while True:
                member = self._identifier()
                kept = self._with_size(base, modules)
                fields.append(
                    Ros2Field(
                        kept.name,
                        member,
                        kept.is_array,
                        kept.count,
                        self._member_id(member, stated, is_hashed),
                        "optional" in stated and stated["optional"] not in (["FALSE"], ["false"]),
                        kept.is_enumeration,
                    )
                )
                if len(fields) > MAX_LEAVES:
                    raise self._error(f"more than {MAX_LEAVES} members")
                if self._take(",", ";") == ";":
                    break
        self._take("}")
        if len({f.name for f in fields}) < len(fields):
            raise self._error(f"{name[:80]} has two members of one name")
        # Generated for a type without fields, of which no value is shown.
        if [f.name for f in fields] == ["structure_needs_at_least_one_member"]:
            fields = []
        self._scope.structs.setdefault(
            short_name(name),
            Ros2Definition(short_name(name), tuple(fields), self._extensibility(annotations)),
        )

    def _typedef(self, modules: tuple[str, ...]) -> None:
        base = self._type(modules)
        while True:
            name = self._identifier()
            self._scope.types["/".join((*modules, name))] = self._with_size(base, modules)
            if self._take(",", ";") == ";":
                return

    def _constant(self, modules: tuple[str, ...]) -> None:
        self._type(modules)
        name = self._identifier()
        self._take("=")
        value = list[str]()
        while self._peek() != ";":
            value.append(self._take())
        number = self._number(value, modules)
        if number is not None:
            self._scope.numbers["/".join((*modules, name))] = number

    def _number(self, tokens: list[str], modules: tuple[str, ...]) -> int | None:
        """Return a whole number, or that of a constant; None for other values."""
        if len(tokens) == 1 and re.fullmatch(r"[1-9]\d{0,9}|0", tokens[0]):
            return int(tokens[0])
        return self._found(self._scope.numbers, "".join(tokens).replace("::", "/"), modules)

    # ---------------------------------------------------------------------------------------------------- types

    def _type(self, modules: tuple[str, ...]) -> _Type:
        word = self._peek()
        if word in ("sequence", "string", "wstring"):
            return self._sized(modules)
        if word == "wchar":
            return _Type(self._take())
        if word in _UNREAD:
            raise self._error(f"{word} is not read")
        words = [self._identifier()] if word != "::" else []
        while words and words[-1] in ("unsigned", "long") and self._peek() in ("short", "long", "double"):
            words.append(self._take())
        if (known := _TYPES.get(" ".join(words))) is not None:
            return _Type(known)
        while self._peek() == "::":
            self._take()
            words.append(self._identifier())
        name = "/".join(words)
        defined = self._found(self._scope.types, name, modules)
        if defined is not None:
            return defined
        # A struct may be defined later, or in another file.
        if len(words) == 1:
            name = "/".join((*modules, name))
        return _Type(short_name(name))

    def _sized(self, modules: tuple[str, ...]) -> _Type:
        """Return the type of a sequence or text, whose bound does not change the bytes of messages."""
        word = self._take()
        if word != "sequence":
            if self._peek() == "<":
                self._balanced("<", ">")
            return _Type(word)
        self._take("<")
        item = self._type(modules)
        if item.is_array:
            raise self._error("sequences of arrays are not read")
        if self._take(",", ">") == ",":
            while self._take() != ">":
                pass
        return _Type(item.name, True, None, item.is_enumeration)

    def _with_size(self, base: _Type, modules: tuple[str, ...]) -> _Type:
        """Return a type with the size in brackets that follows the name."""
        if self._peek() != "[":
            return base
        self._take("[")
        tokens = list[str]()
        while self._peek() != "]":
            tokens.append(self._take())
        self._take("]")
        count = self._number(tokens, modules)
        if count is None:
            raise self._error(f"{' '.join(tokens)[:40]!r} is no known number of items")
        if base.is_array or self._peek() == "[":
            raise self._error("arrays of arrays are not read")
        return _Type(base.name, True, count, base.is_enumeration)

    def _found(self, known: Mapping[str, T], name: str, modules: tuple[str, ...]) -> T | None:
        """Return what *name* means inside of modules: in the innermost one that has it."""
        places = ["/".join((*modules[:n], name)) for n in range(len(modules), -1, -1)]
        return next((known[place] for place in places if place in known), None)
