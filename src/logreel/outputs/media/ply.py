"""Point clouds as binary little-endian PLY, with one property per value of a point."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel._version import __version__
from logreel.errors import UnsupportedError
from logreel.lenses import Points
from logreel.log.tables import distinct
from logreel.outputs.media.items import MediaItem

_TYPES = {
    "i1": "char", "u1": "uchar", "i2": "short", "u2": "ushort", "i4": "int", "u4": "uint",
    "f4": "float", "f8": "double",
}  # fmt: skip
#: Maximum number of values per point.
_MAX_PROPERTIES = 4096
#: Colours packed into four bytes, as in the Point Cloud Library: field name, and shift of each colour.
_COLOURS = {
    "rgb": {"red": 16, "green": 8, "blue": 0},
    "rgba": {"red": 16, "green": 8, "blue": 0, "alpha": 24},
}


def write(cloud: Points) -> MediaItem:
    """Return a PLY file of the points of *cloud* with finite coordinates.

    ``x``, ``y``, ``z`` are first, as float unless the log has doubles; then all other values, with their types. 64-bit
    integers become double, since PLY has none. Raises UnsupportedError for a cloud without coordinates, or with more
    than 4096 values per point.
    """
    columns = values_of(cloud)
    is_finite = np.isfinite(columns["x"]) & np.isfinite(columns["y"]) & np.isfinite(columns["z"])
    vertices = np.empty(
        np.count_nonzero(is_finite), [(name, _type(values)) for name, values in columns.items()]
    )
    for name, values in columns.items():
        vertices[name] = values if is_finite.all() else values[is_finite]
    lacks = f"it lacks {cloud.lost} of its points" if cloud.lost else ""
    return MediaItem(
        ".ply", [_header(cloud, vertices, len(is_finite) - len(vertices)), vertices.tobytes()], lacks
    )


def values_of(cloud: Points) -> dict[str, NDArray[Any]]:
    """Return an array of k values by property name: ``x``, ``y``, ``z`` first, then all others.

    Raises UnsupportedError for a cloud without coordinates, or with more than 4096 values per point.
    """
    fields = dict(cloud.fields)
    axes = {axis: fields.pop(axis) for axis in "xyz" if axis in fields and fields[axis].ndim == 1}
    if not axes:
        raise UnsupportedError("its points have no coordinates")
    count = len(next(iter(axes.values())))
    pairs = [(axis, axes.get(axis, np.zeros(count, np.float32))) for axis in "xyz"]
    room = _MAX_PROPERTIES - len(pairs) - sum(v.shape[1] if v.ndim > 1 else 1 for v in fields.values())
    if room < 0:
        raise UnsupportedError(f"its points have more than {_MAX_PROPERTIES} values")
    for name, values in fields.items():
        pairs += _properties(re.sub(r"\W", "_", name, flags=re.ASCII) or "_", values)
    return dict(zip(distinct([name for name, _ in pairs]), (values for _, values in pairs), strict=True))


def _properties(name: str, values: NDArray[Any]) -> list[tuple[str, NDArray[Any]]]:
    if values.ndim > 1:
        return [(f"{name}_{i}", values[:, i]) for i in range(values.shape[1])]
    if name in _COLOURS and values.dtype.kind in "fui" and values.dtype.itemsize == 4:
        packed = values.astype(values.dtype.newbyteorder("<")).view("<u4")
        return [(colour, (packed >> shift).astype(np.uint8)) for colour, shift in _COLOURS[name].items()]
    return [(name, values)]


def _type(values: NDArray[Any]) -> str:
    """Return the NumPy type in the file: that of *values*, or float64 if PLY does not have it."""
    dtype = "u1" if values.dtype.kind == "b" else values.dtype.str[1:]
    return f"<{dtype}" if dtype in _TYPES else "<f8"


def _header(cloud: Points, vertices: NDArray[Any], without: int) -> bytes:
    frame = re.sub(r"[^ -~]", "?", cloud.frame)[:200]
    lines = ["ply", "format binary_little_endian 1.0", f"comment made by logreel {__version__}"]
    lines += [f"comment time_ns {cloud.time}"]
    lines += [f"comment frame {frame}"] if frame else []
    lines += [f"comment points without coordinates left out {without}"] if without else []
    lines += [f"element vertex {len(vertices)}"]
    lines += [
        f"property {_TYPES[vertices.dtype[name].str[1:]]} {name}" for name in vertices.dtype.names or ()
    ]
    return "\n".join([*lines, "end_header\n"]).encode("ascii")
