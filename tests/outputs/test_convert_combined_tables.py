"""One table of several channels, long or aligned, in every format."""

from __future__ import annotations

import csv
import json
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import logreel
from logreel.errors import DefinitionError, LogError, UsageError
from logreel.layout.layout import Layout
from logreel.log.log import Channel
from logreel.ops.query import record_batches
from logreel.outputs import write as making_module
from logreel.outputs.tables import columnar, combined
from support.builders.sample_logs import hostile, short_flight, tiny
from support.samples.bddf.builder import walk
from support.samples.rosbag.builder import drive
from support.samples.ulog.builder import Builder

SUFFIXES = (".parquet", ".arrow", ".csv", ".ndjson")
Rows = list[tuple[Any, ...]]


def read(path: Path) -> Rows:
    """The rows of a table as plain values, the time in ns."""
    if path.suffix == ".ndjson":
        return [tuple(json.loads(line).values()) for line in path.read_text().splitlines()]
    if path.suffix == ".csv":
        with open(path, newline="") as text:
            return [tuple(row) for row in csv.reader(text)][1:]
    table = pq.read_table(path) if path.suffix == ".parquet" else pa.ipc.open_file(path).read_all()
    first = table["time"].cast(pa.int64())
    return list(zip(first.to_pylist(), *(c.to_pylist() for c in table.columns[1:]), strict=True))


def long_rows(log: logreel.Log, topics: list[str]) -> dict[tuple[str, str], list[tuple[int, Any]]]:
    """Times and values by topic and field, of the flat table of each channel."""
    found: dict[tuple[str, str], list[tuple[int, Any]]] = {}
    for topic in topics:
        table = log[topic].to_arrow().combine_chunks()
        times = table["time"].cast(pa.int64()).to_pylist()
        for batch in table.to_batches():
            names, arrays = record_batches.flatten(batch)
            for name, array in zip(names[1:], arrays[1:], strict=True):
                if pa.types.is_temporal(array.type):
                    array = array.cast(pa.int64())
                found[topic, name] = [
                    (t, v) for t, v in zip(times, array.to_pylist(), strict=True) if v is not None
                ]
    return {key: rows for key, rows in found.items() if rows}


def value_of(value: float | None, text: str | None) -> Any:
    """Return the value in a row of a long table."""
    if value is None:
        return text
    return int(text) if text is not None else value


