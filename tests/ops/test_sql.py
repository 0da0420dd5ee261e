"""SQL results equal the tables, and only what is needed is decoded."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import logreel
from logreel.errors import LogError, MissingDependencyError, TopicError, UsageError
from logreel.ops.query import sql as module
from logreel.ops.query import topic_table
from logreel.ops.query.topic_table import alias, matching_rows
from support.builders.sample_logs import hostile, short_flight, tiny
from support.harness.decoding import Decoding
from support.harness.equal_tables import have_same_texts
from support.harness.one_database import one_database
from support.samples.rosbag.builder import drive
from support.samples.ulog.builder import Builder

S = 10**9


def one_topic(kind: str, rows: list[bytes], name: str = "t", start_us: int = 1) -> bytes:
    out = Builder(start_us).flags().format(f"{name}:uint64_t timestamp;{kind}").subscribe(name, 0)
    for row in rows:
        out.data(0, row)
    return out.bytes()


@pytest.fixture(scope="module")
def log() -> logreel.Log:
    return logreel.open(short_flight())


@pytest.fixture(scope="module")
def bag() -> logreel.Log:
    return logreel.open(drive())


def test_a_table_has_all_of_the_channel(log: logreel.Log) -> None:
    with one_database():
        for source in (log, logreel.open(drive(2.0)), logreel.open(tiny())):
            for ch in source.channels.values():
                want = ch.to_arrow()
                got = logreel.sql(f'FROM "{ch.topic}"', source)
                names = [n if n != "time" or i == 0 else "time_2" for i, n in enumerate(want.column_names)]
                assert got.column_names == ["time", "time_ns", *names[1:], "log"], ch.topic
                assert got["time_ns"].to_pylist() == want["time"].cast(pa.int64()).to_pylist()
                assert got["time"].cast(pa.int64()).to_pylist() == [
                    # An interval of DuckDB has microseconds.
                    t if source.epoch == "unix" else t // 1000 * 1000
                    for t in got["time_ns"].to_pylist()
                ]
                values = want.select(range(1, want.num_columns)).rename_columns(names[1:])
                assert have_same_texts(got.select(names[1:]), values), ch.topic
                assert set(got["log"].to_pylist()) <= {source.name}


def test_one_field_alone_is_decoded(log: logreel.Log, bag: logreel.Log, decoding: Decoding) -> None:
    (row,) = logreel.sql("SELECT avg(voltage_v) AS v FROM battery_status", log).to_pylist()
    assert row["v"] == pytest.approx(float(log["battery_status"]["voltage_v"].mean()))
    assert decoding.fields == {"voltage_v"}
    decoding.forget()
    path = "pose.pose.position.x"
    (row,) = logreel.sql(
        f'SELECT max("{path}") AS x, max(pose.pose.position.x) AS y FROM odom', bag
    ).to_pylist()
    assert row == {"x": bag["/odom"][path].max(), "y": bag["/odom"][path].max()}
    assert decoding.fields == {path, "pose"}
    decoding.forget()
    (row,) = logreel.sql(f'SELECT max("{path}") AS x FROM odom', bag).to_pylist()
    assert decoding.fields == {path}
    decoding.forget()
    assert logreel.sql("SELECT count(*) AS n FROM vehicle_attitude", log)["n"].to_pylist() == [392]
    assert decoding.fields == set()


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("time_ns >= {a} AND time_ns < {b}", lambda t, a, b: (t >= a) & (t < b)),
        ("time_ns BETWEEN {a} AND {b}", lambda t, a, b: (t >= a) & (t <= b)),
        ("time_ns = {a}", lambda t, a, b: t == a),
        ("time_ns > {b} AND q[1] > 5", lambda t, a, b: t > b),
        ("time_ns < {a} OR time_ns >= {b}", lambda t, a, b: (t < a) | (t >= b)),
        ("time_ns < 0", lambda t, a, b: t < 0),
        ("time_ns IS NOT NULL AND time_ns >= {b}", lambda t, a, b: t >= b),
    ],
)
def test_messages_at_other_times_are_not_decoded(
    log: logreel.Log, decoding: Decoding, condition: str, kept: object
) -> None:
    times = log["vehicle_attitude"].times
    a, b = int(times[97]), int(times[230])
    keep = kept(times, a, b)  # type: ignore[operator]
    query = f"SELECT time_ns, q FROM vehicle_attitude WHERE {condition.format(a=a, b=b)}"
    got = logreel.sql(query, log)
    if "q[1]" not in condition:
        assert got["time_ns"].to_pylist() == times[keep].tolist()
    assert decoding.rows == np.flatnonzero(keep).tolist()


def test_times_in_no_order_are_found(decoding: Decoding) -> None:
    stamps = np.random.default_rng(1).permutation(500).tolist()
    log = logreel.open(one_topic("uint8_t x;", [struct.pack("<QB", 1 + t, t % 200) for t in stamps]))
    got = logreel.sql("SELECT time_ns, x FROM t WHERE time_ns BETWEEN 100000 AND 120000", log)
    want = [1 + t for t in stamps if 100 <= 1 + t <= 120]
    assert (got["time_ns"].to_numpy() // 1000).tolist() == want
    assert got["x"].to_pylist() == [(t - 1) % 200 for t in want]
    assert len(decoding.rows) == len(want)
    # The messages of an interval need not follow one another either.
    part = logreel.sql("SELECT count(*) AS n FROM t WHERE time_ns < 50000", log, start=20_000, end=110_000)
    assert part["n"].to_pylist() == [30]


def test_pruning_leaves_out_nothing_that_passes() -> None:
    rng = np.random.default_rng(2)
    schema = pa.schema([("time_ns", pa.int64()), ("x", pa.int64())])
    ns = pc.field("time_ns")
    for n in (0, 1, 2, 15, 16, 17, 300):
        times = np.sort(rng.integers(0, 100, n)) if n % 2 else rng.integers(0, 100, n)
        rows = pa.table([times, rng.integers(0, 9, n)], schema)
        for a, b in rng.integers(-5, 105, (12, 2)).tolist():
            for condition in ((ns >= a) & (ns < b), (ns < a) | (ns > b), (ns > a) & (pc.field("x") > 3)):
                found = matching_rows(
                    condition, schema, times, lambda lo, hi: (ns >= lo) & (ns <= hi), slice(0, n)
                )
                mask = np.zeros(n, bool)
                mask[found] = True
                passing = rows.append_column("i", pa.array(np.arange(n))).filter(condition)["i"].to_numpy()
                assert mask[passing].all()


def test_limit_decodes_only_the_first_rows(decoding: Decoding, monkeypatch: pytest.MonkeyPatch) -> None:
    # Less than this is decoded at once.
    monkeypatch.setattr(topic_table, "BYTES", 20_000)
    log = logreel.open(one_topic("uint8_t x;", [struct.pack("<QB", i, 1) for i in range(30_000)]))
    assert logreel.sql("SELECT x FROM t LIMIT 1", log).num_rows == 1
    assert len(decoding.rows) < 10_000


def test_several_logs_are_one_table_with_the_name_of_each(tmp_path: Path, decoding: Decoding) -> None:
    for i in range(3):
        (tmp_path / f"{i}.ulg").write_bytes(one_topic("uint8_t x;", [struct.pack("<QB", 5, i)] * (i + 1)))
    paths = [str(tmp_path / f"{i}.ulg") for i in range(3)]
    got = logreel.sql("SELECT log, count(*) AS n, max(x) AS x FROM t GROUP BY log ORDER BY log", *paths)
    assert got.to_pylist() == [{"log": path, "n": i + 1, "x": i} for i, path in enumerate(paths)]
    decoding.forget()
    got = logreel.sql(f"SELECT x FROM t WHERE log = '{paths[2]}'", *paths)
    assert got["x"].to_pylist() == [2, 2, 2]
    assert len(decoding.rows) == 3
    twice = logreel.sql("SELECT DISTINCT log FROM t ORDER BY log", paths[0], paths[0])
    assert twice["log"].to_pylist() == [paths[0], f"{paths[0]}_2"]


def test_schemas_that_differ_are_put_together_by_name() -> None:
    old = one_topic("float x;uint8_t[2] c;uint8_t gone;", [struct.pack("<Qf3B", 5, 0.5, 1, 2, 3)])
    new = one_topic("double x;uint8_t[3] c;bool fresh;", [struct.pack("<Qd4B", 6, 0.1, 4, 5, 6, 1)])
    rows = logreel.sql("SELECT x, c, gone, fresh FROM t ORDER BY time_ns", old, new).to_pylist()
    assert rows == [
        {"x": 0.5, "c": [1, 2], "gone": 3, "fresh": None},
        {"x": 0.1, "c": [4, 5, 6], "gone": None, "fresh": True},
    ]
    text = one_topic("char[4] x;", [struct.pack("<Q4s", 7, b"hi")])
    with pytest.raises(UsageError, match=r"'x' of 't' is float in <bytes> and string in <bytes>_2"):
        logreel.sql("SELECT x FROM t", old, text)


def test_clocks_that_differ_need_utc(log: logreel.Log, bag: logreel.Log, tmp_path: Path) -> None:
    raw = short_flight()
    logreel.convert(raw, tmp_path / "a.mcap", raw=True)
    assert logreel.sql("SELECT DISTINCT log FROM sensor_gps", raw, tmp_path / "a.mcap").num_rows == 2
    logreel.convert(raw, tmp_path / "unix.mcap")
    both = (raw, tmp_path / "unix.mcap")
    with pytest.raises(UsageError, match="'sensor_gps' have different clocks; pass utc=True"):
        logreel.sql("SELECT DISTINCT log FROM sensor_gps", *both)
    got = logreel.sql("SELECT time_ns, count(*) AS n FROM sensor_gps GROUP BY time_ns", *both, utc=True)
    assert set(got["n"].to_pylist()) == {2}
    got = logreel.sql("SELECT time, time_ns FROM sensor_gps", log, utc=True)
    assert log.utc_offset is not None
    assert got["time_ns"].to_pylist() == (log["sensor_gps"].times + log.utc_offset).tolist()
    assert got["time"].type == pa.timestamp("ns")
    with pytest.raises(UsageError, match="does not tell"):
        logreel.sql("FROM pair", tiny(), utc=True)


def test_an_interval_applies_to_each_log(log: logreel.Log) -> None:
    got = logreel.sql(
        "SELECT log, count(*) AS n FROM vehicle_attitude GROUP BY log", log, log, start="+1s", end="+2s"
    )
    assert (
        got["n"].to_pylist()
        == [log.table("vehicle_attitude", [], log.start + S, log.start + 2 * S).num_rows] * 2
    )


def test_topics_have_aliases_without_quotes(log: logreel.Log) -> None:
    assert [alias(t) for t in ("sensor_accel[1]", "/imu/data", "~text", "/3d", "//", "a.b c")] == [
        "sensor_accel_1", "imu_data", "_text", "_3d", "_", "a_b_c"
    ]  # fmt: skip
    want = logreel.sql('SELECT x FROM "sensor_accel[1]"', log)
    assert logreel.sql("SELECT x FROM sensor_accel_1", log).equals(want)
    assert logreel.sql("SELECT x FROM Sensor_Accel_1", log).equals(want)
    assert logreel.sql("WITH w AS (FROM sensor_accel_1) SELECT x FROM w", log).equals(want)
    clash = Builder(1).flags()
    for i, name in enumerate(("ab", "aB")):
        clash.format(f"{name}:uint64_t timestamp;uint8_t x;").subscribe(name, i).data(
            i, struct.pack("<QB", 5, i)
        )
    raw = clash.bytes()
    assert logreel.sql("SELECT x FROM aB", raw)["x"].to_pylist() == [1]
    for query, words in (
        ("FROM AB", 'may mean "ab" or "aB"'),
        ("FROM ab, aB", "case does not tell tables apart"),
    ):
        with pytest.raises(UsageError, match=words):
            logreel.sql(query, raw)


def test_equal_column_names_get_numbers() -> None:
    raw = one_topic("uint8_t X;uint8_t x;uint8_t time;uint8_t log;", [struct.pack("<Q4B", 5, 1, 2, 3, 4)])
    (row,) = logreel.sql("SELECT X, x_2, time_2, log_2, log, 5 AS a, 6 AS a FROM t", raw).to_pylist()
    assert row == {"X": 1, "x_2": 2, "time_2": 3, "log_2": 4, "log": "<bytes>", "a": 5, "a_2": 6}


def test_the_catalogue_lists_logs_and_channels(log: logreel.Log) -> None:
    (row,) = logreel.sql("FROM logreel.logs", log).to_pylist()
    assert row == {
        "log": "<bytes>", "format": "ulog", "version": "1", "size": log.size, "epoch": "boot",
        "start_ns": log.start, "end_ns": log.end, "utc_offset_ns": log.utc_offset,
    }  # fmt: skip
    rows = logreel.sql("FROM LogReel.Channels", log).to_pylist()
    assert [row["topic"] for row in rows] == list(log)
    ch = log["sensor_gps"]
    assert rows[list(log).index("sensor_gps")] == {
        "log": "<bytes>", "topic": "sensor_gps", "type": ch.schema.name, "encoding": "ulog", "messages": len(ch),
        "start_ns": ch.start, "end_ns": ch.end,
            "facts": [(key, list(values)) for key, values in ch.facts.items() if values],
    }  # fmt: skip
    assert {"sensor_gps", "sensor_accel_1"} <= set(logreel.sql("SHOW TABLES", log)["name"].to_pylist())
    assert "voltage_v" in logreel.sql("DESCRIBE battery_status", log)["column_name"].to_pylist()


def test_queries_can_join_tables(log: logreel.Log, bag: logreel.Log) -> None:
    (row,) = logreel.sql("SELECT count(*) AS n FROM sensor_gps JOIN battery_status ON true", log).to_pylist()
    assert row["n"] == len(log["sensor_gps"]) * len(log["battery_status"])
    tables = " UNION ALL ".join(f"SELECT log FROM {name}" for name in ("odom", "tf", "imu"))
    assert logreel.sql(f"SELECT count(*) AS n FROM ({tables})", bag)["n"].to_pylist() == [
        bag.table("/tf", []).num_rows + 1800
    ]


def test_statements_of_several_parts(log: logreel.Log) -> None:
    got = logreel.sql("CREATE TABLE few AS FROM sensor_gps LIMIT 3; SELECT count(*) AS n FROM few", log)
    assert got["n"].to_pylist() == [3]
    assert logreel.sql("PIVOT sensor_gps ON fix_type USING count(*) GROUP BY log", log).num_rows == 1
    with pytest.raises(UsageError, match="no result"):
        logreel.sql("", log)


@pytest.mark.parametrize(
    ("query", "error", "words"),
    [
        (
            "SELECT * FROM vehicle_atitude",
            TopicError,
            "no table 'vehicle_atitude'; nearest: vehicle_attitude",
        ),
        ("SELECT nope FROM sensor_gps", UsageError, '"nope" not found'),
        ("SELEC 1", UsageError, 'syntax error at or near "SELEC"'),
        ("SELECT * FROM read_text('/etc/hostname')", UsageError, "Permission"),
        ("SELECT * FROM '/etc/hostname'", LogError, "hostname"),
        ("SELECT * FROM 'data.csv'", LogError, "data.csv"),
        ("COPY (SELECT 1) TO 'x.csv'", UsageError, "Permission"),
        ("ATTACH 'x.db'", UsageError, "Permission"),
        ("INSTALL httpfs", UsageError, "Permission"),
        ("SET enable_external_access = true; SELECT 1", UsageError, "locked"),
        ("SELECT * FROM secret", TopicError, "no table 'secret'"),
        ("SELECT error('so it goes')", LogError, "so it goes"),
        ("SELECT 'x'::INT", LogError, "Could not convert"),
    ],
)
def test_wrong_queries_raise_usage_errors(
    log: logreel.Log, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, query: str, error: type, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    secret = pa.table({"a": [1]})
    with pytest.raises(error, match="(?i)" + words.replace("'", "['\"]?")):
        logreel.sql(query, log)
    assert secret.num_rows == 1
    assert not list(tmp_path.iterdir())


def test_errors_while_decoding_are_raised_unchanged(
    log: logreel.Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise UsageError("the chunk is encrypted")

    monkeypatch.setattr("logreel.log.tables.TableReader.read", broken)
    with pytest.raises(UsageError, match="the chunk is encrypted"):
        logreel.sql("SELECT avg(x) FROM sensor_accel", log)


def test_lengths_of_time_are_durations() -> None:
    got = logreel.sql(
        "SELECT max(time) - min(time) AS d, INTERVAL '1 month 2 days' AS m, NULL::INTERVAL AS n FROM pair",
        tiny(),
    )
    day = 86_400 * S
    assert got.schema.types == [pa.duration("ns")] * 3
    assert [c.cast(pa.int64()).to_pylist() for c in got.columns] == [[70_000_000], [32 * day], [None]]


def test_nested_values_stay_nested() -> None:
    (row,) = logreel.sql(
        'SELECT cells, cells[2].volt AS b, "cells[1].volt" AS c FROM pair LIMIT 1', tiny()
    ).to_pylist()
    assert row == {"cells": [{"volt": 3.5, "id": 1}, {"volt": 3.625, "id": 2}], "b": 3.625, "c": 3.625}
    values = logreel.sql("SELECT value FROM odd", hostile())["value"].to_pylist()
    assert repr(values) == "[1.5, nan, inf, -inf]"


def test_without_duckdb_there_is_a_hint(log: logreel.Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'logreel\[sql\]'"):
        logreel.sql("SELECT 1", log)


def test_a_query_needs_a_log() -> None:
    with pytest.raises(UsageError, match="needs a log"):
        logreel.sql("SELECT 1")


def test_results_are_returned_in_batches(log: logreel.Log, monkeypatch: pytest.MonkeyPatch) -> None:
    with module.answer("SELECT i FROM range(200000) AS t(i)", [log]) as (schema, batches):
        assert schema.names == ["i"]
        sizes = [batch.num_rows for batch in batches]
    assert sum(sizes) == 200_000
    assert max(sizes) <= module.RESULT_ROWS


def test_channels_that_a_condition_selects_are_one_table(bag: logreel.Log) -> None:
    found = logreel.sql('FROM "type=sensor_msgs/*,callerid=/robot" ORDER BY time_ns', bag)
    chosen = bag.match("type=sensor_msgs/*,callerid=/robot")
    assert len(chosen) > 3
    assert sorted(set(found["topic"].to_pylist())) == sorted(ch.topic for ch in chosen)
    for ch in chosen:
        rows = found.filter(pc.equal(found["topic"], ch.topic))
        assert rows["time_ns"].to_pylist() == sorted(ch.times.tolist())
        assert set(rows["log"].to_pylist()) == {bag.name}
    fix = found.filter(pc.equal(found["topic"], "/gps/fix"))
    assert fix["latitude"].to_pylist() == bag["/gps/fix"]["latitude"].tolist()
    scan = found.filter(pc.equal(found["topic"], "/scan"))
    assert scan["latitude"].null_count == len(scan) > 0


def test_patterns_are_tables_and_only_chosen_channels_are_decoded(
    log: logreel.Log, decoding: Decoding
) -> None:
    query = (
        """SELECT topic, count(*) AS n FROM "sensor_acc*" WHERE topic = 'sensor_accel[1]' GROUP BY topic"""
    )
    found = logreel.sql(query, log).to_pylist()
    assert found == [{"topic": "sensor_accel[1]", "n": len(log["sensor_accel[1]"])}]
    assert len(decoding.rows) == len(log["sensor_accel[1]"])
    with pytest.raises(UsageError, match="regular expression"):
        logreel.sql('FROM "re:["', log)


def test_a_field_named_topic_gets_another_name_in_a_table_of_several_channels() -> None:
    source = logreel.open(one_topic("uint8_t topic;", [struct.pack("<QB", 5, 7)]))
    assert logreel.sql('SELECT topic, topic_2 FROM "type=t"', source).to_pylist() == [
        {"topic": "t", "topic_2": 7}
    ]
    assert logreel.sql("SELECT topic FROM t", source).to_pylist() == [{"topic": 7}]


def test_a_condition_selects_channels_of_several_logs(log: logreel.Log) -> None:
    other = logreel.open(short_flight())
    other.name = "other"
    found = logreel.sql(
        'SELECT log, topic, count(*) AS n FROM "multi_id=1" GROUP BY ALL ORDER BY ALL', log, other
    )
    topics = [ch.topic for ch in log.match("multi_id=1")]
    assert [(row["log"], row["topic"]) for row in found.to_pylist()] == sorted(
        (name, topic) for name in (log.name, "other") for topic in topics
    )


def test_a_table_by_a_condition_without_match_names_what_exists(bag: logreel.Log) -> None:
    with pytest.raises(TopicError, match=r"no channel with type 'sensor_msgs/Imo'; nearest: sensor_msgs/Imu"):
        logreel.sql('FROM "type=sensor_msgs/Imo"', bag)
    # Names that the query defines itself are no conditions.
    assert logreel.sql('WITH "a=b" AS (SELECT 1 AS x) FROM "a=b"', bag).to_pylist() == [{"x": 1}]


def test_the_table_of_channels_has_what_they_say_of_themselves(bag: logreel.Log) -> None:
    query = "SELECT topic FROM logreel.channels WHERE list_contains(facts['callerid'], '/map_server')"
    assert logreel.sql(query, bag)["topic"].to_pylist() == ["/map"]


def test_only_chosen_channels_are_tables(log: logreel.Log, bag: logreel.Log) -> None:
    found = logreel.sql("SELECT topic FROM logreel.channels", bag, topics="lens=position")
    assert found.column("topic").to_pylist() == ["/gps/fix"]
    assert logreel.sql("SELECT count(*) AS n FROM gps_fix", bag, topics=["/gps/*"]).num_rows == 1
    every = logreel.sql("SELECT topic FROM logreel.channels", bag).column("topic").to_pylist()
    left = (
        logreel.sql("SELECT topic FROM logreel.channels", bag, exclude="/gps/*").column("topic").to_pylist()
    )
    assert left == [topic for topic in every if not topic.startswith("/gps/")] != every
    with pytest.raises(logreel.TopicError):
        logreel.sql("SELECT * FROM gps_fix", bag, exclude=["/gps/fix"])
    with pytest.raises(logreel.TopicError):
        logreel.sql("SELECT 1", bag, exclude="/nothing")
    with pytest.raises(logreel.TopicError, match="imu"):
        logreel.sql("SELECT * FROM imu", bag, topics="lens=position")
    with pytest.raises(logreel.TopicError):
        logreel.sql("SELECT 1", bag, topics="lens=nothing")
    # Each text has to select something in one of the logs.
    both = logreel.sql("SELECT topic FROM logreel.channels", bag, log, topics=["/imu", "sensor_gps"])
    assert sorted(both.column("topic").to_pylist()) == ["/imu", "sensor_gps"]
