"""Frames in a stream of bytes: of one size, behind their lengths, or lines; and the options of sources of frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal
from urllib.parse import parse_qsl

from logreel.errors import LogError, UsageError
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, FixedArray, Rest, Scalar, Struct
from logreel.ops.record.source import Feed, LiveChannel

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
        if not value or len([one for one, _ in pairs if one == option]) > 1:
            raise UsageError(f"{name}: give {option!r} one value")
    return {**known, **dict(pairs)}


def whole(text: str, least: int, most: int, what: str) -> int:
    """Return a number of an option; raises UsageError if it is none from *least* to *most*."""
    if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
        raise UsageError(f"{what}: a whole number from {least} to {most}, not {text!r:.40}")
    return int(text)


class Frames:
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

    def pass_on(self, feed: Feed, channel: LiveChannel | None, piece: bytes, time: int, wait: bool) -> None:
        """Pass the frames that end in *piece* to *feed*, with *time* ns.

        Raises LogError if the bytes cannot be frames: the next one cannot be found.
        """
        for frame in self._frames(feed, piece):
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

    def _frames(self, feed: Feed, piece: bytes) -> Iterator[bytes]:
        if self._packets and not (self._lines or self._json or self._prefix):
            if self._size and len(piece) != self._size:
                feed.skip(f"a datagram of {len(piece)} bytes instead of {self._size}")
                return
            yield piece
            return
        if self._packets:
            # Each packet stands for itself, since others may be lost.
            self._without_end = 0
            self._begun = bytearray(piece if piece[-1:] == b"\n" or self._prefix else piece + b"\n")
        else:
            self._begun += piece
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
