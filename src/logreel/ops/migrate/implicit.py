"""Updates without a rule: versions of a type whose fields have the same names, whatever their order and nesting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from logreel.ops.migrate.rule import Update, Values
from logreel.ops.migrate.types import FieldType, TypeVersion, current_name, listed

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
        many = {name for name, kind, _ in self.nested if kind.array}

        def apply(values: Values) -> Values:
            made = {name: values[name] for name in names}
            for name, convert in converts.items():
                made[name] = [convert(one) for one in made[name]] if name in many else convert(made[name])
            return made

        return apply


def implicit(old: TypeVersion, new: TypeVersion, may_become: MayBecome) -> Implicit:
    """Return the update of *old* to *new* by names of fields, as ``rosbag fix`` generates it."""
    reasons, nested = [], []
    changed = sorted({name for name, _, _ in old.constants - new.constants})
    if changed:
        reasons.append(f"constants changed: {listed(changed)}")
    for name, kind in new.fields.items():
        before = old.fields.get(name)
        if before is None:
            reasons.append(f"{name} is new")
        elif (before.array, before.count) != (kind.array, kind.count):
            reasons.append(f"{name} was {before.spelled} and is {kind.spelled}")
        elif before.nested is not None and kind.nested is not None:
            if not may_become(current_name(before.nested.name), current_name(kind.nested.name)):
                reasons.append(f"{name} was {before.spelled} and is {kind.spelled}")
            elif before.nested.identity != kind.nested.identity:
                nested.append((name, before, kind))
        elif before.base != kind.base:
            reasons.append(f"{name} was {before.spelled} and is {kind.spelled}")
    gone = [name for name in old.fields if name not in new.fields]
    if gone:
        reasons.append(f"without a place in the new definition: {listed(gone)}")
    return Implicit(old, new, tuple(reasons), tuple(nested))
