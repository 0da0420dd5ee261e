"""What a recording knows of traffic, see ``meaning.traffic``: in metres, rad, and right-handed axes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from logreel.formats.carla.columns import ActorMotion, Array, RecordingColumns, metres
from logreel.io.arrays import F64, I64
from logreel.log.log import Log
from logreel.log.scan import Actor
from logreel.meaning.traffic import (
    PEDESTRIAN,
    PROP,
    SIGN,
    VEHICLE,
    Traffic,
    TrafficLightHead,
    TrafficObject,
    Weather,
)

#: Factors that turn vectors, and angles and rates, to right-handed axes; see docs/formats/carla.md.
AXES, TURNS, RATES = np.array([1.0, -1.0, 1.0]), np.array([1.0, -1.0, -1.0]), np.array([-1.0, 1.0, -1.0])
STATES = np.array(["red", "yellow", "green", "off", "unknown"], object)
#: Roles of the vehicle that a drive is about: as the simulator's scripts and its bridge to ROS name it.
HOSTS = ("hero", "ego_vehicle")
_MOVING = {"vehicle": VEHICLE, "walker": PEDESTRIAN}


def traffic(log: Log) -> Traffic:
    """Return what a recording knows of traffic."""
    columns = RecordingColumns(log)
    time = columns.times(np.arange(len(columns.elapsed)))
    objects, others, lost = list[TrafficObject](), 0, 0
    for actor in log.actors.values():
        if actor.type == "traffic_light":
            continue
        actor_type = _MOVING.get(actor.type) or (SIGN if actor.type == "traffic_sign" else PROP)
        if actor_type == PROP and not actor.description.startswith("static."):
            others += 1
            continue
        made = _object(columns, actor, actor_type)
        objects += [made] if len(made.frame) else []
        lost += not len(made.frame)
    notes = [f"{others} actors that are neither traffic nor scenery are left out"] if others else []
    if lost:
        notes.append(f"{lost} actors are left out: no place of them is known")
    hosts = [
        actor.id
        for role in HOSTS
        for actor in log.actors.values()
        if actor.attributes.get("role_name") == role and actor.type == "vehicle"
    ]
    if len(hosts) > 1:
        notes.append(f"{len(hosts)} vehicles have a role of the host: {hosts[0]} is taken")
    lights = (actor for actor in log.actors.values() if actor.type == "traffic_light")
    return Traffic(
        time,
        str(log.metadata.get("map", "")),
        hosts[0] if hosts else None,
        tuple(objects),
        tuple(_head(columns, actor) for actor in lights),
        tuple(_weather(columns)),
        tuple(notes),
    )


def _alive(columns: RecordingColumns, actor: Actor) -> I64:
    """Return the rows of the frames in which an actor exists."""
    added = columns.frame_rows("actors")[columns.rows("actors", actor.id)][:1]
    removed = columns.frame_rows("actor_removals")[columns.rows("actor_removals", actor.id)][:1]
    first = int(added[0]) if len(added) else 0
    last = int(removed[0]) if len(removed) else len(columns.elapsed)
    return np.arange(first, max(first, last), dtype=np.int64)


def turned(degrees: Array) -> F64:
    """Return the simulator's roll, pitch and yaw in rad, -π to π, in right-handed axes."""
    with np.errstate(invalid="ignore"):
        angles = np.radians(degrees.astype(np.float64)) * TURNS
        wraps = np.abs(angles) > np.pi
        return np.asarray(np.where(wraps, angles - 2 * np.pi * np.rint(angles / (2 * np.pi)), angles) + 0.0)


def _place(columns: RecordingColumns, actor: Actor) -> tuple[F64, F64]:
    """Return where an actor was created: position and angles."""
    rows = columns.rows("actors", actor.id)[:1]
    position = metres(columns.vector("actors", "location", rows)) * AXES + 0.0
    return position[0], turned(columns.vector("actors", "rotation", rows, ("roll", "pitch", "yaw")))[0]


