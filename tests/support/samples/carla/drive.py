"""The sample recording: half a minute in a small town, computed by formulas.

A car follows another car along a street and around a corner, and runs into it when it brakes. A motorbike approaches,
a walker crosses the street, a van is parked, and four traffic lights change.
"""

from __future__ import annotations

import math
import struct
from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise

from support.samples.carla.builder import Builder, Frame

LEAD, HERO, BIKE, VAN, WALKER, BARRIER, CAMERA = 101, 100, 102, 103, 200, 300, 401
LIGHTS = (20, 21, 22, 23)
#: Length of the street before the corner, radius of the corner, and y of the lane, in metres.
STREET, RADIUS, LANE = 150.0, 15.0, 2.0
#: Distance of the centres of the two cars at the start, and when they touch, in metres.
AHEAD, TOUCH = 14.0, 4.7
LOW_BEAM, BRAKE, RIGHT = 3, 8, 16
#: Time in s and speed in m/s, linear in between.
HERO_SPEED = ((0, 0), (2, 0), (8, 13), (14, 13), (17, 6), (22, 6), (24, 9), (25.47, 9), (26.17, 0), (99, 0))
LEAD_SPEED = ((0, 0), (2, 0), (8, 13), (14, 13), (17, 6), (22, 6), (24, 9), (25.5, 0), (99, 0))
#: A step of the simulator: 0.05 s as float32.
STEP: float = struct.unpack("<f", struct.pack("<f", 0.05))[0]


@dataclass(frozen=True, slots=True)
class Motion:
    """Motion of a car: metres, degrees, m/s, m/s2, degrees/s."""

    x: float
    y: float
    yaw: float
    speed: float
    gain: float
    turn: float


def _speed(profile: tuple[tuple[float, float], ...], at: float) -> tuple[float, float, float]:
    """Return speed, acceleration and distance covered at a time."""
    way = 0.0
    last = bisect_right([t for t, _ in profile], at) - 1
    for (t0, v0), (t1, v1) in pairwise(profile[: last + 1]):
        way += (t1 - t0) * (v0 + v1) / 2
    (t0, v0), (t1, v1) = profile[last : last + 2]
    gain = (v1 - v0) / (t1 - t0)
    past = at - t0
    return v0 + gain * past, gain, way + past * (v0 + gain * past / 2)


def motion(profile: tuple[tuple[float, float], ...], start: float, at: float) -> Motion:
    """Return the motion of a car that starts *start* metres along the street."""
    speed, gain, way = _speed(profile, at)
    way += start - STREET
    if way < 0:
        return Motion(way, LANE, 0.0, speed, gain, 0.0)
    angle = min(way / RADIUS, math.pi / 2)
    rest = way - angle * RADIUS
    turn = 0.0 if rest > 0 else math.degrees(speed / RADIUS)
    x, y = RADIUS * math.sin(angle), LANE + RADIUS * (1 - math.cos(angle)) + rest
    return Motion(x, y, math.degrees(angle), speed, gain, turn)


def drive(seconds: float = 30.0, release: str = "0.9.15") -> Builder:
    """Return the recording of *seconds*."""
    out = Builder(release, town="Town03", date=1_700_000_001)
    elapsed, number, hits = 0.0, 0, 0
    while elapsed <= seconds:
        frame = out.frame(elapsed)
        if number == 0:
            _begin(frame)
        if number == 40:
            camera = {"role_name": "dash", "image_size_x": "800", "fov": "90"}
            frame.add(CAMERA, 5, "sensor.camera.rgb", values=camera)
            frame.parent(CAMERA, HERO)
        if number == 480:
            frame.remove(BIKE)
        hits = _cars(frame, hits)
        _others(frame, with_bike=number < 480)
        frame.visual_time(310.0 + elapsed).platform_time(round(elapsed * 1.1 + 0.031, 6))
        number += 1
        elapsed += STEP * (1.0 if number % 50 else 1.5)
    return out


