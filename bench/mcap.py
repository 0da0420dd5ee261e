"""MCAP compared with the mcap library: open, index, columns, write, convert; also with a copy and the compressor alone.

Arguments: the number of messages, and ``convert`` for conversions only. Conversions are compared with zstd alone (level
3, as in all of them) of three inputs: the log itself (the yardstick of the table), and the content of the MCAP written
with ``--raw`` and by default. The last two are the bytes that the conversion compresses, so they show its other costs.

One bag has random numbers, which compress badly: nearly all of the time is zstd's. The other one has small messages of
several kinds, like those of robots.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import numpy as np

import bench_path  # noqa: F401 - before what it makes importable
import bigbag
import biglog
import logreel
from harness import Job, compare

# This script has the name of the library, which is meant where jobs import it.
#: What is loaded when a first file of the format is opened is loaded before.
OPEN = "import logreel; logreel.open(path)\n"
PEER = "from mcap.reader import make_reader\n"
COPY = Job("fresh copy of the mapped file", "np.fromfile(path, np.uint8)")
READ = [
    Job("open", "log = logreel.open(path); log.message_count", OPEN),
    Job(
        "open, times of all messages",
        "log = logreel.open(path); [ch.times for ch in log.channels.values()]",
        OPEN,
    ),
    Job(
        "open, all columns",
        "log = logreel.open(path); log.tables()",
        OPEN + "import pyarrow, logreel.log.read_tables\n",
    ),
    Job(
        "open, one field",
        "log = logreel.open(path); log['/imu']['angular_velocity.x']",
        OPEN + "import pyarrow\n",
    ),
    Job("check: all checksums", "logreel.open(path).verify()", OPEN),
    Job("mcap: summary", "make_reader(open(path, 'rb')).get_summary()", PEER),
    Job("mcap: all messages", "for _ in make_reader(open(path, 'rb')).iter_messages(): pass", PEER, rounds=1),
]
OUT = OPEN + "import tempfile, shutil; out = tempfile.mkdtemp() + '/out'\n"
WRITE = """
log = logreel.open(path)
raw = [(m.time, bytes(m.data)) for m in log.messages("/imu", end=log.start + 10**9 * 200)]
"""
PEERS_WRITE = """
with open(out, "wb") as f:
    w = Writer(f, compression=CompressionType.ZSTD); w.start()
    c = w.register_channel("/imu", "ros1", w.register_schema("a", "ros1msg", b""))
    for t, p in raw: w.add_message(c, t, p, t)
    w.finish()
"""
OURS_WRITE = """
with logreel.create(out + ".mcap") as w:
    c = w.add_channel("/imu", log["/imu"].schema)
    for t, p in raw: w.write(c, t, p)
