"""Koblenz logs: index compared with a plain walk, points with a copy and a NumPy decoder by packet."""

from __future__ import annotations

import struct
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import bench_path  # noqa: F401 - before what it makes importable
from harness import Job, compare, run
from logreel.lenses import velodyne
from support.samples.koblenz.builder import Builder
from support.samples.koblenz.scene import Scene, hdl32e

#: Points a second on one core that are wanted at least.
WANTED = 20e6
IMPORTS = """
import logreel, logreel.log.log, logreel.formats.koblenz.scan_builder, ctypes, sys
from logreel.io.source import Source
from logreel.formats.koblenz.scan_builder import scan
from support.samples.koblenz.drive import drive
from logreel.formats.koblenz.framing import detect_variant
from logreel.formats.koblenz.reader import Reader
scan(Source.open(drive(0.1)))
"""
WALK_C = """
#include <stdint.h>
#include <string.h>
int64_t walk(const unsigned char *b, int64_t pos, int64_t end) {
    int64_t n = 0; uint32_t size;
    while (end - pos >= 21) {
        memcpy(&size, b + pos, 4);
        if (size < 17 || size > end - pos - 4) break;
        n += b[pos + 4] == 0x49;
        pos += size + 4;
    }
    return n;
}
"""
COPY = Job("np.array(np.memmap(path)), a fresh copy", "kept = np.array(np.memmap(path, mode='r'))")
INDEX = Job(
    "index",
    "source = Source.open(path); kept = Reader(source, detect_variant(source)).finish()",
    IMPORTS,
    bound="<= 2 x the plain walk",
)
SCAN = Job("open: index, sensors, problems", "kept = scan(Source.open(path))", IMPORTS)

POINTS = """
from logreel.lenses import velodyne
from logreel.lenses.velodyne import HDL32E, Packets
data = np.fromfile(path, np.uint8)
n = len(data) // 1206
packets = Packets(data, np.arange(n, dtype=np.int64) * 1206, np.zeros(n, np.int64))
"""
DECODE = Job(
    "packets to points, all columns",
    "kept = velodyne.decode(packets, HDL32E)",
    POINTS + "velodyne.decode(Packets(data, packets.offset[:9], packets.time[:9]), HDL32E)",
)
OUTPUT = Job(
    "memcpy of the points",
    "kept = [a.copy() for a in arrays]",
    POINTS
    + "cloud, _ = velodyne.decode(packets, HDL32E)\n"
    + "arrays = [np.ascontiguousarray(a) for a in (cloud.xyz, cloud.intensity, cloud.ring, cloud.azimuth, cloud.time)]",
)
#: The straightforward way: NumPy over the returns of one packet at a time, with all corrections.
PEER = """
BLOCK = np.dtype([("flag", "<u2"), ("azimuth", "<u2"), ("returns", [("distance", "<u2"), ("intensity", "u1")], 32)])
TILT, TURN = np.radians(HDL32E.elevation), np.radians(HDL32E.rotation)
RING = np.argsort(np.argsort(HDL32E.elevation)).astype(np.uint8)
DELAY = np.arange(12)[:, None] * 46080 + np.arange(32) * 1152

def points(packet, stamp):
    blocks = np.frombuffer(packet, BLOCK, 12)
    blocks = blocks[(blocks["flag"] == 0xEEFF) & (blocks["azimuth"] < 36000)]
    there = blocks["returns"]["distance"] > 0
    distance = blocks["returns"]["distance"] * 0.002 + HDL32E.distance
    degrees = (blocks["azimuth"][:, None] / 100 - HDL32E.rotation) % 360
    turn = np.radians(degrees)
    flat = distance * np.cos(TILT) - HDL32E.vertical * np.sin(TILT)
    x = flat * np.cos(turn) + HDL32E.horizontal * np.sin(turn)
    y = HDL32E.horizontal * np.cos(turn) - flat * np.sin(turn)
    z = distance * np.sin(TILT) + HDL32E.vertical * np.cos(TILT)
    ring = np.broadcast_to(RING, there.shape)
    time = stamp + DELAY[: len(blocks)]
    xyz = np.stack([x[there], y[there], z[there]]).astype(np.float32)
    azimuth = degrees[there].astype(np.float32)
    return xyz, blocks["returns"]["intensity"][there], ring[there], azimuth, time[there]

raw = data[: 300 * 1206].tobytes()
"""
BY_PACKET = Job(
    "NumPy by packet, 300 of them",
    "kept = [points(raw[i : i + 1206], 0) for i in range(0, len(raw), 1206)]",
    POINTS + PEER,
)


