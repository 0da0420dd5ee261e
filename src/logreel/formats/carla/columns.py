"""Channels of one recording as NumPy arrays, and what follows from them: its actors, and their trajectories.

Each channel is read once, when it is first used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import UsageError
from logreel.io.arrays import I64
from logreel.layout.numpy_columns import Column
from logreel.log.columns import column_rows
from logreel.log.log import Log
from logreel.log.scan import Actor
from logreel.registry.open import open_log

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.log.joined_log import Openable

Array = NDArray[Any]
XYZ = ("x", "y", "z")
#: Greatest number of seconds that fits into 64-bit nanoseconds.
MAX_SECONDS = 9e9
ROLL_PITCH_YAW = ("roll", "pitch", "yaw")


def recording(log: Log | Openable) -> Log:
    """Return *log*, opened if it is no open log; raises UsageError for a log of another format."""
    log = log if isinstance(log, Log) else open_log(log)
    if log.format != "carla":
        raise UsageError(f"a log of format {log.format}, not a CARLA recording", path=log.name)
    return log


def metres(centimetres: Array) -> Array:
    """Return lengths in metres, float64."""
    # Signalling NaNs raise a floating-point warning.
    with np.errstate(invalid="ignore"):
        values: Array = centimetres.astype(np.float64) / 100.0
    return values


def _paths(names: Sequence[str], columns: Sequence[Column]) -> Iterator[tuple[str, Column]]:
    """Yield path and column of every field; structs are split into their members."""
    for name, column in zip(names, columns, strict=True):
        if column.type == "struct":
            members = [column.member(member) for member in column.names]
            yield from ((f"{name}.{path}", member) for path, member in _paths(column.names, members))
        else:
            yield name, column


def _as_numpy(column: Column) -> Array:
    if column.type in ("list", "array", "text"):
        values = np.empty(len(column), object)
        values[:] = column.to_pylist()
        return values
    return column.items()


class RecordingColumns:
    """Fields of the channels of *log*, one row per record; empty if the recording has no such channel.

    Records of damaged packets that cannot be decoded are skipped.

    any_axes  False: raise UsageError for a log that was converted to other axes and units
    """

    def __init__(self, log: Log, any_axes: bool = False) -> None:
        if not (any_axes or log.has_other_axes):
            raise UsageError("this needs the log as recorded, not in the axes of ROS", path=log.name)
        self.log = log
        self._topics: dict[str, dict[str, Any]] = {}
        self._kept: dict[tuple[str, str], Array] = {}
        self._order: dict[tuple[str, str], tuple[Array, I64]] = {}
        self._frame_rows: dict[str, I64] = {}

    def __call__(self, topic: str, path: str) -> Array:
        """Return a field of all records of a topic; text and lists as objects."""
        if (topic, path) not in self._kept:
            column = self._columns(topic).get(path)
            self._kept[topic, path] = np.zeros(0) if column is None else _as_numpy(column)
        return self._kept[topic, path]

    def _columns(self, topic: str) -> dict[str, Any]:
        """Return all columns of a topic by path; they are decoded in one pass."""
        if topic not in self._topics:
            ch = self.log.channels.get(topic)
            if ch is None:
                self._topics[topic] = {}
            else:
                rows = column_rows(ch, None)
                names = [f.name for f in ch.layout.record.visible()]
                times = Column("int64", len(rows), rows.time)
                self._topics[topic] = {"time": times, **dict(_paths(names, rows.columns))}
        return self._topics[topic]

    def vector(self, topic: str, field: str, rows: Any = slice(None), names: tuple[str, ...] = XYZ) -> Array:
        """Return a vector field of the records at *rows*: [n, 3]."""
        return np.stack([self(topic, f"{field}.{name}")[rows] for name in names], axis=-1)

    def rows(self, topic: str, actor: int, field: str = "id") -> I64:
        """Return the rows of the records about one actor, in file order: int64[n]."""
        if (topic, field) not in self._order:
            ids = self(topic, field)
            order = np.argsort(ids, kind="stable")
            self._order[topic, field] = ids[order], order
        ids, order = self._order[topic, field]
        if not len(ids) or not ids[0] <= actor <= ids[-1]:
            return order[:0]
        # Another dtype would make searchsorted copy all ids at each call.
        wanted = ids.dtype.type(actor)
        return order[ids.searchsorted(wanted) : ids.searchsorted(wanted, side="right")]

    @cached_property
    def frame_ids(self) -> Array:
        """uint64[f]: numbers of the frames, in file order."""
        return self._of_frames("frame", 0).astype(np.uint64, copy=False)

    @cached_property
    def elapsed(self) -> Array:
        """float64[f]: seconds since the start."""
        return self._of_frames("elapsed", 0.0)

    @cached_property
    def duration(self) -> Array:
        """float64[f]: seconds; -1 for the last frame."""
        return self._of_frames("duration", -1.0)

    def _of_frames(self, path: str, alone: float) -> Array:
        """Return a field of all frames; if all frames are lost, of one frame that begins at time 0."""
        values = self("frames", path)
        return values if len(values) else np.array([alone])

    def times(self, frame_row: I64) -> I64:
        """Return the times of frames given by row, ns: int64[n]."""
        seconds = np.clip(np.nan_to_num(self.elapsed[frame_row]), -MAX_SECONDS, MAX_SECONDS)
        times: I64 = np.rint(seconds * 1e9).astype(np.int64)
        return times

    def frame_rows(self, topic: str) -> I64:
        """Return the row of the frame of each record: int64[n], never descending, whatever the frame numbers are."""
        if topic not in self._frame_rows:
            ids, first = self._ids
            rank = np.searchsorted(ids, self(topic, "frame"))
            frame_row = first[np.minimum(rank, len(ids) - 1)]
            self._frame_rows[topic] = np.maximum.accumulate(frame_row).astype(np.int64)
        return self._frame_rows[topic]

    def frame_row_of(self, frame: int) -> int:
        """Return the row of the frame with a number, or -1 if there is none."""
        ids, first = self._ids
        if not ids[0] <= frame <= ids[-1]:
            return -1
        rank = int(np.searchsorted(ids, np.uint64(frame)))
        return int(first[rank]) if ids[rank] == frame else -1

    @cached_property
    def _ids(self) -> tuple[Array, I64]:
        """Numbers of the frames in ascending order, and the first row with each."""
        ids, first = np.unique(self.frame_ids, return_index=True)
        return ids, first


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
