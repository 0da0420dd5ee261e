"""Sink for Foxglove: a WebSocket server for the Foxglove app, with the playback controls of the app."""

from __future__ import annotations

import importlib
import math
import struct
import time
from collections import deque
from collections.abc import Sequence
from operator import itemgetter
from threading import Lock, Timer
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from logreel.errors import DefinitionError, LogError, MissingDependencyError, UsageError
from logreel.ops.replay import Sink
from logreel.ops.rewrite.target import checked_clock, offset_for
from logreel.outputs.foxglove.exchange import (
    TranslatedMessages,
    encoders_for,
    is_common,
    transcoded,
)
from logreel.outputs.http.server import Rules, named, valid_token
from logreel.outputs.http.websocket_gate import WebSocketGate, private_address
from logreel.schemas.languages import complete, message_encoding, portable

if TYPE_CHECKING:
    from logreel.log.log import Channel, Log, Message
    from logreel.ops.replay import PlayerControls, Run

#: Seconds between two broadcasts of the time.
TIME_PERIOD = 0.01
#: Seconds to wait for further subscriptions after the first one, before the replay starts.
SETTLE = 0.3
#: Origins of the Foxglove app: in a browser, and on the desktop. Programs that are no browsers send none.
APP_ORIGINS = ("https://app.foxglove.dev", "file://")
#: Bytes that wait for one slow client, about, and messages that always may.
BACKLOG_BYTES, LEAST_BACKLOG = 8 << 20, 16
#: Number of sentences about refused clients; more are not shown.
REFUSALS = 20
#: Number of requests that wait for their answer.
REQUESTS = 256
#: Request to control the playback: operation, command, speed, whether to seek, time, length of the request's name.
_CONTROL, _PLAY, _CONTROL_HEAD = 3, 0, struct.Struct("<BBfBQI")


