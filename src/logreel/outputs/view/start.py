"""The start of a page: what it is told first, and what is computed while the browser still loads it."""

from __future__ import annotations

from contextlib import suppress
from time import monotonic
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp

from logreel._version import __version__
from logreel.errors import LogError, UsageError
from logreel.log.log import Log
from logreel.log.times import utc_shift
from logreel.ops.inspect.info import recorded_by
from logreel.outputs.http.routes import Parameters, Route
from logreel.outputs.view.columns import WantedSeries
from logreel.outputs.view.limits import BODY, OPENING
from logreel.outputs.view.overview import json_object
from logreel.outputs.view.series import BEYOND, all_charts
from logreel.outputs.view.session import Session
from logreel.outputs.view.view_log import ViewLog


def prepare(log: ViewLog) -> None:
    """Compute what the first screen asks about a log, while the browser still loads the page."""
    # The page is told of errors when it asks; by then the log may also be closed.
    with suppress(Exception):
        log.once("session", _facts)
        proposed = log.once("charts", all_charts)
        for panel in proposed["panels"][: proposed["first"] + BEYOND]:
            for series in panel["series"]:
                with suppress(LogError):
                    log.columns.prepare(
                        WantedSeries(*(series[name] for name in ("topic", "field", "function", "where")))
                    )


def routes() -> list[Route]:
    """Return the requests about the session, and for the layouts that the person keeps."""
    return [
        Route("/api/session", _session),
        Route("/api/layouts", _layouts),
        Route("/api/layouts", _change_layouts, body_bytes=BODY),
    ]


def _layouts(session: Session, request: Parameters) -> ASGIApp:
    """Answer with the layouts of each kind of vehicle by name, the first one of each, and why they are not kept."""
    return JSONResponse(_kept(session))


def _kept(session: Session) -> dict[str, Any]:
    layouts, begin = session.layouts.read()
    return {"layouts": layouts, "begin": begin, "why": session.layouts.why}


def _change_layouts(session: Session, request: Parameters) -> ASGIApp:
    """Keep, remove or choose a layout, and answer as for reading.

    The content has ``vehicle`` and ``name``, and one of ``put``, a layout, ``remove``, true, and ``begin``, a boolean;
    with ``put`` also ``replaces``, the name that the layout had before.
    """
    match json_object(request.body):
        case {"vehicle": vehicle, "name": name, "put": dict(layout), **more}:
            session.layouts.change(vehicle, name, layout, replaces=more.get("replaces"))
        case {"vehicle": vehicle, "name": name, "remove": True}:
            session.layouts.change(vehicle, name)
        case {"vehicle": vehicle, "name": name, "begin": bool(begins)}:
            session.layouts.change(vehicle, name, begins=begins)
        case _:
            raise UsageError("layouts are changed by put, remove or begin")
    return JSONResponse(_kept(session))


def _session(session: Session, request: Parameters) -> ASGIApp:
    until = monotonic() + OPENING
    for opened in session.logs:
        opened.ready.wait(max(0.0, until - monotonic()))
    return JSONResponse(
        {
            "version": __version__,
            "follow": session.follow,
            "tiles": None if session.map_tiles is None else session.map_tiles.describe(),
            "layout": session.layout,
            "kept": _kept(session),
            "logs": [_log_json(opened, request) for opened in session.logs],
            "charts": _first_charts(session, request),
        }
    )


def _first_charts(session: Session, request: Parameters) -> dict[str, Any] | None:
    """Return the charts of the first log that can be shown, which are asked for next; None if it is not open yet."""
    first = next((opened for opened in session.logs if opened.error is None), None)
    charts: dict[str, Any] | None = None
    if first is not None and first.ready.is_set():
        with suppress(LogError):
            charts = first.once("charts", all_charts, request)
    return charts


def _log_json(opened: ViewLog, request: Parameters) -> dict[str, Any]:
    about = {
        "id": opened.id,
        "name": opened.name,
        "size": opened.size,
        "opened": opened.ready.is_set(),
        "error": opened.error,
    }
    if not about["opened"] or opened.error is not None:
        none = dict.fromkeys(
            ("format", "start", "duration", "utc_shift", "messages", "problems", "lost", "kind")
        )
        return {**about, "title": opened.name, **none, "facts": []}
    return {**about, **opened.once("session", _facts, request)}


def _facts(log: Log) -> dict[str, Any]:
    """Return what the head of the page says about a log."""
    shift = utc_shift(log)
    problems = log.problems
    known = recorded_by(log)
    # The head has no labels, and so no room for counts.
    facts = [["Format", f"{log.format} {log.version}".strip()]]
    facts += [[label, text] for label, text in known if label != "Parameters"]
    return {
        "title": log.name,
        "format": log.format,
        "start": str(log.start or 0),
        "duration": log.duration or 0,
        "utc_shift": None if shift is None else str(shift),
        "messages": log.message_count,
        "problems": len(problems),
        "lost": sum(problem.lost for problem in problems),
        "facts": facts,
        # Vehicles of one kind share their layouts.
        "kind": " ".join([log.format, *(text for label, text in known if label == "Type")]),
    }
