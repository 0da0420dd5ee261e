"""Recordings from trajectories: a table of poses (CSV), or a trace of OSI with ground truth.

Rules are in docs/howto/carla.md. What is written is a recording as of release 0.9.16, which the simulator replays.
"""

from __future__ import annotations

import csv
import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.errors import LogError, UsageError
from logreel.formats.carla.columns import XYZ
from logreel.formats.carla.simulator.replay import pose_dtype
from logreel.formats.carla.traffic import AXES, RATES, TURNS
from logreel.formats.carla.writer import seconds_of
from logreel.io.arrays import F64, I64
from logreel.lenses.motion import quaternion
from logreel.lenses.rotation import euler, rotated, unit
from logreel.log.log import Log
from logreel.log.scan import Schema
from logreel.log.times import SECOND
from logreel.meaning.traffic import BRAKE, LEFT, ON_OFF, RIGHT
from logreel.registry.open import open_log
from logreel.schemas import osi
from logreel.write.writer import create

if TYPE_CHECKING:
    from logreel.log.joined_log import Openable
    from logreel.write.writer import Writer

#: Blueprint of an actor by its type.
BLUEPRINTS = {
    "vehicle": "vehicle.tesla.model3",
    "car": "vehicle.tesla.model3",
    "van": "vehicle.mercedes.sprinter",
    "truck": "vehicle.carlamotors.carlacola",
    "bus": "vehicle.mitsubishi.fusorosa",
    "motorbike": "vehicle.yamaha.yzf",
    "bicycle": "vehicle.bh.crossbike",
    "pedestrian": "walker.pedestrian.0001",
    "walker": "walker.pedestrian.0001",
    "prop": "static.prop.trafficcone01",
}
#: Type of an actor of which nothing is known.
UNKNOWN = "vehicle"
_BLUEPRINT = re.compile(r"(vehicle|walker|static)(\.[A-Za-z0-9_-]+)+")
#: Numbers of the types of actors in a recording, by the first word of the blueprint.
_TYPES = {"vehicle": 1, "walker": 2, "static": 0}
#: Ids that a recording can hold: the simulator leaves out actor 1, which is its spectator.
FIRST_ID, LAST_ID = 2, 0xFFFFFFFE
#: Most records of a packet, whose count has 16 bits.
MOST_ACTORS = 65535
#: Most characters of a blueprint or role.
_LONGEST = 200
#: Number of the type of attributes that are texts, in recordings of version 2.
_TEXT = 4
#: Number of the type of traffic lights, and of their states: red, yellow, green, off, unknown.
_TRAFFIC_LIGHT, _OFF, _UNKNOWN_STATE = 3, 3, 4
_STATE = np.dtype([("id", "<u4"), ("frozen", "u1"), ("elapsed", "<f4"), ("state", "u1")])
_FLAGS = np.dtype([("id", "<u4"), ("flags", "<u4")])
#: Packets that each frame of a recording has, in their order.
_TOPICS = (
    *("visual_time", "actors", "actor_removals", "actor_parents", "collisions", "doors", "position"),
    *("traffic_lights", "vehicle_control", "walker", "vehicle_lights", "wheels", "bikers", "velocity"),
    *("bounding_boxes", "bones"),
)
#: Topics of which packets without records are left out, as the simulator does.
_ONLY_FULL = ("velocity",)
#: Columns of tables: required ones, each of several ways to say it, and optional ones.
TIMES = ("time_ns", "time")
PLACE = XYZ
RADIANS, DEGREES = ("roll", "pitch", "yaw"), ("roll_deg", "pitch_deg", "yaw_deg")
QUATERNION = ("qx", "qy", "qz", "qw")
VELOCITY, SIZE = ("vx", "vy", "vz"), ("length", "width", "height")
#: Columns of the channel ``position`` as ``logreel convert`` writes it.
_OWN_PLACE = tuple(f"location.{name}" for name in XYZ)
_OWN_TURN = tuple(f"rotation.{name}" for name in RADIANS)
#: Greatest lengths in m, angles and seconds of a table: far beyond any, and safe to compute with.
_GREATEST = 1e12
#: Greatest distance of a time from 0, ns: twice as much fits into a recording.
_LATEST = 4 * 10**18
#: Rounding in m from which a note tells of it.
ROUNDING = 1e-3


