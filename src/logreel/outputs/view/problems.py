"""Problems of a log: places in the file, and the times around them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp

from logreel.errors import Problem
from logreel.log.log import Log
from logreel.outputs.http.routes import Parameters, Route
from logreel.outputs.view.limits import PROBLEMS

if TYPE_CHECKING:
    from logreel.ops.rewrite.recover import Loss
    from logreel.outputs.view.session import Session
    from logreel.outputs.view.view_log import ViewLog

#: Problems that get times.
TIMED = 200


def routes() -> list[Route]:
    """Return the request for the problems."""
    return [Route("/api/logs/{log}/problems", _problems)]


def _problems(session: Session, log: ViewLog, given: Parameters) -> ASGIApp:
    # Not cached: reading messages can find more.
    with log.open(given) as opened:
        return JSONResponse(problems_of(opened, log.start)[:PROBLEMS])


def problems_of(log: Log, start: int) -> list[dict[str, Any]]:
    """Return all problems in the order of the file, with the ns since *start* of the messages around them if known."""
    every = log.problems
    places: dict[Problem, Loss] = {}
    # A log of several files has no places of its own.
    timed: list[Problem] = []
    if len(log.parts) == 1 and log.parts[0] is log:
        timed = [p for p in every if p.size or p.lost][:TIMED]
    if timed:
        # Sound logs, which are most, do not wait for these modules.
        from logreel.ops.rewrite.recover import losses

        places = dict(zip(timed, losses(log, timed), strict=True))
    found = []
    for p in every[:PROBLEMS]:
        loss = places.get(p)
        before, after = (loss.start_ns, loss.end_ns) if loss else (None, None)
        found.append(
            {
                "code": p.code,
                "text": p.text,
                "lost": p.lost,
                "offset": p.offset,
                "size": p.size,
                "file": p.file,
                "from": None if before is None else before - start,
                "to": None if after is None else after - start,
            }
        )
    return found
