"""Steps of a replay in plain Python, from the rules of the format description alone: each step looks at all frames."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from support.oracles.carla import TOPICS, Frame, Record, Recording
from support.oracles.carla_queries import Pose, way

STATES = (
    *("State", "AnimVehicle", "AnimWalker", "VehicleLight", "SceneLight"),
    *("AnimVehicleWheels", "AnimBiker", "VehicleDoor", "WalkerBones"),
)


@dataclass
class Options:
    """Options of a replay; times in seconds."""

    start: float = 0.0
    duration: float = 0.0
    factor: float = 1.0
    ignore_hero: bool = False
    ignore_spectator: bool = True
    sensors: bool = False


@dataclass
class PlainTick:
    """What the simulator applies in one step."""

    time: float
    frame: int
    poses: dict[int, Pose] = field(default_factory=dict)
    created: list[Record] = field(default_factory=list)
    destroyed: list[int] = field(default_factory=list)
    attached: list[tuple[int, int]] = field(default_factory=list)
    applied: dict[str, list[Record]] = field(default_factory=dict)
    weather: Record | None = None
    visual_time: float | None = None
    collisions: list[Record] = field(default_factory=list)
    stopped: bool = False


def is_replayed(record: Record, options: Options) -> bool:
    """Return whether an actor takes part in the replay."""
    name = record["description"]
    roles = [one["value"] for one in record["attributes"] if one["name"] == "role_name"]
    if options.ignore_hero and roles[:1] == ["hero"]:
        return False
    if options.ignore_spectator and (record["id"] == 1 or name.startswith("spectator")):
        return False
    return options.sensors or not name.startswith("sensor.")


def current(r: Recording, time: float) -> int:
    """Return the number of the frame that is current at a time, from 0; -1 if none is."""
    for number, frame in enumerate(r.frames):
        if frame.elapsed <= time < frame.elapsed + frame.duration:
            return number
    return -1


def ticks(r: Recording, delta: float, options: Options) -> list[PlainTick]:
    """Return the steps from the start to the end, and that in which the simulator stops."""
    total = r.frames[-1].elapsed
    start = options.start if options.start >= 0 else max(total + options.start, 0.0)
    start = min(start, total)
    end = min(start + options.duration, total) if options.duration > 0 else total
    times, count = [], 0
    while start + count * delta * options.factor < end:
        times.append(start + count * delta * options.factor)
        count += 1
    times.append(start + count * delta * options.factor)
    shown = [current(r, time) for time in times]
    found = [step(r, times[: n + 1], shown[: n + 1], options, n == len(times) - 1) for n in range(len(times))]
    for before, tick in pairwise(found):
        # An actor that has no position keeps its pose.
        tick.poses = {
            actor: pose or (before.poses[actor] if actor in before.poses else where(r, actor))
            for actor, pose in tick.poses.items()
        }
    return found


def where(r: Recording, actor: int) -> Pose:
    """Return the pose at which an actor is created."""
    return next(pose_of(one) for _, one in r.rows("EventAdd") if one["id"] == actor)


def pose_of(record: Record) -> Pose:
    return (*record["location"].values(), *record["rotation"].values())


def step(r: Recording, times: list[float], shown: list[int], options: Options, stops: bool) -> PlainTick:
    """Return the last of the steps at *times*, in which the frames *shown* are current."""
    now, last = shown[-1], len(r.frames) - 1
    reached = [number if number >= 0 else last for number in shown]
    passed = r.frames[(reached[-2] + 1 if len(shown) > 1 else 0) : reached[-1] + 1]
    tick = PlainTick(times[-1], r.frames[reached[-1]].number, stopped=stops)
    alive = alive_at(r, reached[-1], options)
    before = alive_at(r, reached[-2], options) if len(shown) > 1 else {}
    tick.poses = dict.fromkeys(alive)  # type: ignore[misc]
    if len(shown) == 1:
        tick.poses = {actor: pose_of(record) for actor, record in alive.items()}
    events(tick, passed, before, options)
    fresh = now >= 0 and (len(shown) == 1 or shown[-2] != now)
    if fresh:
        for name in STATES:
            some = [one for one in r.frames[now].records(name) if name == "SceneLight" or one["id"] in alive]
            if some:
                tick.applied[TOPICS[name]] = some
    if now >= 0:
        place(tick, r, shown, times[-1], options)
    if stops:
        tick.applied = neutral(alive)
    return tick


def events(tick: PlainTick, passed: list[Frame], before: dict[int, Record], options: Options) -> None:
    """Add the events of all frames that were passed."""
    exists = dict(before)
    for frame in passed:
        for one in frame.records("EventAdd"):
            if is_replayed(one, options) and one["id"] not in exists:
                exists[one["id"]] = one
                tick.created.append(one)
        for one in frame.records("EventDel"):
            if exists.pop(one["id"], None):
                tick.destroyed.append(one["id"])
        for one in frame.records("EventParent"):
            if one["child"] in exists and one["parent"] in exists:
                tick.attached.append((one["child"], one["parent"]))
        for one in frame.records("Weather"):
            tick.weather = one
        for one in frame.records("VisualTime"):
            tick.visual_time = one["seconds"]
        tick.collisions += frame.records("Collision")


def alive_at(r: Recording, number: int, options: Options) -> dict[int, Record]:
    """Return the actors that exist after a frame, by id."""
    found: dict[int, Record] = {}
    for frame in r.frames[: number + 1]:
        for one in frame.records("EventAdd"):
            if is_replayed(one, options):
                found.setdefault(one["id"], one)
        for one in frame.records("EventDel"):
            found.pop(one["id"], None)
    return found


def place(tick: PlainTick, r: Recording, shown: list[int], time: float, options: Options) -> None:
    """Set the poses of the actors that have a position in the current frame."""
    earlier = [number for number in shown if number not in (shown[-1], -1)]
    frame = r.frames[shown[-1]]
    old = r.frames[earlier[-1]].records("Position") if earlier else []
    then = {one["id"]: pose_of(one) for one in old}
    part = (time - frame.elapsed) / frame.duration
    for one in frame.records("Position"):
        actor, pose = one["id"], pose_of(one)
        if actor in tick.poses:
            tick.poses[actor] = way(then[actor], pose, part, options.factor) if actor in then else pose


def neutral(alive: dict[int, Record]) -> dict[str, list[Any]]:
    """Return what is applied when the replay ends."""
    rest = {"steer": 0.0, "throttle": 0.0, "brake": 0.0, "handbrake": False, "gear": 1}
    found = {
        "vehicle_control": [{"id": a, **rest} for a, one in alive.items() if one["type"] == 1],
        "walker": [{"id": a, "speed": 0.0} for a, one in alive.items() if one["type"] == 2],
    }
    return {topic: some for topic, some in found.items() if some}
