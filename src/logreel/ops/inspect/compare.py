"""Comparison of two runs: what begins to differ when, by how much, and in which state; ``diff`` compares files.

A run is compared with one other run only, which does not tell how much good runs differ. So a deviation has to leave
what the first run did in the same state by as much again as it varied there, and by a share of its size. What is
smaller, and what the first run hardly shows, is not assessed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import asdict, dataclass
from logreel.errors import LogError
from logreel.io.arrays import F64, I64
from logreel.log.log import Channel, Log
from logreel.log.scan import Block, Tabular, is_same_value
from logreel.log.times import SECOND, duration_text
from logreel.log.topic_match import match_topics
from logreel.meaning.charts import bands
from logreel.meaning.gaps import regular_times
from logreel.ops.inspect.anchors import Align, anchor, shared_anchor
from logreel.ops.inspect.contract_file import headroom
from logreel.ops.inspect.learn import (
    ALIGNED,
    LIVE,
    LIVE_MESSAGES,
    NEAR_HEADROOM,
    STILL,
    FieldName,
    measured_fields,
    near_fields,
)
from logreel.ops.inspect.windows import (
    BLOCK,
    LAG_STEP,
    WINDOW,
    Delays,
    FieldWindows,
    States,
    block_medians,
    cohens_d,
    delays,
    difference,
    drift_begin,
    goes_by_one,
    in_order,
    independent,
    kolmogorov_smirnov,
    lag_of,
    silences,
    still_runs,
    text_patterns,
    values_between,
    wasserstein,
)
from logreel.registry.open import as_open_log, read_itself

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.joined_log import Openable

#: Least windows of a state in each run, below which it is not assessed.
LEAST_A, LEAST_B = 5, 3
#: How far a figure has to leave what the first run showed: by its range there times a headroom that is less the more
#: independent values there are, and by shares of the extent of the field and of its level.
EXTENT, LEVEL = 0.15, 0.12
#: How often the greatest step of all of the first run has to be exceeded, and by what share of the extent.
STEP, STEP_EXTENT = 3.0, 0.2
#: Independent values of a state from which on what it shows is compared alone.
INDEPENDENT = 8
#: How often the greatest standard deviation within a second has to be exceeded, and by what share of the extent.
SPREAD, SPREAD_EXTENT = 3.0, 0.1
#: Share of the messages of a second that have another value than the one before, in a field that always moves.
MOVING = 0.75
#: Fields of the first run whose means over a second differ by no more than this share of their extent stay near each
#: other; their distance has to be exceeded as that of a contract of one run, and by what rounding does.
NEAR, APART, ROUNDING = 0.05, 1 + NEAR_HEADROOM * headroom(1), 1e-5
#: Windows one after another that leave the bound; a single level counts if it leaves it by as many margins.
IN_A_ROW, ALONE = 2, 1.0
#: How much longer a step, or a gap, is than that of the first run, and a gap than the usual step.
SLOWER, GAP, GAP_STEPS = 1.15, 3.0, 5
#: How many times the jitter and the range of delays are exceeded, and the least difference of delays, ns.
JITTER, LATER = 4.0, 5_000_000
#: Time after an onset whose values are compared with those of the first run, ns.
EFFECT = 20 * SECOND
#: Topics that have one lag, at least, and fields of a topic whose lags have to agree.
LAG_TOPICS, LAG_FIELDS = 3, 4
#: A lag that differs from that of the other topics by more than this, ns.
LAG = SECOND // 4
ERROR = 3
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Deviation:
    """Something in which the second run differs from the first.

    topic     the channel; empty for what concerns the whole run
    field     path of the field; empty for the topic as a whole
    state     mode of the robot in which it differs; empty without one
    what      ``level``, ``spread``, ``step``, ``still``, ``near``, ``nan``, ``rate``, ``gap``, ``jitter``, ``order``,
              ``delay``, ``lag``, ``topic``, ``state``, ``text`` or ``parameter``
    onset_ns  when it begins, ns of the clock of the second run; None: no moment
    text      one sentence for people
    effect    by how many margins it leaves the first run, or how many times a figure is that of the first run
    cohens_d  difference of the means from the onset on, in standard deviations; None without values
    ks        greatest distance of the distributions (Kolmogorov and Smirnov), 0 to 1
    wasserstein  mean distance of the distributions (earth mover's), in the unit of the field
    """

    topic: str
    field: str
    state: str
    what: str
    onset_ns: int | None
    text: str
    effect: float | None = None
    cohens_d: float | None = None
    ks: float | None = None
    wasserstein: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the deviation as plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Tabular):
    """What begins to differ between two runs; ``logreel.compare`` returns it.

    a, b       names of the logs: the reference, and the run that is compared with it
    align      which moments are laid over each other: ``start``, ``arming`` or ``utc``
    a_zero_ns, b_zero_ns  these moments, ns of the clock of each log
    deviations   by their onset; those without one come last
    not_assessed  what could not be compared, and why
    notes      parameters with other values that the vehicle sets by itself
    """

    a: str
    b: str
    align: str
    a_zero_ns: int
    b_zero_ns: int
    deviations: tuple[Deviation, ...]
    not_assessed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return not self.deviations

    def seconds(self, time_ns: int) -> float:
        """Return a time of the second run in seconds since the moment that is laid over that of the first."""
        return (time_ns - self.b_zero_ns) / SECOND

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON data of ``compare --json``."""
        return {
            **asdict(self),
            "same": self.same,
            "deviations": [deviation.as_dict() for deviation in self.deviations],
        }

    def _blocks(self) -> Iterator[Block]:
        count = len(self.deviations)
        told = f"{count} deviation{'s' * (count != 1)}" if count else "nothing differs"
        head = ("onset", "topic", "field", "state", "what differs") if count else ()
        yield Block(
            f"{self.b} beside {self.a}: {told}", head, [self._row(deviation) for deviation in self.deviations]
        )

    def _row(self, deviation: Deviation) -> tuple[str, ...]:
        at = "" if deviation.onset_ns is None else f"{self.seconds(deviation.onset_ns):.2f} s"
        return at, deviation.topic, deviation.field, deviation.state, deviation.text


def compare(
    a: Openable | Log,
    b: Openable | Log,
    *,
    align: Align | None = None,
    topics: str | Iterable[str] | None = None,
    exclude: str | Iterable[str] = (),
    definitions: Definitions = (),
) -> Comparison:
    """Return what begins to differ in run *b* from run *a*, first onset first.

    a, b             open Logs, or anything that ``logreel.open`` takes
    align            ``start``, ``arming`` or ``utc``: the moments that are laid over each other; None: arming where
                     both logs tell it, else the start
    topics, exclude  channels that are compared
    definitions      as for ``logreel.open``

    Compares topics, their rates, gaps, jitter, order and delays; values in each state: level, spread, standstill; the
    states and their order, new errors in the text, and topics that lag behind the others. Raises UsageError for an
    *align* that a log does not tell.
    """
    with as_open_log(a, definitions) as first, as_open_log(b, definitions) as second:
        return _compared(read_itself(first), read_itself(second), align, topics, exclude)


def _compared(
    a: Log, b: Log, align: Align | None, topics: str | Iterable[str] | None, exclude: str | Iterable[str]
) -> Comparison:
    how: Align = align if align is not None else shared_anchor(a, b)
    zeros = anchor(a, how), anchor(b, how)
    runs = _Runs(a, b)
    wanted = _wanted(a, b, topics, exclude)
    told: list[Deviation] = []
    for topic in wanted:
        in_a, in_b = (topic in log.channels and len(log[topic]) > 0 for log in (a, b))
        if in_a and in_b:
            told += _topic(a[topic], b[topic], runs)
        elif in_a:
            told.append(Deviation(topic, "", "", "topic", b.start, "no messages of this topic"))
        elif in_b:
            text = "a topic that the first run does not have"
            told.append(Deviation(topic, "", "", "topic", b[topic].start, text))
    told += [*_near(a, b, runs), *_states(a, b), *_texts(a, b), *_parameters(a, b)]
    shared = [topic for topic in wanted if topic in runs.moving]
    told += _lags(a, b, zeros, {topic: runs.moving[topic] for topic in shared})
    told.sort(
        key=lambda deviation: (
            deviation.what != "order",
            deviation.onset_ns is None,
            deviation.onset_ns or 0,
            deviation.topic,
            deviation.field,
        )
    )
    return Comparison(
        a.name, b.name, how, *zeros, tuple(told), tuple(runs.not_assessed()), tuple(_own_parameters(a, b))
    )


def _wanted(a: Log, b: Log, topics: str | Iterable[str] | None, exclude: str | Iterable[str]) -> list[str]:
    """Return the topics of both logs that are compared; raises TopicError if a name is in neither."""
    names: dict[str, None] = {}
    errors: list[LogError] = []
    for log in (a, b):
        try:
            names.update(dict.fromkeys(ch.topic for ch in log.match(topics)))
        except LogError as error:
            errors.append(error)
    if len(errors) == 2:
        raise errors[0]
    for pattern in [exclude] if isinstance(exclude, str) else exclude:
        for log in (a, b):
            try:
                for name in match_topics(log.channels, pattern):
                    names.pop(name, None)
            except LogError:
                continue
    return [name for name in names if name[:1] != "~"]


class _Runs:
    """States of both runs, what moves in their topics, and what could not be compared."""

    def __init__(self, a: Log, b: Log) -> None:
        self.states = States(a), States(b)
        #: By topic the fields that move, the one that moves most first.
        self.moving: dict[str, list[str]] = {}
        #: Fields of both runs that rise and fall.
        self.fields: tuple[dict[FieldName, FieldWindows], dict[FieldName, FieldWindows]] = {}, {}
        self._short: dict[str, set[str]] = {}
        self._other: dict[str, None] = {}

    def short(self, state: str, topic: str) -> None:
        """Note that the first or second run shows too little of a topic in a state."""
        self._short.setdefault(state, set()).add(topic)

    def note(self, text: str) -> None:
        """Note something else that could not be compared."""
        self._other[text] = None

    def not_assessed(self) -> Iterator[str]:
        """Yield a sentence for each state, and for all else."""
        for state, topics in self._short.items():
            where = f"values in the state {state}" if state else "values"
            count = f"{len(topics)} topic{'s' * (len(topics) > 1)}"
            yield f"{where} of {count}: fewer than {LEAST_A} s in the first run, or {LEAST_B} s in the second"
        yield from self._other


# ------------------------------------------------------------------------------------------------------ topics


def _topic(a: Channel, b: Channel, runs: _Runs) -> Iterator[Deviation]:
    if a.schema.name != b.schema.name:
        text = f"its type is {b.schema.name}, not {a.schema.name}"
        yield Deviation(b.topic, "", "", "topic", b.start, text)
    yield from _times(a, b)
    yield from _delays(a, b, runs)
    try:
        zeros = [log.start or 0 for log in (a.log, b.log)]
        of_a, of_b = (
            {f.path: f for f in measured_fields(ch, zero)} for ch, zero in zip((a, b), zeros, strict=True)
        )
    except LogError as error:
        runs.note(f"values of {a.topic}: {error.text}")
        return
    shares = {}
    for path, field in of_a.items():
        if path in of_b:
            yield from _field(b, field, of_b[path], runs)
            # When a state changes is what its own deviation tells.
            shares[path] = _moving_share(field) if field.levels is None else 0.0
    for own, windows in zip(runs.fields, (of_a, of_b), strict=True):
        own.update({(a.topic, path): field for path, field in windows.items() if field.rises and field.falls})
    moving = [path for path in sorted(shares, key=lambda path: -shares[path]) if shares[path] > 0]
    if moving:
        runs.moving[a.topic] = moving[:LAG_FIELDS]


def _moving_share(field: FieldWindows) -> float:
    """Return how much of the variation of a field is between seconds rather than within them, 0 to 1."""
    known = field.count > 0
    if int(known.sum()) < LEAST_A or field.path.endswith("[]"):
        return 0.0
    between, within = float(np.var(field.mean[known])), float(np.mean(field.spread[known] ** 2))
    return between / (between + within) if between > 0 else 0.0


def _times(a: Channel, b: Channel) -> Iterator[Deviation]:
    """Yield deviations of the times of a topic: order, rate, jitter, gaps."""
    back = np.flatnonzero(b.times[1:] < b.times[:-1])
    if len(back) and not bool((a.times[1:] < a.times[:-1]).any()):
        text = (
            f"{len(back)} message{'s have' * (len(back) > 1) or ' has'} an earlier time than the one before"
        )
        yield Deviation(b.topic, "", "", "order", int(b.times[back[0]]), text)
    of_a, of_b = in_order(a.times), in_order(b.times)
    regular = regular_times(of_a)
    if regular is None or len(of_b) < 2:
        return
    longest = max(GAP * float(silences(a)[1].max(initial=0)), GAP_STEPS * regular.period)
    starts, steps = silences(b)
    long = np.flatnonzero(steps > longest)
    if len(long):
        worst = int(steps[long].max())
        text = f"silent for {duration_text(worst)}, never longer than {duration_text(int(silences(a)[1].max()))} before"
        yield Deviation(b.topic, "", "", "gap", int(starts[long[0]]), text, worst / (longest / GAP))
    yield from _steps(b, of_a, of_b)


def _steps(b: Channel, of_a: I64, of_b: I64) -> Iterator[Deviation]:
    """Yield deviations of rate and jitter, over blocks of messages."""
    steps_a, steps_b = (np.diff(times).astype(np.float64) for times in (of_a, of_b))
    blocks_a, blocks_b = block_medians(steps_a), block_medians(steps_b)
    if not len(blocks_a) or not len(blocks_b):
        return
    period = float(np.median(blocks_a))
    yield from _jitter(b, steps_a, steps_b, of_b, period)
    for odd, text in (
        (blocks_b > SLOWER * float(blocks_a.max()), "slower"),
        (blocks_b < float(blocks_a.min()) / SLOWER, "faster"),
    ):
        if int(odd.sum()) >= IN_A_ROW:
            first = int(np.argmax(odd)) * BLOCK
            usual = float(np.median(blocks_b[odd]))
            told = f"{text}: {SECOND / usual:.4g} Hz, {SECOND / period:.4g} Hz before"
            yield Deviation(
                b.topic, "", "", "rate", int(of_b[first]), told, max(usual / period, period / usual)
            )
            return


def _jitter(b: Channel, steps_a: F64, steps_b: F64, of_b: I64, period: float) -> Iterator[Deviation]:
    """Yield a deviation if steps vary around the usual one of their block, whatever the rate."""
    around_a, around_b = (
        block_medians(np.abs(steps[: len(usual) * BLOCK] - np.repeat(usual, BLOCK)))
        for steps in (steps_a, steps_b)
        for usual in (block_medians(steps),)
    )
    bound = JITTER * float(around_a.max()) + 0.05 * period
    odd = around_b > bound
    if int(odd.sum()) >= IN_A_ROW:
        text = f"steps vary by {duration_text(int(around_b[odd].max()))}, {duration_text(int(around_a.max()))} before"
        yield Deviation(
            b.topic, "", "", "jitter", int(of_b[int(np.argmax(odd)) * BLOCK]), text,
            float(around_b[odd].max() / max(float(around_a.max()), 1.0)),
        )  # fmt: skip


def _delays(a: Channel, b: Channel, runs: _Runs) -> Iterator[Deviation]:
    """Yield a deviation of the time between the stamp in a message and its logging."""
    late: list[Delays | None] = [delays(ch) for ch in (a, b)]
    if late[0] is None or late[1] is None or not len(late[0].delay) or not len(late[1].delay):
        return
    of_a, of_b = late[0].delay, late[1].delay
    if abs(float(np.median(of_a)) - float(of_b[0])) > ALIGNED:
        runs.note(f"delays of {a.topic}: its stamps are of a clock that nothing aligns with that of the log")
        return
    margin = max(float(np.ptp(of_a)), LATER)
    odd = (of_b > float(of_a.max()) + margin) | (of_b < float(of_a.min()) - margin)
    if odd.any():
        first = int(np.argmax(odd))
        worst = of_b[odd][int(np.argmax(np.abs(of_b[odd] - np.median(of_a))))]
        usual = float(np.median(of_a))
        text = f"logged {duration_text(int(worst))} after its stamp, {duration_text(int(usual))} before"
        yield Deviation(
            b.topic, "", "", "delay", int(late[1].begin[first]), text, abs(float(worst) - usual) / margin
        )


# ------------------------------------------------------------------------------------------------------ values


def _field(b: Channel, of_a: FieldWindows, of_b: FieldWindows, runs: _Runs) -> Iterator[Deviation]:
    """Yield the first deviation of the values of a field, in the state in which it begins."""
    nan = int(of_b.nan.sum())
    if nan and not of_a.nan.any():
        first = int(np.argmax(of_b.nan > 0))
        yield Deviation(b.topic, of_b.path, "", "nan", _time(b, of_b, first), f"{nan} values are NaN")
    yield from _standstill(b, of_a, of_b)
    if of_a.levels is not None and len(of_a.levels) < 3:
        # A flag: it has two values, and what they mean is told by states.
        return
    yield from _step(b, of_a, of_b)
    earliest: Deviation | None = None
    for state, in_a, in_b in _by_state(b.topic, of_a, of_b, runs):
        for deviation in _leaves(b, of_a, of_b, in_a, in_b, state):
            if earliest is None or (deviation.onset_ns or 0) < (earliest.onset_ns or 0):
                earliest = deviation
    if earliest is not None:
        yield _with_distances(earliest, of_a, of_b, b, runs)


def _step(b: Channel, of_a: FieldWindows, of_b: FieldWindows) -> Iterator[Deviation]:
    """Yield a deviation if a value changes from one message to the next as it never does in the first run."""
    known = of_a.count > 0
    if (of_a.levels is not None and not goes_by_one(of_a)) or int(known.sum()) < LEAST_A:
        return
    extent = float(np.nanmax(of_a.high[known]) - np.nanmin(of_a.low[known]))
    before = float(of_a.step[known].max())
    bound = STEP * before + STEP_EXTENT * extent
    far = np.flatnonzero(of_b.step > bound)
    if bound > 0 and len(far):
        start = _time(b, of_b, int(far[0]))
        times, values = values_between(b, of_b.path, start - WINDOW, start + WINDOW)
        with np.errstate(invalid="ignore"):
            steps = np.abs(np.diff(values)) > bound
        onset = int(times[1 + np.argmax(steps)]) if steps.any() else start
        worst = float(of_b.step[far].max())
        text = f"changes from one message to the next by {worst:.6g}, by {before:.6g} at most before"
        yield Deviation(b.topic, of_b.path, "", "step", onset, text, worst / max(before, 1e-300))


def _by_state(
    topic: str, of_a: FieldWindows, of_b: FieldWindows, runs: _Runs
) -> Iterator[tuple[str, Mask, Mask]]:
    """Yield each state with the windows of both runs that belong to it; an empty name if there are no states."""
    has_a, has_b = of_a.count > 0, of_b.count > 0
    a_states, b_states = runs.states
    names = [name for name in a_states.names if name in b_states.names]
    if not a_states.names and not b_states.names:
        masks = [("", has_a, has_b)]
    else:
        code_a, code_b = a_states.of(of_a.number), b_states.of(of_b.number)
        masks = [
            (
                name,
                has_a & (code_a == a_states.names.index(name)),
                has_b & (code_b == b_states.names.index(name)),
            )
            for name in names
        ]
    for name, in_a, in_b in masks:
        if int(in_a.sum()) < LEAST_A or int(in_b.sum()) < LEAST_B:
            runs.short(name, topic)
        else:
            yield name, in_a, in_b


#: Figures of a window, and whether they may go down too far, or up.
_SIDES: tuple[tuple[str, bool], ...] = (("mean", False), ("mean", True), ("high", False), ("low", True))


def _leaves(
    b: Channel, of_a: FieldWindows, of_b: FieldWindows, in_a: Mask, in_b: Mask, state: str
) -> Iterator[Deviation]:
    """Yield deviations of the level and the spread of a field in one state."""
    known = of_a.count > 0
    extent = float(np.nanmax(of_a.high[known]) - np.nanmin(of_a.low[known]))
    level = float(np.median(np.abs(of_a.mean[in_a])))
    for name, is_low in _SIDES:
        first, second = getattr(of_a, name)[in_a], getattr(of_b, name)
        if not np.isfinite(first).all():
            continue
        worth = independent(first)
        if worth < INDEPENDENT:
            # What the state shows is a part of a slow course: only what all of the run shows bounds it.
            first = getattr(of_a, name)[known]
        margin = max(
            headroom(worth) * float(np.ptp(getattr(of_a, name)[in_a])), EXTENT * extent, LEVEL * level
        )
        if not margin > 0:
            margin = abs(level) or 1e-9
        bound = float(first.min() - margin if is_low else first.max() + margin)
        with np.errstate(invalid="ignore"):
            beyond = np.where(in_b, (bound - second if is_low else second - bound) / margin, -1.0)
        start = _first_run(beyond, of_b.number)
        if start is not None:
            worst = float(np.nanmin(second[in_b]) if is_low else np.nanmax(second[in_b]))
            before = float(first.min() if is_low else first.max())
            what = "has a mean" if name == "mean" else "goes"
            side = "down to" if is_low else "up to"
            text = f"{what} {side} {worst:.6g}, {before:.6g} before"
            onset = _sample_beyond(b, of_b, start, bound, is_low) if name != "mean" else _time(b, of_b, start)
            if (drift := drift_begin(of_b.number, of_b.mean, start)) is not None:
                onset = min(onset, (b.log.start or 0) + round(drift * SECOND))
            yield Deviation(b.topic, of_b.path, state, "level", onset, text, 1 + float(np.nanmax(beyond)))
    yield from _spread(b, of_a, of_b, in_a, in_b, state, extent)


def _spread(
    b: Channel, of_a: FieldWindows, of_b: FieldWindows, in_a: Mask, in_b: Mask, state: str, extent: float
) -> Iterator[Deviation]:
    before = of_a.spread[in_a & (of_a.count >= LIVE_MESSAGES)]
    if len(before) < LEAST_A:
        return
    most = float(before.max())
    enough = in_b & (of_b.count >= LIVE_MESSAGES)
    bound = SPREAD * most + SPREAD_EXTENT * extent
    beyond = (
        np.where(enough, of_b.spread / max(bound, 1e-300) - 1, -1.0)
        if bound > 0
        else np.full(len(enough), -1.0)
    )
    # A single second with a step in it says nothing about the noise.
    start = _first_run(beyond, of_b.number, np.inf)
    if start is not None:
        worst = float(of_b.spread[enough].max())
        text = f"varies within a second by {worst:.6g}, by {most:.6g} before"
        yield Deviation(
            b.topic, of_b.path, state, "spread", _time(b, of_b, start), text, worst / max(most, 1e-300)
        )


def _first_run(beyond: F64, number: I64, alone: float = ALONE) -> int | None:
    """Return the first window that leaves a bound and is not alone in that, or leaves it far; None if none does.

    beyond  float64[w]: by how many margins a window leaves the bound, negative inside
    alone   margins from which on a single window counts
    """
    out = np.flatnonzero(beyond > 0)
    for place in out.tolist():
        if beyond[place] >= alone:
            return int(place)
        row = [n for n in range(place, min(place + IN_A_ROW, len(beyond))) if beyond[n] > 0]
        if len(row) == IN_A_ROW and int(number[row[-1]] - number[place]) == IN_A_ROW - 1:
            return int(place)
    return None


def _standstill(b: Channel, of_a: FieldWindows, of_b: FieldWindows) -> Iterator[Deviation]:
    """Yield a deviation if a field that always moves stands still."""
    enough = of_a.count >= LIVE_MESSAGES
    if not enough.any() or float((of_a.moves[enough] > 0).mean()) < LIVE:
        return
    longest = max((last - first + 1 for first, last in still_runs(of_a)), default=0)
    # Where each message has another value, a limited signal stands still from one limit to the other.
    always_moves = bool((of_a.moves[enough] > MOVING * of_a.count[enough]).all())
    allowed = 1 - MOVING if always_moves else 0.0
    runs = [run for run in still_runs(of_b, allowed) if run[1] - run[0] + 1 > max(STILL, 2 * longest)]
    if runs:
        first = runs[0][0]
        most = max(last - first + 1 for first, last in runs)
        start = _time(b, of_b, first)
        times, values = values_between(b, of_b.path, start - 2 * WINDOW, start + WINDOW)
        onset = _stands_from(times, values, int(of_b.count[first]) // 2 if allowed else 1, start)
        text = f"stays the same for {most} s, for {longest} s at most before"
        yield Deviation(b.topic, of_b.path, "", "still", onset, text, most / max(longest, 1))


def _stands_from(times: I64, values: F64, least: int, start: int) -> int:
    """Return the time of the last value behind *least* values in a row that differ from the one before each."""
    changes = (np.diff(values) != 0).astype(np.int64)
    if len(changes) < least or least < 1:
        return start
    in_a_row = np.flatnonzero(np.convolve(changes, np.ones(least, np.int64), "valid") == least)
    return int(times[in_a_row[-1] + least]) if len(in_a_row) else start


def _time(ch: Channel, field: FieldWindows, window: int) -> int:
    return (ch.log.start or 0) + int(field.number[window]) * WINDOW


def _sample_beyond(b: Channel, field: FieldWindows, window: int, bound: float, is_low: bool) -> int:
    """Return the time of the first value in a window that is beyond a bound."""
    start = _time(b, field, window)
    times, values = values_between(b, field.path, start, start + WINDOW)
    with np.errstate(invalid="ignore"):
        outside = values < bound if is_low else values > bound
    return int(times[np.argmax(outside)]) if outside.any() else start


# ------------------------------------------------------------------------------------------------------ distances


def _with_distances(
    deviation: Deviation, of_a: FieldWindows, of_b: FieldWindows, b: Channel, runs: _Runs
) -> Deviation:
    """Return a deviation with the distances of the windows' means from the onset on from those of the first run."""
    a_states, b_states = runs.states
    in_a, in_b = of_a.count > 0, of_b.count > 0
    if deviation.state:
        in_a &= a_states.of(of_a.number) == a_states.names.index(deviation.state)
        in_b &= b_states.of(of_b.number) == b_states.names.index(deviation.state)
    first = ((deviation.onset_ns or 0) - (b.log.start or 0)) // WINDOW
    in_b &= (of_b.number >= first) & (of_b.number <= first + EFFECT // WINDOW)
    figure = "spread" if deviation.what == "spread" else "mean"
    before, after = getattr(of_a, figure)[in_a], getattr(of_b, figure)[in_b]
    if len(before) < 2 or len(after) < 2:
        return deviation
    values = asdict(deviation) | {
        "cohens_d": cohens_d(before, after),
        "ks": kolmogorov_smirnov(before, after),
        "wasserstein": wasserstein(before, after),
    }
    return Deviation(**values)


# ------------------------------------------------------------------------------------------------------ the whole run


def _mode_order(log: Log) -> list[tuple[str, int]]:
    """Return label and start of each mode, in order."""
    return [(band.label, band.start) for band in bands(log) if band.kind == "mode"]


def _states(a: Log, b: Log) -> Iterator[Deviation]:
    """Yield deviations of the modes: those that the first run does not have, and changes that it does not have."""
    of_a, of_b = _mode_order(a), _mode_order(b)
    known = {label for label, _ in of_a}
    if not known:
        return
    changes = {(before[0], after[0]) for before, after in pairwise(of_a)}
    previous = ""
    for label, start in of_b:
        if label not in known:
            yield Deviation(
                "", "", label, "state", start, f"the mode {label}, which the first run does not have"
            )
        elif previous in known and (previous, label) not in changes:
            text = f"a change from {previous} to {label}, which the first run does not have"
            yield Deviation("", "", label, "state", start, text)
        previous = label
    missing = known - {label for label, _ in of_b}
    for label in sorted(missing):
        yield Deviation("", "", label, "state", None, f"the mode {label} does not occur")


def _texts(a: Log, b: Log) -> Iterator[Deviation]:
    """Yield a deviation for each pattern of an error that the first run does not have."""
    known = {pattern for pattern, _, _ in text_patterns(a, ERROR)}
    for pattern, _, time in text_patterns(b, ERROR):
        if pattern not in known:
            known.add(pattern)
            yield Deviation("", "", "", "text", time, f"an error that the first run does not have: {pattern}")


#: Parameters that a vehicle sets by itself: calibrations, counters of flights and of time, what was measured at boot.
_OWN = re.compile(
    r"CAL_|STAT_|LND_FLIGHT_T|COM_FLIGHT_UUID|SENS_BOARD_[XYZ]_OFF|TC_|TRIM_|EK\dF?_.*_BIAS"
    r"|INS_(GYR|ACC)\d?(OFFS|SCAL|_CALTEMP)|INS_\w+_ID|COMPASS_(OFS|DIA|ODI|MOT|DEV_ID|PRIO)|BARO\d?_(GND|DEVID)"
    r"|GND_(ABS|ALT|TEMP)|AHRS_TRIM|SYS_NUM_RESETS|FORMAT_VERSION|\w+_(DEVID|DEV_ID)$"
)


def _parameters(a: Log, b: Log) -> Iterator[Deviation]:
    """Yield a deviation for each setting with another value at the start, or one that only the second run changes."""
    of_a = a.parameters
    for name, parameter in b.parameters.items():
        if name not in of_a or _OWN.match(name):
            continue
        other = of_a[name]
        if not is_same_value(parameter.value, other.value):
            text = f"the parameter {name} is {parameter.value!r}, {other.value!r} before"
            yield Deviation("", name, "", "parameter", b.start, text)
            continue
        known = [other.value, *(change.value for change in other.real_changes)]
        for change in parameter.real_changes:
            if not any(is_same_value(change.value, value) for value in known):
                text = f"the parameter {name} changes to {change.value!r}, which it is not in the first run"
                yield Deviation("", name, "", "parameter", change.time, text)
                break


def _own_parameters(a: Log, b: Log) -> Iterator[str]:
    """Yield a sentence on parameters with other values that a vehicle sets by itself."""
    of_a, of_b = a.parameters, b.parameters
    names = [
        name
        for name in of_a
        if name in of_b and _OWN.match(name) and not is_same_value(of_a[name].value, of_b[name].value)
    ]
    if names:
        shown = ", ".join(f"{name} {of_a[name].value!r} → {of_b[name].value!r}" for name in names[:5])
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        yield f"parameters with other values that the vehicle sets by itself: {shown}{more}"


def _near(a: Log, b: Log, runs: _Runs) -> Iterator[Deviation]:
    """Yield a deviation for fields that stay near another one in the first run, and do not in the second."""
    of_a, of_b = runs.fields
    nearest: dict[FieldName, tuple[float, FieldName]] = {}
    for pair, (distance, extent) in near_fields(of_a).items():
        if distance <= NEAR * extent and all(name in of_b for name in pair):
            for name, other in (pair, pair[::-1]):
                nearest[name] = min(nearest.get(name, (math.inf, other)), (distance / extent, other))
    for name, (_, other) in nearest.items():
        # Of two that are nearest to each other, the first one says it.
        if nearest[other][1] == name and other < name:
            continue
        windows, apart = difference(of_b[name], of_b[other])
        before = float(difference(of_a[name], of_a[other])[1].max())
        bound = APART * before + ROUNDING * float(np.abs(of_a[name].mean).max())
        place = _first_run(apart / bound - 1, windows)
        if place is not None:
            (topic, path), worst = name, float(np.nanmax(apart))
            start = (b.start or 0) + int(windows[place]) * WINDOW
            text = (
                f"differs over a second from {'.'.join(other)} by up to {worst:.6g}, by {before:.6g} before"
            )
            onset = start
            if (drift := drift_begin(windows, apart, place)) is not None:
                onset = min(onset, (b.start or 0) + round(drift * SECOND))
            yield Deviation(topic, path, "", "near", onset, text, worst / max(before, 1e-300))


# ------------------------------------------------------------------------------------------------------ lags


def _lags(a: Log, b: Log, zeros: tuple[int, int], moving: Mapping[str, Sequence[str]]) -> Iterator[Deviation]:
    """Yield a deviation for each topic that lags behind the others more than in the first run.

    The lag of a topic is that at which its field that moves most correlates best with the first run; only if it does so
    closely, and at one lag alone, is there one, which its other fields have to have, too. Needs three topics or more
    with the same lag.
    """
    measured = [(topic, paths[0], lag_of(a, b, zeros, topic, paths[0])) for topic, paths in moving.items()]
    lags = {(topic, path): lag for topic, path, lag in measured if lag is not None}
    if len(lags) <= LAG_TOPICS:
        return
    common = float(np.median([lag for lag, _ in lags.values()]))
    together = [key for key, (lag, _) in lags.items() if abs(lag - common) <= LAG_STEP]
    if len(together) < max(LAG_TOPICS, len(lags) // 2 + 1):
        return
    for (topic, path), (lag, correlation) in lags.items():
        # Between two messages nothing is known.
        period = float(np.median(np.diff(in_order(b[topic].times))))
        if abs(lag - common) > max(LAG, period):
            others = [lag_of(a, b, zeros, topic, other) for other in moving[topic][1:]]
            halves = [lag_of(a, b, zeros, topic, path, half) for half in (0, 1)]
            # Two runs of other lengths have one lag at their begin, and another one at their end.
            if any(other is not None and abs(other[0] - lag) > LAG_STEP for other in others) or any(
                half is None or abs(half[0] - lag) > LAG_STEP for half in halves
            ):
                continue
            behind = duration_text(abs(round(lag - common)))
            side = "behind" if lag > common else "ahead of"
            text = f"{behind} {side} the other topics (correlation {correlation:.2f})"
            yield Deviation(topic, path, "", "lag", None, text, abs(lag - common) / LAG)
