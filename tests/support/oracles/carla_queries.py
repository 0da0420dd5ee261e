"""Queries and replay of the simulator in plain Python, the references for the fast ones; random scenes."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from support.oracles.carla import Recording
from support.samples.carla.builder import Builder

Row = tuple[Any, ...]


@dataclass
class Known:
    """Type and name of an actor, as a query knows them."""

    type: int = 0
    name: str = ""
    place: tuple[float, float, float] = (0.0, 0.0, 0.0)
    timer: float = 0.0
    since: float = 0.0


def events(r: Recording) -> Iterator[tuple[Any, str, dict[str, Any]]]:
    """Yield frame, name of the packet and record in file order; an empty name begins a frame."""
    for frame in r.frames:
        yield frame, "", {}
        for packet in frame.packets:
            for record in packet.records:
                yield frame, packet.name, record


def remember(known: dict[int, Known], kind: str, record: dict[str, Any], last: list[int]) -> None:
    """Apply additions and removals; a removal takes the actor that was added last, as in the simulator."""
    if kind == "EventAdd":
        known[record["id"]] = Known(record["type"], record["description"])
        last[:] = [record["id"]]
    elif kind == "EventDel" and last:
        known.pop(last[0], None)


def collisions(r: Recording, first: str, second: str) -> list[Row]:
    """Return the lines of show_recorder_collisions: elapsed seconds; letters, id and name of both actors."""
    known: dict[int, Known] = {}
    last: list[int] = []
    before: set[tuple[int, int]] = set()
    now: set[tuple[int, int]] = set()
    rows: list[Row] = []
    for frame, kind, record in events(r):
        remember(known, kind, record, last)
        if not kind:
            before, now = now, set()
        if kind != "Collision":
            continue
        sides, fits = [], 0
        for n, wanted in ((1, first), (2, second)):
            actor = known.get(record[f"actor{n}"], Known())
            letter = "ovwtha"[actor.type]
            fits += wanted in ("a", letter) or (wanted == "h" and record[f"actor{n}_is_hero"])
            sides += [letter, record[f"actor{n}"], actor.name]
        pair = record["actor1"], record["actor2"]
        if fits == 2:
            if pair not in before:
                rows.append((frame.elapsed, *sides))
            now.add(pair)
    return rows


def single(value: float) -> float:
    """Return *value* rounded to float32."""
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def distance(one: tuple[float, ...], other: tuple[float, ...], wide: bool) -> float:
    """Return the distance of two points, each step rounded to the float type of the recording."""
    fit = float if wide else single
    squares = [fit(fit(a - b) * fit(a - b)) for a, b in zip(one, other, strict=True)]
    return fit(math.sqrt(fit(fit(squares[0] + squares[1]) + squares[2])))


def blocked(r: Recording, min_time: float, min_distance: float) -> list[Row]:
    """Return the lines of show_recorder_actors_blocked: start, id, name and duration, longest first."""
    known: dict[int, Known] = {}
    last: list[int] = []
    rows: list[Row] = []
    for frame, kind, record in events(r):
        remember(known, kind, record, last)
        if kind != "Position":
            continue
        actor = known.setdefault(record["id"], Known())
        place = tuple(record["location"].values())
        if distance(place, actor.place, r.wide) < min_distance:
            if actor.timer == 0:
                actor.since = frame.elapsed
            actor.timer += frame.duration
            continue
        if actor.timer >= min_time:
            rows.append((actor.since, record["id"], actor.name, actor.timer))
        actor.timer, actor.place = 0.0, place  # type: ignore[assignment]
    rows += [(a.since, i, a.name, a.timer) for i, a in known.items() if a.timer >= min_time]
    return sorted(rows, key=lambda row: -row[3])


def scene(seed: int, release: str = "0.9.14", frames: int = 24) -> Builder:
    """Return a small random recording: actors appear, disappear, stand, move and collide."""
    rng = random.Random(seed)
    out = Builder(release)
    alive: dict[int, list[float]] = {}
    for i in range(frames):
        frame = out.frame(round(sum(f.duration or 0.0 for f in out.frames), 6))
        frame.duration = rng.choice((0.25, 0.5, 1.0)) if i < frames - 1 else -1.0
        while len(alive) < 5 and (i == 0 or rng.random() < 0.2):
            actor = len(out.frames) * 10 + len(alive)
            alive[actor] = [rng.uniform(-300, 300) for _ in range(3)]
            role = rng.choice(("hero", "autopilot"))
            frame.add(actor, rng.randrange(6), f"kind.{actor}", alive[actor], values={"role_name": role})
        for actor in [a for a in alive if i and rng.random() < 0.03]:
            del alive[actor]
            frame.remove(actor)
        for actor, place in alive.items():
            if rng.random() < 0.2:
                place[:] = [x + rng.uniform(-80, 80) for x in place]
            if rng.random() < 0.95:
                frame.position(actor, place, (0.0, rng.uniform(-5, 5), rng.uniform(-180, 180)))
        for one in alive:
            for other in (*alive, 0xFFFFFFFF):
                if one != other and rng.random() < 0.15:
                    frame.collision(i, one, other, (rng.random() < 0.5, rng.random() < 0.5))
    return out


Pose = tuple[float, ...]


def replay(
    r: Recording, delta: float, factor: float = 1.0, start: float = 0.0
) -> list[tuple[float, int, dict[int, Pose]]]:
    """Return time, frame and poses of each step of the simulator, which loads frames when it reaches them."""
    total = r.frames[-1].elapsed
    shown: dict[int, Pose] = {}
    loaded: dict[int, Pose] = {}
    before: dict[int, Pose] = {}
    at, steps, out = -1, 0, []
    while start + steps * delta * factor < total:
        now = start + steps * delta * factor
        steps += 1
        while at + 1 < len(r.frames) - 1 and r.frames[at + 1].elapsed <= now:
            at += 1
            frame = r.frames[at]
            for one in frame.records("EventAdd"):
                shown[one["id"]] = (*one["location"].values(), *one["rotation"].values())
            for one in frame.records("EventDel"):
                shown.pop(one["id"], None)
            if now < frame.elapsed + frame.duration:
                before = loaded
                positions = frame.records("Position")
                loaded = {p["id"]: (*p["location"].values(), *p["rotation"].values()) for p in positions}
        frame = r.frames[at]
        part = (now - frame.elapsed) / frame.duration
        for actor, pose in loaded.items():
            if actor in shown:
                shown[actor] = pose if actor not in before else way(before[actor], pose, part, factor)
        out.append((now, frame.number, dict(shown)))
    return out


def way(one: Pose, other: Pose, part: float, factor: float) -> Pose:
    """Return the pose between two poses; angles take the shorter way."""
    if part == 0 or factor >= 2:
        return one
    turns = [(b - a + 180.0) % 360.0 - 180.0 for a, b in zip(one[3:], other[3:], strict=True)]
    places = [a + (b - a) * part for a, b in zip(one[:3], other[:3], strict=True)]
    return (*places, *(a + turn * part for a, turn in zip(one[3:], turns, strict=True)))
