"""Parameters of a log: chosen by name, those that changed while logging, or those that differ from a default."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from logreel.errors import NotFoundError
from logreel.log.log import Log
from logreel.log.scan import Parameter, is_same_value
from logreel.log.times import Time, interval
from logreel.log.topic_match import fitting, listed
from logreel.ops.json_values import to_json_values
from logreel.ops.rewrite.selected_log import in_force
from logreel.registry.open_logs import as_open_log

if TYPE_CHECKING:
    from logreel.log.joined_log import Openable


def params(
    log: Openable | Log,
    patterns: str | Iterable[str] | None = None,
    *,
    changed: bool = False,
    defaults: bool = False,
    start: Time | None = None,
    end: Time | None = None,
) -> list[Parameter]:
    """Return the parameters of a log, sorted by name.

    log       an open Log, or anything that ``logreel.open`` takes
    patterns  names, shell patterns, or ``re:`` and a regular expression; None: all parameters
    changed   True: only those whose value changed while logging; a value that is logged again is no change
    defaults  True: only those whose value differs from a default
    start, end  half-open interval: values in force at its start, and changes in it

    With *changed* and *defaults*, those to which one of the two applies. Raises NotFoundError for a name or pattern
    without match, if the log has parameters, and UsageError for an invalid regular expression.
    """
    with as_open_log(log) as opened:
        known, path = opened.parameters, opened.name
        if start is not None or end is not None:
            span = interval(opened, start, end)
            known = {name: in_force(one, *span) for name, one in known.items()}
    names = set(known)
    if patterns is not None:
        names = {name for want in listed(patterns) for name in _fitting(names, want, path)}
    found = sorted((known[name] for name in names), key=lambda p: p.name)
    if not (changed or defaults):
        return found
    return [p for p in found if (changed and p.real_changes) or (defaults and differs(p))]


def _fitting(known: set[str], want: str, path: str) -> set[str]:
    """Return the names that *want* selects; raises NotFoundError if there are names, but none fits."""
    found = fitting(known, want)
    if known and not found:
        raise NotFoundError("parameter", want, sorted(known), path=path)
    return found


def differs(parameter: Parameter) -> bool:
    """Return whether a default of *parameter* is known and differs from its first value."""
    value = parameter.value
    if value is None and parameter.changes:
        value = parameter.changes[0].value
    return any(not is_same_value(default, value) for default in parameter.defaults.values())


def as_dict(parameter: Parameter) -> dict[str, Any]:
    """Return a parameter as one entry of ``params --json``."""
    return {
        "name": parameter.name,
        "type": parameter.type,
        "value": to_json_values(parameter.value),
        "final": to_json_values(parameter.final),
        "changes": [{"time_ns": c.time, "value": to_json_values(c.value)} for c in parameter.changes],
        "change_count": len(parameter.real_changes),
        "defaults": to_json_values(dict(parameter.defaults)),
    }
