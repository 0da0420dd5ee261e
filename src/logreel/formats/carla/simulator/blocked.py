"""The query ``show_recorder_actors_blocked``: who stood still for long."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.formats.carla.columns import I64, Array, Columns
from logreel.formats.carla.simulator.known_actors import KnownActors, recording_summary
from logreel.formats.carla.simulator.printing import closing, number, opening, padded
from logreel.formats.carla.simulator.unordered_map import UnorderedIds
from logreel.registry.commands import Answer

if TYPE_CHECKING:
    from logreel.log.log import Log

#: What the simulator's C++ interface takes when nothing is said: seconds, centimetres.
MIN_TIME, MIN_DISTANCE = 30.0, 10.0
#: Positions that are compared at first and at most in one go.
FIRST, MOST = 8, 1 << 14


@dataclass(frozen=True, slots=True)
class Stay:
    """An actor that stays near one place.

    place     frame in which it is seen to have left, or one behind the last
    order     record in which that is seen
    since     frame of its first position there
    duration  seconds
    """

    actor: int
    place: int
    order: int
    since: int
    duration: float


def blocked(
    log: Log, min_time: float = MIN_TIME, min_distance: float = MIN_DISTANCE, correct: bool = False
) -> Answer:
    """Actors that for *min_time* seconds or longer move less than *min_distance* centimetres, longest first.

    correct  without the simulator's faults: the last frame does not take a second away, the removal of one actor
             does not disturb another, a stay begins where the actor is first seen and not where it first stays
             near the origin, times are not rounded
    """
    columns = Columns(log)
    known, about = KnownActors(columns, correct), recording_summary(columns)
    stays = [s for s in _stays(columns, known, min_distance, correct) if s.duration >= min_time]
    # Equal durations stay in the order in which the stays end; those that never do in that of the actors' map.
    stays.sort(key=lambda s: (-s.duration, s.place, s.order))
    if not correct and any(s.place == t.place == len(columns.duration) for s, t in pairwise(stays)):
        rank = {actor: i for i, actor in enumerate(_mapped(columns, known))}
        stays.sort(
            key=lambda s: (
                -s.duration,
                s.place,
                rank[s.actor] if s.place == len(columns.duration) else s.order,
            )
        )
    place = np.array([s.since for s in stays], np.int64)
    ends = np.array([s.place for s in stays], np.int64)
    ids = np.array([s.actor for s in stays], np.int64)
    seconds, durations = columns.elapsed[place], np.array([s.duration for s in stays], np.float64)
    found: dict[str, Any] = {
        "time_ns": columns.times(place),
        "frame": columns.frame_ids[place],
        "id": ids,
        "description": known.descriptions(known.rows(ids, ends)),
        "duration_s": durations,
    }

    def lines() -> Iterator[str]:
        yield from opening(about)
        yield f"{'Time':>8} {'Id':>6} {'Actor':<35} {'Duration':>10}"
        shown = number if correct else "{:.0f}".format
        for at, actor, name, duration in zip(
            seconds.tolist(), ids.tolist(), found["description"], durations.tolist(), strict=True
        ):
            yield f"{shown(at):>8} {actor:>6} {padded(name, 35)} {shown(duration):>10}"
        yield from closing(about)

    return Answer("blocked", found, lines, about)


def _mapped(columns: Columns, known: KnownActors) -> UnorderedIds:
    """The actors that the simulator knows at the end: added, forgotten, and met again where they have a position."""
    added, place = columns("actors", "id").tolist(), columns.place("actors").tolist()
    gone, gone_at = known.forgotten.tolist(), known.forgotten_at.tolist()
    # In a frame additions come first, removals next, positions last; each in the order of the file.
    events = [(at, 0, i, actor) for i, (at, actor) in enumerate(zip(place, added, strict=True))]
    events += [(at, 1, i, actor) for i, (at, actor) in enumerate(zip(gone_at, gone, strict=True))]
    where = columns.place("position")
    for actor in np.unique(columns("position", "id")).tolist():
        rows = columns.rows("position", actor)
        first = np.searchsorted(where[rows], [0, *known.forgotten_at[known.forgotten == actor]])
        for row in rows[np.unique(first[first < len(rows)])].tolist():
            events.append((int(where[row]), 2, row, actor))
    found = UnorderedIds()
    for _, kind, _, actor in sorted(events):
        (found.remove if kind == 1 else found.add)(actor)
    return found


def _stays(columns: Columns, known: KnownActors, limit: float, correct: bool) -> Iterator[Stay]:
    place = columns.place("position")
    duration = np.maximum(columns.duration, 0.0) if correct else columns.duration
    for actor in np.unique(columns("position", "id")).tolist():
        rows = columns.rows("position", actor)
        # Whoever is forgotten begins anew.
        gone = known.forgotten_at[known.forgotten == actor]
        cuts = np.searchsorted(place[rows], np.unique(gone)).tolist()
        parts = np.split(rows, cuts)
        for i, part in enumerate(parts):
            if len(part):
                points = columns.vector("position", "location", part)
                start = points[0] if correct else np.zeros(3, points.dtype)
                last = i == len(parts) - 1
                yield from _of_one(actor, part, place[part], points, duration, start, limit, last)


def _of_one(
    actor: int, rows: I64, place: I64, points: Array, duration: Array, start: Array, limit: float, last: bool
) -> Iterator[Stay]:
    """The stays of one actor, followed from *start*; *last*: also the one that never ends."""
    since, timer, at = 0, 0.0, 0
    reference, step = start, FIRST
    while at < len(rows):
        with np.errstate(all="ignore"):
            delta = points[at : at + step] - reference
            square = delta * delta
            # In the order and width in which the simulator adds.
            far = ~(np.sqrt(square[:, 0] + square[:, 1] + square[:, 2]) < limit)
        near = int(far.argmax()) if far.any() else len(far)
        timers = np.add.accumulate(np.append(timer, duration[place[at : at + near]]))
        began = np.flatnonzero(timers[:-1] == 0)
        if len(began):
            since = int(place[at + began[-1]])
        timer = float(timers[-1])
        at += near
        step = min(step * 2, MOST) if near == len(far) else FIRST
        if near < len(far):
            yield Stay(actor, int(place[at]), int(rows[at]), since, timer)
            reference, timer, at = points[at], 0.0, at + 1
    if last:
        yield Stay(actor, len(duration), len(rows), since, timer)
