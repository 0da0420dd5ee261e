"""Content of MCAP files of every structure and compression, compared with the plain reader and the mcap library."""

from __future__ import annotations

import io
import itertools
import json
import random
import struct
import time

import numpy as np
import pytest
from mcap.writer import CompressionType, IndexType
from mcap.writer import Writer as LibraryWriter

import logreel
from logreel.formats.mcap import chunks as packing
from logreel.formats.mcap.definitions import unique
from support.builders.mcap_rows import fast_rows, library_rows, library_summary
from support.oracles import mcap_file as mcap_oracle
from support.samples.mcap.builder import START, Builder, message, pairs, record, string, tiny
from support.samples.mcap.walk import walk

WAYS = list(itertools.product(("zstd", "lz4", "", None), (True, False), (True, False), (True, False)))


def built(way: tuple[str | None, bool, bool, bool], chunk_bytes: int = 120) -> Builder:
    compression, index, summary, finished = way
    return Builder(compression, chunk_bytes, index=index, summary=summary, finished=finished)


@pytest.mark.parametrize("way", WAYS)
def test_every_compression_and_structure_has_the_same_content(
    way: tuple[str | None, bool, bool, bool],
) -> None:
    data = tiny(built(way))
    log = logreel.open(data)
    judge = mcap_oracle.read(data)
    assert fast_rows(log) == judge.rows() == mcap_oracle.read(tiny()).rows()
    assert [p.code for p in log.problems] == ([] if way[3] else ["unfinished"])
    assert log.verify() == ()
    assert log.metadata["build"] == {"version": "1", "by": "hand"}
    notes = log.attachments["notes.txt"]
    assert (notes.media_type, notes.read(), notes.time, notes.created) == (
        "text/plain",
        b"remember the milk",
        START,
        START,
    )
    assert log["/words"].metadata == {"from": "a sample", "message_encoding": "json"}
    assert (log.start, log.end, log.epoch, log.utc_offset) == (START, START + 30_000_005, "unix", 0)
    facts = log.metadata["mcap"]
    assert facts["library"] == "logreel sample"
    assert facts["indexed"] == (way[0] is not None and all(way[1:]))
    assert ("statistics" in facts) == (way[2] and way[3])
    if way[3]:
        assert library_rows(data) == judge.rows()


def test_a_walk_is_read_as_the_library_reads_it() -> None:
    data = walk(3.0, Builder(chunk_bytes=1 << 13))
    log = logreel.open(data)
    assert fast_rows(log) == library_rows(data)
    statistics = library_summary(data).statistics
    assert log.metadata["mcap"]["statistics"]["messages"] == statistics.message_count == log.message_count
    assert {ch.topic: len(ch) for ch in log.channels.values()} == {
        c.topic: statistics.channel_message_counts[c.id] for c in library_summary(data).channels.values()
    }


def test_opening_by_the_summary_decompresses_no_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    data = walk(2.0, Builder(chunk_bytes=1 << 12))
    unpacked = []
    true = packing.unpack
    monkeypatch.setattr(
        packing, "unpack", lambda source, chunk: (unpacked.append(chunk.pos), true(source, chunk))[1]
    )
    log = logreel.open(data)
    assert len(log["/imu"]) == 200
    assert log["/imu"].times[0] == log.start
    assert log["/imu"].rate == pytest.approx(100, rel=0.02)
    assert unpacked == []
    assert log["/fix"]["latitude"].shape == (4,)
    assert 0 < len(set(unpacked)) < log.metadata["mcap"]["chunks"]


def test_messages_of_four_encodings_are_decoded() -> None:
    log = logreel.open(walk(2.0))
    assert log["/imu"]["orientation.w"][0] == 1.0
    assert log["/fix"].to_arrow().column("status").to_pylist()[0] == {"status": 0, "service": 1}
    status = log["/status"]
    assert status.fields == ["mode", "battery", "steps", "motors", "pose.x", "pose.y"]
    assert status["steps"].tolist() == [2 * k for k in range(10)]
    assert status["pose.x"][0] == 8.0
    first = next(log.messages("/status"))
    assert first.decode() == json.loads(bytes(first.data))
    assert log["/motor"]["angle"][1] == pytest.approx(0.36004018)
    assert set(log["/motor"]["state"].tolist()) == {"swing", "stance"}
    assert not log.problems