@dataclass(frozen=True, slots=True)
class TrajectoriesWritten:
    """Summary of a recording that was made: number of frames, actors and poses, and a sentence for each remark.

    lost  a sentence for each thing of the source that could not be written
    """

    frames: int
    actors: int
    poses: int
    notes: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


@dataclass(slots=True)
class _Facts:
    """What is known of an actor; *centre* and *size* of its box in m, in its own right-handed axes."""

    type: str = UNKNOWN
    model: str = ""
    role: str = ""
    centre: F64 = field(default_factory=lambda: np.full(3, np.nan))
    size: F64 = field(default_factory=lambda: np.full(3, np.nan))


@dataclass(frozen=True, slots=True)
class _Head:
    """A traffic light: place in m and rad, in right-handed axes, and blueprint."""

    position: tuple[float, ...]
    angles: tuple[float, ...]
    model: str


@dataclass(slots=True)
class _Motions:
    """Poses of actors, one row each: ns, ids, m, rad, m/s and rad/s in right-handed axes; NaN for unknown motion.

    lights  bits of the lights of a vehicle, -1: unknown
    heads   traffic lights by id; *states*: numbers of their states by time and id
    """

    time: I64
    id: Any
    position: F64
    angles: F64
    velocity: F64
    rates: F64
    lights: I64
    facts: dict[int, _Facts]
    heads: dict[int, _Head] = field(default_factory=dict)
    states: dict[int, dict[int, int]] = field(default_factory=dict)
    map: str = ""
    date: str = ""
    notes: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


def write_trajectories(
    source: Log | Openable,
    path: str | os.PathLike[str],
    *,
    map: str | None = None,
    date: str | None = None,
    blueprints: Mapping[str, str] | None = None,
    ros_axes: bool = False,
    force: bool = False,
) -> TrajectoriesWritten:
    """Write trajectories as a recording that the simulator replays; return a summary.

    source      path of a table ``x.csv``; or a trace of OSI with ground truth, as an open Log or anything that
                ``logreel.open`` takes
    map         name of the map; None: as the trace says, else none
    date        date of the recording, ISO 8601; None: as the trace says, else 1970
    blueprints  blueprints by actor id, model or type: ``{"7": "vehicle.audi.tt", "truck": "vehicle.mini.cooper"}``
    ros_axes    True: a table with columns ``location.x`` … is in metres and right-handed axes, as written from a log
                opened with *ros_axes*
    force       True: replace an existing file

    Raises LogError for a table that is damaged, with the line, and if there is no pose; UsageError for missing columns
    and wrong blueprints. Damaged messages and objects of a trace are left out, and counted in ``lost``.
    """
    motions = _read(source, ros_axes)
    if not len(motions.time):
        raise LogError(
            "no pose of any actor" + "".join(f"; {text}" for text in motions.lost), path=_name(source)
        )
    chosen = _blueprints(motions, blueprints or {})
    header: dict[str, Any] = {
        "version": 2,
        "map": motions.map if map is None else map,
        "date": seconds_of(date or motions.date) if date or motions.date else 0,
    }
    if not header["map"]:
        motions.notes.append("the recording names no map: give its name for the simulator to load it")
    numbers = _numbers(motions)
    _check_counts(motions)
    with create(path, format="carla", force=force, **header) as writer:
        frames = _write(writer, motions, chosen, numbers)
    return TrajectoriesWritten(
        frames, len(chosen) + len(motions.heads), len(motions.time), tuple(motions.notes), tuple(motions.lost)
    )


def _name(source: Any) -> str:
    return source.name if isinstance(source, Log) else str(source)[:200]


def _read(source: Log | Openable, ros_axes: bool) -> _Motions:
    if isinstance(source, str | os.PathLike) and os.fspath(source).lower().endswith(".csv"):
        return _read_table(os.fspath(source), ros_axes)
    if isinstance(source, Log):
        return _read_trace(source)
    with open_log(source) as log:
        return _read_trace(log)


# ------------------------------------------------------------------------------------------------------- tables


