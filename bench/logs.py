"""Write the logs of the bench: large ones by repeating small ones, or filled column by column, in seconds.

Each function returns the path of a log in *folder*, and writes it only if it is not there.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

import bench_path  # noqa: F401 - before what it makes importable
import logreel
from logreel.formats.rosbag import records
from logreel.schemas.ros1msg import define
from support.formats import sample_log
from support.samples.bddf.builder import walk
from support.samples.grey_jpeg import jpeg
from support.samples.koblenz.builder import Builder as Koblenz
from support.samples.koblenz.drive import drive as koblenz_drive
from support.samples.koblenz.scene import Scene, hdl32e
from support.samples.rosbag.builder import MAGIC, PACK, Builder, connection_record, drive, string
from support.samples.rosbag.old import Topic, record
from support.samples.ulog.builder import flight, tiny

SHARED = Path(os.environ.get("LOGREEL_SHARED") or Path(__file__).resolve().parents[2] / "shared") / "data"
#: Time of the first message, ns.
START = 1_700_000_000 * 10**9


def _cached(path: Path, write: Callable[[Path], object]) -> Path:
    """Return *path*, written before if it is missing; a file that is written in part has another name."""
    if not path.exists():
        part = path.with_name(f"part-{path.name}")
        write(part)
        part.rename(path)
    return path


def ulog(folder: Path, megabytes: float) -> Path:
    """Return a ULog of about *megabytes*, from a real flight if there is one; the smallest is a short flight."""
    real = SHARED / "ulog" / "quadrotor_local.ulg"

    def write(path: Path) -> None:
        if megabytes < 2:
            path.write_bytes(flight(60 * megabytes / 2.2))
        else:
            path.write_bytes(repeat(real.read_bytes() if real.exists() else flight(60), int(megabytes * 1e6)))

    return _cached(folder / f"flight-{megabytes:g}.ulg", write)


def repeat(base: bytes, size: int) -> bytes:
    """Return *base* with its data section repeated up to *size*; subscriptions come first, so every copy is valid."""
    head, loop, subscriptions = bytearray(), bytearray(), bytearray()
    stamp_at: list[int] = []
    pos, data = 16, False
    while pos < len(base):
        n, kind = struct.unpack_from("<HB", base, pos)
        record = base[pos : pos + 3 + n]
        data = data or chr(kind) in "AL"
        if chr(kind) == "A":
            subscriptions += record
        elif not data:
            head += record
        elif chr(kind) in "DLSO":
            # The bundled and the real logs both begin their messages with the 64-bit timestamp.
            stamp_at += [len(loop) + (5 if chr(kind) == "D" else 4)] if chr(kind) in "DL" else []
            loop += record
        pos += 3 + n
    template = np.frombuffer(bytes(loop), np.uint8)
    where = np.array(stamp_at)[:, None] + np.arange(8)
    times = template[where].copy().view("<u8").ravel()
    where, times = where[times > 0], times[times > 0]
    step = np.uint64(int(times.max() - times.min()) + 1000)
    copies = max(1, size // len(loop))
    out = [base[:16], bytes(head), bytes(subscriptions)]
    for k in range(copies):
        part = template.copy()
        part[where] = (times + np.uint64(k) * step).astype("<u8").view(np.uint8).reshape(-1, 8)
        out.append(part.tobytes())
    return b"".join(out)


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


def _picture(share: int, size: int = 50_000) -> Stream:
    data = np.random.default_rng(1).integers(0, 255, size, np.uint8).tobytes()
    head = _header("camera") + string("jpeg") + struct.pack("<I", size)
    return Stream(Topic("/camera", "sensor_msgs/CompressedImage"), head + data, share, 4)


#: Topics of bags, each with its share of the messages; ``drive`` is like a robot with a lidar and a camera.
KINDS = {
    "mixed": (_imu(3), _twist(6), _text(1)),
    "joints": (_joints(1),),
    "transforms": (_transforms(1),),
    "clouds": (_cloud(1),),
    "drive": (_imu(20), _twist(10), _joints(5), _transforms(5), _cloud(1), _picture(1)),
}


def bag(folder: Path, kind: str = "mixed", compression: str = "none", megabytes: float = 200.0) -> Path:
    """Return a ROS 1 bag of about *megabytes* before compression: messages of one of ``KINDS``."""
    streams = KINDS[kind]
    pattern = sum(s.share * (len(_record(0, s.payload)) + ENTRY.itemsize) for s in streams)
    repeats = max(1, round(megabytes * 1e6 / pattern))

    def write(path: Path) -> None:
        with path.open("wb") as f:
            _write(f, streams, repeats, compression)

    return _cached(folder / f"{kind}-{compression}-{megabytes:g}.bag", write)


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


def bddf(folder: Path, megabytes: float) -> Path:
    """Return a BDDF file of blocks of 1 kB of three series in turn: text with an additional index, values, blobs."""
    step, size = 30_000, 1000

    def write(path: Path) -> None:
        payload = np.random.default_rng(1).integers(32, 127, step * size, dtype=np.uint8)
        start, sizes = np.arange(step) * size, np.full(step, size)
        with logreel.create(path, force=True, flush_every=None) as w:
            w.add_channel("say", logreel.Schema("line", "text/plain"), {"additional_indexes": ["pid"]})
            w.add_channel("body/speed", logreel.Schema("float32[2]", "bddf"))
            w.add_channel("blob", logreel.Schema("", "image/jpeg"))
            channel = (np.arange(step) % 3).astype(np.int32)
            for n in range(max(1, int(megabytes * 1e6) // (step * size))):
                time = START + (n * step + np.arange(step)) * 1_000_003
                pids = (time[:, None] // 10**6) * (channel == 0)[:, None]
                w.write_many(channel, time, payload, start, sizes, pids)

    return _cached(folder / f"series-{megabytes:g}.bddf", write)


def bddf_blocks(folder: Path, blocks: int, size: int) -> Path:
    """Return a BDDF file of one series without an index: blocks of doubles, or of blobs of *size* bytes."""
    return _cached(folder / f"blocks-{blocks}-{size}.bddf", lambda path: _write_blocks(path, blocks, size))


def _write_blocks(path: Path, blocks: int, size: int) -> None:
    kind = _part(42, b"\x08\x0a") if size == 8 else _part(34, _part(10, b"image/jpeg"))
    name = _part(18, _part(10, b"bosdyn:channel") + _part(18, _part(10, b"bosdyn:channel") + _part(18, b"v")))
    file_descriptor = _part(10, _part(10, b"\x08\x01") + b"\x18\x02\x20\x14")
    sha, payload = hashlib.sha1(), bytes(range(256)) * (size // 256 + 1)
    with path.open("wb") as file:

        def write(data: bytes) -> None:
            sha.update(data)
            file.write(data)

        write(b"BDDF")
        for content in (file_descriptor, _part(18, name + kind)):
            write(struct.pack("<Q", 1 << 56 | len(content)) + content)
        for i in range(blocks):
            seconds, nanos = divmod(START + i * 1_000_003, 10**9)
            head = _part(18, b"\x08" + _varint(seconds) + b"\x10" + _varint(nanos))
            value = struct.pack("<d", i) if size == 8 else payload[:size]
            write(struct.pack("<QI", len(head) + len(value), len(head)) + head + value)
        write(struct.pack("<QQ", 2 << 56 | 24, 0))
        file.write(sha.digest() + b"FDDB")


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _part(tag: int, content: bytes) -> bytes:
    return bytes([tag]) + _varint(len(content)) + content


def koblenz(folder: Path, seconds: int, step: float = 0.0) -> Path:
    """Return a log like that of a car: a HDL-64E, two scanners, two cameras, poses; repeated every second.

    step  ms by which each second is later than the one before
    """
    out, returns, picture = Koblenz(), hdl32e(Scene(), 0, 36), bytes(20_000)
    for i in range(96):
        out.velodyne(i * 10.4, returns)
    for i in range(40):
        out.laser(i * 25.0, "Hokuyo_UTM-30LX", "rear", [1000] * 1081)
    for i in range(100):
        out.pose(i * 10.0, (1, 0, 0, 0))
    for i in range(20):
        out.image(i * 50.0, i % 2, 640, 480, picture)
    out.gps(0)
    return _cached(
        folder / f"car-{seconds}-{step:g}.vel", lambda path: _write_koblenz(path, out, seconds, step)
    )


def koblenz_poses(folder: Path, count: int) -> Path:
    """Return a log with small messages only: the worst case for an index."""
    out = Koblenz()
    for i in range(1000):
        out.pose(i * 10.0, (1, 0, 0, 0))
        if i % 10 == 0:
            out.obd(i * 10.0, 1, 2, 3.0)
    return _cached(folder / f"poses-{count}.vel", lambda path: _write_koblenz(path, out, count // 1100, 0.0))


def _write_koblenz(path: Path, out: Koblenz, times: int, step: float) -> None:
    order = np.argsort(out.times, kind="stable").tolist()
    body = bytearray(b"".join(out.messages[i] for i in order))
    ends = np.cumsum([len(out.messages[i]) for i in order]).tolist()
    with path.open("wb") as file:
        file.write(b"\xa4VEL\x01\x00\x01\x00" + bytes(4))
        for turn in range(times):
            for i, at in zip(order, [0, *ends], strict=False):
                struct.pack_into("<d", body, at + 13, out.times[i] + turn * step)
            file.write(body)


def velodyne_packets(folder: Path) -> Path:
    """Return a file of packets of a HDL-32E: two seconds."""
    return _cached(
        folder / "packets", lambda path: path.write_bytes(b"".join(hdl32e(Scene(ground=-1.0), 0, 3616)))
    )


def carla_packets(data: bytes, pos: int) -> Iterator[tuple[int, int, int]]:
    """Yield kind, payload offset and size of every packet from *pos* on."""
    while pos < len(data):
        kind, size = struct.unpack_from("<BI", data, pos)
        yield kind, pos + 5, size
        pos += 5 + size


def carla_header(data: bytes) -> int:
    """Return the offset of the first packet."""
    return 28 + struct.unpack_from("<H", data, 26)[0]


def carla(folder: Path, megabytes: float) -> Path:
    """Return a CARLA recording: a real one if it is there, else a generated one, repeated with ascending times."""
    real = SHARED / "carla" / "sr_DistanceBetweenVehicles_2021.log"
    data = real.read_bytes() if real.exists() else sample_log("carla")
    return _cached(
        folder / f"town-{megabytes:g}.rec", lambda path: _repeat_carla(data, path, int(megabytes * 1e6))
    )


def _repeat_carla(data: bytes, path: Path, size: int) -> None:
    begin = carla_header(data)
    places = [at - begin for kind, at, _ in carla_packets(data, begin) if kind == 0]
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


def random_bag(folder: Path, messages: int) -> Path:
    """Return a bag of IMU messages of 0.3 kB with random numbers, which compress badly."""

    def write(path: Path) -> None:
        rng = np.random.default_rng(1)
        head = np.frombuffer(bytes(12) + b"\x03\0\0\0imu", np.uint8)
        with logreel.create(path, flush_every=None) as w:
            channel = w.add_channel("/imu", logreel.Schema("sensor_msgs/Imu", "ros1msg", ""))
            for lo in range(0, messages, 100_000):
                n = min(100_000, messages - lo)
                rows = np.zeros((n, len(head) + 296), np.uint8)
                rows[:, : len(head)] = head
                numbers = np.cumsum(rng.normal(size=(n, 37)), axis=0).round(3)
                rows[:, len(head) :] = numbers.view(np.uint8).reshape(n, -1)
                times = 10**18 + (lo + np.arange(n)) * 10**6
                at = np.arange(n) * rows.shape[1]
                w.write_many(np.full(n, channel, np.int32), times, rows.ravel(), at, at * 0 + rows.shape[1])

    return _cached(folder / f"random-{messages}.bag", write)


def mcap(folder: Path, source: Path, compression: str = "zstd", raw: bool = False) -> Path:
    """Return the MCAP of another log."""
    name = f"{source.stem}-{compression}{'-raw' * raw}.mcap"
    return _cached(
        folder / name, lambda path: logreel.convert(source, path, compression=compression, raw=raw)
    )


def ros2(folder: Path, kind: str, megabytes: float) -> Path:
    """Return an MCAP without compression with the messages of ``bag`` as those of ROS 2."""
    source = bag(folder, kind, "none", megabytes)

    def write(path: Path) -> None:
        database = path.with_suffix(".db3")
        logreel.convert(source, database, force=True)
        logreel.convert(database, path, compression="none")
        database.unlink()

    return _cached(folder / f"ros2-{source.stem}.mcap", write)


def numbers(folder: Path, suffix: str, messages: int) -> Path:
    """Return a log of one topic with numbers that are 8 (BDDF), 24 (bag) or 32 bytes (ULog) of each message."""
    topic, schema, size = {
        ".ulg": ("v", logreel.Schema("v", "ulog", "v:uint64_t timestamp;double x;double y;double z;"), 32),
        ".bag": ("/v", logreel.Schema("geometry_msgs/Vector3", "ros1msg", ""), 24),
        ".bddf": ("v", logreel.Schema("float64", "bddf"), 8),
    }[suffix]

    def write(path: Path) -> None:
        data, count = np.zeros((messages, size // 8)), np.arange(messages)
        if suffix == ".ulg":
            data[:, 0].view(np.int64)[:] = 10**6 + count * 1000
        with logreel.create(path) as w:
            channel = np.full(messages, w.add_channel(topic, schema), np.int32)
            raw = data.view(np.uint8).ravel()
            w.write_many(channel, 10**9 + count * 10**6, raw, count * size, np.full(messages, size))

    return _cached(folder / f"numbers-{messages}{suffix}", write)


def four_parts(folder: Path, source: Path) -> Path:
    """Return the merge of four parts of a log; the parts are in a folder of the same name without suffix."""

    def write(path: Path) -> None:
        with logreel.open(source) as log:
            logreel.split(log, folder / f"merge-{source.stem}", every=(log.duration or 0) // 4 + 1)
        logreel.merge(sorted((folder / f"merge-{source.stem}").iterdir()), path)

    return _cached(folder / f"merge-{source.name}", write)


def pictures(folder: Path, megabytes: float) -> Path:
    """Return a bag of JPEG pictures of 100 kB, the size of a camera's."""

    def write(path: Path) -> None:
        small = jpeg(np.full((48, 64), 100, np.uint8))
        noise = np.random.default_rng(1).integers(0, 255, 100_000, np.uint8).tobytes()
        text = define("sensor_msgs/CompressedImage").text
        with logreel.create(path, force=True) as writer:
            schema = logreel.Schema("sensor_msgs/CompressedImage", "ros1msg", text)
            camera = writer.add_channel("/camera", schema)
            for number in range(max(1, int(megabytes * 10))):
                data = small[:-2] + noise[: 100_000 - number % 1000] + small[-2:]
                writer.write(camera, number * 33_000_000 + 1, {"format": "jpeg", "data": data})

    return _cached(folder / f"pictures-{megabytes:g}.bag", write)


