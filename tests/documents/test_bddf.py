"""What the vendor's documents say about BDDF files, one test for each capability.

Documents: "BDDF data format" with its sections, and for downloads "Using the Robot Data Service" (see also
tests/outputs/test_serve_data_service.py).
"""

from __future__ import annotations

import hashlib
import io
import struct
from pathlib import Path
from typing import Any

import pytest

import logreel
from logreel.errors import UsageError
from support.samples.bddf.builder import T0, Builder, block, num, raw, walk

SECOND = 10**9
SERVICE, TYPE = "bosdyn:grpc:service", "bosdyn:message-type"
FLOAT = logreel.Schema("float64", "bddf")


@pytest.fixture(scope="module")
def log() -> logreel.Log:
    return logreel.open(walk())


def calls() -> Builder:
    """Return a file with the requests of the service robot_id, as in the document's example."""
    out = Builder()
    content = raw(4, raw(1, "application/protobuf") + raw(2, "bosdyn.api.RobotIdRequest") + num(3, False))
    spec = {SERVICE: "robot_id", TYPE: "bosdyn.api.RobotIdRequest"}
    out.data(out.series(spec, content, kind="bosdyn:grpc:requests"), T0, b"")
    out.data(out.messages("bosdyn.api.OperatorComment"), T0, raw(1, "hello"))
    return out


# ------------------------------------------------------------------------------------------------ Motivation


def test_a_file_has_timestamped_blobs_and_plain_values_with_metadata(log: logreel.Log) -> None:
    """Both kinds of data have times, and the file and its series are described (Motivation)."""
    blob, values = log["mission"], log["patrol/body/speed"]
    assert blob[0].time == values[0].time == T0
    assert bytes(blob[0].data).startswith(b"{")
    assert values["value"].dtype == "float32"
    assert log.metadata["bosdyn:robot-serial-number"] == "spot-sample-0001"
    assert values.metadata["spec"]["varname"] == "speed"


def test_all_data_that_was_written_is_recoverable_without_the_end(tmp_path: Path) -> None:
    """If the writer dies, everything that is in the file can still be read (Motivation, "Safe and cheap to write")."""
    out = Builder()
    series = out.messages("a", "text/plain", "line")
    for n in range(50):
        out.data(series, T0 + n, b"line %d" % n)
    (tmp_path / "killed.bddf").write_bytes(out.killed())
    with logreel.open(tmp_path / "killed.bddf") as found:
        assert [bytes(message.data) for message in found["a"]] == [b"line %d" % n for n in range(50)]
        assert [problem.code for problem in found.problems] == ["truncated"]
    logreel.recover(tmp_path / "killed.bddf", tmp_path / "whole.bddf")
    with logreel.open(tmp_path / "whole.bddf") as whole:
        assert len(whole["a"]) == 50
        assert whole.problems == ()


def test_what_a_writer_has_flushed_is_in_the_file(tmp_path: Path) -> None:
    """Data can be read while the file is still written (Motivation, "Safe and cheap to write")."""
    with logreel.create(tmp_path / "a.bddf") as writer:
        channel = writer.add_channel("a", FLOAT)
        writer.write(channel, T0, {"records": [{"value": 1.5}]})
        writer.flush()
        (part,) = [path for path in tmp_path.iterdir() if path.is_file()]
        with logreel.open(part.read_bytes()) as found:
            assert found["a"]["value"].tolist() == [1.5]


def test_the_index_tells_kinds_and_time_spans(log: logreel.Log) -> None:
    """Kinds and time spans of the data are known without reading it (Motivation, "No additional processing")."""
    found = {ch.topic: ch for ch in logreel.info(log).channels}
    assert found["bosdyn.api.Event"].type == "bosdyn.api.Event"
    assert (found["mission"].start_ns, found["mission"].end_ns) == (T0, T0 + 17_500_000_000)
    assert log.metadata["indexed"] is True


def test_data_is_extracted_by_kind_and_time_span(log: logreel.Log, tmp_path: Path) -> None:
    """Data of some kind in some interval can be taken out (Motivation, "No additional processing")."""
    logreel.slice(
        log, tmp_path / "a.bddf", topics="type=bosdyn.api.SignalTick", start=T0 + SECOND, end=T0 + 2 * SECOND
    )
    with logreel.open(tmp_path / "a.bddf") as part:
        assert list(part) == ["bosdyn.api.SignalTick"]
        assert part["bosdyn.api.SignalTick"].times.tolist() == [T0 + SECOND + n * 10**8 for n in range(10)]


