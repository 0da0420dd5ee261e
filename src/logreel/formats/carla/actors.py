"""Actors of a recording, and the way of each one."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.formats.carla.columns import TURN, XYZ, Array, Columns, metres
from logreel.log.actor import Actor

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.log.log import Log


#: Names of the types of actors by their number.
TYPES = ("other", "vehicle", "walker", "traffic_light", "traffic_sign", "sensor")


def type_name(number: int) -> str:
    """Return the name of a type of actors."""
    return TYPES[number] if number < len(TYPES) else "invalid"


def actors(log: Log) -> dict[int, Actor]:
    """The actors of *log* by id, in the order in which they were added; their ways in the axes of the log."""
    columns = Columns(log, any_axes=True)
    ends = _moments(columns, "actor_removals")
    parents = dict(
        zip(
            columns("actor_parents", "child").tolist(),
            columns("actor_parents", "parent").tolist(),
            strict=True,
        )
    )
    rows = zip(
        columns("actors", "id").tolist(),
        columns("actors", "type").tolist(),
        columns("actors", "description").tolist(),
        columns("actors", "attributes").tolist(),
        columns.times(columns.place("actors")).tolist(),
        strict=True,
    )
    found: dict[int, Actor] = {}
    for actor, kind, description, attributes, start in rows:
        if actor not in found:
            found[actor] = Actor(
                actor,
                type_name(kind),
                description,
                {one["name"]: one["value"] for one in attributes},
                start,
                ends.get(actor),
                parents.get(actor),
                partial(trajectory, columns, actor),
            )
    return found


def _moments(columns: Columns, topic: str) -> dict[int, int]:
    times = columns.times(columns.place(topic)).tolist()
    return dict(zip(columns(topic, "id").tolist(), times, strict=True))


class Track:
    """Where one actor was and how it moved, a row for each of its positions.

    place          int64[n]       number of the frame, counted from 0
    location       float[n, 3]    cm, or m where the log is in the axes of ROS
    rotation       float[n, 3]    degrees: roll, pitch, yaw
    velocity       float64[n, 3]  m/s: recorded where *recorded* is True, else from locations
    angular        float64[n, 3]  degrees/s, NaN where it was not recorded
    acceleration   float64[n, 3]  m/s2, from velocities
    recorded       bool[n]
    """

    def __init__(self, columns: Columns, actor: int) -> None:
        rows = columns.rows("position", actor)
        self.place = columns.place("position")[rows]
        self.location = columns.vector("position", "location", rows)
        self.rotation = columns.vector("position", "rotation", rows, TURN)
        moves = columns.rows("velocity", actor)
        at = columns.place("velocity")[moves]
        self.recorded = np.isin(self.place, at)
        seconds = columns.elapsed[self.place]
        self.unit = "cm" if columns.log.has_other_axes else "m"
        self.velocity = rate(metres(self.location) if self.unit == "cm" else self.location, seconds)
        self.angular = np.full((len(rows), 3), np.nan)
        if self.recorded.any():
            picked = moves[np.searchsorted(at, self.place[self.recorded])]
            with np.errstate(invalid="ignore"):
                self.velocity[self.recorded] = columns.vector("velocity", "linear", picked)
                self.angular[self.recorded] = columns.vector("velocity", "angular", picked)
        self.acceleration = rate(self.velocity, seconds)

    @property
    def source(self) -> str:
        """Where the velocities come from."""
        recorded, n = int(self.recorded.sum()), len(self.recorded)
        if recorded == n:
            return "recorded"
        return f"recorded, {n - recorded} of {n} from location" if recorded else "from location"


def rate(values: Array, seconds: Array) -> Array:
    """float64[n, 3]: change per second, by the neighbours on both sides; NaN where there are none."""
    if len(values) < 2:
        return np.full(values.shape, np.nan)
    with np.errstate(all="ignore"):
        step = np.diff(seconds)[:, None]
        slope = np.diff(values, axis=0) / step
        # Of both slopes the one over the shorter step counts more: exact for steady change, and 0 where nothing moves.
        inner = (slope[:-1] * step[1:] + slope[1:] * step[:-1]) / (step[1:] + step[:-1])
    found: Array = np.concatenate([slope[:1], inner, slope[-1:]])
    return found


def trajectory(columns: Columns, actor: int) -> pa.Table:
    """The table of ``Actor.trajectory``."""
    import pyarrow as pa

    track = Track(columns, actor)
    fields = [
        pa.field("time", pa.duration("ns")),
        pa.field("frame", pa.uint64()),
        _field("location", track.location, XYZ, track.unit, "recorded"),
        _field("rotation", track.rotation, TURN, "deg", "recorded"),
        _field("velocity", track.velocity, XYZ, "m/s", track.source),
        _field("angular_velocity", track.angular, XYZ, "deg/s", "recorded"),
        _field("acceleration", track.acceleration, XYZ, "m/s2", "from velocity"),
    ]
    arrays: list[Any] = [
        pa.array(columns.times(track.place), pa.duration("ns")),
        pa.array(columns.frame_ids[track.place]),
    ]
    vectors = (track.location, track.rotation, track.velocity, track.angular, track.acceleration)
    for field, values in zip(fields[2:], vectors, strict=True):
        members = [pa.array(np.ascontiguousarray(values[:, i])) for i in range(3)]
        arrays.append(pa.StructArray.from_arrays(members, fields=list(field.type)))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata={"actor": str(actor)}))


def _field(name: str, values: Array, members: tuple[str, ...], unit: str, source: str) -> pa.Field:
    import pyarrow as pa

    kind = pa.from_numpy_dtype(values.dtype)
    struct = pa.struct([pa.field(member, kind) for member in members])
    return pa.field(name, struct, metadata={"unit": unit, "source": source})
