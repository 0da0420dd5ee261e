"""Files of meshes that descriptions of robots name: STL, Collada and Wavefront OBJ, as triangles in metres."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from logreel.errors import UnsupportedError
from logreel.io.arrays import F64, I64
from logreel.meaning.xml_tree import Element, xml_tree

#: Bytes of a file, and its triangles.
MESH_BYTES, TRIANGLES = 64 << 20, 500_000
#: Folders of a path that are tried, and nodes of a scene that are followed; nodes may stand for others many times.
FOLDERS, NODES, NODES_DEPTH = 32, 10_000, 64
#: Numbers of a list, and its characters that are split at once: each is an object for a moment.
NUMBERS, STEP = 16 * TRIANGLES, 1 << 20
#: Bytes of the head of a binary STL, of its count, and of a triangle.
_STL_HEAD, _STL_COUNT = 80, 84
_VERTEX = re.compile(rb"\bvertex\s+(\S{1,40})\s+(\S{1,40})\s+(\S{1,40})", re.IGNORECASE)
_TRIANGLE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("more", "<u2")])
#: Elements of Collada with numbers or names as text.
_TEXTS = ("float_array", "p", "vcount", "matrix", "translate", "rotate", "scale")
_SPACE = re.compile(r"\s")

#: float32[3 n, 3]: corners of triangles.
Corners = NDArray[np.float32]


class MeshFolder:
    """The folder of the user with the files of meshes; no name in a log leads out of it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()

    def path(self, file: str) -> Path | None:
        """Return the file that a description names: the longest end of its path that is in the folder; or None."""
        _, _, path = file.rpartition("://")
        parts = [part for part in PurePosixPath(unquote(path.replace("\\", "/"))).parts if part != "/"]
        if not parts or any(part in ("..", ".") or "\0" in part for part in parts):
            return None
        for first in range(max(0, len(parts) - FOLDERS), len(parts)):
            try:
                path_in_folder = self._folder.joinpath(*parts[first:]).resolve()
                # Links could lead elsewhere.
                if path_in_folder.is_relative_to(self._folder) and path_in_folder.is_file():
                    return path_in_folder
            except OSError:
                continue
        return None

    def has(self, file: str) -> bool:
        """Return whether a file is there, and of a type that is read."""
        path = self.path(file)
        return path is not None and path.suffix.lower() in READERS

    def triangles(self, file: str) -> Corners:
        """Return float32[3 n, 3]: corners of the triangles of a mesh; raises UnsupportedError, OSError."""
        path = self.path(file)
        name = PurePosixPath(file).name[:80]
        if path is None:
            raise UnsupportedError(f"the mesh {name!r} is not in the folder of meshes")
        read = READERS.get(path.suffix.lower())
        if read is None:
            raise UnsupportedError(f"the mesh {name!r} is no STL, Collada or OBJ file")
        if path.stat().st_size > MESH_BYTES:
            raise UnsupportedError(f"the mesh {name!r} has more than {MESH_BYTES >> 20} MB")
        return read(path.read_bytes(), name)


def _sound(corners: NDArray[np.floating], name: str) -> Corners:
    """Return float[n, 3, 3] as corners, without triangles that have infinite or missing numbers."""
    if len(corners) > TRIANGLES:
        raise UnsupportedError(f"the mesh {name!r} has more than {TRIANGLES} triangles")
    sound = np.isfinite(corners).all(axis=(1, 2))
    return np.ascontiguousarray(corners[sound].reshape(-1, 3), np.float32)


def _fans(polygons: I64, sizes: I64) -> I64:
    """Return int64[n, 3]: polygons, told by their corners and how many each has, as fans of triangles."""
    first = np.cumsum(sizes) - sizes
    count = np.maximum(sizes - 2, 0)
    start = np.repeat(first, count)
    turn = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    triangles: I64 = polygons[np.stack([start, start + turn + 1, start + turn + 2], axis=1)]
    return triangles


# ---------------------------------------------------------------------------------------------------------- STL


def read_stl(data: bytes, name: str = "") -> Corners:
    """Return the triangles of an STL, binary or text; raises UnsupportedError for what is none, or too large."""
    count = int.from_bytes(data[_STL_HEAD:_STL_COUNT], "little")
    if (
        len(data) >= _STL_COUNT
        and len(data) >= _STL_COUNT + count * _TRIANGLE.itemsize
        and not _is_text(data, count)
    ):
        corners = np.frombuffer(data, _TRIANGLE, min(count, TRIANGLES + 1), _STL_COUNT)["corners"]
    else:
        corners = _text_corners(data, name)
    return _sound(corners, name)


def _is_text(data: bytes, count: int) -> bool:
    """Return whether data is text rather than binary: binary ones may begin with ``solid``, too."""
    return data[:5] == b"solid" and len(data) != _STL_COUNT + count * _TRIANGLE.itemsize


