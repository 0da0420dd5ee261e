"""The parameters of the robot: all, those changed while logging, or those that differ from a default."""

from __future__ import annotations

from typing import Any

from logreel.log.log import Log
from logreel.log.scan import Parameter
from logreel.ops.json_values import plain


def params(log: Log, *, changed: bool = False, defaults: bool = False) -> list[Parameter]:
    """Parameters by name.

    changed   only those set anew while logging
    defaults  only those with a default other than their value

    Both: those that are either.
    """
    found = sorted(log.parameters.values(), key=lambda p: p.name)
    if not (changed or defaults):
        return found
    return [p for p in found if (changed and p.changes) or (defaults and differs(p))]


def differs(parameter: Parameter) -> bool:
    """True if a default of *parameter* is known and differs from its first value."""
    value = parameter.value
    if value is None and parameter.changes:
        value = parameter.changes[0].value
    return any(default != value for default in parameter.defaults.values())


def as_dict(parameter: Parameter) -> dict[str, Any]:
    """A parameter as one entry of ``params --json``."""
    return {
        "name": parameter.name,
        "type": parameter.type,
        "value": plain(parameter.value),
        "changes": [{"time_ns": c.time, "value": plain(c.value)} for c in parameter.changes],
        "defaults": plain(dict(parameter.defaults)),
    }
