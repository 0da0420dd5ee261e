"""What the fuzzers call: every reader, language of definitions, decompressor and parser of texts from outside.

Each target is a function of bytes. It lets errors of logreel pass, which are documented; every other exception, a
crash, a hang or too much memory is a finding. ``seeds`` has valid inputs.
"""

from __future__ import annotations

import bz2
import functools
import io
import itertools
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import logreel
from logreel.errors import LogError, NotFoundError, UsageError

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from support.formats import builtin_formats, sample_log

Target = Callable[[bytes], None]
#: Messages decoded one by one, and columns read, of each log.
FEW = 20
#: Bytes of the largest seeds: longer ones slow the fuzzer down.
LONGEST = 6000
DOCUMENTED = (LogError, UsageError, NotFoundError)


def reader(name: str) -> Target:
    """Return the target that reads a log of a format in every way."""

    def read(data: bytes) -> None:
        with suppress(*DOCUMENTED), logreel.open(data, format=name) as log:
            _read_all(log, len(data))

    return read


def _read_all(log: logreel.Log, size: int) -> None:
    for problem in log.problems:
        if not 0 <= problem.offset <= problem.offset + problem.size <= size:
            raise AssertionError(f"outside of the file: {problem}")
    for part in (log.metadata, log.parameters, log.text, log.utc_offset, repr(log)):
        str(part)
    for attachment in log.attachments.values():
        attachment.read()
    for channel in log.channels.values():
        with suppress(*DOCUMENTED):
            rows = channel.to_arrow()
            rows.validate(full=True)
            for field in channel.fields[:3]:
                channel.to_arrow([field])
    for message in itertools.islice(log.messages(list(log.channels), order="file"), FEW):
        with suppress(*DOCUMENTED):
            message.decode()
    if size % 8 == 0:
        # Slow: for some inputs only.
        logreel.check(log)


def recovery(name: str) -> Target:
    """Return the target that writes a log anew, which must then be without problems."""

    def recover(data: bytes) -> None:
        with suppress(*DOCUMENTED), logreel.open(data, format=name) as log:
            out = io.BytesIO()
            logreel.slice(log, out)

    return recover


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def ros1_definition(data: bytes) -> None:
    """Parse a definition of ROS 1, and make a layout of it."""
    from logreel.layout.program import compile_layout
    from logreel.schemas.ros1msg.layouts import layout, portable
    from logreel.schemas.ros1msg.registry import parse

    with suppress(*DOCUMENTED):
        found = parse(_text(data), "pkg/Type")
        compile_layout(layout(found))
        portable(_text(data), "pkg/Type")


def ros2_definition(data: bytes) -> None:
    """Parse a definition of ROS 2, and make a layout of it."""
    from logreel.layout.program import compile_layout
    from logreel.schemas.ros2msg import layout

    with suppress(*DOCUMENTED):
        compile_layout(layout("pkg/msg/Type", _text(data)))


def ulog_definition(data: bytes) -> None:
    """Parse a definition of ULog."""
    from logreel.formats.ulog.definitions import parse_format
    from logreel.formats.ulog.records import BadRecord

    # The reader makes a Problem of it.
    with suppress(*DOCUMENTED, BadRecord):
        parse_format(data)


def koblenz_definition(data: bytes) -> None:
    """Parse a definition of Koblenz logs."""
    from logreel.formats.koblenz.definitions import message_type

    with suppress(*DOCUMENTED):
        message_type("Type", 1, _text(data))


def json_schema(data: bytes) -> None:
    """Make a layout of a JSON schema."""
    from logreel.schemas.jsonschema import shape

    with suppress(*DOCUMENTED, ValueError, RecursionError):
        schema = json.loads(data)
        shape(schema)


def protobuf_definition(data: bytes) -> None:
    """Read a MCAP file whose schema is a set of protobuf descriptors."""
    _schema_in_mcap(data, "protobuf", "protobuf")


def json_in_mcap(data: bytes) -> None:
    """Read a MCAP file whose schema is a JSON schema."""
    _schema_in_mcap(data, "json", "jsonschema")


def _schema_in_mcap(data: bytes, encoding: str, language: str) -> None:
    from support.samples.mcap.builder import Builder

    size = int.from_bytes(data[:2], "little")
    schema, payload = data[2 : 2 + size], data[2 + size :]
    built = Builder()
    built.schema(1, "pkg.Type", language, schema)
    built.channel(1, 1, "/a", encoding)
    built.message(1, 1, payload)
    reader("mcap")(bytes(built.bytes()))


def lz4_frames(data: bytes) -> None:
    """Unpack LZ4 frames."""
    import numpy as np

    from logreel.io.lz4_frames import unpack_lz4

    unpacked, _, left = unpack_lz4(np.frombuffer(data, np.uint8), 1 << 20)
    if len(unpacked) > 1 << 20 or not 0 <= left <= len(data):
        raise AssertionError(f"{len(unpacked)} bytes, {left} left")


def bag_chunk(data: bytes) -> None:
    """Read a bag with one compressed chunk: first byte odd: bz2, else lz4."""
    kind, packed = (b"bz2" if data[:1] and data[0] & 1 else b"lz4"), data[5:]
    size = int.from_bytes(data[1:5], "little")

    def field(name: bytes, value: bytes) -> bytes:
        return (len(name) + 1 + len(value)).to_bytes(4, "little") + name + b"=" + value

    def record(fields: bytes, content: bytes) -> bytes:
        return len(fields).to_bytes(4, "little") + fields + len(content).to_bytes(4, "little") + content

    head = field(b"op", b"\3") + field(b"index_pos", bytes(8)) + field(b"conn_count", bytes(4))
    head += field(b"chunk_count", bytes(4))
    chunk = field(b"op", b"\5") + field(b"compression", kind) + field(b"size", size.to_bytes(4, "little"))
    reader("rosbag")(b"#ROSBAG V2.0\n" + record(head, b" " * 64) + record(chunk, packed))


