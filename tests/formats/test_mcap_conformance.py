"""Conformance samples of the MCAP project, generated from their descriptions in every variant."""

from __future__ import annotations

import io
import itertools
import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcap.reader import make_reader

import logreel
from logreel.formats.mcap.records import MAGIC

#: What a variant may have, by the short names that the samples have in their file names.
FLAGS = ("ch", "mx", "st", "rsh", "rch", "ax", "mdx", "chx", "sum", "pad")
INPUTS = ("NoData", "OneMessage", "OneSchemalessMessage", "OneAttachment", "OneMetadata", "TenMessages")
#: What the flags are about; others would change nothing.
ABOUT = {
    "NoData": ("st", "sum", "pad"),
    "OneAttachment": ("ax", "st", "sum", "pad"),
    "OneMetadata": ("mdx", "st", "sum", "pad"),
    "OneSchemalessMessage": ("ch", "mx", "st", "rch", "chx", "sum", "pad"),
    "OneMessage": ("ch", "mx", "st", "rsh", "rch", "chx", "sum", "pad"),
    "TenMessages": ("ch", "mx", "st", "rsh", "rch", "chx", "sum", "pad"),
}
#: Messages of the inputs that have any, and the name, encoding and content of their schema.
COUNTS = {"TenMessages": 10, "OneMessage": 1, "OneSchemalessMessage": 1}
EXAMPLE, SCHEMALESS = ("Example", "c", b"\4\5\6"), ("", "", b"")
EXTRA = b"\x01\x02\x03"
MAP = {"foo": "bar"}


def text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<I", len(raw)) + raw


def pairs(values: dict[str, str]) -> bytes:
    return text(b"".join(text(k) + text(v) for k, v in values.items()))


class Maker:
    """Builds a sample: the records of an input, written according to its flags."""

    def __init__(self, name: str, flags: frozenset[str]) -> None:
        self.flags, self.out = flags, bytearray(MAGIC)
        schemaless = name == "OneSchemalessMessage"
        count = COUNTS.get(name, 0)
        self.times = list(range(2, 2 + count))
        self.definitions = (
            [self.record(3, struct.pack("<H", 1) + text("Example") + text("c") + text(b"\4\5\6"))]
            if count and not schemaless
            else []
        )
        channel = struct.pack("<HH", 1, 0 if schemaless else 1) + text("example") + text("a") + pairs(MAP)
        self.definitions += [self.record(4, channel)] if count else []
        self.out += self.record(1, text("") + text(""))
        self.groups: list[tuple[int, bytes]] = []
        if count:
            self.messages()
        if name == "OneAttachment":
            self.attachment()
        if name == "OneMetadata":
            self.metadata()
        self.out += self.record(15, struct.pack("<I", 0))
        self.summary(name, count)

    def record(self, kind: int, content: bytes, padded: bool = True) -> bytes:
        content += EXTRA * (padded and "pad" in self.flags)
        return struct.pack("<BQ", kind, len(content)) + content

    def messages(self) -> None:
        body, places = bytearray(b"".join(self.definitions)), []
        for time in self.times:
            places.append(len(body))
            body += self.record(5, struct.pack("<HIQQ", 1, 10, time, time - 1) + b"\1\2\3", padded=False)
        if "ch" not in self.flags:
            self.out += body
            return
        at, (first, last) = len(self.out), (self.times[0], self.times[-1])
        head = struct.pack("<QQQI", first, last, len(body), zlib.crc32(body)) + text("")
        self.out += self.record(6, head + struct.pack("<Q", len(body)) + body, padded=False)
        end = len(self.out)
        if "mx" in self.flags:
            entries = b"".join(struct.pack("<QQ", t, p) for t, p in zip(self.times, places, strict=True))
            self.out += self.record(7, struct.pack("<H", 1) + text(entries))
        if "chx" in self.flags:
            offsets = struct.pack("<HQ", 1, end) if "mx" in self.flags else b""
            content = struct.pack("<QQQQ", first, last, at, end - at) + text(offsets)
            content += struct.pack("<Q", len(self.out) - end) + text("")
            self.groups.append((8, self.record(8, content + struct.pack("<QQ", len(body), len(body)))))

    def attachment(self) -> None:
        at = len(self.out)
        content = struct.pack("<QQ", 2, 1) + text("myFile") + text("application/octet-stream")
        content += struct.pack("<Q", 3) + b"\1\2\3"
        self.out += self.record(9, content + struct.pack("<I", zlib.crc32(content)), padded=False)
        if "ax" in self.flags:
            content = struct.pack("<QQQQQ", at, len(self.out) - at, 2, 1, 3)
            content += text("myFile") + text("application/octet-stream")
            self.groups.append((10, self.record(10, content)))

    def metadata(self) -> None:
        at = len(self.out)
        self.out += self.record(12, text("myMetadata") + pairs(MAP))
        if "mdx" in self.flags:
            content = struct.pack("<QQ", at, len(self.out) - at) + text("myMetadata")
            self.groups.append((13, self.record(13, content)))

    def summary(self, name: str, count: int) -> None:
        groups = [(d[0], d) for d in self.definitions if ("rsh" if d[0] == 3 else "rch") in self.flags]
        groups += self.groups
        if "st" in self.flags:
            schemas, channels = (sum(d[0] == kind for d in self.definitions) for kind in (3, 4))
            attached, has_metadata = name == "OneAttachment", name == "OneMetadata"
            chunks = int(bool(count) and "ch" in self.flags)
            bounds = (self.times[0], self.times[-1]) if count else (0, 0)
            content = struct.pack(
                "<QHIIIIQQ", count, schemas, channels, attached, has_metadata, chunks, *bounds
            )
            counts = struct.pack("<HQ", 1, count) if count else b""
            groups.append((11, self.record(11, content + text(counts))))
        start, begin, offsets = len(self.out), 0, bytearray()
        for kind, data in groups:
            if "sum" in self.flags:
                offsets += self.record(14, struct.pack("<BQQ", kind, start + begin, len(data)))
            begin += len(data)
            self.out += data
        at = len(self.out) if offsets else 0
        self.out += offsets
        footer = struct.pack("<BQQQ", 2, 20, start if groups else 0, at)
        crc = zlib.crc32(bytes(self.out[start:]) + footer)
        self.out += footer + struct.pack("<I", crc) + MAGIC


