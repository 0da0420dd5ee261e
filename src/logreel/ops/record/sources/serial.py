"""Live source of frames from a serial port."""

from __future__ import annotations

import os
import select
import time

from logreel.errors import UnsupportedError, UsageError
from logreel.ops.record.source import PATIENCE, Feed
from logreel.ops.record.sources.frames import Frames, options_of, whole

#: Bytes read at once.
PIECE = 1 << 14
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
        self._frames = Frames(self.name, topic, **options, packets=False)

    def run(self, feed: Feed) -> None:
        """Read frames until the device disappears or the recording stops."""
        handle = os.open(self.path, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
        try:
            self._configure(handle)
            channel = self._frames.declare(feed)
            while not feed.stopping:
                if not select.select([handle], [], [], PATIENCE)[0]:
                    continue
                piece = os.read(handle, PIECE)
                now = time.time_ns()
                if not piece:
                    break
                self._frames.pass_on(feed, channel, piece, now, wait=False)
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
            some = ", ".join(map(str, known[1:]))
            raise UsageError(f"this system has no baud rate {self._baud}; it has {some}")
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
