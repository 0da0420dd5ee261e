"""Values of features at regular times, with the distance in time of each from the message that it is taken from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import UnsupportedError, UsageError
from logreel.io.arrays import I64
from logreel.log.log import Channel, Log
from logreel.log.tables import Shape, flattened, own_paths
from logreel.ops.query.align import Alignment, Follower, Matched, pick, times_in_order
from logreel.ops.query.curves import F64, sample_numbers, why_no_curve
from logreel.ops.query.record_batches import BYTES, ROWS
from logreel.ops.query.topic_fields import fields_by_topic
from logreel.outputs.dataset.spec import MAX_ELEMENTS, Feature
from logreel.outputs.registry import readers

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
        self._parts: list[tuple[Channel, Follower, list[str]]] = []
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
            self._parts.append((ch, Follower(ch, own_paths(ch, unique), how, Shape()), unique))
        widths: list[dict[str, tuple[int, list[str]]]] = []
        for ch, follower, unique in self._parts:
            at, found = 0, dict[str, tuple[int, list[str]]]()
            none = follower.matched(np.zeros(0, np.int64), "previous")
            for path, column in zip(unique, none.columns, strict=True):
                items = [name for name, _ in _numbers(path, column)]
                if not items:
                    raise UsageError(why_no_curve(ch, path, column.type), path=log.name)
                found[path] = (at, items)
                at += len(items)
            widths.append(found)
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
            while hi - lo > 1 and sum(one.weight(at[lo:hi]) for _, one, _ in self._parts) > BYTES:
                hi = lo + (hi - lo) // 2
            every = []
            for _, follower, paths in self._parts:
                some, error = self._part(follower, paths, at[lo:hi])
                every.append(some)
                errors[lo:hi] = np.maximum(errors[lo:hi], error)
            values[lo:hi] = np.concatenate(every, axis=1)[:, self._columns]
            lo = hi
        # What float32 cannot hold would become an infinity.
        most = np.finfo(self.feature.dtype).max if self.feature.dtype.startswith("float") else np.inf
        with np.errstate(invalid="ignore"):
            errors[~(np.isfinite(values) & (np.abs(values) <= most)).all(axis=1)] = NEVER
        return Sampled(values, self.names, errors)

    def _part(self, follower: Follower, paths: list[str], at: I64) -> tuple[F64, U64]:
        """Return the elements that are in one channel, and their distances in time."""
        method = self.feature.method
        if method != "linear":
            found = follower.matched(at, method)
            return _matrix(paths, found), _distance(found, at)
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
    import pyarrow as pa

    flat = flattened(pa.table({path: column}))
    return [
        found
        for field, some in zip(flat.schema, flat.columns, strict=True)
        for found in sample_numbers(field.name, some.combine_chunks())
    ]


def _matrix(paths: list[str], found: Matched) -> F64:
    """Return float64[n, k]: all numbers of the columns; NaN for none."""
    some = [
        values
        for path, column in zip(paths, found.columns, strict=True)
        for _, values in _numbers(path, column)
    ]
    return np.stack(some, axis=1)


def _distance(found: Matched, at: I64) -> U64:
    """Return uint64[n] ns between times and what matched them; ``NEVER`` where nothing did."""
    # Differences of signed times need the 64th bit.
    gap = (np.maximum(found.times, at) - np.minimum(found.times, at)).view(np.uint64)
    return np.where(found.found, gap, NEVER)


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
        found = Matched([], self._times[np.maximum(rows, 0)], rows >= 0)
        return found.times, _distance(found, at)
