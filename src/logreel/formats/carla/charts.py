"""What people look at in a drive of the simulator: charts and bands of a CARLA recording."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from logreel.lenses.facts import Band, Chart, Series

if TYPE_CHECKING:
    from logreel.log.log import Log
    from logreel.log.scan import Actor

#: Most vehicles, walkers and traffic lights that are shown.
MOST = 8
#: Collisions of the same pair of actors this close in time (ns) are one.
TOGETHER = 1_000_000_000
#: Attribute that says which role an actor has, and the role of the vehicle that the drive is about.
ROLE, HERO = "role_name", "hero"


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
    return sorted(actors, key=lambda actor: actor.attributes.get(ROLE) != HERO)[:MOST]


def _name(actor: Actor) -> str:
    hero = " (hero)" if actor.attributes.get(ROLE) == HERO else ""
    return f"{actor.id} {actor.description.removeprefix(actor.type + '.')}{hero}"


def _of(actor: Actor, topic: str, field: str, function: str, unit: str) -> Series:
    return Series(topic, field, function, _name(actor), unit, f"id={actor.id}")
