"""Recording from servers of the Foxglove WebSocket protocol: foxglove-sdk, and unusual or hostile ones."""

from __future__ import annotations

import base64
import http.server
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from logreel.errors import LogError, UsageError
from logreel.log.scan import Schema
from logreel.ops.record.sources import live_source, names_source
from logreel.ops.record.sources.foxglove import SUBPROTOCOLS, FoxgloveSource, schema_of
from support.harness.foxglove_server import Server, subscribed
from support.harness.live_sources import PATIENCE, RunningSource, wait_for

foxglove = pytest.importorskip("foxglove")
server_of = pytest.importorskip("websockets.sync.server")

T0 = 1_700_000_000 * 10**9


# ------------------------------------------------------------------------------------------- genuine servers


def test_channels_of_all_encodings_are_recorded_with_their_schemas() -> None:
    given = [
        ("/ros1", "ros1", foxglove.Schema(name="std_msgs/UInt8", encoding="ros1msg", data=b"uint8 data\n")),
        ("/cdr", "cdr", foxglove.Schema(name="std_msgs/msg/UInt8", encoding="ros2msg", data=b"uint8 data\n")),
        ("/pb", "protobuf", foxglove.Schema(name="a.B", encoding="protobuf", data=b"\x0a\x00\xff\x80")),
        ("/json", "json", foxglove.Schema(name="J", encoding="jsonschema", data=b'{"type": "object"}')),
    ]
    with Server() as server, RunningSource(FoxgloveSource(server.url)) as running:
        channels = [server.channel(*one) for one in given]
        subscribed(*channels)
        for n, channel in enumerate(channels):
            channel.log(bytes([n, n]), log_time=T0 + n)
        got = running.until(len(given))
        assert [(one.topic, one.time, one.data) for one in got] == [
            (topic, T0 + n, bytes([n, n])) for n, (topic, _, _) in enumerate(given)
        ]
        # Channels are advertised in any order.
        declared = {one.topic: one for one in running.feed.channels}
        for topic, encoding, schema in given:
            assert declared[topic].schema == Schema.of(schema.name, schema.encoding, schema.data)
            assert declared[topic].metadata.get("message_encoding", encoding) == encoding
    assert running.error is None
    assert not running.feed.skipped


def test_every_message_arrives_once_while_channels_come_and_go() -> None:
    with Server() as server, RunningSource(FoxgloveSource(server.url)) as running:
        sent = 0
        schema = foxglove.Schema(name="J", encoding="jsonschema", data=b"{}")
        for _ in range(5):
            channel = server.channel("/a", schema=schema)
            subscribed(channel)
            for _ in range(2000):
                channel.log(json.dumps({"i": sent}).encode(), log_time=T0 + sent)
                sent += 1
            channel.close()
        running.until(sent)
        got = running.messages
        assert [one.time for one in got] == list(range(T0, T0 + sent))
        assert [json.loads(one.data)["i"] for one in got] == list(range(sent))
        # A channel that returns is the same channel.
        assert len(running.feed.channels) == 1


def test_only_wanted_topics_are_subscribed() -> None:
    with (
        Server() as server,
        RunningSource(FoxgloveSource(server.url), wants=lambda topic: topic != "/b") as running,
    ):
        channels = [server.channel(topic) for topic in ("/a", "/b", "/c")]
        subscribed(channels[0], channels[2])
        for channel in channels:
            channel.log(b"{}", log_time=T0)
        assert {one.topic for one in running.until(2)} == {"/a", "/c"}
        assert not channels[1].has_sinks()


def test_a_server_that_is_gone_ends_the_source() -> None:
    with RunningSource(FoxgloveSource((server := Server()).url, reconnect=0)) as running:
        channel = server.channel("/a")
        subscribed(channel)
        channel.log(b"1", log_time=T0)
        running.until(1)
        server.stop()
        running.wait()
    assert running.error is None
    assert "the connection ended" in running.feed.notes[0]


