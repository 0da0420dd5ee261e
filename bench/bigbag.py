"""Write large ROS 1 bags quickly: messages of fixed size in a fixed pattern, filled column by column."""

from __future__ import annotations

import struct
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

import bench_path  # noqa: F401 - before what it makes importable
from support.samples.rosbag.builder import MAGIC, PACK, Builder, connection_record, string
from support.samples.rosbag.old import Topic, record

START = 1_700_000_000 * 10**9
CHUNK = 768 << 10
JOINTS = ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3", "gripper")
ENTRY = np.dtype([("sec", "<u4"), ("nsec", "<u4"), ("offset", "<u4")])


@dataclass(frozen=True)
class Stream:
    """Messages of one topic: *share* in each pattern; *stamp* and doubles (*numbers*) of *payload* are filled in."""

    topic: Topic
    payload: bytes
    share: int
    stamp: int | None = None
    numbers: tuple[int, int] = (0, 0)


def _header(frame: str) -> bytes:
    return bytes(12) + string(frame)


def _imu(share: int) -> Stream:
    head = _header("imu")
    return Stream(Topic("/imu", "sensor_msgs/Imu"), head + bytes(296), share, 4, (len(head), len(head) + 296))


def _twist(share: int) -> Stream:
    head = _header("base_link")
    end = len(head) + 48
    return Stream(Topic("/twist", "geometry_msgs/TwistStamped"), head + bytes(48), share, 4, (len(head), end))


def _text(share: int) -> Stream:
    return Stream(Topic("/chatter", "std_msgs/String"), string("hello from the bench"), share)


def _joints(share: int) -> Stream:
    head = _header("") + struct.pack("<I", len(JOINTS)) + b"".join(map(string, JOINTS))
    n = len(JOINTS)
    arrays = struct.pack(f"<I{n}dI{n}dI", n, *([0.5] * n), n, *([0.25] * n), 0)
    return Stream(Topic("/joint_states", "sensor_msgs/JointState"), head + arrays, share, 4)


def _transforms(share: int) -> Stream:
    one = [
        _header("odom") + string(child) + struct.pack("<7d", 1, 2, 0, 0, 0, 0, 1)
        for child in ("base", "arm", "lidar")
    ]
    return Stream(Topic("/tf", "tf2_msgs/TFMessage"), struct.pack("<I", 3) + b"".join(one), share, 8)


def _cloud(share: int, points: int = 2000) -> Stream:
    names = ("x", "y", "z", "intensity")
    fields = b"".join(string(name) + struct.pack("<IBI", 4 * k, 7, 1) for k, name in enumerate(names))
    head = _header("lidar") + struct.pack("<III", 1, points, 4) + fields
    head += struct.pack("<BIII", 0, 16, 16 * points, 16 * points)
    rng = np.random.default_rng(1)
    data = rng.normal(size=(points, 4)).astype("<f4").tobytes()
    return Stream(Topic("/points", "sensor_msgs/PointCloud2"), head + data + b"\x01", share, 4)


KINDS = {
    "mixed": ((_imu(3), _twist(6), _text(1)), 100_000),
    "joints": ((_joints(1),), 200_000),
    "transforms": ((_transforms(1),), 200_000),
    "clouds": ((_cloud(1),), 3_000),
}


def make(kind: str = "mixed", compression: str = "none", scale: float = 1.0) -> Path:
    """Return a cached bag in the temporary folder: 1 M mixed messages, or one kind of ROS messages with arrays."""
    streams, repeats = KINDS[kind]
    repeats = max(1, int(repeats * scale))
    out = Path(tempfile.gettempdir()) / f"logreel-bench-{kind}-{compression}-{repeats}.bag"
    if not out.exists():
        part = out.with_suffix(".part")
        with part.open("wb") as f:
            _write(f, streams, repeats, compression)
        part.rename(out)
    return out


def _write(f: IO[bytes], streams: tuple[Stream, ...], repeats: int, compression: str) -> None:
    order = [k for k, s in enumerate(streams) for _ in range(s.share)]
    rows = [_record(k, streams[k].payload) for k in order]
    ends = np.cumsum([len(row) for row in rows])
    pattern = np.frombuffer(b"".join(rows), np.uint8)
    per_chunk = max(1, CHUNK // len(pattern))
    infos = b""
    f.write(MAGIC + Builder().bag_header())
    links = [connection_record(k, s.topic) for k, s in enumerate(streams)]
    for lo in range(0, repeats, per_chunk):
        n = min(per_chunk, repeats - lo)
        before = b"".join(links) if lo == 0 else b""
        times = START + (np.arange(n * len(order)).reshape(n, -1) + lo * len(order)) * 100_000
        block = np.tile(pattern, (n, 1))
        for column, k in enumerate(order):
            _fill(block, int(ends[column]) - len(streams[k].payload), streams[k], times[:, column])
        content = before + block.tobytes()
        size = struct.pack("<I", len(content))
        fields = [("compression", compression.encode()), ("op", b"\x05"), ("size", size)]
        chunk = record(fields, PACK[compression](content))
        place = len(before) + np.arange(n)[:, None] * len(pattern) + (ends - [len(row) for row in rows])
        chunk_pos = struct.pack("<Q", f.tell())
        counts = b""
        for k in range(len(streams)):
            mine = np.array(order) == k
            entries = np.empty(int(n * mine.sum()), ENTRY)
            entries["sec"], entries["nsec"] = np.divmod(times[:, mine].ravel(), 10**9)
            entries["offset"] = place[:, mine].ravel()
            conn, count = struct.pack("<I", k), struct.pack("<I", len(entries))
            chunk += record(
                [("ver", b"\x01\0\0\0"), ("conn", conn), ("count", count), ("op", b"\x04")], entries.tobytes()
            )
            counts += conn + count
        infos += record(
            [
                ("ver", b"\x01\0\0\0"),
                ("op", b"\x06"),
                ("chunk_pos", chunk_pos),
                ("start_time", _stamp(times[0, 0])),
                ("end_time", _stamp(times[-1, -1])),
                ("count", struct.pack("<I", len(streams))),
            ],
            counts,
        )
        f.write(chunk)
    tail = f.tell()
    f.write(b"".join(links) + infos)
    f.seek(len(MAGIC))
    f.write(Builder().bag_header(tail, len(streams), -(-repeats // per_chunk)))


def _record(conn: int, payload: bytes) -> bytes:
    return record([("op", b"\x02"), ("conn", struct.pack("<I", conn)), ("time", bytes(8))], payload)


def _stamp(time: np.int64) -> bytes:
    return struct.pack("<II", *divmod(int(time), 10**9))


def _fill(block: np.ndarray, at: int, stream: Stream, times: np.ndarray) -> None:
    """Fill in record times, stamps and numbers of one message of the pattern; its payload begins at *at*."""
    stamps = np.stack(np.divmod(times, 10**9), axis=1).astype("<u4").view(np.uint8)
    block[:, at - 12 : at - 4] = stamps
    if stream.stamp is not None:
        block[:, at + stream.stamp : at + stream.stamp + 8] = stamps
    numbers = block[:, at + stream.numbers[0] : at + stream.numbers[1]]
    if numbers.size:
        values = np.sin(times[:, None] * 1e-9 + np.arange(numbers.shape[1] // 8))
        numbers[:] = values.astype("<f8").view(np.uint8)