class _Row:
    """A row of a table, by the names of its columns."""

    def __init__(self, path: str, names: Sequence[str]) -> None:
        self._path, self._at = path, {name: i for i, name in enumerate(names)}
        self.line, self.cells = 0, list[str]()

    def fail(self, text: str) -> LogError:
        """Return the error for this row."""
        return LogError(f"line {self.line}: {text}", path=self._path)

    def text(self, name: str) -> str:
        """Return a cell; empty if there is no such column."""
        at = self._at.get(name)
        return "" if at is None else self.cells[at].strip()

    def number(self, name: str) -> float:
        """Return a cell as a number."""
        try:
            value = float(self.text(name))
        except ValueError:
            value = math.nan
        if not abs(value) <= _GREATEST:
            raise self.fail(f"{name} is {self.text(name)!r:.60}, not a finite number")
        return value

    def numbers(self, names: Sequence[str]) -> list[float]:
        """Return cells as numbers."""
        return [self.number(name) for name in names]

    def maybe(self, names: Sequence[str]) -> list[float]:
        """Return cells as numbers, NaN if all are empty or there are no such columns."""
        return self.numbers(names) if any(map(self.text, names)) else [math.nan] * len(names)

    def integer(self, name: str) -> int:
        """Return a cell as a whole number of 64 bits."""
        text = self.text(name)
        if not re.fullmatch(r"-?[0-9]{1,18}", text):
            raise self.fail(f"{name} is {text!r:.60}, not a whole number")
        return int(text)


def _read_table(path: str, ros_axes: bool) -> _Motions:
    """Read a table of poses; raise LogError with the line of the first fault."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            return _read_rows(path, csv.reader(file, strict=True), ros_axes)
    except UnicodeDecodeError as error:
        raise LogError(f"is no table: byte {error.start} of a block is no UTF-8", path=path) from None
    except csv.Error as error:
        raise LogError(f"is no table: {error}", path=path) from None


def _read_rows(path: str, rows: Any, ros_axes: bool) -> _Motions:
    names = [name.strip() for name in next(rows, [])]
    own = _OWN_PLACE[0] in names
    if ros_axes and not own:
        raise UsageError("only tables with location.x … are in axes that can be chosen", path=path)
    time, place, turn = _columns_of(path, names, own)
    row, last = _Row(path, names), dict[int, int]()
    times, ids, values = list[int](), list[int](), list[list[float]]()
    facts = dict[int, _Facts]()
    for row.cells in rows:
        row.line = rows.line_num
        if not row.cells:
            continue
        if len(row.cells) != len(names):
            raise row.fail(f"{len(row.cells)} cells, where the table has {len(names)} columns")
        actor = row.integer("id")
        if actor < 0:
            raise row.fail(f"id is {actor}, and below 0")
        at = row.integer(time) if time == TIMES[0] else round(row.number(time) * SECOND)
        if abs(at) > _LATEST:
            raise row.fail(f"{time} is {row.text(time)!r:.60}, which no recording can hold")
        if at <= last.get(actor, at - 1):
            why = "again at the same time" if at == last[actor] else "after a later time"
            raise row.fail(f"actor {actor} is {why}: {time} is {row.text(time)}")
        last[actor] = at
        times.append(at)
        ids.append(actor)
        values.append([*row.numbers(place), *row.numbers(turn), *row.maybe(VELOCITY)])
        if turn == QUATERNION and not any(values[-1][3:7]):
            raise row.fail("the quaternion is 0 0 0 0, which is no rotation")
        if actor not in facts:
            facts[actor] = _facts_of(row)
    table = np.array(values, np.float64).reshape(len(values), 6 + len(turn))
    position, angles, velocity = table[:, :3], table[:, 3 : 3 + len(turn)], table[:, 3 + len(turn) :]
    if turn == QUATERNION:
        angles = euler(unit(angles)[0])
    elif turn != RADIANS:
        angles = np.radians(angles)
    if own and not ros_axes:
        position, angles = position / 100 * AXES, angles * TURNS
    unused = [
        name for name in names if name not in {time, "id", "type", "role", *place, *turn, *VELOCITY, *SIZE}
    ]
    notes = [f"columns that are not used: {', '.join(unused)[:200]}"] if unused else []
    known = np.array(ids, np.int64)
    nothing = np.full((len(known), 3), np.nan)
    dark = np.full(len(known), -1)
    return _Motions(
        np.array(times, np.int64), known, position, angles, velocity, nothing, dark, facts, notes=notes
    )


def _columns_of(path: str, names: Sequence[str], own: bool) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return the columns of times, places and rotations; raise UsageError if one is missing or doubled."""
    doubled = [name for name, count in Counter(names).items() if count > 1]
    if doubled:
        raise UsageError(f"several columns are called {doubled[0]!r:.60}", path=path)
    turns = [_OWN_TURN] if own else [RADIANS, DEGREES, QUATERNION]
    time = next((name for name in TIMES if name in names), "")
    turn = next((columns for columns in turns if set(columns) <= set(names)), None)
    place = _OWN_PLACE if own else PLACE
    missing = [name for name in ("id", *place) if name not in names]
    if not time:
        missing.insert(0, " or ".join(TIMES))
    if turn is None:
        missing.append(" or ".join(",".join(columns) for columns in turns))
    if turn is None or missing:
        present = ", ".join(names)[:200] or "none"
        raise UsageError(
            f"the first line of the table has no column {', '.join(missing)}; it has {present}",
            path=path,
        )
    return time, place, turn


