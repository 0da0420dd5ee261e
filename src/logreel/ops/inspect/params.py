"""Parameters of a log: all, those changed while logging, or those that differ from a default."""

from __future__ import annotations

from typing import Any

from logreel.log.log import Log
from logreel.log.scan import Parameter
from logreel.ops.json_values import to_json_values


def params(log: Log, *, changed: bool = False, defaults: bool = False) -> list[Parameter]:
    """Return the parameters, sorted by name.

    changed   True: only those changed while logging
    defaults  True: only those whose value differs from a default

    With both, those to which one of the two applies.
    """
    found = sorted(log.parameters.values(), key=lambda p: p.name)
    if not (changed or defaults):
        return found
    return [p for p in found if (changed and p.changes) or (defaults and differs(p))]


def differs(parameter: Parameter) -> bool:
    """Return whether a default of *parameter* is known and differs from its first value."""
    value = parameter.value
    if value is None and parameter.changes:
        value = parameter.changes[0].value
    return any(default != value for default in parameter.defaults.values())


def as_dict(parameter: Parameter) -> dict[str, Any]:
    """Return a parameter as one entry of ``params --json``."""
    return {
        "name": parameter.name,
        "type": parameter.type,
        "value": to_json_values(parameter.value),
        "changes": [{"time_ns": c.time, "value": to_json_values(c.value)} for c in parameter.changes],
        "defaults": to_json_values(dict(parameter.defaults)),
    }
