"""Coordinate frames of a log, and the transforms between any two of them at any time, as tf2 answers them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import NDArray

from logreel.errors import LogError, NotFoundError, UsageError
from logreel.io.arrays import F64, I64
from logreel.lenses.rotation import Columns, conjugated, euler, matrices, multiplied, rotated
from logreel.log.scan import Brief
from logreel.log.times import duration_ns, interval, seconds_text, time_ns
from logreel.meaning.frames import FrameLink, FrameTree, Link, links_of, plain_name
from logreel.registry.open import as_open_log

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.joined_log import Openable
    from logreel.log.log import Log
    from logreel.log.times import Length, Time


@dataclass(frozen=True, slots=True, repr=False)
class RigidTransforms(Brief):
    """Transforms that map points in the frame *source* to the frame *target*.

    time         int64[n] ns of the log's clock
    translation  float64[n, 3] metres: the origin of *source* in *target*; NaN where it is not known
    rotation     float64[n, 4] unit quaternions x, y, z, w; NaN where it is not known
    valid        bool[n]: where it is known

    For a lookup at one time, the arrays have no first axis: ``translation`` is float64[3].
    """

    target: str
    source: str
    time: I64
    translation: F64
    rotation: F64
    valid: NDArray[np.bool_]

    def __len__(self) -> int:
        return self.time.size

    @property
    def matrix(self) -> F64:
        """float64[n, 4, 4]: homogeneous matrices."""
        matrix = np.zeros((*self.time.shape, 4, 4))
        matrix[..., :3, :3], matrix[..., :3, 3] = matrices(self.rotation), self.translation
        matrix[..., 3, 3] = 1.0
        return matrix

    @property
    def euler(self) -> F64:
        """float64[n, 3]: roll, pitch and yaw in rad; rotations about the fixed axes x, then y, then z."""
        return euler(self.rotation)

    def apply(self, points: Any) -> F64:
        """Return *points*, given in the frame *source*, in the frame *target*.

        points  [3] one point for all times, [n, 3] one for each time, or [n, k, 3] k for each time; of a lookup at one
                time, [3] or [k, 3]

        Raises UsageError for other shapes.
        """
        vectors = np.asarray(points, np.float64)
        is_single = self.time.ndim == 0
        turn, move = self.rotation, self.translation
        if vectors.shape[-1:] != (3,) or vectors.ndim > 3 - is_single:
            raise UsageError(
                f"points have the shape {vectors.shape}: give [3], [n, 3] for each of n times, or [n, k, 3]"
            )
        if vectors.ndim == 3:
            turn, move = turn[:, None], move[:, None]
        if not is_single and vectors.ndim > 1 and len(vectors) != len(self):
            raise UsageError(
                f"there are {len(vectors)} points for {len(self)} times; for the same points at all times, give "
                "points[None].repeat(n, 0)"
            )
        moved: F64 = rotated(turn, vectors) + move
        return moved

    def inverse(self) -> RigidTransforms:
        """Return the transforms from *target* to *source*."""
        back = conjugated(self.rotation)
        return RigidTransforms(
            self.source, self.target, self.time, -rotated(back, self.translation), back, self.valid
        )

    def __matmul__(self, other: RigidTransforms) -> RigidTransforms:
        """Return the transforms that apply *other* first; raises UsageError if frames or times do not match."""
        if other.target != self.source or not np.array_equal(self.time, other.time):
            raise UsageError(
                f"transforms from {self.source!r} cannot follow ones to {other.target!r}, or at other times"
            )
        return RigidTransforms(
            self.target,
            other.source,
            self.time,
            rotated(self.rotation, other.translation) + self.translation,
            multiplied(self.rotation, other.rotation),
            self.valid & other.valid,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the transforms as JSON data: a list of one dict per time, None for numbers that are not known."""
        rows = zip(
            np.atleast_1d(self.time).tolist(),
            np.atleast_1d(self.valid).tolist(),
            np.atleast_2d(self.translation).tolist(),
            np.atleast_2d(self.rotation).tolist(),
            strict=True,
        )
        return {
            "target": self.target,
            "source": self.source,
            "transforms": [
                {
                    "time_ns": time,
                    "translation": place if good else None,
                    "rotation_xyzw": turn if good else None,
                }
                for time, good, place, turn in rows
            ],
        }


