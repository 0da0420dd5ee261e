"""Evidence: the signal that a finding is about, around its onset, with that of another run behind it, as a drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from logreel.errors import Finding, LogError
from logreel.io.arrays import F64, I64
from logreel.log.log import Channel, Log
from logreel.log.times import SECOND
from logreel.meaning.curves import extrema
from logreel.ops.inspect.contract import Contract, Rules
from logreel.ops.inspect.verdict import keys_of
from logreel.ops.inspect.windows import delays, values_between
from logreel.outputs.page.chart_svg import PageClock, SvgCurve, chart_svg, legend, value_span
from logreel.outputs.page.html import cell_text

#: Time before and after an onset that is shown, ns.
BEFORE, AFTER = 8 * SECOND, 12 * SECOND
#: Pixels of a drawing, to which curves are reduced.
PIXELS = 600
#: Messages of a drawing that are read at most.
MOST_MESSAGES = 500_000
#: Keys of rules about the times of messages.
_INTERVALS = ("max_gap", "max_jitter", "min_rate", "max_rate", "ordered", "min_messages", "required")


@dataclass(frozen=True, slots=True)
class Signal:
    """What is drawn: a field of a topic; without a field the time between its messages, or their delay.

    bounds  values that are allowed at least and at most, in the unit of the signal
    """

    topic: str
    field: str = ""
    is_delay: bool = False
    bounds: tuple[float, ...] = ()

    @property
    def title(self) -> str:
        """Name of the signal."""
        if self.field:
            return f"{self.topic}.{self.field}"
        return f"{'Delay of' if self.is_delay else 'Time between'} messages of {self.topic} [s]"

    def samples(self, log: Log, start: int, end: int) -> tuple[I64, F64]:
        """Return times (ns) and values with start <= time < end; empty if the log does not have them."""
        nothing = np.zeros(0, np.int64), np.zeros(0)
        if self.topic not in log.channels:
            return nothing
        ch = log[self.topic]
        try:
            if self.is_delay:
                late = delays(ch)
                return nothing if late is None else _between(late.begin, late.delay / SECOND, start, end)
            if not self.field:
                return _intervals(ch, start, end)
            rows = ch.times[(ch.times >= start) & (ch.times < end)]
            if len(rows) > MOST_MESSAGES:
                end = int(np.sort(rows)[MOST_MESSAGES])
            return values_between(ch, self.field, start, end)
        except LogError:
            return nothing


def _between(times: I64, values: F64, start: int, end: int) -> tuple[I64, F64]:
    inside = (times >= start) & (times < end)
    return times[inside], values[inside]


def _intervals(ch: Channel, start: int, end: int) -> tuple[I64, F64]:
    """Return the time between messages in s at the later one; an open one ends where the drawing or the log does."""
    times = np.sort(ch.times)
    last = min(end, ch.log.end or end)
    if len(times) and int(times[-1]) < last:
        times = np.append(times, last)
    return _between(times[1:], np.diff(times) / SECOND, start, end + 1)


def signal_of(finding: Finding, contract: Contract) -> Signal | None:
    """Return the signal that a broken line of a contract is about; None if it is about no signal."""
    keys = keys_of(finding.rule)
    if finding.topic is None or len(keys) < 3 or keys[0] != "topics":
        return None
    rules = contract.topics.get(keys[1], {})
    if keys[2] in ("min_delay", "max_delay"):
        return Signal(finding.topic, is_delay=True, bounds=(rules[keys[2]] / SECOND,))
    if keys[2] == "max_gap":
        return Signal(finding.topic, bounds=(rules["max_gap"] / SECOND,))
    if keys[2] in _INTERVALS:
        return Signal(finding.topic)
    if keys[2] == "values" and len(keys) > 4:
        return Signal(finding.topic, finding.text.partition(" ")[0], bounds=_bounds(rules, keys))
    return None


def _bounds(rules: Rules, keys: Sequence[str]) -> tuple[float, ...]:
    """Return the bound of a value that a line states, for bounds of the value itself or of its mean."""
    inner = rules["values"].get(keys[3], {})
    if keys[4] == "modes" and len(keys) > 6:
        inner = inner.get("modes", {}).get(keys[5], {})
    key = keys[-1]
    return (inner[key],) if key in ("min", "max", "min_mean", "max_mean") and key in inner else ()


def evidence(
    signal: Signal,
    log: Log,
    onset: int,
    other: tuple[Log, int] | None = None,
    names: tuple[str, str] = ("this run", "baseline"),
    zero: int | None = None,
) -> str:
    """Return a drawing of a signal around its onset (ns), with its legend, as HTML; empty without values.

    other  another log, and the ns from the clock of *log* to that of the other one
    names  of both in the legend
    zero   time (ns) that is 0 s; None: the start of *log*
    """
    first, last = max(onset - BEFORE, log.start or 0), onset + AFTER
    zero = (log.start or 0) if zero is None else zero
    clock = PageClock(zero, first, last)
    lines: list[SvgCurve] = []
    drawn: list[str] = []
    runs = [(names[0], log, 0)] + ([(names[1], *other)] if other is not None else [])
    for name, run, shift in runs:
        times, values = signal.samples(run, first + shift, last + shift)
        if not np.isfinite(values).any():
            continue
        if bool((np.diff(times) < 0).any()):
            order = np.argsort(times, kind="stable")
            times, values = times[order], values[order]
        if len(times) > 4 * PIXELS:
            rows = extrema(times, values, PIXELS)
            times, values = times[rows], values[rows]
        lines.append(SvgCurve((times - shift - zero) / SECOND, values))
        drawn.append(name)
    if not lines:
        return ""
    edges = np.array([clock.seconds(first), clock.seconds(last)])
    shown = value_span(lines)
    for bound in signal.bounds:
        # A bound far away from all values would flatten them.
        if shown.low - (shown.high - shown.low) <= bound <= shown.high + (shown.high - shown.low):
            lines.append(SvgCurve(edges, np.full(2, float(bound))))
            drawn.append(f"bound {bound:g}")
    span = value_span(lines)
    at = clock.seconds(onset)
    drawing = chart_svg(lines, clock.axis, span, [(at, at + 0.003 * (edges[1] - edges[0]), "", "bad")])
    return drawing + legend(drawn)


def figure_of(title: str, text: str, drawing: str) -> str:
    """Return a drawing with what is said of it as a figure."""
    said = f'<p class="note">{cell_text(text, 600)}</p>' if text else ""
    return f'<figure aria-label="{cell_text(title, 300)}"><h4>{cell_text(title, 300)}</h4>{said}{drawing}</figure>'