"""
COMPRESS = Job(
    "zstd alone, chunks of 1 MiB",
    "for at in range(0, len(data), 1 << 20): pack(data[at : at + (1 << 20)])",
    "import zstandard; data = open(path, 'rb').read(); pack = zstandard.ZstdCompressor().compress\n",
)
#: What is loaded when a first log is converted is loaded before: a short one is.
CONVERT_SETUP = (
    OUT
    + "from support.samples.ulog.builder import flight\n"
    + "for raw in (True, False): logreel.convert(flight(1.0), out + '.mcap', raw=raw, force=True)\n"
    + "os.remove(out + '.mcap')\n"
)
RAW, DEFAULT = "--raw, zstd", "default, zstd"
CONVERT = [
    Job(RAW, "logreel.convert(path, out + '.mcap', raw=True)", CONVERT_SETUP),
    Job(DEFAULT, "logreel.convert(path, out + '.mcap')", CONVERT_SETUP),
    Job("--raw, lz4", "logreel.convert(path, out + '.mcap', raw=True, compression='lz4')", CONVERT_SETUP),
    Job("--raw, none", "logreel.convert(path, out + '.mcap', raw=True, compression='none')", CONVERT_SETUP),
]
ROSBAGS = Job(
    "rosbags + mcap, message by message",
    "with AnyReader([Path(path)]) as r, open(out, 'wb') as f:\n"
    "    w = Writer(f, compression=CompressionType.ZSTD); w.start()\n"
    "    ids = {c.id: w.register_channel(c.topic, 'ros1', w.register_schema(c.msgtype, 'ros1msg', b''))\n"
    "           for c in r.connections}\n"
    "    for c, t, p in r.messages(): w.add_message(ids[c.id], t, bytes(p), t)\n"
    "    w.finish()",
    OUT + "from pathlib import Path\nfrom rosbags.highlevel import AnyReader\nfrom mcap.writer import *\n",
    rounds=1,
)
PYULOG = Job(
    "pyulog + mcap, message by message as JSON",
    "with open(out, 'wb') as f:\n"
    "    w = Writer(f, compression=CompressionType.ZSTD); w.start()\n"
    "    for d in ULog(path).data_list:\n"
    "        c = w.register_channel(d.name, 'json', w.register_schema(d.name, 'jsonschema', b'{}'))\n"
    "        names, columns = list(d.data), [v.tolist() for v in d.data.values()]\n"
    "        for row in zip(*columns):\n"
    "            t = row[0] * 1000\n"
    "            w.add_message(c, t, json.dumps(dict(zip(names, row))).encode(), t)\n"
    "    w.finish()",
    OUT + "import json\nfrom pyulog import ULog\nfrom mcap.writer import *\n",
    rounds=1,
)


def bag(folder: Path, messages: int) -> Path:
    """Write a bag of IMU messages of 0.3 kB with random numbers, which compress badly."""
    path = folder / "a.bag"
    rng = np.random.default_rng(1)
    with logreel.create(path, flush_every=None) as w:
        channel = w.add_channel("/imu", logreel.Schema("sensor_msgs/Imu", "ros1msg", ""))
        head = bytes(12) + b"\x03\0\0\0imu"
        for lo in range(0, messages, 100_000):
            n = min(100_000, messages - lo)
            rows = np.zeros((n, len(head) + 296), np.uint8)
            rows[:, : len(head)] = np.frombuffer(head, np.uint8)
            numbers = np.cumsum(rng.normal(size=(n, 37)), axis=0).round(3)
            rows[:, len(head) :] = numbers.view(np.uint8).reshape(n, -1)
            times = 10**18 + (lo + np.arange(n)) * 10**6
            at = np.arange(n) * rows.shape[1]
            w.write_many(np.full(n, channel, np.int32), times, rows.ravel(), at, at * 0 + rows.shape[1])
    return path


def _alone(path: Path, folder: Path, raw: bool) -> Job:
    """Return the job of only compressing the chunks and message indexes of an MCAP of the same messages."""
    plain = str(folder / f"{'raw' if raw else 'default'}.mcap")
    logreel.convert(path, plain, raw=raw, compression="none", force=True)
    setup = (
        f"import zstandard; data = open({plain!r}, 'rb').read(); pack = zstandard.ZstdCompressor().compress\n"
    )
    return Job(f"zstd alone, of the bytes of {RAW if raw else DEFAULT}", COMPRESS.job, setup)


def _read_and_write(source: Path, folder: Path, messages: int) -> None:
    mcaps = {kind: folder / f"{kind}.mcap" for kind in ("none", "lz4", "zstd")}
    for kind, path in mcaps.items():
        logreel.convert(source, path, compression=kind)
        compare(f"reading, {kind}", str(path), COPY, READ, rounds=3)
    few = folder / "few.mcap"
    logreel.slice(mcaps["none"], few, count=messages // 5)
    jobs = [
        Job("write, one by one", OURS_WRITE, OUT + WRITE),
        Job("mcap: add_message", PEERS_WRITE, OUT + WRITE + "from mcap.writer import *\n", rounds=1),
    ]
    compare("writing zstd", str(few), COMPRESS, jobs, rounds=3, unit="zstd")


def _convert(source: Path, folder: Path) -> None:
    for title, path, peer in (
        ("a bag of random numbers", source, ROSBAGS),
        ("a bag of mixed messages", bigbag.make(), ROSBAGS),
        ("a ULog", biglog.make(100), PYULOG),
    ):
        alone = {RAW: _alone(path, folder, True), DEFAULT: _alone(path, folder, False)}
        jobs = [*CONVERT, *alone.values(), peer]
        times = compare(f"{title} to MCAP", str(path), COMPRESS, jobs, rounds=3, unit="zstd")
        for name, job in alone.items():
            share, gain = times[job.name] / times[name], times[peer.name] / times[name]
            print(f"  {name}: {share:.0%} of the throughput of zstd alone (bound: ≥ 60 %), ", end="")
            print(f"{gain:.1f} x as fast as {peer.name} (bound: ≥ 10)")


def main() -> None:
    """Print the tables."""
    numbers = [int(word) for word in sys.argv[1:] if word.isdecimal()]
    messages = numbers[0] if numbers else 1_000_000
    # The jobs import the mcap library by the name that this script has.
    os.chdir("/")
    with tempfile.TemporaryDirectory() as name:
        source = bag(Path(name), messages)
        if "convert" not in sys.argv:
            _read_and_write(source, Path(name), messages)
        _convert(source, Path(name))


if __name__ == "__main__":
    main()