def _begin(frame: Frame) -> None:
    town = (-75.0 * 100, -4000.0, 3500.0)
    frame.add(1, 0, "spectator", town, (0.0, -35.0, 60.0))
    for i, actor in enumerate(LIGHTS):
        place = ((-9.0, 9.0)[i % 2] * 100, (-9.0, 9.0)[i // 2] * 100, 15.0)
        frame.add(actor, 3, "traffic.traffic_light", place, (0.0, 0.0, 90.0 * i))
        frame.light_time(actor, 8.0, 2.0, 10.0).trigger(actor, place, (250.0, 120.0, 150.0))
    frame.add(30, 4, "traffic.stop", (2000.0, 3000.0, 10.0), (0.0, 0.0, 180.0))
    vehicles = (
        (HERO, "vehicle.tesla.model3", "hero", "17,37,103", "4", 0.0),
        (LEAD, "vehicle.audi.tt", "autopilot", "211,17,17", "4", AHEAD),
        (BIKE, "vehicle.yamaha.yzf", "autopilot", "0,0,0", "2", None),
        (VAN, "vehicle.mercedes.sprinter", "autopilot", "255,255,255", "4", None),
    )
    for actor, name, role, color, wheels, start in vehicles:
        place = (0.0, 0.0, 30.0) if start is None else ((start - STREET) * 100, LANE * 100, 30.0)
        values = {"role_name": role, "color": color, "number_of_wheels": wheels}
        frame.add(actor, 1, name, place, uid=actor - 80, values=values)
        frame.box(actor, (0.0, 0.0, 72.0), (235.0, 92.0, 72.0)).physics(actor)
    walker = {"role_name": "pedestrian", "speed": "1.4"}
    frame.add(WALKER, 2, "walker.pedestrian.0012", (-4000.0, -600.0, 95.0), uid=9, values=walker)
    frame.box(WALKER, (0.0, 0.0, 0.0), (19.0, 19.0, 93.0))
    frame.add(BARRIER, 0, "static.prop.streetbarrier", (-2000.0, 780.0, 5.0), uid=61)
    frame.add(400, 5, "sensor.other.collision", (-15000.0, 200.0, 30.0), values={"role_name": "front"})
    for i in range(6):
        frame.scene_light(i, 5000.0, (0.95, 0.81, 0.53, 1.0), on=i % 2 == 0)


def _cars(frame: Frame, hits: int) -> int:
    """Add the two cars that collide; return the number of collisions so far."""
    now = frame.elapsed
    hero, lead = motion(HERO_SPEED, 0.0, now), motion(LEAD_SPEED, AHEAD, now)
    for actor, m in ((HERO, hero), (LEAD, lead)):
        yaw = math.radians(m.yaw)
        frame.position(actor, (m.x * 100, m.y * 100, 30.0), (0.0, -0.2 * m.gain, m.yaw))
        frame.kinematics(actor, (m.speed * math.cos(yaw), m.speed * math.sin(yaw), 0.0), (0.0, 0.0, m.turn))
        steer = 0.35 if m.turn else 0.0
        brake = min(-m.gain / 8, 1.0) if m.gain < 0 else 0.0
        frame.vehicle(
            actor, steer, max(m.gain / 4, 0.0), brake, m.speed == 0 and now > 25, 1 + int(m.speed // 5)
        )
        frame.vehicle_light(actor, LOW_BEAM | BRAKE * (brake > 0) | RIGHT * (14 < now < 22))
        turned = _speed(HERO_SPEED if actor == HERO else LEAD_SPEED, now)[2] / 0.355
        frame.wheels(actor, *((i, 70 * steer * (i < 2), math.degrees(turned) % 360) for i in range(4)))
    if math.hypot(hero.x - lead.x, hero.y - lead.y) < TOUCH and hits < 6:
        frame.collision(hits, HERO, LEAD, (True, False)).collision(hits + 1, LEAD, HERO, (False, True))
        hits += 2
    return hits


def _others(frame: Frame, with_bike: bool) -> None:
    now = frame.elapsed
    frame.position(1, (-7500.0, -4000.0, 3500.0), (0.0, -35.0, 60.0))
    frame.position(BARRIER, (-2000.0, 780.0, 5.0))
    frame.position(VAN, (-6000.0, 560.0, 40.0), (0.0, 0.0, 1.0)).vehicle(VAN, brake=1.0, handbrake=True)
    frame.kinematics(VAN, (0.0, 0.0, 0.0)).vehicle_light(VAN, 0).wheels(VAN, *((i, 0, 0) for i in range(4)))
    if with_bike:
        way = 8.0 * now
        frame.position(BIKE, (6000.0 - 100 * way, -200.0, 30.0), (math.sin(now), 0.0, 180.0))
        frame.kinematics(BIKE, (-8.0, 0.0, 0.0), (-math.degrees(math.cos(now) / 57.3), 0.0, 0.0))
        frame.vehicle(BIKE, throttle=0.3, gear=3).vehicle_light(BIKE, LOW_BEAM)
        frame.wheels(BIKE, *((i, 0.0, math.degrees(way / 0.3) % 360) for i in range(2)))
        frame.biker(BIKE, 800.0, (way * 3) % 1)
    walks = 4.0 < now < 14.0
    frame.position(WALKER, (-4000.0, -600.0 + 140 * min(max(now - 4, 0), 10), 95.0), (0.0, 0.0, 90.0))
    frame.kinematics(WALKER, (0.0, 1.4 * walks, 0.0)).walker(WALKER, 140.0 * walks)
    swing = 25 * math.sin(6 * now) * walks
    frame.bones(
        WALKER,
        ("crl_root", (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
        ("crl_hips__C", (0.0, 0.0, 93.7), (0.0, 0.0, 0.0)),
        ("crl_thigh__L", (9.0, 0.0, -5.0), (0.0, swing, 0.0)),
        ("crl_thigh__R", (-9.0, 0.0, -5.0), (0.0, -swing, 0.0)),
    )
    for i, actor in enumerate(LIGHTS):
        phase = (now + 10 * (i % 2)) % 20
        state, since = (2, phase) if phase < 8 else (1, phase - 8) if phase < 10 else (0, phase - 10)
        frame.light(actor, state, since)
