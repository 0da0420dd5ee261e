"""The queries ``show_recorder_collisions`` and ``show_recorder_actors_blocked``, in the order of the simulator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import UsageError
from logreel.formats.carla.columns import Array, RecordingColumns, recording, type_name
from logreel.formats.carla.simulator.printing import (
    KnownActors,
    closing,
    number,
    opening,
    padded,
    recording_summary,
)
from logreel.io.arrays import I64
from logreel.registry.commands import Answer

if TYPE_CHECKING:
    from logreel.log.joined_log import Openable
    from logreel.log.log import Log


#: Defaults of the simulator's C++ interface: seconds, centimetres.
MIN_TIME, MIN_DISTANCE = 30.0, 10.0
#: Positions compared in the first step and at most in one step.
FIRST, MOST = 8, 1 << 14


@dataclass(frozen=True, slots=True)
class Stay:
    """An actor that stays near one place; frames are given by row.

    frame_row  frame in which it has left, or the number of frames
    order      record of the position in which it has left
    since      frame of its first position there
    duration   seconds
    """

    actor: int
    frame_row: int
    order: int
    since: int
    duration: float


def blocked(
    log: Log | Openable, min_time: float = MIN_TIME, min_distance: float = MIN_DISTANCE, correct: bool = False
) -> Answer:
    """List actors that move less than *min_distance* cm for *min_time* seconds or longer, longest first.

    log      an open Log, or anything that ``logreel.open`` accepts
    correct  True: without the simulator's faults: the last frame does not subtract a second, the removal of an actor
             does not affect another one, a stay begins at the first position of the actor and not at the origin,
             times are not rounded
    """
    columns = RecordingColumns(recording(log))
    known, about = KnownActors(columns, correct), recording_summary(columns)
    stays = [s for s in _stays(columns, known, min_distance, correct) if s.duration >= min_time]
    # Stays of equal duration are in the order in which they end; those that do not end, in the order of the C++ map.
    stays.sort(key=lambda s: (-s.duration, s.frame_row, s.order))
    if not correct and any(s.frame_row == t.frame_row == len(columns.duration) for s, t in pairwise(stays)):
        rank = {actor: i for i, actor in enumerate(_map_at_end(columns, known))}
        stays.sort(
            key=lambda s: (
                -s.duration,
                s.frame_row,
                rank[s.actor] if s.frame_row == len(columns.duration) else s.order,
            )
        )
    frame_row = np.array([s.since for s in stays], np.int64)
    ends = np.array([s.frame_row for s in stays], np.int64)
    ids = np.array([s.actor for s in stays], np.int64)
    seconds, durations = columns.elapsed[frame_row], np.array([s.duration for s in stays], np.float64)
    answer: dict[str, Any] = {
        "time_ns": columns.times(frame_row),
        "frame": columns.frame_ids[frame_row],
        "id": ids,
        "description": known.descriptions(known.rows(ids, ends)),
        "duration_s": durations,
    }

    def lines() -> Iterator[str]:
        yield from opening(about)
        yield f"{'Time':>8} {'Id':>6} {'Actor':<35} {'Duration':>10}"
        shown = number if correct else "{:.0f}".format
        for at, actor, name, duration in zip(
            seconds.tolist(), ids.tolist(), answer["description"], durations.tolist(), strict=True
        ):
            yield f"{shown(at):>8} {actor:>6} {padded(name, 35)} {shown(duration):>10}"
        yield from closing(about)

    return Answer("blocked", answer, lines, about)


def _map_at_end(columns: RecordingColumns, known: KnownActors) -> UnorderedIds:
    """Return the actors in the simulator's map at the end: added, forgotten, and added again by their positions."""
    added, frame_row = columns("actors", "id").tolist(), columns.frame_rows("actors").tolist()
    forgotten, forgotten_at = known.forgotten.tolist(), known.forgotten_at.tolist()
    # In a frame, additions come first, then removals, then positions; each in file order.
    events = [(at, 0, i, actor) for i, (at, actor) in enumerate(zip(frame_row, added, strict=True))]
    events += [(at, 1, i, actor) for i, (at, actor) in enumerate(zip(forgotten_at, forgotten, strict=True))]
    where = columns.frame_rows("position")
    for actor in np.unique(columns("position", "id")).tolist():
        rows = columns.rows("position", actor)
        first = np.searchsorted(where[rows], [0, *known.forgotten_at[known.forgotten == actor]])
        for row in rows[np.unique(first[first < len(rows)])].tolist():
            events.append((int(where[row]), 2, row, actor))
    ids = UnorderedIds()
    for _, event, _, actor in sorted(events):
        (ids.remove if event == 1 else ids.add)(actor)
    return ids


