"""Client side of a WebSocket connection: whole messages, as they come."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Sequence
from typing import Any, NoReturn

from logreel.errors import LogError, MissingDependencyError, UsageError
from logreel.ops.record.source import readable

#: Seconds to connect, and to wait for the answer to a close.
OPEN_SECONDS, CLOSE_SECONDS = 10.0, 1.0
#: Seconds without bytes after which a silent server is asked for a sign of life, and again until it counts as lost.
SILENT_SECONDS = 20.0
#: Bytes that are read at once.
READ_BYTES = 1 << 18


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

    Redirects are not followed, no proxy is used, nothing is compressed. For one thread. Raises UsageError for an
    invalid URL, LogError if the server refuses.
    """

    def __init__(self, url: str, subprotocols: Sequence[str], largest: int) -> None:
        protocols, uris = _imported()
        try:
            uri = uris.parse_uri(url)
        except Exception as error:  # its classes differ between releases
            raise UsageError(
                f"{safe_url(url)!r} is no URL of a WebSocket server, such as ws://127.0.0.1:8765"
            ) from error
        self.name = safe_url(url)
        self._protocol = protocols.ClientProtocol(uri, subprotocols=subprotocols, max_size=largest)
        self._largest = largest
        #: Messages that were received and not handed out, and the fragments of the next one.
        self._messages: list[tuple[bool, bytes]] = []
        self._fragments: list[bytes] = []
        self._is_text = False
        try:
            self._socket = socket.create_connection((uri.host, uri.port), OPEN_SECONDS)
        except OSError as error:
            raise LogError(f"no server answers at {self.name}: {error.strerror or error}") from error
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if uri.secure:
                context = ssl.create_default_context()
                self._socket = context.wrap_socket(self._socket, server_hostname=uri.host)
            self._shake_hands(subprotocols)
        except OSError as error:
            self._socket.close()
            raise LogError(f"{self.name}: the connection failed: {error.strerror or error}") from error
        except BaseException:
            self._socket.close()
            raise

    def _shake_hands(self, subprotocols: Sequence[str]) -> None:
        self._protocol.send_request(self._protocol.connect())
        self._send()
        until = time.monotonic() + OPEN_SECONDS
        while not (events := self._protocol.events_received()) and self._protocol.handshake_exc is None:
            left = until - time.monotonic()
            if left <= 0 or not self._ready(left):
                raise LogError(f"{self.name} does not answer as a WebSocket server does")
            self._read()
        if self._protocol.handshake_exc is not None:
            self._refuse(events)
        if self._protocol.subprotocol is None:
            raise LogError(f"{self.name} speaks none of the protocols {', '.join(subprotocols)}")
        self._heard, self._asked = time.monotonic(), False
        self._collect(events[1:])

    def _refuse(self, events: Sequence[Any]) -> NoReturn:
        status = getattr(events[0], "status_code", None) if events else None
        if status is not None and 300 <= status < 400:
            raise LogError(f"{self.name} redirects to another address; redirects are not followed")
        raise LogError(f"{self.name} refuses the connection: {self._protocol.handshake_exc}")

    # ------------------------------------------------------------------------------------------------ bytes

    def _ready(self, seconds: float) -> bool:
        """Wait until bytes can be read, or *seconds*; return whether they can."""
        if isinstance(self._socket, ssl.SSLSocket) and self._socket.pending():
            return True
        return readable(self._socket, seconds)

    def _read(self) -> None:
        data = self._socket.recv(READ_BYTES)
        if data:
            self._protocol.receive_data(data)
        else:
            self._protocol.receive_eof()
        self._send()

    def _send(self) -> None:
        for data in self._protocol.data_to_send():
            if data:
                self._socket.sendall(data)

    # --------------------------------------------------------------------------------------------- messages

    def send_text(self, text: str) -> None:
        """Send a text message; raise ConnectionLostError if the connection ended."""
        try:
            self._protocol.send_text(text.encode())
            self._send()
        except Exception as error:  # OSError, or a state of the protocol
            raise self._lost(str(error)) from error

    def receive(self, seconds: float) -> list[tuple[bool, bytes]]:
        """Return the messages received, each with True for text; none after *seconds* without any.

        Raises ConnectionLostError when the connection ended, after all messages before that were returned.
        """
        if not self._messages:
            self._check()
            try:
                if self._ready(seconds):
                    self._heard, self._asked = time.monotonic(), False
                    self._read()
                    self._collect(self._protocol.events_received())
                else:
                    self._watch()
            except OSError as error:
                if not self._messages:
                    raise self._lost(str(error.strerror or error)) from error
            if not self._messages:
                self._check()
        messages, self._messages = self._messages, []
        return messages

    def _collect(self, frames: Sequence[Any]) -> None:
        """Append the messages that consist of *frames* and of earlier ones."""
        for frame in frames:
            opcode = frame.opcode
            if opcode not in (0, 1, 2):
                continue
            if opcode:
                self._is_text = opcode == 1
                if frame.fin:
                    self._messages.append((self._is_text, bytes(frame.data)))
                    continue
            self._fragments.append(bytes(frame.data))
            if frame.fin:
                self._messages.append((self._is_text, b"".join(self._fragments)))
                self._fragments = []

    def _watch(self) -> None:
        """Ask a silent server for a sign of life, and give it up if there is none."""
        silent = time.monotonic() - self._heard
        if silent > 2 * SILENT_SECONDS:
            raise OSError(f"no sign of life for {silent:.0f} s")
        if silent > SILENT_SECONDS and not self._asked and self._is_open():
            self._asked = True
            self._protocol.send_ping(b"")
            self._send()

    def _is_open(self) -> bool:
        return str(self._protocol.state.name) == "OPEN"

    def _check(self) -> None:
        if not self._is_open():
            raise self._lost("")

    def _lost(self, reason: str) -> ConnectionLostError:
        closed = self._protocol.close_rcvd or self._protocol.close_sent
        if closed is not None:
            reason = f"code {closed.code}" + (f", {closed.reason}" if closed.reason else "")
        reason = reason or "without a word"
        error = ConnectionLostError(f"{self.name}: the connection ended: {reason}")
        error.reason = reason
        sent = self._protocol.close_sent
        error.too_large = sent is not None and sent.code == 1009
        return error

    def close(self) -> None:
        """End the connection."""
        try:
            if self._is_open():
                self._protocol.send_close(1000)
                self._send()
                until = time.monotonic() + CLOSE_SECONDS
                while self._protocol.state.name != "CLOSED" and (left := until - time.monotonic()) > 0:
                    if not self._ready(left):
                        break
                    self._read()
        except OSError:
            pass
        finally:
            self._socket.close()


def safe_url(url: str) -> str:
    """Return *url* without name and password."""
    scheme, mark, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path.partition('?')[0]}" if mark else url


def _imported() -> tuple[Any, Any]:
    try:
        from websockets import client, uri
    except ImportError as error:
        raise MissingDependencyError("websockets", "foxglove") from error
    return client, uri
