"""Channels and logs as containers of Python, NumPy, Arrow and pandas."""

from __future__ import annotations

import copy
import json
import pickle
import struct
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import logreel
from logreel.cli.convert import convert
from logreel.cli.exits import sentence
from logreel.errors import LogError, NotFoundError, UsageError
from support.samples.ulog.builder import flight, tiny

S = 10**9
START = 1_700_000_000 * S
FIX = logreel.Schema(
    "pkg/Fix", "ros1msg", "float64 latitude\ntime time\nstring name\nint32[2] pair\nbool ok\nuint64 count\n"
)


def fix(i: int, broken: bool) -> bytes:
    body = struct.pack("<dII", i / 2, 100 + i, 5) + struct.pack("<I", 2) + b"ab"
    whole = body + struct.pack("<ii?Q", i, -i, True, 2**60 + i)
    return whole[:14] if broken else whole


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """50 messages with a field called time, of which every sixth is truncated."""
    path = tmp_path / "broken.bag"
    with logreel.create(path) as w:
        channel = w.add_channel("/fix", FIX)
        for i in range(50):
            w.write(channel, START + i * S, fix(i, i % 6 == 0))
    return path


@pytest.fixture
def poses(tmp_path: Path) -> Path:
    path = tmp_path / "poses.bag"
    with logreel.create(path) as w:
        channel = w.add_channel("/pose", logreel.Schema("geometry_msgs/Pose", "ros1msg", ""))
        for i in range(10):
            pose = {"position": {"x": i, "y": 2.0, "z": 3.0}, "orientation": {"w": 1.0}}
            w.write(channel, START + i * S, pose)
    return path


@pytest.fixture
def ulg(tmp_path: Path) -> Path:
    path = tmp_path / "flight.ulg"
    path.write_bytes(flight())
    return path


# ------------------------------------------------------------------------------------------------- containers


def test_log_is_a_mapping_of_channels_equal_only_to_itself(ulg: Path) -> None:
    log, other = logreel.open(ulg), logreel.open(ulg)
    assert isinstance(log, Mapping)
    assert list(log) == list(log.keys()) == [ch.topic for ch in log.values()]
    assert dict(log.items()) == dict(log.channels)
    assert len(log) == len(log.channels)
    assert log.get("nothing") is None
    assert log == log
    assert log != other
    assert hash(log) != hash(other)
    assert log.duration == log.end - log.start  # type: ignore[operator]


def test_log_without_messages_has_no_duration(tmp_path: Path) -> None:
    with logreel.create(tmp_path / "empty.bag"):
        pass
    log = logreel.open(tmp_path / "empty.bag")
    assert (log.duration, len(log), bool(log)) == (None, 0, True)


def test_channel_is_a_sequence_of_messages(ulg: Path) -> None:
    log = logreel.open(ulg)
    ch = log["sensor_gps"]
    every = list(ch)
    assert len(every) == len(ch)
    assert [m.time for m in every] == ch.times.tolist()
    assert [m.time for m in reversed(ch)] == ch.times[::-1].tolist()
    assert every == list(log.messages("sensor_gps", order="file"))
    for key in (0, 1, -1, np.int64(2)):
        assert ch[key] == every[key]
    for part in (
        slice(10),
        slice(-3, None),
        slice(5, 100, 7),
        slice(None, None, -1),
        slice(20, 3, -4),
        slice(5, 5),
    ):
        assert ch[part] == every[part]
    for beyond in (len(ch), -len(ch) - 1):
        with pytest.raises(IndexError, match=f"sensor_gps has {len(ch)} messages"):
            ch[beyond]
    for wrong in (1.5, None, True, b"lat", {"lat"}):
        with pytest.raises(UsageError, match="fields, messages and slices"):
            ch[wrong]  # type: ignore[call-overload]


