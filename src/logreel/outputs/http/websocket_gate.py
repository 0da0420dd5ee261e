"""Access control for a WebSocket server that has none: checks each handshake, then passes the messages on."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import secrets
import socket
from collections.abc import Callable
from http import HTTPStatus
from threading import Thread
from typing import Any

import h11

from logreel.errors import MissingDependencyError
from logreel.outputs.http.server import HEAD_BYTES, Headers, Rules, listen

#: Seconds in which the head must be complete.
HEAD_SECONDS = 10.0
#: Seconds after which a client is dropped that takes nothing.
SLOW_SECONDS = 60.0
#: Number of clients that are let in.
CONNECTIONS = 64
#: Number of connections whose handshake is not complete; beyond that, the oldest is dropped.
PENDING = 64
#: Most bytes of a message of a client.
MESSAGE_BYTES = 1 << 20
#: Bytes that are read at once, and kept for a client that is slower than the server.
PIECE = 1 << 18
#: Returns what to pass on of a message, given whether it is text and its bytes; None: nothing.
Filter = Callable[[bool, bytes], bytes | None]
_KEY = re.compile(r"[A-Za-z0-9+/]{22}==")
_PROTOCOLS = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}(, ?[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}){0,15}")


class Refused(Exception):
    """A handshake that is answered with an error; *note* is for the user of this side."""

    def __init__(self, status: int, text: str, note: str = "") -> None:
        super().__init__(text)
        self.status, self.text, self.note = status, text, note or text


class FrameError(Exception):
    """Frames that are not accepted; *code* is for the close frame."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code, self.reason = code, reason

    @property
    def close_frame(self) -> bytes:
        """Frame with which a server ends the connection."""
        frames = _websockets().frames
        content = frames.Close(self.code, self.reason.encode()[:120].decode(errors="ignore")).serialize()
        closing: bytes = frames.Frame(frames.Opcode.CLOSE, content).serialize(mask=False)
        return closing


class ClientFrames:
    """Frames of one client, without compression: checked, joined to whole messages, and written again for a server.

    largest  most bytes of a message
    chosen   called with each message
    """

    def __init__(self, largest: int, chosen: Filter) -> None:
        self._frames, protocol = _websockets().frames, _websockets().protocol
        self._protocol = protocol.Protocol(protocol.Side.SERVER, max_size=largest)
        self._chosen = chosen
        self._message = bytearray()
        self._is_text = False

    def feed(self, data: bytes) -> bytes:
        """Return the frames for the server that *data* completes; raises FrameError."""
        self._protocol.receive_data(data)
        frames = self._protocol.events_received()
        error = self._protocol.parser_exc
        if error is not None:
            raise FrameError(self._protocol.close_sent.code, str(error))
        return b"".join(map(self._passed, frames))

    def _passed(self, frame: Any) -> bytes:
        """Return what the server gets for *frame*; a message with the last one of its frames."""
        opcodes = self._frames.Opcode
        if frame.opcode not in (opcodes.TEXT, opcodes.BINARY, opcodes.CONT):
            return self._masked(frame.opcode, frame.data)
        if frame.opcode is not opcodes.CONT:
            self._is_text = frame.opcode is opcodes.TEXT
        self._message += frame.data
        if not frame.fin:
            return b""
        content, self._message = bytes(self._message), bytearray()
        passed = self._chosen(self._is_text, content)
        return (
            b"" if passed is None else self._masked(opcodes.TEXT if self._is_text else opcodes.BINARY, passed)
        )

    def _masked(self, opcode: Any, content: bytes) -> bytes:
        frame: bytes = self._frames.Frame(opcode, content).serialize(mask=True)
        return frame

    @property
    def going_away(self) -> bytes:
        """Frame of a client that leaves."""
        return self._masked(self._frames.Opcode.CLOSE, self._frames.Close(1001, "").serialize())


def _websockets() -> Any:
    """Return the package, with its modules for frames and protocol; raises MissingDependencyError."""
    try:
        import websockets.frames
        import websockets.protocol
    except ImportError as error:
        raise MissingDependencyError("websockets", "foxglove") from error
    return websockets


