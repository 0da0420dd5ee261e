"""Robots as a log describes them (URDF): links with shapes, joints, and where they are at one moment."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from logreel.errors import LogError, UnsupportedError
from logreel.io.arrays import F64
from logreel.lenses import Joints, lenses_of
from logreel.lenses.rotation import multiplied
from logreel.log.times import SECOND
from logreel.meaning.frames import NOWHERE, FramePlace, FramesAt
from logreel.meaning.meshes import MeshFolder
from logreel.meaning.xml_tree import Element, xml_tree

if TYPE_CHECKING:
    from logreel.log.log import Channel, Log

#: Name of the topic (its last part) or parameter with the description, and of the field of its text.
DESCRIPTION, FIELD = "robot_description", "data"
#: Characters of a description; joints between a link and the root.
CHARACTERS, CHAIN = 8 << 20, 256
#: Shapes of one robot, and its files of meshes.
SHAPES, FILES = 5000, 255
#: Messages with states of joints before a moment, and ns, that are looked through.
STATES, STATES_NS = 64, 5 * SECOND
#: Colour of shapes without one.
GREY = (0.65, 0.67, 0.7, 1.0)
#: Shapes that are drawn as they are, by the number that says so in an answer.
SOLIDS = ("arrow", "cube", "sphere", "cylinder")


@dataclass(frozen=True, slots=True, eq=False)
class LinkShape:
    """A shape of a link.

    link    name of the link
    place   relative to the link
    shape   ``cube``, ``sphere``, ``cylinder`` (along z) or ``mesh``
    size    float64[3]: metres, or the scale of a mesh
    colour  red, green, blue and opacity, 0 to 1
    file    what the description says of the file of a mesh
    """

    link: str
    place: FramePlace
    shape: str
    size: F64
    colour: tuple[float, float, float, float]
    file: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class RobotJoint:
    """A joint: *place* of the child relative to the parent at position 0, and *axis* float64[3] in the child.

    mimic  another joint, a factor and an offset of its position; None: the joint moves by itself
    """

    name: str
    moves: str
    parent: str
    child: str
    place: FramePlace
    axis: F64
    mimic: tuple[str, float, float] | None

    def at(self, position: float) -> FramePlace:
        """Return the place of the child relative to the parent at a position in rad or metres."""
        if self.moves in ("revolute", "continuous"):
            half = position / 2
            turn = np.append(self.axis * math.sin(half), math.cos(half))
            return self.place.after(FramePlace(np.zeros(3), turn))
        if self.moves == "prismatic":
            return self.place.after(FramePlace(self.axis * position, NOWHERE.rotation))
        return self.place


@dataclass(frozen=True, slots=True, eq=False)
class Robot:
    """A robot as it is described.

    name    of the robot
    links   names of its links
    joints  by the name of the child
    shapes  that are seen; *solid*: those for collisions, which stand for meshes that are not there
    """

    name: str
    links: list[str]
    joints: dict[str, RobotJoint]
    shapes: list[LinkShape]
    solid: list[LinkShape]

    @property
    def files(self) -> list[str]:
        """Files of meshes, as the description names them, without repeats."""
        return list(dict.fromkeys(shape.file for shape in self.shapes if shape.file))[:FILES]

    def places(
        self, tree: FramesAt, fixed: str, positions: Mapping[str, float], root: FramePlace | None
    ) -> tuple[dict[str, FramePlace], set[str]]:
        """Return the places of links in the fixed frame, and the joints whose position is needed but not known.

        Links are where the transforms say, else where their joint with their parent puts them; links that hang from
        nothing are at *root*, or left out if it is None.
        """
        places: dict[str, FramePlace] = {}
        unknown: set[str] = set()
        known = set(tree.names)
        for link in self.links:
            chain: list[RobotJoint] = []
            place: FramePlace | None = None
            name = link
            while place is None and len(chain) < CHAIN:
                place = places.get(name) or (tree.place(name, fixed) if name in known else None)
                if place is None and name not in self.joints:
                    place = root
                    break
                if place is None:
                    chain.append(self.joints[name])
                    name = self.joints[name].parent
            if place is None:
                continue
            for joint in reversed(chain):
                place = place.after(joint.at(self._position(joint, positions, unknown)))
                places[joint.child] = place
            places.setdefault(link, place)
        return places, unknown

    @staticmethod
    def _position(joint: RobotJoint, positions: Mapping[str, float], unknown: set[str]) -> float:
        if joint.moves not in ("revolute", "continuous", "prismatic"):
            return 0.0
        own, factor, offset = joint.mimic or (joint.name, 1.0, 0.0)
        position = positions.get(joint.name)
        if position is None and own in positions:
            position = positions[own] * factor + offset
        if position is None or not math.isfinite(position):
            unknown.add(joint.name)
            return 0.0
        return position


def read_urdf(text: str) -> Robot:
    """Return the robot that a URDF describes; raises UnsupportedError for what is none, or too large."""
    if len(text) > CHARACTERS:
        raise UnsupportedError(f"the description of the robot has {len(text)} characters")
    robot = xml_tree(text, "the description of the robot").first("robot")
    if robot is None:
        raise UnsupportedError("the description of the robot is no URDF")
    materials = {
        material.get("name"): colour for material in robot.each("material") if (colour := _colour(material))
    }
    links, shapes, solid = [], list[LinkShape](), list[LinkShape]()
    for link in robot.each("link"):
        links.append(link.get("name"))
        for visual in link.each("visual"):
            material = visual.first("material")
            colour = None if material is None else _colour(material) or materials.get(material.get("name"))
            shapes += _shape(links[-1], visual, colour or GREY)
        for collision in link.each("collision"):
            solid += [shape for shape in _shape(links[-1], collision, GREY) if not shape.file]
    joints = {joint.child: joint for joint in map(_joint, robot.each("joint")) if joint is not None}
    return Robot(robot.get("name"), links, joints, shapes[:SHAPES], solid[:SHAPES])


def _numbers(text: str, count: int, otherwise: float = 0.0) -> F64:
    """Return float64[count]: the numbers in a text; others if it does not have so many."""
    try:
        values = np.array([float(part) for part in text.split()[:count]], np.float64)
    except ValueError:
        values = np.zeros(0)
    is_sound = len(values) == count and np.isfinite(values).all() and (np.abs(values) < 1e6).all()
    return values if is_sound else np.full(count, otherwise)


def _place(element: Element) -> FramePlace:
    origin = element.first("origin")
    if origin is None:
        return NOWHERE
    roll, pitch, yaw = _numbers(origin.get("rpy"), 3) / 2
    turns = [
        np.array([math.sin(angle) * (axis == n) for n in range(3)] + [math.cos(angle)])
        for axis, angle in enumerate((roll, pitch, yaw))
    ]
    return FramePlace(_numbers(origin.get("xyz"), 3), multiplied(turns[2], multiplied(turns[1], turns[0])))


def _colour(material: Element) -> tuple[float, float, float, float] | None:
    colour = material.first("color")
    if colour is None:
        return None
    r, g, b, a = np.clip(_numbers(colour.get("rgba"), 4, 1.0), 0, 1).tolist()
    return r, g, b, a


def _shape(link: str, element: Element, colour: tuple[float, float, float, float]) -> Iterator[LinkShape]:
    geometry = element.first("geometry")
    place = _place(element)
    for shape in geometry.children[:1] if geometry is not None else ():
        radius, length = (float(_numbers(shape.get(name), 1)[0]) for name in ("radius", "length"))
        match shape.name:
            case "box":
                yield LinkShape(link, place, "cube", _numbers(shape.get("size"), 3), colour)
            case "sphere":
                yield LinkShape(link, place, "sphere", np.full(3, 2 * radius), colour)
            case "cylinder":
                yield LinkShape(link, place, "cylinder", np.array([2 * radius, 2 * radius, length]), colour)
            case "mesh":
                scale = _numbers(shape.get("scale", "1 1 1"), 3, 1.0)
                yield LinkShape(link, place, "mesh", scale, colour, shape.get("filename"))


def _joint(joint: Element) -> RobotJoint | None:
    parent, child, axis, mimic = (joint.first(name) for name in ("parent", "child", "axis", "mimic"))
    if parent is None or child is None:
        return None
    along = np.array([1.0, 0.0, 0.0]) if axis is None else _numbers(axis.get("xyz"), 3)
    length = float(np.linalg.norm(along))
    follows = None
    if mimic is not None:
        factor, offset = (
            float(_numbers(mimic.get(name, usual), 1)[0])
            for name, usual in (("multiplier", "1"), ("offset", "0"))
        )
        follows = (mimic.get("joint"), factor, offset)
    return RobotJoint(
        joint.get("name"),
        joint.get("type"),
        parent.get("link"),
        child.get("link"),
        _place(joint),
        along / length if length else along,
        follows,
    )


@dataclass(frozen=True, slots=True)
class RobotSource:
    """Where a log describes a robot: *topic* of a channel, or the name of a parameter; *channel*: None for it."""

    topic: str
    channel: Channel | None
    text: str = field(default="", repr=False)


#: Parameters with descriptions by log, with the number of its messages: a log may have thousands of parameters.
_PARAMETERS: WeakKeyDictionary[Log, tuple[int, list[tuple[str, str]]]] = WeakKeyDictionary()


def robot_sources(log: Log) -> list[RobotSource]:
    """Return where *log* describes robots: channels named ``robot_description``, then parameters."""
    sources = [
        RobotSource(ch.topic, ch)
        for ch in log.channels.values()
        if ch.topic.rpartition("/")[2] == DESCRIPTION and len(ch) and not ch.reserved
    ]
    count = log.message_count
    if log not in _PARAMETERS or _PARAMETERS[log][0] != count:
        described = [
            (name, parameter.value)
            for name, parameter in log.parameters.items()
            if name.replace(".", "/").rpartition("/")[2] == DESCRIPTION and isinstance(parameter.value, str)
        ]
        _PARAMETERS[log] = (count, described)
    return sources + [RobotSource(f"parameter {name}", None, text) for name, text in _PARAMETERS[log][1]]


#: Robots by log, and by topic and row, or why there is none: a description is read once.
_READ: WeakKeyDictionary[Log, dict[tuple[str, int], Robot | str]] = WeakKeyDictionary()


def robot_of(log: Log, source: RobotSource, at: int) -> Robot:
    """Return the robot as described at the moment *at* (ns), or first; raises UnsupportedError, LogError."""
    ch = source.channel
    rows = [] if ch is None else np.flatnonzero(ch.times <= at).tolist()
    row = rows[-1] if rows else 0
    known = _READ.setdefault(log, {})
    if (source.topic, row) not in known:
        text = source.text if ch is None else ch[row].decode().get(FIELD)
        try:
            known[source.topic, row] = read_urdf(text if isinstance(text, str) else "")
        except UnsupportedError as error:
            # Not the error itself, whose traceback would keep the log alive.
            known[source.topic, row] = error.text
    robot = known[source.topic, row]
    if isinstance(robot, str):
        raise UnsupportedError(robot)
    return robot


def joint_positions(log: Log, at: int) -> dict[str, float]:
    """Return the last position of each joint at or before *at* (ns): rad or metres."""
    positions: dict[str, float] = {}
    for ch, recognised in lenses_of(log):
        lens = next((lens for lens in recognised if isinstance(lens, Joints)), None)
        if lens is None:
            continue
        rows = ch.log.index.rows_between(ch.number, at - STATES_NS, at + 1)
        near = np.arange(*rows.indices(len(ch))) if isinstance(rows, slice) else np.asarray(rows)
        own: dict[str, float] = {}
        for row in near[::-1][:STATES].tolist():
            try:
                value = ch[row].decode()
            except LogError:
                continue
            names = [str(name) for name in value[lens.name]]
            before = len(own)
            for name, position in zip(names, value[lens.position], strict=False):
                own.setdefault(name, float(position))
            # Programs that each send the states of some joints take turns.
            if before and len(own) == before:
                break
        positions |= own
    return positions


@dataclass(slots=True)
class DrawnRobot:
    """A robot as arrays, in the fixed frame.

    arrays   ``shape`` uint8, ``solid`` float32[n, 10] (position, rotation, size) and ``solid_colour`` uint8[n, 4] of
             simple shapes; ``mesh`` float32[m, 11] (position, rotation, scale, number of the file) and ``mesh_colour``;
             ``position``: two corners around each, or the origin of a mesh
    missing  files of meshes that are not there, or of a type that is not read
    """

    arrays: dict[str, NDArray[Any]]
    missing: list[str]


def drawn(robot: Robot, places: Mapping[str, FramePlace], meshes: MeshFolder | None) -> DrawnRobot:
    """Return what is drawn of a robot whose links are at *places*; shapes for collisions stand for missing meshes."""
    missing = [file for file in robot.files if meshes is None or not meshes.has(file)]
    bare = {shape.link for shape in robot.shapes if shape.file in missing}
    shapes = [shape for shape in robot.shapes if shape.file not in missing]
    shapes += [shape for shape in robot.solid if shape.link in bare]
    solids, moved = list[tuple[int, F64]](), list[tuple[float, F64]]()
    solid_colours, mesh_colours = [], []
    files = {file: float(number) for number, file in enumerate(robot.files)}
    for shape in shapes:
        if shape.link not in places or (shape.file and shape.file not in files):
            continue
        place = places[shape.link].after(shape.place)
        numbers = np.concatenate([place.position, place.rotation, shape.size])
        if shape.file:
            moved.append((files[shape.file], numbers))
            mesh_colours.append(shape.colour)
        elif shape.shape in SOLIDS:
            solids.append((SOLIDS.index(shape.shape), numbers))
            solid_colours.append(shape.colour)
    arrays: dict[str, NDArray[Any]] = {}
    if solids:
        arrays["shape"] = np.array([number for number, _ in solids], np.uint8)
        arrays["solid"] = np.array([numbers for _, numbers in solids], np.float32)
        arrays["solid_colour"] = np.round(np.array(solid_colours) * 255).astype(np.uint8)
    if moved:
        arrays["mesh"] = np.array([[*numbers, file] for file, numbers in moved], np.float32)
        arrays["mesh_colour"] = np.round(np.array(mesh_colours) * 255).astype(np.uint8)
    ends = [numbers[:3] + side * numbers[7:10].max() / 2 for _, numbers in solids for side in (-1, 1)]
    ends += [numbers[:3] for _, numbers in moved]
    if ends:
        arrays["position"] = np.array(ends, np.float32)
    return DrawnRobot(arrays, missing)
