"""Timing and controls of a Player, with a clock that advances only while the Player waits."""

from __future__ import annotations

import random
from bisect import bisect_left
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import logreel
from logreel.ops.replay.transport import LONGEST, TAIL, Pace
from support.harness.replaying import BASE, MS, FakeTimer, Numbered, bag, number, numbers

SECOND = 10**9


class Diary(logreel.Sink):
    """A sink that records calls with their times."""

    def __init__(self, timer: FakeTimer, batches: bool = False) -> None:
        self.timer, self.batches = timer, batches
        self.notes: list[tuple[int, Any]] = []

    def note(self, what: Any) -> None:
        self.notes.append((self.timer.passed, what))

    def open(self, player: logreel.Player) -> None:
        self.player = player
        self.note("open")

    def message(self, message: logreel.Message) -> None:
        self.note((message.channel.topic, message.time - BASE) if len(message.data) == 8 else number(message))

    def batch(self, run: Any) -> None:
        self.note(numbers(run.messages()))

    def moved(self, time: int) -> None:
        self.note(("moved", time - BASE))

    def changed(self) -> None:
        self.note(("paused" if self.player.paused else "playing", self.player.rate))

    def close(self) -> None:
        self.note("close")

    @property
    def whole_ms(self) -> list[tuple[int, Any]]:
        return [(round(at / MS), what) for at, what in self.notes[1:-1]]


@pytest.fixture
def timer() -> FakeTimer:
    return FakeTimer()


@pytest.fixture
def log(tmp_path: Path) -> logreel.Log:
    """Messages 0 … 9, ten milliseconds apart."""
    return bag(tmp_path / "a.bag", [Numbered("/a", 10 * MS * n, n) for n in range(10)])


def played(log: logreel.Log, timer: FakeTimer, **options: Any) -> list[tuple[int, Any]]:
    diary = Diary(timer)
    logreel.Player(log, sink=diary, timer=timer, **options).run()
    return diary.whole_ms


@pytest.mark.parametrize(("rate", "step"), [(1.0, 10), (2.0, 5), (0.5, 20), (10.0, 1)])
def test_messages_are_played_when_they_are_due(
    log: logreel.Log, timer: FakeTimer, rate: float, step: int
) -> None:
    assert played(log, timer, rate=rate) == [(step * n, n) for n in range(10)]


def test_a_negative_rate_plays_backwards(log: logreel.Log, timer: FakeTimer) -> None:
    assert played(log, timer, rate=-2.0) == [(5 * n, 9 - n) for n in range(10)]


def test_rate_0_plays_as_fast_as_possible(log: logreel.Log, timer: FakeTimer) -> None:
    assert played(log, timer, rate=0) == [(0, n) for n in range(10)]
    assert not timer.slept


def test_batches_hold_what_is_due(tmp_path: Path, timer: FakeTimer) -> None:
    times = (0, 0, 0, 5, 7, 7, 9)
    log = bag(tmp_path / "a.bag", [Numbered("/a", t * MS, n) for n, t in enumerate(times)])
    diary = Diary(timer, batches=True)
    player = logreel.Player(log, sink=diary, timer=timer)
    tally = player.run()
    assert diary.whole_ms == [(0, [0, 1, 2]), (5, [3]), (7, [4, 5]), (9, [6])]
    assert (tally.messages, tally.timed, tally.late) == (7, 7, 0)
    assert tally.topics == {"/a": 7}


