"""Options of a Player that ``rosbag play`` has, too: names, delay, pauses at topics, latched topics, limits."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import logreel
from logreel.errors import UsageError
from support.harness.replaying import BASE, MS, NUMBER, FakeTimer, Numbered, bag, number, numbers


class Recorder(logreel.Sink):
    """A sink that records (ms since start, topic, number) of each message, and 'paused' or 'playing'."""

    def __init__(self, timer: FakeTimer) -> None:
        self.timer, self.seen = timer, list[tuple[int, str, int]]()
        self.states: list[str] = []

    def open(self, player: Any) -> None:
        self.player = player

    def message(self, message: logreel.Message) -> None:
        clock = len(message.data) == 8
        shown = (message.time - BASE) // MS if clock else number(message)
        self.seen.append((round(self.timer.passed / MS), message.channel.topic, shown))

    def changed(self) -> None:
        self.states.append("paused" if self.player.paused else "playing")


@pytest.fixture
def timer() -> FakeTimer:
    return FakeTimer()


@pytest.fixture
def log(tmp_path: Path) -> logreel.Log:
    """Messages 0 … 9, ten milliseconds apart, on /a and /b by turns."""
    return bag(tmp_path / "a.bag", [Numbered(f"/{'ab'[n % 2]}", 10 * MS * n, n) for n in range(10)])


def played(log: Any, timer: FakeTimer, **options: Any) -> list[tuple[int, str, int]]:
    recorder = Recorder(timer)
    logreel.Player(log, sink=recorder, timer=timer, **options).run()
    return recorder.seen


def topics_of(log: Any, **options: Any) -> list[str]:
    player = logreel.Player(log, rate=0, **options)
    shown = [message.channel.topic for message in player]
    assert set(shown) == {ch.topic for ch in player.channels}
    assert set(player.tally.topics) == {ch.topic for ch in player.channels}
    return list(dict.fromkeys(shown))


@pytest.mark.parametrize(
    ("prefix", "first"),
    [("/robot", "/robot/a"), ("robot", "/robot/a"), ("/robot/", "/robot/a"), ("/r_", "/r_/a"), ("", "/a")],
)
def test_a_prefix_is_put_in_front_of_all_topics(log: logreel.Log, prefix: str, first: str) -> None:
    assert topics_of(log, prefix=prefix) == [first, first[:-1] + "b"]


def test_topics_without_a_slash_get_the_prefix_as_it_is(logs: Path) -> None:
    found = topics_of(logs / "flight.ulg", prefix="/drone1/", topics="sensor_*")
    assert "/drone1/sensor_accel[1]" in found
    assert all(topic.startswith("/drone1/sensor_") for topic in found)


@pytest.mark.parametrize(
    ("rename", "shown"),
    [
        ({"/a": "/c"}, ["/c", "/robot/b"]),
        ({"/robot/a": "/c"}, ["/c", "/robot/b"]),
        ({"a": "c"}, ["/c", "/robot/b"]),
        ({"/a": "/b", "/b": "/a"}, ["/b", "/a"]),
    ],
)
def test_new_names_are_complete_and_old_ones_may_have_the_prefix(
    log: logreel.Log, rename: dict[str, str], shown: list[str]
) -> None:
    assert topics_of(log, prefix="/robot", rename=rename) == shown


def test_further_channels_of_a_topic_keep_their_number(tmp_path: Path) -> None:
    path = tmp_path / "a.bag"
    with logreel.create(path) as w:
        w.write(w.add_channel("/a", NUMBER), 1, {"data": 1})
        # An ordinary topic as far as the bag is concerned, which is named like a further channel.
        w.write(w.add_channel("/a[1]", NUMBER), 2, {"data": 2})
    assert topics_of(path) == ["/a", "/a[1]"]
    assert topics_of(path, rename={"/a": "/x"}) == ["/x", "/x[1]"]
    assert topics_of(path, rename={"/a[1]": "/x"}) == ["/a", "/x"]
    assert [m.decode()["data"] for m in logreel.Player(path, rate=0, rename={"/a[1]": "/x"})] == [1, 2]


def test_the_clock_can_be_renamed_and_gets_no_prefix(log: logreel.Log) -> None:
    assert topics_of(log, prefix="/r", clock=100) == ["/clock", "/r/a", "/r/b"]
    assert topics_of(log, clock=100, rename={"/clock": "/time"}) == ["/time", "/a", "/b"]


def test_wrong_names_raise_errors(log: logreel.Log) -> None:
    with pytest.raises(logreel.TopicError, match=r"no channel to be renamed '/q'; nearest: /[ab], /[ab]"):
        logreel.Player(log, rename={"/q": "/c"})
    with pytest.raises(logreel.UsageError, match="from '/a' to ''"):
        logreel.Player(log, rename={"/a": ""})
    with pytest.raises(logreel.TopicError):
        logreel.Player(log, pause_topics="/q")
    with pytest.raises(logreel.TopicError):
        logreel.Player(log, latched="/q")
    with pytest.raises(logreel.UsageError, match="not negative"):
        logreel.Player(log, delay="-1s")


def test_the_log_itself_keeps_its_names(log: logreel.Log) -> None:
    assert topics_of(log, rename={"/a": "/c"}) == ["/c", "/b"]
    assert list(log) == ["/a", "/b"]
    assert log["/a"].topic == "/a"


def test_a_delay_comes_before_the_first_message(log: logreel.Log, timer: FakeTimer) -> None:
    seen = played(log, timer, delay="1.5s")
    assert [at for at, _, _ in seen] == [1500 + 10 * n for n in range(10)]


def test_a_sink_can_require_a_delay(log: logreel.Log, timer: FakeTimer) -> None:
    class Slow(Recorder):
        delay = 0.25

    slow = Slow(timer)
    logreel.Player(log, sink=slow, timer=timer).run()
    assert slow.seen[0][0] == 250
    fast = Slow(other := FakeTimer())
    logreel.Player(log, sink=fast, timer=other, delay=0).run()
    assert fast.seen[0][0] == 0


def test_a_stop_ends_the_delay(log: logreel.Log, timer: FakeTimer) -> None:
    recorder = Recorder(timer)
    player = logreel.Player(log, sink=recorder, timer=timer, delay="10s")
    timer.at(1000 * MS, player.stop)
    player.run()
    assert recorder.seen == []
    assert round(timer.passed / MS) == 1000


@pytest.mark.parametrize("rate", [1.0, 0.0])
def test_the_replay_pauses_before_each_message_of_a_topic(
    log: logreel.Log, timer: FakeTimer, rate: float
) -> None:
    recorder = Recorder(timer)
    player = logreel.Player(
        log, sink=recorder, timer=timer, pause_topics="/b", rate=rate, prefix="/x", end="+60ms"
    )
    for n in range(3):
        timer.at((1000 + 1000 * n) * MS, player.resume)
    player.run()
    scale = 10 if rate else 0
    assert [(at, n) for at, _, n in recorder.seen] == [
        (0, 0), (1000, 1), (1000 + scale, 2), (2000, 3), (2000 + scale, 4), (3000, 5)
    ]  # fmt: skip
    assert recorder.states == ["paused", "playing"] * 3


def test_pauses_at_topics_can_be_switched_off(log: logreel.Log, timer: FakeTimer) -> None:
    recorder = Recorder(timer)
    player = logreel.Player(log, sink=recorder, timer=timer, pause_topics=["/b"])
    assert player.pausing

    def go_on() -> None:
        player.pausing = False
        player.resume()

    timer.at(1000 * MS, go_on)
    player.run()
    assert [at for at, _, _ in recorder.seen] == [0, *(1000 + 10 * n for n in range(9))]


def test_a_step_plays_a_message_of_a_pause_topic(log: logreel.Log, timer: FakeTimer) -> None:
    recorder = Recorder(timer)
    player = logreel.Player(log, sink=recorder, timer=timer, pause_topics="*", end="+30ms")
    timer.at(1000 * MS, lambda: player.step(1))
    timer.at(2000 * MS, lambda: player.step(1))
    for n in (3000, 4000):
        timer.at(n * MS, player.resume)
    player.run()
    # The first of the two continues up to the message 2, and pauses before it.
    assert [(at, n) for at, _, n in recorder.seen] == [(1000, 0), (2000, 1), (4000, 2)]


def test_a_limit_holds_the_replay_until_it_is_raised(log: logreel.Log, timer: FakeTimer) -> None:
    recorder = Recorder(timer)
    player = logreel.Player(log, sink=recorder, timer=timer)
    player.limit = BASE + 25 * MS
    positions: list[tuple[int, bool]] = []

    def look() -> None:
        positions.append(((player.position - BASE) // MS, player.held))

    def more(limit: int | None) -> Any:
        def set_limit() -> None:
            player.limit = limit

        return set_limit

    timer.at(500 * MS, look)
    timer.at(1000 * MS, more(BASE + 45 * MS))
    timer.at(2000 * MS, more(BASE + 40 * MS))
    timer.at(3000 * MS, more(None))
    player.run()
    # The replay stands at 25 ms, so that the message of 30 ms is due 5 ms after it continues.
    assert [at for at, _, _ in recorder.seen] == [0, 10, 20, 1005, 1015, *(3005 + 10 * n for n in range(5))]
    assert positions == [(25, True)]
    assert not player.held


def test_a_limit_holds_batches_and_the_clock(log: logreel.Log, timer: FakeTimer) -> None:
    recorder = Recorder(timer)
    player = logreel.Player(log, sink=recorder, timer=timer, rate=0, clock=100)
    player.limit = BASE + 25 * MS

    def end() -> None:
        player.limit = None

    timer.at(95 * MS, end)
    player.run()
    before = [(topic, n) for at, topic, n in recorder.seen if at < 95]
    assert [n for topic, n in before if topic != "/clock"] == [0, 1, 2]
    # While it waits, the clock repeats its last time.
    assert [n for topic, n in before if topic == "/clock"] == [0, 10, 20, *[25] * 9]
    assert [n for _, topic, n in recorder.seen if topic != "/clock"] == list(range(10))

    class Batches(logreel.Sink):
        batches = True

        def batch(self, run: Any) -> None:
            found.append(numbers(run.messages()))

    found: list[list[int]] = []
    timer = FakeTimer()
    held = logreel.Player(log, sink=Batches(), timer=timer, rate=0)
    held.limit = BASE + 25 * MS
    timer.at(95 * MS, held.stop)
    held.run()
    assert found == [[0, 1, 2]]


def test_random_limits_never_change_what_is_played(log: logreel.Log) -> None:
    chance = random.Random(7)
    for _ in range(50):
        timer = FakeTimer()
        recorder = Recorder(timer)
        player = logreel.Player(log, sink=recorder, timer=timer)
        limits = sorted(chance.choices(range(100), k=4))
        moments = sorted(chance.choices(range(300), k=4))
        player.limit = BASE

        def raise_to(limit: int | None, player: Any = player) -> Any:
            return lambda: setattr(player, "limit", limit)

        for moment, limit in zip(moments, limits, strict=True):
            timer.at(moment * MS, raise_to(BASE + limit * MS))
        timer.at(400 * MS, raise_to(None))
        player.run()
        assert [n for _, _, n in recorder.seen] == list(range(10))
        for at, _, n in recorder.seen:
            # The naive rule: a message is played after the first moment with a limit that allows it.
            allowed = [m for m, limit in zip(moments, limits, strict=True) if limit >= 10 * n]
            assert n == 0 or at >= min([*allowed, 400])


def test_static_topics_are_in_force_though_the_log_does_not_mark_them(tmp_path: Path) -> None:
    content = [Numbered("/tf_static", 0, 1), Numbered("/robot/map", 1, 2), Numbered("/mode", 2, 3)]
    log = bag(tmp_path / "a.bag", [*content, *(Numbered("/x", 10 * MS * n, 10 + n) for n in range(1, 5))])
    found = logreel.Player(log, rate=0, start="+25ms")
    assert numbers(found) == [1, 2, 13, 14]
    assert [ch.topic for ch in found.channels if found.is_latched(ch)] == ["/tf_static", "/robot/map"]
    other = logreel.Player(log, rate=0, start="+25ms", latched="/mode", rename={"/tf_static": "/static"})
    assert numbers(other) == [1, 2, 3, 13, 14]
    assert [ch.topic for ch in other.channels if other.is_latched(ch)] == ["/static", "/robot/map", "/mode"]
    assert numbers(logreel.Player(log, rate=0)) == [1, 2, 3, 11, 12, 13, 14]


def test_messages_in_force_at_the_position_can_be_asked_for(tmp_path: Path) -> None:
    log = bag(
        tmp_path / "a.bag",
        [
            Numbered("/map", 0, 1),
            Numbered("/x", 10 * MS, 2),
            Numbered("/map", 20 * MS, 3),
            Numbered("/x", 30 * MS, 4),
        ],
    )
    player = logreel.Player(log, rate=0)
    latched, plain = player.channels
    player.pause()
    playing = iter(player)
    seen = []
    for _ in range(4):
        player.step()
        seen.append((number(next(playing)), numbers(player.in_force(latched)), player.in_force(plain)))
    # The position is that of the last message that was played completely.
    assert seen == [(1, [1], []), (2, [1], []), (3, [1], []), (4, [3], [])]


def test_options_as_objects_and_as_keywords_play_the_same() -> None:
    from logreel.ops.replay import Playing
    from support.samples.ulog.builder import tiny

    part, manner = {"topics": "pair", "count": 3}, {"rate": 0, "prefix": "/robot", "rename": {"pair": "two"}}
    with logreel.open(tiny()) as log:
        expected = [(m.time, m.channel.topic) for m in logreel.Player(log, **part, **manner)]
        player = logreel.Player(log, selection=logreel.Selection(**part), playing=Playing(**manner))
        assert [(m.time, m.channel.topic) for m in player] == expected
        assert len(expected) == 3
        with pytest.raises(UsageError, match="leave out topics"):
            logreel.Player(log, selection=logreel.Selection(), topics="pair")
        with pytest.raises(UsageError, match="leave out rate"):
            logreel.Player(log, playing=Playing(), rate=2)
        with pytest.raises(UsageError, match="play takes no where"):
            logreel.Player(log, selection=logreel.Selection(where="pair.x > 0"))
        with pytest.raises(TypeError, match="unexpected keyword argument 'rates'"):
            logreel.Player(log, rates=2)  # type: ignore[call-arg]


def test_the_options_of_a_player_are_the_members_of_playing() -> None:
    import dataclasses

    from logreel.ops.replay import Playing
    from logreel.ops.replay.timeline import PlayingOptions

    assert [*PlayingOptions.__annotations__] == [member.name for member in dataclasses.fields(Playing)]


def test_a_renamed_channel_of_several_files_is_read_as_the_channel_itself(tmp_path: Path) -> None:
    from support.samples.ulog.builder import tiny

    for name in ("a.ulg", "b.ulg"):
        (tmp_path / name).write_bytes(tiny())
    with logreel.open([tmp_path / "a.ulg", tmp_path / "b.ulg"], anyway=True) as log:
        plain = {ch.topic: ch for ch in logreel.Player(log, rate=0).channels}
        player = logreel.Player(log, rate=0, prefix="/robot/")
        for ch in player.channels:
            same = plain[ch.topic.removeprefix("/robot/")]
            assert ch is not same
            assert (ch.members, ch.shifts, ch.layout, ch.decoder) == (
                same.members, same.shifts, same.layout, same.decoder,
            )  # fmt: skip
            assert ch.members
            assert (len(ch), ch.number, ch.schema) == (len(same), same.number, same.schema)
            assert ch.facts["topic"] == (ch.topic,)
        assert [m.decode() for m in player] == [m.decode() for m in logreel.Player(log, rate=0)]
