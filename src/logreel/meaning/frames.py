"""Links between coordinate frames: the transforms of all channels of a log, collected by child frame."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import asdict, dataclass, field, replace
from logreel.errors import Finding, LogError
from logreel.io.arrays import F64, I64
from logreel.lenses import ActorPose, LocalPose, Places, Pose, Transform, lenses, lenses_of
from logreel.lenses.motion import BODY
from logreel.lenses.rotation import PoseCurve, angle_between, conjugated, multiplied, rotated, unit
from logreel.lenses.vehicle import vehicle_poses
from logreel.log.scan import is_marked_latched
from logreel.log.times import SECOND, duration_text, mean_rate
from logreel.meaning.gaps import gap_limit

if TYPE_CHECKING:
    from logreel.log.log import Channel, Log


#: Frame of poses that name none.
WORLD = "world"
#: Last part of the topic of transforms that hold for all times (REP of tf2: the topic alone says so).
STATIC_TOPIC = "tf_static"
#: A link is interrupted at gaps that are longer than this, in ns.
INTERRUPTED = SECOND
#: Positions in metres that are further away count as infinite.
FAR = 1e100
#: Stamps count as times of the clock of the log if they lie at most so far (ns) outside of it.
NEAR = 600 * SECOND

#: Function that returns start and end (ns, None: no bound) of what is read of a channel.
Bounds = Callable[["Channel"], tuple[int | None, int | None]]


@dataclass(frozen=True, slots=True)
class FrameBatch:
    """The transforms of one channel, in the order of the log.

    topic     the channel
    time      int64[k] ns of the clock of the log, at which each is logged
    stamp     int64[k] ns for which each is valid, 0: not stated
    parent    object[k] and *child*: names of frames, without leading slash
    position  float64[k, 3] metres; *rotation* float64[k, 4] x, y, z, w
    kept      bool[k]: the value does not lead to the next one: an estimator was reset between them
    static    whether they hold for all times
    """

    topic: str
    time: I64
    stamp: I64
    parent: NDArray[Any]
    child: NDArray[Any]
    position: F64
    rotation: F64
    kept: NDArray[np.bool_]
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
    kept      bool[n]: the value is kept until the next one instead of being interpolated
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
    kept: NDArray[np.bool_]
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
    def curve(self) -> PoseCurve:
        """The transforms prepared for interpolation."""
        if self.static:
            return PoseCurve(self.time, self.position[-1:], self.rotation[-1:], None)
        # A frame does not move from one parent to another.
        kept = self.kept | np.append(np.diff(self.parent) != 0, False)
        return PoseCurve(self.time, self.position, self.rotation, kept)

    @cached_property
    def gaps(self) -> I64:
        """int64[k, 2]: intervals without transforms that are much longer than the period."""
        steps = np.diff(self.time)
        if self.static or len(steps) < 3:
            return np.zeros((0, 2), np.int64)
        at = np.flatnonzero(steps > gap_limit(steps, INTERRUPTED))
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
    batches = [batch for batch in _transforms(log, own, notes) if len(batch.time)]
    if poses or (poses is None and not batches):
        several = (_vehicles(log, start, end, notes), _poses(log, start, end, notes))
        batches += [batch for few in several for batch in few if len(batch.time)]
    if stamps is None:
        stamps = _are_of_log(log, batches)
        if not stamps and any(np.any(batch.stamp) for batch in batches):
            notes.append(
                "the stamps of transforms are of another clock than the log: times of logging are used"
            )
    return _grouped(batches, stamps, notes), notes


def roots_of(links: Sequence[Link]) -> list[str]:
    """Return the sorted names of frames that are the child of no link: one, if the frames form one tree."""
    return sorted({parent for link in links for parent in link.parents} - {link.child for link in links})


def _are_of_log(log: Log, batches: list[FrameBatch]) -> bool:
    """Return whether most stamps of moving transforms are near the times of the log."""
    near = total = 0
    for batch in batches:
        if not batch.static:
            known = batch.stamp != 0
            # As floats, since stamps may be any 64 bits.
            away = np.abs(batch.stamp[known].astype(np.float64) - batch.time[known].astype(np.float64))
            near, total = near + int(np.count_nonzero(away < NEAR)), total + len(away)
    return total == 0 or near * 2 > total


def _transforms(log: Log, bounds: Bounds, notes: list[str]) -> Iterator[FrameBatch]:
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


def _poses(log: Log, start: int | None, end: int | None, notes: list[str]) -> Iterator[FrameBatch]:
    for ch in log.channels.values():
        if ch.reserved or not len(ch):
            continue
        for lens in lenses(ch):
            try:
                if (isinstance(lens, Pose) and not lens.repeated) or (
                    isinstance(lens, LocalPose) and not lens.aerospace
                ):
                    yield _batch(ch, lens.track(ch, start, end), WORLD, ch.topic.lstrip("/"), False)
                elif isinstance(lens, ActorPose):
                    states = lens.states(ch, start, end)
                    names = [
                        f"{k or 'actor'}_{n}" for k, n in zip(states.kind, states.id.tolist(), strict=True)
                    ]
                    child, zero = np.array(names, object), np.zeros(len(states.time), np.int64)
                    places = Places(states.time, states.position, states.rotation, None, child, zero, zero)
                    yield _batch(ch, places, WORLD, "", False)
            except LogError as error:
                notes.append(f"channel {ch.topic!r} cannot be used: {error.text}")


def _vehicles(log: Log, start: int | None, end: int | None, notes: list[str]) -> Iterator[FrameBatch]:
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


def _batch(ch: Channel, places: Places, parent: str, child: str, static: bool) -> FrameBatch:
    n = len(places.time)
    above, below = _plain(places.frame, n, parent), _plain(places.child, n, child)
    kept = np.zeros(n, np.bool_) if places.kept is None else places.kept
    return FrameBatch(
        ch.topic, places.time, places.stamp, above, below, places.position, places.rotation, kept, static
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


def _grouped(batches: list[FrameBatch], stamps: bool, notes: list[str]) -> list[Link]:
    """Return a Link for each child frame; add a sentence to *notes* for what is no link."""
    if not batches:
        return []
    logged = np.concatenate([batch.time for batch in batches])
    stamp = np.concatenate([batch.stamp for batch in batches])
    position = np.concatenate([batch.position for batch in batches])
    rotation, good = unit(np.concatenate([batch.rotation for batch in batches]))
    with np.errstate(invalid="ignore"):
        good &= (np.abs(position) < FAR).all(axis=1)
    kept = np.concatenate([batch.kept for batch in batches])
    source = np.repeat(np.arange(len(batches)), [len(batch.time) for batch in batches])
    static = np.array([batch.static for batch in batches])[source]
    names, code = _codes([batch.parent for batch in batches], [batch.child for batch in batches])
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
    texts, links = list(names), []
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
            kept[order],
            tuple(dict.fromkeys(batches[n].topic for n in source[rows].tolist())),
            len(rows),
            len(rows) - len(usable),
            len(usable) - len(order),
            0 if is_fixed else backward,
            bool(static[usable].any() and not static[usable].all()),
        )
        links.append((int(rows.min()), link))
    return [link for _, link in sorted(links, key=lambda pair: pair[0])]


def _codes(parents: list[NDArray[Any]], children: list[NDArray[Any]]) -> tuple[dict[str, int], list[I64]]:
    """Return the number of each name, and the numbers of parents and children: int64[k] each."""
    names: dict[str, int] = {}
    codes = [
        np.array(
            [names.setdefault(name, len(names)) for column in side for name in column.tolist()], np.int64
        )
        for side in (parents, children)
    ]
    return names, codes


#: A step is a jump if it is longer than this many metres or rad and this many times the 95th percentile of the steps.
JUMP_M, JUMP_RAD, JUMP_FACTOR, JUMP_STEPS = 0.5, 0.5, 20, 10
#: Jumps and interruptions of one link that are named; all are counted.
NAMED = 3


@dataclass(frozen=True, slots=True)
class FrameLink:
    """A link of the tree, without its numbers.

    rate       transforms per second, None for static links and those with one transform
    intervals  first and last time (ns) of each part without interruption; empty for static links
    position   of the last transform in metres, and *rotation* as x, y, z, w
    """

    child: str
    parents: tuple[str, ...]
    static: bool
    messages: int
    rate: float | None
    intervals: tuple[tuple[int, int], ...]
    topics: tuple[str, ...]
    position: tuple[float, ...]
    rotation: tuple[float, ...]

    @property
    def parent(self) -> str:
        """The parent at the end of the log."""
        return self.parents[-1]


class FrameTree:
    """The frames of a log by parent and child."""

    def __init__(
        self, links: Sequence[Link], start: int | None, end: int | None, notes: Sequence[str] = ()
    ) -> None:
        self._links, self._start, self._end, self._notes = links, start, end, notes

    @cached_property
    def links(self) -> list[FrameLink]:
        """All links, in the order of the log; of a link with several parents, the last parent is that at the end."""
        links = []
        for link in self._links:
            last = link.parents[int(link.parent[-1])]
            parents = (*(name for name in link.parents if name != last), last)
            place, turn = tuple(link.position[-1].tolist()), tuple(link.rotation[-1].tolist())
            links.append(
                FrameLink(
                    link.child,
                    parents,
                    link.static,
                    link.messages,
                    link.rate,
                    tuple(link.intervals),
                    link.topics,
                    place,
                    turn,
                )
            )
        return links

    @cached_property
    def roots(self) -> list[str]:
        """Frames without a parent, sorted."""
        return roots_of(self._links)

    def children(self, frame: str) -> list[FrameLink]:
        """Return the links below *frame* at the end of the log, sorted by name."""
        return sorted((link for link in self.links if link.parent == frame), key=lambda link: link.child)

    def walk(self) -> Iterator[tuple[int, str, FrameLink | None]]:
        """Yield depth, frame and link to its parent (None for a root) of each frame, parents first."""
        seen: set[str] = set()
        # The frames of circles hang below no root.
        tops = [*self.roots, *(other.child for other in self.links)]
        for top in tops:
            if top in seen:
                continue
            link = next((other for other in self.links if other.child == top), None)
            stack: list[tuple[int, str, FrameLink | None]] = [
                (0, top, link if top not in self.roots else None)
            ]
            while stack:
                depth, frame, here = stack.pop()
                if frame in seen:
                    continue
                seen.add(frame)
                yield depth, frame, here
                stack += [(depth + 1, other.child, other) for other in reversed(self.children(frame))]

    @cached_property
    def circles(self) -> list[list[str]]:
        """Frames that are above themselves at the end of the log, as closed paths."""
        parents = {link.child: link.parent for link in self.links}
        circles: list[list[str]] = []
        done: set[str] = set()
        for frame in parents:
            way: list[str] = []
            while frame in parents and frame not in done and frame not in way:
                way.append(frame)
                frame = parents[frame]
            if frame in way:
                circles.append([*way[way.index(frame) :], frame])
            done.update(way)
        return circles

    @cached_property
    def findings(self) -> list[Finding]:
        """What is wrong with the tree: errors, then warnings, then notes."""
        findings = [*self._of_tree(), *(finding for link in self._links for finding in self._of_link(link))]
        findings += [Finding("tf-note", "note", None, 0, note) for note in self._notes]
        return sorted(findings, key=lambda finding: ("error", "warn", "note").index(finding.severity))

    def _of_tree(self) -> Iterator[Finding]:
        for circle in self.circles:
            yield Finding("tf-circle", "error", None, 0, f"the frames form a circle: {' → '.join(circle)}")
        if len(self.roots) > 1:
            yield Finding(
                "tf-roots",
                "warn",
                None,
                0,
                f"{len(self.roots)} trees without a link between them: below {', '.join(self.roots)}",
            )

    def _of_link(self, link: Link) -> Iterator[Finding]:
        topic, name = link.topics[0] if link.topics else None, f"{link.parents[-1]} → {link.child}"

        def finding(code: str, severity: Any, text: str, time: int | None = None, count: int = 1) -> Finding:
            return Finding(code, severity, None, 0, text, topic, time, count)

        if len(link.parents) > 1:
            change = int(np.flatnonzero(np.diff(link.parent) != 0)[0]) + 1 if not link.static else 0
            changes = int(np.count_nonzero(np.diff(link.parent)))
            parents = ", ".join(link.parents)
            text = f"{link.child} has {len(link.parents)} parents: {parents}; it changes {_times(changes)}"
            yield finding("tf-parents", "warn", text, int(link.time[change]), changes)
        if link.mixed:
            taken_as = "static" if link.static else "moving"
            text = f"{name} is sent as static and as moving; it is taken as {taken_as}, as sent first"
            yield finding("tf-mixed", "warn", text, link.start)
        if link.unusable:
            text = f"{link.unusable} of {link.messages} transforms {name} contain NaN, infinity or a zero quaternion"
            yield finding("tf-unusable", "warn", text, None, link.unusable)
        if link.backward:
            text = f"{link.backward} transforms {name} are older than the one before in the log"
            yield finding("tf-backward", "note", text, None, link.backward)
        if link.static:
            return
        if len(link) == 1 and link.messages > 0:
            text = f"{name} is known at one moment only, and is not marked as static"
            yield finding("tf-once", "note", text, link.start)
        gaps = link.gaps
        if len(gaps):
            longest = int(np.diff(gaps, axis=1).max())
            text = f"{name} is interrupted {_times(len(gaps))}, at most for {duration_text(longest)}"
            yield finding("tf-gap", "warn", text, int(gaps[0, 0]), len(gaps))
        at, far = jumps(link)
        if len(at):
            text = f"{name} jumps {_times(len(at))}, at most by {far}"
            yield finding("tf-jump", "warn", text, int(link.time[at[0]]), len(at))

    def as_dict(self) -> dict[str, Any]:
        """Return the tree as JSON data; times in ns."""
        return {
            "frames": sorted({name for item in self.links for name in (item.child, *item.parents)}),
            "roots": self.roots,
            "links": [asdict(item) | {"parent": item.parent} for item in self.links],
            "findings": [item.as_dict() for item in self.findings],
        }


def jumps(link: Link) -> tuple[I64, str]:
    """Return the rows of *link* after which it jumps, and the greatest jump as text."""
    if link.static or len(link) <= JUMP_STEPS:
        return np.zeros(0, np.int64), ""
    same = np.diff(link.parent) == 0
    moved = np.linalg.norm(np.diff(link.position, axis=0), axis=1)
    turned = angle_between(link.rotation[1:], link.rotation[:-1])
    far = _beyond(moved, JUMP_M) & same
    wide = _beyond(turned, JUMP_RAD) & same
    rows = np.flatnonzero(far | wide)
    text = (
        f"{moved[far].max():.3g} m"
        if far.any()
        else f"{np.degrees(turned[wide].max()):.0f}°"
        if wide.any()
        else ""
    )
    return rows, text


def _beyond(steps: F64, least: float) -> Any:
    return steps > max(least, JUMP_FACTOR * float(np.percentile(steps, 95)))


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


#: Messages with transforms up to which they are all kept in memory; of longer logs a window is read for each moment.
MESSAGES = 300_000
#: Windows in ns before the moment in which transforms of such a log are searched; channels with few messages whole.
WINDOW, FEW = 30 * SECOND, 2000
#: Time in ns after the moment in which the next transform is searched.
AHEAD = SECOND
#: Transforms between one frame and the root at most, so that circles end.
DEEP = 256
#: Names of usual reference frames, best first.
_FIXED = ("map", "earth", "world", "odom", "odom_combined")


@dataclass(frozen=True, slots=True)
class FramePlace:
    """A rigid transform: *position* in metres, *rotation* as a quaternion x, y, z, w; float64 each."""

    position: F64
    rotation: F64

    def after(self, other: FramePlace) -> FramePlace:
        """Return the transform that applies *other* first, then this one."""
        return FramePlace(
            self.position + rotated(self.rotation, other.position),
            multiplied(self.rotation, other.rotation),
        )

    def inverse(self) -> FramePlace:
        """Return the inverse transform."""
        back = conjugated(self.rotation)
        return FramePlace(-rotated(back, self.position), back)

    def numbers(self) -> list[float]:
        """Return x, y, z of the position and x, y, z, w of the rotation."""
        return [float(value) for value in (*self.position, *self.rotation)]


NOWHERE = FramePlace(np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]))


#: Interruptions of one frame that are listed, the longest ones.
LISTED = 20


@dataclass(frozen=True, slots=True)
class FrameState:
    """What is known of a frame at one moment.

    parent  at that moment; *depth*: frames above it
    rate    transforms per second, None for static frames and those with one transform
    age     ns since the last transform; negative before the first one, None for static frames
    gaps    the longest interruptions, in order, as first and last ns; *gap_count*: how many there are
    is_gap  whether the moment is inside of one
    """

    name: str
    parent: str
    depth: int
    static: bool
    messages: int
    rate: float | None
    age: int | None
    gaps: list[tuple[int, int]]
    gap_count: int
    is_gap: bool
    topics: tuple[str, ...]


_KNOWN: WeakKeyDictionary[Log, tuple[int, LogFrames]] = WeakKeyDictionary()


class LogFrames:
    """The frames of a log.

    links  all transforms by parent and child; None where there are too many to keep
    """

    def __init__(self, log: Log) -> None:
        # They are kept by log, and must not keep it alive.
        self._log = ref(log)
        total = _messages(log)
        self.links: list[Link] | None = links_of(log, poses=False)[0] if total <= MESSAGES else None

    @classmethod
    def of(cls, log: Log) -> LogFrames:
        """Return the frames of *log*, read once and again when the log has grown."""
        size = _messages(log)
        known = _KNOWN.get(log)
        if known is None or known[0] != size:
            known = _KNOWN[log] = (size, cls(log))
        return known[1]

    def at(self, time: int) -> FramesAt:
        """Return the tree of frames at *time* (ns), interpolated; beyond the transforms of a frame, the nearest one."""
        links: dict[str, tuple[str, FramePlace]] = {}
        moment, good = np.array([time], np.int64), np.ones(1, np.bool_)
        for link in self._near(time):
            place, turn = link.curve.at(moment, True, None, good)
            # Of a frame with several parents, the one that was stated last counts.
            row = -1 if link.static else max(0, int(np.searchsorted(link.time, time, side="right")) - 1)
            size = float(np.linalg.norm(turn[:, 0]))
            links[link.child] = (
                link.parents[int(link.parent[row])],
                FramePlace(place[:, 0], turn[:, 0] / size),
            )
        return FramesAt(links)

    def states(self, time: int) -> list[FrameState]:
        """Return what is known of each frame at *time* (ns): parents before their children, which are sorted by name.

        Of logs with too many transforms to keep, only what is near the moment counts.
        """
        links, children = {link.child: link for link in self._near(time)}, dict[str, list[str]]()
        parents: dict[str, str] = {}
        for name, link in links.items():
            row = -1 if link.static else max(0, int(np.searchsorted(link.time, time, side="right")) - 1)
            parents[name] = link.parents[int(link.parent[row])]
            children.setdefault(parents[name], []).append(name)
        states, seen = list[FrameState](), set[str]()
        roots = sorted({parent for parent in parents.values() if parent not in links})
        # The frames of circles hang below no root.
        for root in [*roots, *sorted(links)]:
            stack = [(root, 0)]
            while stack:
                name, depth = stack.pop()
                if name in seen:
                    continue
                seen.add(name)
                states.append(_state(name, parents.get(name, ""), depth, links.get(name), time))
                stack += [(child, depth + 1) for child in sorted(children.get(name, ()), reverse=True)]
        return states

    def _near(self, time: int) -> list[Link]:
        if self.links is not None:
            return self.links
        log = self._log()
        if log is None:
            return []

        def bounds(ch: Channel) -> tuple[int | None, int | None]:
            return (None, None) if len(ch) <= FEW else (time - WINDOW, time + AHEAD)

        return links_of(log, poses=False, bounds=bounds)[0]


def _state(name: str, parent: str, depth: int, link: Link | None, time: int) -> FrameState:
    if link is None:
        return FrameState(name, parent, depth, True, 0, None, None, [], 0, False, ())
    gaps, age = link.gaps, None
    if not link.static:
        row = int(np.searchsorted(link.time, time, side="right")) - 1
        age = time - int(link.time[max(0, row)])
    longest = np.sort(np.argsort(gaps[:, 0] - gaps[:, 1], kind="stable")[:LISTED])
    return FrameState(
        name,
        parent,
        depth,
        link.static,
        link.messages,
        link.rate,
        age,
        [(int(start), int(end)) for start, end in gaps[longest].tolist()],
        len(gaps),
        bool(((gaps[:, 0] < time) & (time < gaps[:, 1])).any()),
        link.topics,
    )


class FramesAt:
    """The tree of frames at one moment: by child, its parent and its place there."""

    def __init__(self, links: Mapping[str, tuple[str, FramePlace]]) -> None:
        self.links = dict(links)

    @property
    def names(self) -> list[str]:
        """Names of all frames, sorted."""
        return sorted({*self.links, *(parent for parent, _ in self.links.values())})

    def fixed(self) -> str:
        """Return the frame in which to show the log: a usual name, else the root of the most frames; else ''."""
        names = self.names
        for name in _FIXED:
            if name in names:
                return name
        roots = [self._to_root(name)[0] for name in names]
        return max(sorted(set(roots)), key=roots.count) if roots else ""

    def place(self, frame: str, fixed: str) -> FramePlace | None:
        """Return the transform from *frame* to *fixed*; None if they are not connected."""
        if frame == fixed:
            return NOWHERE
        if frame not in self.links and fixed not in self.links:
            return None
        root, here = self._to_root(frame)
        other, fixed_at_root = self._to_root(fixed)
        return fixed_at_root.inverse().after(here) if root == other else None

    def robot(self, fixed: str) -> str:
        """Return the frame of the robot, by its usual names, among those connected with *fixed*; else ''."""
        connected = [name for name in self.names if name != fixed and self.place(name, fixed) is not None]
        own = {name: name.rpartition("/")[2] for name in connected}
        for usual in ("base_link", "base_footprint"):
            for name in connected:
                if own[name] == usual:
                    return name
        return next((name for name in connected if own[name].startswith("base")), "")

    def _to_root(self, frame: str) -> tuple[str, FramePlace]:
        place, seen = NOWHERE, 0
        while frame in self.links and seen < DEEP:
            frame, step = self.links[frame]
            place, seen = step.after(place), seen + 1
        return frame, place


def _messages(log: Log) -> int:
    """Return the number of messages with transforms."""
    return sum(
        len(ch)
        for ch, recognised in lenses_of(log)
        if any(isinstance(lens, Transform) for lens in recognised)
    )