def variants() -> Iterator[tuple[str, frozenset[str]]]:
    for name in INPUTS:
        about = ABOUT[name]
        for n in range(len(about) + 1):
            for flags in itertools.combinations(about, n):
                # Indexes of chunks need chunks.
                if "ch" in flags or not {"mx", "chx"} & set(flags):
                    yield name, frozenset(flags)


VARIANTS = list(variants())


def check_variant(name: str, flags: frozenset[str]) -> None:
    """Compare the content read with the description of the sample, and with the mcap library."""
    data = bytes(Maker(name, flags).out)
    log = logreel.open(data)
    assert log.problems == ()
    messages = [(m.channel.topic, m.time, bytes(m.data)) for m in log.messages()]
    count = COUNTS.get(name, 0)
    assert messages == [("example", 2 + k, b"\1\2\3") for k in range(count)]
    if count:
        ch = log["example"]
        due = SCHEMALESS if name == "OneSchemalessMessage" else EXAMPLE
        assert (ch.schema.name, ch.schema.encoding, ch.schema.raw) == due
        assert ch.metadata == {**MAP, "message_encoding": "a"}
        for what, values in (("publish_time", [1 + k for k in range(count)]), ("sequence", [10] * count)):
            found = log.index.side_column(ch.number, what)
            assert found is not None
            assert found.tolist() == values
    attached = log.attachments.get("myFile")
    assert (attached is not None) == (name == "OneAttachment")
    if attached is not None:
        assert (attached.read(), attached.media_type) == (b"\1\2\3", "application/octet-stream")
        assert (attached.time, attached.created) == (2, 1)
    assert log.metadata.get("myMetadata") == (MAP if name == "OneMetadata" else None)
    statistics = log.metadata["mcap"].get("statistics")
    assert (statistics["messages"] if statistics else None) == (count if "st" in flags else None)
    assert log.verify() == ()
    # The library wants the summary to repeat channels if it has an index of chunks, and no padding inside of chunks.
    repeated = {"rch"} | ({"rsh"} if name != "OneSchemalessMessage" else set())
    if not {"ch", "pad"} <= flags and ("chx" not in flags or repeated <= flags):
        library = make_reader(io.BytesIO(data)).iter_messages()
        assert [(c.topic, m.log_time, m.data) for _, c, m in library] == messages