def test_files_are_used_without_conversion(log: logreel.Log) -> None:
    """Tools use the file as it is (Motivation, "No additional processing"); a field is a column."""
    assert len(log["patrol/body/position"]["value"]) == 2000
    assert log.table("patrol/body/height").schema.names == ["time", "sample", "value"]


def test_data_of_any_encoding_is_stored(tmp_path: Path) -> None:
    """The format does not restrict encodings (Motivation, "General"): bytes come back unchanged."""
    payloads = {
        "text/plain": b"\xff\x00",
        "image/jpeg": b"\xff\xd8\xff",
        "application/x-site": bytes(range(256)),
    }
    with logreel.create(tmp_path / "a.bddf") as writer:
        for n, (encoding, payload) in enumerate(payloads.items()):
            channel = writer.add_channel(str(n), logreel.Schema("site.Kind", encoding))
            writer.write(channel, T0 + n, payload)
    with logreel.open(tmp_path / "a.bddf") as found:
        assert {ch.schema.encoding: bytes(ch[0].data) for ch in found.channels.values()} == payloads


class Pipe(io.RawIOBase):
    """A stream that can only be written, in order."""

    def __init__(self) -> None:
        self.data = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.data += data
        return len(data)


def test_a_file_is_written_as_a_stream(log: logreel.Log) -> None:
    """Writing never goes back in the file (Motivation, "Streamable"), so a file can be sent through a pipe."""
    pipe = Pipe()
    logreel.slice(log, pipe)
    with logreel.open(bytes(pipe.data)) as found:
        assert found.problems == ()
        assert found.message_count == log.message_count


# ---------------------------------------------------------------------------------------------- Organization


def test_a_series_is_of_messages_or_of_plain_values(log: logreel.Log) -> None:
    """A series has one of two types (Organization)."""
    assert log["bosdyn.api.TextMessage"].metadata["content_type"] == "application/protobuf"
    assert log["patrol/body/position"].schema.name == "float64[3]"


def test_a_series_is_a_sequence_of_timestamped_blocks(log: logreel.Log) -> None:
    """Blocks of a series have an order and times, and are addressed by number (Organization)."""
    ticks = log["bosdyn.api.SignalTick"]
    assert [message.time for message in ticks] == ticks.times.tolist()
    assert ticks[5].time == T0 + 5 * 10**8


def test_a_series_has_a_description() -> None:
    """A series says what its blocks contain (Organization)."""
    out = Builder()
    out.series({"varname": "x"}, raw(5, num(1, 10)), description="distance to the dock")
    with logreel.open(out.bytes()) as found:
        assert found["x"].metadata["description"] == "distance to the dock"


def test_blocks_have_named_index_values(log: logreel.Log) -> None:
    """Each block of a series has integers under the names that the series gives (Organization)."""
    ticks = log["bosdyn.api.SignalTick"]
    assert list(ticks.metadata["additional_indexes"]) == ["sequence"]
    assert ticks["sequence"].tolist() == list(range(200))


def test_the_file_index_and_reading_the_file_give_the_same_series() -> None:
    """The index at the end lists all series and where they are (Organization)."""
    out = calls()
    with logreel.open(out.bytes()) as fast, logreel.open(out.bytes(index=False)) as slow:
        assert (fast.metadata["indexed"], slow.metadata["indexed"]) == (True, False)
        assert [(ch.topic, ch.times.tolist()) for ch in fast.channels.values()] == [
            (ch.topic, ch.times.tolist()) for ch in slow.channels.values()
        ]


# ----------------------------------------------------------------------------------- Identifying data series


def test_a_series_is_found_by_its_type_and_spec() -> None:
    """A series is named by a mapping of keys to values, not by one text (Identifying data series)."""
    with logreel.open(calls().bytes()) as found:
        (requests,) = found.match("series_type=bosdyn:grpc:requests,service=robot_id")
        assert requests.metadata["spec"] == {SERVICE: "robot_id", TYPE: "bosdyn.api.RobotIdRequest"}
        (comments,) = found.match("channel=bosdyn.api.OperatorComment")
        assert found.text[0].text == "hello"
        assert comments.topic == "bosdyn.api.OperatorComment"


def test_series_are_written_with_a_type_and_spec(tmp_path: Path) -> None:
    """Type and spec are chosen by the writer (Identifying data series)."""
    spec = {SERVICE: "robot_id", TYPE: "site.Request"}
    with logreel.create(tmp_path / "a.bddf") as writer:
        schema = logreel.Schema("site.Request", "application/json")
        channel = writer.add_channel("calls", schema, {"series_type": "bosdyn:grpc:requests", "spec": spec})
        writer.write(channel, T0, b"{}")
    with logreel.open(tmp_path / "a.bddf") as found:
        (ch,) = found.match("service=robot_id")
        assert ch.metadata["series_type"] == "bosdyn:grpc:requests"
        assert spec.items() <= ch.metadata["spec"].items()