@pytest.mark.parametrize(
    "data", [tiny(), drive(), walk(1.0), hostile()], ids=["ulog", "bag", "bddf", "hostile"]
)
@pytest.mark.parametrize("rows", [50, combined.LONG_ROWS])
def test_a_long_table_has_every_value(
    data: bytes, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(combined, "LONG_ROWS", rows)
    log = logreel.open(data)
    small = [ch.topic for ch in log.channels.values() if 0 < ch.bytes < 300_000 and ch.topic[0] != "~"]
    done = logreel.convert(log, tmp_path / "x.parquet", topics=small, layout="long")
    got: dict[tuple[str, str], list[tuple[int, Any]]] = {}
    for time, topic, field, value, text in read(tmp_path / "x.parquet"):
        got.setdefault((topic, field), []).append((time, value_of(value, text)))
    want = long_rows(log, small)
    assert repr({key: [(t, float(v) if isinstance(v, bool | int) and abs(v) <= 1 << 53 else v) for t, v in found]
                 for key, found in want.items()}) == repr(got)  # fmt: skip
    assert done.rows == sum(map(len, want.values()))
    assert {one.topic: one.rows for one in done.channels} == {t: log[t].to_arrow([]).num_rows for t in small}
    schema = pq.read_schema(tmp_path / "x.parquet")
    assert schema.names == ["time", "topic", "field", "value", "text"]
    assert schema.metadata[b"source"] == b"<bytes>"


def test_integers_keep_their_digits(tmp_path: Path) -> None:
    out = Builder(1).flags().format("n:uint64_t timestamp;uint64_t u;int64_t i;").subscribe("n", 0)
    for u, i in ((1 << 53, -(1 << 53)), ((1 << 53) + 1, -(1 << 53) - 1), ((1 << 64) - 1, -(1 << 63))):
        out.data(0, struct.pack("<QQq", 5, u, i))
    logreel.convert(out.bytes(), tmp_path / "x.csv", layout="long")
    found = [(field, float(value), text) for _, _, field, value, text in read(tmp_path / "x.csv")[3:]]
    assert found == [
        ("u", 2.0**53, ""),
        ("u", 2.0**53, "9007199254740993"),
        ("u", 2.0**64, "18446744073709551615"),
        ("i", -(2.0**53), ""),
        ("i", -(2.0**53), "-9007199254740993"),
        ("i", -(2.0**63), "-9223372036854775808"),
    ]


@pytest.mark.parametrize(
    "options", [{"layout": "long"}, {"align": "nearest", "rate": "3Hz", "tolerance": "20ms"}]
)
def test_all_formats_hold_the_same_rows(options: dict[str, str], tmp_path: Path) -> None:
    log = logreel.open(short_flight())
    done = {
        suffix: logreel.convert(
            log, tmp_path / f"x{suffix}", topics=["sensor_gps", "battery_status"], **options
        )  # type: ignore[arg-type]
        for suffix in SUFFIXES
    }
    parquet, *others = (read(tmp_path / f"x{suffix}") for suffix in SUFFIXES)
    assert {one.rows for one in done.values()} == {len(parquet)}
    assert {one.as_dict()["shared"] for one in done.values()} == {len(parquet)}
    assert repr(others[0]) == repr(parquet)
    assert repr(others[2]).replace("'NaN'", "nan") == repr(parquet)
    for row, text in zip(parquet, others[1], strict=True):
        if options.get("layout"):
            assert [float(text[0]), text[1:3]] == [row[0], row[1:3]]
            assert repr(float(text[3])) == repr(row[3])


def test_an_aligned_table_is_that_of_align(tmp_path: Path) -> None:
    log = logreel.open(short_flight())
    topics = ["sensor_gps", "vehicle_attitude"]
    done = logreel.convert(
        log,
        tmp_path / "x.parquet",
        topics=topics,
        align="previous",
        rate=20,
        tolerance="70ms",
        start="+1s",
        end="+3s",
    )
    want = logreel.align(log, topics, rate=20, tolerance="70ms", start="+1s", end="+3s")
    got = pq.read_table(tmp_path / "x.parquet")
    assert got.schema.equals(want.schema)
    assert repr(got.to_pylist()) == repr(want.to_pylist())
    answered = len(want) - want["sensor_gps.timestamp"].null_count
    assert [one.rows for one in done.channels] == [answered, len(want)]
    assert 0 < answered < len(want) == done.rows == 40


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("x.csv/", {"layout": "long"}, "leave out the slash"),
        ("x.csv", {"layout": "tall"}, "known: wide, long"),
        ("x.kml", {"layout": "long"}, "holds no table"),
        ("x.jpg/", {"align": "nearest", "rate": 1}, "holds no table"),
        ("x.mcap", {"layout": "long"}, "holds no table"),
        ("x.csv", {"rate": "5Hz"}, "choose how with align="),
        ("x.csv", {"align": "nearest"}, "either a rate or a channel"),
        ("x.csv", {"align": "nearest", "rate": 1, "layout": "long"}, "aligned in time is wide"),
        ("x.csv", {"layout": "long", "utc": True}, "does not tell"),
    ],
)
def test_options_that_cannot_be_combined_raise_usage_errors(
    tmp_path: Path, name: str, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        logreel.convert(tiny(), f"{tmp_path}/{name}", **options)
    assert not list(tmp_path.iterdir())


def test_channels_without_a_usable_definition_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unusable(ch: Channel) -> Layout:
        if ch.topic in bad:
            raise DefinitionError("no such type")
        return ch._info.layout()

    monkeypatch.setattr(Channel, "layout", property(unusable))
    bad = {"pair"}
    for options in ({"layout": "long"}, {"align": "nearest", "rate": 1}):
        done = logreel.convert(tiny(), tmp_path / "x.csv", topics=["pair", "rate"], force=True, **options)  # type: ignore[arg-type]
        assert done.skipped == ("channel 'pair' was left out: no such type",)
        assert [one.file for one in done.channels] == [None, "x.csv"]
        with pytest.raises(LogError, match="nothing could be written"):
            logreel.convert(tiny(), tmp_path / "y.csv", topics=["pair"], **options)  # type: ignore[arg-type]


def test_a_type_that_the_output_cannot_store_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def months(*_: object) -> Any:
        batch = pa.RecordBatch.from_arrays([pa.array([(1, 2, 3)], pa.month_day_nano_interval())], ["months"])
        return batch.schema, iter([batch])

    monkeypatch.setattr(making_module, "aligned_table", months)
    with pytest.raises(LogError, match="cannot be written"):
        logreel.convert(tiny(), tmp_path / "x.parquet", align="nearest", rate=1)
    assert not list(tmp_path.iterdir())


def test_row_groups_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = logreel.open(short_flight())
    n = len(log["vehicle_attitude"])
    for rows, size, batch in ((100, 1 << 30, 30), (100, 1 << 30, 1000), (1 << 30, 1, 50)):
        monkeypatch.setattr(columnar, "GROUP_ROWS", rows)
        monkeypatch.setattr(columnar, "GROUP_BYTES", size)
        monkeypatch.setattr(record_batches, "ROWS", batch)
        logreel.convert(log, tmp_path / "x.parquet", topics="vehicle_attitude", force=True)
        meta = pq.ParquetFile(tmp_path / "x.parquet").metadata
        groups = [meta.row_group(i).num_rows for i in range(meta.num_row_groups)]
        assert sum(groups) == n
        assert max(groups) <= 130
        assert len(groups) <= n // 50 + 1
        assert meta.row_group(0).column(0).compression == "ZSTD"


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_a_table_has_its_source_as_metadata(suffix: str, tmp_path: Path) -> None:
    log = logreel.open(drive())
    path = tmp_path / f"x{suffix}"
    logreel.convert(log, path, topics="/imu")
    schema = pq.read_schema(path) if suffix == ".parquet" else pa.ipc.open_file(path).schema
    told = {key.decode(): value.decode() for key, value in schema.metadata.items()}
    assert told == {
        "topic": "/imu", "type": "sensor_msgs/Imu", "epoch": "unix", "source": "<bytes>", "format": "rosbag",
        "encoding": "ros1msg", "definition": log["/imu"].schema.text,
    }  # fmt: skip
