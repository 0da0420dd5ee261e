"""ROS 1 definitions: parser of one message with its fields, constants and comments, and types with all that they
use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, NoReturn

from logreel.dataclass import dataclass
from logreel.errors import DefinitionError
from logreel.layout.nodes import MAX_DEPTH, MAX_LEAVES

#: Types that need no definition.
BUILTIN = frozenset(
    {
        "bool",
        "char",
        "byte",
        "int8",
        "uint8",
        "int16",
        "uint16",
        "int32",
        "uint32",
        "int64",
        "uint64",
        "float32",
        "float64",
        "string",
        "time",
        "duration",
    }
)

#: Types that were moved to another package with the same fields; the current name is first.
SAME = (
    ("std_msgs/Header", "roslib/Header"),
    ("rosgraph_msgs/Log", "roslib/Log"),
    ("rosgraph_msgs/Clock", "roslib/Clock"),
    ("tf2_msgs/TFMessage", "tf/tfMessage"),
)
_SAME = {name: group for group in SAME for name in group}

#: Longest name that is accepted; real ones have fewer than 100 characters.
MAX_NAME = 255
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_TYPE = re.compile(r"[A-Za-z_]\w*(?:/[A-Za-z_]\w*){0,2}", re.ASCII)


def is_name(text: str) -> bool:
    """Return whether *text* is a valid name of a field or a constant."""
    return len(text) <= MAX_NAME and _NAME.fullmatch(text) is not None


def is_type(text: str) -> bool:
    """Return whether *text* is a valid type name: ``T``, ``pkg/T`` or ``pkg/msg/T``."""
    return len(text) <= MAX_NAME and _TYPE.fullmatch(text) is not None


def short_name(name: str) -> str:
    """Return ``pkg/Type`` for ``pkg/Type`` and ``pkg/msg/Type``."""
    package, slash, rest = name.partition("/")
    return package + slash + rest.removeprefix("msg/")


def package_of(name: str) -> str:
    """Return the package of ``pkg/Type``, empty if there is none."""
    return name.rpartition("/")[0]


def spellings(name: str) -> tuple[str, ...]:
    """Return all names of the type *name*: itself, then those in other packages, current and former.

    Package rostools was renamed to roslib before the first release.
    """
    name = short_name(name)
    moved = "roslib/" + name.removeprefix("rostools/") if name.startswith("rostools/") else name
    group = (moved, *_SAME.get(moved, ()))
    before = ("rostools/" + n.removeprefix("roslib/") for n in group if n.startswith("roslib/"))
    return tuple(dict.fromkeys((name, *group, *before)))


#: Most characters of a concatenated definition; the largest real ones have some ten thousand.
MAX_TEXT = 1 << 22
#: Most digits of an array's count: no message has ten thousand million items.
_MAX_DIGITS = 10

Value = bool | int | float | str

_FLOATS = ("float32", "float64")
_CONSTANT_TYPES = BUILTIN - {"time", "duration"}
_TRUTH = {"true": True, "1": True, "false": False, "0": False}
#: char is unsigned and byte is signed, as in messages.
_RANGES: dict[str, tuple[int, int]] = {"byte": (-(1 << 7), (1 << 7) - 1), "char": (0, (1 << 8) - 1)}
for _bits in (8, 16, 32, 64):
    _RANGES[f"int{_bits}"] = (-(1 << (_bits - 1)), (1 << (_bits - 1)) - 1)
    _RANGES[f"uint{_bits}"] = (0, (1 << _bits) - 1)


@dataclass(frozen=True, slots=True)
class FieldLine:
    """A field of a definition.

    type   as written, without brackets: ``float64``, ``Header``, ``geometry_msgs/Point``
    array  True if it has brackets
    count  the number in the brackets, or None
    """

    type: str
    name: str
    array: bool = False
    count: int | None = None

    @property
    def spelled(self) -> str:
        """Type with its brackets."""
        if not self.array:
            return self.type
        return f"{self.type}[]" if self.count is None else f"{self.type}[{self.count}]"


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant of a definition; it takes no bytes in messages.

    text   right-hand side as written, without surrounding blanks
    value  value of *text*; None if it is no value of the type, which does not matter for reading messages
    """

    type: str
    name: str
    text: str
    value: Value | None


