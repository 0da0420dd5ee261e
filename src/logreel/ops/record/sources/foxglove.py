"""Live source: channels of a server of the Foxglove WebSocket protocol."""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import re
import socket
import struct
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from logreel.errors import LogError, MissingDependencyError, UsageError
from logreel.log.scan import Schema
from logreel.ops.record.source import Feed, LiveChannel
from logreel.schemas.languages import language_by_encoding, language_named, message_encoding

#: Versions of the protocol, the preferred one first; what is used of them here is the same.
SUBPROTOCOLS = ("foxglove.sdk.v1", "foxglove.websocket.v1")
#: Address of servers that say nothing else.
ADDRESS = "ws://127.0.0.1:8765"
#: Seconds to connect, and to wait for the answer to a close.
OPEN_SECONDS, CLOSE_SECONDS = 10.0, 1.0
#: Seconds after which a server is asked for a sign of life, and in which it must give one.
SILENT_SECONDS = 20.0
#: Most bytes of one message of the server.
LARGEST = 256 << 20
#: Seconds of attempts to connect again, and between two of them: the first and the last.
RECONNECT_SECONDS = 30.0
FIRST_PAUSE, LAST_PAUSE = 0.25, 4.0
#: Longest wait for a message in seconds, after which the source sees that the recording stops.
PATIENCE = 0.2
#: A server may advertise a channel just before it accepts subscriptions: its answer then, attempts, pause before each.
UNKNOWN = re.compile(r"unknown channel\D*(\d+)", re.IGNORECASE)
ATTEMPTS, ATTEMPT_SECONDS = 20, 0.01
#: Most channels of a server.
MOST_CHANNELS = 1 << 16
#: Ended subscriptions that are remembered: servers may send messages of a channel after they withdrew it.
MOST_ENDED = 1024
#: Most texts of a server that are repeated in notes.
MOST_TEXTS = 20
#: Binary messages with the payload of a message: opcode, number of the subscription, time in ns.
MESSAGE_DATA = 1
HEAD = struct.Struct("<BIQ")
_LATEST = (1 << 63) - 1


class ConnectionLostError(LogError):
    """A WebSocket connection that ended.

    reason     why it ended
    too_large  True: the server sent a message larger than allowed
    """

    reason = ""
    too_large = False


class WebSocket:
    """A connection to a WebSocket server, opened by the constructor.

    url           ``ws://`` or ``wss://``; certificates of the latter are verified with those of the system
    subprotocols  the server must speak one of them
    largest       most bytes of one message

    Redirects are not followed, no proxy is used, nothing is compressed. Raises UsageError for an invalid URL, LogError
    if the server refuses.
    """

    def __init__(self, url: str, subprotocols: Sequence[str], largest: int) -> None:
        client, uris = _imported()
        self.name = safe_url(url)
        try:
            uri = uris.parse_uri(url)
        except Exception as error:  # its classes differ between releases
            raise UsageError(f"{self.name!r} is no URL of a WebSocket server, such as {ADDRESS}") from error
        try:
            # A connection that is there already goes through no proxy and follows no redirect.
            connected = socket.create_connection((uri.host, uri.port), OPEN_SECONDS)
        except OSError as error:
            raise LogError(f"no server answers at {self.name}: {error.strerror or error}") from error
        connected.settimeout(None)
        try:
            self._connection = client.connect(
                url,
                sock=connected,
                subprotocols=subprotocols,
                max_size=largest,
                compression=None,
                proxy=None,
                open_timeout=OPEN_SECONDS,
                close_timeout=CLOSE_SECONDS,
                ping_interval=SILENT_SECONDS,
                ping_timeout=SILENT_SECONDS,
            ).__enter__()
        except TimeoutError as error:
            raise LogError(f"{self.name} does not answer as a WebSocket server does") from error
        except OSError as error:
            raise LogError(f"{self.name}: the connection failed: {error.strerror or error}") from error
        except Exception as error:  # of the handshake, or of the attempt to follow a redirect
            if 300 <= _status(error) < 400:
                raise LogError(
                    f"{self.name} redirects to another address; redirects are not followed"
                ) from error
            raise LogError(f"{self.name} refuses the connection: {error}") from error
        if self._connection.subprotocol is None:
            self.close()
            raise LogError(f"{self.name} speaks none of the protocols {', '.join(subprotocols)}")

    def send_text(self, text: str) -> None:
        """Send a text message; raise ConnectionLostError if the connection ended."""
        try:
            self._connection.send(text)
        except Exception as error:  # OSError, or a state of the protocol
            raise self._lost(error) from error

    def receive(self, seconds: float) -> str | bytes | None:
        """Return the next message, text or bytes; None after *seconds* without any.

        Raises ConnectionLostError when the connection ended, after all messages before that were returned.
        """
        try:
            message: str | bytes = self._connection.recv(seconds)
        except TimeoutError:
            return None
        except Exception as error:  # OSError, or a state of the protocol
            raise self._lost(error) from error
        return message

    def _lost(self, error: Exception) -> ConnectionLostError:
        sent = getattr(error, "sent", None)
        closed = getattr(error, "rcvd", None) or sent
        if closed is not None:
            reason = f"code {closed.code}" + (f", {closed.reason}" if closed.reason else "")
        else:
            reason = str(error.__cause__ or "") or "without a word"
        lost = ConnectionLostError(f"{self.name}: the connection ended: {reason}")
        lost.reason = reason
        lost.too_large = sent is not None and sent.code == 1009
        return lost

    def close(self) -> None:
        """End the connection."""
        with contextlib.suppress(OSError):
            self._connection.close()


