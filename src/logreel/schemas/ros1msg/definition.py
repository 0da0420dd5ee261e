"""Message types with all types that they use."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from logreel.dataclass import dataclass
from logreel.errors import DefinitionError
from logreel.layout.nodes import MAX_DEPTH, MAX_LEAVES
from logreel.schemas.ros1msg.grammar import (
    BUILTIN,
    DefinitionText,
    FieldLine,
    MessageDefinition,
    join_text,
    spellings,
)

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
    return hashlib.md5(raw, usedforsecurity=False).hexdigest()


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
