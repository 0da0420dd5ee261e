"""Every table output equals ``Channel.to_arrow``."""

from __future__ import annotations

import base64
import csv
import json
import math
import os
import struct
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv as arrow_csv

import logreel
from logreel.errors import LogError, TopicError, UnsupportedError, UsageError
from logreel.ops.query import record_batches
from logreel.outputs import convert as convert_module
from logreel.outputs.registry import OUTPUTS, Job
from logreel.outputs.tables.ndjson import decoded
from logreel.registry.registry import Lazy
from support.builders.sample_logs import damaged, hostile, incompatible, short_flight, tiny
from support.samples.ulog.builder import Builder


@pytest.fixture
def log() -> logreel.Log:
    return logreel.open(short_flight())


def read(path: Path) -> pa.Table:
    if path.suffix == ".parquet":
        return pq.ParquetFile(path).read()
    with pa.ipc.open_file(path) as reader:
        return reader.read_all()


def manifest(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    return found


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
@pytest.mark.parametrize("rows", [7, record_batches.ROWS])
def test_written_tables_read_back_equal(
    log: logreel.Log, tmp_path: Path, suffix: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_batches, "ROWS", rows)
    source = log if rows == record_batches.ROWS and rows > 7 else logreel.open(tiny())
    done = logreel.convert(source, f"{tmp_path}/x{suffix}/", flatten=suffix != ".parquet")
    files = {one["topic"]: one["file"] for one in manifest(tmp_path / f"x{suffix}")["channels"]}
    assert {one.topic for one in done.channels if one.file} == {
        ch.topic for ch in source.channels.values() if len(ch)
    }
    for topic, file in files.items():
        if file is not None:
            want, got = source[topic].to_arrow(), read(tmp_path / f"x{suffix}" / file)
            # Tables that hold NaN do not equal themselves: compare what Arrow would write instead.
            assert got.schema.equals(want.schema)
            assert repr(got.to_pylist()) == repr(want.to_pylist())
    assert sorted(os.listdir(tmp_path / f"x{suffix}")) == sorted(
        [*filter(None, files.values()), "manifest.json"]
    )


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_nan_keeps_its_bits(tmp_path: Path, suffix: str) -> None:
    log = logreel.open(hostile())
    logreel.convert(log, tmp_path / f"odd{suffix}", topics="odd")
    want, got = log["odd"]["value"], read(tmp_path / f"odd{suffix}")["value"].to_numpy()
    assert want.tobytes() == got.tobytes()


def test_csv_values_are_exact(log: logreel.Log, tmp_path: Path) -> None:
    logreel.convert(log, f"{tmp_path}/x.csv/")
    for one in manifest(tmp_path / "x.csv")["channels"]:
        if one["file"] is None:
            continue
        table = log[one["topic"]].to_arrow().combine_chunks()
        names, arrays = record_batches.flatten(table.to_batches()[0])
        types = dict(zip(["time_ns", *names[1:]], [pa.int64(), *(a.type for a in arrays[1:])], strict=True))
        got = arrow_csv.read_csv(
            tmp_path / "x.csv" / one["file"],
            parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(column_types=types, null_values=[]),
        )
        assert got.schema.names == list(types)
        assert got["time_ns"].to_pylist() == log[one["topic"]].times.tolist()
        for name, want in zip(names[1:], arrays[1:], strict=True):
            assert repr(got[name].to_pylist()) == repr(want.to_pylist()), name


def test_csv_columns_are_flat(tmp_path: Path) -> None:
    logreel.convert(tiny(), tmp_path / "pair.csv", topics="pair")
    with open(tmp_path / "pair.csv", newline="") as text:
        rows = list(csv.reader(text))
    assert rows[0] == [
        "time_ns", "timestamp", "flag", "cells[0].volt", "cells[0].id", "cells[1].volt", "cells[1].id"
    ]  # fmt: skip
    assert rows[1] == ["1000000000", "1000000", "1", "3.5", "1", "3.625", "2"]
    assert len(rows) == 9


def test_csv_in_utc_has_times_that_read_back(log: logreel.Log, tmp_path: Path) -> None:
    logreel.convert(log, tmp_path / "x.csv", topics="sensor_gps", utc=True)
    got = arrow_csv.read_csv(tmp_path / "x.csv")
    assert pa.types.is_timestamp(got["time"].type)
    assert log.utc_offset is not None
    times = (log["sensor_gps"].times + log.utc_offset).tolist()
    assert got["time"].cast(pa.timestamp("ns")).cast(pa.int64()).to_pylist() == times


def test_flatten_writes_variable_arrays_and_bytes_as_text() -> None:
    batch = pa.RecordBatch.from_pydict(
        {
            "time": pa.array([1, 2], pa.duration("ns")),
            "list": [[1.5, float("nan")], []],
            "blob": [b"\x00\xff", None],
            "wide": pa.array([[0] * 2000] * 2, pa.list_(pa.uint8(), 2000)),
            "pair": pa.array([[1, 2], None], pa.list_(pa.int8(), 2)),
            "in": [{"a": 1, "b": {"c": "x"}}, {"a": 2, "b": None}],
        }
    )
    names, arrays = record_batches.flatten(batch.slice(0, 2))
    found = dict(zip(names, (a.to_pylist() for a in arrays), strict=True))
    assert names == ["time", "list", "blob", "wide", "pair[0]", "pair[1]", "in.a", "in.b.c"]
    assert found["list"] == ['[1.5, "NaN"]', "[]"]
    assert found["blob"] == ["AP8=", None]
    assert json.loads(found["wide"][0]) == [0] * 2000
    assert (found["pair[1]"], found["in.b.c"]) == ([2, None], ["x", None])
    names, arrays = record_batches.flatten(batch.slice(1, 1))
    assert [a.to_pylist() for a in arrays][-2:] == [[2], [None]]
    assert record_batches.distinct(["time", "time", "time_2", "x"]) == ["time", "time_3", "time_2", "x"]  # type: ignore[attr-defined]


def test_ndjson_has_every_message_in_time_order(log: logreel.Log, tmp_path: Path) -> None:
    done = logreel.convert(log, tmp_path / "x.ndjson")
    lines = [json.loads(line) for line in (tmp_path / "x.ndjson").read_text().splitlines()]
    topics = [name for name, ch in log.channels.items() if len(ch) or name[0] != "~"]
    assert [(one["topic"], one["time_ns"]) for one in lines] == [
        (message.channel.topic, message.time) for message in log.messages(topics)
    ]
    assert all(list(one) == ["topic", "time_ns", "data"] for one in lines)
    assert [one["time_ns"] for one in lines] == sorted(one["time_ns"] for one in lines)
    q = next(one["data"]["q"] for one in lines if one["topic"] == "vehicle_attitude")
    assert q == log["vehicle_attitude"]["q"][0].tolist()
    assert done.rows == len(lines)
    assert "~text" in {one["topic"] for one in lines}


def test_ndjson_writes_nan_infinity_and_bytes(tmp_path: Path) -> None:
    logreel.convert(hostile(), tmp_path / "x.ndjson", topics="odd")
    values = [json.loads(line)["data"]["value"] for line in (tmp_path / "x.ndjson").read_text().splitlines()]
    assert values == [1.5, "NaN", "Infinity", "-Infinity"]
    out = Builder(1).flags().format("blob:uint64_t timestamp;uint64_t n;").subscribe("blob", 0)
    raw = (
        out.data(0, struct.pack("<QQ", 5, (1 << 64) - 1)).subscribe("missing", 1).data(1, b"\x01\xff").bytes()
    )
    logreel.convert(raw, tmp_path / "y.ndjson", topics=["blob", "missing"])
    lines = map(json.loads, (tmp_path / "y.ndjson").read_text().splitlines())
    found = {one["topic"]: one["data"] for one in lines}
    assert found["blob"]["n"] == (1 << 64) - 1
    assert base64.b64decode(found["missing"]["data"]) == b"\x01\xff"


def test_ndjson_adds_utc_times(log: logreel.Log, tmp_path: Path) -> None:
    logreel.convert(log, tmp_path / "x.ndjson", topics="sensor_gps", utc=True)
    first = json.loads((tmp_path / "x.ndjson").read_text().splitlines()[0])
    assert list(first) == ["topic", "time_ns", "utc", "data"]
    assert first["utc"].startswith("2025-05-17T")


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".arrow", ".ndjson"])
def test_an_interval_is_half_open(log: logreel.Log, tmp_path: Path, suffix: str) -> None:
    times = log["sensor_accel"].times
    lo, hi = int(times[3]), int(times[20])
    done = logreel.convert(log, tmp_path / f"x{suffix}", topics="sensor_accel", start=lo, end=f"{hi}ns")
    assert done.rows == 17
    if suffix in (".parquet", ".arrow"):
        got = read(tmp_path / f"x{suffix}")["time"].cast(pa.int64()).to_pylist()
        assert got == times[3:20].tolist()


