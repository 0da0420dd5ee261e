"""LazyFrames equal whole tables, and decode only what is needed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import polars as pl
import pytest

import logreel
from logreel.errors import MissingDependencyError, TopicError, UsageError
from support.builders.sample_logs import short_flight, tiny
from support.harness.decoding import Decoding
from support.samples.carla.builder import eventful
from support.samples.rosbag.builder import drive

T0 = timedelta(seconds=76)
time, reset, q = pl.col("time"), pl.col("quat_reset_counter"), pl.col("q")
Query = Callable[[Any], Any]


@pytest.fixture(scope="module")
def log() -> logreel.Log:
    return logreel.open(short_flight())


#: A query, the fields that it needs, and about how many messages at most; None: all of them.
QUERIES: list[tuple[Query, set[str], int | None]] = [
    (lambda f: f.select(reset.mean()), {"quat_reset_counter"}, None),
    (lambda f: f.select(pl.len()), set(), None),
    (lambda f: f.head(10).select("timestamp"), {"timestamp"}, 11),
    (lambda f: f.head(10).filter(time > T0).select("timestamp"), {"timestamp"}, 11),
    (lambda f: f.head(70).filter(reset > 0).select("timestamp"), {"timestamp", "quat_reset_counter"}, 140),
    (lambda f: f.filter(time >= T0, time < T0 + timedelta(seconds=1)).select("q"), {"q"}, 100),
    (lambda f: f.filter((time > T0) & (reset > 0) & (time < T0 + timedelta(seconds=1))).select("q"),
     {"q", "quat_reset_counter"}, 100),
    (lambda f: f.filter(time.is_between(T0, T0 + timedelta(milliseconds=50))).select(pl.len()), set(), 6),
    (lambda f: f.filter((time < T0) | (q.arr.get(0) > 0.93)).select(pl.len()), {"q"}, None),
    (lambda f: f.filter((time < T0) ^ (time > timedelta(seconds=75))).select(pl.len()), set(), 300),
    (lambda f: f.filter(time == time.max()).select("time"), set(), None),
    (lambda f: f.filter(time > T0).filter(reset > 200), None, None),
    (lambda f: f.filter(time > timedelta(days=9)).select("q"), set(), 0),
    (lambda f: f.filter(pl.lit(True)).select("q"), {"q"}, None),
    (lambda f: f.slice(100, 5).select("timestamp"), {"timestamp"}, None),
    (lambda f: f.tail(3).select("timestamp"), {"timestamp"}, None),
    (lambda f: f.filter(time.shift(1) > T0).select("timestamp"), {"timestamp"}, None),
]  # fmt: skip


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("i", range(len(QUERIES)))
def test_lazy_frames_give_what_whole_ones_give(
    log: logreel.Log, decoding: Decoding, i: int, engine: Any
) -> None:
    query, fields, most = QUERIES[i]
    lazy = logreel.scan_polars(log, "vehicle_attitude")
    want = query(log["vehicle_attitude"].to_polars().lazy()).collect()
    decoding.forget()
    got = query(lazy).collect(engine=engine)
    assert got.equals(want, null_equal=True)
    assert got.schema == want.schema
    if fields is not None:
        assert decoding.fields == fields
    if most is not None:
        assert len(decoding.rows) <= most


@pytest.mark.parametrize("data", [tiny(), drive(), eventful().bytes()], ids=["ulog", "bag", "carla"])
def test_every_channel_can_be_scanned(data: bytes) -> None:
    log = logreel.open(data)
    for ch in log.channels.values():
        if len(ch) and "time" not in ch.fields:
            lazy, whole = logreel.scan_polars(log, ch.topic), ch.to_polars()
            assert lazy.collect_schema() == whole.schema
            assert repr(lazy.collect().rows()) == repr(whole.rows()), ch.topic
            half = whole["time"][len(whole) // 2]
            assert (
                lazy.filter(time >= half)
                .select("time")
                .collect()
                .equals(whole.filter(time >= half).select("time"))
            )


def test_times_can_be_those_of_the_wall(log: logreel.Log) -> None:
    lazy = logreel.scan_polars(log, "sensor_gps", utc=True)
    whole = log["sensor_gps"].to_polars(utc=True)
    moment = whole["time"][10]
    assert lazy.filter(time < moment).collect().equals(whole[:10])
    with pytest.raises(UsageError, match="does not tell"):
        logreel.scan_polars(tiny(), "pair", utc=True)


def test_unusable_channels_raise_when_scanned(log: logreel.Log, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TopicError, match="nearest: sensor_gps"):
        logreel.scan_polars(log, "sensor_gs")
    monkeypatch.setitem(sys.modules, "polars.io.plugins", None)
    with pytest.raises(MissingDependencyError, match=r"logreel\[polars\]"):
        logreel.scan_polars(log, "sensor_gps")


def test_conditions_and_patterns_select_channels(log: logreel.Log) -> None:
    frame = logreel.scan_polars(log, "type=sensor_accel")
    counts = dict(frame.group_by("topic").len().collect().rows())
    assert counts == {topic: len(log[topic]) for topic in ("sensor_accel", "sensor_accel[1]")}
    some = frame.filter(pl.col("topic") == "sensor_accel[1]").select("x").collect()["x"].to_list()
    assert some == log["sensor_accel[1]"]["x"].tolist()
    several = logreel.scan_polars(log, "sensor_*").collect()
    assert len(several) == sum(len(ch) for ch in log.match("sensor_*"))
    # An existing name is no pattern.
    assert "topic" not in logreel.scan_polars(log, "sensor_accel[1]").collect_schema().names()
    with pytest.raises(logreel.TopicError):
        logreel.scan_polars(log, "lens=nothing")
