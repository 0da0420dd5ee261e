"""The ULog oracle itself: against pyulog on real logs, and against hand-made files where pyulog errs."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from conftest import SHARED
from support.oracles.pyulog_values import assert_same, flight, load
from support.oracles.ulog import MAGIC, OracleLog, read
from support.samples.ulog import builder
from support.samples.ulog.builder import Builder

LOGS = sorted((SHARED / "ulog").glob("*.ulg")) or sorted((SHARED / "data" / "ulog").glob("*.ulg"))
DAMAGED = "corrupt_actuator_armed_wrong_size.ulg"
TICK = "tick:uint64_t timestamp;uint32_t n;uint8_t[4] _padding0;"


def started(fmt: str = TICK) -> Builder:
    return Builder(start_us=1000).flags().format(fmt).subscribe(fmt.partition(":")[0], 0)


def tick(time_us: int, n: int = 0) -> bytes:
    return struct.pack("<QI", time_us, n)


def ticks(out: Builder, times: range, msg_id: int = 0) -> Builder:
    for time_us in times:
        out.data(msg_id, tick(time_us))
    return out


def numbers(data: bytes, topic: str = "tick") -> list[int]:
    return [row["timestamp"] for row in read(data).topics.get(topic, [])]


# ------------------------------------------------------------------ real logs


@pytest.fixture(params=LOGS, ids=lambda path: path.stem, scope="module")
def real(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


@pytest.fixture(scope="module")
def log(real: Path) -> OracleLog:
    return read(real.read_bytes())


@pytest.mark.skipif(not LOGS, reason="no samples of real logs beside the repository (LOGREEL_SHARED)")
class TestRealLogs:
    def test_oracle_equals_pyulog(self, real: Path, log: OracleLog) -> None:
        data = real.read_bytes()
        # The one damaged log ends in zeros; pyulog skips them one by one, and has the same rows.
        assert log.lost == ([(751_497, len(data))] if real.name == DAMAGED else [])
        assert_same(log, flight(real))

    def test_oracle_equals_stored_counts(self, real: Path, log: OracleLog) -> None:
        stored: dict[str, Any] = json.loads((real.parent / "counts.json").read_text())[real.name]
        peer = stored["pyulog"]
        rows = {t if "[" in t else f"{t}[0]": count for t, count in log.counts.items()}
        assert rows == peer["topics"]
        assert sum(rows.values()) == peer["data_messages"]
        assert (log.version, log.start_us) == (stored["version_byte"], stored["start_timestamp_us"])
        assert log.appended == peer["appended_offsets"]
        assert len(log.formats) == peer["formats"]
        assert len(log.parameters) == peer["initial_parameters"]
        assert [list(change) for change in log.changes] == peer["changed_parameters"]
        assert {str(b): len(d) for b, d in log.defaults.items() if d} == peer["default_parameters"]
        assert [list(dropout) for dropout in log.dropouts] == peer["dropouts"]
        plain = [[time, str(level), text] for level, tag, time, text in log.texts if tag is None]
        assert plain == peer["logged_strings"]
        tagged = [[time, str(level), tag, text] for level, tag, time, text in log.texts if tag is not None]
        assert tagged == peer["tagged_strings"]
        parts = {key: [len(entry) for entry in entries] for key, entries in log.info_multiple.items()}
        assert parts == peer["info_multiple"]
        walk = stored["linear_walk"]
        if walk["stop"] == "clean eof":
            assert log.types == walk["types"]
        else:  # the walk believes the header of the damaged record, by its size alone
            assert log.types == walk["types"] | {"D": walk["types"]["D"] - 1}


# ------------------------------------------------------------------ sound files


def test_other_files_raise() -> None:
    for data in (b"", MAGIC, b"x" * 100):
        with pytest.raises(ValueError, match="not a ULog"):
            read(data)
    with pytest.raises(ValueError, match="incompatible"):
        read(Builder().flags(incompat=2).bytes())


def test_trailing_padding_is_optional() -> None:
    """pyulog 1.3.0 reports the middle record as corrupt, though the specification allows it."""
    out = started().data(0, tick(1)).data(0, tick(2) + b"\xaa" * 4).data(0, tick(3) + b"\xaa")
    assert numbers(out.bytes()) == [1, 2, 3]
    assert not read(out.bytes()).lost
    assert load(out.bytes()).file_corruption


def test_nested_trailing_padding_is_never_omitted() -> None:
    out = Builder().flags().format("a:uint64_t timestamp;b[2] x;uint16_t[3] _padding1;")
    out.format("b:uint16_t y;uint8_t[2] _padding0;").subscribe("a", 0)
    out.data(0, struct.pack("<QHxxHxx", 5, 6, 7)).data(0, struct.pack("<QHxxH", 5, 6, 7))
    log = read(out.bytes())
    assert log.topics["a"] == [{"timestamp": 5, "x[0].y": 6, "x[1].y": 7}]
    assert log.lost == [(len(out) - 19, len(out))]


def test_appended_parts_keep_subscriptions() -> None:
    """pyulog 1.3.0 forgets them, and loses the messages after each offset."""
    out = ticks(started(), range(5)).raw("D", b"\0\0cut", size=14).append_part()
    begin = len(out)
    ticks(out, range(5, 8)).append_part()
    ticks(out, range(8, 10))
    log = read(out.bytes())
    assert [row["timestamp"] for row in log.topics["tick"]] == list(range(10))
    assert log.lost == [(begin - 8, begin)]
    assert len(log.appended) == 2
    assert len(load(out.bytes()).data_list[0].data["timestamp"]) < 10


def test_invalid_appended_offsets_are_not_used() -> None:
    head = len(Builder().flags().format(TICK))
    for offset in (17, head, 10_000):
        out = Builder().flags(incompat=1, offsets=(offset,)).format(TICK).subscribe("tick", 0)
        assert numbers(ticks(out, range(4)).bytes()) == [0, 1, 2, 3]
    out = Builder().flags(incompat=0, offsets=(head + 20,)).format(TICK).subscribe("tick", 0)
    assert numbers(ticks(out, range(4)).bytes()) == [0, 1, 2, 3]


def test_unknown_kinds_are_skipped() -> None:
    out = ticks(started().raw("x", b"future").raw("Z"), range(3)).raw("y", b"")
    log = read(out.bytes())
    assert not log.lost
    assert len(log.topics["tick"]) == 3
    assert (log.types["x"], log.types["Z"], log.types["y"]) == (1, 1, 1)


def test_string_before_subscriptions_ends_definitions() -> None:
    out = Builder().flags().parameter("P", 1).parameter("P", 2).text(6, 9, "").parameter("P", 3)
    log = read(out.bytes())
    assert (log.parameters, log.changes) == ({"P": 2}, [(0, "P", 3)])


def test_circular_formats_are_refused() -> None:
    out = Builder().flags().format("a:uint64_t timestamp;b x").format("b:c y;").format("c:b z;")
    out.format("none:uint8_t n;").format("one:uint8_t n;uint64_t timestamp;float[1] f")
    out.subscribe("one", 3).data(3, struct.pack("<BQf", 1, 2, 0.5)).subscribe("a", 1).sync()
    log = read(out.bytes())
    assert log.topics["one"] == [{"n": 1, "timestamp": 2, "f[0]": 0.5}]
    assert log.subscriptions == [(3, "one", 0)]
    assert len(log.lost) == 1


def test_values_of_every_kind() -> None:
    out = Builder().info("int8_t a", b"\xff").info("bool b", b"\x02").info("double c", 0.1)
    out.info("int16_t[2] d", b"\1\0\2\0").info("char[99] e", "short").info("char f", "g").info("a-b/C_9", "")
    infos = {"a": -1, "b": True, "c": 0.1, "d": [1, 2], "e": "short", "f": "g", "a-b/C_9": ""}
    assert read(out.bytes()).infos == infos


@pytest.mark.parametrize(
    ("kind", "code", "unit", "wrap"), [("uint16_t", "<H", 1, 2**16), ("uint8_t", "<B", 1000, 256)]
)
def test_narrow_timestamps_are_unwrapped(kind: str, code: str, unit: int, wrap: int) -> None:
    """pyulog 1.3.0 reads eight bytes for every type, and stops at the end of such a record."""
    true = [1_000_000 + 37_000 * i for i in range(40)]
    out = Builder(start_us=990_000).flags().format(f"n:{kind} timestamp;").subscribe("n", 0)
    for time_us in true:
        out.data(0, struct.pack(code, time_us // unit % wrap))
    assert [row.time for row in read(out.bytes()).segments[0].records["n"]] == true


def test_narrow_timestamps_follow_dropouts_and_other_clocks() -> None:
    out = Builder(start_us=0).flags().format("n:uint16_t timestamp;").format(TICK)
    out.subscribe("n", 0).subscribe("tick", 1)
    out.data(0, struct.pack("<H", 100)).dropout(200).data(0, struct.pack("<H", 205_000 % 65536))
    out.data(1, tick(900_000)).data(0, struct.pack("<H", 900_400 % 65536))
    times = [row.time for row in read(out.bytes()).segments[0].records["n"]]
    assert times == [100, 205_000, 900_400]


# ------------------------------------------------------------------ damage


def test_cut_at_every_byte_only_the_end_is_missing() -> None:
    data = builder.tiny()
    whole = read(data)
    ends = {row.offset + len(row.payload) for rows in whole.segments[0].records.values() for row in rows}
    for size in range(16, len(data)):
        log = read(data[:size])
        assert sum(log.counts.values()) == sum(end <= size for end in ends)
        assert log.lost in ([], [(log.lost[0][0], size)] if log.lost else [])


@pytest.mark.parametrize("junk", [b"\0" * 500, b"\xff" * 3, b"\xff" * 700, bytes(range(256)), b"D", b"SSSS"])
def test_records_after_junk_are_found(junk: bytes) -> None:
    out = ticks(started(), range(20))
    at = len(out)
    ticks(out.junk(junk), range(20, 40))
    log = read(out.bytes())
    assert [row["timestamp"] for row in log.topics["tick"]] == list(range(40))
    assert log.lost == [(at, at + len(junk))]


def test_chain_needs_six_records_or_end_of_file() -> None:
    def after_junk(count: int, tail: bytes) -> int:
        out = ticks(started(), range(3)).junk(b"\0" * 9)
        return len(numbers(ticks(out, range(3, 3 + count)).junk(tail).bytes())) - 3

    broken = b"\0" * 9
    cut = Builder().data(0, tick(99)).bytes()[16:-2]
    assert [after_junk(n, broken) for n in (5, 6)] == [0, 6]
    assert [after_junk(n, b"") for n in (0, 1)] == [0, 1]
    assert [after_junk(n, cut) for n in (1, 2)] == [0, 2]
    assert after_junk(3, cut[:2]) == 0  # two bytes are no header


def test_wrong_length_loses_one_record() -> None:
    """pyulog 1.3.0 ends silently at the second kind, and loses all later records."""
    for size in (3, 0, 1, 60_000):
        out = ticks(started(), range(10)).raw("D", b"\0\0" + tick(77), size=size)
        ticks(out, range(10, 20))
        assert numbers(out.bytes()) == list(range(20))


def test_other_topic_for_used_id_begins_segment() -> None:
    out = ticks(started().format("tock:uint64_t timestamp;uint32_t n;"), range(4)).subscribe("tick", 0)
    ticks(out, range(4, 6))
    at = len(out)
    ticks(out.subscribe("tock", 0), range(6, 9))
    first, second = read(out.bytes()).segments
    assert list(first.counts.values()) == [6]
    assert (second.offset, list(second.counts)) == (at, ["tock"])


def test_released_id_can_be_assigned_again() -> None:
    out = ticks(started().format("tock:uint64_t timestamp;uint32_t n;"), range(4))
    ticks(out.unsubscribe(0).data(0, tick(4)).subscribe("tock", 0), range(3))
    log = read(out.bytes())
    assert log.counts == {"tick": 5, "tock": 3}


def test_older_times_after_damage_begin_segment() -> None:
    s = 1_000_000
    out = ticks(started().format("tock:uint64_t timestamp;uint32_t n;"), range(10 * s, 20 * s, s))
    out.junk(b"\0" * 11).subscribe("tock", 1)
    at = len(out) - 10
    ticks(out.data(1, tick(3 * s)), range(4 * s, 14 * s, s))
    first, second = read(out.bytes()).segments
    assert first.counts == {"tick": 10}
    assert second.counts == {"tock": 1, "tick": 10}
    assert second.offset == at
    # The same times without damage before them, or not far enough back, are one segment.
    again = ticks(ticks(started(), range(10 * s, 20 * s, s)), range(4 * s, 14 * s, s))
    assert len(read(again.bytes()).segments) == 1
    near = ticks(ticks(started(), range(10 * s, 20 * s, s)).junk(b"\0" * 11), range(17 * s, 30 * s, s))
    assert len(read(near.bytes()).segments) == 1


@pytest.mark.parametrize("what", [b"Fsensor_combined", b"\0sensor_combined"], ids=["format", "subscription"])
def test_single_bit_flip_in_definition(what: bytes) -> None:
    """Without *orphans*, nearly all topics are lost; with it, only this topic."""
    data = bytearray(builder.flight(4))
    whole = read(bytes(data)).counts
    data[data.index(what) + 4] ^= 1
    bare, kind = read(bytes(data)), read(bytes(data), orphans=True)
    assert sum(bare.counts.values()) < 0.1 * sum(whole.values())
    del whole["sensor_combined"]
    assert kind.counts == whole