def test_batches_together_are_the_table(log: logreel.Log) -> None:
    ch = log["sensor_accel"]
    lo, hi = int(ch.times[3]), int(ch.times[100])
    for start, end in ((None, None), (lo, hi), (hi, hi)):
        parts = list(ch.batches(10, ["x"], start, end))
        assert all(part.num_rows <= 10 for part in parts)
        want = ch.to_arrow(["x"], start, end)
        assert pa.Table.from_batches(parts, want.schema).equals(want)
    assert next(ch.batches(10, utc=True)).schema[0].type == pa.timestamp("ns", "UTC")


def test_large_messages_mean_small_batches() -> None:
    class Large:
        bytes = 1000 * 8_000_000

        def __len__(self) -> int:
            return 1000

    assert record_batches.rows_per_batch(Large()) == 2  # type: ignore[arg-type]


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".arrow"])
def test_an_empty_channel_alone_is_a_file_without_rows(log: logreel.Log, tmp_path: Path, suffix: str) -> None:
    empty = next(topic for topic, ch in log.channels.items() if not len(ch))
    assert logreel.convert(log, tmp_path / f"x{suffix}", topics=empty).rows == 0
    assert (tmp_path / f"x{suffix}").stat().st_size > 0
    done = logreel.convert(log, f"{tmp_path}/y{suffix}/", topics=empty)
    assert done.channels[0].file is None