#: What a lookup does at times for which a transform is not known.
Missing = Literal["error", "nan", "hold"]
MISSING = ("error", "nan", "hold")
#: Times that are computed together, so that intermediate columns stay in the cache.
BLOCK = 8192


def transforms(
    log: Openable | Log,
    *,
    start: Time | None = None,
    end: Time | None = None,
    poses: bool | None = None,
    stamps: bool | None = None,
    definitions: Definitions = (),
) -> Transforms:
    """Return the coordinate frames of *log*, with lookup of transforms between them.

    log         an open Log, or anything that ``logreel.open`` takes
    start, end  read only messages of this interval; transforms that hold for all times may be logged at its start
    poses       True: poses of vehicles and actors are transforms, too; False: they are not; None: only if the log has
                no transforms
    stamps      True: a transform is valid at its stamp; False: when it was logged; None: at its stamp, unless stamps
                are of another clock than the log
    definitions  as for ``logreel.open``

    Raises UsageError for a time that cannot be read or an interval outside of the log.
    """
    with as_open_log(log, definitions) as opened:
        first, last = interval(opened, start, end)
        links, notes = links_of(opened, first, last, poses=poses, stamps=stamps)
        return Transforms(opened, links, notes)


class Transforms:
    """Frames of a log and the links between them.

    links  Link by child frame, in the order of the log
    notes  sentences about channels that are not used, and about times
    """

    def __init__(self, log: Log, links: list[Link], notes: list[str] | tuple[str, ...] = ()) -> None:
        self._clock = _Clock(log)
        self.path = log.name
        self.links: Mapping[str, Link] = {link.child: link for link in links}
        self.notes = tuple(notes)

    def __repr__(self) -> str:
        return f"Transforms({self.path!r}, {len(self.frames)} frames, {len(self.links)} links)"

    @cached_property
    def frames(self) -> list[str]:
        """Names of all frames, sorted, without the leading slash of old logs."""
        return sorted({*self.links, *(parent for link in self.links.values() for parent in link.parents)})

    @cached_property
    def tree(self) -> FrameTree:
        """The tree of frames: parents, coverage in time, and what is wrong with it."""
        return FrameTree(list(self.links.values()), self._clock.start, self._clock.end, self.notes)

    def lookup(
        self,
        target: str,
        source: str,
        time: Time | Any = None,
        *,
        missing: Missing = "error",
        max_gap: Length | None = None,
    ) -> RigidTransforms:
        """Return the transforms that map points in the frame *source* to the frame *target*, as ``lookup_transform``.

        time     a time as everywhere (int ns, text such as ``+12.5s``, datetime …), an array or list of such times
                 (int64 or datetime64 arrays are fastest), or None: the latest time at which all links are known
        missing  for times at which the transform is not known: ``error`` raises LogError, ``nan`` gives NaN and False
                 in ``valid``, ``hold`` takes the nearest known transform of each link
        max_gap  do not interpolate between transforms that are further apart; such times are missing. None: any gap

        Positions are interpolated linearly, rotations on the shortest way with constant speed, never beyond the first
        and last transform of a link. Raises NotFoundError for an unknown frame, LogError for frames without a
        connection, UsageError for other arguments that cannot be used.
        """
        if missing not in MISSING:
            raise UsageError(f"there is no missing={missing!r}: give 'error', 'nan' or 'hold'")
        target, source = self._known(target), self._known(source)
        gap = None if max_gap is None else duration_ns(max_gap)
        at = self._times(time, target, source)
        flat = at.reshape(-1)
        place, turn = np.full((len(flat), 3), np.nan), np.full((len(flat), 4), np.nan)
        valid = np.zeros(len(flat), np.bool_)
        errors: list[str] = []
        for rows, parents in self._topologies(flat):
            try:
                up, down = self._path(target, source, parents)
            except LogError as error:
                errors.append(error.text)
                continue
            if not isinstance(rows, slice) or np.any(flat[1:] < flat[:-1]):
                # In the order of time, neighbours in the log are neighbours in memory.
                chosen = np.arange(len(flat))[rows]
                rows = chosen[np.argsort(flat[chosen], kind="stable")]
            self._evaluate(up, down, flat, rows, missing, gap, (place, turn, valid))
        if errors and (missing == "error" or not valid.any()):
            raise LogError(errors[0], path=self.path)
        if missing == "error" and not valid.all():
            self._raise_missing(target, source, flat, valid, gap)
        shape = at.shape
        return RigidTransforms(
            target, source, at, place.reshape(*shape, 3), turn.reshape(*shape, 4), valid.reshape(shape)
        )

    def can_transform(self, target: str, source: str, time: Time | Any = None) -> NDArray[np.bool_]:
        """Return bool[n]: whether a lookup at each time would succeed; all False for frames without a connection.

        Raises NotFoundError for an unknown frame.
        """
        target, source = self._known(target), self._known(source)
        try:
            return self.lookup(target, source, time, missing="nan").valid
        except UsageError:
            raise
        except LogError:
            return np.zeros(() if time is None else np.shape(self._times(time, target, source)), np.bool_)

    def link_at(self, child: str, time: Time | Any) -> RigidTransforms:
        """Return the transforms from *child* to its parent at each time, the nearest one where none is known.

        Raises NotFoundError for a frame without a parent.
        """
        name = plain_name(child)
        if name not in self.links:
            raise NotFoundError("frame with a parent", name, self.links, path=self.path)
        parent = self._last_parents()[name]
        at = self._times(time, parent, name)
        place, turn = self.links[name].curve.at(at.reshape(-1), True, None, np.ones(at.size, np.bool_))
        shape = at.shape
        places = np.broadcast_to(place.T, (at.size, 3)).reshape(*shape, 3)
        turns = np.broadcast_to(turn.T, (at.size, 4)).reshape(*shape, 4)
        return RigidTransforms(parent, name, at, places, turns, np.ones(shape, np.bool_))

    def latest_common_time(self, target: str, source: str) -> int | None:
        """Return the latest time (ns) at which the transform is known; None if it holds for all times.

        Raises NotFoundError for an unknown frame, LogError for frames without a connection.
        """
        up, down = self._path(self._known(target), self._known(source), self._last_parents())
        ends = [self.links[name].end for name in (*up, *down) if not self.links[name].static]
        return min(ends) if ends else None

    def chain(self, target: str, source: str) -> list[str]:
        """Return the frames from *source* to *target* in the latest tree, both included; errors as for ``lookup``."""
        target, source = self._known(target), self._known(source)
        parents = self._last_parents()
        up, down = self._path(target, source, parents)
        top = parents[up[-1]] if up else parents[down[-1]] if down else source
        return [*up, top, *reversed(down)]

    def _known(self, frame: str) -> str:
        name = plain_name(frame)
        if name not in self.frames:
            none = "the log has no transforms between frames"
            raise NotFoundError("frame", name, self.frames, path=self.path, none=none)
        return name

    def _times(self, time: Any, target: str, source: str) -> I64:
        """Return int64[…] ns; of shape () for a single time."""
        if time is None:
            latest = self.latest_common_time(target, source)
            # What holds for all times holds at the end of the log.
            return np.array(self._clock.end or 0 if latest is None else latest, np.int64)
        if isinstance(time, np.ndarray) and time.ndim:
            if time.dtype.kind in "iu":
                return time.astype(np.int64)
            if time.dtype.kind == "M":
                return self._clock.from_utc(time)
        if isinstance(time, np.ndarray | list | tuple) or hasattr(time, "to_numpy"):
            several = time.to_numpy() if hasattr(time, "to_numpy") else time
            if isinstance(several, np.ndarray) and several.ndim and several.dtype.kind in "iuM":
                return self._times(several, target, source)
            return np.array(
                [time_ns(moment, self._clock) for moment in np.asarray(several, object)], np.int64
            )
        return np.array(time_ns(time, self._clock), np.int64)

    def _last_parents(self) -> dict[str, str]:
        return {name: link.parents[int(link.parent[-1])] for name, link in self.links.items()}

    def _topologies(self, times: I64) -> Iterator[tuple[I64 | slice, dict[str, str]]]:
        """Yield rows of *times* that have the same tree, and the parent of each frame in it."""
        parents = self._last_parents()
        changing = [link for link in self.links.values() if len(link.parents) > 1 and not link.static]
        if not changing or not len(times):
            yield slice(0, len(times)), parents
            return
        codes = np.stack(
            [
                link.parent[np.maximum(np.searchsorted(link.time, times, side="right") - 1, 0)]
                for link in changing
            ],
            axis=-1,
        )
        kinds, which = np.unique(codes, axis=0, return_inverse=True)
        for n, parent_codes in enumerate(kinds.tolist()):
            own = {link.child: link.parents[code] for link, code in zip(changing, parent_codes, strict=True)}
            yield np.flatnonzero(which.reshape(-1) == n), parents | own

    def _path(self, target: str, source: str, parents: Mapping[str, str]) -> tuple[list[str], list[str]]:
        """Return the links (by child) from *source* up, and those from *target* up, to their first common frame."""
        ups, downs = self._ancestors(source, parents), self._ancestors(target, parents)
        common = set(ups) & set(downs)
        if not common:
            raise LogError(
                f"the frames {target!r} and {source!r} are not connected: {source!r} is below {ups[-1]!r}, "
                f"{target!r} below {downs[-1]!r}",
                path=self.path,
            )
        up = ups[: next(n for n, name in enumerate(ups) if name in common)]
        down = downs[: next(n for n, name in enumerate(downs) if name in common)]
        return up, down

    def _ancestors(self, frame: str, parents: Mapping[str, str]) -> list[str]:
        above = [frame]
        while frame in parents:
            frame = parents[frame]
            if frame in above:
                circle = " → ".join([*above[above.index(frame) :], frame])
                raise LogError(f"the frames form a circle: {circle}", path=self.path)
            above.append(frame)
        return above

    def _evaluate(
        self,
        up: list[str],
        down: list[str],
        times: I64,
        rows: I64 | slice,
        missing: str,
        gap: int | None,
        out: tuple[F64, F64, NDArray[np.bool_]],
    ) -> None:
        """Fill *out* at *rows*: translation, rotation and whether they are known."""
        moments = times[rows]
        place, turn, valid = out
        consecutive = isinstance(rows, slice)
        for lo in range(0, len(moments), BLOCK):
            block = moments[lo : lo + BLOCK]
            to = slice(lo, lo + len(block)) if consecutive else rows[lo : lo + len(block)]  # type: ignore[index]
            good = np.ones(len(block), np.bool_)
            forth = self._product(up, block, missing, gap, good)
            back = self._product(down, block, missing, gap, good)
            p, q = _columns_after(_columns_inverse(back), forth)
            with np.errstate(invalid="ignore", divide="ignore"):
                q = q / np.sqrt((q * q).sum(0))
            place[to], turn[to], valid[to] = p.T, q.T, good
            if not good.all():
                bad = np.flatnonzero(~good) + (lo if consecutive else 0)
                bad = bad if consecutive else rows[lo + np.flatnonzero(~good)]  # type: ignore[index]
                place[bad], turn[bad] = np.nan, np.nan

    def _product(
        self, names: list[str], times: I64, missing: str, gap: int | None, good: NDArray[np.bool_]
    ) -> Columns:
        """Return the transforms from the first of *names* to the parent of the last, as columns; narrow *good*."""
        product: Columns = _SAME
        for name in names:
            product = _columns_after(self.links[name].curve.at(times, missing == "hold", gap, good), product)
        return product

    def _raise_missing(
        self, target: str, source: str, times: I64, valid: NDArray[np.bool_], gap: int | None
    ) -> None:
        row = int(np.flatnonzero(~valid)[0])
        time, count = int(times[row]), int(np.count_nonzero(~valid))
        up, down = next(
            self._path(target, source, parents) for _, parents in self._topologies(times[row : row + 1])
        )
        for name in (*up, *down):
            link, good = self.links[name], np.ones(1, np.bool_)
            link.curve.at(times[row : row + 1], False, gap, good)
            if not good[0]:
                break
        about = self._clock.text
        if time < link.start or time > link.end or len(link) == 1:
            parent = link.parents[int(link.parent[-1])]
            why = f"the link {parent} → {name} is known from {about(link.start)} to {about(link.end)}"
        else:
            at = int(np.searchsorted(link.time, time))
            why = (
                f"the link {link.parents[int(link.parent[at])]} → {name} has no transform between "
                f"{about(int(link.time[at - 1]))} and {about(int(link.time[at]))}, longer than max_gap"
            )
        more_times = f" and {count - 1} more times" if count > 1 else ""
        raise LogError(
            f"the transform from {source!r} to {target!r} is not known at {about(time)}{more_times}: {why}",
            path=self.path,
            hint="missing='nan' marks such times, missing='hold' takes the nearest transform",
        )


