"""Continued MCAPs: content and summary as the mcap library reads them, ids and numbers that go on."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import pytest
from mcap.reader import NonSeekingReader, make_reader
from mcap.writer import CompressionType, Writer

import logreel
from conftest import SHARED
from support.builders.mcap_rows import fast_rows, library_rows, library_summary
from support.samples.mcap.builder import Builder
from support.samples.mcap.walk import walk

STRING = logreel.Schema("std_msgs/String", "ros1msg")


def library_file(path: Path, **options: Any) -> None:
    """Write a file by the mcap library: two channels of one schema, one without, an attachment, metadata."""
    with path.open("wb") as file:
        w = Writer(file, **options)
        w.start("prof", "lib")
        schema = w.register_schema("S", "jsonschema", b"{}")
        ids = [w.register_channel(f"/{n}", "json", schema if n else 0, {"n": str(n)}) for n in range(3)]
        for i in range(300):
            w.add_message(ids[i % 2], 10**18 + i, b'{"i": %d}' % i, 10**18 + i - 5, i)
            if i == 100:
                w.add_attachment(1, 10**18, "a.txt", "text/plain", b"old")
                w.add_metadata("m", {"x": "y"})
        w.finish()


OPTIONS: list[dict[str, Any]] = [
    {},
    {"chunk_size": 100},
    {"compression": CompressionType.LZ4},
    {"compression": CompressionType.NONE},
    {"use_chunking": False},
    {"use_statistics": False},
    {"use_summary_offsets": False},
    {"repeat_channels": False, "repeat_schemas": False},
    {"enable_crcs": False},
    {"enable_data_crcs": True},
    {"use_chunking": False, "enable_data_crcs": True},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_library_reads_continued_files(options: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    library_file(path, **options)
    # With an index, the library reads only files that repeat their channels.
    old = NonSeekingReader(io.BytesIO(path.read_bytes())).iter_messages(log_time_order=False)
    before = [(c.topic, m.log_time, m.publish_time, m.sequence, m.data) for _, c, m in old]
    with logreel.create(path, mode="a") as w:
        known = w.add_channel("/1", logreel.Schema("S", "jsonschema", "{}"))
        unused = w.add_channel("/2", logreel.Schema("S", "jsonschema"))
        fresh = w.add_channel("/words", STRING)
        for i in range(300):
            w.write((known, unused, fresh)[i % 3], 2 * 10**18 + i, b"\1\0\0\0x")
        w.attachment("b.txt", b"new", "text/plain")
        w.metadata("m", {"x": "z"})
    data = path.read_bytes()
    topics = ("/1", "/2", "/words")
    due = [*before, *((topics[i % 3], 2 * 10**18 + i, 2 * 10**18 + i, 0, b"\1\0\0\0x") for i in range(300))]
    assert library_rows(data) == due
    streamed = NonSeekingReader(io.BytesIO(data), validate_crcs=True)
    assert [m.data for _, _, m in streamed.iter_messages(log_time_order=False)] == [row[-1] for row in due]
    log = logreel.open(data)
    assert (log.problems, log.verify()) == ((), ())
    assert fast_rows(log) == due
    assert (log.metadata["mcap"]["profile"], log.metadata["mcap"]["library"]) == ("prof", "lib")
    summary = library_summary(data)
    stats = summary.statistics
    assert (stats.message_count, stats.schema_count, stats.channel_count) == (600, 2, 4)
    assert (stats.attachment_count, stats.metadata_count) == (2, 2)
    assert (stats.message_start_time, stats.message_end_time) == (10**18, 2 * 10**18 + 299)
    counts = {summary.channels[n].topic: count for n, count in stats.channel_message_counts.items()}
    assert counts == {"/0": 150, "/1": 250, "/2": 100, "/words": 100}
    reader = make_reader(io.BytesIO(data), validate_crcs=True)
    assert [(a.name, a.data) for a in reader.iter_attachments()] == [("a.txt", b"old"), ("b.txt", b"new")]
    assert [(m.name, m.metadata) for m in reader.iter_metadata()] == [("m", {"x": "y"}), ("m", {"x": "z"})]
    # The library finds messages of a topic by the index.
    assert len(list(make_reader(io.BytesIO(data)).iter_messages(topics=["/1"]))) == 250


def test_data_section_is_kept_to_the_byte(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    path.write_bytes(walk())
    data = path.read_bytes()
    end = logreel.open(path).format_state.data_end[0]
    with logreel.create(path, mode="a") as w:
        w.write(w.add_channel("/words", STRING), 10**18, {"data": "x"})
    assert path.read_bytes()[:end] == data[:end]


def test_compression_is_that_of_the_log_unless_given(tmp_path: Path) -> None:
    for compression in ("lz4", "none", "zstd"):
        path = tmp_path / f"{compression}.mcap"
        for mode, more in (("w", {}), ("a", {}), ("a", {"compression": "zstd"})):
            options = {"compression": compression} if mode == "w" else more
            with logreel.create(path, mode=mode, **options) as w:
                w.write(w.add_channel("/words", STRING), 10**18, {"data": "x" * 1000})
            due = {compression, *more.values()}
            assert set(logreel.open(path).metadata["mcap"]["compression"]) == due


def test_ids_go_on_after_the_highest_ones(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    path.write_bytes(
        Builder()
        .schema(7, "S", "jsonschema", b"{}")
        .channel(500, 7, "/a", "json")
        .message(500, 10**18, b"{}")
        .bytes()
    )
    with logreel.create(path, mode="a") as w:
        w.write(w.add_channel("/b", STRING), 10**18, {"data": "x"})
        w.write(w.add_channel("/a", logreel.open(path)["/a"].schema), 10**18, b"[]")
    summary = library_summary(path.read_bytes())
    assert {n: (c.topic, c.schema_id) for n, c in summary.channels.items()} == {
        500: ("/a", 7),
        501: ("/b", 8),
    }
    assert sorted(summary.schemas) == [7, 8]
    assert summary.statistics.channel_message_counts == {500: 2, 501: 1}


def test_profile_and_library_cannot_change(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    library_file(path)
    for options in ({"profile": "other"}, {"library": "other"}):
        with pytest.raises(logreel.UsageError, match="stand in the header"):
            logreel.create(path, mode="a", **options)
    logreel.create(path, mode="a", profile="prof").close()


def test_recording_that_was_not_finished_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    w = logreel.create(path)
    w.write(w.add_channel("/words", STRING), 10**18, {"data": "x"})
    w.leave()
    (tmp_path / "a.mcap.active").rename(path)
    assert [p.code for p in logreel.open(path).problems] == ["unfinished"]
    with logreel.create(path, mode="a") as w:
        w.write(w.add_channel("/words", STRING), 10**18 + 1, {"data": "y"})
    assert [row[-1][-1:] for row in library_rows(path.read_bytes())] == [b"x", b"y"]


def test_content_after_the_summary_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    library_file(path)
    path.write_bytes(path.read_bytes() + struct.pack("<BQ", 0x80, 4) + b"more")
    with pytest.raises(logreel.LogError, match="cannot be continued: something follows its end"):
        logreel.create(path, mode="a")


def test_span_of_a_converted_log_goes_on(tmp_path: Path) -> None:

    path = tmp_path / "a.mcap"
    logreel.convert(walk(), path, raw=True)
    old = logreel.open(path)
    ch = max(old.match(None), key=len)
    late = (old.end or 0) + 10**9
    with logreel.create(path, mode="a") as w:
        w.write(w.add_channel(ch.topic, ch.schema), late, bytes(next(iter(ch)).data))
    log = logreel.open(path)
    assert (log.start, log.end, log.utc_offset, log.epoch) == (old.start, late, old.utc_offset, old.epoch)
    assert {name: p.value for name, p in log.parameters.items()} == {
        name: p.value for name, p in old.parameters.items()
    }


REAL = sorted((SHARED / "data/rosbag2").rglob("*.mcap"))


@pytest.mark.parametrize("path", REAL, ids=lambda p: p.stem)
def test_real_files_are_continued(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "a.mcap"
    copy.write_bytes(path.read_bytes())
    old = logreel.open(copy)
    assert not any(problem.lost for problem in old.problems)
    before, stats = library_rows(copy.read_bytes()), library_summary(copy.read_bytes()).statistics
    due = list(before)
    with logreel.create(copy, mode="a") as w:
        for ch in old.match(None):
            number = w.add_channel(ch.topic, ch.schema, ch.metadata)
            if len(ch):
                time, data = (old.end or 0) + 10**9, bytes(ch[-1].data)
                w.write(number, time, data)
                due.append((ch.metadata.get("topic", ch.topic), time, time, 0, data))
    data = copy.read_bytes()
    assert library_rows(data) == due
    new, after = logreel.open(copy), library_summary(data)
    # One of them counts too few schemas and channels itself.
    assert (new.problems, new.verify()) == (old.problems, ())
    assert (new.start, new.epoch, new.utc_offset) == (old.start, old.epoch, old.utc_offset)
    assert after.statistics.message_count == len(due)
    assert after.statistics.channel_count == len(old.channels) >= stats.channel_count
    assert after.statistics.schema_count == len(after.schemas) >= stats.schema_count
    assert after.statistics.metadata_count == stats.metadata_count
    assert after.statistics.attachment_count == stats.attachment_count