class WebSocketGate:
    """Listens as soon as it is created; lets clients in after ``start``.

    host, port  address to listen at; port 0: any free port
    rules       which handshakes are accepted
    chosen      called with each message of a client, from the thread of the gate
    refused     called with the reason for each client that is not let in

    port  port that it listens at

    Raises LogError if it cannot listen, MissingDependencyError without websockets.
    """

    def __init__(
        self, host: str, port: int, rules: Rules, chosen: Filter, refused: Callable[[str], object]
    ) -> None:
        # Before a client connects.
        _websockets()
        self._socket = listen(host, port)
        self.port: int = self._socket.getsockname()[1]
        self._rules, self._chosen, self._refused = rules, chosen, refused
        self._loop, self._stopped = asyncio.new_event_loop(), asyncio.Event()
        self._thread: Thread | None = None
        self._clients: set[asyncio.Task[None]] = set()
        #: Those whose handshake is not complete, oldest first, and the number of those let in.
        self._pending: dict[asyncio.Task[None], None] = {}
        self._inside = 0
        self._server = ("", 0)

    def start(self, host: str, port: int) -> None:
        """Let clients in, and connect them with the WebSocket server at *host* and *port*."""
        self._server = host, port
        self._thread = Thread(target=self._run, name="logreel-gate", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End all connections, and listen no more."""
        if self._thread is None:
            self._socket.close()
            self._loop.close()
            return
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()
        self._thread = None

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()
            self._socket.close()

    async def _serve(self) -> None:
        """Let clients in until ``stop``, which may come before the first of them could."""
        server = await asyncio.start_server(self._admit, sock=self._socket, limit=PIECE)
        try:
            await self._stopped.wait()
        finally:
            server.close()
            for task in self._clients:
                task.cancel()
            await asyncio.gather(*self._clients, return_exceptions=True)

    async def _admit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client, from its first byte to its last."""
        task = asyncio.current_task()
        if task is None:
            return
        self._clients.add(task)
        self._pending[task] = None
        if len(self._pending) > PENDING:
            next(iter(self._pending)).cancel()
        try:
            try:
                async with asyncio.timeout(HEAD_SECONDS):
                    head = self._checked(await _request(reader))
                if self._inside >= CONNECTIONS:
                    raise Refused(503, f"there are {CONNECTIONS} clients already: try again later")
            except Refused as error:
                self._refused(error.note)
                await _answer(reader, writer, error)
                return
            finally:
                self._pending.pop(task, None)
            self._inside += 1
            try:
                await self._connect(head, reader, writer)
            finally:
                self._inside -= 1
        except (OSError, TimeoutError, asyncio.CancelledError):
            # A client that was dropped; the task ends, nobody waits for its result.
            pass
        finally:
            self._clients.discard(task)
            # What a slow client has not taken yet would keep the connection open.
            if writer.transport.get_write_buffer_size() > PIECE:
                writer.transport.abort()
            else:
                writer.close()

    async def _connect(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass bytes in both directions until one side ends, beginning with the handshake *head*."""
        server_reader, server_writer = await asyncio.open_connection(*self._server, limit=PIECE)
        try:
            server_writer.write(head)
            ways = [
                asyncio.create_task(self._up(reader, writer, server_writer)),
                asyncio.create_task(_down(server_reader, writer)),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        finally:
            server_writer.close()

    def _checked(self, request: h11.Request) -> bytes:
        """Return the handshake for the server; raises Refused."""
        headers = Headers(request.headers)
        path, _, query = request.target.partition(b"?")
        if why := self._rules.wrong_sender(headers):
            sent = ", ".join(
                f"{name.capitalize()}: {headers.only(name)[:100]}"
                for name in ("host", "origin")
                if headers.count(name)
            )
            raise Refused(403, why, f"{why} ({sent})")
        if request.method != b"GET":
            raise Refused(405, "this is a WebSocket server: it only knows GET")
        if not self._rules.has_token(headers, query):
            raise Refused(401, "the token is missing or wrong: use the address with ?token=… that was shown")
        if path != b"/":
            raise Refused(404, "there is nothing at this address")
        if request.http_version != b"1.1" or any(
            headers.count(name) for name in ("content-length", "transfer-encoding", "expect")
        ):
            raise Refused(400, "this is no handshake of a WebSocket")
        if (
            headers.only("upgrade").lower() != "websocket"
            or "upgrade" not in re.split(r", ?", headers.only("connection").lower())
            or headers.only("sec-websocket-version") != "13"
        ):
            raise Refused(426, "this is a WebSocket server, version 13")
        key, protocols = headers.only("sec-websocket-key"), headers.only("sec-websocket-protocol")
        if not _KEY.fullmatch(key) or not _PROTOCOLS.fullmatch(protocols):
            raise Refused(400, "this is no handshake of a WebSocket with a protocol")
        # Of what the client sent, only these two reach the server; nothing is compressed.
        host, port = self._server
        return (
            f"GET / HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n"
            f"Sec-WebSocket-Protocol: {protocols}\r\n\r\n"
        ).encode()

    async def _up(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: asyncio.StreamWriter
    ) -> None:
        """Pass messages of the client on to the server."""
        frames = ClientFrames(MESSAGE_BYTES, self._chosen)
        while data := await reader.read(PIECE):
            try:
                server.write(frames.feed(data))
            except FrameError as error:
                self._refused(error.reason)
                # Frames of the server are whole here only by chance; a client takes the end of the connection, too.
                writer.write(error.close_frame)
                break
            await server.drain()
        # The client vanished, or must go.
        server.write(frames.going_away)


async def _down(server: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass all bytes of the server on to the client; raises TimeoutError if it takes nothing for long."""
    while data := await server.read(PIECE):
        writer.write(data)
        if writer.transport.get_write_buffer_size():
            async with asyncio.timeout(SLOW_SECONDS):
                await writer.drain()


async def _request(reader: asyncio.StreamReader) -> h11.Request:
    """Return the head of the first request; raises Refused."""
    # Not read with websockets, whose limits are constants of its module: lines of 8 KiB, and 128 of them. Here the head
    # as a whole is bounded, as in the other servers.
    parser = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
    total = 0
    try:
        while (event := parser.next_event()) is h11.NEED_DATA:
            data = await reader.read(HEAD_BYTES + 1 - total)
            total += len(data)
            if total > HEAD_BYTES:
                raise Refused(431, f"the head of a request has at most {HEAD_BYTES} bytes here")
            parser.receive_data(data)
    except h11.RemoteProtocolError as error:
        raise Refused(error.error_status_hint, "this is no request of HTTP") from None
    if not isinstance(event, h11.Request):
        raise Refused(400, "this is no request of HTTP")
    if parser.trailing_data[0]:
        raise Refused(400, "bytes follow before the handshake is answered")
    return event


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, error: Refused) -> None:
    """Send the reason for a refusal, and wait a moment for the client to take it."""
    body = json.dumps({"error": error.text}, ensure_ascii=False).encode()
    head = (
        f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nCache-Control: no-store\r\n"
        "X-Content-Type-Options: nosniff\r\n\r\n"
    )
    writer.write(head.encode() + body)
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(1.0):
            await writer.drain()
            writer.write_eof()
            # A connection that is closed with unread bytes is reset, and the answer lost.
            for _ in range(16):
                if not await reader.read(PIECE):
                    break


def private_address() -> str:
    """Return a loopback address for a server behind a gate: where the system has many, one that no page can guess."""
    for _ in range(3):
        host = f"127.{secrets.randbelow(254) + 1}.{secrets.randbelow(254) + 1}.{secrets.randbelow(254) + 1}"
        with contextlib.suppress(OSError), socket.socket() as tried:
            tried.bind((host, 0))
            return host
    return "127.0.0.1"
