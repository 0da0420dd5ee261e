"""Tables aligned in time, compared with pandas.merge_asof."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import logreel
from logreel.errors import DefinitionError, NotFoundError, UsageError
from logreel.log.log import Channel
from logreel.ops.query import align as module
from logreel.ops.query.align import Alignment, pick
from support.builders.sample_logs import short_flight, tiny
from support.samples.bddf.builder import walk
from support.samples.carla.builder import eventful
from support.samples.rosbag.builder import drive
from support.samples.ulog.builder import Builder

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


LOGS: dict[str, Callable[[], bytes]] = {
    "scattered": scattered,
    "ulog": short_flight,
    "bag": lambda: drive(3.0),
    "carla": lambda: eventful().bytes(),
    "bddf": lambda: walk(2.0),
}


@cache
def log_of(name: str) -> logreel.Log:
    """Open one of the logs once for all cases."""
    return logreel.open(LOGS[name]())


@cache
def texts_wanted(
    name: str, topic: str, at: tuple[int, ...], method: str, within: int | None
) -> dict[str, str]:
    """The rows of *topic* as pandas aligns them, each column as a text: the same for all numbers of rows of a batch."""
    want = wanted(log_of(name), topic, list(at), method, within)
    return {column: repr(want[column].to_pylist()) for column in want.column_names}


@pytest.mark.parametrize("rows", [7, 65536])
@pytest.mark.parametrize("method", module.METHODS)
@pytest.mark.parametrize("within", [None, 3_000, 40_000_000])
@pytest.mark.parametrize(
    ("name", "rate", "topics"),
    [
        ("scattered", 170_000, ["a", "b"]),
        ("ulog", 23.5, ["vehicle_attitude", "sensor_gps", "~text"]),
        ("bag", "7.3Hz", ["/odom", "/joint_states", "/tf"]),
        ("carla", "100Hz", ["position", "collisions", "frames"]),
        ("bddf", "0.03kHz", None),
    ],
    ids=list(LOGS),
)
def test_rows_are_those_of_pandas(
    name: str, rate: Any, topics: list[str] | None, within: int | None, method: str, rows: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(module, "ROWS", rows)
    log = log_of(name)
    topics = [ch.topic for ch in log.match(topics)]
    got = logreel.align(log, topics, rate=rate, method=method, tolerance=within)
    at = got["time"].cast(pa.int64()).to_pylist()
    hertz = Alignment(rate=rate).hertz
    assert log.start is not None
    assert log.end is not None
    assert at == [log.start + i * S * hertz.denominator // hertz.numerator for i in range(len(at))]
    assert at[-1] <= log.end < at[-1] + S / hertz
    for topic in topics:
        for column, text in texts_wanted(name, topic, tuple(at), method, within).items():
            if f"{topic}.{column}" in got.column_names:
                assert repr(got[f"{topic}.{column}"].to_pylist()) == text, (topic, column)


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


def between(log: logreel.Log, topic: str, path: str, at: NDArray[np.int64]) -> NDArray[np.float64]:
    """The values of a field on the lines between its messages, by NumPy; NaN outside."""
    ch = log[topic]
    order = np.argsort(ch.times, kind="stable")
    times = ch.times[order] - ch.times[0]
    values = np.asarray(ch[path], np.float64)[order].reshape(len(order), -1)
    columns = [np.interp(at - ch.times[0], times, column, np.nan, np.nan) for column in values.T]
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("rows", [7, 65536])
@pytest.mark.parametrize(
    ("data", "topic", "path"),
    [
        (short_flight(), "vehicle_attitude", "q"),
        (short_flight(), "battery_status", "voltage_v"),
        (drive(3.0), "/odom", "pose.pose.position.x"),
        (drive(3.0), "/odom", "pose.covariance"),
    ],
)
def test_linear_puts_floats_on_the_line_between_two_messages(
    data: bytes, topic: str, path: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROWS", rows)
    log = logreel.open(data)
    got = logreel.align(log, {topic: [path]}, rate="233Hz", method="linear")
    at = got["time"].cast(pa.int64()).to_numpy()
    want = between(log, topic, path, at)
    column = got[1].combine_chunks()
    assert column.type == log[topic].to_arrow([path])[1].type
    width = want.shape[1]
    values = np.array([[np.nan] * width if v is None else np.ravel(v) for v in column.to_pylist()])
    np.testing.assert_allclose(values, want, rtol=1e-5, atol=1e-6)
    assert column.null_count == np.isnan(want[:, 0]).sum() > 0


def test_linear_takes_integers_from_the_row_before_and_nothing_across_the_tolerance() -> None:
    out = Builder(1).flags().format("t:uint64_t timestamp;float x;uint8_t n;double[2] v;").subscribe("t", 0)
    for at, x, n in ((0, 0.0, 1), (10, 10.0, 3), (110, 60.0, 5), (120, float("inf"), 7)):
        out.data(0, struct.pack("<QfB2d", at + 1, x, n, x, -x))
    log = logreel.open(out.bytes())
    got = logreel.align(log, "t", rate=200_000, method="linear", tolerance="20us")
    assert got["t.x"].to_pylist()[:4] == [0.0, 5.0, 10.0, None]
    assert got["t.v"].to_pylist()[1] == [5.0, -5.0]
    assert got["t.n"].to_pylist()[:3] == [1, 1, 3]
    assert got["t.x"].to_pylist()[22:25] == [60.0, float("inf"), float("inf")]
    without = logreel.align(log, "t", rate=200_000, method="linear")
    assert without["t.x"].to_pylist()[12] == 35.0


def test_slerp_turns_quaternions_on_the_shortest_way_and_keeps_their_norm() -> None:
    rng = np.random.default_rng(11)
    turns = rng.normal(size=(40, 4))
    turns /= np.linalg.norm(turns, axis=1)[:, None]
    turns[20] = -turns[19]
    turns[21] = turns[20]
    out = Builder(1).flags().format("t:uint64_t timestamp;float[4] q_d;float[4] w;").subscribe("t", 0)
    for i, q in enumerate(turns):
        out.data(0, struct.pack("<Q8f", 100 * i + 1, *q, *q))
    log = logreel.open(out.bytes())
    got = logreel.align(log, "t", rate=40_000, method="slerp")
    q = np.stack(got["t.q_d"].to_pylist())
    np.testing.assert_allclose(np.linalg.norm(q, axis=1), 1, atol=1e-6)
    # A constant turn: each quarter of the way is as far as the others.
    steps = np.abs((q[1:] * q[:-1]).sum(axis=1)).clip(-1, 1)
    whole = np.abs((turns[1:] * turns[:-1]).sum(axis=1)).clip(-1, 1)
    np.testing.assert_allclose(4 * np.arccos(steps).reshape(-1, 4).max(axis=1), np.arccos(whole), atol=4e-3)
    # Four numbers of another name are numbers.
    np.testing.assert_allclose(np.stack(got["t.w"].to_pylist()), between(log, "t", "w", got["time"].cast(
        pa.int64()).to_numpy()), atol=1e-6)  # fmt: skip


def test_slerp_turns_quaternions_that_are_structs() -> None:
    log = logreel.open(drive())
    got = logreel.align(
        log, {"/odom": ["pose.pose.orientation", "pose.pose.position.x"]}, rate="733Hz", method="slerp"
    )
    turned = [[q[name] for name in "xyzw"] for q in got["/odom.pose.pose.orientation"].to_pylist() if q]
    np.testing.assert_allclose(np.linalg.norm(turned, axis=1), 1, atol=1e-9)
    at = got["time"].cast(pa.int64()).to_numpy()
    x = [np.nan if v is None else v for v in got["/odom.pose.pose.position.x"].to_pylist()]
    np.testing.assert_allclose(x, between(log, "/odom", "pose.pose.position.x", at)[:, 0])
