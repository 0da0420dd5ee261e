"""Logs split by changes of a field, by conditions and by the other rules; names of the parts."""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.errors import LogError, NotFoundError, UsageError
from logreel.ops.query.record_batches import intersect_intervals
from logreel.ops.query.where import true_intervals, value_changes
from support.builders.contents import SAMPLES, content, sample
from support.samples.ulog.builder import flight


def state_field(log: logreel.Log) -> tuple[str, str]:
    """A channel with one record per message, and the field of it whose value changes least often, but does."""
    found: list[tuple[int, str, str]] = []
    for ch in log.match(None):
        try:
            fields = ch.fields
        except logreel.DefinitionError:
            continue
        for path in fields:
            values = ch.to_arrow([path])[1]
            if len(values) != len(ch) or "list" in str(values.type) or "binary" in str(values.type):
                continue
            texts = [str(value) for value in values.to_pylist()]
            found.append((sum(a != b for a, b in pairwise(texts)), ch.topic, path))
    _, topic, path = min(one for one in found if one[0])
    return topic, path


def held(log: logreel.Log, topic: str, path: str) -> list[tuple[int, Any]]:
    """Time and value of each change of a field, by a loop."""
    found: list[tuple[int, Any]] = []
    pairs = dict(zip(log[topic].times.tolist(), log.table(topic, [path])[1].to_pylist(), strict=True))
    for time, value in sorted(pairs.items(), key=lambda pair: pair[0]):
        if not found or found[-1][1] != value:
            found.append((time, value))
    return found


@cache
def state_field_of(suffix: str) -> tuple[str, str]:
    return state_field(logreel.open(SAMPLES[suffix]()))


# Other rules: test_slice_times.py.
@pytest.mark.parametrize("suffix", SAMPLES)
def test_the_merged_parts_have_the_messages_of_the_log(tmp_path: Path, suffix: str) -> None:
    source, whole = sample(tmp_path, suffix), tmp_path / f"whole{suffix}"
    with logreel.open(source) as log:
        parts = logreel.split(log, tmp_path / "parts", on=":".join(state_field_of(suffix)))
        assert len(parts) > 1
        logreel.merge([one.path for one in parts], whole)
        with logreel.open(whole) as new:
            assert content(new) == content(log)


@pytest.mark.parametrize("suffix", SAMPLES)
def test_intervals_of_a_condition_and_of_its_negation_have_all_messages_between_them(
    tmp_path: Path, suffix: str
) -> None:
    pytest.importorskip("duckdb")
    source, whole = sample(tmp_path, suffix), tmp_path / f"whole{suffix}"
    with logreel.open(source) as log:
        topic, path = state_field_of(suffix)
        value = held(log, topic, path)[0][1]
        text = repr(value) if isinstance(value, (int, float, bool)) else f"'{value}'"
        where = f'"{topic}"."{path}" = {text}'
        first = int(log[topic].times.min())
        parts = logreel.split(log, tmp_path / "yes", where=where, start=first)
        parts += logreel.split(log, tmp_path / "no", where=f"NOT ({where})", start=first)
        logreel.merge([one.path for one in parts], whole)
        with logreel.open(whole) as new:
            due = {
                topic: [pair for pair in pairs if pair[0] >= first]
                for topic, (_, pairs) in content(log).items()
                if topic[:1] != "~"
            }
            got = {topic: pairs for topic, (_, pairs) in content(new).items()}
            assert {topic: pairs for topic, pairs in due.items() if pairs} == {
                topic: pairs for topic, pairs in got.items() if pairs and topic[:1] != "~"
            }


def test_a_part_begins_at_each_change_of_the_field(tmp_path: Path) -> None:
    with logreel.open(flight(8.0)) as log:
        due = held(log, "vehicle_status", "nav_state")
        assert len(due) > 2
        parts = logreel.split(log, tmp_path, on="vehicle_status.nav_state")
        # States have the names that the format gives them.
        names = {2: "Position", 3: "Mission", 18: "Land"}
        assert [Path(one.path).stem for one in parts] == [
            f"bytes_{i:03}_{names[value]}" for i, (_, value) in enumerate(due)
        ]
        edges = [-(2**62), *(time for time, _ in due[1:]), 2**62]
        for one, lo, hi in zip(parts, edges[:-1], edges[1:], strict=True):
            with logreel.open(one.path) as part:
                for ch in log.match(None):
                    times = [time for time in ch.times.tolist() if lo <= time < hi]
                    assert part[ch.topic].times.tolist() == times


