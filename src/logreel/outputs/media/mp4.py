"""Pictures of a channel as an MP4 video: encoded packets unchanged, other pictures as H.264."""

from __future__ import annotations

import io
from fractions import Fraction
from itertools import chain
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel._version import __version__
from logreel.errors import MissingDependencyError, UnsupportedError
from logreel.log.times import SECOND, utc_shift, utc_text
from logreel.outputs.media.pictures import VideoFrame, add_stream, encode, frame_of
from logreel.outputs.registry import Job, SkipCounter, readers

if TYPE_CHECKING:
    from logreel.log.log import Channel

#: Ticks per second. Durations of frames have 31 bits, so ticks of 1 µs cannot represent 36 minutes.
_FINE, _COARSE, _MOST = 1_000_000, 90_000, (1 << 31) - 1
#: Seconds; after a larger jump of the times, following times are relative to the jump.
_JUMP = 10
#: Encoder options for high quality.
_QUALITY = {"crf": "18", "preset": "fast"}
_KEY_EVERY = 30


def write(out: IO[bytes], job: Job, ch: Channel) -> None:
    """Write the pictures of *ch*, each at its time, as one video.

    JPEG, H.264 and H.265 are copied unchanged; raw pixels of 8 bits and PNG are encoded as H.264. The first picture
    determines codec and size. Other pictures, broken ones, and packets before the first key frame are skipped and
    reported to *job*. Needs ``logreel[video]``.
    """
    try:
        import av
    except ImportError as error:
        raise MissingDependencyError("av", "video") from error
    bad, done = SkipCounter(), 0
    with av.open(out, "w", format="mp4") as file:
        video = _VideoWriter(file, job, ch)
        for picture in chain.from_iterable(read(ch, job.start, job.end) for read in readers(ch, "pictures")):
            done += 1
            try:
                video.add(picture.time, frame_of(picture))
            except UnsupportedError as error:
                bad.add(error.text)
            else:
                job.rows[ch.topic] = job.rows.get(ch.topic, 0) + 1
            job.advance(1)
        video.finish()
    job.advance(max(0, len(ch) - done))
    job.skipped += bad.sentences("picture", f"of {ch.topic!r} left out")
    job.notes += video.jumps.sentences("picture", f"of {ch.topic!r} shown right after the one before")


class _VideoWriter:
    """Writes a video picture by picture.

    jumps  counts pictures with a time that is not after the previous one, or hours later
    """

    def __init__(self, file: Any, job: Job, ch: Channel) -> None:
        self._file, self._job, self._ch = file, job, ch
        length = (job.log.end or 0) - (job.log.start or 0)
        self._rate = _FINE if length * _FINE < _MOST * SECOND else _COARSE
        self._stream: Any = None
        self._first: VideoFrame | None = None
        self._origin, self._last = 0, -1
        self._buffered: Any = None
        self._step = self._rate
        self.jumps = SkipCounter()

    def add(self, time: int, frame: VideoFrame) -> None:
        """Add *frame* at *time* (ns); raises UnsupportedError if codec or size differ from the first frame."""
        if self._first is None:
            if not frame.key:
                raise UnsupportedError("there is no key frame before it")
            self._stream = self._add_stream(frame)
            self._first, self._origin = frame, time
            self._describe(time)
        first = self._first
        if (frame.codec, frame.size) != (first.codec, first.size):
            raise UnsupportedError(f"it is {_frame_text(frame)}, but the first one is {_frame_text(first)}")
        at = self._tick(time)
        if frame.pixels is None:
            self._put(frame.packet, at, frame.key)
        else:
            self._encode(frame.pixels, at)

    def finish(self) -> None:
        """Write the frames that are still buffered."""
        if self._first is not None and self._first.pixels is not None:
            self._put_all(self._stream.encode(None))
        if self._buffered is not None:
            self._mux(self._step)

    def _add_stream(self, frame: VideoFrame) -> Any:
        import av

        base = Fraction(1, self._rate)
        if frame.pixels is None:
            try:
                with av.open(io.BytesIO(frame.packet), format=frame.codec) as source:
                    video = source.streams.video[0]
                    if 0 in (video.width, video.height):
                        raise ValueError("no size")
                    stream = self._file.add_stream_from_template(video)
            except (av.FFmpegError, IndexError, ValueError) as error:
                raise UnsupportedError(f"its {frame.codec} cannot be used") from error
            if frame.codec == "mjpeg":
                # Older releases of av open an unused encoder, which refuses grey.
                stream.pix_fmt = "yuvj420p"
            stream.time_base = base
            return stream
        return add_stream(self._file, frame.size, base, _KEY_EVERY, _QUALITY)

    def _describe(self, time: int) -> None:
        shift, metadata = utc_shift(self._job.log), self._file.metadata
        metadata["title"] = self._ch.topic
        metadata["comment"] = f"made by logreel {__version__}; begins at {time} ns"
        if shift is not None:
            metadata["creation_time"] = utc_text(time + shift, 6)

    def _tick(self, time: int) -> int:
        """Return the tick of the next picture: at its time if that is possible, and after the previous one."""
        at = ((time - self._origin) * self._rate + SECOND // 2) // SECOND
        ahead = at - self._last
        if self._last < 0 or 0 < ahead <= _MOST:
            self._last = max(at, 0)
            return self._last
        self.jumps.add("its time is no later" if ahead <= 0 else "its time is hours later")
        if abs(ahead) > _JUMP * self._rate:
            self._origin += (ahead - 1) * SECOND // self._rate
        self._last += 1
        return self._last

    def _encode(self, pixels: NDArray[np.uint8], at: int) -> None:
        self._put_all(encode(self._stream, pixels, at, Fraction(1, self._rate)))

    def _put_all(self, packets: list[Any]) -> None:
        for packet in packets:
            self._put(bytes(packet), packet.pts, packet.is_keyframe)

    def _put(self, data: bytes, at: int, key: bool) -> None:
        """Buffer a packet until the time of the next one gives its duration."""
        import av

        if self._buffered is not None:
            self._step = at - self._buffered.pts
            self._mux(self._step)
        self._buffered = packet = av.Packet(data)
        packet.pts = packet.dts = at
        packet.is_keyframe = key

    def _mux(self, duration: int) -> None:
        packet = self._buffered
        packet.stream, packet.time_base, packet.duration = self._stream, Fraction(1, self._rate), duration
        self._file.mux(packet)


def _frame_text(frame: VideoFrame) -> str:
    size = f"{frame.size[0]} × {frame.size[1]} pixels" if any(frame.size) else "video"
    return f"{frame.codec or 'raw'} of {size}"