def _facts_of(row: _Row) -> _Facts:
    """Return what the first row of an actor tells of it."""
    told = row.text("type") or UNKNOWN
    is_blueprint = len(told) <= _LONGEST and _BLUEPRINT.fullmatch(told) is not None
    role = row.text("role")[:_LONGEST]
    facts = _Facts(told.partition(".")[0], told, role) if is_blueprint else _Facts(told, role=role)
    facts.size = np.array(row.maybe(SIZE), np.float64)
    if np.isfinite(facts.size).all():
        if not (facts.size > 0).all():
            raise row.fail("length, width and height are greater than 0")
        facts.centre = _usual_centre(facts)
    return facts


def _usual_centre(facts: _Facts) -> F64:
    """Return the usual centre of a box: origins of vehicles are on the ground, those of walkers in the middle."""
    is_walker = facts.type in ("walker", "pedestrian")
    return np.array([0.0, 0.0, 0.0 if is_walker else facts.size[2] / 2])


# ------------------------------------------------------------------------------------------------------- traces

#: Types of vehicles by the number of VehicleClassification.Type.
_VEHICLES = {
    4: "car",
    2: "car",
    3: "car",
    5: "car",
    6: "van",
    7: "truck",
    10: "motorbike",
    11: "bicycle",
    12: "bus",
}
#: State of a traffic light whose lamp is on, by the number of its colour.
_COLORS = {
    osi.values("TrafficLight.Classification.Color")[name]: n
    for n, name in enumerate(("RED", "YELLOW", "GREEN"))
}
_MODES = osi.values("TrafficLight.Classification.Mode")
_LIGHT = re.compile(r"traffic\.[a-z_]{1,100}")
_LIGHT_STATE = "MovingObject.VehicleClassification.LightState"
_ON = osi.values(f"{_LIGHT_STATE}.GenericLightState")["ON"]
_BRAKING = osi.values(f"{_LIGHT_STATE}.BrakeLightState")["NORMAL"]
_INDICATORS = {
    osi.values(f"{_LIGHT_STATE}.IndicatorState")[name]: flags
    for name, flags in (("LEFT", LEFT), ("RIGHT", RIGHT), ("WARNING", LEFT | RIGHT))
}
_MAP = re.compile(r"[A-Za-z0-9_/-]{1,200}")


def _read_trace(log: Log) -> _Motions:
    """Read the ground truth of a trace; what cannot be used is counted."""
    listed = [ch for ch in log.channels.values() if ch.schema.name == osi.GROUND_TRUTH and len(ch)]
    if not listed:
        raise LogError(f"no channel with messages of type {osi.GROUND_TRUTH}", path=log.name)
    reader = _TraceReader()
    for message in listed[0]:
        reader.read(bytes(message.data))
    motions = reader.motions()
    if len(listed) > 1:
        motions.notes.append(f"of {len(listed)} channels with ground truth, {listed[0].topic!r} is taken")
    trace = log.metadata.get(osi.TRACE)
    if isinstance(trace, Mapping):
        motions.date = _date(str(trace.get("zero_time", "")))
    lost = sum(problem.lost for problem in log.problems)
    if lost:
        motions.lost.append(
            f"{lost} place{'s' * (lost != 1)} of the trace could not be read, 'logreel check' says more"
        )
    return motions


