"""Contracts learned from good logs: what all of them have in common, with headroom, as a TOML file for people.

Each log is reduced to the figures of a run, one log after another. A bound lies beyond the runs by a headroom that
shrinks with their number; each line of the file says what it was learned from. Nothing is learned that a few more good
runs would refute: see ``is_complete``.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from logreel.dataclass import dataclass
from logreel.errors import SEVERITIES, LogError, UsageError
from logreel.lenses import Image, PackedCloud, PacketCloud, PlainCloud, lenses
from logreel.lenses.text import line_fields
from logreel.log.log import Channel, Log
from logreel.log.scan import is_same_value
from logreel.log.times import SECOND
from logreel.meaning.charts import COUNTERS, is_stamp
from logreel.meaning.gaps import GAP_FACTOR, regular_times
from logreel.ops.inspect.contract import WARNING, read_contract
from logreel.ops.inspect.contract_file import (
    ContractDraft,
    Digits,
    LearnedContract,
    Path,
    above,
    apart,
    headroom,
    is_complete,
    old_lines,
    outward,
    seen_in,
    written,
)
from logreel.ops.inspect.text import LEVELS
from logreel.ops.inspect.windows import (
    WINDOW,
    FieldWindows,
    States,
    counts_within,
    delays,
    difference,
    field_windows,
    goes_by_one,
    in_order,
    jitter_blocks,
    silences,
    still_runs,
    text_patterns,
)
from logreel.ops.rewrite.selected_log import selected_log
from logreel.ops.selection import Selection
from logreel.registry.open import as_open_log, expand

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.joined_log import Openable

#: Lengths in s of the windows in which rates are taken, and the least number of messages in one.
RATE_WINDOWS, IN_WINDOW = (1, 2, 5, 10, 20, 60, 120), 10
#: Messages of a channel without a steady rate from which on its longest gap says something.
FREQUENT = 20
#: Delays whose medians differ by more than this between runs (ns) are those of clocks that nothing aligns.
ALIGNED = SECOND
#: Seconds of a mode, in all runs, from which on it has bounds of its own.
IN_MODE = 20
#: A narrower bound is stated beside a wider one if it is below this share of it.
NARROWER = 0.7
#: A greatest step above this number of usual ones belongs to a value that jumps, as setpoints do.
JUMPY = 8
#: Share of the seconds in which a live sensor moves, and the least messages in them.
LIVE, LIVE_MESSAGES = 0.9, 3
#: Shortest time in s that a contract lets a live sensor stay the same.
STILL = 3
#: Runs from which on a new warning breaks a contract; with fewer, only a new error does.
RUNS_FOR_WARNINGS = 10
#: Lenses of channels whose numbers are no measurements of the robot.
WITHOUT_RANGES = (Image, PackedCloud, PacketCloud, PlainCloud)
#: Fields whose means over a second differ by no more than this share of their extent stay near each other, and how
#: many fields of a similar range are compared with one.
NEAR, PARTNERS = 0.15, 8
#: Share of the greatest distance in a run by which it may be exceeded, times the headroom.
NEAR_HEADROOM = 0.4
#: Topic and path of a field, and two of them.
FieldName = tuple[str, str]
Pair = tuple[FieldName, FieldName]
_ANGLE = re.compile(r"(yaw|heading|course|angle|azimuth|psi|roll|pitch|theta)", re.I)


# ------------------------------------------------------------------------------------------------------ runs


@dataclass(frozen=True, slots=True)
class _Figures:
    """What the windows of one field show in one run, in all of it or in one mode."""

    seconds: int
    low: float
    high: float
    mean_low: float
    mean_high: float
    spread: float
    step: float
    usual_step: float


@dataclass(frozen=True, slots=True)
class _FieldRun:
    """One field in one run; *modes*: figures by mode, of all of it under an empty name."""

    modes: Mapping[str, _Figures]
    nan: int
    is_moving: bool
    still: int
    only_rises_or_falls: bool
    levels: Mapping[int, int] | None
    pairs: frozenset[tuple[int, int]] | None
    is_scale: bool


@dataclass(frozen=True, slots=True)
class _TopicRun:
    """One topic in one run; lengths of time in ns."""

    type: str
    encoding: str
    messages: int
    is_ordered: bool
    period: float | None
    silence: int
    jitter: float | None
    delay: tuple[float, float, float] | None
    rates: Mapping[int, tuple[float, float]]
    fields: Mapping[str, _FieldRun]


@dataclass(frozen=True, slots=True)
class _GoodRun:
    """One good log."""

    name: str
    format: str
    length: int
    topics: Mapping[str, _TopicRun]
    modes: Mapping[str, int]
    lines: Mapping[str, int]
    pairs: Mapping[Pair, tuple[float, float]]
    parameters: Mapping[str, Any]
    health: Mapping[str, str]
    lost: Sequence[str]


def _run(log: Log) -> _GoodRun:
    states = States(log)
    topics, seconds, every_field = {}, Counter[str](), dict[FieldName, FieldWindows]()
    for ch in log.match(None):
        if len(ch):
            measured = measured_fields(ch, states.zero)
            topics[ch.topic] = _topic_run(ch, states, measured)
            every_field |= {
                (ch.topic, windows.path): windows for windows in measured if windows.rises and windows.falls
            }
    if log.start is not None and log.end is not None and states.names:
        every = states.of(np.arange((log.end - log.start) // WINDOW + 1, dtype=np.int64))
        seconds.update({name: int((every == i).sum()) for i, name in enumerate(states.names)})
    lines: dict[str, int] = {}
    for pattern, level, _ in text_patterns(log, WARNING):
        lines[pattern] = min(lines.get(pattern, WARNING), WARNING if level is None else level)
    steady = {
        name: parameter.value
        for name, parameter in log.parameters.items()
        if parameter.value is not None and not parameter.real_changes
    }
    length = 0 if log.start is None or log.end is None else log.end - log.start
    lost = sorted({problem.code for problem in log.problems if problem.lost})
    return _GoodRun(
        log.name,
        log.format,
        length,
        topics,
        seconds,
        lines,
        near_fields(every_field),
        steady,
        _health(log),
        lost,
    )


def _health(log: Log) -> dict[str, str]:
    """Return the worst severity of each detector that could look; empty text: it found nothing."""
    from logreel.ops.health.health import health

    result = health(log)
    worst = {name: "" for name, _ in result.clean}
    for detection in reversed(result.detections):
        worst[detection.detector] = detection.severity
    return worst


def _topic_run(ch: Channel, states: States, measured: Sequence[FieldWindows]) -> _TopicRun:
    times = in_order(ch.times)
    regular = regular_times(times)
    rates = {}
    if regular is not None:
        for seconds in RATE_WINDOWS:
            if seconds * SECOND >= IN_WINDOW / 2 * regular.period:
                counts = counts_within(times, seconds * SECOND)
                if len(counts):
                    rates[seconds] = int(counts.min()) / seconds, int(counts.max()) / seconds
    jitter = jitter_blocks(times) if regular is not None else np.zeros(0)
    late = delays(ch)
    delay = None
    if late is not None and len(late.delay):
        values = late.delay
        delay = float(values.min()), float(np.median(values)), float(values.max())
    return _TopicRun(
        ch.schema.name,
        ch.schema.encoding,
        len(ch),
        not bool((ch.times[1:] < ch.times[:-1]).any()),
        None if regular is None else regular.period,
        int(silences(ch)[1].max(initial=0)),
        float(jitter.max()) if len(jitter) else None,
        delay,
        rates,
        {windows.path: _field_run(windows, states) for windows in measured},
    )


def measured_fields(ch: Channel, zero: int) -> list[FieldWindows]:
    """Return the fields of a channel that have numbers, without times and counters; none if it cannot be read.

    Lines of text, pictures and points have texts and patterns, but no ranges.
    """
    try:
        if line_fields(ch) is not None or any(isinstance(lens, WITHOUT_RANGES) for lens in lenses(ch)):
            return []
        measured = field_windows(ch, with_bytes=False)
    except LogError:
        return []
    return [
        windows
        for windows in measured
        if windows.path.rpartition(".")[2].lower() not in COUNTERS
        and not is_stamp(windows.path, windows.number * WINDOW + zero, windows.mean)
    ]


def near_fields(fields: Mapping[FieldName, FieldWindows]) -> dict[Pair, tuple[float, float]]:
    """Return pairs of fields whose means stay near each other: the greatest distance, and the extent of the first."""
    names = sorted(
        name for name in fields if not name[1].endswith("[]") and np.isfinite(fields[name].mean).all()
    )
    if not names:
        return {}
    low, high = (np.array([f(fields[name].mean) for name in names]) for f in (np.min, np.max))
    extent = high - low
    pairs: dict[Pair, tuple[float, float]] = {}
    for i, name in enumerate(names):
        if not extent[i] > 0:
            continue
        ends = np.maximum(np.abs(low - low[i]), np.abs(high - high[i]))
        ends[: i + 1] = np.inf
        for j in np.argsort(ends, kind="stable")[:PARTNERS].tolist():
            if ends[j] > NEAR * extent[i]:
                break
            windows, apart_by = difference(fields[name], fields[names[j]])
            if len(windows) >= IN_MODE and float(apart_by.max()) <= NEAR * extent[i]:
                pairs[name, names[j]] = float(apart_by.max()), float(extent[i])
    return pairs


def _field_run(windows: FieldWindows, states: States) -> _FieldRun:
    code = states.of(windows.number)
    masks = {"": np.ones(len(code), bool)} | {name: code == i for i, name in enumerate(states.names)}
    modes = {
        name: figures for name, mask in masks.items() if (figures := _figures(windows, mask)) is not None
    }
    measured = windows.count >= LIVE_MESSAGES
    runs = still_runs(windows)
    return _FieldRun(
        modes,
        int(windows.nan.sum()),
        bool(measured.any()) and float((windows.moves[measured] > 0).mean()) >= LIVE,
        max((last - first + 1 for first, last in runs), default=0),
        windows.rises != windows.falls,
        windows.levels,
        None if windows.changes is None else frozenset(change[1:] for change in windows.changes),
        goes_by_one(windows) and windows.rises and windows.falls,
    )


def _figures(windows: FieldWindows, mask: Any) -> _Figures | None:
    mask = mask & (windows.count > 0)
    if not mask.any():
        return None
    means, steps = windows.mean[mask], windows.step[mask]
    return _Figures(
        int(mask.sum()),
        float(windows.low[mask].min()),
        float(windows.high[mask].max()),
        float(means.min()),
        float(means.max()),
        float(windows.spread[mask].max()),
        float(steps.max()),
        float(np.partition(steps, 3 * len(steps) // 4)[3 * len(steps) // 4]),
    )


# ------------------------------------------------------------------------------------------------------ learning


def _learn(runs: Sequence[_GoodRun]) -> ContractDraft:
    draft, n = ContractDraft(), len(runs)
    formats = sorted({run.format for run in runs})
    draft.add(("format",), formats[0] if len(formats) == 1 else formats, f"format of {n} runs")
    if n > 1:
        lengths = [run.length / SECOND for run in runs]
        least = min(lengths) / (1 + headroom(n) / 2)
        draft.add(("min_duration",), outward(least, least, up=False), seen_in(lengths, "lengths in s"))
    draft.add(
        ("learned", "runs"), n, ", ".join(os.path.basename(run.name) for run in runs[:5]) + " …" * (n > 5)
    )
    modes = Counter(name for run in runs for name in run.modes)
    if modes and n > 1:
        known = sorted(name for name, times in modes.items() if times > 1)
        draft.add(("learned", "modes"), known, "in at least two runs")
    draft.left_out += [f"what {run.name} has lost ({', '.join(run.lost)})" for run in runs if run.lost]
    if n == 1:
        draft.left_out.append(
            "ranges of fields, delays, texts, parameters and faults: one run does not tell what varies"
        )
    else:
        _learn_health(runs, draft)
        _learn_text(runs, draft)
        _learn_parameters(runs, draft)
    near = _nearest(runs) if n > 1 else {}
    for topic in sorted({topic for run in runs for topic in run.topics}):
        _learn_topic(topic, [run.topics[topic] for run in runs if topic in run.topics], n, draft)
        for (own, path), (other, figures) in near.items():
            if own == topic:
                bound, margin = above(figures, NEAR_HEADROOM)
                line = ("topics", topic, "values", path, "near", ".".join(other))
                draft.add(
                    line, outward(bound, margin, up=True), seen_in(figures, "greatest distance over 1 s")
                )
    return draft


def _nearest(runs: Sequence[_GoodRun]) -> dict[FieldName, tuple[FieldName, list[float]]]:
    """Return for fields the one that stays nearest in all runs, with the greatest distance in each."""
    shared = set.intersection(*(set(run.pairs) for run in runs))
    nearest: dict[FieldName, tuple[float, FieldName, list[float]]] = {}
    for pair in sorted(shared):
        figures = [run.pairs[pair][0] for run in runs]
        share = max(distance / extent for distance, extent in (run.pairs[pair] for run in runs))
        for name, other in (pair, pair[::-1]):
            if name not in nearest or share < nearest[name][0]:
                nearest[name] = share, other, figures
    # Of two that are nearest to each other, the first one says it.
    return {
        name: (other, figures)
        for name, (_, other, figures) in nearest.items()
        if not (nearest[other][1] == name and other < name)
    }


def _learn_health(runs: Sequence[_GoodRun], draft: ContractDraft) -> None:
    for name in sorted({name for run in runs for name in run.health}):
        severities = [run.health[name] for run in runs if name in run.health]
        if len(severities) < len(runs):
            draft.left_out.append(
                f"health.{name}: it could look at {len(severities)} of {len(runs)} runs only"
            )
            continue
        worst = min((SEVERITIES.index(severity) for severity in severities if severity), default=3)
        if worst == 0:
            draft.left_out.append(f"health.{name}: it finds errors in good runs")
            continue
        seen = ", ".join(f"{severities.count(s)} {s}" for s in SEVERITIES if s in severities) or "nothing"
        limit = SEVERITIES[min(worst - 1, 1)]
        draft.add(("health", "limits", name), limit, f"found in {len(runs)} runs: {seen}")


def _learn_text(runs: Sequence[_GoodRun], draft: ContractDraft) -> None:
    level = WARNING if len(runs) >= RUNS_FOR_WARNINGS else WARNING - 1
    while level >= 0 and not is_complete([p for p, own in run.lines.items() if own <= level] for run in runs):
        level -= 1
    if level < 0:
        draft.left_out.append("text: each run has lines of its own at every level")
        return
    fewer = "" if level == WARNING else "; warnings vary, or the runs are too few for them"
    draft.add(("text", "level"), LEVELS[level], f"least level of {len(runs)} runs{fewer}")
    seen = Counter(pattern for run in runs for pattern in run.lines)
    for pattern in sorted(seen):
        draft.add(("text", "known", pattern), True, f"in {seen[pattern]} of {len(runs)} runs")


def _learn_parameters(runs: Sequence[_GoodRun], draft: ContractDraft) -> None:
    names = sorted(set.intersection(*(set(run.parameters) for run in runs)))
    varying = 0
    for name in names:
        values = [run.parameters[name] for run in runs]
        if all(is_same_value(value, values[0]) for value in values):
            draft.add(("parameters", name), values[0], f"in {len(runs)} of {len(runs)} runs")
        else:
            varying += 1
    if varying:
        draft.left_out.append(f"parameters: {varying} of {len(names)} differ between runs")


def _learn_topic(topic: str, runs: Sequence[_TopicRun], n: int, draft: ContractDraft) -> None:
    table = ("topics", topic)
    messages = [run.messages for run in runs]
    draft.notes[table] = f"in {len(runs)} of {n} runs; {seen_in(messages, 'messages')}"
    if len(runs) < n:
        draft.add((*table, "required"), False, f"in {len(runs)} of {n} runs")
    for key in ("type", "encoding"):
        names = sorted({getattr(run, key) for run in runs})
        draft.add((*table, key), names[0] if len(names) == 1 else names, f"in {len(runs)} runs")
    _learn_times(table, runs, draft)
    if len(runs) < 2:
        if n > 1:
            draft.left_out.append(f"{topic}: ranges, since it is in one run only")
        return
    for path in dict.fromkeys(path for run in runs for path in run.fields):
        fields = [run.fields[path] for run in runs if path in run.fields]
        if len(fields) == len(runs):
            _learn_field((*table, "values", path), fields, draft)


def _learn_times(table: Path, runs: Sequence[_TopicRun], draft: ContractDraft) -> None:
    """Learn rate, jitter, gaps, order and delay of a topic."""
    n, factor = len(runs), headroom(len(runs))
    periods = [run.period for run in runs if run.period is not None]
    gaps = [run.silence / SECOND for run in runs]
    if len(periods) == n:
        period = max(periods) / SECOND
        _learn_rate(table, runs, period, draft)
        if all(run.jitter is not None for run in runs):
            jitters = [(run.jitter or 0.0) / SECOND for run in runs]
            bound, margin = above(jitters, 0.5, 0.05 * period)
            draft.add((*table, "max_jitter"), outward(bound, margin, up=True), seen_in(jitters, "s, highest"))
        bound, margin = above(gaps, 0.3)
        draft.add(
            (*table, "max_gap"),
            outward(max(bound, GAP_FACTOR * period), period, True),
            seen_in(gaps, "s, longest"),
        )
    elif all(run.messages >= FREQUENT for run in runs):
        bound = max(gaps) * (1 + factor)
        draft.add((*table, "max_gap"), outward(bound, bound, up=True), seen_in(gaps, "s, longest"))
    if all(run.is_ordered for run in runs):
        draft.add((*table, "ordered"), True, f"in {n} of {n} runs")
    measured = [run.delay for run in runs if run.delay is not None]
    if n > 1 and len(measured) == n:
        middle = [delay[1] for delay in measured]
        if max(middle) - min(middle) > ALIGNED:
            draft.left_out.append(f"{table[1]}: delays, since the clock of its stamps is not that of the log")
            return
        extent = median(high - low for low, _, high in measured)
        for key, i, sign in (("min_delay", 0, -1), ("max_delay", 2, 1)):
            figures = [delay[i] / SECOND for delay in measured]
            margin = factor * (0.5 * extent / SECOND + apart(figures)) + 0.005
            extreme = max(figures) if sign > 0 else min(figures)
            draft.add(
                (*table, key),
                outward(extreme + sign * margin, margin, sign > 0),
                seen_in(figures, "s, highest" if sign > 0 else "s, lowest"),
            )


def _learn_rate(table: Path, runs: Sequence[_TopicRun], period: float, draft: ContractDraft) -> None:
    for seconds in RATE_WINDOWS:
        if seconds >= IN_WINDOW * period and all(seconds in run.rates for run in runs):
            break
    else:
        draft.left_out.append(f"{table[1]}: rates, since a run is too short for them")
        return
    factor = headroom(len(runs))
    slow, fast = ([run.rates[seconds][i] for run in runs] for i in (0, 1))
    margin = factor * (0.05 * min(slow) + apart(slow) / 2) + 1 / seconds
    # A rate that drops to nothing in good runs says nothing.
    if min(slow) - margin > 0:
        draft.add((*table, "window"), seconds, f"s: at least {IN_WINDOW} messages")
        draft.add(
            (*table, "min_rate"), outward(min(slow) - margin, margin, up=False), seen_in(slow, "Hz, lowest")
        )
        margin = factor * (0.05 * max(fast) + apart(fast) / 2) + 1 / seconds
        draft.add(
            (*table, "max_rate"), outward(max(fast) + margin, margin, up=True), seen_in(fast, "Hz, highest")
        )


def _learn_field(table: Path, runs: Sequence[_FieldRun], draft: ContractDraft) -> None:
    n = len(runs)
    if all(run.levels is not None for run in runs) and _is_named(runs):
        _learn_levels(table, runs, draft)
        return
    every = [run.modes[""] for run in runs if "" in run.modes]
    if len(every) < 2:
        return
    if not all(run.nan for run in runs) and not any(run.nan for run in runs):
        draft.add((*table, "nan"), False, f"in none of {n} runs")
    if all(run.only_rises_or_falls for run in runs):
        draft.left_out.append(f"{table[1]}.{table[3]}: its range, since it only rises or only falls")
        return
    wide = _learn_range(table, every, None, draft)
    if wide is None:
        return
    if all(run.is_moving for run in runs) and not table[3].endswith("[]"):
        longest = [run.still for run in runs]
        bound = max(STILL, math.ceil(2 * max(longest) * headroom(n)))
        draft.add((*table, "max_still"), bound, seen_in(longest, "s, longest"))
    for mode in sorted({mode for run in runs for mode in run.modes if mode}):
        figures = [run.modes[mode] for run in runs if mode in run.modes]
        if len(figures) > 1 and sum(f.seconds for f in figures) >= IN_MODE:
            _learn_range((*table, "modes", mode), figures, wide, draft)


def _is_named(runs: Sequence[_FieldRun]) -> bool:
    """Return whether a field with few whole values names something: it seldom changes."""
    for run in runs:
        if run.pairs is None or run.levels is None or "" not in run.modes:
            return False
    return len({level for run in runs for level in run.levels or ()}) <= 8 or not any(
        run.is_moving for run in runs
    )


def _learn_levels(table: Path, runs: Sequence[_FieldRun], draft: ContractDraft) -> None:
    levels = sorted({level for run in runs for level in run.levels or ()})
    if all(run.is_scale for run in runs):
        # Such as gears: their order says more than what a few runs have of them.
        margin = headroom(len(runs)) * 0.1 * (levels[-1] - levels[0])
        ends = [[end(run.levels or levels) for run in runs] for end in (min, max)]
        beyond = [max(1, math.ceil(margin + headroom(len(runs)) * apart(figures))) for figures in ends]
        draft.add((*table, "min"), levels[0] - beyond[0], seen_in(ends[0], "lowest"))
        draft.add((*table, "max"), levels[-1] + beyond[1], seen_in(ends[1], "highest"))
        draft.add((*table, "max_step"), 1, f"all changes of {len(runs)} runs are by one")
        return
    if not is_complete(run.levels or () for run in runs):
        draft.left_out.append(f"{table[1]}.{table[3]}: its values, since one of them is in one run only")
        return
    draft.add((*table, "one_of"), levels, f"values of {len(runs)} runs")
    pairs = [run.pairs or frozenset() for run in runs]
    if len(levels) > 2 and is_complete(pairs):
        every = sorted(frozenset().union(*pairs))
        draft.add((*table, "changes"), [f"{a} -> {b}" for a, b in every], f"changes of {len(runs)} runs")


def _learn_range(
    table: Path, runs: Sequence[_Figures], wide: Mapping[str, float] | None, draft: ContractDraft
) -> dict[str, float] | None:
    """Learn and return the bounds of a field in the whole log, or in one mode where they are narrower than *wide*."""
    name = table[3]
    numbers = [value for f in runs for value in (f.low, f.high, f.mean_low, f.mean_high, f.spread)]
    if not np.isfinite(numbers).all():
        draft.left_out.append(f"{table[1]}.{name}: its range, since it has infinite values")
        return None
    factor, is_list = headroom(len(runs)), name.endswith("[]")
    extent = median(f.high - f.low for f in runs)
    if wide is None and not extent and max(f.high for f in runs) == min(f.low for f in runs):
        draft.left_out.append(f"{table[1]}.{name}: its range, since it is the same in all runs")
        return None
    bounds: dict[str, float] = {}
    texts: dict[str, tuple[Digits, str]] = {}

    def side(key: str, figures: list[float], span: float, up: bool, what: str) -> None:
        # Numbers of 32 bits are shown with fewer digits than they have.
        margin = max(factor * (0.1 * span + apart(figures)), 1e-6 * max(map(abs, figures)))
        bounds[key] = max(figures) + margin if up else min(figures) - margin
        texts[key] = outward(bounds[key], margin, up), seen_in(figures, what)

    side("min", [f.low for f in runs], extent, False, "lowest")
    side("max", [f.high for f in runs], extent, True, "highest")
    wraps = bool(_ANGLE.search(name)) or _is_circle(min(f.low for f in runs), max(f.high for f in runs))
    if not is_list and not wraps:
        # The farthest mean of a run depends on its noise, which the range of values shows.
        span = median(f.mean_high - f.mean_low for f in runs) + extent / 2
        side("min_mean", [f.mean_low for f in runs], span, False, "lowest mean over 1 s")
        side("max_mean", [f.mean_high for f in runs], span, True, "highest mean over 1 s")
        for key, figures, share in (
            ("max_std", [f.spread for f in runs], 0.25),
            ("max_step", [f.step for f in runs], 0.4),
        ):
            if key == "max_step" and any(f.step > JUMPY * f.usual_step for f in runs):
                continue
            bounds[key], margin = above(figures, share)
            if bounds[key] > 0:
                what = "highest deviation within 1 s" if key == "max_std" else "greatest step"
                texts[key] = outward(bounds[key], margin, up=True), seen_in(figures, what)
    for key in _worth_stating(bounds, wide):
        if key in texts:
            draft.add((*table, key), texts[key][0], texts[key][1])
    return bounds


def _worth_stating(bounds: Mapping[str, float], wide: Mapping[str, float] | None) -> Iterator[str]:
    """Yield the bounds that are narrower than those that hold anyway."""
    outer = bounds if wide is None else wide
    extent = outer["max"] - outer["min"]
    if wide is None or bounds["max"] - bounds["min"] < NARROWER * extent:
        yield from ("min", "max")
        extent = bounds["max"] - bounds["min"]
    if wide is not None and "min_mean" in wide:
        extent = min(extent, wide["max_mean"] - wide["min_mean"])
    if "min_mean" in bounds and bounds["max_mean"] - bounds["min_mean"] < NARROWER * extent:
        yield from ("min_mean", "max_mean")
    for key in ("max_std", "max_step"):
        if key in bounds and (wide is None or bounds[key] < NARROWER * wide.get(key, math.inf)):
            yield key


def _is_circle(low: float, high: float) -> bool:
    """Return whether values between these fill a circle, in rad or degrees, so that they may wrap."""
    return any(
        first * 1.01 <= low and high <= last * 1.01 and high - low > 0.6 * (last - first)
        for first, last in ((-math.pi, math.pi), (0.0, 2 * math.pi), (-180.0, 180.0), (0.0, 360.0))
    )


def learn_contract(
    logs: Openable | Log | Iterable[Openable | Log],
    *,
    topics: str | Iterable[str] | None = None,
    exclude: str | Iterable[str] = (),
    update: str | os.PathLike[str] | None = None,
    definitions: Definitions = (),
) -> LearnedContract:
    """Learn from good logs what they have in common: a contract for ``logreel.check``.

    logs    open Logs, or what ``logreel.open`` takes; a folder or pattern means the logs in it
    topics, exclude  only about these channels: names or shell patterns
    update  a contract that was learned before: what a person changed, added or put behind a # in it is kept
    definitions  as for ``logreel.open``

    Bounds have a headroom that shrinks with the number of runs; see the page of contracts. From one run no ranges are
    learned. Raises what ``logreel.open`` raises, and UsageError without logs or for a contract that cannot be read.
    """
    old_text = ""
    if update is not None:
        read_contract(update)
        with open(update, encoding="utf-8") as file:
            old_text = file.read()
    runs, selection = [], Selection(topics, exclude)
    for what in _each(logs):
        with (
            as_open_log(what, () if isinstance(what, Log) else definitions) as log,
            selected_log(log, selection) as part,
        ):
            runs.append(_run(part))
    if not runs:
        raise UsageError("a contract is learned from at least one log")
    draft = _learn(runs)
    text = written(draft, old_text)
    kept = [".".join(path) for path, line in old_lines(old_text)[0].items() if line.is_kept]
    return LearnedContract(tuple(run.name for run in runs), text, tuple(draft.left_out), tuple(kept))


def _each(logs: Openable | Log | Iterable[Openable | Log]) -> Iterator[Openable | Log]:
    if isinstance(logs, str | os.PathLike):
        yield from expand([os.fspath(logs)])
    elif isinstance(logs, list | tuple | Iterator):
        for inner in logs:
            yield from _each(inner)
    else:
        yield cast("Openable | Log", logs)
