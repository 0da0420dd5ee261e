"""Requests and bytes of a remote bag of 10 GB, a sparse file on loopback: ``python bench/remote.py [GB]``."""

from __future__ import annotations

import mmap
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bench_path  # noqa: F401 - before what it makes importable
import logreel
from logreel.formats.rosbag import records
from support.harness.range_server import Served, serving_ranges

MAGIC = b"#ROSBAG V2.0\n"
START = 1_700_000_000
PICTURE = 1 << 20
DEFINITIONS = {
    "/camera": ("sensor_msgs/CompressedImage", "uint8[] data"),
    "/imu": ("test_msgs/Value", "float64 value"),
}


def _time(index: int) -> bytes:
    """Return the time of a tenth of a second as a bag has it."""
    return struct.pack("<II", START + index // 10, index % 10 * 10**8)


def _message(conn: int, index: int, size: int) -> bytes:
    named = {"conn": struct.pack("<I", conn), "time": _time(index)}
    return records.record_head(records.OP_MESSAGE, named, size)


def write_bag(path: Path, size: int) -> None:
    """Write a bag of about *size* bytes: each chunk has ten values and one picture of 1 MiB, which is a hole."""
    connections = []
    for number, (topic, (kind, text)) in enumerate(DEFINITIONS.items()):
        fields = {"topic": topic, "type": kind, "md5sum": "*", "message_definition": text}
        named = {"conn": struct.pack("<I", number), "topic": topic.encode()}
        data = records.fields_bytes({name: value.encode() for name, value in fields.items()})
        connections.append(records.record_bytes(records.OP_CONNECTION, named, data))
    infos = []
    count = size // (PICTURE + 2000)
    with path.open("wb") as out:
        out.write(MAGIC)
        out.write(bytes(records.FILE_HEADER + 8))
        for chunk in range(count):
            pos, index = out.tell(), chunk * 10
            small, entries = b"".join(connections) if chunk == 0 else b"", []
            for n in range(10):
                entries.append(_time(index + n) + struct.pack("<I", len(small)))
                small += _message(1, index + n, 8) + struct.pack("<d", index + n)
            camera = len(small)
            small += _message(0, index, 4 + PICTURE) + struct.pack("<I", PICTURE)
            stored = len(small) + PICTURE
            named = {"compression": b"none", "size": struct.pack("<I", stored)}
            out.write(records.record_head(records.OP_CHUNK, named, stored) + small)
            out.seek(PICTURE, 1)
            for conn, some in ((0, [_time(index) + struct.pack("<I", camera)]), (1, entries)):
                named = {"ver": struct.pack("<I", 1), "conn": struct.pack("<I", conn)}
                named["count"] = struct.pack("<I", len(some))
                out.write(records.record_bytes(records.OP_INDEX, named, b"".join(some)))
            named = {"ver": struct.pack("<I", 1), "chunk_pos": struct.pack("<Q", pos)}
            named |= {"start_time": _time(index), "end_time": _time(index + 9), "count": struct.pack("<I", 2)}
            infos.append(
                records.record_bytes(records.OP_CHUNK_INFO, named, struct.pack("<IIII", 0, 1, 1, 10))
            )
        summary = out.tell()
        out.write(b"".join([*connections, *infos]))
        out.seek(len(MAGIC))
        named = {"index_pos": struct.pack("<Q", summary), "conn_count": struct.pack("<I", len(connections))}
        out.write(records.file_header_bytes(named | {"chunk_count": struct.pack("<I", count)}))


def measure(served: Served, name: str, job: Callable[[], Any]) -> Any:
    """Run *job*; print the requests that it makes, the bytes that it receives, and its time."""
    served.forget()
    begin = time.perf_counter()
    result = job()
    took = time.perf_counter() - begin
    print(f"{name:44}{len(served.asked):6} requests {served.sent:12} bytes {took:7.2f} s")
    return result


def main(size: int) -> None:
    """Measure open, info, a window of one topic, a slice and SQL."""
    with tempfile.TemporaryDirectory() as folder, serving_ranges() as served:
        path, out = Path(folder, "big.bag"), Path(folder, "out.bag")
        write_bag(path, size)
        with path.open("rb") as file:
            served.objects["/big.bag"] = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)  # type: ignore[assignment]
        url = f"{served.url}/big.bag"
        length = path.stat().st_size
        print(f"{length} bytes, {path.stat().st_blocks * 512} of them on the disk")
        log = measure(served, "open", lambda: logreel.open(url))
        found = measure(served, "info, of the open log", lambda: logreel.info(log))
        print(f"    {found.messages} messages")
        middle = f"+{found.messages // 22}s"
        window = {"start": middle, "end": f"+{found.messages // 22 + 5}s"}
        measure(served, "5 s of /imu, of the open log", lambda: log["/imu"].to_arrow(**window))
        measure(served, "info", lambda: logreel.info(url))
        measure(
            served, "slice of 5 s of /camera", lambda: logreel.slice(url, out, topics="/camera", **window)
        )
        since = (START + found.messages // 22) * 10**9
        query = f"SELECT avg(value) FROM imu WHERE time_ns >= {since} AND time_ns < {since + 5 * 10**9}"
        measure(served, "SQL of 5 s of /imu", lambda: logreel.sql(query, url))


if __name__ == "__main__":
    main(int(float(sys.argv[1] if len(sys.argv) > 1 else 10) * 10**9))
