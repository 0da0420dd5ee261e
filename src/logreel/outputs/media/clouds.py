"""Point clouds as binary little-endian PLY, with one property per value of a point; packets of a Velodyne scanner as a
capture file (pcap) of the network between scanner and computer.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel._version import __version__
from logreel.errors import UnsupportedError
from logreel.lenses import Points
from logreel.lenses.velodyne import PACKET, Packets
from logreel.log.tables import distinct
from logreel.log.times import SECOND, utc_shift
from logreel.outputs.media.items import MediaItem
from logreel.outputs.registry import Job, readers

if TYPE_CHECKING:
    from logreel.log.log import Channel

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


def write_ply(cloud: Points) -> MediaItem:
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


#: Number at the begin of files with times in ns, version, and the link type Ethernet.
_MAGIC, _VERSION, _ETHERNET = 0xA1B23C4D, (2, 4), 1
#: Address and port of a scanner as it is delivered; it sends to all computers.
_SOURCE, _TARGET, _PORT_FROM, _PORT_TO = bytes([192, 168, 1, 201]), b"\xff" * 4, 443, 2368
_MAC_SOURCE, _MAC_TARGET = bytes.fromhex("607688000000"), b"\xff" * 6
_RECORD, _HEADERS = 16, 14 + 20 + 8


def write_pcap(out: IO[bytes], job: Job, ch: Channel) -> None:
    """Write the packets of *ch* as Ethernet frames with UDP, in the order of the log.

    Times are UTC if the log tells how its clock relates to it, else those of its clock; times before 1970 and after
    2106 cannot be written and become the nearest one. Addresses and ports are those of a scanner as it is delivered.
    """
    out.write(struct.pack("<IHHiIII", _MAGIC, *_VERSION, 0, 0, 65535, _ETHERNET))
    shift = utc_shift(job.log)
    beyond = count = 0
    for packets in _packets(job, ch):
        time = packets.time + (shift or 0)
        limited = np.clip(time, 0, (1 << 32) * SECOND - 1)
        beyond += int(np.count_nonzero(limited != time))
        out.write(_records(packets, limited).tobytes())
        count += len(packets)
    job.rows[ch.topic] = count
    job.advance(len(ch))
    if shift is None:
        job.notes.append("the times are those of the log, which does not say how its clock relates to UTC")
    if beyond:
        job.notes.append(f"{beyond} packets of {ch.topic!r} have times that the file cannot hold")


def _packets(job: Job, ch: Channel) -> Iterator[Packets]:
    for read in readers(ch, "packets")[:1]:
        yield from read(ch, job.start, job.end)


def _records(packets: Packets, time: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return uint8[n, …]: the record of each packet."""
    rows = np.empty((len(packets), _RECORD + _HEADERS + PACKET), np.uint8)
    head = np.empty((len(packets), 4), "<u4")
    head[:, 0], head[:, 1] = time // SECOND, time % SECOND
    head[:, 2:] = _HEADERS + PACKET
    rows[:, :_RECORD] = head.view(np.uint8)
    rows[:, _RECORD : _RECORD + _HEADERS] = np.frombuffer(_headers(), np.uint8)
    data = np.asarray(packets.data)
    rows[:, _RECORD + _HEADERS :] = data[packets.offset[:, None] + np.arange(PACKET)]
    return rows


def _headers() -> bytes:
    """Return the headers of Ethernet, IPv4 and UDP, which are equal for all packets."""
    size = 8 + PACKET
    network = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + size, 0, 0x4000, 64, 17, 0, _SOURCE, _TARGET)
    total = sum(struct.unpack(">10H", network))
    total = (total & 0xFFFF) + (total >> 16)
    network = network[:10] + struct.pack(">H", ~total & 0xFFFF) + network[12:]
    # 0 is no checksum.
    return (
        _MAC_TARGET
        + _MAC_SOURCE
        + b"\x08\x00"
        + network
        + struct.pack(">HHHH", _PORT_FROM, _PORT_TO, size, 0)
    )
