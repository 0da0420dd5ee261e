"""What the specification of MCAP says, one test for each capability.

Document: "MCAP File Format Specification" with its sections.
"""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import pytest

import logreel
from logreel.errors import UnknownFormatError
from support.samples.mcap.builder import MAGIC, START, Builder, pairs, record, string, tiny
from support.samples.mcap.walk import walk

OBJECT = b'{"type":"object","properties":{"n":{"type":"integer"}}}'


def numbers(builder: Builder, count: int = 20) -> Builder:
    """Add JSON messages of two channels to a file."""
    builder.schema(1, "A", "jsonschema", OBJECT).channel(1, 1, "/a", "json").channel(2, 1, "/b", "json")
    for n in range(count):
        builder.message(1 + n % 2, START + n, b'{"n":%d}' % n, n)
    return builder


def content(data: bytes) -> dict[str, list[tuple[int, bytes]]]:
    """Return times and payloads of all messages by topic; the file must be sound."""
    with logreel.open(data) as log:
        assert log.problems == ()
        return {ch.topic: [(m.time, bytes(m.data)) for m in ch] for ch in log.channels.values()}


PLAIN = content(numbers(Builder(compression=None)).bytes())


# -------------------------------------------------------------------------------- Overview and File Structure


def test_messages_of_any_serialization_are_read() -> None:
    """A file has timestamped messages of topics, in any serialization (Overview)."""
    with logreel.open(walk()) as log:
        encodings = {ch.metadata["message_encoding"] for ch in log.channels.values()}
        assert encodings == {"ros1", "json", "protobuf", "cdr"}
        for ch in log.channels.values():
            assert len(ch.to_arrow()) == len(ch) > 0
            assert ch[0].decode()


def test_messages_without_a_known_serialization_keep_their_bytes() -> None:
    """Serializations are not restricted to those that a reader knows (Overview)."""
    out = Builder().channel(1, 0, "/x", "application/x-site").message(1, START, b"\0\1\2")
    assert content(out.bytes()) == {"/x": [(START, b"\0\1\2")]}


@pytest.mark.parametrize("summary", [True, False])
def test_the_summary_is_optional(summary: bool) -> None:
    """A file is valid without the summary and its offsets (File Structure, "Summary Section")."""
    assert content(numbers(Builder(summary=summary)).bytes()) == PLAIN


def test_a_file_begins_and_ends_with_the_magic_bytes() -> None:
    """Other content is no MCAP, and a file without its end is incomplete (File Structure, "Magic")."""
    data = numbers(Builder()).bytes()
    with pytest.raises(UnknownFormatError):
        logreel.open(b"\x88" + data[1:])
    with logreel.open(data[: -len(MAGIC)]) as log:
        assert log.problems
        assert log.message_count == 20


def test_messages_lie_in_chunks_or_directly_in_the_file() -> None:
    """Chunks are a choice of the writer ("Use of chunk records")."""
    assert content(numbers(Builder()).bytes()) == PLAIN
    mixed = numbers(Builder())
    mixed.flush()
    mixed.compression = None
    mixed.message(1, START + 100, b"{}")
    with logreel.open(mixed.bytes()) as log:
        assert [m.time for m in log["/a"]][-1] == START + 100
        assert log.message_count == 21


# -------------------------------------------------------------------------------------------------- Records


def by_hand(*records: bytes, header: bytes = b"") -> bytes:
    """Return a file of some records between header and footer."""
    head = record(1, string("") + string("") + header)
    return MAGIC + head + b"".join(records) + record(2, bytes(20)) + MAGIC


SCHEMA = struct.pack("<H", 1) + string("A") + string("jsonschema") + string(OBJECT)
CHANNEL = struct.pack("<HH", 1, 1) + string("/a") + string("json") + pairs({"site": "lab"})
MESSAGE = struct.pack("<HIQQ", 1, 7, START, START - 5) + b'{"n":1}'


def test_records_of_applications_are_passed_over() -> None:
    """Opcodes from 0x80 are for extensions by applications (Records)."""
    data = by_hand(record(3, SCHEMA), record(0x90, b"site"), record(4, CHANNEL), record(5, MESSAGE))
    with logreel.open(data) as log:
        assert log["/a"]["n"].tolist() == [1]
        assert [(problem.code, problem.lost) for problem in log.problems] == [("unknown", False)]