def _status(error: BaseException | None) -> int:
    """Return the status of the answer that led to *error*; 0 if there is none."""
    while error is not None:
        if (response := getattr(error, "response", None)) is not None:
            return int(response.status_code)
        error = error.__cause__ or error.__context__
    return 0


def safe_url(url: str) -> str:
    """Return *url* without name and password."""
    scheme, mark, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path.partition('?')[0]}" if mark else url


def _imported() -> tuple[Any, Any]:
    try:
        from websockets import uri
        from websockets.sync import client
    except ImportError as error:
        raise MissingDependencyError("websockets", "foxglove") from error
    return client, uri


class FoxgloveSource:
    """Channels of a server of the Foxglove WebSocket protocol, such as foxglove_bridge.

    address    ``ws://HOST:PORT`` or ``wss://HOST:PORT``; empty: ws://127.0.0.1:8765
    reconnect  seconds of attempts to connect again after the connection was lost; 0: none
    largest    most bytes of one message of the server; a larger one ends the source

    Times are those that the server states for its messages. A server can drop messages for a slow client silently; what
    it reports is a note. Ends when the server is gone for longer than *reconnect*.
    """

    def __init__(
        self, address: str = "", *, reconnect: float = RECONNECT_SECONDS, largest: int = LARGEST
    ) -> None:
        self._url = address or ADDRESS
        if not self._url.startswith(("ws://", "wss://")):
            raise UsageError(f"{safe_url(self._url)!r} is no address of a Foxglove server, such as {ADDRESS}")
        self.name = safe_url(self._url)
        self._reconnect, self._largest = float(reconnect), int(largest)
        #: Channels by what they are: a channel that returns, also of another connection, is the same.
        self._known: dict[tuple[str, str, Schema], LiveChannel | None] = {}
        #: Advertised channels by their numbers, and channels by the number of their subscription.
        self._advertised: dict[int, int] = {}
        self._subscribed: dict[int, LiveChannel] = {}
        self._ended = deque[int]()
        #: Attempts to subscribe, by the number of a channel, and the channels to be subscribed again.
        self._attempts: dict[int, int] = {}
        self._again: list[int] = []
        self._next = 1
        self._texts = 0

    def run(self, feed: Feed) -> None:
        """Record until the recording stops or the server is gone; raise LogError if it was never there."""
        connection: WebSocket | None = self._connect()
        while connection is not None:
            try:
                while not feed.stopping:
                    message = connection.receive(PATIENCE)
                    if isinstance(message, str):
                        self._text(message, connection, feed)
                    elif message is not None:
                        self._binary(message, feed)
                    if self._again:
                        feed.wait(ATTEMPT_SECONDS)
                        self._subscribe(self._again, connection)
                        self._again = []
                return
            except ConnectionLostError as error:
                if error.too_large:
                    raise LogError(f"{self.name} sent a message larger than {self._largest} bytes") from error
                lost = error.reason
            finally:
                connection.close()
            connection = self._connect_again(lost, feed)

    def _connect(self) -> WebSocket:
        self._advertised, self._subscribed, self._attempts, self._again = {}, {}, {}, []
        self._ended.clear()
        return WebSocket(self._url, SUBPROTOCOLS, self._largest)

    def _connect_again(self, lost: str, feed: Feed) -> WebSocket | None:
        """Try to connect again; return None if the server stays away."""
        feed.note(f"the connection ended: {lost}")
        begun, pause = time.monotonic(), FIRST_PAUSE
        if self._reconnect > 0:
            feed.say(f"{self.name}: the connection ended: {lost}; connecting again")
        while time.monotonic() - begun < self._reconnect and not feed.wait(pause):
            pause = min(2 * pause, LAST_PAUSE)
            try:
                connection = self._connect()
            except LogError:
                continue
            seconds = time.monotonic() - begun
            feed.note(f"connected again after {seconds:.1f} s, whose messages are missing")
            feed.say(f"{self.name}: connected again")
            return connection
        return None

    # ------------------------------------------------------------------------------------- messages of the server

    def _binary(self, data: bytes, feed: Feed) -> None:
        """Pass on the payload of a message; other binary messages are of no interest."""
        if len(data) < HEAD.size or data[0] != MESSAGE_DATA:
            if data[:1] == bytes([MESSAGE_DATA]):
                feed.skip(f"a message of {len(data)} bytes is too short")
            return
        _, number, stamp = HEAD.unpack_from(data)
        channel = self._subscribed.get(number)
        if channel is None:
            return
        if stamp > _LATEST:
            feed.skip(f"{channel.topic}: the time {stamp} ns of a message is out of range")
            return
        feed.put(channel, stamp, data[HEAD.size :])

    def _text(self, text: str, connection: WebSocket, feed: Feed) -> None:
        """Handle a JSON message."""
        try:
            message = json.loads(text)
            match message["op"]:
                case "advertise":
                    self._advertise(message["channels"], connection, feed)
                case "unadvertise":
                    self._unadvertise(message["channelIds"])
                case "status":
                    self._status(message, feed)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            feed.skip(f"a JSON message of {len(text)} characters is invalid: {error!r:.100}")

    def _advertise(self, channels: list[Mapping[str, Any]], connection: WebSocket, feed: Feed) -> None:
        """Subscribe the channels that the recording wants."""
        fresh = []
        for described in channels:
            number, topic = int(described["id"]), str(described["topic"])
            if number in self._advertised or not feed.wants(topic):
                continue
            if max(len(self._advertised), len(self._known)) >= MOST_CHANNELS:
                feed.skip(f"channel {topic!r:.200} was left out: more than {MOST_CHANNELS} channels")
                continue
            try:
                encoding, schema = schema_of(described)
            except ValueError as error:
                feed.skip(f"channel {topic!r:.200} has an invalid schema: {error}")
                continue
            key = topic, encoding, schema
            if key not in self._known:
                own = {} if message_encoding(schema) == encoding else {"message_encoding": encoding}
                self._known[key] = feed.channel(topic, schema, own)
            channel = self._known[key]
            if channel is not None:
                self._advertised[number] = self._next
                self._subscribed[self._next] = channel
                self._next = self._next % 0xFFFFFFFF + 1
                fresh.append(number)
        self._subscribe(fresh, connection)

    def _subscribe(self, numbers: list[int], connection: WebSocket) -> None:
        """Subscribe channels that are still advertised."""
        subscriptions = [
            {"id": self._advertised[number], "channelId": number}
            for number in numbers
            if number in self._advertised
        ]
        if subscriptions:
            connection.send_text(json.dumps({"op": "subscribe", "subscriptions": subscriptions}))

    def _unadvertise(self, numbers: list[int]) -> None:
        for number in numbers:
            self._attempts.pop(int(number), None)
            subscription = self._advertised.pop(int(number), None)
            if subscription is not None:
                self._ended.append(subscription)
        while len(self._ended) > MOST_ENDED:
            self._subscribed.pop(self._ended.popleft(), None)

    def _status(self, message: Mapping[str, Any], feed: Feed) -> None:
        """Note what the server says, e.g. that it dropped messages; subscribe a channel again that it did not know."""
        unknown = UNKNOWN.search(str(message.get("message", "")))
        if unknown and (number := int(unknown[1])) in self._advertised:
            self._attempts[number] = self._attempts.get(number, 0) + 1
            if self._attempts[number] <= ATTEMPTS:
                self._again.append(number)
                return
        self._texts += 1
        if self._texts > MOST_TEXTS:
            return
        level = {1: "warning: ", 2: "error: "}.get(message.get("level", 0), "")
        feed.note(f"the server says: {level}{message.get('message', '')!s:.500}")


