"""What has to be migrated in a log: for each channel the version of its type, the one wanted, and the way to it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from logreel.errors import DefinitionError, UsageError
from logreel.log.log import Channel, Log
from logreel.ops.migrate.derived import with_new_parts
from logreel.ops.migrate.paths import Path, Paths
from logreel.ops.migrate.read_rules import read_rules
from logreel.ops.migrate.types import NAMED, TypeVersion, current_name, from_definition, from_layout
from logreel.schemas import ros1msg

PathLike = str | os.PathLike[str]
#: Files or folders with rules or definitions.
Files = PathLike | Iterable[PathLike]
#: State of the type of a channel:
#: ``current`` it is the wanted one; ``migrates`` there is a way to the wanted one; ``missing`` a rule is missing for a
#: wanted one; ``differs`` another version is known, to which no rule leads; ``unknown`` no other version is known;
#: ``unusable`` the definition of the channel cannot be used.
State = Literal["current", "migrates", "missing", "differs", "unknown", "unusable"]


@dataclass(frozen=True, slots=True, eq=False)
class ChannelPlan:
    """What becomes of the type of a channel.

    old   version in the log; None if its definition cannot be used
    path  the way to the wanted version; None without one
    text  sentence for people why the type stays as it is; empty if it is migrated or current
    """

    channel: Channel
    state: State
    old: TypeVersion | None = None
    path: Path | None = None
    text: str = ""

    @property
    def rules(self) -> list[str]:
        """Where the rules of the path stand; an update without a rule has none."""
        return [] if self.path is None else [step.rule for step in self.path.steps if step.rule]


class Planner:
    """Plans by rules, given definitions and those that logreel knows.

    rules  files or folders with rules
    to     files or folders with the wanted definitions, as for ``logreel.open``; a type that they define has to be
           reached
    known  False: definitions that logreel knows are not wanted
    """

    def __init__(self, rules: Files = (), to: Files = (), known: bool = True) -> None:
        self.paths = Paths(read_rules(several(rules)))
        self._given, self._names = ros1msg.Registry(), set[str]()
        for one in several(to):
            try:
                self._names.update(self._given.add_path(os.fspath(one)))
            except OSError as error:
                raise UsageError(
                    f"the definitions cannot be read: {error.strerror}", path=os.fspath(one)
                ) from None
        self._known = known
        self._plans: dict[int, ChannelPlan] = {}

    @cached_property
    def _standard(self) -> ros1msg.Registry:
        return ros1msg.standard()

    def plans(self, log: Log) -> list[ChannelPlan]:
        """Return the plan of each channel except reserved ones, in file order."""
        return [self.plan(ch) for ch in log.channels.values() if not ch.reserved]

    def unused(self, plans: Iterable[ChannelPlan]) -> list[str]:
        """Return where rules stand for types that neither the channels of *plans* have, nor parts of them."""
        names = {current_name(name) for plan in plans if plan.old is not None for name in plan.old.types}
        todo = [*names]
        while todo:
            for rule in self.paths.chains.get(todo.pop(), ()):
                if (name := current_name(rule.new_name)) not in names:
                    names.add(name)
                    todo.append(name)
        chains = self.paths.chains.items()
        return [rule.location for name, rules in chains if name not in names for rule in rules]

    def plan(self, channel: Channel) -> ChannelPlan:
        """Return the plan of one channel."""
        if id(channel) not in self._plans:
            self._plans[id(channel)] = self._plan(channel)
        return self._plans[id(channel)]

    def _plan(self, ch: Channel) -> ChannelPlan:
        try:
            old = self._version(ch)
        except DefinitionError as error:
            wanted: State = "missing" if ch.schema.name in self.paths.chains else "unusable"
            return ChannelPlan(ch, wanted, text=error.text)
        given, ruled = self._wanted_of_user(old), self.paths.end(old)
        if given is not None and (ruled.gaps or not ruled.steps or ruled.new.key != given.key):
            return self._to(ch, old, given, "missing")
        if not ruled.steps:
            known = self._known_version(old)
            if old.name in self.paths.chains:
                text = f"the rules for {old.name} do not apply to this version of it"
                return ChannelPlan(ch, "differs", old, text=text)
            if known is None:
                made = with_new_parts(old, self.paths.end) if old.encoding == NAMED else None
                if made is not None:
                    return self._to(ch, old, made, "missing")
                return ChannelPlan(ch, "unknown", old, text=f"no other version of {old.name} is known")
            return self._to(ch, old, known, "differs")
        if ruled.gaps:
            return _planned(ch, ruled, "missing")
        # What the rules lead to may be an earlier version of a known type.
        known = self._known_version(ruled.new)
        if known is not None and known.key != ruled.new.key:
            further = self.paths.path(old, known)
            if not further.gaps:
                return _planned(ch, further, "missing")
        return _planned(ch, ruled, "missing")

    def _to(self, ch: Channel, old: TypeVersion, new: TypeVersion, otherwise: State) -> ChannelPlan:
        return _planned(ch, self.paths.path(old, new), otherwise)

    def _version(self, ch: Channel) -> TypeVersion:
        """Return the version of the type of a channel; raises DefinitionError if its definition cannot be used."""
        schema = ch.schema
        if schema.encoding == NAMED:
            return from_definition(
                ros1msg.define(schema.name, schema.text, str(ch.metadata.get("md5sum", "*")), self._standard)
            )
        if schema.encoding != ch.log.format:
            raise DefinitionError(f"messages of encoding {schema.encoding!r} are not migrated in this format")
        version = str(ch.metadata.get("version", ""))
        return from_layout(schema.name, schema.encoding, ch.layout, schema.text, version)

    def _wanted_of_user(self, old: TypeVersion) -> TypeVersion | None:
        """Return the given version of a type, by its name or that which rules give it; None if none is given."""
        if old.encoding != NAMED:
            return None
        for name in (self.paths.last_name(old.name), old.name):
            if name in self._names:
                found = self._given.find(name)
                return None if found is None else from_definition(found)
        return None

    def _known_version(self, old: TypeVersion) -> TypeVersion | None:
        """Return the known version of a type, by its name or that which rules give it; None if unknown."""
        if old.encoding != NAMED or not self._known:
            return None
        last = self.paths.last_name(old.name)
        for name in dict.fromkeys((last, old.name)):
            try:
                found = self._standard.find(name)
            except DefinitionError:
                continue
            if found is not None:
                # A former name of a type is kept while its fields are the same.
                return from_definition(found) if found.name == name or found.md5 != old.key else old
        return None


def _planned(ch: Channel, path: Path, otherwise: State) -> ChannelPlan:
    """Return the plan for *path*; *otherwise*: state if it has gaps."""
    if path.old.identity == path.new.identity:
        return ChannelPlan(ch, "current", path.old, path)
    if not path.gaps:
        return ChannelPlan(ch, "migrates", path.old, path)
    text = "; ".join(dict.fromkeys(gap.text for gap in path.gaps))
    return ChannelPlan(ch, otherwise, path.old, path, text)


def several(paths: Files) -> Sequence[PathLike]:
    """Return one path or several as a list."""
    return [paths] if isinstance(paths, str | os.PathLike) else [*paths]
