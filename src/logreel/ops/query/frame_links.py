"""Links between coordinate frames: the transforms of all channels of a log, collected by child frame."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import LogError
from logreel.io.arrays import I64
from logreel.lenses import F64, ActorPose, LocalPose, Places, Pose, Transform, lenses
from logreel.lenses.curve import Curve
from logreel.lenses.local import BODY
from logreel.lenses.rotation import unit
from logreel.lenses.vehicle import vehicle_poses
from logreel.log.times import SECOND, mean_rate
from logreel.ops.rewrite.latched import is_marked_latched

if TYPE_CHECKING:
    from logreel.log.log import Channel, Log

#: Frame of poses that name none.
WORLD = "world"
#: Last part of the topic of transforms that hold for all times (REP of tf2: the topic alone says so).
STATIC_TOPIC = "tf_static"
#: A link is interrupted if it is missing for longer than all of these: ns, median periods, twice the 90th percentile.
GAP_NS, GAP_PERIODS = SECOND, 5
#: Positions in metres that are further away count as infinite.
FAR = 1e100
#: Stamps count as times of the clock of the log if they lie at most so far (ns) outside of it.
NEAR = 600 * SECOND

#: Function that returns start and end (ns, None: no bound) of what is read of a channel.
Bounds = Callable[["Channel"], tuple[int | None, int | None]]


@dataclass(frozen=True, slots=True)
class Batch:
    """The transforms of one channel, in the order of the log.

    topic     the channel
    time      int64[k] ns of the clock of the log, at which each is logged
    stamp     int64[k] ns for which each is valid, 0: not stated
    parent    object[k] and *child*: names of frames, without leading slash
    position  float64[k, 3] metres; *rotation* float64[k, 4] x, y, z, w
    held      bool[k]: the value does not lead to the next one: an estimator was reset between them
    static    whether they hold for all times
    """

    topic: str
    time: I64
    stamp: I64
    parent: NDArray[Any]
    child: NDArray[Any]
    position: F64
    rotation: F64
    held: NDArray[np.bool_]
    static: bool


@dataclass(frozen=True)
class Link:
    """All transforms of one frame relative to its parent, sorted by time.

    child     the frame
    parents   its parents, in the order of their first transform; more than one is a fault of the robot's programs
    static    whether the last transform holds for all times
    time      int64[n] ns, strictly increasing (static: of the messages)
    position  float64[n, 3] metres
    rotation  float64[n, 4] unit quaternions x, y, z, w
    parent    int64[n] index in *parents*
    held      bool[n]: the value is kept until the next one instead of being interpolated
    topics    channels that it comes from
    messages  number of transforms in the log, unusable and repeated ones included
    unusable  number of transforms with NaN, infinity or a zero quaternion
    repeated  number of transforms with the same time as an earlier one, which are ignored as tf2 does
    backward  number of transforms that are older than the one before in the log
    """

    child: str
    parents: tuple[str, ...]
    static: bool
    time: I64
    position: F64
    rotation: F64
    parent: I64
    held: NDArray[np.bool_]
    topics: tuple[str, ...] = ()
    messages: int = 0
    unusable: int = 0
    repeated: int = 0
    backward: int = 0
    mixed: bool = field(default=False)

    def __len__(self) -> int:
        return len(self.time)

    @property
    def start(self) -> int:
        """Time of the first transform (ns)."""
        return int(self.time[0])

    @property
    def end(self) -> int:
        """Time of the last transform (ns)."""
        return int(self.time[-1])

    @property
    def rate(self) -> float | None:
        """Transforms per second between the first and the last, or None."""
        if self.static or len(self) < 2:
            return None
        return mean_rate(len(self) - 1, self.end - self.start)

    @cached_property
    def curve(self) -> Curve:
        """The transforms prepared for interpolation."""
        if self.static:
            return Curve(self.time, self.position[-1:], self.rotation[-1:], None)
        # A frame does not move from one parent to another.
        kept = self.held | np.append(np.diff(self.parent) != 0, False)
        return Curve(self.time, self.position, self.rotation, kept)

    @cached_property
    def gaps(self) -> I64:
        """int64[k, 2]: intervals without transforms that are much longer than the period."""
        steps = np.diff(self.time)
        if self.static or len(steps) < 3:
            return np.zeros((0, 2), np.int64)
        limit = max(GAP_NS, GAP_PERIODS * float(np.median(steps)), 2 * float(np.percentile(steps, 90)))
        at = np.flatnonzero(steps > limit)
        return np.stack([self.time[at], self.time[at + 1]], axis=-1)

    @cached_property
    def intervals(self) -> list[tuple[int, int]]:
        """First and last time of each part without gaps; empty for static links, which hold for all times."""
        if self.static:
            return []
        gaps = self.gaps
        starts, ends = [self.start, *gaps[:, 1].tolist()], [*gaps[:, 0].tolist(), self.end]
        return list(zip(starts, ends, strict=True))


def links_of(
    log: Log,
    start: int | None = None,
    end: int | None = None,
    *,
    poses: bool | None = None,
    stamps: bool | None = None,
    bounds: Bounds | None = None,
) -> tuple[list[Link], list[str]]:
    """Return the links of *log* in the order of their first transform, and a sentence per channel that is not used.

    start, end  only messages with start <= time < end (ns)
    poses       whether poses of vehicles and actors are links, too; None: if the log has no transforms
    stamps      True: a transform is valid at its stamp, False: when it was logged, None: at its stamp if stamps are of
                the clock of the log
    bounds      returns other bounds for each channel of moving transforms; None: *start* and *end* for all. Static
                transforms are read from the whole log
    """
    notes: list[str] = []
    own: Bounds = bounds or (lambda ch: (start, end))
    batches = [one for one in _transforms(log, own, notes) if len(one.time)]
    if poses or (poses is None and not batches):
        several = (_vehicles(log, start, end, notes), _poses(log, start, end, notes))
        batches += [one for few in several for one in few if len(one.time)]
    if stamps is None:
        stamps = _are_of_log(log, batches)
        if not stamps and any(np.any(one.stamp) for one in batches):
            notes.append(
                "the stamps of transforms are of another clock than the log: times of logging are used"
            )
    return _grouped(batches, stamps, notes), notes


def roots_of(links: Sequence[Link]) -> list[str]:
    """Return the sorted names of frames that are the child of no link: one, if the frames form one tree."""
    return sorted({parent for link in links for parent in link.parents} - {link.child for link in links})


def _are_of_log(log: Log, batches: list[Batch]) -> bool:
    """Return whether most stamps of moving transforms are near the times of the log."""
    near = total = 0
    for one in batches:
        if not one.static:
            known = one.stamp != 0
            # As floats, since stamps may be any 64 bits.
            away = np.abs(one.stamp[known].astype(np.float64) - one.time[known].astype(np.float64))
            near, total = near + int(np.count_nonzero(away < NEAR)), total + len(away)
    return total == 0 or near * 2 > total


def _transforms(log: Log, bounds: Bounds, notes: list[str]) -> Iterator[Batch]:
    for ch, lens in transform_channels(log):
        static = is_static(ch)
        try:
            places = lens.track(ch, *((None, None) if static else bounds(ch)))
        except LogError as error:
            notes.append(f"channel {ch.topic!r} cannot be used: {error.text}")
            continue
        yield _batch(ch, places, WORLD, ch.topic.lstrip("/"), static)


def transform_channels(log: Log) -> list[tuple[Channel, Transform]]:
    """Return the channels of *log* with transforms, and the lens of each."""
    return [
        (ch, lens)
        for ch in log.channels.values()
        if not ch.reserved
        for lens in lenses(ch)
        if isinstance(lens, Transform)
    ]


def is_static(ch: Channel) -> bool:
    """Return whether the transforms of *ch* hold for all times."""
    topic = str(ch.metadata.get("topic", ch.topic))
    return topic.rpartition("/")[2] == STATIC_TOPIC or is_marked_latched(ch)


def _poses(log: Log, start: int | None, end: int | None, notes: list[str]) -> Iterator[Batch]:
    for ch in log.channels.values():
        if ch.reserved or not len(ch):
            continue
        for lens in lenses(ch):
            try:
                if (isinstance(lens, Pose) and not lens.many) or (
                    isinstance(lens, LocalPose) and not lens.aerospace
                ):
                    yield _batch(ch, lens.track(ch, start, end), WORLD, ch.topic.lstrip("/"), False)
                elif isinstance(lens, ActorPose):
                    found = lens.states(ch, start, end)
                    names = [
                        f"{k or 'actor'}_{n}" for k, n in zip(found.kind, found.id.tolist(), strict=True)
                    ]
                    child, zero = np.array(names, object), np.zeros(len(found.time), np.int64)
                    places = Places(found.time, found.position, found.rotation, None, child, zero, zero)
                    yield _batch(ch, places, WORLD, "", False)
            except LogError as error:
                notes.append(f"channel {ch.topic!r} cannot be used: {error.text}")


def _vehicles(log: Log, start: int | None, end: int | None, notes: list[str]) -> Iterator[Batch]:
    for pose in vehicle_poses(log):
        try:
            places = pose.track(start, end)
        except LogError as error:
            notes.append(f"{pose.child!r} cannot be used: {error.text}")
            continue
        if pose.child == BODY and pose.position is not None and not pose.has_position():
            notes.append(f"the horizontal position of {BODY!r} is never known: x and y are 0")
        batch = _batch(pose.base[0], places, WORLD, pose.child, False)
        yield replace(batch, topic=" + ".join(pose.topics))


def _batch(ch: Channel, places: Places, parent: str, child: str, static: bool) -> Batch:
    n = len(places.time)
    above, below = _plain(places.frame, n, parent), _plain(places.child, n, child)
    held = np.zeros(n, np.bool_) if places.held is None else places.held
    return Batch(
        ch.topic, places.time, places.stamp, above, below, places.position, places.rotation, held, static
    )


def _plain(names: NDArray[Any] | None, n: int, usual: str) -> NDArray[Any]:
    """Return object[n]: names of frames without the leading slash of old logs."""
    if names is None:
        return np.full(n, usual, object)
    known = {name: plain_name(name) for name in set(names.tolist())}
    return np.array([known[name] for name in names.tolist()], object)


def plain_name(frame: Any) -> str:
    """Return the name of a frame without the leading slash of old logs; empty for None."""
    return "" if frame is None else str(frame).lstrip("/")


def _grouped(batches: list[Batch], stamps: bool, notes: list[str]) -> list[Link]:
    """Return a Link for each child frame; add a sentence to *notes* for what is no link."""
    if not batches:
        return []
    logged = np.concatenate([one.time for one in batches])
    stamp = np.concatenate([one.stamp for one in batches])
    position = np.concatenate([one.position for one in batches])
    rotation, good = unit(np.concatenate([one.rotation for one in batches]))
    with np.errstate(invalid="ignore"):
        good &= (np.abs(position) < FAR).all(axis=1)
    held = np.concatenate([one.held for one in batches])
    source = np.repeat(np.arange(len(batches)), [len(one.time) for one in batches])
    static = np.array([one.static for one in batches])[source]
    names, code = _codes([one.parent for one in batches], [one.child for one in batches])
    parent, child = code
    time = np.where((stamp != 0) & stamps, stamp, logged)
    # Frames without a name, and those that are their own parent, are no links.
    real = (parent != child) & (parent != names.get("", -1)) & (child != names.get("", -1))
    if not real.all():
        count = int(np.count_nonzero(~real))
        notes.append(f"{count} transforms name no frame, or one frame as its own parent: they are ignored")
    arrival = np.argsort(logged, kind="stable")
    arrival = arrival[real[arrival]]
    arrival = arrival[np.argsort(child[arrival], kind="stable")]
    cuts = np.flatnonzero(np.diff(child[arrival])) + 1
    texts, found = list(names), []
    for rows in np.split(arrival, cuts) if len(arrival) else []:
        usable = rows[good[rows]]
        if not len(usable):
            name = texts[int(child[rows[0]])]
            notes.append(f"all {len(rows)} transforms of {name!r} contain NaN, infinity or a zero quaternion")
            continue
        is_fixed = bool(static[usable[0]])
        order, backward = usable, int(np.count_nonzero(np.diff(time[usable]) < 0))
        if not is_fixed:
            order = usable[np.argsort(time[usable], kind="stable")]
            order = order[np.append(True, np.diff(time[order]) > 0)]
        codes = list(dict.fromkeys(parent[usable].tolist()))
        place = {code: n for n, code in enumerate(codes)}
        link = Link(
            texts[int(child[rows[0]])],
            tuple(texts[code] for code in codes),
            is_fixed,
            time[order],
            position[order],
            rotation[order],
            np.array([place[code] for code in parent[order].tolist()], np.int64),
            held[order],
            tuple(dict.fromkeys(batches[n].topic for n in source[rows].tolist())),
            len(rows),
            len(rows) - len(usable),
            len(usable) - len(order),
            0 if is_fixed else backward,
            bool(static[usable].any() and not static[usable].all()),
        )
        found.append((int(rows.min()), link))
    return [link for _, link in sorted(found, key=lambda pair: pair[0])]


def _codes(parents: list[NDArray[Any]], children: list[NDArray[Any]]) -> tuple[dict[str, int], list[I64]]:
    """Return the number of each name, and the numbers of parents and children: int64[k] each."""
    names: dict[str, int] = {}
    found = [
        np.array([names.setdefault(name, len(names)) for one in side for name in one.tolist()], np.int64)
        for side in (parents, children)
    ]
    return names, found