def test_unknown_fields_at_the_end_of_records_are_ignored() -> None:
    """Records may get new fields (Records)."""
    data = by_hand(
        record(3, SCHEMA + b"more"), record(4, CHANNEL + b"more"), record(5, MESSAGE), header=b"more"
    )
    with logreel.open(data) as log:
        assert log.problems == ()
        assert log["/a"]["n"].tolist() == [1]


def test_profile_and_library_are_shown() -> None:
    """The header says for what a file is made, and by what (Header)."""
    with logreel.open(numbers(Builder(profile="ros1", library="recorder 2")).bytes()) as log:
        assert log.metadata["mcap"]["profile"] == "ros1"
        assert log.metadata["mcap"]["library"] == "recorder 2"


def test_schemas_have_name_encoding_and_data() -> None:
    """A schema is shown as it is stored (Schema)."""
    with logreel.open(by_hand(record(3, SCHEMA), record(4, CHANNEL), record(5, MESSAGE))) as log:
        schema = log["/a"].schema
        assert (schema.name, schema.encoding, schema.text) == ("A", "jsonschema", OBJECT.decode())


def test_schemas_with_the_number_zero_are_ignored() -> None:
    """The number 0 is invalid for a schema, and means no schema in a channel (Schema, Channel)."""
    zero = record(3, bytes(2) + SCHEMA[2:])
    channel = record(4, struct.pack("<HH", 1, 0) + CHANNEL[4:])
    with logreel.open(by_hand(zero, channel, record(5, MESSAGE))) as log:
        assert log["/a"].schema.name == ""
        assert [problem.text for problem in log.problems] == ["a schema has the number 0: ignored"]
        assert bytes(log["/a"][0].data) == b'{"n":1}'


def test_channels_have_metadata() -> None:
    """Texts by key describe a channel (Channel); they select it, too."""
    with logreel.open(by_hand(record(3, SCHEMA), record(4, CHANNEL), record(5, MESSAGE))) as log:
        assert log["/a"].metadata["site"] == "lab"
        assert [ch.topic for ch in log.match("site=lab")] == ["/a"]


def test_messages_have_sequence_log_time_and_publish_time() -> None:
    """Each message has a number and two times (Message)."""
    with logreel.open(by_hand(record(3, SCHEMA), record(4, CHANNEL), record(5, MESSAGE))) as log:
        number = log["/a"].number
        assert log["/a"].times.tolist() == [START]
        assert log.index.side_column(number, "publish_time").tolist() == [START - 5]  # type: ignore[union-attr]
        assert log.index.side_column(number, "sequence").tolist() == [7]  # type: ignore[union-attr]


@pytest.mark.parametrize("compression", ["zstd", "lz4", ""])
def test_chunks_are_compressed_or_not(compression: str) -> None:
    """Chunks are compressed with a well-known algorithm, or not at all (Chunk)."""
    assert content(numbers(Builder(compression=compression)).bytes()) == PLAIN


def test_wrong_checksums_are_found_and_zero_means_none() -> None:
    """A checksum of zero is not checked (Chunk, Attachment, Data End)."""
    with logreel.open(numbers(Builder(sums=False)).attachment("a", "b", b"c").bytes()) as log:
        assert (log.verify(), log.message_count) == ((), 20)
    data = numbers(Builder(compression="")).bytes()
    with logreel.open(data.replace(b'{"n":7}', b'{"n":8}')) as log:
        findings = [*(problem.text for problem in log.problems), *(finding.text for finding in log.verify())]
        assert any("checksum" in text or "CRC" in text for text in findings), findings


@pytest.mark.parametrize("index", [True, False])
def test_messages_are_found_by_time_and_topic(index: bool) -> None:
    """An index gives fast access by time and channel; a file without one is read, too (Message Index, Chunk Index)."""
    with logreel.open(numbers(Builder(index=index, chunk_bytes=60), 40).bytes()) as log:
        found = log.messages("/b", START + 11, START + 20)
        assert [message.decode()["n"] for message in found] == [11, 13, 15, 17, 19]