@dataclass(frozen=True, slots=True)
class MessageDefinition:
    """The definition of one type, without the types that it uses.

    name  ``pkg/Type``
    text  verbatim text
    """

    name: str
    text: str
    fields: tuple[FieldLine, ...]
    constants: tuple[Constant, ...]

    @property
    def package(self) -> str:
        """Package in which type names without a package are looked up."""
        return package_of(self.name)


def parse_message(text: str, name: str) -> MessageDefinition:
    """Return the message of one definition text; *name*: its type.

    Words may be separated by blanks or tabs, lines may end with CR. Raises DefinitionError with the line number.
    """
    if len(text) > MAX_TEXT:
        raise DefinitionError(
            f"{name[:80]}: a definition of {len(text)} characters; at most {MAX_TEXT} are read"
        )
    fields: list[FieldLine] = []
    constants: list[Constant] = []
    for number, line in enumerate(text.split("\n"), 1):
        code = line.partition("#")[0].strip()
        if not code:
            continue
        try:
            if "=" in code:
                constants.append(_constant(code, line))
            else:
                fields.append(_field(code))
        except DefinitionError as error:
            raise DefinitionError(f"{name[:80]}, line {number}: {error.text}") from None
        if len(fields) + len(constants) > MAX_LEAVES:
            raise DefinitionError(f"{name[:80]} has more than {MAX_LEAVES} fields and constants")
    _check_distinct([f.name for f in fields], name)
    return MessageDefinition(name, text, tuple(fields), tuple(constants))


def _bad(what: str, text: str) -> NoReturn:
    shown = text if len(text) <= 60 else text[:60] + "…"
    raise DefinitionError(f"expected {what}, found {shown!r}")


def _check_distinct(names: list[str], name: str) -> None:
    seen: set[str] = set()
    for n in names:
        if n in seen:
            raise DefinitionError(f"{name[:80]} has two fields named {n}")
        seen.add(n)


def _field(code: str) -> FieldLine:
    words = code.split(None, 2)
    if len(words) != 2 or not is_name(words[1]):
        _bad("a type and a name", code)
    base, bracket, inside = words[0].partition("[")
    if not is_type(base):
        _bad("a type", words[0])
    if not bracket:
        return FieldLine(base, words[1])
    digits = inside.removesuffix("]")
    if digits == inside or (digits and not _is_count(digits)):
        _bad("an array like T[] or T[3]", words[0])
    return FieldLine(base, words[1], True, int(digits) if digits else None)


def _is_count(digits: str) -> bool:
    return len(digits) <= _MAX_DIGITS and digits.isascii() and digits.isdigit()


def _constant(code: str, line: str) -> Constant:
    left, _, right = code.partition("=")
    words = left.split(None, 2)
    if len(words) != 2 or not is_name(words[1]):
        _bad("a type and a name before '='", code)
    if words[0] not in _CONSTANT_TYPES:
        _bad("the type of a constant", words[0])
    # The value of a string constant extends to the end of the line, without comments.
    text = (line.partition("=")[2] if words[0] == "string" else right).strip()
    return Constant(words[0], words[1], text, _value(words[0], text))


def _value(type_name: str, text: str) -> Value | None:
    if type_name == "string":
        return text
    # Python refuses to convert very long numbers; int() and float() accept "_", ROS does not.
    if len(text) > 400 or "_" in text:
        return None
    if type_name == "bool":
        return _TRUTH.get(text.lower())
    try:
        if type_name in _FLOATS:
            return float(text)
        value = int(text)
    except ValueError:
        return None
    low, high = _RANGES[type_name]
    return value if low <= value <= high else None


#: Line between two definitions.
RULE = "=" * 80
#: Some writers draw shorter or longer lines; no field or constant looks like this.
_HEAD = re.compile(r"^={20,}[ \t]*\r?\nMSG:([^\n]*)\n?", re.MULTILINE)


class DefinitionText(NamedTuple):
    """A definition text and its type name."""

    name: str
    text: str