HOLE = 1 << 20
#: Topics of the sparse bag: type and definition.
DEFINITIONS = {
    "/camera": ("sensor_msgs/CompressedImage", "uint8[] data"),
    "/imu": ("test_msgs/Value", "float64 value"),
}


def _tenth(index: int) -> bytes:
    """Return the time of a tenth of a second as a bag has it."""
    return struct.pack("<II", START // 10**9 + index // 10, index % 10 * 10**8)


def _message(conn: int, index: int, size: int) -> bytes:
    named = {"conn": struct.pack("<I", conn), "time": _tenth(index)}
    return records.record_head(records.OP_MESSAGE, named, size)


def sparse_bag(folder: Path, gigabytes: float) -> Path:
    """Return a bag that is mostly holes, which take no space on the disk."""
    return _cached(
        folder / f"sparse-{gigabytes:g}.bag", lambda path: _write_sparse(path, int(gigabytes * 1e9))
    )


def _write_sparse(path: Path, size: int) -> None:
    """Write a bag of about *size* bytes: each chunk has ten values and one picture of 1 MiB, which is a hole."""
    connections = []
    for number, (topic, (kind, text)) in enumerate(DEFINITIONS.items()):
        fields = {"topic": topic, "type": kind, "md5sum": "*", "message_definition": text}
        named = {"conn": struct.pack("<I", number), "topic": topic.encode()}
        data = records.fields_bytes({name: value.encode() for name, value in fields.items()})
        connections.append(records.record_bytes(records.OP_CONNECTION, named, data))
    infos = []
    count = size // (HOLE + 2000)
    with path.open("wb") as out:
        out.write(MAGIC)
        out.write(bytes(records.FILE_HEADER + 8))
        for chunk in range(count):
            pos, index = out.tell(), chunk * 10
            small, entries = b"".join(connections) if chunk == 0 else b"", []
            for n in range(10):
                entries.append(_tenth(index + n) + struct.pack("<I", len(small)))
                small += _message(1, index + n, 8) + struct.pack("<d", index + n)
            camera = len(small)
            small += _message(0, index, 4 + HOLE) + struct.pack("<I", HOLE)
            stored = len(small) + HOLE
            named = {"compression": b"none", "size": struct.pack("<I", stored)}
            out.write(records.record_head(records.OP_CHUNK, named, stored) + small)
            out.seek(HOLE, 1)
            for conn, some in ((0, [_tenth(index) + struct.pack("<I", camera)]), (1, entries)):
                named = {"ver": struct.pack("<I", 1), "conn": struct.pack("<I", conn)}
                named["count"] = struct.pack("<I", len(some))
                out.write(records.record_bytes(records.OP_INDEX, named, b"".join(some)))
            named = {"ver": struct.pack("<I", 1), "chunk_pos": struct.pack("<Q", pos)}
            named |= {
                "start_time": _tenth(index),
                "end_time": _tenth(index + 9),
                "count": struct.pack("<I", 2),
            }
            infos.append(
                records.record_bytes(records.OP_CHUNK_INFO, named, struct.pack("<IIII", 0, 1, 1, 10))
            )
        summary = out.tell()
        out.write(b"".join([*connections, *infos]))
        out.seek(len(MAGIC))
        named = {"index_pos": struct.pack("<Q", summary), "conn_count": struct.pack("<I", len(connections))}
        out.write(records.file_header_bytes(named | {"chunk_count": struct.pack("<I", count)}))


def samples(folder: Path) -> None:
    """Write a small log of each format, by its name: jobs read one before the clock starts."""
    small = {
        "ulog": tiny,
        "rosbag": lambda: drive(1.0),
        "bddf": lambda: walk(1),
        "koblenz": lambda: koblenz_drive(0.1),
        "carla": lambda: sample_log("carla"),
        "mcap": lambda: sample_log("mcap"),
    }
    place = folder / "samples"
    place.mkdir()
    os.environ["LOGREEL_BENCH_SAMPLES"] = str(place)
    for name, make in small.items():
        (place / name).write_bytes(make())
    with logreel.create(place / "ros2.mcap", profile="ros2") as w:
        channel = w.add_channel("/said", logreel.Schema("std_msgs/msg/String", "ros2msg", "string data\n"))
        for second in range(10):
            w.write(channel, 10**18 + second * 10**9, b"\0\1\0\0\4\0\0\0now\0")
    logreel.convert(place / "ulog", place / "protobuf.mcap")