def _date(text: str) -> str:
    """Return a date if it is one, else an empty text."""
    try:
        seconds_of(text)
    except UsageError:
        return ""
    return text


class _TraceReader:
    """Collects the poses of messages one after another, and counts what cannot be used."""

    def __init__(self) -> None:
        self._class = osi.class_of(osi.descriptor_set())
        self._times, self._ids, self._rows = list[int](), list[int](), list[tuple[float, ...]]()
        self._facts: dict[int, _Facts] = {}
        self._lights = list[int]()
        self._heads: dict[int, _Head] = {}
        self._states: dict[int, dict[int, int]] = {}
        self._map = ""
        self._last: int | None = None
        self._skipped: Counter[str] = Counter()

    def read(self, data: bytes) -> None:
        """Read a message."""
        from google.protobuf.message import DecodeError

        try:
            truth = self._class.FromString(data)
        except (DecodeError, UnicodeDecodeError):
            self._skipped["messages are no ground truth"] += 1
            return
        time = truth.timestamp.seconds * SECOND + truth.timestamp.nanos
        if abs(time) > _LATEST or (self._last is not None and time <= self._last):
            self._skipped["messages have a time that is not after that of the one before"] += 1
            return
        self._last = time
        map_name = osi.text(truth.map_reference).removesuffix(".xodr")
        if not self._map and _MAP.fullmatch(map_name):
            self._map = map_name
        host = truth.host_vehicle_id.value if truth.HasField("host_vehicle_id") else None
        seen = set[int]()
        for body in truth.moving_object:
            self._take(time, body, seen, host)
        for body in truth.stationary_object:
            model = osi.text(body.model_reference)
            if model.startswith("static.") and _BLUEPRINT.fullmatch(model):
                self._take(time, body, seen, host)
            else:
                self._skipped["poses of objects that are no blueprints of the simulator"] += 1
        self._states[time] = self._states_of(truth.traffic_light)

    def _states_of(self, lamps: Sequence[Any]) -> dict[int, int]:
        """Return the states of the traffic lights whose lamps refer to one, and learn of new ones."""
        states = dict[int, int]()
        for lamp in lamps:
            number = osi.facts_of(lamp.source_reference)[0].get("id", "")
            base, model = lamp.base, osi.text(lamp.model_reference)
            place = (base.position.x, base.position.y, base.position.z)
            turn = (base.orientation.roll, base.orientation.pitch, base.orientation.yaw)
            is_fine = all(abs(value) <= _GREATEST for value in (*place, *turn))
            color = _COLORS.get(lamp.classification.color)
            if (
                not (re.fullmatch("[0-9]{1,10}", number) and _LIGHT.fullmatch(model) and is_fine)
                or color is None
            ):
                self._skipped["lamps are of no traffic light of the simulator"] += 1
                continue
            head, mode = int(number), lamp.classification.mode
            self._heads.setdefault(head, _Head(place, turn, model))
            if mode == _MODES["CONSTANT"]:
                states[head] = color
            elif mode == _MODES["OFF"]:
                states.setdefault(head, _OFF)
            else:
                states[head] = _UNKNOWN_STATE
        return states

    def _take(self, time: int, body: Any, seen: set[int], host: int | None) -> None:
        base, number = body.base, body.id.value
        if not (body.HasField("id") and base.HasField("position") and base.HasField("orientation")):
            self._skipped["poses have no id, position or orientation"] += 1
            return
        if number in seen:
            self._skipped["poses are of an id that the message has already"] += 1
            return
        place, turn = base.position, base.orientation
        row = (place.x, place.y, place.z, turn.roll, turn.pitch, turn.yaw)
        if not all(abs(value) <= _GREATEST for value in row):
            self._skipped["poses are not finite"] += 1
            return
        seen.add(number)
        motion = [math.nan] * 6
        if hasattr(base, "velocity"):
            if base.HasField("velocity"):
                motion[:3] = base.velocity.x, base.velocity.y, base.velocity.z
            if base.HasField("orientation_rate"):
                rates = base.orientation_rate
                motion[3:] = rates.roll, rates.pitch, rates.yaw
        if number not in self._facts:
            self._facts[number] = _facts_of_body(body, number == host)
        self._times.append(time)
        self._ids.append(number)
        self._lights.append(_lights_of(body))
        self._rows.append((*row, *motion))

    def motions(self) -> _Motions:
        """Return all that was read; positions are those of the origins of actors."""
        table = np.array(self._rows, np.float64).reshape(len(self._rows), 12)
        ids = np.array(self._ids, np.uint64)
        angles = table[:, 3:6]
        known, at = np.unique(ids, return_inverse=True)
        centres = np.array([self._facts[number].centre for number in known.tolist()]).reshape(-1, 3)[at]
        ahead = rotated(quaternion(np.degrees(angles)), np.nan_to_num(centres))
        lost = [f"{count} {what}: left out" for what, count in self._skipped.items()]
        return _Motions(
            np.array(self._times, np.int64),
            ids,
            table[:, :3] - ahead,
            angles,
            table[:, 6:9],
            table[:, 9:],
            np.array(self._lights, np.int64),
            self._facts,
            {head: known for head, known in self._heads.items() if head not in self._facts},
            self._states,
            self._map,
            lost=lost,
        )