def made(path: Path, kind: str, values: list[Any], times: list[int] | None = None) -> Path:
    """An MCAP with /x, whose field x has *values*, and /y with a message at every ns from 0."""
    with logreel.create(path) as writer:
        x = writer.add_channel("/x", logreel.Schema("t", "ros1msg", f"{kind} x"))
        y = writer.add_channel("/y", logreel.Schema("u", "ros1msg", "int32 n"))
        moments = list(range(10, 10 * len(values) + 1, 10)) if times is None else times
        for time, value in zip(moments, values, strict=True):
            writer.write(x, time, {"x": value})
        for n in range(10 * len(values) + 10):
            writer.write(y, n, {"n": n})
    return path


def changes(path: Path, field: str = "/x.x", start: int | None = None) -> list[tuple[int | None, str]]:
    with logreel.open(path) as log:
        return value_changes(log, field, (start, None), 100)


NAN = float("nan")


@pytest.mark.parametrize(
    ("kind", "values", "due"),
    [
        ("float64", [NAN, NAN, 1.5, NAN], [(None, "nan"), (30, "1.5"), (40, "nan")]),
        ("float64", [0.0, -0.0, 0.0], [(None, "0")]),
        ("float32", [0.1, 0.1, 16.1], [(None, "0.1"), (30, "16.1")]),
        ("bool", [False, False, True], [(None, "false"), (30, "true")]),
        ("string", ["a/../b", "", ""], [(None, "a/../b"), (20, "")]),
        ("uint64", [2**64 - 1, 2**64 - 2], [(None, str(2**64 - 1)), (20, str(2**64 - 2))]),
        ("int8", [-1, -1, 1, -1], [(None, "-1"), (30, "1"), (40, "-1")]),
        ("time", [5, 5, 7], [(None, "5"), (30, "7")]),
    ],
)  # fmt: skip
def test_values_of_all_kinds_are_compared_and_written(
    tmp_path: Path, kind: str, values: list[Any], due: list[tuple[int | None, str]]
) -> None:
    assert changes(made(tmp_path / "a.mcap", kind, values)) == due


def test_messages_out_of_order_and_of_equal_times_count_by_time(tmp_path: Path) -> None:
    path = made(tmp_path / "a.mcap", "int32", [3, 1, 2, 9, 2, 4], [30, 10, 20, 20, 20, 40])
    assert changes(path) == [(None, "1"), (20, "2"), (30, "3"), (40, "4")]


def test_the_value_that_holds_at_the_start_of_the_interval_is_that_of_the_first_part(tmp_path: Path) -> None:
    path = made(tmp_path / "a.mcap", "int32", [1, 2, 3])
    assert changes(path, start=25) == [(25, "2"), (30, "3")]
    assert changes(path, start=20) == [(20, "2"), (30, "3")]
    assert changes(path, start=5) == [(5, "1"), (20, "2"), (30, "3")]
    parts = logreel.split(path, tmp_path / "p", on="/x.x", start=25, end=35, name="{value}")
    assert [Path(one.path).name for one in parts] == ["2.mcap", "3.mcap"]
    assert [logreel.open(one.path)["/y"].times.tolist() for one in parts] == [
        [25, 26, 27, 28, 29],
        [*range(30, 35)],
    ]


def test_items_of_arrays_and_nested_fields_can_be_split_on(tmp_path: Path) -> None:
    with logreel.open(sample(tmp_path, ".bag")) as log:
        assert value_changes(log, "/odom.pose.covariance[0]", (None, None), 10)
        first = changes_of(log, "/joint_states", "position[0]")
        assert value_changes(log, "/joint_states.position[0]", (None, None), 10_000)[1:] == first[1:]


def changes_of(log: logreel.Log, topic: str, path: str) -> list[tuple[int | None, str]]:
    return [(time, str(value).removesuffix(".0")) for time, value in held(log, topic, path)]


