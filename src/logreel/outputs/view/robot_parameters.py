"""Parameters of the robot with their changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp

from logreel.log.scan import Parameter
from logreel.ops.json_values import to_json_values
from logreel.outputs.http.routes import Parameters, Route
from logreel.outputs.view.limits import PARAMETERS, TEXT_CHARACTERS

if TYPE_CHECKING:
    from logreel.outputs.view.session import Session
    from logreel.outputs.view.view_log import ViewLog

#: Changes of one parameter that are listed; ``change_count`` has the number of all.
CHANGES = 1000


def routes() -> list[Route]:
    """Return the request for the parameters."""
    return [Route("/api/logs/{log}/parameters", _parameters)]


def _parameters(session: Session, log: ViewLog, given: Parameters) -> ASGIApp:
    with log.open(given) as opened:
        every = list(opened.parameters.values())[:PARAMETERS]
    return JSONResponse([_parameter(one, log.start) for one in every])


def _parameter(one: Parameter, start: int) -> dict[str, Any]:
    """Return a parameter; *default* is that of the system, or else of the set-up, where it differs from the value."""
    default = next((one.defaults[kind] for kind in ("system", "setup") if kind in one.defaults), None)
    return {
        "name": one.name,
        "type": one.type,
        "value": _value(one.value),
        "default": _value(default),
        "changes": [{"t": c.time - start, "value": _value(c.value)} for c in one.changes[:CHANGES]],
        "change_count": len(one.changes),
    }


def _value(value: Any) -> Any:
    return value[:TEXT_CHARACTERS] if isinstance(value, str) else to_json_values(value)
