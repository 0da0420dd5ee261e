"""Live sources of bytes: sockets, serial ports and lines of a file; and how a stream of bytes is cut into frames."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Literal
from urllib.parse import parse_qsl, urlsplit

from logreel.errors import LogError, UnsupportedError, UsageError
from logreel.io.platform import readable
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, FixedArray, Rest, Scalar, Struct
from logreel.ops.record.lines import read_lines
from logreel.ops.record.source import PATIENCE, Feed, LiveChannel

#: Greatest number of bytes of a frame.
LONGEST = 1 << 24
#: Length prefixes: bytes, and their order.
PREFIXES: dict[str, tuple[int, Literal["little", "big"]]] = {
    "u8": (1, "little"), "u16": (2, "little"), "u32": (4, "little"), "u16be": (2, "big"), "u32be": (4, "big"),
}  # fmt: skip
_HOW = "size=BYTES, prefix=u8, u16, u32, u16be or u32be, frame=lines, or frame=json"


def options_of(query: str, known: Mapping[str, str], name: str) -> dict[str, str]:
    """Return the options after the ``?`` of a spelling, with those of *known* that are not there.

    Raises UsageError for an option that is not known, without a value, or given twice.
    """
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True) if query else []
    except ValueError:
        raise UsageError(f"{name}: write options as ?NAME=VALUE&NAME=VALUE, not {query!r:.60}") from None
    for option, value in pairs:
        if option not in known:
            raise UsageError(f"{name}: no option {option!r}; there are {', '.join(known)}")
        if not value or len([other for other, _ in pairs if other == option]) > 1:
            raise UsageError(f"{name}: give {option!r} one value")
    return {**known, **dict(pairs)}


def whole(text: str, least: int, most: int, what: str) -> int:
    """Return a number of an option; raises UsageError if it is none from *least* to *most*."""
    if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
        raise UsageError(f"{what}: a whole number from {least} to {most}, not {text!r:.40}")
    return int(text)


class FrameSplitter:
    """How a source cuts its bytes into frames, and the channel of these.

    name    of the source, for people
    topic   of the channel
    frame, size, prefix  options of the source, empty if not given: ``lines``, ``json`` or ``datagram``; bytes of each
            frame; kind of the length before each frame
    packets  True: bytes come in packets, each of which is a frame unless options say otherwise

    Raises UsageError if the options do not say how to find frames, or contradict each other.
    """

    def __init__(self, name: str, topic: str, frame: str, size: str, prefix: str, packets: bool) -> None:
        self.name, self.topic, self._packets = name, topic, packets
        if sum(map(bool, (frame, size, prefix))) > 1:
            raise UsageError(f"{name}: frames are found in one way: {_HOW}")
        if frame not in ("", "lines", "json", *["datagram"] * packets):
            raise UsageError(f"{name}: frame={frame!r:.40} is unknown; there are {_HOW}")
        if not any((frame, size, prefix)) and not packets:
            raise UsageError(f"{name}: say how to find frames in the bytes: {_HOW}")
        if prefix and prefix not in PREFIXES:
            raise UsageError(f"{name}: prefix={prefix!r:.40} is unknown; there are {', '.join(PREFIXES)}")
        self._size = whole(size, 1, LONGEST, f"{name}: size") if size else 0
        self._prefix = PREFIXES[prefix] if prefix else None
        self._lines, self._json = frame == "lines", frame == "json"
        self._begun, self._count = bytearray(), 0
        #: The rest of a line is skipped up to its end.
        self._too_long = False
        #: Number of bytes, of those of a line that has begun, that were searched for its end.
        self._without_end = 0

    def declare(self, feed: Feed) -> LiveChannel | None:
        """Declare the channel of the frames, and that there will be no others; None for lines of JSON."""
        if self._json:
            return None
        node = FixedArray(Scalar("uint8"), self._size) if self._size else Rest(text=self._lines)
        channel = feed.channel(self.topic, Layout(Struct((Field("data", node),))))
        feed.settled = True
        return channel

    def pass_on(self, feed: Feed, channel: LiveChannel | None, data: bytes, time: int, wait: bool) -> None:
        """Pass the frames that end in *data* to *feed*, with *time* ns.

        Raises LogError if the bytes cannot be frames: the next one cannot be found.
        """
        for frame in self._frames(feed, data):
            if self._json:
                self._count += 1
                feed.line(f"{self.name}: line {self._count}", frame)
            elif channel is not None:
                feed.put(channel, time, frame, wait=wait)

    def end(self, feed: Feed, channel: LiveChannel | None, time: int) -> None:
        """Pass on a last line without a line end; report other bytes that are no whole frame."""
        rest, self._begun, self._without_end = bytes(self._begun), bytearray(), 0
        if self._too_long:
            # What is left of a line that was reported; the next connection begins with a line of its own.
            self._too_long = False
        elif rest and self._json:
            feed.line(f"{self.name}: line {self._count + 1}", rest)
        elif rest and self._lines and channel is not None:
            feed.put(channel, time, rest, wait=True)
        elif rest:
            feed.skip(f"the last {len(rest)} bytes are no whole frame")

    def _frames(self, feed: Feed, data: bytes) -> Iterator[bytes]:
        if self._packets and not (self._lines or self._json or self._prefix):
            if self._size and len(data) != self._size:
                feed.skip(f"a datagram of {len(data)} bytes instead of {self._size}")
                return
            yield data
            return
        if self._packets:
            # Each packet stands for itself, since others may be lost.
            self._without_end = 0
            self._begun = bytearray(data if data[-1:] == b"\n" or self._prefix else data + b"\n")
        else:
            self._begun += data
        if self._lines or self._json:
            yield from self._cut_lines(feed)
        elif self._prefix:
            yield from self._cut_prefixed()
        else:
            yield from self._cut_sized()
        if self._packets and self._begun:
            feed.skip(f"the last {len(self._begun)} bytes of a datagram are no whole frame")

    def _cut_lines(self, feed: Feed) -> list[bytes]:
        end = self._begun.rfind(b"\n", self._without_end) + 1
        lines = bytes(self._begun[:end]).split(b"\n")[:-1]
        del self._begun[:end]
        if self._too_long and lines:
            self._too_long = False
            del lines[0]
        if len(self._begun) > LONGEST and not self._too_long:
            feed.skip(f"a line of more than {LONGEST} bytes")
            self._too_long = True
        if self._too_long:
            self._begun.clear()
        self._without_end = len(self._begun)
        return [line.removesuffix(b"\r") for line in lines]

    def _cut_sized(self) -> list[bytes]:
        data, size = bytes(self._begun), self._size
        end = len(data) - len(data) % size
        self._begun = bytearray(data[end:])
        return [data[at : at + size] for at in range(0, end, size)]

    def _cut_prefixed(self) -> Iterator[bytes]:
        width, order = self._prefix or (4, "little")
        data, at = bytes(self._begun), 0
        while len(data) - at >= width:
            size = int.from_bytes(data[at : at + width], order)
            if size > LONGEST:
                raise LogError(
                    f"a frame of {size} bytes: this cannot be its length, so no further frames are found"
                )
            if len(data) - at - width < size:
                break
            yield data[at + width : at + width + size]
            at += width + size
        self._begun = bytearray(data[at:])


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
        self._frames = FrameSplitter(self.name, topic, **options, packets=True)

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
                data = sock.recv(PIECE)
                self._frames.pass_on(feed, channel, data, time.time_ns(), wait=False)


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
        self._frames = FrameSplitter(self.name, topic, **options, packets=False)

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
            data = connection.recv(PIECE)
            now = time.time_ns()
            if not data:
                break
            self._frames.pass_on(feed, channel, data, now, wait=True)
        self._frames.end(feed, channel, time.time_ns())


def _parsed(name: str, address: str, known: dict[str, str]) -> tuple[str, int, dict[str, str]]:
    """Return host, port and options of ``//HOST:PORT?OPTIONS``; raises UsageError for other texts."""
    try:
        url = urlsplit(address)
        host, port = url.hostname or LOOPBACK, url.port
    except ValueError:
        host, port, url = "", None, urlsplit("")
    if not address.startswith("//") or port is None or url.path or url.fragment or url.username:
        raise UsageError(f"{name}: write {name.partition(':')[0]}://HOST:PORT, and options behind a ?")
    return host, port, options_of(url.query, known, name)


