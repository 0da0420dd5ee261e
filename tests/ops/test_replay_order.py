"""Messages of a replay and their order: forwards, backwards, from any place, of several logs."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import logreel
from logreel.ops.replay import timeline as timelines
from logreel.ops.replay.timeline import PlayPosition, Timeline
from support.builders.sample_logs import short_flight
from support.harness.replaying import BASE, MS, Numbered, bag, number, numbers
from support.samples.rosbag.builder import drive


def scattered(seed: int, count: int = 60) -> list[Numbered]:
    """Messages of three topics, many with equal times, not in time order."""
    some = random.Random(seed)
    return [
        Numbered(some.choice(("/a", "/b", "/c")), some.randrange(12) * MS, seed * 1000 + n)
        for n in range(count)
    ]


def expected(*logs: list[Numbered], shifts: tuple[int, ...] = (0, 0, 0)) -> list[int]:
    """Return the numbers by time, then by log, then by file position."""
    rows = [
        (m.time + shift, n, k, m.number)
        for n, (log, shift) in enumerate(zip(logs, shifts, strict=False))
        for k, m in enumerate(log)
    ]
    return [row[-1] for row in sorted(rows)]


def all_numbers(line: Timeline, place: PlayPosition) -> list[int]:
    return [number(m) for run in line.runs(place) for m in run.messages()]


@pytest.fixture
def three(tmp_path: Path) -> tuple[list[list[Numbered]], list[logreel.Log]]:
    content = [scattered(seed) for seed in (1, 2, 3)]
    return content, [bag(tmp_path / f"{n}.bag", one) for n, one in enumerate(content)]


def test_messages_of_one_log_are_in_the_order_of_the_log(tmp_path: Path) -> None:
    content = scattered(7)
    log = bag(tmp_path / "a.bag", content)
    found = list(log.play(rate=0))
    assert found == list(log.messages())
    assert numbers(found) == expected(content)
    assert all(isinstance(message, logreel.Message) for message in found)


@pytest.mark.parametrize("sample", [short_flight, drive])
def test_every_message_of_a_sample_is_played_once(sample: object) -> None:
    log = logreel.open(sample())  # type: ignore[operator]
    found = list(log.play(rate=0))
    assert found == list(log.messages())
    assert list(log.play(rate=-1, timer=_no_wait())) == found[::-1]


def _no_wait() -> object:
    from support.harness.replaying import FakeTimer

    class NoWait(FakeTimer):
        def sleep(self, changed: object, ns: int) -> None:
            self.time += ns

    return NoWait()


def test_several_logs_play_as_one_by_time(three: tuple[list[list[Numbered]], list[logreel.Log]]) -> None:
    content, logs = three
    assert numbers(logreel.play(*logs, rate=0)) == expected(*content)


def test_short_runs_do_not_change_the_order(
    three: tuple[list[list[Numbered]], list[logreel.Log]], monkeypatch: pytest.MonkeyPatch
) -> None:
    content, logs = three
    monkeypatch.setattr(timelines, "RUN", 3)
    monkeypatch.setattr(timelines, "RUN_BYTES", 0)
    monkeypatch.setattr("logreel.index.merge.BATCH", 4)
    monkeypatch.setattr("logreel.index.ranges.FIRST_BATCH", 1)
    line = Timeline(logs)
    assert all_numbers(line, PlayPosition(0)) == expected(*content)
    assert all_numbers(line, PlayPosition(1 << 62, 0, -1)) == expected(*content)[::-1]


def test_clocks_are_moved_as_merge_moves_them(tmp_path: Path) -> None:
    one = [Numbered("/a", 10 * MS * n, n) for n in range(5)]
    other = [Numbered("/b", 7000 * MS + 10 * MS * n, 100 + n) for n in range(5)]
    logs = [bag(tmp_path / "a.bag", one), bag(tmp_path / "b.bag", other)]
    assert numbers(logreel.play(*logs, rate=0)) == [*range(5), *range(100, 105)]
    together = list(logreel.play(*logs, rate=0, align="start"))
    assert numbers(together) == [0, 100, 1, 101, 2, 102, 3, 103, 4, 104]
    assert together[-1].time == BASE + 40 * MS
    assert numbers(logreel.play(*logs, rate=0, align="-7015ms")) == expected(
        one, other, shifts=(0, -7015 * MS)
    )
    assert numbers(logreel.play(logs[0], logs[0], rate=0, align="+5ms")) == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


def test_a_timeline_can_be_read_both_ways_from_every_place(
    three: tuple[list[list[Numbered]], list[logreel.Log]],
) -> None:
    content, logs = three
    order, line = expected(*content), Timeline(logs)
    place = PlayPosition(0)
    times = [m.time for run in line.runs(place) for m in run.messages()]
    for n in range(0, len(order) + 1, 7):
        back = line.facing(place, -1)
        assert all_numbers(line, place) == order[n:]
        assert all_numbers(line, back) == order[:n][::-1]
        assert line.facing(back, 1) == place
        for time in times[n : n + 7]:
            place = place.behind(time, 1, 1)


@pytest.mark.parametrize(
    ("options", "first", "last"),
    [
        ({"start": "+3ms"}, 3, 12),
        ({"end": "+3ms"}, 0, 3),
        ({"start": BASE + 2 * MS, "end": BASE + 5 * MS}, 2, 5),
        ({"start": "+2ms", "duration": "4ms"}, 2, 6),
        ({"duration": 4 * MS}, 0, 4),
        ({"start": "+2ms", "end": "+3ms", "duration": "4ms"}, 2, 3),
        ({"start": "-2ms"}, 9, 12),
        ({"start": "+5ms", "end": "+5ms"}, 5, 5),
    ],
)
@pytest.mark.parametrize("rate", [0, -1])
def test_an_interval_is_half_open(
    tmp_path: Path, options: dict[str, int | str], first: int, last: int, rate: int
) -> None:
    content = [*scattered(4), Numbered("/a", 0, 1), Numbered("/a", 11 * MS, 2)]
    log = bag(tmp_path / "a.bag", content)
    wanted = expected([m for m in content if first * MS <= m.time < last * MS])
    found = numbers(logreel.play(log, rate=rate, timer=_no_wait(), **options))
    assert found == (wanted[::-1] if rate else wanted)


def test_topics_are_chosen_in_all_logs(three: tuple[list[list[Numbered]], list[logreel.Log]]) -> None:
    content, logs = three
    some = [[m for m in one if m.topic != "/b"] for one in content]
    assert numbers(logreel.play(*logs, rate=0, topics=["/a", "/c"])) == expected(*some)
    assert numbers(logreel.play(*logs, rate=0, exclude="/b")) == expected(*some)
    with pytest.raises(logreel.TopicError, match="/d"):
        logreel.play(*logs, topics="/d")
    player = logreel.play(*logs, topics=["/c"])
    assert [(ch.topic, ch.log) for ch in player.channels] == [("/c", log) for log in logs]


def test_reserved_channels_are_played_when_asked_for() -> None:
    log = logreel.open(short_flight())
    assert not any(ch.reserved for ch in logreel.play(log).channels)
    assert list(log.play(rate=0, topics="~text")) == list(log.messages("~text"))


def test_runs_need_few_unpacked_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    log = logreel.open(drive(3.0, "lz4", chunk_bytes=4096))
    monkeypatch.setattr(timelines, "RUN_BYTES", 20_000)
    runs = list(Timeline([log]).runs(PlayPosition(0)))
    assert len(runs) > 10
    for run in runs:
        unpacked = sum(log.index.chunks.size_of(chunk) for _, chunk in run.chunks)
        assert unpacked <= 20_000 or len(run.chunks) <= 2
    found = [message for run in runs for message in run.messages()]
    assert found == list(log.messages())
    assert [bytes(p) for run in runs for p in run.payloads()] == [bytes(m.data) for m in found]


def test_wrong_options_raise_usage_errors(tmp_path: Path) -> None:
    log = bag(tmp_path / "a.bag", scattered(1))
    for options in (
        {"rate": float("nan")},
        {"duration": "-1s"},
        {"start": "+2s", "end": "+1s"},
        {"clock": 0.0},
        {"skip_silence": -1},
        {"align": "soon"},
    ):
        with pytest.raises(logreel.UsageError):
            logreel.play(log, log, **options)
    with pytest.raises(logreel.UsageError):
        logreel.play()
    with pytest.raises(logreel.UsageError):
        logreel.Player(log, on_message=print, sink=logreel.Sink())
    player = logreel.play(log, rate=0)
    assert list(player)
    with pytest.raises(logreel.UsageError, match="once"):
        list(player)


def test_an_empty_log_ends_at_once(tmp_path: Path) -> None:
    log = bag(tmp_path / "a.bag", [])
    assert list(log.play(loop=True, rate=0)) == []
    assert list(log.play(rate=-1, clock=10)) == []
