"""The command ``metrics``: runs a metric of the user."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from logreel.errors import UsageError
from logreel.formats.carla.metric_run.runner import run_metric
from logreel.registry.commands import Answer, Option

if TYPE_CHECKING:
    from logreel.log.log import Log

OPTIONS = (
    Option(
        "metric",
        ("--metric",),
        "Python file with the metric, a class that derives from BasicMetric. It is executed.",
        metavar="FILE.py[:CLASS]",
    ),
    Option("criteria", ("--criteria",), "JSON file that is passed to the metric.", metavar="FILE.json"),
    Option("town_map", ("--map",), "OpenDRIVE map that is passed to the metric.", metavar="FILE.xodr"),
)


def metrics(
    log: Log, metric: str | None = None, criteria: str | None = None, town_map: str | None = None
) -> Answer:
    """Run a metric, which prints what it likes; the answer has what it returns, see ``run_metric``."""
    if metric is None:
        raise UsageError("no metric", hint="pass metric='FILE.py'")
    result = run_metric(log, metric, criteria=criteria, town_map=town_map)

    def lines() -> Iterator[str]:
        if result is not None:
            yield str(result)

    return Answer("", {}, lines, {"metric": metric, "result": result})
