"""Windows around the moments at which conditions begin to hold: of logs, against naive loops."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

import logreel
from logreel import Around
from logreel.errors import LogError, NotFoundError, UsageError
from logreel.layout.encode_message import encoder
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, FixedArray, Scalar, String, Struct
from logreel.ops.query.message_condition import MessageCondition
from logreel.ops.query.where import Tester as SqlTester
from logreel.ops.query.where import WhereCondition, on_one_channel
from logreel.ops.query.windows import label_of, windows_of
from support.builders.contents import SAMPLES, sample
from support.harness.cli_runner import Run
from support.harness.examples import half
from support.samples.ulog.builder import flight

pytest.importorskip("duckdb")

S = 10**9
T0 = 1_700_000_000 * S
PAIR = Layout(Struct((Field("v", Scalar("float64")), Field("n", Scalar("int32")))))

Naive = list[tuple[int, int, list[int]]]


def series(path: Path, rng: random.Random, count: int = 60) -> Path:
    """A log with two channels of random values; some messages have equal times, and they are not in order."""
    with logreel.create(path, flush_every=None) as w:
        numbers = [w.add_channel(topic, PAIR) for topic in ("a", "b")]
        for number in numbers:
            times = [T0 + rng.randrange(0, 20_000) * 1_000_000 for _ in range(count)]
            for time in times if rng.random() < 0.3 else sorted(times):
                value = math.nan if rng.random() < 0.05 else rng.uniform(10, 18)
                w.write(number, time, {"v": value, "n": rng.randrange(3)})
    return path


def naive(
    messages: list[tuple[int, int, bool]], before: int, after: int, debounce: int, first: int, last: int
) -> Naive:
    """Windows by a loop over every moment: (condition, time, whether it holds) of messages by time."""
    onsets = []
    state: dict[int, bool] = {}
    fell: dict[int, int] = {}
    for condition, time, holds in messages:
        if holds and not state.get(condition, False):
            if condition not in fell or time - fell[condition] >= debounce:
                onsets.append((time, condition))
        elif not holds and state.get(condition, False):
            fell[condition] = time
        state[condition] = holds
    windows: Naive = []
    for time, _ in sorted(onset for onset in onsets if first <= onset[0] < last):
        inside = [w for w in windows if any(abs(time - other) <= before + after + 1 for other in w[2])]
        if inside:
            (window,) = inside
            windows[windows.index(window)] = (window[0], min(last, time + after + 1), [*window[2], time])
        else:
            windows.append((max(first, time - before), min(last, time + after + 1), [time]))
    return windows


@pytest.mark.parametrize("seed", range(half(40)))
def test_windows_are_those_of_a_loop(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    path = series(tmp_path / "a.mcap", rng)
    before, after, debounce = (rng.choice((0, 1, rng.randrange(3 * S))) for _ in range(3))
    conditions = [("a.v < 14", "a", lambda m: m["v"] < 14), ("b.n = 1", "b", lambda m: m["n"] == 1)]
    chosen = rng.sample(conditions, rng.randint(1, 2))
    with logreel.open(path) as log:
        assert log.start is not None
        assert log.end is not None
        first, last = log.start, log.end + 1
        if seed % 2:
            first, last = log.start + rng.randrange(5 * S), log.end - rng.randrange(5 * S)
        messages: list[tuple[int, int, bool]] = []
        for n, (_, topic, meets) in enumerate(chosen):
            every = sorted(log.messages([topic], order="file"), key=lambda m: m.time)
            # For DuckDB, NaN is more than every number.
            messages += [(n, m.time, bool(meets(m.decode()))) for m in every if m.time < last]
        messages.sort(key=lambda entry: entry[1])
        due = naive(messages, before, after, debounce, first, last)
        around = Around([text for text, _, _ in chosen], before, after, debounce)
        if not due:
            with pytest.raises(LogError, match="never begins to hold"):
                windows_of(log, around, (first, last))
            return
        got = windows_of(log, around, (first, last))
        assert [(w.start, w.end, [onset.time for onset in w.onsets]) for w in got] == due
        assert [w.number for w in got] == list(range(1, len(got) + 1))
        for onset in (onset for window in got for onset in window.onsets):
            topic = onset.condition[0]
            held = [m.decode() for m in log.messages([topic], start=onset.time, end=onset.time + 1)]
            (name,) = onset.values
            assert any(m[name.partition(".")[2]] == onset.values[name] for m in held)


def test_changes_are_onsets_and_debounce_wants_the_value_to_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    with logreel.create(path) as w:
        number = w.add_channel("mode", PAIR)
        for second, n in enumerate([3, 3, 4, 4, 5, 4, 4, 4, 4, 9]):
            w.write(number, T0 + second * S, {"v": 0.0, "n": n})
    with logreel.open(path) as log:
        for debounce, due in ((0, [2, 4, 5, 9]), ("2s", [2, 4, 9]), ("3s", [2, 9])):
            windows = windows_of(log, Around("changed( mode.n )", 0, 0, debounce))
            assert [(w.start - T0) // S for w in windows] == due
        assert windows[0].onsets[0].values == {"mode.n": "4"}


@pytest.mark.parametrize("suffix", SAMPLES)
def test_a_slice_has_the_messages_of_the_windows_and_a_split_one_window_each(
    tmp_path: Path, suffix: str
) -> None:
    source = sample(tmp_path, suffix)
    with logreel.open(source) as log:
        assert log.start is not None
        assert log.end is not None
        topic = max((ch for ch in log.match(None) if not ch.reserved and len(ch) > 3), key=len)
        middle = int(topic.times[len(topic) // 2])
        around = Around(
            f'"{topic.topic}".time_ns >= {middle}', (log.end - log.start) // 5, (log.end - log.start) // 4
        )
        done = logreel.slice(log, tmp_path / f"out{suffix}", around=around)
        (window,) = done.windows  # type: ignore[attr-defined]
        parts = logreel.split(log, tmp_path / "parts", around=around)
        assert [part.messages for part in parts] == [done.messages]
        plain = logreel.slice(
            log, tmp_path / f"plain{suffix}", start=window.start, end=window.end, keep_latched=True
        )
        assert done.as_dict() == plain.as_dict() | {
            "output": done.path, "windows": [window.as_dict()], "size": done.size,
        }  # fmt: skip


def test_the_union_of_windows_has_what_is_in_force_in_each(tmp_path: Path) -> None:
    source, out = tmp_path / "a.bag", tmp_path / "b.bag"
    with logreel.create(source) as w:
        latched = w.add_channel("/map", logreel.Schema("std_msgs/Float64", "ros1msg"))
        value = w.add_channel("/x", logreel.Schema("std_msgs/Float64", "ros1msg"))
        for second in range(100):
            if second in (1, 5, 40, 42, 95):
                w.write(latched, T0 + second * S - 1, {"data": float(second)})
            w.write(value, T0 + second * S, {"data": float(second in (20, 60))})
    done = logreel.slice(source, out, around=Around("x.data = 1", "2s", "3s"))
    with logreel.open(out) as log:
        assert [(m.time - T0) / S for m in log.messages(["/x"])] == [
            18,
            19,
            20,
            21,
            22,
            23,
            58,
            59,
            60,
            61,
            62,
            63,
        ]
        # The first one has the time of the first message of its window, the other one its own.
        assert [(m.time, m.decode()["data"]) for m in log.messages(["/map"])] == [
            (T0 + 18 * S, 5.0),
            (T0 + 42 * S - 1, 42.0),
        ]
    assert len(done.windows) == 2  # type: ignore[attr-defined]
    parts = logreel.split(source, tmp_path / "parts", around=Around("x.data = 1", "2s", "3s"))
    assert [Path(part.path).name for part in parts] == ["a_data-is-1_01.bag", "a_data-is-1_02.bag"]
    assert [logreel.open(part.path)["/map"]["data"].tolist() for part in parts] == [[5.0], [42.0]]
    # In tables, there is nothing but the messages.
    table = logreel.convert(source, f"{tmp_path}/t.csv/", around=Around("x.data = 1", "2s", "3s"))
    assert {written.topic: written.rows for written in table.channels} == {"/map": 0, "/x": 12}
    mcap = logreel.convert(source, tmp_path / "t.mcap", around=Around("x.data = 1", "2s", "3s"), raw=True)
    assert {written.topic: written.rows for written in mcap.channels} == {"/x": 12, "/map": 2}
    assert table.windows == mcap.windows == done.windows  # type: ignore[attr-defined]
    where = logreel.slice(
        source, tmp_path / "w.bag", around=Around("x.data = 1", "2s", "3s"), where="x.data = 0"
    )
    assert where.messages == 10


@pytest.mark.parametrize(
    ("condition", "label"),
    [
        ("battery_status.voltage_v < 14", "voltage_v-below-14"),
        ('"/imu/data".acc.x >= 3.5 and "/imu/data".y<>-2', "acc.x-at-least-3.5-and-y-is-not-minus-2"),
        ("~text.message LIKE '%fail%'", "message-LIKE-fail"),
        ("changed(vehicle_status.nav_state)", "changed-nav_state"),
        ("../../x == '/etc/passwd'", "x-is-etc-passwd"),
        ("''", "condition"),
        ("a.b > 1 or " * 20, ("b-above-1-or-" * 20)[:60].strip("-")),
    ],
)  # fmt: skip
def test_files_are_named_by_condition(condition: str, label: str) -> None:
    assert label_of(condition) == label


def test_command_line(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("flight.ulg").write_bytes(flight(10.0))
    condition = "battery_status.current_a > 20"
    done = run(
        "split",
        "flight.ulg",
        "-o",
        "parts",
        "--around",
        condition,
        "--before",
        "1s",
        "--after",
        "1s",
        "--json",
    )
    assert done.code == 0
    (part,) = done.json["logs"]
    assert part["output"] == "parts/flight_current_a-above-20_01.ulg"
    (window,) = part["windows"]
    assert [onset["values"][condition.split()[0]] > 20 for onset in window["onsets"]] == [True, True]
    assert window["start_ns"] == window["onsets"][0]["time_ns"] - S
    assert window["end_ns"] == window["onsets"][1]["time_ns"] + S + 1
    done = run("slice", "flight.ulg", "-o", "-", "--around", condition, "--before", "0.1s", "--after", "0s")
    assert done.code == 0
    assert "window 2: 0.100 s from" in done.err
    assert "(battery_status.current_a = 20.3361)" in done.err
    done = run("convert", "flight.ulg", "w.csv/", "--around", condition, "--debounce", "20s", "--json")
    assert [len(w["onsets"]) for w in json.loads(done.out)["windows"]] == [1]
    never = "battery_status.current_a > 2000"
    done = run("split", "flight.ulg", "-o", "none", "--around", never)
    assert (done.code, done.err) == (
        1,
        f"logreel: flight.ulg: '{never}' never begins to hold, so there is no window to write\n",
    )
    assert not Path("none").exists()
    done = run("slice", "flight.ulg", "-o", "x.ulg", "--before", "1s")
    assert (done.code, "--before is for windows" in done.err) == (2, True)
    done = run("slice", "flight.ulg", "-o", "x.ulg", "--around", condition, "--before", "-1s")
    assert (done.code, "not negative" in done.err) == (2, True)
    # Of several logs, those without a window are named.
    Path("short.ulg").write_bytes(flight(3.0))
    done = run("split", "flight.ulg", "short.ulg", "-o", "both", "--around", condition)
    assert done.code == 3
    assert "short.ulg: 'battery_status.current_a > 20' never begins to hold" in done.err
    assert [str(path) for path in sorted(Path("both").rglob("*.ulg"))] == [
        "both/flight.ulg/flight_current_a-above-20_01.ulg"
    ] or [path.name for path in sorted(Path("both").rglob("*.ulg"))] == ["flight_current_a-above-20_01.ulg"]


def test_what_windows_cannot_be_of(tmp_path: Path) -> None:
    path = series(tmp_path / "a.mcap", random.Random(1))
    for wrong in ([], "", ["a.v < 1", " "]):
        with pytest.raises(UsageError, match="need a condition"):
            Around(wrong)
    with pytest.raises(UsageError, match="several channels"):
        logreel.slice(path, tmp_path / "b.mcap", around="v < 14")
    with pytest.raises(NotFoundError):
        logreel.slice(path, tmp_path / "b.mcap", around="a.w < 14")
    with pytest.raises(UsageError, match="merge takes no around"):
        logreel.merge([path], tmp_path / "b.mcap", selection=logreel.Selection(around="a.v < 14"))
    with pytest.raises(UsageError, match="split by one of"):
        logreel.split(path, tmp_path, around="a.v < 14", where="a.v < 14")


# ------------------------------------------------------------------------------- conditions on single messages

MIXED = Layout(
    Struct(
        (
            Field("f", Scalar("float32")),
            Field("d", Scalar("float64")),
            Field("i", Scalar("int16")),
            Field("u", Scalar("uint64")),
            Field("on", Scalar("bool")),
            Field("s", String()),
            Field("q", FixedArray(Scalar("float32"), 3)),
        )
    )
)
NUMBERS = ("0", "1", "-2", "0.1", "14.1", "3e-1", ".5", "7.0", "100000")
TEXTS = ("''", "'on'", "'it''s'", "'a_c'", "'%'")


def random_condition(rng: random.Random, depth: int = 0) -> str:
    number = lambda: rng.choice(("m.f", "m.d", "m.i", "m.u", 'm."q[1]"', "abs(m.i)", "-m.d"))  # noqa: E731
    other = lambda: rng.choice((number(), rng.choice(NUMBERS), rng.choice(NUMBERS)))  # noqa: E731
    sign = rng.choice(("=", "==", "<>", "!=", "<", "<=", ">", ">="))
    negated = rng.choice(("", "not "))
    kinds = [
        lambda: f"{number()} {sign} {other()}",
        lambda: f"{number()} {negated}between {other()} and {other()}",
        lambda: f"{number()} {negated}IN ({other()}, {other()})",
        lambda: f"m.s {sign} {rng.choice(TEXTS)}",
        lambda: (
            f"m.s {negated}{rng.choice(('like', 'ILIKE'))} {rng.choice(('%n', 'O_', 'a%c', '%', 'i%s'))!r}"
        ),
        lambda: f"m.s {negated}in ({rng.choice(TEXTS)}, {rng.choice(TEXTS)}, null)",
        lambda: rng.choice(
            ("m.on", "m.on = true", "not m.on", "m.d is null", "m.s IS NOT NULL", "m.i = null")
        ),
    ]
    if depth < 3 and rng.random() < 0.6:
        joined = rng.choice(("and", "OR"))
        left, right = (random_condition(rng, depth + 1) for _ in range(2))
        return f"{rng.choice(('', 'NOT '))}({left}) {joined} {right}"
    return rng.choice(kinds)()


def test_conditions_on_single_messages_mean_what_duckdb_says(tmp_path: Path) -> None:
    rng = random.Random(7)
    values: list[dict[str, Any]] = [
        {
            "f": rng.choice((0.1, 14.1, 0.5, math.nan, -2.0, math.inf, 100000.0)),
            "d": rng.choice((0.1, 14.1, 0.3, math.nan, -2.0, 7.0)),
            "i": rng.choice((0, 1, -2, 7)),
            "u": rng.choice((0, 1, 7, 100000)),
            "on": rng.random() < 0.5,
            "s": rng.choice(("", "on", "ON", "it's", "abc", "a\nc", "%")),
            "q": [0.1, rng.choice((0.1, 14.1)), 0.3],
        }
        for _ in range(40)
    ]
    with logreel.create(tmp_path / "a.mcap") as w:
        number = w.add_channel("m", MIXED)
        for n, message in enumerate(values):
            w.write(number, T0 + n, message)
    asked = agreed = 0
    encode = encoder(MIXED)
    with logreel.open(tmp_path / "a.mcap") as log, SqlTester() as tester:
        ch = log["m"]
        import numpy as np

        for _ in range(40):
            text = random_condition(rng)
            due = tester.test(
                on_one_channel(log, WhereCondition.parse(text), [ch]), np.arange(len(ch))
            ).tolist()
            bound = MessageCondition.parse(text).bind("m", MIXED)
            assert bound is not None
            from_dicts = [bound.test(bound.values(0, message)) for message in values]
            assert from_dicts == due, text
            assert [bound.test(bound.values(0, bytes(encode(message)))) for message in values] == due, text
            asked += 1
            agreed += 0 < sum(due) < len(due)
    assert agreed > asked // 3


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("m.i + 1 > 2", "cannot read"),
        ("m.i > ", "cannot read"),
        ("m.i > 1)", "cannot read"),
        ("(m.i > 1", "cannot read"),
        ("m.i > 12abc", "cannot read"),
        ("m.q[1] > 1", "cannot read"),
        ("sum(m.i) > 1", "cannot read"),
        ("m.i not > 1", "cannot read"),
        ("i > 1", "has no topic"),
        ("1 > 2", "names no field"),
        ("", "cannot read"),
        ("(" * 60 + "m.i > 1" + ")" * 60, "too many parentheses"),
        ("m.i > 1 or " * 2000 + "m.i > 1", "too long"),
        ("m.q > 1", "not a single number"),
        ("m.s > 1", "compares a text"),
        ("m.i > 1 and x.y > 2", "about one topic"),
        ("m.j > 1", "no field 'j'"),
        ("changed(m.i + 1)", "cannot read"),
    ],
)
def test_conditions_that_are_refused(text: str, why: str) -> None:
    with pytest.raises(LogError, match=why):
        MessageCondition.parse(text).bind("m", MIXED)
