"""The plots that a log deserves, and what lies behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp

from logreel.lenses.facts import LINE, Chart, Series
from logreel.log.log import Log
from logreel.meaning.charts import charts, first_charts, side_panels
from logreel.outputs.http.routes import Parameters, Route

if TYPE_CHECKING:
    from logreel.outputs.view.session import Session
    from logreel.outputs.view.view_log import ViewLog

#: Kind of the panel that shows a chart, where it has another name.
PANELS = {LINE: "plot"}


def routes() -> list[Route]:
    """Return the request for the charts."""
    return [Route("/api/logs/{log}/charts", _charts)]


def _charts(session: Session, log: ViewLog, given: Parameters) -> ASGIApp:
    return JSONResponse(log.once("charts", _all, given))


def _all(log: Log) -> dict[str, Any]:
    found = charts(log)
    return {
        "panels": [_panel(chart) for chart in found],
        "side": side_panels(log),
        "first": first_charts(found),
    }


def _panel(chart: Chart) -> dict[str, Any]:
    return {
        "title": chart.title,
        "kind": PANELS.get(chart.kind, chart.kind),
        "group": chart.group,
        "series": [_series(series) for series in chart.series],
        "y": None if chart.y is None else list(chart.y),
        "bands": chart.kind == LINE,
    }


def _series(one: Series) -> dict[str, Any]:
    return {
        "topic": one.topic,
        "field": one.field,
        "function": one.function,
        "where": one.where,
        "label": one.name,
        "unit": one.unit,
        "scale": 1,
    }