def test_channel_gives_fields_and_times_by_key(ulg: Path) -> None:
    ch = logreel.open(ulg)["vehicle_attitude"]
    assert ch[["q", "timestamp"]].schema.names == ["time", "q", "timestamp"]
    assert ch[["time", "q"]].schema.names == ["time", "q"]
    assert ch["time"].dtype == np.int64
    np.testing.assert_array_equal(ch["time"], ch.times)
    assert "q" in ch
    assert "q[0]" in ch
    assert "time" in ch
    assert "nothing" not in ch
    assert ch[0] in ch


def test_other_libraries_read_channels_as_arrow_streams(ulg: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    duckdb, pl = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    ch = logreel.open(ulg)["vehicle_attitude"]
    assert pa.table(ch) == ch.to_arrow()
    assert pl.DataFrame(ch).shape == (len(ch), len(ch.fields) + 1)
    assert duckdb.sql("select count(*) from ch").fetchall() == [(len(ch),)]
    monkeypatch.setattr("logreel.log.tables.STREAM_BYTES", 10_000)
    assert pa.RecordBatchReader.from_stream(ch).read_next_batch().num_rows == 1
    assert pa.table(ch) == ch.to_arrow()


def test_notebook_html_is_escaped(tmp_path: Path) -> None:
    evil = '/<script>alert(1)</script>&"'
    with logreel.create(tmp_path / "evil.mcap") as w:
        w.write(w.add_channel(evil, FIX), START, fix(1, False))
    log = logreel.open(tmp_path / "evil.mcap")
    for html in (log._repr_html_(), log[evil]._repr_html_()):
        assert "<script" not in html
        assert "&lt;script&gt;" in html
    assert log._ipython_key_completions_() == [evil]
    assert {"time", "time_2", "latitude"} <= {*log[evil]._ipython_key_completions_()}


def test_public_objects_have_short_reprs(ulg: Path, tmp_path: Path) -> None:
    log = logreel.open(ulg)
    ch = log["vehicle_attitude"]
    every = [
        log, ch, ch[0], ch.layout, ch.schema, log.index, logreel.info(log), logreel.stats(log)[0], logreel.check(log),
        logreel.diff(log, log), logreel.slice(log, tmp_path / "s.ulg"), logreel.convert(log, f"{tmp_path}/x.csv/"),
        logreel.play(log), logreel.known_formats()["ulog"],
    ]  # fmt: skip
    for one in every:
        assert len(repr(one)) < 600
        assert repr(one).count("\n") < 5


# --------------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize("rows", [0, -1, 1.5, True, "10", None])
def test_batches_of_less_than_one_row_are_refused(ulg: Path, rows: Any) -> None:
    with pytest.raises(UsageError, match="1 row or more"):
        logreel.open(ulg)["sensor_gps"].batches(rows)


def test_single_string_is_one_field_topic_or_definition(ulg: Path, tmp_path: Path) -> None:
    log = logreel.open(ulg)
    ch = log["battery_status"]
    assert ch.to_arrow("voltage_v").schema.names == ["time", "voltage_v"]
    assert list(ch.to_numpy("voltage_v")) == ["time", "voltage_v"]
    assert next(ch.batches(10, "voltage_v")).schema.names == ["time", "voltage_v"]
    assert log.table("battery_status", "voltage_v").schema.names == ["time", "voltage_v"]
    table = logreel.align(log, {"battery_status": "voltage_v"}, rate=1)
    assert table.schema.names == ["time", "battery_status.voltage_v"]
    done = logreel.slice(log, tmp_path / "s.ulg", topics="sensor_*", exclude="sensor_gps")
    assert {ch.topic for ch in done.channels} >= {"sensor_accel"}
    assert "sensor_gps" not in logreel.open(done.path)
    (tmp_path / "x.msg").write_text("float32 a\n")
    for definitions in (str(tmp_path / "x.msg"), tmp_path / "x.msg"):
        assert logreel.open(ulg, definitions=definitions).definitions == (tmp_path / "x.msg",)
    wrong: list[Any] = [5, [1], [None]]
    for fields in wrong:
        with pytest.raises(UsageError, match="is not a name"):
            ch.to_arrow(fields)
        with pytest.raises(UsageError, match="is not a name"):
            log.messages(fields)
    for topic in (5, b"x", None):
        assert log.get(topic) is None
        assert topic not in log


def test_stats_accepts_a_path(ulg: Path) -> None:
    assert logreel.stats(ulg) == logreel.stats(logreel.open(ulg))


def test_mappings_of_a_log_are_read_only(ulg: Path) -> None:
    log = logreel.open(ulg)
    mappings: list[Any] = [
        log.metadata,
        log.channels,
        log.attachments,
        log.parameters,
        log["sensor_gps"].metadata,
    ]
    for one in mappings:
        with pytest.raises(TypeError):
            one["x"] = 1
        assert dict(one) is not one


def test_reading_a_closed_log_raises(ulg: Path) -> None:
    with logreel.open(ulg) as log:
        ch = log["sensor_gps"]
        times, message, metadata = ch.times, ch[0], log.metadata
    readers: list[Any] = [
        lambda: ch.times, lambda: len(ch), lambda: ch["latitude_deg"], lambda: ch["time"], lambda: ch[0],
        lambda: list(ch), lambda: ch.to_arrow(), lambda: list(ch.batches()), lambda: ch.start, lambda: ch.to_numpy(),
        lambda: pa.table(ch), lambda: log.messages(), lambda: log.table("sensor_gps"), lambda: log.tables(),
        lambda: log.index, lambda: log.message_count, lambda: logreel.stats(log), lambda: ch.to_pandas(),
    ]  # fmt: skip
    for read in readers:
        with pytest.raises(LogError, match="the log is closed"):
            read()
    assert "closed" in repr(log)
    assert "closed" in repr(ch)
    assert log._repr_html_()
    assert ch._repr_html_()
    assert len(times)
    assert message.decode()
    assert metadata == log.metadata


def test_opening_a_folder_raises_log_error(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="a folder with no log of a known format in or below it"):
        logreel.open(tmp_path)


# ------------------------------------------------------------------------------------------------- processes


def total(ch: logreel.Channel) -> float:
    """Return a sum; called in another process."""
    return float(ch["latitude_deg"].sum())


def test_logs_and_channels_can_be_pickled(ulg: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ulg.parent)
    log = logreel.open("flight.ulg", format="ulog", strict=True)
    back = pickle.loads(pickle.dumps(log))  # noqa: S301 - our own bytes
    assert (back.name, back.format, back.options) == (log.name, log.format, log.options)
    ch, both = pickle.loads(pickle.dumps((log["sensor_gps"], log)))  # noqa: S301 - our own bytes
    assert ch.log is both
    np.testing.assert_array_equal(ch["latitude_deg"], log["sensor_gps"]["latitude_deg"])
    assert copy.copy(log).channels.keys() == log.channels.keys()
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(total, log["sensor_gps"]).result() == total(log["sensor_gps"])


def test_logs_of_bytes_cannot_be_pickled() -> None:
    log = logreel.open(tiny())
    for one in (log, next(iter(log.values()))):
        with pytest.raises(LogError, match="cannot be handed to another process; write it to a file"):
            pickle.dumps(one)


# -------------------------------------------------------------------------------------- frames, flat or nested


def test_frames_and_files_have_flat_columns(poses: Path, tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    log = logreel.open(poses)
    flat = ["time", *(f"position.{a}" for a in "xyz"), *(f"orientation.{a}" for a in "xyzw")]
    frame = log["/pose"].to_pandas()
    assert list(frame.columns) == flat
    assert frame["position.x"].tolist() == list(range(10))
    assert log["/pose"].to_pandas(flatten=False)["position"][1] == {"x": 1.0, "y": 2.0, "z": 3.0}
    logreel.convert(log, tmp_path / "x.parquet", topics="/pose")
    assert list(pd.read_parquet(tmp_path / "x.parquet").columns) == flat
    logreel.convert(log, tmp_path / "x.csv", topics="/pose")
    assert list(pd.read_csv(tmp_path / "x.csv").columns) == ["time_ns", *flat[1:]]
    logreel.convert(log, tmp_path / "n.parquet", topics="/pose", flatten=False)
    assert pq.read_table(tmp_path / "n.parquet") == log["/pose"].to_arrow()
    with pytest.raises(UsageError, match="leave out flatten=False") as caught:
        logreel.convert(log, tmp_path / "n.csv", topics="/pose", flatten=False)
    assert "leave out --nested" in sentence(caught.value, click.Context(convert))


def test_structs_in_fixed_size_arrays_become_flat_columns(ulg: Path) -> None:
    pytest.importorskip("pandas")
    ch = logreel.open(ulg)["esc_status"]
    np.testing.assert_array_equal(ch.to_pandas()["esc[1].esc_rpm"], ch["esc[1].esc_rpm"])


def test_frame_index_can_be_time(poses: Path) -> None:
    pd = pytest.importorskip("pandas")
    ch = logreel.open(poses)["/pose"]
    frame = ch.to_pandas(index="time")
    assert isinstance(frame.index, pd.DatetimeIndex)
    assert frame.index.name == "time"
    assert "time" not in frame.columns
    with pytest.raises(NotFoundError, match="no column 'when'"):
        ch.to_pandas(index="when")


# --------------------------------------------------------------------------------------- a field called time


def test_a_field_called_time_is_time_2_everywhere(broken: Path, tmp_path: Path) -> None:
    log = logreel.open(broken)
    ch = log["/fix"]
    names = ["latitude", "time_2", "name", "pair", "ok", "count"]
    assert ch.fields == names
    assert ch.to_arrow().schema.names == ["time", *names]
    rows = ch.to_arrow().to_pylist()
    assert rows[1]["time"] != rows[1]["time_2"]
    assert list(ch.to_numpy()) == ["time", *names]
    assert ch["time"].tolist() == ch.times.tolist()
    assert ch["time_2"][1] == 101 * S + 5
    for wanted in ("time", "time_2", ["time", "time_2"]):
        assert ch.to_arrow(wanted).schema.names == ["time", "time_2"]
    assert logreel.align(log, {"/fix": ["time_2"]}, clock="/fix").num_columns == 2
    logreel.convert(log, tmp_path / "x.parquet", topics="/fix")
    assert pq.read_schema(tmp_path / "x.parquet").names == ["time", *names]
    logreel.convert(log, tmp_path / "x.ndjson")
    line = json.loads((tmp_path / "x.ndjson").read_text().splitlines()[0])
    assert line["data"]["time"] == 101 * S + 5


@pytest.mark.parametrize("library", ["polars", "pandas", "xarray", "duckdb"])
def test_libraries_accept_a_field_called_time(broken: Path, library: str) -> None:
    pytest.importorskip(library)
    log = logreel.open(broken)
    ch = log["/fix"]
    found = {
        "polars": lambda: (
            logreel.scan_polars(log, "/fix").select("time_2").collect()["time_2"][1].second
            + len(ch.to_polars()["time_2"])
        ),
        "pandas": lambda: ch.to_pandas()["time_2"][1].second + len(ch.to_pandas()),
        "xarray": lambda: int(ch.to_xarray()["time_2"].dt.second[1]) + ch.to_xarray().sizes["time"],
        "duckdb": lambda: logreel.sql("select second(time_2) + 50 as s from fix order by time", log)["s"][
            1
        ].as_py(),
    }[library]()
    assert found == 41 + 50


def test_rerun_accepts_a_field_called_time(broken: Path, tmp_path: Path) -> None:
    pytest.importorskip("rerun")
    assert logreel.convert(logreel.open(broken), tmp_path / "x.rrd").rows > 0


def test_fields_time_and_time_2_get_distinct_names(tmp_path: Path) -> None:
    schema = logreel.Schema("pkg/Two", "ros1msg", "int32 time\nint32 time_2\n")
    with logreel.create(tmp_path / "two.bag") as w:
        w.write(w.add_channel("/two", schema), START, {"time": 1, "time_2": 2})
    ch = logreel.open(tmp_path / "two.bag")["/two"]
    assert ch.to_arrow().schema.names == ["time", "time_3", "time_2"]
    assert (ch["time_3"].item(), ch["time_2"].item()) == (1, 2)


# ------------------------------------------------------------------------- messages that cannot be decoded


def test_undecodable_message_is_a_row_of_nulls(broken: Path) -> None:
    log = logreel.open(broken)
    ch = log["/fix"]
    table = ch.to_arrow()
    assert (
        len(ch)
        == len(ch.times)
        == len(ch["time"])
        == table.num_rows
        == sum(b.num_rows for b in ch.batches(7))
        == 50
    )
    assert table["time"].cast("int64").to_pylist() == ch.times.tolist()
    lost = [i for i in range(50) if i % 6 == 0]
    for name in table.schema.names[1:]:
        assert np.flatnonzero(table[name].is_null()).tolist() == lost
    assert {p.code for p in log.problems if p.lost} == {"payload"}
    assert log.tables()["/fix"] == table
    assert pa.table(ch) == table
    assert ch.to_arrow(start="+10s", end="+20s").num_rows == 10


def test_numpy_arrays_have_a_row_for_each_message(broken: Path) -> None:
    ch = logreel.open(broken)["/fix"]
    arrays = ch.to_numpy()
    assert {len(one) for one in arrays.values()} == {50}
    assert np.isnan(arrays["latitude"][6])
    assert arrays["latitude"][7] == 3.5
    assert arrays["name"][6] is None
    assert arrays["name"][7] == "ab"
    assert arrays["pair"].shape == (50, 2)
    assert arrays["pair"].dtype == np.int32
    for name in ("pair", "ok", "count", "time_2"):
        assert isinstance(arrays[name], np.ma.MaskedArray)
        assert np.ma.getmaskarray(arrays[name])[6].all()
        assert not np.ma.getmaskarray(arrays[name])[7].any()
    # No integer becomes a float, which would round it.
    assert arrays["count"][7] == 2**60 + 7
    for name in ch.fields:
        assert len(ch[name]) == 50
    part = ch.to_numpy("count", start="+6s", end="+8s")
    assert part["count"].tolist() == [None, 2**60 + 7]
    assert part["time"].tolist() == ch.times[6:8].tolist()


def test_undecodable_message_of_many_records_is_one_row_of_nulls() -> None:
    from logreel.layout.arrow import Decoded
    from logreel.log.columns import with_gaps

    got = Decoded(
        [pa.array([1, 2, 3, 4, 5])],
        np.array([1, 2, 4]),
        [(0, "a"), (3, "b")],
        np.zeros(0, np.int64),
        np.array([2, 0, 3]),
    )
    full = with_gaps(got, 5)
    assert full.arrays[0].to_pylist() == [None, 1, 2, None, 3, 4, 5]
    assert full.times(np.arange(5)).tolist() == [0, 1, 1, 3, 4, 4, 4]
    none = with_gaps(
        Decoded([pa.array([], pa.int8())], np.zeros(0, np.int64), [(0, "a")], got.leftover, None), 1
    )
    assert none.arrays[0].to_pylist() == [None]


def test_tracks_leave_out_undecodable_messages(tmp_path: Path) -> None:
    schema = logreel.Schema("sensor_msgs/NavSatFix", "ros1msg", "")
    with logreel.create(tmp_path / "x.bag") as w:
        channel = w.add_channel("/gps", schema)
        for i in range(5):
            w.write(channel, START + i * S, {"latitude": 50.0 + i, "longitude": 7.0})
        w.write(channel, START + 5 * S, b"short")
    logreel.convert(tmp_path / "x.bag", tmp_path / "x.geojson")
    track = json.loads((tmp_path / "x.geojson").read_text())["features"][0]
    assert [round(lat) for _, lat, *_ in track["geometry"]["coordinates"]] == [50, 51, 52, 53, 54]