def split_text(text: str, name: str) -> list[DefinitionText]:
    """Return the definitions in *text*, that of *name* first, each verbatim."""
    sections = []
    pos = 0
    name = short_name(name)
    for head in _HEAD.finditer(text):
        # The line feed before a separator belongs to it.
        sections.append(DefinitionText(name, text[pos : max(pos, head.start() - 1)]))
        name, pos = short_name(head[1].strip())[:MAX_NAME], head.end()
    sections.append(DefinitionText(name, text[pos:]))
    return sections


def join_text(sections: Iterable[DefinitionText]) -> str:
    """Return the concatenated text of *sections*, the first one without a heading."""
    first, *others = sections
    return "\n".join([first.text, *(f"{RULE}\nMSG: {name}\n{text}" for name, text in others)])


HEADER = "std_msgs/Header"


def respelled(
    message: MessageDefinition, uses: Mapping[str, str], names: Mapping[str, str], package: str = ""
) -> str:
    """Return the text of *message*, whose types are named so that the rules of other parsers find them.

    uses     names of the messages that its field types mean, by type as written
    names    new name of each message
    package  package that the message will be in; empty: its own
    """
    lines = message.text.split("\n")
    for n, line in enumerate(lines):
        code = line.partition("#")[0].partition("=")[0]
        if "\t" in code.strip():
            # genmsg accepts only blanks between the words of a line.
            lines[n] = line = code.replace("\t", " ") + line[len(code) :]
        if not code.strip() or "=" in line.partition("#")[0]:
            continue
        written = code.split(None, 1)[0].partition("[")[0]
        if written in BUILTIN:
            continue
        meant = names[uses[written]]
        if _usual(written, package or message.package) != meant:
            lines[n] = line.replace(written, meant, 1)
    return "\n".join(lines)


def _usual(written: str, package: str) -> str:
    """Return the type that other parsers understand by *written* in a message of *package*."""
    if written == "Header":
        return HEADER
    # Not every parser accepts ``pkg/msg/Type``.
    return written if "/" in written and short_name(written) == written else f"{package}/{written}"


#: Returns the message of a type name, or None.
Find = Callable[[str], MessageDefinition | None]


@dataclass(frozen=True, eq=False)
class Definition:
    """A message type with all types that it uses.

    messages  messages by name: its own first, then those it uses, depth first in the order of the fields
    users     the same names, each after all names that it uses
    uses      by message name: names of the messages that its field types mean, by type as written
    borrowed  True if some message is not defined in the text, but was found elsewhere (standard messages, registry)
    """

    messages: Mapping[str, MessageDefinition]
    users: tuple[str, ...]
    uses: Mapping[str, Mapping[str, str]]
    borrowed: bool = False

    @property
    def root(self) -> MessageDefinition:
        """Message of the type itself."""
        return next(iter(self.messages.values()))

    @property
    def name(self) -> str:
        """``pkg/Type``."""
        return self.root.name

    @cached_property
    def text(self) -> str:
        """Concatenated text of the type and all types that it uses, as in logs and connection headers."""
        return join_text(DefinitionText(name, m.text) for name, m in self.messages.items())

    @cached_property
    def md5(self) -> str:
        """Checksum of the type as in ROS since release 0.6; comments do not matter."""
        hashes: dict[str, str] = {}
        for name in self.users:
            message, uses = self.messages[name], self.uses[name]
            lines = [f"{c.type} {c.name}={c.text}" for c in message.constants]
            for f in message.fields:
                # genmsg leaves out the brackets of arrays of message types; other tools do the same.
                lines.append(f"{f.spelled if f.type in BUILTIN else hashes[uses[f.type]]} {f.name}")
            hashes[name] = _hash("\n".join(lines).strip())
        return hashes[self.name]

    @cached_property
    def md5_v1(self) -> str:
        """Checksum of releases before 0.6, in bags of version 1.1: MD5 of all texts with comments."""
        return _hash("".join(m.text for m in self.messages.values()))

    def part(self, name: str) -> Definition:
        """Return the Definition of *name*, a type that this one uses."""
        needed: dict[str, MessageDefinition] = {}
        todo = [name]
        while todo:
            type_name = todo.pop()
            if type_name not in needed:
                needed[type_name] = self.messages[type_name]
                used = [
                    self.uses[type_name][f.type]
                    for f in needed[type_name].fields
                    if f.type in self.uses[type_name]
                ]
                todo += reversed(used)
        users = tuple(type_name for type_name in self.users if type_name in needed)
        return Definition(
            needed, users, {type_name: self.uses[type_name] for type_name in needed}, self.borrowed
        )

    def matches(self, md5: str) -> bool:
        """Return whether *md5* is one of the checksums of this definition; ``*`` matches any."""
        return md5 == "*" or md5 in (self.md5, self.md5_v1)


