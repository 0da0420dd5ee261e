"""Live sources of frames from the network: UDP and TCP."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import sys
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

from logreel.errors import LogError, UsageError
from logreel.ops.record.source import PATIENCE, Feed, LiveChannel
from logreel.ops.record.sources.frames import Frames, options_of
from logreel.ops.record.wait import readable

LOOPBACK = "127.0.0.1"
#: Bytes read at once, and bytes that the system may keep for a socket until they are read.
PIECE, KERNEL_BUFFER = 1 << 16, 8 << 20
#: Seconds in which a connection must be made.
CONNECT_WITHIN = 10.0
#: Option of Linux that returns numbers about a socket, u32 each, and which of them counts lost datagrams.
_SO_MEMINFO, _MEMINFO_SIZE, _DROPS = 55, 36, slice(32, 36)
#: Most datagrams that are read before the clock is looked at for the stop of the recording.
_AT_ONCE = 256
_FRAMES = {"topic": "", "frame": "", "size": "", "prefix": ""}


class UdpSource:
    """Datagrams that come to an address of this computer: ``udp://[HOST]:PORT[?topic=…&size=…]``.

    address  ``//HOST:PORT``, without a host of the loopback device; a multicast group is joined

    Each datagram is a message. ``prefix=`` or ``frame=lines`` find several frames in one; ``frame=json``: lines of
    JSON. On Linux, datagrams lost because they were not read fast enough are counted.
    """

    def __init__(self, address: str) -> None:
        self.name = f"udp:{address}"
        self._host, self._port, options = _parsed(self.name, address, _FRAMES)
        topic = options.pop("topic") or f"/udp_{self._port}"
        self._frames = Frames(self.name, topic, **options, packets=True)

    def run(self, feed: Feed) -> None:
        """Read datagrams until the recording stops."""
        with _bound(self._host, self._port, socket.SOCK_DGRAM) as sock:
            channel = self._frames.declare(feed)
            sock.setblocking(False)
            lost = 0
            while not feed.stopping:
                if readable(sock, PATIENCE):
                    self._read(sock, feed, channel)
                lost = _note_losses(sock, feed, channel, lost)

    def _read(self, sock: socket.socket, feed: Feed, channel: LiveChannel | None) -> None:
        """Pass on the datagrams that have come, up to a number after which losses are looked for."""
        with contextlib.suppress(BlockingIOError):
            for _ in range(_AT_ONCE):
                piece = sock.recv(PIECE)
                self._frames.pass_on(feed, channel, piece, time.time_ns(), wait=False)


class TcpSource:
    """Frames from a TCP connection: ``tcp://HOST:PORT?size=…``, to a server, or with ``listen=yes`` from clients.

    address  ``//HOST:PORT?OPTIONS``; how to find frames must be said, see ``Frames``

    A full queue makes the sender wait, so nothing is lost. The source ends when the server closes the connection;
    with ``listen=yes``, one client after the other is served until the recording stops.
    """

    def __init__(self, address: str) -> None:
        self.name = f"tcp:{address}"
        self._host, self._port, options = _parsed(self.name, address, {**_FRAMES, "listen": "no"})
        listen = options.pop("listen")
        if listen not in ("yes", "no"):
            raise UsageError(f"{self.name}: listen is yes or no, not {listen!r:.40}")
        self._listens = listen == "yes"
        topic = options.pop("topic") or f"/tcp_{self._port}"
        self._frames = Frames(self.name, topic, **options, packets=False)

    def run(self, feed: Feed) -> None:
        """Read frames until the connection ends or the recording stops."""
        channel: LiveChannel | None = None
        declared = False
        for connection in self._connections(feed):
            with connection:
                if not declared:
                    channel, declared = self._frames.declare(feed), True
                self._read(connection, feed, channel)

    def _connections(self, feed: Feed) -> Iterator[socket.socket]:
        if not self._listens:
            yield socket.create_connection((self._host, self._port), CONNECT_WITHIN)
            return
        with _bound(self._host, self._port, socket.SOCK_STREAM) as server:
            server.listen(1)
            while not feed.stopping:
                if readable(server, PATIENCE):
                    yield server.accept()[0]

    def _read(self, connection: socket.socket, feed: Feed, channel: LiveChannel | None) -> None:
        while not feed.stopping:
            if not readable(connection, PATIENCE):
                continue
            piece = connection.recv(PIECE)
            now = time.time_ns()
            if not piece:
                break
            self._frames.pass_on(feed, channel, piece, now, wait=True)
        self._frames.end(feed, channel, time.time_ns())


def _parsed(name: str, address: str, known: dict[str, str]) -> tuple[str, int, dict[str, str]]:
    """Return host, port and options of ``//HOST:PORT?OPTIONS``; raises UsageError for other texts."""
    try:
        found = urlsplit(address)
        host, port = found.hostname or LOOPBACK, found.port
    except ValueError:
        host, port, found = "", None, urlsplit("")
    if not address.startswith("//") or port is None or found.path or found.fragment or found.username:
        raise UsageError(f"{name}: write {name.partition(':')[0]}://HOST:PORT, and options behind a ?")
    return host, port, options_of(found.query, known, name)


def _bound(host: str, port: int, kind: socket.SocketKind) -> socket.socket:
    """Return a socket that receives at an address of this computer, or of a multicast group."""
    family, _, _, _, address = socket.getaddrinfo(host, port, type=kind, flags=socket.AI_PASSIVE)[0]
    sock = socket.socket(family, kind)
    try:
        with contextlib.suppress(ValueError):
            if kind == socket.SOCK_DGRAM and ipaddress.ip_address(host).is_multicast:
                _join(sock, host)
        if kind == socket.SOCK_STREAM:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, KERNEL_BUFFER)
        sock.bind(address)
    except BaseException:
        sock.close()
        raise
    return sock


def _join(sock: socket.socket, group: str) -> None:
    """Join a multicast group of IPv4; other programs of this computer may have joined it, too."""
    if sock.family != socket.AF_INET:
        raise LogError(f"{group}: only multicast groups of IPv4 can be joined")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    member = socket.inet_aton(group) + socket.inet_aton("0.0.0.0")
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)


def _note_losses(sock: socket.socket, feed: Feed, channel: LiveChannel | None, before: int) -> int:
    """Count the datagrams that the system threw away since it had thrown away *before*; return their number so far."""
    try:
        found = sock.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMINFO_SIZE)
    except OSError:
        # Other systems do not say.
        return before
    total = int.from_bytes(found[_DROPS], sys.byteorder)
    more = (total - before) % (1 << 32)
    if more and channel is not None:
        feed.lose(channel, more)
    elif more:
        feed.skip(f"{more} datagrams were lost before they were read")
    return total