def _text_corners(data: bytes, name: str) -> F64:
    if not data.lstrip()[:5].lower() == b"solid":
        raise UnsupportedError(f"the mesh {name!r} is no STL file")
    vertices = islice(_VERTEX.finditer(data), 3 * TRIANGLES + 3)
    try:
        numbers = np.fromiter(
            (float(number) for vertex in vertices for number in vertex.groups()), np.float64
        )
    except ValueError as error:
        raise UnsupportedError(f"the mesh {name!r} is no STL file") from error
    return numbers[: len(numbers) // 9 * 9].reshape(-1, 3, 3)


# ---------------------------------------------------------------------------------------------------------- OBJ


def read_obj(data: bytes, name: str = "") -> Corners:
    """Return the faces of a Wavefront OBJ as triangles; raises UnsupportedError for what has none, or is too large."""
    points, corners, sizes = list[list[float]](), list[int](), list[int]()
    try:
        for line in data.splitlines():
            match line.split():
                case [b"v", x, y, z, *_]:
                    points.append([float(x), float(y), float(z)])
                case [b"f", *indices] if len(indices) > 2:
                    numbers = [int(index.partition(b"/")[0]) for index in indices]
                    # Counted from 1, or from the last point backwards.
                    corners += [n - 1 if n > 0 else len(points) + n for n in numbers]
                    sizes.append(len(numbers))
                    if len(corners) - 2 * len(sizes) > TRIANGLES:
                        raise UnsupportedError(f"the mesh {name!r} has more than {TRIANGLES} triangles")
    except ValueError as error:
        raise UnsupportedError(f"the mesh {name!r} is no OBJ file") from error
    if not corners or not 0 <= min(corners) <= max(corners) < len(points):
        raise UnsupportedError(f"the mesh {name!r} is no OBJ file")
    triangles = _fans(np.array(corners, np.int64), np.array(sizes, np.int64))
    return _sound(np.array(points, np.float64)[triangles], name)


# ------------------------------------------------------------------------------------------------------ Collada


def read_collada(data: bytes, name: str = "") -> Corners:
    """Return the triangles and polygons of a Collada file, where its scene has them, in metres.

    The axis that the file calls up is not turned: in descriptions of robots, coordinates are those of the link, as
    RViz draws them. Raises UnsupportedError for what is no Collada, has no such shapes, or is too large.
    """
    root = xml_tree(data, f"the mesh {name!r}", _TEXTS, NODES_DEPTH).first("COLLADA")
    if root is None:
        raise UnsupportedError(f"the mesh {name!r} is no Collada file")
    try:
        corners = _Collada(root, name).corners()
    except (ValueError, OverflowError) as error:
        raise UnsupportedError(f"the mesh {name!r} is damaged: {error}") from error
    if not len(corners):
        raise UnsupportedError(f"the mesh {name!r} has no triangles or polygons")
    return _sound(corners, name)


class _Collada:
    """The content of a Collada file; methods raise ValueError for numbers that are wrong."""

    def __init__(self, root: Element, name: str) -> None:
        self._root, self._name = root, name
        self._geometries = self._by_id("library_geometries", "geometry")
        self._nodes = self._by_id("library_nodes", "node")
        self._shapes: dict[str, F64] = {}
        self._followed = self._count = 0

    def _by_id(self, library: str, name: str) -> dict[str, Element]:
        return {
            element.get("id"): element
            for elements in self._root.each(library)
            for element in elements.each(name)
        }

    def corners(self) -> F64:
        """Return float64[n, 3, 3]: the triangles of the scene, or of all shapes if there is no scene."""
        unit = self._root.first("asset", "unit")
        scale = float(unit.get("meter", "1")) if unit is not None else 1.0
        scenes = self._by_id("library_visual_scenes", "visual_scene")
        shown = self._root.first("scene", "instance_visual_scene")
        scene = scenes.get(shown.get("url").removeprefix("#")) if shown is not None else None
        parts = (
            [self._shape(geometry) for geometry in self._geometries]
            if scene is None
            else [part for node in scene.each("node") for part in self._placed(node, np.eye(4), 0)]
        )
        return np.concatenate(parts) * scale if parts else np.zeros((0, 3, 3))

    def _placed(self, node: Element, place: F64, depth: int) -> Iterator[F64]:
        """Yield the shapes of a node and of those below it, moved to their place."""
        self._followed += 1
        if self._followed > NODES or depth > NODES_DEPTH:
            raise UnsupportedError(f"the mesh {self._name!r} has too many nodes")
        for child in node.children:
            url = child.get("url").removeprefix("#")
            match child.name:
                case "matrix" | "translate" | "rotate" | "scale":
                    place = place @ _transform(child)
                case "instance_geometry" if url in self._geometries:
                    yield self._shape(url) @ place[:3, :3].T + place[:3, 3]
                case "node":
                    yield from self._placed(child, place, depth + 1)
                case "instance_node" if url in self._nodes:
                    yield from self._placed(self._nodes[url], place, depth + 1)

    def _shape(self, geometry: str) -> F64:
        """Return float64[n, 3, 3]: the triangles of a shape, as it is stored."""
        if geometry not in self._shapes:
            mesh = self._geometries[geometry].first("mesh")
            parts = [] if mesh is None else [*_triangles(mesh)]
            self._shapes[geometry] = np.concatenate(parts) if parts else np.zeros((0, 3, 3))
        # Nodes may show one shape thousands of times.
        self._count += len(self._shapes[geometry])
        if self._count > TRIANGLES:
            raise UnsupportedError(f"the mesh {self._name!r} has more than {TRIANGLES} triangles")
        return self._shapes[geometry]


def _triangles(mesh: Element) -> Iterator[F64]:
    """Yield float64[n, 3, 3] for each list of triangles or polygons of a mesh."""
    points = {source.get("id"): source for source in mesh.each("source")}
    positions = {
        vertices.get("id"): points[entry.get("source").removeprefix("#")]
        for vertices in mesh.each("vertices")
        for entry in vertices.each("input")
        if entry.get("semantic") == "POSITION" and entry.get("source").removeprefix("#") in points
    }
    for polygons in mesh.children:
        if polygons.name not in ("triangles", "polylist", "polygons"):
            continue
        inputs = [*polygons.each("input")]
        vertex = next((entry for entry in inputs if entry.get("semantic") == "VERTEX"), None)
        source = positions.get(vertex.get("source").removeprefix("#")) if vertex is not None else None
        if vertex is None or source is None:
            continue
        offsets = [int(entry.get("offset", "0")) for entry in inputs]
        if min(offsets) < 0:
            raise ValueError("an offset of its polygons is negative")
        stride = 1 + max(offsets)
        lists = [_numbers(part.text, np.int64) for part in polygons.each("p")]
        if not lists or stride >= 64:
            continue
        indices = np.concatenate([part[: len(part) // stride * stride] for part in lists])
        corners = indices.reshape(-1, stride)[:, offsets[inputs.index(vertex)]]
        coordinates = _coordinates(source)
        if len(corners) and not 0 <= corners.min() <= corners.max() < len(coordinates):
            raise ValueError("it names points that are not there")
        yield coordinates[_fans(corners, _sizes(polygons, lists, len(corners), stride))]


def _sizes(polygons: Element, lists: Sequence[I64], corners: int, stride: int) -> I64:
    """Return int64[n]: the corners of each polygon."""
    counts = polygons.first("vcount")
    if polygons.name == "polygons":
        return np.array([len(part) // stride for part in lists], np.int64)
    if polygons.name == "polylist" and counts is not None:
        sizes = _numbers(counts.text, np.int64)
        if (sizes < 0).any() or sizes.sum() > corners:
            raise ValueError("it counts more corners than it has")
        return sizes
    return np.full(corners // 3, 3, np.int64)


def _coordinates(source: Element) -> F64:
    """Return float64[n, 3]: the points of a source."""
    numbers = source.first("float_array")
    accessor = source.first("technique_common", "accessor")
    stride = int(accessor.get("stride", "3")) if accessor is not None else 3
    values = _numbers(numbers.text, np.float64) if numbers is not None else np.zeros(0)
    if not 3 <= stride < 64:
        raise ValueError("its positions have less than three numbers")
    return values[: len(values) // stride * stride].reshape(-1, stride)[:, :3]


def _numbers(text: str, dtype: type[np.int64 | np.float64]) -> NDArray[Any]:
    """Return the numbers of a text, split in steps; raises ValueError for what is no number, and for too many."""
    parts, at, count = [], 0, 0
    while at < len(text):
        space = _SPACE.search(text, min(len(text), at + STEP))
        end = space.start() if space else len(text)
        parts.append(np.array(text[at:end].split(), dtype))
        at, count = end + 1, count + len(parts[-1])
        if count > NUMBERS:
            raise ValueError(f"it has a list of more than {NUMBERS} numbers")
    return np.concatenate(parts) if parts else np.zeros(0, dtype)


def _transform(element: Element) -> F64:
    """Return float64[4, 4] of a step of a node."""
    numbers = _numbers(element.text, np.float64)
    if len(numbers) != {"matrix": 16, "rotate": 4}.get(element.name, 3):
        raise ValueError(f"a {element.name} has {len(numbers)} numbers")
    matrix = np.eye(4)
    match element.name:
        case "matrix":
            matrix = numbers.reshape(4, 4)
        case "translate":
            matrix[:3, 3] = numbers
        case "scale":
            matrix[:3, :3] = np.diag(numbers)
        case _:
            axis, angle = numbers[:3], math.radians(float(numbers[3]))
            length = float(np.linalg.norm(axis))
            x, y, z = axis / length if length else (0.0, 0.0, 0.0)
            cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
            matrix[:3, :3] += math.sin(angle) * cross + (1 - math.cos(angle)) * cross @ cross
    return matrix


#: What reads a file, by the end of its name.
READERS: Mapping[str, Callable[[bytes, str], Corners]] = {
    ".stl": read_stl,
    ".dae": read_collada,
    ".obj": read_obj,
}