def _object(columns: RecordingColumns, actor: Actor, actor_type: str) -> TrafficObject:
    motion = ActorMotion(columns, actor.id)
    # The last of several places in one frame counts.
    frame, last = np.unique(motion.frame_row[::-1], return_index=True)
    rows = len(motion.frame_row) - 1 - last
    with np.errstate(invalid="ignore"):
        position, angles = metres(motion.location[rows]) * AXES + 0.0, turned(motion.rotation[rows])
        velocity, acceleration = motion.velocity[rows] * AXES + 0.0, motion.acceleration[rows] * AXES + 0.0
        rates = np.radians(motion.angular[rows]) * RATES + 0.0
    if not len(rows) and actor_type in (PROP, SIGN):
        frame = _alive(columns, actor)
        position, angles = (np.broadcast_to(row, (len(frame), 3)) for row in _place(columns, actor))
        velocity = acceleration = rates = np.broadcast_to(np.nan, (len(frame), 3))
    valid = np.isfinite(position).all(axis=1) & np.isfinite(angles).all(axis=1)
    centre, size = _box(columns, actor.id)
    return TrafficObject(
        actor.id,
        actor_type,
        actor.description,
        actor.attributes,
        centre,
        size,
        frame[valid],
        position[valid],
        angles[valid],
        velocity[valid],
        acceleration[valid],
        rates[valid],
        _lights(columns, actor.id, frame[valid]),
    )


def _box(columns: RecordingColumns, actor: int) -> tuple[F64, F64]:
    """Return centre and size of the last recorded box; NaN for none, and for one that is not finite or empty."""
    topic = "bounding_boxes"
    rows = columns.rows(topic, actor)[-1:]
    if len(rows):
        centre = (metres(columns.vector(topic, "origin", rows)) * AXES + 0.0)[0]
        size = 2 * metres(columns.vector(topic, "extent", rows))[0]
        if np.isfinite(centre).all() and np.isfinite(size).all() and (size > 0).all():
            return centre, size
    return np.full(3, np.nan), np.full(3, np.nan)


def _lights(columns: RecordingColumns, actor: int, frame: I64) -> I64:
    """Return the bits of the lights that were recorded last; -1 before the first record."""
    rows = columns.rows("vehicle_lights", actor)
    known = columns.frame_rows("vehicle_lights")[rows]
    at = np.searchsorted(known, frame, side="right") - 1
    flags = np.append(columns("vehicle_lights", "flags")[rows].astype(np.int64), -1)
    return flags[at]


def _head(columns: RecordingColumns, actor: Actor) -> TrafficLightHead:
    position, angles = _place(columns, actor)
    valid = bool(np.isfinite(position).all() and np.isfinite(angles).all())
    frame = _alive(columns, actor) if valid else np.zeros(0, np.int64)
    rows = columns.rows("traffic_lights", actor.id)
    at = np.searchsorted(columns.frame_rows("traffic_lights")[rows], frame, side="right") - 1
    numbers = np.append(columns("traffic_lights", "state")[rows].astype(np.int64), len(STATES) - 1)
    return TrafficLightHead(
        actor.id, actor.description, position, angles, frame, STATES[np.minimum(numbers, len(STATES) - 1)[at]]
    )


def _weather(columns: RecordingColumns) -> Iterator[Weather]:
    names = ("cloudiness", "precipitation", "fog_density", "sun_azimuth", "sun_altitude")
    values: Any = [columns("weather", name).astype(np.float64).tolist() for name in names]
    for frame, *row in zip(columns.frame_rows("weather").tolist(), *values, strict=True):
        cloudiness, precipitation, fog, azimuth, altitude = row
        if np.isfinite(row).all():
            sun = float(np.radians(azimuth % 360)), float(np.radians(altitude))
            yield Weather(frame, cloudiness, precipitation, fog, sun)
