"""CARLA: open a recording of 200 MB and read it as columns, compared with a copy and a plain Python reader."""

from __future__ import annotations

import os
import struct
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import bench_path  # noqa: F401 - before what it makes importable
from harness import Job, compare, run
from support.formats import sample_log

SAMPLES = Path(os.environ.get("LOGREEL_SHARED", Path(__file__).parents[2] / "shared"))
RECORDING = SAMPLES / "data/carla/sr_DistanceBetweenVehicles_2021.log"
BYTES = 200_000_000
#: The peer keeps a Python object for every number: it reads a tenth, and its time is multiplied.
PART = 10
IMPORTS = """
import logreel, logreel.log.log, logreel.log.tables, logreel.formats.carla.scan_builder, pyarrow
import logreel.layout.arrow, logreel.layout.arrow
from support.formats import sample_log, sample_log
logreel.open(sample_log("carla")).tables()
"""
COPY = Job("np.array(np.memmap(path)), a fresh copy", "kept = np.array(np.memmap(path, mode='r'))")
OPEN = Job("open", "kept = logreel.open(path)", IMPORTS, bound="<= 1.7")
ALL = Job("open and all packets to columns", "kept = logreel.open(path).tables()", IMPORTS, bound="<= 4")
ONE = Job("open and one field", "kept = logreel.open(path)['position']['location.x']", IMPORTS)
HITS = Job(
    "open and list collisions, at most 1 s",
    "kept = logreel.carla.collisions(logreel.open(path)).text()",
    IMPORTS + "import logreel.formats.carla.simulator.api",
)
PEER = Job(
    f"plain Python reader, a part of 1/{PART}", "kept = carla.plain_reader(path)", "import carla", rounds=1
)

#: Records of one size by kind, as the plain reader unpacks them.
RECORDS = {
    3: "<I",
    4: "<II",
    5: "<III??",
    6: "<I6f",
    7: "<I?fB",
    8: "<Ifff?i",
    9: "<If",
    10: "<II",
    11: "<i5f?B",
    12: "<I6f",
    13: "<I6f",
    16: "<Ifff",
    17: "<I6f",
}


def packets(data: bytes, pos: int) -> Iterator[tuple[int, int, int]]:
    """Yield kind, payload offset and size of every packet from *pos* on."""
    while pos < len(data):
        kind, size = struct.unpack_from("<BI", data, pos)
        yield kind, pos + 5, size
        pos += 5 + size


def plain_reader(path: str) -> dict[int, list[np.ndarray]]:
    """Return the columns of every kind, with time and frame, read simply with ``struct`` and lists."""
    data = Path(path).read_bytes()
    columns: dict[int, list[list[object]]] = {}
    formats = {kind: struct.Struct(text) for kind, text in RECORDS.items()}
    frame, elapsed = 0, 0.0

    def add(kind: int, values: tuple[object, ...]) -> None:
        row = (elapsed, frame, *values)
        for column, value in zip(columns.setdefault(kind, [[] for _ in row]), row, strict=True):
            column.append(value)

    for kind, at, _size in packets(data, header_size(data)):
        if kind == 0:
            frame, duration, elapsed = struct.unpack_from("<Qdd", data, at)
            add(kind, (duration,))
        elif kind == 14:
            add(kind, struct.unpack_from("<d", data, at))
        elif kind == 2:
            for actor in actors(data, at):
                add(kind, actor)
        elif kind in formats:
            form = formats[kind]
            (count,) = struct.unpack_from("<H", data, at)
            at += 2
            for _ in range(count):
                add(kind, form.unpack_from(data, at))
                at += form.size
    return {kind: [as_array(column) for column in found] for kind, found in columns.items()}


def as_array(column: list[object]) -> np.ndarray:
    """Return numbers as an array of numbers, other values as one of objects."""
    return np.array(column, object if isinstance(column[0], list | str) else None)


def actors(data: bytes, at: int) -> Iterator[tuple[object, ...]]:
    """Yield the actors of one packet."""

    def text() -> str:
        nonlocal at
        (size,) = struct.unpack_from("<H", data, at)
        at += 2 + size
        return data[at - size : at].decode()

    (count,) = struct.unpack_from("<H", data, at)
    at += 2
    for _ in range(count):
        fixed = struct.unpack_from("<IB6fI", data, at)
        at += 33
        name = text()
        (n,) = struct.unpack_from("<H", data, at)
        at += 2
        attributes = []
        for _ in range(n):
            kind, at = data[at], at + 1
            attributes.append((kind, text(), text()))
        yield (*fixed, name, attributes)


def header_size(data: bytes) -> int:
    """Return the offset of the first packet."""
    return 28 + struct.unpack_from("<H", data, 26)[0]


def recording() -> bytes:
    """Return a real recording if there is one, else a generated one."""
    if RECORDING.exists():
        return RECORDING.read_bytes()
    return sample_log("carla")


def repeat(data: bytes, path: Path, size: int) -> None:
    """Write the frames of *data* repeatedly up to *size* bytes, with ascending numbers and times."""
    begin = header_size(data)
    places = [at - begin for kind, at, _ in packets(data, begin) if kind == 0]
    frames = [struct.unpack_from("<Qdd", data, begin + at) for at in places]
    step = frames[-1][2] + 0.05
    frames[-1] = (frames[-1][0], 0.05, frames[-1][2])
    with path.open("wb") as file:
        file.write(data[:begin])
        for turn in range(max(1, size // (len(data) - begin))):
            body = bytearray(data[begin:])
            for at, (number, duration, elapsed) in zip(places, frames, strict=True):
                struct.pack_into(
                    "<Qdd", body, at, number + turn * len(frames), duration, elapsed + turn * step
                )
            file.write(body)


def main() -> None:
    """Print the tables."""
    data = recording()
    with tempfile.TemporaryDirectory() as name:
        whole, part = Path(name) / "whole.log", Path(name) / "part.log"
        repeat(data, whole, BYTES)
        repeat(data, part, BYTES // PART)
        compare("A recording repeated", str(whole), COPY, [OPEN, ALL, ONE, HITS])
        os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), *sys.path])
        ours = min(run(ALL, str(whole))[0] for _ in range(3))
        theirs = run(PEER, str(part))[0] * whole.stat().st_size / part.stat().st_size
        print(f"  {PEER.name}: {theirs:.1f} s for the whole, {theirs / ours:.0f} x ours (bound 50)")


if __name__ == "__main__":
    main()
