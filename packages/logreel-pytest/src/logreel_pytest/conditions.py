"""Conditions over time: within, never, always, eventually. Each raises AssertionError with a chart of the moment."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import logreel
from logreel_pytest.run_log import RunLog
from logreel_pytest.signals import Signal, drawn

#: A condition: booleans over time; SQL about a log; or a function from the values of a signal to booleans.
Condition = str | Callable[[Any], Any] | None
SECOND = 10**9
_UNITS = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0, "h": 3600.0}
_LENGTH = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(s|ms|us|min|h|)\s*")


def within(signal: Signal, low: float | None = None, high: float | None = None) -> None:
    """Assert that all values of a signal lie between *low* and *high*, ends included; NaN does not."""
    __tracebackhide__ = True
    values = np.asarray(_series(signal), np.float64)
    lower, upper = -np.inf if low is None else low, np.inf if high is None else high
    with np.errstate(invalid="ignore"):
        outside = ~((values >= lower) & (values <= upper))
    if outside.any():
        row = int(np.argmax(outside))
        wanted = f"within {'…' if low is None else low} and {'…' if high is None else high}"
        told = f"{signal.name} is not {wanted}: {values[row]:g} at {signal.seconds(row):.2f} s, {outside.sum()} times"
        _fail(told, signal, row, outside)


def never(what: Signal | RunLog, condition: Condition = None) -> None:
    """Assert that a condition is never met.

    never(log["battery_status"]["voltage_v"] < 14)
    never(log, "battery_status.voltage_v < 14")              SQL, about the fields of one topic
    never(log["battery_status"]["voltage_v"], lambda v: v < 14)
    """
    __tracebackhide__ = True
    signal, met = _met(what, condition)
    if met.any():
        row = int(np.argmax(met))
        _fail(
            f"{_name(signal, condition)}: met at {signal.seconds(row):.2f} s, {met.sum()} times",
            signal,
            row,
            met,
        )


def always(what: Signal | RunLog, condition: Condition = None) -> None:
    """Assert that a condition is met by every message; see ``never``."""
    __tracebackhide__ = True
    signal, met = _met(what, condition)
    if not met.all():
        row = int(np.argmin(met))
        told = f"{_name(signal, condition)}: not met at {signal.seconds(row):.2f} s, {(~met).sum()} times"
        _fail(told, signal, row, ~met)


def eventually(
    what: Signal | RunLog,
    condition: Condition = None,
    *,
    within: str | float | None = None,
    after: Any = None,
) -> None:
    """Assert that a condition is met at last; see ``never`` for conditions.

    within  time that it may take, such as ``"5 s"`` or a number of seconds; None: any
    after   what it counts from: a Signal of booleans, whose every beginning counts; SQL about the log; seconds since
            the start of the log; None: the start of the log
    """
    __tracebackhide__ = True
    signal, met = _met(what, condition)
    start = signal.start
    begins = [start] if after is None else _begins(what, after, start)
    if not begins:
        raise AssertionError("not assessed: what it counts from does not occur")
    longest = None if within is None else length_ns(within)
    for begin in begins:
        rows = np.flatnonzero(met & (signal.times >= begin))
        took = None if not len(rows) else int(signal.times[rows[0]]) - begin
        if took is None or (longest is not None and took > longest):
            told = "never met" if took is None else f"met after {took / SECOND:.2f} s"
            limit = "" if longest is None else f", {longest / SECOND:g} s are allowed"
            place = min(int(np.searchsorted(signal.times, begin)), len(signal) - 1)
            text = f"{_name(signal, condition)}: {told} from {(begin - start) / SECOND:.2f} s on{limit}"
            _fail(text, signal, place, np.arange(len(signal)) == place)


def _begins(what: Signal | RunLog, after: Any, start: int) -> list[int]:
    """Return the times from which on a condition has to be met."""
    if isinstance(after, str):
        if not isinstance(what, RunLog):
            raise logreel.UsageError("after= in SQL needs the log as the first argument")
        after = what.where(after)
    if isinstance(after, Signal):
        flags = np.asarray(_series(after), bool)
        rows = np.flatnonzero(flags & ~np.concatenate([[False], flags[:-1]]))
        return [int(time) for time in after.times[rows]]
    return [start + round(float(after) * SECOND)]


def length_ns(length: str | float) -> int:
    """Return a length of time in ns; numbers are seconds. Raises UsageError for text that is none."""
    if isinstance(length, int | float):
        return round(length * SECOND)
    match = _LENGTH.fullmatch(length)
    if match is None:
        raise logreel.UsageError(f"{length!r} is no length of time, such as '5 s' or '200 ms'")
    return round(float(match[1]) * _UNITS[match[2]] * SECOND)


def _met(what: Signal | RunLog, condition: Condition) -> tuple[Signal, NDArray[np.bool_]]:
    """Return the signal that a condition is about, and bool[n]: whether each of its values meets it."""
    if isinstance(what, RunLog):
        if not isinstance(condition, str):
            raise logreel.UsageError("a condition on a log is SQL: never(log, 'topic.field > 1')")
        flags = what.where(condition)
        return flags, np.asarray(flags, bool)
    signal = _series(what)
    if condition is None:
        if signal.dtype != bool:
            raise logreel.UsageError(
                "a condition is true or false: never(signal < 1), or never(signal, function)"
            )
        return signal, np.asarray(signal)
    if not callable(condition):
        raise logreel.UsageError("SQL is about a log: never(log, 'topic.field > 1')")
    met = np.asarray(condition(signal), bool)
    if met.shape != signal.shape:
        # A function of one value.
        met = np.array([bool(condition(value)) for value in np.asarray(signal).tolist()], bool)
    return signal, met


def _series(signal: Any) -> Signal:
    """Return a signal with a value for each of its times; raises UsageError for anything else, and for no values."""
    if not isinstance(signal, Signal) or signal.ndim != 1 or len(signal) != len(signal.times):
        raise logreel.UsageError(
            "this is no signal over time: take a field that is one number, log[topic][field]"
        )
    if not len(signal):
        raise AssertionError(f"not assessed: {signal.name} has no values")
    return signal


def _name(signal: Signal, condition: Condition) -> str:
    name = getattr(condition, "__name__", "")
    return f"{signal.name}, {name}" if callable(condition) and name not in ("", "<lambda>") else signal.name


def _fail(text: str, signal: Signal, row: int, met: NDArray[np.bool_]) -> None:
    """Raise AssertionError with a text and a chart around a row."""
    __tracebackhide__ = True
    raise AssertionError("\n".join([text, *drawn(signal, row, met)]))
