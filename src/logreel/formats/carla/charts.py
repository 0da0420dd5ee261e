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
    vehicles, walkers, lights = (_actors(log, kind) for kind in ("vehicle", "walker", "traffic_light"))
    speeds = tuple(_of(one, "velocity", "linear", "norm", "m/s") for one in vehicles)
    yield Chart("Speed of vehicles", speeds, group="Vehicles", first=True)
    for one in vehicles[:1]:
        fields = ("steer", "throttle", "brake")
        series = tuple(Series("vehicle_control", f, "", f, where=f"id={one.id}") for f in fields)
        yield Chart(f"Controls of {_name(one)}", series, group="Vehicles", first=True)
        gear = (Series("vehicle_control", "gear", "", "gear", where=f"id={one.id}"),)
        yield Chart(f"Gear of {_name(one)}", gear, group="Vehicles")
        axes = tuple(
            Series("velocity", f"angular.{axis}", "", axis, "deg/s", f"id={one.id}") for axis in "xyz"
        )
        yield Chart(f"Turn rate of {_name(one)}", axes, group="Vehicles")
        heights = (Series("position", "location.z", "", "height", "", f"id={one.id}"),)
        yield Chart(f"Height of {_name(one)}", heights, group="Vehicles")
    yield Chart(
        "Speed of walkers", tuple(_of(one, "walker", "speed", "", "") for one in walkers), group="Walkers"
    )
    yield Chart(
        "Traffic lights (0 red, 1 yellow, 2 green, 3 off, 4 unknown)",
        tuple(_of(one, "traffic_lights", "state", "", "") for one in lights),
        group="Traffic lights",
        y=(-0.2, 4.2),
    )
    yield Chart(
        "Lights of vehicles (bits)",
        tuple(_of(one, "vehicle_lights", "flags", "", "") for one in vehicles),
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
    times, one, two = (np.asarray(ch[name]) for name in ("time", "actor1", "actor2"))
    pairs = np.stack([np.minimum(one, two), np.maximum(one, two)], axis=1)
    for pair in np.unique(pairs, axis=0).tolist():
        mine = np.sort(times[(pairs == pair).all(axis=1)])
        for run in np.split(mine, np.flatnonzero(np.diff(mine) > TOGETHER) + 1):
            names = " and ".join(_name(log.actors[n]) if n in log.actors else str(n) for n in pair)
            # A band of no length could not be seen.
            end = max(int(run[-1]), int(run[0]) + TOGETHER // 20)
            yield Band(int(run[0]), end, f"Collision of {names}", "collision", "collisions")


def _actors(log: Log, kind: str) -> list[Actor]:
    """Return actors of one kind, the hero first."""
    found = [actor for actor in log.actors.values() if actor.type == kind]
    return sorted(found, key=lambda actor: actor.attributes.get(ROLE) != HERO)[:MOST]


def _name(actor: Actor) -> str:
    hero = " (hero)" if actor.attributes.get(ROLE) == HERO else ""
    return f"{actor.id} {actor.description.removeprefix(actor.type + '.')}{hero}"


def _of(actor: Actor, topic: str, field: str, function: str, unit: str) -> Series:
    return Series(topic, field, function, _name(actor), unit, f"id={actor.id}")
