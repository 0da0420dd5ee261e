"""Logs of many small chunks, written by tools of others: bags by rosbags, MCAP files by mcap.

BDDF files have small blocks instead.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from random import Random

from mcap.writer import CompressionType
from mcap.writer import Writer as McapWriter
from rosbags.rosbag1 import Writer as BagWriter

from support.samples.bddf.builder import Builder, raw

START = 10**18
STEP = 10**7
MESSAGES = 600
DEFINITION = "uint32 n\nstring text\n"
MD5 = "1be4de8aa1f295502092afdadd86540f"


def _messages() -> Iterator[tuple[str, int, bytes]]:
    """Yield topic, time and payload; ``/rare`` is only in the middle, and times of ``/late`` go back."""
    random = Random(1)
    for n in range(MESSAGES):
        # Text that cannot be compressed to much less.
        text = f"message {n} {random.randbytes(20 * (1 + n % 7)).hex()}".encode()
        payload = struct.pack("<II", n, len(text)) + text
        topic = ("/often", "/late", "/often", "/double")[n % 4]
        time = START + n * STEP - (n % 3) * 3 * STEP * (topic == "/late")
        yield topic, time, payload
        if MESSAGES // 2 <= n < MESSAGES // 2 + 5:
            yield "/rare", START + n * STEP + 1, payload


def many_chunks_bag(path: Path, compression: str = "none") -> bytes:
    """Return a bag of version 2.0 with chunks of about 4 KiB; ``/double`` has two connections."""
    path.unlink(missing_ok=True)
    writer = BagWriter(path)
    writer.chunk_threshold = 4096
    if compression != "none":
        writer.set_compression(BagWriter.CompressionFormat[compression.upper()])
    with writer:
        made = {
            (topic, caller): writer.add_connection(
                topic, "test_msgs/msg/Text", msgdef=DEFINITION, md5sum=MD5, callerid=caller
            )
            for topic, caller in (
                ("/often", "/a"),
                ("/late", "/a"),
                ("/double", "/a"),
                ("/double", "/b"),
                ("/rare", "/a"),
            )
        }
        for n, (topic, time, payload) in enumerate(_messages()):
            writer.write(made[topic, "/b" if topic == "/double" and n % 8 == 3 else "/a"], time, payload)
    return path.read_bytes()


def many_chunks_mcap(compression: str = "zstd") -> bytes:
    """Return an MCAP file with chunks of about 4 KiB, metadata and an attachment."""
    out = io.BytesIO()
    writer = McapWriter(out, chunk_size=4096, compression=CompressionType[compression.upper()])
    writer.start("ros1", "test")
    schema = writer.register_schema("test_msgs/Text", "ros1msg", DEFINITION.encode())
    channels = {
        topic: writer.register_channel(topic, "ros1", schema)
        for topic in ("/often", "/late", "/double", "/rare")
    }
    for n, (topic, time, payload) in enumerate(_messages()):
        writer.add_message(channels[topic], time, payload, time - 5, n)
    writer.add_metadata("robot", {"name": "one"})
    writer.add_attachment(START, START, "notes.txt", "text/plain", b"noted " * 50)
    writer.finish()
    return out.getvalue()


def many_blocks_bddf() -> bytes:
    """Return a BDDF file with the same messages as JSON, blocks of plain values, and a series declared late."""
    out = Builder({"robot": "one"})
    properties = {"n": {"type": "integer"}, "text": {"type": "string"}}
    notes = {"logreel:json_schema": json.dumps({"type": "object", "properties": properties})}
    content = raw(4, raw(1, "application/json") + raw(2, "test.Text"))
    series: dict[str, int] = {}
    for topic in ("/often", "/late", "/double"):
        names = ("turn", "back") if topic == "/double" else ()
        series[topic] = out.series({"bosdyn:channel": topic}, content, annotations=notes, names=names)
    value = out.pods({"varname": "value"}, "float64", units="m")
    for n, (topic, time, payload) in enumerate(_messages()):
        if topic not in series:
            series[topic] = out.series({"bosdyn:channel": topic}, content, annotations=notes)
        number = struct.unpack_from("<I", payload)[0]
        data = json.dumps({"n": number, "text": payload[8:].decode()}).encode()
        out.data(series[topic], time, data, (n % 200, -n) if topic == "/double" else ())
        if n % 50 == 0:
            out.values(value, time, "float64", [n + k / 8 for k in range(1 + n % 3)])
    return out.bytes()
