"""ROS 1 bags: open, one field, all messages as columns; compared with a fresh copy of the mapped file and rosbags."""

from __future__ import annotations

import sys

import bench_path  # noqa: F401 - before what it makes importable
import bigbag
from harness import Job, compare, run

IMPORTS = """
import logreel, logreel.log.log, logreel.log.tables, logreel.formats.rosbag.scan_builder, lz4.frame, bz2
import pyarrow, logreel.layout.arrow, logreel.index.gather
from support.samples.rosbag.builder import drive
logreel.open(drive(1.0)).tables()  # whatever is imported at first use
"""
PEER = """
import numpy
from rosbags.highlevel import AnyReader
from pathlib import Path
"""
COPY = Job("np.array(np.memmap(path)), a fresh copy", "kept = np.array(np.memmap(path, mode='r'))")
OPEN = Job("logreel.open", "kept = logreel.open(path)", IMPORTS)
ALL = Job("… and all topics to Arrow", "kept = logreel.open(path).tables()", IMPORTS)
RAW = Job(
    "… and every message as bytes",
    "kept = sum(len(m.data) for m in logreel.open(path).messages(order='file'))",
    IMPORTS,
    rounds=2,
)
PEER_OPEN = Job("rosbags: open", "kept = AnyReader([Path(path)]); kept.open()", PEER, rounds=3)
PEER_RAW = Job(
    "rosbags: every message as bytes",
    "with AnyReader([Path(path)]) as r: kept = sum(len(data) for _, _, data in r.messages())",
    PEER,
    rounds=1,
)
PEER_ALL = Job(
    "rosbags: deserialize every message",
    "with AnyReader([Path(path)]) as r:\n    for c, t, data in r.messages(): kept = r.deserialize(data, c.msgtype)",
    PEER,
    rounds=1,
)


def main() -> None:
    """Print the tables; argument: a scale, 1 for bags of about 200 MB."""
    scale = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    for compression in ("none", "lz4"):
        path = str(bigbag.make("mixed", compression, scale))
        jobs = [
            OPEN,
            Job(
                "… and one field to NumPy",
                "kept = logreel.open(path)['/imu']['linear_acceleration.z']",
                IMPORTS,
            ),
            ALL,
            RAW,
            PEER_OPEN,
            PEER_RAW,
            PEER_ALL,
        ]
        ratios = compare(f"1 M mixed messages, {compression}", path, COPY, jobs, rounds=3)
        print_ratios(ratios)
    for kind in ("joints", "transforms", "clouds"):
        path = str(bigbag.make(kind, "none", scale))
        print_ratios(compare(kind, path, COPY, [OPEN, ALL, PEER_OPEN, PEER_ALL], rounds=3))
    path = str(bigbag.make("mixed", "none", scale))
    messages = 1_000_000 * scale
    peak = run(OPEN, path, memory=True)[2]
    print(
        f"  opening took {peak / 1e6:.1f} MB of memory besides mapped pages: {peak / messages:.1f} bytes a message"
    )


def print_ratios(ratios: dict[str, float]) -> None:
    print(f"  open is {ratios[PEER_OPEN.name] / ratios[OPEN.name]:.0f} x faster than rosbags,")
    print(
        f"  all columns {ratios[PEER_ALL.name] / ratios[ALL.name]:.0f} x faster than its deserialized messages"
    )


if __name__ == "__main__":
    main()
