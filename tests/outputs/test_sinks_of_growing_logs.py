"""Every sink plays a log that is still written: channels are added when they get their first message."""

from __future__ import annotations

import io
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import logreel
from logreel.ops.replay.player import play_growing
from logreel.outputs.sinks import sink
from support.builders.contents import SAMPLES
from support.harness.following import Steps, growth
from support.harness.replaying import BASE, MS, NUMBER
from support.samples.rosbag.builder import drive


class Recorder:
    """Writes the messages of a log to a bag, in the file at each call."""

    def __init__(self, path: Path, log: logreel.Log) -> None:
        self.log, self.writer = log, logreel.create(path)
        self._numbers: dict[str, int] = {}
        self._left = {topic: iter(ch) for topic, ch in log.channels.items()}
        self.written: list[tuple[str, int, bytes]] = []
        self.writer.flush()

    def __call__(self, topic: str, count: int) -> None:
        if topic not in self._numbers:
            ch = self.log[topic]
            self._numbers[topic] = self.writer.add_channel(topic, ch.schema, ch.metadata)
        for _ in range(count):
            message = next(self._left[topic])
            self.writer.write(self._numbers[topic], message.time, message.data)
            self.written.append((topic, message.time, bytes(message.data)))
        self.writer.flush()


def every(log: logreel.Log) -> list[logreel.Channel]:
    return log.match(None)


@contextmanager
def playing(log: logreel.Log, out: logreel.Sink) -> Iterator[list[str]]:
    """Play a growing log in another thread; yields what the sink says."""
    said, stop = list[str](), threading.Event()
    out.say = said.append
    thread = threading.Thread(
        target=play_growing, args=(log, out), kwargs={"choose": every, "rate": 0, "stop": stop}
    )
    thread.start()
    try:
        yield said
    finally:
        stop.set()
        thread.join(60)
        assert not thread.is_alive()


def test_foxglove_clients_get_new_channels_and_each_message_once(tmp_path: Path) -> None:
    pytest.importorskip("foxglove")
    from support.harness.foxglove_client import FoxgloveClient

    write = Recorder(tmp_path / "x.bag", logreel.open(drive()))
    write("/imu", 3)
    log, out = logreel.open_growing(tmp_path / "x.bag"), sink("foxglove", port="0")
    with playing(log, out) as said:
        until = threading.Event()
        while not said:
            until.wait(0.01)
        with FoxgloveClient(out.address) as client:  # type: ignore[attr-defined]
            client.until(lambda: len(client.channels) == 1)
            # It cannot be paused, nor be played from another time.
            assert client.info["capabilities"] == ["time"]
            client.subscribe()
            # The replay waits for the first subscription.
            client.until(lambda: len(client.messages) == 3)
            write("/odom", 2)
            client.until(lambda: len(client.channels) == 3)
            assert {ch["topic"] for ch in client.channels.values()} == {"/imu", "/odom", "/odom/PoseInFrame"}
            # The server announces channels shortly before it knows them.
            client.rest()
            client.subscribe()
            # What is written until the client has subscribed may be lost for it.
            client.rest()
            early = len(write.written)
            for _ in range(4):
                write("/odom", 1)
                write("/imu", 1)
            due = write.written[early:]
            times = [time for _, time, _ in due]
            client.until(lambda: sum(one.time in times for one in client.messages) >= 12)
            client.rest()
            got = [one for one in client.messages if one.time in times]
            assert [one for one in got if not one.topic.endswith("InFrame")] == due
            poses = [one.time for one in got if one.topic.endswith("InFrame")]
            assert poses == [time for topic, time, _ in due if topic == "/odom"]
    write.writer.close()


def test_rerun_gets_the_content_of_convert(tmp_path: Path) -> None:
    pytest.importorskip("rerun")
    from support.builders.recordings import entities

    write = Recorder(tmp_path / "x.bag", logreel.open(drive(3)))
    steps = [lambda topic=topic: write(topic, 3) for topic in ("/imu", "/odom", "/imu", "/odom", "/imu")]
    write("/imu", 1)
    log = logreel.open_growing(tmp_path / "x.bag")
    out = sink("rerun", save=str(tmp_path / "live.rrd"))
    played = play_growing(log, out, choose=every, rate=0, stop=Steps([*steps, int, int]))
    assert played == len(write.written) == 16
    write.writer.close()
    logreel.convert(tmp_path / "x.bag", tmp_path / "whole.rrd")
    live, whole = entities(tmp_path / "live.rrd"), entities(tmp_path / "whole.rrd")
    whole = {name: one for name, one in whole.items() if not one.static}
    assert live.keys() == whole.keys()
    assert all(sorted(live[name].times) == sorted(whole[name].times) for name in whole)


