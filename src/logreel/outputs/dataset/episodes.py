"""Intervals of a log that are episodes, by rule."""

from __future__ import annotations

from dataclasses import dataclass

from logreel.errors import NotFoundError
from logreel.log.log import Log
from logreel.log.times import interval
from logreel.ops.query.charts import bands
from logreel.ops.query.held import Span, true_intervals
from logreel.ops.query.intervals import intersect_intervals
from logreel.outputs.dataset.spec import Spec


@dataclass(frozen=True, slots=True)
class Stretch:
    """An interval of a log that is to be an episode: start <= time < end (ns), and its task."""

    start: int
    end: int
    task: str


def stretches(log: Log, spec: Spec) -> list[Stretch]:
    """Return the intervals of *log* that the rule of *spec* chooses, in the order of the rule.

    Raises UsageError and TopicError for conditions and times that do not fit the log, NotFoundError for a kind of band
    that it does not have.
    """
    rule = spec.episodes
    if log.start is None or log.end is None:
        return []
    whole = _bounded(log, interval(log, rule.start, rule.end))
    if rule.rule == "list":
        found = []
        for one in rule.listed:
            if one.is_for(log.name):
                task = spec.task if one.task is None else one.task
                asked = _bounded(log, interval(log, one.start, one.end))
                found += [Stretch(*span, task) for span in _inside([asked], whole)]
        return found
    if rule.rule == "where":
        spans = true_intervals(log, rule.where, whole)
    elif rule.rule == "band":
        every = bands(log)
        spans = [(one.start, one.end) for one in every if rule.band in (one.kind, f"{one.kind}={one.label}")]
        kinds = {one.kind for one in every}
        if rule.band.partition("=")[0] not in kinds:
            raise NotFoundError("kind of band", rule.band, sorted(kinds), path=log.name)
    else:
        spans = [whole]
    return [Stretch(*span, spec.task) for span in _inside(spans, whole)]


def _bounded(log: Log, span: Span) -> tuple[int, int]:
    """Return an interval without open ends: those of the log."""
    first, last = log.start or 0, (log.end or 0) + 1
    start, end = (first if span[0] is None else span[0]), (last if span[1] is None else span[1])
    return max(start, first), min(end, last)


def _inside(spans: list[Span] | list[tuple[int, int]], whole: tuple[int, int]) -> list[tuple[int, int]]:
    found = intersect_intervals(spans, [whole])
    return [(start, end) for start, end in found if start is not None and end is not None and start < end]
