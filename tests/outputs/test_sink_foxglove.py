"""The sink ``foxglove``, tested with a client of its protocol."""

from __future__ import annotations

import socket
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from google.protobuf import message_factory

import logreel
from logreel.errors import DefinitionError, LogError
from logreel.outputs.foxglove.messages import wellknown
from logreel.outputs.sinks import sink
from logreel.schemas.protobuf.types import Types, descriptor_set
from support.harness.replaying import BASE, MS, Numbered, bag
from support.samples.rosbag.builder import drive
from support.samples.ulog.builder import Builder, flight

pytest.importorskip("foxglove")
from support.harness.foxglove_client import ENDED, PAUSE, PAUSED, PLAY, PLAYING, FoxgloveClient, Got

SECOND = 10**9


@contextmanager
def served(log: logreel.Log, clock: str = "", **options) -> Iterator[tuple[logreel.Player, FoxgloveClient]]:
    """A Player in a separate thread, and a client that knows all channels."""
    out = sink("foxglove", port="0", clock=clock)
    said = []
    out.say = said.append
    with log, logreel.Player(log, sink=out, **options) as player:
        player.start()
        until = time.monotonic() + 30
        while not said:
            assert time.monotonic() < until
            time.sleep(0.01)
        assert said == [f"open ws://127.0.0.1:{out.port}/?token={out.token} in Foxglove"]  # type: ignore[attr-defined]
        with FoxgloveClient(out.address) as client:  # type: ignore[attr-defined]
            client.until(lambda: len(client.channels) >= len(player.channels))
            yield player, client


def take(client: FoxgloveClient, count: int) -> list[Got]:
    """Return *count* messages, and check that no more follow until the replay ends; states may be mixed in."""
    client.until(lambda: len(client.messages) >= count)
    client.until(lambda: any(state.status == ENDED for state in client.states))
    client.rest()
    assert len(client.messages) == count
    return client.messages