def _lights_of(body: Any) -> int:
    """Return the bits of the lights that are on, -1 if they are unknown."""
    if not hasattr(body, "vehicle_classification") or not body.vehicle_classification.HasField("light_state"):
        return -1
    lights, flags = body.vehicle_classification.light_state, 0
    for name, bit in ON_OFF.items():
        flags |= bit * (getattr(lights, name) == _ON)
    flags |= BRAKE * (lights.brake_light_state == _BRAKING)
    flags |= _INDICATORS.get(lights.indicator_state, 0)
    return int(flags)


def _facts_of_body(body: Any, is_host: bool) -> _Facts:
    """Return what the first message with an object tells of it."""
    told, centre = osi.facts_of(body.source_reference)
    facts = _Facts(role="hero" if is_host else told.get("role_name", "")[:_LONGEST])
    model = osi.text(body.model_reference)
    if len(model) <= _LONGEST and _BLUEPRINT.fullmatch(model):
        facts.model = model
    if body.DESCRIPTOR.name == "StationaryObject":
        facts.type = "prop"
    elif body.type == osi.values("MovingObject.Type")["PEDESTRIAN"]:
        facts.type = "pedestrian"
    else:
        facts.type = _VEHICLES.get(body.vehicle_classification.type, UNKNOWN)
    size = np.array([body.base.dimension.length, body.base.dimension.width, body.base.dimension.height])
    if body.base.HasField("dimension") and ((size > 0) & (size <= _GREATEST)).all():
        facts.size = size
        is_known = centre is not None and all(abs(value) <= _GREATEST for value in centre)
        facts.centre = np.array(centre) if is_known else _usual_centre(facts)
    return facts


# ----------------------------------------------------------------------------------------------------- recording


def _blueprints(motions: _Motions, by_name: Mapping[str, str]) -> dict[int, str]:
    """Return the blueprint of each actor by its id in the source; tell in the notes which are chosen by type."""
    for name, blueprint in by_name.items():
        if len(blueprint) > _LONGEST or not _BLUEPRINT.fullmatch(blueprint):
            raise UsageError(
                f"{blueprint!r:.60} is no blueprint such as vehicle.tesla.model3, for {name!r:.60}"
            )
    used, by_type, chosen = set[str](), Counter[tuple[str, str]](), dict[int, str]()
    for actor, facts in motions.facts.items():
        names = [name for name in (str(actor), facts.model, facts.type) if name in by_name]
        if names:
            used.add(names[0])
            chosen[actor] = by_name[names[0]]
        elif facts.model:
            chosen[actor] = facts.model
        else:
            chosen[actor] = BLUEPRINTS.get(facts.type, BLUEPRINTS[UNKNOWN])
            by_type[facts.type, chosen[actor]] += 1
    if unknown := [name for name in by_name if name not in used]:
        raise UsageError(f"a blueprint for {unknown[0]!r:.60}, which is no id, model or type of an actor")
    for (actor_type, blueprint), count in by_type.items():
        motions.notes.append(f"{count} actors of type {actor_type!r:.60} become {blueprint}")
    return chosen


