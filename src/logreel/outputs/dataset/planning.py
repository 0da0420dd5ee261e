"""Episodes of one log: their intervals and frames, from which messages, and with which error in time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import NotFoundError, UnsupportedError, UsageError
from logreel.io.arrays import F64, I64
from logreel.log.log import Channel, Log
from logreel.log.tables import RowOptions, own_paths
from logreel.log.times import SECOND, duration_text, interval, seconds_text
from logreel.log.topic_fields import fields_by_topic
from logreel.meaning.charts import bands
from logreel.meaning.curves import sample_numbers, why_no_curve
from logreel.ops.query.align import Alignment, ChannelSampler, Matched, pick, regular_times, times_in_order
from logreel.ops.query.record_batches import BYTES, ROWS, intersect_intervals
from logreel.ops.query.where import Span, true_intervals
from logreel.outputs.dataset.spec import MAX_ELEMENTS, Feature, Spec
from logreel.outputs.registry import readers

if TYPE_CHECKING:
    from logreel.layout.numpy_columns import Column

#: Reasons that are kept for one log.
MOST_NOTES = 20


@dataclass(frozen=True)
class Planned:
    """An episode that may be written.

    times      int64[n] ns of the frames, on the clock of the log
    vectors    by feature, at these times
    pictures   by feature: int64[n] ns of the message of each frame
    errors     by feature: uint64[n] ns between frame and message
    dropped    frames that were left out between the first and the last one
    stretch    the interval that it is from, and its number
    frames     int64[n]: numbers of the frames in that interval
    """

    times: I64
    vectors: Mapping[str, NDArray[np.float64]]
    pictures: Mapping[str, I64]
    errors: Mapping[str, U64]
    stretch: Stretch
    frames: I64

    @property
    def dropped(self) -> int:
        """Number of frames between the first and the last one that were left out."""
        return int(self.frames[-1] - self.frames[0] + 1 - len(self.frames))


@dataclass
class LogPlan:
    """Samples one log; *broken*: by topic, times of messages whose pictures cannot be used.

    notes    sentences about frames that the bounds of the specification leave out
    skipped  sentences about what is lost
    """

    log: Log
    spec: Spec
    broken: dict[str, set[int]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.samplers = {
            feature.name: VectorSampler(self.log, feature)
            for feature in self.spec.features
            if not feature.pictures
        }
        self.pickers = {
            feature.name: PicturePicker(self.log, feature)
            for feature in self.spec.features
            if feature.pictures
        }

    def stretches(self) -> Iterator[SampledStretch]:
        """Yield the intervals of the log, sampled one after another."""
        wanted = stretches(self.log, self.spec)
        if not wanted:
            self.note("no episode in this log")
        for stretch in wanted:
            count, moments = regular_times(self.log, stretch.start, stretch.end, self.spec.rate)
            yield SampledStretch(self, stretch, moments(0, count))

    def note(self, text: str, lost: bool = False) -> None:
        """Keep a sentence; *lost*: about data that should have been used."""
        kept = self.skipped if lost else self.notes
        if len(kept) < MOST_NOTES:
            kept.append(text)


class SampledStretch:
    """One interval of a log with values at all of its frames."""

    def __init__(self, plan: LogPlan, stretch: Stretch, times: I64) -> None:
        self.plan, self.stretch, self.times = plan, stretch, times
        self.vectors: dict[str, Sampled] = {
            name: sampler.at(times) for name, sampler in plan.samplers.items()
        }
        self.pictures = {name: sampler.at(times) for name, sampler in plan.pickers.items()}

    def good(self) -> NDArray[np.bool_]:
        """Return bool[n]: frames for which every feature has a value within its bound."""
        good = np.ones(len(self.times), np.bool_)
        for feature in self.plan.spec.features:
            good &= self._within(feature)
        return good

    def _within(self, feature: Feature) -> NDArray[np.bool_]:
        near = self._errors(feature.name) <= np.uint64(feature.max_error)
        if feature.pictures:
            broken = self.plan.broken.get(self.plan.pickers[feature.name].ch.topic)
            if broken:
                near &= ~np.isin(self.pictures[feature.name][0], np.array(sorted(broken), np.int64))
        return near

    def _errors(self, name: str) -> U64:
        return self.vectors[name].errors if name in self.vectors else self.pictures[name][1]

    def parts(self, among: I64 | None = None) -> list[I64]:
        """Return the frames of each episode, as numbers in this interval; what is left out is noted.

        among  consider only these frames; None: all
        """
        good = self.good()
        considered = np.arange(len(self.times)) if among is None else among
        bad = considered[~good[considered]]
        if len(bad) and among is None:
            self._note(bad, bool(len(bad) == len(considered)) or self.plan.spec.beyond == "fail")
        beyond = self.plan.spec.beyond
        if beyond == "fail":
            runs = [] if len(bad) else [considered]
        elif beyond == "drop":
            runs = [considered[good[considered]]]
        else:
            kept = considered[good[considered]]
            runs = np.split(kept, np.flatnonzero(np.diff(kept) != 1) + 1)
        period = SECOND / self.plan.spec.rate
        least = self.plan.spec.episodes.min_length
        long = [column for column in runs if len(column) and len(column) * period >= least]
        short = sum(len(column) for column in runs) - sum(map(len, long))
        if short:
            self.plan.note(
                f"{self._place()}: left out {short} frames in pieces shorter than {duration_text(least)}"
            )
        return long

    def _place(self) -> str:
        start = self.plan.log.start or 0
        return f"episode at +{seconds_text(self.stretch.start - start, 3)} s"

    def _note(self, bad: I64, lost: bool) -> None:
        """Note how many frames are too far from messages, for the features of which that is so."""
        reasons = []
        for column in self.plan.spec.features:
            wrong = bad[~self._within(column)[bad]]
            if not len(wrong):
                continue
            worst = self._errors(column.name)[wrong]
            known = worst[worst != NEVER]
            far = f", worst {duration_text(int(known.max()))}" if len(known) else ""
            reasons.append(
                f"{column.name} has no value within {duration_text(column.max_error)} for {len(wrong)}{far}"
            )
        what = "all frames left out, because of" if self.plan.spec.beyond == "fail" else "left out"
        text = f"{self._place()}: {what} {len(bad)} of {len(self.times)} frames: {'; '.join(reasons)}"
        self.plan.note(text, lost)

    def episode(self, frames: I64) -> Planned:
        """Return the episode of some of the frames."""
        return Planned(
            self.times[frames],
            {name: column.values[frames] for name, column in self.vectors.items()},
            {name: times[frames] for name, (times, _) in self.pictures.items()},
            {column.name: self._errors(column.name)[frames] for column in self.plan.spec.features},
            self.stretch,
            frames,
        )


def sync_data(spec: Spec, planned: Planned) -> dict[str, Any]:
    """Return the error in time of each feature of an episode as JSON data: largest and mean, in ns."""
    return {
        column.name: {
            "method": column.method,
            "offset_ns": column.offset,
            "bound_ns": column.max_error,
            "max_ns": int(planned.errors[column.name].max()),
            "mean_ns": round(float(planned.errors[column.name].astype(np.float64).mean()), 3),
        }
        for column in spec.features
    }


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
    bounds = _bounded(log, interval(log, rule.start, rule.end))
    if rule.rule == "list":
        result = []
        for listed in rule.listed:
            if listed.is_for(log.name):
                task = spec.task if listed.task is None else listed.task
                asked = _bounded(log, interval(log, listed.start, listed.end))
                result += [Stretch(*span, task) for span in _inside([asked], bounds)]
        return result
    if rule.rule == "where":
        spans = true_intervals(log, rule.where, bounds)
    elif rule.rule == "band":
        every = bands(log)
        spans = [
            (listed.start, listed.end)
            for listed in every
            if rule.band in (listed.kind, f"{listed.kind}={listed.label}")
        ]
        kinds = {listed.kind for listed in every}
        if rule.band.partition("=")[0] not in kinds:
            raise NotFoundError("kind of band", rule.band, sorted(kinds), path=log.name)
    else:
        spans = [bounds]
    return [Stretch(*span, spec.task) for span in _inside(spans, bounds)]


def _bounded(log: Log, span: Span) -> tuple[int, int]:
    """Return an interval without open ends: those of the log."""
    first, last = log.start or 0, (log.end or 0) + 1
    start, end = (first if span[0] is None else span[0]), (last if span[1] is None else span[1])
    return max(start, first), min(end, last)


def _inside(spans: list[Span] | list[tuple[int, int]], bounds: tuple[int, int]) -> list[tuple[int, int]]:
    inside = intersect_intervals(spans, [bounds])
    return [(start, end) for start, end in inside if start is not None and end is not None and start < end]


#: Distance in time of a frame without a value, ns.
NEVER = np.uint64(2**64 - 1)
U64 = NDArray[np.uint64]


@dataclass(frozen=True)
class Sampled:
    """One vector at the times of the frames of a stretch.

    values  float64[n, k]; undefined where there is none
    names   of the k elements
    errors  uint64[n] ns between frame and message; ``NEVER`` without a value
    """

    values: F64
    names: tuple[str, ...]
    errors: U64


class VectorSampler:
    """Takes one vector of fields from a log.

    Raises TopicError and NotFoundError for names that the log does not have, UsageError for what is no number.
    """

    def __init__(self, log: Log, feature: Feature) -> None:
        self.feature, self.log = feature, log
        self._parts: list[tuple[Channel, ChannelSampler, list[str]]] = []
        chosen = [_one_field(log, text) for text in feature.fields]
        by_topic: dict[str, list[str]] = {}
        for topic, path in chosen:
            by_topic.setdefault(topic, []).append(path)
        how = Alignment(rate=1)
        counts: list[int] = []
        names: list[str] = []
        place = {topic: i for i, topic in enumerate(by_topic)}
        for topic, paths in by_topic.items():
            ch = log[topic]
            unique = list(dict.fromkeys(paths))
            self._parts.append((ch, ChannelSampler(ch, own_paths(ch, unique), how, RowOptions()), unique))
        widths: list[dict[str, tuple[int, list[str]]]] = []
        for ch, follower, unique in self._parts:
            at, paths_by_channel = 0, dict[str, tuple[int, list[str]]]()
            none = follower.matched(np.zeros(0, np.int64), "previous")
            for path, column in zip(unique, none.columns, strict=True):
                items = [name for name, _ in _numbers(path, column)]
                if not items:
                    raise UsageError(why_no_curve(ch, path, _column(column)), path=log.name)
                paths_by_channel[path] = (at, items)
                at += len(items)
            widths.append(paths_by_channel)
            counts.append(at)
        starts = np.concatenate([[0], np.cumsum(counts)]).tolist()
        columns: list[int] = []
        for topic, path in chosen:
            first, items = widths[place[topic]][path]
            columns += range(starts[place[topic]] + first, starts[place[topic]] + first + len(items))
            names += items if len(by_topic) == 1 else [f"{topic}.{item}" for item in items]
        if len(columns) > MAX_ELEMENTS:
            raise UsageError(f"{feature.name} has more than {MAX_ELEMENTS} elements", path=log.name)
        self._columns = np.array(columns)
        if feature.names and len(feature.names) != len(names):
            raise UsageError(
                f"{feature.name} has {len(feature.names)} names for {len(names)} elements: {', '.join(names)}",
                path=log.name,
            )
        self.names = feature.names or tuple(names)

    def at(self, times: I64) -> Sampled:
        """Return the vector at ascending *times*, ns."""
        count, at = len(times), times + self.feature.offset
        values = np.zeros((count, len(self._columns)))
        errors = np.zeros(count, np.uint64)
        lo = 0
        while lo < count:
            hi = min(lo + ROWS, count)
            while hi - lo > 1 and sum(each.weight(at[lo:hi]) for _, each, _ in self._parts) > BYTES:
                hi = lo + (hi - lo) // 2
            every = []
            for _, follower, paths in self._parts:
                part, error = self._part(follower, paths, at[lo:hi])
                every.append(part)
                errors[lo:hi] = np.maximum(errors[lo:hi], error)
            values[lo:hi] = np.concatenate(every, axis=1)[:, self._columns]
            lo = hi
        # What float32 cannot hold would become an infinity.
        most = np.finfo(self.feature.dtype).max if self.feature.dtype.startswith("float") else np.inf
        with np.errstate(invalid="ignore"):
            errors[~(np.isfinite(values) & (np.abs(values) <= most)).all(axis=1)] = NEVER
        return Sampled(values, self.names, errors)

    def _part(self, follower: ChannelSampler, paths: list[str], at: I64) -> tuple[F64, U64]:
        """Return the elements that are in one channel, and their distances in time."""
        method = self.feature.method
        if method != "linear":
            matched = follower.matched(at, method)
            return _matrix(paths, matched), _distance(matched, at)
        before, after = follower.matched(at, "previous"), follower.matched(at, "next")
        first, last = _matrix(paths, before), _matrix(paths, after)
        span = (after.times - before.times).astype(np.float64)
        part = np.divide((at - before.times).astype(np.float64), span, out=np.zeros(len(at)), where=span > 0)
        with np.errstate(invalid="ignore", over="ignore"):
            mixed = first + (last - first) * part[:, None]
        return mixed, np.maximum(_distance(before, at), _distance(after, at))


def _one_field(log: Log, text: str) -> tuple[str, str]:
    """Return topic and field path of ``topic.field``; raises UsageError unless it is one field of one channel."""
    chosen = fields_by_topic(log, [text])
    if len(chosen) != 1 or (paths := next(iter(chosen.values()))) is None or len(paths) != 1:
        raise UsageError(f"{text!r} is not one field of one channel: write topic.field", path=log.name)
    return next(iter(chosen)), paths[0]


def _numbers(path: str, column: Any) -> list[tuple[str, F64]]:
    """Return name and values of each number in a column; nothing for texts and arrays of changing length."""
    return [(name, values) for name, _, values in sample_numbers(path, "", _column(column))]


def _column(column: Any) -> Column:
    from logreel.layout.arrow_from_buffers import column_from

    return column_from(column)


def _matrix(paths: list[str], matched: Matched) -> F64:
    """Return float64[n, k]: all numbers of the columns; NaN for none."""
    columns = [
        values
        for path, column in zip(paths, matched.columns, strict=True)
        for _, values in _numbers(path, column)
    ]
    return np.stack(columns, axis=1)


def _distance(matched: Matched, at: I64) -> U64:
    """Return uint64[n] ns between times and what matched them; ``NEVER`` where nothing did."""
    # Differences of signed times need the 64th bit.
    gap = (np.maximum(matched.times, at) - np.minimum(matched.times, at)).view(np.uint64)
    return np.where(matched.matched, gap, NEVER)


class PicturePicker:
    """Says which pictures of a channel belong to frames.

    ch     the channel
    """

    def __init__(self, log: Log, feature: Feature) -> None:
        self.feature = feature
        topics = list(fields_by_topic(log, [feature.pictures]).items())
        if len(topics) != 1 or topics[0][1] is not None:
            raise UsageError(f"{feature.pictures!r} is not one channel", path=log.name)
        self.ch = log[topics[0][0]]
        if not readers(self.ch, "pictures"):
            raise UnsupportedError(f"{self.ch.topic!r} has no pictures", path=log.name)
        self._times, _ = times_in_order(self.ch)

    def at(self, times: I64) -> tuple[I64, U64]:
        """Return the time (ns) of the picture of each frame at ascending *times*, and its distance in ns."""
        at = times + self.feature.offset
        rows = pick(self._times, at, self.feature.method, None)
        if not len(self._times):
            return at, np.full(len(at), NEVER)
        matched = Matched([], self._times[np.maximum(rows, 0)], rows >= 0)
        return matched.times, _distance(matched, at)