def test_a_condition_holds_until_a_message_of_its_channel_does_not_meet_it(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    path = made(tmp_path / "a.mcap", "float64", [0, 5, 6, NAN, 1, 7])
    with logreel.open(path) as log:
        for where, due in [
            ('"/x".x > 4', [(20, 50), (60, None)]),
            ('"/x".x > 4 AND NOT isnan("/x".x)', [(20, 40), (60, None)]),
            ('"/x".x > 9 AND NOT isnan("/x".x)', []),
            ('"/x".x < 4', [(10, 20), (50, 60)]),
            (['"/x".x > 4', '"/y".n < 33'], [(20, 33)]),
            (['"/x".x > 4', "y.n >= 10", "y.n < 62"], [(20, 50), (60, 62)]),
        ]:
            assert true_intervals(log, where, (None, None)) == due
        assert true_intervals(log, '"/x".x > 4', (30, 65)) == [(30, 50), (60, 65)]
        parts = logreel.split(log, tmp_path / "p", where='"/x".x < 4')
    assert [logreel.open(one.path)["/y"].times.tolist() for one in parts] == [
        [*range(10, 20)],
        [*range(50, 60)],
    ]


def test_intersections_of_intervals_are_those_of_sets() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        a, b = (_random_intervals(rng) for _ in range(2))
        found = intersect_intervals(a, b)
        assert _members(found) == _members(a) & _members(b)
        assert all(x is None or y is None or x < y for x, y in found)


def _random_intervals(rng: np.random.Generator) -> list[tuple[int | None, int | None]]:
    edges: list[int | None] = sorted(rng.choice(30, 2 * int(rng.integers(0, 5)), replace=False).tolist())
    if edges and rng.integers(2):
        edges[0] = None
    if edges and rng.integers(2):
        edges[-1] = None
    return list(zip(edges[::2], edges[1::2], strict=True))


def _members(intervals: list[tuple[int | None, int | None]]) -> set[int]:
    return {
        n for lo, hi in intervals for n in range(-1, 32) if (lo is None or lo <= n) and (hi is None or n < hi)
    }


@pytest.mark.parametrize(
    ("rule", "name", "due"),
    [
        ({"on": "/x.x"}, None, ["a_000_a_.._b.mcap", "a_001__.mcap", "a_002_CON.mcap", "a_003_con.mcap"]),
        ({"on": "/x.x"}, "{value}", ["a_.._b.mcap", "_.mcap", "CON.mcap", "con-2.mcap"]),
        ({"on": "/x.x"}, "part.mcap", ["part.mcap", "part-2.mcap", "part-3.mcap", "part-4.mcap"]),
        ({"on": "/x.x"}, "..{index:2}", ["_00.mcap", "_01.mcap", "_02.mcap", "_03.mcap"]),
        ({"every": 30}, "{stem}-{start}-{end}", ["a-0-30.mcap", "a-30-49.mcap"]),
        ({"every": "30ns"}, "{stem}-{start}-{end}", ["a-0-30.mcap", "a-30-49.mcap"]),
        ({"every": timedelta(seconds=1)}, "{stem}-{start}-{end}", ["a-0-49.mcap"]),
        ({"every": 30}, "{utc}", ["no-utc.mcap", "no-utc-2.mcap"]),
        ({"by_topic": True}, "{index}{topic}", ["0x.mcap", "1y.mcap"]),
        ({"by_topic": True}, None, ["a_x.mcap", "a_y.mcap"]),
        ({"by_segment": True}, "{segment:03}", ["001.mcap"]),
    ],
)  # fmt: skip
def test_names_follow_the_template_and_stay_in_the_folder(
    tmp_path: Path, rule: dict[str, Any], name: str | None, due: list[str]
) -> None:
    path = made(tmp_path / "a.mcap", "string", ["a/../b", "", "CON", "con"])
    parts = logreel.split(path, tmp_path / "p", name=name, **rule)
    assert [Path(one.path).name for one in parts] == due
    assert sorted(one.name for one in (tmp_path / "p").iterdir()) == sorted(due)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("../{index}", "that of a file in the folder, not a path"),
        ("/tmp/{index}", "not a path"),
        ("a\\{index}", "not a path"),
        ("{index.__class__}", "no key {index.__class__} in names; there are {stem}, {index}"),
        ("{0}", "no key {0} in names"),
        ("{}", "no key {} in names"),
        ("{index!r}", "cannot read"),
        ("{index:999999999d}", "cannot read"),
        ("{index:{stem}}", "cannot read"),
        ("{index", "cannot read the name"),
        ("{value}", "no key {value} in names for this way to split; there are {stem}"),
        ("", "needs a name"),
    ],
)  # fmt: skip
def test_wrong_templates_are_usage_errors(tmp_path: Path, name: str, text: str) -> None:
    path = made(tmp_path / "a.mcap", "int32", [1, 2])
    with pytest.raises(UsageError) as raised:
        logreel.split(path, tmp_path / "p", every=10, name=name)
    assert text in str(raised.value)
    assert not (tmp_path / "p").exists()