class Foxglove(Sink):
    """Serves the messages to the Foxglove app and other clients of its protocol.

    host, port  address to listen at; port 0: any free port
    wait        True: start when the first client has subscribed
    backlog     messages queued for a slow client, fewer if they are large (8 MiB in all, by their mean size); then the
                oldest are dropped for it
    clock       ``utc``: Unix time; ``log``: clock of the first log; empty: UTC if it is known
    token       required of every client; empty: a random one
    read_only   True: clients only watch, and cannot pause, seek or set the rate
    allow_host  further names of this machine in a client's URL, separated by commas
    allow_origin  origins of further web pages that may connect: ``https://tool.example.org``, separated by commas

    Channels with a schema that other tools can read are sent unchanged, others as protobuf with a generated schema.
    Channels that a lens recognises are also sent in Foxglove's well-known schemas, as in ``convert x.mcap``. Pause,
    rate and seek work from the app. *clock* applies to times of messages, to ``timestamp`` in well-known schemas, and
    to the controls; unchanged messages keep the times in their fields.
    """

    waits = True
    follows = True

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 8765,
        wait: bool = True,
        backlog: int = 8192,
        clock: str = "",
        token: str = "",
        read_only: bool = False,
        allow_host: str = "",
        allow_origin: str = "",
    ) -> None:
        super().__init__()
        self._chosen_token, self.token = bool(token), valid_token(token or None)
        self._read_only = read_only
        origins = _listed(allow_origin)
        for origin in origins:
            if not _is_origin(origin):
                raise UsageError(f"{origin!r} is no origin: write https://tool.example.org")
        self._rules = Rules.of(self.token, host, _listed(allow_host), (*APP_ORIGINS, *origins))
        self._gate: WebSocketGate | None = None
        self._refusals: set[str] = set()
        #: Requests to control the playback that came through the gate, and were not applied yet.
        self._requests: deque[tuple[object, ...]] = deque(maxlen=REQUESTS)
        self._clock = checked_clock(clock or None)
        self._sdk = _imported()
        self._host, self._port, self._backlog = host, port, backlog
        self._wait, self._lock = wait, Lock()
        self._server: Any = None
        self._unchanged: dict[Channel, Any] = {}
        self._translated: dict[TranslatedMessages, Any] = {}
        self._by_source: dict[Channel, list[TranslatedMessages]] = {}
        self._time_sent = 0.0
        #: Latched channels by the number of their channel in the server.
        self._latched: dict[int, Channel] = {}
        self._began = False
        self._flushed: int | None = None

    @property
    def port(self) -> int:
        """The port that clients connect to, after ``open``."""
        return self._opened.port

    @property
    def url(self) -> str:
        """The URL for clients without the token, after ``open``."""
        return f"ws://{named(self._host)}:{self.port}"

    @property
    def address(self) -> str:
        """The URL for clients with the token, after ``open``."""
        return f"{self.url}/?token={quote(self.token, safe='')}"

    @property
    def _opened(self) -> WebSocketGate:
        if self._gate is None:
            raise UsageError("the server is not open: a Player opens it")
        return self._gate

    def open(self, player: PlayerControls) -> None:
        """Start the server with all channels; pause the replay until a client subscribes."""
        self._player = player
        self._clock_offset = offset_for(self._clock, player.utc_offset, player.logs[0].name)
        self._passed = player.end_time + 1 if player.rate < 0 else player.start_time
        self._wait = self._wait and not player.paused
        if self._wait:
            player.pause()
        gate = self._gate = WebSocketGate(
            self._host, self._port, self._rules, self._from_client, self._refused
        )
        # The server does not keep a reference, and channels are closed with the context.
        self._context = self._sdk.Context()
        self.add_channels(player.channels)
        capabilities, span = [self._ws.Capability.Time], None
        if not player.grows and not self._read_only:
            capabilities.append(self._ws.Capability.PlaybackControl)
            span = self._absolute(player.start_time), self._absolute(player.end_time)
        private = private_address()
        try:
            self._server = self._sdk.start_server(
                name="logreel",
                host=private,
                port=0,
                context=self._context,
                capabilities=capabilities,
                server_listener=_Listener(self),
                playback_time_range=span,
                message_backlog_size=_bounded(self._backlog, player.logs),
            )
        except Exception as error:
            raise LogError(f"the server of foxglove-sdk does not start: {error}") from error
        gate.start(private, int(self._server.port))
        # A token chosen by the user is not printed.
        self.say(f"open {self.url if self._chosen_token else self.address} in Foxglove")

    def _from_client(self, is_text: bool, data: bytes) -> bytes | None:
        """Return what to pass on of a client's message: subscriptions and the like, and requests for the playback."""
        if is_text:
            return data
        if self._read_only or data[:1] != bytes((_CONTROL,)) or len(data) < _CONTROL_HEAD.size:
            return None
        _, command, speed, seeks, time_, size = _CONTROL_HEAD.unpack_from(data)
        name = data[_CONTROL_HEAD.size :].decode(errors="replace")
        if size != len(data) - _CONTROL_HEAD.size:
            return None
        self._requests.append((name, command == _PLAY, speed, time_ if seeks else None))
        return data

    def _refused(self, reason: str) -> None:
        """Show once why a client is refused."""
        if reason not in self._refusals and len(self._refusals) < REFUSALS:
            self._refusals.add(reason)
            self.say(f"a client was refused: {reason}")

    def add_channels(self, channels: Sequence[Channel]) -> None:
        """Add channels to the server; its clients are informed."""
        for ch in channels:
            self._declare(self._context, ch)
            if self._player.is_latched(ch):
                served = [self._unchanged.get(ch), *map(self._translated.get, self._by_source.get(ch, ()))]
                self._latched |= {
                    served_channel.id(): ch for served_channel in served if served_channel is not None
                }

    @property
    def _ws(self) -> Any:
        return self._sdk.websocket

    def _declare(self, context: Any, ch: Channel) -> None:
        """Add the channels of the server for *ch*."""
        if is_common(ch):
            schema = portable(complete(ch.schema, str(ch.metadata.get("md5sum", "*"))))
            stated = ch.metadata.get("message_encoding")
            encoding = stated if isinstance(stated, str) else message_encoding(schema)
            self._unchanged[ch] = self._channel(context, ch.topic, encoding, schema)
            encoders = []
        else:
            try:
                encoders = [transcoded(ch)]
            except DefinitionError as error:
                self.skipped.append(f"channel {ch.topic!r} was left out: {error.text}")
                return
        shift = self._player.shift(ch)
        for encoder in [*encoders, *encoders_for(ch, shift + self._clock_offset)]:
            made = TranslatedMessages(encoder, shift)
            self._translated[made] = self._channel(
                context, encoder.topic, encoder.schema.encoding, encoder.schema
            )
            self._by_source.setdefault(ch, []).append(made)

    def _channel(self, context: Any, topic: str, encoding: str, schema: Any) -> Any:
        described = self._sdk.Schema(name=schema.name, encoding=schema.encoding, data=schema.raw)
        return self._sdk.Channel(
            topic, schema=described if schema.name else None, message_encoding=encoding, context=context
        )

    # ---------------------------------------------------------------------------------------------- messages

    def message(self, message: Message) -> None:
        """Send a message, and translated messages up to its time."""
        self._began = True
        time = message.time
        if self._player.grows:
            self._send_translated_of(message)
        elif self._translated:
            self._send_translated(time)
        channel = self._unchanged.get(message.channel)
        if channel is not None:
            channel.log(bytes(message.data), log_time=self._absolute(time))
        self._broadcast_time(time)

    def in_force(self, run: Run) -> None:
        """Send the latched messages at a position, with their original times."""
        self._began = True
        for message in run.messages():
            self._send_latched(message, None)

    def _send_latched(self, message: Message, number: int | None) -> None:
        """Send a message with its original time; *number*: only to this channel of the server."""
        absolute = self._absolute(message.time)
        channel = self._unchanged.get(message.channel)
        if channel is not None and number in (None, channel.id()):
            channel.log(bytes(message.data), log_time=absolute)
        for made in self._by_source.get(message.channel, ()):
            if number in (None, self._translated[made].id()):
                for _, data in made.between(message.time, message.time + 1):
                    self._translated[made].log(data, log_time=absolute)

    def subscribed(self, number: int) -> None:
        """Send what is in force on a channel of the server, since a client has subscribed to it.

        The protocol has no latched channels, and the server no messages for one client: other subscribers get these
        messages again, too.
        """
        ch = self._latched.get(number) if self._began else None
        if ch is not None:
            for message in self._player.in_force(ch):
                self._send_latched(message, number)

    def _send_translated_of(self, message: Message) -> None:
        """Send what a message of a growing log is translated to."""
        for made in self._by_source.get(message.channel, ()):
            for data in made.new_at(message.time):
                self._translated[made].log(data, log_time=self._absolute(message.time))

    def _send_translated(self, time: int) -> None:
        """Send the translated messages from the last position to *time*, included."""
        passed = self._passed
        # Out of order messages, e.g. at the ends of a damaged log, are handled alone.
        if self._player.backwards:
            span = time, passed if time <= passed else time + 1
            self._passed = time
        else:
            span = passed if passed <= time + 1 else time, time + 1
            self._passed = time + 1
        messages = [(at, made, data) for made in self._translated for at, data in made.between(*span)]
        messages.sort(key=itemgetter(0), reverse=self._player.backwards)
        for at, made, data in messages:
            self._translated[made].log(data, log_time=self._absolute(at))

    def _absolute(self, time: int) -> int:
        # The protocol has no times before 1970.
        return max(0, time + self._clock_offset)

    def _broadcast_time(self, time_: int) -> None:
        now = time.monotonic()
        if now - self._time_sent >= TIME_PERIOD:
            self._time_sent = now
            self._server.broadcast_time(self._absolute(time_))

    # ---------------------------------------------------------------------------------------------- controls

    def moved(self, time: int) -> None:
        """Send the new position to clients."""
        self._passed = time + 1 if self._player.backwards else time
        self._server.broadcast_playback_state(self._state(time, True, ""))

    def changed(self) -> None:
        """Send the playback state to clients."""
        self._server.broadcast_playback_state(self._state(self._player.position, False, ""))

    def flush(self) -> None:
        """Send the time to clients, since the replay pauses."""
        position = self._player.position
        # A growing log is waited for again and again.
        if not self._player.grows or position != self._flushed:
            self._flushed = position
            self._server.broadcast_time(self._absolute(position))

    def close(self) -> None:
        """Stop the server."""
        if self._gate is not None:
            self._gate.stop()
        if self._server is not None:
            self._server.stop()
        self.skipped += [
            f"channel {made.encoder.topic!r} was left out: {made.failed}"
            for made in self._translated
            if made.failed
        ]

    def _state(self, time: int, moved: bool, request: str) -> Any:
        status = self._ws.PlaybackStatus
        player = self._player
        now = status.Ended if player.ended else status.Paused if player.paused else status.Playing
        return self._ws.PlaybackState(now, self._absolute(time), abs(player.rate) or 1.0, moved, request)

    def listened(self) -> None:
        """Start the replay at the first subscription, if it waits for it."""
        with self._lock:
            wait, self._wait = self._wait, False
        if wait:
            timer = Timer(SETTLE, self._player.resume)
            timer.daemon = True
            timer.start()

    def asked(self, request: Any) -> Any:
        """Apply a request of the app to the Player and return the new state; None if it did not come by the gate."""
        player = self._player
        plays = request.playback_command == self._ws.PlaybackCommand.Play
        try:
            self._requests.remove((request.request_id, plays, request.playback_speed, request.seek_time))
        except ValueError:
            return None
        with self._lock:
            self._wait = False
        if math.isfinite(request.playback_speed) and request.playback_speed > 0:
            player.rate = request.playback_speed
        if request.seek_time is not None:
            player.seek(request.seek_time - self._clock_offset)
        (player.resume if plays else player.pause)()
        moved = request.seek_time is not None
        return self._state(player.position, moved, request.request_id)


