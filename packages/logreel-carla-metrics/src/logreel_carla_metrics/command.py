"""The command ``logreel carla metrics``: runs a metric of the user."""

from __future__ import annotations

from collections.abc import Iterator

from logreel.plugin import Answer, Command, Example, Log, Option, UsageError
from logreel_carla_metrics.run import run_metric


def metrics(
    log: Log, metric: str | None = None, criteria: str | None = None, town_map: str | None = None
) -> Answer:
    """Run a metric, which prints what it likes; the answer has what it returns, see ``run_metric``."""
    if metric is None:
        raise UsageError("no metric", hint="pass --metric FILE.py")
    result = run_metric(log, metric, criteria=criteria, town_map=town_map)

    def lines() -> Iterator[str]:
        if result is not None:
            yield str(result)

    return Answer("", {}, lines, {"metric": metric, "result": result})


METRICS = Command(
    "metrics",
    "Run a metric of the scenario runner: a class in a Python file, which is executed. It gets the recording as "
    "the simulator's metrics_manager.py passes it, without a server.",
    metrics,
    (
        Option(
            "metric",
            ("--metric",),
            "Python file with the metric, a class that derives from BasicMetric. It is executed.",
            metavar="FILE.py[:CLASS]",
        ),
        Option("criteria", ("--criteria",), "JSON file that is passed to the metric.", metavar="FILE.json"),
        Option("town_map", ("--map",), "OpenDRIVE map that is passed to the metric.", metavar="FILE.xodr"),
    ),
    (
        Example("logreel carla metrics town.log --metric metric.py", "run the metric of a file"),
        Example("logreel carla metrics town.log --metric metric.py --json", "with the result as JSON"),
    ),
    prints=True,
)
