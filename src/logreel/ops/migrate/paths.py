"""Search for the way from one version of a type to another: rules in their order, joined by updates without rules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from logreel.errors import UsageError
from logreel.ops.migrate.field_changes import implicit_columns
from logreel.ops.migrate.types import (
    BoundRule,
    Columns,
    ColumnUpdate,
    Identity,
    Implicit,
    NotColumnsError,
    RuleError,
    TypeVersion,
    Update,
    UpdateRule,
    Values,
    current_name,
    implicit,
)

#: Most steps of a path, far above those of real ones.
MAX_STEPS = 1000


@dataclass(frozen=True, slots=True, eq=False)
class MissingRule:
    """A step for which a rule is missing: the versions, and why there is no update without a rule."""

    old: TypeVersion
    new: TypeVersion
    reasons: tuple[str, ...]

    @property
    def text(self) -> str:
        """Sentence for people."""
        why = "; ".join(self.reasons)
        return f"there is no rule from {self.old.label} to {self.new.label}" + (f": {why}" if why else "")


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One step of a path; *rule*: where the rule stands, empty for an update without a rule."""

    old: TypeVersion
    new: TypeVersion
    rule: str
    how: BoundRule | Implicit


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """The way from one version of a type to another.

    gaps  steps without a rule, also those of parts of the message; empty if messages can be migrated
    """

    old: TypeVersion
    new: TypeVersion
    steps: tuple[Step, ...] = ()
    gaps: tuple[MissingRule, ...] = ()

    @property
    def keeps_bytes(self) -> bool:
        """Whether messages stay as they are, and only the name of the type changes."""
        first, other = self.old, self.new
        return (first.key, first.variant, first.encoding) == (other.key, other.variant, other.encoding)


@dataclass(slots=True)
class _Walk:
    """A path that is being built."""

    steps: list[Step] = field(default_factory=list)
    gaps: list[MissingRule] = field(default_factory=list)