def test_attachments_have_name_type_times_and_data() -> None:
    """Other artifacts are stored in the file (Attachment, Attachment Index)."""
    with logreel.open(Builder().attachment("scene1.jpg", "image/jpeg", b"\xff\xd8", START).bytes()) as log:
        one = log.attachments["scene1.jpg"]
        assert (one.media_type, one.size, one.read(), one.time, one.created) == (
            "image/jpeg",
            2,
            b"\xff\xd8",
            START,
            START,
        )


def test_statistics_summarize_the_file_and_are_optional() -> None:
    """Counts and times are known without reading messages (Statistics)."""
    with logreel.open(numbers(Builder()).attachment("a", "b", b"c").bytes()) as log:
        told = log.metadata["mcap"]["statistics"]
        assert (told["messages"], told["channels"], told["attachments"]) == (20, 2, 1)
        assert (told["start_ns"], told["end_ns"]) == (START, START + 19)
    with logreel.open(numbers(Builder(summary=False)).bytes()) as log:
        assert {topic: len(ch) for topic, ch in log.items()} == {"/a": 10, "/b": 10}


def test_metadata_records_are_texts_by_key() -> None:
    """Users store texts by key under a name (Metadata, Metadata Index)."""
    with logreel.open(Builder().metadata("site_hardware", {"serial": "12", "part_id": "x"}).bytes()) as log:
        assert log.metadata["site_hardware"] == {"serial": "12", "part_id": "x"}


# ------------------------------------------------------------------------------------- Serialization, Diagrams


@pytest.mark.parametrize("time", [0, 5, START])
def test_times_are_nanoseconds_of_any_epoch(time: int) -> None:
    """Times count from 1970, or from the boot of a robot (Timestamp)."""
    with logreel.open(Builder().channel(1, 0, "/x", "").message(1, time, b"x").bytes()) as log:
        assert log["/x"].times.tolist() == [time]


def test_names_are_utf_8() -> None:
    """Strings are UTF-8 (String)."""
    out = Builder().channel(1, 0, "/Größe/測量", "").message(1, START, b"x")
    assert list(content(out.bytes())) == ["/Größe/測量"]


def test_the_smallest_file_has_header_and_footer_only() -> None:
    """A file without data is valid (Diagrams, "Empty file")."""
    assert content(by_hand()) == {}


def test_a_file_with_one_message_or_one_attachment_is_valid() -> None:
    """Diagrams, "Single Message" and "Single Attachment"."""
    assert content(by_hand(record(3, SCHEMA), record(4, CHANNEL), record(5, MESSAGE))) == {
        "/a": [(START, b'{"n":1}')]
    }
    with logreel.open(Builder(summary=False).attachment("a", "text/plain", b"b").bytes()) as log:
        assert (len(log), log.attachments["a"].read()) == (0, b"b")


def test_definitions_may_come_between_messages() -> None:
    """Schemas and channels come before their first message, not all at the begin (Diagrams, "Multiple Messages")."""
    out = numbers(Builder(compression=None), 3)
    out.attachment("a", "b", b"c")
    out.schema(2, "B", "jsonschema", OBJECT).channel(3, 2, "/c", "json").message(3, START + 9, b"{}")
    out.message(1, START + 10, b"{}")
    with logreel.open(out.bytes()) as log:
        assert {topic: len(ch) for topic, ch in log.items()} == {"/a": 3, "/b": 1, "/c": 1}


# -------------------------------------------------------------------------------------------------- writing


def test_a_written_file_has_what_the_specification_requires(tmp_path: Path) -> None:
    """Written files have channels, statistics and indexes for other readers (Summary Section)."""
    reader = pytest.importorskip("mcap.reader")
    with logreel.open(tiny()) as log:
        logreel.slice(log, tmp_path / "a.mcap", start=START + 1)
    opened: Any = reader.make_reader(io.BytesIO((tmp_path / "a.mcap").read_bytes()), validate_crcs=True)
    summary = opened.get_summary()
    assert summary.statistics.message_count == len(list(opened.iter_messages()))
    assert {channel.topic for channel in summary.channels.values()} == {"/words", "/raw"}
    assert summary.chunk_indexes
