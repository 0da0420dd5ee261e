"""Windows around triggers of live sources: those that ``around`` finds in a log of all messages, in bounded memory."""

from __future__ import annotations

import io
import json
import os
import random
import time
import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import logreel
from logreel import Around, Ring
from logreel.errors import LogError, UsageError
from logreel.layout.layout import Layout
from logreel.layout.nodes import Bytes, Field, Scalar, String, Struct
from logreel.ops.query.windows import windows_of
from logreel.ops.record import Feed, record
from logreel.ops.record import ring as rings
from support.harness.cli_runner import Run
from support.harness.examples import half

S = 10**9
T0 = 1_700_000_000 * S
VALUE = Layout(Struct((Field("v", Scalar("float32")), Field("n", Scalar("int32")))))
BLOB = Layout(Struct((Field("v", Scalar("float64")), Field("data", Bytes()))))
NOTE = Layout(Struct((Field("text", String()),)))
TYPED = [".bag", ".bddf", ".mcap", ".ulg"]

#: Topic, time, content.
Sent = tuple[str, int, dict[str, Any]]


class Messages:
    """A source of given messages."""

    name = "messages"

    def __init__(
        self, messages: Iterable[Sent], latched: frozenset[str] = frozenset(), layout: Layout = VALUE
    ) -> None:
        self._messages, self._latched, self._layout = messages, latched, layout

    def run(self, feed: Feed) -> None:
        known: dict[str, Any] = {}
        for topic, moment, data in self._messages:
            if topic not in known:
                known[topic] = feed.channel(topic, self._layout, latched=topic in self._latched)
            feed.put(known[topic], moment, data, wait=True)