def _bound(host: str, port: int, socket_kind: socket.SocketKind) -> socket.socket:
    """Return a socket that receives at an address of this computer, or of a multicast group."""
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket_kind, flags=socket.AI_PASSIVE)[0]
    sock = socket.socket(family, socket_kind)
    try:
        with contextlib.suppress(ValueError):
            if socket_kind == socket.SOCK_DGRAM and ipaddress.ip_address(host).is_multicast:
                _join(sock, host)
        if socket_kind == socket.SOCK_STREAM:
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
        counters = sock.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMINFO_SIZE)
    except OSError:
        # Other systems do not say.
        return before
    total = int.from_bytes(counters[_DROPS], sys.byteorder)
    more = (total - before) % (1 << 32)
    if more and channel is not None:
        feed.lose(channel, more)
    elif more:
        feed.skip(f"{more} datagrams were lost before they were read")
    return total


class LinesSource:
    """Lines of JSON, one message each, in the form of ``cat --format ndjson``: ``lines:FILE``, ``lines:-`` for stdin.

    address  path of a file or pipe; ``-``: standard input

    A full queue makes the source wait, so nothing is lost.
    """

    def __init__(self, address: str) -> None:
        if not address:
            raise UsageError("lines: write lines:FILE, or lines:- for standard input")
        self.name = f"lines:{address}"
        #: None: standard input.
        self.path = None if address == "-" else address

    def run(self, feed: Feed) -> None:
        """Pass on lines until there are no more, or the recording stops."""
        if self.path is None:
            self._read(feed, sys.stdin.fileno())
            return
        # Opening a named pipe waits for its writer, unless it is not to wait.
        handle = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            os.set_blocking(handle, True)
            self._read(feed, handle)
        finally:
            os.close(handle)

    def _read(self, feed: Feed, handle: int) -> None:
        number = 0
        for line in read_lines(_Handle(handle), PATIENCE):
            if feed.stopping:
                break
            if line is not None:
                number += 1
                feed.line(f"{self.name}: line {number}", line)


