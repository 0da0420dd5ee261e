"""Builder of recordings of every release, valid and invalid ones. Shares no code with the reader."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from support.samples.carla.records import (
    IDS,
    RELEASES,
    SINGLE,
    Physics,
    Release,
    Vector,
    attributes,
    counted,
    floats,
    header,
    packet,
    text,
    vector,
)

ORIGIN = (0.0, 0.0, 0.0)
# Builder has a method `bytes`, so annotations need another name for the type.
Buffer = bytes


@dataclass(slots=True)
class Frame:
    """A frame to build: records by packet. Methods return the frame, so that calls can be chained.

    number    stated number
    elapsed   seconds since the start
    duration  stated instead of the time to the next frame
    records   by name of the packet
    totals    stated counts of records, if wrong
    sizes     stated sizes, if wrong; 0: the placeholder that a killed server leaves
    raw       further packets before the end: kind, payload, and the stated size, if wrong
    begun     False: without FrameStart
    ended     False: without FrameEnd
    """

    release: Release
    number: int
    elapsed: float
    duration: float | None = None
    records: dict[str, list[Buffer]] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    raw: list[tuple[int, Buffer, int | None]] = field(default_factory=list)
    begun: bool = True
    ended: bool = True

    def put(self, name: str, *records: Buffer) -> Frame:
        """Add encoded records to the packet *name*; without records the packet is written empty."""
        self.records.setdefault(name, []).extend(records)
        return self

    def pack(self, name: str, form: str, *values: float) -> Frame:
        """Add a record of numbers."""
        return self.put(name, struct.pack("<" + form, *values))

    def packet(self, number: int, payload: Buffer, size: int | None = None) -> Frame:
        """Add a packet of any kind."""
        self.raw.append((number, payload, size))
        return self

    def _pair(self, name: str, actor: int, first: Vector, second: Vector) -> Frame:
        wide = self.release.wide
        return self.put(name, struct.pack("<I", actor) + vector(first, wide) + vector(second, wide))

    def add(
        self,
        actor: int,
        kind: int,
        description: str,
        location: Vector = ORIGIN,
        rotation: Vector = ORIGIN,
        uid: int = 0,
        values: Mapping[str, str] | None = None,
    ) -> Frame:
        """Add an actor with attributes. *kind*: 0 other, 1 vehicle, 2 walker, 3 light, 4 sign, 5 sensor."""
        kind = {4: self.release.sign, 5: self.release.sensor}.get(kind, kind)
        wide = self.release.wide
        place = vector(location, wide) + vector(rotation, wide)
        record = struct.pack("<IB", actor, kind) + place + struct.pack("<I", uid) + text(description)
        return self.put("EventAdd", record + attributes(values or {}, self.release.attribute))

    def remove(self, actor: int) -> Frame:
        """Remove an actor."""
        return self.pack("EventDel", "I", actor)

    def parent(self, child: int, parent: int) -> Frame:
        """Attach an actor to another one."""
        return self.pack("EventParent", "II", child, parent)

    def collision(self, number: int, one: int, two: int, heroes: tuple[bool, bool] = (False, False)) -> Frame:
        """Add a collision of two actors."""
        return self.pack("Collision", "III??", number, one, two, *heroes)

    def position(self, actor: int, location: Vector, rotation: Vector = ORIGIN) -> Frame:
        """Add the position of an actor: cm; roll, pitch, yaw in degrees."""
        return self._pair("Position", actor, location, rotation)

    def light(self, actor: int, state: int, elapsed: float = 0.0, frozen: bool = False) -> Frame:
        """Add the state of a traffic light: 0 red, 1 yellow, 2 green, 3 off, 4 unknown."""
        return self.pack("State", "I?fB", actor, frozen, elapsed, state)

    def vehicle(
        self,
        actor: int,
        steer: float = 0.0,
        throttle: float = 0.0,
        brake: float = 0.0,
        handbrake: bool = False,
        gear: int = 1,
    ) -> Frame:
        """Add the controls of a vehicle."""
        return self.pack("AnimVehicle", "I3f?i", actor, steer, throttle, brake, handbrake, gear)

    def walker(self, actor: int, speed: float) -> Frame:
        """Add the speed of a walker in cm/s."""
        return self.pack("AnimWalker", "If", actor, speed)

    def vehicle_light(self, actor: int, flags: int) -> Frame:
        """Add the lights of a vehicle."""
        return self.pack("VehicleLight", "II", actor, flags)

    def scene_light(
        self, light: int, intensity: float, color: Sequence[float], on: bool = True, group: int = 2
    ) -> Frame:
        """Add a street or building light; *color*: linear red, green, blue, alpha."""
        return self.pack("SceneLight", "i5f?B", light, intensity, *color, on, group)

    def kinematics(self, actor: int, linear: Vector, angular: Vector = ORIGIN) -> Frame:
        """Add velocities in m/s and degrees/s."""
        return self._pair("Kinematics", actor, linear, angular)

    def box(self, actor: int, origin: Vector, extent: Vector) -> Frame:
        """Add a bounding box in cm, in the frame of the actor."""
        return self._pair("BoundingBox", actor, origin, extent)

    def trigger(self, actor: int, origin: Vector, extent: Vector) -> Frame:
        """Add a trigger volume in cm, in world coordinates."""
        return self._pair("TriggerVolume", actor, origin, extent)

    def platform_time(self, seconds: float) -> Frame:
        """Add the wall-clock seconds since the start."""
        return self.pack("PlatformTime", "d", seconds)

    def visual_time(self, seconds: float) -> Frame:
        """Add the seconds of clouds and water."""
        return self.pack("VisualTime", "d", seconds)

    def physics(self, actor: int, physics: Physics | None = None) -> Frame:
        """Add the physics of a vehicle."""
        record = (physics or Physics()).record(actor, self.release.wheel_floats)
        return self.put("PhysicsControl", record)

    def light_time(self, actor: int, green: float, yellow: float, red: float) -> Frame:
        """Add the seconds that a traffic light shows each colour."""
        return self.pack("TrafficLightTime", "I3f", actor, green, yellow, red)

    def bones(self, actor: int, *bones: tuple[str, Vector, Vector]) -> Frame:
        """Add names, locations and rotations of the bones of a walker."""
        wide = self.release.wide
        parts = [text(name) + vector(loc, wide) + vector(rot, wide) for name, loc, rot in bones]
        return self.put("WalkerBones", struct.pack("<I", actor) + counted(parts))

    def wheels(self, actor: int, *wheels: tuple[int, float, float]) -> Frame:
        """Add location, steering angle and rotation of each wheel, in degrees."""
        parts = [struct.pack("<Bff", *wheel) for wheel in wheels]
        head = struct.pack("<II", actor, len(wheels))
        return self.put("AnimVehicleWheels", head + b"".join(parts))

    def biker(self, actor: int, speed: float, engine: float) -> Frame:
        """Add the speed of a two-wheeler in cm/s, and the rotation of its engine."""
        return self.pack("AnimBiker", "Iff", actor, speed, engine)

    def door(self, actor: int, door: int, is_open: bool) -> Frame:
        """Add a door that opens or closes."""
        return self.pack("VehicleDoor", "IB?", actor, door, is_open)

    def weather(self, *values: float) -> Frame:
        """Add the weather: 14 numbers, in recordings of DReyeVR 13."""
        return self.put("Weather", floats(*values))

    def packets(self, additional: bool) -> list[Buffer]:
        """Return the packets between FrameStart and FrameEnd."""
        ids = {**IDS, **(self.release.ids or {})}
        always = {*self.release.always, *(self.release.additional if additional else ())}
        out = []
        for name, number in ids.items():
            records = self.records.get(name, [] if name in always else None)
            if records is None or (name in SINGLE and not records):
                continue
            payload = b"".join(records) if name in SINGLE else counted(records, self.totals.get(name))
            out.append(packet(number, payload, self.sizes.get(name)))
        return out + [packet(*one) for one in self.raw]


@dataclass(slots=True)
class Builder:
    """A recording to build; nothing is checked.

    release     release whose layout is written, a key of RELEASES
    additional  True: with additional data
    version     header version, if not that of the release
    tail        bytes after the last frame
    """

    release: str = "0.9.14"
    town: str = "Town01"
    date: int = 1_700_000_001
    additional: bool = True
    version: int | None = None
    magic: str = "CARLA_RECORDER"
    tail: Buffer = b""
    frames: list[Frame] = field(default_factory=list)

    @property
    def layout(self) -> Release:
        """The packets and layouts of the release."""
        return RELEASES[self.release]

    def frame(self, elapsed: float, number: int | None = None) -> Frame:
        """Add a frame and return it; *number*: by default the next one."""
        number = len(self.frames) + 1 if number is None else number
        self.frames.append(Frame(self.layout, number, elapsed))
        return self.frames[-1]

    def bytes(self) -> Buffer:
        """Return the recording."""
        version = self.layout.version if self.version is None else self.version
        parts = [header(version, self.date, self.town, self.magic)]
        followers: list[Frame | None] = [*self.frames[1:], None]
        for frame, after in zip(self.frames, followers, strict=False):
            parts += _frame_packets(frame, after, self.additional)
        return b"".join([*parts, self.tail])


def _frame_packets(frame: Frame, after: Frame | None, additional: bool) -> list[Buffer]:
    duration = frame.duration
    if duration is None:
        duration = -1.0 if after is None else after.elapsed - frame.elapsed
    parts = frame.packets(additional)
    if frame.begun:
        parts.insert(0, packet(0, struct.pack("<Qdd", frame.number, duration, frame.elapsed)))
    if frame.ended:
        parts.append(packet(1, b""))
    return parts


def text_mode(data: Buffer) -> Buffer:
    """Return *data* as written in text mode on Windows: each line feed as two bytes."""
    return data.replace(b"\n", b"\r\n")


def eventful(release: str = "0.9.16", frames: int = 4, additional: bool = True) -> Builder:
    """Return a short recording with a record of every kind of packet of the release."""
    out = Builder(release, additional=additional)
    kinds = {**out.layout.ids} if out.layout.ids else {}
    for i in range(frames):
        frame = out.frame(i * 0.05)
        if i == 0:
            _actors(frame)
        _moves(frame, i)
        if i == frames - 2:
            frame.remove(11).collision(0, 10, 20, (True, False)).collision(1, 10, 0xFFFFFFFF, (True, False))
        if "VisualTime" in out.layout.always:
            frame.visual_time(100.0 + i)
        if "VehicleDoor" in kinds:
            frame.door(10, i % 7, True)
        if "AnimBiker" in kinds:
            frame.biker(12, 300.0, 0.25 * i)
            frame.wheels(10, (0, 5.0 * i, 30.0 * i), (1, 5.0 * i, 30.0 * i)).wheels(12)
        if "Weather" in kinds and i == 0:
            frame.weather(*range(13 if release.startswith("dreyevr") else 14))
        if additional and out.layout.additional:
            _additional(frame, i)
    return out


def _actors(frame: Frame) -> None:
    hero, others = {"role_name": "hero", "color": "15,11,44"}, {"role_name": "autopilot"}
    frame.add(1, 0, "spectator", (-17219.7, 18385.9, 2763.81), (0.0, -20.0, -45.5))
    frame.add(2, 3, "traffic.traffic_light", (100.5, -200.25, 15.0))
    frame.add(3, 4, "traffic.stop", (300.0, 400.0, 10.0))
    frame.add(10, 1, "vehicle.lincoln.mkz", (1000.0, 2000.0, 30.0), uid=7, values=hero)
    frame.add(11, 1, "vehicle.nissan.patrol", (1500.0, 2000.0, 30.0), uid=8, values=others)
    bike = {"number_of_wheels": "2", "role_name": "zwölf 日本"}
    frame.add(12, 1, "vehicle.kawasaki.ninja", uid=9, values=bike)
    walker = {"speed": "1.4", "object_type": ""}
    frame.add(20, 2, "walker.pedestrian.0001", (1200.0, 2500.0, 95.0), uid=3, values=walker)
    frame.add(30, 5, "sensor.other.collision", values={"role_name": "front"}).parent(30, 10)


def _moves(frame: Frame, i: int) -> None:
    frame.position(10, (1000.0 + 50 * i, 2000.0, 30.25), (0.5, -0.25, 179.0 + i))
    frame.position(12, (1800.0 - 3.3 * i, 2100.0, 30.0), (5.0, 0.0, -179.5))
    frame.position(20, (1200.0, 2500.0 + 7 * i, 95.5), (0.0, 0.0, -90.0))
    frame.light(2, i % 5, 0.05 * i, frozen=i == 3)
    if "AnimVehicle" in frame.release.always:
        frame.vehicle(10, -0.25, 0.5, 0.0, gear=2).vehicle(12, brake=1.0, handbrake=True, gear=-1)
        frame.walker(20, 140.0 + i)
    if "VehicleLight" in frame.release.always:
        frame.vehicle_light(10, 0b11 << i).vehicle_light(12, 0)
        if i % 2 == 0:
            frame.scene_light(-1 + i, 500.0, (0.9, 0.5, 0.25, 1.0), on=i == 0)


def _additional(frame: Frame, i: int) -> None:
    frame.kinematics(10, (10.0, 0.5, -0.25), (1.0, -2.0, 20.0)).kinematics(20, (0.0, 1.4, 0.0))
    frame.platform_time(0.06 * i + 0.01)
    if "WalkerBones" in frame.release.additional:
        frame.bones(20, ("crl_root", ORIGIN, ORIGIN), ("crl_hips__C", (0.5, -1.0, 93.7), (1.0, 2.0, i)))
    if i == 0:
        nan, less = float("nan"), float("-inf")
        frame.box(10, (6.0, 0.0, 74.7), (245.2, 103.0, 73.9)).box(1, (nan, -nan, nan), (less,) * 3)
        frame.trigger(2, (1.0, 2.0, 3.0), (400.0, 500.0, 600.0)).light_time(2, 10.0, 3.0, 2.0)
        if not frame.release.wide:
            frame.physics(10)
        else:
            frame.put("PhysicsControl", struct.pack("<I", 10) + bytes(range(200)))