class Paths:
    """Paths by a set of rules; raises UsageError for rules that contradict each other."""

    def __init__(self, rules: Iterable[UpdateRule]) -> None:
        chains: dict[str, list[UpdateRule]] = defaultdict(list)
        for rule in rules:
            chains[current_name(rule.old_name)].append(rule)
        self.chains = {name: _ordered(name, rules_of_type) for name, rules_of_type in chains.items()}
        self._found: dict[tuple[Identity, Identity], Path] = {}
        self._active: set[tuple[Identity, Identity]] = set()
        self._updates: dict[tuple[Identity, Identity], Update] = {}

    @cached_property
    def _names(self) -> dict[str, frozenset[str]]:
        """All names that each renamed type may get, itself included."""
        by_name = {}
        for name in self.chains:
            names, at = {name}, name
            while (at := self._next_name(at)) and at not in names:
                names.add(at)
            by_name[name] = frozenset(names)
        return by_name

    def _next_name(self, name: str) -> str:
        last = self.chains[name][-1] if name in self.chains else None
        return current_name(last.new_name) if last is not None and last.renames else ""

    def may_become(self, old: str, new: str) -> bool:
        """Return whether the type *old* has the name *new* now, or rules rename it so."""
        return old == new or new in self._names.get(old, ())

    def last_name(self, name: str) -> str:
        """Return the name that rules give the type *name* in the end."""
        name = current_name(name)
        seen = {name}
        while (after := self._next_name(name)) and after not in seen:
            seen.add(after)
            name = after
        return name

    # ----------------------------------------------------------------------------------------------- paths

    def path(self, old: TypeVersion, new: TypeVersion) -> Path:
        """Return the path from *old* to *new*, with gaps where rules are missing."""
        pair = old.identity, new.identity
        if pair not in self._found:
            if old.identity == new.identity or pair in self._active:
                # Types that contain each other do not exist: a pair that is met again is the same step.
                return Path(old, new)
            self._active.add(pair)
            try:
                self._found[pair] = self._search(old, new)
            finally:
                self._active.discard(pair)
        return self._found[pair]

    def end(self, old: TypeVersion) -> Path:
        """Return the path from *old* by all rules for it and for what it becomes."""
        walk = _Walk()
        last = self._by_rules(old, None, walk)
        return Path(old, last, tuple(walk.steps), tuple(walk.gaps))

    def _search(self, old: TypeVersion, new: TypeVersion) -> Path:
        walk = _Walk()
        last = self._by_rules(old, new, walk)
        if last.identity != new.identity:
            self._implicit(last, new, walk)
        return Path(old, new, tuple(walk.steps), tuple(walk.gaps))

    def _by_rules(self, old: TypeVersion, new: TypeVersion | None, walk: _Walk) -> TypeVersion:
        """Follow the rules from *old* on, at most to *new*; return the version where they end."""
        now, name, after, used = old, current_name(old.name), -1, set[int]()
        while len(walk.steps) < MAX_STEPS:
            if new is not None and now.identity == new.identity:
                break
            chain = self.chains.get(name, [])
            at = self._next_rule(chain, after, now, new, used)
            if at is None:
                break
            rule = chain[at]
            bound = rule.bind(now)
            if bound is None:
                bound = rule.fixed
                if bound is None:
                    break
                self._implicit(now, bound.old, walk)
            used.add(id(rule))
            walk.steps.append(Step(now, bound.new, bound.location, bound))
            walk.gaps += self._gaps_of_parts(bound)
            now, after = bound.new, at
            if rule.renames:
                name, after = current_name(rule.new_name), -1
        return now

    def _next_rule(
        self,
        chain: Sequence[UpdateRule],
        after: int,
        now: TypeVersion,
        new: TypeVersion | None,
        used: set[int],
    ) -> int | None:
        """Return the place in *chain* of the rule that is applied to *now*; None if there is none.

        after  place of the rule before it in the chain; -1 at the beginning of a chain
        """
        open_ = [
            at
            for at in range(after + 1, len(chain))
            if id(chain[at]) not in used
            and (new is None or self.may_become(current_name(chain[at].new_name), current_name(new.name)))
        ]
        exact = [at for at in open_ if chain[at].bind(now) is not None]
        if exact:
            # Of rules for one version, the latest leads furthest at the beginning, the next one is due later.
            return exact[0] if after >= 0 or not _names_versions(chain, exact) else exact[-1]
        direct = new is not None and self._is_direct(now, new)
        if after < 0 and direct:
            return None
        bridges = [
            at for at in open_ if (known := chain[at].fixed) is not None and self._is_direct(now, known.old)
        ]
        if bridges:
            return bridges[0] if after >= 0 else bridges[-1]
        return None

    def _is_direct(self, old: TypeVersion, new: TypeVersion) -> bool:
        """Return whether an update without a rule is possible, also for all parts of the message."""
        if current_name(old.name) != current_name(new.name):
            return False
        update = implicit(old, new, self.may_become)
        return not update.reasons and not any(
            self.path(before.nested, new_type.nested).gaps
            for _, before, new_type in update.nested
            if before.nested is not None and new_type.nested is not None
        )

    def _implicit(self, old: TypeVersion, new: TypeVersion, walk: _Walk) -> None:
        """Add an update without a rule to *walk*, or a gap."""
        update = implicit(old, new, self.may_become)
        reasons = update.reasons
        # Parts that a rule names may have the same definition under another name.
        alike = (old.encoding, old.key) == (new.encoding, new.key)
        if not alike and not self.may_become(current_name(old.name), current_name(new.name)):
            reasons = (f"no rule renames {old.name} to {new.name}", *reasons)
        if reasons:
            walk.gaps.append(MissingRule(old, new, reasons))
        for _, before, new_type in update.nested:
            if before.nested is not None and new_type.nested is not None:
                walk.gaps += self.path(before.nested, new_type.nested).gaps
        walk.steps.append(Step(old, new, "", update))

    def _gaps_of_parts(self, bound: BoundRule) -> list[MissingRule]:
        return [gap for old, new in bound.parts for gap in self.path(old, new).gaps]

    # --------------------------------------------------------------------------------------------- updates

    def convert(self, old: TypeVersion, new: TypeVersion) -> Update:
        """Return the function from values of *old* to values of *new*; raises RuleError if there is no path."""
        pair = old.identity, new.identity
        if pair not in self._updates:
            path = self.path(old, new)
            if path.gaps:
                raise RuleError(path.gaps[0].text)
            self._updates[pair] = self.update(path)
        return self._updates[pair]

    def update(self, path: Path) -> Update:
        """Return the function from old to new values of messages of *path*, which has no gaps."""
        if path.keeps_bytes:
            return _unchanged
        updates = [self._update_of(step) for step in path.steps]

        def apply(values: Values) -> Values:
            for update in updates:
                values = update(values)
            return values

        return apply

    def update_columns(self, path: Path) -> ColumnUpdate:
        """Return the update of columns of messages of *path*; raises NotColumnsError if there is none."""
        updates = list[ColumnUpdate]()
        for step in path.steps:
            if isinstance(step.how, Implicit):
                updates.append(implicit_columns(step.how, self))
            elif step.how.make_columns is not None:
                updates.append(step.how.make_columns(self))
            else:
                raise NotColumnsError

        def apply(columns: Columns, count: int) -> Columns:
            for update in updates:
                columns = update(columns, count)
            return columns

        return apply

    def convert_columns(self, old: TypeVersion, new: TypeVersion) -> ColumnUpdate | None:
        """Return the update of columns of parts of messages, None if nothing changes; raises NotColumnsError."""
        path = self.path(old, new)
        if path.gaps:
            raise NotColumnsError
        return None if path.keeps_bytes else self.update_columns(path)

    def _update_of(self, step: Step) -> Update:
        if isinstance(step.how, BoundRule):
            return step.how.make(self)
        converts = {
            name: self.convert(before.nested, new_type.nested)
            for name, before, new_type in step.how.nested
            if before.nested is not None and new_type.nested is not None
        }
        return step.how.update(
            {name: convert for name, convert in converts.items() if convert is not _unchanged}
        )


