"""Rules: how messages of one version of a type become messages of another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from logreel.dataclass import dataclass
from logreel.layout.layout import Layout
from logreel.ops.migrate.types import FieldType, TypeVersion, current_name, listed

#: Values of the fields of a message by name; see ``values.Record``.
Values = dict[str, Any]
Update = Callable[[Values], Values]
#: Arrow columns of messages by field, and the update of so many messages.
Columns = dict[str, Any]
ColumnUpdate = Callable[[Columns, int], Columns]


class Nested(Protocol):
    """Migration of messages that are part of others."""

    def convert(self, old: TypeVersion, new: TypeVersion) -> Update:
        """Return a function from values of *old* to values of *new*; raises RuleError if there is no way."""


class NotColumnsError(Exception):
    """Raised for what cannot be done by columns, but only message by message."""


class NestedColumns(Protocol):
    """Migration of columns of messages that are part of others."""

    def convert_columns(self, old: TypeVersion, new: TypeVersion) -> ColumnUpdate | None:
        """Return the update of columns, None if nothing changes; raises NotColumnsError if there is none."""


@dataclass(frozen=True, eq=False)
class BoundRule:
    """A rule for one version of a type.

    parts   pairs of types of parts of the message that the rule migrates by other rules
    make    returns the function from old to new values, which uses Nested for parts
    exact   True: the rule names *old* itself; False: it applies to any version with its fields
    layout  Layout of the old messages, if the log does not describe them; else None
    topic   new topic of the channel; empty: that of the log, or after the new name of the type
    make_columns  returns the update of columns of many messages; raises NotColumnsError if there is none
    """

    location: str
    old: TypeVersion
    new: TypeVersion
    make: Callable[[Nested], Update]
    parts: Sequence[tuple[TypeVersion, TypeVersion]] = ()
    exact: bool = True
    layout: Layout | None = None
    topic: str = ""
    make_columns: Callable[[NestedColumns], ColumnUpdate] | None = None


@dataclass(frozen=True, eq=False)
class UpdateRule:
    """A rule as a file states it.

    location  file and name or line, for people
    old_name  type that it applies to
    new_name  type of the result
    order     place among the rules of one type, ascending
    fixed     the rule for the version that it names; None: it applies to several versions
    bind      returns the rule for a version of the type, None if it does not apply to this version
    """

    location: str
    old_name: str
    new_name: str
    order: int
    bind: Callable[[TypeVersion], BoundRule | None]
    fixed: BoundRule | None = None

    @property
    def renames(self) -> bool:
        """Whether the type gets another name."""
        return self.old_name != self.new_name


#: Returns whether messages called so may become messages of the second name.
MayBecome = Callable[[str, str], bool]


@dataclass(frozen=True, slots=True, eq=False)
class Implicit:
    """An update of all fields by name.

    reasons  sentences why it is impossible; empty if it is possible as far as this type goes
    nested   fields whose messages have to be migrated, with their old and new types
    """

    old: TypeVersion
    new: TypeVersion
    reasons: tuple[str, ...]
    nested: tuple[tuple[str, FieldType, FieldType], ...]

    def update(self, converts: dict[str, Update]) -> Update:
        """Return the function; *converts*: that of each field in *nested*, by name."""
        names = list(self.new.fields)
        arrays = {name for name, field_type, _ in self.nested if field_type.array}

        def apply(values: Values) -> Values:
            made = {name: values[name] for name in names}
            for name, convert in converts.items():
                made[name] = (
                    [convert(value) for value in made[name]] if name in arrays else convert(made[name])
                )
            return made

        return apply


def implicit(old: TypeVersion, new: TypeVersion, may_become: MayBecome) -> Implicit:
    """Return the update of *old* to *new* by names of fields, as ``rosbag fix`` generates it."""
    reasons, nested = [], []
    changed = sorted({name for name, _, _ in old.constants - new.constants})
    if changed:
        reasons.append(f"constants changed: {listed(changed)}")
    for name, field_type in new.fields.items():
        before = old.fields.get(name)
        if before is None:
            reasons.append(f"{name} is new")
        elif (before.array, before.count) != (field_type.array, field_type.count):
            reasons.append(f"{name} was {before.spelled} and is {field_type.spelled}")
        elif before.nested is not None and field_type.nested is not None:
            if not may_become(current_name(before.nested.name), current_name(field_type.nested.name)):
                reasons.append(f"{name} was {before.spelled} and is {field_type.spelled}")
            elif before.nested.identity != field_type.nested.identity:
                nested.append((name, before, field_type))
        elif before.base != field_type.base:
            reasons.append(f"{name} was {before.spelled} and is {field_type.spelled}")
    gone = [name for name in old.fields if name not in new.fields]
    if gone:
        reasons.append(f"without a place in the new definition: {listed(gone)}")
    return Implicit(old, new, tuple(reasons), tuple(nested))