class _Handle:
    """A file descriptor as a pipe."""

    def __init__(self, number: int) -> None:
        self._number = number

    def fileno(self) -> int:
        return self._number


#: Bytes read at once.
READ_BYTES = 1 << 14
_OPTIONS = {
    "topic": "", "frame": "", "size": "", "prefix": "", "baud": "115200", "bits": "8", "parity": "none", "stop": "1",
}  # fmt: skip
_PARITIES = ("none", "even", "odd")


class SerialSource:
    """Frames from a serial port: ``serial:/dev/ttyUSB0?baud=115200&frame=lines``.

    address  path of the device, and options: ``baud``, ``bits`` (7 or 8), ``parity`` (none, even, odd), ``stop`` (1 or
             2), and how to find frames, see ``Frames``

    Needs a system with termios (Linux, macOS). The source ends with an error if the device disappears.
    """

    def __init__(self, address: str) -> None:
        path, _, query = address.partition("?")
        self.name = f"serial:{path}"
        if not path:
            raise UsageError("serial: write serial:DEVICE, such as serial:/dev/ttyUSB0?baud=115200")
        self.path = path
        options = options_of(query, _OPTIONS, self.name)
        self._baud = whole(options.pop("baud"), 1, 10**7, f"{self.name}: baud")
        self._bits = whole(options.pop("bits"), 7, 8, f"{self.name}: bits")
        self._stops = whole(options.pop("stop"), 1, 2, f"{self.name}: stop")
        self._parity = options.pop("parity")
        if self._parity not in _PARITIES:
            raise UsageError(f"{self.name}: parity is {', '.join(_PARITIES)}, not {self._parity!r:.40}")
        topic = options.pop("topic") or f"/serial_{os.path.basename(path)}"
        self._frames = FrameSplitter(self.name, topic, **options, packets=False)

    def run(self, feed: Feed) -> None:
        """Read frames until the device disappears or the recording stops."""
        handle = os.open(self.path, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
        try:
            self._configure(handle)
            channel = self._frames.declare(feed)
            while not feed.stopping:
                if not readable(handle, PATIENCE):
                    continue
                data = os.read(handle, READ_BYTES)
                now = time.time_ns()
                if not data:
                    break
                self._frames.pass_on(feed, channel, data, now, wait=False)
            self._frames.end(feed, channel, time.time_ns())
        finally:
            os.close(handle)

    def _configure(self, handle: int) -> None:
        """Set speed and form of the characters, and switch all processing of them off."""
        try:
            import termios
        except ImportError:
            raise UnsupportedError("serial ports need termios, which this system does not have") from None
        speed = getattr(termios, f"B{self._baud}", None)
        if speed is None:
            known = sorted(int(name[1:]) for name in dir(termios) if name[0] == "B" and name[1:].isdigit())
            rates = ", ".join(map(str, known[1:]))
            raise UsageError(f"this system has no baud rate {self._baud}; it has {rates}")
        try:
            mode = termios.tcgetattr(handle)
        except termios.error as error:
            raise UsageError(f"this is no serial port: {error.args[-1]}") from None
        size = termios.CS8 if self._bits == 8 else termios.CS7
        parity = {"none": 0, "even": termios.PARENB, "odd": termios.PARENB | termios.PARODD}[self._parity]
        mode[0] = 0
        mode[1] = 0
        mode[2] = size | parity | termios.CREAD | termios.CLOCAL | (termios.CSTOPB if self._stops == 2 else 0)
        mode[3] = 0
        mode[4] = mode[5] = speed
        mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
        # What came before, at another speed, is thrown away.
        termios.tcsetattr(handle, termios.TCSAFLUSH, mode)