def test_json_has_the_columns_of_its_schema() -> None:
    kinds = {
        "a": {"type": ["number", "null"]},
        "b": {"anyOf": [{"$ref": "#/$defs/pair"}, {"type": "null"}]},
        "c": {"type": "array", "items": {"type": "integer"}},
        "d": {},
        "e": {"type": "boolean"},
    }
    schema = {
        "properties": kinds,
        "$defs": {"pair": {"type": "object", "properties": {"x": {"type": "string"}}}},
    }
    out = Builder().schema(1, "s", "jsonschema", json.dumps(schema).encode()).channel(1, 1, "/j", "json")
    out.message(1, START, b'{"a": 1, "b": {"x": "y"}, "c": [1, 2.0, "no"], "d": [1], "e": true, "more": 5}')
    out.message(1, START + 1, b'{"a": "NaN", "b": 3, "e": 1}').message(1, START + 2, b"[1, 2]").message(
        1, START + 3, b"{"
    )
    out.channel(2, 0, "/plain", "json").message(2, START, b'{"x": [1]}').message(2, START + 1, b"17")
    log = logreel.open(out.bytes())
    first, second, *broken = log["/j"].to_arrow().to_pylist()
    assert [{**row, "time": 0} for row in broken] == 2 * [dict.fromkeys(first) | {"time": 0}]
    assert first | {"time": 0} == {
        "time": 0,
        "a": 1.0,
        "b": {"x": "y"},
        "c": [1, 2, None],
        "d": "[1]",
        "e": True,
    }
    assert np.isnan(second["a"])
    assert (second["b"], second["c"], second["d"], second["e"]) == (None, None, None, None)
    assert log["/plain"].to_arrow()["json"].to_pylist() == ['{"x": [1]}', "17"]
    assert [m.decode() for m in log.messages("/plain")] == [{"x": [1]}, {"json": 17}]
    with pytest.raises(logreel.DamagedError, match="no JSON"):
        [m.decode() for m in log.messages("/j")]


@pytest.mark.parametrize("schema", [b"{", b"[" * 9999, b'{"$ref": "#"}', b"17", b'{"type": "object"}'])
def test_json_schemas_without_fields_give_one_column(schema: bytes) -> None:
    out = Builder().schema(1, "s", "jsonschema", schema).channel(1, 1, "/j", "json")
    log = logreel.open(out.message(1, START, b"{}").bytes())
    assert log["/j"].to_arrow().num_rows == 1


def test_recursive_json_schema_is_refused() -> None:
    wide = {"type": "object", "properties": {f"{n}": {"$ref": "#"} for n in range(2000)}}
    out = Builder().schema(1, "s", "jsonschema", json.dumps(wide).encode()).channel(1, 1, "/j", "json")
    log = logreel.open(out.message(1, START, b"{}").bytes())
    assert log["/j"].fields == ["data"]
    assert [p.code for p in log.problems] == ["definition"]


def test_unknown_encodings_are_bytes() -> None:
    out = Builder().schema(1, "a/B", "ros1msg", b"float64 x\nnobody/knows y\n").channel(1, 1, "/a", "ros1")
    out.schema(2, "B", "flatbuffer", b"\xff\x00").channel(2, 2, "/b", "flatbuffer")
    out.schema(3, "C", "protobuf", b"\xff\x00").channel(3, 3, "/c", "protobuf")
    for number in (1, 2, 3):
        out.message(number, START, b"abc")
    log = logreel.open(out.bytes())
    for name in ("/a", "/b", "/c"):
        assert log[name].to_arrow()["data"].to_pylist() == [b"abc"]
    assert sorted(p.text.split(":")[0] for p in log.problems) == ["/a", "/c"]
    assert (log["/b"].schema.text, log["/b"].schema.data, log["/b"].schema.raw) == (
        "",
        b"\xff\x00",
        b"\xff\x00",
    )


def test_second_channel_of_a_topic_gets_an_instance_number() -> None:
    out = Builder().channel(7, 0, "/a", "").channel(9, 0, "/a", "json").channel(8, 0, "/a[1]", "")
    for number, payload in ((7, b"x"), (9, b"{}"), (8, b"y")):
        out.message(number, START, payload)
    log = logreel.open(out.bytes())
    assert list(log) == ["/a", "/a[1]", "/a[2]"]
    assert log["/a[2]"].metadata == {"message_encoding": "json", "topic": "/a"}
    assert [bytes(m.data) for m in log.messages(["/a[1]"])] == [b"y"]


def test_unknown_and_undeclared_records_are_reported() -> None:
    out = Builder("zstd").channel(1, 0, "/a", "").message(1, START, b"x").raw(record(0x81, b"mine"))
    out.raw(record(0x42, b"future")).message(3, START, b"lost")
    log = logreel.open(out.bytes())
    assert sorted((p.code, p.lost) for p in log.problems) == [
        ("undeclared", True),
        ("unknown", False),
        ("unknown", True),
    ]
    assert log.message_count == 1
    # Messages outside of chunks beside those inside.
    out = Builder("lz4").channel(1, 0, "/a", "").message(1, START, b"x").raw(message(1, START + 1, b"y"))
    out._counts[1] += 1
    log = logreel.open(out.message(1, START + 2, b"z").bytes())
    assert [bytes(m.data) for m in log.messages("/a")] == [b"x", b"y", b"z"]
    assert not log.problems
    out = (
        Builder("")
        .channel(1, 0, "/a", "")
        .message(1, START, b"x")
        .raw(record(4, struct.pack("<HH", 1, 0) + string("/b") + string("") + pairs({})))
    )
    log = logreel.open(out.bytes())
    assert [p.code for p in log.problems] == ["redefined"]
    assert list(log) == ["/a"]


