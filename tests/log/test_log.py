"""The public Log: messages in order, tables, and helpful errors."""

from __future__ import annotations

import builtins
import struct
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.errors import MissingDependencyError, NotFoundError, TopicError, UsageError
from logreel.layout.arrow_arrays import as_fixed_list
from logreel.log.log import Log
from support.samples.ulog import builder
from support.samples.ulog.builder import Builder


@pytest.fixture(scope="module")
def log() -> Log:
    return logreel.open(builder.flight(3))


def keys(messages: Any) -> list[tuple[int, str, bytes]]:
    return [(m.time, m.channel.topic, bytes(m.data)) for m in messages]


def test_messages_are_sorted_by_time_or_in_file_order(log: Log) -> None:
    by_time, in_file_order = keys(log.messages()), keys(log.messages(order="file"))
    assert len(by_time) == log.message_count
    assert sorted(by_time) == sorted(in_file_order)
    # Python's sort keeps the order of equal times, which is that of the file.
    assert by_time == sorted(in_file_order, key=lambda k: k[0])
    assert keys(log.messages(reverse=True)) == by_time[::-1]
    assert keys(log.messages(order="file", reverse=True)) == in_file_order[::-1]
    with pytest.raises((UsageError, ValueError)):
        log.messages(order="size")


def test_messages_of_equal_time_are_in_file_order() -> None:
    out = Builder(start_us=1).flags().format("a:uint64_t timestamp;uint8_t n;").subscribe("a", 0)
    out.format("b:uint64_t timestamp;uint8_t n;").subscribe("b", 1)
    for n in range(50):
        out.data(n % 3 % 2, struct.pack("<QB", 5 + n // 10, n))
    numbers = [m.decode()["n"] for m in logreel.open(out.bytes()).messages()]
    assert numbers == list(range(50))


def test_intervals_include_start_and_exclude_end(log: Log) -> None:
    every = keys(log.messages())
    t = [k[0] for k in every]
    a, b = t[len(t) // 3], t[len(t) // 2]
    for start, end in (
        (None, None),
        (a, None),
        (None, b),
        (a, b),
        (a, a),
        (a, a + 1),
        (t[-1], None),
        (None, t[0] + 1),
    ):
        due = [k for k in every if (start is None or k[0] >= start) and (end is None or k[0] < end)]
        assert keys(log.messages(start=start, end=end)) == due
    ch = log["sensor_accel"]
    lo, hi = int(ch.times[10]), int(ch.times[20])
    table = log.table("sensor_accel", ["x", "device_id"], start=lo, end=hi)
    assert table.column_names == ["time", "x", "device_id"]
    np.testing.assert_array_equal(table["x"].to_numpy(), ch["x"][10:20])


def test_topics_are_selected_by_name_and_pattern(log: Log) -> None:
    assert {m.channel.topic for m in log.messages("sensor_accel*")} == {"sensor_accel", "sensor_accel[1]"}
    assert {m.channel.topic for m in log.messages(["~text", "cpuload"])} == {"~text", "cpuload"}
    assert len(keys(log.messages("sensor_accel[1]"))) == len(log["sensor_accel[1]"])


def test_errors_name_similar_topics_and_fields(log: Log) -> None:
    for wrong in (
        lambda: log["sensor_acel"],
        lambda: log.table("sensor_acel"),
        lambda: log.messages("sensor_acel"),
    ):
        with pytest.raises(KeyError, match="sensor_accel") as caught:
            wrong()
        assert isinstance(caught.value, TopicError)
    for wrong in (lambda: log["cpuload"]["laod"], lambda: log["cpuload"].to_arrow(["laod"])):
        with pytest.raises(NotFoundError, match="load"):
            wrong()
    for odd in ("", ".", "load.", "load[0]", "load[", "timestamp.x", "_padding0", "load[-1]", "[0]"):
        with pytest.raises(NotFoundError):
            _ = log["cpuload"][odd]


def test_columns_rows_and_messages_have_equal_values(log: Log) -> None:
    for ch in log.channels.values():
        table, rows = ch.to_arrow(), [m.decode() for m in log.messages(ch.topic, order="file")]
        if ch.topic.startswith("~"):
            rows.sort(key=str)
        assert table.num_rows == len(ch) == len(rows)
        np.testing.assert_array_equal(table["time"].to_numpy().astype(np.int64), ch.times)
        for name in [f.name for f in ch.layout.record.visible()]:
            got = [row[name] for row in table.select([name]).to_pylist()]
            due = [row[name] for row in rows]
            if ch.topic.startswith("~"):
                got, due = sorted(got), sorted(due)
            assert repr(got) == repr(due) or _same_floats(got, due), (ch.topic, name)


def _same_floats(a: list[Any], b: list[Any]) -> bool:
    return bool(np.array_equal(np.array(a, float), np.array(b, float), equal_nan=True))


@pytest.mark.parametrize("rows", [1, 7, 100, 10**6])
def test_batches_concatenate_to_the_table(log: Log, rows: int) -> None:
    ch = log["vehicle_attitude"]
    pieces = list(ch.batches(rows, ["q"]))
    assert all(p.num_rows <= rows for p in pieces)
    q = np.concatenate([as_fixed_list(p.column("q")).flatten().to_numpy() for p in pieces])
    np.testing.assert_array_equal(q.reshape(-1, 4), ch["q"])


def test_tables_have_the_schemas_of_the_channels(log: Log) -> None:
    tables = log.tables()
    assert set(tables) == {ch.topic for ch in log.channels.values() if len(ch) and not ch.reserved}
    for topic, table in tables.items():
        assert table.schema.equals(log[topic].to_arrow().schema, check_metadata=True)


def test_pandas_and_polars_frames(log: Log) -> None:
    pytest.importorskip(
        "polars", reason="polars is not installed; there is none for a free-threaded Python 3.13"
    )
    ch = log["vehicle_attitude"]
    q = [f"q[{i}]" for i in range(4)]
    for frame, columns in ((ch.to_pandas(["q"]), q), (ch.to_polars(["q"]), ["q"])):
        assert list(frame.columns) == ["time", *columns]
        assert len(frame) == len(ch)
    np.testing.assert_array_equal(ch.to_pandas()[q].to_numpy(), ch["q"])
    assert np.stack(ch.to_pandas(flatten=False)["q"].to_list()).tolist() == ch["q"].tolist()


def test_missing_library_is_named_with_install_command(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = builtins.__import__

    def without(name: str, *args: Any, **options: Any) -> Any:
        if name.partition(".")[0] in ("pandas", "polars"):
            raise ImportError(name)
        return genuine(name, *args, **options)

    def refuse(name: str, package: str | None = None) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.setattr("importlib.import_module", refuse)
    for name, ask in (("pandas", log["cpuload"].to_pandas), ("polars", log["cpuload"].to_polars)):
        with pytest.raises(MissingDependencyError, match=rf"pip install 'logreel\[{name}\]'"):
            ask()


def test_tables_stay_valid_after_the_log_is_closed() -> None:
    with logreel.open(builder.tiny()) as log:
        ch = max(log.channels.values(), key=len)
        table, times = ch.to_arrow(), ch.times
    del log, ch
    assert table.num_rows == len(times) > 0
    table.validate(full=True)


def test_times_and_payloads_are_read_only(log: Log) -> None:
    with pytest.raises(ValueError, match="read-only"):
        log["cpuload"].times[0] = 1
    message = next(log.messages())
    with pytest.raises(TypeError):
        message.data[0] = 1


def test_log_contains_topics(log: Log) -> None:
    assert list(log) == list(log.channels)
    assert "cpuload" in log
    assert "nothing" not in log
    assert bool(log["cpuload"])
    assert "cpuload" in repr(log["cpuload"])
    assert len(log.index) == len(log.index.time) == len(log.index.offset)
