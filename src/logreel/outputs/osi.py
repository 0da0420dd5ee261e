"""Traffic of a log as a trace of OSI: an MCAP with an ``osi3.GroundTruth`` for each frame, read back and compared.

Rules are in docs/howto/carla.md. Objects are encoded from templates, since most of their bytes never change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from operator import attrgetter
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from logreel._version import __version__
from logreel.errors import LogError
from logreel.io.arrays import F64, I64
from logreel.lenses import ActorPose, lenses
from logreel.log.scan import Schema
from logreel.log.times import SECOND, utc_shift
from logreel.meaning import traffic as bits
from logreel.meaning.traffic import (
    ON_OFF,
    PEDESTRIAN,
    PROP,
    SIGN,
    VEHICLE,
    Traffic,
    TrafficLightHead,
    TrafficObject,
    Weather,
    vehicle_category,
)
from logreel.outputs.registry import Job
from logreel.registry.open import open_log
from logreel.registry.registry import formats
from logreel.schemas import osi
from logreel.write.writer import create

TOPIC = "ground_truth"
#: Any version of protobuf reads the messages: they need nothing that came later.
PROTOBUF = "3.0.0"
#: Frames that are made, and compared, at a time.
BLOCK = 512
_LIGHTS = "MovingObject.VehicleClassification.LightState"
_TYPES = {
    "car": "CAR",
    "van": "DELIVERY_VAN",
    "truck": "HEAVY_TRUCK",
    "bus": "BUS",
    "motorbike": "MOTORBIKE",
    "bicycle": "BICYCLE",
}
_ROLES = {"ambulance": "AMBULANCE", "firetruck": "FIRE", "police": "POLICE"}
#: Precipitation above these percents, heaviest first: the simulator's own presets are 30, 60 and 100.
_RAIN = ((90, "HEAVY"), (45, "MODERATE"), (15, "LIGHT"), (0, "VERY_LIGHT"))
_LIGHT_FIELDS = (*ON_OFF, "brake_light_state", "indicator_state")
_LAMPS = ("red", "yellow", "green")
#: The id of a lamp is that of its traffic light, and the number of the lamp above these bits.
LAMP_SHIFT = 32
_SPEED = re.compile(r"traffic\.speed_limit\.(\d{1,3})")


def write(out: IO[bytes], job: Job) -> None:
    """Write the frames of *job* in its interval as a trace, and compare it; raises LogError if it has no traffic."""
    find = formats()[job.log.format].traffic
    if find is None:
        raise LogError("its format tells no traffic by frames", path=job.log.name)
    traffic: Traffic = find(job.log)
    chosen = job.in_interval(traffic.time)
    frames = np.flatnonzero(chosen & (traffic.time >= 0))
    if early := int(chosen.sum()) - len(frames):
        job.skipped.append(f"{early} frames have a time below 0, which an MCAP cannot hold")
    if not any(body.type in (VEHICLE, PEDESTRIAN) for body in traffic.objects) or not len(frames):
        raise LogError("no vehicle or pedestrian has a place in the log", path=job.log.name)
    job.notes += traffic.notes
    trace = _Trace(traffic, frames)
    with create(out, format="mcap") as writer:
        number = writer.add_channel(
            TOPIC,
            Schema.of(osi.GROUND_TRUTH, osi.ENCODING, osi.descriptor_set()),
            _channel_metadata(),
        )
        writer.metadata(osi.TRACE, _trace_metadata(job, traffic))
        for first in range(0, len(frames), BLOCK):
            block = frames[first : first + BLOCK]
            for frame, data in zip(block.tolist(), trace.payloads(block), strict=True):
                writer.write(number, int(traffic.time[frame]), data)
    out.flush()
    _compare(out.name, trace)
    for ch in job.channels:
        if any(isinstance(lens, ActorPose) for lens in lenses(ch)):
            job.rows[ch.topic] = len(frames)
        job.advance(len(ch))
    unboxed = sum(not body.has_box for body in traffic.objects if body.type in (VEHICLE, PEDESTRIAN))
    if unboxed:
        job.notes.append(
            f"{unboxed} vehicles and pedestrians have no known box: their base is the origin of the actor"
        )


def _version() -> str:
    return ".".join(map(str, osi.VERSION))


def _channel_metadata() -> dict[str, str]:
    return {
        f"{osi.CHANNEL}.osi_version": _version(),
        f"{osi.CHANNEL}.protobuf_version": PROTOBUF,
        f"{osi.CHANNEL}.description": "traffic of a recording of a simulator, a message for each frame",
    }


def _trace_metadata(job: Job, traffic: Traffic) -> dict[str, str]:
    shift = utc_shift(job.log)
    zero = (
        {}
        if shift is None
        else {"zero_time": f"{datetime.fromtimestamp(shift / SECOND, UTC):%Y%m%dT%H%M%S.0Z}"}
    )
    return {
        "version": _version(),
        "min_osi_version": _version(),
        "max_osi_version": _version(),
        "min_protobuf_version": PROTOBUF,
        "max_protobuf_version": PROTOBUF,
        **zero,
        "description": f"traffic in {traffic.map}" if traffic.map else "traffic",
        "data_sources": f"{formats()[job.log.format].title}, logreel {__version__}",
    }


class _Trace:
    """The messages of a trace, and what is in them; *frames*: rows of the frames that are written, ascending."""

    def __init__(self, traffic: Traffic, frames: I64) -> None:
        self.traffic, self.frames = traffic, frames
        made = [_object(body) for body in traffic.objects]
        made += [item for head in traffic.heads for item in _lamps(head)]
        # Fields of a message are in the order of their numbers.
        self.items = sorted(made, key=lambda item: osi.fields("GroundTruth")[item.field].number)
        for item in self.items:
            item.restrict(frames)
        host = [item for item in self.items if item.field == "moving_object" and item.id == traffic.host]
        self._host_frames = set(host[0].frame.tolist()) if host else set()
        self._weather_at = [weather.frame for weather in traffic.weather]

    def content(self, frame: int) -> dict[str, Any]:
        """Return what the message of a frame holds besides its objects."""
        seconds, nanos = divmod(int(self.traffic.time[frame]), SECOND)
        content: dict[str, Any] = {
            "version": dict(zip(osi.fields("InterfaceVersion"), osi.VERSION, strict=True)),
            "timestamp": {"seconds": seconds, "nanos": nanos},
        }
        if frame in self._host_frames:
            content["host_vehicle_id"] = {"value": self.traffic.host}
        at = int(np.searchsorted(self._weather_at, frame, side="right")) - 1
        if at >= 0:
            content["environmental_conditions"] = _conditions(self.traffic.weather[at])
        if self.traffic.map:
            content["map_reference"] = self.traffic.map
        return content

    def payloads(self, block: I64) -> Iterator[bytes]:
        """Yield the message of each of the frames *block*, which follow each other among ``frames``."""
        parts: dict[int, list[bytes]] = {frame: [] for frame in block.tolist()}
        for item in self.items:
            for frame, data in item.encoded(int(block[0]), int(block[-1])):
                parts[frame].append(data)
        for frame, listed in parts.items():
            yield b"".join((osi.template("GroundTruth", self.content(frame)).data, *listed))


class _Compiled:
    """How an object is encoded, and how the same values are taken from a decoded one."""

    def __init__(self, field: str, content: Mapping[str, Any]) -> None:
        message = osi.fields("GroundTruth")[field].type_name
        self.template = osi.template("GroundTruth", {field: [content]})
        self.size = len(osi.template(message, content).data)
        leaves = list(osi.leaves(message, content))
        self.slots = [str(value) for _, value in leaves if isinstance(value, osi.Slot)]
        self.values = attrgetter(*(path for path, value in leaves if isinstance(value, osi.Slot)))
        fixed = [(path, value) for path, value in leaves if not isinstance(value, osi.Slot)]
        self.fixed, self.constants = (
            attrgetter(*(path for path, _ in fixed)),
            tuple(value for _, value in fixed),
        )
        self.references = [osi.template("ExternalReference", ref).data for ref in content["source_reference"]]

    def is_equal(self, body: Any) -> bool:
        """Return whether all of a decoded object is as it should be, except for the values of slots."""
        return bool(
            body.ByteSize() == self.size
            and self.fixed(body) == self.constants
            and [ref.SerializeToString() for ref in body.source_reference] == self.references
        )


class _Item:
    """An object of the messages: its *content* by what of it is known, and *columns*, one row per frame.

    known  int64[k]: an argument of *content* for each row
    """

    def __init__(
        self,
        field: str,
        number: int,
        frame: I64,
        columns: dict[str, NDArray[Any]],
        content: Callable[[int], Mapping[str, Any]],
        known: I64,
    ) -> None:
        self.field, self.id, self.frame, self.columns, self.known = field, number, frame, columns, known
        self._content = content
        self._compiled: dict[int, _Compiled] = {}
        self._next, self._read = 0, dict[int, tuple[list[int], list[Any]]]()
        #: The object that was read last: what is known of it with its bytes, and the values of its slots.
        self._last, self._values = (-1, b""), ()

    def restrict(self, frames: I64) -> None:
        """Leave out the frames that are not among *frames*."""
        rows = np.isin(self.frame, frames)
        if not rows.all():
            self.frame, self.known = self.frame[rows], self.known[rows]
            self.columns = {name: values[rows] for name, values in self.columns.items()}

    def compiled(self, known: int) -> _Compiled:
        """Return how rows are encoded of which the same is known."""
        if known not in self._compiled:
            self._compiled[known] = _Compiled(self.field, self._content(known))
        return self._compiled[known]

    def encoded(self, first: int, last: int) -> Iterator[tuple[int, bytes]]:
        """Yield number of the frame and field of GroundTruth, of the frames from *first* to *last*."""
        begin, end = np.searchsorted(self.frame, [first, last + 1]).tolist()
        for known in np.unique(self.known[begin:end]).tolist():
            rows = begin + np.flatnonzero(self.known[begin:end] == known)
            columns = {name: values[rows] for name, values in self.columns.items()}
            filled = self.compiled(known).template.fill(columns, len(rows))
            for frame, row in zip(self.frame[rows].tolist(), filled, strict=True):
                yield frame, row.tobytes()

    def read(self, frame: int, body: Any) -> bool:
        """Take what was decoded in a frame; return whether it is due and equal, except for the slots."""
        row = self._next
        if row >= len(self.frame) or self.frame[row] != frame:
            return False
        self._next += 1
        known = int(self.known[row])
        # What stands still has the same bytes in each frame.
        data = body.SerializeToString()
        if (known, data) != self._last:
            compiled = self.compiled(known)
            if not compiled.is_equal(body):
                return False
            self._last, self._values = (known, data), compiled.values(body)
        rows, values = self._read.setdefault(known, ([], []))
        rows.append(row)
        values.append(self._values)
        return True

    def is_equal(self) -> bool:
        """Return whether all values that were read since the last call are those of the columns."""
        for known, (rows, values) in self._read.items():
            due = [
                self.columns[base][rows, int(column)] if column else self.columns[base][rows]
                for base, _, column in (name.partition(".") for name in self.compiled(known).slots)
            ]
            if not np.array_equal(
                np.array(values, np.float64).reshape(len(rows), -1), np.stack(due, axis=-1)
            ):
                return False
        self._read.clear()
        return True

    @property
    def is_complete(self) -> bool:
        """Whether all rows were read."""
        return self._next == len(self.frame)


def _compare(path: str, trace: _Trace) -> None:
    """Raise LogError unless the trace at *path* reads as it should, by the protobuf library and its own descriptors."""
    items = {(item.field, item.id): item for item in trace.items}
    names = {item.field for item in trace.items}
    frames = trace.frames.tolist()
    with open_log(path) as log:
        ch = log[TOPIC]
        decode = osi.class_of(ch.schema.raw)
        count, wrong = 0, ""
        for count, message in enumerate(ch, 1):
            frame = frames[count - 1] if count <= len(frames) else -1
            truth = decode.FromString(bytes(message.data))
            for name in names:
                for body in getattr(truth, name):
                    item = items.get((name, body.id.value))
                    if item is None or not item.read(frame, body):
                        wrong = wrong or f"{name} {body.id.value} of frame {frame + 1}"
                truth.ClearField(name)
            due = osi.template("GroundTruth", trace.content(frame)).data
            if message.time != trace.traffic.time[frame] or truth != decode.FromString(due):
                wrong = wrong or f"frame {frame + 1}"
            if count % BLOCK == 0 or count == len(frames):
                bad = next((item for item in trace.items if not item.is_equal()), None)
                wrong = wrong or (f"{bad.field} {bad.id}" if bad is not None else "")
            if wrong:
                break
        if not wrong and (count != len(frames) or not all(item.is_complete for item in trace.items)):
            wrong = "the number of frames or of objects"
    if wrong:
        raise LogError(f"the new trace reads differently: {wrong}")


def _base(body: str, size: F64 | None, moves: int = 0) -> dict[str, Any]:
    """Return the content of a base: *moves* are the bits of what is known of its motion."""
    base: dict[str, Any] = {}
    if size is not None:
        base["dimension"] = dict(zip(osi.fields("Dimension3d"), size.tolist(), strict=True))
    base |= {
        "position": osi.slots("Vector3d", "position"),
        "orientation": osi.slots("Orientation3d", "angles"),
    }
    for bit, (name, column) in enumerate(_MOTION.items()):
        if moves >> bit & 1:
            base[name] = osi.slots(osi.fields(body)[name].type_name, column)
    return base


#: Fields of a moving base, by what they are called in Traffic; and the bit of a vehicle whose lights are known.
_MOTION = {"velocity": "velocity", "acceleration": "acceleration", "orientation_rate": "rates"}
_HAS_LIGHTS = 1 << len(_MOTION)


def _object(body: TrafficObject) -> _Item:
    columns: dict[str, NDArray[Any]] = {"position": body.middle, "angles": body.angles}
    known = np.zeros(len(body.frame), np.int64)
    if body.type in (PROP, SIGN):
        field, content = ("traffic_sign", _sign) if body.type == SIGN else ("stationary_object", _prop)
        return _Item(field, body.id, body.frame, columns, lambda known: content(body), known)
    for bit, name in enumerate(_MOTION.values()):
        columns[name] = getattr(body, name)
        known |= np.isfinite(columns[name]).all(axis=1).astype(np.int64) << bit
    if body.type == VEHICLE:
        known |= np.where(body.lights >= 0, _HAS_LIGHTS, 0)
        columns |= _light_columns(body.lights)
    return _Item("moving_object", body.id, body.frame, columns, lambda known: _moving(body, known), known)


def _about(body: TrafficObject) -> dict[str, Any]:
    """Return the references of an object to the actor that it was."""
    centre = body.centre.tolist() if body.has_box else None
    role = {"role_name": body.attributes.get("role_name", "")}
    return {"model_reference": body.model, "source_reference": [osi.reference(body.id, role, centre)]}


def _moving(body: TrafficObject, known: int) -> dict[str, Any]:
    size = body.size if body.has_box else None
    content: dict[str, Any] = {
        "id": {"value": body.id},
        "base": _base("BaseMoving", size, known),
        "type": "VEHICLE" if body.type == VEHICLE else "PEDESTRIAN",
    }
    if body.type == VEHICLE:
        names = body.model.split(".")
        role = next((role for word, role in _ROLES.items() if any(word in name for name in names)), "CIVIL")
        content["vehicle_classification"] = {
            "type": _TYPES[vehicle_category(body.attributes, body.model)],
            **({"light_state": _LIGHT_SLOTS} if known & _HAS_LIGHTS else {}),
            "role": role,
        }
    return content | _about(body)


def _prop(body: TrafficObject) -> dict[str, Any]:
    size = body.size if body.has_box else None
    return {
        "id": {"value": body.id},
        "base": _base("BaseStationary", size),
        "classification": {"type": "OTHER"},
        **_about(body),
    }


def _sign(body: TrafficObject) -> dict[str, Any]:
    about, classification = _about(body), dict[str, Any]()
    if (speed := _SPEED.fullmatch(body.model)) is not None:
        classification = {
            "type": "SPEED_LIMIT_BEGIN",
            "value": {"value": float(speed[1]), "value_unit": _SPEED_UNIT, "text": speed[1]},
        }
    else:
        classification["type"] = {"traffic.stop": "STOP", "traffic.yield": "GIVE_WAY"}.get(
            body.model, "OTHER"
        )
    main = {
        "base": _base("BaseStationary", body.size if body.has_box else None),
        "classification": {"variability": "FIXED", **classification},
        "model_reference": about["model_reference"],
    }
    return {"id": {"value": body.id}, "main_sign": main, "source_reference": about["source_reference"]}


#: Limits in the towns of the simulator are those of the United States in its older maps, and it does not say which.
_SPEED_UNIT = "OTHER"
_LIGHT_SLOTS = {
    name: osi.Slot(name) for name in sorted(_LIGHT_FIELDS, key=lambda name: osi.fields(_LIGHTS)[name])
}


def _light_columns(flags: I64) -> dict[str, NDArray[Any]]:
    """Return the numbers of the fields of LightState."""
    states = osi.values(f"{_LIGHTS}.GenericLightState")
    columns = {name: np.where(flags & bit, states["ON"], states["OFF"]) for name, bit in ON_OFF.items()}
    brakes, turns = osi.values(f"{_LIGHTS}.BrakeLightState"), osi.values(f"{_LIGHTS}.IndicatorState")
    columns["brake_light_state"] = np.where(flags & bits.BRAKE, brakes["NORMAL"], brakes["OFF"])
    names = np.array([turns[name] for name in ("OFF", "LEFT", "RIGHT", "WARNING")])
    columns["indicator_state"] = names[(flags & bits.LEFT > 0) + 2 * (flags & bits.RIGHT > 0)]
    return columns


def _lamps(head: TrafficLightHead) -> Iterator[_Item]:
    """Yield the three lamps of a traffic light: each message is one lamp."""
    modes = osi.values("TrafficLight.Classification.Mode")
    columns = {
        name: np.broadcast_to(values, (len(head.frame), 3))
        for name, values in (("position", head.position), ("angles", head.angles))
    }
    for number, color in enumerate(_LAMPS, 1):
        lamp = head.id | number << LAMP_SHIFT
        mode = np.where(head.state == color, modes["CONSTANT"], modes["OFF"])
        mode[head.state == "unknown"] = modes["OTHER"]
        content = {
            "id": {"value": lamp},
            "base": _base("BaseStationary", None),
            "classification": {"color": color.upper(), "icon": "NONE", "mode": osi.Slot("mode")},
            "model_reference": head.model,
            "source_reference": [osi.reference(head.id, {}, None)],
        }
        known = np.zeros(len(head.frame), np.int64)
        yield _Item(
            "traffic_light", lamp, head.frame, columns | {"mode": mode}, partial(_same, content), known
        )


def _same(content: Mapping[str, Any], known: int) -> Mapping[str, Any]:
    return content


def _conditions(weather: Weather) -> dict[str, Any]:
    """Return the content of EnvironmentalConditions; percents become classes by the rules of docs/howto/carla.md."""
    rain = next((name for above, name in _RAIN if weather.precipitation > above), "NONE")
    oktas = list(osi.values("EnvironmentalConditions.CloudLayer.FractionalCloudCover"))[2:]
    return {
        "precipitation": rain,
        "fog": "OTHER" if weather.fog > 0 else "EXCELLENT_VISIBILITY",
        "clouds": {"fractional_cloud_cover": oktas[round(min(max(weather.cloudiness, 0), 100) / 12.5)]},
        "sun": {"azimuth": weather.sun[0], "elevation": weather.sun[1]},
    }