def _numbers(motions: _Motions) -> dict[int, int]:
    """Return the id of each actor in the recording by that in the source; others than possible ones get new ids."""
    known = sorted({*motions.facts, *motions.heads})
    fitting = [actor for actor in known if FIRST_ID <= actor <= LAST_ID]
    numbers, taken = {actor: actor for actor in fitting}, set(fitting)
    free = (number for number in range(FIRST_ID, LAST_ID) if number not in taken)
    others = [actor for actor in known if actor not in numbers]
    numbers |= dict(zip(others, free, strict=False))
    if others:
        changed = ", ".join(f"{actor} is {numbers[actor]}" for actor in others[:5])
        count = "1 id is" if len(others) == 1 else f"{len(others)} ids are"
        motions.notes.append(f"{count} not possible in a recording, and replaced: {changed}")
    return numbers


def _check_counts(motions: _Motions) -> None:
    """Raise UsageError for more actors at one time than a packet holds."""
    times, counts = np.unique(motions.time, return_counts=True)
    for time, count in zip(times.tolist(), counts.tolist(), strict=True):
        if (count := count + len(motions.states.get(time, ()))) > MOST_ACTORS:
            raise UsageError(f"{count} actors at one time: a frame holds at most {MOST_ACTORS}")


def _write(writer: Writer, motions: _Motions, blueprints: dict[int, str], numbers: dict[int, int]) -> int:
    """Write a frame for each time; return their number."""
    first, channels = int(motions.time.min()), dict[str, int]()
    if first:
        motions.notes.append(f"the first pose is at {first / SECOND:g} s, which is 0 in the recording")
    for topic in _TOPICS:
        channels[topic] = writer.add_channel(topic, Schema(topic, "carla"))
    actors, at = np.unique(motions.id, return_inverse=True)
    number = np.array([numbers[actor] for actor in actors.tolist()], np.uint32)[at]
    order = np.lexsort((number, motions.time))
    time = motions.time[order] - first
    poses = _records(
        number[order],
        np.hstack([motions.position * 100 * AXES, np.degrees(motions.angles) * TURNS])[order] + 0.0,
    )
    _tell_rounding(motions, poses, order)
    moves = np.all(np.abs(motions.velocity[order]) <= _GREATEST, axis=1)
    rates = np.where(np.abs(motions.rates) <= _GREATEST, np.degrees(motions.rates) * RATES, 0.0)
    velocities = _records(number[order], np.hstack([motions.velocity * AXES, rates])[order] + 0.0)
    flags, flags_known = np.zeros(len(order), _FLAGS), motions.lights[order] >= 0
    flags["id"], flags["flags"] = number[order], np.maximum(motions.lights[order], 0)
    source = motions.id[order].tolist()
    rows_of = np.flatnonzero(np.append(True, np.diff(time) > 0))
    ends = dict(zip(source, range(len(source)), strict=True))
    gone, seen, heads = list[int](), set[int](), _Heads(motions, numbers)
    for begin, end in zip(rows_of.tolist(), [*rows_of[1:].tolist(), len(time)], strict=True):
        added = [row for row in range(begin, end) if source[row] not in seen]
        seen.update(source[row] for row in added)
        facts = [(int(poses["id"][row]), motions.facts[source[row]]) for row in added]
        states = heads.packet(int(time[begin]) + first)
        records = {
            "actors": [
                *(
                    _actor(actor, poses[row], blueprints[source[row]], known.role)
                    for row, (actor, known) in zip(added, facts, strict=True)
                ),
                *heads.added(),
            ],
            "actor_removals": [{"id": actor} for actor in gone],
        }
        packets = {
            "visual_time": np.float64(time[begin] / SECOND).tobytes(),
            "position": _packet(poses[begin:end]),
            "traffic_lights": states,
            "vehicle_lights": _packet(flags[begin:end][flags_known[begin:end]]),
            "velocity": _packet(velocities[begin:end][moves[begin:end]]),
            "bounding_boxes": _packet(_boxes(facts)),
        }
        for topic in _TOPICS:
            if topic in records:
                writer.write(channels[topic], int(time[begin]), {"records": records[topic]})
            elif topic not in _ONLY_FULL or packets[topic] != _EMPTY:
                writer.write(channels[topic], int(time[begin]), packets.get(topic, _EMPTY))
        gone = [int(poses["id"][row]) for row in range(begin, end) if ends[source[row]] == row]
    return len(rows_of)


