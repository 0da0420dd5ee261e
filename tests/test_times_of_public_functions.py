"""Every public start and end accepts the same times: found by introspection, compared with ``logreel.slice``."""

from __future__ import annotations

import base64
import inspect
import json
import re
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.errors import UsageError
from support.builders.frames import bag
from support.harness.one_database import one_database
from support.harness.times_without_unit import NO_DURATION, NO_TIME, without_unit
from support.oracles.frames import Sent

S = 10**9
#: ns since 1970; a whole second, so that every way to write a time hits messages exactly.
START = 1_700_000_000 * S
COUNT = 60

pd = pytest.importorskip("pandas")

GRAMMAR: list[Any] = [
    None, START, START + 10 * S, np.int64(START + 10 * S), np.uint64(START + 10 * S), "+10s", "+10.5", "10.5",
    "log:1700000015.5", "+1m", "+350ms",
    "-30s", "-0:10", "00:00:15", "0:15", "1700000015.5", "1700000015", f"{START + 3 * S}ns", "2023-11-14T22:13:35Z",
    "2023-11-15 00:13:35+02:00", "2023-11-14T22:13:35.123456789Z", timedelta(seconds=10), timedelta(seconds=-10),
    timedelta(0), np.timedelta64(10, "s"), np.timedelta64(-1500, "ms"), pd.Timedelta(seconds=7, nanoseconds=1),
    datetime(2023, 11, 14, 22, 13, 35, tzinfo=UTC),
    datetime(2023, 11, 15, 0, 13, 35, tzinfo=timezone(timedelta(hours=2))),
    pd.Timestamp("2023-11-14T22:13:35.000000001Z"), np.datetime64("2023-11-14T22:13:35"),
    # These do not touch the log, as start or as end.
    "log:5", 15, "+2m", "-2m", START - S, START + COUNT * S, "1999-01-01T00:00:00Z", timedelta(days=1),
    timedelta(days=-1),
]  # fmt: skip
WRONG: list[Any] = [
    10.0, float("nan"), np.float64(10), True, np.bool_(True), Decimal(10), Fraction(10), b"+5s", "", "soon",
    "10 parsecs",
    "2023-11-14T22:13:35", "2023-13-14T22:13:35Z", "00:99:00", "9" * 20, 1 << 63, [1], (1,), {}, object(), 1j,
    datetime(2023, 11, 14, 22, 13, 35), date(2023, 11, 14), pd.NaT, pd.Timestamp("2023-11-14"), pd.Period("2023-11"),
    NO_TIME, NO_DURATION, without_unit(np.timedelta64, 5), np.timedelta64(5, "M"), np.array(5),
]  # fmt: skip
#: What these take is ns alone: an index knows no clock.
ONLY_NS = {
    "MessageIndex.rows_between",
    "MessageIndex.select",
    "MessageIndex.select_batches",
    "Log.holds_between",
    "Note.touches",
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("function") / "x.bag"
    with logreel.create(path) as w:
        channel = w.add_channel("/x", logreel.Schema("std_msgs/Int32", "ros1msg", ""))
        for i in range(COUNT):
            w.write(channel, START + i * S, {"data": i})
    return path


def public() -> Iterator[tuple[str, Any]]:
    """Yield public functions, and methods of public classes, that have a start and an end."""
    for name in logreel.__all__:
        thing = getattr(logreel, name)
        if inspect.isclass(thing):
            methods = [(f"{name}.{attribute}", one) for attribute, one in inspect.getmembers(thing, callable)]
            every = [(name, thing), *((n, m) for n, m in methods if not n.rpartition(".")[2].startswith("_"))]
        else:
            every = [(name, thing)]
        for label, one in every:
            try:
                parameters = inspect.signature(one).parameters
            except (TypeError, ValueError):
                continue
            if {"start", "end"} <= parameters.keys():
                yield label, one


def length(batches: Any) -> int:
    return sum(batch.num_rows for batch in batches)


def sliced(log: logreel.Log, tmp: Path, **span: Any) -> int:
    done = logreel.slice(log, tmp / "s.bag", force=True, **span)
    return sum(ch.messages for ch in done.channels)


def points_of_report(log: logreel.Log, tmp: Path, **span: Any) -> int:
    """Return the number of points, float32 each, of the first curve on the page; 0 without charts."""
    page = logreel.report(log, **span).html
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    panels = json.loads(found[1])["panels"]
    return len(base64.b64decode(panels[0]["curves"][0]["values"])) // 4 if panels else 0


@cache
def opened(path: Path) -> logreel.Log:
    """Open what a test has written for all of its intervals."""
    return logreel.open(path)


def transforms_at(log: logreel.Log, tmp: Path, **span: Any) -> int:
    """Return the number of transforms in a log with one at the time of each message of *log*."""
    path = tmp / "tf.bag"
    if not path.exists():
        # Without stamps, they are valid when they were logged.
        sent = [
            Sent("a", "b", time - 1_000_000, (0, 0, 0), (0, 0, 0, 1)) for time in log["/x"].times.tolist()
        ]
        bag(path, sent, stamped=False)
    links = logreel.transforms(opened(path), **span).links
    return len(links["b"]) if links else 0


def of_sensor(read: Any, kind: str, fields: dict[str, Any]) -> Callable[..., int]:
    """Return a function that counts what *read* gives of a topic with messages at the times of those of a log."""

    def count(log: logreel.Log, tmp: Path, **span: Any) -> int:
        path = tmp / "sensor.bag"
        if not path.exists():
            with logreel.create(path) as w:
                ch = w.add_channel("/x", logreel.Schema(kind, "ros1msg", ""))
                for time in log["/x"].times.tolist():
                    w.write(ch, time, fields)
        found = read(opened(path)["/x"], **span)
        return len(found) if hasattr(found, "__len__") else len(list(found))

    return count


def accepted(function: Callable[..., Any]) -> Callable[..., int]:
    """Return a call of a function whose result has no number of messages: that of the interval, if it takes it."""

    def count(log: logreel.Log, tmp: Path, **span: Any) -> int:
        function(log, **span)
        return len(list(log.messages(**span)))

    return count


#: Calls of each function that return the number of messages.
FUNCTIONS: dict[str, Callable[..., int]] = {
    "slice": sliced,
    "convert": lambda log, tmp, **span: logreel.convert(log, tmp / "x.ndjson", force=True, **span).rows,
    "pictures": of_sensor(
        logreel.pictures, "sensor_msgs/Image", {"encoding": "mono8", "height": 1, "width": 1, "data": b"a"}
    ),
    "clouds": of_sensor(logreel.clouds, "sensor_msgs/LaserScan", {"range_max": 9.0, "ranges": [1.0]}),
    "positions": of_sensor(logreel.positions, "sensor_msgs/NavSatFix", {"latitude": 50.0, "longitude": 8.0}),
    "plot": lambda log, tmp, **span: len(logreel.plot(log, "/x", **span).panels[0].curves[0].times),
    "report": points_of_report,
    "align": lambda log, tmp, **span: logreel.align(log, clock="/x", **span).num_rows,
    "sql": lambda log, tmp, **span: logreel.sql("select count(*) as n from x", log, **span)["n"][0].as_py(),
    "play": lambda log, tmp, **span: len(list(logreel.play(log, rate=1e6, **span))),
    "Player": lambda log, tmp, **span: len(list(logreel.Player(log, rate=1e6, **span))),
    "transforms": transforms_at,
    "stats": lambda log, tmp, **span: sum(ch.messages for ch in logreel.stats(log, **span)),
    "diff": lambda log, tmp, **span: logreel.diff(log, log, **span).channels[0].messages[0],
    "split": lambda log, tmp, **span: sum(
        part.messages for part in logreel.split(log, tmp / "parts", every=25 * S, force=True, **span)
    ),
    "info": lambda log, tmp, **span: logreel.info(log, **span).messages,
    "summary": lambda log, tmp, **span: next(
        fact.value for fact in logreel.summary(log, **span)["recording"] if fact.key == "messages"
    ),
    "du": lambda log, tmp, **span: sum(topic.messages for topic in logreel.du(log, **span).topics),
    "check": accepted(logreel.check),
    "health": accepted(logreel.health),
    "params": accepted(logreel.params),
    "Selection": lambda log, tmp, **span: (
        logreel.sort(log, tmp / "s.bag", force=True, selection=logreel.Selection(**span)).messages
    ),
    "sort": lambda log, tmp, **span: logreel.sort(log, tmp / "s.bag", force=True, **span).messages,
    "recover": lambda log, tmp, **span: logreel.recover(log, tmp / "r.bag", force=True, **span).messages,
    "merge": lambda log, tmp, **span: logreel.merge([log], tmp / "m.bag", force=True, **span).messages,
    "Log.messages": lambda log, tmp, **span: len(list(log.messages(**span))),
    # Of a file, it would wait for more messages.
    "Log.follow": lambda log, tmp, **span: len(
        list(logreel.open(Path(log.name).read_bytes()).follow(**span))
    ),
    "Log.table": lambda log, tmp, **span: log.table("/x", **span).num_rows,
    "Channel.to_arrow": lambda log, tmp, **span: log["/x"].to_arrow(**span).num_rows,
    "Channel.batches": lambda log, tmp, **span: length(log["/x"].batches(**span)),
    "Channel.to_numpy": lambda log, tmp, **span: len(log["/x"].to_numpy(**span)["data"]),
    "Channel.to_pandas": lambda log, tmp, **span: len(log["/x"].to_pandas(**span)),
    "Channel.to_polars": lambda log, tmp, **span: len(log["/x"].to_polars(**span)),
    "Channel.to_xarray": lambda log, tmp, **span: log["/x"].to_xarray(**span).sizes["time"],
}
NEEDS = {"sql": "duckdb", "Channel.to_polars": "polars", "Channel.to_xarray": "xarray"}


def spans() -> list[dict[str, Any]]:
    every = [*GRAMMAR, *WRONG]
    return [{"start": value} for value in every] + [{"end": value} for value in every]


def message_count(function: str, log: logreel.Log, tmp: Path, span: dict[str, Any]) -> int | str:
    try:
        return FUNCTIONS[function](log, tmp, **span)
    except UsageError as error:
        return error.text


@pytest.fixture(scope="module")
def judge(path: Path, tmp_path_factory: pytest.TempPathFactory) -> list[int | str]:
    """Return the result of ``logreel.slice`` for each interval."""
    tmp, log = tmp_path_factory.mktemp("judge"), logreel.open(path)
    return [message_count("slice", log, tmp, span) for span in spans()]


def test_every_public_start_and_end_is_tried() -> None:
    # ``play`` hands its options to a Player.
    assert {name for name, _ in public()} | {"play"} == {*FUNCTIONS, *ONLY_NS}


# What ``slice`` does is the judge.
@pytest.mark.parametrize("function", [name for name in FUNCTIONS if name != "slice"])
def test_every_function_reads_times_as_slice_does(
    function: str, path: Path, tmp_path: Path, judge: list[int | str]
) -> None:
    pytest.importorskip(NEEDS.get(function, "logreel"))
    log = logreel.open(path)
    with one_database() if function == "sql" else nullcontext():
        for span, expected in zip(spans(), judge, strict=True):
            if function == "Log.follow" and "nothing between" in str(expected):
                # Messages of a later interval may still come.
                expected = 0
            assert message_count(function, log, tmp_path, span) == expected, span


def test_expected_results_differ(judge: list[int | str]) -> None:
    found = dict(zip([(next(iter(s)), repr(next(iter(s.values())))) for s in spans()], judge, strict=True))
    assert found["start", "None"] == COUNT
    assert found["start", "'+10s'"] == found["start", "datetime.timedelta(seconds=10)"] == COUNT - 10
    assert found["end", "'+10s'"] == 10
    assert found["start", "datetime.timedelta(days=-1, seconds=86390)"] == 11
    assert found["start", "'2023-11-14T22:13:35Z'"] == COUNT - 15
    for value in WRONG:
        assert isinstance(found["start", repr(value)], str)
    assert "a time is int ns" in str(found["start", "10.0"])
    assert "nothing between" in str(found["start", "'+2m'"])
    assert "nothing between" in str(found["end", "'log:5'"])


@pytest.mark.parametrize("wrong", ["+10s", 10.0, True, timedelta(1), np.datetime64("2023"), object()])
def test_an_index_takes_whole_nanoseconds_alone(path: Path, wrong: Any) -> None:
    log = logreel.open(path)
    index = log.index
    assert len(index.select(start=START + 10 * S, end=np.int64(START + 20 * S))) == 10
    calls: list[Callable[[], Any]] = [
        lambda: index.select(start=wrong), lambda: index.select(end=wrong), lambda: index.select_batches(start=wrong),
        lambda: index.rows_between(0, wrong, None), lambda: log.holds_between(None, wrong),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(UsageError, match="the index takes int ns"):
            call()


@pytest.mark.parametrize("function", ["slice", "convert", "split", "merge"])
def test_nothing_is_written_where_the_interval_does_not_touch_the_log(
    function: str, path: Path, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="nothing between"):
        FUNCTIONS[function](logreel.open(path), tmp_path, start="log:5", end="log:15")
    assert list(tmp_path.iterdir()) == []


def test_a_log_whose_clock_is_not_known_takes_no_wall_clock_times(tmp_path: Path) -> None:
    schema = logreel.Schema("x", "ulog", "x:uint64_t timestamp;float a;")
    with logreel.create(tmp_path / "x.ulg") as w:
        channel = w.add_channel("x", schema)
        for i in range(10):
            w.write(channel, (100 + i) * S, {"a": i})
    log = logreel.open(tmp_path / "x.ulg")
    assert log.utc_offset is None
    for start in (
        datetime(2023, 11, 14, tzinfo=UTC),
        np.datetime64("2023-11-14"),
        "2023-11-14T00:00:00Z",
        1.0,
    ):
        with pytest.raises(UsageError, match=r"how its clock relates to UTC|is not accepted"):
            log.messages(start=start)
    assert log.table("x", start="+5s").num_rows == 5
    assert log.table("x", start=timedelta(seconds=-3)).num_rows == 4