_SAME: Columns = (np.zeros((3, 1)), np.array([[0.0], [0.0], [0.0], [1.0]]))


def _columns_after(a: Columns, b: Columns) -> Columns:
    """Return the transforms that apply *b* first, then *a*."""
    (p, (x, y, z, w)), ((u, v, s), (bx, by, bz, bw)) = a, b
    i, j, k = 2 * (y * s - z * v), 2 * (z * u - x * s), 2 * (x * v - y * u)
    n = max(p.shape[1], len(u))
    place, turn = np.empty((3, n)), np.empty((4, n))
    place[0] = u + w * i + y * k - z * j + p[0]
    place[1] = v + w * j + z * i - x * k + p[1]
    place[2] = s + w * k + x * j - y * i + p[2]
    turn[0] = w * bx + x * bw + y * bz - z * by
    turn[1] = w * by - x * bz + y * bw + z * bx
    turn[2] = w * bz + x * by - y * bx + z * bw
    turn[3] = w * bw - x * bx - y * by - z * bz
    return place, turn


def _columns_inverse(columns: Columns) -> Columns:
    place, turn = columns
    back = turn * np.array([[-1.0], [-1.0], [-1.0], [1.0]])
    moved, _ = _columns_after((np.zeros((3, 1)), back), (place, _SAME[1]))
    return -moved, back