class _Heads:
    """The traffic lights, time by time."""

    def __init__(self, motions: _Motions, numbers: Mapping[int, int]) -> None:
        self._motions, self._numbers = motions, numbers
        self._since: dict[int, tuple[int, int]] = {}
        self._new = list[int]()

    def packet(self, time: int) -> bytes:
        """Return the packet of the states at a time."""
        states = self._motions.states.get(time, {})
        rows = np.zeros(len(states), _STATE)
        known = [(head, state) for head, state in states.items() if head in self._motions.heads]
        self._new = [head for head, _ in known if head not in self._since]
        for row, (head, state) in zip(rows, known, strict=False):
            if self._since.get(head, (-1, 0))[0] != state:
                self._since[head] = state, time
            row["id"], row["state"] = self._numbers[head], state
            row["elapsed"] = (time - self._since[head][1]) / SECOND
        return _packet(rows[: len(known)])

    def added(self) -> Iterator[dict[str, Any]]:
        """Yield the records that add those of the last packet that are new."""
        for head in self._new:
            known = self._motions.heads[head]
            pose = [*(np.array(known.position) * 100 * AXES + 0.0), *(np.degrees(known.angles) * TURNS + 0.0)]
            yield {
                "id": self._numbers[head],
                "type": _TRAFFIC_LIGHT,
                "location": dict(zip(XYZ, pose[:3], strict=True)),
                "rotation": dict(zip(RADIANS, pose[3:], strict=True)),
                "uid": 0,
                "description": known.model,
                "attributes": [],
            }


#: A packet without records.
_EMPTY = bytes(2)


def _records(number: Any, values: F64) -> Any:
    """Return records of an id and six float32."""
    rows = np.zeros(len(number), pose_dtype(False))
    with np.errstate(over="ignore"):
        rows["id"], rows["pose"] = number, values
    return rows


def _packet(rows: Any) -> bytes:
    return len(rows).to_bytes(2, "little") + bytes(rows.tobytes())


def _boxes(actors: Sequence[tuple[int, _Facts]]) -> Any:
    """Return the records of the boxes that are known: centre and half sizes in cm."""
    known = [(actor, facts) for actor, facts in actors if np.isfinite(facts.size).all()]
    values = [[*(facts.centre * 100 * AXES + 0.0), *(facts.size * 50)] for _, facts in known]
    return _records([actor for actor, _ in known], np.array(values, np.float64).reshape(len(known), 6))


def _actor(actor: int, pose: Any, blueprint: str, role: str) -> dict[str, Any]:
    place, turn = pose["pose"][:3].tolist(), pose["pose"][3:].tolist()
    attributes = [{"type": _TEXT, "name": "role_name", "value": role}] if role else []
    return {
        "id": actor,
        "type": _TYPES[blueprint.partition(".")[0]],
        "location": dict(zip(XYZ, place, strict=True)),
        "rotation": dict(zip(RADIANS, turn, strict=True)),
        "uid": 0,
        "description": blueprint,
        "attributes": attributes,
    }


def _tell_rounding(motions: _Motions, poses: Any, order: I64) -> None:
    """Tell in the notes if float32, which recordings hold, moves an actor by more than ROUNDING."""
    apart = np.abs(poses["pose"][:, :3].astype(np.float64) / 100 * AXES - motions.position[order])
    if (worst := float(apart.max())) > ROUNDING:
        motions.notes.append(
            f"places are rounded by up to {worst:.3g} m, since a recording holds centimetres as float32: "
            "move the origin nearer"
        )
