"""Small client of the Foxglove WebSocket protocol, written from its description."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from websockets.sync.client import ClientConnection, connect

MESSAGE, TIME, STATE = 1, 2, 5
PLAYING, PAUSED, BUFFERING, ENDED = range(4)
CONTROL, PLAY, PAUSE = 3, 0, 1


class Got(NamedTuple):
    """A message: topic of its channel, time in ns, payload."""

    topic: str
    time: int
    data: bytes


class State(NamedTuple):
    """State of the playback, as sent by the server."""

    status: int
    time: int
    speed: float
    moved: bool
    request: str


class FoxgloveClient:
    """Client that keeps all received messages; *headers* are sent with the handshake."""

    def __init__(self, url: str, **headers: Any) -> None:
        self._socket: ClientConnection = connect(
            url,
            additional_headers=headers,
            subprotocols=["foxglove.sdk.v1"],
            max_size=None,
            compression=None,
            close_timeout=1,
        ).__enter__()
        self.info: dict[str, Any] = {}
        self.channels: dict[int, dict[str, Any]] = {}
        self.messages: list[Got] = []
        self.states: list[State] = []
        self.times: list[int] = []

    def __enter__(self) -> FoxgloveClient:
        return self

    def __exit__(self, *error: object) -> None:
        self._socket.close()

    def until(self, done: Callable[[], bool], timeout: float = 30.0) -> None:
        """Receive until *done*."""
        while not done():
            self._take(self._socket.recv(timeout))

    def rest(self, quiet: float = 0.3) -> None:
        """Receive until nothing was received for *quiet* seconds."""
        with suppress(TimeoutError):
            while True:
                self._take(self._socket.recv(quiet))

    def subscribe(self) -> None:
        """Subscribe to all channels."""
        subscriptions = [{"id": number, "channelId": number} for number in self.channels]
        self._socket.send(json.dumps({"op": "subscribe", "subscriptions": subscriptions}))

    def control(self, command: int, speed: float = 1.0, seek: int | None = None, request: str = "r") -> None:
        """Send a request to play or pause, and to seek."""
        name = request.encode()
        head = struct.pack("<BBfBQI", CONTROL, command, speed, seek is not None, seek or 0, len(name))
        self._socket.send(head + name)

    def state(self, request: str) -> State | None:
        """Return the reply to a request; None if it was not received yet."""
        return next((state for state in self.states if state.request == request), None)

    def _take(self, data: str | bytes) -> None:
        if isinstance(data, str):
            operation = json.loads(data)
            if operation["op"] == "serverInfo":
                self.info = operation
            for channel in operation.get("channels", ()):
                self.channels[channel["id"]] = channel
        elif data[0] == MESSAGE:
            number, time = struct.unpack_from("<IQ", data, 1)
            self.messages.append(Got(self.channels[number]["topic"], time, data[13:]))
        elif data[0] == TIME:
            self.times += struct.unpack_from("<Q", data, 1)
        elif data[0] == STATE:
            status, time, speed, moved, size = struct.unpack_from("<BQfBI", data, 1)
            self.states.append(State(status, time, speed, bool(moved), data[19 : 19 + size].decode()))