@pytest.mark.parametrize("name", [".rec", ".bag"])
def test_frames_are_printed_as_those_of_the_complete_log(name: str, tmp_path: Path) -> None:
    data = SAMPLES[name]()[: 40_000 if name == ".rec" else None]
    path = tmp_path / f"x{name}"
    path.write_bytes(data[: len(data) // 5])
    log, text = logreel.open_growing(path), io.BytesIO()
    steps: list[Callable[[], object]] = list(growth(path, data, [len(data) // 20 + 1] * 20))
    play_growing(log, sink("frames", out=text), choose=every, rate=0, stop=Steps([*steps, int]))
    with logreel.open(path) as whole:
        # In the order of the file.
        expected = io.BytesIO()
        play_growing(whole, sink("frames", out=expected), choose=every, rate=0, stop=Steps([int]))
    assert text.getvalue() == expected.getvalue()
    assert text.getvalue().count(b"\n") > 3


def test_a_sink_gets_channels_with_their_first_message(tmp_path: Path) -> None:
    class Seen(logreel.Sink):
        follows = True

        def __init__(self) -> None:
            self.known, self.wrong = list[str](), Counter[str]()

        def open(self, player: object) -> None:
            self.known = [ch.topic for ch in player.channels]  # type: ignore[attr-defined]
            assert player.grows  # type: ignore[attr-defined]

        def add_channels(self, channels: list[logreel.Channel]) -> None:
            assert all(map(len, channels))
            self.known += [ch.topic for ch in channels]

        def message(self, message: logreel.Message) -> None:
            self.wrong[message.channel.topic] += message.channel.topic not in self.known

    w = logreel.create(tmp_path / "x.bag")
    numbers = [w.add_channel(f"/{n}", NUMBER) for n in range(2)]

    def write(n: int) -> None:
        w.write(numbers[n], BASE + MS, struct.pack("<i", n))
        w.flush()

    write(0)
    log, out = logreel.open_growing(tmp_path / "x.bag"), Seen()
    steps = Steps([lambda: write(0), lambda: write(1), lambda: write(0), int])
    assert play_growing(log, out, choose=every, rate=0, stop=steps) == 4
    assert out.known == ["/0", "/1"]
    assert not out.wrong.total()
    w.close()


class Noting(logreel.Sink):
    """Notes the messages, the latched channels, and what is in force at the end."""

    follows = True

    def open(self, player: object) -> None:
        self.player, self.got = player, list[tuple[str, int]]()

    def message(self, message: logreel.Message) -> None:
        self.got.append((message.channel.topic, struct.unpack("<i", message.data)[0]))

    def close(self) -> None:
        channels = self.player.channels  # type: ignore[attr-defined]
        self.in_force = {ch.topic: len(self.player.in_force(ch)) for ch in channels}  # type: ignore[attr-defined]


@pytest.fixture
def numbers(tmp_path: Path) -> Iterator[tuple[logreel.Log, Callable[[int], None], Callable[[], None]]]:
    """Yield a growing log of /0, /1 …, a function that writes a message, and one that completes it."""
    w = logreel.create(tmp_path / "x.bag")
    known: dict[int, int] = {}

    def write(n: int) -> None:
        if n not in known:
            known[n] = w.add_channel(f"/{n}", NUMBER)
        w.write(known[n], BASE + MS * n, struct.pack("<i", n))
        w.flush()

    write(0)
    with logreel.open_growing(tmp_path / "x.bag") as log:  # type: ignore[union-attr]
        yield log, write, w.close
    w.close()


def test_topics_get_prefix_and_new_names_when_they_come(numbers: tuple) -> None:  # type: ignore[type-arg]
    log, write, _ = numbers
    out = Noting()
    steps = Steps([lambda: write(1), lambda: write(2), lambda: write(0), int])
    options = {"prefix": "robot", "rename": {"/2": "/two"}, "latched": ["/[12]"]}
    assert play_growing(log, out, choose=every, rate=0, stop=steps, **options) == 4  # type: ignore[arg-type]
    assert out.got == [("/robot/0", 0), ("/robot/1", 1), ("/two", 2), ("/robot/0", 0)]
    assert out.in_force == {"/robot/0": 0, "/robot/1": 1, "/two": 1}


def test_a_name_that_no_channel_has_is_said_when_the_log_is_complete(numbers: tuple) -> None:  # type: ignore[type-arg]
    log, write, close = numbers
    out = Noting()
    with pytest.raises(logreel.TopicError, match="no channel to be renamed '/9'"):
        play_growing(
            log, out, choose=every, rate=0, rename={"/9": "/x"}, stop=Steps([lambda: write(1), close])
        )
    assert len(out.got) == 2


def test_a_replay_that_stays_ends_with_stop(numbers: tuple) -> None:  # type: ignore[type-arg]
    log, _, close = numbers
    out, stop, ended = Noting(), threading.Event(), list[int]()
    close()
    options = {"choose": every, "rate": 0, "stay": True, "stop": stop, "poll": 0.01, "delay": "10ms"}
    thread = threading.Thread(target=lambda: ended.append(play_growing(log, out, **options)))
    thread.start()
    thread.join(1.5)
    assert thread.is_alive()
    assert len(out.got) == 1
    stop.set()
    thread.join(60)
    assert ended == [1]


def test_a_sink_limits_how_far_the_replay_goes(numbers: tuple) -> None:  # type: ignore[type-arg]
    log, write, _ = numbers
    at: list[int] = []

    class Limiting(Noting):
        def open(self, player: object) -> None:
            super().open(player)
            player.limit = 0  # type: ignore[attr-defined]

        def moved(self, time: int) -> None:
            at.append(time)
            self.player.limit = time + MS  # type: ignore[attr-defined]

    out = Limiting()

    def go_on() -> None:
        at.append(len(out.got))
        out.player.limit = BASE + 3 * MS  # type: ignore[attr-defined]

    write(1)
    write(2)
    assert play_growing(log, out, choose=every, rate=0, stop=Steps([int, go_on, int])) == 3
    assert at == [BASE, 2]
    with pytest.raises(logreel.UsageError, match="a delay is not negative"):
        play_growing(log, out, choose=every, delay=-1)