def test_an_identifier_has_a_hash_of_64_bits(log: logreel.Log) -> None:
    """The hash is the begin of SHA-1 over type, and keys and values in order of keys (Identifying data series)."""
    for ch in log.channels.values():
        kind, spec = ch.metadata["series_type"], ch.metadata["spec"]
        text = kind + "".join(key + spec[key] for key in sorted(spec, key=str.encode))
        assert ch.metadata["hash"] == hashlib.sha1(text.encode()).hexdigest()[:16]


# ----------------------------------------------------------------------------------- Data series annotations


def test_annotations_say_more_about_a_series(tmp_path: Path) -> None:
    """Texts by key can be added to a series, and are read again (Data series annotations)."""
    with logreel.create(tmp_path / "a.bddf") as writer:
        writer.add_channel("x", FLOAT, {"annotations": {"site:mount": "left leg", "units": "m/s2"}})
    with logreel.open(tmp_path / "a.bddf") as found:
        assert found["x"].metadata["annotations"] == {"site:mount": "left leg", "units": "m/s2"}
        assert [ch.topic for ch in found.match("mount=left leg")] == ["x"]


@pytest.mark.parametrize("key", ["mount", ":mount"])
def test_keys_without_an_organization_are_reserved(key: str, tmp_path: Path) -> None:
    """Other keys than ``units`` name who defines them (Data series annotations)."""
    with pytest.raises(UsageError, match="reserved"), logreel.create(tmp_path / "a.bddf") as writer:
        writer.add_channel("x", FLOAT, {"annotations": {key: "left leg"}})


def test_units_of_plain_values_are_stated_in_ucum(log: logreel.Log) -> None:
    """The annotation ``units`` is the unit of the values (Data series annotations)."""
    schema = log["patrol/body/speed"].to_arrow().schema
    assert schema.field("value").metadata[b"unit"] == b"m/s"
    assert [ch.topic for ch in log.match("units=m/s")] == ["patrol/body/speed"]


# -------------------------------------------------------------------------------------------- File structure


def test_numbers_are_little_endian() -> None:
    """Binary values are little-endian (File structure)."""
    out = Builder()
    out.data(out.pods({"varname": "n"}, "uint16"), T0, b"\x01\x02")
    with logreel.open(out.bytes()) as found:
        assert found["n"]["value"].tolist() == [0x0201]


def test_a_file_states_its_version_and_where_it_comes_from(log: logreel.Log) -> None:
    """The first block has the version and annotations such as the robot's serial number (File structure)."""
    assert log.version == "1.0.0"
    assert log.metadata["bosdyn:robot-serial-number"] == "spot-sample-0001"


def test_a_changed_file_fails_its_checksum() -> None:
    """A digest over everything before it ends the file (File structure)."""
    data = bytearray(calls().bytes())
    with logreel.open(bytes(data)) as found:
        assert found.verify() == ()
    at = data.index(b"hello")
    data[at] ^= 1
    with logreel.open(bytes(data)) as found:
        assert [finding.code for finding in found.verify()] == ["checksum"]


def test_a_file_without_an_index_is_read() -> None:
    """An offset of zero means that there is no index (File structure)."""
    data = calls().bytes(index=False)
    assert struct.unpack_from("<Q", data, len(data) - 32) == (0,)
    with logreel.open(data) as found:
        assert (found.message_count, found.problems) == (2, ())


def test_the_offset_near_the_end_leads_to_the_index(tmp_path: Path) -> None:
    """The place of the index stands behind everything that was written before (File structure)."""
    with logreel.create(tmp_path / "a.bddf") as writer:
        writer.write(writer.add_channel("x", FLOAT), T0, {"records": [{"value": 1.0}]})
    data = (tmp_path / "a.bddf").read_bytes()
    (offset,) = struct.unpack_from("<Q", data, len(data) - 32)
    assert data[offset + 7] == 1
    assert data[-4:] == b"FDDB"
    with logreel.open(data) as found:
        assert found.metadata["indexed"] is True


def test_blocks_of_reserved_types_are_passed_over() -> None:
    """Further types of blocks may come (File structure): the rest of the file is read."""
    out = Builder()
    series = out.pods({"varname": "x"}, "float64")
    out.values(series, T0, "float64", [1])
    out.out += block(0x77, b"of the future")
    out.values(series, T0 + 1, "float64", [2])
    with logreel.open(out.bytes()) as found:
        assert found["x"]["value"].tolist() == [1, 2]
        assert found.problems[0].code == "unknown"
