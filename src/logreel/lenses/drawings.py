"""What programs draw for people to see in space: occupancy grids, and markers such as boxes, lines and labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass
from logreel.errors import DamagedError
from logreel.io.arrays import F64
from logreel.layout.nodes import Node, Scalar, Sequence, String, Struct
from logreel.lenses.base import Nodes, frame_path, is_blob, is_float, is_integer, is_vector, nodes_of, rows

if TYPE_CHECKING:
    from logreel.log.log import Channel

#: Cells of a grid without a measurement.
UNKNOWN = -1
#: Shapes by the number of their type (visualization_msgs/Marker).
SHAPES = (
    "arrow",
    "cube",
    "sphere",
    "cylinder",
    "line strip",
    "line list",
    "cube list",
    "sphere list",
    "points",
    "text",
    "mesh",
    "triangle list",
)
#: Numbers of the actions of a marker.
_DELETE, _DELETE_ALL = 2, 3
#: Messages before a moment, and their bytes, that are looked through for markers that still stand then.
HISTORY, HISTORY_BYTES = 500, 16 << 20


@dataclass(frozen=True, slots=True, eq=False)
class GridCells:
    """An occupancy grid.

    time        ns
    frame       name of its coordinate frame; empty if unknown
    resolution  metres of an edge of a cell
    position    float64[3]  metres: the corner of the first cell
    rotation    float64[4]  quaternion x, y, z, w
    cells       int8[height, width]: 0 free to 100 occupied, UNKNOWN without a measurement; rows along y
    """

    time: int
    frame: str
    resolution: float
    position: F64
    rotation: F64
    cells: NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class OccupancyGrid:
    """Grids of cells with a probability of being occupied (nav_msgs/OccupancyGrid)."""

    frame: str | None = None

    def grids(self, ch: Channel, start: int | None = None, end: int | None = None) -> Iterator[GridCells]:
        """Yield the grids with start <= time < end (ns), in file order; rows of cells that are missing are unknown."""
        origin = [
            f"info.origin.{part}.{axis}"
            for part, axes in (("position", "xyz"), ("orientation", "xyzw"))
            for axis in axes
        ]
        paths = ["info.resolution", "info.width", "info.height", *origin, "data"]
        for time, value in rows(ch, [*paths, *([self.frame] if self.frame else [])], start, end):
            data = value["data"]
            cells = np.asarray(data if isinstance(data, np.ndarray) else data.items()).view(np.int8)
            width, height = int(value["info.width"]), int(value["info.height"])
            # What a message states must not take more memory than it holds.
            height = min(height, -(-len(cells) // width)) if width else 0
            width = min(width, len(cells))
            full = np.full(width * height, UNKNOWN, np.int8)
            full[: len(cells)] = cells[: len(full)]
            place = np.array([value[path] for path in origin], np.float64)
            yield GridCells(
                time,
                value[self.frame] if self.frame else "",
                float(value["info.resolution"]),
                place[:3],
                place[3:],
                full.reshape(height, width),
            )


@dataclass(frozen=True, slots=True, eq=False)
class Marker:
    """A shape as it was last sent.

    time      ns of its message
    name      namespace and number
    shape     one of SHAPES; ``unknown`` for others
    frame     name of its coordinate frame; empty if unknown
    position, rotation  float64[3] in metres and float64[4], quaternion x, y, z, w
    scale     float64[3]  metres
    colour    float64[4]  red, green, blue, opacity from 0 to 1
    points    float64[n, 3]  metres, relative to its pose; of lists and of arrows between two points
    colours   float64[n, 4]  of each point; empty where all have *colour*
    text      what a label says
    """

    time: int
    name: str
    shape: str
    frame: str
    position: F64
    rotation: F64
    scale: F64
    colour: F64
    points: F64
    colours: F64
    text: str


@dataclass(frozen=True, slots=True)
class Markers:
    """Markers (visualization_msgs/Marker), alone or as an array; each stands until it is replaced, deleted or expires.

    array  True: a message has many
    """

    array: bool

    def standing(self, ch: Channel, at: int) -> tuple[list[Marker], int]:
        """Return the markers that stand at the moment *at* (ns), and the number of messages that were not read.

        These are messages that cannot be decoded, and those further back than HISTORY.
        """
        before = ch.log.index.rows_between(ch.number, None, at + 1)
        numbers = np.arange(before.start, before.stop) if isinstance(before, slice) else np.asarray(before)
        left_out = max(0, len(numbers) - HISTORY)
        messages, size = list[Any](), 0
        for row in numbers[left_out:][::-1].tolist():
            message = ch[row]
            size += len(message.data)
            if messages and size > HISTORY_BYTES:
                left_out = len(numbers) - len(messages)
                break
            messages.append(message)
        shown = dict[str, tuple[Marker, int]]()
        for message in reversed(messages):
            try:
                fields = message.decode()
            except DamagedError:
                left_out += 1
                continue
            for value in fields["markers"] if self.array else [fields]:
                _take(value, message.time, shown)
        return [marker for marker, until in shown.values() if until == 0 or at < until], left_out


def _take(value: Mapping[str, Any], time: int, shown: dict[str, tuple[Marker, int]]) -> None:
    """Add, replace or delete a marker among those *shown*, by name, each with the ns until which it stands, or 0."""
    if value["action"] == _DELETE_ALL:
        shown.clear()
        return
    name = f"{value.get('ns', '')}/{value.get('id', 0)}".lstrip("/")
    shown.pop(name, None)
    if value["action"] == _DELETE:
        return
    lifetime = _ns(value.get("lifetime", 0))
    points = [_numbers(point, "xyz") for point in value.get("points", ())]
    colours = [_numbers(colour, "rgba") for colour in value.get("colors", ())]
    marker = Marker(
        time,
        name,
        SHAPES[value["type"]] if 0 <= value["type"] < len(SHAPES) else "unknown",
        str(value.get("header", {}).get("frame_id", "")),
        _numbers(value["pose"]["position"], "xyz"),
        _numbers(value["pose"]["orientation"], "xyzw"),
        _numbers(value["scale"], "xyz"),
        _numbers(value["color"], "rgba"),
        np.array(points, np.float64).reshape(-1, 3),
        np.array(colours, np.float64).reshape(-1, 4),
        str(value.get("text", "")),
    )
    shown[name] = marker, time + lifetime if lifetime > 0 else 0


def _numbers(value: Mapping[str, float], axes: str) -> F64:
    return np.array([value[axis] for axis in axes], np.float64)


def _ns(lifetime: Any) -> int:
    if isinstance(lifetime, Mapping):
        return int(lifetime.get("sec", 0)) * 10**9 + int(lifetime.get("nanosec", 0))
    return int(lifetime)


def find_grid(nodes: Nodes) -> OccupancyGrid | None:
    """Return the OccupancyGrid that *nodes* describe, or None."""
    info = nodes_of(nodes.get("info")) if isinstance(nodes.get("info"), Struct) else {}
    data = nodes.get("data")
    is_cells = is_blob(data) or (isinstance(data, Sequence) and data.item == Scalar("int8"))
    if not (is_float(info.get("resolution")) and is_cells and _is_pose(info.get("origin"))):
        return None
    if not (is_integer(info.get("width")) and is_integer(info.get("height"))):
        return None
    return OccupancyGrid(frame_path(nodes))


def find_markers(nodes: Nodes) -> Markers | None:
    """Return the Markers that *nodes* describe, or None."""
    many = nodes.get("markers")
    if isinstance(many, Sequence):
        return Markers(True) if _is_marker(nodes_of(many)) else None
    return Markers(False) if _is_marker(nodes) else None


def _is_marker(nodes: Nodes) -> bool:
    # Interactive markers have no type.
    return (
        all(is_integer(nodes.get(name)) for name in ("type", "action", "id"))
        and isinstance(nodes.get("ns"), String)
        and _is_pose(nodes.get("pose"))
        and is_vector(nodes.get("scale"))
        and is_vector(nodes.get("color"), "rgba")
    )


def _is_pose(node: Node | None) -> bool:
    nodes = nodes_of(node) if isinstance(node, Struct) else {}
    return is_vector(nodes.get("position")) and is_vector(nodes.get("orientation"), "xyzw")
