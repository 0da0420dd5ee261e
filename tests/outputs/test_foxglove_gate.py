"""Who may connect to the Foxglove sink, and what clients may do."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import logreel
from logreel.errors import LogError, UsageError
from logreel.outputs.http import websocket_gate
from logreel.outputs.http.server import HEAD_BYTES, Rules
from logreel.outputs.http.websocket_gate import ClientFrames, FrameError
from logreel.outputs.sinks import sink
from logreel.outputs.sinks.foxglove import Foxglove
from support.harness.serving import TOKEN, eventually
from support.samples.rosbag.builder import drive

pytest.importorskip("foxglove")
from websockets.exceptions import ConnectionClosed, InvalidStatus

from support.harness.foxglove_client import PAUSE, PAUSED, PLAY, FoxgloveClient


@contextlib.contextmanager
def opened(token: str = TOKEN, **options: str) -> Iterator[tuple[logreel.Player, Foxglove, list[str]]]:
    """Play a bag to Foxglove in a thread."""
    out = sink("foxglove", port="0", token=token, **options)
    assert isinstance(out, Foxglove)
    said: list[str] = []
    out.say = said.append
    with logreel.open(drive()) as log, logreel.Player(log, sink=out) as player:
        player.start()
        assert eventually(lambda: said)
        yield player, out, said


def test_the_address_with_the_random_token_is_shown_and_one_of_the_user_is_not() -> None:
    with opened(token="") as (_, out, said):
        assert said == [f"open {out.address} in Foxglove"]
        assert len(out.token) >= 32
        assert out.address == f"{out.url}/?token={out.token}"
    with opened() as (_, out, said):
        assert said == [f"open {out.url} in Foxglove"]
        with FoxgloveClient(out.url, Authorization=f"Bearer {TOKEN}") as client:
            client.until(lambda: client.channels)


@pytest.mark.parametrize("origin", ["https://app.foxglove.dev", "file://", "https://tool.example.org"])
def test_pages_of_the_app_and_of_allowed_origins_may_connect(origin: str) -> None:
    with (
        opened(allow_origin="https://other.example, https://tool.example.org/") as (_, out, said),
        FoxgloveClient(out.address, Origin=origin) as client,
    ):
        client.until(lambda: client.channels)
        assert len(said) == 1


def test_a_refused_client_is_reported_once_with_the_reason() -> None:
    with opened(allow_host="robot.lan") as (_, out, said):
        for _ in range(3):
            with pytest.raises(InvalidStatus, match="403"):
                FoxgloveClient(out.address, Origin="https://evil.example")
        assert said[1:] == [
            "a client was refused: pages of another origin may not ask, unless the service was started so"
            f" (Host: 127.0.0.1:{out.port}, Origin: https://evil.example)"
        ]
        for n in range(50):
            with pytest.raises(InvalidStatus, match="403"):
                FoxgloveClient(out.address, Origin=f"https://{n}.example")
        assert len(said) == 21


@pytest.mark.parametrize(
    ("option", "value"), [("allow_origin", "tool.example.org"), ("token", "short"), ("token", "a b" * 9)]
)
def test_unusable_options_are_refused(option: str, value: str) -> None:
    with pytest.raises(UsageError):
        sink("foxglove", **{option: value})


def test_clients_of_a_read_only_replay_cannot_control_it() -> None:
    with opened(read_only="yes") as (player, out, _), FoxgloveClient(out.address) as client:
        client.until(lambda: client.channels)
        assert client.info["capabilities"] == ["time"]
        assert "dataStartTime" not in client.info
        client.subscribe()
        client.until(lambda: len(client.messages) > 3)
        client.control(PAUSE, 7.0, player.start_time, "stop")
        client.until(lambda: len(client.messages) > 200)
        assert client.state("stop") is None
        assert not player.paused
        assert player.rate == 1.0


def test_controls_that_do_not_come_through_the_gate_have_no_effect() -> None:
    with opened() as (player, out, _):
        # The server of the SDK, as another process of this machine finds it.
        host, port = out._gate._server
        with FoxgloveClient(f"ws://{host}:{port}") as other, FoxgloveClient(out.address) as client:
            client.until(lambda: client.channels)
            client.subscribe()
            other.until(lambda: other.channels)
            other.control(PAUSE, 7.0, player.start_time, "other")
            client.until(lambda: len(client.messages) > 50)
            assert not player.paused
            assert player.rate == 1.0
            client.control(PAUSE, 2.0, None, "own")
            client.until(lambda: client.state("own") is not None)
            assert client.state("own").status == PAUSED
            assert player.rate == 2.0
            other.control(PLAY, 3.0, None, "own")
            other.rest()
            assert player.paused


def test_messages_that_clients_publish_do_not_arrive() -> None:
    frames = ClientFrames(1000, Foxglove(token=TOKEN)._from_client)
    for published in (b"\x01\0\0\0\0hello", b"\x02" + bytes(30), b"\x03", b"\x03" + bytes(18) + b"x", b""):
        assert frames.feed(frame(2, published)) == b""
    assert remasked(frames.feed(frame(1, b"{}"))) == b"\x81\x82\0\0\0\0{}"


def remasked(sent: bytes) -> bytes:
    """Return frames of a client with a mask of zeros in place of their random ones."""
    out, at = b"", 0
    while at < len(sent):
        head = at + {126: 4, 127: 10}.get(sent[at + 1] & 0x7F, 2)
        size = sent[at + 1] & 0x7F if head == at + 2 else int.from_bytes(sent[at + 2 : head], "big")
        key, content = sent[head : head + 4], sent[head + 4 : head + 4 + size]
        out += sent[at:head] + bytes(4) + bytes(one ^ key[n % 4] for n, one in enumerate(content))
        at = head + 4 + size
    return out


def frame(opcode: int, content: bytes, final: bool = True, key: bytes = b"abcd") -> bytes:
    """Return a frame of a client."""
    size = len(content)
    head = (
        bytes([0x80 | size])
        if size < 126
        else bytes([0xFE]) + struct.pack(">H", size)
        if size < 1 << 16
        else bytes([0xFF]) + struct.pack(">Q", size)
    )
    masked = bytes(one ^ key[n % 4] for n, one in enumerate(content))
    return bytes([0x80 * final | opcode]) + head + key + masked


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 65535, 65536, 100_000])
def test_messages_reach_the_server_whole_however_they_are_cut(size: int) -> None:
    seen = []

    def keep(is_text: bool, data: bytes) -> bytes:
        seen.append((is_text, data))
        return data

    content = os.urandom(size)
    half = size // 2
    # A ping may come between fragments.
    sent = frame(2, content) + frame(1, content[:half], False) + frame(9, b"!") + frame(0, content[half:])
    for step in (1 if size < 200 else 777, 1 << 20):
        seen.clear()
        frames = ClientFrames(100_000, keep)
        passed = b"".join(frames.feed(sent[at : at + step]) for at in range(0, len(sent), step))
        assert seen == [(False, content), (True, content)]
        whole, ping, text = (
            frame(op, data, key=bytes(4)) for op, data in ((2, content), (9, b"!"), (1, content))
        )
        assert remasked(passed) == whole + ping + text


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (frame(2, b"x" * 1001), 1009),
        (frame(2, b"x" * 600, False) + frame(0, b"x" * 600), 1009),
        (b"\x82\xff" + struct.pack(">Q", 1 << 62), 1009),
        (b"\x82\xff" + b"\xff" * 8, 1009),
        (frame(0, b"x"), 1002),
        (frame(1, b"x", False) + frame(1, b"x"), 1002),
        (frame(3, b""), 1002),
        (frame(0x41, b""), 1002),
        (frame(9, b"x" * 126), 1002),
        (frame(8, b"", False), 1002),
        (b"\x81\x01x", 1002),
    ],
)
def test_frames_against_the_protocol_are_refused(sent: bytes, code: int) -> None:
    frames = ClientFrames(1000, lambda is_text, data: data)
    with pytest.raises(FrameError) as caught:
        frames.feed(sent)
    assert caught.value.code == code
    assert caught.value.close_frame[2:4] == struct.pack(">H", code)


def test_a_message_that_is_too_large_ends_the_connection_of_that_client_only() -> None:
    with (
        opened() as (_, out, _),
        FoxgloveClient(out.address) as good,
        FoxgloveClient(out.address) as bad,
    ):
        with pytest.raises(ConnectionClosed):  # noqa: PT012
            bad._socket.send("x" * (websocket_gate.MESSAGE_BYTES + 1))
            bad.until(lambda: False)
        good.until(lambda: good.channels)
        good.subscribe()
        good.until(lambda: good.messages)


def test_half_handshakes_are_closed_and_shut_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket_gate, "HEAD_SECONDS", 2.0)
    with opened() as (_, out, _):
        streams = [
            socket.create_connection(("127.0.0.1", out.port)) for _ in range(2 * websocket_gate.PENDING)
        ]
        try:
            for n, stream in enumerate(streams):
                with contextlib.suppress(ConnectionError):
                    stream.sendall(b"GET / HTTP/1.1\r\n"[: n % 17])
            with FoxgloveClient(out.address) as client:
                client.until(lambda: client.channels)
            for stream in streams:
                stream.settimeout(60)
                with contextlib.suppress(ConnectionError):
                    assert stream.recv(1) == b""
        finally:
            for stream in streams:
                stream.close()


def test_more_clients_than_allowed_get_503(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket_gate, "CONNECTIONS", 2)
    with opened() as (_, out, _), FoxgloveClient(out.address), FoxgloveClient(out.address) as second:
        with pytest.raises(InvalidStatus, match="503"):
            FoxgloveClient(out.address)
        second._socket.close()

        def free() -> bool:
            with contextlib.suppress(InvalidStatus), FoxgloveClient(out.address) as third:
                third.until(lambda: third.channels)
                return True
            return False

        assert eventually(free)


def test_a_client_that_takes_nothing_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket_gate, "SLOW_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        rules = Rules.of(TOKEN, "127.0.0.1", ())
        gate = websocket_gate.WebSocketGate("127.0.0.1", 0, rules, lambda text, data: data, lambda text: None)
        gate.start("127.0.0.1", server.getsockname()[1])
        try:
            key = "dGhlIHNhbXBsZSBub25jZQ=="
            with socket.socket() as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                client.connect(("127.0.0.1", gate.port))
                client.sendall(
                    f"GET /?token={TOKEN} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                    f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n"
                    "Sec-WebSocket-Protocol: x\r\n\r\n".encode()
                )
                inner, _ = server.accept()
                with inner:
                    inner.settimeout(60)
                    assert inner.recv(1 << 16).startswith(b"GET / HTTP/1.1\r\n")
                    # The gate keeps little for a slow client, so that the server notices; then it ends both.
                    with pytest.raises(ConnectionError):  # noqa: PT012
                        while True:
                            inner.sendall(bytes(1 << 20))
        finally:
            gate.stop()


def test_the_end_of_the_replay_ends_the_connections_and_the_thread() -> None:
    with opened() as (player, out, _), FoxgloveClient(out.address) as client:
        client.until(lambda: client.channels)
        player.stop()
        with pytest.raises(ConnectionClosed):
            client.until(lambda: False)
    assert eventually(lambda: not [one for one in threading.enumerate() if one.name == "logreel-gate"])
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", out.port)).close()
    with pytest.raises(LogError):
        _ = Foxglove().port


def test_a_gate_can_be_stopped_before_it_has_begun_to_listen() -> None:
    rules = Rules.of(TOKEN, "127.0.0.1", ())
    for _ in range(50):
        gate = websocket_gate.WebSocketGate("127.0.0.1", 0, rules, lambda text, data: data, lambda text: None)
        gate.start("127.0.0.1", 1)
        gate.stop()


def test_the_head_limit_is_exact() -> None:
    """A head of HEAD_BYTES is answered for its content, one of a byte more for its size."""
    with opened() as (_, out, _):
        for extra, expected in ((0, b"401"), (1, b"431")):
            head = b"GET / HTTP/1.1\r\nHost: localhost\r\nX: \r\n\r\n"
            head = head.replace(b"X: ", b"X: " + b"x" * (HEAD_BYTES + extra - len(head)))
            with socket.create_connection(("127.0.0.1", out.port)) as stream:
                stream.settimeout(60)
                stream.sendall(head)
                assert stream.recv(100).split()[1] == expected


def test_the_backlog_of_a_client_is_bounded_by_bytes() -> None:
    from types import SimpleNamespace

    from logreel.outputs.sinks.foxglove import BACKLOG_BYTES, LEAST_BACKLOG, _bounded

    def log(size: int, messages: int) -> Any:
        return SimpleNamespace(size=size, message_count=messages)

    assert _bounded(8192, [log(0, 0)]) == 8192
    assert _bounded(8192, [log(100 << 10, 1024)]) == 8192
    assert _bounded(8192, [log(10 << 30, 1 << 20)]) == BACKLOG_BYTES // (10 << 10)
    assert _bounded(8192, [log(1 << 30, 10), log(1 << 30, 10)]) == LEAST_BACKLOG
    assert _bounded(4, [log(1 << 30, 10)]) == 4
