"""Check of the types of channels against known and given definitions, with what rules would make of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from logreel.errors import Finding
from logreel.log.log import Log

if TYPE_CHECKING:
    from logreel.ops.migrate.plan import ChannelPlan, Files


def type_check(rules: Files = (), to: Files = ()) -> Callable[[Log], Iterator[Finding]]:
    """Return a check that compares the type of each channel with the version wanted.

    rules, to  as for ``logreel.migrate``

    Codes: ``type-migrates`` the type is another version, and messages can be migrated; ``type-rule-missing`` a rule is
    missing for that; ``type-differs`` another version is known, to which no rule leads; ``type-unknown`` no definition
    to compare with. Raises the errors of ``logreel.migrate`` for rules that cannot be used.
    """
    from logreel.ops.migrate.plan import Planner

    planner = Planner(rules, to)

    def types(log: Log) -> Iterator[Finding]:
        for plan in planner.plans(log):
            found = _finding(plan)
            if found is not None:
                yield found

    return types


def _finding(plan: ChannelPlan) -> Finding | None:
    topic = plan.channel.topic
    if plan.state == "migrates" and plan.path is not None:
        count = len(plan.rules)
        by = f"by {count} rule{'s' * (count > 1)}" if count else "without rules"
        text = f"{plan.path.old.label} would become {plan.path.new.label} {by}"
        return Finding("type-migrates", "warn", None, 0, text, topic)
    if plan.state == "missing":
        return Finding("type-rule-missing", "warn", None, 0, plan.text, topic)
    if plan.state == "differs":
        return Finding("type-differs", "warn", None, 0, plan.text, topic)
    if plan.state == "unknown":
        return Finding("type-unknown", "note", None, 0, plan.text, topic)
    return None