def test_entries_sorted_by_time_come_in_file_order() -> None:
    out = Builder("zstd").channel(1, 0, "/a", "")
    for k in (3, 1, 2):
        out.message(1, START + k, bytes([k]))
    out._entries[1].sort()
    log = logreel.open(out.bytes())
    assert log["/a"].times.tolist() == [START + 3, START + 1, START + 2]
    assert [bytes(m.data) for m in log.messages("/a", order="file")] == [b"\x03", b"\x01", b"\x02"]
    assert not log.problems


def test_epoch_follows_from_times() -> None:
    def opened(time: int) -> logreel.Log:
        return logreel.open(Builder().channel(1, 0, "/a", "").message(1, time, b"").bytes())

    assert (opened(5).epoch, opened(5).utc_offset) == ("start", None)
    assert (opened(START).epoch, opened(START).utc_offset) == ("unix", 0)
    assert opened((1 << 64) - 1)["/a"].times.tolist() == [(1 << 63) - 1]
    empty = logreel.open(Builder().bytes())
    assert (empty.start, empty.end) == (None, None)


def test_metadata_and_attachments_of_the_same_name_are_all_kept() -> None:
    out = (
        Builder()
        .metadata("a", {"x": "1"})
        .metadata("a", {"x": "2"})
        .attachment("f", "", b"1")
        .attachment("f", "", b"2")
    )
    log = logreel.open(out.bytes())
    assert log.metadata["a"] == [{"x": "1"}, {"x": "2"}]
    assert {name: one.read() for name, one in log.attachments.items()} == {"f": b"1", "f[1]": b"2"}


def test_wrong_statistics_are_not_used() -> None:
    data = bytearray(tiny(Builder(chunk_bytes=120, sums=False)))
    log = logreel.open(bytes(data))
    statistics = log.metadata["mcap"]["statistics"]
    at = data.rindex(struct.pack("<Q", statistics["messages"]) + struct.pack("<H", statistics["schemas"]))
    data[at] = 7
    log = logreel.open(bytes(data))
    assert fast_rows(log) == mcap_oracle.read(tiny()).rows()
    assert [p.code for p in log.problems] == ["index"]
    assert "statistics" in {f.code for f in log.verify()}


@pytest.mark.parametrize(
    ("moved", "why"),
    [
        (1 << 63, None),
        ((1 << 64) - 16, "not as long as it says"),
        (None, "has two indexes of one channel"),
    ],
)
def test_wrong_offsets_of_index_records_are_not_used(moved: int | None, why: str | None) -> None:
    """The index is read from the chunks where that may be of later writers, else these are unpacked."""
    data = bytearray(tiny(built(("zstd", True, True, True))))
    start = int.from_bytes(data[-28:-20], "little")
    # No checksum, so that nothing else is wrong with the summary.
    data[-12:-8] = bytes(4)
    at = next(at for at in range(start, len(data)) if data[at] == 8 and data[at + 41] == 20) + 45
    if moved is None:
        data[at + 10 : at + 12] = data[at : at + 2]
    else:
        place = int.from_bytes(data[at + 2 : at + 10], "little")
        data[at + 2 : at + 10] = struct.pack("<Q", (place + moved) % (1 << 64))
    log = logreel.open(bytes(data))
    assert not log.metadata["mcap"]["indexed"]
    assert [p.code for p in log.problems] == ["index"] * (why is not None)
    assert all(why in p.text for p in log.problems)
    assert fast_rows(log) == mcap_oracle.read(tiny()).rows()


def numbered_names(names: list[str]) -> list[str]:
    """Return names as ``unique`` does, counted from 0 for each."""
    found: list[str] = []
    for name in names:
        n, one = 0, name
        while one in found or (n and one in names):
            n += 1
            one = f"{name}[{n}]"
        found.append(one)
    return found


def test_repeated_topics_are_numbered_without_collisions() -> None:
    rng = random.Random(3)
    for _ in range(300):
        names = rng.choices(["a", "b", "a[1]", "a[2]", "a[1][1]", "b[3]"], k=rng.randrange(15))
        assert unique(names) == numbered_names(names)


def test_65535_channels_of_one_topic_are_numbered_in_linear_time() -> None:
    """Found by mutants: counting each name from 0 takes minutes (1.4 s for 4000 names)."""
    begin = time.process_time()
    assert unique(["/a"] * 65_535)[-1] == "/a[65534]"
    assert time.process_time() - begin < 20


def test_an_empty_message_at_the_end_of_a_chunk_belongs_to_it() -> None:
    out = io.BytesIO()
    writer = LibraryWriter(out, compression=CompressionType.NONE, index_types=IndexType.NONE)
    writer.start()
    channel = writer.register_channel("/empty", "json", 0)
    for n in range(3):
        writer.add_message(channel, START + n, b"", START + n)
    writer.finish()
    log = logreel.open(out.getvalue())
    assert (len(log["/empty"]), log.problems, log.verify()) == (3, (), ())
