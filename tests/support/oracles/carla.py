"""Plain reader of CARLA recordings, written from the format description alone: the reference for the fast reader."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

Record = dict[str, Any]
MAGIC = b"CARLA_RECORDER"
FIXED = {
    0: "FrameStart", 1: "FrameEnd", 2: "EventAdd", 3: "EventDel", 4: "EventParent", 5: "Collision", 6: "Position",
    7: "State", 8: "AnimVehicle", 9: "AnimWalker", 10: "VehicleLight", 11: "SceneLight", 12: "Kinematics",
    13: "BoundingBox", 14: "PlatformTime", 15: "PhysicsControl", 16: "TrafficLightTime", 17: "TriggerVolume",
    18: "FrameCounter", 19: "WalkerBones", 20: "VisualTime", 24: "Weather",
}  # fmt: skip
#: Packets whose size is 0 if the server was killed while it wrote them.
PLACEHOLDERS = {"EventAdd", "EventDel", "EventParent", "AnimVehicle", "AnimVehicleWheels", "PhysicsControl",
                "WalkerBones"}  # fmt: skip
WEATHER = ("cloudiness", "precipitation", "precipitation_deposits", "wind_intensity", "sun_azimuth", "sun_altitude",
           "fog_density", "fog_distance", "fog_falloff", "wetness", "scattering_intensity", "mie_scattering_scale",
           "rayleigh_scattering_scale", "dust_storm")  # fmt: skip


class Bad(ValueError):
    """The bytes do not follow the format description."""


@dataclass
class Packet:
    """One packet; *fault*: its content does not fit its size."""

    at: int
    number: int
    name: str
    payload: bytes
    recording: Recording = field(repr=False, compare=False)

    @property
    def records(self) -> list[Record]:
        return self._parsed[0]

    @property
    def fault(self) -> str:
        return self._parsed[1]

    @cached_property
    def _parsed(self) -> tuple[list[Record], str]:
        """Records and fault, when they are asked for: many questions need those of a few packets."""
        inner = Cursor(self.payload, 0, len(self.payload))
        try:
            records = parse(self.name, inner, self.recording)
        except Bad as error:
            return [], str(error)
        return records, "" if inner.at == inner.end else "longer than its records"


@dataclass
class Frame:
    """One frame and its packets, without FrameStart and FrameEnd."""

    number: int
    duration: float
    elapsed: float
    packets: list[Packet] = field(default_factory=list)
    ended: bool = False

    def records(self, name: str) -> list[Record]:
        return [record for packet in self.packets if packet.name == name for record in packet.records]


@dataclass
class Recording:
    """Content before the first unreadable byte."""

    version: int = 0
    date: int = 0
    town: str = ""
    wide: bool = False
    wheel_floats: int = 12
    frames: list[Frame] = field(default_factory=list)
    outside: list[Packet] = field(default_factory=list)
    stop: int = 0
    why: str = ""

    def rows(self, name: str) -> list[tuple[Frame, Record]]:
        """Return all records of one kind of packet, with their frames."""
        return [(frame, record) for frame in self.frames for record in frame.records(name)]


@cache
def compiled(form: str) -> struct.Struct:
    return struct.Struct("<" + form)


class Cursor:
    """Reader of consecutive values from bytes."""

    def __init__(self, data: bytes, at: int, end: int) -> None:
        self.data, self.at, self.end = data, at, end

    def raw(self, size: int) -> bytes:
        if size > self.end - self.at:
            raise Bad("too short")
        self.at += size
        return self.data[self.at - size : self.at]

    def take(self, form: str) -> tuple[Any, ...]:
        values = compiled(form)
        at, self.at = self.at, self.at + values.size
        if self.at > self.end:
            self.at = at
            raise Bad("too short")
        return values.unpack_from(self.data, at)

    def one(self, form: str) -> Any:
        return self.take(form)[0]

    def boolean(self) -> bool:
        return bool(self.one("B"))

    def text(self) -> str:
        return self.raw(self.one("H")).decode("utf-8", "replace")


Reader = Callable[[Cursor, "Recording"], Record]
XYZ, TURN = ("x", "y", "z"), ("roll", "pitch", "yaw")


def named(names: tuple[str, ...], values: Sequence[float]) -> dict[str, float]:
    return dict(zip(names, values, strict=True))


def vector(c: Cursor, r: Recording, names: tuple[str, ...] = XYZ) -> dict[str, float]:
    return named(names, c.take("3d" if r.wide else "3f"))


def event_add(c: Cursor, r: Recording) -> Record:
    out: Record = {"id": c.one("I"), "type": c.one("B")}
    out |= {
        "location": vector(c, r),
        "rotation": vector(c, r, TURN),
        "uid": c.one("I"),
        "description": c.text(),
    }
    out["attributes"] = [{"type": c.one("B"), "name": c.text(), "value": c.text()} for _ in range(c.one("H"))]
    return out


def pair(first: str, second: str, names: tuple[str, ...] = XYZ) -> Reader:
    def read(c: Cursor, r: Recording) -> Record:
        number, *values = c.take("I6d" if r.wide else "I6f")
        return {"id": number, first: named(XYZ, values[:3]), second: named(names, values[3:])}

    return read


def plain(**forms: str) -> Reader:
    form = "".join(forms.values()).replace("?", "B")

    def read(c: Cursor, r: Recording) -> Record:
        values = zip(forms.items(), c.take(form), strict=True)
        return {name: bool(value) if form == "?" else value for (name, form), value in values}

    return read


def listed(c: Cursor, names: tuple[str, ...], form: str = "f") -> list[dict[str, float]]:
    """Return rows of numbers, which are preceded by their u32 count."""
    count, row = c.one("I"), form * len(names) if len(form) == 1 else form
    if count * struct.calcsize("<" + row) > c.end - c.at:
        raise Bad("too many")
    return [named(names, c.take(row)) for _ in range(count)]


WHEEL = (
    "tire_friction",
    "damping_rate",
    "max_steer_angle",
    "radius",
    "max_brake_torque",
    "max_handbrake_torque",
)
STIFFNESS = ("lat_stiff_max_load", "lat_stiff_value", "long_stiff_value")


def physics(c: Cursor, r: Recording) -> Record:
    out = plain(
        id="I", max_rpm="f", moi="f", damping_rate_full_throttle="f",
        damping_rate_zero_throttle_clutch_engaged="f", damping_rate_zero_throttle_clutch_disengaged="f",
        use_gear_autobox="?", clutch_strength="f", final_ratio="f", mass="f", drag_coefficient="f",
    )(c, r)  # fmt: skip
    out["center_of_mass"] = named(XYZ, c.take("3f"))
    out["torque_curve"] = listed(c, ("x", "y"))
    out["gears"] = listed(c, ("ratio", "down_ratio", "up_ratio"))
    out["steering_curve"] = listed(c, ("x", "y"))
    names = WHEEL + STIFFNESS * (r.wheel_floats == 12)
    flat = listed(c, (*names, *XYZ))
    out["wheels"] = [{**{n: w[n] for n in names}, "position": {n: w[n] for n in XYZ}} for w in flat]
    return out


def bones(c: Cursor, r: Recording) -> Record:
    actor, count = c.take("IH")
    rows = [
        {"name": c.text(), "location": vector(c, r), "rotation": vector(c, r, TURN)} for _ in range(count)
    ]
    return {"id": actor, "bones": rows}


def wheels(c: Cursor, r: Recording) -> Record:
    return {"id": c.one("I"), "wheels": listed(c, ("location", "steering", "rotation"), "Bff")}


def scene_light(c: Cursor, r: Recording) -> Record:
    out: Record = {
        "id": c.one("i"),
        "intensity": c.one("f"),
        "color": named(("r", "g", "b", "a"), c.take("4f")),
    }
    return {**out, "on": c.boolean(), "group": c.one("B")}


READERS: dict[str, Reader] = {
    "EventAdd": event_add,
    "EventDel": plain(id="I"),
    "EventParent": plain(child="I", parent="I"),
    "Collision": plain(collision_id="I", actor1="I", actor2="I", actor1_is_hero="?", actor2_is_hero="?"),
    "Position": pair("location", "rotation", TURN),
    "State": plain(id="I", frozen="?", elapsed="f", state="B"),
    "AnimVehicle": plain(id="I", steer="f", throttle="f", brake="f", handbrake="?", gear="i"),
    "AnimWalker": plain(id="I", speed="f"),
    "VehicleLight": plain(id="I", flags="I"),
    "SceneLight": scene_light,
    "Kinematics": pair("linear", "angular"),
    "BoundingBox": pair("origin", "extent"),
    "TriggerVolume": pair("origin", "extent"),
    "TrafficLightTime": plain(id="I", green="f", yellow="f", red="f"),
    "PhysicsControl": physics,
    "WalkerBones": bones,
    "AnimVehicleWheels": wheels,
    "AnimBiker": plain(id="I", speed="f", engine_rotation="f"),
    "VehicleDoor": plain(id="I", door="B", open="?"),
    "Weather": plain(**dict.fromkeys(WEATHER, "f")),
}
SINGLE = {
    "PlatformTime": plain(seconds="d"),
    "VisualTime": plain(seconds="d"),
    "FrameCounter": plain(counter="Q"),
}
#: Names of channels by packet.
TOPICS = {
    "EventAdd": "actors", "EventDel": "actor_removals", "EventParent": "actor_parents", "Collision": "collisions",
    "Position": "position", "State": "traffic_lights", "AnimVehicle": "vehicle_control", "AnimWalker": "walker",
    "VehicleLight": "vehicle_lights", "SceneLight": "scene_lights", "Kinematics": "velocity",
    "BoundingBox": "bounding_boxes", "PlatformTime": "platform_time", "PhysicsControl": "physics",
    "TrafficLightTime": "traffic_light_times", "TriggerVolume": "trigger_volumes", "FrameCounter": "frame_counter",
    "WalkerBones": "bones", "VisualTime": "visual_time", "AnimVehicleWheels": "wheels", "AnimBiker": "bikers",
    "VehicleDoor": "doors", "Weather": "weather",
}  # fmt: skip


def channels(r: Recording) -> dict[str, list[Record]]:
    """Return the rows of every channel as dicts of the columns of its table; the first is the time in ns."""
    out: dict[str, list[Record]] = {}
    for f in r.frames:
        head = {"time": round(f.elapsed * 1e9), "frame": f.number}
        out.setdefault("frames", []).append({**head, "duration": f.duration, "elapsed": f.elapsed})
        for p in f.packets:
            rows = out.setdefault(TOPICS.get(p.name, f"packet_{p.number}"), [])
            if p.name == "raw":
                rows.append({**head, "data": p.payload})
            rows += [{**head, **record} for record in p.records]
    return out


def parse(name: str, c: Cursor, r: Recording) -> list[Record]:
    """Return the records of the payload at the cursor."""
    if name in SINGLE:
        return [SINGLE[name](c, r)]
    if name in READERS:
        return [READERS[name](c, r) for _ in range(c.one("H"))]
    c.at = c.end
    return []


def fits(name: str, payload: bytes, r: Recording) -> bool:
    c = Cursor(payload, 0, len(payload))
    try:
        parse(name, c, r)
    except Bad:
        return False
    return c.at == len(payload)


def name_of(number: int, payload: bytes, r: Recording) -> str:
    """Return the name of a packet; kinds whose number differs between releases are inferred from the content."""
    total = int.from_bytes(payload[:2], "little")
    rest = len(payload) - 2
    if number == 18:
        return "FrameCounter" if len(payload) == 8 else "raw"
    if number == 24:
        return "Weather" if rest == 56 * total else "raw"
    if number in (21, 22, 23):
        if total == 0:
            order = ("AnimVehicleWheels", "AnimBiker", "VehicleDoor")
            return order[number - 21] if r.version >= 2 else ("VehicleDoor", *order)[number - 21]
        if rest == 52 * total and number == 21:
            return "raw"
        for width, name in ((6, "VehicleDoor"), (12, "AnimBiker")):
            if rest == width * total:
                return name
        return "AnimVehicleWheels"
    if number == 15 and r.wide:
        return "raw"
    return FIXED.get(number, "raw")


def packets(data: bytes, at: int) -> list[tuple[int, int, bytes]]:
    """Return offset, kind and payload of the packets, as far as their stated sizes lead."""
    found = []
    while len(data) - at >= 5:
        number, size = struct.unpack_from("<BI", data, at)
        if size > len(data) - at - 5:
            break
        found.append((at, number, data[at + 5 : at + 5 + size]))
        at += 5 + size
    return found


def probe(r: Recording, found: list[tuple[int, int, bytes]]) -> None:
    """Set the widths of vectors and wheels, which only the content shows."""
    counted = [(n, p, int.from_bytes(p[:2], "little")) for _, n, p in found if len(p) > 2]
    placed = [(len(p) - 2, total) for n, p, total in counted if n == 6 and total]
    if placed:
        r.wide = placed[0][0] == 52 * placed[0][1]
    else:
        added = [p for n, p, total in counted if n == 2 and total]
        if added and not fits("EventAdd", added[0], r):
            r.wide = True
            r.wide = fits("EventAdd", added[0], r)
    for number, payload, total in counted:
        if number == 15 and total:
            r.wheel_floats = 12 if fits("PhysicsControl", payload, r) else 9
            break


def read(data: bytes) -> Recording:
    """Return the recording up to the first unreadable packet."""
    r = Recording()
    c = Cursor(data, 0, len(data))
    r.version = c.one("H")
    if c.raw(c.one("H")) != MAGIC:
        raise Bad("no recording")
    r.date, r.town = c.one("q"), c.text()
    probe(r, packets(data, c.at))
    while c.at < len(data):
        r.stop = c.at
        try:
            one = packet(c, r)
        except Bad as error:
            r.why = str(error)
            return r
        place(one, r)
    r.stop = c.at
    return r


def packet(c: Cursor, r: Recording) -> Packet:
    """Return the packet at the cursor, which moves to the end of it."""
    at = c.at
    number, size = c.take("BI")
    if size == 0 and FIXED.get(number, "AnimVehicleWheels") in PLACEHOLDERS and number < 24:
        name = FIXED.get(number, "AnimVehicleWheels")
        begin = c.at
        parse(name, c, r)
        return Packet(at, number, name, c.data[begin : c.at], r)
    payload = c.raw(size)
    return Packet(at, number, name_of(number, payload, r), payload, r)


def place(one: Packet, r: Recording) -> None:
    """Add a packet to its frame."""
    if one.name == "FrameStart":
        if len(one.payload) != 24:
            r.outside.append(one)
        else:
            r.frames.append(Frame(*struct.unpack("<Qdd", one.payload)))
    elif not r.frames or r.frames[-1].ended:
        r.outside.append(one)
    elif one.name == "FrameEnd":
        r.frames[-1].ended = True
    else:
        r.frames[-1].packets.append(one)