def _stays(columns: RecordingColumns, known: KnownActors, limit: float, correct: bool) -> Iterator[Stay]:
    frame_row = columns.frame_rows("position")
    duration = np.maximum(columns.duration, 0.0) if correct else columns.duration
    for actor in np.unique(columns("position", "id")).tolist():
        rows = columns.rows("position", actor)
        # A forgotten actor is followed from the start again.
        forgotten_at = known.forgotten_at[known.forgotten == actor]
        cuts = np.searchsorted(frame_row[rows], np.unique(forgotten_at)).tolist()
        parts = np.split(rows, cuts)
        for i, part in enumerate(parts):
            if len(part):
                points = columns.vector("position", "location", part)
                start = points[0] if correct else np.zeros(3, points.dtype)
                last = i == len(parts) - 1
                yield from _stays_of_actor(actor, part, frame_row[part], points, duration, start, limit, last)


def _stays_of_actor(
    actor: int,
    rows: I64,
    frame_row: I64,
    points: Array,
    duration: Array,
    start: Array,
    limit: float,
    last: bool,
) -> Iterator[Stay]:
    """Yield the stays of one actor, which begins at *start*; *last*: also the stay that does not end."""
    since, timer, at = 0, 0.0, 0
    reference, step = start, FIRST
    while at < len(rows):
        with np.errstate(all="ignore"):
            delta = points[at : at + step] - reference
            square = delta * delta
            # Added in the same order and precision as in the simulator.
            far = ~(np.sqrt(square[:, 0] + square[:, 1] + square[:, 2]) < limit)
        near = int(far.argmax()) if far.any() else len(far)
        timers = np.add.accumulate(np.append(timer, duration[frame_row[at : at + near]]))
        began = np.flatnonzero(timers[:-1] == 0)
        if len(began):
            since = int(frame_row[at + began[-1]])
        timer = float(timers[-1])
        at += near
        step = min(step * 2, MOST) if near == len(far) else FIRST
        if near < len(far):
            yield Stay(actor, int(frame_row[at]), int(rows[at]), since, timer)
            reference, timer, at = points[at], 0.0, at + 1
    if last:
        yield Stay(actor, len(duration), len(rows), since, timer)


#: Numbers of buckets of ``std::unordered_map`` of libstdc++ as it grows.
BUCKET_COUNTS = (
    *(1, 13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273, 20753, 42043, 85229, 172933, 351061),
    *(712697, 1447153, 2938679, 5967347, 12117689),
)


class UnorderedIds:
    """Ids in the iteration order of ``std::unordered_map<uint32_t, …>`` of libstdc++; a number is its own hash.

    Buckets are in reverse order of their first use; within a bucket, the last id added comes first.
    """

    def __init__(self) -> None:
        self._size = 0
        self._ids: set[int] = set()
        #: Ids by bucket, both in reverse order of iteration.
        self._buckets: dict[int, list[int]] = {}

    def add(self, number: int) -> None:
        """Add an id, unless it is present."""
        if number in self._ids:
            return
        self._ids.add(number)
        if len(self._ids) > BUCKET_COUNTS[self._size] or not self._size:
            self._grow()
        self._put(number)

    def remove(self, number: int) -> None:
        """Remove an id, if it is present."""
        if number in self._ids:
            self._ids.remove(number)
            bucket = number % BUCKET_COUNTS[self._size]
            self._buckets[bucket].remove(number)
            if not self._buckets[bucket]:
                del self._buckets[bucket]

    def __iter__(self) -> Iterator[int]:
        for bucket in reversed(self._buckets.values()):
            yield from reversed(bucket)

    def _put(self, number: int) -> None:
        self._buckets.setdefault(number % BUCKET_COUNTS[self._size], []).append(number)

    def _grow(self) -> None:
        known = list(self)
        self._size = min(self._size + 1, len(BUCKET_COUNTS) - 1)
        self._buckets.clear()
        for key in known:
            self._put(key)


#: Letter of each type of actors: as the simulator prints them, with signs as heroes and sensors as any; and distinct.
PRINTED, DISTINCT = "ovwtha", "ovwtsn"


