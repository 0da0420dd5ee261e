"""Actors of a recording, and their trajectories."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.formats.carla.columns import ROLL_PITCH_YAW, XYZ, Array, RecordingColumns, metres
from logreel.log.scan import Actor

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.log.log import Log


#: Names of the types of actors by their number.
TYPES = ("other", "vehicle", "walker", "traffic_light", "traffic_sign", "sensor")


def type_name(number: int) -> str:
    """Return the name of a type of actors."""
    return TYPES[number] if number < len(TYPES) else "invalid"


def actors(log: Log) -> dict[int, Actor]:
    """Return the actors of *log* by id, in the order in which they were added; trajectories in the axes of the log."""
    columns = RecordingColumns(log, any_axes=True)
    ends = _times_by_id(columns, "actor_removals")
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
        columns.times(columns.frame_rows("actors")).tolist(),
        strict=True,
    )
    by_id: dict[int, Actor] = {}
    for actor, type_number, description, attributes, start in rows:
        if actor not in by_id:
            by_id[actor] = Actor(
                actor,
                type_name(type_number),
                description,
                {attribute["name"]: attribute["value"] for attribute in attributes},
                start,
                ends.get(actor),
                parents.get(actor),
                partial(trajectory, columns, actor),
            )
    return by_id


def _times_by_id(columns: RecordingColumns, topic: str) -> dict[int, int]:
    times = columns.times(columns.frame_rows(topic)).tolist()
    return dict(zip(columns(topic, "id").tolist(), times, strict=True))


class ActorMotion:
    """Positions and motion of one actor, one row per recorded position.

    frame_row      int64[n]       row of the frame
    location       float[n, 3]    cm; m if the log is in ROS axes
    rotation       float[n, 3]    degrees: roll, pitch, yaw
    velocity       float64[n, 3]  m/s, recorded or derived from locations
    angular        float64[n, 3]  degrees/s, NaN if not recorded
    acceleration   float64[n, 3]  m/s2, derived from velocities
    recorded       bool[n]        True where velocities were recorded
    """

    def __init__(self, columns: RecordingColumns, actor: int) -> None:
        rows = columns.rows("position", actor)
        self.frame_row = columns.frame_rows("position")[rows]
        self.location = columns.vector("position", "location", rows)
        self.rotation = columns.vector("position", "rotation", rows, ROLL_PITCH_YAW)
        moves = columns.rows("velocity", actor)
        at = columns.frame_rows("velocity")[moves]
        self.recorded = np.isin(self.frame_row, at)
        seconds = columns.elapsed[self.frame_row]
        self.unit = "cm" if columns.log.has_other_axes else "m"
        self.velocity = rate(metres(self.location) if self.unit == "cm" else self.location, seconds)
        self.angular = np.full((len(rows), 3), np.nan)
        if self.recorded.any():
            picked = moves[np.searchsorted(at, self.frame_row[self.recorded])]
            with np.errstate(invalid="ignore"):
                self.velocity[self.recorded] = columns.vector("velocity", "linear", picked)
                self.angular[self.recorded] = columns.vector("velocity", "angular", picked)
        self.acceleration = rate(self.velocity, seconds)

    @property
    def source(self) -> str:
        """Origin of the velocities: recorded or derived from locations."""
        recorded, n = int(self.recorded.sum()), len(self.recorded)
        if recorded == n:
            return "recorded"
        return f"recorded, {n - recorded} of {n} from location" if recorded else "from location"


def rate(values: Array, seconds: Array) -> Array:
    """Return the change per second from the neighbouring rows: float64[n, 3]; NaN for a single row."""
    if len(values) < 2:
        return np.full(values.shape, np.nan)
    with np.errstate(all="ignore"):
        step = np.diff(seconds)[:, None]
        slope = np.diff(values, axis=0) / step
        # The slope over the shorter step has more weight: exact for constant acceleration, and 0 if nothing moves.
        inner = (slope[:-1] * step[1:] + slope[1:] * step[:-1]) / (step[1:] + step[:-1])
    slopes: Array = np.concatenate([slope[:1], inner, slope[-1:]])
    return slopes


def trajectory(columns: RecordingColumns, actor: int) -> pa.Table:
    """Return the table of ``Actor.trajectory``."""
    import pyarrow as pa

    track = ActorMotion(columns, actor)
    fields: list[pa.Field[Any]] = [
        pa.field("time", pa.duration("ns")),
        pa.field("frame", pa.uint64()),
        _field("location", track.location, XYZ, track.unit, "recorded"),
        _field("rotation", track.rotation, ROLL_PITCH_YAW, "deg", "recorded"),
        _field("velocity", track.velocity, XYZ, "m/s", track.source),
        _field("angular_velocity", track.angular, XYZ, "deg/s", "recorded"),
        _field("acceleration", track.acceleration, XYZ, "m/s2", "from velocity"),
    ]
    arrays: list[Any] = [
        pa.array(columns.times(track.frame_row), pa.duration("ns")),
        pa.array(columns.frame_ids[track.frame_row]),
    ]
    vectors = (track.location, track.rotation, track.velocity, track.angular, track.acceleration)
    for field, values in zip(fields[2:], vectors, strict=True):
        members = [pa.array(np.ascontiguousarray(values[:, i])) for i in range(3)]
        arrays.append(pa.StructArray.from_arrays(members, fields=list(field.type)))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata={"actor": str(actor)}))


def _field(name: str, values: Array, members: tuple[str, ...], unit: str, source: str) -> pa.Field[Any]:
    import pyarrow as pa

    arrow_type = pa.from_numpy_dtype(values.dtype)
    struct = pa.struct([pa.field(member, arrow_type) for member in members])
    return pa.field(name, struct, metadata={"unit": unit, "source": source})
