"""What happened in a drive in the simulator, in words, charts and bands.

Words for the summary: actors, distances and speeds, collisions, blocked actors, red lights.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.formats.carla.columns import ActorMotion, Array, RecordingColumns, metres
from logreel.formats.carla.simulator.queries import blocked, collisions
from logreel.lenses.facts import WARNING, Band, Chart, Fact, Section, Series, since_start
from logreel.log.log import Log
from logreel.log.scan import Actor
from logreel.log.times import duration_text

if TYPE_CHECKING:
    from logreel.log.log import Log
    from logreel.log.scan import Actor

#: Vehicles and walkers that are listed, heroes first, then those that moved farthest.
LISTED = 12
#: Collisions and other events that are listed.
EVENTS = 6
#: State of a traffic light that is red, and the speed in m/s from which a vehicle that leaves the light runs it.
RED, MOVING = 0, 1.0
#: Attribute that says which role an actor has, and the role of the vehicle that the drive is about.
ROLE, HERO = "role_name", "hero"
#: What an actor without a description is called, such as a building.
SOMETHING = "something"
#: Shorter steps, in m, are never a teleport.
TELEPORT = 10.0


def meaning(log: Log) -> Iterator[Section]:
    """Yield the sections of the summary of a CARLA recording."""
    yield _world(log)
    columns = RecordingColumns(log, any_axes=True)
    yield Section("actors", "Moving actors", tuple(_moving(log, columns)))
    yield Section("events", "Events", (*_collisions(log), *_blocked(log), *_red_lights(log, columns)))


def _world(log: Log) -> Section:
    facts = [
        Fact(key, key, value, str(value))
        for key in ("map", "engine", "release")
        if (value := log.metadata.get(key)) not in (None, "")
    ]
    kinds = Counter(actor.type for actor in log.actors.values())
    if kinds:
        text = ", ".join(
            f"{n} {actor_type.replace('_', ' ')}{'s' * (n != 1)}" for actor_type, n in kinds.most_common()
        )
        facts.append(Fact("actors", "actors", dict(kinds), text))
    heroes = [actor for actor in log.actors.values() if _is_hero(actor)]
    for actor in heroes:
        facts.append(Fact(f"hero_{actor.id}", HERO, actor.id, f"{actor.description}, id {actor.id}"))
    return Section("world", "World", tuple(facts))


def _is_hero(actor: Actor) -> bool:
    return actor.attributes.get(ROLE) == HERO


def _moving(log: Log, columns: RecordingColumns) -> Iterator[Fact]:
    """Yield distance and speed of heroes, and of the vehicles and walkers that moved farthest."""
    movers = []
    for actor in log.actors.values():
        if actor.type in ("vehicle", "walker"):
            motion = _motion(ActorMotion(columns, actor.id), columns)
            movers.append((not _is_hero(actor), -motion[0], actor, *motion))
    movers.sort(key=lambda mover: mover[:2])
    for _, _, actor, length, fastest, mean, teleports in movers[:LISTED]:
        name = f"{actor.type} {actor.id}"
        jumps = f", teleported {'once' if teleports == 1 else f'{teleports} times'}" if teleports else ""
        yield Fact(
            f"{actor.type}_{actor.id}",
            f"{name}, {HERO}" if _is_hero(actor) else name,
            {
                "description": actor.description,
                "distance": length,
                "max_speed": fastest,
                "mean_speed": mean,
                "teleports": teleports,
            },
            f"{actor.description}: {length:.0f} m, {fastest:.1f} m/s at most, {mean:.1f} m/s on average{jumps}",
            "m",
        )
    if len(movers) > LISTED:
        rest = sum(mover[3] for mover in movers[LISTED:])
        yield Fact(
            "others", "others", len(movers) - LISTED, f"{len(movers) - LISTED} more, {rest:.0f} m in all"
        )


def _motion(track: ActorMotion, columns: RecordingColumns) -> tuple[float, float, float, int]:
    """Return distance in m, greatest and mean speed in m/s, and how often the actor was set to another place.

    A step much longer than the speeds before and after it allow is no motion, and does not count for the distance.
    """
    place = metres(track.location) if track.unit == "cm" else np.asarray(track.location, np.float64)
    steps = np.sqrt((np.diff(place, axis=0) ** 2).sum(axis=1))
    speed = np.sqrt((track.velocity**2).sum(axis=1))
    if track.recorded.any():
        seconds = np.diff(columns.times(track.frame_row)) / 1e9
        with np.errstate(invalid="ignore"):
            far = steps > np.maximum(TELEPORT, 3 * np.fmax(speed[1:], speed[:-1]) * seconds)
        far &= track.recorded[1:] & track.recorded[:-1]
    else:
        far = np.zeros(len(steps), bool)
    speed = speed[np.isfinite(speed)]
    length, teleports = float(np.nansum(steps[~far])), int(np.count_nonzero(far))
    if not len(speed):
        return length, 0.0, 0.0, teleports
    return length, float(speed.max()), float(speed.mean()), teleports


def _collisions(log: Log) -> Iterator[Fact]:
    columns: Mapping[str, Any] = collisions(log, correct=True).columns
    times = np.asarray(columns["time_ns"]).tolist()
    if not times:
        if len(log["collisions"]) if "collisions" in log.channels else 0:
            yield Fact("collisions", "collisions", 0, "none")
        return
    # Both actors record their collision: each pair counts once a frame.
    seen: dict[tuple[int, frozenset[int]], str] = {}
    for n, time in enumerate(times):
        pair = frozenset((int(columns["id1"][n]), int(columns["id2"][n])))
        names = f"{columns['description1'][n] or SOMETHING} and {columns['description2'][n] or SOMETHING}"
        seen.setdefault((time, pair), f"{since_start(time, log)} {names}")
    listed = list(seen.values())
    more = f" and {len(listed) - EVENTS} more" if len(listed) > EVENTS else ""
    yield Fact(
        "collisions",
        "collisions",
        len(listed),
        f"{len(listed)}: {', '.join(listed[:EVENTS])}{more}",
        level=WARNING,
        times=tuple(dict.fromkeys(time for time, _ in seen)),
    )


def _blocked(log: Log) -> Iterator[Fact]:
    columns: Mapping[str, Any] = blocked(log, correct=True).columns
    count = len(columns["id"])
    if not count:
        return
    order = np.argsort(-np.asarray(columns["duration_s"]), kind="stable")[:EVENTS].tolist()
    listed = [
        f"{columns['description'][n]} for {duration_text(int(columns['duration_s'][n] * 1e9))}"
        f" from {since_start(int(columns['time_ns'][n]), log)}"
        for n in order
    ]
    more = f" and {count - EVENTS} more" if count > EVENTS else ""
    times = tuple(int(columns["time_ns"][n]) for n in order)
    yield Fact(
        "blocked", "blocked", count, f"{count}: {', '.join(listed)}{more}", note="carla blocked", times=times
    )


def _red_lights(log: Log, columns: RecordingColumns) -> Iterator[Fact]:
    """Yield the vehicles that left the area of a traffic light faster than MOVING while it was red."""
    if not len(columns("trigger_volumes", "id")) or not len(columns("traffic_lights", "id")):
        return
    lights = [actor.id for actor in log.actors.values() if actor.type == "traffic_light"]
    areas = {
        int(light): (centre, extent)
        for light, centre, extent in zip(
            columns("trigger_volumes", "id").tolist(),
            metres(columns.vector("trigger_volumes", "origin")),
            metres(columns.vector("trigger_volumes", "extent")),
            strict=True,
        )
        if light in lights
    }
    run = []
    for actor in log.actors.values():
        if actor.type == "vehicle":
            track = ActorMotion(columns, actor.id)
            for light, area in areas.items():
                run += [(time, actor, light) for time in _left_red(columns, track, light, *area)]
    run.sort(key=lambda crossing: crossing[0])
    note = "estimated: recordings lack the rotation of the areas"
    listed = [f"{since_start(t, log)} {a.description} (light {light})" for t, a, light in run[:EVENTS]]
    more = f" and {len(run) - EVENTS} more" if len(run) > EVENTS else ""
    text = f"{len(run)}: {', '.join(listed)}{more}" if run else "none"
    level, when = WARNING if run else None, tuple(time for time, _, _ in run)
    yield Fact("red_lights", "red lights run", len(run), text, level=level, note=note, times=when)


def _left_red(
    columns: RecordingColumns, track: ActorMotion, light: int, centre: Array, extent: Array
) -> list[int]:
    """Return the times in ns at which an actor left the area of a light that was red."""
    place = metres(track.location) if track.unit == "cm" else np.asarray(track.location, np.float64)
    if len(place) < 2:
        return []
    away = np.abs(place[:, :2] - centre[:2])
    inside = np.all(away <= extent[:2], axis=1) | np.all(away <= extent[1::-1], axis=1)
    last = np.flatnonzero(inside[:-1] & ~inside[1:])
    rows = columns.rows("traffic_lights", light)
    frames = columns.frame_rows("traffic_lights")[rows]
    if not len(last) or not len(rows):
        return []
    states = columns("traffic_lights", "state")[rows]
    at = np.clip(np.searchsorted(frames, track.frame_row[last], side="right") - 1, 0, None)
    speed = np.sqrt((track.velocity[last] ** 2).sum(axis=1))
    with np.errstate(invalid="ignore"):
        ran = (states[at] == RED) & (speed > MOVING)
    times: list[int] = columns.times(track.frame_row[last[ran]]).tolist()
    return times


#: Most vehicles, walkers and traffic lights that are shown.
SHOWN = 8
#: Collisions of the same pair of actors this close in time (ns) are one.
TOGETHER = 1_000_000_000


def charts(log: Log) -> Iterator[Chart]:
    """Yield the charts of *log*; series whose topic or field is missing are left out by the caller."""
    vehicles, walkers, lights = (
        _actors(log, actor_type) for actor_type in ("vehicle", "walker", "traffic_light")
    )
    speeds = tuple(_of(actor, "velocity", "linear", "norm", "m/s") for actor in vehicles)
    yield Chart("Speed of vehicles", speeds, group="Vehicles", first=True)
    for actor in vehicles[:1]:
        fields = ("steer", "throttle", "brake")
        series = tuple(Series("vehicle_control", f, "", f, where=f"id={actor.id}") for f in fields)
        yield Chart(f"Controls of {_name(actor)}", series, group="Vehicles", first=True)
        gear = (Series("vehicle_control", "gear", "", "gear", where=f"id={actor.id}"),)
        yield Chart(f"Gear of {_name(actor)}", gear, group="Vehicles")
        axes = tuple(
            Series("velocity", f"angular.{axis}", "", axis, "deg/s", f"id={actor.id}") for axis in "xyz"
        )
        yield Chart(f"Turn rate of {_name(actor)}", axes, group="Vehicles")
        heights = (Series("position", "location.z", "", "height", "", f"id={actor.id}"),)
        yield Chart(f"Height of {_name(actor)}", heights, group="Vehicles")
    yield Chart(
        "Speed of walkers", tuple(_of(actor, "walker", "speed", "", "") for actor in walkers), group="Walkers"
    )
    yield Chart(
        "Traffic lights (0 red, 1 yellow, 2 green, 3 off, 4 unknown)",
        tuple(_of(actor, "traffic_lights", "state", "", "") for actor in lights),
        group="Traffic lights",
        y=(-0.2, 4.2),
    )
    yield Chart(
        "Lights of vehicles (bits)",
        tuple(_of(actor, "vehicle_lights", "flags", "", "") for actor in vehicles),
        group="Vehicles",
    )
    yield Chart(
        "Duration of simulation steps", (Series("frames", "duration", "", "step", "s"),), group="Simulation"
    )


def bands(log: Log) -> Iterator[Band]:
    """Yield a band for each collision of a pair of actors, from its first to its last record."""
    ch = log.channels.get("collisions")
    if ch is None or not len(ch):
        return
    times, first, two = (np.asarray(ch[name]) for name in ("time", "actor1", "actor2"))
    pairs = np.stack([np.minimum(first, two), np.maximum(first, two)], axis=1)
    for pair in np.unique(pairs, axis=0).tolist():
        of_pair = np.sort(times[(pairs == pair).all(axis=1)])
        for run in np.split(of_pair, np.flatnonzero(np.diff(of_pair) > TOGETHER) + 1):
            names = " and ".join(_name(log.actors[n]) if n in log.actors else str(n) for n in pair)
            # A band of no length could not be seen.
            end = max(int(run[-1]), int(run[0]) + TOGETHER // 20)
            yield Band(int(run[0]), end, f"Collision of {names}", "collision", "collisions")


def _actors(log: Log, actor_type: str) -> list[Actor]:
    """Return actors of one kind, the hero first."""
    actors = [actor for actor in log.actors.values() if actor.type == actor_type]
    return sorted(actors, key=lambda actor: not _is_hero(actor))[:SHOWN]


def _name(actor: Actor) -> str:
    hero = " (hero)" if _is_hero(actor) else ""
    return f"{actor.id} {actor.description.removeprefix(actor.type + '.')}{hero}"


def _of(actor: Actor, topic: str, field: str, function: str, unit: str) -> Series:
    return Series(topic, field, function, _name(actor), unit, f"id={actor.id}")
