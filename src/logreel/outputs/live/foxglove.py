"""Live to Foxglove: a WebSocket server that its app connects to, with the app's own controls of playback."""

from __future__ import annotations

import importlib
import math
import time
from operator import itemgetter
from threading import Lock, Timer
from typing import TYPE_CHECKING, Any

from logreel.errors import DefinitionError, LogError, MissingDependencyError
from logreel.ops.replay import Sink
from logreel.outputs.foxglove.channel_map import encoders_for, is_common, transcoded
from logreel.outputs.foxglove.clock import checked_clock, offset_for
from logreel.outputs.foxglove.live import Made
from logreel.schemas.common import complete, message_encoding, portable

if TYPE_CHECKING:
    from logreel.log.log import Channel, Message
    from logreel.ops.replay import PlayerControls, Run

#: Seconds between two messages that tell clients the time.
TELL = 0.01
#: Seconds after the first subscription in which others may come before the replay begins.
SETTLE = 0.3


class Foxglove(Sink):
    """Serves the messages to the Foxglove app and other clients of its protocol.

    host, port  where; port 0: any that is free
    wait        begin when the first client has subscribed
    backlog     messages kept for a client that is slow; then the oldest are dropped for it
    clock       ``utc``: times since 1970; ``log``: those of the first log; empty: UTC where that log tells it

    Channels that tools can read by their schema go as they are, all others as protobuf with a schema made for them;
    what a lens recognises also goes as a channel of Foxglove's well-known schemas, as ``convert x.mcap`` writes it.
    Pause, rate and seek work from the app. *clock* is that of the times of messages, of ``timestamp`` in what is made
    for Foxglove's schemas, and of the controls; messages that go as they are keep the times inside of them.
    """

    waits = True

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 8765,
        wait: bool = True,
        backlog: int = 8192,
        clock: str = "",
    ) -> None:
        super().__init__()
        self._clock = checked_clock(clock or None)
        self._sdk = _imported()
        self._host, self._port, self._backlog = host, port, backlog
        self._wait, self._lock = wait, Lock()
        self._server: Any = None
        self._plain: dict[Channel, Any] = {}
        self._made: dict[Made, Any] = {}
        self._of: dict[Channel, list[Made]] = {}
        self._told = 0.0

    @property
    def port(self) -> int:
        """Where it listens, once it is open."""
        return int(self._server.port)

    def open(self, player: PlayerControls) -> None:
        """Start the server, with all channels; hold the replay until somebody listens."""
        self._player = player
        self._offset = offset_for(self._clock, player.utc_offset, player.logs[0].name)
        self._passed = player.end_time + 1 if player.rate < 0 else player.start_time
        self._wait = self._wait and not player.paused
        if self._wait:
            player.pause()
        # The server does not keep it, and channels end with it.
        self._context = context = self._sdk.Context()
        for ch in player.channels:
            self._declare(context, ch)
        span = self._absolute(player.start_time), self._absolute(player.end_time)
        try:
            self._server = self._sdk.start_server(
                name="logreel",
                host=self._host,
                port=self._port,
                context=context,
                capabilities=[self._ws.Capability.Time, self._ws.Capability.PlaybackControl],
                server_listener=_Listener(self),
                playback_time_range=span,
                message_backlog_size=self._backlog,
            )
        except Exception as error:
            raise LogError(f"no server on {self._host}:{self._port}: {error}") from error
        self.say(f"open ws://{self._host}:{self.port} in Foxglove")

    @property
    def _ws(self) -> Any:
        return self._sdk.websocket

    def _declare(self, context: Any, ch: Channel) -> None:
        """The channels of the server that *ch* gives."""
        if is_common(ch):
            schema = portable(complete(ch.schema, str(ch.metadata.get("md5sum", "*"))))
            stated = ch.metadata.get("message_encoding")
            encoding = stated if isinstance(stated, str) else message_encoding(schema)
            self._plain[ch] = self._channel(context, ch.topic, encoding, schema)
            encoders = []
        else:
            try:
                encoders = [transcoded(ch)]
            except DefinitionError as error:
                self.skipped.append(f"channel {ch.topic!r} was left out: {error.text}")
                return
        shift = self._player.shift(ch)
        for encoder in [*encoders, *encoders_for(ch, shift + self._offset)]:
            made = Made(encoder, shift)
            self._made[made] = self._channel(context, encoder.topic, encoder.schema.encoding, encoder.schema)
            self._of.setdefault(ch, []).append(made)

    def _channel(self, context: Any, topic: str, encoding: str, schema: Any) -> Any:
        told = self._sdk.Schema(name=schema.name, encoding=schema.encoding, data=schema.raw)
        return self._sdk.Channel(
            topic, schema=told if schema.name else None, message_encoding=encoding, context=context
        )

    # ---------------------------------------------------------------------------------------------- messages

    def message(self, message: Message) -> None:
        """Send one message, and what was made of others up to its time."""
        time = message.time
        if self._made:
            self._pass(time)
        channel = self._plain.get(message.channel)
        if channel is not None:
            channel.log(bytes(message.data), log_time=self._absolute(time))
        self._tell(time)

    def in_force(self, run: Run) -> None:
        """Send what holds at a place, with its old times."""
        for message in run.messages():
            absolute = self._absolute(message.time)
            channel = self._plain.get(message.channel)
            if channel is not None:
                channel.log(bytes(message.data), log_time=absolute)
            for made in self._of.get(message.channel, ()):
                for _, data in made.between(message.time, message.time + 1):
                    self._made[made].log(data, log_time=absolute)

    def _pass(self, time: int) -> None:
        """Send what was made of messages between those that were passed and *time*, which is included."""
        passed = self._passed
        # A message that is out of order, as the first and the last ones of a damaged log may be, stands alone.
        if self._player.backwards:
            span = time, passed if time <= passed else time + 1
            self._passed = time
        else:
            span = passed if passed <= time + 1 else time, time + 1
            self._passed = time + 1
        found = [(at, made, data) for made in self._made for at, data in made.between(*span)]
        found.sort(key=itemgetter(0), reverse=self._player.backwards)
        for at, made, data in found:
            self._made[made].log(data, log_time=self._absolute(at))

    def _absolute(self, time: int) -> int:
        # The protocol knows no time before 1970.
        return max(0, time + self._offset)

    def _tell(self, time_: int) -> None:
        now = time.monotonic()
        if now - self._told >= TELL:
            self._told = now
            self._server.broadcast_time(self._absolute(time_))

    # ---------------------------------------------------------------------------------------------- controls

    def moved(self, time: int) -> None:
        """Tell clients the new place."""
        self._passed = time + 1 if self._player.backwards else time
        self._server.broadcast_playback_state(self._state(time, True, ""))

    def changed(self) -> None:
        """Tell clients whether it plays, and how fast."""
        self._server.broadcast_playback_state(self._state(self._player.position, False, ""))

    def flush(self) -> None:
        """Tell clients the time, which stands still for a while."""
        self._server.broadcast_time(self._absolute(self._player.position))

    def close(self) -> None:
        """Stop the server."""
        if self._server is not None:
            self._server.stop()
        self.skipped += [
            f"channel {made.encoder.topic!r} was left out: {made.failed}"
            for made in self._made
            if made.failed
        ]

    def _state(self, time: int, moved: bool, request: str) -> Any:
        status = self._ws.PlaybackStatus
        player = self._player
        now = status.Ended if player.ended else status.Paused if player.paused else status.Playing
        return self._ws.PlaybackState(now, self._absolute(time), abs(player.rate) or 1.0, moved, request)

    def listened(self) -> None:
        """Somebody has subscribed: begin, if that is what was waited for."""
        with self._lock:
            wait, self._wait = self._wait, False
        if wait:
            timer = Timer(SETTLE, self._player.resume)
            timer.daemon = True
            timer.start()

    def asked(self, request: Any) -> Any:
        """Do what the app asks for, and tell the state that comes of it."""
        player = self._player
        with self._lock:
            self._wait = False
        if math.isfinite(request.playback_speed) and request.playback_speed > 0:
            player.rate = request.playback_speed
        if request.seek_time is not None:
            player.seek(request.seek_time - self._offset)
        (player.resume if request.playback_command == self._ws.PlaybackCommand.Play else player.pause)()
        moved = request.seek_time is not None
        return self._state(player.position, moved, request.request_id)


class _Listener:
    """What the server calls, from threads of its own."""

    def __init__(self, sink: Foxglove) -> None:
        self._sink = sink

    def on_subscribe(self, client: Any, channel: Any) -> None:
        self._sink.listened()

    def on_unsubscribe(self, client: Any, channel: Any) -> None:
        """The server wants to call it."""

    def on_playback_control_request(self, request: Any) -> Any:
        return self._sink.asked(request)


def _imported() -> Any:
    try:
        importlib.import_module("foxglove.websocket")
        return importlib.import_module("foxglove")
    except ImportError as error:
        raise MissingDependencyError("foxglove-sdk", "foxglove") from error
