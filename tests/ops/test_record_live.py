"""Live sources: every message is written or counted as lost, several sources share a log, and parts are complete."""

from __future__ import annotations

import itertools
import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Rest, Scalar, String, Struct
from logreel.log.scan import Schema
from logreel.ops.record import Feed, LiveChannel, record, session, source
from logreel.ops.record.source import LiveQueue
from support.builders.contents import SAMPLES
from support.formats import builtin_formats, small_log
from support.harness.cli_runner import Spawn

SECOND = 10**9
START = 1_700_000_000 * SECOND
NUMBERED = Layout(Struct((Field("n", Scalar("int64")), Field("x", Scalar("float64")))))
PACKED = Layout(Struct((Field("n", Scalar("int64")),)))
TYPED = [".bag", ".bddf", ".mcap", ".ulg"]


class Scripted:
    """A source that runs a function."""

    def __init__(self, name: str, run: Callable[[Feed], None]) -> None:
        self.name, self._run = name, run

    def run(self, feed: Feed) -> None:
        self._run(feed)


def numbered(
    topic: str, count: int, step: int = 1_000_000, latched: bool = False, wait: bool = True
) -> Scripted:
    """A source of numbered messages, *step* ns apart."""

    def run(feed: Feed) -> None:
        channel = feed.channel(topic, NUMBERED, latched=latched)
        feed.settled = True
        if channel is not None:
            for n in range(count):
                feed.put(channel, START + n * step, {"n": n, "x": n / 2}, wait=wait)

    return Scripted(f"numbers of {topic}", run)


def numbers(path: str | Path, topic: str) -> list[int]:
    found: list[int] = logreel.open(path)[topic]["n"].tolist()
    return found


