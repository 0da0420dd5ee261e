"""Tables aligned in time, compared with pandas.merge_asof."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import logreel
from logreel.errors import DefinitionError, NotFoundError, UsageError
from logreel.formats.bddf.sample.builder import walk
from logreel.formats.carla.sample.builder import eventful
from logreel.formats.rosbag.sample.builder import drive
from logreel.formats.ulog.sample.builder import Builder
from logreel.log.log import Channel
from logreel.ops.query import align as module
from logreel.ops.query.align import Alignment, pick
from support.builders.sample_logs import short_flight, tiny

S = 10**9


def scattered() -> bytes:
    """Two topics whose times are irregular, repeated, and in no order."""
    rng = np.random.default_rng(3)
    out = Builder(1).flags()
    for i, name in enumerate(("a", "b")):
        out.format(f"{name}:uint64_t timestamp;float x;uint8_t[3] c;").subscribe(name, i)
    for n, (a, b) in enumerate(rng.integers(1000, 2000, (300, 2)).tolist()):
        out.data(0, struct.pack("<Qf3B", a, n, 1, 2, n % 251))
        out.data(1, struct.pack("<Qf3B", b, -n, 3, 4, n % 7))
    return out.bytes()


def wanted(log: logreel.Log, topic: str, at: list[int], method: str, within: int | None) -> pa.Table:
    """The rows of *topic* as pandas aligns them."""
    table = log[topic].to_arrow()
    # A message that cannot be decoded, a row of nulls, answers nothing.
    absent = [np.asarray(column.is_null()) for column in table.columns[1:]]
    table = table.filter(pa.array(~np.logical_and.reduce(absent)))
    times = table["time"].cast(pa.int64()).to_numpy()
    order = np.argsort(times, kind="stable")
    right = pd.DataFrame({"t": times[order], "row": np.arange(len(order))})
    left = pd.DataFrame({"t": np.array(at, np.int64)})
    direction: Any = "backward" if method == "previous" else "nearest"
    found = pd.merge_asof(left, right, on="t", tolerance=within, direction=direction)["row"]
    rows = [None if pd.isna(row) else int(order[int(row)]) for row in found]
    return table.select(range(1, table.num_columns)).take(pa.array(rows, pa.int64()))


@pytest.mark.parametrize("rows", [7, 65536])
@pytest.mark.parametrize("method", module.METHODS)
@pytest.mark.parametrize("within", [None, 3_000, 40_000_000])
@pytest.mark.parametrize(
    ("data", "rate", "topics"),
    [
        (scattered(), 170_000, ["a", "b"]),
        (short_flight(), 23.5, ["vehicle_attitude", "sensor_gps", "~text"]),
        (drive(), "7.3Hz", ["/odom", "/joint_states", "/tf"]),
        (eventful().bytes(), "100Hz", ["position", "collisions", "frames"]),
        (walk(2.0), "0.09kHz", None),
    ],
    ids=["scattered", "ulog", "bag", "carla", "bddf"],
)
def test_rows_are_those_of_pandas(
    data: bytes, rate: Any, topics: list[str] | None, within: int | None, method: str, rows: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(module, "ROWS", rows)
    log = logreel.open(data)
    topics = [ch.topic for ch in log.match(topics)]
    got = logreel.align(log, topics, rate=rate, method=method, tolerance=within)
    at = got["time"].cast(pa.int64()).to_pylist()
    hertz = Alignment(rate=rate).hertz
    assert log.start is not None
    assert log.end is not None
    assert at == [log.start + i * S * hertz.denominator // hertz.numerator for i in range(len(at))]
    assert at[-1] <= log.end < at[-1] + S / hertz
    for topic in topics:
        want = wanted(log, topic, at, method, within)
        for name in want.column_names:
            if f"{topic}.{name}" in got.column_names:
                assert repr(got[f"{topic}.{name}"].to_pylist()) == repr(want[name].to_pylist()), (topic, name)


def test_a_channel_can_be_the_clock() -> None:
    log = logreel.open(short_flight())
    got = logreel.align(
        log, {"vehicle_attitude": ["q[1]"]}, clock="sensor_gps", tolerance="5ms", method="nearest"
    )
    assert got.column_names == ["time", "vehicle_attitude.q[1]"]
    at = got["time"].cast(pa.int64()).to_pylist()
    assert at == log["sensor_gps"].times.tolist()
    want = wanted(log, "vehicle_attitude", at, "nearest", 5_000_000)["q"]
    assert got[1].to_pylist() == [None if q is None else q[1] for q in want.to_pylist()]


def test_the_interval_limits_times_but_not_previous_rows() -> None:
    log = logreel.open(short_flight())
    got = logreel.align(log, "sensor_gps", rate=100, start="+1s", end="+1.05s")
    assert log.start is not None
    assert got["time"].cast(pa.int64()).to_pylist() == [log.start + S + i * S // 100 for i in range(5)]
    assert got["sensor_gps.timestamp"].null_count == 0
    assert logreel.align(log, "sensor_gps", rate=100, start="+1s", end="+1s").num_rows == 0


def test_columns_have_topic_field_and_type_as_metadata() -> None:
    log = logreel.open(short_flight())
    schema = logreel.align(log, ["sensor_gps", "battery_status"], rate=1, utc=True).schema
    assert schema.field("time").type == pa.timestamp("ns", "UTC")
    assert schema.field("battery_status.voltage_v").metadata == {
        b"topic": b"battery_status", b"field": b"voltage_v", b"type": b"battery_status"
    }  # fmt: skip
    assert schema.metadata[b"source"] == b"<bytes>"


def test_broken_messages_are_not_matched() -> None:
    out = Builder(1).flags().format("t:uint64_t timestamp;float x;").subscribe("t", 0)
    raw = out.data(0, struct.pack("<Qf", 5, 1)).bytes()
    assert logreel.align(raw, rate=1, method="nearest")["t.x"].to_pylist() == [1.0]
    bag = logreel.open(drive())
    times = bag["/joint_states"].times
    sizes = bag.index.sizes(bag["/joint_states"].number)
    spoiled = bytearray(drive())
    offsets = bag.index.offsets(bag["/joint_states"].number)
    if bag.index.chunk_of(bag["/joint_states"].number).max() >= 0:
        pytest.skip("the bag is packed")
    for i in range(100, 140):
        # A count of names that the message has no room for.
        at = int(offsets[i]) + 20
        spoiled[at : at + 4] = b"\xff\xff\xff\x7f"
    assert sizes.min() > 24
    log = logreel.open(bytes(spoiled))
    at = times[95:145].tolist()
    for method in module.METHODS:
        got = logreel.align(
            log, "/joint_states", clock="/joint_states", method=method, start=at[0], end=at[-1]
        )
        want = wanted(log, "/joint_states", at[:-1], method, None)
        assert got["/joint_states.position"].to_pylist() == want["position"].to_pylist()


def test_matching_with_differences_beyond_int64() -> None:
    least, most = -(1 << 63), (1 << 63) - 1
    times = np.array([least, 0, most])
    at = np.array([least, -1, 5, most - 1])
    assert pick(times, at, "nearest", None).tolist() == [0, 1, 1, 2]
    assert pick(times, at, "previous", 5).tolist() == [0, -1, 1, -1]
    assert pick(times[:1], at, "previous", None).tolist() == [0, 0, 0, 0]
    assert pick(times[:0], at, "nearest", None).tolist() == [-1] * 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "either a rate or a channel"),
        ({"rate": 1, "clock": "pair"}, "either a rate or a channel"),
        ({"rate": 1, "method": "next"}, "no way to align; known: previous, nearest"),
        ({"rate": "often"}, "cannot read the rate 'often'"),
        ({"rate": 0}, "cannot read the rate"),
        ({"rate": -1}, "cannot read the rate"),
        ({"rate": 1, "tolerance": "soon"}, "cannot read the length of time"),
        ({"rate": 1, "tolerance": -1}, "less than nothing"),
        ({"rate": 1, "utc": True}, "does not tell"),
        ({"rate": 1, "topics": []}, "no channel to align"),
    ],
)
def test_unusable_arguments_of_align_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        logreel.align(tiny(), **options)


def test_a_wrong_time_makes_no_endless_table() -> None:
    out = Builder(1).flags().format("a:uint64_t timestamp;").subscribe("a", 0)
    for time in (1000, 2000, 2**53):
        out.data(0, struct.pack("<Q", time))
    log = logreel.open(out.bytes())
    with pytest.raises(UsageError, match="more than 1000000000: choose an interval, or a lower rate"):
        logreel.align(log, rate="5Hz", end=2**62)
    assert len(logreel.align(log, rate="5Hz", end="+1s")) == 5


def test_an_unknown_topic_or_field_names_the_nearest() -> None:
    for options in ({"topics": "pear"}, {"clock": "pear"}, {"topics": {"pair": ["flog"]}}):
        with pytest.raises(NotFoundError, match="nearest"):
            logreel.align(tiny(), **{"rate": None if "clock" in options else 1, **options})


def test_align_raises_the_error_of_an_unusable_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    def unusable(_: object) -> None:
        raise DefinitionError("no such type")

    monkeypatch.setattr(Channel, "layout", property(unusable))
    with pytest.raises(DefinitionError, match="no such type"):
        logreel.align(tiny(), "pair", rate=1)