def test_a_full_queue_is_counted() -> None:
    with Server() as server, RunningSource(FoxgloveSource(server.url), most=1000) as running:
        channel = server.channel("/a")
        subscribed(channel)
        for n in range(100):
            channel.log(bytes(100), log_time=T0 + n)
        wait_for(lambda: running.feed.channels and running.feed.channels[0].lost)
        wait_for(lambda: running.feed.channels[0].lost + running.feed.queue.filling * 1000 // 228 >= 100)
        assert running.feed.channels[0].lost + len(running.messages) == 100


# ------------------------------------------------------------------------------------- servers written for tests


@contextmanager
def serve(talk: Callable[[Any], None], **options: Any) -> Iterator[str]:
    """Run a WebSocket server that calls *talk* with each connection; yield its URL."""
    options = {"subprotocols": SUBPROTOCOLS[1:], "compression": None} | options
    with server_of.serve(talk, "127.0.0.1", 0, **options) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        finally:
            server.shutdown()
            thread.join(PATIENCE)


def advertise(connection: Any, *channels: dict[str, Any]) -> None:
    connection.send(json.dumps({"op": "advertise", "channels": list(channels)}))


def data(subscription: int, stamp: int, payload: bytes) -> bytes:
    return struct.pack("<BIQ", 1, subscription, stamp) + payload


def subscriptions(connection: Any) -> dict[int, int]:
    """Return the numbers of subscriptions by channel, of the next message of the client."""
    asked = json.loads(connection.recv(PATIENCE))
    assert asked["op"] == "subscribe"
    return {one["channelId"]: one["id"] for one in asked["subscriptions"]}


JSON = {"topic": "/a", "encoding": "json", "schemaName": "", "schema": ""}


def test_the_older_version_of_the_protocol_is_spoken() -> None:
    spoken = []

    def talk(connection: Any) -> None:
        spoken.append(connection.subprotocol)
        connection.send(json.dumps({"op": "serverInfo", "name": "x", "capabilities": ["time"]}))
        advertise(connection, JSON | {"id": 7})
        number = subscriptions(connection)[7]
        connection.send(struct.pack("<BQ", 2, T0))
        connection.send(data(number, T0, b"{}"))
        connection.recv()

    with serve(talk) as url, RunningSource(FoxgloveSource(url)) as running:
        assert [one.data for one in running.until(1)] == [b"{}"]
        running.stop()
    assert spoken == ["foxglove.websocket.v1"]
    assert not running.feed.skipped


def test_invalid_messages_are_counted_and_do_not_end_the_recording() -> None:
    invalid = [
        "no JSON",
        "[]",
        '"text"',
        "[" * 100_000,
        '{"op": "advertise"}',
        '{"op": "advertise", "channels": [{"id": "x"}]}',
        '{"op": "advertise", "channels": 7}',
        '{"op": "unadvertise", "channelIds": [[]]}',
        json.dumps(
            {"op": "advertise", "channels": [JSON | {"id": 9, "encoding": "protobuf", "schema": "?"}]}
        ),
        b"\x01\x00",
    ]
    ignored = [
        '{"op": "unknown"}',
        b"",
        b"\x09abc",
        data(999, T0, b"x"),
        '{"op": "unadvertise", "channelIds": [5]}',
    ]

    def talk(connection: Any) -> None:
        for one in invalid + ignored:
            connection.send(one)
        advertise(connection, JSON | {"id": 7})
        number = subscriptions(connection)[7]
        connection.send(data(number, 1 << 63, b"too late"))
        connection.send(data(number, T0, b"{}"))
        connection.recv()

    with serve(talk) as url, RunningSource(FoxgloveSource(url)) as running:
        assert [one.data for one in running.until(1)] == [b"{}"]
        running.stop()
    assert running.feed.broken == len(invalid) + 1
    assert running.error is None


def test_a_server_that_returns_is_recorded_further() -> None:
    payloads = iter((b"1", b"2"))

    def talk(connection: Any) -> None:
        payload = next(payloads)
        advertise(connection, JSON | {"id": 1})
        connection.send(data(subscriptions(connection)[1], T0, payload))
        if payload == b"2":
            connection.recv()

    with serve(talk) as url, RunningSource(FoxgloveSource(url, reconnect=PATIENCE)) as running:
        assert [one.data for one in running.until(2)] == [b"1", b"2"]
        running.stop()
    assert running.error is None
    assert len(running.feed.channels) == 1
    ended, again = running.feed.notes
    assert "the connection ended" in ended
    assert "connected again after" in again


def test_fragmented_and_large_messages_are_whole() -> None:
    large = bytes(range(256)) * (1 << 14)

    def talk(connection: Any) -> None:
        advertise(connection, JSON | {"id": 1})
        number = subscriptions(connection)[1]
        whole = data(number, T0, large)
        connection.send([whole[:5], whole[5:9], whole[9:]])
        connection.send(data(number, T0 + 1, large))
        connection.recv()

    with serve(talk) as url, RunningSource(FoxgloveSource(url)) as running:
        assert [one.data for one in running.until(2)] == [large, large]
        running.stop()


def test_a_message_larger_than_allowed_ends_the_source() -> None:
    def talk(connection: Any) -> None:
        advertise(connection, JSON | {"id": 1})
        number = subscriptions(connection)[1]
        connection.send(data(number, T0, b"{}"))
        connection.send(bytes(5000))
        connection.recv()

    with serve(talk) as url, RunningSource(FoxgloveSource(url, largest=4096)) as running:
        running.wait()
    assert isinstance(running.error, LogError)
    assert "sent a message larger than 4096 bytes" in str(running.error)
    assert len(running.messages) == 1


def test_a_channel_that_the_server_does_not_know_yet_is_subscribed_again() -> None:
    def talk(connection: Any) -> None:
        advertise(connection, JSON | {"id": 7})
        for _ in range(3):
            subscriptions(connection)
            connection.send(json.dumps({"op": "status", "level": 2, "message": "Unknown channel ID: 7"}))
        connection.send(data(subscriptions(connection)[7], T0, b"{}"))
        connection.recv()

    with serve(talk) as url, RunningSource(FoxgloveSource(url)) as running:
        assert [one.data for one in running.until(1)] == [b"{}"]
        running.stop()
    assert not running.feed.notes


def test_what_the_server_says_is_noted() -> None:
    def talk(connection: Any) -> None:
        for level in range(3):
            text = "Send buffer limit reached"
            connection.send(json.dumps({"op": "status", "level": level, "message": text}))
        connection.close()

    with serve(talk) as url, RunningSource(FoxgloveSource(url, reconnect=0)) as running:
        running.wait()
    texts = [note.partition(": ")[2] for note in running.feed.notes[:3]]
    assert texts == [
        f"the server says: {level}Send buffer limit reached" for level in ("", "warning: ", "error: ")
    ]


def test_messages_that_were_on_their_way_at_the_end_of_a_channel_are_recorded() -> None:
    def talk(connection: Any) -> None:
        advertise(connection, JSON | {"id": 1})
        number = subscriptions(connection)[1]
        connection.send(data(number, T0, b"1"))
        connection.send('{"op": "unadvertise", "channelIds": [1]}')
        connection.send(data(number, T0 + 1, b"late"))
        advertise(connection, JSON | {"id": 2})
        connection.send(data(subscriptions(connection)[2], T0 + 2, b"2"))
        connection.close()

    with serve(talk) as url, RunningSource(FoxgloveSource(url, reconnect=0)) as running:
        running.wait()
    assert [one.data for one in running.messages] == [b"1", b"late", b"2"]
    assert len(running.feed.channels) == 1


def test_servers_of_other_protocols_are_refused() -> None:
    with serve(lambda connection: None, subprotocols=None) as url:
        with RunningSource(FoxgloveSource(url)) as running:
            running.wait()
        assert "speaks none of the protocols foxglove.sdk.v1" in str(running.error)


@pytest.mark.parametrize(
    ("status", "text"), [(302, "redirects are not followed"), (404, "refuses the connection")]
)
def test_redirects_are_not_followed(status: int, text: str) -> None:
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_address[1]}/other")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"ws://me:secret@127.0.0.1:{server.server_address[1]}/a?token=1"
        with RunningSource(FoxgloveSource(url)) as running:
            running.wait()
        server.shutdown()
        thread.join()
    assert asked == ["/a?token=1"]
    assert text in str(running.error)
    assert "secret" not in str(running.error)
    assert "token" not in str(running.error)