class _Clock:
    """What the times of users refer to, without the log itself, which may be closed."""

    def __init__(self, log: Log) -> None:
        self.name, self.epoch, self.start, self.end = log.name, log.epoch, log.start, log.end
        self.utc_offset = log.utc_offset

    def holds_between(self, start: int | None, end: int | None) -> bool:
        """Return True: a lookup decides itself at which times it has transforms."""
        return True

    def from_utc(self, times: NDArray[Any]) -> I64:
        """Return datetime64 times as int64[n] ns of the clock of the log."""
        flat = times.reshape(-1)
        if not len(flat):
            return np.zeros(times.shape, np.int64)
        # The first time decides whether UTC can be used, and how far it is from the clock of the log.
        zero = time_ns(flat[0], self)
        first = flat[0].astype("datetime64[ns]").astype(np.int64)
        ns: I64 = times.astype("datetime64[ns]").astype(np.int64) + (zero - first)
        return ns

    def text(self, time: int) -> str:
        """Return a time for people: seconds after the start of the log."""
        since = time - (self.start or 0)
        return f"{'-' if since < 0 else '+'}{seconds_text(abs(since), 3)}s"


#: Characters that XML 1.0 forbids.
_FORBIDDEN = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 65534, 65535), "�")


@dataclass(frozen=True, slots=True)
class DrawnJoint:
    """A link of the tree as it is drawn: with the tree's own root, or from a chosen frame.

    turned    whether it is drawn from child to parent
    position  float metres of the lower frame in the upper one, *rotation* x, y, z, w; at the chosen time
    """

    depth: int
    upper: str
    lower: str
    turned: bool
    link: FrameLink
    position: tuple[float, ...]
    rotation: tuple[float, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the joint as JSON data."""
        return {
            "upper": self.upper,
            "lower": self.lower,
            "static": self.link.static,
            "translation": list(self.position),
            "rotation_xyzw": list(self.rotation),
        }


def joints(frames: Transforms, fixed: str | None = None, time: Time | None = None) -> list[DrawnJoint]:
    """Return the links of *frames* from the roots down, each with its transform.

    fixed  draw the tree from this frame, and only what is connected with it; None: all, from the roots
    time   time of the transforms; None: the last of each link. The nearest one is used beyond the first and last

    Raises NotFoundError for an unknown frame, UsageError for a time that cannot be read.
    """
    if fixed is not None:
        fixed = plain_name(fixed)
        # The lookup names similar frames if it is unknown.
        frames.lookup(fixed, fixed)
    below: dict[str, list[tuple[str, FrameLink]]] = {}
    for edge in frames.tree.links:
        below.setdefault(edge.parent, []).append((edge.child, edge))
        if fixed is not None:
            below.setdefault(edge.child, []).append((edge.parent, edge))
    drawn, pending, seen = list[DrawnJoint](), dict[tuple[int, str], DrawnJoint](), set[str]()
    tops = [fixed] if fixed is not None else [*frames.tree.roots, *(edge.child for edge in frames.tree.links)]
    for top in tops:
        stack: list[tuple[int, str]] = [(0, top)] if top not in seen else []
        seen.add(top)
        while stack:
            depth, upper = stack.pop()
            if depth:
                drawn.append(pending.pop((depth, upper)))
            for lower, link in sorted(below.get(upper, []), key=lambda pair: pair[0], reverse=True):
                if lower not in seen:
                    seen.add(lower)
                    pending[depth + 1, lower] = _joint(frames, depth + 1, upper, lower, link, time)
                    stack.append((depth + 1, lower))
    return drawn


def _joint(
    frames: Transforms, depth: int, upper: str, lower: str, link: FrameLink, time: Time | None
) -> DrawnJoint:
    turned = link.child == upper
    if time is None or link.static:
        place, turn = np.array(link.position), np.array(link.rotation)
    else:
        at = frames.link_at(link.child, time)
        place, turn = at.translation, at.rotation
    if turned:
        turn = conjugated(turn)
        place = -rotated(turn, place)
    return DrawnJoint(depth, upper, lower, turned, link, tuple(place.tolist()), tuple(turn.tolist()))


def urdf(frames: Transforms, name: str, fixed: str | None = None, time: Time | None = None) -> str:
    """Return the tree as URDF: fixed joints for static links, floating ones for moving links.

    name  of the robot; *fixed* and *time* as for ``joints``

    Raises UsageError if there are several trees and *fixed* does not choose one, or no frames.
    """
    roots = frames.tree.roots
    if fixed is None and (len(roots) > 1 or frames.tree.circles):
        raise UsageError(
            f"URDF holds one tree, and the log has several: below {', '.join(roots)}",
            path=frames.path,
            hint="choose one with fixed='FRAME'",
        )
    if not frames.frames:
        raise UsageError("the log has no transforms between frames", path=frames.path)
    drawn = joints(frames, fixed, time)
    names = [fixed if fixed is not None else roots[0], *(joint.lower for joint in drawn)]
    lines = ['<?xml version="1.0" encoding="utf-8"?>', f"<robot name={_attribute(name)}>"]
    lines += [f"  <link name={_attribute(plain_name(frame))}/>" for frame in names]
    for joint in drawn:
        joint_type = "fixed" if joint.link.static else "floating"
        lines += [
            f'  <joint name={_attribute(f"{joint.upper}_to_{joint.lower}")} type="{joint_type}">',
            f"    <parent link={_attribute(joint.upper)}/>",
            f"    <child link={_attribute(joint.lower)}/>",
            f'    <origin xyz="{_numbers(joint.position)}" rpy="{_numbers(euler(np.array(joint.rotation)))}"/>',
            "  </joint>",
        ]
    return "\n".join([*lines, "</robot>", ""])


def dot(frames: Transforms, fixed: str | None = None) -> str:
    """Return the tree as a graph for Graphviz: an edge per link with kind, rate, messages and coverage."""
    lines = ["digraph frames {", "  node [shape=box];"]
    lines += [f"  {_quoted(frame)};" for frame in ([] if fixed else frames.tree.roots)]
    for joint in joints(frames, fixed):
        link = joint.link
        text = "\n".join(["static" if link.static else "moving", f"{link.messages} messages", *link.topics])
        if link.rate is not None:
            text += f"\n{link.rate:.3g} Hz"
        style = ", style=dashed" if link.static else ""
        for parent in link.parents:
            lines.append(f"  {_quoted(parent)} -> {_quoted(link.child)} [label={_quoted(text)}{style}];")
    return "\n".join([*lines, "}", ""])


def _attribute(text: str) -> str:
    return quoteattr(text.translate(_FORBIDDEN))


def _quoted(text: str) -> str:
    safe = "".join(c if c == "\n" or c.isprintable() else "\ufffd" for c in text)
    return '"' + safe.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _numbers(values: tuple[float, ...] | np.ndarray) -> str:
    return " ".join(f"{float(value) + 0.0:.9g}" for value in values)