def expression(data: bytes) -> None:
    """Parse a condition or expression of SQL, which may come from a request."""
    from logreel.ops.query.where import parse_where

    with suppress(*DOCUMENTED):
        parse_where(_text(data))


def times(data: bytes) -> None:
    """Parse an interval of times."""
    from logreel.log.times import interval

    with suppress(*DOCUMENTED):
        start, _, end = _text(data).partition("\n")
        interval(_tiny(), start, end)


@functools.cache
def _tiny() -> logreel.Log:
    from support.samples.ulog.builder import tiny

    return logreel.open(tiny())


def _small(sample: bytes) -> Iterator[bytes]:
    yield sample[:LONGEST]
    yield sample[:2000]


def _log_seeds(name: str) -> Iterator[bytes]:
    yield from _small(sample_log(name))
    out = io.BytesIO()
    with suppress(*DOCUMENTED):
        from logreel.layout.layout import Layout
        from logreel.layout.nodes import Field, Scalar, String, Struct

        fields = (Field("n", Scalar("int64")), Field("x", Scalar("float64")), Field("s", String(4)))
        with logreel.create(out, format=name) as w:
            number = w.add_channel("simple", Layout(Struct(fields)))
            for n in range(3):
                w.write(number, 10**9 + n, {"n": n, "x": n / 2, "s": "abc"})
        yield out.getvalue()


def _ros1_seeds() -> Iterator[bytes]:
    from logreel.schemas.ros1msg.registry import full_text

    for name in ("std_msgs/Header", "sensor_msgs/Imu", "nav_msgs/Odometry", "sensor_msgs/PointCloud2"):
        yield full_text(name).encode()


def _protobuf_seeds() -> Iterator[bytes]:
    from google.protobuf import descriptor_pb2, timestamp_pb2

    files = descriptor_pb2.FileDescriptorSet()
    timestamp_pb2.DESCRIPTOR.CopyToProto(files.file.add())
    raw = files.SerializeToString()
    yield len(raw).to_bytes(2, "little") + raw + b"\x08\x01\x10\x02"


def _json_seeds() -> Iterator[bytes]:
    items = {"type": "array", "items": {"type": "integer"}}
    schema = {"type": "object", "properties": {"x": {"type": "number"}, "y": items}}
    yield json.dumps(schema).encode()


def _json_mcap_seeds() -> Iterator[bytes]:
    for raw in _json_seeds():
        yield len(raw).to_bytes(2, "little") + raw + b'{"x": 1.5, "y": [1, 2]}'


def _lz4_seeds() -> Iterator[bytes]:
    import lz4.frame

    yield lz4.frame.compress(b"abcabcabc" * 100)
    yield lz4.frame.compress(bytes(range(256)) * 8, block_linked=False, content_checksum=True)


def _chunk_seeds() -> Iterator[bytes]:
    import lz4.frame

    content = bytes(range(64)) * 20
    yield b"\1" + len(content).to_bytes(4, "little") + bz2.compress(content)
    yield b"\0" + len(content).to_bytes(4, "little") + lz4.frame.compress(content)


def _lines(*texts: str) -> Callable[[], Iterator[bytes]]:
    return lambda: (text.encode() for text in texts)


ROS2 = f"int32 a\nstring<=5 b\nfloat64[3] c\ngeometry_msgs/Point[] d\n{'=' * 80}\nMSG: geometry_msgs/Point\nint8 x\n"
#: Target and seeds by name; the name of a harness is fuzz_NAME.py.
TARGETS: dict[str, tuple[Target, Callable[[], Iterator[bytes]]]] = {
    **{f"read_{name}": (reader(name), lambda name=name: _log_seeds(name)) for name in builtin_formats()},
    **{
        f"rewrite_{name}": (recovery(name), lambda name=name: _log_seeds(name))
        for name, one in builtin_formats().items()
        if one.create is not None
    },
    "ros1_definition": (ros1_definition, _ros1_seeds),
    "ros2_definition": (ros2_definition, _lines(ROS2)),
    "ulog_definition": (ulog_definition, _lines("a:uint64_t timestamp;float[3] b;c d;char[10] e;")),
    "koblenz_definition": (koblenz_definition, _lines("int32 a\nfloat64[] b\nstring c\n")),
    "protobuf_definition": (protobuf_definition, _protobuf_seeds),
    "json_schema": (json_schema, _json_seeds),
    "json_in_mcap": (json_in_mcap, _json_mcap_seeds),
    "lz4_frames": (lz4_frames, _lz4_seeds),
    "bag_chunk": (bag_chunk, _chunk_seeds),
    "expression": (expression, _lines("battery_status.voltage_v < 14 AND x = 'a'", "abs(a.b[0]) BETWEEN 1 AND 2")),
    "times": (times, _lines("+12.5s\n-30s", "2024-05-01T12:00:00Z\n00:01:30", "123ns\n1700000000")),
}  # fmt: skip


def seeds(name: str) -> list[bytes]:
    """Return valid inputs of a target."""
    return list(TARGETS[name][1]())


def warm_up(name: str) -> None:
    """Run a target on its seeds, so that modules that it imports late are instrumented, too."""
    for data in seeds(name):
        TARGETS[name][0](data)


def main(name: str) -> None:
    """Run a target under atheris; the options of libFuzzer are those of the command line."""
    import atheris

    atheris.Setup(sys.argv, TARGETS[name][0])
    atheris.Fuzz()