def collisions(log: Log | Openable, type1: str = "a", type2: str = "a", correct: bool = False) -> Answer:
    """List the beginnings of collisions, as the simulator's client does.

    log           an open Log, or anything that ``logreel.open`` accepts
    type1, type2  kinds of the two actors: ``a`` any, ``h`` hero, ``o`` other, ``v`` vehicle, ``w`` walker, ``t``
                  traffic light; with *correct* also ``s`` sign and ``n`` sensor
    correct       True: without the simulator's faults: signs and sensors have letters, ``h`` selects only heroes,
                  actors keep their descriptions, times are not rounded

    Raises UsageError for another letter.
    """
    letters = DISTINCT if correct else PRINTED
    for letter in (type1, type2):
        if len(letter) != 1 or letter not in letters + "ah":
            raise UsageError(
                f"kinds of actors are the letters {' '.join(sorted({*letters, *'ah'}))}, not {letter!r}"
            )
    columns = RecordingColumns(recording(log))
    known = KnownActors(columns, correct)
    frame_row = columns.frame_rows("collisions")
    sides = [_Side(columns, known, frame_row, n, letters) for n in (1, 2)]
    fits = sides[0].fits(type1, correct) & sides[1].fits(type2, correct)
    rows = np.flatnonzero(fits)
    rows = rows[_is_beginning(frame_row[rows], sides[0].ids[rows], sides[1].ids[rows])]
    about = recording_summary(columns)
    answer: dict[str, Any] = {
        "time_ns": columns.times(frame_row[rows]),
        "frame": columns("collisions", "frame")[rows],
        "collision_id": columns("collisions", "collision_id")[rows],
    }
    for n, side in enumerate(sides, 1):
        answer |= {f"{name}{n}": values for name, values in side.columns(rows).items()}
    seconds = columns.elapsed[frame_row[rows]].tolist()
    codes = ["".join(pair) for pair in zip(sides[0].letters(rows), sides[1].letters(rows), strict=True)]

    def lines() -> Iterator[str]:
        yield from opening(about)
        yield f"{'Time':>8} {'Types':>6} {'Id':>6} {'Actor 1':<35} {'Id':>6} {'Actor 2':<35}"
        names = (
            answer["id1"].tolist(),
            answer["description1"],
            answer["id2"].tolist(),
            answer["description2"],
        )
        for at, code, id1, name1, id2, name2 in zip(seconds, codes, *names, strict=True):
            time = number(at) if correct else f"{at:.0f}"
            yield f"{time:>8}   {code[0]} {code[1]}  {id1:>6} {padded(name1, 35)} {id2:>6} {padded(name2, 35)}"
        yield from closing(about, rounded=bool(seconds) and not correct)

    return Answer("collisions", answer, lines, about)


class _Side:
    """One of the two actors of every collision."""

    def __init__(
        self, columns: RecordingColumns, known: KnownActors, frame_row: I64, n: int, letters: str
    ) -> None:
        self.ids = columns("collisions", f"actor{n}").astype(np.int64)
        self.hero: NDArray[np.bool_] = columns("collisions", f"actor{n}_is_hero").astype(bool)
        self._known, self._row = known, known.rows(self.ids, frame_row)
        self.types = known.types(self._row)
        self._table = np.array([*letters, "o"])

    def letters(self, rows: Any = slice(None)) -> list[str]:
        letters: list[str] = self._table[np.minimum(self.types[rows], len(self._table) - 1)].tolist()
        return letters

    def fits(self, letter: str, correct: bool) -> NDArray[np.bool_]:
        """Return bool[n]: True for actors of a kind."""
        if letter == "a":
            return np.ones(len(self.ids), bool)
        same: NDArray[np.bool_] = self._table[np.minimum(self.types, len(self._table) - 1)] == letter
        if letter == "h":
            return self.hero if correct else self.hero | same
        return same

    def columns(self, rows: I64) -> dict[str, Any]:
        return {
            "id": self.ids[rows],
            "type": [type_name(t) for t in self.types[rows].tolist()],
            "hero": self.hero[rows],
            "description": self._known.descriptions(self._row[rows]),
        }


def _is_beginning(frame_row: I64, first: I64, second: I64) -> NDArray[np.bool_]:
    """Return bool[n]: True for records of a pair that has no record in the frame before."""
    if not len(frame_row):
        return np.zeros(0, bool)
    pairs = np.unique(first << 32 | second, return_inverse=True)[1].astype(np.int64)
    key = frame_row * (int(pairs.max()) + 1) + pairs
    return ~np.isin(key - (int(pairs.max()) + 1), key)