@pytest.mark.parametrize("name", INPUTS)
def test_every_variant_has_the_right_content(name: str) -> None:
    mine = [flags for one, flags in VARIANTS if one == name]
    assert len(mine) == {"NoData": 8, "OneAttachment": 16, "OneMetadata": 16, "OneSchemalessMessage": 80}.get(
        name, 160
    )
    for flags in mine:
        try:
            check_variant(name, flags)
        except AssertionError as error:
            raise AssertionError(f"{name}-{'-'.join(f for f in FLAGS if f in flags)}: {error}") from error


@pytest.mark.parametrize("name", INPUTS)
def test_every_variant_can_be_continued(name: str, tmp_path: Path) -> None:
    for n, flags in enumerate(flags for one, flags in VARIANTS if one == name):
        path = tmp_path / f"{n}.mcap"
        path.write_bytes(bytes(Maker(name, flags).out))
        try:
            check_continued(path, name, flags)
        except (AssertionError, logreel.LogError) as error:
            raise AssertionError(f"{name}-{'-'.join(f for f in FLAGS if f in flags)}: {error}") from error


def check_continued(path: Path, name: str, flags: frozenset[str]) -> None:
    """Append to a sample, and compare content and summary, also as the mcap library reads them."""
    count = COUNTS.get(name, 0)
    due = [("example", 2 + k, b"\1\2\3") for k in range(count)]
    schemas = {"new": logreel.Schema("New", "c", "x")}
    if count:
        title, encoding, raw = SCHEMALESS if name == "OneSchemalessMessage" else EXAMPLE
        schemas["example"] = logreel.Schema(title, encoding, raw.decode())
    with logreel.create(path, mode="a") as w:
        for topic, schema in schemas.items():
            w.write(w.add_channel(topic, schema), 50, topic.encode())
            due.append((topic, 50, topic.encode()))
        w.metadata("more", {"a": "b"})
        w.attachment("another", b"123")
    data = path.read_bytes()
    log = logreel.open(data)
    assert (log.problems, log.verify()) == ((), ())
    assert [(m.channel.topic, m.time, bytes(m.data)) for m in log.messages()] == due
    assert log.metadata["more"] == {"a": "b"}
    assert log.metadata.get("myMetadata") == (MAP if name == "OneMetadata" else None)
    attached = {"myFile": b"\1\2\3"} if name == "OneAttachment" else {}
    assert {n: a.read() for n, a in log.attachments.items()} == {**attached, "another": b"123"}
    if {"ch", "pad"} <= flags:
        # The library cannot read padding inside of chunks.
        return
    reader = make_reader(io.BytesIO(data), validate_crcs=True)
    assert [(c.topic, m.log_time, m.data) for _, c, m in reader.iter_messages()] == due
    summary = reader.get_summary()
    assert summary is not None
    stats = summary.statistics
    assert stats is not None
    assert (stats.message_count, stats.attachment_count, stats.metadata_count) == (
        len(due),
        1 + (name == "OneAttachment"),
        1 + (name == "OneMetadata"),
    )
    assert (stats.message_start_time, stats.message_end_time) == (due[0][1], 50)
    counts = {c.topic: stats.channel_message_counts[n] for n, c in summary.channels.items()}
    assert counts == Counter(topic for topic, _, _ in due)
    assert stats.channel_count == len(summary.channels)
    assert stats.schema_count == len(summary.schemas)
    assert {a.name: a.data for a in reader.iter_attachments()} == {**attached, "another": b"123"}
    assert {m.name for m in reader.iter_metadata()} == {"more"} | (
        {"myMetadata"} if name == "OneMetadata" else set()
    )