def test_a_missing_server_is_an_error() -> None:
    # Nobody listens at this port, and nobody else gets it.
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        url = f"ws://127.0.0.1:{bound.getsockname()[1]}"
        with RunningSource(FoxgloveSource(url)) as running:
            running.wait()
    assert f"no server answers at {url}" in str(running.error)


def test_a_server_that_speaks_no_http_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            one, _ = listener.accept()
            with one:
                one.recv(10_000)
                one.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with RunningSource(FoxgloveSource(f"ws://127.0.0.1:{listener.getsockname()[1]}")) as running:
            running.wait()
        thread.join()
    assert isinstance(running.error, LogError)


def test_stopping_takes_little_time() -> None:
    with Server() as server, RunningSource(FoxgloveSource(server.url)) as running:
        time.sleep(0.2)
        running.stop()
    assert running.error is None


def test_addresses() -> None:
    assert live_source("ws://127.0.0.1:1/x").name == "ws://127.0.0.1:1/x"
    assert live_source("wss://me:secret@robot:1").name == "wss://robot:1"
    assert live_source("foxglove:ws://[::1]:7").name == "ws://[::1]:7"
    assert live_source("foxglove").name == "ws://127.0.0.1:8765"
    assert names_source("foxglove")
    assert not names_source("./foxglove")
    with pytest.raises(UsageError, match="no address of a Foxglove server"):
        live_source("foxglove:http://127.0.0.1:1")
    with RunningSource(FoxgloveSource("ws://")) as running:
        running.wait()
    assert isinstance(running.error, UsageError)


def test_schemas_of_advertised_channels() -> None:
    def of(**described: Any) -> tuple[str, Schema]:
        return schema_of({"id": 1, "topic": "/a", **described})

    raw = base64.b64encode(b"\x0a\xff").decode()
    assert of(encoding="protobuf", schemaName="B", schema=raw) == (
        "protobuf",
        Schema("B", "protobuf", "", b"\x0a\xff"),
    )
    assert of(encoding="cdr", schemaName="a/msg/B", schema="x", schemaEncoding="ros2idl") == (
        "cdr",
        Schema("a/msg/B", "ros2idl", "x"),
    )
    assert of(encoding="ros1", schemaName="a/B", schema="uint8 x")[1].encoding == "ros1msg"
    assert of(encoding="json") == ("json", Schema("", ""))
    assert of(encoding="own", schemaName="A", schema="?") == ("own", Schema("A", "own", "?"))
