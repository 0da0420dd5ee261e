"""A type together with every type that it needs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from logreel.errors import DefinitionError
from logreel.layout.nodes import MAX_DEPTH, MAX_LEAVES
from logreel.schemas.ros1msg.grammar import FieldLine, Message
from logreel.schemas.ros1msg.names import BUILTIN, spellings
from logreel.schemas.ros1msg.sections import Section, join_text

#: Finds a message by its name, or gives None.
Find = Callable[[str], Message | None]


@dataclass(frozen=True, eq=False)
class Definition:
    """A message type that can be hashed, printed and laid out.

    messages  every message needed by name: its own first, then depth first in the order of the fields
    users     the same names, each after all that it uses
    uses      per message and type as written in it, the name of the message meant
    borrowed  whether a message was needed that the text of the first one does not define
    """

    messages: Mapping[str, Message]
    users: tuple[str, ...]
    uses: Mapping[str, Mapping[str, str]]
    borrowed: bool = False

    @property
    def root(self) -> Message:
        """The message itself."""
        return next(iter(self.messages.values()))

    @property
    def name(self) -> str:
        """``pkg/Type``."""
        return self.root.name

    @cached_property
    def text(self) -> str:
        """The text with those of all types needed, as logs and publishers carry it."""
        return join_text(Section(name, m.text) for name, m in self.messages.items())

    @cached_property
    def md5(self) -> str:
        """The hash by which ROS has told types apart since release 0.6; comments do not count."""
        found: dict[str, str] = {}
        for name in self.users:
            message, uses = self.messages[name], self.uses[name]
            lines = [f"{c.type} {c.name}={c.text}" for c in message.constants]
            for f in message.fields:
                # The brackets of other than built-in types do not count; nobody meant it, everybody does it.
                lines.append(f"{f.spelled if f.type in BUILTIN else found[uses[f.type]]} {f.name}")
            found[name] = _hash("\n".join(lines).strip())
        return found[self.name]

    @cached_property
    def md5_v1(self) -> str:
        """The hash of the releases before 0.6, in bags of version 1.1: of all texts, comments included."""
        return _hash("".join(m.text for m in self.messages.values()))

    def matches(self, md5: str) -> bool:
        """Whether *md5* is one of the hashes of this definition; ``*`` matches all."""
        return md5 == "*" or md5 in (self.md5, self.md5_v1)


def _hash(text: str) -> str:
    try:
        # Bytes that are no UTF-8 come back as they were where the reader kept them in this way.
        raw = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raw = text.encode("utf-8", "surrogatepass")
    return hashlib.md5(raw, usedforsecurity=False).hexdigest()


def link(name: str, sections: Mapping[str, Message], find: Find, *, closed: bool = False) -> Definition:
    """The Definition of *name*: types are taken from *sections*, then from *find*.

    closed  the sections are of one text, which has only what is needed: a bare name may mean the only one like it

    Takes time by distinct types. Raises DefinitionError for a type that nobody knows, that contains itself, or
    that nests too deep.
    """
    return _Linker(sections, find, closed).run(name)


class _Linker:
    def __init__(self, sections: Mapping[str, Message], find: Find, closed: bool) -> None:
        self.sections, self.find = sections, find
        self.messages: dict[str, Message] = {}
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

    def visit(self, name: str, message: Message, depth: int) -> None:
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
            used, found = self.resolve(f, message)
            uses[f.type] = used
            if used in self.active:
                raise DefinitionError(f"{used} contains itself: {name} has it as field {f.name}")
            if used not in self.messages:
                self.visit(used, found, depth + 1)
        self.active.discard(name)
        self.users.append(name)

    def resolve(self, f: FieldLine, message: Message) -> tuple[str, Message]:
        """The name and definition of the type of *f*: what the text says goes before what the registry knows."""
        # A bare Header is that of std_msgs wherever it stands.
        found = self.among(spellings("std_msgs/Header")) if f.type == "Header" else None
        if "/" in f.type:
            wanted = spellings(f.type)
            found = self.among(wanted)
        else:
            wanted = spellings(f"{message.package}/{f.type}" if message.package else f.type)
            found = found or self.among(wanted, self.short.get(f.type, ()))
        if found is None:
            name = "std_msgs/Header" if f.type == "Header" else wanted[0]
            raise DefinitionError(f"{message.name} needs {name}, whose definition is missing")
        return found

    def among(self, wanted: Sequence[str], alike: Sequence[str] = ()) -> tuple[str, Message] | None:
        for name in wanted:
            if (found := self.sections.get(name)) is not None:
                return name, found
        # Where the package of the user is not known or wrong, the only type of that bare name is meant.
        if len(alike) == 1:
            return alike[0], self.sections[alike[0]]
        for name in wanted:
            if (found := self.messages.get(name) or self.find(name)) is not None:
                self.borrowed = True
                return name, found
        return None