def test_long_values_make_short_names(tmp_path: Path) -> None:
    path = made(tmp_path / "a.mcap", "string", ["é" * 300, "x" * 300, "x" * 301])
    parts = logreel.split(path, tmp_path / "p", on="/x.x", name="ü" * 200 + "{value}")
    assert len({one.path for one in parts}) == 3
    assert max(len(Path(one.path).name.encode()) for one in parts) < 200


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"on": "/x"}, UsageError, "is a whole channel: name one field, as topic.field"),
        ({"on": "/x:x,x2"}, NotFoundError, "no field 'x2'"),
        ({"on": "/z.x"}, LogError, "no channel '/z.x'"),
        ({"on": "/x.x", "every": 5}, UsageError, "split by one of"),
        ({"every": "soon"}, UsageError, "cannot read the length of time 'soon'"),
        ({"every": 1.5}, UsageError, "a length of time"),
        ({"every": "-1s"}, UsageError, "a part lasts longer than nothing"),
        ({}, UsageError, "split by one of"),
        ({"where": '"/x".x > 99'}, LogError, "the condition is never true"),
        ({"where": "time_ns > 5"}, UsageError, "in several channels, '/x', '/y': write topic.field"),
        ({"on": "/y.n"}, UsageError, "has more than 10000 different values"),
    ],
)  # fmt: skip
def test_wrong_rules_are_errors_and_leave_nothing(
    tmp_path: Path, options: dict[str, Any], error: type[Exception], text: str
) -> None:
    pytest.importorskip("duckdb")
    path = made(tmp_path / "a.mcap", "int32", [1, 2] * 600)
    with pytest.raises(error) as raised:
        logreel.split(path, tmp_path / "p", **options)
    assert text in str(raised.value)
    assert not (tmp_path / "p").exists()


def test_values_of_many_records_and_lists_cannot_be_split_on(tmp_path: Path) -> None:
    with logreel.open(sample(tmp_path, ".rec")) as log, pytest.raises(UsageError, match="holds many records"):
        logreel.split(log, tmp_path / "p", on="position.id")
    with logreel.open(sample(tmp_path, ".ulg")) as log, pytest.raises(UsageError, match="not a single value"):
        logreel.split(log, tmp_path / "p", on="vehicle_attitude.q")


def test_parts_can_keep_the_state_in_force_at_their_start(tmp_path: Path) -> None:
    source = sample(tmp_path, ".bag")
    plain = logreel.split(source, tmp_path / "a", every=300_000_000)
    kept = logreel.split(source, tmp_path / "b", every=300_000_000, keep_latched=True)
    odom = logreel.split(source, tmp_path / "c", every=300_000_000, latched=["/odom"])
    assert len(plain) == len(kept) > 2
    assert [len(logreel.open(one.path).get("/map", ())) for one in plain[1:]] == [0] * (len(plain) - 1)
    assert all(len(logreel.open(one.path)["/map"]) == 1 for one in kept)
    for few, more in zip(plain[1:], odom[1:], strict=True):
        assert len(logreel.open(more.path)["/odom"]) == len(logreel.open(few.path)["/odom"]) + 1


def test_a_condition_on_a_log_without_messages_says_that_no_channel_has_its_fields(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    with logreel.create(tmp_path / "a.mcap") as w:
        w.add_channel("/x", logreel.Schema("std_msgs/Int32", "ros1msg", "int32 data\n"))
    with pytest.raises(UsageError, match="no channel with messages has the fields of the condition"):
        logreel.split(tmp_path / "a.mcap", tmp_path / "p", where="data = 3")
