"""Series of BDDF files: the same with and without index; checksum, additional indexes, names and hashes."""

from __future__ import annotations

import logreel
from logreel.formats.bddf.records import Identifier
from logreel.formats.bddf.verify import verify_checksum as verify
from logreel.io.source import Source
from support.samples.bddf.builder import T0, Builder, hash_of, walk


def test_sample_reads_the_same_with_and_without_index() -> None:
    data = walk(3)
    assert verify(Source.open(data)) == []
    indexed, scanned = logreel.open(data), logreel.open(data[:-40])
    assert (indexed.metadata["indexed"], scanned.metadata["indexed"]) == (True, False)
    assert not indexed.problems
    assert list(indexed.channels) == list(scanned.channels)
    for topic in indexed:
        a, b = indexed[topic].to_arrow(), scanned[topic].to_arrow()
        assert a.equals(b), topic


def test_flipped_payload_bit_is_found_by_checksum_only() -> None:
    data = bytearray(walk(1))
    data[data.index(b"start of the patrol")] ^= 1
    assert not logreel.open(bytes(data)).problems
    (finding,) = logreel.open(bytes(data)).verify()
    assert (finding.code, finding.severity) == ("checksum", "error")
    assert logreel.check(bytes(data)).findings == (finding,)


def test_additional_indexes_are_columns_with_valid_names() -> None:
    out = Builder()
    series = out.messages("say", "text/plain", "line", names=["pid", "", "text", "pid"])
    low, high = -(1 << 63), (1 << 63) - 1
    out.data(series, T0, b"one", [1, low, high, 4]).data(series, T0 + 1, b"two", [5, 6])
    log = logreel.open(out.bytes())
    assert log["say"].to_arrow().to_pydict() | {"time": None} == {
        "time": None,
        "pid": [1, 5],
        "index_1": [low, 6],
        "text_2": [high, 0],
        "pid_2": [4, 0],
        "text": ["one", "two"],
    }
    assert log["say"].to_arrow(["text_2"]).column_names == ["time", "text_2"]
    first, _ = log.messages()
    assert first.decode() == {"pid": 1, "index_1": low, "text_2": high, "pid_2": 4, "text": "one"}
    assert log["say"].decode(memoryview(b"by itself")) == {"text": "by itself"}


def test_series_with_same_name_and_different_types_get_suffixes() -> None:
    out = Builder()
    out.messages("mixed", "application/protobuf", "a.B")
    out.messages("mixed", "text/plain", "line")
    out.messages("mixed[1]", "text/plain", "line")
    out.pods({"bosdyn:channel": "mixed"}, "int8")
    out.pods({}, "int8")
    log = logreel.open(out.bytes())
    assert len(log.channels) == 5
    assert list(log)[:2] == ["mixed", "mixed[1]"]
    assert [ch.schema.name for ch in log.channels.values()] == ["a.B", "line", "line", "int8", "int8"]


def test_different_identifiers_can_share_a_hash() -> None:
    identifier = Identifier("bosdyn:message-channel", {"bosdyn:channel": "a"})
    assert identifier.hash == hash_of(identifier.type, identifier.spec) == 0x727781938A7FE37F
    assert Identifier("t", {"ab": "c"}).hash == Identifier("t", {"a": "bc"}).hash
    out = Builder()
    a = out.pods({"ab": "c"}, "int8")
    b = out.pods({"a": "bc"}, "int8")
    out.values(a, T0, "int8", [1]).values(b, T0, "int8", [2])
    out.struct({"s": "joined"}, {"x": a})
    log = logreel.open(out.bytes())
    assert (log["c"]["value"].tolist(), log["bc"]["value"].tolist()) == ([1], [2])
    assert log["joined"]["x"].tolist() == [1]
    assert any("2 series have the hash" in p.text for p in log.problems)