class _Listener:
    """Callbacks of the server, called from its threads."""

    def __init__(self, sink: Foxglove) -> None:
        self._sink = sink

    def on_subscribe(self, client: Any, channel: Any) -> None:
        self._sink.subscribed(channel.id)
        self._sink.listened()

    def on_unsubscribe(self, client: Any, channel: Any) -> None:
        """Do nothing; the server requires this method."""

    def on_playback_control_request(self, request: Any) -> Any:
        return self._sink.asked(request)


def _bounded(backlog: int, logs: Sequence[Log]) -> int:
    """Return how many messages may wait for a client: *backlog*, or fewer of a mean size that needs more memory."""
    mean = sum(log.size for log in logs) // max(sum(log.message_count for log in logs), 1)
    return min(backlog, max(LEAST_BACKLOG, BACKLOG_BYTES // max(mean, 1)))


def _listed(text: str) -> tuple[str, ...]:
    """Return the parts of *text* between commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _is_origin(text: str) -> bool:
    """Return whether *text* is an origin as web pages and apps send it."""
    parts = urlsplit(text)
    return bool(parts.scheme) and "://" in text and not parts.path.strip("/") and not parts.query


def _imported() -> Any:
    try:
        importlib.import_module("foxglove.websocket")
        return importlib.import_module("foxglove")
    except ImportError as error:
        raise MissingDependencyError("foxglove-sdk", "foxglove") from error