def _unchanged(values: Values) -> Values:
    return values


def _names_versions(chain: Sequence[UpdateRule], places: Sequence[int]) -> bool:
    return all(chain[at].fixed is not None for at in places)


def _ordered(name: str, rules: Sequence[UpdateRule]) -> list[UpdateRule]:
    """Return the rules for one type in the order in which they apply, one that renames it last.

    Raises UsageError for two rules of one version, for two that rename the type, and for rules after its renaming.
    """
    kept = list[UpdateRule]()
    for rule in rules:
        if not any(_same(rule, earlier) for earlier in kept):
            kept.append(rule)
    kept.sort(key=lambda rule: (rule.order, rule.renames))
    kept = _linked(kept)
    for n, rule in enumerate(kept):
        for other in kept[n + 1 :]:
            if rule.fixed and other.fixed and rule.fixed.old.identity == other.fixed.old.identity:
                raise UsageError(
                    f"two rules for {rule.fixed.old.label}: {rule.location} and {other.location}"
                )
        if rule.renames and n + 1 < len(kept):
            other = kept[n + 1]
            what = "both rename" if other.renames else "apply after the renaming of"
            raise UsageError(f"rules {rule.location} and {other.location} {what} {name}")
    return kept


def _same(rule: UpdateRule, other: UpdateRule) -> bool:
    """Return whether two rules are for the same versions, as in a file that is given twice."""
    first, second = rule.fixed, other.fixed
    return (
        first is not None
        and second is not None
        and rule.location.rpartition(":")[2] == other.location.rpartition(":")[2]
        and (first.old.identity, first.new.identity) == (second.old.identity, second.new.identity)
    )


def _linked(rules: Sequence[UpdateRule]) -> list[UpdateRule]:
    """Return *rules* with those of equal order sorted so that each follows the one that makes its version."""
    ordered: list[UpdateRule] = []
    todo = list(rules)
    while todo:
        alike = [rule for rule in todo if (rule.order, rule.renames) == (todo[0].order, todo[0].renames)]
        made = {rule.fixed.new.identity: rule for rule in alike if rule.fixed}
        first = next(
            (rule for rule in alike if rule.fixed is None or made.get(rule.fixed.old.identity, rule) is rule),
            alike[0],
        )
        ordered.append(first)
        todo.remove(first)
    return ordered