def at_ws(address: str, *, reconnect: float = RECONNECT_SECONDS, largest: int = LARGEST) -> FoxgloveSource:
    """Return the source at ``ws:`` and *address*; see FoxgloveSource."""
    return FoxgloveSource(f"ws:{address}", reconnect=reconnect, largest=largest)


def at_wss(address: str, *, reconnect: float = RECONNECT_SECONDS, largest: int = LARGEST) -> FoxgloveSource:
    """Return the source at ``wss:`` and *address*; see FoxgloveSource."""
    return FoxgloveSource(f"wss:{address}", reconnect=reconnect, largest=largest)


def schema_of(described: Mapping[str, Any]) -> tuple[str, Schema]:
    """Return encoding of messages and Schema of an advertised channel; raise ValueError for an invalid one."""
    encoding = str(described["encoding"])
    text = str(described.get("schema") or "")
    name = str(described.get("schemaName") or "")
    language = described.get("schemaEncoding")
    if language is None:
        usual = language_by_encoding(encoding) if name or text else None
        language = usual.name if usual is not None else encoding if name or text else ""
    known = language_named(str(language))
    if known is None or not known.binary:
        return encoding, Schema(name, str(language), text)
    try:
        return encoding, Schema.of(name, language, base64.b64decode(text, validate=True))
    except binascii.Error as error:
        raise ValueError(f"no base64: {error}") from None