def test_rounding_errors_do_not_add_up_over_hours() -> None:
    pace = Pace(17, BASE, 3.0)
    hours = 1000 * 3600 * SECOND
    assert abs(pace.due(BASE + hours) - (17 + hours // 3)) <= 1
    assert abs(pace.at(pace.due(BASE + hours)) - (BASE + hours)) <= 2


def test_sleeps_end_before_the_moment(log: logreel.Log, timer: FakeTimer) -> None:
    played(log, timer)
    assert all(0 < ns <= 10 * MS - TAIL for ns in timer.slept)


def test_no_sleep_is_too_long_for_the_system(tmp_path: Path, timer: FakeTimer) -> None:
    log = bag(tmp_path / "a.bag", [Numbered("/a", 0, 0), Numbered("/a", 5 * 3600 * SECOND, 1)])
    timer.at(6 * 3600 * SECOND, lambda: None)
    assert played(log, timer) == [(0, 0), (5 * 3600 * 1000, 1)]
    assert max(timer.slept) <= LONGEST


def test_silences_are_shortened(tmp_path: Path, timer: FakeTimer) -> None:
    times = (0, 10, 5000, 5010, 9000)
    log = bag(tmp_path / "a.bag", [Numbered("/a", t * MS, n) for n, t in enumerate(times)])
    assert played(log, timer, skip_silence="1s") == [(0, 0), (10, 1), (1010, 2), (1020, 3), (2020, 4)]
    assert played(log, FakeTimer(), rate=-1, skip_silence=SECOND) == [
        (0, 4),
        (1000, 3),
        (1010, 2),
        (2010, 1),
        (2020, 0),
    ]
    assert played(log, FakeTimer(), rate=2, start="+100ms", skip_silence=0) == [(0, 2), (0, 3), (0, 4)]


def test_a_wrong_time_does_not_delay_the_replay(tmp_path: Path, timer: FakeTimer) -> None:
    with logreel.create(tmp_path / "a.ulg") as w:
        schema = logreel.Schema("a", "ulog", "a:uint64_t timestamp;int32_t data;")
        channel = w.add_channel("a", schema)
        for n in range(200):
            w.write(channel, {50: 0, 120: 10**15}.get(n, 100 * SECOND + 10 * MS * n), {"data": n})
    log = logreel.open(tmp_path / "a.ulg")
    player = logreel.Player(log, timer=timer)
    arrived = [(message.time, timer.passed) for message in player]
    assert [time for time, _ in arrived] == sorted(log["a"].times.tolist())
    assert arrived[0][1] == arrived[1][1] == 0
    assert arrived[-1][1] == arrived[-2][1] == 1990 * MS
    # They had no moment at which they were due.
    assert (player.tally.messages, player.tally.timed) == (200, 198)
    assert logreel.Player(log, timer=FakeTimer(), sink=logreel.sink("null")).run().timed == 198
    backwards = logreel.Player(log, timer=FakeTimer(), rate=-1)
    assert [message.time for message in backwards] == [time for time, _ in arrived[::-1]]


def test_the_clock_ticks_by_the_clock_of_the_log(log: logreel.Log, timer: FakeTimer) -> None:
    found = played(log, timer, rate=2.0, clock=50, end="+40ms")
    # 50 ticks a second of ours are 40 ms of the log's, and a tick comes before the messages of its time.
    assert found == [(0, ("/clock", 0)), (0, 0), (5, 1), (10, 2), (15, 3)]
    found = played(log, FakeTimer(), rate=0, clock=40, end="+40ms")
    assert found == [(0, ("/clock", 0)), (0, 0), (0, 1), (0, 2), (0, ("/clock", 25 * MS)), (0, 3)]
    found = played(log, FakeTimer(), rate=-1, clock=50, start="+60ms")
    ticks = [what for _, what in found if isinstance(what, tuple)]
    assert ticks == [("/clock", 90 * MS), ("/clock", 70 * MS)]
    assert [what for _, what in found if isinstance(what, int)] == [9, 8, 7, 6]


def test_the_clock_is_a_channel(log: logreel.Log, tmp_path: Path) -> None:
    player = log.play(rate=0, clock=1, duration="1ms")
    tick, _ = player
    assert tick.channel is player.channels[-1]  # type: ignore[attr-defined]
    assert tick.channel.schema.name == "rosgraph_msgs/Clock"
    assert tick.decode() == {"clock": BASE}
    other = bag(tmp_path / "b.bag", [Numbered("/clock", 0, 0)])
    with pytest.raises(logreel.UsageError, match="-x /clock"):
        other.play(clock=1)


def test_a_pause_shifts_later_messages(log: logreel.Log, timer: FakeTimer) -> None:
    diary = Diary(timer)
    player = logreel.Player(log, sink=diary, timer=timer, end="+50ms")
    positions: list[int] = []

    def look() -> None:
        assert player.paused
        positions.append(player.position - BASE)

    timer.at(15 * MS, player.pause)
    timer.at(500 * MS, look)
    timer.at(1000 * MS, player.toggle)
    player.run()
    assert positions == [15 * MS]
    assert diary.whole_ms == [
        *((0, 0), (10, 1), (15, ("paused", 1.0)), (1000, ("playing", 1.0))),
        *((1005, 2), (1015, 3), (1025, 4)),
    ]


def test_the_clock_repeats_its_time_during_a_pause(log: logreel.Log, timer: FakeTimer) -> None:
    diary = Diary(timer)
    player = logreel.Player(log, sink=diary, timer=timer, paused=True, clock=10, end="+20ms")
    timer.at(350 * MS, player.resume)
    player.run()
    ticks = [at for at, what in diary.whole_ms if what == ("/clock", 0)]
    assert ticks == [100, 200, 300, 350]
    assert [what for _, what in diary.whole_ms if isinstance(what, int)] == [0, 1]


def test_steps_go_both_ways(log: logreel.Log, timer: FakeTimer) -> None:
    diary = Diary(timer)
    player = logreel.Player(log, sink=diary, timer=timer, paused=True)
    for n, count in enumerate((1, 2, -1, -2, -1, 1, 1)):
        timer.at((n + 1) * SECOND, lambda count=count: player.step(count))  # type: ignore[misc]
    timer.at(20 * SECOND, lambda: player.seek("+90ms"))
    timer.at(21 * SECOND, lambda: player.step(3))
    timer.at(22 * SECOND, lambda: player.step(-1))
    timer.at(23 * SECOND, player.stop)
    player.run()
    found = [what for _, what in diary.whole_ms if isinstance(what, int)]
    assert found == [0, 1, 2, 2, 1, 0, 0, 1, 9, 9]
    assert player.position == BASE + 90 * MS


@pytest.mark.parametrize("seed", range(8))
def test_random_steps_and_seeks_play_the_expected_messages(
    tmp_path: Path, timer: FakeTimer, seed: int
) -> None:
    some = random.Random(seed)
    content = sorted((Numbered("/a", some.randrange(8) * MS, n) for n in range(30)), key=lambda m: m.time)
    log, times = bag(tmp_path / "a.bag", content), [BASE + m.time for m in content]
    player = logreel.Player(log, timer=timer, paused=True, on_message=lambda m: found.append(number(m)))
    found: list[int] = []
    expected: list[int] = []
    at = 0
    for n in range(60):
        if some.random() < 0.2:
            target = times[0] + some.randrange(-1, 9) * MS
            timer.at(n * SECOND, partial(player.seek, target))
            at = bisect_left(times, min(target, times[-1]))
            continue
        count = some.choice((-7, -2, -1, -1, 1, 1, 2, 7))
        timer.at(n * SECOND, partial(player.step, count))
        for _ in range(abs(count)):
            at, passed = (at + 1, at) if count > 0 else (at - 1, at - 1)
            if 0 <= passed < len(content):
                expected.append(content[passed].number)
            at = min(max(at, 0), len(content))
    timer.at(100 * SECOND, player.stop)
    player.run()
    assert found == expected


def test_seek_and_rate_while_playing(log: logreel.Log, timer: FakeTimer) -> None:
    diary = Diary(timer)
    player = logreel.Player(log, sink=diary, timer=timer)
    timer.at(12 * MS, lambda: player.seek(BASE + 75 * MS))
    timer.at(18 * MS, lambda: setattr(player, "rate", 0.5))
    timer.at(60 * MS, lambda: player.skip(-(10**12)))
    timer.at(61 * MS, lambda: setattr(player, "rate", 0))
    player.run()
    assert diary.whole_ms == [
        *((0, 0), (10, 1), (12, ("moved", 75 * MS)), (17, 8), (18, ("playing", 0.5)), (36, 9)),
    ]
    assert player.finished


def test_a_seek_goes_to_the_nearest_place(log: logreel.Log, timer: FakeTimer) -> None:
    diary = Diary(timer)
    player = logreel.Player(log, sink=diary, timer=timer, paused=True)
    timer.at(1 * SECOND, lambda: player.seek(0))
    timer.at(2 * SECOND, lambda: player.step(1))
    timer.at(3 * SECOND, lambda: player.skip(10**15))
    timer.at(4 * SECOND, lambda: player.step(5))
    timer.at(5 * SECOND, lambda: player.seek("-15ms"))
    timer.at(6 * SECOND, player.resume)
    player.run()
    found = [what for _, what in diary.whole_ms if what not in (("paused", 1.0), ("playing", 1.0))]
    assert found == [0, ("moved", 90 * MS), 9, ("moved", 75 * MS), 8, 9]


def test_a_control_does_not_catch_up_on_delays(log: logreel.Log, timer: FakeTimer) -> None:
    def stopped_for_a_second() -> None:
        timer.time += SECOND
        player.rate = player.rate

    diary = Diary(timer)
    player = logreel.Player(log, sink=diary, timer=timer, end="+50ms")
    timer.at(15 * MS, stopped_for_a_second)
    player.run()
    assert diary.whole_ms == [(0, 0), (10, 1), (1015, 2), (1025, 3), (1035, 4)]


def test_a_negative_rate_reverses_a_running_replay(log: logreel.Log, timer: FakeTimer) -> None:
    player = logreel.Player(log, timer=timer)
    timer.at(35 * MS, lambda: setattr(player, "rate", -1))
    assert numbers(player) == [0, 1, 2, 3, 3, 2, 1, 0]


def test_loop_starts_again_at_the_end(log: logreel.Log, timer: FakeTimer) -> None:
    diary = Diary(timer)
    player = logreel.Player(log, sink=diary, timer=timer, loop=True, start="+70ms", rate=10)
    timer.at(5 * MS, player.stop)
    player.run()
    found = [what for _, what in diary.notes if isinstance(what, int)]
    assert found[:7] == [7, 8, 9, 7, 8, 9, 7]
    assert ("moved", 70 * MS) in [what for _, what in diary.notes]
    assert diary.notes[-1][1] == "close"


def test_stay_waits_at_the_end_for_resume_and_seek(log: logreel.Log, timer: FakeTimer) -> None:
    diary = Diary(timer)
    player = logreel.Player(log, sink=diary, timer=timer, stay=True, start="+80ms")
    seen: list[tuple[bool, bool]] = []
    timer.at(1 * SECOND, lambda: seen.append((player.paused, player.ended)))
    timer.at(2 * SECOND, player.resume)
    timer.at(3 * SECOND, lambda: player.seek("+90ms"))
    timer.at(4 * SECOND, player.stop)
    player.run()
    assert seen == [(True, True)]
    assert [what for _, what in diary.whole_ms if isinstance(what, int)] == [8, 9, 8, 9]
    assert not player.ended


def test_messages_in_force_are_played_first(tmp_path: Path, timer: FakeTimer) -> None:
    content = [
        *(Numbered("/map", 10 * MS, 1), Numbered("/a", 20 * MS, 2), Numbered("/map", 30 * MS, 3)),
        *(Numbered("/a", 40 * MS, 4), Numbered("/pose", 45 * MS, 5), Numbered("/a", 60 * MS, 6)),
    ]
    log = bag(tmp_path / "a.bag", content, latched=("/map", "/pose"))
    assert numbers(log.play(rate=0)) == [1, 2, 3, 4, 5, 6]
    assert numbers(log.play(rate=0, start="+25ms")) == [3, 4, 5, 6]
    assert numbers(log.play(rate=0, start="+31ms", topics=["/map", "/a"])) == [3, 6]
    diary = Diary(timer)
    player = logreel.Player(log, sink=diary, timer=timer, paused=True)
    timer.at(1 * SECOND, lambda: player.seek("+40ms"))
    timer.at(2 * SECOND, lambda: player.step(-1))
    timer.at(3 * SECOND, lambda: player.step(2))
    timer.at(4 * SECOND, player.stop)
    tally = player.run()
    assert diary.whole_ms == [(1000, 3), (1000, 5), (2000, 5), (3000, 5), (3000, 6)]
    assert tally.messages == 5
    assert tally.topics == {"/map": 1, "/a": 1, "/pose": 3}


def test_late_messages_are_counted(log: logreel.Log, timer: FakeTimer) -> None:
    def slow(message: logreel.Message) -> None:
        timer.time += 25 * MS if number(message) == 3 else 0

    tally = logreel.Player(log, on_message=slow, timer=timer).run()
    assert tally.messages == 10
    assert tally.late == 2
    assert 14 * MS <= tally.worst <= 16 * MS
    assert 1.9 * MS <= tally.mean <= 2.2 * MS
    assert tally.as_dict()["topics"] == {"/a": 10}


def test_a_break_or_pause_stops_within_a_batch(log: logreel.Log) -> None:
    player = logreel.Player(log, rate=0)
    for message in player:
        if number(message) == 4:
            break
    assert player.position == BASE + 40 * MS
    assert player.tally.messages == 5


def test_an_exception_of_a_sink_ends_the_replay(log: logreel.Log, timer: FakeTimer) -> None:
    class Broken(Diary):
        def message(self, message: logreel.Message) -> None:
            raise BrokenPipeError

    sink = Broken(timer)
    with pytest.raises(BrokenPipeError):
        logreel.Player(log, sink=sink, rate=0).run()
    assert sink.notes[-1][1] == "close"
    player = logreel.Player(log, sink=Broken(timer), rate=0).start()
    with pytest.raises(BrokenPipeError):
        player.join(60)


def test_logs_that_the_player_opened_are_closed_with_it(log: logreel.Log, tmp_path: Path) -> None:
    with logreel.play(tmp_path / "a.bag", (tmp_path / "a.bag").read_bytes(), rate=0) as player:
        assert len(player.logs) == 2
        assert numbers(player) == [n for k in range(10) for n in (k, k)]
    with pytest.raises(OSError, match="No such file"):
        logreel.play(tmp_path / "b.bag")