@pytest.fixture(params=TYPED)
def suffix(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_several_sources_are_one_log(suffix: str, tmp_path: Path) -> None:
    out = tmp_path / f"a{suffix}"
    done = record([numbered(f"sensor_{k}", 700 + k) for k in range(4)], out)
    assert (done.messages, done.skipped, done.lost, done.stopped) == (2806, (), 0, False)
    assert done.parts == (os.fspath(out),)
    log = logreel.open(out)
    assert not log.problems
    for k in range(4):
        assert numbers(out, f"sensor_{k}") == list(range(700 + k))
        assert log[f"sensor_{k}"].times.tolist() == [START + n * 1_000_000 for n in range(700 + k)]


def test_channels_of_any_log_are_recorded_live(tmp_path: Path) -> None:
    for end in SAMPLES:
        fmt = next(one for one in builtin_formats().values() if end in one.suffixes)
        before = logreel.open(small_log(fmt.name))
        real = [ch for ch in before.match(None) if before.index.rules[ch.number].synthetic is None]

        def run(feed: Feed, before: logreel.Log = before, real: list[logreel.Channel] = real) -> None:
            made = {ch.topic: feed.channel(ch.topic, ch.schema, ch.metadata) for ch in real}
            feed.settled = True
            for m in before.messages(list(made), order="file"):
                feed.put(made[m.channel.topic], m.time, bytes(m.data), wait=True)

        done = record(Scripted("sample", run), tmp_path / f"a{end}")
        assert done.skipped == (), end
        after = logreel.open(done.path)
        for ch in real:
            assert [bytes(m.data) for m in after[ch.topic]] == [bytes(m.data) for m in ch], (end, ch.topic)


def test_a_full_queue_loses_and_counts(suffix: str, tmp_path: Path) -> None:
    sent: list[bool] = []

    def run(feed: Feed) -> None:
        channel = feed.channel("fast", NUMBERED)
        feed.settled = True
        assert channel is not None
        # While the recording waits for more, the queue has no room for all of these.
        for n in range(20_000):
            sent.append(feed.put(channel, START + n * 1_000_000, {"n": n, "x": 0.0}))

    out = tmp_path / f"a{suffix}"
    done = record(Scripted("flood", run), out, buffer_size=20_000)
    kept = [n for n, ok in enumerate(sent) if ok]
    assert numbers(out, "fast") == kept
    assert done.lost == len(sent) - len(kept) > 0
    assert [(one.topic, one.messages, one.source) for one in done.losses] == [("fast", done.lost, "flood")]
    log = logreel.open(out)
    found = log["dropout" if suffix == ".bddf" else "~dropout"]
    if suffix == ".ulg":
        total = sum(int(line.split("lost ")[1].split()[0]) for line in log["~text"]["text"])
    else:
        total = int(found["messages"].sum())
        assert set(found["topic"]) == {"fast"}
    assert total == done.lost
    assert len(found)


def test_losses_that_a_source_notices_are_counted(tmp_path: Path) -> None:
    def run(feed: Feed) -> None:
        channel = feed.channel("a", NUMBERED)
        assert channel is not None
        feed.put(channel, START, {"n": 0})
        feed.lose(channel, 5, START + SECOND)
        feed.put(channel, START + 2 * SECOND, {"n": 6})
        feed.lose(channel, 2, START + 3 * SECOND)

    done = record(Scripted("gaps", run), tmp_path / "a.mcap")
    assert (done.messages, done.lost) == (2, 7)
    rows = [m.decode() for m in logreel.open(done.path)["~dropout"]]
    assert rows == [
        {"topic": "a", "messages": 5, "duration": 1},
        {"topic": "a", "messages": 2, "duration": 1},
    ]


def test_a_failed_source_ends_alone(tmp_path: Path) -> None:
    def fail(feed: Feed) -> None:
        raise ValueError("the cable is broken")

    done = record([Scripted("camera", fail), numbered("a", 10)], tmp_path / "a.bag")
    assert (done.messages, done.skipped) == (10, ("camera: ValueError: the cable is broken",))
    with pytest.raises(logreel.LogError, match="camera: ValueError: the cable is broken"):
        record([Scripted("camera", fail)], tmp_path / "b.bag")
    assert os.listdir(tmp_path) == ["a.bag"]


def test_topics_and_limits_select_messages(suffix: str, tmp_path: Path) -> None:
    out = tmp_path / f"a{suffix}"
    sources = [numbered(name, 50) for name in ("cam_left", "cam_right", "imu", "gps")]
    done = record(sources, out, topics=["cam_*", "re:im.", "odom"], exclude="*_left", limit=20)
    assert {one.topic: one.messages for one in done.channels} == {"cam_right": 20, "imu": 20}
    assert done.notes == ("'odom' fitted no topic",)
    assert numbers(out, "imu") == list(range(20))


def test_conditions_select_channels_of_live_sources(tmp_path: Path) -> None:
    def run(feed: Feed) -> None:
        for topic, kind in (
            ("/left", "sensor_msgs/Image"),
            ("/right", "sensor_msgs/Image"),
            ("/n", "std_msgs/Int8"),
        ):
            channel = feed.channel(
                topic, logreel.Schema(kind, "ros1msg", "int8 data"), {"callerids": [topic[1:]]}
            )
            if channel is not None:
                feed.put(channel, START, b"\1")

    done = record(
        Scripted("robot", run),
        tmp_path / "a.bag",
        topics=["type=*/Image", "type=a/B"],
        exclude="callerids=left",
    )
    assert {one.topic: one.messages for one in done.channels} == {"/right": 1}
    assert done.notes == ("'type=a/B' fitted no topic",)
    with pytest.raises(logreel.UsageError, match="not a regular expression"):
        record(Scripted("robot", run), tmp_path / "b.bag", topics="type=re:[")


def test_recording_ends_when_limits_are_reached_or_time_is_over(tmp_path: Path) -> None:
    def endless(feed: Feed) -> None:
        channel = feed.channel("a", NUMBERED)
        feed.settled = True
        assert channel is not None
        n = 0
        while not feed.wait(0.001):
            feed.put(channel, None, {"n": n})
            n += 1

    done = record(Scripted("endless", endless), tmp_path / "a.bag", limit=7)
    assert (done.messages, done.stopped, done.skipped) == (7, False, ())
    begun = time.monotonic()
    done = record(Scripted("endless", endless), tmp_path / "b.bag", duration="1s")
    assert time.monotonic() - begun >= 1.0
    assert done.messages > 0
    assert done.skipped == ()
    calls: list[float] = []

    def stop() -> bool:
        calls.append(time.monotonic())
        return len(calls) > 30

    done = record(Scripted("endless", endless), tmp_path / "c.bag", stop=stop)
    assert done.stopped
    assert numbers(tmp_path / "c.bag", "a") == list(range(done.messages))


def test_parts_are_complete_logs_and_together_the_whole(suffix: str, tmp_path: Path) -> None:
    out = tmp_path / f"a{suffix}"
    sources = [numbered("a", 1500), numbered("b", 1500)]
    options: dict[str, Any] = {"split_size": 20_000}
    done = record(sources, out, **options)
    assert len(done.parts) > 2
    assert [Path(part).name for part in done.parts] == [f"a_{n}{suffix}" for n in range(len(done.parts))]
    assert sorted(os.listdir(tmp_path)) == sorted(Path(part).name for part in done.parts)
    for topic in "ab":
        logs = [logreel.open(part) for part in done.parts]
        assert [n for log in logs if topic in log for n in log[topic]["n"].tolist()] == list(range(1500))
        assert not any(log.problems for log in logs)
        assert len({log[topic].schema for log in logs if topic in log}) == 1
    together = logreel.open(list(done.parts))
    assert [together[topic]["n"].tolist() for topic in "ab"] == [list(range(1500))] * 2
    # The sources of this test run one after the other, with the same times.
    assert not any(problem.lost for problem in together.problems)
    sizes = [os.stat(part).st_size for part in done.parts[:-1]]
    # A part ends soon after its size: what is written when it ends (an index) comes on top.
    assert all(20_000 <= size < 45_000 for size in sizes) or suffix == ".mcap"
    assert done.size == sum(sizes) + os.stat(done.parts[-1]).st_size


def test_parts_by_time_hold_equal_spans(tmp_path: Path) -> None:
    done = record(numbered("a", 100, SECOND // 10), tmp_path / "a.bag", split_duration="2.5s")
    assert [len(logreel.open(part)["a"]) for part in done.parts] == [25, 25, 25, 25]
    spans = [(logreel.open(part).start, logreel.open(part).end) for part in done.parts]
    assert [(start - START) / SECOND for start, _ in spans] == [0.0, 2.5, 5.0, 7.5]


def test_messages_that_come_a_little_late_make_no_problem_between_parts(suffix: str, tmp_path: Path) -> None:
    def run(feed: Feed) -> None:
        channel = feed.channel("a", NUMBERED)
        feed.settled = True
        assert channel is not None
        for n in range(300):
            # Every other message was stamped 45 ms before it is put, after messages with later stamps.
            stamp = START + n * SECOND // 100 - (n % 2) * SECOND * 45 // 1000
            feed.put(channel, stamp, {"n": n, "x": 0.0}, wait=True)

    done = record(Scripted("late", run), tmp_path / f"a{suffix}", split_duration="1s")
    parts = [logreel.open(part) for part in done.parts]
    assert len(parts) == 3
    assert all(one["a"].times.max() > other["a"].times.min() for one, other in itertools.pairwise(parts))
    with logreel.open(list(done.parts[::-1])) as log:
        assert not log.problems
        messages = [(message.time, message.decode()["n"]) for message in log.messages(["a"])]
        assert [time for time, _ in messages] == sorted(time for time, _ in messages)
        assert sorted(n for _, n in messages) == list(range(300))


def test_only_the_newest_parts_are_kept(tmp_path: Path) -> None:
    done = record(numbered("a", 100, SECOND // 10), tmp_path / "a.bag", split_duration="1s", max_splits=3)
    assert sorted(os.listdir(tmp_path)) == ["a_7.bag", "a_8.bag", "a_9.bag"]
    assert [Path(part).name for part in done.parts] == ["a_7.bag", "a_8.bag", "a_9.bag"]
    assert done.messages == 100


def test_existing_parts_are_never_replaced_without_force(tmp_path: Path) -> None:
    (tmp_path / "a_1.bag").write_bytes(b"precious")
    options: dict[str, Any] = {"split_duration": "1s"}
    with pytest.raises(logreel.LogError, match=r"a_1\.bag"):
        record(numbered("a", 30, SECOND // 10), tmp_path / "a.bag", **options)
    assert os.listdir(tmp_path) == ["a_1.bag"]
    (tmp_path / "a_9.bag").write_bytes(b"old")
    done = record(numbered("a", 30, SECOND // 10), tmp_path / "a.bag", force=True, **options)
    assert len(logreel.open(tmp_path / "a_1.bag")["a"]) == 10
    assert done.notes == (f"{tmp_path / 'a_9.bag'} was there before and is no part of this log",)


def test_a_part_whose_name_was_taken_meanwhile_gets_the_next_number(tmp_path: Path) -> None:
    def run(feed: Feed) -> None:
        (tmp_path / "a_1.bag").write_bytes(b"precious")
        numbered("a", 30, SECOND // 10).run(feed)

    done = record(Scripted("late", run), tmp_path / "a.bag", split_duration="1s")
    assert [Path(part).name for part in done.parts] == ["a_0.bag", "a_2.bag", "a_3.bag"]
    assert (tmp_path / "a_1.bag").read_bytes() == b"precious"
    assert len(done.notes) == 1


def test_latched_messages_are_repeated_in_each_part(suffix: str, tmp_path: Path) -> None:
    def run(feed: Feed) -> None:
        latched = feed.channel("map", NUMBERED, latched=True)
        other = feed.channel("a", NUMBERED)
        feed.settled = True
        assert latched is not None
        assert other is not None
        feed.put(latched, START, {"n": 77})
        for n in range(30):
            feed.put(other, START + n * SECOND // 10, {"n": n})

    for repeat in (False, True):
        done = record(
            Scripted("x", run),
            tmp_path / f"a{suffix}",
            split_duration="1s",
            repeat_latched=repeat,
            force=True,
        )
        found = [logreel.open(part)["map"] for part in done.parts]
        assert [len(ch) for ch in found] == ([1, 1, 1] if repeat else [1, 0, 0])
    assert [ch.start for ch in found] == [START, START + SECOND, START + 2 * SECOND]
    assert [ch["n"].tolist() for ch in found] == [[77]] * 3


def test_messages_are_converted_for_formats_of_other_languages(tmp_path: Path) -> None:
    text = "int64 n\nfloat64 x\n"
    schema = logreel.Schema("demo/N", "ros1msg", text)

    def run(feed: Feed) -> None:
        channel = feed.channel("a", schema)
        feed.settled = True
        assert channel is not None
        for n in range(20):
            feed.put(channel, START + n, n.to_bytes(8, "little") + bytes(8))
        feed.put(channel, START, b"short")

    for end in TYPED:
        done = record(Scripted("ros", run), tmp_path / f"a{end}")
        if end == ".ulg":
            assert done.broken == 1
            assert "1 messages of 'a' were left out" in done.skipped[0]
        found = logreel.open(tmp_path / f"a{end}")["a"]["n"].tolist()
        assert found[:20] == list(range(20))


def test_channels_that_the_format_cannot_hold_are_reported(tmp_path: Path) -> None:
    kept: list[LiveChannel] = []

    def run(feed: Feed) -> None:
        for topic, layout in (("fits", NUMBERED), ("text", Layout(Struct((Field("s", String()),))))):
            channel = feed.channel(topic, layout)
            assert channel is not None
            kept.append(channel)
        feed.settled = True
        for _ in range(3):
            feed.put(kept[0], START, {"n": 1})
            feed.put(kept[1], START, {"s": "x"})

    done = record(Scripted("x", run), tmp_path / "a.ulg")
    assert (done.messages, done.broken) == (3, 3)
    assert done.skipped[0].startswith("3 messages of 'text' were left out:")
    assert kept[1].refused


def test_what_a_source_waits_to_pass_on_is_written_when_the_recording_stops(tmp_path: Path) -> None:
    sent: list[int] = []

    def run(feed: Feed) -> None:
        channel = feed.channel("a", NUMBERED)
        assert channel is not None
        while not feed.stopping:
            if feed.put(channel, START + len(sent), {"n": len(sent)}, wait=True):
                sent.append(len(sent))

    calls: list[int] = []

    def stop() -> bool:
        calls.append(len(sent))
        return len(sent) > 500

    done = record(Scripted("eager", run), tmp_path / "a.bag", stop=stop, buffer_size=5000)
    assert done.stopped
    assert done.lost == 0
    assert numbers(done.path, "a") == sent


def test_an_error_of_the_recording_ends_the_sources(tmp_path: Path) -> None:
    ended = threading.Event()

    def run(feed: Feed) -> None:
        channel = feed.channel("a", NUMBERED)
        assert channel is not None
        while not feed.stopping:
            feed.put(channel, START, {"n": 1}, wait=True)
        ended.set()

    def stop() -> bool:
        raise logreel.LogError("the disk is full")

    with pytest.raises(logreel.LogError, match="the disk is full"):
        record(Scripted("eager", run), tmp_path / "a.bag", stop=stop, buffer_size=5000)
    assert ended.wait(60)
    assert os.listdir(tmp_path) == ["a.bag.active"]


def test_the_queue_is_taken_in_pieces_and_keeps_its_order() -> None:
    queue = LiveQueue(most_bytes=64 << 20)
    channel = LiveChannel("x", "a", NUMBERED, {})
    for n in range(40):
        assert queue.put(channel, n, bytes(1 << 20), 1 << 20, False)
    assert queue.filling > 0.6
    times: list[int] = []
    pieces = 0
    while entries := queue.take(0):
        assert len(entries) <= 8
        times += [entry[1] for entry in entries if isinstance(entry, tuple)]
        pieces += 1
    assert times == list(range(40))
    assert pieces >= 5
    assert queue.filling == 0


@pytest.mark.parametrize(
    "value",
    [
        bytes(100_000), "x" * 100_000, np.zeros(12_500), memoryview(bytes(100_000)), [0.5] * 4_000,
        [{"name": "joint", "data": bytes(1000)}] * 100, np.zeros((100, 2_000), np.uint8)[:, :1000],
    ],
    ids=["bytes", "text", "array", "view", "numbers", "structs", "part"],
)  # fmt: skip
def test_fields_count_for_what_they_need_in_memory(value: Any) -> None:
    """They counted for a kilobyte, whatever they held: a queue of 256 MB took 20 GB of clouds."""
    feed = Feed("x", LiveQueue(most_bytes=1 << 20))
    channel = LiveChannel("x", "a", NUMBERED, {})
    sent = [feed.put(channel, n, {"n": n, "inner": {"value": value}}) for n in range(40)]
    assert 5 <= sum(sent) <= 10


def test_one_message_that_cannot_be_written_costs_no_other(tmp_path: Path) -> None:
    """The format looks at payloads when it writes many of them at once."""
    schema = logreel.Schema("OBDDataM", "koblenz")

    def run(feed: Feed) -> None:
        channel = feed.channel("OBDDataM", schema)
        assert channel is not None
        for n in range(1000):
            size = 27 if n in (0, 500, 501, 999) else 28
            feed.put(channel, n * 1_000_000, n.to_bytes(4, "little") + bytes(size - 4), wait=True)
        feed.put(channel, 1 << 70, bytes(28))

    done = record(Scripted("car", run), tmp_path / "a.vel")
    assert (done.messages, done.broken) == (996, 5)
    assert len(logreel.open(tmp_path / "a.vel")["OBDDataM"]) == 996
    assert done.skipped[0].startswith("5 messages of 'OBDDataM' were left out")


def test_times_that_the_format_cannot_hold_cost_no_other_message(suffix: str, tmp_path: Path) -> None:
    def run(feed: Feed) -> None:
        channel = feed.channel("a", PACKED)
        feed.settled = True
        assert channel is not None
        for n in range(600):
            feed.put(channel, -5 if n % 100 == 50 else START + n, n.to_bytes(8, "little"), wait=True)

    done = record(Scripted("x", run), tmp_path / f"a{suffix}")
    assert done.messages + done.broken == 600
    found = numbers(done.path, "a")
    assert len(found) == done.messages >= 594
    assert [n for n in found if n % 100 != 50] == [n for n in range(600) if n % 100 != 50]


def test_a_waiting_source_loses_nothing() -> None:
    queue = LiveQueue(most_bytes=1000)
    channel = LiveChannel("x", "a", NUMBERED, {})
    done: list[bool] = []

    def send() -> None:
        done.extend(queue.put(channel, n, bytes(100), 100, True) for n in range(50))

    thread = threading.Thread(target=send)
    thread.start()
    times: list[int] = []
    while len(times) < 50:
        times += [entry[1] for entry in queue.take(1.0) if isinstance(entry, tuple)]
    thread.join()
    assert times == list(range(50))
    assert all(done)
    assert channel.lost == 0


@pytest.mark.parametrize("suffix", [".vel", ".bag", ".mcap"])
def test_the_example_program_records_its_sensors(suffix: str, tmp_path: Path, spawn: Spawn) -> None:
    script = Path(__file__).resolve().parents[2] / "examples" / "record_sensors.py"
    done = spawn(script, str(tmp_path / f"drive{suffix}"), "--seconds", "0.5", imported=True)
    assert done.returncode == 0, done.stderr.decode()
    assert b"0 messages lost" in done.stdout
    log = logreel.open(tmp_path / f"drive{suffix}")
    assert set(log) == {"OBDDataM", "LaserRange2DDataM/front"}
    assert not log.problems
    assert log["OBDDataM"]["rpm"].tolist() == [900 + 10 * n for n in range(len(log["OBDDataM"]))]
    assert log["LaserRange2DDataM/front"][0].decode()["sensor_name"] == "front"


def test_a_definition_in_a_file_applies_to_frames_in_an_mcap(tmp_path: Path) -> None:
    (tmp_path / "Wind.msg").write_text("uint32 number\nfloat32 speed\n")
    raw = Layout(Struct((Field("data", Rest()),)))

    def run(feed: Feed) -> None:
        channel = feed.channel("/wind", raw)
        other = feed.channel("/else", raw)
        assert channel is not None
        assert other is not None
        feed.put(channel, START, b"\x07\0\0\0\0\0\0\x3f")
        feed.put(other, START, b"anything")

    for end in (".mcap", ".bag"):
        done = record(Scripted("x", run), tmp_path / f"a{end}", schemas={"/wind": tmp_path / "Wind.msg"})
        assert done.skipped == ()
        log = logreel.open(done.path)
        assert (log["/wind"]["number"].tolist(), log["/wind"]["speed"].tolist()) == ([7], [0.5])
        assert bytes(log["/else"][0].decode()["data"]) == b"anything"


def test_a_recording_of_thousands_of_topics_ends_when_it_is_asked_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is in its queue takes longer to write than anybody waits; it is counted."""
    # Of the usual 3 s, all would be spent on writing more of the same.
    assert source.DRAIN_WITHIN == 3
    for module in (source, session):
        monkeypatch.setattr(module, "DRAIN_WITHIN", 0.25)

    def run(feed: Feed) -> None:
        for n in range(20_000):
            feed.line(f"line {n}", json.dumps({"topic": f"/t{n}", "time_ns": n, "data": {"x": n}}))
        feed.wait()

    begun = time.monotonic()
    done = record(Scripted("many", run), tmp_path / "a.mcap", duration="100ms")
    assert time.monotonic() - begun < 12
    written = sum(ch.messages for ch in done.channels)
    if written < 20_000:
        assert done.broken == 20_000 - written
        assert f"{20_000 - written} messages could not be written within 0.25 s" in done.skipped[0]
    assert logreel.open(tmp_path / "a.mcap").message_count == written


@pytest.mark.parametrize("suffix", [".bag", ".mcap"])
def test_a_recording_names_channels_as_the_log_does(tmp_path: Path, suffix: str) -> None:
    """Publishers of one topic and type are one channel of the log, which takes one name."""

    def run(feed: Feed) -> None:
        def header(caller: str) -> dict[str, Any]:
            return {"headers": [{"callerid": caller, "topic": "/late", "type": "std_msgs/Int8"}]}

        number, bit = (
            Schema("std_msgs/Int8", "ros1msg", "int8 data\n"),
            Schema("x/Bit", "ros1msg", "bool data\n"),
        )
        channels = [feed.channel("/late", number, header(name)) for name in ("/a", "/b")]
        for ch in [*channels, feed.channel("/late", bit)]:
            assert ch is not None
            feed.put(ch, START, b"\1", wait=True)

    done = record(Scripted("two", run), tmp_path / f"a{suffix}")
    log = logreel.open(tmp_path / f"a{suffix}")
    assert {ch.topic: ch.messages for ch in done.channels} == {
        name: len(ch) for name, ch in log.channels.items()
    }
    assert {name: len(ch) for name, ch in log.channels.items()} == {"/late": 2, "/late[1]": 1}
    assert done.notes == ("'/late' became '/late[1]'",)


def test_a_failed_recording_says_what_is_there(tmp_path: Path) -> None:
    def run(feed: Feed) -> None:
        ch = feed.channel("/a", Schema("x/Bit", "ros1msg", "bool data\n"))
        assert ch is not None
        feed.put(ch, START, b"\1", wait=True)
        feed.wait()

    def fail() -> bool:
        raise MemoryError

    path = tmp_path / "a.bag"
    record(numbered("/a", 3), path)
    before, said = path.read_bytes(), list[str]()
    with pytest.raises(MemoryError):
        record(Scripted("one", run), path, mode="a", stop=fail, say=said.append)
    assert path.read_bytes() == before
    assert said == [f"{path}.active holds what was written, {path} is as it was"]