def test_messages_of_a_bag_arrive_as_they_are():
    log = logreel.open(drive())
    end = log.start + 3 * SECOND
    with served(log, rate=20, end=end) as (_, client):
        assert client.info["capabilities"] == ["time", "playbackControl"]
        assert client.info["dataStartTime"] == {"sec": log.start // SECOND, "nsec": log.start % SECOND}
        kinds = {ch["topic"]: (ch["encoding"], ch["schemaName"]) for ch in client.channels.values()}
        assert kinds["/imu"] == ("ros1", "sensor_msgs/Imu")
        assert kinds["/odom/PoseInFrame"] == ("protobuf", "foxglove.PoseInFrame")
        client.subscribe()
        messages = [(m.channel.topic, m.time, bytes(m.data)) for m in log.messages(end=end)]
        made = [m.time for m in log.messages("/odom", end=end)]
        got = take(client, len(messages) + len(made))
        assert [one for one in got if not one.topic.endswith("InFrame")] == messages
        assert [one.time for one in got if one.topic == "/odom/PoseInFrame"] == made
        assert client.times == sorted(client.times)


def test_messages_of_other_formats_arrive_as_protobuf_once_each():
    """Translated messages of two channels with equal times are sent with the first of them."""
    log = logreel.open(flight())
    end = log.start + 4 * SECOND
    with served(log, rate=20, end=end) as (player, client):
        client.subscribe()
        own = Counter((m.channel.topic, m.time + player.utc_offset) for m in log.messages(end=end))
        made = {
            "sensor_gps": "LocationFix",
            "vehicle_global_position": "LocationFix",
            "vehicle_attitude": "FrameTransform",
            "vehicle_local_position": "PoseInFrame",
        }
        fixes = Counter({(f"{t}/{made[t]}", at): n for (t, at), n in own.items() if t in made})
        got = take(client, own.total() + fixes.total())
        assert Counter((one.topic, one.time) for one in got) == own + fixes
        assert {ch["encoding"] for ch in client.channels.values()} == {"protobuf"}


@pytest.mark.parametrize("clock", ["", "utc", "log"])
def test_times_of_messages_and_inside_of_them_are_of_one_clock(clock):
    log = logreel.open(flight())
    kind = message_factory.GetMessageClass(
        Types((), descriptor_set(wellknown("LocationFix"))).find("foxglove.LocationFix")
    )
    with served(log, clock, rate=20, end=log.start + 4 * SECOND, topics="sensor_gps") as (player, client):
        shift = 0 if clock == "log" else player.utc_offset
        assert client.info["dataStartTime"]["sec"] == (log.start + shift) // SECOND
        client.subscribe()
        ch = log["sensor_gps"]
        times = ch.times[ch.times < log.start + 4 * SECOND]
        got = [one for one in take(client, 2 * len(times)) if one.topic.endswith("LocationFix")]
        assert [one.time for one in got] == (times + shift).tolist()
        # The data were sampled before they were published.
        sampled = ch["timestamp_sample"][: len(times)].astype("int64") * 1000 + shift
        assert [kind.FromString(one.data).timestamp.ToNanoseconds() for one in got] == sampled.tolist()


def test_an_unusable_clock_is_refused(tmp_path):
    with pytest.raises(logreel.UsageError, match="'utc' or 'log'"):
        sink("foxglove", clock="gps")
    log = logreel.open(Builder(start_us=1_000_000).flags().bytes())
    with (
        pytest.raises(logreel.UsageError, match="UTC"),
        logreel.Player(log, sink=sink("foxglove", clock="utc")) as p,
    ):
        p.run()


def test_pause_rate_and_seek_from_the_client(tmp_path):
    log = bag(tmp_path / "a.bag", [Numbered("/n", 20 * MS * k, k) for k in range(3000)])
    with served(log) as (player, client):
        client.subscribe()
        client.until(lambda: len(client.messages) > 5)
        assert client.states[0].status == PLAYING
        client.control(PAUSE, 2.0, BASE + 30 * SECOND, "one")
        client.until(lambda: client.state("one") is not None)
        assert client.state("one") == (PAUSED, BASE + 30 * SECOND, 2.0, True, "one")
        client.control(PLAY, 4.0, None, "two")
        client.until(lambda: client.messages[-1].time > BASE + 31 * SECOND)
        assert client.state("two").status == PLAYING
        assert client.state("two").speed == player.rate == 4.0
        got = [one.time - BASE - 30 * SECOND for one in client.messages]
        later = [at for at in got if at >= 0]
        assert later == [20 * MS * k for k in range(len(later))]
        assert max(at for at in got if at < 0) < -25 * SECOND


def test_latched_messages_are_sent_first_after_a_seek(tmp_path):
    messages = [Numbered("/map", 0, 7), *(Numbered("/n", 100 * MS * k, k) for k in range(100))]
    log = bag(tmp_path / "a.bag", messages, latched=("/map",))
    with served(log, paused=True) as (player, client):
        client.subscribe()
        client.control(PAUSE, 1.0, BASE + 5 * SECOND, "go")
        client.until(lambda: len(client.messages) == 1)
        assert client.messages[0][:2] == ("/map", BASE)
        player.step()
        client.until(lambda: len(client.messages) == 2)
        assert client.messages[1][:2] == ("/n", BASE + 5 * SECOND)


def test_backward_steps_send_translated_messages():
    log = logreel.open(flight())
    with served(log, paused=True, topics="sensor_gps") as (player, client):
        client.subscribe()
        client.control(PAUSE, request="subscribed")
        client.until(lambda: client.state("subscribed") is not None)
        player.step(2)
        client.until(lambda: len(client.messages) == 4)
        player.step(-1)
        client.until(lambda: len(client.messages) == 6)
        first, second = log["sensor_gps"].times[:2] + player.utc_offset
        assert [one.time for one in client.messages] == [first, first, second, second, second, second]


def test_a_channel_with_an_unusable_definition_is_left_out_and_reported(monkeypatch):
    from logreel.outputs.sinks import foxglove

    def refuse(ch: logreel.Channel) -> object:
        if ch.topic == "sensor_gps":
            raise DefinitionError("nobody knows")
        return transcoded(ch)

    transcoded = foxglove.transcoded
    monkeypatch.setattr(foxglove, "transcoded", refuse)
    log, out = logreel.open(flight()), sink("foxglove", port="0", wait="no")
    with log, logreel.Player(log, sink=out, topics=["sensor_gps", "cpuload"]) as player:
        out.say = lambda text: player.stop()
        player.run()
    assert out.skipped == ["channel 'sensor_gps' was left out: nobody knows"]


def test_a_port_in_use_raises_an_error(tmp_path):
    log = bag(tmp_path / "a.bag", [Numbered("/n", 0, 1)])
    with log, socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(LogError, match=r"cannot listen at 127\.0\.0\.1, port"):
            logreel.Player(log, sink=sink("foxglove", port=other.getsockname()[1])).run()


def test_without_the_library_the_error_names_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "foxglove", None)
    monkeypatch.setitem(sys.modules, "foxglove.websocket", None)
    with pytest.raises(LogError, match=r"pip install 'logreel\[foxglove\]'"):
        sink("foxglove")


def test_clients_that_come_later_get_what_is_in_force(tmp_path):
    messages = [Numbered("/tf_static", 0, 1), Numbered("/mode", MS, 2)]
    messages += [Numbered("/n", 20 * MS * k, k) for k in range(1, 2000)]
    log = bag(tmp_path / "a.bag", messages)
    with served(log, rate=1) as (player, client):
        client.subscribe()
        client.until(lambda: any(one.topic == "/n" for one in client.messages))
        assert [one.topic for one in client.messages if one.topic != "/n"] == ["/tf_static", "/mode"]
        with FoxgloveClient(player.sink.address) as late:
            late.until(lambda: len(late.channels) >= 3)
            late.subscribe()
            late.until(
                lambda: len(late.messages) > 3 and any(one.topic == "/tf_static" for one in late.messages)
            )
            got = [one for one in late.messages if one.topic != "/n"]
        # /mode is not latched, so nothing of it is left.
        assert [(one.topic, one.time, one.data) for one in got] == [("/tf_static", BASE, b"\x01\0\0\0")]