def drive(path: Path, seconds: int, step: float = 0.0) -> None:
    """Write a log like that of a car: packets of a HDL-64E, two scanners, two cameras, poses; repeated every second.

    step  ms by which each second is later than the one before
    """
    out, packets, picture = Builder(), hdl32e(Scene(), 0, 36), bytes(20_000)
    for i in range(96):
        out.velodyne(i * 10.4, packets)
    for i in range(40):
        out.laser(i * 25.0, "Hokuyo_UTM-30LX", "rear", [1000] * 1081)
    for i in range(100):
        out.pose(i * 10.0, (1, 0, 0, 0))
    for i in range(20):
        out.image(i * 50.0, i % 2, 640, 480, picture)
    out.gps(0)
    write(path, out, seconds, step)


def poses(path: Path, count: int) -> None:
    """Write a log with small messages only: the worst case for an index."""
    out = Builder()
    for i in range(1000):
        out.pose(i * 10.0, (1, 0, 0, 0))
        if i % 10 == 0:
            out.obd(i * 10.0, 1, 2, 3.0)
    write(path, out, count // 1100)


def write(path: Path, out: Builder, times: int, step: float = 0.0) -> None:
    order = np.argsort(out.times, kind="stable").tolist()
    body = bytearray(b"".join(out.messages[i] for i in order))
    ends = np.cumsum([len(out.messages[i]) for i in order]).tolist()
    with path.open("wb") as file:
        file.write(b"\xa4VEL\x01\x00\x01\x00" + bytes(4))
        for turn in range(times):
            for i, at in zip(order, [0, *ends], strict=False):
                struct.pack_into("<d", body, at + 13, out.times[i] + turn * step)
            file.write(body)


def plain_walk(folder: Path) -> Job:
    """Return the job of following the messages only, in C: the least work of any reader."""
    (folder / "walk.c").write_text(WALK_C)
    library = folder / "walk.so"
    subprocess.run(["cc", "-O3", "-shared", "-fPIC", "-o", str(library), str(folder / "walk.c")], check=True)
    setup = f"{IMPORTS}\nwalk = ctypes.CDLL({str(library)!r}).walk; walk.restype = ctypes.c_int64"
    job = (
        "data = Source.open(path).data; "
        "walk(ctypes.c_void_p(data.ctypes.data), ctypes.c_int64(12), ctypes.c_int64(data.size))"
    )
    return Job("plain walk of the chain, in C", job, setup)


def index(folder: Path) -> None:
    """Print the tables of opening."""
    walk, path = plain_walk(folder), folder / "x.log"
    for title, make, size in (("a drive", drive, 60), ("5 M small messages", poses, 5_000_000)):
        make(path, size)
        compare(title, str(path), COPY, [walk, INDEX, SCAN], rounds=5)
        plain, ours, whole = (min(run(job, str(path))[1] for _ in range(7)) for job in (walk, INDEX, SCAN))
        print(f"  the index takes {ours / plain:.2f} x the processor time of the plain walk (bound 2),")
        print(f"  opening {whole / plain:.2f} x")


def decoding(folder: Path) -> None:
    """Print the table of points."""
    path = folder / "packets"
    packets = b"".join(hdl32e(Scene(ground=-1.0), 0, 3616))
    path.write_bytes(packets)
    ratios = compare("3616 packets, two seconds of a HDL-32E", str(path), OUTPUT, [DECODE, BY_PACKET])
    # Processor time: the machine may be busy with something else.
    seconds, peer = (min(run(job, str(path))[1] for _ in range(5)) for job in (DECODE, BY_PACKET))
    data, n = np.frombuffer(packets, np.uint8), len(packets) // 1206
    many = velodyne.Packets(data, np.arange(n, dtype=np.int64) * 1206, np.zeros(n, np.int64))
    count = len(velodyne.decode(many, velodyne.HDL32E)[0])
    print(f"  {count / seconds / 1e6:.0f} M points a second on one core (bound {WANTED / 1e6:.0f})")
    print(f"  {ratios[DECODE.name]:.2f} x a memcpy of the points")
    print(f"  {peer * n / 300 / seconds:.0f} x NumPy by packet (bound 30)")


def main() -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory() as name:
        decoding(Path(name))
        index(Path(name))


if __name__ == "__main__":
    main()