def _hash(text: str) -> str:
    try:
        # Restores bytes that are no UTF-8, if the reader kept them as surrogates.
        raw = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raw = text.encode("utf-8", "surrogatepass")
    try:
        # hashlib links OpenSSL, which takes longer than all checksums of a log.
        from _md5 import md5  # type: ignore[import-not-found]
    except ImportError:  # a build of Python without checksums of its own
        from hashlib import md5
    return str(md5(raw, usedforsecurity=False).hexdigest())


def link(
    name: str, sections: Mapping[str, MessageDefinition], find: Find, *, closed: bool = False
) -> Definition:
    """Return the Definition of *name*; types are looked up in *sections*, then by *find*.

    closed  True: the sections are those of one text; a type without package may mean the only one with this name

    Raises DefinitionError for an unknown type, a type that contains itself, and too deep nesting.
    """
    return _Linker(sections, find, closed).run(name)


class _Linker:
    def __init__(self, sections: Mapping[str, MessageDefinition], find: Find, closed: bool) -> None:
        self.sections, self.find = sections, find
        self.messages: dict[str, MessageDefinition] = {}
        self.users: list[str] = []
        self.uses: dict[str, dict[str, str]] = {}
        self.active: set[str] = set()
        self.fields = 0
        self.borrowed = False
        self.short: dict[str, list[str]] = {}
        for known in sections if closed else ():
            self.short.setdefault(known.rpartition("/")[2], []).append(known)

    def run(self, name: str) -> Definition:
        self.visit(name, self.sections[name], 1)
        return Definition(self.messages, tuple(self.users), self.uses, self.borrowed)

    def visit(self, name: str, message: MessageDefinition, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise DefinitionError(f"{next(iter(self.messages))}: types are nested more than {MAX_DEPTH} deep")
        self.messages[name] = message
        self.fields += len(message.fields)
        if self.fields > MAX_LEAVES:
            raise DefinitionError(f"{next(iter(self.messages))} has more than {MAX_LEAVES} fields")
        self.active.add(name)
        uses = self.uses[name] = {}
        for f in message.fields:
            if f.type in BUILTIN or f.type in uses:
                continue
            used, definition = self.resolve(f, message)
            uses[f.type] = used
            if used in self.active:
                raise DefinitionError(f"{used} contains itself: {name} has it as field {f.name}")
            if used not in self.messages:
                self.visit(used, definition, depth + 1)
        self.active.discard(name)
        self.users.append(name)

    def resolve(self, f: FieldLine, message: MessageDefinition) -> tuple[str, MessageDefinition]:
        """Return name and message of the type of *f*, from the text or else from the registry."""
        # Header without a package is that of std_msgs in every package.
        match = self.among(spellings("std_msgs/Header")) if f.type == "Header" else None
        if "/" in f.type:
            wanted = spellings(f.type)
            match = self.among(wanted)
        else:
            wanted = spellings(f"{message.package}/{f.type}" if message.package else f.type)
            match = match or self.among(wanted, self.short.get(f.type, ()))
        if match is None:
            name = "std_msgs/Header" if f.type == "Header" else wanted[0]
            raise DefinitionError(f"{message.name} needs {name}, whose definition is missing")
        return match

    def among(self, wanted: Sequence[str], alike: Sequence[str] = ()) -> tuple[str, MessageDefinition] | None:
        for name in wanted:
            if (message := self.sections.get(name)) is not None:
                return name, message
        # If the package is unknown or wrong, the only type with this name is used.
        if len(alike) == 1:
            return alike[0], self.sections[alike[0]]
        for name in wanted:
            if (message := self.messages.get(name) or self.find(name)) is not None:
                self.borrowed = True
                return name, message
        return None