def values(count: int, low: Callable[[int], bool], step: int = S // 10) -> list[Sent]:
    return [("b", T0 + n * step, {"v": 10.0 if low(n) else 20.0, "n": n}) for n in range(count)]


def numbers(path: str, topic: str = "b") -> list[int]:
    with logreel.open(path) as log:
        assert not log.problems
        found: list[int] = log[topic]["n"].tolist()
        return found


@pytest.mark.parametrize("seed", range(half(12)))
def test_live_windows_are_those_of_the_whole_log(tmp_path: Path, seed: int) -> None:
    pytest.importorskip("duckdb")
    rng = random.Random(seed)
    suffix = TYPED[seed % len(TYPED)]
    now, sent = T0, list[Sent]()
    for n in range(400):
        now += rng.randrange(1, 200_000) * 1000
        sent.append((rng.choice("ab"), now, {"v": rng.uniform(10, 18), "n": n}))
    before, after, debounce = (rng.choice((0, 1, rng.randrange(3 * S))) for _ in range(3))
    conditions = rng.sample(["a.v < 12.5", "b.n > 200 and not b.v > 16", "changed(b.n)"], 2)
    if "changed(b.n)" in conditions:
        debounce = max(debounce, S // 3)
    record(Messages(sent), tmp_path / f"all{suffix}")
    ring = Ring(conditions, before, after, debounce)
    done = record(Messages(sent), tmp_path / f"w{suffix}", ring=ring)
    assert (done.skipped, done.lost) == ((), 0)
    with logreel.open(tmp_path / f"all{suffix}") as log:
        assert log.start is not None
        due = windows_of(log, Around(conditions, before, after, debounce))
        got = [window.window for window in done.windows]
        assert [[(o.time, o.condition) for o in w.onsets] for w in got] == [
            [(o.time, o.condition) for o in w.onsets] for w in due
        ]
        assert [(max(w.start, log.start), min(w.end, now + 1)) for w in got] == [
            (w.start, w.end) for w in due
        ]
        for recorded, window in zip(done.windows, due, strict=True):
            with logreel.open(recorded.path) as part:
                assert not part.problems
                for topic in "ab":
                    wanted = list(log.messages([topic], start=window.start, end=window.end))
                    found = list(part.messages([topic])) if topic in part else []
                    assert [(m.time, m.decode()) for m in found] == [(m.time, m.decode()) for m in wanted]
                assert recorded.messages == part.message_count


def test_windows_are_announced_merged_and_named(tmp_path: Path) -> None:
    said: list[str] = []
    states: list[tuple[str, int]] = []

    def say(text: str) -> None:
        said.append(text)
        # What is announced is there, for everybody.
        (name,) = [word for word in text.split() if word.startswith(str(tmp_path))]
        with logreel.open(name) as log:
            states.append((Path(name).name, log["b"]["n"].tolist()[-1]))

    sent = values(400, lambda n: n in (100, 115, 180, 300))
    done = record(Messages(sent), tmp_path / "a.mcap", ring=Ring("b.v < 14", "2s", "1s"), say=say)
    names = [
        "a_001_20231114-221330.000Z.mcap",
        "a_002_20231114-221338.000Z.mcap",
        "a_003_20231114-221350.000Z.mcap",
    ]
    assert [Path(path).name for path in done.parts] == names
    assert [numbers(window.path) for window in done.windows] == [
        list(range(80, 126)),
        list(range(160, 191)),
        list(range(280, 311)),
    ]
    assert states == [
        (f"{names[0]}.active", 100),
        (names[0], 125),
        (f"{names[1]}.active", 180),
        (names[1], 190),
        (f"{names[2]}.active", 300),
        (names[2], 310),
    ]
    assert "b.v < 14 at 2023-11-14T22:13:30.000Z (b.v = 10.0)" in said[0]
    assert sorted(os.listdir(tmp_path)) == names
    as_dict = done.as_dict()
    assert as_dict["windows"][0]["onsets"][1] == {
        "time_ns": T0 + 115 * S // 10, "condition": "b.v < 14", "values": {"b.v": 10.0},
    }  # fmt: skip
    assert (done.messages, as_dict["messages"]) == (46 + 31 + 31, 46 + 31 + 31)


@pytest.mark.parametrize("suffix", TYPED)
def test_what_holds_is_in_every_window(tmp_path: Path, suffix: str) -> None:
    sent = values(500, lambda n: n in (100, 300))
    for n, at in ((1, 5), (2, 10), (3, 95), (4, 200), (5, 299)):
        sent.append(("place", T0 + at * S // 10, {"v": 0.0, "n": n}))
        # The last part of its name says that it is static.
        sent.append(("/robot/map", T0 + at * S // 10, {"v": 0.0, "n": 10 * n}))
    sent.sort(key=lambda message: message[1])
    source = Messages(sent, frozenset({"place"}))
    like = tmp_path / f"like{suffix}"
    with logreel.create(like) as w:
        w.write(w.add_channel("other", VALUE), T0, {"n": 1})
    done = record(source, tmp_path / f"a{suffix}", ring=Ring("b.v < 14", "2s", "1s"), like=like)
    for window, due in zip(done.windows, ([2, 3], [4, 5]), strict=True):
        assert numbers(window.path, "place") == due
        assert numbers(window.path, "/robot/map") == [10 * n for n in due]
        with logreel.open(window.path) as log:
            assert log["place"].times[0] == log["b"].times[0]
            assert "other" in log


def test_static_transforms_of_all_frames_hold(tmp_path: Path) -> None:
    def transforms(*frames: str) -> dict[str, Any]:
        return {"transforms": [{"header": {"frame_id": "map"}, "child_frame_id": frame} for frame in frames]}

    lines = [("/tf_static", 0, transforms("laser", "camera")), ("/tf_static", 1, transforms("imu"))]
    lines += [("/tf_static", 2, transforms("camera"))]
    lines += [("/x", 10 * n, {"v": float(n == 50)}) for n in range(100)]
    text = [
        json.dumps({"topic": topic, "time_ns": T0 + tenths * S // 10, "data": data})
        for topic, tenths, data in lines
    ]
    done = record(text, tmp_path / "a.mcap", ring=Ring("x.v = 1", "2s", "2s"))
    (window,) = done.windows
    with logreel.open(window.path) as log:
        found = [
            [t["child_frame_id"] for t in m.decode()["transforms"]] for m in log.messages(["/tf_static"])
        ]
        assert found == [["laser", "camera"], ["imu"], ["camera"]]
        assert len(log["/x"]) == 5


def test_a_channel_that_comes_within_a_window_is_in_it_if_the_format_can(tmp_path: Path) -> None:
    sent = values(100, lambda n: n == 50)
    sent += [("late", T0 + n * S // 10, {"v": 0.0, "n": n}) for n in range(52, 100)]
    sent.sort(key=lambda message: message[1])
    for suffix in TYPED:
        said: list[str] = []
        done = record(
            Messages(sent), tmp_path / f"a{suffix}", ring=Ring("b.v < 14", "1s", "1s"), say=said.append
        )
        (window,) = done.windows
        with logreel.open(window.path) as log:
            assert not log.problems
            have = "late" in log and len(log["late"])
        if have:
            assert have == 9
        else:
            assert any("'late' came while window 1" in text for text in said)
            assert any("9 messages have no place" in note for note in done.notes)


def test_newest_windows_are_kept(tmp_path: Path) -> None:
    done = record(
        Messages(values(1000, lambda n: n % 100 == 50)),
        tmp_path / "a.mcap",
        ring=Ring("b.v < 14", "1s", "1s", max_windows=3),
    )
    assert [window.window.number for window in done.windows] == [8, 9, 10]
    assert sorted(map(str, tmp_path.iterdir())) == [window.path for window in done.windows]
    assert done.messages == 3 * 21


def test_memory_is_bounded_by_the_size_of_the_ring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """200 MB pass through a ring of 4 MB, which would span all of it by time."""
    most, counted = 4 << 20, list[int]()
    drop = rings.RingWriter._drop

    def watched(self: rings.RingWriter, entry: Any, limit: int) -> None:
        drop(self, entry, limit)
        counted.append(self._bytes)
        assert self._bytes == sum(entry.size for entry in self._entries) or len(counted) % 500

    monkeypatch.setattr(rings.RingWriter, "_drop", watched)
    payload, count = os.urandom(100_000), 2000

    def messages() -> Iterable[Sent]:
        for n in range(count):
            yield ("b", T0 + n * S // 1000, {"v": float(n == count - 100), "data": payload[n:]})

    ring = Ring("b.v = 1", before="1h", after=0, size=most)
    said: list[str] = []
    # Not the most memory that the process ever had: tests before this one may have had more.
    tracemalloc.start(1)
    done = record(
        Messages(messages(), layout=BLOB),
        tmp_path / "a.mcap",
        ring=ring,
        buffer_size=4 << 20,
        say=said.append,
    )
    grown = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sum(len(payload) - n for n in range(count)) > 190e6
    assert max(counted) <= most + 110_000
    # Ring, queue, what was taken out of it, and the window that is written.
    assert grown < 80e6
    assert 30 < done.messages < most // 90_000
    assert "since the ring was full" in said[0]


def test_a_clock_that_is_set_back_begins_the_ring_anew(tmp_path: Path) -> None:
    sent = values(200, lambda n: n == 150)
    earlier = [("b", moment - 1000 * S, data) for _, moment, data in values(300, lambda n: n == 250)]
    done = record(Messages([*sent, *earlier]), tmp_path / "a.mcap", ring=Ring("b.v < 14", "2s", "9s"))
    assert [numbers(window.path) for window in done.windows] == [[*range(130, 200)], [*range(230, 300)]]
    assert any("the clock was set back by 1010" in note for note in done.notes)


def test_a_window_ends_when_nothing_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rings, "SILENT", 0.05)
    ended: list[float] = []

    def say(text: str) -> None:
        if "is complete" in text:
            ended.append(time.monotonic())

    class Silent(Messages):
        def run(self, feed: Feed) -> None:
            super().run(feed)
            deadline = time.monotonic() + 5
            while not ended and time.monotonic() < deadline:
                feed.wait(0.01)
            self.waited = time.monotonic() - deadline + 5

    source = Silent(values(60, lambda n: n == 59))
    done = record(
        source, tmp_path / "a.mcap", ring=Ring("b.v < 14", "1s", "0.05s"), flush_every=0.01, say=say
    )
    assert source.waited < 4
    assert [numbers(window.path) for window in done.windows] == [[*range(49, 60)]]


def test_what_is_refused_and_what_is_told(tmp_path: Path) -> None:
    for wrong, why in (
        ({"triggers": "b.v <"}, "cannot read"),
        ({"triggers": ()}, "need a condition"),
        ({"triggers": "b.v < 1", "size": 0}, "not positive"),
        ({"triggers": "b.v < 1", "max_windows": 0}, "not positive"),
        ({"triggers": "b.v < 1", "before": "-1s"}, "not negative"),
    ):
        with pytest.raises(UsageError, match=why):
            Ring(**wrong)  # type: ignore[arg-type]
    ring, out = Ring(["b.w < 1", "c.v > 1"], "1s"), tmp_path / "a.mcap"
    for options in ({"mode": "a"}, {"split_size": 100}, {"max_splits": 2}):
        with pytest.raises(UsageError):
            record(Messages([]), out, ring=ring, **options)
    with pytest.raises(UsageError, match="fit into a stream"):
        record(Messages([]), io.BytesIO(), format="mcap", ring=ring)
    done = record(Messages(values(10, lambda n: True)), out, ring=ring)
    assert (done.windows, done.parts, done.size, done.messages) == ((), (), 0, 0)
    assert "'b.w < 1' does not apply to 'b': no field 'w'" in done.notes[0]
    assert "the trigger 'c.v > 1' is about no topic that came" in done.notes
    assert not list(tmp_path.iterdir())


def test_a_failed_recording_leaves_its_window(tmp_path: Path) -> None:
    said: list[str] = []

    def stop() -> bool:
        if any("window 1:" in text for text in said):
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        record(
            Messages(values(3000, lambda n: n == 50)),
            tmp_path / "a.mcap",
            ring=Ring("b.v < 1e1 or b.v = 10", "1s", "1h"),
            stop=stop,
            say=said.append,
        )
    (left,) = tmp_path.iterdir()
    assert left.name.endswith(".mcap.active")
    assert said[-1] == f"{left} holds what was written"
    saved = logreel.recover(left)
    assert numbers(saved.path)[:11] == list(range(40, 51))


def test_command_line(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [
        json.dumps({"topic": topic, "time_ns": moment, "data": data})
        for topic, moment, data in values(200, lambda n: n in (80, 180))
    ]
    Path("lines.ndjson").write_text("\n".join(lines))
    words = [
        "record",
        "a.mcap",
        "--from",
        "lines.ndjson",
        "--ring",
        "2s",
        "--trigger",
        "b.v < 14",
        "--after",
        "1s",
    ]
    done = run(*words, "--json")
    assert done.code == 0
    assert [window["messages"] for window in done.json["windows"]] == [31, 31]
    assert done.json["parts"] == ["a_001_20231114-221328.000Z.mcap", "a_002_20231114-221338.000Z.mcap"]
    assert "window 1: b.v < 14 at" in done.err
    done = run(*words, "--ring-size", "10kB", "--max-windows", "1", "--force", "--debounce", "1s")
    assert done.code == 0
    assert "wrote 31 messages of 1 channel to a_002_20231114-221338.000Z.mcap" in done.err
    done = run(*words[:-4], "--trigger", "b.v < 1")
    assert (done.code, "wrote 0 messages of 0 channels to 0 windows" in done.err) == (0, True)
    for wrong, why in (
        (["--ring", "1s"], "windows need a length and a trigger"),
        (["--trigger", "b.v < 1"], "windows need a length and a trigger"),
        (["--after", "1s"], "windows need a length and a trigger"),
        (["--ring", "1s", "--trigger", "b.v <"], "cannot read"),
        (["--ring", "1s", "--trigger", "b.v < 1", "--split-size", "1MB"], "windows are new files"),
        (["--ring", "1s", "--trigger", "b.v < 1", "--append"], "windows are new files"),
        (["--ring", "1s", "--trigger", "b.v < 1", "-o", "-", "--format", "mcap"], "do not fit on stdout"),
    ):
        target = [] if "-o" in wrong else ["x.mcap"]
        done = run("record", *target, "--from", "lines.ndjson", *wrong)
        assert (done.code, why in done.err) == (2, True), done.err
    with pytest.raises(LogError):
        record(lines, tmp_path / "missing" / "a.mcap", ring=Ring("b.v < 14"))