def test_the_manifest_lists_source_channels_and_problems(log: logreel.Log, tmp_path: Path) -> None:
    logreel.convert(log, f"{tmp_path}/x.parquet/", start="+1s")
    found = manifest(tmp_path / "x.parquet")
    assert list(found) == [
        *("logreel_manifest", "made_by", "source", "interval", "utc", "interpolate"),
        *("channels", "skipped", "metadata", "problems"),
    ]
    assert found["source"]["format"] == log.format
    assert found["interval"] == {"start_ns": (log.start or 0) + 10**9, "end_ns": None}
    assert {one["topic"] for one in found["channels"]} >= {"sensor_accel[1]", "~parameter"}


def test_progress_counts_messages(log: logreel.Log, tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    logreel.convert(log, f"{tmp_path}/x.arrow/", progress=lambda done, total: calls.append((done, total)))
    total = sum(len(ch) for ch in log.channels.values())
    assert calls[-1] == (total, total)


def test_wrong_options_raise_usage_errors(log: logreel.Log, tmp_path: Path) -> None:
    for name, topics, kind, why in (
        (
            "x.doc",
            None,
            UsageError,
            r"known: \.parquet/, \.csv/, \.arrow/, \.ndjson, \.jpg/, \.ply/, \.mp4/, \.rrd, \.kml, \.gpx, \.geojson, "
            r"\.tum, \.kitti, \.euroc, \.xosc, \.osi\.mcap, \.pcap/,",
        ),
        ("x", None, UsageError, "names no output"),
        ("x.parquet", None, UsageError, r"channels do not fit into one file; write the folder .*x.parquet/"),
        ("x.ndjson/", None, UsageError, "leave out the slash"),
        ("x.csv/", "nothing", TopicError, "no channel 'nothing'"),
        ("no/x.csv/", None, LogError, "no such folder"),
    ):
        with pytest.raises(kind, match=why):
            logreel.convert(log, f"{tmp_path}/{name}", topics=topics)
    with pytest.raises(UsageError, match="does not tell how its clock"):
        logreel.convert(tiny(), f"{tmp_path}/x.csv/", utc=True)
    with pytest.raises(UnsupportedError):
        logreel.convert(incompatible(), f"{tmp_path}/x.csv/")
    assert list(tmp_path.iterdir()) == []


def test_the_log_itself_is_never_the_output(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_bytes(tiny())
    with pytest.raises(UsageError, match="same file"):
        logreel.convert(tmp_path / "log.csv", tmp_path / "log.csv", topics="pair", force=True)
    logreel.convert(tiny(), f"{tmp_path}/x.csv/")
    (tmp_path / "x.csv" / "log.ulg").write_bytes(tiny())
    with pytest.raises(LogError, match="holds the log itself"):
        logreel.convert(tmp_path / "x.csv" / "log.ulg", f"{tmp_path}/x.csv/", force=True)


def test_existing_output_is_kept_without_force(tmp_path: Path) -> None:
    for name, topics in (("x.csv/", None), ("x.ndjson", None), ("one.parquet", "pair")):
        logreel.convert(tiny(), f"{tmp_path}/{name}", topics=topics)
        with pytest.raises(LogError, match="exists already"):
            logreel.convert(tiny(), f"{tmp_path}/{name}", topics=topics)
        logreel.convert(tiny(), f"{tmp_path}/{name}", topics=topics, force=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["one.parquet", "x.csv", "x.ndjson"]


@pytest.mark.parametrize("name", ["x.parquet/", "x.csv/", "x.arrow/", "x.ndjson", "x.parquet", "x.csv"])
def test_a_failed_conversion_leaves_no_files(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(job: Job, topic: str, rows: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Job, "count_rows", full)
    with pytest.raises(OSError, match="No space left"):
        logreel.convert(tiny(), f"{tmp_path}/{name}", topics=None if "/" in name or "nd" in name else "pair")
    assert list(tmp_path.iterdir()) == []


def test_a_type_that_the_output_cannot_store_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def months(self: Job, ch: logreel.Channel) -> Any:
        kind = pa.month_day_nano_interval()
        batch = pa.RecordBatch.from_arrays([pa.array([(1, 2, 3)], kind)], ["months"])
        return batch.schema, iter([batch]), True

    monkeypatch.setattr(convert_module.Job, "table", months)  # type: ignore[attr-defined]
    with pytest.raises(LogError, match="channel 'pair' cannot be written"):
        logreel.convert(tiny(), tmp_path / "x.parquet", topics="pair")
    with pytest.raises(LogError, match="nothing could be written: channel 'pair' was left out"):
        logreel.convert(tiny(), f"{tmp_path}/x.parquet/", topics="pair")
    assert list(tmp_path.iterdir()) == []


def test_channels_that_cannot_be_written_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = logreel.open(tiny())

    def broken(self: Job, ch: logreel.Channel) -> Any:
        if ch.topic == "pair":
            raise logreel.DefinitionError("no such type")
        return table(self, ch)

    table = Job.table
    monkeypatch.setattr(convert_module.Job, "table", broken)  # type: ignore[attr-defined]
    done = logreel.convert(log, f"{tmp_path}/x.csv/")
    assert done.skipped == ("channel 'pair' was left out: no such type",)
    assert "pair.csv" not in os.listdir(tmp_path / "x.csv")
    with pytest.raises(LogError, match="nothing could be written"):
        logreel.convert(log, f"{tmp_path}/y.csv/", topics="pair")


def test_messages_that_cannot_be_decoded_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    log = logreel.open(tiny())
    problem = logreel.Problem("truncated", 0, 1, True, "too short")

    def broken(self: logreel.Channel, *_: object) -> Any:
        raise logreel.DamagedError(problem)

    monkeypatch.setattr(logreel.Channel, "decode", broken)
    skipped: list[str] = []
    assert list(decoded(log, log.match("rate*"), None, None, skipped)) == []
    assert skipped[0].startswith("8 messages of 'rate' left out: too short")


def test_the_intact_part_of_a_damaged_log_is_converted(tmp_path: Path) -> None:
    log = logreel.open(damaged())
    done = logreel.convert(log, f"{tmp_path}/x.parquet/")
    assert done.rows == sum(len(ch) for ch in log.channels.values())
    assert manifest(tmp_path / "x.parquet")["problems"][0]["lost"] is True


def test_every_output_has_a_writer() -> None:
    assert all(callable(cast(Lazy, output.write).load()) for output in OUTPUTS.own().values())
    assert not any(math.isnan(len(output.title)) for output in OUTPUTS.own().values())
